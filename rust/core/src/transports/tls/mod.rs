//! TLS: the transport `tls+tcp`, and the layer that it puts on TCP.
//!
//! The layer carries ZMTP, or the bytes of a STREAM socket. Certificates and keys are read when a socket binds or
//! connects, so that mistakes are errors of that call.

mod explain;
mod layer;
mod settings;

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use zeroxide_proto::socket_type::SocketType;

pub(super) use self::layer::TlsLayer;
use super::address::{self, Host};
use super::tcp::{TCP, renamed};
use super::{Arrival, ByteTransport, Listen, Opening, Target, Targets};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;

/// See the module text.
pub(super) struct Tls;

pub(super) static TLS: Tls = Tls;

const SCHEME: &str = "tls+tcp";

impl ByteTransport for Tls {
    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn capability(&self) -> &'static str {
        "tls"
    }

    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()> {
        TCP.check(address, socket, bind)
    }

    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>> {
        // If the certificate is wrong, the address stays free.
        let server = Server::new(options)?;
        let inner = TCP.listen(address, options)?;
        Ok(Box::new(TlsListener { inner, server }))
    }

    fn resolved(&self, address: &str, options: &Options) -> Vec<String> {
        let endpoints = TCP.resolved(address, options).into_iter();
        endpoints
            .map(|endpoint| renamed(&endpoint, SCHEME))
            .collect()
    }

    fn targets(&self, address: &str, options: &Options) -> Result<Targets> {
        Client::new(address, options)?;
        TCP.targets(address, options)
    }

    fn open(&self, address: &str, target: &Target, options: &Options) -> Result<Opening> {
        let client = Client::new(address, options)?;
        let opening = TCP.open(address, target, options)?;
        Ok(Opening {
            stream: opening.stream.with_layer(client.layer()?),
            ..opening
        })
    }
}

struct TlsListener {
    inner: Box<dyn Listen>,
    server: Server,
}

impl Listen for TlsListener {
    fn accept(&self) -> Result<Option<Arrival>> {
        let layered = |arrival: Arrival| Ok(arrival?.with_layer(self.server.layer()?));
        Ok(self.inner.accept()?.map(layered))
    }

    fn endpoint(&self) -> String {
        renamed(&self.inner.endpoint(), SCHEME)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.inner.fd()
    }
}

/// Makes the layers of the connections that a bound address accepts.
pub(super) struct Server {
    config: Arc<ServerConfig>,
}

impl Server {
    /// Reads the certificate and its key.
    ///
    /// # Errors
    /// If they are missing or wrong.
    pub(super) fn new(options: &Options) -> Result<Server> {
        let config = Arc::new(settings::server(&options.tls)?);
        Ok(Server { config })
    }

    /// # Errors
    /// If rustls refuses the configuration.
    pub(super) fn layer(&self) -> Result<TlsLayer> {
        TlsLayer::server(self.config.clone())
    }
}

/// Makes the layer of a connection to an address.
pub(super) struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    is_checked: bool,
}

impl Client {
    /// Reads the certificates, unless the options have been used before and have not changed since.
    ///
    /// # Errors
    /// If a certificate or key is wrong, or the host cannot be in a certificate.
    pub(super) fn new(address: &str, options: &Options) -> Result<Client> {
        let tls = &options.tls;
        let config = match tls.client.get() {
            Some(config) => config.clone(),
            None => {
                let config = Arc::new(settings::client(tls)?);
                tls.client.get_or_init(|| config).clone()
            }
        };
        Ok(Client {
            config,
            name: server_name(address, &tls.hostname)?,
            is_checked: !tls.unverified,
        })
    }

    /// # Errors
    /// If rustls refuses the configuration.
    pub(super) fn layer(self) -> Result<TlsLayer> {
        let mut layer = TlsLayer::client(self.config, self.name)?;
        layer.is_private = self.is_checked;
        Ok(layer)
    }
}

/// The name that the server's certificate must have.
fn server_name(address: &str, hostname: &str) -> Result<ServerName<'static>> {
    let invalid = |name: &str| {
        let text = format!(
            "'{name}' is neither a host name nor an IP address, so no certificate can have it; set TLS_HOSTNAME to the name in the server's certificate"
        );
        Error::with(ErrorKind::Invalid, text)
    };
    let name = match hostname {
        "" => match address::to_connect(address)?.1.host {
            Host::Ip(ip, _) => return Ok(ServerName::IpAddress(ip.into())),
            Host::Name(name) => name,
            Host::Any => return Err(invalid("*")),
        },
        name => name.to_owned(),
    };
    ServerName::try_from(name.clone()).map_err(|_| invalid(&name))
}

#[cfg(test)]
mod tests;
