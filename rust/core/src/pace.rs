//! Pace: when a thread of the application does the I/O thread's work, and how much is done in one go.
//!
//! Handing a message to the I/O thread costs two wake-ups, and saves system calls as soon as there are several messages
//! to hand over. Three decisions follow from that, and this file makes all of them:
//!
//! * *May this thread write now?* [`Writing::may_write_now`], and [`Writing::must_look_first`] before it does;
//! * *may this thread read now?* [`Waiting::may_read_now`], and [`is_soon`] when it has what it waited for;
//! * *may this thread spin now?* [`Waiting::may_spin_now`].
//!
//! The decisions know nothing of sockets and descriptors: they get what they need as arguments, the time included. Only
//! [`Waiting::spin`] reads the clock. The numbers below were tuned for speed; each names the row of `make bench` to
//! compare after changing it. With the feature `ablation`, a program can switch each [`Policy`] off, which is how
//! `benches/ablation.rs` measures its worth.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::sys::clock;
use crate::sys::sync::{self, thread_local};

// ---- the numbers ---------------------------------------------------------------------------------------------------

/// A shorter gap between two writes of a connection means that messages come faster than single writes can carry them.
/// Row: PUSH/PULL 64 B tcp.
const INLINE_GAP: Duration = Duration::from_micros(15);

/// The age from which what is known of a connection's end is too old to write on. A shorter round trip does not pay for
/// another system call. Row: REQ/REP 1 B tcp.
const BLIND: Duration = Duration::from_micros(30);

/// A thread may spend one part in this many of its time on writing. Row: PUB to 100 SUB.
const SHARE: u32 = 10;
/// Time that a thread may spend on writing before it counts. Row: REQ/REP 1 B tcp.
const CREDIT: Duration = Duration::from_micros(50);
/// The maximum debt: a thread that was interrupted while it wrote need not make up for all of it. Row: PUB to 100 SUB.
const DEBT_MAX: Duration = Duration::from_millis(5);

/// After a wait that is no longer than this, the next one is expected to be as short. Row: REQ/REP 1 B tcp.
const SOON: Duration = Duration::from_micros(500);
/// The time after which the guard looks first whether a connection between two waits is still used. The interval doubles
/// whenever it is, because each look takes a core away from a thread that may have a reply to give. Row: REQ/REP 1 B tcp,
/// all on one core.
pub(crate) const GUARD: Duration = Duration::from_millis(1);
/// The guard's longest interval, and so the longest time for which a message can wait unseen. Row: as above.
pub(crate) const GUARD_MAX: Duration = Duration::from_millis(16);

/// How long a thread spins before it sleeps: about the time that going to sleep and being woken takes. Row: REQ/REP 1 B
/// tcp.
const SPIN: Duration = Duration::from_micros(20);
/// The maximum number of chances that are skipped after a useless try. Row: REQ/REP 1 B tcp, all on one
/// core.
const SKIPPED_MAX: u32 = 1023;

/// Bytes that a connection may read in one turn of the I/O thread, before its neighbours have their turns. More would also
/// lie in memory for longer: a hundred connections that each read a megabyte ahead reuse none of it. Row: PUSH/PULL
/// 64 KiB tcp.
pub(crate) const READ_BUDGET: usize = 256 << 10;
/// Bytes that a thread may read because it waits: one read, whatever it brings. Row: REQ/REP 1 B tcp.
pub(crate) const READ_ONCE: usize = 1;
/// Bytes that a connection may write in one turn: a peer that reads as fast as the socket sends would keep the thread
/// busy without end. Row: PUSH/PULL 1 MiB tcp.
pub(crate) const WRITE_BUDGET: usize = 4 << 20;
/// Bytes that one `sendmsg` takes. Row: PUSH/PULL 1 MiB tcp.
pub(crate) const WRITE_MAX: usize = 1 << 20;
/// Separate pieces that one `sendmsg` takes. Row: PUSH/PULL 64 KiB tcp.
pub(crate) const SLICES_MAX: usize = 64;
/// Frames that a connection puts into its pipe before it tells the socket. Row: PUSH/PULL 64 B tcp.
pub(crate) const FLUSH_RUN: usize = 256;

/// Receivers from which on gathering their messages pays off. Row: PUB to 100 SUB.
pub(crate) const AUDIENCE_MIN: usize = 4;
/// Bytes of the largest message that is gathered. Copying a longer one costs more than sharing it. Row: PUB to 100 SUB.
pub(crate) const GATHERED_MAX: usize = 8 * 1024;
/// Bytes of a run of gathered messages, so that sending it begins in time. Row: PUB to 100 SUB.
pub(crate) const GATHERED_RUN_MAX: usize = 64 * 1024;
/// Messages that are not gathered after a pipe had no room for a run or did not take one. Row: PUB to 100 SUB.
pub(crate) const GATHERING_PAUSE: u8 = 15;

/// Bytes of a backlog that are worth the milliseconds that returning their memory to the system takes. Row: 200,000 x
/// 1 KiB queued.
pub const BACKLOG_LARGE: u64 = 8 << 20;
/// How long the backlog must have been smaller. A burst that follows sooner finds the memory still there. Row: as above.
pub(crate) const BACKLOG_GONE: Duration = Duration::from_millis(100);

// ---- the policies --------------------------------------------------------------------------------------------------

/// What can be switched off to see what it is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// The thread that sends writes.
    Write,
    /// It also writes sooner than after `INLINE_GAP`, if it answers a message.
    Turns,
    /// It leaves writing to the I/O thread within `INLINE_GAP` of the last write.
    Gap,
    /// It leaves writing to the I/O thread once it has spent its share of time on it.
    Allowance,
    /// The thread that waits reads.
    Read,
    /// It also reads messages that come several at a time, if it keeps up with them.
    ReadRuns,
    /// Between two short waits, neither thread reads.
    Between,
    /// The thread that waits spins before it sleeps.
    Spin,
}

/// Whether the program runs without a policy.
#[cfg(feature = "ablation")]
#[inline]
fn without(policy: Policy) -> bool {
    OFF.load(Ordering::Relaxed) & (1 << policy as u32) != 0
}

#[cfg(feature = "ablation")]
static OFF: AtomicU32 = AtomicU32::new(0);

/// Switches a policy off, for the rest of the process.
#[cfg(feature = "ablation")]
pub fn switch_off(policy: Policy) {
    OFF.fetch_or(1 << policy as u32, Ordering::Relaxed);
}

#[cfg(not(feature = "ablation"))]
#[inline(always)]
fn without(_: Policy) -> bool {
    false
}

// ---- writing -------------------------------------------------------------------------------------------------------

/// The traffic of a connection, as far as the next write depends on it.
#[derive(Debug)]
pub(crate) struct Writing {
    last: Instant,
    /// When the kernel was last asked for anything that would have shown a hang-up.
    looked: Instant,
    /// Messages that the peer has sent since the last write.
    unanswered: u32,
}

impl Writing {
    /// A connection begins, and messages may already wait for it.
    pub(crate) fn new(now: Instant) -> Writing {
        Writing {
            last: now,
            looked: now,
            unanswered: 0,
        }
    }

    /// The peer's end was looked at, by a read or otherwise.
    #[inline]
    pub(crate) fn note_look(&mut self, now: Instant) {
        self.looked = now;
    }

    /// The peer sent the last frame of a message.
    #[inline]
    pub(crate) fn note_message(&mut self) {
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// Bytes were written.
    #[inline]
    pub(crate) fn note_write(&mut self, now: Instant) {
        self.last = now;
        self.unanswered = 0;
    }

    /// Whether the thread that sends may write, if the connection has nothing else to do. `is_alone`: no other message
    /// waits.
    #[inline]
    pub(crate) fn may_write_now(&self, now: Instant, is_alone: bool) -> bool {
        if without(Policy::Write) {
            return false;
        }
        // Message by message: the peer said one thing, which was received, and this is the answer.
        let answers = self.unanswered == 1 && is_alone && !without(Policy::Turns);
        if !answers
            && now.saturating_duration_since(self.last) < INLINE_GAP
            && !without(Policy::Gap)
        {
            return false;
        }
        // A peer that said something may be waiting for the answer.
        self.unanswered > 0 || without(Policy::Allowance) || Allowance::is_left(now)
    }

    /// Whether to ask first if the peer has hung up: the I/O thread may not have had the time to tell.
    #[inline]
    pub(crate) fn must_look_first(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.looked) >= BLIND
    }
}

/// The calling thread wrote from `start` to `end`.
pub(crate) fn note_written(start: Instant, end: Instant) {
    let mine = ALLOWANCE.with(Cell::get);
    let mine = mine.map_or(Allowance::new(start), |mine| mine.at(start));
    ALLOWANCE.with(|allowance| allowance.set(Some(mine.after(end))));
}

thread_local! {
    static ALLOWANCE: Cell<Option<Allowance>> = const { Cell::new(None) };
}

/// How much a thread that sends may write by itself.
///
/// Writing at once is quick for the peer and expensive for the sender: it takes one system call per message and peer
/// instead of one per batch. A thread that sends to many peers has a gap at each of them that is as long as writing to all
/// the others takes, so the gap does not show that the thread is busy. Its time does: a thread that has spent more than its
/// share of it on writing leaves that to the I/O thread until it has made up for it.
#[derive(Clone, Copy)]
struct Allowance {
    debt: Duration,
    since: Instant,
}

impl Allowance {
    /// Whether the calling thread has some left.
    fn is_left(now: Instant) -> bool {
        ALLOWANCE
            .with(Cell::get)
            .is_none_or(|mine| mine.at(now).debt < CREDIT)
    }

    fn new(now: Instant) -> Allowance {
        Allowance {
            debt: Duration::ZERO,
            since: now,
        }
    }

    /// Time that passed without writing makes up for some of the debt.
    fn at(self, now: Instant) -> Allowance {
        let made_up = now.saturating_duration_since(self.since) / SHARE;
        Allowance {
            debt: self.debt.saturating_sub(made_up),
            since: now,
        }
    }

    /// All the time until `end` was spent on writing.
    fn after(self, end: Instant) -> Allowance {
        let spent = end.saturating_duration_since(self.since);
        Allowance {
            debt: (self.debt + spent).min(DEBT_MAX),
            since: end,
        }
    }
}

// ---- waiting -------------------------------------------------------------------------------------------------------

/// A socket's calls since its last wait, as far as the next one depends on them.
#[derive(Default, Debug)]
pub(crate) struct Rhythm {
    received: u32,
    sent: bool,
}

impl Rhythm {
    #[inline]
    pub(crate) fn note_received(&mut self) {
        self.received = self.received.saturating_add(1);
    }

    /// Several messages were received in one call.
    pub(crate) fn note_run(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.received = self.received.saturating_add(count);
    }

    #[inline]
    pub(crate) fn note_sent(&mut self) {
        self.sent = true;
    }

    fn is_one_by_one(&self) -> bool {
        self.received <= 1
    }

    /// Whether the peer was just told something that it may answer.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.is_one_by_one() && self.sent
    }
}

/// The experience of a socket's earlier waits.
#[derive(Default, Debug)]
pub(crate) struct Waiting {
    reading: Patience,
    spinning: Patience,
}

impl Waiting {
    /// Whether the thread that waits may read from the connection, if there is only one. To be asked before each wait.
    ///
    /// If messages come one at a time, the I/O thread would cost two hand-offs for each. If they come several at a time, it
    /// costs one wake-up per wait, which a thread saves that only receives, and keeps up with them. A thread that finds
    /// more than one read can hold does not keep up: the I/O thread should read while that thread works. If the thread
    /// also sends, the I/O thread is at work on the connection anyway.
    pub(crate) fn may_read_now(&self, rhythm: &Rhythm) -> bool {
        !without(Policy::Read)
            && (rhythm.is_one_by_one()
                || !rhythm.sent && !without(Policy::ReadRuns) && self.reading.is_worth_it())
    }

    /// A wait with the connection is over. `kept_up`: nothing was left to the I/O thread.
    pub(crate) fn note_read(&self, kept_up: bool) {
        if kept_up {
            self.reading.went_well();
        } else {
            self.reading.was_useless();
        }
    }

    /// Whether the thread that waits may spin before it sleeps: it has just said something, and spinning has paid off
    /// lately. To be asked before each wait.
    pub(crate) fn may_spin_now(&self, awaits_answer: bool) -> bool {
        awaits_answer && !without(Policy::Spin) && self.spinning.is_worth_it()
    }

    /// Calls `look` until it returns true or time is up; false if time is up.
    pub(crate) fn spin(&self, mut look: impl FnMut() -> bool) -> bool {
        // Something that is already there would not have made the thread sleep, so it says nothing for spinning longer.
        // It is often there if the peer runs on the same core, where spinning keeps the peer from answering.
        if look() {
            return true;
        }
        let start = clock::now();
        while clock::since(start) < SPIN {
            sync::spin_loop();
            if look() {
                self.spinning.paid_off();
                return true;
            }
        }
        self.spinning.was_useless();
        false
    }
}

/// Whether the next wait is expected so soon after one that took `waited` that no thread need read between them.
pub(crate) fn is_soon(waited: Duration) -> bool {
    waited < SOON && !without(Policy::Between)
}

/// How often to try what does not always pay off: each useless try doubles the number of chances that are skipped before
/// the next one.
#[derive(Default, Debug)]
struct Patience {
    /// Chances still to be skipped.
    skip: AtomicU32,
    /// Chances that were skipped after the last useless try.
    penalty: AtomicU32,
}

impl Patience {
    /// To be asked at each chance.
    fn is_worth_it(&self) -> bool {
        let skip = self.skip.load(Ordering::Relaxed);
        if skip > 0 {
            self.skip.store(skip - 1, Ordering::Relaxed);
        }
        skip == 0
    }

    /// The next useless try counts as the first.
    fn paid_off(&self) {
        self.penalty.store(0, Ordering::Relaxed);
    }

    /// Takes one chance off the penalty, so that something that fails now and then is tried seldom.
    fn went_well(&self) {
        let penalty = self.penalty.load(Ordering::Relaxed);
        if penalty > 0 {
            self.penalty.store(penalty - 1, Ordering::Relaxed);
        }
    }

    fn was_useless(&self) {
        let penalty = self.penalty.load(Ordering::Relaxed);
        let penalty = (2 * penalty + 1).min(SKIPPED_MAX);
        self.penalty.store(penalty, Ordering::Relaxed);
        self.skip.store(penalty, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
