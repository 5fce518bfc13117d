//! A node of a ZRE network.

mod addresses;
mod builder;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use zeroxide::{Context, Error, ErrorKind, Message, Result, Wait};

use crate::driver::{Driver, LINGER, State};
use crate::event::{Event, Peer};
use crate::id::NodeId;
use crate::machine::Machine;
use crate::services::{Provider, endpoint_of};
use crate::wire::{MAX_GROUPS, SHORT_MAX};
pub use builder::Builder;

/// A node of a ZRE network: it finds the other nodes, and exchanges messages with them.
///
/// Nodes find each other by UDP broadcasts, or through gossip if the builder has [`gossip`](Builder::gossip) or
/// [`gossip_bind`](Builder::gossip_bind). The node works in a thread of its own from the start, so its peers see it alive
/// while the program computes or waits. It stops when it is dropped.
///
/// ```
/// use std::time::Duration;
/// use zeroxide_discovery::{Event, Node};
///
/// # fn main() -> zeroxide::Result<()> {
/// # let port = 15_670;
/// let kitchen = Node::builder("kitchen").header("floor", "1").interface("lo");
/// # let kitchen = kitchen.port(port);
/// let kitchen = kitchen.start()?;
/// let garden = Node::builder("garden").interface("lo");
/// # let garden = garden.port(port);
/// let garden = garden.start()?;
///
/// kitchen.join("weather")?;
/// for event in garden.events(Some(Duration::from_secs(10))) {
///     if let Event::Join { name, group, .. } = event {
///         assert_eq!((&*name, &*group), ("kitchen", "weather"));
///         break;
///     }
/// }
/// assert_eq!(garden.shout("weather", "it rains")?, 1);
/// # Ok(())
/// # }
/// ```
///
/// Source: RFC 36, ZRE; zyre(3).
pub struct Node {
    driver: Driver,
    id: NodeId,
    name: String,
    endpoint: String,
    gossip_endpoint: Option<String>,
    /// The context, if it is the node's own.
    context: Option<Context>,
}

impl Node {
    /// Returns a builder of a node with this name, which need not be unique. An empty name stands for the first six
    /// digits of the identity.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::new(name.into())
    }

    /// Returns the identity of this node.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Returns the name of this node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns where this node receives messages: `tcp://192.168.1.7:49152`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns where other nodes connect for gossip; `None` without [`Builder::gossip_bind`].
    pub fn gossip_endpoint(&self) -> Option<&str> {
        self.gossip_endpoint.as_deref()
    }

    /// Returns the peers that are there, those first that have entered first.
    pub fn peers(&self) -> Vec<Peer> {
        self.driver.shared().look(|state| state.machine.peers())
    }

    /// Returns a peer; `None` if it is not there.
    pub fn peer(&self, id: NodeId) -> Option<Peer> {
        self.driver.shared().look(|state| state.machine.peer(id))
    }

    /// Returns the groups that this node is in.
    pub fn groups(&self) -> Vec<String> {
        self.driver
            .shared()
            .look(|state| state.machine.groups().to_vec())
    }

    /// Returns how many messages, beacons, tuples of gossip and events were not what the protocol asks for, or found no
    /// room.
    pub fn dropped(&self) -> u64 {
        self.driver.shared().look(State::dropped)
    }

    /// Joins a group. Members receive what other nodes shout to it.
    ///
    /// # Errors
    /// `Invalid` if the name is empty or longer than 255 bytes, or the node is in 256 groups already; `NotSocket` if the
    /// node was stopped, `Terminated` if its context was.
    pub fn join(&self, group: &str) -> Result<()> {
        check_name("the name of a group", group)?;
        self.driver
            .shared()
            .call(|machine| joined(machine, group))?
    }

    /// Leaves a group.
    ///
    /// # Errors
    /// `NotSocket` if the node was stopped, `Terminated` if its context was.
    pub fn leave(&self, group: &str) -> Result<()> {
        self.driver.shared().call(|machine| machine.leave(group))
    }

    /// Joins a group, and stands for its leader. [`Event::Leader`] reports the node that is elected. An election begins
    /// whenever a contestant meets a new member, and when the leader leaves.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn contest(&self, group: &str) -> Result<()> {
        check_name("the name of a group", group)?;
        self.driver.shared().call(|machine| {
            joined(machine, group)?;
            machine.contest(group);
            Ok(())
        })?
    }

    /// Sends a message to a peer, and returns whether the peer is there. Never waits. If the peer is there, the message is
    /// lost only if the peer exits.
    ///
    /// # Errors
    /// `NotSocket` if the node was stopped, `Terminated` if its context was.
    pub fn whisper(&self, peer: NodeId, message: impl Into<Message>) -> Result<bool> {
        let content = message.into();
        self.driver
            .shared()
            .call(|machine| machine.whisper(peer, content))
    }

    /// Sends a message to the members of a group, of which this node need not be one, and returns to how many. Never
    /// waits.
    ///
    /// # Errors
    /// `NotSocket` if the node was stopped, `Terminated` if its context was.
    pub fn shout(&self, group: &str, message: impl Into<Message>) -> Result<usize> {
        let content = message.into();
        self.driver
            .shared()
            .call(|machine| machine.shout(group, &content))
    }

    /// Waits for the next event. [`Wait::Default`] waits without limit.
    ///
    /// From the first call on, 10,000 events or 64 MiB wait here. If there are more, messages wait in the sockets, and
    /// this node may look evasive to its peers. A node that is never asked drops further events, and counts them in
    /// [`dropped`](Self::dropped).
    ///
    /// # Errors
    /// `Again` if the time is up, `NotSocket` if the node was stopped, `Terminated` if its context was.
    pub fn recv(&self, wait: Wait) -> Result<Event> {
        self.driver.shared().recv(wait)
    }

    /// Returns an iterator over the events. It ends when no event has come for this long, and when the node is stopped;
    /// `None` waits without limit.
    pub fn events(&self, timeout: Option<Duration>) -> impl Iterator<Item = Event> {
        std::iter::from_fn(move || self.recv(within(timeout)).ok())
    }

    /// Returns the peers that offer a service, as far as this node knows now, those first that have entered first.
    pub fn providers(&self, service: &str) -> Vec<Provider> {
        self.driver
            .shared()
            .look(|state| providers(&state.machine, service))
    }

    /// Finds the peers that offer a service: waits until there are this many, or the time is up, and returns those that
    /// are there. Nodes meet within one or two of their beacons.
    ///
    /// # Errors
    /// `NotSocket` if the node was stopped, `Terminated` if its context was.
    pub fn find(&self, service: &str, count: usize, timeout: Duration) -> Result<Vec<Provider>> {
        let is_enough = |machine: &Machine| providers(machine, service).len() >= count;
        match self
            .driver
            .shared()
            .wait_for(within(Some(timeout)), is_enough)
        {
            Err(error) if error.kind() != ErrorKind::Again => Err(error),
            _ => Ok(self.providers(service)),
        }
    }

    /// Says goodbye to the peers, and closes the sockets. If the node has a context of its own, the call waits until the
    /// goodbyes are sent, up to a second for peers that cannot be reached. Events that were not read can still be.
    pub fn stop(&self) {
        self.driver.stop();
        if let Some(context) = &self.context {
            let _ = context.term_until(Some(Instant::now() + 2 * LINGER));
        }
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node {:?} {} at {}", self.name, self.id, self.endpoint)
    }
}

fn providers(machine: &Machine, service: &str) -> Vec<Provider> {
    let peers = machine.peers().into_iter();
    let offering = peers.filter_map(|peer| {
        let endpoint = endpoint_of(&peer.headers, service, &peer.endpoint)?;
        let (peer, name) = (peer.id, peer.name.as_ref().to_owned());
        Some(Provider {
            peer,
            name,
            endpoint,
        })
    });
    offering.collect()
}

fn joined(machine: &mut Machine, group: &str) -> Result<()> {
    let is_new = !machine.groups().iter().any(|own| own == group);
    if is_new && machine.groups().len() >= MAX_GROUPS {
        let text = format!("{group:?}: a node is in {MAX_GROUPS} groups at most; leave one first");
        return Err(Error::with(ErrorKind::Invalid, text));
    }
    machine.join(group);
    Ok(())
}

fn check_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > SHORT_MAX {
        let text = format!(
            "{what} has 1 to {SHORT_MAX} bytes, and {name:.20?} has {}",
            name.len()
        );
        return Err(Error::with(ErrorKind::Invalid, text));
    }
    Ok(())
}

/// A time beyond what the clock can count is no limit.
fn within(timeout: Option<Duration>) -> Wait {
    let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    end.map_or(Wait::Forever, Wait::Until)
}
