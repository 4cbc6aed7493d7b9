//! Calls that do not fit are refused before anything reaches a device, with op, got and wanted.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use tt_ops::ops::{self, Heads, LayerNorm, Linear, Matmul, RmsNorm, Sdpa};
use tt_ops::{Bfloat16, DataType, Device, Dynamic, Float32, Layout, Result, Soft, Tensor, Uint32, Weight};

type F = Tensor<Soft, Float32>;

fn soft() -> Soft {
    Soft::builder().threads(1).open().unwrap()
}

fn tensor(device: &Soft, shape: &[usize]) -> F {
    let shape = tt_ops::Shape::new(shape).unwrap();
    Tensor::zeros(device, shape).unwrap()
}

fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let device = soft();
    let t = |shape: &[usize]| tensor(&device, shape);
    let w = Weight::from_in_out(&device, 8, 4, DataType::Bfloat16, &[0.0f32; 32][..]).unwrap();
    let q = t(&[1, 4, 6, 8]);
    let cases: [(String, &str); 17] = [
        (
            message(ops::linear::<_, _, Float32>(&t(&[2, 7]), &w, Linear::new())),
            "shape mismatch in linear: got x [2, 7], w [8, 4], wanted x [.., 8]",
        ),
        (
            message(ops::linear::<_, _, Float32>(&t(&[2, 8]), &w, Linear::new().bias(&t(&[3])))),
            "shape mismatch in linear: got bias [3], wanted [4]",
        ),
        (
            message(ops::linear(&t(&[2, 8]), &w, Linear::new().residual(&t(&[2, 8])))),
            "shape mismatch in linear: got residual [2, 8], wanted [2, 4]",
        ),
        (
            message(ops::matmul::<_, _, Float32>(&t(&[2, 3]), &t(&[2, 3]), Matmul::default())),
            "shape mismatch in matmul: got a [2, 3], b [2, 3] (transpose_a false, transpose_b false), wanted [.., m, k] \
             and [.., k, n]",
        ),
        (
            message(ops::add::<_, _, Float32>(&t(&[2, 3]), &t(&[4, 3]))),
            "shape mismatch in add: got a [2, 3], b [4, 3], wanted extents that are equal or 1",
        ),
        (
            message(ops::layer_norm::<_, _, Float32>(&t(&[2, 3]), LayerNorm::new(1e-5).weight(&t(&[2])))),
            "shape mismatch in layer_norm: got weight [2], wanted [3]",
        ),
        (
            message(ops::layer_norm::<_, _, Float32>(&t(&[2, 3]), LayerNorm::new(1e-5).bias(&t(&[3])))),
            "bad argument in layer_norm: got a bias without a weight, wanted both, or the weight alone",
        ),
        (
            message(ops::rms_norm::<_, _, Float32>(&t(&[2, 3]), RmsNorm::new(f32::NAN))),
            "bad argument in rms_norm: got epsilon NaN, wanted a finite number from 0 up",
        ),
        (
            message(ops::softmax::<_, _, Float32>(&t(&[2, 3]), 0)),
            "bad argument in softmax: got dim 0 of [2, 3], wanted the last",
        ),
        (
            message(ops::scaled_dot_product_attention(&q, &t(&[1, 3, 6, 8]), &t(&[1, 3, 6, 8]), Sdpa::new())),
            "shape mismatch in scaled_dot_product_attention: got q [1, 4, 6, 8], k [1, 3, 6, 8], v [1, 3, 6, 8], wanted \
             q [b, h, sq, e], k and v [b, kv, sk, e], kv dividing h",
        ),
        (
            message(ops::scaled_dot_product_attention(&q, &q, &q, Sdpa::new().attn_mask(&t(&[1, 1, 6, 5])))),
            "shape mismatch in scaled_dot_product_attention: got attn_mask [1, 1, 6, 5], wanted [1 or 1, 1 or 4, 6, 6]",
        ),
        (
            message(ops::scaled_dot_product_attention(
                &q,
                &q,
                &q,
                Sdpa::new().causal().attn_mask(&t(&[1, 1, 6, 6])),
            )),
            "bad argument in scaled_dot_product_attention: got is_causal and attn_mask, wanted one of them",
        ),
        (
            message(ops::split_query_key_value_and_split_heads(&t(&[1, 6, 10]), None, Heads::new(4))),
            "shape mismatch in split_query_key_value_and_split_heads: got x [1, 6, 10], num_heads 4, num_kv_heads 4, \
             wanted [b, s, (h + 2 kv) e]",
        ),
        (
            message(ops::concat(&[&t(&[1, 2]), &t(&[2, 3])], 0)),
            "shape mismatch in concat: got [1, 2], [2, 3], wanted equal extents but dim 0",
        ),
        (
            message(ops::slice_dim(&t(&[2, 3]), 1, 1..4)),
            "bad argument in slice: got x [2, 3], begins [0, 1], ends [2, 4], step [1, 1], wanted begin < end ≤ extent \
             and step ≥ 1 for each dim",
        ),
        (
            message(ops::reshape(&t(&[2, 3]), [4])),
            "shape mismatch in reshape: got x [2, 3] as [4], wanted 6 elements",
        ),
        (
            message(ops::permute(&t(&[2, 3]), &[0, 0])),
            "bad argument in permute: got x [2, 3], dims [0, 0], wanted each dim once",
        ),
    ];
    for (got, wanted) in cases {
        assert_eq!(got, wanted);
    }
}

#[test]
fn dtypes_that_are_only_known_at_run_time_are_checked() {
    let device = soft();
    let ids = Tensor::<_, Uint32>::zeros(&device, [3]).unwrap();
    let x = tensor(&device, &[2, 3]);
    assert_eq!(
        message(ops::layer_norm::<_, _, Float32>(&x, LayerNorm::new(1e-5).weight(&ids))),
        "dtype mismatch in layer_norm: got uint32, wanted float32 or bfloat16"
    );
    let dynamic: Tensor<_, Dynamic> = x.to_dynamic();
    assert_eq!(
        message(dynamic.typed::<Bfloat16>()),
        "dtype mismatch in typed: got float32 [2, 3], wanted bfloat16"
    );
    assert!(dynamic.typed::<Float32>().is_ok());
    assert_eq!(
        message(ops::typecast::<_, _, Float32>(&ids)),
        "dtype mismatch in typecast: got uint32 to float32, wanted int32 for whole numbers"
    );
    assert_eq!(
        message(Weight::from_in_out(&device, 1, 1, DataType::Uint32, &[0.0f32][..])),
        "dtype mismatch in from_span: got uint32, wanted a float type"
    );
}

#[test]
fn layouts_that_an_op_cannot_read_are_refused() {
    let device = soft();
    let x = ops::to_layout(&tensor(&device, &[2, 3]), Layout::RowMajor).unwrap();
    assert_eq!(
        message(ops::layer_norm::<_, _, Float32>(&x, LayerNorm::new(1e-5))),
        "layout mismatch in layer_norm: got ROW_MAJOR, wanted TILE"
    );
    let ids = Tensor::<_, Uint32>::zeros(&device, [3]).unwrap();
    assert_eq!(
        message(ops::embedding::<_, _, Float32>(&ids, &tensor(&device, &[2, 3]))),
        "layout mismatch in embedding: got TILE, wanted ROW_MAJOR"
    );
}

#[test]
fn host_values_of_the_wrong_number_are_refused() {
    let device = soft();
    let x = tensor(&device, &[2, 3]);
    assert!(message(x.write(&[0.0f32; 5])).contains("5 values"));
    assert!(message(x.read(&mut [0.0f32; 7])).contains("7 values"));
    assert!(message(x.to_vector::<u32>()).contains("kind"));
    assert!(
        message(Tensor::<_, Float32>::from_span(&device, [0, 3], &[0.0f32; 0]))
            .contains("at least one element")
    );
    let weight = Weight::from_out_in(&device, 2, 3, DataType::Bfloat16, &[0.0f32; 5][..]);
    assert!(message(weight).contains("5 values"));
}

#[test]
fn an_id_past_the_vocabulary_is_an_error_and_not_a_row() {
    let device = soft();
    let table =
        Tensor::<_, Bfloat16>::from_span_with(&device, Layout::RowMajor, [4, 2], &[1.0f32; 8]).unwrap();
    let ids = Tensor::<_, Uint32>::from_span(&device, [2], &[3u32, 4]).unwrap();
    assert!(message(ops::embedding::<_, _, Float32>(&ids, &table)).contains("below 4"));
}

#[test]
fn weights_that_a_block_format_cannot_hold_are_refused() {
    let device = soft();
    for value in [f32::NAN, f32::INFINITY] {
        let weight = Weight::from_in_out(&device, 1, 2, DataType::Bfloat8B, &[0.0, value][..]);
        assert!(message(weight).contains("finite"));
    }
}

#[test]
fn a_device_that_cannot_be_opened_says_why() {
    let error = Soft::builder().threads(0).open().unwrap_err().to_string();
    assert!(error.starts_with("device soft: ") && error.contains('0'), "{error}");
    assert!(soft().describe().starts_with("soft: "));
}
