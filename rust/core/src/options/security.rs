//! The security settings of a socket, according to its options.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use zeroize::Zeroizing;
use zeroxide_proto::engine::EngineConfig;
use zeroxide_proto::mechanisms::{self, Inquiry, MechanismConfig, MechanismSpec, Setting};
use zeroxide_proto::wires::WireSpec;

use super::Options;
use crate::access::Gate;
use crate::error::{Error, ErrorKind, Result};

/// Keys and names, and the access control.
#[derive(Clone)]
pub struct Security {
    /// MECHANISM: that of the last option that implies one.
    pub(crate) mechanism: &'static MechanismSpec,
    /// Whether this side authenticates the other one.
    pub(crate) as_server: bool,
    /// The parameters of all mechanisms, by the numbers of their options.
    values: BTreeMap<i32, Zeroizing<Vec<u8>>>,
    /// ZAP_DOMAIN
    pub(crate) zap_domain: String,
    /// ZAP_ENFORCE_DOMAIN
    pub(crate) enforce_domain: bool,
    /// Decides about peers instead of a ZAP handler.
    pub(crate) gate: Option<Gate>,
}

impl Default for Security {
    fn default() -> Security {
        Security {
            mechanism: mechanisms::none(),
            as_server: false,
            values: BTreeMap::new(),
            zap_domain: String::new(),
            enforce_domain: false,
            gate: None,
        }
    }
}

/// The authority that decides about a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Authority {
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
    pub(crate) fn set_role(&mut self, mechanism: &'static MechanismSpec, as_server: bool) {
        self.mechanism = mechanism;
        self.as_server = as_server;
    }

    /// A server option was written. Clearing it returns to no security, as in libzmq.
    pub(super) fn set_server(&mut self, mechanism: &'static MechanismSpec, on: bool) {
        self.set_role(if on { mechanism } else { mechanisms::none() }, on);
    }

    pub(super) fn is_server(&self, mechanism: &MechanismSpec) -> bool {
        self.as_server && self.mechanism == mechanism
    }

    /// The value of a mechanism's option; empty if it is not set.
    pub(crate) fn value(&self, option: i32) -> &[u8] {
        self.values.get(&option).map_or(&[], |value| value)
    }

    /// Stores the value of a mechanism's option.
    pub(crate) fn store(&mut self, option: i32, value: Vec<u8>) {
        self.values.insert(option, value.into());
    }

    /// Removes the value of a mechanism's option.
    pub(crate) fn remove(&mut self, option: i32) {
        self.values.remove(&option);
    }

    /// The authority that decides about a peer: libzmq's rules, unless there is a gate.
    pub(crate) fn authority(&self) -> Authority {
        let asks = match self.mechanism.inquiry {
            _ if self.gate.is_some() => return Authority::Gate,
            Inquiry::Address => !self.zap_domain.is_empty(),
            Inquiry::Required => self.as_server,
            Inquiry::Optional => {
                self.as_server && !(self.enforce_domain && self.zap_domain.is_empty())
            }
        };
        match asks {
            false => Authority::Nobody,
            true if self.enforce_domain || self.mechanism.inquiry == Inquiry::Required => {
                Authority::MustBeThere
            }
            true => Authority::IfThere,
        }
    }

    /// Checks that the mechanism has its settings, before the first peer reveals a mistake. Returns the parameters that
    /// follow from them, with the numbers of their options.
    ///
    /// `raw` means that there is no ZMTP that could carry a mechanism.
    ///
    /// # Errors
    /// `Invalid`, naming the missing or wrong setting.
    pub(super) fn check(&self, raw: bool) -> Result<Vec<(i32, Bytes)>> {
        let wrong = |text: &str| Error::with(ErrorKind::Invalid, text);
        if raw && (self.mechanism != mechanisms::none() || self.gate.is_some()) {
            return Err(wrong(
                "STREAM and ROUTER_RAW have no security mechanism: every peer could connect",
            ));
        }
        if raw && self.enforce_domain {
            return Err(wrong(
                "STREAM and ROUTER_RAW have no handshake that ZAP_ENFORCE_DOMAIN could be for",
            ));
        }
        if self.gate.is_some() && !self.as_server {
            return Err(wrong(
                "this socket has an allow-list, but a later option made it a client, which does not use one",
            ));
        }
        let found = (self.mechanism.check)(&self.config(), self.as_server).map_err(wrong)?;
        let with_number = |(parameter, value)| {
            let mut settings = self.mechanism.settings.iter();
            let setting = settings.find(|setting| setting.parameter() == Some(parameter))?;
            Some((setting.number, value))
        };
        Ok(found.into_iter().filter_map(with_number).collect())
    }

    /// Checks that no security is expected, because only ZMTP has any.
    ///
    /// # Errors
    /// `Invalid`, naming the setting.
    pub(super) fn check_other(&self, wire: &WireSpec) -> Result<()> {
        let over = format!("{} (WIRE_PROTOCOL {})", wire.title, wire.number);
        match self.expected() {
            Some(setting) => Err(no_security(&over, setting, "")),
            None => Ok(()),
        }
    }

    /// The setting because of which a program may expect that not every peer is admitted.
    fn expected(&self) -> Option<&'static str> {
        if self.mechanism != mechanisms::none() {
            Some(self.mechanism.name)
        } else if self.gate.is_some() {
            Some("an allow-list")
        } else if !self.zap_domain.is_empty() || self.enforce_domain {
            Some("ZAP_DOMAIN")
        } else {
            None
        }
    }

    /// The mechanism with its parameters.
    fn config(&self) -> MechanismConfig {
        let parameter = |setting: &Setting| {
            let value = self.values.get(&setting.number)?;
            Some((setting.parameter()?, Bytes::copy_from_slice(value)))
        };
        MechanismConfig {
            spec: self.mechanism,
            parameters: self
                .mechanism
                .settings
                .iter()
                .filter_map(parameter)
                .collect(),
        }
    }

    /// Configures an engine with these settings.
    pub(crate) fn configure(&self, config: &mut EngineConfig) {
        config.as_server = self.as_server;
        config.authenticate = self.authority() != Authority::Nobody;
        config.mechanism = self.config();
    }
}

impl Options {
    /// Checks that nothing is set that protects connections, because transports of datagrams have none: they would
    /// deliver what any program sends, and send past a proxy.
    ///
    /// # Errors
    /// `Invalid`, naming the setting.
    pub(crate) fn check_without_connections(&self, scheme: &str, bind: bool) -> Result<()> {
        if let Some(setting) = self.security.expected() {
            let cure = ": leave it out, or use a transport with connections";
            return Err(no_security(scheme, setting, cure));
        }
        if bind {
            self.check_no_filter(scheme)?;
        }
        self.check_no_proxy(scheme)
    }

    /// Checks that no networks are chosen, for a transport that cannot tell from which of them a peer comes.
    ///
    /// # Errors
    /// `Invalid` if there are some.
    pub(crate) fn check_no_filter(&self, scheme: &str) -> Result<()> {
        if self.tcp_accept_filters.is_empty() {
            return Ok(());
        }
        let text = format!(
            "TCP_ACCEPT_FILTER admits connections by IP address, and {scheme} has no such connections: leave it out, or use tcp"
        );
        Err(Error::with(ErrorKind::Invalid, text))
    }

    /// Checks that there is no proxy, for a transport that would bypass it.
    ///
    /// # Errors
    /// `Invalid` if there is one.
    pub(crate) fn check_no_proxy(&self, scheme: &str) -> Result<()> {
        if self.socks_proxy.is_empty() {
            return Ok(());
        }
        let text = format!(
            "a proxy carries TCP only, and {scheme} would bypass it: unset SOCKS_PROXY, or use a transport over TCP"
        );
        Err(Error::with(ErrorKind::Invalid, text))
    }
}

/// The error for a setting where there is no security.
fn no_security(over: &str, setting: &str, cure: &str) -> Error {
    let text =
        format!("there is no security mechanism over {over}, but this socket has {setting}{cure}");
    Error::with(ErrorKind::Invalid, text)
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
