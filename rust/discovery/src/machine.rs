//! A node of ZRE without I/O: beacons, messages and the time go in, commands and events come out.
//!
//! After each call, the driver carries out the commands of [`Machine::poll_command`] and reports the events of
//! [`Machine::poll_event`], both in order.

mod groups;
mod peers;
mod strangers;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use zeroxide::Message;

use crate::election::Election;
use crate::event::{Event, ExitReason, Headers, Peer};
use crate::id::NodeId;
use crate::wire::{BEACON_SIZE, Body, Packet, read_beacon, write_beacon};
use peers::{Announced, Leftovers, Member};
use strangers::{Source, Strangers, Waiting};

/// Endpoints that are remembered from gossip, at most.
const ANNOUNCED_MAX: usize = 10_000;

/// A task for the driver.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    /// Open a mailbox for a peer.
    Connect { peer: NodeId, endpoint: String },
    /// Close the mailbox of a peer, with everything in it unless it `drains`.
    Disconnect { peer: NodeId, drains: bool },
    /// Send a message to the mailbox of a peer.
    Send { peer: NodeId, message: Message },
    /// Broadcast a beacon.
    Announce { beacon: [u8; BEACON_SIZE] },
    /// Tell no other node the endpoint of this peer any more.
    Forget { peer: NodeId },
}

/// When things happen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Between two beacons.
    pub(crate) interval: Duration,
    /// How long a peer may be silent before it is evasive.
    pub(crate) evasive: Duration,
    /// How long a peer may be silent before it is gone.
    pub(crate) expired: Duration,
}

impl Timing {
    /// Between two checks of the peers.
    pub(crate) fn tick(&self) -> Duration {
        let shortest = self.evasive.min(self.expired) / 5;
        shortest.min(Duration::from_secs(1))
    }
}

/// The properties of a node that do not change while it runs.
pub(crate) struct Identity {
    pub(crate) id: NodeId,
    pub(crate) name: String,
    /// The port of its inbox for beacons; none if it sends none.
    pub(crate) port: Option<u16>,
    pub(crate) headers: Headers,
    pub(crate) timing: Timing,
    pub(crate) max_peers: usize,
    /// Where a peer at an endpoint reaches this node.
    pub(crate) endpoint_for: Box<dyn Fn(&str) -> String + Send>,
}

/// The node.
pub(crate) struct Machine {
    own: Identity,
    /// What its endpoints begin with, up to `://`: it connects to no others.
    scheme: String,
    groups: Vec<String>,
    status: u8,
    dropped: u64,
    members: BTreeMap<NodeId, Member>,
    entered: u64,
    strangers: Strangers,
    announced: BTreeMap<NodeId, Announced>,
    waiting: Waiting,
    leftovers: Leftovers,
    contested: BTreeSet<String>,
    elections: HashMap<String, Election>,
    leaders: HashMap<String, NodeId>,
    commands: VecDeque<Command>,
    events: VecDeque<Event>,
    beacon_at: Instant,
    looks_at: Instant,
}

impl Machine {
    pub(crate) fn new(own: Identity, now: Instant) -> Machine {
        let endpoint = (own.endpoint_for)("");
        let end = endpoint.find("://").map_or(0, |at| at + "://".len());
        Machine {
            scheme: endpoint[..end].to_owned(),
            groups: Vec::new(),
            status: 0,
            dropped: 0,
            members: BTreeMap::new(),
            entered: 0,
            strangers: Strangers::default(),
            announced: BTreeMap::new(),
            waiting: Waiting::default(),
            leftovers: Leftovers::new(own.max_peers),
            contested: BTreeSet::new(),
            elections: HashMap::new(),
            leaders: HashMap::new(),
            commands: VecDeque::new(),
            events: VecDeque::new(),
            beacon_at: now,
            looks_at: now + own.timing.tick(),
            own,
        }
    }

    /// The groups that the node is in.
    pub(crate) fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Beacons and messages that were not what the protocol asks for, or found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Counts something that the driver has dropped.
    pub(crate) fn note_dropped(&mut self) {
        self.dropped += 1;
    }

    /// The peers that have said hello, those first that have entered first.
    pub(crate) fn peers(&self) -> Vec<Peer> {
        let mut ready: Vec<(NodeId, &Member)> = self.ready().collect();
        ready.sort_by_key(|(_, member)| member.entered);
        ready
            .iter()
            .map(|(id, member)| member.snapshot(*id))
            .collect()
    }

    /// A peer that has said hello.
    pub(crate) fn peer(&self, id: NodeId) -> Option<Peer> {
        let member = self.members.get(&id).filter(|member| member.is_ready)?;
        Some(member.snapshot(id))
    }

    /// Sends a message to a peer. Returns whether there is one.
    pub(crate) fn whisper(&mut self, peer: NodeId, content: Message) -> bool {
        let is_there = self
            .members
            .get(&peer)
            .is_some_and(|member| member.is_ready);
        if is_there {
            self.send(peer, Body::Whisper(content));
        }
        is_there
    }

    /// Sends a message to the members of a group. Returns to how many.
    pub(crate) fn shout(&mut self, group: &str, content: &Message) -> usize {
        let members = self.members_of(group);
        for member in &members {
            let (group, content) = (group.to_owned(), content.clone());
            self.send(*member, Body::Shout { group, content });
        }
        members.len()
    }

    /// Takes a beacon, which came from a host.
    pub(crate) fn handle_beacon(&mut self, datagram: &[u8], host: &str, now: Instant) {
        match read_beacon(datagram) {
            None => self.dropped += 1,
            Some((node, _)) if node == self.own.id => {}
            Some((node, 0)) => self.remove(node, ExitReason::Goodbye),
            Some((node, port)) => {
                if self.members.contains_key(&node) {
                    return;
                }
                match self.makes_place(Source::Beacon, now) {
                    true => {
                        let endpoint = format!("tcp://{host}:{port}");
                        self.add_stranger(Source::Beacon, node, endpoint, now);
                    }
                    false => self.dropped += 1,
                }
            }
        }
    }

    /// Takes the endpoint of a node from gossip.
    pub(crate) fn handle_announcement(&mut self, key: &[u8], value: &[u8], now: Instant) {
        let Some(node) = NodeId::parse(key) else {
            return; // gossip carries other things, too
        };
        let endpoint = value.split(|byte| *byte == b'|').next().unwrap_or_default();
        let endpoint = String::from_utf8_lossy(endpoint); // a public key may follow
        if node == self.own.id || !self.is_usable(&endpoint) {
            return;
        }
        if !self.announced.contains_key(&node) && self.announced.len() >= ANNOUNCED_MAX {
            self.dropped += 1;
            match self.waiting.last() {
                None => return,
                Some(stale) => self.forget(stale),
            }
        }
        self.announced
            .insert(node, Announced::at(endpoint.into_owned()));
        self.invite(node, now);
    }

    /// Takes a message from the inbox, whose first frame is the routing ID of its sender.
    pub(crate) fn handle_message(&mut self, mut message: Message, now: Instant) {
        let sender = message.pop_front();
        let sender = sender.and_then(|frame| NodeId::of_routing_id(frame.as_slice()));
        let sender = sender.filter(|node| *node != self.own.id);
        let packet = Packet::read(message);
        let accepted = match (sender, packet) {
            (Some(node), Some(packet)) => self.accept(node, packet, now),
            _ => false,
        };
        self.dropped += u64::from(!accepted);
    }

    /// Gives up a peer whose mailbox has no room. A message is missing now, so no other may follow.
    pub(crate) fn handle_full(&mut self, node: NodeId) {
        if self.members.contains_key(&node) {
            self.dropped += 1;
            self.remove(node, ExitReason::NotReading);
        }
    }

    /// Forgets a peer to whose endpoint no socket connects.
    pub(crate) fn handle_failure(&mut self, node: NodeId) {
        if self.members.contains_key(&node) {
            self.dropped += 1;
            self.forget(node);
            self.remove(node, ExitReason::Expired);
        }
    }

    /// Does what is due. `has_read` says whether what has arrived was read.
    pub(crate) fn handle_timeout(&mut self, now: Instant, has_read: bool) {
        if let Some(port) = self.own.port
            && now >= self.beacon_at
        {
            self.beacon_at = now + self.own.timing.interval;
            self.announce(port);
        }
        if now < self.looks_at {
            return;
        }
        // If this process did not run, or its program does not read, silence says nothing about the peers.
        let patience = self.own.timing.evasive / 2;
        let is_fair = has_read && now < self.looks_at + patience;
        self.looks_at = now + self.own.timing.tick();
        let nodes: Vec<NodeId> = self.members.keys().copied().collect();
        for node in nodes {
            // A member may have gone with another one that has the same endpoint.
            if let Some(member) = self.members.get_mut(&node) {
                if !is_fair {
                    let recent = now.checked_sub(patience).unwrap_or(now);
                    member.heard = member.heard.max(recent);
                }
                self.look_at(node, now);
            }
        }
        self.admit(now);
    }

    /// Says goodbye.
    pub(crate) fn handle_close(&mut self) {
        self.waiting = Waiting::default();
        let nodes: Vec<NodeId> = self.members.keys().copied().collect();
        for peer in nodes {
            self.send(peer, Body::Goodbye);
            let drains = self
                .members
                .remove(&peer)
                .is_some_and(|member| member.is_ready);
            self.commands
                .push_back(Command::Disconnect { peer, drains });
        }
        if self.own.port.is_some() {
            self.announce(0);
        }
    }

    pub(crate) fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due next.
    pub(crate) fn poll_timeout(&self) -> Instant {
        match self.own.port {
            None => self.looks_at,
            Some(_) => self.looks_at.min(self.beacon_at),
        }
    }

    fn announce(&mut self, port: u16) {
        let beacon = write_beacon(self.own.id, port);
        self.commands.push_back(Command::Announce { beacon });
    }
}
