//! The inside of a socket: its state, the lock around it, and its phase.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use zeroxide_proto::socket_type::SocketType;
use zeroxide_proto::wires::WireSpec;
use zeroxide_queue::exclusive::{self, Exclusive, Serve};
use zeroxide_queue::mpsc::Batch;

use super::alarm::Alarm;
use super::entries::Endpoints;
use super::monitor::Monitor;
use super::parts::Parts;
use super::phase::{Phase, PhaseCell, PhaseEvent};
use super::post::Post;
use super::returned::Returned;
use super::setbacks::Setbacks;
use super::spiller::Spiller;
use super::totals::Totals;
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use crate::options::{OptionRow, Options};
use crate::pace::{Rhythm, Waiting};
use crate::patterns::{Counters, Pattern, PatternSpec, PipeSet};
use crate::pipe::{Line, PipeId};
use crate::port::Origin;
use crate::registry::{ContextUser, LiveGuard, Registry};
use crate::signal::Signal;
use crate::sys::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use crate::sys::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use crate::undelivered::{Tally, UndeliveredPeer};

/// The part of a socket that its handles, its sessions and its context share.
pub(super) struct Core {
    me: Weak<Core>,
    /// A number that no other socket of the context has had.
    pub(super) serial: u64,
    pub(super) spec: &'static PatternSpec,
    /// The pattern of the same type that WIRE_PROTOCOL has put in its place. Both send and receive alike.
    over_other: OnceLock<&'static PatternSpec>,
    pub(super) registry: Arc<Registry>,
    pub(super) signal: Signal,
    phase: PhaseCell,
    /// The state behind its lock, and the mailbox of events for it.
    pub(super) inner: Exclusive<State, Post>,
    pub(super) parts: Parts,
    /// The record of earlier waits, which decides how the next one waits.
    pub(super) waiting: Waiting,
    pub(super) key: OnceLock<usize>,
    pub(super) monitors: Mutex<Vec<Monitor>>,
    /// The events that at least one monitor wants.
    pub(super) monitor_mask: AtomicU32,
    /// Events for which a monitor had no room.
    pub(super) missed_events: AtomicU64,
    /// Messages lost outside the socket's current pipes.
    pub(super) lost_below: Mutex<Counters>,
    setbacks: Mutex<Setbacks>,
    /// The number of entries in `State::unread`.
    pub(super) unread: AtomicUsize,
    /// The number of connections that are not over, and what they have given up since the socket closed its pipes.
    pub(super) deliveries: AtomicUsize,
    /// Messages that the socket has left its connections to deliver.
    pub(super) lingering: AtomicU64,
    pub(super) given_up: Mutex<Tally>,
    /// When a call that waits for a report first saw that its time was up.
    pub(super) overdue: OnceLock<Instant>,
    /// A call waits for the report, or has it.
    pub(super) awaited: AtomicBool,
    /// The socket is being closed, and keeps the pipes to names that are not bound yet.
    pub(super) leaving: AtomicBool,
    /// Set once the socket has a SPILL_DIR.
    pub(super) spiller: OnceLock<Arc<Spiller>>,
}

/// The state that the lock guards.
pub(super) struct State {
    pub(super) pattern: Box<dyn Pattern>,
    pub(super) pipes: PipeSet,
    /// Shared with the listeners and sessions that were created with these options.
    pub(super) options: Arc<Options>,
    pub(super) endpoints: Endpoints,
    /// The bind or connect that each pipe came from, in an order that is the same in every run.
    pub(super) origins: BTreeMap<PipeId, Origin>,
    pub(super) totals: Totals,
    /// Pipes of peers that are gone, with messages left to receive.
    pub(super) unread: HashSet<PipeId>,
    /// Messages that were received, but given back because they did not reach the program. They are received next.
    pub(super) returned: VecDeque<Returned>,
    /// The number of receipts issued.
    pub(super) receipts: u64,
    /// The socket has become able to send since its events were last queried. Keeps the descriptor readable.
    pub(super) out_event: bool,
    pub(super) rhythm: Rhythm,
    /// The connection that a thread has read from by itself, and that may rely on the next waiting thread to read it.
    pub(super) line: Option<Weak<dyn Line>>,
    pub(super) guard: Option<LiveGuard>,
    /// The number of contexts that were opened.
    pub(super) contexts: u64,
    /// Made for the first deadline of the pattern.
    pub(super) alarm: Option<Alarm>,
}

/// The state, locked. Unlocking processes the urgent events that were posted meanwhile.
pub(super) type Locked<'a> = exclusive::Locked<'a, Core>;

impl Serve for Core {
    type Value = State;
    type Post = Post;

    #[inline(always)]
    fn exclusive(&self) -> &Exclusive<State, Post> {
        &self.inner
    }

    fn serve(&self, state: &mut State, posts: Batch<Post>) {
        self.work_off(state, posts);
        self.level(state);
    }
}

impl Core {
    pub(super) fn new(registry: &Arc<Registry>, socket_type: SocketType) -> Result<Arc<Core>> {
        let spec = registry.patterns.find(socket_type)?;
        let mut options = registry.with_options(|context| Options::new(spec.socket_type, context));
        options.pattern = spec.facts();
        if !spec.lingers {
            options.linger = Some(Duration::ZERO);
        }
        let core = Arc::new_cyclic(|me| Core {
            me: me.clone(),
            serial: registry.next_socket(),
            spec,
            over_other: OnceLock::new(),
            registry: registry.clone(),
            signal: Signal::new(),
            phase: PhaseCell::new(),
            inner: Exclusive::new(State {
                pattern: (spec.new)(),
                pipes: PipeSet::of(&registry.budget),
                options: Arc::new(options),
                endpoints: Endpoints::default(),
                origins: BTreeMap::new(),
                totals: Totals::default(),
                unread: HashSet::new(),
                returned: VecDeque::new(),
                receipts: 0,
                out_event: true,
                rhythm: Rhythm::default(),
                line: None,
                // From the start, because a context that ends may close the socket as soon as it is added.
                guard: Some(registry.enter()),
                contexts: 0,
                alarm: None,
            }),
            parts: Parts::default(),
            waiting: Waiting::default(),
            key: OnceLock::new(),
            monitors: Mutex::default(),
            monitor_mask: AtomicU32::new(0),
            missed_events: AtomicU64::new(0),
            lost_below: Mutex::default(),
            setbacks: Mutex::default(),
            unread: AtomicUsize::new(0),
            deliveries: AtomicUsize::new(0),
            lingering: AtomicU64::new(0),
            given_up: Mutex::default(),
            overdue: OnceLock::new(),
            awaited: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            spiller: OnceLock::new(),
        });
        let user: Weak<Core> = core.me.clone();
        let key = registry.add_socket(user)?;
        // The key is only set here.
        let _ = core.key.set(key);
        // The context may have been shut down since the socket was added.
        if registry.is_shut_down() {
            core.on_context_shutdown();
        }
        Ok(core)
    }

    pub(super) fn spec(&self) -> &'static PatternSpec {
        self.over_other.get().copied().unwrap_or(self.spec)
    }

    /// Makes the socket speak this wire protocol, or checks that it does.
    ///
    /// # Errors
    /// `Invalid` if its type does not, or if it is too late for a change.
    pub(super) fn speak(&self, state: &mut State, wire: &WireSpec) -> Result<()> {
        let socket_type = self.spec.socket_type;
        let current = self.spec().wire();
        if wire == current {
            return Ok(());
        }
        let invalid = |text: String| Err(Error::with(ErrorKind::Invalid, text));
        if !current.is_default() {
            let verb = if wire.is_default() {
                "return"
            } else {
                "change"
            };
            return invalid(format!(
                "this {socket_type} socket speaks {}, and cannot {verb} to {}",
                current.title, wire.title
            ));
        }
        let Some(spec) = self.spec.over(wire) else {
            return invalid(format!(
                "there is no {socket_type} socket over {} (WIRE_PROTOCOL {})",
                wire.title, wire.number
            ));
        };
        let is_used = !state.endpoints.is_empty() || !state.origins.is_empty();
        if is_used || state.pattern.topics().is_some_and(|topics| topics > 0) {
            return invalid(
                "WIRE_PROTOCOL must be set before the first bind, connect or subscribe".to_owned(),
            );
        }
        for id in &state.options.of_standard {
            spec.check_option(OptionRow::find(*id)?)?;
        }
        // It is set only here, under the lock.
        let _ = self.over_other.set(spec);
        state.pattern = (spec.new)();
        Arc::make_mut(&mut state.options).pattern = spec.facts();
        for id in spec.options {
            if let Ok(value) = state.options.get(*id)
                && let Some(option) = spec.option(*id, &value)
            {
                state.pattern.set(&mut state.pipes, &option?)?;
            }
        }
        Ok(())
    }

    pub(super) fn weak(&self) -> Weak<Core> {
        self.me.clone()
    }

    pub(super) fn arc(&self) -> Option<Arc<Core>> {
        self.me.upgrade()
    }

    pub(super) fn setbacks(&self) -> MutexGuard<'_, Setbacks> {
        self.setbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Whether the part that this thread sends now is the last, whatever its flag says. On a raw socket, a routing id and
    /// one part are a message: zmq_socket(3), ZMQ_STREAM.
    #[inline]
    pub(super) fn ends_raw_message(&self) -> bool {
        self.spec.may_be_raw
            && self.parts.are_any()
            && self.lock().options.is_raw()
            && self.parts.is_sending()
    }

    // ---- the lock --------------------------------------------------------------------------------------------------

    #[inline]
    pub(super) fn lock(&self) -> Locked<'_> {
        Serve::lock(self)
    }

    #[inline]
    pub(super) fn try_lock(&self) -> Option<Locked<'_>> {
        Serve::try_lock(self)
    }

    /// Locks a socket that can still be used.
    #[inline(always)]
    pub(super) fn lock_open(&self) -> Result<Locked<'_>> {
        self.check_open()?;
        let state = self.lock();
        self.check_open()?;
        Ok(state)
    }

    // ---- phases ----------------------------------------------------------------------------------------------------

    #[inline]
    pub(super) fn check_open(&self) -> Result<()> {
        if self.phase.is_open() {
            Ok(())
        } else {
            Err(self.why_not_open())
        }
    }

    #[cold]
    fn why_not_open(&self) -> Error {
        match self.phase.get() {
            Phase::Terminated => Error::new(ErrorKind::Terminated),
            _ => Error::with(ErrorKind::NotSocket, "this socket is closed"),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.phase.get() == Phase::Closed
    }

    /// True for the one caller that closes the socket.
    pub(super) fn begin_close(&self) -> bool {
        self.phase.change(PhaseEvent::Close) != Phase::Closed
    }
}

impl ContextUser for Core {
    fn on_context_shutdown(&self) {
        // A closed socket stays closed.
        self.phase.change(PhaseEvent::Shutdown);
        self.terminate_monitors();
        self.signal.wake();
        self.signal.raise();
    }

    fn on_context_end(&self, linger: Option<Duration>) {
        self.close(linger.map(Some));
    }

    fn left_on_disk(&self) -> Vec<UndeliveredPeer> {
        Core::left_on_disk(self)
    }

    fn describe(&self, json: &mut Json, most_peers: usize) {
        self.write_facts(json, most_peers);
    }
}
