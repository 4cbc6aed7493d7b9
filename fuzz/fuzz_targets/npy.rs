//! `.npy` files: read or refused, and what is read is written and read back the same.
#![no_main]

use gr00t_serve::codec::npy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(array) = npy::read(bytes) {
        let written = npy::write(&array);
        let again = npy::read(&written).expect("what was written is readable");
        // bytes, since NaN differs from itself
        assert_eq!(npy::write(&again), written);
    }
});
