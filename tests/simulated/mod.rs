//! Runs: several contexts on hosts of their own, faults in the network between them, and the checks afterwards.

mod calm;
mod dice;
mod history;
mod letter;
mod life;
mod member;
mod model;
mod plan;
pub mod runner;
mod wire;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zeroxide::simulation::{self, network, spawn};
use zeroxide::{SocketType, Wait};

use self::dice::Dice;
use self::history::note;
use self::member::Member;
use self::plan::{PATTERNS, Pattern, host};

/// The pattern of the runs of this process.
static PATTERN: AtomicUsize = AtomicUsize::new(0);

/// How long everything takes at most to arrive in calm weather. A partition may have made a TCP give up shortly before, and
/// heartbeats, reconnections and retries follow each other. A dead host is noticed within 15 s.
const PATIENCE: Duration = Duration::from_secs(25);
/// Threads are slow compared with those of real machines, but faster than heartbeats.
const LEAP: Duration = Duration::from_micros(10);
/// The interval of the looks at sockets that settle, and how many of them must find nothing.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: usize = 3;
/// A longer time, in which a session that its socket has left connects again, and delivers what is left.
const LONG: Duration = Duration::from_secs(4);
/// The letters that each socket sends in calm weather, until every peer has some.
const PROBES: usize = 4;

/// One run.
fn run() {
    let pattern = &PATTERNS[PATTERN.load(Ordering::Relaxed)];
    let seed = simulation::seed();
    let mut dice = Dice::new(seed, 0);
    history::begin();
    simulation::set_leap(LEAP);
    network::set_weather(plan::weather(&mut dice));
    let roles = plan::roles(pattern, &mut dice);
    let hosts = roles.len();
    let threads: Vec<_> = roles
        .into_iter()
        .map(|role| {
            let dice = Dice::new(seed, 1 + role.index as u64);
            spawn(&format!("member {}", role.index), move || {
                let mut member = Member::new(pattern, role, dice);
                member.run();
                member
            })
        })
        .collect();
    let fate = spawn("fate", move || interfere(hosts, dice));
    let mut members: Vec<Member> = threads
        .into_iter()
        .map(|thread| thread.join().expect("a panic ends the run"))
        .collect();
    fate.join().expect("a panic ends the run");
    network::heal();
    network::set_weather(plan::calm());
    note("the weather is calm");
    let is_disturbed = members.iter().any(|member| member.life.disturbed);
    settle_after(&mut members, is_disturbed);
    probe(pattern, &mut members);
    settle(&mut members);
    calm::check_routes(&mut members);
    // The peers of a host that lost its power may have a connection that only ends when they send something.
    let has_crashed = |member: &Member| member.lives.iter().any(|life| life.crashed);
    let is_clean = !members.iter().any(has_crashed);
    if is_clean {
        calm::check_turns(&mut members);
    }
    for member in &mut members {
        let stats = member.stats();
        member.account(&stats);
    }
    model::check(pattern, &members, &network::streams());
    if is_clean {
        calm::check_farewells(pattern, &mut members);
    }
    for member in &mut members {
        member.end(Duration::from_secs(5));
    }
    history::end();
}

/// Faults in the network.
fn interfere(hosts: usize, mut dice: Dice) {
    for _ in 0..dice.below(8) {
        let time = dice.time_up_to(Duration::from_millis(300));
        simulation::sleep(time);
        let (a, b) = (host(dice.below(hosts)), host(dice.below(hosts)));
        match dice.below(17) {
            0..4 => {
                note(format_args!("{a} and {b} are reset"));
                network::reset(a, b);
            }
            4..8 => part(a, b, &mut dice),
            8 => network::set_weather(plan::weather(&mut dice)),
            10..14 => {
                let bytes = 1 + dice.below(500);
                note(format_args!(
                    "{a} and {b} are reset after {bytes} more bytes"
                ));
                network::break_after(a, b, bytes);
            }
            14.. => {
                note(format_args!(
                    "{a} loses its connections to {b}, which does not notice"
                ));
                network::reset_one_end(a, b);
            }
            _ => {
                let time = dice.time_up_to(Duration::from_secs(40));
                note(format_args!("the clock jumps by {time:?}"));
                simulation::jump(time);
            }
        }
    }
}

fn part(a: IpAddr, b: IpAddr, dice: &mut Dice) {
    let time = dice.time_up_to(Duration::from_secs(40));
    note(format_args!("{a} and {b} are cut off for {time:?}"));
    network::partition(a, b, true);
    simulation::sleep(time);
    network::partition(a, b, false);
}

/// Receives until everything has arrived.
fn settle(members: &mut [Member]) {
    settle_after(members, false);
}

/// Receives until everything has arrived, with what is left of sessions whose sockets have left them.
fn settle_after(members: &mut [Member], mut left: bool) {
    let start = simulation::now();
    let mut quiet = 0;
    let mut before = Vec::new();
    let mut read = vec![0; members.len()];
    let present: BTreeSet<usize> = members.iter().map(|member| member.role.index).collect();
    while quiet < LOOKS {
        simulation::sleep(LOOK);
        if quiet + 1 == LOOKS && left {
            left = false;
            simulation::sleep(LONG);
        }
        let mut busy = Vec::new();
        for (member, read) in members.iter_mut().zip(&mut read) {
            let mut count = 0;
            while member.receive(Wait::Dont) {
                count += 1;
                if member.role.kind == SocketType::Rep {
                    member.send();
                }
            }
            let stats = member.stats();
            // A look may read nothing but messages that a subscriber does not want any more. Others may follow them.
            let has_read = std::mem::replace(read, stats.received) != stats.received;
            let up = stats.peers.iter().filter(|peer| peer.connected);
            let up: BTreeSet<_> = up.map(|peer| &peer.endpoint).collect();
            let missing = match member.role.binds {
                true => 0,
                false => {
                    let wanted = member.connected.intersection(&present).count();
                    wanted.saturating_sub(up.len())
                }
            };
            // Replies that REQ does not expect any more wait until it receives others, and may fill the queues.
            let queued = match member.role.kind {
                SocketType::Req | SocketType::Rep => 0,
                // A ROUTER does not read a connection that was left to deliver while its newer one has the name.
                SocketType::Dealer if member.role.options.named => stats.queued_out,
                _ => stats.queued_out + stats.lingering,
            };
            if count > 0 || has_read || queued > 0 || missing > 0 {
                busy.push(format!(
                    "{member} received {count}, queues {} and {}, lacks {missing} connections",
                    stats.queued_out, stats.lingering
                ));
            }
        }
        if busy != before {
            note(format_args!("{busy:?}"));
            before.clone_from(&busy);
        }
        quiet = match busy.is_empty() {
            true => quiet + 1,
            false => 0,
        };
        let waited = simulation::now().saturating_duration_since(start);
        assert!(waited < PATIENCE, "not everything arrives: {busy:?}");
    }
}

/// Sends letters until every peer that should get one has one.
fn probe(pattern: &Pattern, members: &mut [Member]) {
    note("probes");
    let start = simulation::now();
    let before = history::with(|history| history.counts());
    loop {
        for member in &mut *members {
            for _ in 0..PROBES {
                member.send();
            }
        }
        settle(members);
        let missing = match pattern.spreads {
            true => model::unheard(members, &before),
            false => None,
        };
        let Some(missing) = missing else { return };
        let waited = simulation::now().saturating_duration_since(start);
        assert!(waited < PATIENCE, "{missing}");
    }
}
