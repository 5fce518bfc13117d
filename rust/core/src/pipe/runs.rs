//! Messages for many, gathered into one run while everybody who is to read it is busy.
//!
//! A writer that gathers keeps messages to itself. So that nobody has to wait for its next call, it first has one reader
//! ask for them, which that does as soon as its thread has done what it was at.

use std::sync::atomic::{AtomicU8, Ordering};

use zeroxide_proto::frame::{Frame, Load};

use super::{Pipe, PipeEvent};

/// What an end may write for the far one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Runs {
    /// Each message by itself.
    Refused,
    /// Runs, because the far end takes them.
    Taken,
    /// The same, and the far end was told that one is being gathered.
    Gathering,
}

/// [`Runs`] that both ends change.
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

    /// Whether a run is being gathered; from now on, the far end has asked for it.
    fn take_gathering(&self) -> bool {
        let gathering = Runs::Gathering as u8;
        let taken = Runs::Taken as u8;
        // Most looks find none, and write nothing.
        self.0.load(Ordering::Relaxed) == gathering
            && self.0.swap(taken, Ordering::Acquire) == gathering
    }
}

impl Pipe {
    /// The owner of this end can read runs.
    pub fn take_runs(&self) {
        self.far().runs.set(Runs::Taken);
    }

    /// How many messages a run for this pipe may have. None at all if each has to be looked at by itself.
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
            // `check_write` has left less than a high-water mark between the two counts.
            hwm => hwm.saturating_sub(self.written - self.far_read),
        }
    }

    /// Whether the far reader sleeps, to guess from.
    pub fn is_far_asleep(&self) -> bool {
        self.tx.is_consumer_asleep()
    }

    /// Writes a run, for which there was room when it was begun.
    pub fn write_run(&mut self, run: Frame) {
        let Load { messages, bytes } = run.load();
        self.written += u64::from(messages);
        self.bytes_written += u64::from(bytes);
        self.publish_written();
        self.tx.push(run);
    }

    /// Tells the far end that messages are being gathered.
    pub fn announce_gathering(&self) {
        self.own().runs.set(Runs::Gathering);
        self.far().notify(PipeEvent::Gathering);
    }

    /// Asks for what is being gathered at the far end, if it has said so.
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
