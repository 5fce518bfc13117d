//! Accepts connections for one bound endpoint and starts a session for each.

mod stage;
mod vouched;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use zeroxide_proto::socket_type::SocketType;

use self::stage::{Event, Stage};
use self::vouched::Vouched;
use crate::error::{Error, ErrorKind, Result};
use crate::io_thread::IoHandle;
use crate::monitor::{EventKind, MonitorEvent, Party};
use crate::options::Options;
use crate::port::SocketPort;
use crate::reactor::{End, EventHandler, Reactor, Token};
use crate::registry::{LiveGuard, Registry};
use crate::session::{Seed, Session};
use crate::sys::errno;
use crate::sys::limits;
use crate::sys::selector::Readiness;
use crate::sys::stream::stop_listening;
use crate::sys::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use crate::transports::{ByteTransport, Listen, Stream};

/// How long to pause a listener after it could not accept or watch connections because descriptors or memory ran out.
/// The peers wait in the backlog meanwhile.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of connections accepted in one turn of the I/O thread.
const ACCEPTS_PER_TURN: usize = 64;
/// Maximum number of connections that may fail in a turn. If more fail, the listener itself seems to have failed, and
/// trying again at once would only keep the thread busy.
const FAILURES_MAX: usize = 16;
/// How many peers may stay in their handshake. There may be up to twice as many for a while.
const JOINING_MAX: usize = 1024;
/// While there is no room for more, at least PROGRESS_MIN peers have to finish their handshake in PROGRESS_TIME, or the
/// oldest ones are disconnected. So a crowd that connects at once, as after a restart, is served in turn, but peers
/// that only keep others out are not.
const PROGRESS_MIN: usize = 64;
const PROGRESS_TIME: Duration = Duration::from_millis(500);
/// Interval of the checks whether there is room.
const ROOM_PAUSE: Duration = Duration::from_millis(5);

/// See the module text.
pub(crate) struct Listener {
    me: Weak<Listener>,
    io: IoHandle,
    registry: Arc<Registry>,
    port: Arc<dyn SocketPort>,
    options: Arc<Options>,
    socket_type: SocketType,
    endpoint: String,
    source: u64,
    state: Mutex<State>,
}

struct State {
    stage: Stage,
    listen: Option<Box<dyn Listen>>,
    token: Option<Token>,
    guard: Option<LiveGuard>,
    /// Sessions started here that may still be in their handshake, oldest first.
    joining: VecDeque<Weak<Session>>,
    /// Since when there has been no room for more sessions, and how many have finished their handshake since.
    crowded: Option<Crowd>,
    memory: Vouched,
}

struct Crowd {
    since: Instant,
    joined: usize,
}

/// The data that a listener passes on to its sessions.
pub(crate) struct ListenerSeed {
    pub(crate) registry: Arc<Registry>,
    pub(crate) port: Arc<dyn SocketPort>,
    pub(crate) options: Arc<Options>,
    pub(crate) socket_type: SocketType,
    /// The socket's number for the bind call.
    pub(crate) source: u64,
}

impl Listener {
    /// Binds `address` and starts to accept.
    ///
    /// # Errors
    /// The transport's error for the address; `NoThread` if no I/O thread may serve it.
    pub(crate) fn bind(
        seed: ListenerSeed,
        transport: &dyn ByteTransport,
        address: &str,
    ) -> Result<Arc<Listener>> {
        let (io, guard) = seed.registry.choose_io(seed.options.affinity)?;
        let listen = match transport.listen(address, &seed.options) {
            Ok(listen) => listen,
            Err(error) => {
                let endpoint = format!("{}://{address}", transport.scheme());
                let event =
                    MonitorEvent::new(EventKind::BindFailed, error.errno() as u64, &endpoint);
                seed.port.emit(event.because(&error));
                return Err(error);
            }
        };
        let endpoint = listen.endpoint();
        let fd = listen.id();
        let listener = Arc::new_cyclic(|me| Listener {
            me: me.clone(),
            io,
            registry: seed.registry,
            port: seed.port,
            options: seed.options,
            socket_type: seed.socket_type,
            endpoint,
            source: seed.source,
            state: Mutex::new(State {
                stage: Stage::Bound,
                listen: Some(listen),
                token: None,
                guard: Some(guard),
                joining: VecDeque::new(),
                crowded: None,
                memory: Vouched::default(),
            }),
        });
        listener.emit(EventKind::Listening, fd);
        listener.io.start(listener.clone());
        Ok(listener)
    }

    /// The resolved endpoint.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Stops listening before it returns, so that the address can be bound again. Connections in their handshake end.
    /// The socket has to end those whose pipes it has.
    pub(crate) fn close(&self) {
        let (listen, joining) = {
            let mut state = self.lock();
            if state.stage == Stage::Closed {
                return;
            }
            state.stage = state.stage.next(Event::Close);
            (state.listen.take(), std::mem::take(&mut state.joining))
        };
        for session in joining.iter().filter_map(Weak::upgrade) {
            session.abandon();
        }
        if let Some(mut listen) = listen {
            let fd = listen.id();
            self.io.unwatch(listen.fd());
            self.stop(&*listen);
            listen.close();
            self.emit(EventKind::Closed, fd);
        }
        if let Some(me) = self.me.upgrade() {
            self.io.wake(me);
        }
    }

    /// Stops listening, although a forked child may have the descriptor. Other programs may accept connections from a
    /// descriptor that the program has opened.
    fn stop(&self, listen: &dyn Listen) {
        if self.options.use_fd.is_none() {
            stop_listening(listen.fd());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn emit(&self, kind: EventKind, value: u64) {
        self.port
            .emit(MonitorEvent::new(kind, value, &self.endpoint));
    }

    fn accept_some(&self, io: &mut Reactor) {
        let mut state = self.lock();
        let State {
            stage,
            listen: Some(listen),
            token: Some(token),
            joining,
            crowded,
            memory,
            ..
        } = &mut *state
        else {
            return;
        };
        let token = *token;
        if let Some(until) = stage.paused_until()
            && until > io.now()
        {
            // The timer may belong to an earlier pause, which the current pause followed before the timer was served.
            return io.set_timer(token, until);
        }
        *stage = stage.next(Event::Resume);
        if !stage.is_watched() {
            if let Err(error) = io.watch(token, listen.fd()) {
                self.failed(&error);
                return stage.pause(io, token, PAUSE);
            }
            *stage = stage.next(Event::Watch);
        }
        let mut pause = |io: &mut Reactor, time| stage.pause(io, token, time);
        if self.port.is_backlogged() {
            // The peers wait in the backlog until the application has received the messages that earlier connections
            // left.
            return pause(io, PAUSE);
        }
        let mut failures = 0;
        for _ in 0..ACCEPTS_PER_TURN {
            if joining.len() >= 2 * JOINING_MAX && !self.make_room(joining, crowded, io.now()) {
                // The peers wait in the backlog while the peers before them finish their handshakes.
                return pause(io, ROOM_PAUSE);
            }
            if !memory.admits(io.now(), || self.registry.budget.admits()) {
                let text = "there is no memory for another connection, or MEMORY_BUDGET is used up";
                self.failed(&Error::with(ErrorKind::NoMemory, text));
                return pause(io, PAUSE);
            }
            match listen.accept() {
                Ok(Some(Ok(stream))) if limits::is_reserved(stream.id()) => {
                    self.failed(&Error::descriptors_reserved());
                    return pause(io, PAUSE);
                }
                Ok(Some(Ok(stream))) => {
                    memory.accepted();
                    self.accepted(&stream);
                    match self.serve(stream) {
                        Ok(session) => joining.push_back(Arc::downgrade(&session)),
                        Err(error) => self.failed(&error),
                    }
                }
                Ok(Some(Err(error))) => {
                    self.failed(&error);
                    // However many there are, they do not pause the listener for other peers.
                    if error.is_exhausted() {
                        return pause(io, PAUSE);
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    self.failed(&error);
                    // Any other error should concern only this connection, which is gone already.
                    failures += 1;
                    if error.is_exhausted() || failures >= FAILURES_MAX {
                        return pause(io, PAUSE);
                    }
                }
            }
        }
        io.defer(token);
    }

    fn accepted(&self, stream: &Stream) {
        if !self.port.wants(EventKind::Accepted) {
            return;
        }
        let party = Party {
            address: stream.peer_name(),
            peer: None,
        };
        let event = MonitorEvent::new(EventKind::Accepted, stream.id(), &self.endpoint);
        self.port.emit(event.about(&party));
    }

    fn serve(&self, stream: Stream) -> Result<Arc<Session>> {
        let (io, guard) = self.registry.choose_io(self.options.affinity)?;
        let seed = Seed {
            io,
            guard,
            registry: self.registry.clone(),
            port: self.port.clone(),
            options: self.options.clone(),
            socket_type: self.socket_type,
            endpoint: self.endpoint.clone(),
            source: self.source,
            peer_name: None,
        };
        let session = Session::accepted(seed, stream);
        session.start();
        Ok(session)
    }

    /// Whether there is room for another session in its handshake, possibly because the oldest ones were disconnected.
    fn make_room(
        &self,
        joining: &mut VecDeque<Weak<Session>>,
        crowded: &mut Option<Crowd>,
        now: Instant,
    ) -> bool {
        let mut joined = 0;
        joining.retain(|session| {
            let session = session.upgrade();
            joined += usize::from(session.as_ref().is_some_and(|session| session.has_joined()));
            session.is_some_and(|session| session.is_joining())
        });
        if joining.len() <= JOINING_MAX {
            *crowded = None;
            return true;
        }
        let crowd = crowded.get_or_insert(Crowd {
            since: now,
            joined: 0,
        });
        crowd.joined += joined;
        if now.saturating_duration_since(crowd.since) >= PROGRESS_TIME {
            if crowd.joined < PROGRESS_MIN {
                self.send_away(joining.drain(..joining.len() - JOINING_MAX));
            }
            *crowded = None;
        }
        joining.len() < 2 * JOINING_MAX
    }

    fn send_away(&self, oldest: impl Iterator<Item = Weak<Session>>) {
        for session in oldest.filter_map(|session| session.upgrade()) {
            let event = MonitorEvent::new(
                EventKind::HandshakeFailedNoDetail,
                errno::CONNECTION_ABORTED as u64,
                &self.endpoint,
            );
            self.port.emit(
                event.because("too many peers are in their handshake, and this was the oldest"),
            );
            // The session reports the end of the connection.
            session.abandon();
        }
    }

    fn failed(&self, error: &Error) {
        let event = MonitorEvent::new(
            EventKind::AcceptFailed,
            error.errno() as u64,
            &self.endpoint,
        );
        self.port.emit(event.because(error));
    }

    fn end(&self, io: &mut Reactor) {
        let mut state = self.lock();
        state.stage = state.stage.next(Event::End);
        if let Some(listen) = state.listen.take() {
            io.unwatch(listen.fd());
            self.stop(&*listen);
        }
        if let Some(token) = state.token.take() {
            io.remove(token);
        }
        state.guard = None;
    }
}

impl Stage {
    /// Pauses the listener.
    fn pause(&mut self, io: &mut Reactor, token: Token, time: Duration) {
        let until = io.now() + time;
        *self = self.next(Event::Pause { until });
        io.set_timer(token, until);
    }
}

impl EventHandler for Listener {
    fn on_start(&self, io: &mut Reactor, token: Token) {
        self.lock().token = Some(token);
        self.on_wake(io);
    }

    fn on_ready(&self, io: &mut Reactor, _: Readiness) {
        self.accept_some(io);
    }

    fn on_wake(&self, io: &mut Reactor) {
        if self.lock().stage.is_over() {
            self.end(io);
        } else {
            self.accept_some(io);
        }
    }

    fn on_timeout(&self, io: &mut Reactor) {
        self.accept_some(io);
    }

    fn on_end(&self, io: &mut Reactor, _: End) {
        self.end(io);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::File;
    use std::net::TcpStream;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;
    use crate::json::Json;
    use crate::options::ContextOptions;
    use crate::patterns::DropReason;
    use crate::pipe::Pipe;
    use crate::port::Origin;
    use crate::registry::ContextUser;
    use crate::transports::{self, Arrival, Opening, Target, Targets};

    /// A transport whose listening descriptor cannot be watched while `broken` is set, because it is that of a file. It turns
    /// the first peers away.
    #[derive(Default)]
    struct Unwatchable {
        broken: Arc<AtomicBool>,
        turned_away: usize,
    }

    struct Deaf {
        inner: Box<dyn Listen>,
        file: File,
        broken: Arc<AtomicBool>,
        turned_away: Cell<usize>,
    }

    impl ByteTransport for Unwatchable {
        fn scheme(&self) -> &'static str {
            "tcp"
        }

        fn check(&self, _: &str, _: SocketType, _: bool) -> Result<()> {
            Ok(())
        }

        fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>> {
            Ok(Box::new(Deaf {
                inner: transports::find("tcp")?.listen(address, options)?,
                file: File::open(std::env::current_exe()?)?,
                broken: self.broken.clone(),
                turned_away: self.turned_away.into(),
            }))
        }

        fn targets(&self, _: &str, _: &Options) -> Result<Targets> {
            Ok(Targets::Ready(Vec::new()))
        }

        fn open(&self, address: &str, target: &Target, options: &Options) -> Result<Opening> {
            transports::find("tcp")?.open(address, target, options)
        }
    }

    impl Listen for Deaf {
        fn accept(&self) -> Result<Option<Arrival>> {
            if let Some(left) = self.turned_away.get().checked_sub(1) {
                self.turned_away.set(left);
                return Ok(Some(Err(Error::new(ErrorKind::Access))));
            }
            self.inner.accept()
        }

        fn endpoint(&self) -> String {
            self.inner.endpoint()
        }

        fn fd(&self) -> BorrowedFd<'_> {
            if self.broken.load(Ordering::Relaxed) {
                self.file.as_fd()
            } else {
                self.inner.fd()
            }
        }
    }

    /// A socket that passes its events to the test.
    struct Port {
        events: Sender<EventKind>,
    }

    impl SocketPort for Port {
        fn attach(&self, _: Pipe, _: &str, _: Origin) {}

        fn count_drop(&self, _: DropReason, _: u64) {}

        fn is_backlogged(&self) -> bool {
            false
        }

        fn wants(&self, _: EventKind) -> bool {
            true
        }

        fn emit(&self, event: MonitorEvent) {
            // The test may have ended.
            let _ = self.events.send(event.kind);
        }
    }

    impl ContextUser for Port {
        fn on_context_shutdown(&self) {}

        fn on_context_end(&self, _: Option<Duration>) {}

        fn describe(&self, _: &mut Json, _: usize) {}
    }

    fn wait_for(events: &Receiver<EventKind>, kind: EventKind) {
        let patience = Duration::from_secs(60);
        while events.recv_timeout(patience).expect("the event is emitted") != kind {}
    }

    /// A listener on a free port, and the registry of its context.
    fn bound(transport: &dyn ByteTransport, port: Arc<Port>) -> (Arc<Listener>, Arc<Registry>) {
        let registry = Registry::new(ContextOptions::default());
        let user: Weak<Port> = Arc::downgrade(&port);
        registry.add_socket(user).unwrap();
        let options = registry.with_options(|context| Options::new(SocketType::Pull, context));
        let seed = ListenerSeed {
            registry: registry.clone(),
            port,
            options: Arc::new(options),
            socket_type: SocketType::Pull,
            source: 0,
        };
        let listener = Listener::bind(seed, transport, "127.0.0.1:0").unwrap();
        (listener, registry)
    }

    #[test]
    fn a_closed_listener_is_not_watched_even_if_a_forked_child_has_its_descriptor() {
        let (sender, events) = mpsc::channel();
        let (listener, registry) = bound(
            transports::find("tcp").unwrap(),
            Arc::new(Port { events: sender }),
        );
        let address = listener.endpoint().trim_start_matches("tcp://").to_owned();
        let _peer = TcpStream::connect(&address).unwrap();
        wait_for(&events, EventKind::Accepted);
        let fd = listener.lock().listen.as_ref().unwrap().fd().as_raw_fd();
        assert!(listener.io.watched().contains(&fd));
        let inherited = listener
            .lock()
            .listen
            .as_ref()
            .unwrap()
            .fd()
            .try_clone_to_owned();
        listener.close();
        assert!(!listener.io.watched().contains(&fd));
        drop((listener, inherited));
        registry.end();
    }

    #[test]
    fn a_listener_that_cannot_be_watched_reports_it_and_tries_again() {
        let (sender, events) = mpsc::channel();
        let broken = Arc::new(AtomicBool::new(true));
        let transport = Unwatchable {
            broken: broken.clone(),
            ..Unwatchable::default()
        };
        let (listener, registry) = bound(&transport, Arc::new(Port { events: sender }));
        wait_for(&events, EventKind::AcceptFailed);
        wait_for(&events, EventKind::AcceptFailed);
        broken.store(false, Ordering::Relaxed);
        let address = listener.endpoint().trim_start_matches("tcp://").to_owned();
        // The listener's own retry may find the first peer in the backlog. The second one arrives only as an event.
        for _ in 0..2 {
            let _peer = TcpStream::connect(&address).unwrap();
            wait_for(&events, EventKind::Accepted);
        }
        listener.close();
        drop(listener);
        registry.end();
    }

    #[test]
    fn peers_that_are_turned_away_do_not_pause_the_listener() {
        let (sender, events) = mpsc::channel();
        let transport = Unwatchable {
            turned_away: 2 * FAILURES_MAX,
            ..Unwatchable::default()
        };
        let (listener, registry) = bound(&transport, Arc::new(Port { events: sender }));
        for _ in 0..FAILURES_MAX {
            wait_for(&events, EventKind::AcceptFailed);
        }
        // The lock is free when the turn has ended.
        assert_eq!(listener.lock().stage.paused_until(), None);
        for _ in 0..FAILURES_MAX {
            wait_for(&events, EventKind::AcceptFailed);
        }
        let address = listener.endpoint().trim_start_matches("tcp://").to_owned();
        let _peer = TcpStream::connect(&address).unwrap();
        wait_for(&events, EventKind::Accepted);
        listener.close();
        drop(listener);
        registry.end();
    }
}
