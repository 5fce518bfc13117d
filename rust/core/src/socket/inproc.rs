//! Sockets of one context joined to each other: no bytes, no I/O thread, one pipe.

use std::sync::Arc;

use bytes::Bytes;
use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::error::ProtocolError;
use zeroxide_proto::socket_type::SocketType;

use super::core::Core;
use super::entries::What;
use crate::error::{Error, ErrorKind, Result};
use crate::monitor::{EventKind, MonitorEvent};
use crate::patterns::{self, Side};
use crate::pipe::{Limit, Pipe, PipeConfig};
use crate::port::{Origin, SocketPort};
use crate::registry::{Bound, Waiting};

pub(super) const SCHEME: &str = "inproc";
/// The longest name.
const NAME_MAX: usize = 256;

impl Core {
    fn own_info(&self, routing_id: &Bytes) -> Arc<PeerInfo> {
        Arc::new(peer_info(self.spec().socket_type, routing_id))
    }

    pub(super) fn bind_name(&self, text: &str, name: &str) -> Result<String> {
        self.check_name(text, name)?;
        let port = self.port()?;
        let (waiting, source, limits, info) = {
            let mut state = self.lock_open()?;
            let source = state.endpoints.source();
            let limits = (
                Limit::outbound(&state.options),
                Limit::inbound(&state.options),
            );
            let bound = Bound {
                port,
                socket_type: self.spec().socket_type,
                limits,
                conflate: patterns::conflation(&state.options),
                routing_id: state.options.routing_id.clone(),
                owner: self.key(),
                source,
            };
            let waiting = self.registry.bind_name(name, bound)?;
            self.note(&mut state, source, text, What::BoundName(name.to_owned()));
            let info = self.own_info(&state.options.routing_id);
            (waiting, source, limits, info)
        };
        let ours = self.spec().socket_type;
        let (waiting, unused): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|waiting| ours.compatible(waiting.socket_type));
        for waiting in &unused {
            self.turn_away(waiting, text);
        }
        // As over tcp: what it sends waits for a peer that it can talk to.
        self.registry.keep_waiting(name, unused);
        for waiting in waiting {
            let mut pipe = waiting.pipe;
            pipe.set_limit_out(limits.0);
            pipe.set_limit_in(limits.1);
            pipe.announce_ready(info.clone());
            let side = Side::Accepting;
            self.attach(pipe, text, local(source, side));
        }
        Ok(text.to_owned())
    }

    /// Who connected before the name was bound, by a socket that it cannot talk to: both sides are told, as they would
    /// be of a handshake.
    fn turn_away(&self, waiting: &Waiting, text: &str) {
        let (ours, theirs) = (self.spec().socket_type, waiting.socket_type);
        let refusal = |ours: SocketType, theirs: SocketType| {
            let error = ProtocolError::SocketType {
                ours,
                theirs: theirs.name().to_owned(),
            };
            let code = u64::from(error.code());
            MonitorEvent::new(EventKind::HandshakeFailedProtocol, code, text).because(error)
        };
        self.emit(refusal(ours, theirs));
        waiting.port.emit(refusal(theirs, ours));
    }

    pub(super) fn connect_name(&self, text: &str, name: &str) -> Result<String> {
        self.check_name(text, name)?;
        let port = self.port()?;
        let mut state = self.lock_open()?;
        if self.spec().single_connect && state.endpoints.is_connected(text) {
            return Ok(text.to_owned());
        }
        let source = state.endpoints.source();
        let (conflate_out, conflate_in) = patterns::conflation(&state.options);
        let info = self.own_info(&state.options.routing_id);
        let socket_type = self.spec().socket_type;
        let config = PipeConfig {
            limit_out: Some(Limit::outbound(&state.options)),
            limit_in: Some(Limit::inbound(&state.options)),
            conflate: conflate_out,
        };
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
                        conflate: conflate_out || bound.conflate.1,
                        ..config
                    },
                    PipeConfig {
                        limit_out: Some(bound.limits.0),
                        limit_in: Some(bound.limits.1),
                        conflate: conflate_in || bound.conflate.0,
                    },
                );
                near.set_far_peer(info.clone());
                far.set_far_peer(Arc::new(peer_info(bound.socket_type, &bound.routing_id)));
                Ok((near, Some((far, bound.clone()))))
            },
            || {
                let (near, far) = Pipe::pair(
                    config,
                    PipeConfig {
                        conflate: conflate_in,
                        ..PipeConfig::default()
                    },
                );
                near.set_far_peer(info.clone());
                (
                    Waiting {
                        pipe: far,
                        port,
                        socket_type,
                    },
                    Ok((near, None)),
                )
            },
        )?;
        let mut near = near;
        near.set_peer_name(state.pattern.take_peer_name());
        self.attach_now(&mut state, near, text, local(source, Side::Connecting));
        self.settle(&mut state);
        self.note(&mut state, source, text, What::ConnectedName);
        self.level(&mut state);
        drop(state);
        if let Some((far, bound)) = far {
            let origin = local(bound.source, Side::Accepting);
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

fn local(source: u64, side: Side) -> Origin {
    Origin {
        source,
        local: true,
        side,
    }
}

fn peer_info(socket_type: SocketType, routing_id: &Bytes) -> PeerInfo {
    PeerInfo {
        socket_type: Some(socket_type),
        routing_id: routing_id.clone(),
        version: (3, 1),
        mechanism: "NULL",
        user_id: None,
        key: None,
        properties: vec![
            (
                "Socket-Type".to_owned(),
                Bytes::from_static(socket_type.name().as_bytes()),
            ),
            ("Identity".to_owned(), routing_id.clone()),
        ],
    }
}
