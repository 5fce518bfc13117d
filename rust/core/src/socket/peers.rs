//! Counting peers and waiting for them, because messages that are sent too early reach no peer.

use std::ops::ControlFlow;

use super::core::{Core, State};
use super::{Socket, Wait, limit};
use crate::error::{Error, ErrorKind, Result};
use crate::pipe::PipeId;

impl Socket {
    /// Returns the number of peers that are connected now, with their handshakes finished.
    ///
    /// # Errors
    /// `Terminated`, `NotSocket`.
    pub fn count_connected(&self) -> Result<usize> {
        self.count(|_, state| Ok(connected(state).len()))
    }

    /// Waits until at least `count` peers are connected, and returns their number. [`Wait::Default`] means forever.
    ///
    /// # Errors
    /// `Again` when there are still fewer at the end of the wait, with their number in the text; `Interrupted`,
    /// `Terminated`, `NotSocket`.
    pub fn wait_connected(&self, count: usize, wait: Wait) -> Result<usize> {
        self.wait_for(count, wait, "connected", |_, state| {
            Ok(connected(state).len())
        })
    }

    /// Returns the number of peers that get a message that begins with `topic`, because they are subscribed to it or to
    /// a prefix of it. For a RADIO, `topic` is a group.
    ///
    /// # Errors
    /// `NotSupported` unless this is a PUB, XPUB or RADIO; `Terminated`, `NotSocket`.
    pub fn count_subscribed(&self, topic: impl AsRef<[u8]>) -> Result<usize> {
        let topic = topic.as_ref();
        self.count(|core, state| subscribed(core, state, topic))
    }

    /// Waits until at least `count` peers are subscribed to `topic` or a prefix of it, and returns their number.
    /// [`Wait::Default`] means forever.
    ///
    /// # Errors
    /// As [`count_subscribed`](Self::count_subscribed); `Again` when there are still fewer at the end of the wait, with
    /// their number in the text; `Interrupted`.
    pub fn wait_subscribed(
        &self,
        topic: impl AsRef<[u8]>,
        count: usize,
        wait: Wait,
    ) -> Result<usize> {
        let topic = topic.as_ref();
        self.wait_for(count, wait, "subscribed", |core, state| {
            subscribed(core, state, topic)
        })
    }

    fn count(&self, count: impl Fn(&Core, &mut State) -> Result<usize>) -> Result<usize> {
        let core = self.core();
        let mut state = core.lock_open()?;
        core.begin_run(&mut state);
        let counted = count(core, &mut state);
        core.end_run(&mut state, false);
        counted
    }

    fn wait_for(
        &self,
        wanted: usize,
        wait: Wait,
        what: &str,
        count: impl Fn(&Core, &mut State) -> Result<usize>,
    ) -> Result<usize> {
        let deadline = limit(wait, None);
        loop {
            let ticket = self.core().signal.ticket();
            let counted = self.count(&count)?;
            if counted >= wanted {
                return Ok(counted);
            }
            if let Err(error) = self.wait(ticket, deadline) {
                return Err(match error.kind() {
                    ErrorKind::Again => self.core().too_few(counted, wanted, what),
                    _ => error,
                });
            }
        }
    }
}

fn connected(state: &State) -> Vec<PipeId> {
    let mut ids = Vec::new();
    state.pipes.for_each(|id, pipe, _, _| {
        if pipe.is_connected() {
            ids.push(id);
        }
        ControlFlow::Continue(())
    });
    ids
}

fn subscribed(core: &Core, state: &mut State, topic: &[u8]) -> Result<usize> {
    let Some(mut ids) = state.pattern.subscribed(&mut state.pipes, topic) else {
        let socket_type = core.spec().socket_type;
        let name = socket_type.name();
        let wire = core.spec().wire();
        let text = if !wire.is_default() {
            format!(
                "a {name} socket with WIRE_PROTOCOL {} does not learn of subscriptions; wait for connected peers",
                wire.number
            )
        } else {
            format!("a {name} socket has no subscribers; only PUB, XPUB and RADIO sockets do")
        };
        return Err(Error::with(ErrorKind::NotSupported, text));
    };
    // Several topics of one peer may match.
    ids.sort_unstable_by_key(|id| id.0);
    ids.dedup();
    let connected = |id: &PipeId| state.pipes.get(*id).is_some_and(|pipe| pipe.is_connected());
    ids.retain(connected);
    Ok(ids.len())
}
