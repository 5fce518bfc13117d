//! Messages for several receivers, gathered into one run while all receivers are busy.
//!
//! A writer that gathers holds messages back. So that they need not wait for the writer's next call, it first notifies
//! one reader, which asks for them as soon as its thread has finished its current work.

use zeroxide_proto::frame::{Frame, Load};

use super::{Pipe, PipeEvent};
use crate::sys::sync::atomic::{AtomicU8, Ordering};

/// The kinds of messages that an end may write for the far end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Runs {
    /// Single messages only.
    Refused,
    /// Runs, because the far end takes them.
    Taken,
    /// The same, and the far end was notified that a run is being gathered.
    Gathering,
}

/// A [`Runs`] that both ends change.
pub(super) struct RunsCell(AtomicU8);

impl RunsCell {
    pub(super) fn new() -> RunsCell {
        RunsCell(AtomicU8::new(Runs::Refused as u8))
    }

    #[inline]
    fn are_refused(&self) -> bool {
        self.0.load(Ordering::Acquire) == Runs::Refused as u8
    }

    fn set(&self, runs: Runs) {
        self.0.store(runs as u8, Ordering::Release);
    }

    /// Returns whether a run is being gathered, and records that the far end has asked for it.
    fn take_gathering(&self) -> bool {
        let gathering = Runs::Gathering as u8;
        let taken = Runs::Taken as u8;
        // Most calls find no run, and write nothing.
        self.0.load(Ordering::Relaxed) == gathering
            && self.0.swap(taken, Ordering::Acquire) == gathering
    }
}

impl Pipe {
    /// Declares that the owner of this end can read runs.
    pub fn take_runs(&self) {
        self.far().runs.set(Runs::Taken);
    }

    /// Maximum number of messages in a run for this pipe. 0 if each message has to be checked by itself.
    pub fn room_for_run(&mut self) -> u64 {
        let own = self.own();
        if own.runs.are_refused() || own.slot.is_some() || own.limit.bytes() != 0 {
            return 0;
        }
        if !self.check_write() {
            return 0;
        }
        match self.own().limit.messages() {
            0 => u64::MAX,
            // After `check_write`, the two counts differ by less than the high-water mark.
            hwm => hwm.saturating_sub(self.written - self.far_read),
        }
    }

    /// Whether the far reader seems to sleep. The answer is a hint.
    pub fn is_far_asleep(&self) -> bool {
        self.tx.is_consumer_asleep()
    }

    /// Writes a run. There was room for it when it was begun.
    pub fn write_run(&mut self, run: Frame) {
        let Load { messages, bytes } = run.load();
        self.written += u64::from(messages);
        self.bytes_written += u64::from(bytes);
        self.publish_written();
        self.tx.push(run);
    }

    /// Notifies the far end that messages are being gathered.
    pub fn announce_gathering(&self) {
        self.own().runs.set(Runs::Gathering);
        self.far().notify(PipeEvent::Gathering);
    }

    /// Asks for the messages that are being gathered, if the far end has announced any.
    pub fn ask(&self) {
        if self.far().runs.take_gathering() {
            self.far().notify(PipeEvent::Asked);
        }
    }

    pub(super) fn count_run(&mut self, load: Load) {
        self.bytes_read += u64::from(load.bytes);
        self.count_read(u64::from(load.messages));
    }
}
