//! [`Sender`]: numbers packets, sends them at a rate, and repeats those that receivers request.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::packet::{self, Body, Malformed, REQUESTED_MAX, Request, Tsi};

/// The times between the SPMs that follow a data packet. The first ones tell receivers that lost the last packet.
const HEARTBEATS: [Duration; 9] = [
    Duration::from_millis(100),
    Duration::from_millis(100),
    Duration::from_millis(100),
    Duration::from_millis(100),
    Duration::from_millis(1300),
    Duration::from_secs(7),
    Duration::from_secs(16),
    Duration::from_secs(25),
    Duration::from_secs(30),
];
/// The SPMs at the start, so that hardly a receiver misses all of them.
const FIRST_SPMS: u32 = 3;
/// The SPMs at the end.
const LAST_SPMS: u32 = 3;
/// A sender that ends waits for that long after its last packet, for requests.
const QUIET: Duration = Duration::from_millis(500);
/// The number of confirmations that wait.
const CONFIRMATIONS_MAX: usize = 64;
/// What may be sent at once after a pause.
const BURST: Duration = Duration::from_millis(10);

/// The settings of a sender.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The sender's identifier.
    pub tsi: Tsi,
    /// The port of the group.
    pub port: u16,
    /// The address of this machine, for requests.
    pub nla: IpAddr,
    /// The address of the group.
    pub group: IpAddr,
    /// Bytes per second, with all headers.
    pub rate: u64,
    /// The bytes of a packet's headers that PGM does not see.
    pub headers: usize,
    /// The number of packets that are kept for repairs.
    pub window: u32,
    /// The number of the first packet.
    pub first: u32,
}

/// See the module text.
pub struct Sender {
    config: SenderConfig,
    /// The newest packets. The last one is that before `next`.
    window: VecDeque<Bytes>,
    next: u32,
    fresh: Option<Bytes>,
    /// Requested numbers, in order.
    repairs: VecDeque<u32>,
    requested: BTreeSet<u32>,
    was_repair: bool,
    confirmations: VecDeque<Vec<u8>>,
    spm_number: u32,
    spms_now: u32,
    heartbeat: usize,
    spm_at: Instant,
    /// The bytes that may be sent; negative after a packet.
    tokens: i64,
    filled_at: Instant,
    is_ending: bool,
    last_data: Option<Instant>,
    last_spms: u32,
}

impl Sender {
    /// A sender. Its first datagram is an SPM.
    pub fn new(config: SenderConfig, now: Instant) -> Sender {
        Sender {
            next: config.first,
            config,
            window: VecDeque::new(),
            fresh: None,
            repairs: VecDeque::new(),
            requested: BTreeSet::new(),
            was_repair: false,
            confirmations: VecDeque::new(),
            spm_number: 0,
            spms_now: FIRST_SPMS,
            heartbeat: 0,
            spm_at: now + HEARTBEATS[0],
            tokens: 0,
            filled_at: now,
            is_ending: false,
            last_data: None,
            last_spms: 0,
        }
    }

    /// Whether [`push`](Self::push) can be called.
    pub fn has_room(&self) -> bool {
        self.fresh.is_none()
    }

    /// Takes a packet to send: [`DATA_HEAD`](super::packet::DATA_HEAD) bytes of room, then the TSDU. There must be
    /// [room](Self::has_room), or the packet is lost.
    pub fn push(&mut self, mut packet: Vec<u8>) {
        debug_assert!(self.has_room(), "the packet would be lost");
        let Some(trail) = self.trail_after_push() else {
            return;
        };
        packet::put_data(
            &mut packet,
            self.config.tsi,
            self.config.port,
            self.next,
            trail,
        );
        self.fresh = Some(packet.into());
    }

    /// Processes a datagram of a receiver.
    ///
    /// # Errors
    /// It is no packet of PGM.
    pub fn handle_datagram(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let packet = packet::parse(bytes)?;
        if packet.tsi != self.config.tsi || packet.port != self.config.port {
            return Ok(());
        }
        match packet.body {
            Body::Nak(request)
                if request.nla == self.config.nla && request.group == self.config.group =>
            {
                self.handle_request(request);
            }
            Body::SpmRequest => self.spms_now = self.spms_now.max(1),
            // A null NAK is of interest for routers only.
            _ => {}
        }
        Ok(())
    }

    /// The next datagram to send to the group now. Send it before the next call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        self.fill(now);
        if self.tokens < 0 {
            return None;
        }
        let packet = self.next_packet(now)?;
        self.tokens -= (packet.len() + self.config.headers) as i64;
        Some(packet)
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again, if nothing else happens.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.is_over() {
            return None;
        }
        let waits = self.fresh.is_some()
            || !self.repairs.is_empty()
            || !self.confirmations.is_empty()
            || self.spms_now > 0;
        if waits || self.is_in_last_spms() {
            return Some(self.filled_at + self.time_for(-self.tokens));
        }
        if self.is_ending {
            return Some(self.spm_at.min(self.quiet_at()));
        }
        Some(self.spm_at)
    }

    /// No packets follow. The sender goes on until receivers have had time to request what they miss.
    pub fn end(&mut self) {
        self.is_ending = true;
    }

    /// Whether everything was sent, after [`end`](Self::end).
    pub fn is_over(&self) -> bool {
        self.last_spms >= LAST_SPMS
    }

    fn next_packet(&mut self, now: Instant) -> Option<Bytes> {
        if let Some(confirmation) = self.confirmations.pop_front() {
            return Some(confirmation.into());
        }
        if self.spms_now > 0 {
            self.spms_now -= 1;
            return Some(self.spm(false));
        }
        if self.spm_at <= now {
            self.heartbeat = (self.heartbeat + 1).min(HEARTBEATS.len() - 1);
            self.spm_at = now + HEARTBEATS[self.heartbeat];
            return Some(self.spm(false));
        }
        // Repairs and new packets take turns, so that no receiver can stop the others.
        if self.was_repair
            && let Some(fresh) = self.fresh.take()
        {
            return Some(self.send_fresh(fresh, now));
        }
        if let Some(repair) = self.next_repair() {
            self.was_repair = true;
            self.last_data = Some(now);
            return Some(repair);
        }
        if let Some(fresh) = self.fresh.take() {
            return Some(self.send_fresh(fresh, now));
        }
        if self.is_ending && now >= self.quiet_at() && !self.is_over() {
            self.last_spms += 1;
            return Some(self.spm(true));
        }
        None
    }

    /// When receivers have had enough time for requests.
    fn quiet_at(&self) -> Instant {
        self.last_data.map_or(self.filled_at, |last| last + QUIET)
    }

    fn is_in_last_spms(&self) -> bool {
        self.last_spms > 0
    }

    fn send_fresh(&mut self, fresh: Bytes, now: Instant) -> Bytes {
        if self.window.len() >= self.config.window as usize {
            self.window.pop_front();
        }
        self.window.push_back(fresh.clone());
        self.next = self.next.wrapping_add(1);
        self.was_repair = false;
        self.heartbeat = 0;
        self.spm_at = now + HEARTBEATS[0];
        self.last_data = Some(now);
        fresh
    }

    fn next_repair(&mut self) -> Option<Bytes> {
        while let Some(number) = self.repairs.pop_front() {
            self.requested.remove(&number);
            if let Some(original) = self.find(number) {
                return Some(packet::repair(original, self.trail()).into());
            }
        }
        None
    }

    fn handle_request(&mut self, request: Request<'_>) {
        if self.confirmations.len() >= CONFIRMATIONS_MAX {
            // The receiver repeats its request.
            return;
        }
        let mut numbers = Vec::new();
        for number in request.numbers().take(REQUESTED_MAX) {
            if self.find(number).is_some() {
                numbers.push(number);
                if self.requested.insert(number) {
                    self.repairs.push_back(number);
                }
            }
        }
        if numbers.is_empty() {
            // Its trail tells receivers that these packets are gone.
            self.spms_now = self.spms_now.max(1);
            return;
        }
        self.confirmations.push_back(packet::ncf(
            self.config.tsi,
            self.config.port,
            self.config.nla,
            self.config.group,
            &numbers,
        ));
    }

    fn spm(&mut self, fin: bool) -> Bytes {
        let number = self.spm_number;
        self.spm_number = number.wrapping_add(1);
        let edges = [self.trail(), self.next.wrapping_sub(1)];
        packet::spm(
            self.config.tsi,
            self.config.port,
            number,
            edges,
            self.config.nla,
            fin,
        )
        .into()
    }

    /// The oldest number that can be repaired.
    fn trail(&self) -> u32 {
        self.next.wrapping_sub(self.window.len() as u32)
    }

    fn trail_after_push(&self) -> Option<u32> {
        let kept = (self.window.len() as u32 + 1).min(self.config.window);
        self.has_room()
            .then(|| self.next.wrapping_add(1).wrapping_sub(kept))
    }

    fn find(&self, number: u32) -> Option<&Bytes> {
        let index = number.wrapping_sub(self.trail());
        self.window.get(index as usize)
    }

    fn fill(&mut self, now: Instant) {
        let past = now.saturating_duration_since(self.filled_at);
        let new = u128::from(self.config.rate) * past.as_nanos() / 1_000_000_000;
        let most = (u128::from(self.config.rate) * BURST.as_nanos() / 1_000_000_000) as i64;
        let before = self.tokens;
        self.tokens = i64::try_from(new).map_or(most, |new| before.saturating_add(new).min(most));
        if self.tokens == most {
            self.filled_at = now;
        } else {
            // The rest, less than a byte, is added next time.
            self.filled_at += self.time_for(self.tokens - before);
        }
    }

    fn time_for(&self, bytes: i64) -> Duration {
        let bytes = u128::try_from(bytes).unwrap_or(0);
        let nanos = (bytes * 1_000_000_000).div_ceil(u128::from(self.config.rate.max(1)));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}
