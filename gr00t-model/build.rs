//! Tells the linker, and dependents, where tt-metal's libraries are; without the feature `metal` there are none.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(dir) = std::env::var("DEP_TT_OPS_LIB_DIR") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
        println!("cargo::metadata=LIB_DIR={dir}");
    }
}
