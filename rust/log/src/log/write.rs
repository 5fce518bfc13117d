//! Writes frames into the active segment.

use std::io;
use std::ops::Range;

use super::Log;
use crate::batch::Batch;
use crate::disk::FileExt;
use crate::error::{BatchError, LogError};
use crate::frame::{self, Labels, Origin, Role, are_numbers, are_offsets};

/// A larger buffer is not kept for the next frame.
const SCRATCH_KEPT: usize = 16 << 20;

/// Frames that are written but not yet part of the log.
pub(super) struct Writing {
    durable: u64,
    range: Range<u64>,
    /// The position of the next frame.
    position: u64,
    frames: Vec<PutFrame>,
}

struct PutFrame {
    role: Role,
    origin: Origin,
    position: u64,
    length: u64,
    offsets: Range<u64>,
}

impl Log {
    /// Begins to write frames. Either all of them become part of the log, or the log does not change.
    pub(super) fn begin(&self) -> Writing {
        let state = self.shared.state();
        Writing {
            durable: state.durable,
            range: state.appended..state.appended,
            position: self.position,
            frames: Vec::with_capacity(1),
        }
    }

    /// Writes a frame after the previous ones; readers do not see it yet.
    pub(super) fn put(
        &mut self,
        writing: &mut Writing,
        role: Role,
        origin: Origin,
        batch: &Batch,
    ) -> Result<(), LogError> {
        let first = writing.range.end;
        let rows = batch.rows() as u64;
        if let Err(error) = self.check_numbers(first, origin.first_seq, rows) {
            self.take_back()?;
            return Err(error);
        }
        let labels = Labels {
            first_offset: first,
            span: batch.rows(),
            origin: &origin,
            durable: writing.durable,
            role,
        };
        self.scratch.bytes.clear();
        frame::write(
            &labels,
            &batch.columns,
            &mut self.scratch.metadata,
            &mut self.scratch.bytes,
        );
        let bytes = &self.scratch.bytes;
        if let Err(error) = self.active.write_all_at(bytes, writing.position) {
            return Err(self.undo(error));
        }
        let length = bytes.len() as u64;
        if self.scratch.bytes.capacity() > SCRATCH_KEPT {
            self.scratch.bytes = Vec::new();
        }
        writing.range.end = first + rows;
        writing.frames.push(PutFrame {
            role,
            origin,
            position: writing.position,
            length,
            offsets: first..writing.range.end,
        });
        writing.position += length;
        Ok(())
    }

    /// Checks that readers can have the offsets and sequence numbers of new rows.
    pub(super) fn check_numbers(
        &self,
        first: u64,
        first_seq: u64,
        rows: u64,
    ) -> Result<(), LogError> {
        if !are_numbers(first_seq, rows) {
            return Err(BatchError::Malformed("sequence numbers beyond the last one").into());
        }
        if !are_offsets(first, rows) {
            return Err(LogError::Foreign {
                path: self.shared.dir.clone(),
                what:
                    "its offsets have come to the last one that a row can have; use another folder"
                        .to_owned(),
            });
        }
        Ok(())
    }

    /// Makes the frames part of the log; returns their offsets.
    pub(super) fn keep(&mut self, writing: Writing) -> Range<u64> {
        self.position = writing.position;
        for frame in &writing.frames {
            self.book
                .note(&frame.origin, frame.role, frame.offsets.clone());
        }
        let mut state = self.shared.state();
        state.appended = writing.range.end;
        state.written.count += 1;
        state.written.position = self.position;
        if let Some(active) = state.segments.back() {
            let mut index = active.index();
            for frame in &writing.frames {
                index.count(
                    frame.position,
                    frame.offsets.start,
                    frame.offsets.end,
                    frame.length,
                    frame.origin.receive_time,
                );
            }
        }
        writing.range
    }

    /// Removes frames that were written but not kept.
    pub(super) fn take_back(&self) -> Result<(), LogError> {
        let taken = self.active.set_len(self.position);
        taken.map_err(|error| self.shared.fail("write", error))
    }

    /// Removes the remains of a failed write.
    fn undo(&self, error: io::Error) -> LogError {
        if let Err(failed) = self.take_back() {
            return failed;
        }
        let state = self.shared.state();
        let path = state
            .segments
            .back()
            .map_or(self.shared.dir.clone(), |active| active.path.clone());
        drop(state);
        match LogError::from_io("write", &path, error) {
            full @ LogError::Full { .. } => full,
            LogError::Io { source, .. } => self.shared.fail("write", source),
            other => {
                self.shared
                    .fail("write", io::Error::other(other.to_string()));
                other
            }
        }
    }
}
