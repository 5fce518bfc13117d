//! [`Window`]: what a receiver has of one sender, what is missing, and when to request it.
//!
//! Sequence numbers have 32 bits on the wire and wrap around. Here they have 64 bits, and begin high enough that no
//! earlier one is below zero.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::dice::Dice;

/// The longest random delay before a request, so that the request of one receiver is enough for all.
pub(super) const BACK_OFF: Duration = Duration::from_millis(50);
/// How long to wait for the confirmation of a request before the next one.
pub(super) const CONFIRMATION: Duration = Duration::from_millis(200);
/// How long to wait for a repair after its confirmation.
pub(super) const REPAIR: Duration = Duration::from_millis(200);
/// After that many requests without a confirmation, or confirmations without a repair, a packet is lost.
const TRIES: u32 = 50;
/// The same after the sender's last packet: it is about to end, or has ended.
const LAST_TRIES: u32 = 3;

/// A number is believed at once if it is no further away than that, or than the window is large.
const NEAR: u64 = 64;

/// See the module text.
pub(super) struct Window {
    /// The next number to deliver.
    next: u64,
    /// The number after the newest that is known to have been sent.
    end: u64,
    /// Packets that are missing below this number cannot be repaired.
    floor: u64,
    /// Missing numbers from here on are not requested yet.
    unchased: u64,
    /// The most numbers between `next` and `end`.
    size: u64,
    held: BTreeMap<u64, Bytes>,
    held_bytes: usize,
    chases: BTreeMap<u64, Chase>,
    timers: BTreeSet<(Instant, u64)>,
    given_up: BTreeSet<u64>,
    /// A number outside of the window, which is believed if the next one is near it.
    outlier: Option<u64>,
    /// The numbers have jumped back, so what follows does not continue what was delivered.
    is_torn: bool,
    tries: u32,
}

/// A missing packet that is requested.
struct Chase {
    stage: Stage,
    /// When the stage ends.
    at: Instant,
    requests: u32,
    confirmations: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// A request follows, unless that of another receiver comes first.
    BackingOff,
    /// It was requested.
    Requested,
    /// The sender has confirmed a request.
    Confirmed,
}

/// The next packet in the order of the numbers, or the packets that are lost instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    Data(Bytes),
    /// That many packets cannot be repaired.
    Lost(u64),
}

impl Window {
    /// A window that begins with this number.
    pub(super) fn new(first: u32, size: u32) -> Window {
        let first = (1 << 32) + u64::from(first);
        Window {
            next: first,
            end: first,
            floor: first,
            unchased: first,
            size: size.into(),
            held: BTreeMap::new(),
            held_bytes: 0,
            chases: BTreeMap::new(),
            timers: BTreeSet::new(),
            given_up: BTreeSet::new(),
            outlier: None,
            is_torn: false,
            tries: TRIES,
        }
    }

    /// The whole number, if it is in this window. If `is_new`, it is one of the newest numbers of the sender, and
    /// a second one outside of the window moves it.
    pub(super) fn locate(&mut self, number: u32, is_new: bool) -> Option<u64> {
        let whole = self.extend(number)?;
        let near = self.size.max(NEAR);
        let is_near = whole + near >= self.base() && whole < self.end + near;
        if is_near {
            if is_new {
                self.outlier = None;
            }
            return Some(whole);
        }
        if !is_new {
            return None;
        }
        let before = self.outlier.replace(whole)?;
        if before.abs_diff(whole) >= near {
            return None;
        }
        self.outlier = None;
        if whole < self.end {
            self.jump_back(before.min(whole));
        }
        Some(whole)
    }

    /// The whole number of the oldest packet that can be repaired.
    pub(super) fn locate_trail(&self, trail: u32) -> Option<u64> {
        self.extend(trail).filter(|trail| *trail <= self.end)
    }

    fn extend(&self, number: u32) -> Option<u64> {
        let distance = number.wrapping_sub(self.end as u32).cast_signed();
        self.end.checked_add_signed(distance.into())
    }

    fn jump_back(&mut self, to: u64) {
        *self = Window {
            is_torn: true,
            tries: self.tries,
            ..Window::new(0, self.size as u32)
        };
        (self.next, self.end, self.floor, self.unchased) = (to, to, to, to);
    }

    /// The first number that may still be delivered.
    fn base(&self) -> u64 {
        self.next.max(self.floor)
    }

    /// Whether this is the next packet to deliver, and nothing waits behind it.
    pub(super) fn is_next(&self, number: u64) -> bool {
        number == self.next && self.held.is_empty() && !self.is_torn
    }

    /// The next packet was delivered.
    pub(super) fn advance(&mut self) {
        self.forget(self.next);
        self.given_up.remove(&self.next);
        self.next += 1;
        self.end = self.end.max(self.next);
    }

    /// Whether a packet is missing.
    pub(super) fn wants(&self, number: u64) -> bool {
        number >= self.next && !self.held.contains_key(&number)
    }

    /// Keeps a packet that is missing.
    pub(super) fn insert(&mut self, number: u64, tsdu: Bytes) {
        self.forget(number);
        self.given_up.remove(&number);
        self.held_bytes += tsdu.len();
        self.held.insert(number, tsdu);
    }

    /// The sender has sent everything below `end`. Up to `room` missing packets are requested at `at`.
    pub(super) fn raise_end(&mut self, end: u64, at: Instant, room: usize) {
        if end > self.end {
            self.end = end;
            self.raise_floor(end.saturating_sub(self.size));
        }
        self.chase(at, room);
    }

    /// Nothing below this number can be repaired.
    pub(super) fn raise_floor(&mut self, floor: u64) {
        let floor = floor.min(self.end);
        if floor <= self.floor {
            return;
        }
        self.floor = floor;
        while let Some(entry) = self.chases.first_entry()
            && *entry.key() < floor
        {
            self.timers.remove(&(entry.get().at, *entry.key()));
            entry.remove();
        }
    }

    /// Begins to request missing packets, up to `room`.
    fn chase(&mut self, at: Instant, room: usize) {
        self.unchased = self.unchased.max(self.base());
        let mut room = room;
        while room > 0 && self.unchased < self.end {
            let number = self.unchased;
            self.unchased += 1;
            if !self.held.contains_key(&number) {
                room -= 1;
                self.timers.insert((at, number));
                let chase = Chase {
                    stage: Stage::BackingOff,
                    at,
                    requests: 0,
                    confirmations: 0,
                };
                self.chases.insert(number, chase);
            }
        }
    }

    /// The sender has confirmed that a packet was requested.
    pub(super) fn confirm(&mut self, number: u64, now: Instant) {
        if let Some(chase) = self.chases.get_mut(&number)
            && chase.stage != Stage::Confirmed
        {
            self.timers.remove(&(chase.at, number));
            chase.stage = Stage::Confirmed;
            chase.at = now + REPAIR;
            self.timers.insert((chase.at, number));
        }
    }

    /// The sender has sent its last packet.
    pub(super) fn begin_end(&mut self) {
        self.tries = LAST_TRIES;
    }

    /// Whether nothing is missing, and everything was delivered.
    pub(super) fn is_complete(&self) -> bool {
        self.next == self.end
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Adds the numbers to request now, with their lowest bits.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        dice: &mut Dice,
        requests: &mut Vec<u32>,
    ) {
        let again = now + dice.below(BACK_OFF);
        while let Some(&(at, number)) = self.timers.first()
            && at <= now
        {
            self.timers.remove(&(at, number));
            let Some(chase) = self.chases.get_mut(&number) else {
                continue;
            };
            let tries = match chase.stage {
                Stage::BackingOff => {
                    requests.push(number as u32);
                    chase.stage = Stage::Requested;
                    chase.at = now + CONFIRMATION;
                    self.timers.insert((chase.at, number));
                    continue;
                }
                Stage::Requested => &mut chase.requests,
                Stage::Confirmed => &mut chase.confirmations,
            };
            *tries += 1;
            if *tries >= self.tries {
                self.chases.remove(&number);
                self.given_up.insert(number);
                continue;
            }
            chase.stage = Stage::BackingOff;
            chase.at = again;
            // Not in this call, even if the delay is zero.
            chase.at = chase.at.max(now + Duration::from_micros(1));
            self.timers.insert((chase.at, number));
        }
    }

    /// The next item, if it is known.
    pub(super) fn pop(&mut self) -> Option<Item> {
        if std::mem::take(&mut self.is_torn) {
            return Some(Item::Lost(0));
        }
        if let Some(tsdu) = self.held.remove(&self.next) {
            self.held_bytes -= tsdu.len();
            self.next += 1;
            return Some(Item::Data(tsdu));
        }
        let from = self.next;
        if self.next < self.floor {
            let held = self.held.first_key_value().map(|(number, _)| *number);
            self.next = held.map_or(self.floor, |held| held.min(self.floor));
        }
        while self.given_up.remove(&self.next) {
            self.next += 1;
        }
        self.given_up = self.given_up.split_off(&self.next);
        let lost = self.next - from;
        (lost > 0).then_some(Item::Lost(lost))
    }

    /// The bytes of packets that wait for others.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// The number of packets that are requested.
    pub(super) fn chased(&self) -> usize {
        self.chases.len()
    }

    fn forget(&mut self, number: u64) {
        if let Some(chase) = self.chases.remove(&number) {
            self.timers.remove(&(chase.at, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 100;

    fn insert(window: &mut Window, number: u32, now: Instant) -> bool {
        let Some(whole) = window.locate(number, true) else {
            return false;
        };
        let wants = window.wants(whole);
        if wants {
            window.insert(whole, Bytes::copy_from_slice(&number.to_be_bytes()));
        }
        window.raise_end(whole + 1, now, ROOM);
        wants
    }

    /// What can be delivered: numbers, and -n for n that were lost.
    fn pop_all(window: &mut Window) -> Vec<i64> {
        std::iter::from_fn(|| window.pop())
            .map(|item| match item {
                Item::Data(tsdu) => u32::from_be_bytes(tsdu.as_ref().try_into().unwrap()).into(),
                Item::Lost(count) => -(count as i64),
            })
            .collect()
    }

    fn timeout(window: &mut Window, now: Instant) -> Vec<u32> {
        let mut requests = Vec::new();
        window.handle_timeout(now, &mut Dice::new(1), &mut requests);
        requests
    }

    #[test]
    fn packets_are_delivered_in_order_and_once() {
        let now = Instant::now();
        for first in [0, 5, u32::MAX - 2, 1 << 31] {
            let mut window = Window::new(first, 100);
            let order = [2, 0, 1, 1, 4, 0, 3, 3, 5];
            let kept = order.map(|n| insert(&mut window, first.wrapping_add(n), now));
            assert_eq!(
                kept,
                [true, true, true, false, true, false, true, false, true]
            );
            let expected: Vec<i64> = (0..6).map(|n| first.wrapping_add(n).into()).collect();
            assert_eq!(pop_all(&mut window), expected);
            assert!(window.is_complete() && window.held_bytes() == 0 && window.chased() == 0);
            assert_eq!(window.poll_timeout(), None);
        }
    }

    #[test]
    fn the_window_keeps_exactly_its_size() {
        let now = Instant::now();
        let mut window = Window::new(0, 10);
        // 0 is missing, and 1 to 9 are here: ten numbers.
        assert!((1..10).all(|n| insert(&mut window, n, now)));
        assert_eq!(pop_all(&mut window), []);
        assert!(window.chased() == 1);
        assert!(insert(&mut window, 10, now));
        assert_eq!(pop_all(&mut window)[..2], [-1, 1]);
        assert!(window.chased() == 0);
    }

    #[test]
    fn a_window_of_one_packet_repairs_nothing_and_goes_on() {
        let now = Instant::now();
        let mut window = Window::new(0, 1);
        for n in [0, 1, 5, 6] {
            assert!(insert(&mut window, n, now));
        }
        assert_eq!(pop_all(&mut window), [0, 1, -3, 5, 6]);
    }

    #[test]
    fn the_trail_of_the_sender_ends_the_wait() {
        let now = Instant::now();
        let mut window = Window::new(0, 10);
        for n in [1, 4, 5] {
            insert(&mut window, n, now);
        }
        let trail = window.locate_trail(3).unwrap();
        window.raise_floor(trail);
        assert_eq!(pop_all(&mut window), [-1, 1, -1]);
        assert_eq!(window.chased(), 1);
        // It arrives after all.
        assert!(insert(&mut window, 3, now));
        assert_eq!(pop_all(&mut window), [3, 4, 5]);
        assert_eq!(window.locate_trail(9), None, "above the newest number");
        assert!(insert(&mut window, 6, now));
    }

    #[test]
    fn a_missing_packet_is_requested_until_it_is_lost() {
        let mut now = Instant::now();
        let mut window = Window::new(0, 10);
        insert(&mut window, 1, now);
        let mut requests = 0;
        while window.chased() > 0 {
            now = window.poll_timeout().unwrap();
            requests += timeout(&mut window, now).len();
        }
        assert_eq!(requests, TRIES as usize);
        assert_eq!(pop_all(&mut window), [-1, 1]);
    }

    /// Otherwise all receivers that lost a packet would repeat their requests at the same time.
    #[test]
    fn a_repeated_request_waits_for_a_random_time() {
        let delays: BTreeSet<Duration> = (0..20)
            .map(|seed| {
                let start = Instant::now();
                let mut window = Window::new(0, 10);
                insert(&mut window, 1, start);
                let mut dice = Dice::new(seed);
                for now in [start, start + CONFIRMATION] {
                    window.handle_timeout(now, &mut dice, &mut Vec::new());
                }
                window.poll_timeout().unwrap() - (start + CONFIRMATION)
            })
            .collect();
        assert!(delays.len() > 10, "{delays:?}");
        assert!(delays.iter().all(|delay| *delay <= BACK_OFF));
    }

    #[test]
    fn a_confirmation_suppresses_the_request() {
        let now = Instant::now();
        let mut window = Window::new(0, 10);
        insert(&mut window, 2, now + BACK_OFF);
        let number = window.locate(0, false).unwrap();
        window.confirm(number, now);
        assert_eq!(timeout(&mut window, now + BACK_OFF), [1]);
        // 0 is not repaired, so it is requested later.
        let later = now + REPAIR;
        assert_eq!(timeout(&mut window, later), []);
        assert_eq!(timeout(&mut window, later + BACK_OFF), [0]);
        window.confirm(number, later + BACK_OFF);
        window.begin_end();
        let mut at = later;
        while window.chased() > 0 {
            at = window.poll_timeout().unwrap();
            timeout(&mut window, at);
        }
        assert!(at < later + Duration::from_secs(2));
        assert_eq!(pop_all(&mut window), [-2, 2]);
    }

    #[test]
    fn one_packet_moves_the_window_only_if_another_agrees() {
        let now = Instant::now();
        for jump in [100, 1 << 30, u32::MAX - 500, u32::MAX - (1 << 30)] {
            let mut window = Window::new(1000, 50);
            insert(&mut window, 1000, now);
            assert!(!insert(&mut window, 1000u32.wrapping_add(jump), now));
            assert!(insert(&mut window, 1001, now));
            assert!(
                !insert(&mut window, 1001u32.wrapping_add(jump), now),
                "not in a row"
            );
            assert_eq!(
                window.locate(1002u32.wrapping_add(jump), false),
                None,
                "a repair"
            );
            assert_eq!(pop_all(&mut window), [1000, 1001]);
            assert!(insert(&mut window, 1003u32.wrapping_add(jump), now));
            assert!(insert(&mut window, 1004u32.wrapping_add(jump), now));
            assert!(pop_all(&mut window).iter().all(|lost| *lost <= 0));
            assert!(window.chased() <= 50);
            // The packet that was not believed is requested.
            let missing = window.locate(1001u32.wrapping_add(jump), false).unwrap();
            assert!(window.chases.contains_key(&missing), "{jump}");
        }
    }

    #[test]
    fn requests_are_limited_and_continue_when_there_is_room() {
        let now = Instant::now();
        let mut window = Window::new(0, 1000);
        let end = window.locate(500, true).unwrap();
        window.raise_end(end, now, 10);
        assert_eq!(timeout(&mut window, now), Vec::from_iter(0..10));
        for n in 0..10 {
            insert(&mut window, n, now);
        }
        // `insert` has made room for a hundred each time.
        assert!(window.chased() > 10);
        assert_eq!(pop_all(&mut window).len(), 10);
    }
}
