//! The errors of TLS in words, and what to do about them.

use std::io;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error as TlsError};

use crate::error::{Error, ErrorKind};
use crate::sys::errno;

/// The first byte of ZMTP.
const ZMTP: u8 = 0xff;
const PROTOCOL: ErrorKind = ErrorKind::Os(errno::PROTOCOL);

/// This side's part in the conversation.
#[derive(Debug)]
pub(super) enum Side {
    /// It has accepted the connection.
    Server,
    /// It has connected to a server of this name.
    Client { server: String },
}

impl Side {
    fn peer(&self) -> String {
        match self {
            Side::Server => "the client".to_owned(),
            Side::Client { server } => format!("the server {server}"),
        }
    }
}

/// The error that ends a connection. `bytes` are those that the peer sent last.
pub(super) fn explain(error: &TlsError, side: &Side, bytes: &[u8]) -> Error {
    let peer = side.peer();
    let (kind, text) = match error {
        TlsError::InvalidCertificate(error) => (ErrorKind::Access, certificate(error, side)),
        TlsError::NoCertificatesPresented => (
            ErrorKind::Access,
            format!("{peer} has no certificate, and TLS_CLIENT_AUTH requires one"),
        ),
        TlsError::AlertReceived(alert) => (ErrorKind::Access, refusal(*alert, side)),
        TlsError::NoApplicationProtocol => (
            PROTOCOL,
            format!("{peer} offers no protocol that is in TLS_ALPN"),
        ),
        TlsError::PeerIncompatible(why) => (
            PROTOCOL,
            format!("{peer} has no version or algorithm of TLS in common with this side: {why:?}"),
        ),
        TlsError::InvalidMessage(_) if bytes.first() == Some(&ZMTP) => (
            PROTOCOL,
            match side {
                Side::Server => {
                    format!("{peer} speaks ZMTP without TLS; let it connect to tls+tcp://")
                }
                Side::Client { .. } => {
                    format!(
                        "{peer} speaks ZMTP without TLS; connect to tcp:// or let it bind to tls+tcp://"
                    )
                }
            },
        ),
        TlsError::InvalidMessage(_) => (PROTOCOL, format!("{peer} does not speak TLS: {error}")),
        _ => (PROTOCOL, format!("TLS with {peer} failed: {error}")),
    };
    Error::with(kind, text)
}

/// The connection ended before the handshake was over.
pub(super) fn gone(side: &Side, error: Option<io::Error>) -> Error {
    let why = match side {
        Side::Server => "it may not trust this side's certificate, or expect another protocol",
        Side::Client { .. } => "if it is bound to tcp://, connect to that",
    };
    let peer = side.peer();
    let text = format!("{peer} ended the connection during the TLS handshake; {why}");
    match error {
        None => Error::with(ErrorKind::Os(errno::CONNECTION_RESET), text),
        Some(error) => Error::from(error).about(text),
    }
}

/// The connection ended without an end of TLS.
pub(super) fn cut(side: &Side) -> Error {
    let peer = side.peer();
    let text = format!(
        "the connection was cut: {peer} has not ended it in TLS (close_notify), so what it sent last may be missing"
    );
    Error::with(ErrorKind::Os(errno::CONNECTION_RESET), text)
}

fn certificate(error: &CertificateError, side: &Side) -> String {
    let peer = side.peer();
    let whose = format!("the certificate of {peer}");
    let ca = match side {
        Side::Server => "TLS_CA",
        Side::Client { .. } => "TLS_CA (without it, the system's CAs count)",
    };
    match error {
        CertificateError::Expired => format!("{whose} has expired; renew it"),
        CertificateError::ExpiredContext { time, not_after } => {
            let ago = days(*time, *not_after);
            format!("{whose} expired {ago} ago; renew it, or set the clock of this machine")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{whose} is not valid yet; set the clock of this machine")
        }
        // Another CA may have the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            format!(
                "{whose} is not from a CA that is trusted here; put its CA's certificate into {ca}"
            )
        }
        CertificateError::NotValidForName => {
            format!("{whose} has another name; set TLS_HOSTNAME to a name that it has")
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let expected = expected.to_str();
            match presented.is_empty() {
                true => format!(
                    "{whose} has no name in subjectAltName; make one that is for {expected}"
                ),
                false => format!(
                    "{whose} is for {}, not for {expected}; set TLS_HOSTNAME to a name that it has",
                    presented
                        .iter()
                        .map(|name| bare(name))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            }
        }
        CertificateError::Revoked => format!("{whose} is revoked"),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            let purpose = match side {
                Side::Server => "clientAuth",
                Side::Client { .. } => "serverAuth",
            };
            format!("{whose} is for another purpose; its extendedKeyUsage must have {purpose}")
        }
        error if error.to_string().contains("CaUsedAsEndEntity") => {
            format!("{whose} is that of a CA (CA:TRUE); sign one for the host with it")
        }
        error => format!("{whose} is refused: {error}"),
    }
}

/// The name in `DnsName("name")` or `IpAddress(name)`, as webpki writes it.
fn bare(name: &str) -> &str {
    let (_, inside) = name.split_once('(').unwrap_or(("", name));
    inside.trim_matches([')', '"'])
}

fn days(now: UnixTime, then: UnixTime) -> String {
    let seconds = now.as_secs().saturating_sub(then.as_secs());
    match seconds / 86_400 {
        0 => "less than a day".to_owned(),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

/// The peer has sent an alert.
fn refusal(alert: AlertDescription, side: &Side) -> String {
    let peer = side.peer();
    match alert {
        // The second one follows if another CA has the same name.
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            format!(
                "{peer} does not trust the CA of this side's certificate; it has to know that CA"
            )
        }
        AlertDescription::CertificateExpired => {
            format!("{peer} says that this side's certificate has expired; renew it")
        }
        AlertDescription::CertificateRequired => {
            format!("{peer} requires a certificate; set TLS_CERTIFICATE and TLS_KEY")
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateUnknown => {
            format!("{peer} refuses this side's certificate ({alert:?})")
        }
        AlertDescription::NoApplicationProtocol => {
            format!("{peer} speaks none of the protocols in TLS_ALPN")
        }
        AlertDescription::UnrecognisedName => {
            format!("{peer} does not know the name that was asked for; see TLS_HOSTNAME")
        }
        AlertDescription::ProtocolVersion
        | AlertDescription::HandshakeFailure
        | AlertDescription::InsufficientSecurity => {
            format!(
                "{peer} has no version or algorithm of TLS in common with this side ({alert:?})"
            )
        }
        alert => format!("{peer} ended the connection with the TLS alert {alert:?}"),
    }
}
