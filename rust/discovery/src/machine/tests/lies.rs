//! Peers that lie, and bytes that no peer would send.

use zeroxide::Frame;

use super::network::{Dice, Network, id, seconds};
use super::*;
use crate::machine::strangers::STRANGERS_MAX;
use crate::wire::{Hello, MAX_GROUPS, MAX_HEADERS};

fn hello(change: impl FnOnce(&mut Hello)) -> Message {
    let mut hello = Hello {
        endpoint: "tcp://10.0.0.77:1".to_owned(),
        name: "liar".to_owned(),
        ..Hello::default()
    };
    change(&mut hello);
    Packet {
        sequence: 1,
        body: Body::Hello(hello),
    }
    .write()
}

/// Lets a node receive a message from another one, whose number this is.
fn receive(network: &mut Network, station: usize, number: u64, mut message: Message) {
    message.push_front(Frame::from(id(number).routing_id()));
    let now = network.now;
    network.machine(station).handle_message(message, now);
    network.settle();
}

#[test]
fn a_hello_that_asks_too_much_is_ignored() {
    let mut network = Network::new();
    let one = network.add();
    let names = |count: usize| (0..count).map(|number| number.to_string());
    for wrong in [
        hello(|hello| hello.groups = names(MAX_GROUPS + 1).collect()),
        hello(|hello| {
            hello.headers = names(MAX_HEADERS + 1)
                .map(|name| (name, String::new()))
                .collect()
        }),
        hello(|hello| drop(hello.headers.insert("a".to_owned(), "b".repeat(70_000)))),
        hello(|hello| hello.groups = vec!["g".repeat(256)]),
        hello(|hello| hello.endpoint = "ipc:///tmp/secret".to_owned()),
        hello(|hello| hello.endpoint = String::new()),
        Packet {
            sequence: 2,
            body: Body::Hello(Hello {
                endpoint: "tcp://10.0.0.77:1".to_owned(),
                ..Hello::default()
            }),
        }
        .write(),
        Packet {
            sequence: 1,
            body: Body::Whisper(Message::from("early")),
        }
        .write(),
        Message::from("noise"),
    ] {
        let before = network.machine(one).dropped();
        receive(&mut network, one, 77, wrong);
        assert_eq!(network.machine(one).dropped(), before + 1);
        assert!(network.machine(one).members.is_empty());
    }
    receive(&mut network, one, 77, hello(|_| {}));
    assert_eq!(kinds(&network.take(one)), ["Enter"]);
}

#[test]
fn groups_of_a_peer_have_a_bound() {
    let mut network = Network::new();
    let one = network.add();
    receive(&mut network, one, 77, hello(|_| {}));
    for number in 0..MAX_GROUPS + 10 {
        let (group, status) = (number.to_string(), 0);
        let sequence = number as u16 + 2;
        receive(
            &mut network,
            one,
            77,
            Packet {
                sequence,
                body: Body::Join { group, status },
            }
            .write(),
        );
    }
    assert_eq!(network.machine(one).peers()[0].groups.len(), MAX_GROUPS);
    assert_eq!(network.machine(one).dropped(), 10);
}

#[test]
fn forged_beacons_take_no_place_of_a_peer() {
    let mut network = Network::of(true, 3);
    let (one, _) = pair(&mut network);
    network.take(one);
    for number in 100..200 {
        let (now, host) = (network.now, format!("10.9.9.{number}"));
        let beacon = write_beacon(id(number), 1);
        network.machine(one).handle_beacon(&beacon, &host, now);
        network.settle();
    }
    assert_eq!(network.machine(one).members.len(), 3);
    assert_eq!(network.names(one), ["n2"]);
    assert!(network.take(one).is_empty());
    // When all have said hello, no other one has a place.
    let machine = network.machine(one);
    machine
        .members
        .values_mut()
        .for_each(|member| member.is_ready = true);
    let (before, now) = (network.machine(one).dropped(), network.now);
    network
        .machine(one)
        .handle_beacon(&write_beacon(id(300), 1), "10.9.9.9", now);
    assert_eq!(network.machine(one).dropped(), before + 1);
}

#[test]
fn each_message_without_room_is_counted_once() {
    let mut network = Network::of(false, 1);
    let one = network.add();
    receive(&mut network, one, 77, hello(|_| {}));
    let other = "tcp://10.0.0.78:1";
    let now = network.now;
    receive(
        &mut network,
        one,
        78,
        hello(|hello| hello.endpoint = other.to_owned()),
    );
    assert_eq!(network.machine(one).dropped(), 1);
    let beacon = write_beacon(id(78), 1);
    network.machine(one).handle_beacon(&beacon, "h", now);
    assert_eq!(network.machine(one).dropped(), 2);
    let key = id(78).digits();
    network
        .machine(one)
        .handle_announcement(key.as_bytes(), other.as_bytes(), now);
    // The node is known from gossip now, and waits for a place.
    assert_eq!(network.machine(one).dropped(), 2);
    let (sequence, body) = (2, Body::Ping);
    receive(&mut network, one, 78, Packet { sequence, body }.write());
    assert_eq!(network.machine(one).dropped(), 3);
    assert_eq!(kinds(&network.take(one)), ["Enter"]);
    let (sequence, body) = (2, Body::Goodbye);
    receive(&mut network, one, 77, Packet { sequence, body }.write());
    network.run(seconds(1));
    let members: Vec<NodeId> = network.machine(one).members.keys().copied().collect();
    assert_eq!(members, [id(78)]);
}

#[test]
fn numbers_of_peers_that_are_gone_have_a_bound() {
    let mut network = Network::of(true, 5);
    let one = network.add();
    for number in 100..150 {
        receive(
            &mut network,
            one,
            number,
            hello(|hello| hello.endpoint += &number.to_string()),
        );
        receive(
            &mut network,
            one,
            number,
            Packet {
                sequence: 2,
                body: Body::Goodbye,
            }
            .write(),
        );
    }
    assert_eq!(network.machine(one).leftovers.len(), 5);
}

#[test]
fn leftovers_of_an_earlier_connection_are_ignored() {
    let mut network = Network::new();
    let one = network.add();
    let whisper = |sequence| {
        Packet {
            sequence,
            body: Body::Whisper(Message::from("x")),
        }
        .write()
    };
    for message in [
        hello(|_| {}),
        whisper(2),
        hello(|_| {}),
        whisper(3),
        whisper(4),
        whisper(2),
    ] {
        receive(&mut network, one, 77, message);
    }
    let expected = ["Enter", "Whisper", "Exit messages lost", "Enter", "Whisper"];
    assert_eq!(kinds(&network.take(one)), expected);
    assert_eq!(network.machine(one).dropped(), 2);
    // Any other number is a gap, and others may follow it on its connection.
    for message in [
        whisper(6),
        whisper(7),
        hello(|_| {}),
        whisper(8),
        whisper(2),
    ] {
        receive(&mut network, one, 77, message);
    }
    assert_eq!(
        kinds(&network.take(one)),
        ["Exit messages lost", "Enter", "Whisper"]
    );
}

#[test]
fn peers_cannot_elect_a_stranger() {
    let mut network = Network::new();
    let one = network.add();
    network.machine(one).join(GROUP);
    receive(
        &mut network,
        one,
        77,
        hello(|hello| hello.groups = vec![GROUP.to_owned()]),
    );
    let (group, member) = (GROUP.to_owned(), id(1234).digits());
    let elect = Body::Elect {
        group: group.clone(),
        member: member.clone(),
    };
    receive(
        &mut network,
        one,
        77,
        Packet {
            sequence: 2,
            body: elect,
        }
        .write(),
    );
    receive(
        &mut network,
        one,
        77,
        Packet {
            sequence: 3,
            body: Body::Leader { group, member },
        }
        .write(),
    );
    assert_eq!(leader(&network.take(one)), None);
}

/// Announces nodes that do not exist.
fn flood(network: &mut Network, station: usize, count: u64) {
    let now = network.now;
    for number in 1..=count {
        let key = id(number + 10_000).digits();
        let endpoint = format!("tcp://10.1.0.1:{number}");
        network
            .machine(station)
            .handle_announcement(key.as_bytes(), endpoint.as_bytes(), now);
    }
    network.settle();
}

#[test]
fn forged_gossip_takes_a_limited_number_of_places_and_keeps_no_node_out() {
    for count in [3000, 12_000] {
        let mut network = Network::of(false, 1000);
        let (one, other) = network.announced_pair();
        flood(&mut network, one, count);
        assert_eq!(network.machine(one).members.len(), 1 + STRANGERS_MAX);
        assert!(network.machine(one).announced.len() <= ANNOUNCED_MAX);
        let third = network.add();
        network.announce(one, third);
        network.run(seconds(2));
        assert_eq!(network.names(one), ["n2", "n3"]);
        // A node that was not announced here says hello.
        let fourth = network.add();
        network.announce(fourth, one);
        network.settle();
        assert_eq!(network.names(one), ["n2", "n3", "n4"]);
        assert_eq!(network.names(other), ["n1"]);
        assert_eq!(kinds(&network.take(one)), ["Enter", "Enter", "Enter"]);
    }
}

#[test]
fn nodes_that_gossip_announced_before_a_flood_are_found_in_the_end() {
    let mut network = Network::of(false, 100);
    let (one, other) = (network.add(), network.add());
    flood(&mut network, one, 100);
    network.announce(one, other);
    flood(&mut network, one, 1000);
    network.run(seconds(20));
    assert_eq!(network.names(one), ["n2"]);
    // Nodes that do not exist are given up.
    network.run(seconds(1000));
    assert_eq!(network.names(one), ["n2"]);
    assert_eq!(network.machine(one).announced.len(), 1);
    assert_eq!(network.machine(one).members.len(), 1);
}

#[test]
fn more_announced_nodes_than_may_be_strangers_are_all_found_at_once() {
    let mut network = Network::of(false, 1000);
    let one = network.add();
    for _ in 0..250 {
        let other = network.add();
        network.announce(one, other);
    }
    network.settle();
    assert_eq!(network.names(one).len(), 250);
}

#[test]
fn forged_beacons_take_a_limited_number_of_places() {
    let mut network = Network::of(true, 1000);
    let one = network.add();
    for number in 100..1100 {
        let now = network.now;
        let beacon = write_beacon(id(number), number as u16);
        network.machine(one).handle_beacon(&beacon, "10.9.9.9", now);
    }
    network.settle();
    assert_eq!(network.machine(one).members.len(), STRANGERS_MAX);
    assert_eq!(network.machine(one).dropped(), 1000 - STRANGERS_MAX as u64);
    network.add();
    network.run(seconds(1));
    assert_eq!(network.names(one), ["n2"]);
}

#[test]
fn announced_nodes_have_a_bound() {
    let mut network = Network::of(false, 5);
    let one = network.add();
    let now = network.now;
    for number in 0..ANNOUNCED_MAX as u64 + 10 {
        let (key, endpoint) = (
            id(number + 1000).digits(),
            format!("tcp://10.0.0.9:{number}"),
        );
        network
            .machine(one)
            .handle_announcement(key.as_bytes(), endpoint.as_bytes(), now);
        network.settle();
    }
    assert_eq!(network.machine(one).announced.len(), ANNOUNCED_MAX);
    assert_eq!(network.machine(one).members.len(), 5);
}

#[test]
fn no_bytes_harm_a_node() {
    let whole = [
        hello(|hello| hello.groups = vec![GROUP.to_owned()]),
        Packet {
            sequence: 2,
            body: Body::Join {
                group: GROUP.to_owned(),
                status: 1,
            },
        }
        .write(),
        Packet {
            sequence: 2,
            body: Body::Elect {
                group: GROUP.to_owned(),
                member: id(1).digits(),
            },
        }
        .write(),
        Packet {
            sequence: 3,
            body: Body::Leader {
                group: GROUP.to_owned(),
                member: id(77).digits(),
            },
        }
        .write(),
        Packet {
            sequence: 2,
            body: Body::Whisper(Message::from("x")),
        }
        .write(),
    ];
    for seed in 0..10 {
        let mut network = Network::new();
        let mut dice = Dice(seed);
        let one = network.add();
        network.machine(one).join(GROUP);
        network.machine(one).contest(GROUP);
        for _ in 0..2000 {
            let mut frame = whole[dice.below(whole.len())].head().as_slice().to_vec();
            for _ in 0..dice.below(4) {
                let place = dice.below(frame.len());
                frame[place] = [0, 1, 2, 255, dice.below(256) as u8][dice.below(5)];
            }
            if dice.below(2) == 0 {
                frame.truncate(dice.below(frame.len() + 1));
            }
            let sender = [77, dice.below(9) as u64][dice.below(2)];
            receive(&mut network, one, sender, Message::from(frame));
            if dice.below(20) == 0 {
                network.run(seconds(3));
            }
        }
        let other = network.add();
        network.run(seconds(90));
        assert!(network.names(one).contains(&"n2".to_owned()), "seed {seed}");
        assert_eq!(
            network.machine(other).peer(id(1)).map(|peer| peer.id),
            Some(id(1))
        );
    }
}
