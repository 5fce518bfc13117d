//! A network of machines with a clock of its own, whose links can be cut, and whose nodes can be stopped and killed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use zeroxide::{Frame, Message};

use crate::event::{Event, Headers};
use crate::id::NodeId;
use crate::machine::{Command, Identity, Machine, Timing};

const STEP: Duration = Duration::from_millis(100);

pub(super) fn id(number: u64) -> NodeId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    NodeId::from_bytes(bytes)
}

pub(super) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn endpoint(host: &str) -> String {
    format!("tcp://{host}:49152")
}

/// Numbers that look random, and are the same for the same seed.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }
}

/// A node and its machine.
pub(super) struct Station {
    pub(super) machine: Machine,
    pub(super) name: String,
    id: NodeId,
    host: String,
    events: Vec<Event>,
    /// The messages of each mailbox that have not arrived.
    mailboxes: BTreeMap<NodeId, (String, VecDeque<Message>)>,
    pub(super) does_run: bool,
    is_there: bool,
}

/// The nodes, and what is between them.
pub(super) struct Network {
    pub(super) now: Instant,
    pub(super) forgotten: Vec<NodeId>,
    stations: Vec<Station>,
    beacons: bool,
    max_peers: usize,
    cuts: BTreeSet<(String, String)>,
}

impl Network {
    pub(super) fn new() -> Network {
        Network::of(true, 100)
    }

    pub(super) fn of(beacons: bool, max_peers: usize) -> Network {
        Network {
            // A machine may look back from the start.
            now: Instant::now() + seconds(3600),
            forgotten: Vec::new(),
            stations: Vec::new(),
            beacons,
            max_peers,
            cuts: BTreeSet::new(),
        }
    }

    /// Starts a node, and returns its place.
    pub(super) fn add(&mut self) -> usize {
        self.add_as(self.stations.len() as u64 + 1)
    }

    /// Starts a node whose identity has this number.
    pub(super) fn add_as(&mut self, number: u64) -> usize {
        let place = self.stations.len() + 1;
        self.start(number, place)
    }

    /// Starts a node at the address of an earlier one.
    pub(super) fn add_at(&mut self, place: usize) -> usize {
        self.start(self.stations.len() as u64 + 1, place)
    }

    /// Starts two nodes that know each other, from gossip if there are no beacons.
    pub(super) fn announced_pair(&mut self) -> (usize, usize) {
        let (one, other) = (self.add(), self.add());
        self.announce(one, other);
        self.announce(other, one);
        self.run(seconds(1));
        (one, other)
    }

    /// Announces a peer to a node.
    pub(super) fn announce(&mut self, node: usize, peer: usize) {
        let (key, now) = (self.stations[peer].id.digits(), self.now);
        let endpoint = endpoint(&self.stations[peer].host);
        self.machine(node)
            .handle_announcement(key.as_bytes(), endpoint.as_bytes(), now);
    }

    pub(super) fn station(&mut self, place: usize) -> &mut Station {
        &mut self.stations[place]
    }

    pub(super) fn machine(&mut self, place: usize) -> &mut Machine {
        &mut self.stations[place].machine
    }

    pub(super) fn alive(&self) -> Vec<usize> {
        (0..self.stations.len())
            .filter(|place| self.stations[*place].is_there)
            .collect()
    }

    pub(super) fn names(&self, place: usize) -> Vec<String> {
        let peers = self.stations[place].machine.peers();
        peers
            .iter()
            .map(|peer| peer.name.as_ref().to_owned())
            .collect()
    }

    /// The events of a node since the last call.
    pub(super) fn take(&mut self, place: usize) -> Vec<Event> {
        std::mem::take(&mut self.stations[place].events)
    }

    pub(super) fn cut(&mut self, one: usize, other: usize) {
        let hosts = [one, other].map(|place| self.stations[place].host.clone());
        let [a, b] = hosts;
        self.cuts.extend([(a.clone(), b.clone()), (b, a)]);
    }

    pub(super) fn mend(&mut self) {
        self.cuts.clear();
    }

    /// Loses the first message of each mailbox, as when connections break.
    pub(super) fn lose(&mut self, place: usize) {
        for (_, queue) in self.stations[place].mailboxes.values_mut() {
            queue.pop_front();
        }
    }

    /// Ends a node, as SIGKILL does: what its mailboxes hold is lost.
    pub(super) fn kill(&mut self, place: usize) {
        let station = &mut self.stations[place];
        (station.is_there, station.does_run) = (false, false);
    }

    pub(super) fn close(&mut self, place: usize) {
        self.stations[place].machine.handle_close();
        self.carry_out(place);
        self.deliver();
        self.kill(place);
    }

    /// Lets the time pass.
    pub(super) fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.now < end {
            self.now += STEP;
            for place in self.alive() {
                if self.stations[place].does_run {
                    self.stations[place].machine.handle_timeout(self.now, true);
                    self.carry_out(place);
                }
            }
            self.deliver();
        }
    }

    /// Delivers what is in transit, without any time passing.
    pub(super) fn settle(&mut self) {
        for place in self.alive() {
            self.carry_out(place);
        }
        self.deliver();
    }

    fn start(&mut self, number: u64, place: usize) -> usize {
        let host = format!("10.0.0.{place}");
        let own = endpoint(&host);
        let name = format!("n{}", self.stations.len() + 1);
        let identity = Identity {
            id: id(number),
            name: name.clone(),
            port: self.beacons.then_some(49152),
            headers: Headers::from([("number".to_owned(), number.to_string())]),
            timing: Timing {
                interval: seconds(1),
                evasive: seconds(5),
                expired: seconds(30),
            },
            max_peers: self.max_peers,
            endpoint_for: Box::new(move |_| own.clone()),
        };
        self.stations.push(Station {
            machine: Machine::new(identity, self.now),
            name,
            id: id(number),
            host,
            events: Vec::new(),
            mailboxes: BTreeMap::new(),
            does_run: true,
            is_there: true,
        });
        self.stations.len() - 1
    }

    fn can_reach(&self, from: usize, to: usize) -> bool {
        let (from, to) = (&self.stations[from], &self.stations[to]);
        to.does_run && to.is_there && !self.cuts.contains(&(from.host.clone(), to.host.clone()))
    }

    fn deliver(&mut self) {
        let mut has_moved = true;
        while has_moved {
            has_moved = false;
            for from in self.alive() {
                let mailboxes: Vec<NodeId> =
                    self.stations[from].mailboxes.keys().copied().collect();
                for mailbox in mailboxes {
                    has_moved |= self.deliver_mailbox(from, mailbox);
                }
            }
        }
    }

    fn deliver_mailbox(&mut self, from: usize, mailbox: NodeId) -> bool {
        let Some((target, _)) = self.stations[from].mailboxes.get(&mailbox).cloned() else {
            return false;
        };
        let mut reached = self.alive().into_iter();
        let reached = reached
            .find(|to| endpoint(&self.stations[*to].host) == target && self.can_reach(from, *to));
        let Some(to) = reached else {
            return false;
        };
        let mut has_moved = false;
        while let Some(mut message) = self.stations[from]
            .mailboxes
            .get_mut(&mailbox)
            .and_then(|(_, queue)| queue.pop_front())
        {
            message.push_front(Frame::from(self.stations[from].id.routing_id()));
            self.stations[to].machine.handle_message(message, self.now);
            self.carry_out(to);
            has_moved = true;
        }
        has_moved
    }

    fn carry_out(&mut self, place: usize) {
        while let Some(command) = self.stations[place].machine.poll_command() {
            let mailboxes = &mut self.stations[place].mailboxes;
            match command {
                Command::Connect { peer, endpoint } => {
                    let before = mailboxes.insert(peer, (endpoint, VecDeque::new()));
                    assert!(before.is_none());
                }
                Command::Disconnect { peer, drains } => {
                    if !drains {
                        assert!(mailboxes.remove(&peer).is_some());
                    }
                }
                Command::Send { peer, message } => {
                    mailboxes
                        .get_mut(&peer)
                        .expect("a mailbox")
                        .1
                        .push_back(message);
                }
                Command::Announce { beacon } => {
                    let host = self.stations[place].host.clone();
                    for other in self.alive() {
                        if self.can_reach(place, other) {
                            self.stations[other]
                                .machine
                                .handle_beacon(&beacon, &host, self.now);
                            if other != place {
                                self.carry_out(other);
                            }
                        }
                    }
                }
                Command::Forget { peer } => self.forgotten.push(peer),
            }
        }
        while let Some(event) = self.stations[place].machine.poll_event() {
            self.stations[place].events.push(event);
        }
    }
}
