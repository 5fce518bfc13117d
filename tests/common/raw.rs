//! A peer on a plain TCP connection, which can send anything.

use std::io::{Read, Result, Write};
use std::net::TcpStream;

/// Flags of a ZMTP frame.
pub const MORE: u8 = 1;
/// Eight bytes of length follow instead of one.
pub const LONG: u8 = 2;
/// A command instead of a part of a message.
pub const COMMAND: u8 = 4;

/// The greeting of a ZMTP 3.1 peer without security.
pub fn greeting() -> [u8; 64] {
    let mut greeting = [0; 64];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[10..12].copy_from_slice(&[3, 1]);
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

/// The body of a READY command of a peer of this type.
pub fn ready(socket_type: &str) -> Vec<u8> {
    let mut body = b"\x05READY\x0bSocket-Type".to_vec();
    body.extend((socket_type.len() as u32).to_be_bytes());
    body.extend(socket_type.as_bytes());
    body
}

/// A frame: flags, length, body.
pub fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(body.len() + 9);
    match u8::try_from(body.len()) {
        Ok(short) => frame.extend([flags, short]),
        Err(_) => {
            frame.push(flags | LONG);
            frame.extend((body.len() as u64).to_be_bytes());
        }
    }
    frame.extend(body);
    frame
}

/// Connects to the endpoint of a socket and sends nothing.
pub fn dial(endpoint: &str) -> TcpStream {
    let stream = TcpStream::connect(super::address(endpoint)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Connects and shakes hands as a peer of this type.
pub fn join(endpoint: &str, socket_type: &str) -> TcpStream {
    let mut stream = dial(endpoint);
    stream.write_all(&greeting()).unwrap();
    stream
        .write_all(&frame(COMMAND, &ready(socket_type)))
        .unwrap();
    let mut theirs = [0; 64];
    stream.read_exact(&mut theirs).unwrap();
    assert_eq!((theirs[0], theirs[9]), (0xff, 0x7f));
    let (flags, body) = read_frame(&mut stream).unwrap();
    assert_eq!(flags, COMMAND);
    assert!(body.starts_with(b"\x05READY"), "{body:?}");
    stream
}

/// Reads a frame: its flags without the one for its length, and its body.
pub fn read_frame(stream: &mut TcpStream) -> Result<(u8, Vec<u8>)> {
    let mut flags = [0];
    stream.read_exact(&mut flags)?;
    let length = if flags[0] & LONG == 0 {
        let mut length = [0];
        stream.read_exact(&mut length)?;
        length[0].into()
    } else {
        let mut length = [0; 8];
        stream.read_exact(&mut length)?;
        u64::from_be_bytes(length)
    };
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body)?;
    Ok((flags[0] & !LONG, body))
}

/// Waits until the other side has closed the connection, and ignores what it sends before that.
pub fn wait_for_close(mut stream: &TcpStream) {
    let mut sink = [0; 4096];
    while stream.read(&mut sink).is_ok_and(|n| n > 0) {}
}

/// Numbers that are the same in every run.
pub struct Random(u64);

impl Random {
    /// The numbers that follow from a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next one, below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    /// Returns `count` random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}
