//! Tests of `movement`.

use super::*;
use crate::testing::{at_every_level, to_bf16, values};
use half::bf16;

#[test]
fn concat_is_a_copy_into_slices() {
    let parts = [1, 32, 16].map(|rows| values(rows * 24, rows as u64));
    at_every_level(|engine| {
        let mut out = vec![f32::NAN; 49 * 24];
        let mut start = 0;
        for part in &parts {
            let rows = part.len() / 24;
            let x = View::contiguous(part, [1, 1, rows, 24]).unwrap();
            let target = ViewMut::contiguous(&mut out, [1, 1, 49, 24]).unwrap();
            copy(engine, &x, &mut target.slice(2, start, rows).unwrap()).unwrap();
            start += rows;
        }
        assert_eq!(out, parts.concat());
    });
}

#[test]
fn a_permuted_copy_moves_every_element() {
    let x = to_bf16(&values(2 * 3 * 5 * 7, 1));
    at_every_level(|engine| {
        let mut out = vec![bf16::NAN; x.len()];
        let view = View::contiguous(&x, [2, 3, 5, 7]).unwrap().permute([3, 1, 0, 2]).unwrap();
        copy(engine, &view, &mut ViewMut::contiguous(&mut out, [7, 3, 2, 5]).unwrap()).unwrap();
        for (i, v) in out.iter().enumerate() {
            let (d, b, a, c) = (i / 30, i / 10 % 3, i / 5 % 2, i % 5);
            assert_eq!(*v, x[((a * 3 + b) * 5 + c) * 7 + d]);
        }
    });
}

#[test]
fn dtypes_are_converted() {
    let engine = Engine::new(crate::Isa::detect(), 1).unwrap();
    let x = [1.0f32, -2.75, 1e10, f32::NAN, 257.0, 1.003_906_3];
    let view = View::contiguous(&x[..], [1, 1, 2, 3]).unwrap();
    let mut narrow = [bf16::ZERO; 6];
    copy(&engine, &view, &mut ViewMut::contiguous(&mut narrow[..], [1, 1, 2, 3]).unwrap()).unwrap();
    for (n, x) in narrow.iter().zip(x) {
        assert_eq!(n.to_bits(), bf16::from_f32(x).to_bits());
    }
    let mut signed = [9i32; 6];
    copy(&engine, &view, &mut ViewMut::contiguous(&mut signed[..], [1, 1, 2, 3]).unwrap()).unwrap();
    assert_eq!(signed, [1, -2, i32::MAX, 0, 257, 1]);
    let big = [u32::MAX, 0, 16_777_217];
    let mut bits = [0i32; 3];
    let view = View::contiguous(&big[..], [1, 1, 1, 3]).unwrap();
    copy(&engine, &view, &mut ViewMut::contiguous(&mut bits[..], [1, 1, 1, 3]).unwrap()).unwrap();
    assert_eq!(bits, [-1, 0, 16_777_217]);
}

#[test]
fn embedding_picks_rows() {
    let table = to_bf16(&values(10 * 6, 2));
    let ids = [3u32, 0, 9, 9];
    at_every_level(|engine| {
        let ids = View::contiguous(&ids[..], [1, 1, 2, 2]).unwrap();
        let table_view = View::contiguous(&table, [1, 1, 10, 6]).unwrap();
        let mut out = [f32::NAN; 24];
        embedding(engine, &ids, &table_view, &mut ViewMut::contiguous(&mut out[..], [1, 2, 2, 6]).unwrap())
            .unwrap();
        let mut same = [bf16::ZERO; 24];
        embedding(engine, &ids, &table_view, &mut ViewMut::contiguous(&mut same[..], [1, 2, 2, 6]).unwrap())
            .unwrap();
        for (row, id) in [3, 0, 9, 9].into_iter().enumerate() {
            assert_eq!(same[row * 6..][..6], table[id * 6..][..6]);
            assert!(out[row * 6..][..6].iter().zip(&table[id * 6..]).all(|(o, t)| *o == t.to_f32()));
        }
    });
}

#[test]
fn an_id_beyond_the_table_is_an_error() {
    let engine = Engine::new(crate::Isa::Portable, 1).unwrap();
    let table = values(10, 3);
    let ids = [4u32, 5];
    let mut out = [0f32; 4];
    let result = embedding(
        &engine,
        &View::contiguous(&ids[..], [1, 1, 1, 2]).unwrap(),
        &View::contiguous(&table, [1, 1, 5, 2]).unwrap(),
        &mut ViewMut::contiguous(&mut out[..], [1, 1, 2, 2]).unwrap(),
    );
    assert_eq!(result.unwrap_err().to_string(), "embedding: id is 5, wanted below 5");
}
