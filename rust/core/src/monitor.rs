//! Socket events: their names, their contents, and libzmq's wire format for them.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::SystemTime;

use bytes::{BufMut, BytesMut};
use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

use crate::error::Result;
use crate::signal::Signal;
use crate::sys::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::undelivered::address_of;

/// The kind of an event. The discriminants are libzmq's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum EventKind {
    /// A connection was made; the value is its descriptor.
    Connected = 0x1,
    /// A connect could not be completed at once and continues in the background.
    ConnectDelayed = 0x2,
    /// The next attempt follows after this many ms.
    ConnectRetried = 0x4,
    /// A listener is up; the value is its descriptor.
    Listening = 0x8,
    /// Binding failed; the value is the errno.
    BindFailed = 0x10,
    /// A connection was accepted; the value is its descriptor.
    Accepted = 0x20,
    /// Accepting failed; the value is the errno.
    AcceptFailed = 0x40,
    /// A descriptor was closed on purpose.
    Closed = 0x80,
    /// Closing failed; the value is the errno.
    CloseFailed = 0x100,
    /// An established connection ended.
    Disconnected = 0x200,
    /// This monitor has ended.
    MonitorStopped = 0x400,
    /// A handshake failed without a reason from the protocol; the value is an errno: `ECONNRESET` if the peer closed
    /// before its greeting, `EPIPE` if it closed later.
    HandshakeFailedNoDetail = 0x800,
    /// A handshake is complete.
    HandshakeSucceeded = 0x1000,
    /// A handshake broke the protocol; the value is one of libzmq's protocol error codes.
    HandshakeFailedProtocol = 0x2000,
    /// A handshake was refused; the value is the status: 300, 400 or 500.
    HandshakeFailedAuth = 0x4000,
    /// Packets of epgm or pgm got lost and could not be repaired; the value is their number. libzmq has no such event.
    Gap = 0x8000,
}

/// One event of a socket.
#[derive(Clone, Debug)]
pub struct MonitorEvent {
    /// The kind of the event.
    pub kind: EventKind,
    /// The value, whose meaning depends on `kind`.
    pub value: u64,
    /// The endpoint it happened to.
    pub endpoint: String,
    /// The other end of the connection, as far as it is known.
    pub party: Party,
    /// The reason in words, if there is one.
    pub reason: Option<String>,
    /// The time of the event.
    pub at: SystemTime,
    /// How many events before this one the reader missed, because too many were unread.
    pub missed: u64,
}

/// The other end of a connection.
#[derive(Clone, Debug, Default)]
pub struct Party {
    /// The peer's address with its port; `:uid:gid:pid` over ipc. Empty while there is no connection.
    pub address: String,
    /// The peer, as known from the handshake.
    pub peer: Option<Arc<PeerInfo>>,
}

impl Party {
    /// The approximate number of bytes in the peer's address and announcements.
    fn size(&self) -> usize {
        let announced = self.peer.as_deref().map_or(0, announced);
        self.address.len() + announced
    }

    /// The peer's address without its port.
    pub(crate) fn of(peer: Option<Arc<PeerInfo>>) -> Party {
        let address = peer.as_deref().map(address_of).unwrap_or_default();
        Party { address, peer }
    }
}

/// The approximate number of bytes in a peer's announcements.
pub(crate) fn announced(peer: &PeerInfo) -> usize {
    let properties = peer.properties.iter();
    properties
        .map(|(name, value)| PROPERTY_SIZE + name.len() + value.len())
        .sum()
}

impl MonitorEvent {
    /// An event at the present time, without a reason.
    pub fn new(kind: EventKind, value: u64, endpoint: &str) -> MonitorEvent {
        MonitorEvent {
            kind,
            value,
            endpoint: endpoint.to_owned(),
            party: Party::default(),
            reason: None,
            at: SystemTime::now(),
            missed: 0,
        }
    }

    /// Adds the reason in words.
    pub fn because(mut self, reason: impl ToString) -> MonitorEvent {
        self.reason = Some(reason.to_string());
        self
    }

    /// Adds the other end of the connection.
    pub fn about(mut self, party: &Party) -> MonitorEvent {
        self.party = party.clone();
        self
    }

    /// The approximate number of bytes that the event keeps in addition to its own size.
    fn size(&self) -> usize {
        let reason = self.reason.as_ref().map_or(0, String::len);
        self.endpoint.len() + reason + self.party.size()
    }

    /// The two frames of event format 1: six packed bytes in host order, then the endpoint.
    pub fn to_message(&self) -> Message {
        let mut head = BytesMut::with_capacity(6);
        head.put_slice(&(self.kind as u16).to_ne_bytes());
        head.put_slice(&(self.value as u32).to_ne_bytes());
        Message::from_frames([
            Frame::copy_from(&head),
            Frame::copy_from(self.endpoint.as_bytes()),
        ])
    }
}

/// The number of unread events from which on further ones are only counted.
const UNREAD_MAX: usize = 10_000;

/// The same in bytes of the texts of events and of the peers' announcements, which an event keeps after the peer has
/// left. Peers decide how long some reasons are.
const UNREAD_BYTES_MAX: usize = 4 << 20;

/// The approximate overhead of a property in addition to its bytes.
const PROPERTY_SIZE: usize = 64;

/// Events that wait for a reader.
pub(crate) struct EventQueue {
    state: Mutex<Queued>,
    signal: Signal,
}

#[derive(Default)]
struct Queued {
    events: VecDeque<MonitorEvent>,
    /// The total size of the events' texts and of the peers' announcements.
    bytes: usize,
    /// The number of events that were missed after the last one of `events`.
    missed: u64,
    stage: Stage,
}

/// Whether there may be more events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// There may be.
    #[default]
    Open,
    /// There are no more.
    Over(Over),
}

impl Stage {
    /// A closed socket stays closed when its context terminates.
    fn next(self, why: Over) -> Stage {
        match (self, why) {
            (Stage::Open, _) | (Stage::Over(_), Over::Closed) => Stage::Over(why),
            (Stage::Over(_), Over::Terminated) => self,
        }
    }
}

/// The reason why the stream of events has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    /// The socket or the reader was closed.
    Closed,
    /// The context was terminated.
    Terminated,
}

/// The result of reading from a queue.
pub(crate) enum Found {
    /// The next event.
    Event(Box<MonitorEvent>),
    /// No event yet.
    Nothing,
    /// No further events.
    Over(Over),
}

impl EventQueue {
    pub(crate) fn new() -> EventQueue {
        EventQueue {
            state: Mutex::default(),
            signal: Signal::new(),
        }
    }

    /// The signal on which readers wait.
    pub(crate) fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Returns false if there is no room. The next event that fits then reports how many did not.
    pub(crate) fn push(&self, event: &MonitorEvent) -> bool {
        let mut state = self.lock();
        if state.stage != Stage::Open {
            return true;
        }
        let size = event.size();
        if state.events.len() >= UNREAD_MAX || state.bytes + size > UNREAD_BYTES_MAX {
            state.missed += 1;
            return false;
        }
        state.bytes += size;
        let mut event = event.clone();
        event.missed = std::mem::take(&mut state.missed);
        state.events.push_back(event);
        self.announce();
        true
    }

    /// Ends the stream; queued events can still be read.
    pub(crate) fn end(&self, why: Over) {
        let mut state = self.lock();
        state.stage = state.stage.next(why);
        self.announce();
    }

    pub(crate) fn pop(&self) -> Found {
        let mut state = self.lock();
        let event = state.events.pop_front();
        state.bytes -= event.as_ref().map_or(0, MonitorEvent::size);
        let found = match (event, state.stage) {
            (Some(event), _) => Found::Event(Box::new(event)),
            (None, Stage::Over(why)) => Found::Over(why),
            (None, Stage::Open) => Found::Nothing,
        };
        if state.events.is_empty() && state.stage == Stage::Open {
            self.signal.lower();
        }
        found
    }

    /// A descriptor that is readable as long as [`pop`](Self::pop) returns something.
    pub(crate) fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        let state = self.lock();
        let fd = self.signal.descriptor()?;
        if !state.events.is_empty() || state.stage != Stage::Open {
            self.signal.raise();
        }
        Ok(fd)
    }

    /// Must be called with the state locked, so that the descriptor reflects the latest state.
    fn announce(&self) {
        self.signal.wake();
        self.signal.raise();
    }

    fn lock(&self) -> MutexGuard<'_, Queued> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing;
    use bytes::Bytes;

    drawing::events!(Over {
        Closed => "the socket or the stream is closed",
        Terminated => "the context is shut down",
    });

    #[test]
    fn the_page_shows_the_streams_of_events() {
        let name = |stage: Stage| format!("`{stage:?}`");
        drawing::check(
            "event stream",
            &[Stage::Open],
            EVENTS,
            Stage::next,
            name,
            event_name,
        );
    }

    #[test]
    fn unread_events_do_not_keep_the_announcements_of_thousands_of_peers() {
        let said = PeerInfo {
            socket_type: None,
            routing_id: Bytes::new(),
            version: (3, 1),
            mechanism: "NULL",
            user_id: None,
            key: None,
            properties: vec![("X".to_owned(), Bytes::from(vec![0; 60_000]))],
        };
        let queue = EventQueue::new();
        let push = |peer| {
            let party = Party {
                address: String::new(),
                peer,
            };
            let event = MonitorEvent::new(EventKind::HandshakeSucceeded, 0, "tcp://here");
            queue.push(&event.about(&party))
        };
        let fitting = UNREAD_BYTES_MAX / 60_000 - 1;
        for n in 0..1000 {
            assert_eq!(push(Some(Arc::new(said.clone()))), n <= fitting);
        }
        assert_eq!(queue.lock().events.len(), fitting + 1);
        // Events without a peer still fit, and the first of them reports the missed ones.
        assert!(push(None));
        for n in 0..fitting + 2 {
            let Found::Event(event) = queue.pop() else {
                panic!("event {n}");
            };
            let missed = if n > fitting { 999 - fitting as u64 } else { 0 };
            assert_eq!(event.missed, missed);
        }
        assert_eq!(queue.lock().bytes, 0);
        assert!(push(Some(Arc::new(said))));
        assert!(matches!(queue.pop(), Found::Event(_)));
    }

    #[test]
    fn unread_events_do_not_keep_megabytes_of_text() {
        let queue = EventQueue::new();
        let event = MonitorEvent::new(EventKind::Disconnected, 0, "tcp://here");
        let said = event.clone().because("x".repeat(8000));
        let mut fitting = 0;
        while queue.push(&said) {
            fitting += 1;
            assert!(fitting < UNREAD_MAX, "nothing limits the reasons");
        }
        assert_eq!(fitting, UNREAD_BYTES_MAX / (8000 + 10));
        let party = Party {
            address: "y".repeat(8000),
            peer: None,
        };
        assert!(!queue.push(&event.clone().about(&party)));
        assert!(queue.push(&event));
        for _ in 0..=fitting {
            assert!(matches!(queue.pop(), Found::Event(_)));
        }
        assert_eq!(queue.lock().bytes, 0);
    }
}
