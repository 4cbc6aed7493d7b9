//! `metadata.json`: statistics of embodiments.
#![no_main]

use gr00t_host::embodiment::Metadata;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = Metadata::from_bytes(bytes) {
        assert!(!error.contains('\n'), "{error}");
    }
});
