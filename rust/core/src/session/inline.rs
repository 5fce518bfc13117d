//! Lets the thread that sends write to the wire itself, when [`pace`](crate::pace) allows it.

use std::sync::TryLockError;

use super::life::Closing;
use super::sides::{InletEvent, Outlet};
use super::traffic::Output;
use super::{Link, Session, State};
use crate::pace;
use crate::sys::clock;

impl Session {
    /// Writes to the wire from the caller's thread if the connection is idle and no other thread drives it. Returns
    /// false if the I/O thread has to write.
    pub(super) fn send_inline(&self) -> bool {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return false,
        };
        if self.is_revoked() {
            return false;
        }
        let now = clock::now();
        let State {
            link: Link::Up(up),
            closing: Closing::No,
            pipe,
            ..
        } = &mut *state
        else {
            return false;
        };
        if !up.engine.is_ready()
            || up.outlet != Outlet::Room
            || up.engine.has_transmit()
            || up.ended.is_some()
        {
            return false;
        }
        let is_alone = pipe.as_ref().is_some_and(|pipe| pipe.queued_out() == 0);
        if !up.writing.may_write_now(now, is_alone) {
            return false;
        }
        let is_raw = self.options.is_raw();
        if !is_raw && up.writing.must_look_first(now) {
            up.writing.note_look(now);
            if up.stream.has_hung_up() {
                up.hung_up = true;
                up.inlet = up.inlet.next(InletEvent::Arrive);
            }
        }
        if up.is_over(is_raw) {
            // The messages stay in the pipe, for the next connection if there is one.
            return false;
        }
        let output = self.contain(&mut state, |state| self.output(state, now));
        pace::note_written(now, clock::now());
        output == Some(Output::Idle)
    }
}
