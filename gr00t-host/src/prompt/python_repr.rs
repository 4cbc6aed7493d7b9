//! Python's `repr` of a string, and of a list of one string: how upstream's policy prints an instruction.

use super::printable::is_printable;

/// CPython's `repr(text)`: quoted with `'`, or with `"` where that saves escaping; backslash, the quote and
/// unprintable characters escaped; other Unicode kept.
///
/// ```
/// use gr00t_host::prompt::python_repr;
/// assert_eq!(python_repr("don't"), "\"don't\"");
/// assert_eq!(python_repr("a\tb\u{a0}"), r"'a\tb\xa0'");
/// ```
pub fn python_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut repr = String::with_capacity(text.len() + 2);
    repr.push(quote);
    for character in text.chars() {
        push_escaped(&mut repr, character, quote);
    }
    repr.push(quote);
    repr
}

/// `str(numpy.array([text]))`: `['…']` with `repr` inside. numpy's fixed-width strings drop trailing NULs; in
/// everything else this is `str([text])`.
pub(super) fn python_list(text: &str) -> String {
    format!("[{}]", python_repr(text.trim_end_matches('\0')))
}

fn push_escaped(repr: &mut String, character: char, quote: char) {
    let code = u32::from(character);
    match character {
        '\n' => repr.push_str("\\n"),
        '\r' => repr.push_str("\\r"),
        '\t' => repr.push_str("\\t"),
        '\\' => repr.push_str("\\\\"),
        _ if character == quote => repr.extend(['\\', quote]),
        _ if is_printable(character) => repr.push(character),
        _ => {
            let (letter, digits) = match code {
                ..=0xff => ('x', format!("{code:02x}")),
                0x100..=0xffff => ('u', format!("{code:04x}")),
                _ => ('U', format!("{code:08x}")),
            };
            repr.extend(['\\', letter]);
            repr.push_str(&digits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{python_list, python_repr};
    use crate::prompt::printable::is_printable;

    /// FNV-1a, so that a million strings compare as one number.
    fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
        bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
    }

    #[test]
    fn repr_of_every_character_equals_cpythons() {
        // Both figures from CPython 3.11.7 over chr(0)..chr(0x10ffff) without surrogates.
        let printable = ('\0'..=char::MAX).filter(|c| is_printable(*c)).count();
        let hash = ('\0'..=char::MAX).fold(0xcbf2_9ce4_8422_2325, |hash, c| {
            fnv1a(hash, python_repr(c.encode_utf8(&mut [0; 4])).as_bytes())
        });
        assert_eq!((printable, hash), (144_516, 0xc36a_04a7_e8a4_89eb));
    }

    #[test]
    fn quotes_are_chosen_as_python_does() {
        assert_eq!(python_repr("plain"), "'plain'");
        assert_eq!(python_repr("it's"), "\"it's\"");
        assert_eq!(python_repr("say \"hi\""), "'say \"hi\"'");
        assert_eq!(python_repr("it's \"so\""), "'it\\'s \"so\"'");
        assert_eq!(python_repr(r"back\slash"), r"'back\\slash'");
    }

    #[test]
    fn list_drops_trailing_nuls_and_keeps_inner_ones() {
        assert_eq!(python_list("a\0b\0\0"), r"['a\x00b']");
        assert_eq!(python_list(""), "['']");
    }
}
