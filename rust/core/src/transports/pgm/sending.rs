//! The work of a sender in an I/O thread.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use bytes::Bytes;
use socket2::Socket;
use zeroxide_proto::pgm::{DATA_HEAD, Packer, Sender, SenderConfig, Tsi};

use super::place::Meeting;
use crate::monitor::{EventKind, MonitorEvent};
use crate::sys::chance;
use crate::sys::clock;
use crate::sys::datagram::{BATCH, Inbox, Outgoing, send};
use crate::transports::messages::{MessagePipe, MessagePort};
use crate::transports::worker::{IoWork, Next};

/// The number of batches that are sent or received before other sockets of the thread have their turn.
const TURN: usize = 16;
/// The size of the largest datagram of a receiver.
const REQUEST_MAX: usize = 1024;

/// See the module text.
pub(super) struct Sending {
    socket: Socket,
    pipe: MessagePipe,
    port: MessagePort,
    place: Meeting,
    sender: Sender,
    packer: Packer,
    /// The messages that end in the packet that the sender has not sent yet.
    packed: u64,
    /// The bytes of packets that the kernel has not accepted, without those that are repeated.
    unsent: u64,
    outbox: VecDeque<Parcel>,
    inbox: Inbox,
    /// After the socket has closed its end: until when to go on sending. `None` means forever.
    deadline: Option<Option<Instant>>,
}

/// A datagram that the kernel has not accepted yet.
struct Parcel {
    bytes: Bytes,
    /// The messages that end in it.
    messages: u64,
    /// The bytes of its messages, unless it was sent before.
    fresh: u64,
}

impl Sending {
    pub(super) fn new(
        socket: Socket,
        pipe: MessagePipe,
        port: MessagePort,
        place: Meeting,
    ) -> Sending {
        let options = &port.options;
        let random = chance::number().to_be_bytes();
        let [g0, g1, g2, g3, g4, g5, p0, p1] = random;
        let config = SenderConfig {
            tsi: Tsi {
                gsi: [g0, g1, g2, g3, g4, g5],
                port: u16::from_be_bytes([p0, p1]),
            },
            port: place.port,
            nla: place.own,
            group: place.group,
            rate: u64::from(options.rate) * 1000 / 8,
            headers: place.headers,
            window: place.window(options),
            first: 0,
        };
        Sending {
            sender: Sender::new(config, clock::now()),
            socket,
            pipe,
            port,
            place,
            packer: Packer::default(),
            packed: 0,
            unsent: 0,
            outbox: VecDeque::new(),
            inbox: Inbox::new(REQUEST_MAX),
            deadline: None,
        }
    }

    /// Processes what receivers request. Returns true if there may be more.
    fn input(&mut self) -> bool {
        let mut failures = 0;
        for _ in 0..TURN {
            match self.inbox.fill(self.socket.as_fd()) {
                Ok(_) => failures = 0,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // The error of a datagram that was sent before.
                Err(_) if failures == 0 => {
                    failures = 1;
                    continue;
                }
                // A socket has one such error. This one would stay, and take the whole core: the next request is the next try.
                Err(_) => return false,
            }
            while let Some(incoming) = self.inbox.next() {
                let packet = self.place.packet(incoming.bytes);
                // Receivers count what is malformed; a sender has nothing to deliver.
                let _ = self.sender.handle_datagram(packet);
            }
        }
        true
    }

    /// Sends what the rate allows. Returns true if there may be more.
    fn output(&mut self, now: Instant) -> bool {
        for _ in 0..TURN {
            while self.outbox.len() < BATCH {
                self.refill();
                let had_room = self.sender.has_room();
                let Some(bytes) = self.sender.poll_transmit(now) else {
                    break;
                };
                let is_new = !had_room && self.sender.has_room();
                let (messages, fresh) = match is_new {
                    true => (std::mem::take(&mut self.packed), bytes.len() - DATA_HEAD),
                    false => (0, 0),
                };
                self.outbox.push_back(Parcel {
                    bytes,
                    messages,
                    fresh: fresh as u64,
                });
            }
            if self.outbox.is_empty() || !self.send_batch() {
                return false;
            }
        }
        true
    }

    /// Gives the sender a packet, if it has room and there are messages.
    fn refill(&mut self) {
        if !self.sender.has_room() {
            return;
        }
        let size = self.place.packet - self.place.headers - DATA_HEAD;
        let pipe = &mut self.pipe.pipe;
        let next = || pipe.check_read().then(|| pipe.read()).flatten();
        if let Some(packed) = self.packer.pack(DATA_HEAD, size, next) {
            self.packed = packed.messages;
            self.unsent += (packed.bytes.len() - DATA_HEAD) as u64;
            self.sender.push(packed.bytes);
        }
    }

    /// Sends from the outbox. Returns false if the kernel has no room.
    fn send_batch(&mut self) -> bool {
        let to = Some(self.place.reachable(self.place.group));
        let outgoing: Vec<_> = self
            .outbox
            .iter()
            .map(|parcel| Outgoing {
                to,
                head: &[],
                body: &parcel.bytes,
            })
            .collect();
        let count = match send(self.socket.as_fd(), &outgoing) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            // It counts as sent and lost on the way: receivers request it.
            Err(_) => 1,
            Ok(count) => count,
        };
        for parcel in self.outbox.drain(..count) {
            self.unsent = self.unsent.saturating_sub(parcel.fresh);
            self.pipe.pipe.account(parcel.messages);
        }
        true
    }

    /// The socket has closed its end. The remaining messages are sent, and repaired, until its linger time is over.
    fn drain(&mut self, now: Instant) -> Option<Next> {
        if self.pipe.pipe.is_finished() && !self.packer.has_more() && self.sender.has_room() {
            self.sender.end();
        }
        if self.sender.is_over() && self.outbox.is_empty() {
            return Some(Next::Never);
        }
        let linger = self.pipe.linger();
        let deadline = *self
            .deadline
            .get_or_insert_with(|| linger.and_then(|linger| now.checked_add(linger)));
        deadline
            .is_some_and(|deadline| deadline <= now)
            .then_some(Next::Never)
    }
}

impl IoWork for Sending {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn run(&mut self, now: Instant) -> Next {
        let was_closed = self.pipe.is_closed();
        let has_input = self.input();
        let has_output = self.output(now);
        if was_closed && let Some(next) = self.drain(now) {
            return next;
        }
        if has_input || has_output {
            return Next::Again;
        }
        let deadline = self.deadline.flatten();
        if !self.outbox.is_empty() {
            // Until the kernel has room.
            return deadline.map_or(Next::Event, Next::At);
        }
        let timeout = self.sender.poll_timeout();
        match timeout.into_iter().chain(deadline).min() {
            Some(at) => Next::At(at),
            None => Next::Again,
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let waiting: u64 = self.outbox.iter().map(|parcel| parcel.messages).sum();
        let left = waiting + self.packed + u64::from(self.packer.has_more());
        // The pipe reports them, together with those that are still in it.
        self.pipe.abandon(left, self.unsent);
        let event = MonitorEvent::new(
            EventKind::Disconnected,
            super::id(&self.socket),
            self.port.endpoint(),
        );
        self.port.emit(event);
    }
}
