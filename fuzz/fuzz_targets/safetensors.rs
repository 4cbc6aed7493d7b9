//! A weight file: its header is refused with one line, or every tensor that it names can be read.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use gr00t_host::TensorSource;
use gr00t_host::checkpoint::SafetensorsFile;
use libfuzzer_sys::fuzz_target;

/// One file for each process, written anew for each input.
static PATH: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("gr00t-fuzz-{}.safetensors", std::process::id())));

fuzz_target!(|bytes: &[u8]| {
    fs::write(&*PATH, bytes).expect("the temporary folder can be written");
    match SafetensorsFile::open(&*PATH) {
        Ok(file) => {
            for name in file.names() {
                let info = file.info(&name).expect("a tensor that is named");
                assert!(info.bytes() <= bytes.len(), "{name}: {info:?}");
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
});
