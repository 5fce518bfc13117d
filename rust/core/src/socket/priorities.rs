//! Priorities of endpoints: which peers go first.

use super::Socket;
use super::core::{Core, State};
use crate::error::{Error, ErrorKind, Result};
use crate::patterns::{PRIORITIES, Priority};
use crate::pipe::PipeId;

impl Socket {
    /// Changes the priorities of the peers of an endpoint that the socket has bound or connected to: for what is sent to
    /// them, and for what is received from them. 1 is the best, 16 the last, and `None` leaves a priority as it is. The
    /// options SNDPRIO and RCVPRIO are the priorities of later binds and connects.
    ///
    /// Peers with the best priority get all messages as long as one of them has room, and their messages are received
    /// before all others. Peers with the same priority take turns. Types that do not choose a peer ignore this: PUB, for
    /// example, sends to all.
    ///
    /// ```
    /// # use zeroxide::{Context, SocketType, Wait};
    /// # fn main() -> zeroxide::Result<()> {
    /// # let context = Context::new();
    /// # let (first, second) = (context.socket(SocketType::Pull)?, context.socket(SocketType::Pull)?);
    /// # let (here, there) = (first.bind("inproc://here")?, second.bind("inproc://there")?);
    /// let push = context.socket(SocketType::Push)?;
    /// push.connect(&here)?;
    /// push.set_sndprio(2)?;
    /// push.connect(&there)?;
    /// push.send("to there", Wait::Forever)?;
    /// push.set_priority(&here, Some(1), None)?;
    /// push.send("to here", Wait::Forever)?;
    /// # assert_eq!(first.recv(Wait::Forever)?, zeroxide::Message::from("to here"));
    /// # assert_eq!(second.recv(Wait::Forever)?, zeroxide::Message::from("to there"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a priority that is not 1 to 16; `NoEntry` if the socket is neither bound nor connected to the endpoint;
    /// `Terminated`, `NotSocket`.
    pub fn set_priority(&self, endpoint: &str, send: Option<u8>, recv: Option<u8>) -> Result<()> {
        for priority in send.iter().chain(&recv) {
            if !(1..=PRIORITIES).contains(&usize::from(*priority)) {
                let text = format!("a priority is 1 to {PRIORITIES}, not {priority}");
                return Err(Error::with(ErrorKind::Invalid, text));
            }
        }
        let core = self.core();
        let mut state = core.lock_open()?;
        // New pipes that the I/O thread has posted belong to the endpoint as well.
        core.process(&mut state);
        let sources = state.endpoints.sources(endpoint);
        if sources.is_empty() {
            let text = format!("this socket is neither bound nor connected to {endpoint}");
            return Err(Error::with(ErrorKind::NoEntry, text));
        }
        for source in sources {
            let before = state.endpoints.priority(source);
            let priority = Priority {
                send: send.unwrap_or(before.send),
                recv: recv.unwrap_or(before.recv),
            };
            state.endpoints.set_priority(source, priority);
            apply(&mut state, source, priority);
        }
        core.level(&mut state);
        drop(state);
        core.signal.wake();
        Ok(())
    }
}

impl Core {
    /// Applies SNDPRIO and RCVPRIO to a bind or connect that begins.
    pub(super) fn begin_priority(&self, state: &mut State, source: u64) {
        let priority = Priority {
            send: state.options.sndprio,
            recv: state.options.rcvprio,
        };
        state.endpoints.set_priority(source, priority);
    }
}

/// Changes the priorities of the pipes that a bind or connect has.
fn apply(state: &mut State, source: u64, priority: Priority) {
    let origins = state.origins.iter();
    let ids: Vec<PipeId> = origins
        .filter(|(_, origin)| origin.source == source)
        .map(|(id, _)| *id)
        .collect();
    for id in ids {
        state.pattern.set_priority(id, priority);
    }
}
