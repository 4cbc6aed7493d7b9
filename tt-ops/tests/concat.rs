//! Concatenation in a trace: parts are written in place where that is possible, and results are the same bytes as eager.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use tt_ops::{Device, Float32, Result, Soft, Tensor, ops};

type T = Tensor<Soft, Float32>;

fn device() -> Soft {
    Soft::builder().threads(1).open().unwrap()
}

fn input(device: &Soft, shape: [usize; 3], seed: usize) -> T {
    let len = shape.iter().product();
    let values: Vec<f32> = (0..len).map(|i| ((i * 31 + seed * 7) % 97) as f32).collect();
    Tensor::from_span(device, shape, &values).unwrap()
}

fn plus(x: &T, number: f32) -> Result<T> {
    ops::add(x, number)
}

/// Runs `body` both ways; gives the number of copies that the plan still makes.
fn copies_left(device: &Soft, body: impl Fn() -> Result<T>) -> usize {
    let eager = body().unwrap();
    let trace = device.capture(|_| body()).unwrap();
    for _ in 0..2 {
        trace.replay().unwrap();
        assert_eq!(trace.outputs().to_vector::<f32>().unwrap(), eager.to_vector::<f32>().unwrap());
    }
    let calls = trace.handle().plan().steps().iter().flat_map(|step| &step.calls);
    calls.filter(|call| matches!(call.kernel, tt_soft::plan::Kernel::Copy)).count()
}

#[test]
fn rows_are_written_where_they_belong() {
    let device = device();
    let (a, b) = (input(&device, [1, 1, 40], 1), input(&device, [1, 16, 40], 2));
    let copies = copies_left(&device, || {
        let parts = [plus(&a, 1.0)?, b.clone(), plus(&b, 2.0)?];
        let joined = ops::concat(&parts.iter().collect::<Vec<_>>(), 1)?;
        plus(&joined, 1.0)
    });
    // Only the part that comes from outside.
    assert_eq!(copies, 1);
}

#[test]
fn a_part_that_others_read_as_well_moves_with_its_readers() {
    let device = device();
    let a = input(&device, [1, 6, 40], 1);
    let copies = copies_left(&device, || {
        let (x, y) = (plus(&a, 1.0)?, plus(&a, 2.0)?);
        let joined = ops::concat(&[&x, &y], 1)?;
        let row = ops::slice_dim(&x, 1, 2..3)?;
        ops::multiply(&joined, &row)
    });
    assert_eq!(copies, 0);
}

#[test]
fn a_part_computed_from_another_part_is_copied() {
    let device = device();
    let a = input(&device, [1, 6, 40], 1);
    let copies = copies_left(&device, || {
        let x = plus(&a, 1.0)?;
        let y = plus(&x, 2.0)?;
        plus(&ops::concat(&[&x, &y], 1)?, 1.0)
    });
    assert_eq!(copies, 1);
}

#[test]
fn the_same_part_twice_is_copied() {
    let device = device();
    let a = input(&device, [1, 6, 40], 1);
    let copies = copies_left(&device, || {
        let x = plus(&a, 1.0)?;
        plus(&ops::concat(&[&x, &x], 1)?, 1.0)
    });
    assert_eq!(copies, 2);
}

#[test]
fn batches_and_columns_are_copied() {
    let device = device();
    let a = input(&device, [2, 6, 40], 1);
    for dim in [1, 2] {
        let copies = copies_left(&device, || {
            let (x, y) = (plus(&a, 1.0)?, plus(&a, 2.0)?);
            plus(&ops::concat(&[&x, &y], dim)?, 1.0)
        });
        assert_eq!(copies, 2);
    }
}

#[test]
fn a_part_that_is_an_output_stays_whole() {
    let device = device();
    let a = input(&device, [1, 6, 40], 1);
    let body = || -> Result<(T, T)> {
        let (x, y) = (plus(&a, 1.0)?, plus(&a, 2.0)?);
        let joined = ops::concat(&[&x, &y], 1)?;
        Ok((x, joined))
    };
    let (x, joined) = body().unwrap();
    let trace = device.capture(|_| body()).unwrap();
    trace.replay().unwrap();
    assert_eq!(trace.outputs().0.to_vector::<f32>().unwrap(), x.to_vector::<f32>().unwrap());
    assert_eq!(trace.outputs().1.to_vector::<f32>().unwrap(), joined.to_vector::<f32>().unwrap());
}

#[test]
fn a_clone_and_its_source_hold_the_same_values() {
    let device = device();
    let a = input(&device, [1, 6, 40], 1);
    copies_left(&device, || {
        let x = plus(&a, 1.0)?;
        let y = ops::clone(&x)?;
        ops::multiply(&plus(&y, 1.0)?, &plus(&x, 2.0)?)
    });
}
