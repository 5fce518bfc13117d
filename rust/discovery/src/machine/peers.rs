//! The peers of a node: how they enter, what they say, and how they go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::strangers::Source;
use super::{Command, Machine};
use crate::event::{Event, ExitReason, Headers, Peer};
use crate::id::NodeId;
use crate::wire::{Body, Hello, Packet};

/// How often a lost peer that gossip has announced is tried again, until it expires each time.
const RETRIES: u32 = 10;

/// A node that this one has a mailbox for.
pub(super) struct Member {
    endpoint: String,
    /// The last sign of life.
    pub(super) heard: Instant,
    /// The number of the last message that was sent to it.
    sent: u16,
    /// The number that its next message must have.
    wanted: u16,
    /// Whether it has said hello.
    pub(super) is_ready: bool,
    /// Its place in the order of arrival.
    pub(super) entered: u64,
    pub(super) name: Arc<str>,
    headers: Arc<Headers>,
    pub(super) groups: BTreeSet<String>,
    is_evasive: bool,
    is_silent: bool,
}

impl Member {
    fn new(endpoint: &str, entered: u64, now: Instant) -> Member {
        Member {
            endpoint: endpoint.to_owned(),
            heard: now,
            sent: 0,
            wanted: 1,
            is_ready: false,
            entered,
            name: Arc::default(),
            headers: Arc::default(),
            groups: BTreeSet::new(),
            is_evasive: false,
            is_silent: false,
        }
    }

    pub(super) fn snapshot(&self, id: NodeId) -> Peer {
        Peer {
            id,
            name: self.name.clone(),
            endpoint: self.endpoint.clone(),
            headers: self.headers.clone(),
            groups: self.groups.clone(),
            is_evasive: self.is_evasive,
        }
    }
}

/// A node that gossip has announced.
pub(super) struct Announced {
    endpoint: String,
    retries: u32,
}

impl Announced {
    pub(super) fn at(endpoint: String) -> Announced {
        Announced {
            endpoint,
            retries: RETRIES,
        }
    }
}

/// The numbers with which the earlier connections of peers would continue. Their last messages may still arrive beside
/// those of a new connection.
pub(super) struct Leftovers {
    numbers: BTreeMap<NodeId, (u64, u16)>,
    added: u64,
    most: usize,
}

impl Leftovers {
    pub(super) fn new(most: usize) -> Leftovers {
        Leftovers {
            numbers: BTreeMap::new(),
            added: 0,
            most,
        }
    }

    fn insert(&mut self, node: NodeId, next: u16) {
        self.added += 1;
        self.numbers.insert(node, (self.added, next));
        if self.numbers.len() > self.most {
            let oldest = self.numbers.iter().min_by_key(|(_, (added, _))| *added);
            if let Some(oldest) = oldest.map(|(node, _)| *node) {
                self.numbers.remove(&oldest);
            }
        }
    }

    /// Whether a message has the next number of an earlier connection, which then expects the one after it.
    fn take(&mut self, node: NodeId, packet: &Packet) -> bool {
        let Some((_, next)) = self.numbers.get_mut(&node) else {
            return false;
        };
        if matches!(packet.body, Body::Hello(_)) || packet.sequence != *next {
            return false;
        }
        *next = next.wrapping_add(1);
        true
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }
}

impl Machine {
    pub(super) fn ready(&self) -> impl Iterator<Item = (NodeId, &Member)> {
        let all = self.members.iter().map(|(node, member)| (*node, member));
        all.filter(|(_, member)| member.is_ready)
    }

    /// Takes a message of a node, and returns whether it was used.
    pub(super) fn accept(&mut self, node: NodeId, packet: Packet, now: Instant) -> bool {
        let is_leftover = self.leftovers.take(node, &packet);
        if let Body::Hello(hello) = &packet.body {
            if !self.greet(node, packet.sequence, hello, now) {
                return false;
            }
        } else if self.announced.contains_key(&node) {
            // If it is no peer, it takes this node for one that knows it. Saying hello makes it say hello, too.
            self.invite(node, now);
        }
        let Some(member) = self.members.get_mut(&node) else {
            return false;
        };
        if !member.is_ready {
            return false;
        }
        if packet.sequence != member.wanted {
            if is_leftover {
                return false;
            }
            self.remove(node, ExitReason::MessagesLost);
            self.leftovers.insert(node, packet.sequence.wrapping_add(1));
            if self.may_return(node) {
                self.invite(node, now);
            }
            return true; // `Exit` reports it
        }
        member.wanted = member.wanted.wrapping_add(1);
        member.heard = now;
        (member.is_evasive, member.is_silent) = (false, false);
        self.process(node, packet.body);
        true
    }

    /// Makes and greets a peer, for which there is a place. Returns its place in the order of arrival.
    fn add(&mut self, node: NodeId, endpoint: String, now: Instant) -> u64 {
        // One that never said hello and has the endpoint of another one is a leftover of a node that restarted.
        let strangers: Vec<NodeId> = self.strangers.all().collect();
        for other in strangers {
            let member = self.members.get(&other);
            if member.is_some_and(|member| member.endpoint == endpoint) {
                self.remove(other, ExitReason::Restarted);
            }
        }
        self.waiting.remove(node);
        self.entered += 1;
        let member = Member::new(&endpoint, self.entered, now);
        self.members.insert(node, member);
        let hello = Hello {
            endpoint: (self.own.endpoint_for)(&endpoint),
            groups: self.groups.clone(),
            status: self.status,
            name: self.own.name.clone(),
            headers: self.own.headers.clone(),
        };
        self.commands.push_back(Command::Connect {
            peer: node,
            endpoint,
        });
        self.send(node, Body::Hello(hello));
        self.entered
    }

    /// Makes and greets a peer that has not said hello.
    pub(super) fn add_stranger(
        &mut self,
        source: Source,
        node: NodeId,
        endpoint: String,
        now: Instant,
    ) {
        let entered = self.add(node, endpoint, now);
        self.strangers.insert(source, entered, node);
    }

    /// Lets an announced node have the next place, if it has none.
    pub(super) fn invite(&mut self, node: NodeId, now: Instant) {
        if !self.members.contains_key(&node) {
            self.waiting.push_first(node);
            self.admit(now);
        }
    }

    /// Gives the places that there are to announced nodes that wait, the newest first.
    pub(super) fn admit(&mut self, now: Instant) {
        while let Some(node) = self.waiting.first()
            && self.makes_place(Source::Gossip, now)
        {
            self.waiting.remove(node);
            if let Some(announced) = self.announced.get(&node) {
                let endpoint = announced.endpoint.clone();
                self.add_stranger(Source::Gossip, node, endpoint, now);
            }
        }
    }

    /// Returns whether there is a place for one more stranger from this source. The oldest one gives its place up if it had
    /// the time of a beacon to say hello.
    pub(super) fn makes_place(&mut self, source: Source, now: Instant) -> bool {
        let oldest = if self.strangers.are_many(source) {
            self.strangers.oldest_of(source)
        } else if self.members.len() >= self.own.max_peers {
            self.strangers.oldest()
        } else {
            return true;
        };
        let Some((node, member)) = oldest.and_then(|node| Some((node, self.members.get(&node)?)))
        else {
            return false;
        };
        let had_time = now.saturating_duration_since(member.heard) >= self.own.timing.interval;
        if had_time {
            self.give_up(node);
        }
        had_time
    }

    /// Forgets a node that has not said hello. If gossip has announced it, it is tried again, after the others.
    fn give_up(&mut self, stranger: NodeId) {
        self.remove(stranger, ExitReason::Expired);
        if self.may_return(stranger) {
            self.waiting.push_last(stranger);
        }
    }

    pub(super) fn remove(&mut self, node: NodeId, reason: ExitReason) {
        let Some(member) = self.members.remove(&node) else {
            return;
        };
        self.strangers.remove(member.entered);
        if matches!(reason, ExitReason::Goodbye | ExitReason::Restarted) {
            self.forget(node);
        }
        self.commands.push_back(Command::Disconnect {
            peer: node,
            drains: false,
        });
        if member.is_ready {
            self.leftovers.insert(node, member.wanted);
            let name = member.name;
            self.events.push_back(Event::Exit {
                peer: node,
                name,
                reason,
            });
            for group in &member.groups {
                self.elect_again(group, node);
            }
        }
    }

    pub(super) fn forget(&mut self, node: NodeId) {
        self.waiting.remove(node);
        if self.announced.remove(&node).is_some() {
            self.commands.push_back(Command::Forget { peer: node });
        }
    }

    /// Checks how long a peer has been silent.
    pub(super) fn look_at(&mut self, node: NodeId, now: Instant) {
        let Some(member) = self.members.get_mut(&node) else {
            return;
        };
        let timing = self.own.timing;
        let quiet = now.saturating_duration_since(member.heard);
        if quiet >= timing.expired {
            if !member.is_ready {
                return self.give_up(node);
            }
            self.remove(node, ExitReason::Expired);
            if self.may_return(node) {
                self.invite(node, now);
            }
            return;
        }
        if !member.is_ready || quiet < timing.evasive / 2 {
            return;
        }
        let name = member.name.clone();
        if quiet >= timing.evasive && !member.is_evasive {
            member.is_evasive = true;
            let name = name.clone();
            self.events.push_back(Event::Evasive { peer: node, name });
        }
        if quiet >= timing.evasive + timing.tick() && !member.is_silent {
            member.is_silent = true;
            self.events.push_back(Event::Silent { peer: node, name });
        }
        self.send(node, Body::Ping);
    }

    /// Whether to connect to an endpoint that a peer has named: one of this node's own transport.
    pub(super) fn is_usable(&self, endpoint: &str) -> bool {
        !self.scheme.is_empty() && endpoint.starts_with(&self.scheme)
    }

    pub(super) fn send(&mut self, peer: NodeId, body: Body) {
        let Some(member) = self.members.get_mut(&peer) else {
            return;
        };
        member.sent = member.sent.wrapping_add(1);
        let packet = Packet {
            sequence: member.sent,
            body,
        };
        let message = packet.write();
        self.commands.push_back(Command::Send { peer, message });
    }

    /// Takes a HELLO. Returns whether its sender is a peer now.
    fn greet(&mut self, node: NodeId, sequence: u16, hello: &Hello, now: Instant) -> bool {
        if sequence != 1 || !self.is_usable(&hello.endpoint) {
            return false;
        }
        if self
            .members
            .get(&node)
            .is_some_and(|member| member.is_ready)
        {
            // It has lost this node, and found it again.
            self.remove(node, ExitReason::MessagesLost);
        }
        if !self.members.contains_key(&node) {
            if self.members.len() >= self.own.max_peers {
                let Some(oldest) = self.strangers.oldest() else {
                    return false;
                };
                self.give_up(oldest);
            }
            self.add(node, hello.endpoint.clone(), now);
        }
        // The endpoint may be that of the beacon, which is how this machine reaches the peer.
        let endpoint = self
            .members
            .get(&node)
            .map(|member| member.endpoint.clone());
        self.remove_ready_others_at(node, &endpoint.unwrap_or_default());
        if let Some(member) = self.members.get_mut(&node) {
            self.strangers.remove(member.entered);
            member.is_ready = true;
            member.wanted = 1;
            member.name = hello.name.as_str().into();
            member.headers = Arc::new(hello.headers.clone());
        }
        if let Some(announced) = self.announced.get_mut(&node) {
            announced.retries = RETRIES;
        }
        self.admit(now);
        true
    }

    fn process(&mut self, peer: NodeId, body: Body) {
        let Some(member) = self.members.get(&peer) else {
            return;
        };
        let name = member.name.clone();
        match body {
            Body::Hello(hello) => {
                let (endpoint, headers) = (member.endpoint.clone(), member.headers.clone());
                self.events.push_back(Event::Enter {
                    peer,
                    name,
                    endpoint,
                    headers,
                });
                for group in hello.groups {
                    self.on_join(peer, group);
                }
            }
            Body::Whisper(content) => {
                self.events.push_back(Event::Whisper {
                    peer,
                    name,
                    content,
                });
            }
            Body::Shout { group, content } => {
                if self.groups.contains(&group) {
                    self.events.push_back(Event::Shout {
                        peer,
                        name,
                        group,
                        content,
                    });
                }
            }
            Body::Join { group, .. } => self.on_join(peer, group),
            Body::Leave { group, .. } => self.on_leave(peer, group),
            Body::Ping => self.send(peer, Body::PingOk),
            Body::PingOk => {}
            Body::Elect { group, member } => self.on_elect(peer, &group, &member),
            Body::Leader { group, member } => self.on_leader(peer, &group, &member),
            Body::Goodbye => self.remove(peer, ExitReason::Goodbye),
        }
    }

    /// Removes the other peers at an endpoint that have said hello.
    fn remove_ready_others_at(&mut self, node: NodeId, endpoint: &str) {
        let others = self.members.iter().filter(|(other, member)| {
            **other != node && member.is_ready && member.endpoint == endpoint
        });
        let others: Vec<NodeId> = others.map(|(other, _)| *other).collect();
        for other in others {
            self.remove(other, ExitReason::Restarted);
        }
    }

    /// Returns whether gossip has announced a lost node, and it was not tried too often.
    fn may_return(&mut self, node: NodeId) -> bool {
        let Some(announced) = self.announced.get_mut(&node) else {
            return false;
        };
        if announced.retries == 0 {
            self.forget(node);
            return false;
        }
        announced.retries -= 1;
        true
    }
}
