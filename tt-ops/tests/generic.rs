//! Code that is generic over the device compiles for the card in every build, and handles cross threads.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use tt_ops::suite::{self, CaseResult, Mode};
use tt_ops::{Device, Float32, Metal, Result, Soft, Tensor, Trace, Weight, ops};

/// A stage written once.
fn stage<D: Device>(device: &D, values: &[f32]) -> Result<Vec<f32>> {
    let x = Tensor::<D, Float32>::from_span(device, [values.len()], values)?;
    let trace = device.capture(|_| -> Result<_> { ops::multiply::<_, _, Float32>(&x, 2.0) })?;
    trace.replay()?;
    trace.release().to_vector()
}

#[test]
fn a_stage_runs_on_the_software_device_and_compiles_for_the_card() {
    let device = Soft::builder().threads(1).open().unwrap();
    assert_eq!(stage(&device, &[1.0, 2.5]).unwrap(), [2.0, 5.0]);
    let _: fn(&Metal, &[f32]) -> Result<Vec<f32>> = stage::<Metal>;
    let _: fn(&Metal, Mode) -> Vec<CaseResult> = suite::run::<Metal>;
}

#[test]
fn handles_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    fn all<D: Device>() {
        crosses::<D>();
        crosses::<Tensor<D, Float32>>();
        crosses::<Weight<D>>();
        crosses::<Trace<D, Tensor<D, Float32>>>();
    }
    all::<Soft>();
    all::<Metal>();
}
