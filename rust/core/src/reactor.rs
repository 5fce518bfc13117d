//! Dispatches the descriptors, timers and deferred work of one I/O thread to handlers.
//!
//! Interest is edge-triggered and registered once for reading and writing. A handler remembers that its descriptor is
//! readable or writable until a call would block. So changing interest needs no system call, and a hang-up of a peer
//! whose bytes are not wanted costs nothing.

mod attempts;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use slab::Slab;
use socket2::SockAddr;

use self::attempts::Attempts;
pub(crate) use self::attempts::Turn;
use crate::error::Result;
use crate::sys::clock;
use crate::sys::selector::{Readiness, Selector};

/// Identifies a handler in its I/O thread. A late event may reach the next owner of a token, so handlers treat
/// readiness and time-outs as hints and check for themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub(crate) struct Token(pub(crate) usize);

/// An object that an I/O thread serves: a connection or a listener. Other threads may drive it through its own lock,
/// but only its I/O thread calls these methods, and passes its reactor.
pub(crate) trait EventHandler: Send + Sync {
    /// The I/O thread has taken charge of this handler under `token`.
    fn on_start(&self, io: &mut Reactor, token: Token);
    /// The handler's descriptor became readable or writable, or hung up.
    fn on_ready(&self, io: &mut Reactor, ready: Readiness);
    /// A thread posted a wake-up, or the handler deferred itself.
    fn on_wake(&self, io: &mut Reactor);
    /// A timer that the handler set may be due.
    fn on_timeout(&self, io: &mut Reactor);
    /// The handler will not be called again and must release everything.
    fn on_end(&self, io: &mut Reactor, end: End);
}

/// Why a handler is not called again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It panicked.
    Panicked,
    /// Its I/O thread ends. The handler may not have been started.
    Stopped,
}

/// See the module text.
pub(crate) struct Reactor {
    selector: Arc<Selector>,
    handlers: Slab<Entry>,
    /// Timers that were replaced by an earlier one, or whose handler is gone, stay in here for a while.
    timers: BinaryHeap<Reverse<(Instant, Token)>>,
    deferred: Vec<Token>,
    attempts: Attempts,
    /// When to return memory to the system.
    tidy_at: Option<Instant>,
    now: Instant,
}

struct Entry {
    handler: Arc<dyn EventHandler>,
    timer: Option<Instant>,
}

/// Number of stale timers that may be kept in addition to twice the number of handlers.
const STALE_TIMERS_MAX: usize = 64;

impl Reactor {
    pub(crate) fn new(selector: Arc<Selector>) -> Reactor {
        Reactor {
            selector,
            handlers: Slab::new(),
            timers: BinaryHeap::new(),
            deferred: Vec::new(),
            attempts: Attempts::default(),
            tidy_at: None,
            now: clock::now(),
        }
    }

    /// The time at which this turn of the loop began.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    pub(crate) fn selector(&self) -> &Selector {
        &self.selector
    }

    /// Adds a handler.
    pub(crate) fn add(&mut self, handler: Arc<dyn EventHandler>) -> Token {
        Token(self.handlers.insert(Entry {
            handler,
            timer: None,
        }))
    }

    /// Removes a handler. Its descriptors must have been unwatched.
    pub(crate) fn remove(&mut self, token: Token) {
        self.handlers.try_remove(token.0);
    }

    pub(crate) fn handler(&self, token: Token) -> Option<Arc<dyn EventHandler>> {
        let entry = self.handlers.get(token.0)?;
        Some(entry.handler.clone())
    }

    /// Returns all handlers.
    pub(crate) fn all(&self) -> Vec<Arc<dyn EventHandler>> {
        let handlers = self.handlers.iter();
        handlers.map(|(_, entry)| entry.handler.clone()).collect()
    }

    /// Watches `fd`. Its events go to the handler `token`.
    pub(crate) fn watch(&mut self, token: Token, fd: BorrowedFd<'_>) -> Result<()> {
        Ok(self.selector.add(fd, token.0 as u64)?)
    }

    /// Stops watching `fd`. This must happen before the descriptor is closed.
    pub(crate) fn unwatch(&mut self, fd: BorrowedFd<'_>) {
        // This fails only if `fd` is not watched, which is the wanted result.
        let _ = self.selector.delete(fd);
    }

    /// Calls the handler's `on_timeout` at `at` or shortly afterwards. A handler has one timer. If it sets two times,
    /// the earlier one counts, and the handler sets the other one again when the earlier one has passed.
    pub(crate) fn set_timer(&mut self, token: Token, at: Instant) {
        let Some(entry) = self.handlers.get_mut(token.0) else {
            return;
        };
        if entry.timer.is_some_and(|set| set <= at) {
            return;
        }
        entry.timer = Some(at);
        self.timers.push(Reverse((at, token)));
        // A peer decides how often deadlines change and how often connections begin and end, but it must not decide how
        // much memory that takes.
        if self.timers.len() > 2 * self.handlers.len() + STALE_TIMERS_MAX {
            let handlers = &self.handlers;
            self.timers
                .retain(|Reverse((at, token))| is_set(handlers, *token, *at));
        }
    }

    /// Calls the handler's `on_wake` in the next turn of the loop, after all other handlers had their turn.
    pub(crate) fn defer(&mut self, token: Token) {
        self.deferred.push(token);
    }

    pub(crate) fn take_deferred(&mut self) -> Vec<Token> {
        mem::take(&mut self.deferred)
    }

    pub(crate) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Asks for a turn to connect to `address`. The handler's `on_wake` is called when the turn comes, unless it has
    /// come already.
    pub(crate) fn ask_for_turn(&mut self, address: &SockAddr, token: Token) -> Turn {
        self.attempts.ask(address, token)
    }

    /// Whether the turn has come.
    pub(crate) fn has_come(&self, turn: &Turn) -> bool {
        self.attempts.has_come(turn)
    }

    /// Gives the turn back when the connection is made or has failed.
    pub(crate) fn give_turn_back(&mut self, turn: Turn) {
        let next = self.attempts.give_back(turn);
        self.deferred.extend(next);
    }

    /// Returns unused memory to the system when all handlers have had their turn, or later. This takes milliseconds, in
    /// which no lock may be held.
    pub(crate) fn give_memory_back(&mut self) {
        self.tidy_at.get_or_insert(self.now);
    }

    /// Calls `give_back` if memory is due to be returned. `give_back` may return how long to wait instead of doing it.
    pub(crate) fn tidy(&mut self, give_back: impl FnOnce() -> Option<Duration>) {
        if self.tidy_at.is_some_and(|at| at <= self.now) {
            self.tidy_at = give_back().and_then(|wait| self.now.checked_add(wait));
        }
    }

    /// When the next timer or the return of memory is due.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        [timer, self.tidy_at].into_iter().flatten().min()
    }

    /// Returns the handlers whose timers are due now. Timers that are set while these are served wait for the next
    /// turn.
    pub(crate) fn take_due(&mut self) -> Vec<Token> {
        let mut due = Vec::new();
        while let Some(Reverse((at, token))) = self.timers.peek()
            && *at <= self.now
        {
            let (at, token) = (*at, *token);
            self.timers.pop();
            if is_set(&self.handlers, token, at) {
                self.handlers[token.0].timer = None;
                due.push(token);
            }
        }
        due
    }
}

fn is_set(handlers: &Slab<Entry>, token: Token, at: Instant) -> bool {
    handlers
        .get(token.0)
        .is_some_and(|entry| entry.timer == Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl EventHandler for Nobody {
        fn on_start(&self, _: &mut Reactor, _: Token) {}
        fn on_ready(&self, _: &mut Reactor, _: Readiness) {}
        fn on_wake(&self, _: &mut Reactor) {}
        fn on_timeout(&self, _: &mut Reactor) {}
        fn on_end(&self, _: &mut Reactor, _: End) {}
    }

    fn reactor() -> (Reactor, Instant) {
        let io = Reactor::new(Arc::new(Selector::new().unwrap()));
        let now = io.now();
        (io, now)
    }

    #[test]
    fn the_earlier_time_counts() {
        let (mut io, now) = reactor();
        let token = io.add(Arc::new(Nobody));
        let ms = Duration::from_millis(1);
        for at in [now + 5 * ms, now + 9 * ms, now + 2 * ms] {
            io.set_timer(token, at);
        }
        assert_eq!(io.next_timer(), Some(now + 2 * ms));
        io.set_now(now + 2 * ms);
        assert_eq!(io.take_due(), [token]);
        io.set_now(now + 10 * ms);
        assert_eq!(io.take_due(), []);
        io.set_timer(token, now + 10 * ms);
        assert_eq!(io.take_due(), [token]);
    }

    #[test]
    fn memory_is_returned_once_for_all_handlers_and_can_wait() {
        let (mut io, now) = reactor();
        let ms = Duration::from_millis(1);
        io.tidy(|| panic!("no handler has asked"));
        for _ in 0..100 {
            io.give_memory_back();
        }
        assert_eq!(io.next_timer(), Some(now));
        io.tidy(|| Some(5 * ms));
        assert_eq!(io.next_timer(), Some(now + 5 * ms));
        io.give_memory_back();
        io.tidy(|| panic!("the return has to wait"));
        io.set_now(now + 5 * ms);
        io.tidy(|| None);
        assert_eq!(io.next_timer(), None);
        io.tidy(|| panic!("memory was already returned"));
    }

    #[test]
    fn timers_of_removed_handlers_do_not_pile_up() {
        let (mut io, now) = reactor();
        let hour = Duration::from_secs(3600);
        for n in 0..10_000 {
            let token = io.add(Arc::new(Nobody));
            io.set_timer(token, now + hour);
            io.set_timer(token, now + hour - Duration::from_millis(n));
            io.remove(token);
        }
        let token = io.add(Arc::new(Nobody));
        for n in 0..10_000 {
            io.set_timer(token, now + hour - Duration::from_millis(n));
        }
        assert!(io.timers.len() <= 2 + STALE_TIMERS_MAX);
        io.set_now(now + hour);
        assert_eq!(io.take_due(), [token]);
    }
}
