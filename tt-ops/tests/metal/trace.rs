//! Traces of the card: what they hold, what their replays leave alone, and who waits for whom. Each test is a process of its
//! own, since tt-metal keeps one device per process.

use std::process::Command;

use tt_ops::metal::MetalOptions;
use tt_ops::ops::{self, LayerNorm, RmsNorm, Sdpa};
use tt_ops::{Bfloat16, Device, Float32, MemoryConfig, Metal, Result, Tensor, TtError};

const CHILD: &str = "TT_OPS_TRACE_CHILD";

const ROWS: usize = 32;
const WIDTH: usize = 64;

/// Runs `body`, that of the test `test`, in a process of its own.
pub(super) fn on_device(test: &str, body: fn(&Metal) -> Result<()>) {
    on_device_with(test, &MetalOptions::default(), body);
}

fn on_device_with(test: &str, options: &MetalOptions, body: fn(&Metal) -> Result<()>) {
    in_its_process(test, || body(&Metal::open(options).unwrap()).unwrap());
}

fn in_its_process(test: &str, body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        body();
        return;
    }
    if !super::device_is_there() {
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}\n{errors}", output.status);
    assert!(text.contains("1 passed"), "{text}");
}

fn filled(device: &Metal, value: f32) -> Result<Tensor<Metal, Float32>> {
    Tensor::from_span(device, [1, ROWS, WIDTH], &[value; ROWS * WIDTH])
}

fn assert_all(tensor: &Tensor<Metal, Float32>, value: f32) {
    let values = tensor.to_vector::<f32>().unwrap();
    assert!(values.iter().all(|&v| v == value), "{} for {value}", values[0]);
}

fn assert_deallocated(error: &TtError) {
    assert!(matches!(error, TtError::Memory { what, .. } if what.contains("deallocated")), "{error}");
}

#[test]
fn deallocated_memory_of_a_trace_is_an_error_at_replay() {
    on_device("trace::deallocated_memory_of_a_trace_is_an_error_at_replay", |device| {
        let (x, other) = (filled(device, 1.0)?, filled(device, 2.0)?);
        let trace = device.capture(|_| ops::add::<_, _, Float32>(&x, &other))?;
        trace.replay()?;
        assert_all(trace.outputs(), 3.0);
        other.deallocate()?;
        assert_deallocated(&trace.replay().unwrap_err());
        let trace = device.capture(|_| ops::add::<_, _, Float32>(&x, 1.0))?;
        trace.replay()?;
        trace.outputs().clone().deallocate()?;
        assert_deallocated(&trace.replay().unwrap_err());
        Ok(())
    });
}

/// Attention reads these operands as they are, without a call that makes something of them.
#[test]
fn operands_live_as_long_as_their_trace() {
    on_device("trace::operands_live_as_long_as_their_trace", |device| {
        let ramp: Vec<f32> = (0..ROWS * WIDTH).map(|i| (i % 37) as f32 / 16.0 - 1.0).collect();
        let operand = || Tensor::<_, Bfloat16>::from_span(device, [1, 1, ROWS, WIDTH], &ramp[..]);
        let (q, k, v) = (operand()?, operand()?, operand()?);
        let trace = device.capture(|_| ops::scaled_dot_product_attention(&q, &k, &v, Sdpa::new()))?;
        trace.replay()?;
        let wanted = trace.outputs().to_vector::<f32>()?;
        drop((q, k, v));
        let zeros = |_| Tensor::<_, Bfloat16>::from_span(device, [1, 1, ROWS, WIDTH], &[0.0; ROWS * WIDTH]);
        let later = (0..8).map(zeros).collect::<Result<Vec<_>>>()?;
        trace.replay()?;
        assert_eq!(trace.outputs().to_vector::<f32>()?, wanted);
        drop(later);
        Ok(())
    });
}

/// A capture frees what it no longer needs, and its replays write there all the same.
#[test]
fn results_outside_a_trace_survive_its_replays() {
    on_device("trace::results_outside_a_trace_survive_its_replays", |device| {
        let x = filled(device, 1.0)?;
        let chain = |x: &Tensor<Metal, Float32>| {
            let mut y: Tensor<_, Float32> = ops::add(x, 1.0)?;
            for _ in 0..6 {
                y = ops::multiply(&y, 2.0)?;
            }
            ops::slice_dim(&y, 1, 0..ROWS - 1)
        };
        let earlier: Tensor<_, Float32> = ops::add(&x, 10.0)?;
        let first = device.capture(|_| chain(&x))?;
        let later = (0..32).map(|i| ops::add(&x, 20.0 + i as f32)).collect::<Result<Vec<_>>>()?;
        let second = device.capture(|_| chain(&later[0]))?;
        for value in [1.0, 3.0] {
            x.write(&[value; ROWS * WIDTH])?;
            first.replay()?;
            second.replay()?;
            assert_all(first.outputs(), (value + 1.0) * 64.0);
            assert_all(second.outputs(), 22.0 * 64.0);
        }
        assert_all(&earlier, 11.0);
        for (i, tensor) in later.iter().enumerate() {
            assert_all(tensor, 21.0 + i as f32);
        }
        Ok(())
    });
}

/// A sum as often as said, one after the other.
fn sums(x: &Tensor<Metal, Float32>, count: usize) -> Result<Tensor<Metal, Float32>> {
    (1..count).try_fold(ops::add(x, 1.0)?, |y, _| ops::add(&y, 1.0))
}

#[test]
fn a_trace_that_does_not_fit_its_region_leaves_room_for_others() {
    let mut options = MetalOptions::default();
    options.trace_region_size = 64 << 10;
    on_device_with(
        "trace::a_trace_that_does_not_fit_its_region_leaves_room_for_others",
        &options,
        |device| {
            let x = filled(device, 1.0)?;
            for _ in 0..2 {
                let error = device.capture(|_| sums(&x, 8)).map(drop).unwrap_err();
                assert!(
                    matches!(&error, TtError::Capture(text) if text.contains("trace_region_size")),
                    "{error}"
                );
            }
            let trace = device.capture(|_| sums(&x, 2))?;
            trace.replay()?;
            assert_all(trace.outputs(), 3.0);
            assert_all(&sums(&x, 3)?, 4.0);
            Ok(())
        },
    );
}

#[test]
fn a_capture_without_a_region_is_refused_before_anything_runs() {
    let mut options = MetalOptions::default();
    options.trace_region_size = 0;
    on_device_with("trace::a_capture_without_a_region_is_refused_before_anything_runs", &options, |device| {
        let ran = std::cell::Cell::new(false);
        let error = device.capture(|_| -> Result<()> {
            ran.set(true);
            Ok(())
        });
        assert!(matches!(error, Err(TtError::Capture(text)) if text.contains("without a trace region")));
        assert!(!ran.get());
        Ok(())
    });
}

#[test]
fn a_capture_of_more_programs_than_the_region_can_hold_is_refused_before_it_is_recorded() {
    let mut options = MetalOptions::default();
    options.trace_region_size = 64 << 10;
    let test = "trace::a_capture_of_more_programs_than_the_region_can_hold_is_refused_before_it_is_recorded";
    on_device_with(test, &options, |device| {
        let x = filled(device, 1.0)?;
        let recorded = std::cell::Cell::new(false);
        let error = device.capture(|capture| {
            recorded.set(capture.is_recording());
            sums(&x, 200)
        });
        let Err(TtError::Capture(text)) = error else { panic!("captured") };
        assert!(text.contains("200 programs take at least 102400 bytes of trace"), "{text}");
        assert!(!recorded.get());
        // Programs of other work do not count.
        assert_all(&sums(&x, 200)?, 201.0);
        let trace = device.capture(|_| sums(&x, 1))?;
        trace.replay()?;
        assert_all(trace.outputs(), 2.0);
        Ok(())
    });
}

#[test]
fn a_trace_region_that_the_card_has_no_room_for_is_refused() {
    in_its_process("trace::a_trace_region_that_the_card_has_no_room_for_is_refused", || {
        let mut options = MetalOptions::default();
        options.trace_region_size = 1 << 40;
        let error = Metal::open(&options).map(drop).unwrap_err().to_string();
        assert!(error.contains("trace_region_size is 1099511627776 bytes, but the card has"), "{error}");
    });
}

#[test]
fn norms_go_where_they_are_asked_to() {
    on_device("trace::norms_go_where_they_are_asked_to", |device| {
        let ramp: Vec<f32> = (0..ROWS * WIDTH).map(|i| (i % 37) as f32 / 16.0 - 1.0).collect();
        let x = Tensor::<_, Float32>::from_span(device, [1, ROWS, WIDTH], &ramp[..])?;
        let norms = |place: MemoryConfig| -> Result<_> {
            let a: Tensor<_, Float32> = ops::layer_norm(&x, LayerNorm::new(1e-5).memory_config(place))?;
            let b: Tensor<_, Bfloat16> = ops::rms_norm(&x, RmsNorm::new(1e-6).memory_config(place))?;
            Ok((a, b))
        };
        let wanted = norms(MemoryConfig::DRAM)?;
        let trace = device.capture(|_| norms(MemoryConfig::L1))?;
        let later: Tensor<_, Float32> = ops::add(&x, 1.0)?;
        trace.replay()?;
        assert_eq!(trace.outputs().0.to_vector::<f32>()?, wanted.0.to_vector::<f32>()?);
        assert_eq!(trace.outputs().1.to_vector::<f32>()?, wanted.1.to_vector::<f32>()?);
        drop(later);
        Ok(())
    });
}

#[test]
fn a_replay_that_would_overwrite_a_later_tensor_in_l1_is_refused() {
    on_device("trace::a_replay_that_would_overwrite_a_later_tensor_in_l1_is_refused", |device| {
        let x = filled(device, 1.0)?;
        let before = ops::to_memory_config(&x, MemoryConfig::L1)?;
        let trace = device.capture(|_| {
            let sharded = ops::to_memory_config(&x, MemoryConfig::L1_WIDTH_SHARDED)?;
            ops::add::<_, _, Float32>(&sharded, 1.0)
        })?;
        trace.replay()?;
        assert_all(trace.outputs(), 2.0);
        let later = ops::to_memory_config(&x, MemoryConfig::L1)?;
        let error = trace.replay().unwrap_err().to_string();
        assert!(error.contains("made after this one"), "{error}");
        assert_all(&later, 1.0);
        // Another trace that reads it needs it as much as a handle does.
        let reader = device.capture(|_| ops::add::<_, _, Float32>(&later, 1.0))?;
        drop(later);
        assert!(trace.replay().is_err());
        reader.replay()?;
        assert_all(reader.outputs(), 2.0);
        drop(reader);
        // A new name of what was there before is not in the way.
        let again = ops::to_memory_config(&before, MemoryConfig::L1)?;
        trace.replay()?;
        assert_all(trace.outputs(), 2.0);
        assert_all(&again, 1.0);
        Ok(())
    });
}

#[test]
fn threads_take_turns_around_captures() {
    on_device("trace::threads_take_turns_around_captures", |device| {
        let (x, y) = (filled(device, 1.0)?, filled(device, 2.0)?);
        std::thread::scope(|scope| {
            let eager = scope.spawn(|| {
                for _ in 0..20 {
                    assert_all(&ops::add::<_, _, Float32>(&y, 1.0).unwrap(), 3.0);
                }
            });
            for _ in 0..5 {
                let trace = device.capture(|_| ops::add::<_, _, Float32>(&x, 1.0)).unwrap();
                trace.replay().unwrap();
                assert_all(trace.outputs(), 2.0);
                assert_eq!(trace.ops().ops.len(), 1);
            }
            eager.join().unwrap();
        });
        Ok(())
    });
}

#[test]
fn a_card_closed_under_a_capture_ends_it_with_an_error() {
    on_device("trace::a_card_closed_under_a_capture_ends_it_with_an_error", |device| {
        let x = filled(device, 1.0)?;
        let error = device.capture(|capture| {
            let y = sums(&x, 2)?;
            if capture.is_recording() {
                std::thread::scope(|scope| drop(scope.spawn(|| device.close()).join()));
            }
            ops::add::<_, _, Float32>(&y, 1.0)
        });
        assert!(matches!(error.map(drop), Err(TtError::Device { .. })));
        assert!(matches!(x.to_vector::<f32>(), Err(TtError::Device { .. })));
        device.close();
        Ok(())
    });
}
