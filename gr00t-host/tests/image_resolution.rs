//! The resolution policies: strict, resize, letterbox.

use std::borrow::Cow;

use gr00t_host::image::{Frame, MAX_SIDE, ResolutionPolicy, fit};

const POLICIES: [ResolutionPolicy; 3] =
    [ResolutionPolicy::Strict, ResolutionPolicy::Resize, ResolutionPolicy::Letterbox];

fn white(width: usize, height: usize) -> Frame {
    Frame::new(width, height, vec![255; width * height * 3]).expect("a whole frame")
}

/// `#` where the frame is white, `.` where it is black.
fn picture(frame: &Frame) -> Vec<String> {
    frame
        .rgb()
        .chunks_exact(frame.width() * 3)
        .map(|row| row.chunks_exact(3).map(|p| if p == [255; 3] { '#' } else { '.' }).collect())
        .collect()
}

#[test]
fn frame_of_the_wanted_size_is_not_touched() {
    let frame = white(8, 4);
    for policy in POLICIES {
        for resolution in [Some((8, 4)), None] {
            assert!(matches!(fit(&frame, resolution, policy).unwrap(), Cow::Borrowed(_)), "{policy}");
        }
    }
}

#[test]
fn strict_names_both_sizes() {
    let error = fit(&white(640, 480), Some((256, 128)), ResolutionPolicy::Strict).unwrap_err();
    assert_eq!(error.to_string(), "image: frame is 640x480, the metadata wants 256x128");
}

#[test]
fn resize_leaves_the_size_to_the_eval_chain() {
    let frame = white(8, 4);
    let fitted = fit(&frame, Some((4, 4)), ResolutionPolicy::Resize).unwrap();
    assert_eq!((fitted.width(), fitted.height()), (8, 4));
}

#[test]
fn letterbox_centres_a_wide_frame_between_black_rows() {
    let fitted = fit(&white(16, 8), Some((8, 8)), ResolutionPolicy::Letterbox).unwrap().into_owned();
    assert_eq!(
        picture(&fitted),
        ["........", "........", "########", "########", "########", "########", "........", "........"]
    );
}

#[test]
fn letterbox_centres_a_tall_frame_between_black_columns() {
    let fitted = fit(&white(2, 4), Some((8, 4)), ResolutionPolicy::Letterbox).unwrap().into_owned();
    assert_eq!(picture(&fitted), ["...##...", "...##...", "...##...", "...##..."]);
}

#[test]
fn letterbox_of_extreme_shapes_keeps_a_pixel() {
    for (width, height) in [(MAX_SIDE, 1), (1, MAX_SIDE), (1, 1)] {
        let frame = white(width, height);
        let fitted = fit(&frame, Some((64, 48)), ResolutionPolicy::Letterbox).unwrap();
        assert_eq!((fitted.width(), fitted.height()), (64, 48));
        assert!(fitted.rgb().contains(&255));
    }
}

#[test]
fn letterbox_refuses_sizes_that_cannot_be() {
    for resolution in [(0, 4), (4, 0), (MAX_SIDE + 1, 4), (usize::MAX, usize::MAX)] {
        let error = fit(&white(8, 4), Some(resolution), ResolutionPolicy::Letterbox).unwrap_err();
        assert!(error.to_string().starts_with("image: cannot letterbox 8x4 to "), "{error}");
    }
}

#[test]
fn names_parse_back() {
    for policy in POLICIES {
        assert_eq!(policy.to_string().parse::<ResolutionPolicy>().unwrap(), policy);
    }
    let error = "crop".parse::<ResolutionPolicy>().unwrap_err().to_string();
    assert_eq!(error, "image: resolution policy \"crop\" is unknown, wanted strict, resize or letterbox");
}
