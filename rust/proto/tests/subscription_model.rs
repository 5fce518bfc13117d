//! Random programs against both subscription tables and the most naive models of them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use zeroxide_proto::subscription::{Added, Dropped, Removal, SubscriberTable, Subscriptions};

/// Topics that share prefixes: few letters, or long runs of one letter on either side of the longest label.
fn topic() -> impl Strategy<Value = Vec<u8>> {
    let run = (0..3usize, 4090..4100usize, 0..3usize).prop_map(|(chains, length, letter)| {
        let mut topic = vec![b'x'; chains * length];
        topic.push(b'a' + letter as u8);
        topic
    });
    prop_oneof![
        6 => prop::collection::vec(0..3u8, 0..6),
        3 => prop::collection::vec(any::<u8>(), 0..3),
        2 => prop::collection::vec(0..2u8, 18..27),
        1 => run,
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<u8>, u8),
    Remove(Vec<u8>, u8),
    /// Removes a topic that is there, so that trees shrink as often as they grow.
    RemoveAny(prop::sample::Index, u8),
    RemovePeer(u8),
    Match(Vec<u8>),
    MatchBelow(prop::sample::Index, Vec<u8>),
}

/// Single steps, and series of them: more topics with one beginning than fit into a node of a tree.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let peer = || 0..4u8;
    let index = any::<prop::sample::Index>;
    let step = prop_oneof![
        8 => (topic(), peer()).prop_map(|(topic, peer)| Step::Add(topic, peer)),
        1 => (topic(), peer()).prop_map(|(topic, peer)| Step::Remove(topic, peer)),
        5 => (index(), peer()).prop_map(|(at, peer)| Step::RemoveAny(at, peer)),
        1 => peer().prop_map(Step::RemovePeer),
        2 => topic().prop_map(Step::Match),
        2 => (index(), topic()).prop_map(|(at, more)| Step::MatchBelow(at, more)),
    ];
    let added = (topic(), 0..200usize, peer()).prop_map(|(topic, count, peer)| {
        let numbered = |n| [&topic[..], format!("{n:02}").as_bytes()].concat();
        (0..count).map(|n| Step::Add(numbered(n), peer)).collect()
    });
    let removed = (index(), 0..200usize, peer())
        .prop_map(|(at, count, peer)| vec![Step::RemoveAny(at, peer); count]);
    let steps = prop_oneof![
        20 => step.prop_map(|step| vec![step]),
        1 => added,
        1 => removed,
    ];
    prop::collection::vec(steps, 0..120).prop_map(|steps| steps.concat())
}

fn check_subscriptions(steps: &[Step]) {
    let mut real = Subscriptions::new();
    let mut model: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for step in steps {
        let below = |at: &prop::sample::Index, more: &[u8]| {
            let topic = model.keys().nth(at.index(model.len().max(1)));
            topic
                .map(|topic| [topic, more].concat())
                .unwrap_or_default()
        };
        match step {
            Step::Add(topic, _) => {
                let count = model.entry(topic.clone()).or_default();
                *count += 1;
                assert_eq!(real.add(topic), *count == 1);
            }
            Step::Remove(..) | Step::RemoveAny(..) => {
                let topic = match step {
                    Step::Remove(topic, _) => topic.clone(),
                    Step::RemoveAny(at, _) => below(at, b""),
                    _ => unreachable!(),
                };
                let expected = match model.get_mut(&topic) {
                    None => Removal::Unknown,
                    Some(1) => Removal::Last,
                    Some(count) => {
                        *count -= 1;
                        Removal::Remaining
                    }
                };
                if expected == Removal::Last {
                    model.remove(&topic);
                }
                assert_eq!(real.remove(&topic), expected);
            }
            Step::RemovePeer(_) => {}
            Step::Match(text) => {
                let expected = model.keys().any(|topic| text.starts_with(topic));
                assert_eq!(real.matches(text), expected);
            }
            Step::MatchBelow(at, more) => {
                let text = below(at, more);
                let expected = model.keys().any(|topic| text.starts_with(topic));
                assert_eq!(real.matches(&text), expected);
            }
        }
        assert_eq!(real.len(), model.len());
        assert_eq!(real.is_empty(), model.is_empty());
    }
    let mut listed = Vec::new();
    real.for_each(|topic| listed.push(topic.to_vec()));
    assert!(listed.iter().eq(model.keys()));
}

fn check_table(steps: &[Step]) {
    let mut real = SubscriberTable::new();
    let mut model: BTreeMap<Vec<u8>, BTreeSet<u8>> = BTreeMap::new();
    for (number, step) in steps.iter().enumerate() {
        let below = |at: &prop::sample::Index, more: &[u8]| {
            let topic = model.keys().nth(at.index(model.len().max(1)));
            topic
                .map(|topic| [topic, more].concat())
                .unwrap_or_default()
        };
        match step {
            Step::Add(topic, peer) => {
                let peers = model.entry(topic.clone()).or_default();
                let expected = match (peers.is_empty(), peers.insert(*peer)) {
                    (true, _) => Added::FirstOfTopic,
                    (false, true) => Added::FirstOfPeer,
                    (false, false) => Added::Duplicate,
                };
                assert_eq!(real.add(topic, *peer), expected);
            }
            Step::Remove(..) | Step::RemoveAny(..) => {
                let (topic, peer) = match step {
                    Step::Remove(topic, peer) => (topic.clone(), peer),
                    Step::RemoveAny(at, peer) => (below(at, b""), peer),
                    _ => unreachable!(),
                };
                let peers = model.entry(topic.clone()).or_default();
                let expected = match (peers.remove(peer), peers.is_empty()) {
                    (false, _) => Dropped::Unknown,
                    (true, false) => Dropped::Remaining,
                    (true, true) => Dropped::LastOfTopic,
                };
                model.retain(|_, peers| !peers.is_empty());
                assert_eq!(real.remove(&topic, *peer), expected);
            }
            Step::RemovePeer(peer) => {
                let mut expected = BTreeSet::new();
                model.retain(|topic, peers| {
                    let was_last = peers.remove(peer) && peers.is_empty();
                    if was_last {
                        expected.insert(topic.clone());
                    }
                    !was_last
                });
                let mut unwanted = Vec::new();
                real.remove_peer(*peer, |topic| unwanted.push(topic.to_vec()));
                unwanted.sort();
                assert!(unwanted.iter().eq(&expected));
            }
            Step::Match(text) => check_match(&real, &model, text),
            Step::MatchBelow(at, more) => check_match(&real, &model, &below(at, more)),
        }
        assert_eq!(real.topics(), model.len());
        let looked_at = if number % 16 == 0 { 0..4 } else { 0..0 };
        for peer in looked_at {
            let wanted = model.iter().filter(|(_, peers)| peers.contains(&peer));
            let wanted: Vec<_> = wanted.map(|(topic, _)| topic.clone()).collect();
            assert_eq!(real.usage_of(peer).0, wanted.len());
            let mut listed = Vec::new();
            real.for_each_topic_of(peer, |topic| listed.push(topic.to_vec()));
            listed.sort();
            assert_eq!(listed, wanted);
        }
    }
    let mut listed = Vec::new();
    real.for_each_topic(|topic| listed.push(topic.to_vec()));
    assert!(listed.iter().eq(model.keys()));
}

fn check_match(real: &SubscriberTable<u8>, model: &BTreeMap<Vec<u8>, BTreeSet<u8>>, text: &[u8]) {
    let mut matched = Vec::new();
    real.for_each_match(text, |peer| matched.push(peer));
    let wanted = model.iter().filter(|(topic, _)| text.starts_with(topic));
    let expected: Vec<u8> = wanted.flat_map(|(_, peers)| peers).copied().collect();
    matched.sort_unstable();
    let mut expected = expected;
    expected.sort_unstable();
    assert_eq!(matched, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn subscriptions_agree_with_a_list_of_counted_topics(steps in steps()) {
        check_subscriptions(&steps);
    }

    #[test]
    fn the_subscriber_table_agrees_with_a_set_of_peers_per_topic(steps in steps()) {
        check_table(&steps);
    }
}
