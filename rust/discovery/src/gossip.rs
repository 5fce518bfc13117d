//! A node of the gossip network without I/O: it passes on every tuple of a key and a value that is new to it.
//!
//! czmq's `zgossip` is the other implementation. Its server forgets a client that is silent for a second, and then passes
//! no tuples on, without a notice. It says INVALID if such a client publishes a tuple. This node therefore publishes a
//! tuple of its own again and again instead of sending pings, and says HELLO if the answer is INVALID.
//!
//! A node that has missed tuples, because it is new or its connection was full, catches up: the tuples have serial numbers
//! in the order of their changes, and the node gets those after the last one that was sent to it. So a slow node costs a
//! number, and not a copy of all tuples.

#[cfg(test)]
mod tests;
mod tuples;
mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use crate::wire::Gossip;
use tuples::Tuples;
use turns::Turns;

/// Clients that are known, at most.
pub(crate) const CLIENTS_MAX: usize = 1024;

/// Between two messages to each remote node: a third of the second after which czmq forgets a client.
const ALIVE: Duration = Duration::from_millis(333);

/// Between two attempts to send to nodes whose connections are full.
const RETRY: Duration = Duration::from_millis(50);

/// A client that takes nothing for so long is forgotten.
const STALLED: Duration = Duration::from_secs(10);

/// Tuples for nodes that catch up, in each turn of the driver.
const CATCH_UP: usize = 1000;

/// A key keeps its value for so long. Two nodes that disagree would otherwise pass two values on forever.
const SETTLED: Duration = Duration::from_secs(1);

/// Another node of the gossip network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// One that has connected to this node, by its routing ID.
    Client(Vec<u8>),
    /// One that this node has connected to, by its place in the list.
    Remote(usize),
}

/// A message to send. `serial` is that of the tuple in it, and 0 if there is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Errand {
    pub(crate) to: Place,
    pub(crate) frame: Vec<u8>,
    pub(crate) serial: u64,
}

/// A tuple that is new to this node: the key and the value.
pub(crate) type News = (Vec<u8>, Vec<u8>);

/// A node whose connection is full: the last tuple that was sent to it, and since when.
struct Stall {
    cursor: u64,
    since: Instant,
}

/// The node.
pub(crate) struct Exchange {
    dropped: u64,
    remotes: usize,
    tuples: Tuples,
    /// Clients that have said HELLO, with the number of their last message.
    clients: BTreeMap<Vec<u8>, u64>,
    heard: u64,
    errands: VecDeque<Errand>,
    /// Nodes that catch up, with the last tuple that was sent to each.
    behind: Turns,
    allowance: usize,
    /// Nodes whose connections were full, until they have caught up, and those of them that wait for the next attempt.
    full: BTreeMap<Place, Stall>,
    paused: BTreeSet<Place>,
    retry: Instant,
    news: VecDeque<News>,
    due: Instant,
}

impl Exchange {
    /// Makes a node that connects to this many others.
    pub(crate) fn new(remotes: usize, now: Instant) -> Exchange {
        let mut exchange = Exchange {
            dropped: 0,
            remotes,
            tuples: Tuples::default(),
            clients: BTreeMap::new(),
            heard: 0,
            errands: VecDeque::new(),
            behind: Turns::default(),
            allowance: CATCH_UP,
            full: BTreeMap::new(),
            paused: BTreeSet::new(),
            retry: now,
            news: VecDeque::new(),
            due: now + ALIVE,
        };
        (0..remotes).for_each(|remote| exchange.introduce(remote));
        exchange
    }

    /// Messages and tuples that were not what the protocol asks for, or found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Publishes a tuple, which no other node can change.
    pub(crate) fn publish(&mut self, key: &[u8], value: &[u8], now: Instant) {
        self.tuples.store(key, value, true, now);
        self.spread(key, None);
    }

    /// Forgets a tuple of another node. Other nodes may keep it.
    pub(crate) fn forget(&mut self, key: &[u8]) {
        self.tuples.forget(key);
    }

    /// Takes a message of a node that has connected to this one.
    pub(crate) fn handle_client(&mut self, client: &[u8], frame: &[u8], now: Instant) {
        let is_known = self.clients.contains_key(client);
        match Gossip::read(frame) {
            None => {
                self.dropped += 1;
                return;
            }
            Some(Gossip::Hello) => {
                self.handle_gone(client);
                if self.clients.len() >= CLIENTS_MAX {
                    self.evict();
                }
                self.clients.insert(client.to_vec(), 0);
                self.behind.insert(Place::Client(client.to_vec()), 0);
            }
            Some(Gossip::Ping) => self.answer(client, &Gossip::Pong),
            Some(Gossip::Publish { key, value }) if is_known => {
                self.learn(key, value, Place::Client(client.to_vec()), now);
            }
            Some(_) => {
                self.handle_gone(client);
                self.answer(client, &Gossip::Invalid);
            }
        }
        if let Some(last) = self.clients.get_mut(client) {
            self.heard += 1;
            *last = self.heard;
        }
    }

    /// Takes a message of a node that this one has connected to.
    pub(crate) fn handle_remote(&mut self, remote: usize, frame: &[u8], now: Instant) {
        match Gossip::read(frame) {
            None => self.dropped += 1,
            Some(Gossip::Publish { key, value }) => {
                self.learn(key, value, Place::Remote(remote), now);
            }
            // It does not know this node, or does not any more.
            Some(Gossip::Invalid) => self.introduce(remote),
            Some(_) => {}
        }
    }

    /// Counts a message of more than one frame, which none of the protocol is.
    pub(crate) fn handle_other(&mut self) {
        self.dropped += 1;
    }

    /// Forgets a client that has no connection any more.
    pub(crate) fn handle_gone(&mut self, client: &[u8]) {
        self.clients.remove(client);
        let place = Place::Client(client.to_vec());
        self.behind.remove(&place);
        self.full.remove(&place);
        self.paused.remove(&place);
    }

    /// Takes back a message for which the connection had no room.
    pub(crate) fn handle_full(&mut self, errand: Errand, now: Instant) {
        let Errand { to, serial, .. } = errand;
        let is_gone = matches!(&to, Place::Client(client) if !self.clients.contains_key(client));
        if serial == 0 || is_gone {
            return;
        }
        let cursor = self.behind.remove(&to).unwrap_or(serial).min(serial - 1);
        let is_paused = self.paused.contains(&to);
        match (self.full.get_mut(&to), &to) {
            (Some(stall), _) if is_paused || cursor <= stall.cursor => {
                let is_over = now >= stall.since + STALLED;
                if let (true, Place::Client(client)) = (is_over, &to) {
                    self.handle_gone(client);
                    return;
                }
                stall.cursor = stall.cursor.min(cursor);
            }
            _ => {
                let since = now;
                self.full.insert(to.clone(), Stall { cursor, since });
            }
        }
        self.paused.insert(to);
        self.retry = now + RETRY;
    }

    /// Does what is due. The driver calls it once in each of its turns.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.allowance = CATCH_UP;
        if now >= self.retry {
            for place in std::mem::take(&mut self.paused) {
                if let Some(stall) = self.full.get(&place) {
                    self.behind.insert(place, stall.cursor);
                }
            }
        }
        if now < self.due {
            return;
        }
        self.due = now + ALIVE;
        let frame = match self.tuples.own() {
            None => Gossip::Ping.write(),
            Some((key, value)) => Gossip::Publish { key, value }.write(),
        };
        for remote in 0..self.remotes {
            let (to, frame) = (Place::Remote(remote), frame.clone());
            self.errands.push_back(Errand {
                to,
                frame,
                serial: 0,
            });
        }
    }

    /// Returns the next message to send, in order.
    pub(crate) fn poll_errand(&mut self) -> Option<Errand> {
        if let Some(errand) = self.errands.pop_front() {
            return Some(errand);
        }
        while self.allowance > 0 {
            let (place, cursor) = self.behind.next()?;
            match self.tuples.after(cursor) {
                None => {
                    self.full.remove(&place);
                }
                Some((serial, frame)) => {
                    self.allowance -= 1;
                    self.behind.insert(place.clone(), serial);
                    return Some(Errand {
                        to: place,
                        frame,
                        serial,
                    });
                }
            }
        }
        None
    }

    /// Returns the next tuple that is new, in order.
    pub(crate) fn poll_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due next; `None` means at once.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match (self.behind.is_empty(), self.paused.is_empty()) {
            (false, _) => None,
            (true, true) => Some(self.due),
            (true, false) => Some(self.due.min(self.retry)),
        }
    }

    fn introduce(&mut self, remote: usize) {
        let place = Place::Remote(remote);
        let (to, frame) = (place.clone(), Gossip::Hello.write());
        self.errands.push_back(Errand {
            to,
            frame,
            serial: 0,
        });
        self.full.remove(&place);
        self.paused.remove(&place);
        self.behind.insert(place, 0);
    }

    fn learn(&mut self, key: Vec<u8>, value: Vec<u8>, source: Place, now: Instant) {
        if !self.tuples.is_news(&key, &value, now, SETTLED) {
            return;
        }
        let evicted = self.tuples.make_room(&key, &value);
        self.dropped += evicted.unwrap_or(1);
        if evicted.is_none() {
            return;
        }
        self.tuples.store(&key, &value, false, now);
        self.spread(&key, Some(&source));
        self.news.push_back((key, value));
    }

    /// Sends a tuple to all nodes but its source. Those that catch up get it with the others.
    fn spread(&mut self, key: &[u8], source: Option<&Place>) {
        let Some((serial, frame)) = self.tuples.published(key) else {
            return;
        };
        let clients = self.clients.keys().cloned().map(Place::Client);
        for to in clients.chain((0..self.remotes).map(Place::Remote)) {
            let is_waiting = self.behind.contains(&to) || self.paused.contains(&to);
            if source != Some(&to) && !is_waiting {
                let frame = frame.clone();
                self.errands.push_back(Errand { to, frame, serial });
            }
        }
    }

    fn answer(&mut self, client: &[u8], message: &Gossip) {
        let (to, frame) = (Place::Client(client.to_vec()), message.write());
        self.errands.push_back(Errand {
            to,
            frame,
            serial: 0,
        });
    }

    /// Forgets the client that has been silent longest.
    fn evict(&mut self) {
        let oldest = self.clients.iter().min_by_key(|(_, last)| **last);
        if let Some(client) = oldest.map(|(client, _)| client.clone()) {
            self.handle_gone(&client);
            self.dropped += 1;
        }
    }
}
