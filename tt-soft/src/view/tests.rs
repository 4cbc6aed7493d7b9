//! Tests of `view`.

use super::*;

fn numbers(count: usize) -> Vec<u32> {
    (0..count as u32).collect()
}

/// Reads a view element by element.
fn read(view: &View<'_>) -> Vec<u32> {
    let Elements::U32(data) = view.elements else { panic!("wanted uint32") };
    let (s, t) = (view.shape(), view.strides());
    let mut out = Vec::new();
    for a in 0..s[0] {
        for b in 0..s[1] {
            for c in 0..s[2] {
                for d in 0..s[3] {
                    out.push(data[a * t[0] + b * t[1] + c * t[2] + d * t[3]]);
                }
            }
        }
    }
    out
}

#[test]
fn a_view_past_its_buffer_is_an_error() {
    let data = numbers(11);
    assert!(View::contiguous(&data, [1, 1, 3, 4]).is_err());
    assert!(View::new(&data, [1, 1, 3, 3], [0, 0, 4, 1]).is_ok());
    assert!(View::new(&data, [1, 1, usize::MAX, 3], [0, 0, usize::MAX, 1]).is_err());
    assert!(View::new(&data, [usize::MAX, 2, 2, 2], [0, 0, 0, 0]).is_err());
    assert!(View::new(&data, [0, 1, 1, 5], [9, 9, 9, 9]).is_ok());
}

#[test]
fn a_mutable_view_with_shared_places_is_an_error() {
    let mut data = numbers(64);
    assert!(ViewMut::new(&mut data, [1, 1, 3, 4], [0, 0, 3, 1]).is_err());
    assert!(ViewMut::new(&mut data, [1, 1, 3, 4], [0, 0, 0, 1]).is_err());
    assert!(ViewMut::new(&mut data, [1, 2, 3, 4], [0, 4, 8, 1]).is_ok());
}

#[test]
fn heads_are_split_and_merged_as_views() {
    let data = numbers(2 * 3 * 4);
    let split = View::contiguous(&data, [1, 2, 3, 4]).unwrap().permute([0, 2, 1, 3]).unwrap();
    assert_eq!(read(&split)[..8], [0, 1, 2, 3, 12, 13, 14, 15]);
    let merged = split.permute([0, 2, 1, 3]).unwrap().reshape([1, 1, 2, 12]).unwrap();
    assert_eq!(read(&merged), data);
    assert!(split.reshape([1, 1, 1, 24]).is_err());
}

#[test]
fn a_strided_view_is_reshaped_where_its_layout_allows() {
    let data = numbers(6 * 10);
    let rows = View::contiguous(&data, [1, 1, 6, 10]).unwrap().slice(3, 2, 4).unwrap();
    let before = read(&rows);
    let split = rows.reshape([2, 3, 2, 2]).unwrap();
    assert_eq!(read(&split), before);
    assert!(rows.reshape([1, 1, 8, 3]).is_err());
    assert!(rows.reshape([1, 1, 1, 24]).is_err());
}

#[test]
fn slices_are_checked() {
    let data = numbers(12);
    let view = View::contiguous(&data, [1, 1, 3, 4]).unwrap();
    assert_eq!(read(&view.slice(2, 1, 2).unwrap().slice(3, 3, 1).unwrap()), [7, 11]);
    assert!(view.slice(2, 2, 2).is_err());
    assert!(view.slice(4, 0, 1).is_err());
    assert!(view.slice(2, usize::MAX, 2).is_err());
    assert_eq!(view.slice(2, 3, 0).unwrap().len(), 0);
}

#[test]
fn broadcasting_repeats_dimensions_of_size_one() {
    let data = numbers(3);
    let view = View::contiguous(&data, [1, 1, 1, 3]).unwrap().broadcast([1, 2, 1, 3]).unwrap();
    assert_eq!(read(&view), [0, 1, 2, 0, 1, 2]);
    assert!(view.broadcast([1, 3, 1, 3]).is_err());
}
