//! The format of a file of staged rows.
//!
//! ```text
//! file    magic (8), length of the query's name (u16), the name, batch (u64), crc of all that (u32)
//! record  magic (4), crc of the rest (u32), length of the rows (u32), part (u32), partition (u32), attempt (u64), rows
//! ```
//!
//! A record without rows whose part is the greatest number says that the parts of its attempt before it were discarded.

use std::io;
use std::sync::Arc;

use zeroxide_log::disk::{File, FileExt};

use super::{BatchOf, StagedPart};
use crate::wire::{Attempt, NAME_MAX};

const FILE_MAGIC: [u8; 8] = *b"ZXSTAGE1";
pub(super) const RECORD_MAGIC: [u8; 4] = *b"ZXR1";
/// The length of the head of a file without the name.
const HEAD: u64 = 22;
/// The part of a record that discards its attempt.
const DISCARDED: u32 = u32::MAX;
/// The number of bytes that are rewritten at once.
const AT_ONCE: usize = 1 << 20;
/// The number of bytes of a record before its rows.
pub(super) const RECORD: usize = 28;

/// The header of a record, with the checksum of its rows.
pub(super) fn record((attempt, part): (Attempt, u32), rows: &[u8], length: u32) -> (Vec<u8>, u32) {
    let mut record = Vec::with_capacity(RECORD + rows.len());
    record.extend_from_slice(&RECORD_MAGIC);
    record.extend_from_slice(&[0; 4]);
    record.extend_from_slice(&length.to_le_bytes());
    record.extend_from_slice(&part.to_le_bytes());
    record.extend_from_slice(&attempt.partition.to_le_bytes());
    record.extend_from_slice(&attempt.attempt.to_le_bytes());
    let crc = crc32c::crc32c(rows);
    let whole = crc32c::crc32c_combine(crc32c::crc32c(&record[8..]), crc, rows.len());
    record[4..8].copy_from_slice(&whole.to_le_bytes());
    record.extend_from_slice(rows);
    (record, crc)
}

/// The record that discards the earlier parts of an attempt.
pub(super) fn discarding(attempt: Attempt) -> Vec<u8> {
    record((attempt, DISCARDED), &[], 0).0
}

/// The head of a file.
pub(super) fn head(of: &BatchOf) -> Vec<u8> {
    let mut head = FILE_MAGIC.to_vec();
    // Names on the wire are at most NAME_MAX bytes long.
    head.extend_from_slice(&(of.query.len() as u16).to_le_bytes());
    head.extend_from_slice(of.query.as_bytes());
    head.extend_from_slice(&of.batch.to_le_bytes());
    let crc = crc32c::crc32c(&head);
    head.extend_from_slice(&crc.to_le_bytes());
    head
}

/// Reads the batch to which a file belongs, and the position of its records.
pub(super) fn read_head(file: &File, length: u64) -> io::Result<Option<(BatchOf, u64)>> {
    let mut start = [0; 10];
    if length < 10 {
        return Ok(None);
    }
    file.read_exact_at(&mut start, 0)?;
    let name_length = usize::from(u16::from_le_bytes([start[8], start[9]]));
    let end = 10 + name_length + 12;
    if start[..8] != FILE_MAGIC || length < end as u64 {
        return Ok(None);
    }
    let mut head = vec![0; end];
    file.read_exact_at(&mut head, 0)?;
    let Some((checked, crc)) = head.split_last_chunk::<4>() else {
        return Ok(None);
    };
    if crc32c::crc32c(checked) != u32::from_le_bytes(*crc) {
        return Ok(None);
    }
    let Some((named, batch)) = checked.split_last_chunk::<8>() else {
        return Ok(None);
    };
    let Ok(query) = str::from_utf8(&named[10..]) else {
        return Ok(None);
    };
    let of = BatchOf {
        query: query.to_owned(),
        batch: u64::from_le_bytes(*batch),
    };
    Ok(Some((of, end as u64)))
}

/// The content of a record's place.
pub(super) enum Found {
    Part((Attempt, u32), StagedPart),
    /// The earlier parts of this attempt do not count.
    Discarded(Attempt),
    /// Its checksum is wrong.
    Damage,
}

/// Reads the record at `position` of a file of `end` bytes, and returns the position after it; None if none begins there
/// or it is not complete.
pub(super) fn read_record(
    file: &Arc<File>,
    position: u64,
    end: u64,
) -> io::Result<Option<(Found, u64)>> {
    if position + RECORD as u64 > end {
        return Ok(None);
    }
    let mut head = [0; RECORD];
    file.read_exact_at(&mut head, position)?;
    let u32_at =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = u32_at(8) as usize;
    let rows_at = position + RECORD as u64;
    if head[..4] != RECORD_MAGIC || rows_at + length as u64 > end {
        return Ok(None);
    }
    let mut rows = vec![0; length];
    file.read_exact_at(&mut rows, rows_at)?;
    let crc = crc32c::crc32c(&rows);
    let next = rows_at + length as u64;
    if crc32c::crc32c_combine(crc32c::crc32c(&head[8..]), crc, length) != u32_at(4) {
        return Ok(Some((Found::Damage, next)));
    }
    let attempt = Attempt {
        partition: u32_at(16),
        attempt: u64::from(u32_at(20)) | u64::from(u32_at(24)) << 32,
    };
    let number = u32_at(12);
    if number == DISCARDED && length == 0 {
        return Ok(Some((Found::Discarded(attempt), next)));
    }
    let part = StagedPart {
        file: file.clone(),
        position: rows_at,
        length,
        crc,
    };
    Ok(Some((Found::Part((attempt, number), part), next)))
}

/// Searches a file without a valid head for complete records, and returns their number. None if nothing was ever
/// acknowledged in it, because it is not longer than a head, or was never written to. Whatever was damaged, a file with
/// other bytes is not empty.
pub(super) fn count_headless(file: &Arc<File>, length: u64) -> io::Result<Option<u64>> {
    let (mut position, mut parts, mut is_blank) = (0, 0, true);
    // Rows may look like the beginnings of records, and each of them would be read as far as its length.
    let mut budget = length.saturating_mul(2);
    let mut chunk = vec![0; AT_ONCE];
    while position < length {
        let left = usize::try_from(length - position).unwrap_or(AT_ONCE);
        let chunk = &mut chunk[..left.min(AT_ONCE)];
        file.read_exact_at(chunk, position)?;
        is_blank &= chunk.iter().all(|byte| *byte == 0);
        // The magic may begin in the last bytes.
        let cut = if left > chunk.len() { 3 } else { 0 };
        let end = position + (chunk.len() - cut) as u64;
        let mut at = position;
        while at < end {
            let rest = &chunk[(at - position) as usize..];
            let found = rest.windows(4).position(|some| some == RECORD_MAGIC);
            let Some(found) = found else { break };
            at += found as u64;
            let size = record_size(file, at, length)?.filter(|size| *size <= budget);
            budget -= size.unwrap_or_default();
            let record = match size {
                Some(_) => read_record(file, at, length)?,
                None => None,
            };
            at += 1;
            if let Some((Found::Part(..), next)) = record {
                parts += 1;
                at = next;
            }
        }
        position = end.max(at);
    }
    let longest = HEAD + NAME_MAX as u64;
    Ok((parts > 0 || (length > longest && !is_blank)).then_some(parts))
}

/// The size of the record whose head is at `position`, if it can be complete.
fn record_size(file: &File, position: u64, end: u64) -> io::Result<Option<u64>> {
    if position + RECORD as u64 > end {
        return Ok(None);
    }
    let mut length = [0; 4];
    file.read_exact_at(&mut length, position + 8)?;
    let size = RECORD as u64 + u64::from(u32::from_le_bytes(length));
    Ok(Some(size).filter(|size| position + size <= end))
}

/// Rewrites a file in place, and syncs it. If a sync has failed in an earlier process, the page cache has the data marked
/// as written, so another sync alone would not write it.
pub(super) fn write_again(file: &File, length: u64) -> io::Result<()> {
    let mut chunk = vec![0; AT_ONCE];
    let mut position = 0;
    while position < length {
        let left = usize::try_from(length - position).unwrap_or(AT_ONCE);
        let chunk = &mut chunk[..left.min(AT_ONCE)];
        file.read_exact_at(chunk, position)?;
        file.write_all_at(chunk, position)?;
        position += chunk.len() as u64;
    }
    file.sync_data()
}
