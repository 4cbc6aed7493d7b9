//! What tt-metal reports, without its noise.

use std::fmt;

/// An exception of tt-metal or TTNN.
///
/// `TT_FATAL` and `TT_THROW` throw several lines: kind and place in tt-metal's source, the condition, `info:` with the
/// message, and a backtrace. The message is what a caller can act on, so it is what is shown; all of it is in
/// [`debug`](Self::debug).
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    what: String,
    debug: String,
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error from the text of an exception.
    pub fn from_exception(text: &str) -> Self {
        Self { what: message(text), debug: text.to_string() }
    }

    /// Everything that tt-metal said, backtrace included.
    pub fn debug(&self) -> &str {
        &self.debug
    }
}

/// The message in one line: what follows `info:`, or else the first line without the place in the source.
fn message(text: &str) -> String {
    let before_trace = text.split("\nbacktrace:").next().unwrap_or_default();
    let told =
        before_trace.split_once("\ninfo:").map(|(_, info)| one_line(info)).filter(|info| !info.is_empty());
    told.unwrap_or_else(|| {
        let first =
            before_trace.lines().find(|line| !line.trim().is_empty()).unwrap_or("an exception without text");
        // `TT_FATAL @ file:line: condition`
        match first.split_once(" @ ").and_then(|(kind, place)| Some((kind, place.split_once(": ")?.1))) {
            Some((kind, condition)) if kind.starts_with("TT_") => one_line(condition),
            _ => one_line(first),
        }
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?})", self.what)
    }
}

impl std::error::Error for Error {}

#[cfg(feature = "metal")]
impl From<cxx::Exception> for Error {
    fn from(exception: cxx::Exception) -> Self {
        Self::from_exception(exception.what())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As tt-metal 0.73 writes it.
    const FATAL: &str = "TT_FATAL @ /src/ttnn/matmul.cpp:42: a_shape[-1] == b_shape[-2]\ninfo:\nThe width of the first \
                         tensor must be equal\nto the height of the second (128 != 64)\nbacktrace:\n --- f()\n --- g()";

    #[test]
    fn the_message_is_shown_in_one_line_and_the_rest_is_kept() {
        let error = Error::from_exception(FATAL);
        assert_eq!(
            error.to_string(),
            "The width of the first tensor must be equal to the height of the second (128 != 64)"
        );
        assert!(error.debug().ends_with("g()"));
        assert!(!format!("{error:?}").contains("backtrace"));
    }

    #[test]
    fn a_condition_stands_for_a_message_that_is_missing() {
        let error = Error::from_exception(
            "TT_THROW @ /src/device.cpp:7: device 3 is not there\nbacktrace:\n --- f()",
        );
        assert_eq!(error.to_string(), "device 3 is not there");
        assert_eq!(Error::from_exception("bad_alloc").to_string(), "bad_alloc");
        assert_eq!(Error::from_exception("").to_string(), "an exception without text");
    }
}
