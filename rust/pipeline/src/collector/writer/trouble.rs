//! When writing does not work: who is told what, how it is tried again, and the end.

use std::mem;
use std::time::Instant;

use zeroxide_log::{Log, LogError};

use super::{Stuck, Writer};
use crate::collector::commit::Waiting;
use crate::collector::ingest::Refusal;
use crate::collector::outbox::Asked;
use crate::wire::{Code, Credit, Reply};

/// What an error is to somebody who asked for what it prevented.
pub(in crate::collector) fn refusal_of(error: &LogError) -> Refusal {
    let code = match error {
        LogError::Batch(_) => Code::Malformed,
        LogError::TooMany { .. } => Code::TooMany,
        LogError::Full { .. } => Code::Full,
        LogError::ReadOnly { .. } => Code::ReadOnly,
        _ => Code::Failed,
    };
    Refusal::new(code, 0, error.to_string())
}

impl Writer {
    pub(super) fn refusal(&self) -> Refusal {
        match &self.stuck {
            Some(stuck) => Refusal::new(stuck.code, 0, stuck.text.clone()),
            None => Refusal::new(Code::Failed, 0, "the log is not open"),
        }
    }

    /// What to tell somebody who can ask again. Only what concerns all who write stops all of them.
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
                // Also after further attempts: what was on disk when it failed first still is.
                let synced = self.log.as_ref().map(Log::synced);
                self.trusted = self.trusted.or(synced);
            }
            self.give_up();
        }
        // What was tried last is told to those who come next.
        self.stuck = Some(Stuck {
            code,
            text: error.to_string(),
            retry_at: now + self.config.retry_every,
        });
    }

    /// What was appended and not synced may be gone: nobody is told that it is there. Producers send it again.
    fn give_up(&mut self) {
        for who in self.commits.give_up() {
            let refusal = Refusal::new(Code::Failed, 0, "writing to the log failed: try again");
            match who {
                Waiting::Ack { .. } => {}
                Waiting::Welcome { asked, .. } | Waiting::Published { asked, .. } => {
                    self.outbox.refuse(&asked, refusal);
                }
                Waiting::Local { answer, .. } => {
                    // Who does not wait any more does not want to know.
                    let _ = answer.try_send(Err(refusal));
                }
            }
        }
    }

    /// Tries again what failed. True when the log was opened anew.
    pub(super) fn retry(&mut self, now: Instant) -> bool {
        let is_full = self
            .stuck
            .as_ref()
            .is_some_and(|stuck| stuck.code == Code::Full);
        if !is_full && let Err(error) = self.reopen() {
            self.on_failed(&error, now);
            return false;
        }
        // What has to be deleted anyway makes room now.
        let time = self.receive_time();
        if let Some(log) = &mut self.log {
            let _ = log.retain(time);
        }
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
        if self.stuck.is_none() {
            self.call_back();
        }
        !is_full
    }

    /// Opens the log as after a crash: what it has then counts.
    fn reopen(&mut self) -> Result<(), LogError> {
        // The lock goes with the old one.
        drop(self.log.take());
        let (dir, settings) = (&self.config.dir, self.config.log.clone());
        let log = match self.trusted {
            Some(synced) => Log::reopen(dir, settings, synced)?,
            None => Log::open(dir, settings)?,
        };
        let dropped = self.trusted.take().is_some();
        let lost = if dropped { self.plain_at_risk } else { 0 };
        self.stats.plain_lost.add(lost);
        self.plain_at_risk = 0;
        self.sessions
            .on_rolled_back(|producer| log.last_seq(producer).map(|(_, seq)| seq));
        // Whoever waits for an acknowledgement waits in vain.
        for (_, session) in self.sessions.iter_mut() {
            session.stalled = true;
        }
        self.log = Some(log);
        self.stats.recoveries.add(1);
        Ok(())
    }

    /// Tells those who were turned back that they can go on, and where.
    fn call_back(&mut self) {
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

    /// Brings everything to the disk and lets go of the log; tells everybody who waits, and producers to go elsewhere.
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
