//! How the build script looks for tt-metal, and what it says where there is none.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[allow(dead_code, reason = "the build script uses the rest")]
#[path = "../build/locate.rs"]
mod locate;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use locate::{Installation, Version};
use tempfile::TempDir;

fn look(variables: &[(&str, &str)]) -> Result<Installation, String> {
    let variables: HashMap<&str, &str> = variables.iter().copied().collect();
    locate::installation(|name| variables.get(name).map(ToString::to_string))
}

fn message(variables: &[(&str, &str)]) -> String {
    look(variables).err().unwrap()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Empty files that look like an installation below `dir`.
fn installation(dir: &Path, library: &str) {
    for file in ["include/ttnn/operations/trace.hpp", "lib/_ttnncpp.so", library] {
        write(&dir.join(file), "");
    }
}

/// Empty files that look like a source tree that was built with tt-metal's `build_metal.sh`, below `dir`.
fn source_tree(dir: &Path) {
    let files = [
        "ttnn/api/ttnn/device.hpp",
        "ttnn/cpp/ttnn/operations/trace.hpp",
        "tt_metal/api/tt-metalium/distributed.hpp",
        "tt_metal/hostdevcommon/api/hostdevcommon/common_values.hpp",
        "tt_metal/third_party/umd/device/api/umd/device/cluster.hpp",
        "tt_metal/third_party/tracy/public/tracy/Tracy.hpp",
        "tt_stl/tt_stl/span.hpp",
        ".cpmcache/fmt/6991/include/fmt/base.h",
        ".cpmcache/fmt/0a7e/include/fmt/base.h",
        ".cpmcache/spdlog/b1c2/include/spdlog/spdlog.h",
        ".cpmcache/tt-logger/5b4d/include/tt-logger/tt-logger.hpp",
        ".cpmcache/enchantum/1f2e/enchantum/include/enchantum/enchantum.hpp",
        ".cpmcache/nlohmann_json/798e/include/nlohmann/json.hpp",
        ".cpmcache/reflect/e754/reflect",
        "build/lib/_ttnncpp.so",
        "build/lib/libtt-umd.so.0",
        "build/lib/libtt-umd.so.0.73.1",
    ];
    for file in files {
        write(&dir.join(file), "");
    }
}

/// Which of `includes` holds `header`.
fn holders<'a>(includes: &'a [PathBuf], header: &str) -> Vec<&'a Path> {
    includes.iter().filter(|dir| dir.join(header).is_file()).map(PathBuf::as_path).collect()
}

fn found_in(dir: &Path, more: &[(&str, &str)]) -> Result<Installation, String> {
    let (includes, libraries) = (dir.join("include"), dir.join("lib"));
    let explicit = [
        ("TT_METAL_INCLUDE_DIR", includes.to_str().unwrap()),
        ("TT_METAL_LIB_DIR", libraries.to_str().unwrap()),
    ];
    look(&[&explicit[..], more].concat())
}

#[test]
fn explicit_directories_come_first_and_libraries_say_their_version() {
    let dir = tempfile::tempdir().unwrap();
    installation(dir.path(), "lib/libtt-umd.so.0.73.1");
    let found = found_in(dir.path(), &[("TT_METAL_HOME", "/nowhere")]).unwrap();
    let Installation::Directories { includes, version, .. } = found else {
        panic!("a package was looked for")
    };
    assert_eq!((includes.len(), version), (1, Version([0, 73, 1])));
}

#[test]
fn a_source_tree_gives_its_headers_those_of_its_packages_and_the_built_libraries() {
    let dir = tempfile::tempdir().unwrap();
    source_tree(dir.path());
    let Installation::Directories { includes, libraries, version } =
        look(&[("TT_METAL_HOME", dir.path().to_str().unwrap())]).unwrap()
    else {
        panic!("a package was looked for")
    };
    for header in [
        "ttnn/device.hpp",
        "ttnn/operations/trace.hpp",
        "tt-metalium/distributed.hpp",
        "hostdevcommon/common_values.hpp",
        "umd/device/cluster.hpp",
        "tracy/Tracy.hpp",
        "tt_stl/span.hpp",
        "spdlog/spdlog.h",
        "tt-logger/tt-logger.hpp",
        "enchantum/enchantum.hpp",
        "nlohmann/json.hpp",
        "reflect",
    ] {
        assert_eq!(holders(&includes, header).len(), 1, "{header} in {includes:?}");
    }
    assert_eq!(holders(&includes, "fmt/base.h").len(), 2, "either may be the right one");
    assert_eq!((libraries, version), (dir.path().join("build/lib"), Version([0, 73, 1])));
}

#[test]
fn the_record_of_a_build_says_which_packages_it_used() {
    let dir = tempfile::tempdir().unwrap();
    source_tree(dir.path());
    let (used, elsewhere) = (dir.path().join(".cpmcache/fmt/6991"), dir.path().join("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(dir.path().join(".cpmcache/spdlog/b1c2"), elsewhere.join("spdlog")).unwrap();
    let record = format!(
        "// CMake's\nCPM_PACKAGE_fmt_SOURCE_DIR:INTERNAL={}\nCPM_PACKAGE_spdlog_SOURCE_DIR:INTERNAL={}\n",
        used.display(),
        elsewhere.join("spdlog").display()
    );
    write(&dir.path().join("build/CMakeCache.txt"), &record);
    let Installation::Directories { includes, .. } =
        look(&[("TT_METAL_HOME", dir.path().to_str().unwrap())]).unwrap()
    else {
        panic!("a package was looked for")
    };
    assert_eq!(holders(&includes, "fmt/base.h"), [used.join("include")]);
    assert_eq!(holders(&includes, "spdlog/spdlog.h"), [elsewhere.join("spdlog/include")]);
}

#[test]
fn a_source_tree_without_libraries_or_packages_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    source_tree(dir.path());
    let home = [("TT_METAL_HOME", dir.path().to_str().unwrap())];
    fs::remove_file(dir.path().join("build/lib/_ttnncpp.so")).unwrap();
    let place = dir.path().join("build/lib");
    assert_eq!(message(&home), format!("tt-metal's library _ttnncpp.so is not in {}", place.display()));
    fs::remove_dir_all(dir.path().join(".cpmcache/enchantum")).unwrap();
    assert!(message(&home).contains(".cpmcache/enchantum: build tt-metal there first"));
}

#[test]
fn every_version_that_ran_is_accepted() {
    for version in Version::TESTED {
        version.check(Version::RANGE).unwrap();
        version.check(Version::PACKAGES).unwrap();
    }
}

#[test]
fn versions_with_another_api_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    installation(dir.path(), "lib/libtt-umd.so.0.81.1");
    let error = found_in(dir.path(), &[]).err().unwrap();
    assert_eq!(error, "tt-metal 0.81.1 was found, wanted 0.71.0 or later, before 0.76.0");
    let error = found_in(dir.path(), &[("TT_METAL_VERSION", "0.70.1")]).err().unwrap();
    assert_eq!(error, "tt-metal 0.70.1 was found, wanted 0.71.0 or later, before 0.76.0");
    let error = found_in(dir.path(), &[("TT_METAL_VERSION", "new")]).err().unwrap();
    assert!(error.contains("wanted like 0.73.1"), "{error}");
}

#[test]
fn half_an_installation_is_named() {
    assert!(message(&[("TT_METAL_LIB_DIR", "/lib")]).contains("only one is set"));
    let both = [("TT_METAL_INCLUDE_DIR", "/nowhere:/no"), ("TT_METAL_LIB_DIR", "/nowhere")];
    assert_eq!(message(&both), "tt-metal's header ttnn/operations/trace.hpp is in none of /nowhere, /no");
    assert!(message(&[("TT_METAL_HOME", "/nowhere")]).contains("build tt-metal there first"));
}

#[test]
fn without_variables_the_package_is_looked_for() {
    assert!(matches!(look(&[]).unwrap(), Installation::Package));
    assert!(matches!(look(&[("TT_METAL_HOME", "")]).unwrap(), Installation::Package));
}

#[test]
fn a_build_without_tt_metal_fails_with_one_sentence() {
    // A CMake that finds nothing, whatever is installed.
    let Some(text) = what_a_failing_build_says(&[("CMAKE", "false")]) else { return };
    assert!(text.contains(&locate::not_found("which CMake does not know")), "{text}");
}

/// A package laid out as tt-metal installs it, whose headers do nothing but name themselves; nothing without a CMake.
fn package(version: &str, config: &str) -> Option<TempDir> {
    if Command::new("cmake").arg("--version").output().is_err() {
        println!("skipped: there is no cmake");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("lib/cmake/tt-nn");
    write(&place.join("tt-nn-config.cmake"), config);
    let version = format!("set(PACKAGE_VERSION {version})\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n");
    write(&place.join("tt-nn-config-version.cmake"), &version);
    let header = dir.path().join("include/tt-metalium/distributed.hpp");
    write(&header, "#error \"the header of the installed package\"\n");
    Some(dir)
}

fn what_a_build_with_says(package: &TempDir) -> Option<String> {
    what_a_failing_build_says(&[("CMAKE_PREFIX_PATH", package.path().to_str().unwrap())])
}

#[test]
fn a_package_is_found_and_compiled_against() {
    let config = "add_library(TTNN::TTNN SHARED IMPORTED)\n\
                  get_filename_component(PREFIX ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)\n\
                  set_target_properties(TTNN::TTNN PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${PREFIX}/include \
                  IMPORTED_LOCATION ${PREFIX}/lib/_ttnncpp.so)\n";
    let Some(package) = package("0.73.1", config) else { return };
    let Some(text) = what_a_build_with_says(&package) else { return };
    assert!(text.contains("the header of the installed package"), "{text}");
}

#[test]
fn a_package_with_another_api_is_refused_before_anything_is_compiled() {
    let Some(package) = package("0.74.0", "") else { return };
    let Some(text) = what_a_build_with_says(&package) else { return };
    assert!(text.contains("tt-metal 0.74.0 was found, wanted 0.71.0 or later, before 0.74.0"), "{text}");
}

#[test]
fn what_a_package_misses_is_named() {
    let config =
        "include(CMakeFindDependencyMacro)\nfind_dependency(xtensor-of-another-name CONFIG REQUIRED)\n";
    let Some(package) = package("0.73.1", config) else { return };
    let Some(text) = what_a_build_with_says(&package) else { return };
    assert!(text.contains("it needs xtensor-of-another-name, which CMake does not know"), "{text}");
}

/// Nothing where the crates for such a build are not there.
fn what_a_failing_build_says(variables: &[(&str, &str)]) -> Option<String> {
    let mut cargo = Command::new(env!("CARGO"));
    for variable in locate::VARIABLES {
        cargo.env_remove(variable);
    }
    cargo
        .args(["build", "--offline", "--locked", "-p", "tt-sys", "--features", "metal"])
        .arg("--target-dir")
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("without-tt-metal"))
        .envs(variables.iter().copied())
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if text.contains("--offline was specified") {
        println!("skipped: the crates of the feature `metal` were never downloaded");
        return None;
    }
    assert!(!output.status.success());
    Some(text)
}
