//! Comparing two captures op by op.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use tt_ops::ops::{self, LayerNorm, Linear};
use tt_ops::soft::Isa;
use tt_ops::{Bfloat16, CaptureOptions, DataType, Device, Result, Soft, Tensor, Trace, Weight, diff};

type Stage = Trace<Soft, Tensor<Soft, Bfloat16>>;

/// layer_norm, linear, gelu; `dtype` of the weight is what may differ.
fn stage(device: &Soft, dtype: DataType, options: CaptureOptions) -> Stage {
    let numbers = |len: usize| (0..len).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect::<Vec<f32>>();
    let x = Tensor::<_, Bfloat16>::from_span(device, [3, 64], &numbers(192)).unwrap();
    let w = Weight::from_in_out(device, 64, 48, dtype, &numbers(64 * 48)[..]).unwrap();
    device
        .capture_with(options, |_| -> Result<_> {
            let n: Tensor<_, Bfloat16> = ops::layer_norm(&x, LayerNorm::new(1e-5))?;
            let y: Tensor<_, Bfloat16> = ops::linear(&n, &w, Linear::new())?;
            ops::gelu(&ops::reshape(&y, [48 * 3])?, ops::Gelu::Tanh)
        })
        .unwrap()
}

fn kept(isa: Isa, dtype: DataType) -> Stage {
    let device = Soft::builder().isa(isa).threads(1).open().unwrap();
    stage(&device, dtype, CaptureOptions::default().keep_all())
}

#[test]
fn instruction_sets_agree() {
    let wanted = kept(Isa::Portable, DataType::Bfloat16);
    for isa in Isa::available() {
        let report = diff::compare(&wanted, &kept(isa, DataType::Bfloat16), diff::usual_limit).unwrap();
        assert!(report.first().is_none(), "{isa}: {report}");
        assert_eq!(report.ops.len(), 4);
    }
}

#[test]
fn the_first_op_that_diverges_is_named() {
    let (one, two) = (kept(Isa::Portable, DataType::Bfloat16), kept(Isa::Portable, DataType::Bfloat4B));
    let report = diff::compare(&one, &two, diff::usual_limit).unwrap();
    let first = report.first().unwrap();
    assert_eq!((first.index, &first.signature[..7]), (1, "linear("));
    assert!(report.to_string().contains("<- diverges"));
}

#[test]
fn captures_that_kept_nothing_cannot_be_compared() {
    let device = Soft::builder().threads(1).open().unwrap();
    let plain = stage(&device, DataType::Bfloat16, CaptureOptions::default());
    assert!(diff::compare(&plain, &plain, diff::usual_limit).is_err());
}
