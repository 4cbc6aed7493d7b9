//! Pictures of every format that clients send.
#![no_main]

use gr00t_host::Error;
use gr00t_host::image::Frame;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Frame::decode(bytes) {
        Ok(frame) => assert_eq!(frame.rgb().len(), frame.width() * frame.height() * 3),
        Err(error) => {
            assert!(matches!(error, Error::Image(_)), "{error:?}");
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
});
