//! The thread that sends writes to the wire itself, as long as messages come one by one.

use std::sync::TryLockError;
use std::time::{Duration, Instant};

use super::traffic::Output;
use super::{Link, Session, State, allowance};

/// Shorter gaps than this between two writes mean that messages come faster than single writes can carry them.
const INLINE_GAP: Duration = Duration::from_micros(15);

/// A hang-up that has come since the connection was last looked at must not be overlooked, and the I/O thread may not have
/// had the time to tell of it. A round trip that is quicker than this does not pay for another system call.
const BLIND: Duration = Duration::from_micros(30);

impl Session {
    /// The caller's thread writes to the wire if the connection is idle and nobody else drives it. False when the I/O
    /// thread has to do it.
    pub(super) fn send_inline(&self) -> bool {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return false,
        };
        if self.is_revoked() {
            return false;
        }
        let now = Instant::now();
        let State {
            link: Link::Up(up),
            closing: None,
            pipe,
            last_output,
            ..
        } = &mut *state
        else {
            return false;
        };
        if !up.engine.is_ready() || !up.writable || up.engine.has_transmit() || up.ended.is_some() {
            return false;
        }
        // Message by message: the peer has said one thing, which was received, and this is the answer.
        let turns = up.unanswered == 1 && pipe.as_ref().is_some_and(|p| p.queued_out() == 0);
        if !turns && now.duration_since(*last_output) < INLINE_GAP {
            return false;
        }
        // A peer that said something may be waiting for the answer.
        if up.unanswered == 0 && !allowance::is_left(now) {
            return false;
        }
        let is_raw = self.options.is_raw();
        if !is_raw && now.saturating_duration_since(up.looked) >= BLIND {
            up.looked = now;
            if up.stream.has_hung_up() {
                up.hung_up = true;
                up.readable = true;
            }
        }
        if up.is_over(is_raw) {
            // What is in the pipe stays there, for the next connection if there is one.
            return false;
        }
        let output = self.contain(&mut state, |state| self.output(state, now));
        allowance::spend(now, Instant::now());
        output == Some(Output::Idle)
    }
}
