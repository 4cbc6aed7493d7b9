//! Blocks beside f64, at every number of rows, between pages that may not be touched.

use super::*;
use crate::amx_emulation::Counts;
use crate::isa::Isa;
use crate::kernels::expand;
use crate::testing::{needs_amx_emulation, to_bf16, values};
use half::bf16;

/// Says so and is false where there is nothing to run on.
fn can_run() -> bool {
    let can = needs_amx_emulation() || Isa::Amx.is_available();
    if !can {
        println!("skipped: this CPU has neither AMX nor AVX-512");
    }
    can
}

/// Memory that ends where a page begins that may not be touched, and begins after one.
struct Fenced<T> {
    base: *mut libc::c_void,
    bytes: usize,
    start: *mut T,
    len: usize,
}

const PAGE: usize = 4096;

impl<T: bytemuck::Pod> Fenced<T> {
    fn new(contents: &[T]) -> Self {
        let (len, used) = (contents.len(), std::mem::size_of_val(contents));
        let bytes = used.next_multiple_of(PAGE) + 2 * PAGE;
        // SAFETY: a fresh mapping of which all but the first and the last page are made usable; the contents fit.
        unsafe {
            let (flags, none) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, std::ptr::null_mut());
            let base = libc::mmap(none, bytes, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            let usable = base.byte_add(PAGE);
            assert_eq!(libc::mprotect(usable, bytes - 2 * PAGE, libc::PROT_READ | libc::PROT_WRITE), 0);
            let start = base.byte_add(bytes - PAGE - used).cast::<T>();
            start.copy_from_nonoverlapping(contents.as_ptr(), len);
            Self { base, bytes, start, len }
        }
    }

    fn contents(&self) -> &[T] {
        // SAFETY: initialised by `new`.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<T> Drop for Fenced<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}

/// Operands of a block and what must come of it.
struct Case {
    rows: usize,
    steps: usize,
    two: bool,
    accumulate: bool,
    /// Words of an A row that are not the block's.
    gap: usize,
}

impl Case {
    /// Runs it with `beside` and compares with f64.
    fn check(&self, beside: Beside) {
        let &Self { rows, steps, two, accumulate, gap } = self;
        let (tiles, words) = (if two { 2 } else { 1 }, steps * STEP_WORDS);
        let lda = words + gap;
        let a = to_bf16(&values(2 * (tiles * rows * lda - gap), 1));
        let b = to_bf16(&values(2 * words * PANEL, 2));
        let c = values(tiles * TILE_FLOATS, 3);
        let fenced_a = Fenced::new(bytemuck::cast_slice::<bf16, u32>(&a));
        let fenced_b = Fenced::new(bytemuck::cast_slice::<bf16, u32>(&b));
        let fenced_c = Fenced::new(&c);
        let block =
            Block { a: fenced_a.start, lda, two, b: fenced_b.start, steps, c: fenced_c.start, accumulate };
        // SAFETY: AMX runs here, emulated or not; the operands have the sizes that the block says.
        unsafe { multiply(&Configured::new(rows), &block, beside) };
        for row in 0..tiles * rows {
            let at = (row / rows * SIDE + row % rows) * PANEL;
            for n in 0..PANEL {
                let mut want = if accumulate { f64::from(c[at + n]) } else { 0.0 };
                for k in 0..2 * words {
                    let (x, w) = (a[row * 2 * lda + k], b[(k / 2 * PANEL + n) * 2 + k % 2]);
                    want += x.to_f64() * w.to_f64();
                }
                let got = f64::from(fenced_c.contents()[at + n]);
                assert!(
                    (got - want).abs() < 1e-5 * (1.0 + words as f64).sqrt(),
                    "row {row}, column {n}: {got}, {want}"
                );
            }
        }
    }
}

#[test]
fn the_known_product_is_right() {
    if can_run() {
        assert!(known_product_is_right());
    }
}

#[test]
fn blocks_of_every_height_are_near_f64_and_touch_nothing_else() {
    if !can_run() {
        return;
    }
    for rows in 1..=SIDE {
        for two in [false, true] {
            let case =
                Case { rows, steps: 1 + rows % 5, two, accumulate: rows % 2 == 0, gap: 16 * (rows % 3) };
            case.check(Beside::Nothing);
        }
    }
}

#[test]
fn runs_of_every_length_are_near_f64() {
    if !can_run() {
        return;
    }
    for steps in 1..=18 {
        for accumulate in [false, true] {
            Case { rows: 13, steps, two: true, accumulate, gap: 16 }.check(Beside::Nothing);
            Case { rows: 16, steps, two: false, accumulate, gap: 0 }.check(Beside::Nothing);
        }
    }
}

#[test]
fn prefetching_changes_nothing_and_may_point_anywhere() {
    if !can_run() {
        return;
    }
    for lines in [4, 8, 16, 32] {
        for two in [false, true] {
            let beside = Beside::Prefetch { from: std::ptr::without_provenance(64), lines };
            Case { rows: 5, steps: 9, two, accumulate: true, gap: 0 }.check(beside);
        }
    }
}

#[test]
fn what_is_expanded_beside_is_what_plain_rust_expands() {
    if !can_run() {
        return;
    }
    for rows in [2, 4, 8, 16] {
        for two in [false, true] {
            let steps = 8;
            let pairs: Vec<u16> =
                values(steps * rows * PANEL, 5).iter().map(|v| (v.to_bits() >> 4) as u16).collect();
            let exponents: Vec<[u8; 2]> = values(2 * steps * rows, 6)
                .iter()
                .map(|v| [100 + (v.to_bits() >> 8 & 63) as u8, 90 + (v.to_bits() & 63) as u8])
                .collect();
            let mut want = vec![0u32; pairs.len()];
            expand::bfp8_to_bf16(&pairs, &exponents, &mut want);
            let (from, exponents) = (Fenced::new(&pairs), Fenced::new(&exponents));
            let to = Fenced::new(&vec![0u32; pairs.len()]);
            let beside = Beside::Expand {
                rows,
                from: from.start.cast(),
                exponents: exponents.start.cast(),
                to: to.start,
                ahead: std::ptr::null(),
            };
            Case { rows: 7, steps, two, accumulate: false, gap: 16 }.check(beside);
            assert_eq!(to.contents(), want, "{rows} rows a step");
        }
    }
}

#[test]
fn instructions_are_as_few_as_they_can_be() {
    if !needs_amx_emulation() {
        println!("skipped: this CPU has AMX, or no AVX-512");
        return;
    }
    for (two, want) in [
        (
            true,
            Counts { configurations: 1, releases: 1, zeros: 0, loads: 4 + 64, stores: 4 + 1, products: 64 },
        ),
        (
            false,
            Counts { configurations: 1, releases: 1, zeros: 0, loads: 2 + 48, stores: 2 + 1, products: 32 },
        ),
    ] {
        // Sums in and out, a step's operands, and a store after 8 steps.
        let case = Case { rows: 16, steps: 16, two, accumulate: true, gap: 0 };
        assert_eq!(Counts::of(|| case.check(Beside::Nothing)), want);
    }
}

/// Rows of bf16 as words, and the values that they then have.
fn rows_of_pairs(rows: usize, width: usize, value: impl Fn(usize, usize) -> f32) -> Vec<u32> {
    let values: Vec<bf16> = (0..rows * width).map(|i| bf16::from_f32(value(i / width, i % width))).collect();
    bytemuck::cast_slice(&values).to_vec()
}

/// A panel [pair of rows][PANEL] of a matrix of `rows` rows.
fn panel_of_pairs(rows: usize, value: impl Fn(usize, usize) -> f32) -> Vec<u32> {
    let bits = |row, n| u32::from(bf16::from_f32(value(row, n)).to_bits());
    (0..rows / 2 * PANEL)
        .map(|i| (i / PANEL * 2, i % PANEL))
        .map(|(row, n)| bits(row, n) | bits(row + 1, n) << 16)
        .collect()
}

#[test]
fn the_two_products_of_attention_fit() {
    const KEYS: usize = 32;
    const WIDTH: usize = 64;
    if !can_run() {
        return;
    }
    let [q, k, v] = [7, 8, 9]
        .map(|seed| to_bf16(&values(KEYS * WIDTH, seed)).into_iter().map(bf16::to_f32).collect::<Vec<_>>());
    let at = |matrix: &[f32], row: usize, column: usize| matrix[row * WIDTH + column];
    // SAFETY: AMX runs here, emulated or not; A has two tiles of 16 rows, B `steps` steps, and so has C two tiles.
    let product = |a: &[u32], b: &[u32], steps: usize| unsafe {
        let mut c = vec![0f32; 2 * TILE_FLOATS];
        let (a, b, lda) = (a.as_ptr(), b.as_ptr(), steps * STEP_WORDS);
        let block = Block { a, lda, two: true, b, steps, c: c.as_mut_ptr(), accumulate: false };
        multiply(&Configured::new(SIDE), &block, Beside::Nothing);
        c
    };

    let keys = rows_of_pairs(KEYS, WIDTH, |key, e| at(&k, key, e));
    let queries = panel_of_pairs(WIDTH, |e, query| at(&q, query, e));
    let scores = product(&keys, &queries, WIDTH / 32);
    let weights: Vec<f32> = scores.iter().map(|score| bf16::from_f32((0.1 * score).exp()).to_f32()).collect();
    let panel = panel_of_pairs(KEYS, |key, query| weights[key * PANEL + query]);
    // 32 of V's columns.
    let columns = rows_of_pairs(KEYS, KEYS, |column, key| at(&v, key, column));
    let sums = product(&columns, &panel, 1);

    for query in 0..PANEL {
        for key in 0..KEYS {
            let want: f64 = (0..WIDTH).map(|e| f64::from(at(&q, query, e)) * f64::from(at(&k, key, e))).sum();
            assert!((f64::from(scores[key * PANEL + query]) - want).abs() < 1e-5, "key {key}, query {query}");
        }
        for column in 0..KEYS {
            let want: f64 = (0..KEYS)
                .map(|key| f64::from(weights[key * PANEL + query]) * f64::from(at(&v, key, column)))
                .sum();
            let got = f64::from(sums[column * PANEL + query]);
            assert!((got - want).abs() < 1e-4, "column {column}, query {query}: {got}, {want}");
        }
    }
}
