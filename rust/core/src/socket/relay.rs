//! Passing a run of messages from one socket to another, under the locks of both, with one publication and one wake.

use std::sync::Arc;
use std::{ptr, result};

use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::message::Message;

use super::calls::Source;
use super::core::{Core, State};
use super::{SendError, Socket};
use crate::error::{Error, ErrorKind, Result};
use crate::patterns::DropReason;
use crate::port::SocketPort;

/// The result of a run.
#[derive(Default)]
pub(crate) struct Relayed {
    /// The number of messages delivered.
    pub(crate) messages: u64,
    /// The size of these messages in bytes.
    pub(crate) bytes: u64,
    /// A message that was received but not delivered: its receiver has no room, or sending it failed.
    pub(crate) stuck: Option<Stuck>,
    /// The reason why the relay cannot continue, if any.
    pub(crate) failed: Option<Error>,
}

/// A message between two sockets.
pub(crate) struct Stuck {
    pub(crate) message: Message,
    /// The sender of the message.
    pub(crate) peer: Option<Arc<PeerInfo>>,
}

impl Socket {
    /// Passes up to `max` messages on to `to`, while there are messages and room for them. `look` sees each message
    /// first, and may change it. This never waits for a peer.
    ///
    /// # Errors
    /// `Terminated` and `NotSocket` of either socket, before any message was received.
    pub(crate) fn relay(
        &self,
        to: &Socket,
        max: usize,
        look: &mut dyn FnMut(&mut Message),
    ) -> Result<Relayed> {
        let (source, target) = (self.core(), to.core());
        let mut relay = Relay {
            source,
            target,
            max,
            look,
            done: Relayed::default(),
        };
        if ptr::eq(source, target) {
            let mut state = source.lock_open()?;
            source.begin_run(&mut state);
            let result = relay.echo(&mut state);
            source.end_run(&mut state, relay.done.messages > 0);
            relay.done.failed = result.err();
            return Ok(relay.done);
        }
        // The locks are always taken in the same order, because another thread may be relaying in the other direction.
        let (mut from, mut into);
        if ptr::from_ref(source) < ptr::from_ref(target) {
            from = source.lock_open()?;
            into = target.lock_open()?;
        } else {
            into = target.lock_open()?;
            from = source.lock_open()?;
        }
        source.begin_run(&mut from);
        target.begin_run(&mut into);
        let result = relay.run(&mut from, &mut into);
        let moved = relay.done.messages > 0;
        source.end_run(&mut from, moved);
        target.end_run(&mut into, moved);
        relay.done.failed = result.err();
        Ok(relay.done)
    }

    /// Drops and counts a message that could not be sent, unless the error concerns more than this message.
    ///
    /// # Errors
    /// The given error, if it concerns more than this message.
    pub(crate) fn drop_unwanted(&self, error: Error) -> Result<()> {
        match unwanted(error.kind()) {
            Some(reason) => self.core().count_drop(reason, 1),
            None if error.kind() == ErrorKind::Fsm => {}
            None => return Err(error),
        }
        Ok(())
    }
}

struct Relay<'a> {
    source: &'a Core,
    target: &'a Core,
    max: usize,
    look: &'a mut dyn FnMut(&mut Message),
    done: Relayed,
}

impl Relay<'_> {
    fn run(&mut self, from: &mut State, into: &mut State) -> Result<()> {
        while self.wants_more() && self.target.sends_now(into) {
            let Some((message, source)) = self.next(from)? else {
                break;
            };
            if let Err(kept) = self.pass(into, message) {
                self.keep(from, source, kept)?;
            }
        }
        Ok(())
    }

    /// Relays from a socket to itself. Such a socket may be able to send only because it has received.
    fn echo(&mut self, state: &mut State) -> Result<()> {
        while self.wants_more() {
            let Some((message, source)) = self.next(state)? else {
                break;
            };
            if let Err(kept) = self.pass(state, message) {
                self.keep(state, source, kept)?;
            }
        }
        Ok(())
    }

    fn wants_more(&mut self) -> bool {
        let more = self.max > 0 && self.done.stuck.is_none();
        self.max = self.max.saturating_sub(1);
        more
    }

    fn next(&mut self, from: &mut State) -> Result<Option<(Message, Source)>> {
        if !self.source.spec().can_recv {
            return Ok(None);
        }
        let received = match from.returned.pop_front() {
            Some(returned) => Ok((
                returned.message,
                Source::Returned(returned.order, returned.peer),
            )),
            None => {
                let mut message = Message::new();
                let result = from.pattern.recv(&mut from.pipes, &mut message);
                result.map(|id| (message, Source::Pipe(id)))
            }
        };
        match received {
            Ok((mut message, source)) => {
                (self.look)(&mut message);
                Ok(Some((message, source)))
            }
            Err(error) if matches!(error.kind(), ErrorKind::Again | ErrorKind::Fsm) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a message to the target. Returns it if it must not be dropped.
    fn pass(&mut self, into: &mut State, mut message: Message) -> result::Result<(), SendError> {
        let size = message.size() as u64;
        match self.target.hand_over(into, &mut message) {
            Ok(()) => {
                self.done.messages += 1;
                self.done.bytes += size;
            }
            Err(error) => match error.kind() {
                ErrorKind::Again => return Err(SendError { message, error }),
                ErrorKind::Fsm => {}
                kind => match unwanted(kind) {
                    Some(reason) => into.pipes.count_drop(None, reason),
                    None => return Err(SendError { message, error }),
                },
            },
        }
        Ok(())
    }

    /// Stores a message that could not be passed on, and its sender. Fails unless the message only has to wait.
    fn keep(&mut self, from: &mut State, source: Source, kept: SendError) -> Result<()> {
        let SendError { message, error } = kept;
        let peer = Core::peer_of(from, source);
        self.done.stuck = Some(Stuck { message, peer });
        if error.kind() == ErrorKind::Again {
            Ok(())
        } else {
            Err(error)
        }
    }
}

/// The reason to drop a message, if an error concerns this message only. A peer must not be able to end the relay for
/// all others with one message.
fn unwanted(kind: ErrorKind) -> Option<DropReason> {
    match kind {
        ErrorKind::HostUnreachable => Some(DropReason::Unroutable),
        ErrorKind::Invalid => Some(DropReason::Malformed),
        _ => None,
    }
}

impl Core {
    fn sends_now(&self, state: &mut State) -> bool {
        self.spec().can_send
            && !self.must_receive_first(state)
            && state.pattern.can_send(&mut state.pipes)
    }
}
