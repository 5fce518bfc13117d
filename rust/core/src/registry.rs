//! The state that the parts of one context share: its I/O threads, its transports, its resolver, and the count of what
//! must end before the context can.
//!
//! Sockets and sessions hold the registry, never the context, so nothing here depends on a module above.

pub(crate) mod contexts;
mod life;

use std::process;
use std::time::{Duration, Instant};

use slab::Slab;

use self::life::{Life, LifeCell, LifeEvent};
use crate::budget::Budget;
use crate::error::{Error, ErrorKind, Result};
use crate::io_thread::{self, IoHandle};
use crate::json::Json;
use crate::options::{ContextOptions, Mechanisms, make_tables};
use crate::patterns::Patterns;
use crate::port::SocketPort;
use crate::resolver::Resolver;
use crate::signal::{Signal, Woken};
use crate::sys::clock;
use crate::sys::fork;
use crate::sys::memory;
use crate::sys::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sys::sync::thread::JoinHandle;
use crate::sys::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use crate::transports::Transports;
use crate::undelivered::{self, Tally, Undelivered, UndeliveredPeer};

/// See the module text.
pub(crate) struct Registry {
    pid: u32,
    /// A number that no other context of the process has had.
    serial: u64,
    /// Whether observers of this process do not see the context.
    hidden: AtomicBool,
    inner: Mutex<Inner>,
    life: LifeCell,
    /// Number of open sockets, sessions and listeners. All of them must end before the context can.
    live: AtomicUsize,
    sockets_open: AtomicUsize,
    idle: Signal,
    born: Instant,
    /// When termination began to wait or bytes were last sent, in milliseconds since `born`.
    moved: AtomicU64,
    requests: AtomicU64,
    serials: AtomicU64,
    /// What sockets have given up since they were closed.
    given_up: Mutex<Tally>,
    /// What closed sockets have lost with their peers, if no call waits for their reports.
    lost: Mutex<Tally>,
    pub(crate) transports: Transports,
    pub(crate) patterns: Patterns,
    pub(crate) mechanisms: Mechanisms,
    pub(crate) resolver: Resolver,
    pub(crate) budget: Arc<Budget>,
}

struct Inner {
    options: ContextOptions,
    threads: Vec<IoThread>,
    sockets: Slab<Weak<dyn ContextUser>>,
    deliverers: Slab<(SocketKey, Weak<dyn Deliverer>)>,
}

struct IoThread {
    handle: IoHandle,
    join: Option<JoinHandle<()>>,
    load: Arc<AtomicUsize>,
}

/// Makes what is made once per process. Contexts do so before they have threads: a child that was forked while another
/// thread made it would wait for that thread forever, because the child does not have it.
pub(crate) fn prepare_for_forks() {
    fork::generation();
    make_tables();
}

/// The default budget of a context. No honest program needs as much, and without a limit, a few peers could take all
/// memory.
fn generous() -> u64 {
    static MOST: OnceLock<u64> = OnceLock::new();
    let most = *MOST.get_or_init(memory::most);
    most / 4 * 3
}

/// A socket, as its context sees it.
pub(crate) trait ContextUser: Send + Sync {
    /// The context was shut down. Every blocked call and every later call fails.
    fn on_context_shutdown(&self);
    /// The context ends although the sockets' owners have not closed them. The socket must close, with `linger` or, if
    /// that is `None`, with its own LINGER.
    fn on_context_end(&self, linger: Option<Duration>);

    /// The messages on disk that a socket has not delivered.
    fn left_on_disk(&self) -> Vec<UndeliveredPeer> {
        Vec::new()
    }
    /// Writes the facts about the socket that an observer of this process answers, with at most `most_peers` of its peers.
    fn describe(&self, json: &mut Json, most_peers: usize);
}

/// An object that may still hold messages that the application considers sent.
pub(crate) trait Deliverer: Send + Sync {
    /// Returns the messages (complete or begun) that have not been transmitted to the peer.
    fn undelivered(&self) -> UndeliveredPeer;
    /// Makes the object end at `deadline` at the latest.
    fn end_by(&self, deadline: Instant);
}

/// Identifies a socket among those of all contexts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SocketKey(usize);

impl SocketKey {
    pub(crate) fn of(port: &Arc<dyn SocketPort>) -> SocketKey {
        SocketKey(Arc::as_ptr(port).cast::<()>() as usize)
    }
}

/// Counts its owner as alive for the context until it is dropped.
pub(crate) struct LiveGuard {
    registry: Arc<Registry>,
    deliverer: Option<usize>,
    load: Option<Arc<AtomicUsize>>,
}

impl Registry {
    pub(crate) fn new(mut options: ContextOptions) -> Arc<Registry> {
        prepare_for_forks();
        let budget = Budget::new();
        budget.set_limit(*options.memory_budget.get_or_insert_with(generous));
        let registry = Arc::new(Registry {
            pid: process::id(),
            serial: contexts::next_serial(),
            hidden: AtomicBool::new(false),
            inner: Mutex::new(Inner {
                options,
                threads: Vec::new(),
                sockets: Slab::new(),
                deliverers: Slab::new(),
            }),
            life: LifeCell::new(),
            live: AtomicUsize::new(0),
            sockets_open: AtomicUsize::new(0),
            idle: Signal::new(),
            born: clock::now(),
            moved: AtomicU64::new(0),
            requests: AtomicU64::new(1),
            serials: AtomicU64::new(1),
            given_up: Mutex::default(),
            lost: Mutex::default(),
            transports: Transports::new(),
            patterns: Patterns::new(),
            mechanisms: Mechanisms::default(),
            resolver: Resolver::new(),
            budget,
        });
        contexts::add(&registry);
        registry
    }

    /// Hides the context from observers of this process.
    pub(crate) fn hide(&self) {
        self.hidden.store(true, Ordering::Relaxed);
    }

    /// Writes the facts about the context that an observer of this process answers.
    pub(crate) fn describe(&self, json: &mut Json, most_peers: usize) {
        json.number("id", self.serial);
        json.number("io_threads", self.inner().threads.len() as u64);
        let (memory, budget) = self.budget.usage();
        json.number("memory", memory);
        json.number("memory_budget", budget);
        json.list("sockets", self.users(), |json, user| {
            user.describe(json, most_peers);
        });
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process created the context. A forked child must not touch it.
    #[inline]
    pub(crate) fn is_own_process(&self) -> bool {
        self.pid == process::id()
    }

    /// The process that created the context.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn with_options<T>(&self, look: impl FnOnce(&mut ContextOptions) -> T) -> T {
        let mut inner = self.inner();
        let result = look(&mut inner.options);
        self.budget
            .set_limit(inner.options.memory_budget.unwrap_or(0));
        result
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.life.get().is_over()
    }

    // ---- sockets ---------------------------------------------------------------------------------------------------

    /// Registers a new socket. The first one starts the I/O threads.
    pub(crate) fn add_socket(self: &Arc<Self>, user: Weak<dyn ContextUser>) -> Result<usize> {
        let mut inner = self.inner();
        if self.is_shut_down() {
            return Err(Error::new(ErrorKind::Terminated));
        }
        let limit = inner.options.max_sockets;
        if self.sockets_open.load(Ordering::Relaxed) >= limit {
            return Err(Error::with(
                ErrorKind::TooManySockets,
                format!(
                    "{limit} sockets are open in this context; close some or raise MAX_SOCKETS"
                ),
            ));
        }
        if self.life.get() == Life::New {
            self.start_threads(&mut inner)?;
        }
        self.sockets_open.fetch_add(1, Ordering::Relaxed);
        Ok(inner.sockets.insert(user))
    }

    pub(crate) fn remove_socket(&self, key: usize) {
        let mut inner = self.inner();
        if inner.sockets.try_remove(key).is_some() {
            self.sockets_open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn start_threads(&self, inner: &mut Inner) -> Result<()> {
        // Some may have been started by a call that failed.
        for index in inner.threads.len()..inner.options.io_threads {
            let started = io_thread::spawn(inner.options.thread_settings(index));
            let (handle, join) = started.map_err(not_started)?;
            inner.threads.push(IoThread {
                handle,
                join: Some(join),
                load: Arc::new(AtomicUsize::new(0)),
            });
        }
        self.life.change(LifeEvent::Start);
        Ok(())
    }

    /// Returns the least loaded I/O thread among those that `affinity` allows (0: any).
    pub(crate) fn choose_io(self: &Arc<Self>, affinity: u64) -> Result<(IoHandle, LiveGuard)> {
        let inner = self.inner();
        let allowed = |index: usize| affinity == 0 || (index < 64 && affinity >> index & 1 == 1);
        let threads = inner
            .threads
            .iter()
            .enumerate()
            .filter(|(index, _)| allowed(*index));
        let Some((_, chosen)) =
            threads.min_by_key(|(_, thread)| thread.load.load(Ordering::Relaxed))
        else {
            return Err(Error::with(
                ErrorKind::NoThread,
                "no I/O thread may serve this: the context has none (IO_THREADS=0) or AFFINITY excludes all",
            ));
        };
        chosen.load.fetch_add(1, Ordering::Relaxed);
        let (handle, load) = (chosen.handle.clone(), chosen.load.clone());
        drop(inner);
        let mut guard = self.enter();
        guard.load = Some(load);
        Ok((handle, guard))
    }

    // ---- life ------------------------------------------------------------------------------------------------------

    /// Registers an object that must end before the context can.
    pub(crate) fn enter(self: &Arc<Self>) -> LiveGuard {
        self.live.fetch_add(1, Ordering::SeqCst);
        LiveGuard {
            registry: self.clone(),
            deliverer: None,
            load: None,
        }
    }

    /// Makes every later call on every socket fail.
    pub(crate) fn shut_down(&self) {
        if !self.life.change(LifeEvent::ShutDown).is_over() {
            self.note_progress();
        }
        for user in self.users() {
            user.on_context_shutdown();
        }
        self.transports.on_shutdown();
    }

    /// Closes every socket with `linger` or, if that is `None`, each with its own LINGER.
    pub(crate) fn close_sockets(&self, linger: Option<Duration>) {
        for user in self.users() {
            user.on_context_end(linger);
        }
    }

    /// The messages on disk that open sockets, and those that are being closed, have not delivered.
    pub(crate) fn left_on_disk(&self) -> Vec<UndeliveredPeer> {
        let users = self.users();
        users.iter().flat_map(|user| user.left_on_disk()).collect()
    }

    fn users(&self) -> Vec<Arc<dyn ContextUser>> {
        self.inner()
            .sockets
            .iter()
            .filter_map(|(_, user)| user.upgrade())
            .collect()
    }

    /// Waits until nothing is alive any more, or until the deadline has passed.
    pub(crate) fn wait_idle(&self, deadline: Option<Instant>) -> Woken {
        loop {
            let ticket = self.idle.ticket();
            if self.live.load(Ordering::SeqCst) == 0 {
                return Woken::Notified;
            }
            match self.idle.wait(ticket, deadline) {
                Woken::Notified => {}
                other => return other,
            }
        }
    }

    /// Ends the I/O threads. Call this only if nothing is alive any more, or if what is alive may be abandoned.
    pub(crate) fn end(&self) {
        self.life.change(LifeEvent::End);
        // The transports' pipes hold sockets, and these hold this registry.
        self.transports.on_shutdown();
        let threads = std::mem::take(&mut self.inner().threads);
        for thread in &threads {
            thread.handle.stop();
        }
        for join in threads.into_iter().filter_map(|thread| thread.join) {
            // The thread itself has already printed a panic outside of all handlers.
            let _ = join.join();
        }
        self.budget.forget_left();
    }

    /// Whether the context has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.life.get() == Life::Ended
    }

    /// Records that bytes were sent. Implicit termination keeps waiting while bytes are sent.
    pub(crate) fn note_progress(&self) {
        let now = clock::since(self.born).as_millis() as u64;
        self.moved.fetch_max(now, Ordering::Relaxed);
    }

    /// How long no bytes have been sent, counted from the shutdown at the earliest.
    pub(crate) fn without_progress(&self) -> Duration {
        let moved = Duration::from_millis(self.moved.load(Ordering::Relaxed));
        clock::since(self.born).saturating_sub(moved)
    }

    /// Returns the messages that have not been transmitted yet: those of one socket, or of all.
    pub(crate) fn undelivered(&self, socket: Option<SocketKey>) -> Undelivered {
        let mut tally = Tally::default();
        for deliverer in self.deliverers(socket) {
            tally.add(&deliverer.undelivered());
        }
        tally.report()
    }

    /// Limits the time for delivering what is left: of one socket, or of all.
    pub(crate) fn end_deliveries_by(&self, deadline: Instant, socket: Option<SocketKey>) {
        for deliverer in self.deliverers(socket) {
            deliverer.end_by(deadline);
        }
    }

    fn deliverers(&self, socket: Option<SocketKey>) -> Vec<Arc<dyn Deliverer>> {
        self.inner()
            .deliverers
            .iter()
            .filter(|(_, (of, _))| socket.is_none_or(|socket| socket == *of))
            .filter_map(|(_, (_, deliverer))| deliverer.upgrade())
            .collect()
    }

    /// Returns a number that no other socket of this context has.
    pub(crate) fn next_socket(&self) -> u64 {
        self.serials.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps what a socket has given up since it was closed.
    pub(crate) fn note_given_up(&self, left: &UndeliveredPeer) {
        tally(&self.given_up).add(left);
    }

    /// Keeps what a closed socket has lost with a peer, for the end of a program that asks for no report.
    pub(crate) fn note_lost(&self, left: &UndeliveredPeer) {
        tally(&self.lost).add(left);
    }

    /// Returns all that sockets have given up since they were closed.
    pub(crate) fn given_up(&self) -> Undelivered {
        tally(&self.given_up).report()
    }

    /// Returns what is lost if the context ends now: what has not been transmitted, and what was lost with peers before.
    pub(crate) fn lost(&self) -> Undelivered {
        undelivered::together(|| tally(&self.lost).report(), || self.undelivered(None))
    }

    /// Returns a new number for a request to the ZAP handler.
    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }
}

fn tally(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveGuard {
    /// Lets the context ask this object what it has not delivered for the socket.
    pub(crate) fn report(&mut self, socket: SocketKey, deliverer: Weak<dyn Deliverer>) {
        let deliverers = &mut self.registry.inner().deliverers;
        self.deliverer = Some(deliverers.insert((socket, deliverer)));
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        if self.is_own_process() {
            return;
        }
        // A forked child does not have the threads. Dropping a handle would detach the thread that has its number now, which
        // could not be joined any more.
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in &mut inner.threads {
            std::mem::forget(thread.join.take());
        }
    }
}

impl Drop for LiveGuard {
    fn drop(&mut self) {
        if let Some(key) = self.deliverer {
            self.registry.inner().deliverers.try_remove(key);
        }
        if let Some(load) = &self.load {
            load.fetch_sub(1, Ordering::Relaxed);
        }
        if self.registry.live.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.registry.idle.wake();
        }
    }
}
/// The error of an I/O thread that could not be started. `Again` would read as a message that is not there yet.
#[cold]
fn not_started(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Again => Error::with(
            ErrorKind::NoThread,
            "no I/O thread can be started: raise the limit of threads (RLIMIT_NPROC, pids.max), or free memory",
        ),
        _ => error,
    }
}
