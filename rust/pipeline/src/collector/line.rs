//! What other threads tell the serving thread.

use std::ops::Range;
use std::sync::mpsc::{Sender, SyncSender};
use std::time::Duration;

use zeroxide_log::{Batch, LogError, Prepared};

use crate::collector::ingest::Refusal;
use crate::collector::outbox::Asked;
use crate::collector::stage::{BatchOf, StagedPart};
use crate::wake::Wake;
use crate::wire::Attempt;

/// Something for the serving thread.
#[derive(Debug)]
pub(super) enum Event {
    /// A sync has ended. All below the offset is on disk.
    Synced {
        result: Result<u64, LogError>,
        took: Duration,
    },
    /// Rows of this process, one batch behind the other.
    Append {
        batches: Vec<Batch>,
        answer: SyncSender<Appended>,
    },
    /// Staged rows were found, and shall be published.
    Publish {
        asked: Asked,
        of: BatchOf,
        attempts: Vec<Attempt>,
        parts: Vec<StagedPart>,
    },
    /// Staged rows of these attempts, or of the whole batch, are forgotten, and shall not be published any more. Comes
    /// behind every [`Publish`](Event::Publish) that has found them.
    Abort {
        asked: Asked,
        of: BatchOf,
        attempts: Vec<Attempt>,
    },
    /// A large transaction is on disk, and shall become part of the log.
    Prepared {
        of: BatchOf,
        number: u64,
        prepared: Result<Prepared, Refusal>,
    },
    /// Somebody in this process wants to see the counters.
    Stats { answer: SyncSender<String> },
    /// Somebody in this process wants a group to be forgotten: whether there was one.
    DropGroup {
        group: String,
        answer: SyncSender<Result<bool, Refusal>>,
    },
    /// The end.
    Close,
}

/// Where rows of this process are, once they are on disk.
pub(super) type Appended = Result<Range<u64>, Refusal>;

/// The way to the serving thread.
#[derive(Clone, Debug)]
pub(super) struct Line {
    events: Sender<Event>,
    wake: Wake,
}

impl Line {
    pub fn new(events: Sender<Event>, wake: Wake) -> Line {
        Line { events, wake }
    }

    /// Tells it. When it is gone, so are those who would wait for an answer: theirs is a channel without another end.
    pub fn tell(&self, event: Event) {
        if self.events.send(event).is_ok() {
            self.wake.wake();
        }
    }
}
