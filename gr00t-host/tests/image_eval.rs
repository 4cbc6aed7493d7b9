//! The eval chain at its edges; the goldens are in `image_golden`.

use gr00t_host::image::{CropBox, EvalTransform, Frame, MAX_SIDE, normalize};

fn flat(width: usize, height: usize, value: u8) -> Frame {
    Frame::new(width, height, vec![value; width * height * 3]).expect("a whole frame")
}

#[test]
fn every_value_of_a_flat_frame_survives() {
    // The weights of one output sum to 1 only nearly, so a value may come out one lower after truncation.
    for value in 0..=255 {
        for got in EvalTransform::new(16).resized_u8(&flat(40, 30, value)).unwrap() {
            assert!(got == value || got + 1 == value, "{value} became {got}");
        }
    }
}

#[test]
fn frame_whose_crop_has_the_wanted_size_is_only_cropped() {
    let (side, size) = (20, 19);
    let rgb: Vec<u8> = (0..side * side * 3).map(|i| (i * 7 % 256) as u8).collect();
    let frame = Frame::new(side, side, rgb.clone()).unwrap();
    let transform = EvalTransform::new(size);
    let crop = transform.crop_box(side, side);
    assert_eq!(crop, CropBox { top: 0, left: 0, height: size, width: size });
    let wanted: Vec<u8> =
        rgb.chunks_exact(side * 3).take(size).flat_map(|row| row[..size * 3].to_vec()).collect();
    assert_eq!(transform.resized_u8(&frame).unwrap(), wanted);
}

#[test]
fn crop_corner_rounds_half_to_even() {
    let transform = EvalTransform::new(224);
    // 256 -> 243 leaves 13: 6.5 becomes 6. 300 -> 285 leaves 15: 7.5 becomes 8.
    assert_eq!(transform.crop_box(300, 256), CropBox { top: 6, left: 8, height: 243, width: 285 });
}

#[test]
fn smallest_frame_is_two_pixels() {
    let transform = EvalTransform::new(4);
    assert_eq!(transform.resized_u8(&flat(2, 2, 9)).unwrap(), [9; 48]);
    for (width, height) in [(1, 1), (1, 100), (100, 1)] {
        let error = transform.resized_u8(&flat(width, height, 9)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "image: cannot resize {width}x{height} to 4x4: nothing is left after the 0.95 centre crop"
            )
        );
    }
}

#[test]
fn sizes_beyond_the_cap_are_errors() {
    let error = EvalTransform::new(4).resized_u8(&flat(MAX_SIDE + 1, 1, 0)).unwrap_err();
    assert_eq!(error.to_string(), format!("image: cannot resize 8193x1 to 4x4: sides above {MAX_SIDE}"));
    for size in [0, MAX_SIDE + 1, usize::MAX] {
        assert!(EvalTransform::new(size).resized_u8(&flat(4, 4, 0)).is_err());
    }
}

#[test]
fn pixel_values_are_planes_of_the_truncated_image() {
    let frame = Frame::new(4, 4, (0..48).map(|i| i * 5).collect()).unwrap();
    let transform = EvalTransform::new(3);
    let rgb = transform.resized_u8(&frame).unwrap();
    let mut got = vec![0.0; rgb.len()];
    transform.pixel_values(&frame, &mut got).unwrap();
    for (index, byte) in rgb.iter().enumerate() {
        assert_eq!(got[index % 3 * 9 + index / 3], (f32::from(*byte) - 127.5) / 127.5);
    }
}

#[test]
fn pixel_values_of_another_length_are_refused() {
    let error = EvalTransform::new(3).pixel_values(&flat(4, 4, 0), &mut [0.0; 26]).unwrap_err();
    assert_eq!(error.to_string(), "image: 27 bytes of RGB into 26 pixel values");
    assert!(normalize(&[], &mut []).is_err());
}
