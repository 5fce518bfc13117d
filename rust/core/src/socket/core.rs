//! The inside of a socket: its state under the lock, and its mailbox.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::{Deref, DerefMut};
use std::result;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};

use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;
use zeroxide_queue::mpsc::Queue;

use super::Events;
use super::endpoints::Endpoints;
use super::monitoring::Monitor;
use super::parts::Parts;
use super::stats::Totals;
use crate::error::{Error, ErrorKind, Result};
use crate::monitor::{EventKind, MonitorEvent, Party};
use crate::options::Options;
use crate::patterns::{self, Counters, DropReason, Pattern, PatternSpec, PipeSet, Rejected};
use crate::pipe::{Limit, Pipe, PipeEvent, PipeId, PipeOwner};
use crate::port::{Origin, SocketPort};
use crate::registry::{ContextUser, LiveGuard, Registry};
use crate::signal::Signal;

/// Where a socket is in its life.
const OPEN: u8 = 0;
const TERMINATED: u8 = 1;
const CLOSED: u8 = 2;

/// What a socket's handles, its sessions and its context share.
pub(super) struct Core {
    me: Weak<Core>,
    spec: &'static PatternSpec,
    pub(super) registry: Arc<Registry>,
    pub(super) signal: Signal,
    phase: AtomicU8,
    mailbox: Queue<Post>,
    /// Something in the mailbox must not wait for the application's next call.
    urgent: AtomicBool,
    parts: Parts,
    state: Mutex<State>,
    pub(super) key: OnceLock<usize>,
    pub(super) monitors: Mutex<Vec<Monitor>>,
    /// The events that any of them wants.
    pub(super) monitor_mask: AtomicU32,
    /// What was lost outside the pipes that the socket has now.
    pub(super) lost_below: Mutex<Counters>,
    /// How many entries `State::unread` has.
    unread: AtomicUsize,
}

/// From so many peers on that are gone and have left something to receive, nobody else is let in. Their messages are
/// limited for each of them only, and a peer can come back as often as it likes.
const UNREAD_MAX: usize = 1000;

/// What the lock guards.
pub(super) struct State {
    pub(super) pattern: Box<dyn Pattern>,
    pub(super) pipes: PipeSet,
    pub(super) options: Options,
    pub(super) endpoints: Endpoints,
    /// Through what each pipe came.
    pub(super) origins: HashMap<PipeId, Origin>,
    pub(super) totals: Totals,
    /// Pipes of peers that are gone, with something left to receive.
    unread: HashSet<PipeId>,
    /// Received, and given back because it reached nobody; first in line.
    pub(super) returned: VecDeque<Returned>,
    /// The socket became able to send since anybody asked; keeps the descriptor readable.
    pub(super) out_event: bool,
    pub(super) guard: Option<LiveGuard>,
}

/// A message that was given back.
pub(super) struct Returned {
    /// When it was received, as told by whoever gave it back.
    order: u64,
    pub(super) message: Message,
    peer: Option<Arc<PeerInfo>>,
}

/// Where a message came from.
pub(super) enum Source {
    /// Just now out of a pipe.
    Pipe(Option<PipeId>),
    /// From this peer, some time ago.
    Peer(Option<Arc<PeerInfo>>),
}

enum Post {
    Attach {
        pipe: Box<Pipe>,
        endpoint: Box<str>,
        origin: Origin,
    },
    Pipe(PipeId, PipeEvent),
}

/// The lock, with the duty to look at the mailbox once more after unlocking.
pub(super) struct Locked<'a> {
    core: &'a Core,
    state: Option<MutexGuard<'a, State>>,
}

impl Deref for Locked<'_> {
    type Target = State;
    #[inline]
    fn deref(&self) -> &State {
        self.state.as_ref().expect("held until drop")
    }
}

impl DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("held until drop")
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        self.state = None;
        // Pairs with the fence in `poke`: either the poster finds the lock free, or this finds its post.
        fence(Ordering::SeqCst);
        if self.core.urgent.load(Ordering::Relaxed) {
            self.core.poke();
        }
    }
}

impl Core {
    pub(super) fn new(registry: &Arc<Registry>, socket_type: SocketType) -> Result<Arc<Core>> {
        let spec = patterns::spec(socket_type).ok_or_else(|| Error::new(ErrorKind::Invalid))?;
        let options = registry.with_options(|context| Options::new(socket_type, context));
        let core = Arc::new_cyclic(|me| Core {
            me: me.clone(),
            spec,
            registry: registry.clone(),
            signal: Signal::new(),
            phase: AtomicU8::new(OPEN),
            mailbox: Queue::new(),
            urgent: AtomicBool::new(false),
            parts: Parts::default(),
            state: Mutex::new(State {
                pattern: (spec.new)(),
                pipes: PipeSet::new(),
                options,
                endpoints: Endpoints::default(),
                origins: HashMap::new(),
                totals: Totals::default(),
                unread: HashSet::new(),
                returned: VecDeque::new(),
                out_event: true,
                guard: None,
            }),
            key: OnceLock::new(),
            monitors: Mutex::default(),
            monitor_mask: AtomicU32::new(0),
            lost_below: Mutex::default(),
            unread: AtomicUsize::new(0),
        });
        let user: Weak<Core> = core.me.clone();
        let key = registry.add_socket(user)?;
        core.raw_lock().guard = Some(registry.enter());
        // Set once, right here.
        let _ = core.key.set(key);
        // The context may have been shut down between the two.
        if registry.is_shut_down() {
            core.on_context_shutdown();
        }
        Ok(core)
    }

    pub(super) fn spec(&self) -> &'static PatternSpec {
        self.spec
    }

    pub(super) fn arc(&self) -> Option<Arc<Core>> {
        self.me.upgrade()
    }

    #[inline]
    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    // ---- the lock --------------------------------------------------------------------------------------------------

    fn raw_lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a bug of a pattern's; its socket goes on as well as it can.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked {
            core: self,
            state: Some(self.raw_lock()),
        }
    }

    #[inline]
    pub(super) fn try_lock(&self) -> Option<Locked<'_>> {
        match self.state.try_lock() {
            Ok(state) => Some(Locked {
                core: self,
                state: Some(state),
            }),
            Err(TryLockError::Poisoned(state)) => Some(Locked {
                core: self,
                state: Some(state.into_inner()),
            }),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The lock of a socket that can still be used.
    #[inline]
    pub(super) fn lock_open(&self) -> Result<Locked<'_>> {
        self.check_open()?;
        let state = self.lock();
        self.check_open()?;
        Ok(state)
    }

    // ---- phases ----------------------------------------------------------------------------------------------------

    #[inline]
    pub(super) fn check_open(&self) -> Result<()> {
        if self.phase.load(Ordering::Acquire) == OPEN {
            Ok(())
        } else {
            Err(self.why_not_open())
        }
    }

    #[cold]
    fn why_not_open(&self) -> Error {
        match self.phase.load(Ordering::Acquire) {
            TERMINATED => Error::new(ErrorKind::Terminated),
            _ => Error::new(ErrorKind::NotSocket),
        }
    }

    /// A REP socket answers once it has read the whole request; parts of it that this thread has not taken yet come
    /// first.
    #[inline]
    pub(super) fn check_turn(&self) -> Result<()> {
        if self.spec.socket_type == SocketType::Rep && self.parts.rcvmore() {
            return Err(Error::with(
                ErrorKind::Fsm,
                "parts of the request are still to be received",
            ));
        }
        Ok(())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.phase.load(Ordering::Acquire) == CLOSED
    }

    /// True for the one caller that closes the socket.
    pub(super) fn begin_close(&self) -> bool {
        self.phase.swap(CLOSED, Ordering::AcqRel) != CLOSED
    }

    // ---- the mailbox -----------------------------------------------------------------------------------------------

    fn post(&self, post: Post, urgent: bool) {
        self.mailbox.push(post);
        // Pairs with the fence of whoever makes the descriptor.
        fence(Ordering::SeqCst);
        // A descriptor has to be at its true level, which only work on the mailbox can tell.
        if urgent || self.signal.has_descriptor() {
            self.urgent.store(true, Ordering::SeqCst);
            self.poke();
        }
        self.signal.wake();
    }

    /// Works the mailbox off unless somebody else is inside, who will.
    pub(super) fn poke(&self) {
        loop {
            fence(Ordering::SeqCst);
            if !self.urgent.load(Ordering::SeqCst) {
                return;
            }
            let mut state = match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(state)) => state.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.process(&mut state);
            self.level(&mut state);
        }
    }

    /// Works the mailbox off.
    pub(super) fn process(&self, state: &mut State) {
        self.urgent.store(false, Ordering::SeqCst);
        let mut count = 0usize;
        for post in self.mailbox.take_all() {
            count += 1;
            match post {
                Post::Attach {
                    pipe,
                    endpoint,
                    origin,
                } => {
                    // Came too late: the bind or connect was taken back meanwhile.
                    if self.is_closed() || !state.endpoints.has(origin.source) {
                        continue;
                    }
                    self.attach_now(state, *pipe, &endpoint, origin);
                }
                Post::Pipe(id, event) => on_event(self.spec, state, id, event),
            }
        }
        if count > 0 {
            self.settle(state);
            self.unread.store(state.unread.len(), Ordering::Relaxed);
        }
    }

    /// Takes a pipe in, under the lock.
    pub(super) fn attach_now(
        &self,
        state: &mut State,
        mut pipe: Pipe,
        endpoint: &str,
        origin: Origin,
    ) {
        // Whoever made it may have known older marks: they hold for all pipes, whenever they are set.
        pipe.set_limit_out(Limit::outbound(&state.options));
        pipe.set_limit_in(Limit::inbound(&state.options));
        let id = state.pipes.insert(pipe, endpoint, origin.side);
        state.origins.insert(id, origin);
        state.out_event = true;
        state.pattern.attach(&mut state.pipes, id);
        // From here on events arrive; what happened before is looked at now.
        if let Some(owner) = self.arc()
            && let Some(pipe) = state.pipes.get(id)
        {
            pipe.set_owner(owner, id);
        }
        if state.pipes.get(id).is_some_and(|pipe| pipe.meets_peer()) {
            state.pattern.ready(&mut state.pipes, id);
        }
        state.pattern.readable(&mut state.pipes, id);
        if state.pipes.get(id).is_some_and(|pipe| pipe.is_far_closed()) {
            on_event(self.spec, state, id, PipeEvent::Closed);
        }
    }

    /// Lets leaving pipes go and publishes what was written.
    #[inline]
    pub(super) fn settle(&self, state: &mut State) {
        while state.pipes.has_leaving() {
            self.release_leaving(state);
        }
        state.pipes.flush();
    }

    #[cold]
    fn release_leaving(&self, state: &mut State) {
        if let Some(id) = state.pipes.next_leaving() {
            self.detach_now(state, id);
        }
    }

    /// Takes a pipe out, under the lock; its drop closes it.
    pub(super) fn detach_now(&self, state: &mut State, id: PipeId) {
        if state.pipes.get(id).is_none() {
            return;
        }
        state.pattern.detach(&mut state.pipes, id);
        let origin = state.origins.remove(&id);
        if state.unread.remove(&id) {
            self.unread.store(state.unread.len(), Ordering::Relaxed);
        }
        if let Some(removed) = state.pipes.remove(id) {
            state
                .totals
                .retire(&removed.pipe, origin.is_some_and(|origin| origin.local));
            if let Some(linger) = state.options.linger {
                removed.pipe.set_linger(Some(linger));
            }
            if let Some(reason) = removed.doomed {
                let event = MonitorEvent::new(EventKind::Disconnected, 0, &removed.endpoint);
                let party = Party::of(removed.pipe.peer());
                self.emit(event.because(reason).about(&party));
                removed.pipe.give_up();
            }
        }
    }

    // ---- work under the lock -----------------------------------------------------------------------------------------

    #[inline]
    pub(super) fn send_now(
        &self,
        state: &mut State,
        message: Message,
    ) -> result::Result<(), Rejected> {
        if !self.spec.can_send {
            return Err(Rejected::new(message, ErrorKind::NotSupported));
        }
        if !self.mailbox.is_empty() {
            self.process(state);
        }
        let result = state.pattern.send(&mut state.pipes, message);
        self.settle(state);
        self.end_turn(result.is_ok());
        if self.signal.has_descriptor() {
            self.level(state);
        }
        result
    }

    /// Sends `first` and what follows, published together. Returns how many went, and what did not.
    pub(super) fn send_run(
        &self,
        state: &mut State,
        first: Message,
        rest: &mut impl Iterator<Item = Message>,
    ) -> (usize, Option<Rejected>) {
        if !self.spec.can_send {
            return (0, Some(Rejected::new(first, ErrorKind::NotSupported)));
        }
        self.begin_run(state);
        let mut sent = 0;
        let mut next = Some(first);
        let mut failed = None;
        while let Some(message) = next {
            match state.pattern.send(&mut state.pipes, message) {
                Ok(()) => sent += 1,
                Err(rejected) => {
                    failed = Some(rejected);
                    break;
                }
            }
            next = rest.next();
        }
        self.end_run(state, sent > 0);
        (sent, failed)
    }

    /// Before several messages are sent or received.
    pub(super) fn begin_run(&self, state: &mut State) {
        if !self.mailbox.is_empty() {
            self.process(state);
        }
    }

    /// After them: publishes what was written.
    pub(super) fn end_run(&self, state: &mut State, done: bool) {
        self.settle(state);
        self.end_turn(done);
        self.level(state);
    }

    #[inline]
    pub(super) fn recv_now(&self, state: &mut State) -> Result<(Message, Source)> {
        if !self.spec.can_recv {
            return Err(Error::new(ErrorKind::NotSupported));
        }
        if !self.mailbox.is_empty() {
            self.process(state);
        }
        if let Some(returned) = state.returned.pop_front() {
            self.level(state);
            return Ok((returned.message, Source::Peer(returned.peer)));
        }
        let result = state
            .pattern
            .recv(&mut state.pipes)
            .map(|(message, id)| (message, Source::Pipe(id)));
        self.settle(state);
        self.end_turn(result.is_ok());
        if self.signal.has_descriptor() {
            self.level(state);
        }
        result
    }

    /// Where sending and receiving take turns, what one thread does changes what another one waits for.
    #[inline]
    fn end_turn(&self, done: bool) {
        if done && matches!(self.spec.socket_type, SocketType::Req | SocketType::Rep) {
            self.signal.wake();
        }
    }

    /// Who a message is from.
    pub(super) fn peer_of(state: &mut State, source: Source) -> Option<Arc<PeerInfo>> {
        match source {
            Source::Pipe(id) => state.pipes.get(id?).and_then(|pipe| pipe.peer()),
            Source::Peer(peer) => peer,
        }
    }

    /// Receives without waiting until `batch` has `max` messages.
    pub(super) fn recv_run(&self, state: &mut State, max: usize, batch: &mut Vec<Message>) {
        self.begin_run(state);
        while batch.len() < max
            && let Some(returned) = state.returned.pop_front()
        {
            batch.push(returned.message);
        }
        while batch.len() < max {
            match state.pattern.recv(&mut state.pipes) {
                Ok((message, _)) => batch.push(message),
                Err(_) => break,
            }
        }
        self.end_run(state, !batch.is_empty());
    }

    /// Puts messages that were received, but reached nobody, before those that are still to be received.
    pub(super) fn give_back_now(
        &self,
        state: &mut State,
        order: u64,
        messages: Vec<(Message, Option<Arc<PeerInfo>>)>,
    ) {
        let at = state
            .returned
            .partition_point(|returned| returned.order < order);
        for (offset, (message, peer)) in messages.into_iter().enumerate() {
            let returned = Returned {
                order,
                message,
                peer,
            };
            state.returned.insert(at + offset, returned);
        }
        self.level(state);
        self.signal.wake();
    }

    /// What the socket is ready for.
    pub(super) fn events_now(&self, state: &mut State) -> Events {
        if !self.mailbox.is_empty() {
            self.process(state);
        }
        let readable = !state.returned.is_empty()
            || state.pattern.can_recv(&mut state.pipes)
            || self.parts.rcvmore();
        let writable = state.pattern.can_send(&mut state.pipes) && self.check_turn().is_ok();
        let events = Events {
            readable: self.spec.can_recv && readable,
            writable: self.spec.can_send && writable,
        };
        self.settle(state);
        events
    }

    /// What the socket is ready for, told to whoever watches the descriptor.
    pub(super) fn tell_events(&self, state: &mut State) -> Events {
        let events = self.events_now(state);
        state.out_event = false;
        self.level(state);
        events
    }

    /// Brings the descriptor, if there is one, to its true level.
    pub(super) fn level(&self, state: &mut State) {
        if !self.signal.has_descriptor() {
            return;
        }
        loop {
            let ready = self.check_open().is_err()
                || self.parts.is_anybody_receiving()
                || !state.returned.is_empty()
                || (self.spec.can_recv && state.pattern.can_recv(&mut state.pipes))
                || (state.out_event
                    && self.spec.can_send
                    && state.pattern.can_send(&mut state.pipes));
            if ready {
                return self.signal.raise();
            }
            self.signal.lower();
            if self.mailbox.is_empty() {
                return;
            }
            self.process(state);
        }
    }
}

fn on_event(spec: &PatternSpec, state: &mut State, id: PipeId, event: PipeEvent) {
    let State {
        pattern,
        pipes,
        origins,
        unread,
        out_event,
        ..
    } = state;
    if pipes.get(id).is_none() {
        return;
    }
    match event {
        PipeEvent::Readable => pattern.readable(pipes, id),
        PipeEvent::Writable => {
            *out_event = true;
            pattern.writable(pipes, id);
        }
        PipeEvent::Ready => {
            *out_event = true;
            if pipes.get(id).is_some_and(|pipe| pipe.meets_peer()) {
                pattern.ready(pipes, id);
            }
        }
        PipeEvent::Disconnected => {
            if let Some(pipe) = pipes.get(id) {
                pipe.parts_from_peer();
            }
            pattern.disconnected(pipes, id);
        }
        PipeEvent::Closed => {
            if pipes.get(id).is_some_and(|pipe| pipe.far_withdrew()) {
                pipes.discard(id, DropReason::Stale);
            }
            pattern.far_closed(pipes, id);
            // A type that cannot receive never reads on to the end of the pipe.
            if !spec.can_recv && !spec.eager {
                pipes.discard(id, DropReason::Malformed);
                pipes.check_read(id);
            } else {
                pattern.readable(pipes, id);
                pipes.check_read(id);
            }
            let local = origins.get(&id).is_none_or(|origin| origin.local);
            if !local && pipes.get(id).is_some_and(|pipe| !pipe.is_finished()) {
                unread.insert(id);
            }
        }
        // Only those who wait for it care, and they look for themselves.
        PipeEvent::Sent => {}
    }
}

impl PipeOwner for Core {
    fn on_pipe(&self, id: PipeId, event: PipeEvent) {
        let urgent = match event {
            PipeEvent::Readable => self.spec.eager,
            PipeEvent::Writable | PipeEvent::Sent => false,
            PipeEvent::Closed | PipeEvent::Ready | PipeEvent::Disconnected => true,
        };
        self.post(Post::Pipe(id, event), urgent);
    }
}

impl SocketPort for Core {
    fn attach(&self, pipe: Pipe, endpoint: &str, origin: Origin) {
        self.post(
            Post::Attach {
                pipe: Box::new(pipe),
                endpoint: endpoint.into(),
                origin,
            },
            true,
        );
    }

    fn count_drop(&self, reason: DropReason, count: u64) {
        let mut lost = self
            .lost_below
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        lost.add(reason, count);
    }

    fn is_backlogged(&self) -> bool {
        self.unread.load(Ordering::Relaxed) >= UNREAD_MAX
    }

    fn emit(&self, event: MonitorEvent) {
        if self.monitor_mask.load(Ordering::Acquire) & event.kind as u32 != 0 {
            self.send_event(&event);
        }
    }
}

impl ContextUser for Core {
    fn on_context_shutdown(&self) {
        // A closed socket stays closed.
        let _ = self
            .phase
            .compare_exchange(OPEN, TERMINATED, Ordering::AcqRel, Ordering::Acquire);
        self.terminate_monitors();
        self.signal.wake();
        self.signal.raise();
    }

    fn on_context_end(&self) {
        self.close(None);
    }
}
