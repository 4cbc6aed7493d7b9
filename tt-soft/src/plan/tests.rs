//! Plans that are wrong on purpose: each fault that the checked mode knows is provoked once.

use half::bf16;

use super::*;
use crate::eltwise::{Binary, Fused, Unary};
use crate::engine::Engine;
use crate::isa::Isa;
use crate::view::Dtype;

const CHECKED: PlanOptions = PlanOptions { checked: true };
const SHAPE: [usize; 4] = [1, 1, 3, 5];

fn engine() -> Engine {
    Engine::new(Isa::Portable, 1).unwrap()
}

/// An operand in a buffer of its own, filled with `value` where it has elements and poisoned elsewhere.
fn filled(heap: &mut Heap, shape: [usize; 4], value: f32) -> Operand {
    let operand = unwritten(heap, shape);
    let values = vec![bf16::from_f32(value); operand.volume()];
    poison_padding(heap, &operand);
    copy_from_host(&engine(), values.as_slice().into(), None, &operand, heap).unwrap();
    operand
}

fn unwritten(heap: &mut Heap, shape: [usize; 4]) -> Operand {
    let place = |buffer| Operand::fresh(buffer, Dtype::Bf16, shape, Arrangement::Rows);
    let id = heap.allocate(place(BufferId::Recorded(0)).1);
    place(BufferId::Heap(id)).0
}

fn run(heap: &mut Heap, calls: Vec<Call>, output: Operand) -> String {
    match run_step(&engine(), &Step::new("op", calls, output), heap, CHECKED) {
        Ok(()) => "nothing".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_right_op_passes() {
    let mut heap = Heap::new();
    let (x, out) = (filled(&mut heap, SHAPE, 2.0), unwritten(&mut heap, SHAPE));
    assert_eq!(run(&mut heap, vec![Call::new(Kernel::Copy, vec![x], out)], out), "nothing");
}

#[test]
fn an_element_that_no_call_writes_is_found() {
    let mut heap = Heap::new();
    let (x, out) = (filled(&mut heap, SHAPE, 2.0), unwritten(&mut heap, SHAPE));
    let part = |operand: Operand| operand.slice(2, 0, 2, 1);
    let message = run(&mut heap, vec![Call::new(Kernel::Copy, vec![part(x)], part(out))], out);
    assert_eq!(message, "op: element [0, 0, 2, 0] of the result was not written, or computed from padding");
}

#[test]
fn reading_padding_is_found() {
    let mut heap = Heap::new();
    let (x, out) = (filled(&mut heap, SHAPE, 2.0), unwritten(&mut heap, SHAPE));
    // One column to the right: the last one lies in the padding of the row.
    let beside = Operand { offset: 1, ..x };
    let kernel = Kernel::Unary(Unary::Neg);
    let message = run(&mut heap, vec![Call::new(kernel, vec![beside], out)], out);
    assert!(message.contains("[0, 0, 0, 4]") && message.contains("padding"), "{message}");
}

#[test]
fn reading_behind_the_last_row_is_found() {
    let mut heap = Heap::new();
    let (x, out) = (filled(&mut heap, SHAPE, 2.0), unwritten(&mut heap, SHAPE));
    let below = Operand { offset: x.strides[2], ..x };
    let message = run(&mut heap, vec![Call::new(Kernel::Copy, vec![below], out)], out);
    assert!(message.contains("[0, 0, 2, 0]") && message.contains("padding"), "{message}");
}

#[test]
fn padding_that_reaches_a_sum_is_found() {
    let mut heap = Heap::new();
    let (x, out) = (filled(&mut heap, SHAPE, 2.0), unwritten(&mut heap, [1, 1, 3, 6]));
    let wider = Operand { shape: [1, 1, 3, 6], ..x };
    let message = run(&mut heap, vec![Call::new(Kernel::Softmax, vec![wider], out)], out);
    assert!(message.contains("[0, 0, 0, 0]"), "{message}");
}

#[test]
fn writing_beside_the_result_is_found() {
    let mut heap = Heap::new();
    let wide = [1, 1, 3, 6];
    let (x, out) = (filled(&mut heap, wide, 2.0), unwritten(&mut heap, SHAPE));
    let too_wide = Operand { shape: wide, ..out };
    let message = run(&mut heap, vec![Call::new(Kernel::Copy, vec![x], too_wide)], out);
    assert_eq!(message, "op: element 5 of the buffer was written, which belongs to no element of the result");
}

#[test]
fn nan_from_finite_operands_is_found_and_nan_from_nan_is_not() {
    let mut heap = Heap::new();
    for (value, wanted) in [(0.0, "NaN although all operands are finite"), (f32::NAN, "nothing")] {
        let (x, out) = (filled(&mut heap, SHAPE, value), unwritten(&mut heap, SHAPE));
        let message = run(
            &mut heap,
            vec![Call::new(Kernel::Binary(Binary::Div, Fused::default()), vec![x, x], out)],
            out,
        );
        assert!(message.contains(wanted), "{message}");
    }
}

/// x + 1, + 1, + 1 through recorded buffers; the last is kept.
fn chain(options: PlanOptions) -> (Heap, Operand, Plan, Operand) {
    let mut heap = Heap::new();
    let x = filled(&mut heap, SHAPE, 1.0);
    let mut recording = Recording::new();
    let mut last = x;
    for _ in 0..3 {
        let place = |buffer| Operand::fresh(buffer, Dtype::Bf16, SHAPE, Arrangement::Rows);
        let index = recording.allocate(place(BufferId::Recorded(0)).1);
        let out = place(BufferId::Recorded(index)).0;
        let call = Call::new(Kernel::BinaryScalar(Binary::Add, Fused::default(), 1.0), vec![last], out);
        recording.push(Step::new("add", vec![call], out));
        last = out;
    }
    let (plan, own) = recording.finish(&[2], options, &mut heap);
    let result = last.within(BufferId::Heap(own[0]));
    (heap, x, plan, result)
}

fn read(heap: &Heap, operand: &Operand) -> Vec<f32> {
    let mut values = vec![0.0f32; operand.volume()];
    copy_to_host(&engine(), operand, heap, values.as_mut_slice().into()).unwrap();
    values
}

#[test]
fn a_plan_computes_the_same_in_checked_mode() {
    for options in [PlanOptions::default(), CHECKED] {
        let (mut heap, _, plan, result) = chain(options);
        for _ in 0..2 {
            plan.run(&engine(), &mut heap, None).unwrap();
            assert_eq!(read(&heap, &result), [4.0; 15]);
        }
    }
}

#[test]
fn what_a_trace_is_done_with_is_poisoned() {
    let (mut heap, _, plan, _) = chain(CHECKED);
    plan.run(&engine(), &mut heap, None).unwrap();
    let first = plan.steps()[0].output.unwrap();
    assert!(matches!(first.buffer, BufferId::Arena { .. }));
    assert!(read(&heap, &first).iter().all(|v| v.is_nan()));
    // A call that reads it although it is gone is caught.
    let out = unwritten(&mut heap, SHAPE);
    let message = run(&mut heap, vec![Call::new(Kernel::Copy, vec![first], out)], out);
    assert!(message.contains("not written, or computed from padding"), "{message}");
}

#[test]
fn times_come_one_per_op() {
    let (mut heap, _, plan, _) = chain(PlanOptions::default());
    let mut times = Vec::new();
    plan.run(&engine(), &mut heap, Some(&mut times)).unwrap();
    assert_eq!(times.len(), plan.steps().len());
}

#[test]
fn a_recorded_buffer_that_was_not_placed_is_an_error() {
    let mut heap = Heap::new();
    let x = filled(&mut heap, SHAPE, 1.0);
    let call = Call::new(Kernel::Copy, vec![x], x.within(BufferId::Recorded(0)));
    assert!(run_call(&engine(), &call, &mut heap).unwrap_err().to_string().contains("not placed"));
    let call = Call::new(Kernel::Copy, vec![x.within(BufferId::Arena { start: 0, len: 64 })], x);
    assert!(run_call(&engine(), &call, &mut heap).unwrap_err().to_string().contains("cannot be read"));
}
