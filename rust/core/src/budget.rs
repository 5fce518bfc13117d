//! What the peers of one context may make it hold, all together: the [`Budget`], and what each connection has of it.
//!
//! Counted are what was read and is not decoded, messages that are not complete, and messages that nobody has received
//! yet, each with what it takes in memory. Subscriptions are not: they have a limit of their own for each peer. A
//! connection looks at the budget when it has grown by [`STEP`], never for a message. What the application receives is not
//! taken off at once: whoever seems to find the budget used up has everybody counted again.
//!
//! Three quarters of the budget are for whoever comes first. The rest is for those that hold less than their share of it,
//! so that a few greedy peers cannot shut out the others. Whoever may not grow is not read from. If it is in the middle of
//! a message, and would have to wait even if the application received everything that waits, then what is begun and not
//! complete is too much: the one that holds most of that has to go.
//!
//! Memory may be short without any of that. So before a connection grows, or another one is let in, there is a look
//! whether there is [`RESERVE`], which leaves enough for the many small things whose want would end the process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use slab::Slab;

use crate::pipe::{Inbound, Pipe};
use crate::sys::memory;

/// By how much a connection grows until it looks.
const STEP: u64 = 64 << 10;
/// What a connection takes itself.
const CONNECTION: u64 = 8 << 10;
/// How much memory must be there, and by how much all may grow until there is another look.
const RESERVE: usize = 8 << 20;
const RESERVE_STEP: u64 = 1 << 20;
/// A peer that is not read from is looked at again after this time.
const PAUSE: Duration = Duration::from_millis(20);
/// No more often than this everybody is counted.
const COUNT_EVERY: Duration = Duration::from_millis(5);

/// See the module text.
pub(crate) struct Budget {
    /// 0 = none.
    limit: AtomicU64,
    /// What all hold, as they last said.
    used: AtomicU64,
    /// Up to this there was memory when it was last looked for.
    assured: AtomicU64,
    accounts: Mutex<Accounts>,
}

#[derive(Default)]
struct Accounts {
    all: Slab<Arc<Account>>,
    /// With so many, those that are over are removed.
    sweep_at: usize,
    last: Option<(Instant, Count)>,
}

/// What a connection holds; beyond its end as long as somebody may receive what it has left.
struct Account {
    /// What it has said so far.
    noted: AtomicU64,
    /// The part of it that no application can receive, because it is not complete.
    begun: AtomicU64,
    inbound: Mutex<Vec<Inbound>>,
    /// It has to go.
    condemned: AtomicBool,
    ended: AtomicBool,
    holder: Weak<dyn Holder>,
}

/// A connection.
pub(crate) trait Holder: Send + Sync {
    /// It has to go, and will find out when it looks.
    fn on_condemned(&self);
}

/// All connections, counted.
#[derive(Clone, Copy)]
struct Count {
    connections: u64,
    used: u64,
    begun: u64,
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

/// What one connection has of the budget.
pub(crate) struct Share {
    budget: Arc<Budget>,
    account: Arc<Account>,
    key: usize,
    look_at: u64,
    pause: Option<Instant>,
}

impl Budget {
    pub(crate) fn new() -> Arc<Budget> {
        Arc::new(Budget {
            limit: AtomicU64::new(0),
            used: AtomicU64::new(0),
            assured: AtomicU64::new(0),
            accounts: Mutex::default(),
        })
    }

    /// Sets how many bytes it is; 0 = no end.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Whether there is room for another connection.
    pub(crate) fn admits(&self) -> bool {
        if !memory::is_there(RESERVE) {
            return false;
        }
        let limit = self.limit.load(Ordering::Relaxed);
        limit == 0
            || self.used.load(Ordering::Relaxed) + CONNECTION <= limit
            || self.count().used + CONNECTION <= limit
    }

    /// A new connection.
    pub(crate) fn join(self: &Arc<Self>, holder: Weak<dyn Holder>) -> Share {
        let account = Arc::new(Account {
            noted: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            inbound: Mutex::default(),
            condemned: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            holder,
        });
        self.note(&account, CONNECTION);
        let mut accounts = self.accounts();
        self.sweep(&mut accounts);
        let key = accounts.all.insert(account.clone());
        drop(accounts);
        Share {
            budget: self.clone(),
            account,
            key,
            look_at: STEP,
            pause: None,
        }
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the accounts of connections that are over and have nothing left. A budget that is far from used up may
    /// never be counted, and each account keeps a pipe. How many there are has to double first, so that joining stays cheap.
    fn sweep(&self, accounts: &mut Accounts) {
        if accounts.all.len() < accounts.sweep_at {
            return;
        }
        accounts.all.retain(|_, account| {
            if !account.ended.load(Ordering::Acquire) {
                return true;
            }
            let waiting = account.waiting();
            self.note(account, waiting);
            waiting > 0
        });
        accounts.sweep_at = 2 * accounts.all.len() + 64;
    }

    /// Returns what all hold now, this one with `held`.
    fn note(&self, account: &Account, held: u64) -> u64 {
        let before = account.noted.swap(held, Ordering::Relaxed);
        let change = held.wrapping_sub(before);
        self.used
            .fetch_add(change, Ordering::Relaxed)
            .wrapping_add(change)
    }

    /// Whether there is memory for growing on.
    fn has_memory(&self, used: u64) -> bool {
        let assured = self.assured.load(Ordering::Relaxed);
        let near = used <= assured && assured <= used + 4 * RESERVE_STEP;
        if near {
            return true;
        }
        let there = memory::is_there(RESERVE);
        if there {
            self.assured.store(used + RESERVE_STEP, Ordering::Relaxed);
        }
        there
    }

    /// Counts everybody, unless that was only just done.
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
            connections: 0,
            used: 0,
            begun: 0,
        };
        accounts.all.retain(|_, account| {
            let waiting = account.waiting();
            if account.ended.load(Ordering::Acquire) {
                self.note(account, waiting);
                count.used += waiting;
                return waiting > 0;
            }
            let begun = account.begun.load(Ordering::Relaxed);
            let held = CONNECTION + begun + waiting;
            self.note(account, held);
            count.connections += 1;
            count.used += held;
            count.begun += begun;
            true
        });
        accounts.last = Some((now, count));
        count
    }

    /// Whether `account` is the one that holds most of what is begun. If it is another, that one is told.
    fn is_worst(&self, account: &Arc<Account>) -> bool {
        let accounts = self.accounts();
        let living = accounts.all.iter().map(|(_, account)| account);
        let living = living.filter(|account| !account.ended.load(Ordering::Relaxed));
        let Some(worst) = living.max_by_key(|account| account.begun.load(Ordering::Relaxed)) else {
            return true;
        };
        if Arc::ptr_eq(worst, account) {
            return true;
        }
        let told = worst.condemned.swap(true, Ordering::Relaxed);
        let holder = worst.holder.upgrade();
        drop(accounts);
        if !told && let Some(holder) = holder {
            holder.on_condemned();
        }
        false
    }
}

impl Account {
    fn inbound(&self) -> MutexGuard<'_, Vec<Inbound>> {
        self.inbound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whole messages that wait for the application.
    fn waiting(&self) -> u64 {
        let mut inbound = self.inbound();
        let all = inbound.iter().map(Inbound::weight).sum();
        if all == 0 && inbound.len() > 1 {
            let last = inbound.len() - 1;
            inbound.drain(..last);
        }
        all
    }
}

impl Share {
    /// The connection writes what it receives to this pipe from now on.
    pub(crate) fn follow(&mut self, pipe: &Pipe) {
        self.account.inbound().push(pipe.inbound());
        self.look_at = 0;
    }

    /// Whether it is time for a [`look`](Self::look): `gross` is what the connection has ever written to its pipe, and what
    /// is not decoded.
    #[inline]
    pub(crate) fn is_due(&self, gross: u64) -> bool {
        gross >= self.look_at
    }

    /// Says how much the connection has begun and not completed, and whether that is in the middle of a message. Finds out
    /// whether it may go on.
    #[cold]
    pub(crate) fn look(
        &mut self,
        gross: u64,
        begun: u64,
        in_message: bool,
        now: Instant,
    ) -> Ruling {
        let ruling = self.rule(begun, in_message);
        (self.look_at, self.pause) = match ruling {
            Ruling::Go => (gross + STEP, None),
            Ruling::Wait | Ruling::End => (0, Some(now + PAUSE)),
        };
        ruling
    }

    fn rule(&self, begun: u64, in_message: bool) -> Ruling {
        let (budget, account) = (&self.budget, &self.account);
        account.begun.store(begun, Ordering::Relaxed);
        let held = CONNECTION + begun + account.waiting();
        let used = budget.note(account, held);
        let limit = budget.limit.load(Ordering::Relaxed);
        if account.condemned.load(Ordering::Relaxed) && in_message {
            return Ruling::End;
        }
        if !budget.has_memory(used) {
            return if in_message {
                Ruling::End
            } else {
                Ruling::Wait
            };
        }
        let common = limit - limit / 4;
        if limit == 0 || used <= common {
            return Ruling::Go;
        }
        let count = budget.count();
        let share = (limit / 4 / count.connections.max(1)).max(STEP);
        if count.used <= common || (count.used <= limit && held <= share) {
            return Ruling::Go;
        }
        if in_message && count.begun > common && budget.is_worst(account) {
            return Ruling::End;
        }
        Ruling::Wait
    }

    /// When a peer that is not read from is to be looked at again.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.pause
    }

    /// Forgets this time if it has come. Whoever still may not be read from is given another one when it is looked at.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.pause.take_if(|at| *at <= now);
    }

    /// Whether it has to go if it is in the middle of a message.
    pub(crate) fn is_condemned(&self) -> bool {
        self.account.condemned.load(Ordering::Relaxed)
    }

    /// The connection is over; another one may follow.
    pub(crate) fn lost(&mut self) {
        self.account.begun.store(0, Ordering::Relaxed);
        self.account.condemned.store(false, Ordering::Relaxed);
        self.budget
            .note(&self.account, CONNECTION + self.account.waiting());
        (self.look_at, self.pause) = (0, None);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // Locked before it is marked: a count could remove it otherwise, and the key would be another connection's.
        let mut accounts = self.budget.accounts();
        let waiting = self.account.waiting();
        self.account.ended.store(true, Ordering::Release);
        self.budget.note(&self.account, waiting);
        if waiting == 0 {
            accounts.all.try_remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
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
            let holder: Weak<Told> = Arc::downgrade(&told);
            let share = budget.join(holder);
            Peer { share, told }
        }

        fn begins(&mut self, bytes: u64) -> Ruling {
            self.share.look(bytes, bytes, true, Instant::now())
        }
    }

    fn budget(limit: u64) -> Arc<Budget> {
        let budget = Budget::new();
        budget.set_limit(limit);
        budget
    }

    fn later() {
        std::thread::sleep(COUNT_EVERY);
    }

    #[test]
    fn the_last_quarter_is_for_those_that_hold_little() {
        let budget = budget(400 * MIB);
        let (mut greedy, mut modest) = (Peer::of(&budget), Peer::of(&budget));
        let (near, _far) = Pipe::pair(PipeConfig::default(), PipeConfig::default());
        let mut near = near;
        greedy.share.follow(&near);
        for _ in 0..31 {
            near.write_unchecked(&mut Message::from(vec![0; 10 << 20]));
        }
        let look = |peer: &mut Peer| peer.share.look(0, 0, false, Instant::now());
        assert_eq!(look(&mut greedy), Ruling::Wait);
        assert!(greedy.share.poll_timeout().is_some());
        later();
        assert_eq!(modest.begins(10 * MIB), Ruling::Go);
        assert_eq!(modest.begins(49 * MIB), Ruling::Go);
        later();
        // The application has only to receive.
        assert_eq!(modest.begins(90 * MIB), Ruling::Wait);
        drop(_far);
        later();
        assert_eq!(look(&mut greedy), Ruling::Go);
        assert_eq!(modest.begins(90 * MIB), Ruling::Go);
    }

    #[test]
    fn of_messages_that_can_never_be_completed_the_largest_goes() {
        let budget = budget(100 * MIB);
        let mut peers: Vec<Peer> = (0..3).map(|_| Peer::of(&budget)).collect();
        for (peer, size) in peers.iter_mut().zip([20, 30, 24]) {
            assert_eq!(peer.begins(size * MIB), Ruling::Go);
        }
        later();
        assert_eq!(peers[0].begins(22 * MIB), Ruling::Wait);
        assert!(peers[1].told.0.load(Ordering::Relaxed));
        assert_eq!(peers[1].begins(31 * MIB), Ruling::End);
        peers.remove(1);
        later();
        assert_eq!(peers[0].begins(23 * MIB), Ruling::Go);
        assert_eq!(peers[1].begins(25 * MIB), Ruling::Go);
        later();
        // Alone too large.
        assert_eq!(peers[1].begins(80 * MIB), Ruling::End);
    }

    #[test]
    fn what_a_peer_has_left_counts_until_it_is_received() {
        let budget = budget(10 * MIB);
        let (mut near, far) = Pipe::pair(PipeConfig::default(), PipeConfig::default());
        let mut gone = Peer::of(&budget);
        gone.share.follow(&near);
        near.write_unchecked(&mut Message::from(vec![0; 11 << 20]));
        drop(gone);
        drop(near);
        assert!(!budget.admits());
        drop(far);
        later();
        assert!(budget.admits());
        assert!(budget.accounts().all.is_empty());
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_was_received_after_its_connection_ended_leaves_nothing_behind() {
        let budget = budget(400 * MIB);
        for _ in 0..10_000 {
            let (mut near, far) = Pipe::pair(PipeConfig::default(), PipeConfig::default());
            let mut gone = Peer::of(&budget);
            gone.share.follow(&near);
            near.write_unchecked(&mut Message::from(vec![0; 100]));
            drop(gone);
            drop((near, far));
        }
        let left = budget.accounts().all.len();
        assert!(left < 200, "{left} accounts");
        assert!(budget.used.load(Ordering::Relaxed) < 200 * CONNECTION);
    }

    #[test]
    fn who_ends_takes_nobody_elses_account() {
        let budget = budget(400 * MIB);
        let ends = Instant::now() + Duration::from_millis(300);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while Instant::now() < ends {
                    budget.accounts().last = None;
                    budget.count();
                }
            });
            for _ in 0..4 {
                scope.spawn(|| {
                    while Instant::now() < ends {
                        let peer = Peer::of(&budget);
                        std::thread::yield_now();
                        let accounts = budget.accounts();
                        let found = accounts.all.get(peer.share.key);
                        assert!(found.is_some_and(|it| Arc::ptr_eq(it, &peer.share.account)));
                        drop(accounts);
                    }
                });
            }
        });
        assert!(budget.accounts().all.is_empty());
    }

    #[test]
    fn a_pause_that_is_over_is_not_waited_for_again() {
        let budget = budget(MIB);
        let (mut near, _far) = Pipe::pair(PipeConfig::default(), PipeConfig::default());
        let mut peer = Peer::of(&budget);
        peer.share.follow(&near);
        near.write_unchecked(&mut Message::from(vec![0; 2 << 20]));
        let now = Instant::now();
        assert_eq!(peer.share.look(0, 0, false, now), Ruling::Wait);
        peer.share.handle_timeout(now);
        assert_eq!(peer.share.poll_timeout(), Some(now + PAUSE));
        peer.share.handle_timeout(now + PAUSE);
        assert_eq!(peer.share.poll_timeout(), None);
    }
}
