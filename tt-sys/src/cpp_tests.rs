//! The C++ layer's own tests (`cpp/tests/layer.cpp`), for `tests/cpp.rs`. In builds with the feature `cpp-tests` alone.

use crate::error::Result;

#[cxx::bridge(namespace = "tt_sys")]
#[allow(unreachable_pub, reason = "cxx makes every function public")]
mod ffi {
    unsafe extern "C++" {
        include!("tt_sys/tests.h");

        fn test_names() -> Result<Vec<String>>;
        fn run_test(name: &str) -> Result<()>;
    }
}

/// Their names.
///
/// # Errors
/// What the bridge reports.
pub fn names() -> Result<Vec<String>> {
    Ok(ffi::test_names()?)
}

/// Runs one.
///
/// # Errors
/// The check that failed, with its place.
pub fn run(name: &str) -> Result<()> {
    Ok(ffi::run_test(name)?)
}
