//! A producer on a simulated disk, in one thread and without sockets: its conversation with one collector, with
//! everything below it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use zeroxide::{Context, Message, Result, Socket, SocketType};
use zeroxide_log::Batch;

use crate::link::{Change, Channel};
use crate::producer::conversation::Conversation;
use crate::producer::intake::{Bounds, Content, Intake, Sealed};
use crate::producer::notices::{Notice, Notices};
use crate::producer::shared::{Shared, Standing, State};
use crate::producer::spool::{self, Spool};
use crate::producer::stats::Counters;
use crate::producer::{Failure, encoded};

/// The address of the collector.
pub(crate) const ENDPOINT: &str = "tcp://collector:1";

/// The number of bytes of spooled batches that are also kept in memory: so few that some are read from the spool.
const MEMORY: u64 = 2000;

/// A connection, whose other end the caller has.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<Ends>>);

/// The messages in transit.
#[derive(Default)]
pub(crate) struct Ends {
    pub to_collector: VecDeque<Message>,
    pub to_producer: VecDeque<Message>,
    pub changes: VecDeque<Change>,
    /// Whether the producer has given up this connection.
    pub is_reopened: bool,
}

impl Wire {
    pub(crate) fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Channel for Wire {
    fn endpoint(&self) -> &str {
        ENDPOINT
    }

    fn poll_message(&self) -> Option<Message> {
        self.ends().to_producer.pop_front()
    }

    fn poll_change(&self) -> Option<Change> {
        self.ends().changes.pop_front()
    }

    fn send(&self, message: Message) -> bool {
        self.ends().to_collector.push_back(message);
        true
    }

    fn reopen(&mut self) -> Result<()> {
        let mut ends = self.ends();
        ends.is_reopened = true;
        ends.to_producer.clear();
        ends.changes.clear();
        Ok(())
    }
}

/// A process of a producer.
pub(crate) struct Sending {
    conversation: Conversation<Wire>,
    shared: Arc<Shared>,
    /// The values of the rows that were found in the spool; None = a batch that cannot be read.
    pub left: Vec<Option<Vec<u8>>>,
}

/// A socket that carries nothing.
fn unused() -> Result<Socket> {
    static UNUSED: OnceLock<(Context, Socket)> = OnceLock::new();
    if let Some((_, socket)) = UNUSED.get() {
        return Ok(socket.clone());
    }
    let context = Context::new();
    let socket = context.socket(SocketType::Pair)?;
    Ok(UNUSED.get_or_init(|| (context, socket)).1.clone())
}

impl Sending {
    /// Opens the spool and begins, as a producer does when it starts.
    pub(crate) fn open(
        name: &str,
        dir: Option<&Path>,
        is_synced: bool,
        wire: Wire,
        now: Instant,
    ) -> std::result::Result<Sending, Failure> {
        let mut left = Vec::new();
        let spool = match dir {
            None => None,
            Some(dir) => {
                let named = spool::name_of(dir, Some(name), name);
                named.map_err(|error| Failure::Spool(error.to_string()))?;
                spool::check_others(dir, &[ENDPOINT.to_owned()])?;
                let spool = Spool::open(dir, name, ENDPOINT, is_synced).map_err(Failure::spool)?;
                let found = spool.left(|batch| {
                    let rows = (batch.place.1 - batch.place.0) as usize;
                    match batch.bytes.and_then(|bytes| Batch::decode(bytes).ok()) {
                        Some(batch) => {
                            let values = (0..rows).map(|row| Some(batch.value(row).to_vec()));
                            left.extend(values);
                        }
                        None => left.extend(vec![None; rows]),
                    }
                });
                found.map_err(Failure::spool)?;
                Some(spool)
            }
        };
        let bounds = Bounds {
            max_rows: u64::MAX,
            max_bytes: u64::MAX,
            max_fresh: u64::MAX,
            batch_rows: 1,
            batch_bytes: 1,
            linger: Duration::ZERO,
        };
        let conversation = Conversation::begin(wire, spool, MEMORY, now, |_, _| {})?;
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            memory: MEMORY,
            state: Mutex::new(State {
                intake: Intake::new(bounds, 1),
                standings: vec![Standing::default()],
                failure: None,
                setback: None,
                reports: Vec::new(),
                is_closed: false,
                stop: false,
                is_over: false,
            }),
            changed: Condvar::new(),
            asleep: AtomicBool::new(false),
            alarm: unused()?,
            notices: Notices::default(),
            counters: Counters::default(),
        });
        Ok(Sending {
            conversation,
            shared,
            left,
        })
    }

    /// Accepts a batch.
    pub(crate) fn push(&mut self, batch: &Batch) {
        let bytes = encoded(batch);
        self.conversation.held.push_back(Sealed {
            rows: batch.rows() as u64,
            cost: bytes.len() as u64,
            content: Content::Encoded(bytes),
        });
    }

    /// Puts accepted batches into the spool. Returns whether all of them are there, and on disk if the spool is synced.
    pub(crate) fn keep(&mut self, now: Instant) -> bool {
        self.conversation.take_held(&self.shared, now);
        self.conversation.held.is_empty() && self.failure().is_none()
    }

    /// Handles messages and sends. Returns the notices.
    pub(crate) fn converse(&mut self, now: Instant) -> Vec<Notice> {
        let mut notices = Vec::new();
        loop {
            match self
                .conversation
                .converse(&self.shared, 0, now, &mut notices)
            {
                Ok(true) => {}
                Ok(false) => break,
                Err(failure) => {
                    self.shared.fail(failure);
                    break;
                }
            }
        }
        notices
    }

    /// The failure that ended it.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.shared.state().failure.clone()
    }

    /// The reason why the collector takes nothing.
    #[cfg(test)]
    pub(crate) fn obstacle(&self) -> Option<String> {
        let (_, text) = self.conversation.window.obstacle()?;
        Some(text.clone())
    }

    /// The reports for its user.
    #[cfg(test)]
    pub(crate) fn reports(&self) -> Vec<String> {
        self.shared.state().reports.clone()
    }

    /// The number of rows that are not acknowledged.
    pub(crate) fn waiting(&self) -> u64 {
        self.conversation.unacknowledged()
    }

    /// Ends in an orderly way, and leaves its rows to the next run.
    pub(crate) fn close(mut self) {
        if let Some(spool) = self.conversation.spool.take() {
            spool.close();
        }
    }
}
