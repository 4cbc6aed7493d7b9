//! The head of the HTTP request that opens a WebSocket, read before the handshake so that `GET /healthz` can be told apart.

use gr00t_host::OneLine;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_tungstenite::tungstenite::Error as WsError;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::machine::TryParse;
use tokio_tungstenite::tungstenite::handshake::server::{Request, create_response};

/// Longest head that is read.
const MAX_HEAD_BYTES: usize = 16 << 10;
const END: &[u8] = b"\r\n\r\n";

/// Reads until the head is complete; what came after it is kept too. `None` if it is longer than 16 KiB.
///
/// # Errors
/// If the client leaves before its end.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    while !head.windows(END.len()).any(|window| window == END) {
        if head.len() > MAX_HEAD_BYTES {
            return Ok(None);
        }
        if stream.read_buf(&mut head).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Some(head))
}

/// The path of a GET request, without its query.
pub(super) fn path(head: &[u8]) -> Option<&str> {
    let line = head.split(|&byte| byte == b'\r').next()?;
    let target = std::str::from_utf8(line).ok()?.strip_prefix("GET ")?.split(' ').next()?;
    target.split('?').next()
}

/// The answer to a head that opens no WebSocket; `None` if it does.
pub(super) fn refusal(head: &[u8]) -> Option<Vec<u8>> {
    let request = match Request::try_parse(head) {
        Ok(Some((_, request))) => request,
        Err(WsError::Protocol(ProtocolError::WrongHttpMethod)) => {
            return Some(answer_with("405 Method Not Allowed", "allow: GET\r\n", "wanted GET\n"));
        }
        Ok(None) => return Some(answer("400 Bad Request", "no request head\n")),
        Err(error) => return Some(answer("400 Bad Request", &format!("{}\n", OneLine(error)))),
    };
    let error = create_response(&request).err()?;
    let what = format!("{}\n", OneLine(&error));
    Some(match error {
        WsError::Protocol(
            ProtocolError::MissingConnectionUpgradeHeader
            | ProtocolError::MissingUpgradeWebSocketHeader
            | ProtocolError::MissingSecWebSocketVersionHeader,
        ) => {
            answer_with("426 Upgrade Required", "upgrade: websocket\r\nsec-websocket-version: 13\r\n", &what)
        }
        _ => answer("400 Bad Request", &what),
    })
}

/// A whole answer without a WebSocket.
pub(super) fn answer(status: &str, body: &str) -> Vec<u8> {
    answer_with(status, "", body)
}

fn answer_with(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
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
        assert!(read(&mut whole).await.unwrap().unwrap().ends_with(b"\x82\x01"));
        let mut half = &b"GET / HTTP/1.1\r\n"[..];
        assert!(read(&mut half).await.is_err());
        let long = vec![b'a'; 1 << 20];
        assert!(read(&mut &long[..]).await.unwrap().is_none());
    }

    #[test]
    fn what_opens_no_websocket_is_answered_in_http() {
        let whole = "GET / HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\
                     sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        assert_eq!(refusal(whole.as_bytes()), None);
        for (from, to, status) in [
            ("GET", "POST", "405 "),
            ("version: 13", "version: 8", "426 "),
            ("upgrade: websocket", "upgrade: h2c", "426 "),
            ("keep-alive, Upgrade", "keep-alive", "426 "),
            ("sec-websocket-key", "sec-websocket-kez", "400 "),
            ("HTTP/1.1", "HTTP/1.0", "400 "),
            ("GET / HTTP/1.1", "\u{fffd}", "400 "),
        ] {
            let answer = String::from_utf8(refusal(whole.replace(from, to).as_bytes()).unwrap()).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{to}: {answer}");
        }
    }
}
