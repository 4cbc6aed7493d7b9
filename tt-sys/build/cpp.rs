//! Builds the C++ layer with CMake and says how to link it.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::locate::{Installation, Version, not_found};

/// tt-metal's libraries that the layer calls.
const LIBRARIES: [&str; 4] = ["_ttnncpp.so", "libtt_metal.so", "libtt_stl.so", "libtt-umd.so"];

pub(crate) fn build(found: &Installation) -> Result<(), String> {
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|e| format!("OUT_DIR: {e}"))?);
    // Writes the generated sources below OUT_DIR; CMake compiles them with the layer.
    let tests = cfg!(feature = "cpp-tests");
    drop(cxx_build::bridges(["src/bridge.rs"].into_iter().chain(tests.then_some("src/cpp_tests.rs"))));
    forget(&out.join("build"))?;
    let mut cmake = cmake::Config::new("cpp");
    cmake
        // The layer is as fast in every profile, and tt-metal's headers want optimisation.
        .profile("RelWithDebInfo")
        // The crate's own choice of flags silences every warning.
        .define("CMAKE_CXX_FLAGS", env::var("CXXFLAGS").unwrap_or_default())
        .define("TT_SYS_TESTS", if tests { "ON" } else { "OFF" })
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
    if !Version::TESTED.contains(&version) {
        let tried = Version::TESTED.map(|version| version.to_string()).join(", ");
        println!("cargo::warning=tt-metal {version} was never tried; these were: {tried}");
    }
    cmake.define("TT_SYS_METAL_VERSION", version.number().to_string()).build()
}

/// The installed package's version, found out in the folder `probe`. That there is no package is the usual failure, so
/// nothing is compiled before.
fn package(probe: &Path) -> Result<Version, String> {
    forget(probe)?;
    let program = env::var("CMAKE").unwrap_or_else(|_| "cmake".into());
    let output = std::process::Command::new(&program)
        .args(["-S", "cpp/probe", "-B"])
        .arg(probe)
        .output()
        .map_err(|e| not_found(&format!("{program}: {e}")))?;
    if !output.status.success() {
        return Err(unloadable(&String::from_utf8_lossy(&output.stderr)));
    }
    let text = said(&probe.join("version.txt"))?;
    let version = Version::parse(&text).ok_or_else(|| format!("tt-metal says its version is {text:?}"))?;
    version.check(Version::PACKAGES)?;
    Ok(version)
}

/// Why the package could not be loaded, from CMake's errors, which are wrapped to the width of a page.
fn unloadable(errors: &str) -> String {
    let errors = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing = errors.split("provided by \"").nth(1).and_then(|rest| rest.split('"').next());
    match missing {
        Some("TT-NN") => not_found("which CMake does not know"),
        Some(other) => {
            format!(
                "tt-metal's CMake package TT-NN was found, but it needs {other}, which CMake does not know"
            )
        }
        None if errors.is_empty() => not_found("which CMake does not know"),
        None => format!("tt-metal's CMake package TT-NN could not be loaded: {errors}"),
    }
}

/// Lets CMake look again for what it found when tt-metal was somewhere else; what was compiled stays.
fn forget(folder: &Path) -> Result<(), String> {
    let cache = folder.join("CMakeCache.txt");
    match fs::remove_file(&cache) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("{}: {error}", cache.display())),
        _ => Ok(()),
    }
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
