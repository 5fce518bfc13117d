//! Bind, connect, and taking them back.

use std::sync::Arc;

use zeroxide_proto::endpoint::Endpoint;

use super::Socket;
use super::core::{Core, State};
use super::entries::{Entry, What};
use super::inproc;
use crate::error::{Error, ErrorKind, Result};
use crate::listener::{Listener, ListenerSeed};
use crate::patterns::{DropReason, Side};
use crate::pipe::PipeId;
use crate::port::{Origin, SocketPort};
use crate::session::{Seed, Session};
use crate::transports::{self, Transport};

impl Socket {
    /// Binds to an endpoint and returns it resolved, wildcards filled in.
    ///
    /// # Errors
    /// `Invalid` syntax, `NoProtocol` for an unknown transport, `IncompatibleProtocol` for one that this socket type
    /// cannot use, `AddressInUse`, `AddressNotAvailable`, `NoDevice`, `NameTooLong`, `NoThread`; `Terminated`,
    /// `NotSocket`.
    pub fn bind(&self, endpoint: &str) -> Result<String> {
        self.core().bind(endpoint)
    }

    /// Connects to an endpoint and returns it. Success means that the attempt has begun, not that it was successful.
    ///
    /// # Errors
    /// As [`bind`](Self::bind), as far as the address itself shows it.
    pub fn connect(&self, endpoint: &str) -> Result<String> {
        self.core().connect(endpoint)
    }

    /// Takes back what the socket is bound to or connected with under that endpoint: the address is free when this
    /// returns, and the connections end after lingering.
    ///
    /// # Errors
    /// `NoEntry` when there is nothing, also for a wildcard: what it came to counts; `Invalid` and `NoProtocol` for
    /// what is no endpoint; `Terminated`, `NotSocket`.
    pub fn unbind(&self, endpoint: &str) -> Result<()> {
        self.core().leave(endpoint)
    }

    /// The same as [`unbind`](Self::unbind).
    ///
    /// # Errors
    /// As there.
    pub fn disconnect(&self, endpoint: &str) -> Result<()> {
        self.core().leave(endpoint)
    }
}

impl Core {
    fn bind(&self, text: &str) -> Result<String> {
        self.check_open()?;
        let endpoint = parse(text)?;
        if endpoint.scheme == inproc::SCHEME {
            return self.bind_name(text, &endpoint.address);
        }
        let transport = self.transport(&endpoint, text, true)?;
        let (options, source) = {
            let mut state = self.lock_open()?;
            // A descriptor is adopted once.
            let options = state.options.complete();
            let options = options.map_err(|error| error.about(text))?;
            if options.use_fd.is_some() {
                Arc::make_mut(&mut state.options).use_fd = None;
            }
            let source = state.endpoints.source();
            state.endpoints.pending.push(source);
            (options, source)
        };
        let seed = ListenerSeed {
            registry: self.registry.clone(),
            port: self.port()?,
            options,
            socket_type: self.spec().socket_type,
            source,
        };
        let bound =
            Listener::bind(seed, transport, &endpoint.address).map_err(|error| error.about(text));
        let mut state = self.lock();
        state.endpoints.pending.retain(|pending| *pending != source);
        let listener = bound?;
        if let Err(error) = self.check_open() {
            listener.close();
            return Err(error);
        }
        let resolved = listener.endpoint().to_owned();
        state.endpoints.last.clone_from(&resolved);
        state.endpoints.entries.push(Entry {
            source,
            given: text.to_owned(),
            resolved: resolved.clone(),
            what: What::Listener(listener),
        });
        Ok(resolved)
    }

    fn connect(&self, text: &str) -> Result<String> {
        self.check_open()?;
        let endpoint = parse(text)?;
        if endpoint.scheme == inproc::SCHEME {
            return self.connect_name(text, &endpoint.address);
        }
        let transport = self.transport(&endpoint, text, false)?;
        let port = self.port()?;
        let mut state = self.lock_open()?;
        // What the I/O thread has handed over of them comes first.
        self.process(&mut state);
        state.endpoints.forget_ended();
        if self.spec().single_connect && state.endpoints.is_connected(text) {
            return Ok(text.to_owned());
        }
        let options = state.options.complete();
        let options = options.map_err(|error| error.about(text))?;
        // What the address itself shows to be wrong is said now; names are looked up later.
        transport
            .targets(&endpoint.address, &state.options)
            .map_err(|error| error.about(text))?;
        let (io, guard) = self.registry.choose_io(state.options.affinity)?;
        let source = state.endpoints.source();
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
        let (session, pipe) = Session::connecting(seed, transport, &endpoint.address);
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
        self.note(&mut state, source, text, What::Session(session));
        self.level(&mut state);
        drop(state);
        self.signal.wake();
        Ok(text.to_owned())
    }

    /// Takes a name that was bound, or an endpoint that is being connected, into the list of the socket's endpoints.
    pub(super) fn note(&self, state: &mut State, source: u64, text: &str, what: What) {
        text.clone_into(&mut state.endpoints.last);
        state.endpoints.entries.push(Entry {
            source,
            given: text.to_owned(),
            resolved: text.to_owned(),
            what,
        });
    }

    fn leave(&self, text: &str) -> Result<()> {
        let mut state = self.lock_open()?;
        // What the I/O thread has handed over of them comes first.
        self.process(&mut state);
        state.endpoints.forget_ended();
        let mut entries = state.endpoints.take(text);
        if entries.is_empty() {
            drop(state);
            // A name is looked up, which may take its time.
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
                .map(|resolved| format!("; what was bound is {resolved}"))
                .unwrap_or_default();
            return Err(Error::with(
                ErrorKind::NoEntry,
                format!("this socket is neither bound nor connected to {text}{hint}"),
            ));
        }
        for entry in entries {
            if let What::Session(session) = &entry.what {
                session.disconnect();
            }
            self.release_entry(&mut state, entry);
        }
        self.level(&mut state);
        Ok(())
    }

    /// What a bind under that text would have come to, where it names one address.
    fn resolve_bound(&self, text: &str) -> Result<Vec<String>> {
        // What no socket can be bound or connected to is a mistake of another kind.
        let endpoint = parse(text)?;
        if endpoint.scheme == inproc::SCHEME {
            return Ok(Vec::new());
        }
        let transport = transports::find(&endpoint.scheme).map_err(|error| error.about(text))?;
        let options = self.lock_open()?.options.clone();
        Ok(transport.resolved(&endpoint.address, &options))
    }

    fn release_entry(&self, state: &mut State, entry: Entry) {
        match &entry.what {
            What::Listener(listener) => listener.close(),
            What::BoundName(name) => {
                self.registry.unbind_name(name, self.key());
            }
            What::Session(_) | What::ConnectedName => {}
        }
        // Pipes that the I/O thread has handed over already belong to it as well.
        self.process(state);
        let linger = state.options.linger;
        let mine: Vec<PipeId> = state
            .origins
            .iter()
            .filter(|(_, origin)| origin.source == entry.source)
            .map(|(id, _)| *id)
            .collect();
        for id in mine {
            if !self.is_closed() {
                state.pipes.discard(id, DropReason::Refused);
            }
            if let Some(pipe) = state.pipes.get(id) {
                pipe.set_linger(linger);
            }
            self.detach_now(state, id);
        }
        if let What::Session(session) = &entry.what {
            session.close(linger);
        }
        self.settle(state);
    }

    /// Takes back every bind and connect; used by close.
    pub(super) fn leave_all(&self, state: &mut State) {
        while let Some(entry) = state.endpoints.entries.pop() {
            self.release_entry(state, entry);
        }
    }

    fn transport(
        &self,
        endpoint: &Endpoint,
        text: &str,
        bind: bool,
    ) -> Result<&'static dyn Transport> {
        let transport = transports::find(&endpoint.scheme).map_err(|error| error.about(text))?;
        transport
            .check(&endpoint.address, self.spec().socket_type, bind)
            .map_err(|error| error.about(text))?;
        Ok(transport)
    }

    pub(super) fn port(&self) -> Result<Arc<dyn SocketPort>> {
        match self.arc() {
            Some(core) => Ok(core),
            None => Err(Error::new(ErrorKind::NotSocket)),
        }
    }

    pub(super) fn key(&self) -> usize {
        // Set right after construction; the largest number is nobody's.
        self.key.get().copied().unwrap_or(usize::MAX)
    }
}

fn parse(text: &str) -> Result<Endpoint> {
    Endpoint::parse(text).map_err(|error| Error::with(ErrorKind::Invalid, error.to_string()))
}
