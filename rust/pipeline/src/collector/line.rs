//! Events that other threads send to the serving thread.

use std::ops::Range;
use std::sync::mpsc::{Sender, SyncSender};
use std::time::Duration;

use zeroxide_log::{Batch, LogError, Prepared, Reader, Syncer};

use crate::collector::outbox::Asked;
use crate::collector::refusal::Refusal;
use crate::collector::stage::{BatchOf, StagedPart};
use crate::collector::topics::Topics;
use crate::wake::Wake;
use crate::wire::Attempt;

/// An event for the serving thread.
#[derive(Debug)]
pub(super) enum Event {
    /// A sync has ended. All rows below the offset are on disk.
    Synced {
        syncer: Syncer,
        result: Result<u64, LogError>,
        took: Duration,
    },
    /// Consecutive batches of rows from this process.
    Append {
        batches: Vec<Batch>,
        answer: SyncSender<Appended>,
    },
    /// Staged rows were found and can be published.
    Publish {
        asked: Asked,
        of: BatchOf,
        attempts: Vec<Attempt>,
        parts: Vec<StagedPart>,
    },
    /// Staged rows of these attempts, or of the whole batch, were discarded and must not be published any more. Follows
    /// every [`Publish`](Event::Publish) that has found them.
    Abort {
        asked: Asked,
        of: BatchOf,
        attempts: Vec<Attempt>,
    },
    /// The rows of a large transaction are on disk and can become part of the log.
    Prepared {
        of: BatchOf,
        number: u64,
        prepared: Result<(Prepared, Topics), Refusal>,
    },
    /// A caller in this process requests the counters.
    Stats { answer: SyncSender<String> },
    /// A caller in this process reads rows.
    Read { answer: SyncSender<Reader> },
    /// A caller in this process drops a group. The answer is whether it existed.
    DropGroup {
        group: String,
        answer: SyncSender<Result<bool, Refusal>>,
    },
    /// A request to end.
    Close,
}

/// The offsets of rows from this process, once they are on disk.
pub(super) type Appended = Result<Range<u64>, Refusal>;

/// The channel to the serving thread.
#[derive(Clone, Debug)]
pub(super) struct Line {
    events: Sender<Event>,
    wake: Wake,
}

impl Line {
    pub fn new(events: Sender<Event>, wake: Wake) -> Line {
        Line { events, wake }
    }

    /// Sends an event. If the serving thread is gone, callers that wait for an answer notice that their channel is
    /// disconnected.
    pub fn tell(&self, event: Event) {
        if self.events.send(event).is_ok() {
            self.wake.wake();
        }
    }
}
