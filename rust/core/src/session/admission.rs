//! Admission of peers: which authority decides, and what its answer means for the connection.

use std::net::IpAddr;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Instant;

use zeroxide_proto::error::CloseReason;
use zeroxide_proto::mechanisms::{Credentials, Inquiry, MechanismSpec, Verdict};

use super::{Connection, Link, Session, State};
use crate::access::Admitted;
use crate::monitor::EventKind;
use crate::options::{Authority, Security};
use crate::pipe::PipeId;
use crate::reactor::Reactor;
use crate::sys::errno;
use crate::zap::{self, Exchange, Failure, Question};

/// The session's number for its pipe to the ZAP handler. The pipe to the socket has number 0.
pub(super) const HANDLER: PipeId = PipeId(1);

/// The state of a connection's admission.
#[derive(Default)]
pub(super) struct Admission {
    /// The request to the ZAP handler, until it is answered.
    exchange: Option<Box<Exchange>>,
    /// The reason why the peer was refused, for events.
    refusal: Option<String>,
    /// There was no ZAP handler to ask.
    unchecked: bool,
    /// The gate or the ZAP handler has identified the peer.
    recognised: bool,
}

impl Session {
    /// Decides whether the engine's peer is admitted, or asks the ZAP handler.
    pub(super) fn inquire(&self, up: &mut Connection, credentials: Credentials, now: Instant) {
        let security = &self.options.security;
        let address = up.stream.peer_address();
        let authority = security.authority();
        if authority == Authority::Gate
            && let Some(gate) = &security.gate
        {
            let me: Weak<Session> = self.me.clone();
            let decision = gate.judge(&credentials, security.mechanism.shows, me);
            up.admission.recognised = decision.recognised;
            up.admission.refusal = (!decision.reason.is_empty())
                .then(|| format!("{} is refused: {}", named(&address), decision.reason));
            return up.engine.handle_verdict(decision.verdict, now);
        }
        let mechanism = credentials.mechanism;
        let question = Question {
            domain: &security.zap_domain,
            address: &address,
            routing_id: &self.options.routing_id,
            credentials,
        };
        let Some(me) = self.me.upgrade() else { return };
        match zap::ask(&self.registry, question, me, HANDLER) {
            Some(Ok(exchange)) => {
                up.admission.exchange = Some(Box::new(exchange));
                self.take_answer(up, now);
            }
            Some(Err(failure)) => up.refuse(failure, mechanism, now),
            None if authority == Authority::IfThere => {
                up.admission.unchecked = true;
                let status = 200;
                let verdict = Verdict {
                    status,
                    ..Verdict::default()
                };
                up.engine.handle_verdict(verdict, now);
            }
            None => up.engine.abort(CloseReason::NobodyToAsk(mechanism), now),
        }
    }

    /// Passes the ZAP handler's answer to the engine if the answer has arrived.
    pub(super) fn take_answer(&self, up: &mut Connection, now: Instant) {
        let Some(exchange) = &mut up.admission.exchange else {
            return;
        };
        let Some(answer) = exchange.poll() else {
            return;
        };
        up.admission.exchange = None;
        match answer {
            Ok(answer) => {
                let verdict = answer.verdict;
                let is_named = verdict
                    .user_id
                    .as_deref()
                    .is_some_and(|user| !user.is_empty());
                up.admission.recognised = verdict.status == 200 && is_named;
                up.admission.refusal = (verdict.status != 200).then(|| {
                    let address = up.stream.peer_address();
                    let (address, status) = (named(&address), verdict.status);
                    format!(
                        "the ZAP handler refuses {address} with {status}: {}",
                        answer.text
                    )
                });
                up.engine.handle_verdict(verdict, now);
            }
            Err(failure) => up.refuse(failure, self.options.security.mechanism.name, now),
        }
    }

    /// Ends the connection if the peer's admission was revoked.
    pub(super) fn check_revoked(&self, state: &mut State, io: &mut Reactor) {
        if !self.revoked.swap(false, Ordering::AcqRel) {
            return;
        }
        if let Link::Up(up) = &mut state.link {
            up.admission.refusal = Some("the peer was taken off the allow-list".to_owned());
            self.lost(state, io, &CloseReason::Denied(400));
        }
    }

    /// Whether the peer's admission was revoked. The I/O thread has been woken to end the connection.
    #[inline]
    pub(super) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    pub(super) fn emit_handshake_failure(&self, up: &Connection, reason: &CloseReason) {
        let mut text = up.explain(reason);
        let security = &self.options.security;
        if *reason == CloseReason::PeerClosed
            && !security.as_server
            && let Some(hint) = security.mechanism.silence_hint
        {
            text.push_str("; ");
            text.push_str(hint);
        }
        let without_detail = |errno: i32| (EventKind::HandshakeFailedNoDetail, errno as u64);
        let (kind, value) = match reason {
            CloseReason::Protocol(error) => {
                (EventKind::HandshakeFailedProtocol, u64::from(error.code()))
            }
            CloseReason::Authenticator { code, .. } => {
                (EventKind::HandshakeFailedProtocol, u64::from(*code))
            }
            CloseReason::AuthFailed(status) | CloseReason::Denied(status) => {
                (EventKind::HandshakeFailedAuth, u64::from(*status))
            }
            CloseReason::HandshakeTimeout => without_detail(errno::TIMED_OUT),
            CloseReason::NobodyToAsk(_) => without_detail(errno::FAULT),
            CloseReason::PeerClosed => without_detail(errno::BROKEN_PIPE),
            CloseReason::NotGreeted => without_detail(errno::CONNECTION_RESET),
            CloseReason::Misconfigured { .. } => without_detail(errno::INVALID),
            CloseReason::OutOfMemory => without_detail(errno::NO_MEMORY),
            _ => without_detail(0),
        };
        self.tell_failure(kind, value, text);
    }
}

impl Connection {
    /// Whether the peer's identity is proven: the peer proved that it holds the key that we expect of the server, or
    /// its credentials were recognised.
    pub(super) fn is_authenticated(&self, security: &Security) -> bool {
        let mechanism = security.mechanism;
        match mechanism.inquiry {
            // An address does not prove an identity.
            Inquiry::Address => false,
            Inquiry::Required | Inquiry::Optional => {
                self.admission.recognised || mechanism.proves_server && !security.as_server
            }
        }
    }

    /// A warning about an admitted peer, if its mechanism has one that applies.
    pub(super) fn warning(&self, mechanism: &MechanismSpec, address: &str) -> Option<&'static str> {
        // An ipc peer has no IP address.
        let remote = address
            .parse::<IpAddr>()
            .is_ok_and(|address| !address.is_loopback());
        let exposed = remote && !self.stream.is_private();
        let unchecked = mechanism.unchecked_warning;
        let unchecked = unchecked.filter(|_| self.admission.unchecked);
        mechanism.remote_warning.filter(|_| exposed).or(unchecked)
    }

    /// Why the connection is over, as precisely as is known.
    pub(super) fn explain(&self, reason: &CloseReason) -> String {
        let admission = &self.admission;
        match reason {
            CloseReason::HandshakeTimeout if admission.exchange.is_some() => {
                "the ZAP handler has not answered within the handshake interval".to_owned()
            }
            _ => match (&admission.refusal, self.stream.failure()) {
                (Some(refusal), _) => refusal.clone(),
                // For the engine, this is the end of the stream.
                (None, Some(failure)) => failure.to_string(),
                (None, None) => reason.to_string(),
            },
        }
    }

    fn refuse(&mut self, failure: Failure, mechanism: &'static str, now: Instant) {
        let problem = failure.problem;
        let reason = match failure.code {
            Some(code) => CloseReason::Authenticator { code, problem },
            None => {
                self.admission.refusal =
                    Some(format!("the ZAP handler gave no verdict: {problem}"));
                CloseReason::NobodyToAsk(mechanism)
            }
        };
        self.engine.abort(reason, now);
    }
}

impl Admitted for Session {
    fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
        self.wake();
    }

    fn is_over(&self) -> bool {
        self.has_ended()
    }
}

fn named(address: &str) -> &str {
    match address {
        "" => "a peer",
        address => address,
    }
}
