//! Bind and connect, and their opposites.

use std::sync::Arc;

use zeroxide_proto::endpoint::Endpoint;

use super::Socket;
use super::core::{Core, State};
use super::entries::{Entry, What};
use crate::error::{Error, ErrorKind, Result};
use crate::listener::{Listener, ListenerSeed};
use crate::options::PatternOption;
use crate::patterns::{DropReason, Side};
use crate::pipe::{Limit, PipeId};
use crate::port::{Origin, SocketPort};
use crate::session::{Seed, Session};
use crate::transports::{ByteTransport, MessagePort, MessageTransport, Transport};

impl Socket {
    /// Binds to an endpoint, and returns the endpoint with wildcards resolved.
    ///
    /// # Errors
    /// `Invalid` syntax, `NoProtocol` for an unknown transport, `IncompatibleProtocol` for one that this socket type
    /// cannot use, `AddressInUse`, `AddressNotAvailable`, `NoDevice`, `NameTooLong`, `NoThread`; `Terminated`,
    /// `NotSocket`.
    pub fn bind(&self, endpoint: &str) -> Result<String> {
        self.core().bind(endpoint)
    }

    /// Connects to an endpoint, and returns it. Success means that the attempt has started, not that a connection
    /// exists.
    ///
    /// # Errors
    /// As [`bind`](Self::bind), as far as they can be told from the address alone.
    pub fn connect(&self, endpoint: &str) -> Result<String> {
        self.core().connect(endpoint)?;
        Ok(endpoint.to_owned())
    }

    /// Ends the binds and connects of this endpoint. The address is free when this returns, and the connections end
    /// after lingering. Messages that have arrived over a bound endpoint can still be received; those over a connect are
    /// dropped.
    ///
    /// # Errors
    /// `NoEntry` when the socket is neither bound nor connected to the endpoint (use the resolved endpoint instead of
    /// one with a wildcard); `Invalid` and `NoProtocol` for a malformed endpoint; `Terminated`, `NotSocket`.
    pub fn unbind(&self, endpoint: &str) -> Result<()> {
        self.core().end_endpoint(endpoint)
    }

    /// The same as [`unbind`](Self::unbind).
    ///
    /// # Errors
    /// As [`unbind`](Self::unbind).
    pub fn disconnect(&self, endpoint: &str) -> Result<()> {
        self.core().end_endpoint(endpoint)
    }
}

impl Core {
    fn bind(&self, text: &str) -> Result<String> {
        self.check_open()?;
        let (transport, address) = self.transport(text, true)?;
        self.check_free(text)?;
        self.open_spill(text)?;
        match transport {
            Transport::Bytes(transport) => self.listen(text, transport, &address),
            Transport::Messages(transport) => self.bind_messages(text, &*transport, &address),
        }
    }

    /// Checks that a type that is bound to one endpoint at a time is not bound yet.
    fn check_free(&self, text: &str) -> Result<()> {
        let state = self.lock_open()?;
        let Some(entry) = state.endpoints.entries.first() else {
            return Ok(());
        };
        if !self.spec().single_endpoint {
            return Ok(());
        }
        let text = format!(
            "cannot bind to {text}: a {} socket has one endpoint at a time, and this one is bound to {}",
            self.spec().socket_type,
            entry.resolved
        );
        Err(Error::with(ErrorKind::AddressInUse, text))
    }

    /// Connects to an endpoint. Returns the number of the call, unless the socket was already connected to the
    /// endpoint.
    pub(super) fn connect(&self, text: &str) -> Result<Option<u64>> {
        self.check_open()?;
        let (transport, address) = self.transport(text, false)?;
        self.open_spill(text)?;
        match transport {
            Transport::Bytes(transport) => self.start_session(text, transport, &address),
            Transport::Messages(transport) => self.connect_messages(text, &*transport, &address),
        }
    }

    fn listen(
        &self,
        text: &str,
        transport: &'static dyn ByteTransport,
        address: &str,
    ) -> Result<String> {
        let (options, source) = {
            let mut state = self.lock_open()?;
            // A descriptor is used for one bind only.
            let options = state.options.complete();
            let options = options.map_err(|error| error.about(text))?;
            if options.use_fd.is_some() {
                Arc::make_mut(&mut state.options).use_fd = None;
            }
            let source = state.endpoints.begin(None);
            self.begin_priority(&mut state, source);
            (options, source)
        };
        let seed = ListenerSeed {
            registry: self.registry.clone(),
            port: self.port()?,
            options,
            socket_type: self.spec().socket_type,
            source,
        };
        let bound = Listener::bind(seed, transport, address).map_err(|error| error.about(text));
        let mut state = self.lock();
        state.endpoints.settle(source);
        let listener = bound?;
        if let Err(error) = self.check_open() {
            listener.close();
            return Err(error);
        }
        let resolved = listener.endpoint().to_owned();
        self.note(
            &mut state,
            source,
            text,
            &resolved,
            What::Listener(listener),
        );
        Ok(resolved)
    }

    fn start_session(
        &self,
        text: &str,
        transport: &'static dyn ByteTransport,
        address: &str,
    ) -> Result<Option<u64>> {
        let port = self.port()?;
        let mut state = self.lock_open()?;
        // Events that the I/O thread has posted about the endpoints come first.
        self.process(&mut state);
        state.endpoints.forget_ended();
        if self.spec().single_connect && state.endpoints.is_connected(text) {
            return Ok(None);
        }
        let options = state.options.complete();
        let options = options.map_err(|error| error.about(text))?;
        // Mistakes in the address itself are reported now. Names are looked up later, and so are interfaces.
        transport
            .targets(address, &state.options)
            .map_err(|error| error.about(text))?;
        let (io, guard) = self.registry.choose_io(state.options.affinity)?;
        let source = state.endpoints.source();
        self.begin_priority(&mut state, source);
        let seed = Seed {
            io,
            guard,
            registry: self.registry.clone(),
            port,
            options,
            socket_type: self.spec().socket_type,
            endpoint: text.to_owned(),
            source,
            peer_name: state.pattern.take_peer_name(),
        };
        let (session, pipe) = Session::connecting(seed, transport, address);
        if let Some(pipe) = pipe {
            self.attach_now(
                &mut state,
                pipe,
                text,
                Origin {
                    source,
                    local: false,
                    side: Side::Connecting,
                },
            );
            self.settle(&mut state);
        }
        session.start();
        self.note(&mut state, source, text, text, What::Session(session));
        self.level(&mut state);
        drop(state);
        self.signal.wake();
        Ok(Some(source))
    }

    fn bind_messages(
        &self,
        text: &str,
        transport: &dyn MessageTransport,
        address: &str,
    ) -> Result<String> {
        let side = Side::Accepting;
        let (source, port) = {
            let mut state = self.lock_open()?;
            check_protection(&state, transport, text, true)?;
            let source = state.endpoints.begin(None);
            self.begin_priority(&mut state, source);
            let is_local = transport.is_local();
            (
                source,
                self.message_port(&state, text, source, side, is_local)?,
            )
        };
        let bound = transport
            .bind(address, port)
            .map_err(|error| error.about(text));
        let mut state = self.lock();
        state.endpoints.settle(source);
        let bound = bound?;
        self.check_open()?;
        let endpoint = bound.endpoint;
        let what = What::Bound(bound.hold);
        self.note(&mut state, source, text, &endpoint, what);
        Ok(endpoint)
    }

    fn connect_messages(
        &self,
        text: &str,
        transport: &dyn MessageTransport,
        address: &str,
    ) -> Result<Option<u64>> {
        let side = Side::Connecting;
        let is_local = transport.is_local();
        // Dropped without the lock, because this can end other pipes.
        let _left;
        let (source, port) = {
            let mut state = self.lock_open()?;
            self.process(&mut state);
            let State {
                endpoints,
                origins,
                pipes,
                ..
            } = &mut *state;
            _left = endpoints.take_left(text, |source| {
                // The pipe of a peer that has left stays until its messages have been received.
                let mut own = origins.iter().filter(|(_, origin)| origin.source == source);
                own.any(|(id, _)| pipes.get(*id).is_some_and(|pipe| !pipe.is_far_closed()))
            });
            if self.spec().single_connect && state.endpoints.is_connected(text) {
                return Ok(None);
            }
            check_protection(&state, transport, text, false)?;
            let source = state.endpoints.begin(Some(text.to_owned()));
            self.begin_priority(&mut state, source);
            let mut port = self.message_port(&state, text, source, side, is_local)?;
            port.peer_name = state.pattern.take_peer_name();
            (source, port)
        };
        let peer_name = port.peer_name.clone();
        let connected = transport
            .connect(address, port)
            .map_err(|error| error.about(text));
        let mut state = self.lock();
        // The pipe may still be in the mailbox, if another thread held the lock when it was posted.
        self.process(&mut state);
        state.endpoints.settle(source);
        let hold = match connected {
            Ok(hold) => hold,
            Err(error) => {
                if let Some(name) = peer_name {
                    // The name is kept for the next connect.
                    let State { pattern, pipes, .. } = &mut *state;
                    let _ = pattern.set(pipes, &PatternOption::ConnectRoutingId(name));
                }
                return Err(error);
            }
        };
        self.check_open()?;
        let what = What::Connected { hold, is_local };
        self.note(&mut state, source, text, text, what);
        self.level(&mut state);
        drop(state);
        self.signal.wake();
        Ok(Some(source))
    }

    /// The arguments of a call of a message transport.
    fn message_port(
        &self,
        state: &State,
        text: &str,
        source: u64,
        side: Side,
        is_local: bool,
    ) -> Result<MessagePort> {
        let options = &state.options;
        let (registry, affinity) = (self.registry.clone(), options.affinity);
        let resolving = self.registry.clone();
        Ok(MessagePort {
            port: self.port()?,
            socket_type: self.spec().socket_type,
            endpoint: text.into(),
            origin: Origin {
                source,
                local: is_local,
                side,
            },
            limits: (Limit::outbound(options), Limit::inbound(options)),
            conflate: options.conflation(),
            options: options.clone(),
            peer_name: None,
            choose_io: Arc::new(move || {
                let (io, guard) = registry.choose_io(affinity)?;
                Ok((io, Box::new(guard)))
            }),
            budget: self.registry.budget.clone(),
            look_up: Arc::new(move |job, done| resolving.resolver.submit(job, || true, done)),
        })
    }

    /// Adds a bind or connect to the socket's list of endpoints.
    fn note(&self, state: &mut State, source: u64, text: &str, resolved: &str, what: What) {
        resolved.clone_into(&mut state.endpoints.last);
        let entries = &mut state.endpoints.entries;
        if entries.is_empty() {
            // Most sockets have a single endpoint.
            entries.reserve_exact(1);
        }
        entries.push(Entry {
            source,
            given: text.to_owned(),
            resolved: resolved.to_owned(),
            what,
        });
    }

    fn end_endpoint(&self, text: &str) -> Result<()> {
        let mut state = self.lock_open()?;
        // Events that the I/O thread has posted about the endpoints come first.
        self.process(&mut state);
        state.endpoints.forget_ended();
        let mut entries = state.endpoints.take(text);
        if entries.is_empty() {
            drop(state);
            // The lookup of a name may take a while, so the lock is released.
            let resolved = self.resolve_bound(text)?;
            state = self.lock_open()?;
            entries = resolved
                .iter()
                .map(|endpoint| state.endpoints.take(endpoint))
                .find(|entries| !entries.is_empty())
                .unwrap_or_default();
        }
        if entries.is_empty() {
            let hint = state
                .endpoints
                .came_of(text)
                .map(|resolved| format!("; the bound endpoint is {resolved}"))
                .unwrap_or_default();
            return Err(Error::with(
                ErrorKind::NoEntry,
                format!("this socket is neither bound nor connected to {text}{hint}"),
            ));
        }
        for entry in entries {
            self.take_back(&mut state, entry);
        }
        self.level(&mut state);
        Ok(())
    }

    /// Ends a bind or connect.
    pub(super) fn take_back(&self, state: &mut State, entry: Entry) {
        let session = match &entry.what {
            What::Session(session) => Some(session.clone()),
            _ => None,
        };
        self.release_entry(state, entry);
        // Only now: a session that stops before it closes counts its messages as those of a peer that is gone.
        if let Some(session) = session {
            session.disconnect();
        }
    }

    /// The endpoint to which a bind to this text would have been resolved, if the text names one address.
    fn resolve_bound(&self, text: &str) -> Result<Vec<String>> {
        // An endpoint that no socket can use is a different error.
        let (transport, address) = self.find_transport(text)?;
        match transport {
            Transport::Bytes(transport) => {
                let options = self.lock_open()?.options.clone();
                Ok(transport.resolved(&address, &options))
            }
            Transport::Messages(_) => Ok(Vec::new()),
        }
    }

    pub(super) fn release_entry(&self, state: &mut State, entry: Entry) {
        let Entry { source, what, .. } = entry;
        let is_bound = matches!(what, What::Listener(_) | What::Bound(_));
        let keeps_arrived = is_bound && self.spec.can_recv && !self.is_closed();
        let what = match what {
            What::Listener(listener) => {
                listener.close();
                None
            }
            What::Bound(hold) => {
                drop(hold);
                None
            }
            connected => Some(connected),
        };
        // Pipes that the I/O thread has already posted belong to the entry as well.
        self.process(state);
        let linger = state.options.linger;
        let mine: Vec<PipeId> = state
            .origins
            .iter()
            .filter(|(_, origin)| origin.source == source)
            .map(|(id, _)| *id)
            .collect();
        for id in mine {
            if !self.is_closed() && !keeps_arrived {
                state.pipes.discard(id, DropReason::Refused);
            }
            if let Some(pipe) = state.pipes.get(id) {
                pipe.set_linger(linger);
            }
            if !self.is_closed() {
                self.give_up_disk(state, id);
            }
            match keeps_arrived {
                true => self.part_now(state, id),
                false => self.detach_now(state, id),
            }
        }
        match what {
            Some(What::Session(session)) => session.close(linger),
            // Without its pipe, the transport may no longer need the other end.
            Some(What::Connected { hold, .. }) => drop(hold),
            _ => {}
        }
        self.settle(state);
    }

    /// Ends every bind and connect; used by close.
    pub(super) fn leave_all(&self, state: &mut State) {
        while let Some(entry) = state.endpoints.entries.pop() {
            self.release_entry(state, entry);
        }
    }

    /// Finds the transport of an endpoint, checks that this socket can use it, and returns it with the address.
    fn transport(&self, text: &str, bind: bool) -> Result<(Transport, String)> {
        let (transport, address) = self.find_transport(text)?;
        transport
            .check(&address, self.spec().socket_type, bind)
            .map_err(|error| error.about(text))?;
        Ok((transport, address))
    }

    fn find_transport(&self, text: &str) -> Result<(Transport, String)> {
        let endpoint = Endpoint::parse(text)
            .map_err(|error| Error::with(ErrorKind::Invalid, error.to_string()))?;
        let found = self.registry.transports.find(&endpoint.scheme);
        let transport = found.map_err(|error| error.about(text))?;
        Ok((transport, endpoint.address))
    }

    fn port(&self) -> Result<Arc<dyn SocketPort>> {
        match self.arc() {
            Some(core) => Ok(core),
            None => Err(Error::new(ErrorKind::NotSocket)),
        }
    }
}

/// Checks that no option is set that promises a protection which a transport of messages cannot give. Within the
/// process, there is nothing to protect.
fn check_protection(
    state: &State,
    transport: &dyn MessageTransport,
    text: &str,
    bind: bool,
) -> Result<()> {
    if transport.is_local() {
        return Ok(());
    }
    let scheme = transport.scheme();
    let checked = state.options.check_without_connections(scheme, bind);
    checked.map_err(|error| error.about(text))
}
