//! Finds tt-metal and builds the C++ layer, with feature `metal` only; without it there is nothing to do.

#[cfg(feature = "metal")]
#[path = "build/cpp.rs"]
mod cpp;
#[cfg(feature = "metal")]
#[path = "build/locate.rs"]
mod locate;

#[cfg(feature = "metal")]
fn main() {
    for variable in locate::VARIABLES {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    println!("cargo::rerun-if-changed=cpp");
    println!("cargo::rerun-if-changed=src/bridge.rs");
    println!("cargo::rerun-if-changed=src/cpp_tests.rs");
    for variable in ["CMAKE", "CXXFLAGS"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let found = locate::installation(|name| std::env::var(name).ok());
    if let Err(message) = found.and_then(|found| cpp::build(&found)) {
        println!("cargo::error={message}");
        std::process::exit(1);
    }
}

#[cfg(not(feature = "metal"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
