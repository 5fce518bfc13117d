//! The security settings of a socket, according to its options.

use std::fmt;

use bytes::Bytes;
use zeroize::Zeroizing;
use zeroxide_proto::engine::EngineConfig;
use zeroxide_proto::mechanisms::{MechanismConfig, MechanismSpec, curve, null, plain};

use crate::access::{Gate, Key};
use crate::error::{Error, ErrorKind, Result};

/// The security mechanism of all connections of a socket. The discriminants are libzmq's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SecurityMechanism {
    /// No security.
    #[default]
    Null = 0,
    /// User name and password, unencrypted.
    Plain = 1,
    /// Authenticated encryption with long-term keys.
    Curve = 2,
}

impl SecurityMechanism {
    /// Its name in the greeting.
    pub(crate) fn name(self) -> &'static str {
        self.spec().name
    }

    fn spec(self) -> &'static MechanismSpec {
        match self {
            SecurityMechanism::Null => &null::NULL,
            SecurityMechanism::Plain => &plain::PLAIN,
            SecurityMechanism::Curve => &curve::CURVE,
        }
    }
}

/// Keys and names, and the access control.
#[derive(Clone, Default)]
pub struct Security {
    /// MECHANISM: set by the last option that implies one.
    pub mechanism: SecurityMechanism,
    /// PLAIN_SERVER, CURVE_SERVER: whether this side authenticates the other one.
    pub as_server: bool,
    /// PLAIN_USERNAME
    pub username: Zeroizing<Vec<u8>>,
    /// PLAIN_PASSWORD
    pub password: Zeroizing<Vec<u8>>,
    /// CURVE_PUBLICKEY
    pub public_key: Option<Key>,
    /// CURVE_SECRETKEY
    pub secret_key: Option<Zeroizing<Key>>,
    /// CURVE_SERVERKEY
    pub server_key: Option<Key>,
    /// ZAP_DOMAIN
    pub zap_domain: String,
    /// ZAP_ENFORCE_DOMAIN
    pub enforce_domain: bool,
    /// Decides about peers instead of a ZAP handler.
    pub(crate) gate: Option<Gate>,
}

/// The authority that decides about a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inquiry {
    /// None: every peer that uses the mechanism is admitted.
    Nobody,
    /// The ZAP handler of the context, if there is one; otherwise every peer is admitted.
    IfThere,
    /// The ZAP handler; without one, no peer is admitted.
    MustBeThere,
    /// The gate.
    Gate,
}

impl Security {
    /// Sets a mechanism and the role in it.
    pub(super) fn set_role(&mut self, mechanism: SecurityMechanism, as_server: bool) {
        self.mechanism = mechanism;
        self.as_server = as_server;
    }

    /// A server option was written. Clearing it returns to NULL, as in libzmq.
    pub(super) fn set_server(&mut self, mechanism: SecurityMechanism, on: bool) {
        let mechanism = if on {
            mechanism
        } else {
            SecurityMechanism::Null
        };
        self.set_role(mechanism, on);
    }

    pub(crate) fn is_server(&self, mechanism: SecurityMechanism) -> bool {
        self.as_server && self.mechanism == mechanism
    }

    /// The authority that decides about a peer: libzmq's rules, unless there is a gate.
    pub(crate) fn inquiry(&self) -> Inquiry {
        let asks = match self.mechanism {
            _ if self.gate.is_some() => return Inquiry::Gate,
            SecurityMechanism::Null => !self.zap_domain.is_empty(),
            SecurityMechanism::Plain => self.as_server,
            SecurityMechanism::Curve => {
                self.as_server && !(self.enforce_domain && self.zap_domain.is_empty())
            }
        };
        match asks {
            false => Inquiry::Nobody,
            true if self.enforce_domain || self.mechanism == SecurityMechanism::Plain => {
                Inquiry::MustBeThere
            }
            true => Inquiry::IfThere,
        }
    }

    /// Checks that the mechanism has its settings, before the first peer reveals a mistake. Returns the public key of
    /// the secret key, if no public key was set or it has no effect.
    ///
    /// `raw` means that there is no ZMTP that could carry a mechanism.
    ///
    /// # Errors
    /// `Invalid`, naming the missing or wrong setting.
    pub(crate) fn check(&self, raw: bool) -> Result<Option<Key>> {
        let wrong = |text: &str| Err(Error::with(ErrorKind::Invalid, text));
        if raw && (self.mechanism != SecurityMechanism::Null || self.gate.is_some()) {
            return wrong(
                "STREAM and ROUTER_RAW have no security mechanism: every peer could connect",
            );
        }
        if raw && self.enforce_domain {
            return wrong(
                "STREAM and ROUTER_RAW have no handshake that ZAP_ENFORCE_DOMAIN could be for",
            );
        }
        if self.gate.is_some() && !self.as_server {
            return wrong(
                "this socket has an allow-list, but a later option made it a client, which does not use one",
            );
        }
        if self.mechanism != SecurityMechanism::Curve {
            return Ok(None);
        }
        let Some(secret) = &self.secret_key else {
            return wrong("CURVE needs a secret key of this socket: set CURVE_SECRETKEY");
        };
        if !self.as_server && self.server_key.is_none() {
            return wrong(
                "CURVE needs to know its role: set CURVE_SERVER, or CURVE_SERVERKEY to connect to a server",
            );
        }
        let public = curve::public_key(secret);
        match self.public_key {
            // A server does not send its public key, so a wrong one has no effect. A client's handshakes fail with
            // the reason, as with libzmq.
            Some(said) if curve::canonical_key(&said) != public && !self.as_server => Ok(None),
            _ => Ok(Some(public)),
        }
    }

    /// Configures an engine with these settings.
    pub(crate) fn configure(&self, config: &mut EngineConfig) {
        config.as_server = self.as_server;
        config.authenticate = self.inquiry() != Inquiry::Nobody;
        let key = |name, key: Option<&Key>| {
            let key = key?;
            Some((name, Bytes::copy_from_slice(key)))
        };
        let parameters = match self.mechanism {
            SecurityMechanism::Null => Vec::new(),
            SecurityMechanism::Plain => vec![
                (plain::USERNAME, Bytes::copy_from_slice(&self.username)),
                (plain::PASSWORD, Bytes::copy_from_slice(&self.password)),
            ],
            SecurityMechanism::Curve => {
                let keys = [
                    key(curve::SECRET_KEY, self.secret_key.as_deref()),
                    key(curve::PUBLIC_KEY, self.public_key.as_ref()),
                    key(curve::SERVER_KEY, self.server_key.as_ref()),
                ];
                keys.into_iter().flatten().collect()
            }
        };
        config.mechanism = MechanismConfig {
            spec: self.mechanism.spec(),
            parameters,
        };
    }
}

/// Shows no secrets.
impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("mechanism", &self.mechanism)
            .field("as_server", &self.as_server)
            .field("zap_domain", &self.zap_domain)
            .field("enforce_domain", &self.enforce_domain)
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}
