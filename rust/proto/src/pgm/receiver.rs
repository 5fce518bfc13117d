//! [`Receiver`]: what all senders to a group send, in order.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::dice::Dice;
use super::packet::{self, Body, Malformed, Packet, REQUESTED_MAX, Request, Tsi};
use super::unpacker::{Refused, Unpacker};
use super::window::{BACK_OFF, Item, Window};
use crate::message::Message;

/// A sender that was silent for that long is forgotten.
const EXPIRY: Duration = Duration::from_secs(300);
/// The number of senders that are remembered.
const SENDERS_MAX: usize = 256;
/// A sender that was silent for that long makes room for another one.
const SILENCE: Duration = Duration::from_secs(60);
/// The number of packets that are requested at a time, of all senders.
const CHASED_MAX: usize = 8192;

/// The settings of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// The port of the group.
    pub port: u16,
    /// The address of the group.
    pub group: IpAddr,
    /// The most packets of a sender between the oldest missing one and the newest.
    pub window: u32,
    /// The most bytes of packets that wait for others, of all senders.
    pub held_bytes: usize,
    /// The size of the largest message.
    pub largest: u64,
    /// The start of the random numbers.
    pub seed: u64,
}

/// See the module text.
pub struct Receiver {
    config: ReceiverConfig,
    dice: Dice,
    sources: BTreeMap<Tsi, Source>,
    /// Senders of which something can be delivered.
    ready: VecDeque<Tsi>,
    messages: VecDeque<Message>,
    events: VecDeque<Event>,
    transmits: VecDeque<Transmit>,
    held_bytes: usize,
    chased: usize,
}

/// A sender.
struct Source {
    address: IpAddr,
    /// The address for requests, if the sender has named one.
    nla: Option<IpAddr>,
    window: Window,
    unpacker: Unpacker,
    heard: Instant,
    is_ready: bool,
    /// It has sent its last packet.
    is_ending: bool,
    /// Everything was delivered. Copies of its packets may still arrive.
    is_over: bool,
}

/// A message, or a report about senders.
#[derive(Debug)]
pub enum Event {
    /// A complete message.
    Message(Message),
    /// The first packet of a sender.
    Joined(Tsi, IpAddr),
    /// That many packets of a sender cannot be repaired.
    Gap(Tsi, IpAddr, u64),
    /// The sender has ended, or was silent for five minutes.
    Left(Tsi, IpAddr),
    /// A sender has sent bytes that are not a message.
    Malformed,
    /// A message was larger than allowed.
    TooLarge,
    /// A packet was ignored, because there are too many senders.
    Excess,
}

/// A datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The address of its receiver.
    pub to: IpAddr,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Receiver {
    /// A receiver that knows no sender yet.
    pub fn new(config: ReceiverConfig) -> Receiver {
        Receiver {
            dice: Dice::new(config.seed),
            config,
            sources: BTreeMap::new(),
            ready: VecDeque::new(),
            messages: VecDeque::new(),
            events: VecDeque::new(),
            transmits: VecDeque::new(),
            held_bytes: 0,
            chased: 0,
        }
    }

    /// Processes a datagram. Take all events afterwards.
    ///
    /// # Errors
    /// It is no packet of PGM.
    pub fn handle_datagram(
        &mut self,
        from: IpAddr,
        bytes: &[u8],
        now: Instant,
    ) -> Result<(), Malformed> {
        let packet = packet::parse(bytes)?;
        if packet.port != self.config.port {
            return Ok(());
        }
        match packet.body {
            Body::Nak(request) | Body::Ncf(request) if request.group != self.config.group => {}
            Body::Spm { .. } | Body::Data { .. } | Body::Nak(_) | Body::Ncf(_) => {
                self.handle_packet(from, &packet, now);
            }
            Body::SpmRequest | Body::Other => {}
        }
        Ok(())
    }

    /// Sends requests that are due, and forgets senders. Call this at the time of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut numbers = Vec::new();
        for (tsi, source) in &mut self.sources {
            if source.window.poll_timeout().is_some_and(|at| at <= now) {
                let before = source.window.chased();
                source
                    .window
                    .handle_timeout(now, &mut self.dice, &mut numbers);
                self.chased -= before - source.window.chased();
                for numbers in numbers.chunks(REQUESTED_MAX) {
                    let nla = source.nla.unwrap_or(source.address);
                    let bytes =
                        packet::nak(*tsi, self.config.port, nla, self.config.group, numbers);
                    self.transmits.push_back(Transmit { to: nla, bytes });
                }
                numbers.clear();
                mark_ready(source, *tsi, &mut self.ready);
            }
        }
        let silent = |source: &Source| now.saturating_duration_since(source.heard) >= EXPIRY;
        while let Some(tsi) = self
            .sources
            .iter()
            .find(|(_, source)| silent(source))
            .map(|(tsi, _)| *tsi)
        {
            self.remove(tsi);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let of = |source: &Source| {
            let expiry = source.heard + EXPIRY;
            source
                .window
                .poll_timeout()
                .map_or(expiry, |at| at.min(expiry))
        };
        self.sources.values().map(of).min()
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        loop {
            // At most one of the two has what came from a packet, so their order is that of the packets.
            if let Some(message) = self.messages.pop_front() {
                return Some(Event::Message(message));
            }
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let tsi = *self.ready.front()?;
            if !self.deliver(tsi) {
                self.ready.pop_front();
            }
        }
    }

    /// The bytes of packets that wait for others, and of messages that are incomplete.
    pub fn held_bytes(&self) -> u64 {
        let open = self
            .sources
            .values()
            .map(|source| source.unpacker.open_bytes());
        self.held_bytes as u64 + open.sum::<u64>()
    }

    /// Drops all messages that are incomplete, and returns their number.
    pub fn drop_incomplete(&mut self) -> u64 {
        let mut count = 0;
        for source in self.sources.values_mut() {
            if source.unpacker.open_bytes() > 0 {
                source.unpacker.tear();
                count += 1;
            }
        }
        count
    }

    fn handle_packet(&mut self, from: IpAddr, packet: &Packet<'_>, now: Instant) {
        let tsi = packet.tsi;
        if !self.sources.contains_key(&tsi) && !self.admit(from, packet, now) {
            return;
        }
        let Some(source) = self.sources.get_mut(&tsi) else {
            return;
        };
        if source.is_over {
            return;
        }
        let is_idle = self.ready.is_empty() && self.messages.is_empty() && self.events.is_empty();
        let chased = source.window.chased();
        let held = source.window.held_bytes();
        let room = CHASED_MAX.saturating_sub(self.chased);
        let back_off = now + self.dice.below(BACK_OFF);
        match packet.body {
            Body::Spm {
                trail,
                lead,
                nla,
                is_last,
                ..
            } => {
                source.heard = now;
                source.address = from;
                let is_usable =
                    nla.is_ipv4() == from.is_ipv4() && !nla.is_multicast() && !nla.is_unspecified();
                source.nla = is_usable.then_some(nla);
                if let Some(lead) = source.window.locate(lead, true) {
                    source.window.raise_end(lead + 1, back_off, room);
                    if let Some(trail) = source.window.locate_trail(trail) {
                        source.window.raise_floor(trail);
                    }
                }
                if is_last {
                    source.is_ending = true;
                    source.window.begin_end();
                }
            }
            Body::Data {
                is_repair,
                sqn,
                trail,
                tsdu,
            } => {
                source.heard = now;
                if let Some(number) = source.window.locate(sqn, !is_repair) {
                    if is_idle && source.window.is_next(number) {
                        source.window.advance();
                        let taken =
                            source
                                .unpacker
                                .unpack(tsdu, self.config.largest, &mut self.messages);
                        self.events.extend(taken.err().map(Event::from));
                    } else if source.window.wants(number)
                        && self.held_bytes + tsdu.len() <= self.config.held_bytes
                    {
                        source.window.insert(number, Bytes::copy_from_slice(tsdu));
                    }
                    source.window.raise_end(number + 1, back_off, room);
                    if let Some(trail) = source.window.locate_trail(trail)
                        && trail <= number
                    {
                        source.window.raise_floor(trail);
                    }
                }
            }
            Body::Ncf(request) | Body::Nak(request) => {
                confirm(&mut source.window, request, now, back_off, room);
            }
            Body::SpmRequest | Body::Other => {}
        }
        self.chased = self.chased + source.window.chased() - chased;
        self.held_bytes = self.held_bytes + source.window.held_bytes() - held;
        mark_ready(source, tsi, &mut self.ready);
    }

    /// Adds a sender. Only its newest packets begin its window.
    fn admit(&mut self, from: IpAddr, packet: &Packet<'_>, now: Instant) -> bool {
        let first = match packet.body {
            Body::Spm { lead, .. } => lead.wrapping_add(1),
            Body::Data {
                is_repair: false,
                sqn,
                ..
            } => sqn,
            _ => return false,
        };
        if self.sources.len() >= SENDERS_MAX {
            let longest = |(_, source): &(&Tsi, &Source)| (!source.is_over, source.heard);
            let Some((tsi, source)) = self.sources.iter().min_by_key(longest) else {
                return false;
            };
            let is_silent = now.saturating_duration_since(source.heard) >= SILENCE;
            let tsi = *tsi;
            if !source.is_over && !is_silent {
                self.events.push_back(Event::Excess);
                return false;
            }
            self.remove(tsi);
        }
        let source = Source {
            address: from,
            nla: None,
            window: Window::new(first, self.config.window),
            unpacker: Unpacker::default(),
            heard: now,
            is_ready: false,
            is_ending: false,
            is_over: false,
        };
        self.sources.insert(packet.tsi, source);
        self.events.push_back(Event::Joined(packet.tsi, from));
        true
    }

    fn remove(&mut self, tsi: Tsi) {
        if let Some(source) = self.sources.remove(&tsi) {
            self.held_bytes -= source.window.held_bytes();
            self.chased -= source.window.chased();
            if !source.is_over {
                self.events.push_back(Event::Left(tsi, source.address));
            }
        }
    }

    /// Delivers one packet of a sender. Returns false if there is none.
    fn deliver(&mut self, tsi: Tsi) -> bool {
        let Some(source) = self.sources.get_mut(&tsi) else {
            return false;
        };
        let before = (source.window.held_bytes(), source.window.chased());
        let item = source.window.pop();
        self.held_bytes -= before.0 - source.window.held_bytes();
        self.chased -= before.1 - source.window.chased();
        match item {
            Some(Item::Data(tsdu)) => {
                let taken = source
                    .unpacker
                    .unpack(&tsdu, self.config.largest, &mut self.messages);
                self.events.extend(taken.err().map(Event::from));
            }
            Some(Item::Lost(count)) => {
                source.unpacker.tear();
                if count > 0 {
                    let event = Event::Gap(tsi, source.address, count);
                    self.events.push_back(event);
                }
            }
            None => {
                source.is_ready = false;
                if source.is_ending && source.window.is_complete() && !source.is_over {
                    source.is_over = true;
                    source.unpacker.tear();
                    self.events.push_back(Event::Left(tsi, source.address));
                }
                return false;
            }
        }
        true
    }
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

impl From<Refused> for Event {
    fn from(refused: Refused) -> Event {
        match refused {
            Refused::Malformed => Event::Malformed,
            Refused::TooLarge => Event::TooLarge,
        }
    }
}

fn mark_ready(source: &mut Source, tsi: Tsi, ready: &mut VecDeque<Tsi>) {
    if !source.is_ready {
        source.is_ready = true;
        ready.push_back(tsi);
    }
}

/// Other receivers request these packets, too. A packet that was not missing so far is missing now.
fn confirm(
    window: &mut Window,
    request: Request<'_>,
    now: Instant,
    back_off: Instant,
    room: usize,
) {
    for number in request.numbers() {
        if let Some(number) = window.locate(number, false) {
            window.raise_end(number + 1, back_off, room);
            window.confirm(number, now);
        }
    }
}
