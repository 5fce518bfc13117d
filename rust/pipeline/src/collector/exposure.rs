//! Checks that a collector without keys is not reachable from other machines, unless the configuration allows it.

use std::net::IpAddr;

use crate::collector::CollectorError;
use crate::collector::config::Config;

/// Whether every bound address is encrypted, local, or intentionally open.
pub(super) fn check(config: &Config) -> Result<(), CollectorError> {
    if config.open_to_network || config.security.is_some() {
        return Ok(());
    }
    let bound = |address: &String| {
        let address = address.strip_prefix("bind:").unwrap_or(address);
        (!address.starts_with("connect:")).then(|| address.to_owned())
    };
    let plain = &config.plain;
    let peers = plain.pull.iter().chain(&plain.dealer).filter_map(bound);
    let publishers = plain.subscribe.iter();
    let publishers = publishers.filter_map(|(address, _)| address.strip_prefix("bind:"));
    let mut all = std::iter::once(config.bind.clone())
        .chain(peers)
        .chain(publishers.map(str::to_owned));
    match all.find(|address| !is_local(address)) {
        Some(endpoint) => Err(CollectorError::Open { endpoint }),
        None => Ok(()),
    }
}

/// Whether clients on other machines cannot connect to an address. The name of a host or interface is not sufficient to
/// know.
fn is_local(endpoint: &str) -> bool {
    let Some(address) = endpoint.strip_prefix("tcp://") else {
        return true;
    };
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
    host == "localhost" || host == "lo" || host.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_local_and_everything_else_of_tcp_is_not() {
        let local = [
            "tcp://127.0.0.1:5555",
            "tcp://127.8.0.1:*",
            "tcp://localhost:5555",
            "tcp://lo:5555",
            "tcp://[::1]:5555",
            "tcp://[::ffff:127.0.0.1]:5555",
            "ipc:///run/collector",
            "inproc://collector",
        ];
        let open = [
            "tcp://*:5555",
            "tcp://0.0.0.0:5555",
            "tcp://[::]:*",
            "tcp://10.0.0.1:5555",
            "tcp://eth0:5555",
            "tcp://collector-0:5555",
            "tcp://127.0.0.1.example.org:5555",
            "tcp://[::ffff:10.0.0.1]:5555",
            "tcp://",
        ];
        for endpoint in local {
            assert!(is_local(endpoint), "{endpoint}");
        }
        for endpoint in open {
            assert!(!is_local(endpoint), "{endpoint}");
        }
    }

    #[test]
    fn every_socket_that_is_bound_counts() {
        let local = Config::new("log");
        assert!(check(&local).is_ok());
        let with = |change: &dyn Fn(&mut Config)| {
            let mut config = local.clone();
            change(&mut config);
            check(&config).is_ok()
        };
        let open = || "tcp://*:1".to_owned();
        assert!(!with(&|config| config.bind = open()));
        assert!(!with(&|config| config.plain.pull = vec![open()]));
        assert!(!with(
            &|config| config.plain.dealer = vec![format!("bind:{}", open())]
        ));
        let subscribe = |address: String| vec![(address, Vec::new())];
        assert!(!with(
            &|config| config.plain.subscribe = subscribe(format!("bind:{}", open()))
        ));
        // A socket that connects accepts no clients.
        assert!(with(
            &|config| config.plain.pull = vec!["connect:tcp://far:1".to_owned()]
        ));
        assert!(with(
            &|config| config.plain.subscribe = subscribe("tcp://far:1".to_owned())
        ));
        assert!(with(&|config| {
            config.bind = open();
            config.open_to_network = true;
        }));
    }
}
