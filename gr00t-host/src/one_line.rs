//! Text of foreign origin on one line: keys, names and paths may hold line ends and terminal sequences, and a message
//! that repeats them must neither break a log nor drive a terminal.

use std::fmt::{self, Write};

/// Shows `T` with its control characters escaped as in Rust's string literals.
///
/// ```
/// use gr00t_host::OneLine;
/// assert_eq!(OneLine("left\narm, größer").to_string(), "left\\narm, größer");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OneLine<T>(pub T);

impl<T: fmt::Display> fmt::Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(char::is_control) {
            let Some((last, control)) = part.char_indices().next_back().filter(|(_, c)| c.is_control())
            else {
                self.0.write_str(part)?;
                continue;
            };
            self.0.write_str(part.get(..last).unwrap_or_default())?;
            write!(self.0, "{}", control.escape_default())?;
        }
        Ok(())
    }
}
