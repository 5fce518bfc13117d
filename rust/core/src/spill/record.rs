//! A message as bytes in a file: a header of 16 bytes, then each part after its length.
//!
//! The header has the number of bytes after it (8), their CRC-32C (4), and the CRC-32C of the 12 bytes before (4), all
//! little-endian. Its own checksum tells a damaged length from that of a message that was not written to the end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

pub(super) const HEADER: usize = 16;

/// Messages up to this size are written with one system call. The parts of larger ones are not copied.
const WHOLE_MAX: usize = 64 << 10;

/// The finding where a record is expected.
#[derive(Debug)]
pub(super) enum Found {
    /// A message, and the size of its record.
    Message(Message, usize),
    /// More bytes are needed: this many from the start of the record.
    Short(u64),
    /// The checksum of the header is not that of its bytes.
    NoHeader,
    /// A header of a record of this size, and other bytes than those of a message.
    Damaged(u64),
}

/// The size of a message on disk.
pub(crate) fn size_of(message: &Message) -> u64 {
    (HEADER + 8 * message.len() + message.size()) as u64
}

/// Writes a message at this position, using `buffer`. Returns its size.
pub(super) fn write(
    file: &File,
    at: u64,
    message: &Message,
    buffer: &mut Vec<u8>,
) -> io::Result<u64> {
    let size = size_of(message);
    let mut crc = 0;
    for frame in message.iter() {
        crc = crc32c::crc32c_append(crc, &(frame.len() as u64).to_le_bytes());
        crc = crc32c::crc32c_append(crc, frame);
    }
    buffer.clear();
    buffer.extend((size - HEADER as u64).to_le_bytes());
    buffer.extend(crc.to_le_bytes());
    let crc = crc32c::crc32c(buffer);
    buffer.extend(crc.to_le_bytes());
    let mut at = at;
    for frame in message.iter() {
        buffer.extend((frame.len() as u64).to_le_bytes());
        if buffer.len() + frame.len() <= WHOLE_MAX {
            buffer.extend_from_slice(frame);
            continue;
        }
        file.write_all_at(buffer, at)?;
        at += buffer.len() as u64;
        buffer.clear();
        file.write_all_at(frame, at)?;
        at += frame.len() as u64;
    }
    file.write_all_at(buffer, at)?;
    Ok(size)
}

/// Reads the record at the start of these bytes.
pub(super) fn read(bytes: &[u8]) -> Found {
    let Some((header, rest)) = bytes.split_at_checked(HEADER) else {
        return Found::Short(HEADER as u64);
    };
    if crc32c::crc32c(&header[..12]) != u32_at(header, 12) {
        return Found::NoHeader;
    }
    let length = u64_at(header, 0);
    let size = length.saturating_add(HEADER as u64);
    let body = usize::try_from(length)
        .ok()
        .and_then(|length| rest.get(..length));
    let Some(body) = body else {
        return Found::Short(size);
    };
    let frames = match crc32c::crc32c(body) == u32_at(header, 8) {
        true => frames(body),
        false => None,
    };
    match frames {
        Some(frames) => Found::Message(Message::from_vec(frames), HEADER + body.len()),
        None => Found::Damaged(size),
    }
}

/// The parts of a message.
fn frames(mut body: &[u8]) -> Option<Vec<Frame>> {
    let mut frames = Vec::new();
    while let Some((length, after)) = body.split_at_checked(8) {
        let length = usize::try_from(u64_at(length, 0)).ok()?;
        let (frame, after) = after.split_at_checked(length)?;
        frames.push(Frame::copy_from(frame));
        body = after;
    }
    (body.is_empty() && !frames.is_empty()).then_some(frames)
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read_up_to(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], at + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}
