//! Limits what the peers of one context can make it hold together: the [`Budget`], and the [`Share`] of each
//! connection.
//!
//! Five things count, each with the memory that it takes: bytes that were read and are not decoded, messages that are
//! incomplete, messages that the application has not received yet, what a connection keeps of its peer and for the
//! layers of its stream, and [topics] that peers have subscribed to. A connection checks the budget when it has grown
//! by [`STEP`], not for each message. Messages that the application receives are not subtracted at once: when the
//! budget seems to be used up, all accounts are counted again.
//!
//! # Connections that hold little
//!
//! A connection gets an account when [`STEP`] bytes have arrived. Until then it does not check the budget, does not
//! wait, and counts as [`CONNECTION`]. After that, it may continue while it holds less than [`LITTLE`], even if the
//! other connections hold too much or memory is short. So a greedy peer cannot silence the other sockets of its
//! context. The price is that each of these connections may take [`LITTLE`] and one read of 64 KiB beyond the budget,
//! which is 192 MiB for a thousand connections. Their number is limited by the file descriptors of the process and by
//! [`Budget::admits`]. Messages that a connection leaves behind when it ends are counted, even if they are small, so
//! that a peer gains nothing by reconnecting again and again.
//!
//! # The others
//!
//! Three quarters of the budget go to the connections that use them first. The rest is for connections that hold less
//! than an equal share of it. A connection that may not grow is not read from. If it has begun a message, and would
//! have to wait even if the application received everything that waits, then the incomplete messages are too large. In
//! that case, one of the connections with the largest messages is ended, unless it completes its message first.
//! [`progress`] decides which one.
//!
//! Memory may be short although the budget is not used up. So before a connection grows or another one is admitted, the
//! budget checks that there is [a reserve](memory::leaves_reserve).

mod progress;
mod returns;
mod topics;

use std::mem;
use std::time::{Duration, Instant};

use slab::Slab;

use self::progress::Progress;
use self::returns::{Returns, Watch};
pub(crate) use self::topics::Topics;
use crate::pipe::{Inbound, Pipe};
use crate::sys::clock;
use crate::sys::memory;
use crate::sys::sync::atomic::{AtomicU64, Ordering};
use crate::sys::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Growth of a connection after which it checks the budget.
const STEP: u64 = 64 << 10;
/// A connection that holds less than this may always continue. It is enough for a full read, and for as much again that
/// waits.
const LITTLE: u64 = 2 * STEP;
/// The memory that a connection takes for itself.
const CONNECTION: u64 = 8 << 10;
/// Growth of all connections together after which the reserve is checked again.
const RESERVE_STEP: u64 = 1 << 20;
/// Time after which a connection that is not read from is checked again.
const PAUSE: Duration = Duration::from_millis(20);
/// The part of the limit, as one in this many, that is freed at once by ending connections whose messages have stopped
/// arriving.
const ROOM: u64 = 16;
/// Minimum time between two counts of the accounts.
const COUNT_EVERY: Duration = Duration::from_millis(5);

/// See the module text.
pub(crate) struct Budget {
    start: Instant,
    /// In bytes; 0 means no limit.
    limit: AtomicU64,
    /// The bytes that all connections hold, as last reported.
    used: AtomicU64,
    /// The last check found memory for `used` up to this value.
    assured: AtomicU64,
    connections: AtomicU64,
    /// The bytes that connections keep in addition to messages.
    kept: AtomicU64,
    /// The bytes of the topics that peers have subscribed to.
    topics: AtomicU64,
    returns: Returns,
    accounts: Mutex<Accounts>,
}

#[derive(Default)]
struct Accounts {
    living: Slab<Arc<Account>>,
    /// Messages for the application from connections that have ended.
    left: Vec<Remains>,
    /// The length at which `left` is swept.
    sweep_at: usize,
    last: Option<(Instant, Count)>,
}

/// The bytes that a connection holds.
struct Account {
    /// The bytes that the connection has reported so far, without [`CONNECTION`].
    noted: AtomicU64,
    /// The part of that which no application can receive, because it belongs to an incomplete message.
    begun: AtomicU64,
    /// The part of that which is spare room, between two messages.
    spare: AtomicU64,
    inbound: Mutex<Option<Inbound>>,
    progress: Progress,
    /// The value of `begun` when the connection was told to make room; 0 if it was not.
    condemned: AtomicU64,
    holder: Weak<dyn Holder>,
}

/// The messages that wait in a pipe whose connection has ended.
struct Remains {
    inbound: Inbound,
    noted: u64,
}

/// A connection that holds a share of the budget.
pub(crate) trait Holder: Send + Sync {
    /// Notifies the connection that it may have to end, which [`Share::has_to_go`] decides, or to [watch](Share::watched).
    fn on_notice(&self);
}

/// The result of counting all accounts.
#[derive(Clone, Copy, Default)]
struct Count {
    used: u64,
    begun: u64,
    /// The part of `used` that ended connections have left.
    left: u64,
}

/// The budget's decision about a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ruling {
    Go,
    /// The connection must not be read from until the time that [`Share::poll_timeout`] returns.
    Wait,
    /// The connection must end.
    End,
}

/// A connection's share of the budget. A connection that holds little costs no other memory.
pub(crate) struct Share {
    budget: Arc<Budget>,
    look_at: u64,
    kept: u64,
    inbound: Option<Inbound>,
    /// Some if this connection watches until little waits at all of them together.
    watch: Option<Watch>,
    entry: Option<Box<Entry>>,
}

/// The account of a connection for which [`STEP`] bytes have arrived.
struct Entry {
    account: Arc<Account>,
    key: usize,
    pause: Option<Instant>,
}

impl Budget {
    pub(crate) fn new() -> Arc<Budget> {
        Arc::new(Budget {
            start: clock::now(),
            limit: AtomicU64::new(0),
            used: AtomicU64::new(0),
            assured: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            topics: AtomicU64::new(0),
            returns: Returns::default(),
            accounts: Mutex::default(),
        })
    }

    /// Sets the budget in bytes; 0 means no limit.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Whether there is room for another connection. If the budget is used up, there still is while the connections
    /// themselves and the messages of ended connections take at most a quarter of it, because the peers that wait in
    /// the listen backlog have not used any of it. Topics do not matter, or a few peers with many topics would keep
    /// all others out.
    pub(crate) fn admits(&self) -> bool {
        if !memory::leaves_reserve(0) {
            return false;
        }
        let limit = self.limit.load(Ordering::Relaxed);
        if limit == 0 || self.used.load(Ordering::Relaxed) + CONNECTION <= limit {
            return true;
        }
        let count = self.count();
        let modest = self.fixed() + CONNECTION;
        count.used + CONNECTION <= limit || modest + count.left <= limit / 4
    }

    /// The bytes that all connections hold now, and the limit; 0 means that there is none.
    pub(crate) fn usage(&self) -> (u64, u64) {
        (self.count().used, self.limit.load(Ordering::Relaxed))
    }

    /// Returns the share of a new connection.
    pub(crate) fn join(self: &Arc<Self>) -> Share {
        self.used.fetch_add(CONNECTION, Ordering::Relaxed);
        self.connections.fetch_add(1, Ordering::Relaxed);
        Share {
            budget: self.clone(),
            look_at: STEP,
            kept: 0,
            inbound: None,
            watch: None,
            entry: None,
        }
    }

    /// Forgets what ended connections left, because the context ends. The pipes hold their connections, which hold this.
    pub(crate) fn forget_left(&self) {
        let left = mem::take(&mut self.accounts().left);
        let bytes = left.iter().map(|it| it.noted).sum::<u64>();
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The memory that all connections take although they hold no messages.
    fn fixed(&self) -> u64 {
        let connections = self.connections.load(Ordering::Relaxed);
        CONNECTION * connections + self.kept.load(Ordering::Relaxed)
    }

    /// The bytes of messages and of what is not decoded, as last reported.
    fn messages(&self) -> u64 {
        let others = self.fixed() + self.topics.load(Ordering::Relaxed);
        self.used.load(Ordering::Relaxed).saturating_sub(others)
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that an account holds `held`. Returns what all connections hold now.
    fn note(&self, account: &Account, held: u64) -> u64 {
        let before = account.noted.swap(held, Ordering::Relaxed);
        let change = held.wrapping_sub(before);
        self.used
            .fetch_add(change, Ordering::Relaxed)
            .wrapping_add(change)
    }

    /// Counts the messages in a pipe to which no connection writes any more, until the application has received them.
    fn note_unread(&self, inbound: Inbound) {
        let noted = inbound.weight();
        if noted == 0 {
            return;
        }
        self.used.fetch_add(noted, Ordering::Relaxed);
        let mut accounts = self.accounts();
        if accounts.left.len() >= accounts.sweep_at {
            // A budget that is far from used up may never be counted, and each entry keeps a pipe alive. The list has
            // to double first, so that ending a connection stays cheap.
            self.sweep(&mut accounts.left);
            accounts.sweep_at = 2 * accounts.left.len() + 64;
        }
        accounts.left.push(Remains { inbound, noted });
    }

    /// Removes the messages that were received. Returns the weight of the rest.
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

    /// Whether there is memory to grow further.
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

    /// Counts all accounts, unless they were counted less than [`COUNT_EVERY`] ago.
    fn count(&self) -> Count {
        let mut accounts = self.accounts();
        let now = clock::now();
        if let Some((at, count)) = accounts.last
            && now.saturating_duration_since(at) < COUNT_EVERY
        {
            let used = self.used.load(Ordering::Relaxed);
            return Count { used, ..count };
        }
        let mut count = Count {
            used: self.fixed() + self.topics.load(Ordering::Relaxed),
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

    /// The time of the [progress] of a message.
    fn clock(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_millis() as u64
    }

    /// Ends connections for others. Returns whether that of `account` is one of them, and notifies the others.
    fn make_room(&self, account: &Arc<Account>, now: Instant) -> bool {
        let accounts = self.accounts();
        let living = accounts.living.iter().map(|(_, account)| account);
        let room = self.limit.load(Ordering::Relaxed) / ROOM;
        let worst = progress::worst(living, self.clock(now), room);
        let (own, others): (Vec<_>, Vec<_>) =
            worst.into_iter().partition(|it| Arc::ptr_eq(it, account));
        let has_to_go = !own.is_empty() || others.is_empty();
        let told = others.into_iter().filter(|other| other.condemn());
        let holders: Vec<_> = told.filter_map(|other| other.holder.upgrade()).collect();
        // A holder that is dropped locks the accounts.
        drop(accounts);
        holders.iter().for_each(|holder| holder.on_notice());
        has_to_go
    }

    /// Notifies a connection that has an account, and not this one.
    fn notify_another(&self, entry: Option<&Entry>) {
        let accounts = self.accounts();
        let living = accounts.living.iter().map(|(_, account)| account);
        let mut others =
            living.filter(|other| entry.is_none_or(|own| !Arc::ptr_eq(&own.account, other)));
        let holder = others.find_map(|other| other.holder.upgrade());
        // A holder that is dropped locks the accounts.
        drop(accounts);
        if let Some(holder) = holder {
            holder.on_notice();
        }
    }
}

impl Account {
    fn inbound(&self) -> MutexGuard<'_, Option<Inbound>> {
        self.inbound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The weight of the complete messages that wait for the application.
    fn waiting(&self) -> u64 {
        self.inbound().as_ref().map_or(0, Inbound::weight)
    }
}

impl Share {
    /// Sets the pipe to which the connection writes what it receives.
    pub(crate) fn follow(&mut self, pipe: &Pipe) {
        if let Some(before) = self.inbound.replace(pipe.inbound()) {
            self.budget.note_unread(before);
        }
        if let Some(entry) = &self.entry {
            *entry.account.inbound() = self.inbound.clone();
        }
        self.forget_look();
    }

    /// Records what the connection keeps in addition to messages, in place of what it kept before.
    pub(crate) fn keep(&mut self, bytes: u64) {
        let change = bytes.wrapping_sub(self.kept);
        self.kept = bytes;
        self.budget.kept.fetch_add(change, Ordering::Relaxed);
        self.budget.used.fetch_add(change, Ordering::Relaxed);
    }

    /// Whether it is time for a [`look`](Self::look). `gross` is what the connection has ever written to its pipe, plus
    /// the bytes that are not decoded.
    #[inline]
    pub(crate) fn is_due(&self, gross: u64) -> bool {
        gross >= self.look_at
    }

    /// Reports `open`, the size of what is incomplete with the room for it, and whether this is the middle of a
    /// message. Returns whether the connection may continue.
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
                progress: Progress::default(),
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
        let (ruling, step) = rule(budget, &entry.account, open, in_message, now);
        let is_held_back = ruling != Ruling::Go;
        let progress = &entry.account.progress;
        progress.hold_back(is_held_back, budget.clock(now));
        (self.look_at, entry.pause) = match ruling {
            Ruling::Go => (gross + step, None),
            Ruling::Wait | Ruling::End => (0, Some(now + PAUSE)),
        };
        ruling
    }

    /// When to check a connection again that is not read from.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.entry.as_ref().and_then(|entry| entry.pause)
    }

    /// Clears that time if it has passed. If the peer still may not be read from, the next check sets another one.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(entry) = &mut self.entry {
            entry.pause.take_if(|at| *at <= now);
        }
    }

    /// Whether the connection, which is in the middle of a message, must end because of this message.
    #[inline]
    pub(crate) fn has_to_go(&self, open: impl FnOnce() -> u64) -> bool {
        let entry = self.entry.as_ref();
        entry.is_some_and(|entry| entry.account.has_to_go(open))
    }

    /// Whether to call [`settle`](Self::settle).
    #[inline]
    pub(crate) fn is_unsettled(&self, open: impl FnOnce() -> u64) -> bool {
        self.entry.as_ref().is_some_and(|entry| {
            let reported = entry.account.open();
            let open = open();
            (open != reported && open.max(reported) >= LITTLE)
                || entry.account.condemned.load(Ordering::Relaxed) != 0
        })
    }

    /// Reports like [`look`](Self::look), but does not ask for a ruling. This is the state in which a connection that
    /// has read everything may stay silent for long.
    #[cold]
    pub(crate) fn settle(&mut self, open: u64, in_message: bool, now: Instant) {
        if let Some(entry) = &self.entry {
            let now = self.budget.clock(now);
            let held = entry.account.report(open, in_message, now);
            self.budget.note(&entry.account, held);
        }
    }

    /// The bytes that wait at all connections, if this one watches for their end; otherwise 0. It begins to watch if much
    /// waits and no other connection watches.
    #[inline]
    pub(crate) fn watched(&mut self) -> u64 {
        let used = self.budget.used.load(Ordering::Relaxed);
        match self.watch.is_some() || self.budget.returns.is_needed(used) {
            true => self.watch_over(),
            false => 0,
        }
    }

    #[cold]
    fn watch_over(&mut self) -> u64 {
        let waiting = self.budget.messages();
        if self.watch.is_none() {
            self.watch = self.budget.returns.watch(waiting);
        }
        match self.watch {
            Some(_) => waiting,
            None => 0,
        }
    }

    /// Counts the same. Returns 0 once memory can be returned.
    pub(crate) fn watch(&mut self, now: Instant) -> u64 {
        let Some(watch) = &mut self.watch else {
            return 0;
        };
        self.budget.count();
        let bytes = watch.note(self.budget.messages(), now);
        if bytes == 0 {
            self.stop_watching();
        }
        bytes
    }

    fn stop_watching(&mut self) {
        if self.watch.take().is_none() {
            return;
        }
        self.budget.returns.stop_watching();
        if self.budget.returns.is_needed(self.budget.messages()) {
            self.budget.notify_another(self.entry.as_deref());
        }
    }

    /// Records that the connection has ended, with an incomplete message of `stranded` bytes. Another one may follow.
    /// Returns whether the connections that ended have freed enough memory to return it to the system.
    pub(crate) fn lost(&mut self, stranded: u64) -> bool {
        self.keep(0);
        self.stop_watching();
        if let Some(entry) = &mut self.entry {
            entry.pause = None;
            let now = self.budget.clock(clock::now());
            let held = entry.account.report(0, false, now);
            self.budget.note(&entry.account, held);
        }
        self.forget_look();
        self.budget.returns.have_freed(stranded)
    }

    /// Resets the next check, because its reference value is not valid any more.
    fn forget_look(&mut self) {
        self.look_at = if self.entry.is_some() { 0 } else { STEP };
    }
}

impl Account {
    /// Returns whether it was not condemned before.
    fn condemn(&self) -> bool {
        let begun = self.begun.load(Ordering::Relaxed);
        self.condemned.swap(begun, Ordering::Relaxed) == 0
    }

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

    /// Records `open` and returns what the connection holds now. If the connection has begun less than before, it has
    /// completed the message for which it was condemned, and the condemnation is removed.
    fn report(&self, open: u64, in_message: bool, now: u64) -> u64 {
        let (begun, spare) = if in_message { (open, 0) } else { (0, open) };
        self.progress.note(begun, now);
        self.begun.store(begun, Ordering::Relaxed);
        self.spare.store(spare, Ordering::Relaxed);
        if begun < self.condemned.load(Ordering::Relaxed) {
            self.condemned.store(0, Ordering::Relaxed);
        }
        self.held()
    }
}

/// Returns what a connection may do, and by how much it may grow until the next check.
fn rule(
    budget: &Budget,
    account: &Arc<Account>,
    open: u64,
    in_message: bool,
    now: Instant,
) -> (Ruling, u64) {
    let held = account.report(open, in_message, budget.clock(now));
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
    let stays = count.begun + budget.fixed();
    if in_message && stays > common && budget.make_room(account, now) {
        return (Ruling::End, 0);
    }
    (Ruling::Wait, 0)
}

impl Drop for Share {
    fn drop(&mut self) {
        self.keep(0);
        self.stop_watching();
        let budget = &self.budget;
        budget.connections.fetch_sub(1, Ordering::Relaxed);
        budget.used.fetch_sub(CONNECTION, Ordering::Relaxed);
        if let Some(entry) = &self.entry {
            let mut accounts = budget.accounts();
            accounts.living.try_remove(entry.key);
            // Under the lock, because otherwise a count could report the account again.
            budget.note(&entry.account, 0);
        }
        if let Some(inbound) = self.inbound.take() {
            budget.note_unread(inbound);
        }
    }
}

#[cfg(test)]
mod tests;
