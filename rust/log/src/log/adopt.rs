//! Adopts a prepared transaction: its segment becomes the log's last one by being renamed.

use std::sync::Arc;

use super::{Log, Publication};
use crate::disk;
use crate::error::LogError;
use crate::frame::Role;
use crate::prepared::Prepared;
use crate::segment::Segment;

impl Log {
    /// Makes all rows of a prepared transaction part of the log, on disk. Even if a crash interrupts it, the log has
    /// all of them or none. The time depends on the number of frames, not of bytes. A batch that is not newer than the
    /// query's last one is not adopted.
    ///
    /// # Errors
    /// As [`append_published`](Self::append_published).
    pub fn adopt(&mut self, mut prepared: Prepared) -> Result<Publication, LogError> {
        let query = prepared.query.clone();
        if let Some(known) = self.check_publication(&query, prepared.batch)? {
            return Ok(known);
        }
        if prepared.frames.is_empty() {
            let origin = prepared.origin(0);
            return self.append_published(&query, prepared.batch, origin.receive_time, &[]);
        }
        self.make_room()?;
        self.shared.sync()?;
        let first = self.next();
        let next_seq = self.published(&query).map_or(0, |last| last.next_seq);
        let rows = prepared.frames.iter().map(|frame| frame.rows).sum();
        self.check_numbers(first, next_seq, rows)?;
        self.forgotten += self.book.forget(self.config.max_producers);
        // A segment without rows has the name that this one gets. Its contents go into the snapshot first.
        let replaces = first == self.sealed_end();
        if replaces {
            self.write_snapshot(first, self.book.clone())?;
        }
        self.shared.check_place()?;
        let path = prepared.place(&self.shared.dir, first, next_seq)?;
        let named = disk::sync_folder(&self.shared.dir);
        named.map_err(|error| self.shared.fail("rename", error))?;

        self.sealed = self.book.clone();
        let segment = Segment::new(first, path, prepared.start);
        let mut offset = first;
        {
            let mut index = segment.index();
            let last = prepared.frames.len() - 1;
            for (number, frame) in prepared.frames.iter().enumerate() {
                let role = if number == last {
                    Role::Last
                } else {
                    Role::Part
                };
                let origin = prepared.origin(next_seq + (offset - first));
                let end = offset + frame.rows;
                self.book.note(&origin, role, offset..end);
                let time = origin.receive_time;
                index.count(frame.position, offset, end, frame.length, time);
                offset = end;
            }
        }
        self.position = prepared.position;
        self.active = Arc::new(prepared.into_file()?);
        {
            let mut state = self.shared.state();
            if replaces {
                state.segments.pop_back();
            }
            state.segments.push_back(Arc::new(segment));
            state.active = self.active.clone();
            (state.appended, state.durable) = (offset, offset);
            state.written.count += 1;
            (state.written.segment, state.written.position) = (first, self.position);
            state.synced = state.written;
            self.shared.write_durable(offset);
        }
        self.has_unsaved = true;
        self.book.forget_queries(super::MAX_NAMES, &query);
        Ok(Publication {
            range: first..offset,
            already: false,
        })
    }
}
