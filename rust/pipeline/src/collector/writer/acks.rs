//! Acknowledgements for which a producer's connection has no room. They are combined and sent later, because an ACK is
//! also for the rows before it. A producer that loses the last one would wait, connect anew and send its rows again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Writer;
use crate::collector::outbox::Asked;
use crate::wire::Reply;

/// The time between attempts to send them.
const RETRY: Duration = Duration::from_millis(20);

/// The maximum number of producers that are tried at once.
const AT_ONCE: usize = 1000;

/// The maximum number of producers with such acknowledgements. Those of others are dropped.
const PRODUCERS: usize = 100_000;

/// An acknowledgement that was not sent yet.
#[derive(Debug)]
pub(super) struct Ack {
    pub asked: Asked,
    pub seq: u64,
    pub offset: Option<u64>,
}

/// One acknowledgement of each producer whose connection has no room.
#[derive(Debug, Default)]
pub(super) struct Owed {
    by_producer: HashMap<Arc<str>, Ack>,
    /// The producers, in the order of the attempts.
    order: VecDeque<Arc<str>>,
    retry_at: Option<Instant>,
}

impl Owed {
    /// The time of the next attempt.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.retry_at
    }
}

impl Writer {
    /// Acknowledges rows, or later rows with them if there is no room.
    pub(super) fn acknowledge(&mut self, producer: Arc<str>, ack: Ack) {
        if let Some(owed) = self.owed.by_producer.get_mut(&producer) {
            if owed.asked.route != ack.asked.route || owed.seq < ack.seq {
                *owed = ack;
            }
            return;
        }
        if self.try_acknowledge(&producer, &ack) {
            return;
        }
        if self.owed.order.len() >= PRODUCERS {
            return self.stats.undelivered.add(1);
        }
        self.owed.order.push_back(producer.clone());
        self.owed.by_producer.insert(producer, ack);
        let retry_at = Instant::now() + RETRY;
        self.owed.retry_at.get_or_insert(retry_at);
    }

    fn try_acknowledge(&mut self, producer: &str, ack: &Ack) -> bool {
        let credit = self.credit();
        let reply = Reply::Ack {
            seq: ack.seq,
            offset: ack.offset,
            credit,
        };
        let is_sent = self.outbox.try_say(&ack.asked, reply);
        // A producer that was told to stop, with a credit of nothing, is notified when it may continue.
        if credit.is_nothing()
            && is_sent
            && let Some(session) = self.sessions.get_mut(producer)
        {
            session.stalled = true;
        }
        is_sent
    }

    /// Sends the acknowledgements for which there is room now.
    pub(super) fn send_owed(&mut self, now: Instant) {
        if self.owed.retry_at.is_none_or(|due| due > now) {
            return;
        }
        for _ in 0..self.owed.order.len().min(AT_ONCE) {
            let Some(producer) = self.owed.order.pop_front() else {
                break;
            };
            let Some(ack) = self.owed.by_producer.remove(&producer) else {
                continue;
            };
            if !self.try_acknowledge(&producer, &ack) {
                self.owed.order.push_back(producer.clone());
                self.owed.by_producer.insert(producer, ack);
            }
        }
        self.owed.retry_at = (!self.owed.order.is_empty()).then(|| now + RETRY);
    }
}
