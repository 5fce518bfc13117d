//! What must hold for every run, whatever the network did.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{self, History, Receipt};
use super::letter::{TOPICS, topic_of};
use super::life::Life;
use super::member::Member;
use super::plan::{Pattern, host};
use super::wire::{self, Written};
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
        check_losses(pattern, history, &lives, streams, is_open);
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

/// The counts of the letters of one socket, by the wire and by the programs.
#[derive(Default)]
struct Ledger {
    /// Copies that it handed over, those that reached a wire, and those that have certainly not arrived.
    accepted: u64,
    written: u64,
    lost: u64,
    /// Copies that it may count as lost. A socket that closes a connection counts what has not arrived by then, but the kernel
    /// may still deliver it, and it can only estimate how much of its last write has arrived.
    doubtful: u64,
    /// Its connections, and whether one has ended.
    connections: u64,
    has_lost_peers: bool,
    /// Copies that it has read from a wire, and those that its program has received.
    read: u64,
    received: u64,
}

/// The letters that did not arrive are those that the sockets count, each socket its own, apart from those that the network or
/// a peer lost after the peer's kernel had them.
fn check_losses(
    pattern: &Pattern,
    history: &History,
    lives: &BTreeMap<u16, &Life>,
    streams: &[Stream],
    is_open: bool,
) {
    let ledgers = ledgers(pattern, history, lives, streams);
    for (&number, &life) in lives.iter().filter(|(_, life)| !life.crashed) {
        let Some(ledger) = ledgers.get(&number) else {
            continue;
        };
        let handed_over = match pattern.spreads {
            true => life.sent,
            false => ledger.accepted,
        };
        let counted = life.dropped_out;
        let (written, lost) = (ledger.written, ledger.lost);
        assert!(
            is_open || handed_over + lost <= written + counted,
            "{number:x} sent {handed_over}, of which {written} were written and {lost} of these lost, and counts {counted}"
        );
        let most = handed_over.saturating_sub(written) + ledger.doubtful;
        let in_vain = match pattern.spreads {
            true => sent_in_vain(life, ledger),
            false => 0,
        };
        let most = most + in_vain;
        assert!(
            counted <= most,
            "{number:x} sent {handed_over}, of which {written} were written, and counts {counted}, {most} at most"
        );
        let received = ledger.received + life.queued;
        let unseen = ledger.read.saturating_sub(received);
        let counted = life.dropped_in;
        assert!(
            life.left || may_leave_letters(life) || unseen <= counted,
            "{number:x} read {} from the wire and received {received}, but counts {counted}",
            ledger.read
        );
        // A REQ counts a request that it replaces.
        assert!(
            life.kind == SocketType::Req || counted <= unseen,
            "{number:x} read {} from the wire, received {received}, and counts {counted}",
            ledger.read
        );
    }
}

/// How many copies of letters can have met a peer that had just left. Publishers count these as lost, and not as handed over.
fn sent_in_vain(life: &Life, ledger: &Ledger) -> u64 {
    if !ledger.has_lost_peers {
        return 0;
    }
    let wanted = ledger.accepted - life.unwanted;
    (wanted * ledger.connections).saturating_sub(life.sent + life.full)
}

/// The ledgers of all sockets.
fn ledgers(
    pattern: &Pattern,
    history: &History,
    lives: &BTreeMap<u16, &Life>,
    streams: &[Stream],
) -> BTreeMap<u16, Ledger> {
    let mut ledgers = BTreeMap::<u16, Ledger>::new();
    for (from, _) in &history.accepted {
        ledgers.entry(*from).or_default().accepted += 1;
    }
    for (&number, received) in &history.received {
        ledgers.entry(number).or_default().received += received.len() as u64;
    }
    let contents = streams.iter().map(|stream| wire::messages(&stream.written));
    let contents: Vec<_> = streams.iter().zip(contents).collect();
    // A REQ sends a request again that has certainly not arrived.
    let mut newest = BTreeMap::new();
    for (stream, letters) in &contents {
        for written in letters {
            let link = newest.entry(written.letter).or_insert(stream.link);
            *link = stream.link.max(*link);
        }
    }
    for (stream, letters) in &contents {
        let [writer, reader] = [0, 1].map(|end| life_at(lives, stream, end));
        if let Some(writer) = writer {
            let writer = ledgers.entry(writer).or_default();
            writer.connections += 1;
            writer.has_lost_peers |= !stream.is_open;
        }
        let sure = surely_lost(lives, stream, writer);
        for written in letters {
            if written.end <= stream.read
                && let Some(reader) = reader
            {
                ledgers.entry(reader).or_default().read += 1;
            } else {
                let waits = reader.is_some_and(|reader| may_leave_letters(lives[&reader]));
                assert!(
                    !stream.is_open || waits,
                    "{written:x?} waits at a connection from {writer:x?} to {reader:x?}"
                );
            }
            if pattern.sides[0] == SocketType::Req && newest[&written.letter] != stream.link {
                continue;
            }
            let sender = ledgers.entry(written.letter.0).or_default();
            sender.written += 1;
            sender.lost += u64::from(written.end > sure);
            sender.doubtful += u64::from(written.end > stream.told_from);
        }
    }
    ledgers
}

/// Whether a socket may leave letters unread, of which its session has more than fit into the queue: it reads only the peer
/// that it has asked, or the one that has the name of another.
fn may_leave_letters(life: &Life) -> bool {
    life.kind == SocketType::Req || waits_for_a_name(life)
}

/// The socket that a host had when a connection came to it.
fn life_at(lives: &BTreeMap<u16, &Life>, stream: &Stream, end: usize) -> Option<u16> {
    let is_there =
        |life: &&&Life| host(life.member) == stream.hosts[end] && life.began <= stream.opened[end];
    let life = lives
        .values()
        .filter(is_there)
        .max_by_key(|life| life.began);
    life.map(|life| life.number)
}

/// How many bytes of a connection its writer need not count as lost.
fn surely_lost(lives: &BTreeMap<u16, &Life>, stream: &Stream, writer: Option<u16>) -> u64 {
    let times_up = writer.and_then(|writer| lives[&writer].delivers_until);
    let may_be_late = stream
        .gone
        .is_some_and(|gone| times_up.is_some_and(|until| until <= gone));
    match may_be_late {
        true => stream.written.len() as u64,
        false => stream.arrived.max(stream.told_to),
    }
}

/// Adds to the trace what every connection carried.
fn note_streams(history: &mut History, streams: &[Stream]) {
    for stream in streams {
        let written = wire::messages(&stream.written);
        let is_read = |written: &&Written| written.end <= stream.read;
        history.trace.push(format!(
            "{} to {}: {} messages were written, {} read",
            stream.hosts[0],
            stream.hosts[1],
            written.len(),
            written.iter().filter(is_read).count()
        ));
    }
}

/// Whether a ROUTER has messages of a peer whose name another peer has. Its session has read more of them from the wire than
/// fit into the queue, and no statistics have those.
fn waits_for_a_name(life: &Life) -> bool {
    life.kind == SocketType::Router && !life.left && !life.crashed && life.queued > 0
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
