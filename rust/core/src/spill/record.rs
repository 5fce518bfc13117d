//! A message as bytes in a file: a header of 16 bytes, then each part after its length.
//!
//! The header has the number of bytes after it (8), their CRC-32C with the number of parts (4), and the number of parts
//! (4), all little-endian.

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
    /// No record.
    Damaged,
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
    let parts = u32::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut crc = crc32c::crc32c(&parts.to_le_bytes());
    for frame in message.iter() {
        crc = crc32c::crc32c_append(crc, &(frame.len() as u64).to_le_bytes());
        crc = crc32c::crc32c_append(crc, frame);
    }
    buffer.clear();
    buffer.extend((size - HEADER as u64).to_le_bytes());
    buffer.extend(crc.to_le_bytes());
    buffer.extend(parts.to_le_bytes());
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
    let length = u64_at(header, 0);
    let crc = u32_at(header, 8);
    let parts = u32_at(header, 12);
    let Some(total) = length.checked_add(HEADER as u64) else {
        return Found::Damaged;
    };
    if parts == 0 || u64::from(parts) > length / 8 {
        return Found::Damaged;
    }
    let body = usize::try_from(length)
        .ok()
        .and_then(|length| rest.get(..length));
    let Some(mut body) = body else {
        return Found::Short(total);
    };
    if crc32c::crc32c_append(crc32c::crc32c(&parts.to_le_bytes()), body) != crc {
        return Found::Damaged;
    }
    let mut frames = Vec::with_capacity(parts as usize);
    while let Some((length, after)) = body.split_at_checked(8) {
        let length = usize::try_from(u64_at(length, 0)).unwrap_or(usize::MAX);
        let Some((frame, after)) = after.split_at_checked(length) else {
            return Found::Damaged;
        };
        frames.push(Frame::copy_from(frame));
        body = after;
    }
    if !body.is_empty() || frames.len() != parts as usize {
        return Found::Damaged;
    }
    Found::Message(Message::from_vec(frames), HEADER + length as usize)
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
