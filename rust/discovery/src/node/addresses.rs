//! Where peers reach the inbox of a node.

use std::net::Ipv4Addr;

use crate::interfaces::own_address;

const TCP: &str = "tcp://";
const ANYWHERE: [&str; 2] = ["0.0.0.0", "[::]"];

pub(super) struct Addresses {
    bound: String,
    advertised: Option<String>,
    /// The address of the interface, or of the first one.
    host: Ipv4Addr,
}

impl Addresses {
    pub(super) fn new(bound: &str, advertised: Option<&str>, host: Ipv4Addr) -> Addresses {
        Addresses {
            bound: bound.to_owned(),
            advertised: advertised.map(str::to_owned),
            host,
        }
    }

    /// The port that beacons announce; `None` if the inbox is not bound to tcp.
    pub(super) fn port(&self) -> Option<u16> {
        host_and_port(&self.bound)?.1.parse().ok()
    }

    /// The endpoint for a peer at another one: with the address of the interface that leads to it.
    pub(super) fn seen_from(&self, endpoint: &str) -> String {
        if let Some(advertised) = &self.advertised {
            return advertised.clone();
        }
        match host_and_port(&self.bound) {
            Some((host, port)) if ANYWHERE.contains(&host) => {
                // A name could take long to look up, so it leads to the first interface.
                let remote = host_and_port(endpoint).and_then(|(host, _)| host.parse().ok());
                let own = remote.and_then(own_address).unwrap_or(self.host);
                format!("{TCP}{own}:{port}")
            }
            _ => self.bound.clone(),
        }
    }
}

fn host_and_port(endpoint: &str) -> Option<(&str, &str)> {
    endpoint.strip_prefix(TCP)?.rsplit_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_gets_the_address_that_leads_to_it() {
        let host = Ipv4Addr::new(10, 0, 0, 5);
        let everywhere = Addresses::new("tcp://0.0.0.0:49152", None, host);
        assert_eq!(everywhere.port(), Some(49152));
        assert_eq!(
            everywhere.seen_from("tcp://127.0.0.1:7"),
            "tcp://127.0.0.1:49152"
        );
        for unknown in ["", "tcp://name:7", "ipc:///tmp/x"] {
            assert_eq!(everywhere.seen_from(unknown), "tcp://10.0.0.5:49152");
        }
        let behind_nat = Addresses::new("tcp://0.0.0.0:49152", Some("tcp://1.2.3.4:5"), host);
        assert_eq!(behind_nat.seen_from("tcp://127.0.0.1:7"), "tcp://1.2.3.4:5");
        let ipc = Addresses::new("ipc:///tmp/x", None, host);
        assert_eq!(
            (ipc.port(), ipc.seen_from("").as_str()),
            (None, "ipc:///tmp/x")
        );
    }
}
