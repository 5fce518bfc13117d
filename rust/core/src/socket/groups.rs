//! The groups of DISH sockets, and peers that are addressed by numbers.

use super::Socket;
use super::core::{Core, State};
use crate::error::{Error, ErrorKind, Result};
use crate::patterns::DoomReason;

impl Socket {
    /// Joins a group, so that its messages are received, in addition to those of earlier groups. This is for DISH.
    /// Groups match exactly, unlike topics.
    ///
    /// ```
    /// # fn main() -> zeroxide::Result<()> {
    /// # use zeroxide::{Context, Message, SocketType, Wait};
    /// # let context = Context::new();
    /// # let radio = context.socket(SocketType::Radio)?;
    /// # let dish = context.socket(SocketType::Dish)?;
    /// # dish.connect(&radio.bind("inproc://radio")?)?;
    /// dish.join("weather")?;
    /// radio.wait_subscribed("weather", 1, Wait::Forever)?;
    /// radio.send(Message::from("4.5").with_group("weather"), Wait::Forever)?;
    /// assert_eq!(dish.recv(Wait::Forever)?.group(), Some(&b"weather"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if the group is already joined, is longer than 255 bytes, or contains a zero byte; `NotSupported` for
    /// other types; `Terminated`, `NotSocket`.
    pub fn join(&self, group: impl AsRef<[u8]>) -> Result<()> {
        self.change(|state| state.pattern.join(&mut state.pipes, group.as_ref()))
    }

    /// Leaves a group that was joined with [`join`](Self::join).
    ///
    /// # Errors
    /// `Invalid` if the group is not joined; otherwise as [`join`](Self::join).
    pub fn leave(&self, group: impl AsRef<[u8]>) -> Result<()> {
        self.change(|state| state.pattern.leave(&mut state.pipes, group.as_ref()))
    }

    fn change(&self, change: impl FnOnce(&mut State) -> Result<()>) -> Result<()> {
        let core = self.core();
        let mut state = core.lock_open()?;
        core.process(&mut state);
        change(&mut state).map_err(|error| match error.kind() {
            ErrorKind::NotSupported => Error::with(
                ErrorKind::NotSupported,
                format!("only DISH joins groups, not {}", core.spec().socket_type),
            ),
            _ => error,
        })?;
        core.settle(&mut state);
        core.level(&mut state);
        Ok(())
    }

    /// Connects to an endpoint, and returns the routing id of the peer there, so that messages can be sent to it at
    /// once. This is for PEER and SERVER.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); `NotSupported` for other types; `Fault` with IMMEDIATE, because the peer then
    /// does not exist before the connection does.
    pub fn connect_peer(&self, endpoint: &str) -> Result<u32> {
        let core = self.core();
        core.check_numbers()?;
        if core.lock_open()?.options.immediate {
            let text = "connect_peer needs IMMEDIATE to be off: with it, the peer has no routing id before it is connected";
            return Err(Error::with(ErrorKind::Fault, text));
        }
        let source = core.connect(endpoint)?;
        let state = core.lock_open()?;
        let mut pipes = state.origins.iter();
        pipes
            .find(|(_, origin)| Some(origin.source) == source)
            .and_then(|(id, _)| state.pattern.peer_number(*id))
            .ok_or_else(|| nobody("the peer has left already"))
    }

    /// Ends the connection to the peer with this routing id. If this socket made the connection, it does not reconnect.
    ///
    /// # Errors
    /// `HostUnreachable` if no peer has the routing id; `NotSupported` for types whose peers have none; `Terminated`,
    /// `NotSocket`.
    pub fn disconnect_peer(&self, routing_id: u32) -> Result<()> {
        let core = self.core();
        core.check_numbers()?;
        let mut state = core.lock_open()?;
        core.process(&mut state);
        let id = state.pattern.peer_numbered(routing_id);
        let id = id.ok_or_else(|| nobody(&format!("no peer has the routing id {routing_id}")))?;
        let source = state.origins.get(&id).map(|origin| origin.source);
        match source.and_then(|source| state.endpoints.take_connect(source)) {
            Some(entry) => core.take_back(&mut state, entry),
            None => {
                state.pipes.doom(id, DoomReason::Requested);
                core.settle(&mut state);
            }
        }
        core.level(&mut state);
        Ok(())
    }
}

impl Core {
    fn check_numbers(&self) -> Result<()> {
        if self.spec().numbers_peers {
            return Ok(());
        }
        let text = format!(
            "the peers of a {} socket have no numbers; those of PEER and SERVER do",
            self.spec().socket_type
        );
        Err(Error::with(ErrorKind::NotSupported, text))
    }
}

fn nobody(text: &str) -> Error {
    Error::with(ErrorKind::HostUnreachable, text)
}
