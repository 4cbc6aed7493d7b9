//! Tests of `pack`.

use super::*;
use crate::block_float;
use crate::testing::{at_every_level, to_bf16, values};
use crate::{Engine, Isa};

#[test]
fn block_formats_hold_what_the_tiles_of_the_card_hold() {
    let (k, n) = (70, 50);
    let mut w = values(k * n, 1);
    // An outlier in every group.
    w.iter_mut().step_by(16).for_each(|v| *v *= 300.0);
    for (format, block) in
        [(WeightFormat::Bfp8B, BlockFormat::Bfp8B), (WeightFormat::Bfp4B, BlockFormat::Bfp4B)]
    {
        let tiles = block_float::pack(block, &w, k, n).unwrap();
        let want = block_float::unpack(block, &tiles, k, n).unwrap();
        at_every_level(|engine| {
            let source = View::contiguous(&w, [1, 1, k, n]).unwrap();
            let weight = PackedWeight::pack(engine, &[source], WeightOrder::InOut, format).unwrap();
            assert_eq!(weight.to_f32(), want);
        });
    }
}

#[test]
fn both_orders_and_both_dtypes_give_the_same_weight() {
    let (k, n) = (33, 45);
    let w = to_bf16(&values(k * n, 2));
    let mut transposed = vec![0f32; k * n];
    for (i, v) in w.iter().enumerate() {
        transposed[i % n * k + i / n] = v.to_f32();
    }
    let engine = Engine::new(Isa::detect(), 2).unwrap();
    for format in WeightFormat::ALL {
        let a = View::contiguous(&w, [1, 1, k, n]).unwrap();
        let b = View::contiguous(&transposed, [1, 1, n, k]).unwrap();
        let a = PackedWeight::pack(&engine, &[a], WeightOrder::InOut, format).unwrap();
        let b = PackedWeight::pack(&engine, &[b], WeightOrder::OutIn, format).unwrap();
        assert_eq!(a.to_bytes(), b.to_bytes());
        if matches!(format, WeightFormat::F32 | WeightFormat::Bf16) {
            assert!(a.to_f32().iter().zip(&w).all(|(a, w)| *a == w.to_f32()));
        }
    }
}

#[test]
fn sources_side_by_side_are_one_weight() {
    let (k, widths) = (20, [16, 48, 5]);
    let n: usize = widths.iter().sum();
    let w = values(k * n, 3);
    let engine = Engine::new(Isa::Portable, 1).unwrap();
    for order in [WeightOrder::OutIn, WeightOrder::InOut] {
        let whole = match order {
            WeightOrder::OutIn => View::contiguous(&w, [1, 1, n, k]).unwrap(),
            WeightOrder::InOut => View::contiguous(&w, [1, 1, k, n]).unwrap(),
        };
        let dim = if order == WeightOrder::OutIn { 2 } else { 3 };
        let mut start = 0;
        let parts = widths.map(|width| {
            start += width;
            whole.slice(dim, start - width, width).unwrap()
        });
        let one = PackedWeight::pack(&engine, &[whole], order, WeightFormat::Bfp8B).unwrap();
        let several = PackedWeight::pack(&engine, &parts, order, WeightFormat::Bfp8B).unwrap();
        assert_eq!(one.to_bytes(), several.to_bytes());
    }
}

#[test]
fn weights_keep_their_width() {
    let (k, n) = (1024, 64);
    let w = values(k * n, 4);
    let engine = Engine::new(Isa::Portable, 1).unwrap();
    let bytes = WeightFormat::ALL.map(|format| {
        let source = View::contiguous(&w, [1, 1, k, n]).unwrap();
        PackedWeight::pack(&engine, &[source], WeightOrder::InOut, format).unwrap().bytes()
    });
    assert_eq!(bytes, [4 * k * n, 2 * k * n, k * n * 17 / 16, k * n * 9 / 16]);
}

#[test]
fn bytes_round_trip_and_damage_is_an_error() {
    let w = values(35 * 17, 5);
    let engine = Engine::new(Isa::Portable, 1).unwrap();
    for format in WeightFormat::ALL {
        let source = View::contiguous(&w, [1, 1, 35, 17]).unwrap();
        let weight = PackedWeight::pack(&engine, &[source], WeightOrder::OutIn, format).unwrap();
        let bytes = weight.to_bytes();
        let back = PackedWeight::from_bytes(&engine, &bytes).unwrap();
        assert_eq!((back.to_bytes(), back.to_f32()), (bytes.clone(), weight.to_f32()));
        assert!(PackedWeight::from_bytes(&engine, &bytes[..bytes.len() - 1]).is_err());
        assert!(PackedWeight::from_bytes(&engine, &bytes[..20]).is_err());
        for at in [0, 8, 16, 24, 31] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x80;
            assert!(PackedWeight::from_bytes(&engine, &damaged).is_err(), "byte {at}");
        }
    }
}

#[test]
fn a_large_weight_is_read_in_parts_and_the_first_error_is_told() {
    let (k, n) = (640, 1000);
    let w = values(k * n, 8);
    let source = View::contiguous(&w, [1, 1, k, n]).unwrap();
    let engine = Engine::new(Isa::Portable, 3).unwrap();
    for format in WeightFormat::ALL {
        let bytes = PackedWeight::pack(&engine, &[source], WeightOrder::InOut, format).unwrap().to_bytes();
        let given = Mutex::new(vec![0u8; bytes.len()]);
        let read = |offset: usize, out: &mut [u8]| {
            let whole = offset.is_multiple_of(8) && out.len().is_multiple_of(8);
            assert!(whole || offset + out.len() == bytes.len());
            given.lock().unwrap()[offset..][..out.len()].iter_mut().for_each(|times| *times += 1);
            out.copy_from_slice(&bytes[offset..][..out.len()]);
            Ok(())
        };
        assert_eq!(PackedWeight::read(&engine, bytes.len(), &read).unwrap().to_bytes(), bytes);
        assert!(given.into_inner().unwrap().iter().all(|&times| times == 1));
        let cut = |offset: usize, out: &mut [u8]| {
            if offset > 300_000 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            out.copy_from_slice(&bytes[offset..][..out.len()]);
            Ok(())
        };
        let message = PackedWeight::read(&engine, bytes.len(), &cut).unwrap_err().to_string();
        assert_eq!(message, "packed weight: unexpected end of file");
    }
}

#[test]
fn a_weight_that_is_not_finite_has_no_block_format() {
    let mut w = values(40 * 40, 6);
    w[3 * 40 + 37] = f32::NAN;
    let engine = Engine::new(Isa::Portable, 2).unwrap();
    let pack = |format| {
        let source = View::contiguous(&w, [1, 1, 40, 40]).unwrap();
        PackedWeight::pack(&engine, &[source], WeightOrder::InOut, format)
    };
    let message = pack(WeightFormat::Bfp8B).unwrap_err().to_string();
    assert_eq!(message, "weight element [k 3, n 37] is NaN, wanted a finite number for bfloat8_b");
    assert!(pack(WeightFormat::Bf16).is_ok());
}

#[test]
fn empty_and_unequal_sources_are_errors() {
    let w = values(12, 7);
    let engine = Engine::new(Isa::Portable, 1).unwrap();
    let a = View::contiguous(&w, [1, 1, 3, 4]).unwrap();
    let b = View::contiguous(&w, [1, 1, 4, 3]).unwrap();
    assert!(PackedWeight::pack(&engine, &[], WeightOrder::OutIn, WeightFormat::Bf16).is_err());
    assert!(PackedWeight::pack(&engine, &[a, b], WeightOrder::OutIn, WeightFormat::Bf16).is_err());
    let empty = View::contiguous(&w, [1, 1, 0, 4]).unwrap();
    assert!(PackedWeight::pack(&engine, &[empty], WeightOrder::OutIn, WeightFormat::Bf16).is_err());
}
