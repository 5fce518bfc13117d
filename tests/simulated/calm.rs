//! What must hold after everything has arrived, in calm weather.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use zeroxide::{ErrorKind, SocketType, Wait};

use super::history::{self, note};
use super::member::Member;
use super::plan::Pattern;
use super::settle;

/// How long a socket delivers its last letters. Each finds room.
const LINGER: Duration = Duration::from_secs(5);

/// A peer that has closed can no longer be addressed. One whose host lost its power, then or later, may still have a
/// connection that waits: the end of it may never have arrived. A socket that connects keeps the name of a peer for the next
/// one at the same address.
pub fn check_routes(members: &mut [Member]) {
    let since_last_crash = |member: &Member| -> Vec<u16> {
        let lives = member.lives.iter().rev();
        let left = lives.take_while(|life| !life.crashed);
        left.map(|life| life.number).collect()
    };
    let left: BTreeSet<u16> = members.iter().flat_map(since_last_crash).collect();
    for member in members.iter_mut().filter(|member| member.role.binds) {
        let reports = member.role.kind == SocketType::Server
            || member.role.kind == SocketType::Router && member.role.options.mandatory;
        let routes = member.routes.clone();
        for (route, from) in routes.into_iter().filter(|(_, from)| left.contains(from)) {
            let sent = member.send_to(Some(route.clone()), Wait::Dont);
            let is_gone = sent == Err(ErrorKind::HostUnreachable) || !reports && sent.is_ok();
            assert!(
                is_gone,
                "{member} sends to {from:x}, which has closed, as {route:?}: {sent:?}"
            );
        }
    }
}

/// A socket that sends in turn sends to each of its peers once before it begins again.
pub fn check_turns(members: &mut [Member]) {
    let sends = |at: &usize| sends_in_turn(&members[*at]);
    let senders: Vec<usize> = (0..members.len()).filter(sends).collect();
    let peers: Vec<usize> = senders
        .iter()
        .map(|&at| connections(&mut members[at]))
        .collect();
    let mut numbers = vec![BTreeSet::new(); senders.len()];
    for round in 0..peers.iter().copied().max().unwrap_or_default() {
        for (which, &at) in senders.iter().enumerate() {
            if round < peers[which] {
                let member = &mut members[at];
                let sent = member.send_to(None, Wait::Dont);
                let number = sent.unwrap_or_else(|error| panic!("{member} has no turn: {error:?}"));
                numbers[which].insert(number);
            }
        }
        settle(members);
    }
    for ((&at, numbers), peers) in senders.iter().zip(&numbers).zip(peers) {
        let takers = takers(members[at].life.number, numbers);
        let is_fair = takers.len() == peers && takers.values().all(|letters| letters.len() == 1);
        assert!(
            is_fair,
            "{} sent {numbers:?} to {peers} peers, and they received {takers:x?}",
            members[at]
        );
    }
}

/// A socket that closes delivers its last letters.
pub fn check_farewells(pattern: &Pattern, members: &mut Vec<Member>) {
    if pattern.spreads {
        return;
    }
    let mut ended = Vec::new();
    for at in (0..members.len()).rev() {
        if !sends_in_turn(&members[at]) {
            continue;
        }
        let mut member = members.remove(at);
        let peers = connections(&mut member);
        let sent = (0..peers).map_while(|_| member.send_to(None, Wait::Dont).ok());
        let numbers: BTreeSet<u32> = sent.collect();
        note(format_args!("{member} says farewell with {numbers:?}"));
        member.end(LINGER);
        ended.push((member, numbers));
    }
    settle(members);
    for (member, numbers) in ended {
        let takers = takers(member.life.number, &numbers);
        let arrived: BTreeSet<u32> = takers.into_values().flatten().collect();
        assert!(
            arrived == numbers,
            "{member} closed after {numbers:?}, and {arrived:?} arrived"
        );
    }
}

/// Whether a socket sends to its peers in turn.
fn sends_in_turn(member: &Member) -> bool {
    use SocketType::{Client, Dealer, Push, Scatter};
    let kinds = [Push, Dealer, Client, Scatter];
    kinds.contains(&member.role.kind)
}

/// The number of connections of a socket.
fn connections(member: &mut Member) -> usize {
    let stats = member.stats();
    stats.peers.iter().filter(|peer| peer.connected).count()
}

/// The sockets that received some of these letters of a socket.
fn takers(from: u16, numbers: &BTreeSet<u32>) -> BTreeMap<u16, Vec<u32>> {
    let mut takers = BTreeMap::<u16, Vec<u32>>::new();
    history::with(|history| {
        for (receiver, received) in &history.received {
            for letter in received.iter().map(|receipt| receipt.letter) {
                if letter.from == from && numbers.contains(&letter.number) {
                    takers.entry(*receiver).or_default().push(letter.number);
                }
            }
        }
    });
    takers
}
