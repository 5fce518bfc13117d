//! Failures of writing: notifications, retries, recovery, and the end.

use std::mem;
use std::time::Instant;

use zeroxide_log::{Log, LogError};

use super::{Stuck, Writer};
use crate::collector::commit::Waiting;
use crate::collector::outbox::Asked;
use crate::collector::refusal::{Refusal, refusal_of};
use crate::collector::writer::at_risk::AtRisk;
use crate::wire::{Code, Credit, Reply};

impl Writer {
    pub(super) fn refusal(&self) -> Refusal {
        match self.obstacle() {
            Some((code, text)) => Refusal::new(code, 0, text.to_owned()),
            None => Refusal::not_open(),
        }
    }

    /// The refusal for a client that can ask again. Only an error that affects all writers stops all of them.
    pub(super) fn refuse_for(&mut self, error: &LogError, now: Instant) -> Refusal {
        match error {
            LogError::Batch(_) | LogError::TooMany { .. } | LogError::Full { .. } => {
                refusal_of(error)
            }
            _ => {
                self.on_failed(error, now);
                self.refusal()
            }
        }
    }

    pub(super) fn on_failed(&mut self, error: &LogError, now: Instant) {
        let code = match error {
            LogError::Full { .. } => Code::Full,
            LogError::ReadOnly { .. } => Code::ReadOnly,
            _ => Code::Failed,
        };
        if code != Code::Full {
            self.stats.failures.add(1);
            if matches!(error, LogError::Failed { .. }) {
                // Unchanged by further attempts, because data that was on disk at the first failure still is.
                let synced = self.log.as_ref().map(Log::synced);
                self.trusted = self.trusted.or(synced);
            }
            self.give_up();
        }
        let text = match (error, &self.gone) {
            (LogError::Gone { .. }, _) => self.gone.insert(error.to_string()).clone(),
            // The path leads to another log, for example. By itself, that would not explain anything.
            (_, Some(gone)) => format!("{gone}; opening it again failed: {error}"),
            _ => error.to_string(),
        };
        // Later requests get the error of the last attempt.
        self.stuck = Some(Stuck {
            code,
            text,
            retry_at: now + self.config.retry_every,
        });
    }

    /// Rows that were appended but not synced may be lost, so they are not acknowledged. Producers send them again.
    fn give_up(&mut self) {
        for who in self.commits.give_up() {
            let refusal = Refusal::new(Code::Failed, 0, "writing to the log failed: try again");
            match who {
                Waiting::Ack { .. } => {}
                Waiting::Welcome { asked, .. } | Waiting::Published { asked, .. } => {
                    self.outbox.refuse(&asked, refusal);
                }
                Waiting::Local { answer, .. } => {
                    // If the caller stopped waiting, it does not need the answer.
                    let _ = answer.try_send(Err(refusal));
                }
            }
        }
    }

    /// Retries the failed operation. Returns true if the log was reopened.
    pub(super) fn retry(&mut self, now: Instant) -> bool {
        let is_full = self
            .stuck
            .as_ref()
            .is_some_and(|stuck| stuck.code == Code::Full);
        // A log that could not be reopened for lack of room is not there.
        let reopens = !is_full || self.log.is_none();
        if reopens && let Err(error) = self.reopen() {
            self.on_failed(&error, now);
            return false;
        }
        // Apply retention now, because it may free some room.
        let _ = self.retain();
        self.stuck = None;
        if let Some(sent) = self.held.take() {
            self.append(sent);
        }
        if let Some(batch) = self.held_plain.take() {
            match self.stuck {
                None => self.handle_plain(batch),
                Some(_) => self.held_plain = Some(batch),
            }
        }
        if self.obstacle().is_none() {
            self.call_back();
        }
        reopens
    }

    /// Opens the log as after a crash; only the rows that it has then count.
    fn reopen(&mut self) -> Result<(), LogError> {
        // Requests since the failure wait for writes that the new opening counts anew, and would wait forever.
        self.give_up();
        // The old log must release the lock first.
        drop(self.log.take());
        let (dir, settings) = (&self.config.dir, self.config.log.clone());
        // A new log would count from 0, and give the offsets of rows that were acknowledged to others.
        let log = Log::reopen(dir, settings, self.log_id, self.trusted)?;
        self.gone = None;
        if let Some(trusted) = self.trusted.take() {
            self.plain_at_risk.settle(trusted);
            self.stats.plain_lost.add(self.plain_at_risk.take());
        }
        // What this opening writes is counted anew.
        self.plain_at_risk = AtRisk::default();
        self.sessions
            .on_rolled_back(|producer| log.last_seq(producer).map(|(_, seq)| seq));
        // Pending acknowledgements will not come.
        for (_, session) in self.sessions.iter_mut() {
            session.stalled = true;
        }
        self.log = Some(log);
        self.stats.recoveries.add(1);
        Ok(())
    }

    /// Notifies stopped producers that they can continue, and where.
    pub(super) fn call_back(&mut self) {
        let credit = self.credit();
        for (producer, session) in self.sessions.iter_mut() {
            if !mem::take(&mut session.stalled) {
                continue;
            }
            let asked = Asked {
                route: session.route.clone(),
                id: 0,
                key: None,
            };
            let status = Reply::Status {
                producer: producer.to_string(),
                epoch: session.epoch,
                code: Code::Fine,
                last_seq: session.last(),
                credit,
                text: String::new(),
            };
            self.outbox.say(&asked, status);
        }
    }

    /// Syncs everything, closes the log, notifies all receivers, and tells producers that the collector is closing.
    pub fn close(&mut self) -> Result<(), LogError> {
        let result = match self.log.as_ref() {
            Some(log)
                if self
                    .stuck
                    .as_ref()
                    .is_none_or(|stuck| stuck.code == Code::Full) =>
            {
                log.sync()
            }
            _ => Ok(0),
        };
        match &result {
            Ok(_) => self.tell(),
            Err(_) => self.give_up(),
        }
        let lost = self.held_plain.take().map_or(0, |batch| batch.rows());
        self.stats.plain_lost.add(lost as u64);
        for (producer, session) in self.sessions.iter_mut() {
            let asked = Asked {
                route: session.route.clone(),
                id: 0,
                key: None,
            };
            let status = Reply::Status {
                producer: producer.to_string(),
                epoch: session.epoch,
                code: Code::Closing,
                last_seq: session.last(),
                credit: Credit::default(),
                text: "the collector is being stopped".to_owned(),
            };
            self.outbox.say(&asked, status);
        }
        match self.log.take() {
            Some(log) => result.and_then(|_| log.close()),
            None => result.map(drop),
        }
    }
}
