//! The work of a receiver in an I/O thread.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use socket2::Socket;
use zeroxide_proto::message::Message;
use zeroxide_proto::pgm::{Event, Receiver, ReceiverConfig};

use super::place::Meeting;
use crate::budget::{Holder, Ruling, Share};
use crate::monitor::{EventKind, MonitorEvent, Party};
use crate::patterns::{Counters, DropReason};
use crate::sys::chance;
use crate::sys::datagram::{Inbox, Outgoing, send};
use crate::sys::sync::Weak;
use crate::transports::messages::{MessagePipe, MessagePort};
use crate::transports::worker::{IoWork, Next};

/// The number of batches that are received before other sockets of the thread have their turn.
const TURN: usize = 16;
/// The time until datagrams are received again after the system has refused that twice in a row.
const BACK_OFF: Duration = Duration::from_millis(10);
/// The size of the largest datagram, unless MULTICAST_MAXTPDU is above it: an Ethernet with large frames.
const DATAGRAM: usize = 9216;
/// The least size of the packets that wait for others.
const HELD_MIN: usize = 1 << 20;

/// See the module text.
pub(super) struct Receiving {
    socket: Socket,
    pipe: MessagePipe,
    port: MessagePort,
    place: Meeting,
    config: ReceiverConfig,
    receiver: Receiver,
    inbox: Inbox,
    /// A message for which the pipe had no room.
    waiting: Option<Message>,
    share: Share,
}

/// How far it has come.
enum Progress {
    /// An event will tell when there is more to do.
    Done,
    /// There is more to do.
    More,
    /// Look again at this time.
    At(Instant),
}

impl Receiving {
    pub(super) fn new(
        socket: Socket,
        pipe: MessagePipe,
        port: MessagePort,
        place: Meeting,
    ) -> Receiving {
        let window = place.window(&port.options);
        let held = (window as usize)
            .saturating_mul(place.packet)
            .saturating_mul(2);
        let config = ReceiverConfig {
            port: place.port,
            group: place.group,
            window,
            held_bytes: held.max(HELD_MIN),
            largest: port.options.max_msg_size.unwrap_or(u64::MAX),
            seed: chance::number(),
        };
        let mut share = port.budget.join();
        share.follow(&pipe.pipe);
        Receiving {
            socket,
            pipe,
            inbox: Inbox::new(place.packet.max(DATAGRAM)),
            receiver: Receiver::new(config.clone()),
            config,
            port,
            place,
            waiting: None,
            share,
        }
    }

    fn input(&mut self, now: Instant, counters: &mut Counters) -> Progress {
        let mut failures = 0;
        for _ in 0..TURN {
            if !self.deliver(counters) {
                return Progress::Done;
            }
            while let Some(incoming) = self.inbox.next() {
                let Some(from) = incoming.from else { continue };
                let packet = self.place.packet(incoming.bytes);
                let from = from.ip().to_canonical();
                if incoming.is_cut {
                    counters.add(DropReason::TooLarge, 1);
                } else if self.receiver.handle_datagram(from, packet, now).is_err() {
                    counters.add(DropReason::Malformed, 1);
                }
                if !self.deliver(counters) {
                    return Progress::Done;
                }
            }
            if let Some(at) = self.must_wait(now, counters) {
                return Progress::At(at);
            }
            match self.inbox.fill(self.socket.as_fd()) {
                Ok(_) => failures = 0,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Requests follow what has arrived, so that no packet is requested that is here already.
                    return self.handle_timeout(now, counters);
                }
                // The error of a datagram that was sent before.
                Err(_) if failures == 0 => failures = 1,
                // A socket has one such error. This one would stay, and take the whole core.
                Err(_) => return Progress::At(now + BACK_OFF),
            }
        }
        Progress::More
    }

    fn handle_timeout(&mut self, now: Instant, counters: &mut Counters) -> Progress {
        self.receiver.handle_timeout(now);
        while let Some(transmit) = self.receiver.poll_transmit() {
            let outgoing = Outgoing {
                to: Some(self.place.reachable(transmit.to)),
                head: &[],
                body: &transmit.bytes,
            };
            // A request that is lost is repeated.
            let _ = send(self.socket.as_fd(), &[outgoing]);
        }
        if !self.deliver(counters) {
            return Progress::Done;
        }
        self.receiver
            .poll_timeout()
            .map_or(Progress::Done, Progress::At)
    }

    /// Puts the messages into the pipe, and reports the other events. Returns false if the pipe has no room.
    fn deliver(&mut self, counters: &mut Counters) -> bool {
        loop {
            if let Some(mut message) = self.waiting.take() {
                if !self.pipe.pipe.check_write() {
                    self.waiting = Some(message);
                    return false;
                }
                self.pipe.pipe.write_unchecked(&mut message);
            }
            match self.receiver.poll_event() {
                None => return true,
                Some(Event::Message(message)) => self.waiting = Some(message),
                Some(Event::Gap(_, from, count)) => {
                    counters.add(DropReason::Gap, count);
                    let text =
                        format!("{count} packets of {from} were lost; it no longer has them");
                    self.emit(EventKind::Gap, count, from, Some(text));
                }
                Some(Event::Joined(_, from)) => {
                    self.emit(EventKind::Accepted, self.id(), from, None)
                }
                Some(Event::Left(_, from)) => {
                    self.emit(EventKind::Disconnected, self.id(), from, None);
                }
                Some(Event::Malformed) => counters.add(DropReason::Malformed, 1),
                Some(Event::TooLarge) => counters.add(DropReason::TooLarge, 1),
                Some(Event::Excess) => counters.add(DropReason::Excess, 1),
            }
        }
    }

    fn emit(&self, kind: EventKind, value: u64, from: IpAddr, reason: Option<String>) {
        let party = Party {
            address: from.to_string(),
            peer: None,
        };
        let mut event = MonitorEvent::new(kind, value, self.port.endpoint()).about(&party);
        event.reason = reason;
        self.port.emit(event);
    }

    fn id(&self) -> u64 {
        super::id(&self.socket)
    }

    /// When to receive again, if the senders hold too much of the context's memory.
    fn must_wait(&mut self, now: Instant, counters: &mut Counters) -> Option<Instant> {
        self.share.handle_timeout(now);
        let open = self.receiver.held_bytes();
        let gross = self.pipe.pipe.weight_written() + open;
        if !self.share.is_due(gross) {
            return None;
        }
        let ruling = self
            .share
            .look(gross, open, open > 0, now, || Weak::<Nothing>::new());
        match ruling {
            Ruling::Go => None,
            Ruling::Wait => self.share.poll_timeout(),
            Ruling::End => {
                // All senders are forgotten, and found again.
                counters.add(DropReason::NoMemory, 1);
                self.receiver = Receiver::new(self.config.clone());
                None
            }
        }
    }
}

/// Whether a sender has to make room is found out when it sends more.
struct Nothing;

impl Holder for Nothing {
    fn on_notice(&self) {}
}

impl IoWork for Receiving {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn run(&mut self, now: Instant) -> Next {
        // Subscriptions: the socket filters.
        while self.pipe.try_recv().is_some() {}
        if self.pipe.is_closed() {
            return Next::Never;
        }
        let mut counters = Counters::default();
        let progress = self.input(now, &mut counters);
        for reason in DropReason::ALL {
            let count = counters.dropped(reason);
            if count > 0 {
                self.port.port.count_drop(reason, count);
            }
        }
        self.pipe.pipe.flush();
        match progress {
            Progress::Done => Next::Event,
            Progress::More => Next::Again,
            Progress::At(at) => Next::At(at),
        }
    }
}
