//! Services in the DNS: the addresses of a name, as of a headless service of Kubernetes, and SRV records.

#[cfg(feature = "srv")]
mod records;

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use dns_lookup::{AddrFamily, AddrInfoHints, LookupErrorKind, SockType, getaddrinfo};
use zeroxide::{Error, ErrorKind, Result};

#[cfg(feature = "srv")]
pub(crate) use records::services_of;

const DNS: &str = "dns://";
const SRV: &str = "srv://";

/// A function that looks up the endpoints of a service. An error means that no server of the DNS answers, so it is not
/// known which providers there are.
pub(crate) type Resolve = Box<dyn Fn() -> Result<BTreeSet<String>> + Send>;

/// A service in the DNS, as its text says.
pub(crate) enum Service<'a> {
    /// Each address of a host, with a port.
    Addresses(&'a str, u16),
    /// The hosts and ports of SRV records.
    Records(&'a str),
}

/// Whether a service is one of the DNS.
pub(crate) fn is_of_dns(service: &str) -> bool {
    service.starts_with(DNS) || service.starts_with(SRV)
}

/// Reads the text of a service.
pub(crate) fn read(service: &str) -> Result<Service<'_>> {
    let malformed = |form: &str| {
        let text = format!("a service in the DNS is '{form}', not {service:?}");
        Error::with(ErrorKind::Invalid, text)
    };
    if let Some(name) = service.strip_prefix(SRV) {
        return match name {
            "" => Err(malformed("srv://_name._tcp.domain")),
            _ => Ok(Service::Records(name)),
        };
    }
    let Some(place) = service.strip_prefix(DNS) else {
        let text = format!(
            "service {service:?} needs a node to find it: use Node::follow, or name 'dns://host:port' or \
             'srv://_name._tcp.domain'"
        );
        return Err(Error::with(ErrorKind::Invalid, text));
    };
    let parts = place.rsplit_once(':').filter(|(host, port)| {
        !host.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit())
    });
    let parts = parts.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    match parts {
        Some((host, port)) if port > 0 => Ok(Service::Addresses(host, port)),
        _ => Err(malformed("dns://host:port")),
    }
}

/// Returns a function that looks up the addresses of a host. It may wait as long as the system's resolver does.
pub(crate) fn addresses_of(host: &str, port: u16, ipv6: bool) -> Resolve {
    let host = host.to_owned();
    let hints = AddrInfoHints {
        socktype: SockType::Stream.into(),
        address: if ipv6 { 0 } else { AddrFamily::Inet.into() },
        ..AddrInfoHints::default()
    };
    Box::new(move || {
        let found = match getaddrinfo(Some(&host), None, Some(hints)) {
            Ok(found) => found.collect::<io::Result<Vec<_>>>(),
            Err(error) => match error.kind() {
                LookupErrorKind::NoName | LookupErrorKind::NoData => Ok(Vec::new()),
                _ => Err(error.into()),
            },
        };
        let found = found.map_err(|error| unanswered(&host, &error))?;
        Ok(found
            .iter()
            .map(|address| match address.sockaddr.ip() {
                IpAddr::V4(ip) => endpoint(&ip.to_string(), port),
                IpAddr::V6(ip) => endpoint(&format!("[{ip}]"), port),
            })
            .collect())
    })
}

fn endpoint(host: &str, port: u16) -> String {
    format!("tcp://{host}:{port}")
}

fn unanswered(name: &str, error: &dyn std::error::Error) -> Error {
    Error::with(ErrorKind::HostUnreachable, format!("{name}: {error}"))
}
