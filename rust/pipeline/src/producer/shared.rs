//! The state shared between callers and the worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use zeroxide::{Message, Socket, Wait};

use crate::link::Denial;
use crate::producer::failure::Failure;
use crate::producer::intake::Intake;
use crate::producer::notices::{Notice, Notices};
use crate::producer::stats::Counters;
use crate::wire::{Code, Credit, LogId};

/// The state shared between callers and the worker.
pub(crate) struct Shared {
    pub name: String,
    /// The number of bytes of spooled batches that are also kept in memory.
    pub memory: u64,
    pub state: Mutex<State>,
    /// Notified when the state changes.
    pub changed: Condvar,
    pub asleep: AtomicBool,
    pub alarm: Socket,
    pub notices: Notices,
    pub counters: Counters,
}

pub(crate) struct State {
    pub intake: Intake,
    pub standings: Vec<Standing>,
    pub failure: Option<Failure>,
    /// A setback of rows that was not returned yet: the number of setbacks, and the first one.
    pub setback: Option<(u64, Failure)>,
    /// Further reports for the user, in words.
    pub reports: Vec<String>,
    /// Whether no more rows are accepted.
    pub is_closed: bool,
    /// Whether the worker must end at its next turn.
    pub stop: bool,
    /// Whether the worker has ended.
    pub is_over: bool,
}

/// The state at one collector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub endpoint: String,
    pub gone: Option<Instant>,
    /// The time since which the spool has been full, and the reason.
    pub spool_full: Option<(Instant, String)>,
    /// The number of accepted rows that are not in the spool.
    pub unspooled: u64,
    pub blocked: Option<Instant>,
    /// The reason why the collector rejects the handshake, if it does.
    pub denied: Option<Denial>,
    pub is_open: bool,
    pub obstacle: Option<Code>,
    pub reason: Option<String>,
    /// The sequence number of row 0, or the one that it would have.
    pub base: Option<i64>,
    /// Rows that got new numbers because others had used the name.
    pub renumbered: u64,
    /// Rows that the collector had acknowledged but lost.
    pub lost: u64,
    /// Rows that will never be sent.
    pub set_aside: u64,
    /// Whether the number of rows is known that were ever sent under this name.
    pub is_counted: bool,
    pub log_id: Option<LogId>,
    pub epoch: u64,
    pub credit: Credit,
    pub flying: Credit,
    pub resent: u64,
    pub acked: u64,
}

impl Standing {
    /// The sequence number of a row, once it is known.
    pub fn seq_of(&self, row: u64) -> Option<u64> {
        u64::try_from(self.base? + row.cast_signed()).ok()
    }
}

/// The maximum number of reports that wait to be read.
const REPORTS: usize = 100;

impl State {
    /// Adds a report for the user about an event that stops nothing.
    pub fn report(&mut self, text: String) {
        if self.reports.len() < REPORTS {
            self.reports.push(text);
        }
    }

    /// Returns the setback once, if there is one.
    pub fn take_setback(&mut self) -> Result<(), Failure> {
        match self.setback.take() {
            None => Ok(()),
            Some((1, failure)) => Err(failure),
            Some((times, Failure::Setback { code, text })) => Err(Failure::Setback {
                code,
                text: format!("{text} (and {} more of this kind)", times - 1),
            }),
            Some((_, failure)) => Err(failure),
        }
    }
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the worker.
    pub fn ring(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // If this fails, the worker is ending.
            let _ = self.alarm.send(Message::new(), Wait::Dont);
        }
    }

    /// Records a setback of some rows; the other rows are sent as usual.
    pub fn set_back(&self, code: Code, text: String) {
        let mut state = self.state();
        state.report(text.clone());
        let failure = Failure::Setback { code, text };
        let (times, _) = state.setback.get_or_insert((0, failure));
        *times += 1;
        drop(state);
        self.changed.notify_all();
        self.notices.nudge();
    }

    pub fn fail(&self, failure: Failure) {
        self.state().failure.get_or_insert(failure);
        self.changed.notify_all();
        self.notices.nudge();
    }

    /// Records that the worker has ended, so nothing will be acknowledged any more.
    pub fn end(&self) {
        let lost = {
            let mut state = self.state();
            state.is_over = true;
            let why: Arc<str> = match &state.failure {
                Some(failure) => failure.to_string().into(),
                None => "the producer was closed before they were acknowledged".into(),
            };
            let lanes = state.intake.lanes().iter().enumerate();
            lanes
                .filter(|(_, lane)| lane.acked < lane.rows)
                .map(|(collector, lane)| Notice {
                    collector,
                    first_row: lane.acked,
                    rows: lane.rows - lane.acked,
                    first_seq: state.standings[collector].seq_of(lane.acked),
                    offset: None,
                    lost: Some(why.clone()),
                })
                .collect::<Vec<_>>()
        };
        self.notices.add(lost);
        self.notices.end();
        self.changed.notify_all();
    }
}
