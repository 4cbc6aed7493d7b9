//! NVIDIA's `/act` body: JSON with arrays, plain and `{"encoded": …}`.
#![no_main]

use gr00t_serve::codec::{Limits, decode_act, json_numpy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let _ = decode_act(bytes, limits);
    if let Ok(value) = json_numpy::decode(bytes, limits) {
        let written = json_numpy::encode(&value);
        let again = json_numpy::decode(written.as_bytes(), limits).expect("what was written is readable");
        assert_eq!(json_numpy::encode(&again), written);
    }
});
