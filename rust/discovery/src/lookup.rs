//! A socket that is connected to every provider of a service in the DNS.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use zeroxide::{Error, ErrorKind, Result, Socket};

use crate::driver::of_system;
use crate::follow::{Follower, Following};
use crate::names::{Resolve, Service, addresses_of, read};

const INTERVAL: Duration = Duration::from_secs(5);
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Looks up the providers of a service in the DNS, again and again.
///
/// | service | the providers |
/// | --- | --- |
/// | `dns://host:port` | each address of the host, such as the pods of a headless service of Kubernetes |
/// | `srv://_name._tcp.domain` | the hosts and ports of SRV records with the lowest priority; needs the feature `srv` |
///
/// ```no_run
/// # fn main() -> zeroxide::Result<()> {
/// use zeroxide::{Context, SocketType, Wait};
/// use zeroxide_discovery::Lookup;
///
/// let context = Context::new();
/// let jobs = context.socket(SocketType::Push)?;
/// let follower = Lookup::new("dns://workers.default.svc.cluster.local:5555").follow(&jobs)?;
/// follower.wait(1, None);
/// jobs.send("a picture", Wait::Forever)?;
/// # Ok(())
/// # }
/// ```
///
/// Source: RFC 2782, DNS SRV; `zeroxide.discovery.follow` in Python.
#[derive(Clone, Debug)]
pub struct Lookup {
    service: String,
    interval: Duration,
    #[cfg(feature = "srv")]
    name_servers: Vec<std::net::SocketAddr>,
}

impl Lookup {
    /// Returns a look-up of a service, every 5 s.
    pub fn new(service: impl Into<String>) -> Lookup {
        Lookup {
            service: service.into(),
            interval: INTERVAL,
            #[cfg(feature = "srv")]
            name_servers: Vec::new(),
        }
    }

    /// Sets how long to wait between two look-ups: 1 ms or more.
    pub fn interval(mut self, interval: Duration) -> Lookup {
        self.interval = interval;
        self
    }

    /// Adds a name server to ask for SRV records. Without any, those of `/etc/resolv.conf` are asked.
    #[cfg(feature = "srv")]
    pub fn name_server(mut self, server: std::net::SocketAddr) -> Lookup {
        self.name_servers.push(server);
        self
    }

    /// Connects a socket to every provider of the service, while they come and go.
    ///
    /// The socket decides what the connections are for: a DEALER or PUSH shares its messages among the providers, and a
    /// SUB receives from all of them. If a provider is gone, its connection ends, and messages that wait for it are lost.
    /// If no name server answers, the connections stay, and [`Follower::error`] has the reason. If the name has no
    /// address or record, they end. Addresses of IPv6 count if the socket has the option IPV6. An answer has up to 1024
    /// endpoints.
    ///
    /// A thread looks the names up. Neither this call nor the end of the follower waits for a name server.
    ///
    /// # Errors
    /// `Invalid` if the service is malformed or the interval is under 1 ms, or the system names no name server;
    /// `NotSupported` if the service has SRV records, and this crate was built without the feature `srv`; and what
    /// reading the socket's option IPV6 or starting a thread returns.
    pub fn follow(&self, socket: &Socket) -> Result<Follower> {
        if self.interval < INTERVAL_MIN {
            let text = format!(
                "the interval of a look-up is 1 ms or more, not {:?}",
                self.interval
            );
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        let resolve = match read(&self.service)? {
            Service::Addresses(host, port) => addresses_of(host, port, socket.ipv6()?),
            Service::Records(name) => self.records_of(name)?,
        };
        start(resolve, self.interval, socket)
    }

    #[cfg(feature = "srv")]
    fn records_of(&self, name: &str) -> Result<Resolve> {
        crate::names::services_of(name, &self.name_servers)
    }

    #[cfg(not(feature = "srv"))]
    fn records_of(&self, name: &str) -> Result<Resolve> {
        let text = format!(
            "srv://{name}: SRV records need the feature \"srv\" of the crate zeroxide-discovery"
        );
        Err(Error::with(ErrorKind::NotSupported, text))
    }
}

/// Starts the thread.
fn start(resolve: Resolve, interval: Duration, socket: &Socket) -> Result<Follower> {
    let following = Arc::new(Following::new(socket));
    let watching = Arc::downgrade(&following);
    let (end, ended) = channel();
    let thread = thread::Builder::new().name("zeroxide_names".to_owned());
    let thread = thread.spawn(move || look_up(&resolve, &watching, &ended, interval));
    thread.map_err(|error| of_system(&error))?;
    Ok(Follower::of_thread(following, end))
}

/// Looks names up until the end. The thread has no hold on the socket while it waits for a name server, so a program
/// that drops both may end.
fn look_up(
    resolve: &Resolve,
    following: &Weak<Following>,
    ended: &Receiver<()>,
    interval: Duration,
) {
    loop {
        let found = resolve();
        let Some(following) = following.upgrade() else {
            return;
        };
        if following.has_closed() {
            following.end();
            return;
        }
        following.replace(found);
        drop(following);
        if ended.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Instant;

    use zeroxide::{Context, SocketType};

    use super::*;

    #[test]
    fn a_look_up_without_an_answer_holds_nothing_up() {
        let context = Context::new();
        let socket = context.socket(SocketType::Push).unwrap();
        let (asks, asked) = channel();
        let (release, released) = channel::<()>();
        let resolve: Resolve = Box::new(move || {
            asks.send(()).unwrap();
            let _ = released.recv();
            Ok(BTreeSet::new())
        });
        let follower = start(resolve, INTERVAL, &socket).unwrap();
        asked.recv().unwrap();
        assert!(!follower.wait(1, Some(Duration::ZERO)));
        assert!(follower.endpoints().is_empty() && !follower.has_ended());
        drop(follower);
        drop(socket);
        // The look-up still waits, and the socket is closed all the same.
        let patience = Duration::from_secs(50);
        context.term_until(Some(Instant::now() + patience)).unwrap();
        drop(release);
    }

    #[test]
    fn an_answer_has_a_bound() {
        let context = Context::new();
        let socket = context.socket(SocketType::Push).unwrap();
        socket.set_linger(Some(Duration::ZERO)).unwrap();
        let resolve: Resolve = Box::new(|| {
            let ports = 1..=1100;
            Ok(ports
                .map(|port| format!("tcp://127.0.0.1:{port}"))
                .collect())
        });
        let follower = start(resolve, INTERVAL, &socket).unwrap();
        assert!(follower.wait(1024, Some(Duration::from_secs(50))));
        assert_eq!(follower.endpoints().len(), 1024);
    }

    #[test]
    fn a_late_answer_connects_nothing() {
        let context = Context::new();
        let socket = context.socket(SocketType::Push).unwrap();
        let following = Following::new(&socket);
        following.end();
        following.replace(Ok(BTreeSet::from(["tcp://127.0.0.1:9".to_owned()])));
        let refused = socket.disconnect("tcp://127.0.0.1:9").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NoEntry);
    }
}
