//! The state that the lock of a node protects: the machine, the sockets, and the events that the program has not read.

use std::collections::{HashMap, VecDeque};
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use zeroxide::{Error, ErrorKind, Message, Result, Socket, Wait};

use crate::beacon::{Beacon, Received};
use crate::event::Event;
use crate::gossip::{Errand, Exchange, Place};
use crate::id::NodeId;
use crate::machine::{Command, Machine};

/// Events that the program has not read, at most, and the bytes of their messages.
pub(crate) const EVENTS_MAX: usize = 10_000;
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Messages taken from one socket before the other sockets and the timers have their turn.
const TURN: usize = 100;

/// How long the mailbox of a peer keeps sending after this node has said goodbye.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// A function that takes each event, and `None` at the end, under the lock of the node. It returns whether it wants more.
pub(crate) type Watcher = Box<dyn FnMut(Option<&Event>) -> bool + Send>;

/// The parts of a node besides its machine.
pub(crate) struct Parts {
    /// The ROUTER that receives from all peers.
    pub(crate) inbox: Socket,
    /// Makes a DEALER for a peer, which is not connected yet.
    pub(crate) open_mailbox: Box<dyn Fn() -> Result<Socket> + Send>,
    /// None if the node sends no beacons.
    pub(crate) beacon: Option<Beacon>,
    /// Its place in the gossip network, if it has one.
    pub(crate) exchange: Option<Exchange>,
    /// The ROUTER of the nodes that connect to it there; none if none can.
    pub(crate) gossip_clients: Option<Socket>,
    /// The DEALERs of those that it connects to.
    pub(crate) gossip_remotes: Vec<Socket>,
    /// How many events wait for the program.
    pub(crate) events_max: usize,
}

/// The machine, the sockets and the events.
pub(crate) struct State {
    pub(crate) machine: Machine,
    parts: Parts,
    mailboxes: HashMap<NodeId, Socket>,
    events: VecDeque<Event>,
    bytes: usize,
    /// Whether the program has ever asked for an event.
    is_read: bool,
    watchers: Vec<(u64, Watcher)>,
    watched: u64,
    pub(super) is_closing: bool,
    pub(super) is_closed: bool,
    /// Why the node has failed.
    pub(super) error: Option<Error>,
}

impl State {
    pub(super) fn new(machine: Machine, parts: Parts) -> State {
        State {
            machine,
            parts,
            mailboxes: HashMap::new(),
            events: VecDeque::new(),
            bytes: 0,
            is_read: false,
            watchers: Vec::new(),
            watched: 0,
            is_closing: false,
            is_closed: false,
            error: None,
        }
    }

    /// Messages, beacons, tuples and events that were not what the protocol asks for, or found no room.
    pub(crate) fn dropped(&self) -> u64 {
        let gossip = self.parts.exchange.as_ref().map_or(0, Exchange::dropped);
        self.machine.dropped() + gossip
    }

    pub(super) fn check(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None if self.is_closing || self.is_closed => {
                Err(Error::with(ErrorKind::NotSocket, "this node was stopped"))
            }
            None => Ok(()),
        }
    }

    /// Adds a watcher, and returns its number.
    pub(super) fn watch(&mut self, watcher: Watcher) -> u64 {
        self.watched += 1;
        self.watchers.push((self.watched, watcher));
        self.watched
    }

    pub(super) fn unwatch(&mut self, number: u64) {
        self.watchers.retain(|(other, _)| *other != number);
    }

    /// The next event that the program has not read.
    pub(super) fn take(&mut self) -> Option<Event> {
        self.is_read = true;
        let event = self.events.pop_front()?;
        self.bytes -= event.size();
        Some(event)
    }

    fn is_full(&self) -> bool {
        self.events.len() >= self.parts.events_max || self.bytes >= BYTES_MAX
    }

    /// Whether messages wait in the inbox until the program reads. They do not wait for one that never reads.
    pub(super) fn is_stalled(&self) -> bool {
        self.is_read && self.is_full()
    }

    pub(super) fn due(&self) -> Instant {
        let due = self.machine.poll_timeout();
        match &self.parts.exchange {
            None => due,
            Some(exchange) => exchange
                .poll_timeout()
                .map_or(due.min(Instant::now()), |at| at.min(due)),
        }
    }

    /// The sockets to wait for, and the descriptor of the beacon.
    pub(super) fn sources(&self) -> (Vec<Socket>, Option<RawFd>) {
        let mut sockets = self.parts.gossip_remotes.clone();
        sockets.extend(self.parts.gossip_clients.clone());
        if !self.is_stalled() {
            sockets.push(self.parts.inbox.clone());
        }
        (sockets, self.parts.beacon.as_ref().map(Beacon::descriptor))
    }

    pub(super) fn take_everything(&mut self) -> Result<()> {
        // Messages first: a peer whose answer has arrived is alive, however late this process reads it.
        let has_read = !self.is_stalled();
        for _ in 0..TURN {
            let message = match self.is_stalled() {
                true => None,
                false => received(&self.parts.inbox)?,
            };
            let Some(message) = message else {
                break;
            };
            self.machine.handle_message(message, Instant::now());
            self.carry_out()?;
        }
        self.take_gossip()?;
        for _ in 0..TURN {
            match self.parts.beacon.as_ref().map(Beacon::receive) {
                Some(Received::Datagram(datagram, host)) => {
                    self.machine.handle_beacon(&datagram, &host, Instant::now());
                }
                Some(Received::Foreign) => {}
                Some(Received::Nothing) | None => break,
            }
        }
        self.machine.handle_timeout(Instant::now(), has_read);
        self.carry_out()
    }

    fn take_gossip(&mut self) -> Result<()> {
        let remotes = self.parts.gossip_remotes.clone();
        for (number, remote) in remotes.iter().enumerate() {
            for _ in 0..TURN {
                let Some(message) = received(remote)? else {
                    break;
                };
                if let Some(exchange) = &mut self.parts.exchange {
                    match message.len() {
                        1 => exchange.handle_remote(
                            number,
                            message.head().as_slice(),
                            Instant::now(),
                        ),
                        _ => exchange.handle_other(),
                    }
                }
                self.carry_out()?;
            }
        }
        for _ in 0..TURN {
            let clients = self.parts.gossip_clients.as_ref();
            let Some(message) = clients.map_or(Ok(None), received)? else {
                break;
            };
            if let Some(exchange) = &mut self.parts.exchange {
                match (message.len(), message.last()) {
                    (2, frame) => {
                        let client = message.head().as_slice();
                        exchange.handle_client(client, frame.as_slice(), Instant::now());
                    }
                    _ => exchange.handle_other(),
                }
            }
            self.carry_out()?;
        }
        if let Some(exchange) = &mut self.parts.exchange {
            exchange.handle_timeout(Instant::now());
        }
        Ok(())
    }

    pub(super) fn carry_out(&mut self) -> Result<()> {
        self.carry_out_gossip()?;
        while let Some(command) = self.machine.poll_command() {
            match command {
                Command::Send { peer, message } => self.send(peer, message)?,
                Command::Connect { peer, endpoint } => self.connect(peer, &endpoint)?,
                Command::Disconnect { peer, drains } => {
                    if let Some(mailbox) = self.mailboxes.remove(&peer) {
                        let linger = if drains { LINGER } else { Duration::ZERO };
                        mailbox.close(Some(Some(linger)));
                    }
                }
                Command::Forget { peer } => {
                    if let Some(exchange) = &mut self.parts.exchange {
                        exchange.forget(peer.digits().as_bytes());
                    }
                }
                Command::Announce { beacon } => {
                    if let Some(socket) = &mut self.parts.beacon {
                        socket.send(&beacon);
                    }
                }
            }
        }
        while let Some(event) = self.machine.poll_event() {
            self.report(event);
        }
        Ok(())
    }

    fn carry_out_gossip(&mut self) -> Result<()> {
        let Some(exchange) = &mut self.parts.exchange else {
            return Ok(());
        };
        while let Some(errand) = exchange.poll_errand() {
            let sent = match (&errand.to, &self.parts.gossip_clients) {
                (Place::Remote(number), _) => {
                    let remote = self.parts.gossip_remotes.get(*number);
                    remote.map_or(Ok(()), |remote| {
                        remote.send(errand.frame.clone(), Wait::Dont)
                    })
                }
                (Place::Client(client), Some(clients)) => {
                    clients.send([client.clone(), errand.frame.clone()], Wait::Dont)
                }
                (Place::Client(_), None) => Ok(()),
            };
            match sent.map_err(Error::from) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Again => {
                    exchange.handle_full(errand, Instant::now());
                }
                Err(error) => match errand {
                    Errand {
                        to: Place::Client(client),
                        ..
                    } if error.kind() == ErrorKind::HostUnreachable => {
                        exchange.handle_gone(&client);
                    }
                    _ => return Err(error),
                },
            }
        }
        while let Some((key, value)) = exchange.poll_news() {
            self.machine
                .handle_announcement(&key, &value, Instant::now());
        }
        Ok(())
    }

    fn connect(&mut self, peer: NodeId, endpoint: &str) -> Result<()> {
        let mailbox = match (self.parts.open_mailbox)() {
            Ok(mailbox) => mailbox,
            Err(error) if error.kind() == ErrorKind::Terminated => return Err(error),
            Err(_) => {
                self.machine.handle_failure(peer);
                return Ok(());
            }
        };
        match mailbox.connect(endpoint) {
            Ok(_) => {
                self.mailboxes.insert(peer, mailbox);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Terminated => Err(error),
            Err(_) => {
                // A peer may name any text as its endpoint.
                mailbox.close(Some(Some(Duration::ZERO)));
                self.machine.handle_failure(peer);
                Ok(())
            }
        }
    }

    fn send(&mut self, peer: NodeId, message: Message) -> Result<()> {
        let Some(mailbox) = self.mailboxes.get(&peer) else {
            return Ok(());
        };
        match mailbox.send(message, Wait::Dont).map_err(Error::from) {
            Err(error) if error.kind() == ErrorKind::Again => {
                self.machine.handle_full(peer);
                Ok(())
            }
            sent => sent,
        }
    }

    fn report(&mut self, event: Event) {
        self.watchers
            .retain_mut(|(_, watcher)| watcher(Some(&event)));
        if self.is_full() && !self.is_read {
            self.machine.note_dropped();
        } else {
            self.bytes += event.size();
            self.events.push_back(event);
        }
    }

    /// Says goodbye to the peers. A node that ends has no use for errors.
    pub(super) fn say_goodbye(&mut self) {
        self.machine.handle_close();
        let _ = self.carry_out();
    }

    /// Closes the sockets.
    pub(super) fn end(&mut self) {
        self.is_closed = true;
        let others = self
            .parts
            .gossip_remotes
            .iter()
            .chain(&self.parts.gossip_clients);
        // A peer that cannot be reached must not keep the context from ending.
        for socket in self
            .mailboxes
            .values()
            .chain(others)
            .chain([&self.parts.inbox])
        {
            socket.close(Some(Some(LINGER)));
        }
        self.mailboxes.clear();
        self.parts.beacon = None;
        for (_, watcher) in &mut self.watchers {
            watcher(None);
        }
        self.watchers.clear();
    }
}

/// The next message of a socket, if there is one now.
fn received(socket: &Socket) -> Result<Option<Message>> {
    match socket.recv(Wait::Dont) {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == ErrorKind::Again => Ok(None),
        Err(error) => Err(error),
    }
}
