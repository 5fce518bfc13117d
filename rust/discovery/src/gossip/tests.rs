//! The gossip of nodes, with a clock of its own.

use std::collections::HashMap;

use super::tuples::{BYTES_MAX, TUPLES_MAX};
use super::*;
use crate::wire::MAX_FRAME;

const CLIENT: &[u8] = b"client";

fn published(key: &[u8], value: &[u8]) -> Vec<u8> {
    Gossip::Publish {
        key: key.to_vec(),
        value: value.to_vec(),
    }
    .write()
}

fn place() -> Place {
    Place::Client(CLIENT.to_vec())
}

fn drain(exchange: &mut Exchange) -> Vec<Errand> {
    std::iter::from_fn(|| exchange.poll_errand()).collect()
}

/// Nodes, each connected to some of those before it. A connection that is cut loses what is in transit.
struct Gossips {
    now: Instant,
    remotes: Vec<Vec<usize>>,
    nodes: Vec<Exchange>,
    news: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
    messages: usize,
    /// The routing ID of each connection: a new one does not know the old one's.
    connections: HashMap<(usize, usize), Vec<u8>>,
}

impl Gossips {
    fn new(remotes: Vec<Vec<usize>>) -> Gossips {
        let now = Instant::now();
        let mut connections = HashMap::new();
        for (one, others) in remotes.iter().enumerate() {
            for other in others {
                connections.insert((one, *other), format!("{one} {other}").into_bytes());
            }
        }
        Gossips {
            now,
            nodes: remotes
                .iter()
                .map(|others| Exchange::new(others.len(), now))
                .collect(),
            news: vec![BTreeMap::new(); remotes.len()],
            remotes,
            messages: 0,
            connections,
        }
    }

    fn reconnect(&mut self, one: usize, other: usize) {
        let connection = self.connections.get_mut(&(one, other)).unwrap();
        self.nodes[other].handle_gone(connection);
        connection.push(b'\'');
    }

    fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.now < end {
            self.now += Duration::from_millis(100);
            self.nodes
                .iter_mut()
                .for_each(|node| node.handle_timeout(self.now));
            self.settle(usize::MAX);
        }
    }

    /// Delivers what is in transit, `most` messages at most. Returns whether that was all.
    fn settle(&mut self, most: usize) -> bool {
        let mut queue = VecDeque::new();
        loop {
            for (number, node) in self.nodes.iter_mut().enumerate() {
                queue.extend(drain(node).into_iter().map(|errand| (number, errand)));
                while let Some((key, value)) = node.poll_news() {
                    self.news[number].insert(key, value);
                }
            }
            let Some((number, errand)) = queue.pop_front() else {
                return true;
            };
            if self.messages >= most {
                return false;
            }
            self.messages += 1;
            self.deliver(number, errand);
        }
    }

    fn deliver(&mut self, number: usize, errand: Errand) {
        match errand.to {
            Place::Remote(remote) => {
                let other = self.remotes[number][remote];
                let client = self.connections[&(number, other)].clone();
                self.nodes[other].handle_client(&client, &errand.frame, self.now);
            }
            Place::Client(client) => {
                let mut connections = self.connections.iter();
                let found = connections.find(|(_, name)| **name == client);
                let Some(((one, _), _)) = found else {
                    return self.nodes[number].handle_gone(&client);
                };
                let remote = self.remotes[*one].iter().position(|other| *other == number);
                self.nodes[*one].handle_remote(remote.unwrap(), &errand.frame, self.now);
            }
        }
    }
}

#[test]
fn a_tuple_reaches_all_in_both_directions() {
    let mut gossips = Gossips::new(vec![vec![], vec![0], vec![1], vec![0, 2]]);
    for (number, node) in gossips.nodes.iter_mut().enumerate() {
        node.publish(&[number as u8], b"v", gossips.now);
    }
    gossips.settle(usize::MAX);
    for (number, news) in gossips.news.iter().enumerate() {
        let others = (0..4)
            .filter(|other| *other != number)
            .map(|other| vec![other as u8]);
        assert!(news.keys().cloned().eq(others), "{number} knows {news:?}");
    }
}

#[test]
fn a_node_that_is_forgotten_introduces_itself_again() {
    let mut gossips = Gossips::new(vec![vec![], vec![0]]);
    gossips.nodes[1].publish(b"mine", b"v", gossips.now);
    gossips.settle(usize::MAX);
    gossips.reconnect(1, 0);
    gossips.nodes[0].publish(b"late", b"v", gossips.now);
    gossips.settle(usize::MAX);
    assert!(!gossips.news[1].contains_key(&b"late"[..]));
    gossips.run(Duration::from_secs(1));
    assert!(gossips.news[1].contains_key(&b"late"[..]));
}

#[test]
fn any_network_agrees_in_the_end() {
    for seed in 0..20_u64 {
        let mut state = seed;
        let mut below = move |most: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % most
        };
        let size = 2 + below(5);
        let links = (0..size).map(|node| (0..node).filter(|_| below(3) > 0).collect::<Vec<_>>());
        let links: Vec<Vec<usize>> = links
            .enumerate()
            .map(|(node, links)| {
                if node > 0 && links.is_empty() {
                    vec![node - 1]
                } else {
                    links
                }
            })
            .collect();
        let mut gossips = Gossips::new(links.clone());
        for step in 0..40_u8 {
            let number = below(size);
            if below(2) == 0 {
                let now = gossips.now;
                gossips.nodes[number].publish(&[number as u8, step], b"v", now);
            } else if let Some(other) = links[number].get(below(links[number].len().max(1))) {
                gossips.reconnect(number, *other);
            }
            gossips.run(Duration::from_millis([0, 100, 1500][below(3)]));
        }
        gossips.run(Duration::from_secs(5));
        let first = gossips.nodes[0].tuples.all();
        for node in &gossips.nodes {
            assert_eq!(node.tuples.all(), first, "seed {seed}");
        }
    }
}

#[test]
fn nodes_that_disagree_do_not_argue_forever() {
    let mut gossips = Gossips::new(vec![vec![], vec![0], vec![0, 1]]);
    for (number, node) in gossips.nodes.iter_mut().enumerate() {
        node.publish(b"same", &[number as u8], gossips.now);
    }
    assert!(gossips.settle(100));
    for number in 0..2_u8 {
        let frame = published(b"foreign", &[number]);
        gossips.nodes[usize::from(number)].handle_remote(9, &frame, gossips.now);
    }
    assert!(gossips.settle(1000), "they still talk");
}

#[test]
fn a_flood_of_tuples_has_a_bound_and_keeps_the_own_ones() {
    let now = Instant::now();
    let mut node = Exchange::new(0, now);
    node.publish(b"mine", b"v", now);
    node.handle_client(CLIENT, &Gossip::Hello.write(), now);
    for number in 0..TUPLES_MAX + 100 {
        node.handle_client(CLIENT, &published(number.to_string().as_bytes(), b"v"), now);
        while node.poll_news().is_some() {}
    }
    assert_eq!(node.tuples.all().len(), TUPLES_MAX);
    assert_eq!(node.dropped(), 101);
    for number in 0..200 {
        let key = format!("large {number}");
        let frame = published(key.as_bytes(), &vec![b'v'; MAX_FRAME - 100]);
        node.handle_client(CLIENT, &frame, now);
    }
    let tuples = node.tuples.all();
    let bytes: usize = tuples
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    assert_eq!(node.tuples.bytes(), bytes);
    assert!(bytes <= BYTES_MAX);
    let later = now + Duration::from_secs(5);
    node.handle_client(CLIENT, &published(b"mine", b"stolen"), later);
    assert_eq!(node.tuples.all()[&b"mine"[..]], b"v");
}

#[test]
fn clients_have_a_bound_and_must_say_hello() {
    let now = Instant::now();
    let mut node = Exchange::new(0, now);
    node.handle_client(CLIENT, &published(b"k", b"v"), now);
    let answers = drain(&mut node);
    assert_eq!(
        answers,
        [Errand {
            to: place(),
            frame: Gossip::Invalid.write(),
            serial: 0
        }]
    );
    assert_eq!(node.poll_news(), None);
    for number in 0..CLIENTS_MAX + 100 {
        node.handle_client(number.to_string().as_bytes(), &Gossip::Hello.write(), now);
    }
    assert_eq!((node.clients.len(), node.dropped()), (CLIENTS_MAX, 100));
    node.handle_client(CLIENT, b"noise", now);
    node.handle_remote(0, b"noise", now);
    node.handle_other();
    assert_eq!(node.dropped(), 103);
}

#[test]
fn a_node_gives_a_sign_of_life() {
    let now = Instant::now();
    let mut node = Exchange::new(1, now);
    assert_eq!(drain(&mut node)[0].frame, Gossip::Hello.write());
    node.handle_timeout(now + ALIVE);
    assert_eq!(drain(&mut node)[0].frame, Gossip::Ping.write());
    node.publish(b"mine", b"v", now);
    drain(&mut node);
    node.handle_timeout(now + 2 * ALIVE);
    assert_eq!(drain(&mut node)[0].frame, published(b"mine", b"v"));
}

/// Lets a connection take `room` messages at a time, until nothing is left. Returns the keys that it took.
fn catch_up(node: &mut Exchange, room: usize, now: &mut Instant) -> Vec<Vec<u8>> {
    let mut taken = Vec::new();
    loop {
        node.handle_timeout(*now);
        let mut left = room;
        while let Some(errand) = node.poll_errand() {
            if left == 0 {
                node.handle_full(errand, *now);
                continue;
            }
            left -= 1;
            if let Some(Gossip::Publish { key, .. }) = Gossip::read(&errand.frame) {
                taken.push(key);
            }
        }
        if left == room {
            return taken;
        }
        *now += RETRY;
    }
}

#[test]
fn a_client_with_little_room_gets_every_tuple() {
    for (room, count) in [(1000, 5000), (7, 100)] {
        let mut now = Instant::now();
        let mut node = Exchange::new(0, now);
        let keys: Vec<Vec<u8>> = (0..count)
            .map(|number: u32| number.to_be_bytes().to_vec())
            .collect();
        keys.iter().for_each(|key| node.publish(key, b"v", now));
        node.handle_client(CLIENT, &Gossip::Hello.write(), now);
        assert_eq!(catch_up(&mut node, room, &mut now), keys);
        node.publish(b"next", b"v", now);
        assert_eq!(catch_up(&mut node, room, &mut now), [b"next"]);
    }
}

#[test]
fn a_client_that_catches_up_gets_changes_once() {
    let mut now = Instant::now();
    let mut node = Exchange::new(0, now);
    (0..20_u8).for_each(|number| node.publish(&[number], b"v", now));
    node.handle_client(CLIENT, &Gossip::Hello.write(), now);
    node.publish(&[3], b"changed", now);
    let taken = catch_up(&mut node, 5, &mut now);
    assert_eq!((taken.len(), taken.last()), (20, Some(&vec![3])));
}

#[test]
fn a_client_that_takes_nothing_is_forgotten() {
    let start = Instant::now();
    let mut node = Exchange::new(0, start);
    node.publish(b"k", b"v", start);
    node.handle_client(CLIENT, &Gossip::Hello.write(), start);
    let mut now = start;
    while !node.clients.is_empty() {
        node.handle_timeout(now);
        while let Some(errand) = node.poll_errand() {
            node.handle_full(errand, now);
        }
        now += Duration::from_millis(100);
        assert!(now < start + Duration::from_secs(60));
    }
    assert!(node.behind.is_empty() && node.full.is_empty() && node.paused.is_empty());
}

#[test]
fn greetings_without_end_do_not_repeat_all_tuples_each_time() {
    let now = Instant::now();
    let mut node = Exchange::new(0, now);
    (0..TUPLES_MAX).for_each(|number| node.publish(number.to_string().as_bytes(), b"v", now));
    for number in 0..100 {
        node.handle_client(number.to_string().as_bytes(), &Gossip::Hello.write(), now);
    }
    assert_eq!(drain(&mut node).len(), CATCH_UP);
}
