//! From the first byte to the peer's last handshake command.

use super::{Engine, Event, PeerInfo, State, traffic};
use crate::command;
use crate::decoder::{Framing, Limits};
use crate::error::{CloseReason, ProtocolError};
use crate::frame::{Frame, Kind};
use crate::greeting::{Peer, Progress, mechanism_name};
use crate::legacy;
use crate::mechanisms::{self, Cipher, Local, Mechanism, null};
use crate::socket_type::SocketType;
use bytes::Bytes;
use std::sync::Arc;

/// Whether a step of the handshake got somewhere, or needs more bytes.
type Step = Result<bool, CloseReason>;

impl Engine {
    /// Does what the received bytes allow. Handshakes are not decoded lazily: they owe the peer answers.
    pub(super) fn advance_handshake(&mut self) {
        loop {
            let step = match &self.state {
                State::Greeting(_) => self.greet(),
                State::RoutingId(_) => self.identify(),
                State::Mechanism(..) => self.negotiate(),
                State::Traffic | State::Closed => return,
            };
            match step {
                Ok(true) => {}
                Ok(false) => {
                    self.dry = true;
                    return;
                }
                Err(reason) => return self.close(reason),
            }
        }
    }

    fn greet(&mut self) -> Step {
        let State::Greeting(greeting) = &mut self.state else {
            return Ok(false);
        };
        match greeting.advance(self.decoder.input().bytes(), &mut self.encoder) {
            Progress::Incomplete => Ok(false),
            Progress::Complete { peer, used } => {
                self.decoder.input().skip(used);
                match peer {
                    Peer::V3 { minor, mechanism } => self.start_mechanism(minor, &mechanism),
                    old => self.start_legacy(old),
                }?;
                Ok(true)
            }
        }
    }

    fn start_mechanism(&mut self, minor: u8, theirs: &[u8; 20]) -> Result<(), CloseReason> {
        let ours = self.config.mechanism.spec;
        let theirs = mechanism_name(theirs);
        if theirs != ours.name.as_bytes() {
            return Err(ProtocolError::MechanismMismatch {
                ours: ours.name,
                theirs: theirs.escape_ascii().to_string(),
            }
            .into());
        }
        let properties = self.own_properties();
        let local = Local {
            socket_type: self.config.socket_type,
            as_server: self.config.as_server,
            properties: &properties,
        };
        let mut mechanism = (ours.start)(&self.config.mechanism, local);
        self.send_commands(&mut *mechanism);
        self.state = State::Mechanism(mechanism, minor.min(1));
        Ok(())
    }

    fn own_properties(&self) -> Vec<u8> {
        let config = &self.config;
        let mut properties = Vec::new();
        let mut put = |name, value| command::put_property(&mut properties, name, value);
        put("Socket-Type", config.socket_type.name().as_bytes());
        if config.socket_type.sends_identity() {
            put("Identity", &config.routing_id);
        }
        if !config.resource.is_empty() {
            put("Resource", &config.resource);
        }
        for (name, value) in &config.properties {
            put(name, value);
        }
        properties
    }

    fn negotiate(&mut self) -> Step {
        let Some(frame) = self.decoder.decode()? else {
            return Ok(false);
        };
        let (name, data) = command::split(&frame)?;
        let State::Mechanism(mut mechanism, minor) =
            std::mem::replace(&mut self.state, State::Closed)
        else {
            return Ok(false);
        };
        let handled = mechanism.handle_command(name, data);
        self.send_commands(&mut *mechanism);
        let peer = mechanism.poll_peer();
        self.state = State::Mechanism(mechanism, minor);
        handled?;
        if let Some(peer) = peer {
            self.meet(peer, minor)?;
        }
        Ok(true)
    }

    fn send_commands(&mut self, mechanism: &mut dyn Mechanism) {
        while let Some(body) = mechanism.poll_command() {
            self.encoder.put_command(&body, Frame::new());
        }
    }

    /// Checks what a ZMTP 3 peer told about itself.
    fn meet(&mut self, peer: mechanisms::Peer, minor: u8) -> Result<(), CloseReason> {
        let Some(name) = command::find_property(&peer.properties, "Socket-Type") else {
            return Err(ProtocolError::Metadata("no Socket-Type").into());
        };
        let ours = self.config.socket_type;
        let socket_type = match SocketType::from_name(name) {
            Some(theirs) if ours.compatible(theirs) => theirs,
            _ => {
                let theirs = name[..name.len().min(20)].escape_ascii().to_string();
                let error = ProtocolError::SocketType { ours, theirs };
                let data = command::error_data(&error.to_string());
                self.encoder.put_command(command::ERROR, Frame::from(data));
                self.close_politely(error.into());
                return Ok(());
            }
        };
        let mut routing_id = Bytes::new();
        if socket_type.sends_identity()
            && let Some(identity) = command::find_property(&peer.properties, "Identity")
        {
            if identity.len() > legacy::MAX_ROUTING_ID {
                return Err(ProtocolError::Metadata("an Identity over 255 bytes").into());
            }
            routing_id = identity.clone();
        }
        let info = PeerInfo {
            socket_type: Some(socket_type),
            routing_id,
            version: (3, minor),
            mechanism: self.config.mechanism.spec.name,
            user_id: peer.user_id,
            properties: peer.properties,
        };
        self.start_traffic(info, peer.cipher);
        Ok(())
    }

    fn start_legacy(&mut self, peer: Peer) -> Result<(), CloseReason> {
        let (version, _) = legacy::introduce(&peer, self.config.socket_type)?;
        let mechanism = self.config.mechanism.spec.name;
        if mechanism != null::NULL.name {
            // Whoever insists on security must not be talked out of it by a forged greeting.
            return Err(ProtocolError::VersionTooOld {
                mechanism,
                version: version.0,
            }
            .into());
        }
        let framing = if version.0 == 1 {
            Framing::V1
        } else {
            Framing::V2
        };
        self.decoder.set_framing(framing);
        self.encoder.set_framing(framing);
        self.decoder.set_limits(Limits {
            message: legacy::MAX_ROUTING_ID as u64,
            frames: 1,
            command: 0,
            commands_only: false,
        });
        let routing_id = Frame::from_bytes(self.config.routing_id.clone());
        if peer == Peer::Unversioned {
            // Our signature was the header of this frame.
            self.encoder.put_raw(&routing_id);
        } else {
            self.encoder.put_control(&[], routing_id);
        }
        self.state = State::RoutingId(peer);
        Ok(())
    }

    fn identify(&mut self) -> Step {
        let State::RoutingId(peer) = &self.state else {
            return Ok(false);
        };
        let (version, socket_type) = legacy::introduce(peer, self.config.socket_type)?;
        let unversioned = *peer == Peer::Unversioned;
        let Some(frame) = self.decoder.decode()? else {
            return Ok(false);
        };
        if frame.more() || frame.kind() != Kind::Data {
            return Err(ProtocolError::UnexpectedCommand {
                expected: "a routing id in one frame",
                got: "another frame".to_owned(),
            }
            .into());
        }
        let info = PeerInfo {
            socket_type,
            routing_id: frame.into_bytes(),
            version,
            mechanism: null::NULL.name,
            user_id: None,
            properties: Vec::new(),
        };
        self.start_traffic(info, None);
        if unversioned && self.traffic.publishes() {
            // Such a subscriber filters for itself and never asks.
            let everything = Frame::with_kind(Kind::Subscribe, b"");
            self.events.push_back(Event::Frame(everything));
        }
        Ok(true)
    }

    fn start_traffic(&mut self, info: PeerInfo, cipher: Option<Box<dyn Cipher>>) {
        let mut limits = traffic::limits(&self.config);
        if let Some(cipher) = &cipher {
            // The limit is for what is inside, where it is checked again.
            limits.message = limits.message.saturating_add(cipher.overhead() as u64);
        }
        self.decoder.set_limits(limits);
        if info.version.0 >= 3 {
            self.heartbeat.start(self.now);
        }
        if cipher.is_none() && !self.traffic.publishes() {
            self.decoder.allow_small();
        }
        self.traffic.start(info.version, cipher);
        let info = Arc::new(info);
        self.peer = Some(info.clone());
        self.events.push_back(Event::Ready(info));
        self.state = State::Traffic;
    }
}
