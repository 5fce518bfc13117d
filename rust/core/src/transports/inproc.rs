//! inproc: sockets of one context joined to each other by a pipe, without bytes and without an I/O thread.
//!
//! A socket may connect to a name before it is bound. The far end of its pipe then waits for the bind.

use std::collections::HashMap;
use std::time::Duration;

use zeroxide_proto::error::ProtocolError;
use zeroxide_proto::socket_type::SocketType;
use zeroxide_proto::wires;

use super::messages::{Bound, Hold, MessagePort, MessageTransport};
use crate::error::{Error, ErrorKind, Result};
use crate::monitor::{EventKind, MonitorEvent};
use crate::pipe::{Pipe, PipeConfig};
use crate::sys::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The longest name, as long as the longest path of a file.
const NAME_MAX: usize = 4096;

/// With fewer pipe ends that wait, abandoned ones are not looked for.
const SWEEP_MIN: usize = 64;

/// See the module text.
pub(super) struct Inproc {
    names: Arc<Mutex<Names>>,
}

/// The names of one context.
#[derive(Default)]
struct Names {
    /// Each with the number of its bind.
    bound: HashMap<String, (u64, MessagePort)>,
    binds: u64,
    /// Ends of pipes whose other end connected to a name that is not bound yet.
    waiting: HashMap<String, Vec<Waiting>>,
    /// The number of these ends, and the number above which abandoned ones are looked for.
    waiting_count: usize,
    sweep_at: usize,
    shut_down: bool,
}

/// A pipe end that waits for its name to be bound.
struct Waiting {
    pipe: Pipe,
    /// The socket at its other end.
    port: MessagePort,
}

/// Frees a name when it is dropped.
struct BoundName {
    names: Arc<Mutex<Names>>,
    name: String,
    number: u64,
}

/// Looks for abandoned pipe ends of its name when it is dropped.
struct ConnectedName {
    names: Arc<Mutex<Names>>,
    name: String,
}

pub(super) fn new() -> Arc<dyn MessageTransport> {
    Arc::new(Inproc {
        names: Arc::default(),
    })
}

impl MessageTransport for Inproc {
    fn scheme(&self) -> &str {
        "inproc"
    }

    fn check(&self, name: &str, socket: SocketType, _: bool) -> Result<()> {
        if socket.is_raw() {
            return Err(super::no_plain_bytes(socket.name(), self.scheme()));
        }
        if socket.is_datagram() {
            return Err(super::no_datagrams(socket));
        }
        if name.is_empty() || name.len() > NAME_MAX {
            let length = name.len();
            return Err(Error::with(
                ErrorKind::Invalid,
                format!("an inproc name has 1 to {NAME_MAX} bytes, and this one has {length}"),
            ));
        }
        Ok(())
    }

    fn bind(&self, name: &str, port: MessagePort) -> Result<Bound> {
        let (number, waiting) = lock(&self.names).bind(name, port.clone())?;
        let hold = BoundName {
            names: self.names.clone(),
            name: name.to_owned(),
            number,
        };
        let (waiting, unused): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|waiting| port.socket_type.compatible(waiting.port.socket_type));
        for waiting in &unused {
            turn_away(&port, &waiting.port);
        }
        // As over tcp: what such a socket sends waits for a peer that it can talk to.
        self.keep_waiting(name, unused);
        let info = port.info();
        for Waiting { mut pipe, .. } in waiting {
            pipe.set_limit_out(port.limits.0);
            pipe.set_limit_in(port.limits.1);
            pipe.announce_ready(info.clone());
            port.attach(pipe);
        }
        Ok(Bound {
            endpoint: port.endpoint.to_string(),
            hold: Box::new(hold),
        })
    }

    fn connect(&self, name: &str, port: MessagePort) -> Result<Hold> {
        let mut names = lock(&self.names);
        let bound = names.bound.get(name).map(|(_, bound)| bound.clone());
        if let Some(bound) = bound {
            drop(names);
            let (near, far) = join(&port, &bound)?;
            port.attach(near);
            bound.attach(far);
        } else {
            let (near, far) = Pipe::pair(
                port.pipe_config(),
                PipeConfig {
                    conflate: port.conflate.1,
                    ..PipeConfig::default()
                },
            );
            near.set_far_peer(port.info());
            let waiting = Waiting {
                pipe: far,
                port: port.clone(),
            };
            let unused = names.keep(name, waiting);
            // The drop of a pipe calls its owner, which may call back here.
            drop(names);
            drop(unused);
            port.attach(near);
        }
        Ok(Box::new(ConnectedName {
            names: self.names.clone(),
            name: name.to_owned(),
        }))
    }

    fn is_local(&self) -> bool {
        true
    }

    fn bound_port(&self, name: &str) -> Option<MessagePort> {
        let names = lock(&self.names);
        names.bound.get(name).map(|(_, port)| port.clone())
    }

    fn on_shutdown(&self) {
        let waiting = {
            let mut names = lock(&self.names);
            names.shut_down = true;
            names.waiting_count = 0;
            std::mem::take(&mut names.waiting)
        };
        // An open socket finds out itself that the other end is gone.
        for Waiting { pipe, port } in waiting.values().flatten() {
            if pipe.is_far_closed() {
                port.give_up("", pipe.unread_in());
            }
        }
        drop(waiting);
    }
}

impl Inproc {
    /// Keeps ends that the socket which bound the name cannot use, until another one binds it.
    fn keep_waiting(&self, name: &str, unused: Vec<Waiting>) {
        if unused.is_empty() {
            return;
        }
        let mut names = lock(&self.names);
        if names.shut_down {
            drop(names);
            return drop(unused);
        }
        names.waiting_count += unused.len();
        let queue = names.waiting.entry(name.to_owned()).or_default();
        queue.extend(unused);
    }
}

impl Names {
    /// Returns the number of the bind, and the pipe ends that were waiting for the name.
    fn bind(&mut self, name: &str, port: MessagePort) -> Result<(u64, Vec<Waiting>)> {
        if self.bound.contains_key(name) {
            return Err(Error::with(
                ErrorKind::AddressInUse,
                format!("inproc://{name} is bound already in this context"),
            ));
        }
        self.binds += 1;
        self.bound.insert(name.to_owned(), (self.binds, port));
        let waiting = self.waiting.remove(name).unwrap_or_default();
        self.waiting_count -= waiting.len();
        Ok((self.binds, waiting))
    }

    /// Keeps an end until its name is bound. Returns the ends to drop.
    fn keep(&mut self, name: &str, waiting: Waiting) -> Vec<Waiting> {
        if self.shut_down {
            return vec![waiting];
        }
        let queue = self.waiting.entry(name.to_owned()).or_default();
        queue.push(waiting);
        self.waiting_count += 1;
        match self.waiting_count > self.sweep_at.max(SWEEP_MIN) {
            true => self.take_abandoned(),
            false => Vec::new(),
        }
    }

    /// Takes out the abandoned ends of one name. All names would make the end of many connects quadratic.
    fn take_abandoned_of(&mut self, name: &str) -> Vec<Waiting> {
        let Some(queue) = self.waiting.get_mut(name) else {
            return Vec::new();
        };
        let abandoned: Vec<_> = queue.extract_if(.., Waiting::is_abandoned).collect();
        if queue.is_empty() {
            self.waiting.remove(name);
        }
        self.waiting_count -= abandoned.len();
        abandoned
    }

    /// Takes out all abandoned ends: they would pile up under names that are never bound.
    fn take_abandoned(&mut self) -> Vec<Waiting> {
        let mut abandoned = Vec::new();
        self.waiting.retain(|_, queue| {
            abandoned.extend(queue.extract_if(.., Waiting::is_abandoned));
            !queue.is_empty()
        });
        self.waiting_count -= abandoned.len();
        self.sweep_at = 2 * self.waiting_count;
        abandoned
    }
}

impl Waiting {
    /// Whether the socket went away and left nothing that a later bind should get.
    fn is_abandoned(&mut self) -> bool {
        let pipe = &mut self.pipe;
        // A greeting alone is not for a socket that binds later.
        let holds = |pipe: &mut Pipe| !pipe.is_finished() && pipe.unread_in().0 > 0;
        pipe.is_far_closed() && (pipe.far_linger() == Some(Duration::ZERO) || !holds(pipe))
    }
}

impl Drop for BoundName {
    fn drop(&mut self) {
        let mut names = lock(&self.names);
        let is_own = |(number, _): &(u64, MessagePort)| *number == self.number;
        let freed = names.bound.get(&self.name).is_some_and(is_own);
        let port = freed.then(|| names.bound.remove(&self.name));
        // The port may hold the last handle of its socket.
        drop(names);
        drop(port);
    }
}

impl Drop for ConnectedName {
    fn drop(&mut self) {
        let abandoned = lock(&self.names).take_abandoned_of(&self.name);
        drop(abandoned);
    }
}

/// A pipe from a socket that connects to one that is bound, the connecting socket's end first.
fn join(port: &MessagePort, bound: &MessagePort) -> Result<(Pipe, Pipe)> {
    let (ours, theirs) = (port.socket_type, bound.socket_type);
    if !ours.compatible(theirs) {
        let why = match wires_differ(ours, theirs) {
            Some(why) => format!("{}: {why}", port.endpoint),
            None => format!(
                "{} is bound by a {theirs} socket, which {ours} cannot talk to",
                port.endpoint
            ),
        };
        return Err(Error::with(ErrorKind::IncompatibleProtocol, why));
    }
    let conflating = |port: &MessagePort, far: &MessagePort| PipeConfig {
        conflate: port.conflate.0 || far.conflate.1,
        ..port.pipe_config()
    };
    let (near, far) = Pipe::pair(conflating(port, bound), conflating(bound, port));
    near.set_far_peer(port.info());
    far.set_far_peer(bound.info());
    Ok((near, far))
}

/// A socket connected before the name was bound, by a socket that it cannot talk to. Both sides get the event that a
/// failed handshake causes.
fn turn_away(binder: &MessagePort, connecter: &MessagePort) {
    let refusal = |ours: SocketType, theirs: SocketType| {
        let error = ProtocolError::SocketType {
            ours,
            theirs: theirs.name().to_owned(),
        };
        let code = u64::from(error.code());
        let event = MonitorEvent::new(EventKind::HandshakeFailedProtocol, code, &binder.endpoint);
        match wires_differ(ours, theirs) {
            Some(why) => event.because(why),
            None => event.because(error),
        }
    };
    let (ours, theirs) = (binder.socket_type, connecter.socket_type);
    binder.emit(refusal(ours, theirs));
    connecter.emit(refusal(theirs, ours));
}

/// Why two sockets cannot talk to each other, if the reason is what they speak.
fn wires_differ(ours: SocketType, theirs: SocketType) -> Option<String> {
    let (own, other) = (wires::of(ours), wires::of(theirs));
    (own != other).then(|| {
        format!(
            "this {ours} socket speaks {} (WIRE_PROTOCOL {}), and the {theirs} socket there speaks {} (WIRE_PROTOCOL {}): set both to the same",
            own.title, own.number, other.title, other.number
        )
    })
}

fn lock(names: &Mutex<Names>) -> MutexGuard<'_, Names> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}
