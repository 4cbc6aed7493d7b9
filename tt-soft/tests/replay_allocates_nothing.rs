//! Replaying a trace allocates nothing, on any thread. A test binary of its own, because it counts for the whole process.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use tt_ops::ops::{self, Heads, LayerNorm, Linear, RmsNorm, Sdpa};
use tt_ops::soft::Isa;
use tt_ops::{Activation, Bfloat16, DataType, Device, Float32, Result, Soft, Tensor, Weight};

/// Calls of the allocator, of all threads.
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting.
struct Counting;

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_replay_allocates_nothing() {
    for isa in Isa::available() {
        for threads in [1, 2] {
            let device = Soft::builder().isa(isa).threads(threads).open().unwrap();
            let count = allocations_of_a_replay(&device).unwrap();
            assert_eq!(count, 0, "{}", device.describe());
        }
    }
}

/// A trace of every kind of kernel that the model uses.
fn allocations_of_a_replay(device: &Soft) -> Result<usize> {
    let (rows, width) = (49, 96);
    let values: Vec<f32> = (0..4 * width * width).map(|i| (i % 13) as f32 / 130.0 - 0.04).collect();
    let w = |n: usize, dtype| Weight::from_out_in(device, n, width, dtype, &values[..n * width]);
    let (qkv, out, up) =
        (w(3 * width, DataType::Bfloat16)?, w(width, DataType::Bfloat8B)?, w(4 * width, DataType::Bfloat4B)?);
    let exact = w(width, DataType::Float32)?;
    let gain = Tensor::<_, Float32>::from_span(device, [width], &values[..width])?;
    let tables = Tensor::<_, Float32>::from_span(device, [rows, width / 2], &values[..rows * width / 2])?;
    let mask = Tensor::<_, Float32>::zeros(device, [1, 1, rows, rows])?;
    let x = Tensor::<_, Float32>::zeros(device, [1, rows, width])?;
    let trace = device.capture(|_| -> Result<_> {
        let n: Tensor<_, Bfloat16> = ops::layer_norm(&x, LayerNorm::new(1e-5).weight(&gain).bias(&gain))?;
        let y: Tensor<_, Bfloat16> = ops::linear(&n, &qkv, Linear::new())?;
        let (q, k, v) = ops::split_query_key_value_and_split_heads(&y, None, Heads::new(2))?;
        let q: Tensor<_, Bfloat16> = ops::rotary_embedding(&q, &tables, &tables)?;
        let k: Tensor<_, Bfloat16> = ops::rotary_embedding(&k, &tables, &tables)?;
        let a = ops::scaled_dot_product_attention(&q, &k, &v, Sdpa::new().attn_mask(&mask))?;
        let a = ops::concatenate_heads(&a)?;
        let x: Tensor<_, Float32> = ops::linear(&a, &out, Linear::new().bias(&gain).residual(&x))?;
        let n: Tensor<_, Bfloat16> = ops::rms_norm(&x, RmsNorm::new(1e-6).weight(&gain))?;
        let u: Tensor<_, Bfloat16> = ops::linear(&n, &up, Linear::new().activation(Activation::GeluTanh))?;
        let g: Tensor<_, Bfloat16> = ops::swiglu(&u)?;
        let half = ops::slice_dim(&g, -1, 0..width)?;
        let y: Tensor<_, Float32> = ops::linear(&half, &exact, Linear::new().residual(&x))?;
        let joined = ops::concat(&[&x, &y], 1)?;
        let flat = ops::reshape(&ops::transpose(&joined, -2, -1)?, [2 * rows * width])?;
        ops::multiply::<_, _, Float32>(&ops::softmax::<_, _, Float32>(&flat, -1)?, 0.25)
    })?;
    let input: Vec<f32> = (0..rows * width).map(|i| (i % 7) as f32).collect();
    let mut output = vec![0.0f32; 2 * rows * width];
    // The first replay may grow the engine's scratch memory.
    trace.replay()?;
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    // The fewest of several rounds: the test harness allocates now and then on a thread of its own, a replay that
    // allocates does so every time.
    let mut counted = usize::MAX;
    for _ in 0..20 {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        x.write(&input)?;
        trace.replay()?;
        trace.outputs().read(&mut output)?;
        counted = counted.min(ALLOCATIONS.load(Ordering::Relaxed) - before);
    }
    assert!(output.iter().all(|v| v.is_finite()));
    assert!(before > 0, "the allocator does not count");
    Ok(counted)
}
