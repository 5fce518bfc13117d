//! The handshake, from the first byte to the peer's last handshake command.

use super::{Engine, Event, PeerInfo, State, traffic};
use crate::command;
use crate::decoder::Limits;
use crate::error::{CloseReason, ProtocolError};
use crate::frame::{Frame, FrameKind};
use crate::framing::Framing;
use crate::greeting::{Peer, Progress, mechanism_name};
use crate::legacy;
use crate::mechanisms::{
    self, Cipher, Credentials, Greeted, Local, Mechanism, MechanismConfig, Verdict,
};
use crate::wires::Form;
use bytes::Bytes;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Properties that a peer cannot set itself, because they describe what we know about it.
const OURS_TO_SAY: [&str; 2] = ["User-Id", "Peer-Address"];

/// Whether a step of the handshake made progress, or needs more bytes.
type Step = Result<bool, CloseReason>;

/// A handshake after the greeting.
pub(super) struct Negotiation {
    mechanism: Box<dyn Mechanism>,
    minor: u8,
    admission: Admission,
}

/// The state of the question whether to admit the peer.
enum Admission {
    Unasked,
    Asked,
    Granted(Verdict),
}

impl Engine {
    /// Processes the received bytes. Handshakes are not decoded lazily, because the peer waits for answers.
    pub(super) fn advance_handshake(&mut self) {
        loop {
            let step = match &self.state {
                State::Greeting(_) => self.greet(),
                State::Opening(form) => self.open(form),
                State::RoutingId(_) => self.identify(),
                State::Mechanism(_) => self.negotiate(),
                State::Traffic | State::Closed => return,
            };
            match step {
                Ok(true) => {}
                Ok(false) => {
                    // Nothing is decoded while a verdict is awaited, so nothing more should be read.
                    self.dry = !self.awaits_verdict() || self.decoder.input().bytes().is_empty();
                    return;
                }
                // Let the peer receive our whole greeting, so that it learns why reconnecting is useless.
                Err(CloseReason::Protocol(error)) if error.is_mutual() => {
                    return self.close_politely(error.into());
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
            Progress::Other(wire) => Err(ProtocolError::OtherWire { theirs: wire.name }.into()),
            Progress::Complete { peer, used } => {
                self.decoder.input().skip(used);
                match peer {
                    Peer::V3 {
                        minor,
                        mechanism,
                        counted,
                    } => {
                        let greeted = Greeted {
                            minor: minor.min(1),
                            libzmq: counted,
                        };
                        self.start_mechanism(greeted, &mechanism)
                    }
                    old => self.start_legacy(old),
                }?;
                Ok(true)
            }
        }
    }

    /// Reads the opening of another wire protocol than ZMTP.
    fn open(&mut self, form: &'static Form) -> Step {
        let mechanism = self.config.mechanism.spec;
        if *mechanism != *mechanisms::none() || self.config.authenticate {
            return Err(CloseReason::Misconfigured {
                mechanism: mechanism.name,
                problem: "this wire protocol has no security mechanism",
            });
        }
        let input = self.decoder.input();
        let opened = (form.parse_opening)(self.config.socket_type, input.bytes())?;
        let Some((peer, length)) = opened else {
            return Ok(false);
        };
        input.skip(length);
        let info = PeerInfo {
            socket_type: Some(peer),
            ..PeerInfo::default()
        };
        self.start_traffic(info, None);
        Ok(true)
    }

    fn start_mechanism(&mut self, peer: Greeted, theirs: &[u8; 20]) -> Result<(), CloseReason> {
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
            authenticate: self.config.authenticate,
            properties: &properties,
            random: self.config.random,
            peer,
        };
        let mechanism = (ours.start)(&self.config.mechanism, local)?;
        // The secrets in it are no longer needed.
        self.config.mechanism = MechanismConfig {
            spec: ours,
            parameters: Vec::new(),
        };
        self.state = State::Mechanism(Negotiation {
            mechanism,
            minor: peer.minor,
            admission: Admission::Unasked,
        });
        self.settle()
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
        let State::Mechanism(negotiation) = &mut self.state else {
            return Ok(false);
        };
        if matches!(negotiation.admission, Admission::Asked) {
            return Ok(false);
        }
        let Some(frame) = self.decoder.decode()? else {
            return Ok(false);
        };
        let handled = negotiation.mechanism.handle_command(&frame);
        // The input, and the frame's copy of it, may have contained a password.
        mechanisms::wipe(frame.into_bytes());
        self.decoder.input().wipe_taken();
        handled?;
        self.settle()?;
        Ok(true)
    }

    /// Does what the mechanism needs after an event.
    fn settle(&mut self) -> Result<(), CloseReason> {
        let State::Mechanism(negotiation) = &mut self.state else {
            return Ok(());
        };
        let mechanism = &mut negotiation.mechanism;
        while let Some(body) = mechanism.poll_command().map(Zeroizing::new) {
            self.encoder.put_command(&body, Frame::new());
        }
        if self.config.authenticate
            && matches!(negotiation.admission, Admission::Unasked)
            && let Some(credentials) = mechanism.poll_credentials()
        {
            negotiation.admission = Admission::Asked;
            self.events.push_back(Event::Authenticate(Credentials {
                mechanism: self.config.mechanism.spec.name,
                credentials,
            }));
            return Ok(());
        }
        if let Some(peer) = mechanism.poll_peer() {
            let minor = negotiation.minor;
            let verdict = match std::mem::replace(&mut negotiation.admission, Admission::Unasked) {
                Admission::Granted(verdict) => verdict,
                Admission::Unasked | Admission::Asked => Verdict::default(),
            };
            self.meet(peer, minor, verdict)?;
        }
        Ok(())
    }

    fn awaits_verdict(&self) -> bool {
        matches!(
            &self.state,
            State::Mechanism(negotiation) if matches!(negotiation.admission, Admission::Asked)
        )
    }

    pub(super) fn judge(&mut self, verdict: Verdict) {
        let State::Mechanism(negotiation) = &mut self.state else {
            return;
        };
        if !matches!(negotiation.admission, Admission::Asked) {
            return;
        }
        let status = verdict.status;
        match status {
            200 => {
                negotiation.admission = Admission::Granted(verdict);
                negotiation.mechanism.accept();
                match self.settle() {
                    Ok(()) => self.advance_handshake(),
                    Err(reason) => self.close(reason),
                }
            }
            300 => self.close(CloseReason::Denied(status)),
            _ => {
                let command = negotiation.mechanism.error_command(&status.to_string());
                self.encoder.put_command(&command, Frame::new());
                self.close_politely(CloseReason::Denied(status));
            }
        }
    }

    /// Checks the properties that a ZMTP 3 peer sent.
    fn meet(
        &mut self,
        peer: mechanisms::Peer,
        minor: u8,
        verdict: Verdict,
    ) -> Result<(), CloseReason> {
        let Some(name) = command::find_property(&peer.properties, "Socket-Type") else {
            return Err(ProtocolError::Metadata("no Socket-Type").into());
        };
        let ours = self.config.socket_type;
        let socket_type = match ours.peer_named(name) {
            Some(theirs) => theirs,
            None => {
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
        let given = verdict.user_id;
        let user_id = match given.as_deref() {
            // As in libzmq, an authenticator's empty user id is one.
            Some("") => peer.user_id.or(given),
            _ => given.or(peer.user_id),
        };
        let info = PeerInfo {
            socket_type: Some(socket_type),
            routing_id,
            version: (3, minor),
            mechanism: self.config.mechanism.spec.name,
            user_id,
            key: peer.key,
            properties: merged(verdict.metadata, peer.properties),
        };
        self.start_traffic(info, peer.cipher);
        Ok(())
    }

    fn start_legacy(&mut self, peer: Peer) -> Result<(), CloseReason> {
        let (version, _) = legacy::introduce(&peer, self.config.socket_type)?;
        let mechanism = self.config.mechanism.spec;
        if *mechanism != *mechanisms::none() || self.config.authenticate {
            // A forged greeting must not be able to switch off security.
            return Err(ProtocolError::VersionTooOld {
                mechanism: mechanism.name,
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
        if frame.more() || frame.kind() != FrameKind::Data {
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
            mechanism: mechanisms::none().name,
            user_id: None,
            key: None,
            properties: Vec::new(),
        };
        self.start_traffic(info, None);
        if unversioned && self.traffic.publishes() {
            // Such a subscriber filters for itself and never sends subscriptions.
            let everything = Frame::with_kind(FrameKind::Subscribe, b"");
            self.events.push_back(Event::Frame(everything));
        }
        Ok(true)
    }

    fn start_traffic(&mut self, info: PeerInfo, cipher: Option<Box<dyn Cipher>>) {
        let mut limits = traffic::limits(&self.config);
        if let Some(cipher) = &cipher {
            // The limits apply to the content, where they are checked again: for messages, and for commands as well.
            limits.message = limits
                .message
                .max(limits.command)
                .saturating_add(cipher.overhead() as u64);
        }
        self.decoder.set_limits(limits);
        if info.version.0 >= 3 || self.config.carrier_pings {
            self.heartbeat.start(self.now);
        }
        self.watch.start(self.now);
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

/// Properties that our side knows about a peer, then those that the peer sent, except those it must not set.
fn merged(mut known: Vec<(String, Bytes)>, said: Vec<(String, Bytes)>) -> Vec<(String, Bytes)> {
    for (name, value) in said {
        let ours = OURS_TO_SAY
            .iter()
            .any(|ours| ours.eq_ignore_ascii_case(&name));
        if !ours && command::find_property(&known, &name).is_none() {
            known.push((name, value));
        }
    }
    known
}
