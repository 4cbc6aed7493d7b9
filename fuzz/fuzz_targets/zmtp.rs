//! ZeroMQ's frames, arriving in pieces: the first byte says how long pieces are. However they are cut, the messages are the same.
#![no_main]

use bytes::{Bytes, BytesMut};
use gr00t_serve::zmq::{Decoder, Event};
use libfuzzer_sys::fuzz_target;

/// Largest message that the decoder may keep.
const LIMIT: usize = 256;

fn messages(bytes: &[u8], piece: usize) -> Vec<Vec<Bytes>> {
    let mut decoder = Decoder::new(LIMIT);
    let mut buffer = BytesMut::new();
    let mut found = Vec::new();
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(Event::Message(frames))) => {
                    assert!(frames.iter().map(Bytes::len).sum::<usize>() <= LIMIT);
                    found.push(frames.iter().cloned().collect());
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return found,
            }
        }
    }
    found
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, stream)) = bytes.split_first() else { return };
    let piece = usize::from(*first).max(1);
    assert_eq!(messages(stream, piece), messages(stream, stream.len().max(1)));
});
