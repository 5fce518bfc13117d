//! What the peers of one context may make it hold together: the [`Budget`], and the [`Share`] of each connection.
//!
//! Three things count, each with the memory that it takes: bytes that were read and are not decoded, messages that are
//! not complete, and messages that the application has not received yet. Subscriptions do not: they have a limit for each
//! peer. A connection looks at the budget when it has grown by [`STEP`], not for each message. Messages that the
//! application receives are not taken off at once: when the budget seems to be used up, all accounts are counted again.
//!
//! # Connections that hold little
//!
//! A connection gets an account when [`STEP`] bytes have come. Until then it does not look, does not wait, and counts with
//! [`CONNECTION`]. Later, it goes on as long as it holds less than [`LITTLE`], whatever the others hold, and even when
//! memory is short. So a greedy peer cannot silence the other sockets of its context. The price is that these connections
//! together may take [`LITTLE`] and one read of 64 KiB each, beyond the budget: 192 MiB for a thousand. The file descriptors
//! of the process limit their number, and so does [`Budget::admits`]. What a connection leaves behind when it ends is
//! counted, however little it is, so that a peer gains nothing by coming back again and again.
//!
//! # The others
//!
//! Three quarters of the budget go to those that come first. The rest is for connections that hold less than an equal share
//! of it. A connection that may not grow is not read from. If it has begun a message, and would have to wait even if the
//! application received everything that waits, then the messages that are begun and not complete are too much. In that
//! case the connection that has begun most is ended, unless it completes its message first.
//!
//! Memory may be short although the budget is not used up. So before a connection grows, or another one is let in, it is
//! made sure that there is [a reserve](memory::leaves_reserve).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use slab::Slab;

use crate::pipe::{Inbound, Pipe};
use crate::sys::memory;

/// By how much a connection grows until it looks.
const STEP: u64 = 64 << 10;
/// A connection that holds less than this goes on: a full read, and as much again that waits.
const LITTLE: u64 = 2 * STEP;
/// What a connection takes itself.
const CONNECTION: u64 = 8 << 10;
/// By how much all connections may grow until there is another look at the reserve.
const RESERVE_STEP: u64 = 1 << 20;
/// A peer that is not read from is looked at again after this time.
const PAUSE: Duration = Duration::from_millis(20);
/// The accounts are not counted more often than this.
const COUNT_EVERY: Duration = Duration::from_millis(5);

/// See the module text.
pub(crate) struct Budget {
    /// 0 = none.
    limit: AtomicU64,
    /// What all connections hold, as they last reported it.
    used: AtomicU64,
    /// Up to this there was memory at the last look.
    assured: AtomicU64,
    connections: AtomicU64,
    accounts: Mutex<Accounts>,
}

#[derive(Default)]
struct Accounts {
    living: Slab<Arc<Account>>,
    /// What connections that ended left for the application.
    left: Vec<Remains>,
    /// At this length, `left` is swept.
    sweep_at: usize,
    last: Option<(Instant, Count)>,
}

/// What a connection holds.
struct Account {
    /// What it has reported so far, without [`CONNECTION`].
    noted: AtomicU64,
    /// The part of it that no application can receive, because it is not complete.
    begun: AtomicU64,
    /// The part of it that is room for more, between two messages.
    spare: AtomicU64,
    inbound: Mutex<Option<Inbound>>,
    /// What it had begun when it was told to make room; 0 = it was not told.
    condemned: AtomicU64,
    holder: Weak<dyn Holder>,
}

/// What waits in a pipe whose connection has ended.
struct Remains {
    inbound: Inbound,
    noted: u64,
}

/// A connection.
pub(crate) trait Holder: Send + Sync {
    /// It may have to go: its [`Share::has_to_go`] knows.
    fn on_condemned(&self);
}

/// All accounts, counted.
#[derive(Clone, Copy, Default)]
struct Count {
    used: u64,
    begun: u64,
    /// The part of `used` that connections left when they ended.
    left: u64,
}

/// What a connection may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ruling {
    Go,
    /// Not be read from, until the time that [`Share::poll_timeout`] names.
    Wait,
    /// Nothing any more.
    End,
}

/// A connection as the budget knows it. One that holds little costs no memory beside this.
pub(crate) struct Share {
    budget: Arc<Budget>,
    look_at: u64,
    inbound: Option<Inbound>,
    entry: Option<Box<Entry>>,
}

/// The account of a connection to which [`STEP`] bytes have come.
struct Entry {
    account: Arc<Account>,
    key: usize,
    pause: Option<Instant>,
}

impl Budget {
    pub(crate) fn new() -> Arc<Budget> {
        Arc::new(Budget {
            limit: AtomicU64::new(0),
            used: AtomicU64::new(0),
            assured: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            accounts: Mutex::default(),
        })
    }

    /// Sets its size in bytes; 0 = unlimited.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Whether there is room for another connection. When the budget is used up, there still is as long as the connections
    /// themselves, and what ended ones left, take no more than a quarter of it: those who wait in a backlog did nothing.
    pub(crate) fn admits(&self) -> bool {
        if !memory::leaves_reserve(0) {
            return false;
        }
        let limit = self.limit.load(Ordering::Relaxed);
        if limit == 0 || self.used.load(Ordering::Relaxed) + CONNECTION <= limit {
            return true;
        }
        let count = self.count();
        let modest = CONNECTION * (self.connections.load(Ordering::Relaxed) + 1);
        count.used + CONNECTION <= limit || modest + count.left <= limit / 4
    }

    /// A new connection.
    pub(crate) fn join(self: &Arc<Self>) -> Share {
        self.used.fetch_add(CONNECTION, Ordering::Relaxed);
        self.connections.fetch_add(1, Ordering::Relaxed);
        Share {
            budget: self.clone(),
            look_at: STEP,
            inbound: None,
            entry: None,
        }
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that an account holds `held`. Returns what all connections hold now.
    fn note(&self, account: &Account, held: u64) -> u64 {
        let before = account.noted.swap(held, Ordering::Relaxed);
        let change = held.wrapping_sub(before);
        self.used
            .fetch_add(change, Ordering::Relaxed)
            .wrapping_add(change)
    }

    /// Counts what waits in a pipe that no connection writes to any more, until the application has received it.
    fn leave(&self, inbound: Inbound) {
        let noted = inbound.weight();
        if noted == 0 {
            return;
        }
        self.used.fetch_add(noted, Ordering::Relaxed);
        let mut accounts = self.accounts();
        if accounts.left.len() >= accounts.sweep_at {
            // A budget that is far from used up may never be counted, and each entry keeps a pipe. The list has to double
            // first, so that ending a connection stays cheap.
            self.sweep(&mut accounts.left);
            accounts.sweep_at = 2 * accounts.left.len() + 64;
        }
        accounts.left.push(Remains { inbound, noted });
    }

    /// Removes what was received. Returns what is left.
    fn sweep(&self, left: &mut Vec<Remains>) -> u64 {
        let mut sum = 0;
        left.retain_mut(|it| {
            let waiting = it.inbound.weight();
            let received = it.noted.saturating_sub(waiting);
            self.used.fetch_sub(received, Ordering::Relaxed);
            it.noted -= received;
            sum += it.noted;
            it.noted > 0
        });
        sum
    }

    /// Whether there is memory for growing on.
    fn has_memory(&self, used: u64) -> bool {
        let assured = self.assured.load(Ordering::Relaxed);
        let near = used <= assured && assured <= used + 4 * RESERVE_STEP;
        if near {
            return true;
        }
        let there = memory::leaves_reserve(0);
        if there {
            self.assured.store(used + RESERVE_STEP, Ordering::Relaxed);
        }
        there
    }

    /// Counts all accounts, unless that was done a moment ago.
    fn count(&self) -> Count {
        let mut accounts = self.accounts();
        let now = Instant::now();
        if let Some((at, count)) = accounts.last
            && now.saturating_duration_since(at) < COUNT_EVERY
        {
            let used = self.used.load(Ordering::Relaxed);
            return Count { used, ..count };
        }
        let mut count = Count {
            used: CONNECTION * self.connections.load(Ordering::Relaxed),
            ..Count::default()
        };
        for (_, account) in &accounts.living {
            let held = account.held();
            self.note(account, held);
            count.used += held;
            count.begun += account.begun.load(Ordering::Relaxed);
        }
        count.left = self.sweep(&mut accounts.left);
        count.used += count.left;
        accounts.last = Some((now, count));
        count
    }

    /// Whether `account` has begun most. If it is another, its holder is called.
    fn is_worst(&self, account: &Arc<Account>) -> bool {
        let accounts = self.accounts();
        let living = accounts.living.iter().map(|(_, account)| account);
        let worst = living.max_by_key(|account| account.begun.load(Ordering::Relaxed));
        let Some(worst) = worst.filter(|worst| !Arc::ptr_eq(worst, account)) else {
            return true;
        };
        let begun = worst.begun.load(Ordering::Relaxed);
        let told = worst.condemned.swap(begun, Ordering::Relaxed) != 0;
        let holder = worst.holder.upgrade();
        drop(accounts);
        if !told && let Some(holder) = holder {
            holder.on_condemned();
        }
        false
    }
}

impl Account {
    fn inbound(&self) -> MutexGuard<'_, Option<Inbound>> {
        self.inbound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whole messages that wait for the application.
    fn waiting(&self) -> u64 {
        self.inbound().as_ref().map_or(0, Inbound::weight)
    }
}

impl Share {
    /// The connection writes what it receives to this pipe from now on.
    pub(crate) fn follow(&mut self, pipe: &Pipe) {
        if let Some(before) = self.inbound.replace(pipe.inbound()) {
            self.budget.leave(before);
        }
        if let Some(entry) = &self.entry {
            *entry.account.inbound() = self.inbound.clone();
        }
        self.forget_look();
    }

    /// Whether it is time for a [`look`](Self::look): `gross` is what the connection has ever written to its pipe, and what
    /// is not decoded.
    #[inline]
    pub(crate) fn is_due(&self, gross: u64) -> bool {
        gross >= self.look_at
    }

    /// Reports what was received and is not complete, with the room for it, and whether that is the middle of a message.
    /// Finds out whether the connection may go on.
    #[cold]
    pub(crate) fn look(
        &mut self,
        gross: u64,
        open: u64,
        in_message: bool,
        now: Instant,
        holder: impl FnOnce() -> Weak<dyn Holder>,
    ) -> Ruling {
        let (budget, inbound) = (&self.budget, &self.inbound);
        let entry = self.entry.get_or_insert_with(|| {
            let account = Arc::new(Account {
                noted: AtomicU64::new(0),
                begun: AtomicU64::new(0),
                spare: AtomicU64::new(0),
                inbound: Mutex::new(inbound.clone()),
                condemned: AtomicU64::new(0),
                holder: holder(),
            });
            let key = budget.accounts().living.insert(account.clone());
            Box::new(Entry {
                account,
                key,
                pause: None,
            })
        });
        let (ruling, step) = rule(budget, &entry.account, open, in_message);
        (self.look_at, entry.pause) = match ruling {
            Ruling::Go => (gross + step, None),
            Ruling::Wait | Ruling::End => (0, Some(now + PAUSE)),
        };
        ruling
    }

    /// When a peer that is not read from is to be looked at again.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.entry.as_ref().and_then(|entry| entry.pause)
    }

    /// Forgets this time if it has come. A peer that still may not be read from gets another one when it is looked at.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(entry) = &mut self.entry {
            entry.pause.take_if(|at| *at <= now);
        }
    }

    /// Whether the connection, which is in the middle of a message, was condemned for this message.
    #[inline]
    pub(crate) fn has_to_go(&self, open: impl FnOnce() -> u64) -> bool {
        let entry = self.entry.as_ref();
        entry.is_some_and(|entry| entry.account.has_to_go(open))
    }

    /// Whether to [settle](Self::settle).
    #[inline]
    pub(crate) fn is_unsettled(&self, open: impl FnOnce() -> u64) -> bool {
        self.entry.as_ref().is_some_and(|entry| {
            let reported = entry.account.open();
            let open = open();
            (open != reported && open.max(reported) >= LITTLE)
                || entry.account.condemned.load(Ordering::Relaxed) != 0
        })
    }

    /// Reports as [`look`](Self::look) does, and asks nothing. When a connection has read what there was, this is the state
    /// in which it may stay silent for long.
    #[cold]
    pub(crate) fn settle(&mut self, open: u64, in_message: bool) {
        if let Some(entry) = &self.entry {
            let held = entry.account.report(open, in_message);
            self.budget.note(&entry.account, held);
        }
    }

    /// The connection is over; another one may follow.
    pub(crate) fn lost(&mut self) {
        if let Some(entry) = &mut self.entry {
            entry.pause = None;
            let held = entry.account.report(0, false);
            self.budget.note(&entry.account, held);
        }
        self.forget_look();
    }

    /// What it was measured by is gone.
    fn forget_look(&mut self) {
        self.look_at = if self.entry.is_some() { 0 } else { STEP };
    }
}

impl Account {
    fn has_to_go(&self, begun: impl FnOnce() -> u64) -> bool {
        let condemned = self.condemned.load(Ordering::Relaxed);
        condemned != 0 && begun() >= condemned
    }

    fn open(&self) -> u64 {
        self.begun.load(Ordering::Relaxed) + self.spare.load(Ordering::Relaxed)
    }

    fn held(&self) -> u64 {
        self.open() + self.waiting()
    }

    /// Returns what it holds now. A connection that has begun less than before has completed the message that it was
    /// condemned for, and is pardoned.
    fn report(&self, open: u64, in_message: bool) -> u64 {
        let (begun, spare) = if in_message { (open, 0) } else { (0, open) };
        self.begun.store(begun, Ordering::Relaxed);
        self.spare.store(spare, Ordering::Relaxed);
        if begun < self.condemned.load(Ordering::Relaxed) {
            self.condemned.store(0, Ordering::Relaxed);
        }
        self.held()
    }
}

/// What a connection may do, and by how much it may grow until it looks again.
fn rule(budget: &Budget, account: &Arc<Account>, open: u64, in_message: bool) -> (Ruling, u64) {
    let held = account.report(open, in_message);
    let used = budget.note(account, held);
    if in_message && account.has_to_go(|| open) {
        return (Ruling::End, 0);
    }
    let below = |most: u64| (held < most).then(|| (Ruling::Go, STEP.min(most - held)));
    if !budget.has_memory(used) {
        let refused = if in_message {
            Ruling::End
        } else {
            Ruling::Wait
        };
        return below(LITTLE).unwrap_or((refused, 0));
    }
    let limit = budget.limit.load(Ordering::Relaxed);
    let common = limit - limit / 4;
    if limit == 0 || used <= common {
        return (Ruling::Go, STEP);
    }
    if let Some(little) = below(LITTLE) {
        return little;
    }
    let count = budget.count();
    if count.used <= common {
        return (Ruling::Go, STEP);
    }
    let connections = budget.connections.load(Ordering::Relaxed).max(1);
    if let Some(modest) = below(limit / 4 / connections) {
        return modest;
    }
    let stays = count.begun + CONNECTION * connections;
    if in_message && stays > common && budget.is_worst(account) {
        return (Ruling::End, 0);
    }
    (Ruling::Wait, 0)
}

impl Drop for Share {
    fn drop(&mut self) {
        let budget = &self.budget;
        budget.connections.fetch_sub(1, Ordering::Relaxed);
        budget.used.fetch_sub(CONNECTION, Ordering::Relaxed);
        if let Some(entry) = &self.entry {
            let mut accounts = budget.accounts();
            accounts.living.try_remove(entry.key);
            // Under the lock: a count would report it again otherwise.
            budget.note(&entry.account, 0);
        }
        if let Some(inbound) = self.inbound.take() {
            budget.leave(inbound);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use zeroxide_proto::message::Message;

    use super::*;
    use crate::pipe::PipeConfig;

    const MIB: u64 = 1 << 20;

    struct Told(AtomicBool);

    impl Holder for Told {
        fn on_condemned(&self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    struct Peer {
        share: Share,
        told: Arc<Told>,
    }

    impl Peer {
        fn of(budget: &Arc<Budget>) -> Peer {
            let told = Arc::new(Told(AtomicBool::new(false)));
            let share = budget.join();
            Peer { share, told }
        }

        fn looks(&mut self, begun: u64, in_message: bool) -> Ruling {
            let told: Weak<Told> = Arc::downgrade(&self.told);
            let now = Instant::now();
            self.share.look(begun, begun, in_message, now, || told)
        }

        fn begins(&mut self, bytes: u64) -> Ruling {
            self.looks(bytes, true)
        }

        fn waits(&mut self) -> Ruling {
            self.looks(0, false)
        }

        fn is_told(&self) -> bool {
            self.told.0.load(Ordering::Relaxed)
        }
    }

    fn budget(limit: u64) -> Arc<Budget> {
        let budget = Budget::new();
        budget.set_limit(limit);
        budget
    }

    fn later(budget: &Budget) {
        budget.accounts().last = None;
    }

    fn pipes() -> (Pipe, Pipe) {
        Pipe::pair(PipeConfig::default(), PipeConfig::default())
    }

    fn write(pipe: &mut Pipe, bytes: u64) {
        pipe.write_unchecked(&mut Message::from(vec![0; bytes as usize]));
    }

    #[test]
    fn the_last_quarter_is_for_those_that_hold_little() {
        let budget = budget(400 * MIB);
        let (mut greedy, mut modest) = (Peer::of(&budget), Peer::of(&budget));
        let (mut near, far) = pipes();
        greedy.share.follow(&near);
        for _ in 0..31 {
            write(&mut near, 10 * MIB);
        }
        assert_eq!(greedy.waits(), Ruling::Wait);
        assert!(greedy.share.poll_timeout().is_some());
        later(&budget);
        assert_eq!(modest.begins(10 * MIB), Ruling::Go);
        assert_eq!(modest.begins(49 * MIB), Ruling::Go);
        later(&budget);
        // The application has only to receive.
        assert_eq!(modest.begins(90 * MIB), Ruling::Wait);
        drop(far);
        later(&budget);
        assert_eq!(greedy.waits(), Ruling::Go);
        assert_eq!(modest.begins(90 * MIB), Ruling::Go);
    }

    #[test]
    fn a_budget_that_is_used_up_holds_back_no_connection_that_holds_little() {
        let budget = budget(4 * MIB);
        let (mut greedy, mut small) = (Peer::of(&budget), Peer::of(&budget));
        let (mut near, _far) = pipes();
        greedy.share.follow(&near);
        write(&mut near, 9 * MIB);
        assert_eq!(greedy.waits(), Ruling::Wait);
        // As long as little has come, it does not even look.
        assert!(!small.share.is_due(STEP - 1));
        assert!(small.share.entry.is_none());
        for held in [0, 100, STEP, LITTLE - 1] {
            assert_eq!(small.begins(held), Ruling::Go);
            assert_eq!(small.looks(held, false), Ruling::Go);
        }
        // It looks again before it has more than that.
        assert!(small.share.is_due(LITTLE));
        // An equal share of the last quarter is not little, and still allowed.
        assert_eq!(small.begins(MIB / 2 - 1), Ruling::Go);
        assert_eq!(small.begins(MIB / 2), Ruling::Wait);
        // A new one is let in.
        assert!(budget.admits());
    }

    #[test]
    fn connections_that_hold_nothing_are_let_in_up_to_a_quarter() {
        let budget = budget(4 * MIB);
        let mut greedy = Peer::of(&budget);
        assert_eq!(greedy.begins(MIB), Ruling::Go);
        budget.set_limit(MIB);
        later(&budget);
        let mut others = Vec::new();
        while budget.admits() {
            others.push(budget.join());
        }
        assert_eq!(others.len() as u64, MIB / 4 / CONNECTION - 1);
        others.clear();
        drop(greedy);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn of_messages_that_can_never_be_completed_the_largest_goes() {
        let budget = budget(100 * MIB);
        let mut peers: Vec<Peer> = (0..3).map(|_| Peer::of(&budget)).collect();
        for (peer, size) in peers.iter_mut().zip([20, 30, 24]) {
            assert_eq!(peer.begins(size * MIB), Ruling::Go);
        }
        later(&budget);
        assert_eq!(peers[0].begins(22 * MIB), Ruling::Wait);
        assert!(peers[1].is_told());
        assert!(peers[1].share.has_to_go(|| 30 * MIB));
        assert_eq!(peers[1].begins(31 * MIB), Ruling::End);
        peers.remove(1);
        later(&budget);
        assert_eq!(peers[0].begins(23 * MIB), Ruling::Go);
        assert_eq!(peers[1].begins(25 * MIB), Ruling::Go);
        later(&budget);
        // Alone too large.
        assert_eq!(peers[1].begins(80 * MIB), Ruling::End);
    }

    #[test]
    fn a_peer_that_completed_its_message_is_pardoned() {
        let budget = budget(100 * MIB);
        let (mut large, mut other) = (Peer::of(&budget), Peer::of(&budget));
        for settles in [true, false] {
            assert_eq!(large.begins(50 * MIB), Ruling::Go);
            assert_eq!(other.begins(10 * MIB), Ruling::Go);
            later(&budget);
            assert_eq!(other.begins(40 * MIB), Ruling::Wait);
            assert!(large.told.0.swap(false, Ordering::Relaxed));
            // It has begun another one by the time that it finds out.
            let now = 100;
            assert!(!large.share.has_to_go(|| now));
            if settles {
                assert!(large.share.is_unsettled(|| now));
                large.share.settle(now, true);
                assert!(!large.share.is_unsettled(|| now));
            } else {
                assert_eq!(large.begins(now), Ruling::Go);
            }
            later(&budget);
            assert_eq!(other.begins(40 * MIB), Ruling::Go);
            // Not even a larger message is too much now.
            assert!(!large.share.has_to_go(|| 55 * MIB));
            assert_eq!(other.begins(0), Ruling::Go);
            assert_eq!(large.begins(55 * MIB), Ruling::Go);
            assert_eq!(large.begins(0), Ruling::Go);
        }
    }

    #[test]
    fn the_worst_is_found_by_what_it_holds_now_and_room_between_messages_is_not_begun() {
        let budget = budget(100 * MIB);
        let (mut silent, mut other) = (Peer::of(&budget), Peer::of(&budget));
        assert_eq!(silent.begins(20 * MIB), Ruling::Go);
        // It read more than that in one go, and nothing since.
        assert!(silent.share.is_unsettled(|| 40 * MIB));
        silent.share.settle(40 * MIB, true);
        later(&budget);
        assert_eq!(other.begins(38 * MIB), Ruling::Wait);
        assert!(silent.is_told());
        // Its message is complete, and the room is still there.
        silent.share.settle(40 * MIB, false);
        later(&budget);
        assert_eq!(other.begins(70 * MIB), Ruling::Wait);
        silent.share.settle(0, false);
        later(&budget);
        assert_eq!(other.begins(70 * MIB), Ruling::Go);
    }

    #[test]
    fn what_a_peer_has_left_counts_until_it_is_received() {
        let budget = budget(10 * MIB);
        let (mut near, far) = pipes();
        let mut gone = Peer::of(&budget);
        gone.share.follow(&near);
        write(&mut near, 11 * MIB);
        drop(gone);
        drop(near);
        assert!(!budget.admits());
        drop(far);
        later(&budget);
        assert!(budget.admits());
        assert!(budget.accounts().left.is_empty());
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_many_small_peers_have_left_counts_although_none_had_an_account() {
        let budget = budget(10 * MIB);
        let mut far_ends = Vec::new();
        while budget.admits() {
            let (mut near, far) = pipes();
            let mut gone = Peer::of(&budget);
            gone.share.follow(&near);
            write(&mut near, STEP / 2);
            assert!(gone.share.entry.is_none());
            far_ends.push(far);
            assert!(far_ends.len() < 1000);
        }
        // One that comes back to another pipe, too.
        let (mut near, far) = pipes();
        let mut back = budget.join();
        back.follow(&near);
        write(&mut near, 100);
        let before = budget.accounts().left.len();
        back.follow(&pipes().0);
        assert_eq!(budget.accounts().left.len(), before + 1);
        drop((far, far_ends, back));
        later(&budget);
        assert!(budget.admits());
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_was_received_after_its_connection_ended_leaves_nothing_behind() {
        let budget = budget(400 * MIB);
        for _ in 0..10_000 {
            let (mut near, far) = pipes();
            let mut gone = Peer::of(&budget);
            gone.share.follow(&near);
            write(&mut near, 100);
            drop(gone);
            drop((near, far));
        }
        let left = budget.accounts().left.len();
        assert!(left < 200, "{left} entries");
        assert!(budget.used.load(Ordering::Relaxed) < 200 * CONNECTION);
    }

    #[test]
    fn a_connection_that_ends_takes_no_other_account() {
        let budget = budget(400 * MIB);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let mut peer = Peer::of(&budget);
                        assert_eq!(peer.begins(STEP), Ruling::Go);
                        later(&budget);
                        budget.count();
                        let entry = peer.share.entry.as_ref().unwrap();
                        let accounts = budget.accounts();
                        let found = accounts.living.get(entry.key);
                        assert!(found.is_some_and(|it| Arc::ptr_eq(it, &entry.account)));
                        drop(accounts);
                    }
                });
            }
        });
        assert!(budget.accounts().living.is_empty());
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_pause_that_is_over_is_not_waited_for_again() {
        let budget = budget(MIB);
        let (mut near, _far) = pipes();
        let mut peer = Peer::of(&budget);
        peer.share.follow(&near);
        write(&mut near, 2 * MIB);
        assert_eq!(peer.waits(), Ruling::Wait);
        let at = peer.share.poll_timeout().unwrap();
        peer.share.handle_timeout(at - PAUSE);
        assert_eq!(peer.share.poll_timeout(), Some(at));
        peer.share.handle_timeout(at);
        assert_eq!(peer.share.poll_timeout(), None);
    }
}
