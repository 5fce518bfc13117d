//! The machine of a node, with a clock of its own, and a network that loses, stops and lies.

mod lies;
mod network;

use std::collections::BTreeMap;

use super::*;
use crate::event::Event;
use network::{Network, Station, id, seconds};

const GROUP: &str = "chat";

fn pair(network: &mut Network) -> (usize, usize) {
    let (one, other) = (network.add(), network.add());
    network.run(seconds(1));
    (one, other)
}

fn kinds(events: &[Event]) -> Vec<String> {
    let kind = |event: &Event| match event {
        Event::Exit { reason, .. } => format!("Exit {reason}"),
        other => format!("{other:?}")
            .split(' ')
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    events.iter().map(kind).collect()
}

#[test]
fn nodes_find_each_other_and_talk() {
    let mut network = Network::new();
    let (one, other) = pair(&mut network);
    assert_eq!(kinds(&network.take(other)), ["Enter"]);
    network.machine(other).join(GROUP);
    network.settle();
    assert_eq!(kinds(&network.take(one)), ["Enter", "Join"]);
    assert_eq!(
        network
            .machine(one)
            .shout(GROUP, &Message::from(["all", ""])),
        1
    );
    assert_eq!(
        network
            .machine(one)
            .shout("unknown", &Message::from("nobody")),
        0
    );
    assert!(network.machine(other).whisper(id(1), Message::from("you")));
    assert!(
        !network
            .machine(other)
            .whisper(id(99), Message::from("nobody"))
    );
    network.settle();
    let (peer, name) = (id(1), "n1".into());
    let shout = Event::Shout {
        peer,
        name,
        group: GROUP.to_owned(),
        content: Message::from(["all", ""]),
    };
    assert_eq!(network.take(other), [shout]);
    let (peer, name) = (id(2), "n2".into());
    assert_eq!(
        network.take(one),
        [Event::Whisper {
            peer,
            name,
            content: Message::from("you")
        }]
    );
    network.machine(other).leave(GROUP);
    network.settle();
    assert_eq!(kinds(&network.take(one)), ["Leave"]);
}

#[test]
fn a_late_node_learns_the_groups_and_headers() {
    let mut network = Network::new();
    let one = network.add();
    network.machine(one).join(GROUP);
    network.run(seconds(5));
    let other = network.add();
    network.run(seconds(1));
    let peers = network.machine(other).peers();
    let [peer] = peers.as_slice() else {
        panic!("{peers:?}");
    };
    assert_eq!(
        (&*peer.name, peer.endpoint.as_str()),
        ("n1", "tcp://10.0.0.1:49152")
    );
    assert_eq!(peer.headers.get("number").map(String::as_str), Some("1"));
    assert!(peer.groups.contains(GROUP) && !peer.is_evasive);
    assert_eq!(network.machine(other).peer(id(1)).as_ref(), Some(peer));
    assert_eq!(kinds(&network.take(other)), ["Enter", "Join"]);
}

#[test]
fn a_quiet_peer_is_pinged_and_stays() {
    let mut network = Network::new();
    let (one, other) = pair(&mut network);
    network.take(one);
    network.run(seconds(120));
    assert!(network.take(one).is_empty());
    assert_eq!(network.names(other), ["n1"]);
}

#[test]
fn a_killed_peer_is_evasive_silent_and_gone() {
    let mut network = Network::new();
    let (one, other) = pair(&mut network);
    network.take(one);
    let heard = network.machine(one).members[&id(2)].heard;
    network.kill(other);
    let mut found = Vec::new();
    while found.len() < 3 {
        network.run(Duration::from_millis(100));
        let passed = (network.now - heard).as_secs_f64();
        found.extend(
            kinds(&network.take(one))
                .into_iter()
                .map(|kind| (kind, passed)),
        );
    }
    let expected = [("Evasive", 5.0), ("Silent", 6.0), ("Exit expired", 30.0)];
    for ((kind, passed), (name, earliest)) in found.iter().zip(expected) {
        assert_eq!(kind, name);
        assert!(
            (earliest..=earliest + 1.0).contains(passed),
            "{kind} after {passed} s"
        );
    }
    assert!(network.machine(one).peers().is_empty());
}

#[test]
fn a_peer_that_says_goodbye_is_gone_at_once() {
    let mut network = Network::new();
    let (one, other) = pair(&mut network);
    network.take(one);
    network.close(other);
    assert_eq!(kinds(&network.take(one)), ["Exit goodbye"]);
}

#[test]
fn a_stopped_peer_returns() {
    for beacons in [true, false] {
        let mut network = Network::of(beacons, 100);
        let (one, other) = network.announced_pair();
        network.station(other).does_run = false;
        network.run(seconds(40));
        assert!(kinds(&network.take(one)).ends_with(&["Exit expired".to_owned()]));
        network.station(other).does_run = true;
        network.run(seconds(5));
        assert_eq!(
            (network.names(one), network.names(other)),
            (vec!["n2".to_owned()], vec!["n1".to_owned()])
        );
        // It did not run, so the silence of the others says nothing.
        assert!(!kinds(&network.take(other)).contains(&"Exit expired".to_owned()));
        network.machine(other).join(GROUP);
        network.settle();
        assert!(kinds(&network.take(one)).contains(&"Join".to_owned()));
    }
}

#[test]
fn both_sides_of_a_cut_find_each_other_when_it_is_mended() {
    for beacons in [true, false] {
        let mut network = Network::of(beacons, 100);
        let (one, other) = network.announced_pair();
        network.cut(one, other);
        network.run(seconds(60));
        assert!(network.names(one).is_empty() && network.names(other).is_empty());
        network.mend();
        network.run(seconds(5));
        assert_eq!(
            (network.names(one), network.names(other)),
            (vec!["n2".to_owned()], vec!["n1".to_owned()])
        );
    }
}

#[test]
fn a_dead_node_from_gossip_is_given_up() {
    let mut network = Network::of(false, 100);
    let one = network.add();
    let now = network.now;
    let key = id(99).digits();
    network
        .machine(one)
        .handle_announcement(key.as_bytes(), b"tcp://10.0.0.99:1", now);
    network.run(seconds(30));
    assert_eq!(network.machine(one).members.len(), 1);
    network.run(seconds(400));
    assert_eq!(network.forgotten, [id(99)]);
    assert!(network.machine(one).members.is_empty());
    assert!(network.take(one).is_empty());
}

#[test]
fn a_restarted_node_replaces_the_one_at_its_endpoint() {
    let mut network = Network::new();
    let (one, other) = pair(&mut network);
    network.take(one);
    network.kill(other);
    network.add_at(2);
    network.run(seconds(1));
    assert_eq!(kinds(&network.take(one))[..2], ["Exit restarted", "Enter"]);
    assert_eq!(network.names(one), ["n3"]);
}

#[test]
fn a_gap_in_the_numbers_ends_the_peer_and_beacons_bring_it_back() {
    let mut network = Network::new();
    let (one, other) = pair(&mut network);
    network.take(one);
    network.machine(other).whisper(id(1), Message::from("lost"));
    network.machine(other).poll_command();
    network.machine(other).whisper(id(1), Message::from("late"));
    network.settle();
    assert_eq!(kinds(&network.take(one)), ["Exit messages lost"]);
    network.run(seconds(2));
    assert_eq!(kinds(&network.take(one)), ["Enter"]);
    network
        .machine(other)
        .whisper(id(1), Message::from("again"));
    network.settle();
    assert_eq!(kinds(&network.take(one)), ["Whisper"]);
}

#[test]
fn numbers_begin_again_after_65535() {
    let mut network = Network::new();
    let (one, other) = pair(&mut network);
    network.take(one);
    for number in 0..70_000 {
        network
            .machine(other)
            .whisper(id(1), Message::from(number.to_string()));
    }
    network.settle();
    let events = network.take(one);
    assert_eq!(events.len(), 70_000);
    for (number, event) in events.iter().enumerate() {
        let Event::Whisper { content, .. } = event else {
            panic!("{event:?}");
        };
        assert_eq!(content.head().as_slice(), number.to_string().as_bytes());
    }
}

#[test]
fn a_peer_that_does_not_read_is_gone() {
    let mut network = Network::new();
    let (one, _) = pair(&mut network);
    network.take(one);
    network.machine(one).handle_full(id(2));
    network.settle();
    assert_eq!(kinds(&network.take(one)), ["Exit not reading"]);
    assert_eq!(network.machine(one).dropped(), 1);
    network.run(seconds(2));
    assert_eq!(network.names(one), ["n2"]);
}

#[test]
fn without_beacons_a_sign_of_life_brings_a_peer_back() {
    let mut network = Network::of(false, 100);
    let (one, _) = (network.add(), network.add());
    let now = network.now;
    let key = id(2).digits();
    network
        .machine(one)
        .handle_announcement(key.as_bytes(), b"tcp://10.0.0.2:49152|key", now);
    network.run(seconds(1));
    network.machine(one).handle_full(id(2));
    network.run(seconds(10));
    assert_eq!(network.names(one), ["n2"]);
    assert_eq!(
        kinds(&network.take(one)),
        ["Enter", "Exit not reading", "Enter"]
    );
}

#[test]
fn silence_does_not_count_while_the_program_does_not_read() {
    let mut network = Network::new();
    let (one, other) = pair(&mut network);
    network.take(one);
    network.kill(other);
    for _ in 0..100 {
        network.now += seconds(1);
        let now = network.now;
        network.machine(one).handle_timeout(now, false);
    }
    network.settle();
    assert!(network.take(one).is_empty());
}

#[test]
fn the_lowest_contestant_leads() {
    let mut network = Network::new();
    let stations: Vec<usize> = [7, 3, 5, 9].map(|number| network.add_as(number)).to_vec();
    for station in &stations {
        network.machine(*station).join(GROUP);
    }
    network.run(seconds(2));
    for station in &stations[..3] {
        network.machine(*station).contest(GROUP);
        network.settle();
    }
    for station in &stations {
        assert_eq!(leader(&network.take(*station)), Some(id(3)));
    }
    network.kill(stations[1]);
    network.run(seconds(40));
    for station in [0, 2, 3] {
        assert_eq!(leader(&network.take(stations[station])), Some(id(5)));
    }
    network.close(stations[2]);
    network.run(seconds(1));
    network.machine(stations[3]).leave(GROUP);
    network.run(seconds(1));
    assert_eq!(leader(&network.take(stations[0])), Some(id(7)));
}

fn leader(events: &[Event]) -> Option<NodeId> {
    let leaders = events.iter().filter_map(|event| match event {
        Event::Leader { peer, .. } => Some(*peer),
        _ => None,
    });
    leaders.last()
}

#[test]
fn any_network_settles() {
    // After any accidents, all nodes know each other and their groups, and each had a proper sequence of events.
    for seed in 0..30 {
        let mut network = Network::of(true, 100);
        let mut dice = network::Dice(seed);
        for _ in 0..2 + dice.below(4) {
            network.add();
        }
        for _ in 0..60 {
            let stations = network.alive();
            let station = stations[dice.below(stations.len())];
            let group = ["a", "b", "c"][dice.below(3)];
            match dice.below(9) {
                0 => network.machine(station).join(group),
                1 => network.machine(station).leave(group),
                2 => drop(network.machine(station).shout(group, &Message::from("x"))),
                3 => network.cut(station, stations[dice.below(stations.len())]),
                4 => network.mend(),
                5 => network.station(station).does_run ^= true,
                6 if stations.len() > 2 => match network.station(station).does_run {
                    true => network.close(station),
                    false => network.kill(station),
                },
                7 if stations.len() < 6 => drop(network.add()),
                8 => network.lose(station),
                _ => {}
            }
            network.run(Duration::from_millis([0, 100, 3000, 8000][dice.below(4)]));
        }
        network.mend();
        let alive = network.alive();
        alive
            .iter()
            .for_each(|station| network.station(*station).does_run = true);
        network.run(seconds(90));
        let everyone: BTreeMap<String, Vec<String>> = alive
            .iter()
            .map(|station| {
                let Station { machine, name, .. } = network.station(*station);
                (name.clone(), machine.groups().to_vec())
            })
            .collect();
        for station in &alive {
            let peers = network.machine(*station).peers();
            assert_eq!(peers.len(), alive.len() - 1, "seed {seed}");
            for peer in &peers {
                let mut groups = everyone[&*peer.name].clone();
                groups.sort();
                assert!(peer.groups.iter().eq(&groups), "seed {seed}: {peer:?}");
            }
            check_sequence(&network.take(*station), &peers);
        }
    }
}

/// Checks that each peer enters before anything else, exits after it, and joins before it leaves.
fn check_sequence(events: &[Event], left: &[Peer]) {
    let mut groups: BTreeMap<NodeId, BTreeSet<&str>> = BTreeMap::new();
    for event in events {
        let known = groups.get_mut(&event.peer());
        match event {
            Event::Enter { peer, .. } => {
                assert!(groups.insert(*peer, BTreeSet::new()).is_none());
            }
            Event::Exit { peer, .. } => assert!(groups.remove(peer).is_some()),
            Event::Join { group, .. } => assert!(known.unwrap().insert(group)),
            Event::Leave { group, .. } => assert!(known.unwrap().remove(group.as_str())),
            _ => assert!(known.is_some()),
        }
    }
    let left: BTreeSet<NodeId> = left.iter().map(|peer| peer.id).collect();
    assert!(groups.into_keys().eq(left));
}
