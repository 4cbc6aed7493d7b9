//! Text of others, clients above all, in messages: one line, and not long. Keys are checked where they are read, so that whatever repeats one,
//! a log line or an answer, need not care.

use gr00t_host::OneLine;

/// Longest key; the longest in use has 41 bytes.
const MAX_KEY_BYTES: usize = 128;
/// What of a longer text is shown.
const SHOWN_CHARS: usize = 64;

/// The start of `text`, its control characters escaped.
pub(crate) fn shown(text: &str) -> String {
    cut(text, SHOWN_CHARS)
}

/// The first `most` characters of `text`, those that control escaped, and whether there is more.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let start: String = text.chars().take(most).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{}{more}", OneLine(start))
}

/// Refuses keys that no observation has and no line can show.
pub(crate) fn check_key(key: &str) -> Result<(), String> {
    if key.len() <= MAX_KEY_BYTES && !key.chars().any(char::is_control) {
        return Ok(());
    }
    let got = key.len();
    Err(format!(
        "key {} of {got} bytes, wanted at most {MAX_KEY_BYTES} and no control characters",
        shown(key)
    ))
}

#[cfg(test)]
mod tests {
    use super::{check_key, shown};

    #[test]
    fn what_is_shown_is_short_and_one_line() {
        assert_eq!(shown("left_arm"), "left_arm");
        assert_eq!(shown("a\nb\x1b[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(shown(&"é".repeat(100)), format!("{}…", "é".repeat(64)));
    }

    #[test]
    fn keys_are_short_and_one_line() {
        assert_eq!(check_key("annotation.human.action.task_description"), Ok(()));
        for key in ["a\nb", "\x1b[31m", "\0", &"x".repeat(129)] {
            assert!(check_key(key).is_err_and(|what| !what.contains('\n') && what.len() < 200), "{key:?}");
        }
    }
}
