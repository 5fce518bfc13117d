//! The deadlines of a pattern, for which the socket sets its alarm.

use std::time::Instant;

use super::alarm::{Alarm, Alarmed};
use super::core::{Core, State};
use super::post::Post;
use crate::sys::clock;
use crate::sys::sync::Weak;

impl Core {
    /// Called when the pattern may have a new deadline.
    #[inline(never)]
    pub(super) fn set_alarm(&self, state: &mut State) {
        if let Some(due) = state.pattern.poll_timeout() {
            self.set_alarm_at(state, due);
        }
    }

    /// The pattern has stopped before it had read everything, because a call must end. An I/O thread reports the alarm at
    /// once: it lets the pattern go on, and wakes the calls that wait. They would otherwise not look again.
    pub(super) fn look_soon(&self, state: &mut State) {
        if self.is_closed() {
            return;
        }
        self.set_alarm_at(state, clock::now());
        if state.alarm.is_none() {
            self.inner.post(Post::Alarm);
            self.signal.wake();
        }
    }

    fn set_alarm_at(&self, state: &mut State, due: Instant) {
        if state.alarm.is_none() {
            // Without an I/O thread, there are no deadlines. The socket itself keeps the context from ending.
            state.alarm = self
                .registry
                .choose_io(state.options.affinity)
                .ok()
                .map(|(io, _)| {
                    let owner: Weak<Core> = self.weak();
                    Alarm::new(io, owner)
                });
        }
        if let Some(alarm) = &mut state.alarm {
            alarm.set(due);
        }
    }

    /// Lets the pattern look which of its deadlines have passed.
    pub(super) fn handle_alarm(&self, state: &mut State) {
        if let Some(alarm) = &mut state.alarm {
            alarm.note_report();
        }
        let now = clock::now();
        if state.pattern.poll_timeout().is_some_and(|due| due <= now) {
            state.pattern.handle_timeout(&mut state.pipes, now);
        }
        state.pattern.go_on(&mut state.pipes);
        self.set_alarm(state);
    }

    /// Called when the socket has been closed.
    pub(super) fn end_alarm(&self, state: &mut State) {
        if let Some(alarm) = state.alarm.take() {
            alarm.end();
        }
    }
}

impl Alarmed for Core {
    fn on_alarm(&self) {
        self.post(Post::Alarm, true);
    }

    fn is_over(&self) -> bool {
        self.is_closed()
    }
}
