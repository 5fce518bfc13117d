//! The work of one socket for datagrams in an I/O thread: it sends what is in the pipe, and puts what it receives into the pipe.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use socket2::Socket;
use zeroxide_proto::datagram::{LARGEST, head, split};
use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::message::Message;

use super::{Rejoin, Renew};
use crate::budget::{Holder, Ruling, Share};
use crate::monitor::{EventKind, MonitorEvent, Party};
use crate::patterns::{Counters, DropReason, datagram_address};
use crate::sys::clock;
use crate::sys::datagram::{BATCH, Inbox, Outgoing, disconnect, dropped, has_room, send};
use crate::sys::sync::Weak;
use crate::transports::messages::{MessagePipe, MessagePort};
use crate::transports::worker::{IoWork, Next};

/// The number of batches that are sent or received before other sockets of the thread have their turn.
const TURN: usize = 16;

/// The time until datagrams are received again after the system has refused that twice in a row.
const BACK_OFF: Duration = Duration::from_millis(10);

/// The minimum interval between two attempts to connect a socket again.
const RENEW_IVL: Duration = Duration::from_millis(1);

/// How often a member of a multicast group checks that its interface is still there.
const REJOIN_IVL: Duration = Duration::from_secs(5);

/// See the module text.
pub(super) struct Flow {
    socket: Socket,
    pipe: MessagePipe,
    port: MessagePort,
    /// The receiver that the socket is connected to, and how to connect to it again.
    receiver: Option<(Party, Renew)>,
    /// The earliest time at which the socket is connected again after an error.
    renew_at: Option<Instant>,
    outbox: VecDeque<Parcel>,
    /// The kernel has not accepted all datagrams of the last call, although it had room.
    was_cut_short: bool,
    /// After the socket has closed its end: until when to go on sending. `None` means forever.
    deadline: Option<Option<Instant>>,
    inlet: Option<Inlet>,
}

/// What only a bound socket has.
struct Inlet {
    sorting: Sorting,
    is_ipv6: bool,
    inbox: Inbox,
    share: Share,
    /// The kernel's count of dropped datagrams, as last seen.
    overruns: u32,
    /// The pipe had no room, so the kernel's buffer may have become full.
    was_full: bool,
    /// How to join the multicast group again, and when.
    rejoin: Option<(Rejoin, Instant)>,
}

/// How messages are distinguished.
pub(super) enum Sorting {
    /// By group; these were joined.
    Groups(BTreeSet<Box<[u8]>>),
    /// By address.
    Addresses,
}

/// A datagram that the kernel has not accepted yet.
struct Parcel {
    to: Option<SocketAddr>,
    head: Vec<u8>,
    body: Frame,
}

/// How far a direction has come.
#[derive(PartialEq, Eq)]
enum Progress {
    /// An event will tell when there is more to do.
    Done,
    /// There is more to do.
    More,
    /// Look again at this time.
    At(Instant),
}

impl Flow {
    /// The work of a connected socket.
    pub(super) fn sending(
        socket: Socket,
        pipe: MessagePipe,
        port: MessagePort,
        receiver: (Party, Renew),
    ) -> Flow {
        Flow {
            socket,
            pipe,
            port,
            receiver: Some(receiver),
            renew_at: None,
            outbox: VecDeque::new(),
            was_cut_short: false,
            deadline: None,
            inlet: None,
        }
    }

    /// The work of a bound socket.
    pub(super) fn receiving(
        socket: Socket,
        pipe: MessagePipe,
        port: MessagePort,
        sorting: Sorting,
        rejoin: Option<Rejoin>,
    ) -> Flow {
        let mut share = port.budget.join();
        share.follow(&pipe.pipe);
        // libzmq sends no larger datagrams for groups; other programs do.
        let size = match sorting {
            Sorting::Groups(_) => LARGEST,
            Sorting::Addresses => usize::from(u16::MAX),
        };
        let inlet = Inlet {
            sorting,
            is_ipv6: socket.local_addr().is_ok_and(|local| local.is_ipv6()),
            inbox: Inbox::new(size),
            share,
            overruns: 0,
            was_full: false,
            rejoin: rejoin.map(|rejoin| (rejoin, clock::now() + REJOIN_IVL)),
        };
        Flow {
            socket,
            pipe,
            port,
            receiver: None,
            renew_at: None,
            outbox: VecDeque::new(),
            was_cut_short: false,
            deadline: None,
            inlet: Some(inlet),
        }
    }

    fn count(&self, reason: DropReason, count: u64) {
        if count > 0 {
            self.port.port.count_drop(reason, count);
        }
    }

    // ---- sending -----------------------------------------------------------------------------------------------------

    /// Sends what is in the pipe, or follows what it says about groups.
    fn output(&mut self) -> Progress {
        if let Some(Inlet {
            sorting: Sorting::Groups(joined),
            ..
        }) = &mut self.inlet
        {
            follow(joined, &mut self.pipe);
            return Progress::Done;
        }
        for _ in 0..TURN {
            self.refill();
            if self.outbox.is_empty() {
                self.take_error();
                return Progress::Done;
            }
            if !self.send_batch() {
                return Progress::Done;
            }
        }
        Progress::More
    }

    /// Takes messages out of the pipe, as many as one call sends.
    fn refill(&mut self) {
        while self.outbox.len() < BATCH && self.pipe.pipe.check_read() {
            let Some(message) = self.pipe.pipe.read() else {
                return;
            };
            match self.parcel(message) {
                Some(parcel) => self.outbox.push_back(parcel),
                // The pattern checks messages before it sends them.
                None => self.lose(1, 0),
            }
        }
    }

    fn parcel(&self, mut message: Message) -> Option<Parcel> {
        let first = message.pop_front()?;
        let body = message.into_head();
        Some(match &self.inlet {
            Some(inlet) => Parcel {
                to: Some(inlet.reachable(datagram_address(&first)?)?),
                head: Vec::new(),
                body,
            },
            None => Parcel {
                to: None,
                head: head(&first)?,
                body,
            },
        })
    }

    /// Sends from the outbox. Returns false if the kernel has no room.
    fn send_batch(&mut self) -> bool {
        let outgoing: Vec<_> = self
            .outbox
            .iter()
            .take(BATCH)
            .map(Parcel::outgoing)
            .collect();
        let tried = outgoing.len();
        let sent = send(self.socket.as_fd(), &outgoing);
        let was_cut_short = std::mem::take(&mut self.was_cut_short);
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) => {
                self.failed(&error);
                true
            }
            Ok(count) => {
                if was_cut_short {
                    // The datagram after those had an error, which was that of an earlier one.
                    self.lose(0, 1);
                }
                self.was_cut_short = count < tried && has_room(self.socket.as_fd());
                self.outbox.drain(..count);
                self.pipe.pipe.account(count as u64);
                true
            }
        }
    }

    /// Records the loss of messages: `stranded` were not sent, and `unheard` were sent and did not arrive.
    fn lose(&self, stranded: u64, unheard: u64) {
        let all = stranded + unheard;
        if !self.pipe.pipe.account_lost(stranded, unheard, all) {
            self.count(DropReason::PeerGone, all);
        }
    }

    /// The first datagram of the outbox was not sent.
    fn failed(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::ConnectionRefused {
            // The receiver's machine refused an earlier datagram. This one can be sent next.
            return self.lose(0, 1);
        }
        if self.renew() {
            return;
        }
        self.outbox.pop_front();
        self.lose(1, 0);
    }

    /// Connects the socket again. A connected socket keeps the address that this machine had at the time, and cannot send
    /// any more when the machine has another one.
    fn renew(&mut self) -> bool {
        let Some((_, renew)) = &self.receiver else {
            return false;
        };
        let now = clock::now();
        if self.renew_at.is_some_and(|at| now < at) {
            return false;
        }
        self.renew_at = now.checked_add(RENEW_IVL);
        disconnect(self.socket.as_fd()).is_ok() && renew(&self.socket).is_ok()
    }

    /// Finds out whether a datagram, after which none was sent, was refused.
    fn take_error(&mut self) {
        if self.receiver.is_some() && matches!(self.socket.take_error(), Ok(Some(_))) {
            self.lose(0, 1);
        }
    }

    // ---- receiving ---------------------------------------------------------------------------------------------------

    fn input(&mut self, now: Instant) -> Progress {
        let Some(inlet) = &mut self.inlet else {
            return Progress::Done;
        };
        let mut counters = Counters::default();
        let mut may_have_overrun = std::mem::take(&mut inlet.was_full);
        let (mut batches, mut failures) = (0, 0);
        let progress = loop {
            if !inlet.deliver(&mut self.pipe, &self.port, &mut counters) {
                inlet.was_full = true;
                break Progress::Done;
            }
            if let Some(at) = inlet.must_wait(&self.pipe, now) {
                break Progress::At(at);
            }
            if batches == TURN {
                break Progress::More;
            }
            batches += 1;
            match inlet.inbox.fill(self.socket.as_fd()) {
                Ok(_) => failures = 0,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Progress::Done,
                // The error of a datagram that was sent before.
                Err(_) if failures == 0 => failures = 1,
                // A socket has one such error. This one would stay, and take the whole core.
                Err(_) => break Progress::At(now + BACK_OFF),
            }
        };
        // A buffer that one call has emptied was not full.
        may_have_overrun |= batches > 1;
        if may_have_overrun {
            inlet.count_overruns(&self.socket, &mut counters);
        }
        for reason in DropReason::ALL {
            self.count(reason, counters.dropped(reason));
        }
        // The drops before a message are counted when the application receives it.
        self.pipe.pipe.flush();
        progress
    }
}

impl Parcel {
    fn size(&self) -> u64 {
        (self.head.len() + self.body.len()) as u64
    }

    fn outgoing(&self) -> Outgoing<'_> {
        Outgoing {
            to: self.to,
            head: &self.head,
            body: &self.body,
        }
    }
}

impl Inlet {
    /// The address in the form that the socket accepts.
    fn reachable(&self, address: SocketAddr) -> Option<SocketAddr> {
        match address {
            SocketAddr::V4(v4) if self.is_ipv6 => {
                Some((v4.ip().to_ipv6_mapped(), v4.port()).into())
            }
            SocketAddr::V6(_) if !self.is_ipv6 => None,
            other => Some(other),
        }
    }

    /// Puts the received datagrams into the pipe. Returns false if it has no room.
    fn deliver(
        &mut self,
        pipe: &mut MessagePipe,
        port: &MessagePort,
        counters: &mut Counters,
    ) -> bool {
        while self.inbox.len() > 0 {
            if !pipe.pipe.check_write() {
                return false;
            }
            let Some(incoming) = self.inbox.next() else {
                break;
            };
            let most = port.options.max_msg_size;
            if incoming.is_cut {
                counters.add(DropReason::TooLarge, 1);
                continue;
            }
            let (first, body) = match &mut self.sorting {
                Sorting::Groups(joined) => {
                    let Some((group, body)) = split(incoming.bytes) else {
                        counters.add(DropReason::Malformed, 1);
                        continue;
                    };
                    if !joined.contains(group) {
                        // It may have been joined since, and before the datagram was sent.
                        follow(joined, pipe);
                    }
                    if !joined.contains(group) {
                        counters.add(DropReason::Filtered, 1);
                        continue;
                    }
                    (Frame::copy_from(group), body)
                }
                Sorting::Addresses => {
                    let Some(from) = incoming.from else {
                        counters.add(DropReason::Malformed, 1);
                        continue;
                    };
                    // A link-local address means nothing without its interface.
                    let from = match (from, from.ip().to_canonical()) {
                        (SocketAddr::V6(v6), IpAddr::V6(ip)) => {
                            SocketAddrV6::new(ip, v6.port(), 0, v6.scope_id()).into()
                        }
                        (_, ip) => SocketAddr::new(ip, from.port()),
                    };
                    (
                        Frame::copy_from(from.to_string().as_bytes()),
                        incoming.bytes,
                    )
                }
            };
            if most.is_some_and(|most| body.len() as u64 > most) {
                counters.add(DropReason::TooLarge, 1);
                continue;
            }
            let mut message = Message::from_frames([first, Frame::copy_from(body)]);
            pipe.pipe.write_unchecked(&mut message);
        }
        true
    }

    /// When to receive again, if the senders hold too much of the context's memory.
    fn must_wait(&mut self, pipe: &MessagePipe, now: Instant) -> Option<Instant> {
        self.share.handle_timeout(now);
        let gross = pipe.pipe.weight_written();
        if !self.share.is_due(gross) {
            return None;
        }
        let ruling = self
            .share
            .look(gross, 0, false, now, || Weak::<Nothing>::new());
        match ruling {
            Ruling::Go => None,
            Ruling::Wait | Ruling::End => self.share.poll_timeout(),
        }
    }

    fn count_overruns(&mut self, socket: &Socket, counters: &mut Counters) {
        let Some(overruns) = dropped(socket.as_fd()) else {
            return;
        };
        let new = overruns.wrapping_sub(self.overruns);
        self.overruns = overruns;
        counters.add(DropReason::Overrun, new.into());
    }
}

/// Joins and leaves the groups that the socket has named since.
fn follow(joined: &mut BTreeSet<Box<[u8]>>, pipe: &mut MessagePipe) {
    while let Some(message) = pipe.try_recv() {
        let group = message.head();
        match group.kind() {
            FrameKind::Join => {
                joined.insert(group.as_slice().into());
            }
            FrameKind::Leave => {
                joined.remove(group.as_slice());
            }
            _ => {}
        }
    }
}

/// Datagrams are complete, so no sender has to make room by ending.
struct Nothing;

impl Holder for Nothing {
    fn on_notice(&self) {}
}

impl IoWork for Flow {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn run(&mut self, now: Instant) -> Next {
        let was_closed = self.pipe.is_closed();
        let output = self.output();
        if was_closed {
            return self.drain(output, now);
        }
        let rejoin_at = self.rejoin(now);
        match (output, self.input(now)) {
            (Progress::More, _) | (_, Progress::More) => Next::Again,
            (Progress::At(at), _) | (_, Progress::At(at)) => {
                Next::At(rejoin_at.map_or(at, |rejoin_at| at.min(rejoin_at)))
            }
            (Progress::Done, Progress::Done) => rejoin_at.map_or(Next::Event, Next::At),
        }
    }
}

impl Flow {
    /// The socket has closed its end. The remaining messages are sent until its linger time is over.
    fn drain(&mut self, output: Progress, now: Instant) -> Next {
        if self.outbox.is_empty() && self.pipe.pipe.is_finished() {
            return Next::Never;
        }
        let linger = self.pipe.linger();
        let deadline = *self
            .deadline
            .get_or_insert_with(|| linger.and_then(|linger| now.checked_add(linger)));
        match (output, deadline) {
            (_, Some(deadline)) if deadline <= now => Next::Never,
            (Progress::More, _) => Next::Again,
            (_, Some(deadline)) => Next::At(deadline),
            (_, None) => Next::Event,
        }
    }

    /// Joins the multicast group again if it is time. Returns the next time.
    fn rejoin(&mut self, now: Instant) -> Option<Instant> {
        let (rejoin, at) = self.inlet.as_mut()?.rejoin.as_mut()?;
        if *at <= now {
            rejoin(&self.socket);
            *at = now + REJOIN_IVL;
        }
        Some(*at)
    }

    fn is_bound_to_send(&self) -> bool {
        let inlet = self.inlet.as_ref();
        inlet.is_some_and(|inlet| matches!(inlet.sorting, Sorting::Addresses))
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if self.is_bound_to_send() {
            // The address must be free at once, so what the kernel does not accept now is lost.
            while self.output() == Progress::More {}
        }
        if let Some(Inlet {
            sorting: Sorting::Groups(joined),
            ..
        }) = &mut self.inlet
        {
            // Joining a group is not a message that is lost.
            follow(joined, &mut self.pipe);
        }
        // The pipe reports them, together with those that are still in it.
        let bytes = self.outbox.iter().map(Parcel::size).sum();
        self.pipe.abandon(self.outbox.len() as u64, bytes);
        if let Some((party, _)) = &self.receiver {
            let event = MonitorEvent::new(
                EventKind::Disconnected,
                super::id(&self.socket),
                self.port.endpoint(),
            );
            self.port.emit(event.about(party));
        }
    }
}

#[cfg(test)]
mod tests;
