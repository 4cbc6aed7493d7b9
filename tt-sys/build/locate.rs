//! Where tt-metal is: explicit directories, a source tree with a build, or an installed package, in this order.
//! Shared by the build script and its test.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Variables that decide what is found.
pub(crate) const VARIABLES: [&str; 5] =
    ["TT_METAL_INCLUDE_DIR", "TT_METAL_LIB_DIR", "TT_METAL_HOME", "TT_METAL_VERSION", "CMAKE_PREFIX_PATH"];

/// The library that holds TTNN's operations.
const TTNN: &str = "_ttnncpp.so";

/// Header directories of a source tree, below its root.
const TREE_INCLUDES: [&str; 10] = [
    "ttnn/api",
    "ttnn/cpp",
    "ttnn",
    "tt_metal/api",
    "tt_metal/hostdevcommon/api",
    "tt_stl",
    "tt_metal/third_party/umd/device/api",
    "tt_metal/third_party/tracy/public",
    "tt_metal",
    ".",
];

/// Third-party packages that the headers reach, and where in each the headers are.
const THIRD_PARTY: [(&str, &str); 6] = [
    ("fmt", "include"),
    ("spdlog", "include"),
    ("tt-logger", "include"),
    ("enchantum", "enchantum/include"),
    ("nlohmann_json", "include"),
    ("reflect", "."),
];

/// An installation of tt-metal.
pub(crate) enum Installation {
    /// Header directories and the directory of the libraries.
    Directories { includes: Vec<PathBuf>, libraries: PathBuf, version: Version },
    /// The CMake packages `TT-NN` and `TT-Metalium`, which CMake finds.
    Package,
}

/// `major.minor.patch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) [u32; 3]);

impl Version {
    /// What the C++ layer was compiled against and ran with.
    pub(crate) const TESTED: [Self; 3] = [Self([0, 71, 2]), Self([0, 72, 0]), Self([0, 73, 1])];
    /// From the first that has all operations to below the first in which `Tensor` is another class.
    pub(crate) const RANGE: [Self; 2] = [Self([0, 71, 0]), Self([0, 76, 0])];
    /// Of packages, for which the layer declares some functions itself, to below the first that has these otherwise.
    pub(crate) const PACKAGES: [Self; 2] = [Self([0, 71, 0]), Self([0, 74, 0])];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let numbers = text.trim().trim_start_matches('v').split('.').map(str::parse);
        let numbers: Vec<u32> = numbers.collect::<Result<_, _>>().ok()?;
        numbers.try_into().ok().map(Self)
    }

    /// As one number that a preprocessor can compare.
    pub(crate) fn number(self) -> u32 {
        self.0[0] * 10_000 + self.0[1] * 100 + self.0[2]
    }

    /// Refuses a version that is not in the range.
    pub(crate) fn check(self, [first, end]: [Self; 2]) -> Result<(), String> {
        if (first..end).contains(&self) {
            return Ok(());
        }
        Err(format!("tt-metal {self} was found, wanted {first} or later, before {end}"))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// Looks for tt-metal as the environment says, which `variable` reads.
///
/// # Errors
/// One sentence that says what was looked for.
pub(crate) fn installation(variable: impl Fn(&str) -> Option<String>) -> Result<Installation, String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    match (set("TT_METAL_INCLUDE_DIR"), set("TT_METAL_LIB_DIR")) {
        (Some(includes), Some(libraries)) => {
            let includes = env::split_paths(&includes).collect();
            return directories(includes, PathBuf::from(libraries), set("TT_METAL_VERSION"));
        }
        (None, None) => {}
        _ => {
            return Err(
                "TT_METAL_INCLUDE_DIR and TT_METAL_LIB_DIR belong together, but only one is set".into()
            );
        }
    }
    if let Some(home) = set("TT_METAL_HOME") {
        let home = PathBuf::from(home);
        return directories(tree_includes(&home)?, home.join("build/lib"), set("TT_METAL_VERSION"));
    }
    Ok(Installation::Package)
}

/// Header directories of a source tree that was built with its own script.
fn tree_includes(home: &Path) -> Result<Vec<PathBuf>, String> {
    let mut includes: Vec<PathBuf> = TREE_INCLUDES.iter().map(|dir| home.join(dir)).collect();
    let record = fs::read_to_string(home.join("build/CMakeCache.txt")).unwrap_or_default();
    for (package, headers) in THIRD_PARTY {
        let sources = match built_with(&record, package) {
            Some(source) => vec![source],
            None => downloaded(home, package)?,
        };
        includes.extend(sources.iter().map(|source| source.join(headers)));
    }
    Ok(includes)
}

/// Where the build's record says that `package` was: perhaps outside of the tree, and one of several versions.
fn built_with(record: &str, package: &str) -> Option<PathBuf> {
    let entry = format!("CPM_PACKAGE_{package}_SOURCE_DIR:INTERNAL=");
    let source = PathBuf::from(record.lines().find_map(|line| line.strip_prefix(&entry))?);
    source.is_dir().then_some(source)
}

/// Where CPM keeps `package` unless told otherwise: a directory for each version that was ever built with.
fn downloaded(home: &Path, package: &str) -> Result<Vec<PathBuf>, String> {
    let cache = home.join(".cpmcache").join(package);
    let entries = fs::read_dir(&cache).map_err(|_| {
        format!(
            "TT_METAL_HOME is {}, but there is no {}: build tt-metal there first",
            home.display(),
            cache.display()
        )
    })?;
    let mut sources: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    sources.sort();
    Ok(sources)
}

/// The sentence for an environment in which tt-metal is nowhere; `probe` is what became of the look for its package.
pub(crate) fn not_found(probe: &str) -> String {
    format!(
        "tt-metal was not found: looked for TT_METAL_INCLUDE_DIR with TT_METAL_LIB_DIR, for TT_METAL_HOME, and for the \
         CMake package TT-NN ({probe}); install tt-metal, or build without the feature `metal` to use the software \
         device"
    )
}

/// Checks that headers and libraries are where they should be.
fn directories(
    includes: Vec<PathBuf>,
    libraries: PathBuf,
    version: Option<String>,
) -> Result<Installation, String> {
    const HEADER: &str = "ttnn/operations/trace.hpp";
    if !includes.iter().any(|dir| dir.join(HEADER).is_file()) {
        let dirs: Vec<String> = includes.iter().map(|dir| dir.display().to_string()).collect();
        return Err(format!("tt-metal's header {HEADER} is in none of {}", dirs.join(", ")));
    }
    if !libraries.join(TTNN).is_file() {
        return Err(format!("tt-metal's library {TTNN} is not in {}", libraries.display()));
    }
    let version = version_of(&libraries, version)?;
    version.check(Version::RANGE)?;
    Ok(Installation::Directories { includes, libraries, version })
}

/// The version that the user says (`TT_METAL_VERSION`), or else the libraries in their names.
fn version_of(libraries: &Path, said: Option<String>) -> Result<Version, String> {
    if let Some(text) = said {
        return Version::parse(&text)
            .ok_or_else(|| format!("TT_METAL_VERSION is {text:?}, wanted like 0.73.1"));
    }
    let entries = fs::read_dir(libraries).map_err(|e| format!("{}: {e}", libraries.display()))?;
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .find_map(|name| Version::parse(name.strip_prefix("libtt-umd.so.")?))
        .ok_or_else(|| {
            let libraries = libraries.display();
            format!(
                "no library in {libraries} says tt-metal's version (libtt-umd.so.x.y.z); set TT_METAL_VERSION"
            )
        })
}
