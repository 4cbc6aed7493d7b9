//! Lines on standard output that end quietly where nobody reads on, as in `cargo xtask verify … | head`.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stdout};

/// Exit status of a program that a closed pipe ended, as shells report it.
const CLOSED_PIPE: i32 = 128 + 13;

/// Prints one line; see [`say!`].
pub(crate) fn line(text: Arguments<'_>) {
    match writeln!(stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(CLOSED_PIPE),
        _ => {}
    }
}

/// `println!` that does not panic when standard output is closed.
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}
pub(crate) use say;
