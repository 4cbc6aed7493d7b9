//! The start of a ZMTP connection: greetings, then READY commands. Source: ZeroMQ RFC 37, NULL mechanism.

use super::frame::{ZmtpError, write_command};

/// Bytes of a greeting.
pub(super) const GREETING_BYTES: usize = 64;
const MECHANISM: std::ops::Range<usize> = 12..32;
const MAJOR: usize = 10;
const MINOR: usize = 11;

/// Our greeting: version 3.1, NULL.
pub(super) fn ours() -> [u8; GREETING_BYTES] {
    let mut greeting = [0; GREETING_BYTES];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[MAJOR] = 3;
    greeting[MINOR] = 1;
    greeting[MECHANISM][..4].copy_from_slice(b"NULL");
    greeting
}

/// Checks a peer's greeting. Returns whether it answers PING, which came with version 3.1.
pub(super) fn check(greeting: &[u8; GREETING_BYTES]) -> Result<bool, ZmtpError> {
    if greeting[0] != 0xff || greeting[9] & 1 != 1 {
        return Err(ZmtpError("the peer does not speak ZeroMQ".into()));
    }
    if greeting[MAJOR] < 3 {
        return Err(ZmtpError(format!(
            "version {}.{}, wanted 3.0 or later",
            greeting[MAJOR], greeting[MINOR]
        )));
    }
    let mechanism = greeting[MECHANISM].split(|&b| b == 0).next().unwrap_or_default();
    if mechanism != b"NULL" {
        return Err(ZmtpError(format!("mechanism {:?}, wanted NULL", String::from_utf8_lossy(mechanism))));
    }
    Ok((greeting[MAJOR], greeting[MINOR]) >= (3, 1))
}

/// Our READY command, framed.
pub(super) fn ready() -> Vec<u8> {
    let mut body = b"\x05READY\x0bSocket-Type".to_vec();
    body.extend_from_slice(&3_u32.to_be_bytes());
    body.extend_from_slice(b"REP");
    let mut out = Vec::new();
    write_command(&mut out, &body);
    out
}

/// An ERROR command, framed: what a peer gets that cannot be served.
pub(super) fn error(reason: &str) -> Vec<u8> {
    let reason = &reason.as_bytes()[..reason.len().min(usize::from(u8::MAX))];
    let mut body = b"\x05ERROR".to_vec();
    body.push(reason.len() as u8);
    body.extend_from_slice(reason);
    let mut out = Vec::new();
    write_command(&mut out, &body);
    out
}

/// Checks that a command is READY of a socket that a REP socket can serve.
pub(super) fn check_ready(command: &[u8]) -> Result<(), ZmtpError> {
    let mut rest = command
        .strip_prefix(b"\x05READY")
        .ok_or_else(|| ZmtpError("the first command is not READY".into()))?;
    let cut = || ZmtpError("READY is cut short".into());
    while let Some((&length, after)) = rest.split_first() {
        let (name, after) = after.split_at_checked(length.into()).ok_or_else(cut)?;
        let (length, after) = after.split_first_chunk().ok_or_else(cut)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (value, after) = after.split_at_checked(length).ok_or_else(cut)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return match value {
                b"REQ" | b"DEALER" => Ok(()),
                other => Err(ZmtpError(format!(
                    "socket type {:?}, wanted REQ or DEALER",
                    String::from_utf8_lossy(other)
                ))),
            };
        }
        rest = after;
    }
    Err(ZmtpError("READY names no socket type".into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn the_stock_client_s_greeting_is_taken() {
        // pyzmq, libzmq 4.3.5
        let mut stock = [0; GREETING_BYTES];
        stock[..2].copy_from_slice(&[0xff, 0]);
        stock[8..16].copy_from_slice(b"\x01\x7f\x03\x01NULL");
        assert!(check(&stock).unwrap());
        assert!(check(&ours()).unwrap());
        stock[11] = 0;
        assert!(!check(&stock).unwrap());
    }

    #[test]
    fn other_protocols_versions_and_mechanisms_are_refused() {
        let mut http = [b' '; GREETING_BYTES];
        http[..5].copy_from_slice(b"GET /");
        assert!(check(&http).is_err());
        let mut old = ours();
        old[MAJOR] = 1;
        assert!(check(&old).unwrap_err().to_string().contains("version 1.1"));
        let mut curve = ours();
        curve[MECHANISM][..5].copy_from_slice(b"CURVE");
        assert!(check(&curve).unwrap_err().to_string().contains("CURVE"));
    }

    #[test]
    fn the_stock_client_s_ready_is_taken_and_ours_is_the_recorded_one() {
        let stock = b"\x05READY\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\0";
        assert_eq!(stock.len(), 38);
        check_ready(stock).unwrap();
        assert_eq!(ready(), b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REP".to_vec());
        let publisher = b"\x05READY\x0bsocket-type\0\0\0\x03SUB";
        assert!(check_ready(publisher).unwrap_err().to_string().contains("SUB"));
        for bad in [&b"\x05READY"[..], b"\x05READY\x0bSocket", b"\x05READY\x01a\xff\xff\xff\xff", b"\x04PING"]
        {
            assert!(check_ready(bad).is_err(), "{bad:?}");
        }
    }
}
