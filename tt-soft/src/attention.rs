//! Scaled dot-product attention, in fp32 from bf16 or f32 inputs.
//!
//! A job is 32 queries of one head. Scores are computed transposed, [key][32 queries]: keys are the rows of the matmul
//! tile and queries its columns, so that softmax runs down the columns of whole vectors and the result is, as it stands,
//! the left operand of the product with V. Probabilities stay fp32 and are divided by their sum at the end. K and V of
//! a head are converted once per member and head. Scratch per member: about (E + Ev + 32) floats per key.

use crate::engine::{Engine, Need, share};
use crate::error::{Error, Result};
use crate::kernels::{Kernels, PANEL, Tile};
use crate::matmul::check_float;
use crate::view::{RawView, RawViewMut, View, ViewMut};

/// Options of [`sdpa`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SdpaConfig<'a> {
    /// Factor of the scores, 1 / sqrt(E) if absent (E being the logical head dimension).
    pub scale: Option<f32>,
    /// Query i sees keys 0..=i. Needs as many keys as queries.
    pub causal: bool,
    /// Added to the scores: [1 or B, 1 or H, 1 or S, T], float32 or bfloat16.
    pub mask: Option<View<'a>>,
    /// Keys of each batch entry that count; the rest are not read.
    pub kv_valid: Option<&'a [usize]>,
}

/// `out = softmax(q k^T scale + mask) v`.
///
/// q is [B, H, S, E], k [B, G, T, E], v [B, G, T, Ev], out [B, H, S, Ev]; H is a multiple of G and query head h uses
/// key head h G / H. float32 or bfloat16, any strides. Accumulation, scores and probabilities are fp32. A query whose
/// keys are all masked (by `-inf` or by `kv_valid`) gives zeros.
///
/// # Errors
/// If shapes or dtypes do not fit.
pub fn sdpa(
    engine: &Engine,
    q: &View<'_>,
    k: &View<'_>,
    v: &View<'_>,
    config: &SdpaConfig<'_>,
    out: &mut ViewMut<'_>,
) -> Result<()> {
    check(q, k, v, config, out)?;
    if out.is_empty() {
        return Ok(());
    }
    let ([batch, heads, queries, width], [_, kv_heads, keys, _]) = (q.shape(), k.shape());
    let value_width = v.shape()[3];
    let mask = match &config.mask {
        Some(mask) => {
            let wanted = [batch, heads, queries, keys];
            let shared = mask.shape()[2] == 1 || mask.strides()[2] == 0;
            let error =
                || Error::Shape { op: OP, what: "mask", got: mask.shape().into(), wanted: wanted.into() };
            Some(Mask { view: mask.broadcast(wanted).map_err(|_| error())?.raw(), shared })
        }
        None => None,
    };
    let attention = Attention {
        kernels: engine.kernels(),
        q: q.raw(),
        k: k.raw(),
        v: v.raw(),
        out: out.raw(),
        mask,
        scale: config.scale.unwrap_or(1.0 / (width as f32).sqrt()),
        causal: config.causal,
        kv_valid: config.kv_valid,
        blocks: queries.div_ceil(PANEL),
    };
    let floats = Scratch::floats(width, value_width, keys);
    let jobs = batch * heads * attention.blocks;
    let work = (batch * heads * queries).saturating_mul(keys * (width + value_width) / PANEL + 1);
    engine.session().run(Need { jobs, work, floats }, &|jobs, scratch| {
        let mut scratch = Scratch::new(scratch, width, value_width, keys);
        let mut loaded = None;
        let group = heads / kv_heads;
        for job in jobs {
            let (head, block) = (job / attention.blocks, job % attention.blocks);
            let (batch, head) = (head / heads, head % heads);
            let kv_head = batch * kv_heads + head / group;
            let valid = attention.valid_keys(batch, keys);
            if loaded != Some(kv_head) {
                attention.load_keys(kv_head, valid, &mut scratch);
                attention.load_values(kv_head, valid, &mut scratch);
                loaded = Some(kv_head);
            }
            attention.attend(batch * heads + head, block, valid, &mut scratch);
        }
    })
}

const OP: &str = "sdpa";

fn check(q: &View<'_>, k: &View<'_>, v: &View<'_>, config: &SdpaConfig<'_>, out: &ViewMut<'_>) -> Result<()> {
    let ([batch, heads, queries, width], [_, kv_heads, keys, _]) = (q.shape(), k.shape());
    let expect = |what, got: [usize; 4], wanted: [usize; 4]| {
        if got == wanted {
            return Ok(());
        }
        Err(Error::Shape { op: OP, what, got: got.into(), wanted: wanted.into() })
    };
    expect("k", k.shape(), [batch, kv_heads, keys, width])?;
    expect("v", v.shape(), [batch, kv_heads, keys, v.shape()[3]])?;
    expect("out", out.shape(), [batch, heads, queries, v.shape()[3]])?;
    for (what, dtype) in [("q", q.dtype()), ("k", k.dtype()), ("v", v.dtype()), ("out", out.dtype())] {
        check_float(OP, what, dtype)?;
    }
    if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
        let wanted = format!("a multiple of the {kv_heads} key heads");
        return Err(Error::Range { op: OP, what: "number of query heads", got: heads, wanted });
    }
    if config.causal && queries != keys {
        let wanted = format!("{keys} as of k, with causal");
        return Err(Error::Range { op: OP, what: "number of queries", got: queries, wanted });
    }
    if let Some(mask) = &config.mask {
        check_float(OP, "mask", mask.dtype())?;
    }
    if let Some(valid) = config.kv_valid {
        if valid.len() != batch {
            return Err(Error::Shape {
                op: OP,
                what: "kv_valid",
                got: vec![valid.len()],
                wanted: vec![batch],
            });
        }
        if let Some(&got) = valid.iter().find(|&&n| n > keys) {
            return Err(Error::Range { op: OP, what: "kv_valid", got, wanted: format!("at most {keys}") });
        }
    }
    Ok(())
}

struct Mask {
    view: RawView,
    /// The same for all queries of a head.
    shared: bool,
}

struct Attention<'a> {
    kernels: &'static Kernels,
    q: RawView,
    k: RawView,
    v: RawView,
    out: RawViewMut,
    mask: Option<Mask>,
    scale: f32,
    causal: bool,
    kv_valid: Option<&'a [usize]>,
    /// Blocks of queries per head.
    blocks: usize,
}

/// A member's scratch, in f32.
struct Scratch<'a> {
    /// [E][T]
    keys: &'a mut [f32],
    /// [panel][T][PANEL]
    values: &'a mut [f32],
    /// [E][PANEL]
    queries: &'a mut [f32],
    /// [T][PANEL]
    scores: &'a mut [f32],
    /// [PANEL queries][PANEL]
    sums: &'a mut [f32],
    /// `ROWS` rows of E, or a row of Ev or T.
    lines: &'a mut [f32],
}

/// Rows that are transposed at a time.
const ROWS: usize = 16;

impl<'a> Scratch<'a> {
    fn sizes(width: usize, value_width: usize, keys: usize) -> [usize; 6] {
        [
            width * keys,
            value_width.next_multiple_of(PANEL) * keys,
            width * PANEL,
            keys * PANEL,
            PANEL * PANEL,
            (ROWS * width).max(value_width).max(keys),
        ]
    }

    fn floats(width: usize, value_width: usize, keys: usize) -> usize {
        Self::sizes(width, value_width, keys).iter().sum()
    }

    fn new(mut rest: &'a mut [f32], width: usize, value_width: usize, keys: usize) -> Self {
        let mut take = |len| rest.split_off_mut(..len).unwrap_or_default();
        let [a, b, c, d, e, f] = Self::sizes(width, value_width, keys).map(&mut take);
        Self { keys: a, values: b, queries: c, scores: d, sums: e, lines: f }
    }
}

impl Attention<'_> {
    fn valid_keys(&self, batch: usize, keys: usize) -> usize {
        self.kv_valid.and_then(|valid| valid.get(batch).copied()).unwrap_or(keys)
    }

    fn load_keys(&self, kv_head: usize, valid: usize, scratch: &mut Scratch<'_>) {
        let [_, _, keys, width] = self.k.geometry.shape;
        transpose(self.kernels, &self.k, kv_head * keys, valid, scratch.lines, scratch.keys, keys, width);
    }

    fn load_values(&self, kv_head: usize, valid: usize, scratch: &mut Scratch<'_>) {
        let [_, _, keys, width] = self.v.geometry.shape;
        for key in 0..valid {
            let line = &mut scratch.lines[..width];
            // SAFETY: the row is inside v.
            unsafe { self.v.load(self.kernels, kv_head * keys + key, 0, line) };
            for (panel, part) in line.chunks(PANEL).enumerate() {
                let row = &mut scratch.values[(panel * keys + key) * PANEL..][..PANEL];
                row[..part.len()].copy_from_slice(part);
                row[part.len()..].fill(0.0);
            }
        }
    }

    /// One block of queries of head `head`, counted through the batch.
    fn attend(&self, head: usize, block: usize, valid: usize, scratch: &mut Scratch<'_>) {
        let [_, _, queries, width] = self.q.geometry.shape;
        let [_, _, keys, value_width] = self.v.geometry.shape;
        let first = block * PANEL;
        let count = PANEL.min(queries - first);
        let seen = if self.causal { valid.min(first + count) } else { valid };
        let first_row = head * queries + first;

        scratch.queries.fill(0.0);
        transpose(self.kernels, &self.q, first_row, count, scratch.lines, scratch.queries, PANEL, width);
        for v in scratch.queries.iter_mut() {
            *v *= self.scale;
        }

        let scores = &mut scratch.scores[..seen * PANEL];
        let blocks = seen.div_ceil(self.kernels.tile_f32.max_rows);
        for part in (0..blocks).map(|i| share(seen, i, blocks)) {
            let c = &mut scores[part.start * PANEL..part.end * PANEL];
            // SAFETY: keys has `keys` words per word of E, of which the tile reads `part`; queries has PANEL; c has
            // `part.len()` rows of PANEL.
            unsafe { self.tile(part.len(), width, &scratch.keys[part.start..], keys, scratch.queries, c) };
        }
        self.apply_masks(first_row, first, count, seen, scores, scratch.lines);
        let mut totals = [0f32; PANEL];
        (self.kernels.exp_columns)(scores, &mut totals);

        let blocks = count.div_ceil(self.kernels.tile_f32.max_rows);
        for column in (0..value_width).step_by(PANEL) {
            let values = &scratch.values[column / PANEL * keys * PANEL..][..keys * PANEL];
            for part in (0..blocks).map(|i| share(count, i, blocks)) {
                let c = &mut scratch.sums[part.start * PANEL..part.end * PANEL];
                if seen == 0 {
                    c.fill(0.0);
                    continue;
                }
                // SAFETY: scores has PANEL words per key, of which the tile reads `part`; values has PANEL per key; c
                // has `part.len()` rows of PANEL.
                unsafe { self.tile(part.len(), seen, &scores[part.start..], PANEL, values, c) };
            }
            let columns = PANEL.min(value_width - column);
            for (i, sums) in scratch.sums.chunks_exact_mut(PANEL).take(count).enumerate() {
                let inverse = if totals[i] == 0.0 { 0.0 } else { 1.0 / totals[i] };
                for v in sums.iter_mut() {
                    *v *= inverse;
                }
                // SAFETY: each job has its own rows of out.
                unsafe { self.out.store(self.kernels, first_row + i, column, &sums[..columns]) };
            }
        }
    }

    /// # Safety
    /// As [`crate::kernels::TileKernel::run`], with PANEL as `ldc`.
    unsafe fn tile(&self, rows: usize, words: usize, a: &[f32], lda: usize, b: &[f32], c: &mut [f32]) {
        let (a, b, c) = (a.as_ptr().cast(), b.as_ptr().cast(), c.as_mut_ptr());
        // SAFETY: the caller's promise.
        unsafe {
            (self.kernels.tile_f32.run)(Tile { rows, words, a, lda, b, c, ldc: PANEL, accumulate: false });
        }
    }

    fn apply_masks(
        &self,
        first_row: usize,
        first: usize,
        count: usize,
        seen: usize,
        scores: &mut [f32],
        line: &mut [f32],
    ) {
        if let Some(mask) = &self.mask {
            let line = &mut line[..seen];
            let rows = if mask.shared { 1 } else { count };
            for i in 0..rows {
                // SAFETY: the mask was broadcast to [B, H, S, T].
                unsafe { mask.view.load(self.kernels, first_row + i, 0, line) };
                for (scores, m) in scores.chunks_exact_mut(PANEL).zip(line.iter()) {
                    let lanes = if mask.shared { 0..PANEL } else { i..i + 1 };
                    scores[lanes].iter_mut().for_each(|score| *score += m);
                }
            }
        }
        if self.causal {
            for (key, scores) in scores.chunks_exact_mut(PANEL).enumerate().skip(first + 1) {
                scores[..(key - first).min(PANEL)].fill(f32::NEG_INFINITY);
            }
        }
    }
}

/// Rows `first .. first + count` of a view as the columns `0..count` of `out` ([width][pitch]).
#[allow(clippy::too_many_arguments)]
fn transpose(
    kernels: &Kernels,
    view: &RawView,
    first: usize,
    count: usize,
    lines: &mut [f32],
    out: &mut [f32],
    pitch: usize,
    width: usize,
) {
    for start in (0..count).step_by(ROWS) {
        let rows = ROWS.min(count - start);
        for (row, line) in lines.chunks_exact_mut(width).take(rows).enumerate() {
            // SAFETY: callers pass rows of the view, and its width.
            unsafe { view.load(kernels, first + start + row, 0, line) };
        }
        for (e, out) in out.chunks_exact_mut(pitch).enumerate() {
            for (row, out) in out[start..start + rows].iter_mut().enumerate() {
                *out = lines[row * width + e];
            }
        }
    }
}

#[cfg(test)]
#[path = "attention_tests.rs"]
mod tests;
