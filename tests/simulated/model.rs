//! What must hold for every run, whatever the network did.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::history::{self, History, Receipt};
use super::letter::{TOPICS, topic_of};
use super::life::Life;
use super::member::Member;
use super::plan::{Pattern, host};
use super::wire;
use zeroxide::SocketType;
use zeroxide::simulation::network::Stream;

/// Checks a run that has ended.
pub fn check(pattern: &Pattern, members: &[Member], streams: &[Stream]) {
    let lives = members
        .iter()
        .flat_map(|member| member.lives.iter().chain([&member.life]));
    let lives: BTreeMap<u16, &Life> = lives.map(|life| (life.number, life)).collect();
    history::with(|history| {
        check_letters(history, &lives);
        check_copies(pattern, history);
        check_order(history, &lives);
        if pattern.is_exclusive() {
            check_succession(history, &lives);
        }
        if pattern.spreads {
            check_gaps(history, &lives, streams);
        }
        note_streams(history, streams);
        let is_open = is_open(pattern, members);
        match pattern.is_exclusive() {
            // Of two sockets, each direction is checked alone: a message that may be lost in one excuses none in the other.
            true => (0..2).for_each(|from| {
                check_losses(pattern, history, &lives, streams, is_open, Some(from));
            }),
            false => check_losses(pattern, history, &lives, streams, is_open, None),
        }
    });
}

/// Whether letters may still wait that can never arrive: requests behind replies that a relaxed REQ does not read.
fn is_open(pattern: &Pattern, members: &[Member]) -> bool {
    match pattern.sides[0] {
        SocketType::Req => members.iter().any(|member| member.role.options.relaxed),
        _ => false,
    }
}

/// Every letter was sent, and accepted. Calls that failed sent nothing.
fn check_letters(history: &History, lives: &BTreeMap<u16, &Life>) {
    for (receiver, received) in &history.received {
        for Receipt { letter, .. } in received {
            let sent = (letter.from, letter.number);
            assert!(
                history.accepted.contains(&sent),
                "{receiver:x} received {sent:x?}, which was not sent"
            );
            if letter.answers.0 > 0 {
                assert!(
                    lives.contains_key(&letter.answers.0),
                    "{letter:?} answers nothing"
                );
            }
        }
    }
}

/// A letter arrives once, or once at each peer.
fn check_copies(pattern: &Pattern, history: &History) {
    let mut seen = BTreeSet::new();
    for (receiver, received) in &history.received {
        if pattern.spreads {
            seen.clear();
        }
        for Receipt { letter, .. } in received {
            assert!(
                seen.insert((letter.from, letter.number)),
                "{receiver:x} received {} of {:x}, which had arrived before",
                letter.number,
                letter.from
            );
        }
    }
}

/// The letters of connections, each with its connection.
type Conversations = Vec<(usize, Vec<u32>)>;

/// The letters that one socket received from another, by connection, in the order in which the connections were first heard.
fn conversations(history: &History) -> BTreeMap<(u16, u16), Vec<Vec<u32>>> {
    let mut all: BTreeMap<(u16, u16), Conversations> = BTreeMap::new();
    for (&receiver, received) in &history.received {
        for receipt in received {
            let connections = all.entry((receipt.letter.from, receiver)).or_default();
            let key = receipt.connection();
            let number = receipt.letter.number;
            match connections.iter_mut().find(|(known, _)| *known == key) {
                Some((_, numbers)) => numbers.push(number),
                None => connections.push((key, vec![number])),
            }
        }
    }
    let numbers = |connections: Vec<(usize, Vec<u32>)>| {
        let numbers = connections.into_iter().map(|(_, numbers)| numbers);
        numbers.collect::<Vec<_>>()
    };
    let all = all.into_iter();
    all.map(|(pair, connections)| (pair, numbers(connections)))
        .collect()
}

/// The letters of one connection arrive in the order in which they were sent. A later connection of the same peers continues
/// where the one before has ended.
fn check_order(history: &History, lives: &BTreeMap<u16, &Life>) {
    for ((from, to), mut connections) in conversations(history) {
        for numbers in &connections {
            assert!(
                numbers.is_sorted(),
                "{to:x} received from {from:x}, over one connection: {numbers:?}"
            );
        }
        if lives[&from].disturbed || lives[&to].disturbed || is_addressed(lives[&from].kind) {
            continue;
        }
        connections.sort();
        for pair in connections.windows(2) {
            assert!(
                pair[0].last() < pair[1].first(),
                "{to:x} received from {from:x}: {:?} and then {:?}",
                pair[0],
                pair[1]
            );
        }
    }
}

/// A PAIR receives everything from one connection before anything from the next.
fn check_succession(history: &History, lives: &BTreeMap<u16, &Life>) {
    for (to, received) in &history.received {
        let peers: BTreeSet<u16> = received.iter().map(|receipt| receipt.letter.from).collect();
        for from in peers {
            let letters = received.iter().map(|receipt| receipt.letter);
            let theirs = letters.filter(|letter| letter.from == from);
            let numbers: Vec<u32> = theirs.map(|letter| letter.number).collect();
            assert!(
                lives[&from].disturbed || lives[to].disturbed || numbers.is_sorted(),
                "{to:x} received from {from:x}, over all connections: {numbers:?}"
            );
        }
    }
}

/// Whether a queue belongs to one connection only, and not to the peer.
fn is_addressed(kind: SocketType) -> bool {
    matches!(
        kind,
        SocketType::Router | SocketType::Server | SocketType::Rep
    )
}

/// A subscriber misses a letter between two others of its topic, which came over the same connection, only if a queue was full.
fn check_gaps(history: &History, lives: &BTreeMap<u16, &Life>, streams: &[Stream]) {
    let mut missed = BTreeMap::<u16, Vec<(u16, u32)>>::new();
    for ((from, to), connections) in conversations(history) {
        let hosts = [lives[&from], lives[&to]].map(|life| host(life.member));
        let is_theirs = |stream: &&Stream| stream.hosts == hosts && !stream.written.is_empty();
        // The letters of several connections may wait in one queue.
        if lives[&to].resubscribed || streams.iter().filter(is_theirs).count() > 1 {
            continue;
        }
        for (numbers, topic) in connections
            .iter()
            .flat_map(|numbers| TOPICS.map(|topic| (numbers, topic)))
        {
            let has_topic = |number: &u32| topic_of(from, *number) == topic;
            let got: BTreeSet<u32> = numbers.iter().copied().filter(has_topic).collect();
            let (Some(&first), Some(&last)) = (got.first(), got.last()) else {
                continue;
            };
            let sent = history.accepted.range((from, first)..=(from, last));
            let wanted = sent.map(|&(_, number)| number).filter(has_topic);
            let lost = wanted.filter(|number| !got.contains(number));
            missed
                .entry(from)
                .or_default()
                .extend(lost.map(|number| (to, number)));
        }
    }
    for (from, missed) in missed {
        let life = lives[&from];
        let (full, lost) = (life.full, life.dropped_out);
        assert!(
            life.crashed || missed.len() as u64 <= full + lost,
            "these letters of {from:x} are missing: {missed:x?}, of which it counts {full} + {lost}"
        );
    }
}

/// The letters that did not arrive are those that the sockets count, apart from those that the network or a peer lost after
/// the peer's kernel had them. With `from`, only the letters of this member count.
fn check_losses(
    pattern: &Pattern,
    history: &History,
    lives: &BTreeMap<u16, &Life>,
    streams: &[Stream],
    is_open: bool,
    from: Option<usize>,
) {
    let sends = |life: &Life| from.is_none_or(|from| life.member == from);
    let receives = |life: &Life| from.is_none_or(|from| life.member != from);
    let is_theirs = |stream: &&Stream| from.is_none_or(|from| stream.hosts[0] == host(from));
    let streams: Vec<&Stream> = streams.iter().filter(is_theirs).collect();
    let survivors = || lives.values().filter(|life| !life.crashed);
    let has_crashed = |number: &u16| lives[number].crashed;
    let accepted = history
        .accepted
        .iter()
        .filter(|(from, _)| !has_crashed(from) && sends(lives[from]))
        .count() as u64;
    let handed_over = match pattern.spreads {
        true => survivors().map(|life| life.sent).sum(),
        false => accepted,
    };
    let all = history.received.values().flatten();
    let received = all
        .filter(|receipt| !has_crashed(&receipt.letter.from) && sends(lives[&receipt.letter.from]))
        .count() as u64;
    let stays = |life: &&&Life| !life.left && !life.crashed && receives(life);
    // A REP receives the next request after it has replied.
    let queued: u64 = lives.values().filter(stays).map(|life| life.queued).sum();
    let received = received + if pattern.spreads { 0 } else { queued };
    let senders = || survivors().filter(|life| sends(life));
    let sum = |count: fn(&Life) -> u64| senders().map(|life| count(life)).sum::<u64>();
    let counted = sum(|life| life.dropped_out);
    let receivers = survivors().filter(|life| receives(life));
    let inbound: u64 = receivers.map(|life| life.dropped_in).sum();
    let unknown = lost_by_network(history, lives, &streams);
    assert!(
        is_open || handed_over <= received + counted + inbound + unknown,
        "{handed_over} were sent, but {received} arrived, {counted} + {inbound} are counted and {unknown} may be lost"
    );
    // A socket that closes a connection counts what has not arrived by then, but the kernel may still deliver it. It can only
    // estimate how much of its last write has arrived. One that never asked counts nothing.
    let late = |stream: &Stream| {
        let told = &stream.written[..stream.told_from as usize];
        let arrived = &stream.written[..stream.arrived as usize];
        wire::messages(arrived).saturating_sub(wire::messages(told))
    };
    let unknown = unknown + streams.iter().map(|stream| late(stream)).sum::<u64>();
    let unknown = unknown
        + if pattern.spreads {
            sent_in_vain(pattern, lives, accepted)
        } else {
            0
        };
    assert!(
        received + counted <= handed_over + unknown,
        "{handed_over} were sent, {received} arrived, and {counted} are counted, of which {unknown} may have arrived"
    );
}

/// How many copies of letters can have met a peer that had just left. Publishers count these as lost, and not as handed over.
fn sent_in_vain(pattern: &Pattern, lives: &BTreeMap<u16, &Life>, accepted: u64) -> u64 {
    let receives = |life: &&&Life| life.kind == pattern.sides[1];
    let receivers: BTreeSet<usize> = lives
        .values()
        .filter(receives)
        .map(|life| life.member)
        .collect();
    let survivors = || lives.values().filter(|life| !life.crashed);
    let sum = |count: fn(&Life) -> u64| survivors().map(|life| count(life)).sum::<u64>();
    let wanted = accepted - sum(|life| life.unwanted);
    (wanted * receivers.len() as u64).saturating_sub(sum(|life| life.sent + life.full))
}

/// Adds to the trace what every connection carried.
fn note_streams(history: &mut History, streams: &[Stream]) {
    for stream in streams {
        let read = &stream.written[..stream.read as usize];
        history.trace.push(format!(
            "{} to {}: {} messages were written, {} read",
            stream.hosts[0],
            stream.hosts[1],
            wire::messages(&stream.written),
            wire::messages(read)
        ));
    }
}

/// The number of messages that had left their sender and that no program can have received. Only the wire knows them.
fn lost_by_network(history: &History, lives: &BTreeMap<u16, &Life>, streams: &[&Stream]) -> u64 {
    let mut unread = 0;
    // A socket that closes a connection has read more than its program received. The messages that it counts as dropped are
    // not unknown.
    let mut given = BTreeMap::new();
    for life in lives
        .values()
        .filter(|life| life.crashed || life.left || life.disturbed || waits_for_a_name(life))
    {
        given.insert(host(life.member), (0, 0));
    }
    for life in lives.values().filter(|life| !life.crashed) {
        if let Some((_, known)) = given.get_mut(&host(life.member)) {
            *known += life.dropped_in;
        }
    }
    for stream in streams {
        let excused = match closed_too_early(lives, stream) {
            true => stream.arrived.max(stream.told_to),
            false => stream.written.len() as u64,
        };
        let written = wire::messages(&stream.written[..excused as usize]);
        match given.get_mut(&stream.hosts[1]) {
            Some((sum, _)) => *sum += written,
            None => {
                let read = &stream.written[..stream.read as usize];
                unread += written - wire::messages(read);
            }
        }
    }
    for (receiver, received) in &history.received {
        if let Some((_, known)) = given.get_mut(&host(lives[receiver].member)) {
            *known += received.len() as u64;
        }
    }
    for life in lives.values().filter(|life| waits_for_a_name(life)) {
        if let Some((_, known)) = given.get_mut(&host(life.member)) {
            *known += life.queued;
        }
    }
    let lost = |(written, known): &(u64, u64)| written.saturating_sub(*known);
    unread + given.values().map(lost).sum::<u64>()
}

/// Whether a ROUTER has messages of a peer whose name another peer has. Its session has read more of them from the wire than
/// fit into the queue, and no statistics have those.
fn waits_for_a_name(life: &Life) -> bool {
    life.kind == SocketType::Router && !life.left && !life.crashed && life.queued > 0
}

/// By how much a clock that jumps delays what a socket does when its time is up.
const LATE: Duration = Duration::from_secs(45);

/// Whether a socket has closed a connection while it could still deliver, so that its kernel discarded the rest.
fn closed_too_early(lives: &BTreeMap<u16, &Life>, stream: &Stream) -> bool {
    let Some(closed) = stream.discarded else {
        return false;
    };
    let mut writers = lives
        .values()
        .filter(|life| host(life.member) == stream.hosts[0]);
    // The times of one host follow one another.
    !writers.any(|life| {
        life.crashed
            || life
                .delivers_until
                .is_some_and(|until| until <= closed && closed <= until + LATE)
    })
}

/// The subscribers that have not received one of their topics from one of their peers, if there are any.
pub fn unheard(members: &[Member], before: &BTreeMap<u16, usize>) -> Option<String> {
    let mut missing = Vec::new();
    history::with(|history| {
        for member in members.iter().filter(|member| !member.topics.is_empty()) {
            let number = member.life.number;
            let from = before.get(&number).copied().unwrap_or_default();
            let all = history
                .received
                .get(&number)
                .map_or(&[][..], |all| &all[from..]);
            let heard: BTreeSet<(u16, u8)> = all
                .iter()
                .map(|receipt| (receipt.letter.from, receipt.letter.topic()))
                .collect();
            let is_peer = |other: &&Member| {
                member.connected.contains(&other.role.index)
                    || other.connected.contains(&member.role.index)
            };
            for publisher in members.iter().filter(is_peer) {
                for topic in TOPICS.iter().filter(|topic| member.topics.contains(topic)) {
                    if !heard.contains(&(publisher.life.number, *topic)) {
                        missing.push(format!(
                            "{member} hears nothing of {topic} from {publisher}"
                        ));
                    }
                }
            }
        }
    });
    (!missing.is_empty()).then(|| missing.join(", "))
}
