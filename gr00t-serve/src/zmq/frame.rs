//! ZMTP frames: bytes → messages and commands. No sockets.
//!
//! ```text
//! flags (1 MORE, 2 LONG, 4 COMMAND) | length, 1 byte or 8 big-endian | body
//! ```

use bytes::{Buf, Bytes, BytesMut};

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;
/// Longest command; READY with all its metadata is below a kilobyte.
const MAX_COMMAND_BYTES: u64 = 1 << 12;
/// Most frames of a message, its envelope included.
pub(super) const MAX_FRAMES: usize = 16;
/// Longest body with a one-byte length.
const MAX_SHORT: usize = 255;

/// What a peer sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// All frames of a message.
    Message(Vec<Bytes>),
    /// A command's body.
    Command(Bytes),
    /// A message beyond the limit: its frames so far, and the size that it declared. The rest of it is thrown away as it
    /// comes.
    TooLarge(Vec<Bytes>, u64),
    /// A message of too many frames, likewise.
    TooManyFrames(Vec<Bytes>),
}

/// Bytes that are not ZMTP; the connection is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("zmtp: {0}")]
pub struct ZmtpError(pub(super) String);

/// Cuts a stream into events.
#[derive(Debug)]
pub struct Decoder {
    max_message_bytes: usize,
    frames: Vec<Bytes>,
    bytes: usize,
    /// The message is too large and has been reported; its frames are thrown away.
    discarding: bool,
    /// Bytes of the frame being thrown away that are still to come, and whether it is the message's last.
    skip: Option<(u64, bool)>,
}

impl Decoder {
    /// A decoder that keeps messages of up to `max_message_bytes`.
    pub fn new(max_message_bytes: usize) -> Self {
        Self { max_message_bytes, frames: Vec::new(), bytes: 0, discarding: false, skip: None }
    }

    /// Whether the stream is between two messages, given what is buffered.
    pub fn is_idle(&self, buffered: &BytesMut) -> bool {
        buffered.is_empty() && self.frames.is_empty() && !self.discarding
    }

    /// Bytes that are kept of the message on its way, given what is buffered.
    pub fn bytes_kept(&self, buffered: &BytesMut) -> usize {
        self.bytes.saturating_add(buffered.len())
    }

    /// The next event that `buffer` holds in full; what is used is taken off it.
    ///
    /// # Errors
    /// [`ZmtpError`] for flags that don't exist and commands that are too long or in parts.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Event>, ZmtpError> {
        loop {
            if let Some((left, last)) = self.skip {
                let taken = left.min(buffer.len() as u64);
                buffer.advance(taken as usize);
                if taken < left {
                    self.skip = Some((left - taken, last));
                    return Ok(None);
                }
                self.skip = None;
                self.discarding = !last;
            }
            let Some(header) = Header::read(buffer)? else { return Ok(None) };
            if !header.command
                && let Some(event) = self.refuse(&header, buffer)
            {
                return Ok(Some(event));
            }
            if self.skip.is_some() {
                continue;
            }
            let end = (header.bytes as u64).saturating_add(header.length);
            if (buffer.len() as u64) < end {
                return Ok(None);
            }
            buffer.advance(header.bytes);
            let body = buffer.split_to(header.length as usize).freeze();
            if header.command {
                return Ok(Some(Event::Command(body)));
            }
            self.bytes += body.len();
            self.frames.push(body);
            if !header.more {
                self.bytes = 0;
                return Ok(Some(Event::Message(std::mem::take(&mut self.frames))));
            }
        }
    }

    /// Starts throwing a frame away if it is of a message that is too large; the first such frame is an event.
    fn refuse(&mut self, header: &Header, buffer: &mut BytesMut) -> Option<Event> {
        let total = (self.bytes as u64).saturating_add(header.length);
        let too_large = total > self.max_message_bytes as u64;
        if !self.discarding && !too_large && self.frames.len() < MAX_FRAMES {
            return None;
        }
        buffer.advance(header.bytes);
        self.skip = Some((header.length, !header.more));
        if self.discarding {
            return None;
        }
        self.discarding = true;
        self.bytes = 0;
        let frames = std::mem::take(&mut self.frames);
        Some(if too_large { Event::TooLarge(frames, total) } else { Event::TooManyFrames(frames) })
    }
}

struct Header {
    more: bool,
    command: bool,
    length: u64,
    /// Its own length.
    bytes: usize,
}

impl Header {
    fn read(buffer: &BytesMut) -> Result<Option<Self>, ZmtpError> {
        let Some((&flags, rest)) = buffer.split_first() else { return Ok(None) };
        if flags & !(MORE | LONG | COMMAND) != 0 {
            return Err(ZmtpError(format!("frame flags {flags:#04x}, wanted 0 to 7")));
        }
        let (length, bytes) = if flags & LONG == 0 {
            let Some(&length) = rest.first() else { return Ok(None) };
            (u64::from(length), 2)
        } else {
            let Some(length) = rest.first_chunk() else { return Ok(None) };
            (u64::from_be_bytes(*length), 9)
        };
        let header = Self { more: flags & MORE != 0, command: flags & COMMAND != 0, length, bytes };
        if header.command && (header.more || length > MAX_COMMAND_BYTES) {
            return Err(ZmtpError(format!(
                "command of {length} bytes{}, wanted one frame of at most {MAX_COMMAND_BYTES}",
                if header.more { " and more" } else { "" }
            )));
        }
        Ok(Some(header))
    }
}

/// Appends one frame of a message.
pub(super) fn write_frame(out: &mut Vec<u8>, body: &[u8], more: bool) {
    write(out, body, if more { MORE } else { 0 });
}

/// Appends a command.
pub(super) fn write_command(out: &mut Vec<u8>, body: &[u8]) {
    write(out, body, COMMAND);
}

fn write(out: &mut Vec<u8>, body: &[u8], flags: u8) {
    if body.len() <= MAX_SHORT {
        out.extend_from_slice(&[flags, body.len() as u8]);
    } else {
        out.push(flags | LONG);
        out.extend_from_slice(&(body.len() as u64).to_be_bytes());
    }
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn all(bytes: &[u8], chunk: usize, limit: usize) -> Vec<Event> {
        let mut decoder = Decoder::new(limit);
        let mut buffer = BytesMut::new();
        let mut events = Vec::new();
        for piece in bytes.chunks(chunk) {
            buffer.extend_from_slice(piece);
            while let Some(event) = decoder.next(&mut buffer).unwrap() {
                events.push(event);
            }
        }
        assert!(decoder.is_idle(&buffer));
        events
    }

    fn request(body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, b"", true);
        write_frame(&mut bytes, body, false);
        bytes
    }

    #[test]
    fn the_stock_request_is_a_delimiter_and_a_body() {
        assert_eq!(request(b"hi"), [1, 0, 0, 2, b'h', b'i']);
        assert_eq!(request(&[7; 256])[2..11], [2, 0, 0, 0, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn messages_do_not_depend_on_how_the_bytes_arrive() {
        let mut bytes = request(&[7; 300]);
        write_command(&mut bytes, b"\x04PING\0\0");
        bytes.extend(request(b""));
        let whole = all(&bytes, bytes.len(), 1000);
        assert_eq!(whole.len(), 3);
        assert_eq!(whole[2], Event::Message(vec![Bytes::new(), Bytes::new()]));
        for chunk in [1, 2, 7, 100] {
            assert_eq!(all(&bytes, chunk, 1000), whole, "{chunk}");
        }
    }

    #[test]
    fn a_message_that_is_too_large_is_one_event_and_the_next_one_is_read() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, b"", true);
        write_frame(&mut bytes, &[1; 500], true);
        write_frame(&mut bytes, &[2; 500], false);
        bytes.extend(request(b"ok"));
        for chunk in [1, 64, 2000] {
            let events = all(&bytes, chunk, 100);
            assert_eq!(events[0], Event::TooLarge(vec![Bytes::new()], 500));
            assert_eq!(events[1..], [Event::Message(vec![Bytes::new(), Bytes::from_static(b"ok")])]);
        }
    }

    #[test]
    fn the_largest_declared_length_takes_no_memory() {
        let mut buffer = BytesMut::from(&b"\x01\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff"[..]);
        let mut decoder = Decoder::new(1 << 20);
        let event = decoder.next(&mut buffer).unwrap();
        assert_eq!(event, Some(Event::TooLarge(vec![Bytes::new()], u64::MAX)));
        assert_eq!(decoder.next(&mut buffer).unwrap(), None);
        assert!(!decoder.is_idle(&buffer));
    }

    #[test]
    fn too_many_frames_are_one_event() {
        let mut bytes = Vec::new();
        for _ in 0..40 {
            write_frame(&mut bytes, b"", true);
        }
        write_frame(&mut bytes, b"", false);
        assert_eq!(all(&bytes, 3, 100), [Event::TooManyFrames(vec![Bytes::new(); MAX_FRAMES])]);
    }

    #[test]
    fn unknown_flags_and_long_commands_are_errors() {
        for bytes in [&[8_u8, 0][..], &[0xff; 10], &[5, 1, 0], &[6, 0, 0, 0, 0, 0, 1, 0, 0]] {
            assert!(Decoder::new(100).next(&mut BytesMut::from(bytes)).is_err(), "{bytes:?}");
        }
    }
}
