//! The options of a node.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zeroxide::binding::SocketInternals;
use zeroxide::{Context, Error, ErrorKind, Result, Socket, SocketType};

use super::addresses::Addresses;
use super::{Node, check_name};
use crate::beacon::Beacon;
use crate::driver::{Driver, EVENTS_MAX, Parts, of_system};
use crate::event::Headers;
use crate::gossip::Exchange;
use crate::id::NodeId;
use crate::interfaces::interfaces;
use crate::machine::{Identity, Machine, Timing};
use crate::services;
use crate::wire::{BEACON_PORT, MAX_FRAME, MAX_HEADERS, MAX_HELLO, SHORT_MAX};

/// Messages that wait for one peer, at most. A peer for which there are more does not read.
const MAILBOX: usize = 100_000;

const MESSAGE_MAX: usize = 64 * 1024 * 1024;

/// Bytes of gossip that wait for one node, at most. A node for which there is more catches up later.
const GOSSIP_WAITS: usize = 128 * 1024;

/// The longest time that makes sense for an option.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

type Configure = Arc<dyn Fn(&Socket) -> Result<()> + Send + Sync>;

/// The options of a [`Node`]. [`start`](Self::start) starts it.
#[must_use]
pub struct Builder {
    name: String,
    headers: Headers,
    services: Vec<(String, String)>,
    interface: Option<String>,
    port: Option<u16>,
    gossip: Vec<String>,
    gossip_bind: Option<String>,
    endpoint: Option<String>,
    advertised: Option<String>,
    timing: Timing,
    max_peers: usize,
    context: Option<Context>,
    configure: Option<Configure>,
    /// How many events wait for the program. Tests set it.
    pub(super) events_max: usize,
}

impl Builder {
    pub(super) fn new(name: String) -> Builder {
        Builder {
            name,
            headers: Headers::new(),
            services: Vec::new(),
            interface: None,
            port: None,
            gossip: Vec::new(),
            gossip_bind: None,
            endpoint: None,
            advertised: None,
            timing: Timing {
                interval: Duration::from_secs(1),
                evasive: Duration::from_secs(5),
                expired: Duration::from_secs(30),
            },
            max_peers: 1024,
            context: None,
            configure: None,
            events_max: EVENTS_MAX,
        }
    }

    /// Adds a property that peers receive with [`Event::Enter`](crate::Event::Enter). There are up to 256 headers, of
    /// 32 KiB all together.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Builder {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Adds a service that this program offers at a tcp endpoint, such as the result of
    /// [`Socket::bind`]. Peers know it as the header `X-SERVICE-name`. One that is bound to all addresses, such as
    /// `tcp://*:5555`, is found at the address of the node.
    pub fn offer(mut self, service: impl Into<String>, endpoint: impl Into<String>) -> Builder {
        self.services.push((service.into(), endpoint.into()));
        self
    }

    /// Uses only the interface with this name or address, such as `lo`. Default: all that broadcast.
    pub fn interface(mut self, interface: impl Into<String>) -> Builder {
        self.interface = Some(interface.into());
        self
    }

    /// Sends beacons at this UDP port. Default: 5670, or no beacons if there is gossip.
    pub fn port(mut self, port: u16) -> Builder {
        self.port = Some(port);
        self
    }

    /// Connects to a gossip endpoint of another node, such as [`Node::gossip_endpoint`]. Can be called several times.
    pub fn gossip(mut self, endpoint: impl Into<String>) -> Builder {
        self.gossip.push(endpoint.into());
        self
    }

    /// Binds to an endpoint where other nodes connect for gossip: `tcp://*:5670`.
    pub fn gossip_bind(mut self, endpoint: impl Into<String>) -> Builder {
        self.gossip_bind = Some(endpoint.into());
        self
    }

    /// Binds to this endpoint for messages. Default: a free tcp port.
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Builder {
        self.endpoint = Some(endpoint.into());
        self
    }

    /// Tells peers that they reach [`endpoint`](Self::endpoint) here, from their side of a NAT.
    pub fn advertised(mut self, endpoint: impl Into<String>) -> Builder {
        self.advertised = Some(endpoint.into());
        self
    }

    /// Sets how often a beacon is sent. Default: every second.
    pub fn interval(mut self, interval: Duration) -> Builder {
        self.timing.interval = interval;
        self
    }

    /// Sets for how long a peer may be silent before it is evasive. It gets pings from half of this time on. Default:
    /// 5 s.
    pub fn evasive(mut self, time: Duration) -> Builder {
        self.timing.evasive = time;
        self
    }

    /// Sets for how long a peer may be silent before it is gone. Default: 30 s.
    pub fn expired(mut self, time: Duration) -> Builder {
        self.timing.expired = time;
        self
    }

    /// Sets how many peers the node has at most. Default: 1024.
    pub fn max_peers(mut self, count: usize) -> Builder {
        self.max_peers = count;
        self
    }

    /// Makes the sockets in this context. Default: one of the node's own, which ends with the node.
    ///
    /// The limit of sockets of another context must be at least twice the maximum of peers, plus what the program uses.
    pub fn context(mut self, context: &Context) -> Builder {
        self.context = Some(context.clone());
        self
    }

    /// Calls a function that sets options, such as keys, of each socket before it binds or connects. The node calls it in
    /// its own thread, too, and it must not call the node.
    pub fn configure(
        mut self,
        configure: impl Fn(&Socket) -> Result<()> + Send + Sync + 'static,
    ) -> Builder {
        self.configure = Some(Arc::new(configure));
        self
    }

    /// Starts the node.
    ///
    /// # Errors
    /// `Invalid` if an option is out of range, `NoDevice` if no interface that broadcasts has this name or address, what
    /// [`Socket::bind`] and [`Socket::connect`] return, and the system's error if another program does not share the
    /// port of the beacons.
    pub fn start(self) -> Result<Node> {
        let id = NodeId::random().map_err(|error| of_system(&error))?;
        let name = match self.name.is_empty() {
            true => id.digits()[..6].to_owned(),
            false => self.name.clone(),
        };
        check_name("the name of a node", &name)?;
        let headers = self.checked_headers()?;
        self.check()?;
        let host = self.host()?;
        let (context, owned) = match &self.context {
            Some(context) => (context.clone(), None),
            None => {
                let context = Context::new();
                // A mailbox for each peer, those that still say goodbye, and the other sockets.
                context.set_max_sockets(self.max_peers.saturating_mul(2).clamp(1000, 1 << 30))?;
                (context.clone(), Some(context))
            }
        };
        let opener = Opener {
            context,
            configure: self.configure.clone(),
        };

        let inbox = opener.open(SocketType::Router, |socket| {
            socket.set_router_handover(true)?;
            socket.set_maxmsgsize(Some(MESSAGE_MAX))
        })?;
        let bound = inbox.bind(&self.bind_endpoint(host))?;
        let addresses = Addresses::new(&bound, self.advertised.as_deref(), host);
        let port = self.beacon_port();
        let announced = match port {
            None => None,
            Some(_) => Some(addresses.port().ok_or_else(|| {
                let text = format!("beacons announce a tcp port, and the endpoint is {bound}");
                Error::with(ErrorKind::Invalid, text)
            })?),
        };
        let (gossip_clients, gossip_endpoint) = self.open_gossip_clients(&opener)?;
        let gossip_remotes = self.open_gossip_remotes(&opener)?;
        let endpoint = addresses.seen_from("");
        if endpoint.len() > SHORT_MAX {
            let text = format!("an endpoint has up to {SHORT_MAX} bytes: {endpoint}");
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        let now = Instant::now();
        let exchange = (gossip_clients.is_some() || !gossip_remotes.is_empty()).then(|| {
            let mut exchange = Exchange::new(gossip_remotes.len(), now);
            exchange.publish(id.digits().as_bytes(), endpoint.as_bytes(), now);
            exchange
        });
        let beacon = port.map(|port| Beacon::open(port, self.interface.as_deref()));
        let beacon = beacon.transpose().map_err(|error| of_system(&error))?;
        let identity = Identity {
            id,
            name: name.clone(),
            port: announced,
            headers,
            timing: self.timing,
            max_peers: self.max_peers,
            endpoint_for: Box::new(move |remote| addresses.seen_from(remote)),
        };
        let parts = Parts {
            inbox,
            open_mailbox: Box::new(move || opener.open_mailbox(id)),
            beacon,
            exchange,
            gossip_clients,
            gossip_remotes,
            events_max: self.events_max,
        };
        let driver = Driver::start(Machine::new(identity, now), parts, &name)?;
        Ok(Node {
            driver,
            id,
            name,
            endpoint,
            gossip_endpoint,
            context: owned,
        })
    }

    fn has_gossip(&self) -> bool {
        self.gossip_bind.is_some() || !self.gossip.is_empty()
    }

    fn beacon_port(&self) -> Option<u16> {
        match self.has_gossip() {
            true => self.port,
            false => Some(self.port.unwrap_or(BEACON_PORT)),
        }
    }

    fn bind_endpoint(&self, host: Ipv4Addr) -> String {
        match (&self.endpoint, &self.interface) {
            (Some(endpoint), _) => endpoint.clone(),
            (None, Some(_)) => format!("tcp://{host}:*"),
            (None, None) => "tcp://*:*".to_owned(),
        }
    }

    /// The address of the interface, or of the first one.
    fn host(&self) -> Result<Ipv4Addr> {
        let found = interfaces(self.interface.as_deref()).map_err(|error| of_system(&error))?;
        match (found.first(), &self.interface) {
            (Some(first), _) => Ok(first.address),
            (None, None) => Ok(Ipv4Addr::LOCALHOST),
            (None, Some(chosen)) => {
                let text =
                    format!("no interface that broadcasts has the name or address {chosen:?}");
                Err(Error::with(ErrorKind::NoDevice, text))
            }
        }
    }

    fn check(&self) -> Result<()> {
        let Timing {
            interval,
            evasive,
            expired,
        } = self.timing;
        for (what, time) in [
            ("interval", interval),
            ("evasive", evasive),
            ("expired", expired),
        ] {
            if time < Duration::from_millis(1) || time > LONGEST {
                let text = format!("{what} is 1 ms to a year, and not {time:?}");
                return Err(Error::with(ErrorKind::Invalid, text));
            }
        }
        if self.port == Some(0) || self.max_peers == 0 {
            let text = "the port of beacons and the maximum of peers are at least 1";
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        Ok(())
    }

    fn checked_headers(&self) -> Result<Headers> {
        let mut headers = self.headers.clone();
        for (service, endpoint) in &self.services {
            headers.extend([services::header(service, endpoint)?]);
        }
        for key in headers.keys() {
            check_name("the name of a header", key)?;
        }
        let sizes = headers.iter().map(|(key, value)| key.len() + value.len());
        let size: usize = sizes.sum();
        if headers.len() > MAX_HEADERS || size > MAX_HELLO / 2 {
            let text = format!(
                "a node has up to {MAX_HEADERS} headers with {} bytes, and not {} with {size}",
                MAX_HELLO / 2,
                headers.len()
            );
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        Ok(headers)
    }

    fn open_gossip_clients(&self, opener: &Opener) -> Result<(Option<Socket>, Option<String>)> {
        let Some(endpoint) = &self.gossip_bind else {
            return Ok((None, None));
        };
        let clients = opener.open(SocketType::Router, |socket| {
            socket.set_router_mandatory(true)?;
            limit_gossip(socket)
        })?;
        let bound = clients.bind(endpoint)?;
        Ok((Some(clients), Some(bound)))
    }

    fn open_gossip_remotes(&self, opener: &Opener) -> Result<Vec<Socket>> {
        let open = |endpoint: &String| {
            let remote = opener.open(SocketType::Dealer, |socket| {
                socket.set_linger(Some(Duration::ZERO))?;
                limit_gossip(socket)
            })?;
            remote.connect(endpoint)?;
            Ok(remote)
        };
        self.gossip.iter().map(open).collect()
    }
}

/// Makes the sockets of a node.
struct Opener {
    context: Context,
    configure: Option<Configure>,
}

impl Opener {
    fn open(
        &self,
        socket_type: SocketType,
        set: impl FnOnce(&Socket) -> Result<()>,
    ) -> Result<Socket> {
        let socket = self.context.socket(socket_type)?;
        set(&socket)?;
        if let Some(configure) = &self.configure {
            configure(&socket)?;
        }
        Ok(socket)
    }

    /// Makes the socket that sends to a peer. The peer sends nothing this way.
    fn open_mailbox(&self, own: NodeId) -> Result<Socket> {
        self.open(SocketType::Dealer, |socket| {
            socket.set_routing_id(own.routing_id())?;
            socket.set_sndhwm(MAILBOX)?;
            socket.set_rcvhwm(1)?;
            socket.leave_descriptors()
        })
    }
}

fn limit_gossip(socket: &Socket) -> Result<()> {
    socket.set_sndhwm_bytes(GOSSIP_WAITS)?;
    socket.set_maxmsgsize(Some(MAX_FRAME))
}
