//! Cases of the op suite that do not hold on tt-metal 0.73.1 in its functional simulator, and why. The code path on a card is
//! the same.

use super::table::Row;

/// The element-wise part of a norm or softmax reads fp32 operands as TF32, 10 bits of mantissa.
const TF32: &str = "rows far from 0 with little spread: the card subtracts TF32 operands";
/// What TTNN gives where nothing is finite.
const MASKED: &str = "TTNN gives no zeros for a row that is masked whole";
/// The device packs blocks in two roundings.
const BLOCK: &str = "the card's packer rounds half up, then again to the block: one step of the format";

/// Turning the last two extents goes through the matrix engine's registers.
const TURNED: &str = "TTNN permutes float32 through TF32";

/// Op, start of the case's name, reason.
const IGNORED: [(&str, &str, &str); 20] = [
    ("layer_norm", "1152 float32", TF32),
    ("layer_norm", "1152 bfloat16, plain", TF32),
    ("layer_norm", "1152 bfloat16 to float32", TF32),
    ("layer_norm", "1536 float32", TF32),
    ("layer_norm", "1536 bfloat16, plain", TF32),
    ("layer_norm", "1536 bfloat16 to float32", TF32),
    ("layer_norm", "2048 float32", TF32),
    ("layer_norm", "2048 bfloat16, plain", TF32),
    ("layer_norm", "2048 bfloat16 to float32", TF32),
    ("layer_norm", "40 float32", TF32),
    ("layer_norm", "7 float32", TF32),
    ("softmax", "1 float32", MASKED),
    ("softmax", "1 to bfloat16", MASKED),
    ("softmax", "33 float32", TF32),
    ("softmax", "33 to bfloat16", TF32),
    ("softmax", "300 float32", TF32),
    ("softmax", "300 to bfloat16", TF32),
    ("scaled_dot_product_attention", "a row that is masked whole", MASKED),
    ("permute", "and back", TURNED),
    ("typecast", "float32 to bfloat4_b", BLOCK),
];

/// Why a case is not expected to pass.
pub(crate) fn reason(op: &str, case: &str) -> Option<&'static str> {
    IGNORED.iter().find(|entry| names(entry, op, case)).map(|(_, _, reason)| *reason)
}

/// Entries that none of `rows` is.
pub(crate) fn without_case(rows: &[Row]) -> impl Iterator<Item = String> {
    let unseen = IGNORED.iter().filter(|entry| !rows.iter().any(|row| names(entry, &row.op, &row.case)));
    unseen
        .map(|(op, case, _)| format!("{op}, {case}: on the list of ignored cases, but there is no such case"))
}

fn names((o, start, _): &(&str, &str, &str), op: &str, case: &str) -> bool {
    *o == op && case.starts_with(start)
}
