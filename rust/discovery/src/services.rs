//! Services that nodes offer, as headers: `X-SERVICE-name` with an endpoint.

use zeroxide::{Error, ErrorKind, Result};

use crate::event::Headers;
use crate::id::NodeId;

const PREFIX: &str = "X-SERVICE-";
const TCP: &str = "tcp://";
const ANYWHERE: [&str; 3] = ["*", "0.0.0.0", "[::]"];

/// A node that offers a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// The node.
    pub peer: NodeId,
    /// The name of the node.
    pub name: String,
    /// Where to connect.
    pub endpoint: String,
}

/// Returns the header by which a node offers a service at an endpoint.
pub(crate) fn header(service: &str, endpoint: &str) -> Result<(String, String)> {
    if service.is_empty() {
        return Err(Error::with(
            ErrorKind::Invalid,
            "the name of a service is empty",
        ));
    }
    if !endpoint.starts_with(TCP) {
        let text =
            format!("service {service:?} is at {endpoint:?}, and a service has a tcp endpoint");
        return Err(Error::with(ErrorKind::Invalid, text));
    }
    Ok((format!("{PREFIX}{service}"), endpoint.to_owned()))
}

/// Returns the endpoint at which a node with these headers offers a service. Peers can name any endpoint, and only
/// those of tcp count. `own` is the endpoint of the node itself.
pub(crate) fn endpoint_of(headers: &Headers, service: &str, own: &str) -> Option<String> {
    let endpoint = headers.get(&format!("{PREFIX}{service}"))?;
    let (host, port) = endpoint.strip_prefix(TCP)?.rsplit_once(':')?;
    let host = match host {
        "" => return None,
        // The node is bound to all its addresses, of which this node knows one.
        _ if ANYWHERE.contains(&host) => own.strip_prefix(TCP)?.rsplit_once(':')?.0,
        _ => host,
    };
    Some(format!("{TCP}{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_endpoints_of_tcp_count() {
        for (value, own, found) in [
            (
                "tcp://1.2.3.4:5",
                "tcp://10.0.0.1:1",
                Some("tcp://1.2.3.4:5"),
            ),
            ("tcp://*:5", "tcp://10.0.0.1:1", Some("tcp://10.0.0.1:5")),
            (
                "tcp://0.0.0.0:5",
                "tcp://10.0.0.1:1",
                Some("tcp://10.0.0.1:5"),
            ),
            ("tcp://*:5", "ipc:///tmp/x", None),
            ("ipc:///tmp/secret", "tcp://10.0.0.1:1", None),
            ("inproc://x", "tcp://10.0.0.1:1", None),
            ("tcp://", "tcp://10.0.0.1:1", None),
            ("tcp://5", "tcp://10.0.0.1:1", None),
            ("", "tcp://10.0.0.1:1", None),
        ] {
            let headers = Headers::from([("X-SERVICE-work".to_owned(), value.to_owned())]);
            assert_eq!(
                endpoint_of(&headers, "work", own).as_deref(),
                found,
                "{value}"
            );
            assert_eq!(endpoint_of(&headers, "other", own), None);
        }
    }

    #[test]
    fn a_service_has_a_tcp_endpoint() {
        let (key, value) = header("work", "tcp://*:5555").unwrap();
        assert_eq!((&*key, &*value), ("X-SERVICE-work", "tcp://*:5555"));
        for (service, endpoint) in [("work", "ipc:///tmp/x"), ("", "tcp://*:5")] {
            assert_eq!(
                header(service, endpoint).unwrap_err().kind(),
                ErrorKind::Invalid
            );
        }
    }
}
