//! Builds the C++ layer with CMake and says how to link it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::locate::{Installation, Version, not_found};

/// tt-metal's libraries that the layer calls.
const LIBRARIES: [&str; 4] = ["_ttnncpp.so", "libtt_metal.so", "libtt_stl.so", "libtt-umd.so"];

pub(crate) fn build(found: &Installation) -> Result<(), String> {
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|e| format!("OUT_DIR: {e}"))?);
    // Writes the generated sources below OUT_DIR; CMake compiles them with the layer.
    drop(cxx_build::bridge("src/bridge.rs"));
    let mut cmake = cmake::Config::new("cpp");
    cmake
        // The layer is as fast in every profile, and tt-metal's headers want optimisation.
        .profile("RelWithDebInfo")
        .define("TT_SYS_BRIDGE", out.join("cxxbridge"));
    match found {
        Installation::Directories { includes, libraries, version } => {
            let joined = env::join_paths(includes).map_err(|e| e.to_string())?;
            cmake.define("TT_SYS_INCLUDE_DIRS", joined.to_string_lossy().replace(':', ";"));
            let built = compile(&mut cmake, *version);
            link(&built, libraries);
        }
        Installation::Package => {
            let version = package(&out.join("probe"))?;
            let built = compile(&mut cmake, version);
            let library = PathBuf::from(said(&built.join("build/library.txt"))?);
            let libraries = library.parent().ok_or("tt-metal's library has no directory")?;
            link(&built, libraries);
        }
    }
    Ok(())
}

fn compile(cmake: &mut cmake::Config, version: Version) -> PathBuf {
    if version != Version::TESTED {
        println!("cargo::warning=tt-metal {version} was never tried; {} was", Version::TESTED);
    }
    cmake.define("TT_SYS_METAL_VERSION", version.number().to_string()).build()
}

/// The installed package's version, found out in the folder `probe`. That there is no package is the usual failure, so
/// nothing is compiled before.
fn package(probe: &Path) -> Result<Version, String> {
    let program = env::var("CMAKE").unwrap_or_else(|_| "cmake".into());
    let status = std::process::Command::new(&program)
        .args(["-S", "cpp/probe", "-B"])
        .arg(probe)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .map_err(|e| not_found(&format!("{program}: {e}")))?;
    if !status.success() {
        return Err(not_found("which CMake does not know"));
    }
    let text = said(&probe.join("version.txt"))?;
    let version = Version::parse(&text).ok_or_else(|| format!("tt-metal says its version is {text:?}"))?;
    version.check()?;
    Ok(version)
}

/// What CMake wrote to a file.
fn said(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(text.trim().into())
}

/// Tells cargo what to link and where it will be at run time.
fn link(built: &Path, libraries: &Path) {
    println!("cargo::rustc-link-search=native={}", built.join("lib").display());
    println!("cargo::rustc-link-lib=static=tt_sys_cpp");
    println!("cargo::rustc-link-search=native={}", libraries.display());
    for library in LIBRARIES {
        println!("cargo::rustc-link-lib=dylib:+verbatim={library}");
    }
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", libraries.display());
    println!("cargo::metadata=LIB_DIR={}", libraries.display());
}
