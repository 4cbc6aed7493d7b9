//! Traces of the software device: inputs, outputs, chains of stages, observers, and what a capture refuses.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use tt_ops::ops::{self, Heads, LayerNorm, Linear, Sdpa};
use tt_ops::soft::Isa;
use tt_ops::{
    Activation, Bfloat16, Capture, CaptureOptions, DataType, Device, Float32, Result, Soft, Tensor, Trace,
    TtError, Weight,
};

const ROWS: usize = 21;
const WIDTH: usize = 96;
const HEADS: usize = 2;

/// Numbers between -1 and 1.
fn numbers(seed: usize, len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 37 + seed * 101) % 211) as f32 / 105.0 - 1.0).collect()
}

fn weight(device: &Soft, k: usize, n: usize, dtype: DataType) -> Weight<Soft> {
    let values: Vec<f32> = numbers(k + n, k * n).iter().map(|v| v / (k as f32).sqrt()).collect();
    Weight::from_out_in(device, n, k, dtype, &values[..]).unwrap()
}

/// A transformer block with its weights.
struct Block {
    qkv: Weight<Soft>,
    out: Weight<Soft>,
    up: Weight<Soft>,
    down: Weight<Soft>,
    bias: Tensor<Soft, Float32>,
}

impl Block {
    fn new(device: &Soft) -> Self {
        Self {
            qkv: weight(device, WIDTH, 3 * WIDTH, DataType::Bfloat16),
            out: weight(device, WIDTH, WIDTH, DataType::Bfloat8B),
            up: weight(device, WIDTH, 4 * WIDTH, DataType::Bfloat16),
            down: weight(device, 4 * WIDTH, WIDTH, DataType::Bfloat8B),
            bias: Tensor::from_span(device, [WIDTH], &numbers(9, WIDTH)).unwrap(),
        }
    }

    fn forward(
        &self,
        capture: Option<&Capture<Soft>>,
        x: &Tensor<Soft, Float32>,
    ) -> Result<Tensor<Soft, Float32>> {
        let n: Tensor<_, Bfloat16> = ops::layer_norm(x, LayerNorm::new(1e-5))?;
        let qkv: Tensor<_, Bfloat16> = ops::linear(&n, &self.qkv, Linear::new())?;
        let (q, k, v) = ops::split_query_key_value_and_split_heads(&qkv, None, Heads::new(HEADS))?;
        let a =
            ops::concatenate_heads(&ops::scaled_dot_product_attention(&q, &k, &v, Sdpa::new().causal())?)?;
        if let Some(capture) = capture {
            capture.keep("attention", &a);
        }
        let x: Tensor<_, Float32> = ops::linear(&a, &self.out, Linear::new().bias(&self.bias).residual(x))?;
        let n: Tensor<_, Bfloat16> = ops::layer_norm(&x, LayerNorm::new(1e-5))?;
        let up: Tensor<_, Bfloat16> =
            ops::linear(&n, &self.up, Linear::new().activation(Activation::GeluTanh))?;
        ops::linear(&up, &self.down, Linear::new().residual(&x))
    }
}

fn soft(threads: usize) -> Soft {
    Soft::builder().threads(threads).open().unwrap()
}

fn input(device: &Soft) -> Tensor<Soft, Float32> {
    Tensor::zeros(device, [1, ROWS, WIDTH]).unwrap()
}

fn stage(device: &Soft, block: &Block, x: &Tensor<Soft, Float32>) -> Trace<Soft, Tensor<Soft, Float32>> {
    device.capture(|_| block.forward(None, &block.forward(None, x)?)).unwrap()
}

fn bits(tensor: &Tensor<Soft, Float32>) -> Vec<u32> {
    tensor.to_vector::<f32>().unwrap().iter().map(|v| v.to_bits()).collect()
}

#[test]
fn a_replay_gives_the_bytes_of_the_eager_run() {
    for isa in Isa::available() {
        let device = Soft::builder().isa(isa).threads(2).open().unwrap();
        let (block, x) = (Block::new(&device), input(&device));
        let trace = stage(&device, &block, &x);
        for seed in 0..3 {
            x.write(&numbers(seed, ROWS * WIDTH)).unwrap();
            let eager = block.forward(None, &block.forward(None, &x).unwrap()).unwrap();
            trace.replay().unwrap();
            assert_eq!(bits(trace.outputs()), bits(&eager), "{isa}");
        }
    }
}

#[test]
fn results_do_not_depend_on_threads_or_on_what_ran_before() {
    let reference = {
        let device = soft(1);
        let (block, x) = (Block::new(&device), input(&device));
        let trace = stage(&device, &block, &x);
        x.write(&numbers(1, ROWS * WIDTH)).unwrap();
        trace.replay().unwrap();
        bits(trace.outputs())
    };
    for threads in 1..=3 {
        let device = soft(threads);
        let (block, x, y) = (Block::new(&device), input(&device), input(&device));
        let (trace, other) = (stage(&device, &block, &x), stage(&device, &block, &y));
        x.write(&numbers(1, ROWS * WIDTH)).unwrap();
        for round in 0..50 {
            y.write(&numbers(round, ROWS * WIDTH)).unwrap();
            other.replay().unwrap();
            trace.replay().unwrap();
            assert_eq!(bits(trace.outputs()), reference, "{threads} threads, round {round}");
        }
    }
}

#[test]
fn a_later_stage_reads_what_an_earlier_one_left_on_the_device() {
    let device = soft(2);
    let (block, x) = (Block::new(&device), input(&device));
    let first = stage(&device, &block, &x);
    let second = stage(&device, &block, first.outputs());
    x.write(&numbers(3, ROWS * WIDTH)).unwrap();
    first.replay().unwrap();
    second.replay().unwrap();
    let mut eager = x;
    for _ in 0..4 {
        eager = block.forward(None, &eager).unwrap();
    }
    assert_eq!(bits(second.outputs()), bits(&eager));
}

#[test]
fn an_observer_sees_stages_and_changes_nothing() {
    let device = soft(2);
    let (block, x) = (Block::new(&device), input(&device));
    let plain = stage(&device, &block, &x);
    let observed = device.capture(|c| block.forward(None, &block.forward(Some(c), &x)?)).unwrap();
    let options = CaptureOptions::default().keep_all();
    let everything =
        device.capture_with(options, |_| block.forward(None, &block.forward(None, &x)?)).unwrap();
    x.write(&numbers(5, ROWS * WIDTH)).unwrap();
    for trace in [&plain, &observed, &everything] {
        trace.replay().unwrap();
    }
    assert_eq!(bits(plain.outputs()), bits(observed.outputs()));
    assert_eq!(bits(plain.outputs()), bits(everything.outputs()));
    let seen = observed.kept_tensor("attention").unwrap().typed::<Bfloat16>().unwrap();
    assert_eq!(seen.shape().dims(), [1, ROWS, WIDTH]);
    assert!(seen.to_vector::<f32>().unwrap().iter().any(|&v| v != 0.0));
    assert!(observed.kept_tensor("something else").is_none());
}

/// What a capture refuses.
type Body<'a> = Box<dyn Fn() -> Result<()> + 'a>;

#[test]
fn making_and_touching_tensors_during_a_capture_is_refused() {
    let device = soft(1);
    let x = input(&device);
    let bodies: [(&str, Body<'_>); 6] = [
        ("making a tensor", Box::new(|| input_or_error(&device).map(|_| ()))),
        ("writing host values", Box::new(|| x.write(&[0.0f32; ROWS * WIDTH]))),
        ("reading a tensor", Box::new(|| x.to_vector::<f32>().map(|_| ()))),
        (
            "packing a weight",
            Box::new(|| Weight::from_in_out(&device, 1, 1, DataType::Bfloat16, &[1.0f32][..]).map(|_| ())),
        ),
        ("a capture", Box::new(|| device.capture(|_| Ok::<(), TtError>(())).map(|_| ()))),
        ("deallocating", Box::new(|| x.clone().deallocate())),
    ];
    for (what, body) in bodies {
        let error = device.capture(|_| body()).map(|_| ()).unwrap_err();
        assert!(matches!(&error, TtError::Capture(message) if message.contains(what)), "{what}: {error}");
    }
    // The device is usable afterwards.
    x.write(&[1.0f32; ROWS * WIDTH]).unwrap();
}

fn input_or_error(device: &Soft) -> Result<Tensor<Soft, Float32>> {
    Tensor::zeros(device, [1])
}

#[test]
fn outputs_cannot_be_read_before_the_first_replay() {
    let device = soft(1);
    let x = input(&device);
    let trace = device.capture(|_| ops::add::<_, _, Float32>(&x, 1.0)).unwrap();
    let error = trace.outputs().to_vector::<f32>().unwrap_err();
    assert!(error.to_string().contains("not replayed yet"), "{error}");
}

#[test]
fn outputs_outlive_their_trace() {
    let device = soft(1);
    let x = input(&device);
    let trace = device.capture(|_| ops::add::<_, _, Float32>(&x, 1.0)).unwrap();
    trace.replay().unwrap();
    let y = trace.release();
    assert!(y.to_vector::<f32>().unwrap().iter().all(|&v| v == 1.0));
}

#[test]
fn a_deallocated_input_is_an_error_at_replay() {
    let device = soft(1);
    let (x, other) = (input(&device), input(&device));
    let trace = device.capture(|_| ops::add::<_, _, Float32>(&x, &other)).unwrap();
    trace.replay().unwrap();
    other.deallocate().unwrap();
    let error = trace.replay().unwrap_err();
    assert!(matches!(&error, TtError::Memory { what, .. } if what.contains("deallocated")), "{error}");
}

#[test]
fn reading_after_deallocate_is_an_error() {
    let device = soft(1);
    let x = input(&device);
    let clone = x.clone();
    x.deallocate().unwrap();
    for error in [clone.to_vector::<f32>().unwrap_err(), ops::add::<_, _, Float32>(&clone, 1.0).unwrap_err()]
    {
        assert!(matches!(&error, TtError::Memory { what, .. } if what.contains("deallocated")), "{error}");
    }
}

#[test]
fn memory_that_a_capture_gave_up_cannot_be_read() {
    let device = soft(1);
    let x = input(&device);
    let leaked = std::cell::RefCell::new(None);
    let trace = device
        .capture(|_| {
            let y: Tensor<_, Float32> = ops::add(&x, 1.0)?;
            *leaked.borrow_mut() = Some(y.clone());
            let z: Tensor<_, Float32> = ops::add(&y, 1.0)?;
            y.deallocate()?;
            Ok::<_, TtError>(z)
        })
        .unwrap();
    trace.replay().unwrap();
    let error = leaked.take().unwrap().to_vector::<f32>().unwrap_err();
    assert!(matches!(error, TtError::Memory { .. }), "{error}");

    let lost = device.capture(|_| {
        *leaked.borrow_mut() = Some(ops::add::<_, _, Float32>(&x, 1.0)?);
        Err::<(), _>(TtError::Capture("given up".into()))
    });
    assert!(lost.is_err());
    let error = leaked.take().unwrap().to_vector::<f32>().unwrap_err();
    assert!(error.to_string().contains("given up"), "{error}");
}

#[test]
fn results_of_ops_cannot_be_written() {
    let device = soft(1);
    let x = input(&device);
    let y: Tensor<_, Float32> = ops::add(&x, 1.0).unwrap();
    assert!(matches!(y.write(&[0.0f32; ROWS * WIDTH]), Err(TtError::Memory { .. })));
}

#[test]
fn an_eager_view_does_not_change_with_its_source() {
    let device = soft(1);
    let x = input(&device);
    let row = ops::slice_dim(&x, 1, 0..1).unwrap();
    x.write(&[5.0f32; ROWS * WIDTH]).unwrap();
    assert!(row.to_vector::<f32>().unwrap().iter().all(|&v| v == 0.0));
}

#[test]
fn captured_ops_say_what_they_cost() {
    let device = soft(1);
    let (block, x) = (Block::new(&device), input(&device));
    let trace = device.capture(|_| block.forward(None, &x)).unwrap();
    let names: Vec<&str> = trace.ops().ops.iter().map(|op| op.op.name()).collect();
    assert_eq!(
        names,
        [
            "layer_norm",
            "linear",
            "split_query_key_value_and_split_heads",
            "scaled_dot_product_attention",
            "concatenate_heads",
            "linear",
            "layer_norm",
            "linear",
            "linear"
        ]
    );
    let qkv = &trace.ops().ops[1];
    assert_eq!(qkv.flops, 2 * (ROWS * WIDTH * 3 * WIDTH) as u64);
    assert_eq!(qkv.bytes_read, 2 * (ROWS * WIDTH + WIDTH * 3 * WIDTH) as u64);
    assert!(trace.ops().ops[2].is_view && trace.ops().ops[4].is_view);
    let json: serde_json::Value = serde_json::from_str(&trace.ops().to_json().unwrap()).unwrap();
    assert_eq!(json["ops"][1]["op"], "linear");
    assert_eq!(json["ops"][1]["inputs"][1]["dtype"], "BFLOAT16");
    assert_eq!(json["ops"][0]["outputs"][0]["memory"], json["ops"][1]["inputs"][0]["memory"]);
    let times = trace.replay_timed().unwrap();
    assert_eq!(times.len(), names.len());
    assert!(tt_ops::time_table(&times).contains("scaled_dot_product_attention"));
}

#[test]
fn a_dying_residual_costs_no_memory() {
    let device = soft(1);
    let x = input(&device);
    let w = weight(&device, WIDTH, WIDTH, DataType::Float32);
    let chain = |steps: usize| {
        let trace = device
            .capture(|_| {
                let mut y: Tensor<_, Float32> = ops::add(&x, 1.0)?;
                for _ in 0..steps {
                    let n: Tensor<_, Float32> = ops::layer_norm(&y, LayerNorm::new(1e-5))?;
                    y = ops::linear(&n, &w, Linear::new().residual(&y))?;
                }
                ops::add::<_, _, Float32>(&y, 1.0)
            })
            .unwrap();
        trace.handle().plan().arena_bytes()
    };
    let tensor = (ROWS + tt_soft::plan::GUARD_ROWS) * WIDTH * 4;
    assert!(chain(6) <= 2 * tensor.next_multiple_of(64), "{} for tensors of {tensor}", chain(6));
    assert_eq!(chain(6), chain(1));
}

#[test]
fn threads_share_a_device() {
    let device = soft(2);
    let (block, x) = (Block::new(&device), input(&device));
    x.write(&numbers(2, ROWS * WIDTH)).unwrap();
    let trace = stage(&device, &block, &x);
    trace.replay().unwrap();
    let wanted = bits(trace.outputs());
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (device, block, x, trace, wanted) = (&device, &block, &x, &trace, &wanted);
            scope.spawn(move || {
                for _ in 0..10 {
                    if worker == 0 {
                        let again = stage(device, block, x);
                        again.replay().unwrap();
                        assert_eq!(&bits(again.outputs()), wanted);
                    } else if worker == 1 {
                        let eager = block.forward(None, &block.forward(None, x).unwrap()).unwrap();
                        assert_eq!(&bits(&eager), wanted);
                    } else {
                        trace.replay().unwrap();
                        assert_eq!(&bits(trace.outputs()), wanted);
                    }
                }
            });
        }
    });
}

#[test]
fn memory_is_given_back() {
    let device = soft(1);
    let (block, x) = (Block::new(&device), input(&device));
    let before = device.memory_bytes();
    for _ in 0..3 {
        drop(block.forward(None, &x).unwrap());
        drop(stage(&device, &block, &x));
    }
    assert_eq!(device.memory_bytes().tensors, before.tensors);
    device.trim();
    assert_eq!(device.memory_bytes().pooled, 0);
}

#[test]
fn a_trace_on_another_device_is_refused() {
    let (one, two) = (soft(1), soft(1));
    let (x, y) = (input(&one), input(&two));
    assert_eq!(ops::add::<_, _, Float32>(&x, &y).unwrap_err(), TtError::Devices { op: "add" });
}

#[test]
fn packed_weights_come_back_from_their_bytes() {
    let device = soft(1);
    let x: Tensor<_, Bfloat16> = Tensor::from_span(&device, [2, 64], &numbers(1, 128)).unwrap();
    for dtype in DataType::FLOATS {
        let w = weight(&device, 64, 40, dtype);
        let again = Weight::from_bytes(&device, *w.spec(), &w.to_bytes().unwrap()).unwrap();
        let run = |w| bits(&ops::linear(&x, w, Linear::new()).unwrap());
        assert_eq!(run(&w), run(&again));
        let bytes = w.to_bytes().unwrap();
        let given = std::sync::atomic::AtomicUsize::new(0);
        let read = |offset: usize, out: &mut [u8]| {
            given.fetch_add(out.len(), std::sync::atomic::Ordering::Relaxed);
            out.copy_from_slice(&bytes[offset..][..out.len()]);
            Ok(())
        };
        let again = Weight::read(&device, *w.spec(), bytes.len(), &read).unwrap();
        assert_eq!((run(&w), given.into_inner()), (run(&again), bytes.len()));
        let other = tt_ops::WeightSpec { n: 41, ..*w.spec() };
        assert!(Weight::from_bytes(&device, other, &w.to_bytes().unwrap()).is_err());
    }
}
