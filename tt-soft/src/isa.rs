//! Instruction set levels of the kernels: which there are, which this CPU has, which one is asked for.

use crate::error::{Error, Result};

/// Environment variable that forces a level: `portable`, `avx2`, `avx512` or `amx`.
pub const ISA_VARIABLE: &str = "GR00T_SOFT_ISA";

/// An instruction set level. Each one includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Plain Rust, vectorised by the compiler for the target's baseline.
    Portable,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512 F, BW, DQ and VL, with `vdpbf16ps` where it is the faster way.
    Avx512,
    /// AMX bf16 tiles for matmul, AVX-512 for the rest.
    Amx,
}

impl Isa {
    /// All levels that kernels exist for, lowest first.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Avx2, Self::Avx512, Self::Amx];

    /// The name that [`ISA_VARIABLE`] takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Amx => "amx",
        }
    }

    /// Does this CPU (and, for AMX, this kernel) have the level, and are there kernels for it?
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Amx => Self::Avx512.is_available() && crate::kernels::amx::is_available(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The levels that this CPU has, lowest first. Never empty.
    #[must_use]
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_available()).collect()
    }

    /// The highest level that this CPU has.
    #[must_use]
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|isa| isa.is_available()).unwrap_or(Self::Portable)
    }

    /// The level that [`ISA_VARIABLE`] asks for, the detected one if it is unset or empty.
    ///
    /// # Errors
    /// A level that is misspelt or that this CPU lacks; the message names those that there are.
    pub fn from_env() -> Result<Self> {
        match std::env::var(ISA_VARIABLE) {
            Ok(text) if !text.is_empty() => Self::parse(&text),
            Ok(_) | Err(std::env::VarError::NotPresent) => Ok(Self::detect()),
            Err(std::env::VarError::NotUnicode(text)) => Self::parse(&text.to_string_lossy()),
        }
    }

    /// The level of that name, if this CPU has it.
    ///
    /// # Errors
    /// As [`Isa::from_env`].
    pub fn parse(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|isa| isa.name() == text && isa.is_available()).ok_or_else(|| {
            Error::Environment {
                variable: ISA_VARIABLE,
                got: text.to_owned(),
                wanted: format!("one of {}", Self::available_names()),
            }
        })
    }

    pub(crate) fn available_names() -> String {
        Self::available().iter().map(|isa| isa.name()).collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Display for Isa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detected_level_is_the_last_available() {
        let available = Isa::available();
        assert_eq!(available.first(), Some(&Isa::Portable));
        assert_eq!(available.last(), Some(&Isa::detect()));
        assert!(available.is_sorted());
    }

    #[test]
    fn a_misspelt_level_is_an_error_that_names_what_there_is() {
        let message = Isa::parse("avx-512").unwrap_err().to_string();
        assert!(message.contains("avx-512") && message.contains("portable"), "{message}");
    }

    #[test]
    fn a_level_that_the_cpu_lacks_is_an_error() {
        for isa in Isa::ALL {
            assert_eq!(Isa::parse(isa.name()).is_ok(), isa.is_available(), "{isa}");
        }
    }
}
