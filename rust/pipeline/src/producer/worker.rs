//! The thread of a producer: takes sealed batches, talks to the collectors, and reports the results.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use zeroxide::{Events, PollItem, Socket, Wait, poll};

use crate::producer::conversation::Conversation;
use crate::producer::notices::Notice;
use crate::producer::shared::Shared;

/// See the module text.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    /// A message here wakes the thread.
    alarm: Socket,
    conversations: Vec<Conversation>,
    notices: Vec<Notice>,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        alarm: Socket,
        conversations: Vec<Conversation>,
    ) -> Worker {
        Worker {
            shared,
            alarm,
            conversations,
            notices: Vec::new(),
        }
    }

    /// Runs until the producer is closed.
    pub(crate) fn run(mut self) {
        loop {
            let now = Instant::now();
            let linger = self.take_in(now);
            for (at, conversation) in self.conversations.iter_mut().enumerate() {
                // Batches that cannot be sent are handled one after the other.
                while match conversation.converse(&self.shared, at, now, &mut self.notices) {
                    Ok(is_unfinished) => is_unfinished,
                    Err(failure) => {
                        self.shared.fail(failure);
                        false
                    }
                } {}
            }
            if self.publish(now) {
                return;
            }
            self.sleep(linger);
        }
    }

    /// Takes the sealed batches; returns the time at which an open one is due.
    fn take_in(&mut self, now: Instant) -> Option<Instant> {
        let linger = {
            let mut state = self.shared.state();
            let linger = state.intake.seal_old(now);
            for (at, conversation) in self.conversations.iter_mut().enumerate() {
                while let Some(sealed) = state.intake.take(at) {
                    conversation.held.push_back(sealed);
                }
                if state.stop {
                    conversation.try_spool_again(now);
                }
            }
            linger
        };
        let conversations = self.conversations.iter_mut();
        let settled = conversations.map(|conversation| conversation.take_held(&self.shared, now));
        let settled: u64 = settled.sum();
        if settled > 0 {
            self.shared.state().intake.settle(settled);
            self.shared.changed.notify_all();
        }
        linger
    }

    /// Publishes the state. Returns whether the worker must end.
    fn publish(&mut self, now: Instant) -> bool {
        let is_over = {
            let mut state = self.shared.state();
            // Under the lock, so that a caller that sees acknowledged rows can also take their notices, and one that took
            // notices sees their rows acknowledged.
            if !self.notices.is_empty() {
                self.shared.notices.add(self.notices.drain(..));
            }
            for (at, conversation) in self.conversations.iter_mut().enumerate() {
                let (rows, cost) = mem::take(&mut conversation.released);
                state.intake.release(rows, cost);
                let lane = &mut state.intake.lanes_mut()[at];
                lane.acked += rows;
                lane.is_open =
                    conversation.window.is_open() && conversation.window.obstacle().is_none();
                let standing = &mut state.standings[at];
                conversation.tell(standing, now);
            }
            // Rows accepted just before are put into the spool.
            state.stop && !state.intake.has_sealed()
        };
        self.shared.changed.notify_all();
        if is_over {
            for conversation in &mut self.conversations {
                if let Some(spool) = conversation.spool.take() {
                    spool.close();
                }
            }
        }
        is_over
    }

    /// Sleeps until something happens or is due.
    fn sleep(&mut self, linger: Option<Instant>) {
        self.shared.asleep.store(true, Ordering::SeqCst);
        // Rows accepted before the flag was set did not wake this thread.
        let is_idle = {
            let state = self.shared.state();
            !state.stop && !state.intake.has_work(linger)
        };
        if is_idle {
            let timeouts = self.conversations.iter();
            let due = timeouts.filter_map(Conversation::poll_timeout);
            let due = due.chain(linger).min();
            let item = |socket| PollItem::socket(socket, Events::READABLE);
            let links = self
                .conversations
                .iter()
                .map(|conversation| &conversation.link);
            let sockets = links.flat_map(|link| [link.socket(), link.events()]);
            let mut items: Vec<PollItem<'_>> = sockets.chain([&self.alarm]).map(item).collect();
            // An interrupting signal is a good reason to check, too.
            let _ = poll(&mut items, due);
        }
        self.shared.asleep.store(false, Ordering::SeqCst);
        while self.alarm.recv(Wait::Dont).is_ok() {}
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Also after a panic, so that no caller waits for a thread that has ended.
        self.shared.end();
    }
}
