//! Whether a peer may come in: whom to ask, and what the answer means for the connection.

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

/// What the session calls its pipe to the ZAP handler; the one to the socket is 0.
pub(super) const HANDLER: PipeId = PipeId(1);

/// What a connection knows about its admission.
#[derive(Default)]
pub(super) struct Admission {
    /// The question to the ZAP handler, as long as it is open.
    exchange: Option<Box<Exchange>>,
    /// Why the peer is refused, in words.
    refusal: Option<String>,
    /// There was nobody to ask.
    unchecked: bool,
    /// Somebody told the peer apart from all others.
    recognised: bool,
}

impl Session {
    /// The engine wants to know whether its peer may come in.
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

    /// Passes the ZAP handler's answer on, if it is there.
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
                up.admission.recognised = verdict.status == 200 && !verdict.user_id.is_empty();
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

    /// The peer was let in, and is not welcome any more.
    pub(super) fn check_revoked(&self, state: &mut State, io: &mut Reactor) {
        if !self.revoked.swap(false, Ordering::AcqRel) {
            return;
        }
        if let Link::Up(up) = &mut state.link {
            up.admission.refusal = Some("the peer was taken off the allow-list".to_owned());
            self.lost(state, io, &CloseReason::Denied(400));
        }
    }

    /// Whether the peer shall go; the I/O thread has been told.
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
        self.emit_because(kind, value, text);
    }
}

impl Connection {
    /// Whether it is known for sure who the peer is: it proved to have the key that we expect of the server, or it was
    /// recognised by what it showed.
    pub(super) fn is_authenticated(&self, security: &Security) -> bool {
        let mechanism = security.mechanism;
        match mechanism.inquiry {
            // An address is no proof.
            Inquiry::Address => false,
            Inquiry::Required | Inquiry::Optional => {
                self.admission.recognised || mechanism.proves_server && !security.as_server
            }
        }
    }

    /// What may be worth a warning about a peer that was let in.
    pub(super) fn warning(&self, mechanism: &MechanismSpec, address: &str) -> Option<&'static str> {
        // Over ipc there is no such address.
        let remote = address
            .parse::<IpAddr>()
            .is_ok_and(|address| !address.is_loopback());
        let unchecked = mechanism.unchecked_warning;
        let unchecked = unchecked.filter(|_| self.admission.unchecked);
        mechanism.remote_warning.filter(|_| remote).or(unchecked)
    }

    /// Why it is over, as precisely as anybody knows.
    pub(super) fn explain(&self, reason: &CloseReason) -> String {
        let admission = &self.admission;
        match reason {
            CloseReason::HandshakeTimeout if admission.exchange.is_some() => {
                "the ZAP handler has not answered within the handshake interval".to_owned()
            }
            _ => match &admission.refusal {
                Some(refusal) => refusal.clone(),
                None => reason.to_string(),
            },
        }
    }

    fn refuse(&mut self, failure: Failure, mechanism: &'static str, now: Instant) {
        let problem = failure.problem;
        let reason = match failure.code {
            Some(code) => CloseReason::Authenticator { code, problem },
            None => {
                self.admission.refusal = Some(format!("no verdict of the ZAP handler: {problem}"));
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
