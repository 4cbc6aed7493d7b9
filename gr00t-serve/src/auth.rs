//! The bearer token that every protocol asks for where one is set.

use std::fmt;

use sha2::{Digest, Sha256};

/// A secret that clients must show. Never printed.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A token; white space around it is not part of it.
    ///
    /// # Errors
    /// The reason, if nothing is left or it holds characters that no HTTP header can carry.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("token is empty".into());
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("token has characters outside visible ASCII".into());
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether `shown` is the token. Takes the same time wherever they differ: digests are compared, all bytes of them.
    pub fn matches(&self, shown: &[u8]) -> bool {
        let (wanted, got) = (Sha256::digest(self.0.as_bytes()), Sha256::digest(shown));
        wanted.iter().zip(got.iter()).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    }

    /// Whether an `Authorization` header shows the token, as `Bearer` or, after openpi's clients, as `Api-Key`.
    pub fn matches_header(&self, header: &[u8]) -> bool {
        let shown = header.split(|byte| *byte == b' ').next().and_then(|scheme| {
            let known = scheme.eq_ignore_ascii_case(b"bearer") || scheme.eq_ignore_ascii_case(b"api-key");
            known.then(|| header.get(scheme.len()..).unwrap_or_default().trim_ascii())
        });
        shown.is_some_and(|shown| self.matches(shown))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::Token;

    #[test]
    fn only_the_whole_token_matches() {
        let token = Token::new(" s3cret\n").unwrap();
        assert!(token.matches(b"s3cret"));
        for wrong in [&b""[..], b"s3cre", b"s3crets", b"S3cret", b" s3cret", b"s3cret\0"] {
            assert!(!token.matches(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_header_needs_a_known_scheme() {
        let token = Token::new("s3cret").unwrap();
        for right in [&b"Bearer s3cret"[..], b"bearer  s3cret", b"Api-Key s3cret"] {
            assert!(token.matches_header(right), "{right:?}");
        }
        for wrong in [&b"s3cret"[..], b"Basic s3cret", b"Bearer", b"Bearer ", b"", b"Bearers3cret"] {
            assert!(!token.matches_header(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn what_no_header_can_carry_is_no_token() {
        for text in ["", "  ", "a b", "schlüssel", "a\nb"] {
            assert!(Token::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        assert!(!format!("{:?}", Token::new("s3cret").unwrap()).contains("s3cret"));
    }
}
