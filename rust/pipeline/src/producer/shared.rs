//! What callers and the worker share.

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

/// What callers and the worker share.
pub(crate) struct Shared {
    pub name: String,
    /// How many bytes of a spool's batches are kept in memory, too.
    pub memory: u64,
    pub state: Mutex<State>,
    /// Something happened to the state.
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
    /// What rows have met with, to be told once: how many times, and the first.
    pub setback: Option<(u64, Failure)>,
    /// What else the user should know, in words.
    pub reports: Vec<String>,
    /// No more rows.
    pub is_closed: bool,
    /// The worker ends at its next turn.
    pub stop: bool,
    /// It has ended.
    pub is_over: bool,
}

/// How it stands with one collector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub endpoint: String,
    pub gone: Option<Instant>,
    /// Since when there has been no room in the spool, and why.
    pub spool_full: Option<(Instant, String)>,
    /// Rows that came in and could not be put there.
    pub unspooled: u64,
    pub blocked: Option<Instant>,
    /// Why the collector does not let it in, if that is so.
    pub denied: Option<Denial>,
    pub is_open: bool,
    pub obstacle: Option<Code>,
    pub reason: Option<String>,
    /// The sequence number of row 0, which may have none.
    pub base: Option<i64>,
    /// Rows that got new numbers, because others had used the name.
    pub renumbered: u64,
    /// Rows that the collector had acknowledged and does not have any more.
    pub lost: u64,
    /// Rows that will never be sent.
    pub set_aside: u64,
    pub log_id: Option<LogId>,
    pub epoch: u64,
    pub credit: Credit,
    pub flying: Credit,
    pub resent: u64,
    pub acked: u64,
}

impl Standing {
    /// The sequence number of a row, once that is known.
    pub fn seq_of(&self, row: u64) -> Option<u64> {
        u64::try_from(self.base? + row.cast_signed()).ok()
    }
}

/// The most reports that wait for being read.
const REPORTS: usize = 100;

impl State {
    /// Tells the user something that stops nothing.
    pub fn report(&mut self, text: String) {
        if self.reports.len() < REPORTS {
            self.reports.push(text);
        }
    }

    /// What is to be told once, if there is anything.
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

    /// Ends the worker's sleep.
    pub fn ring(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // The other end is a thread that ends, if this fails.
            let _ = self.alarm.send(Message::new(), Wait::Dont);
        }
    }

    /// Some rows are not, or not any more, where they should be; the others go on.
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

    /// The worker has ended: nothing is acknowledged any more.
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
