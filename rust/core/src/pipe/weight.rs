//! The memory that messages take while they wait in a pipe: their bytes, and [`PART`] for each part.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zeroxide_proto::message::{Message, PART};

use super::{Pipe, Shared, lock};

const EACH: u64 = PART as u64;

impl Pipe {
    /// Records that a message of `parts` parts is about to be written.
    #[inline]
    pub(super) fn note_parts(&mut self, parts: usize) {
        self.parts_written += parts as u64 - 1;
        self.publish_parts();
    }

    #[inline]
    pub(super) fn publish_parts(&self) {
        let counts = &self.own().counts;
        counts
            .parts_written
            .store(self.parts_written, Ordering::Relaxed);
    }

    /// Records that `parts` parts were read, not counting the last part of each message.
    #[inline]
    pub(super) fn count_parts(&mut self, parts: u64) {
        self.parts_read += parts;
        let counts = &self.own().counts;
        counts.parts_read.store(self.parts_read, Ordering::Relaxed);
    }

    /// The weight of what was read since the far writer's doorbell was last checked.
    pub(super) fn read_since_checked(&self) -> u64 {
        let parts = self.read - self.read_checked + self.parts_read - self.parts_checked;
        self.bytes_read - self.bytes_checked + EACH * parts
    }

    /// The weight of everything ever written here. It only decreases if frames are taken back.
    #[inline]
    pub(crate) fn weight_written(&self) -> u64 {
        self.bytes_written + EACH * (self.written + self.parts_written)
    }

    /// The weight of what was written here and not read yet.
    pub(super) fn outstanding(&self) -> u64 {
        let far = &self.far().counts;
        let read = far.read.load(Ordering::Acquire) + far.parts_read.load(Ordering::Relaxed);
        let read = far.bytes_read.load(Ordering::Relaxed) + EACH * read;
        self.weight_written().saturating_sub(read)
    }

    /// The weight of a message whose last part is still missing.
    pub(crate) fn weight_begun(&self) -> u64 {
        if self.open_frames == 0 {
            return 0;
        }
        if self.own().slot.is_some() {
            return self.newest_begun();
        }
        let whole = self.own().counts.bytes_written.load(Ordering::Relaxed);
        self.bytes_written - whole + EACH * self.open_frames as u64
    }

    /// Returns a handle that reports what waits for the far end, even after this end is gone.
    pub(crate) fn inbound(&self) -> Inbound {
        Inbound {
            shared: self.shared.clone(),
            side: self.side,
        }
    }
}

/// The messages that were written at one end of a pipe and wait at the other.
#[derive(Clone)]
pub(crate) struct Inbound {
    shared: Arc<Shared>,
    side: usize,
}

impl Inbound {
    /// The weight of the complete messages that wait. 0 after the reading end is dropped.
    pub(crate) fn weight(&self) -> u64 {
        let (own, far) = (
            &self.shared.ends[self.side],
            &self.shared.ends[1 - self.side],
        );
        if far.dropped.load(Ordering::Acquire) {
            return 0;
        }
        if let Some(slot) = &own.slot {
            return lock(&slot.newest).as_ref().map_or(0, Message::weight);
        }
        let (own, far) = (&own.counts, &far.counts);
        let waiting = |written: u64, read: u64| written.saturating_sub(read);
        let load = Ordering::Relaxed;
        let messages = waiting(own.written.load(load), far.read.load(load));
        let parts = waiting(own.parts_written.load(load), far.parts_read.load(load));
        let bytes = waiting(own.bytes_written.load(load), far.bytes_read.load(load));
        bytes + EACH * (messages + parts)
    }
}
