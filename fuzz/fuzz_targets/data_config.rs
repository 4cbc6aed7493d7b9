//! Data configs that users write, as TOML.
#![no_main]

use gr00t_host::embodiment::{DataConfig, synthetic_metadata};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match DataConfig::from_toml("fuzz", text) {
        Ok(config) => {
            let _ = synthetic_metadata(&config);
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
});
