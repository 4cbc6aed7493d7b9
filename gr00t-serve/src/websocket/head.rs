//! The head of the HTTP request that opens a WebSocket, read before the handshake so that `GET /healthz` can be told apart.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest head that is read.
const MAX_HEAD_BYTES: usize = 16 << 10;
const END: &[u8] = b"\r\n\r\n";

/// Reads until the head is complete; what came after it is kept too.
///
/// # Errors
/// If it is longer than 16 KiB or the client leaves before its end.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    use std::io::{Error, ErrorKind};

    let mut head = Vec::new();
    while !head.windows(END.len()).any(|window| window == END) {
        if head.len() > MAX_HEAD_BYTES {
            return Err(Error::new(
                ErrorKind::InvalidData,
                format!("request head is over {MAX_HEAD_BYTES} bytes"),
            ));
        }
        if stream.read_buf(&mut head).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head)
}

/// The path of a GET request, without its query.
pub(super) fn path(head: &[u8]) -> Option<&str> {
    let line = head.split(|&byte| byte == b'\r').next()?;
    let target = std::str::from_utf8(line).ok()?.strip_prefix("GET ")?.split(' ').next()?;
    target.split('?').next()
}

/// A whole answer without a WebSocket.
pub(super) fn answer(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn the_path_is_that_of_a_get() {
        assert_eq!(path(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), Some("/healthz"));
        assert_eq!(path(b"GET /?a=1 HTTP/1.1\r\n\r\n"), Some("/"));
        assert_eq!(path(b"POST / HTTP/1.1\r\n\r\n"), None);
        assert_eq!(path(b"\xff\xfe"), None);
    }

    #[tokio::test]
    async fn a_head_ends_with_an_empty_line_or_is_refused() {
        let mut whole = &b"GET / HTTP/1.1\r\n\r\n\x82\x01"[..];
        assert!(read(&mut whole).await.unwrap().ends_with(b"\x82\x01"));
        let mut half = &b"GET / HTTP/1.1\r\n"[..];
        assert!(read(&mut half).await.is_err());
        let long = vec![b'a'; 1 << 20];
        assert!(read(&mut &long[..]).await.is_err());
    }
}
