//! Bind, connect, and taking them back.

use std::sync::Arc;

use bytes::Bytes;
use zeroxide_proto::endpoint::Endpoint;
use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::socket_type::SocketType;

use super::Socket;
use super::core::{Core, State};
use crate::error::{Error, ErrorKind, Result};
use crate::listener::{Listener, ListenerSeed};
use crate::patterns::{self, DropReason, Side};
use crate::pipe::{Pipe, PipeConfig, PipeId};
use crate::port::{Origin, SocketPort};
use crate::registry::{Bound, Waiting};
use crate::session::{Seed, Session};
use crate::transports::{self, Transport};

/// What a socket is bound to and connected with.
#[derive(Default)]
pub(super) struct Endpoints {
    entries: Vec<Entry>,
    /// Binds whose listener may accept before the call is over.
    pending: Vec<u64>,
    next_source: u64,
}

struct Entry {
    source: u64,
    /// As the application wrote it, and as it was resolved.
    given: String,
    resolved: String,
    what: What,
}

enum What {
    Listener(Arc<Listener>),
    Session(Arc<Session>),
    BoundName(String),
    ConnectedName,
}

impl Endpoints {
    fn source(&mut self) -> u64 {
        self.next_source += 1;
        self.next_source
    }

    /// Whether nothing was bound or connected, or all of it was taken back.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.pending.is_empty()
    }

    /// Whether the bind or connect call of that number still stands.
    pub(super) fn has(&self, source: u64) -> bool {
        self.pending.contains(&source) || self.entries.iter().any(|entry| entry.source == source)
    }

    /// Forgets the connects that are over, because nothing connects them again (RECONNECT_IVL).
    fn forget_ended(&mut self) {
        self.entries.retain(|entry| match &entry.what {
            What::Session(session) => !session.has_ended(),
            _ => true,
        });
    }

    fn is_connected(&self, endpoint: &str) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.is_connect() && entry.given == endpoint)
    }

    fn take(&mut self, endpoint: &str, connect: bool) -> Option<Entry> {
        let found = |entry: &Entry| {
            entry.is_connect() == connect && (entry.resolved == endpoint || entry.given == endpoint)
        };
        let index = self.entries.iter().position(found)?;
        Some(self.entries.remove(index))
    }
}

impl Entry {
    fn is_connect(&self) -> bool {
        matches!(self.what, What::Session(_) | What::ConnectedName)
    }
}

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

    /// Takes a bind back: the address is free when this returns, and its connections end after lingering.
    ///
    /// # Errors
    /// `NoEntry` when the socket is not bound to it; `Terminated`, `NotSocket`.
    pub fn unbind(&self, endpoint: &str) -> Result<()> {
        self.core().leave(endpoint, false)
    }

    /// Takes a connect back; its connection ends after lingering.
    ///
    /// # Errors
    /// `NoEntry` when the socket is not connected to it; `Terminated`, `NotSocket`.
    pub fn disconnect(&self, endpoint: &str) -> Result<()> {
        self.core().leave(endpoint, true)
    }
}

impl Core {
    fn bind(&self, text: &str) -> Result<String> {
        self.check_open()?;
        let endpoint = parse(text)?;
        if endpoint.scheme == INPROC {
            return self.bind_name(text, &endpoint.address);
        }
        let transport = self.transport(&endpoint, text, true)?;
        let (options, source) = {
            let mut state = self.lock_open()?;
            // A descriptor is adopted once.
            let mut options = state.options.clone();
            options
                .security
                .complete()
                .map_err(|error| error.about(text))?;
            options.use_fd = state.options.use_fd.take();
            let source = state.endpoints.source();
            state.endpoints.pending.push(source);
            (Arc::new(options), source)
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
        state.options.last_endpoint.clone_from(&resolved);
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
        if endpoint.scheme == INPROC {
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
        let mut options = state.options.clone();
        options
            .security
            .complete()
            .map_err(|error| error.about(text))?;
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
            options: Arc::new(options),
            socket_type: self.spec().socket_type,
            endpoint: text.to_owned(),
            source,
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
        self.note_connect(&mut state, source, text, What::Session(session));
        self.level(&mut state);
        drop(state);
        self.signal.wake();
        Ok(text.to_owned())
    }

    fn note_connect(&self, state: &mut State, source: u64, text: &str, what: What) {
        text.clone_into(&mut state.options.last_endpoint);
        state.endpoints.entries.push(Entry {
            source,
            given: text.to_owned(),
            resolved: text.to_owned(),
            what,
        });
    }

    fn leave(&self, text: &str, connect: bool) -> Result<()> {
        let mut state = self.lock_open()?;
        // What the I/O thread has handed over of them comes first.
        self.process(&mut state);
        state.endpoints.forget_ended();
        let Some(entry) = state.endpoints.take(text, connect) else {
            let verb = if connect { "connected" } else { "bound" };
            return Err(Error::with(
                ErrorKind::NoEntry,
                format!("this socket is not {verb} to {text}"),
            ));
        };
        self.release_entry(&mut state, entry);
        self.level(&mut state);
        Ok(())
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

    fn port(&self) -> Result<Arc<dyn SocketPort>> {
        match self.arc() {
            Some(core) => Ok(core),
            None => Err(Error::new(ErrorKind::NotSocket)),
        }
    }

    pub(super) fn key(&self) -> usize {
        // Set right after construction; the largest number is nobody's.
        self.key.get().copied().unwrap_or(usize::MAX)
    }

    // ---- inproc ----------------------------------------------------------------------------------------------------

    fn own_info(&self, routing_id: &Bytes) -> Arc<PeerInfo> {
        Arc::new(inproc_peer(self.spec().socket_type, routing_id))
    }

    fn bind_name(&self, text: &str, name: &str) -> Result<String> {
        self.check_name(text, name)?;
        let port = self.port()?;
        let (waiting, source, options, info) = {
            let mut state = self.lock_open()?;
            let source = state.endpoints.source();
            let bound = Bound {
                port,
                socket_type: self.spec().socket_type,
                sndhwm: state.options.sndhwm,
                rcvhwm: state.options.rcvhwm,
                conflate: patterns::conflation(&state.options),
                routing_id: state.options.routing_id.clone(),
                owner: self.key(),
                source,
            };
            let waiting = self.registry.bind_name(name, bound)?;
            text.clone_into(&mut state.options.last_endpoint);
            let what = What::BoundName(name.to_owned());
            state.endpoints.entries.push(Entry {
                source,
                given: text.to_owned(),
                resolved: text.to_owned(),
                what,
            });
            let info = self.own_info(&state.options.routing_id);
            (waiting, source, state.options.clone(), info)
        };
        for Waiting {
            pipe,
            socket_type,
            sndhwm,
            rcvhwm,
        } in waiting
        {
            if !self.spec().socket_type.compatible(socket_type) {
                continue;
            }
            pipe.set_hwm_out(sum(options.sndhwm, rcvhwm));
            pipe.set_hwm_in(sum(sndhwm, options.rcvhwm));
            pipe.announce_ready(info.clone());
            self.attach(
                pipe,
                text,
                Origin {
                    source,
                    local: true,
                    side: Side::Accepting,
                },
            );
        }
        Ok(text.to_owned())
    }

    fn connect_name(&self, text: &str, name: &str) -> Result<String> {
        self.check_name(text, name)?;
        let mut state = self.lock_open()?;
        if self.spec().single_connect && state.endpoints.is_connected(text) {
            return Ok(text.to_owned());
        }
        let source = state.endpoints.source();
        let (sndhwm, rcvhwm) = (state.options.sndhwm, state.options.rcvhwm);
        let (conflate_out, conflate_in) = patterns::conflation(&state.options);
        let info = self.own_info(&state.options.routing_id);
        let socket_type = self.spec().socket_type;
        let (near, far) = self.registry.connect_name(
            name,
            |bound| {
                if !socket_type.compatible(bound.socket_type) {
                    return Err(Error::with(
                        ErrorKind::IncompatibleProtocol,
                        format!(
                            "{text} is bound by a {} socket, which {} cannot talk to",
                            bound.socket_type.name(),
                            socket_type.name()
                        ),
                    ));
                }
                let (near, far) = Pipe::pair(
                    PipeConfig {
                        hwm_out: sum(sndhwm, bound.rcvhwm),
                        conflate: conflate_out || bound.conflate.1,
                    },
                    PipeConfig {
                        hwm_out: sum(bound.sndhwm, rcvhwm),
                        conflate: conflate_in || bound.conflate.0,
                    },
                );
                near.set_far_peer(info.clone());
                far.set_far_peer(Arc::new(inproc_peer(bound.socket_type, &bound.routing_id)));
                Ok((near, Some((far, bound.clone()))))
            },
            || {
                let (near, far) = Pipe::pair(
                    PipeConfig {
                        hwm_out: sndhwm,
                        conflate: conflate_out,
                    },
                    PipeConfig {
                        hwm_out: rcvhwm,
                        conflate: conflate_in,
                    },
                );
                near.set_far_peer(info.clone());
                (
                    Waiting {
                        pipe: far,
                        socket_type,
                        sndhwm,
                        rcvhwm,
                    },
                    Ok((near, None)),
                )
            },
        )?;
        self.attach_now(
            &mut state,
            near,
            text,
            Origin {
                source,
                local: true,
                side: Side::Connecting,
            },
        );
        self.settle(&mut state);
        self.note_connect(&mut state, source, text, What::ConnectedName);
        self.level(&mut state);
        drop(state);
        if let Some((far, bound)) = far {
            let origin = Origin {
                source: bound.source,
                local: true,
                side: Side::Accepting,
            };
            bound.port.attach(far, text, origin);
        }
        self.signal.wake();
        Ok(text.to_owned())
    }

    fn check_name(&self, text: &str, name: &str) -> Result<()> {
        if self.spec().socket_type == SocketType::Stream {
            return Err(Error::with(
                ErrorKind::IncompatibleProtocol,
                format!("{text}: STREAM speaks raw tcp and ipc only"),
            ));
        }
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(Error::with(
                ErrorKind::Invalid,
                format!("{text}: an inproc name has 1 to {NAME_MAX} bytes"),
            ));
        }
        Ok(())
    }
}

const INPROC: &str = "inproc";
/// The longest inproc name.
const NAME_MAX: usize = 256;

fn parse(text: &str) -> Result<Endpoint> {
    Endpoint::parse(text).map_err(|error| Error::with(ErrorKind::Invalid, error.to_string()))
}

/// Over inproc there is one queue where other transports have two, so it gets both limits; none on either side is none.
fn sum(ours: usize, theirs: usize) -> usize {
    if ours == 0 || theirs == 0 {
        0
    } else {
        ours.saturating_add(theirs)
    }
}

fn inproc_peer(socket_type: SocketType, routing_id: &Bytes) -> PeerInfo {
    PeerInfo {
        socket_type: Some(socket_type),
        routing_id: routing_id.clone(),
        version: (3, 1),
        mechanism: "NULL",
        user_id: None,
        properties: vec![
            (
                "Socket-Type".to_owned(),
                Bytes::from_static(socket_type.name().as_bytes()),
            ),
            ("Identity".to_owned(), routing_id.clone()),
        ],
    }
}
