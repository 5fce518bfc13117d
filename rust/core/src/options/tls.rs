//! The TLS settings of a socket, according to its options.

use std::fmt;

use rustls::ClientConfig;
use zeroize::Zeroizing;

use super::Options;
use crate::sys::sync::{Arc, OnceLock};

/// Certificates, keys and rules. A certificate or key is PEM, or the path of a file with it.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Tls {
    /// TLS_CERTIFICATE: this side's certificate, and those between it and its CA; empty = none.
    pub certificate: String,
    /// TLS_KEY: the key of the certificate; empty = it is in TLS_CERTIFICATE.
    pub key: Zeroizing<String>,
    /// TLS_CA: the CAs that this side trusts; empty = see `trust_system`.
    pub ca: String,
    /// TLS_TRUST_SYSTEM: whether the CAs of the system are trusted; `None` = if TLS_CA is empty.
    pub trust_system: Option<bool>,
    /// TLS_HOSTNAME: the name that a server's certificate must have; empty = that of the endpoint.
    pub hostname: String,
    /// TLS_VERIFY = 0: no check of the server's certificate.
    pub unverified: bool,
    /// TLS_CLIENT_AUTH: what a server expects of its clients; `None` = a certificate if TLS_CA is set.
    pub client_auth: Option<ClientAuth>,
    /// TLS_ALPN: names of protocols, separated by commas; empty = none.
    pub alpn: String,
    /// The transport's own form of these settings, until one of them changes.
    pub(crate) client: OnceLock<Arc<ClientConfig>>,
}

/// The certificates that a server expects of its clients. The values are those of TLS_CLIENT_AUTH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientAuth {
    /// Clients are not asked for a certificate.
    None = 0,
    /// A client may have no certificate. If it has one, a trusted CA must have signed it.
    Optional = 1,
    /// Every client has a certificate that a trusted CA has signed.
    Required = 2,
}

impl Options {
    /// The TLS settings, to change one of them.
    pub(super) fn tls_mut(&mut self) -> &mut Tls {
        let tls = Arc::make_mut(&mut self.tls);
        tls.client = OnceLock::new();
        tls
    }
}

impl ClientAuth {
    pub(super) fn from_number(number: i64) -> Option<ClientAuth> {
        match number {
            0 => Some(ClientAuth::None),
            1 => Some(ClientAuth::Optional),
            2 => Some(ClientAuth::Required),
            _ => None,
        }
    }
}

/// Shows no secrets.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("certificate", &self.certificate)
            .field("has_key", &!self.key.is_empty())
            .field("ca", &self.ca)
            .field("trust_system", &self.trust_system)
            .field("hostname", &self.hostname)
            .field("unverified", &self.unverified)
            .field("client_auth", &self.client_auth)
            .field("alpn", &self.alpn)
            .finish_non_exhaustive()
    }
}
