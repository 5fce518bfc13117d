use std::sync::atomic::AtomicBool;

use zeroxide_proto::message::Message;

use super::*;
use crate::pace::BACKLOG_LARGE;
use crate::pipe::PipeConfig;

const MIB: u64 = 1 << 20;

struct Told(AtomicBool);

impl Holder for Told {
    fn on_notice(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Peer {
    share: Share,
    told: Arc<Told>,
}

impl Peer {
    fn of(budget: &Arc<Budget>) -> Peer {
        let told = Arc::new(Told(AtomicBool::new(false)));
        let share = budget.join();
        Peer { share, told }
    }

    fn looks(&mut self, begun: u64, in_message: bool) -> Ruling {
        self.looks_at(Instant::now(), begun, in_message)
    }

    fn looks_at(&mut self, now: Instant, begun: u64, in_message: bool) -> Ruling {
        let told: Weak<Told> = Arc::downgrade(&self.told);
        self.share.look(begun, begun, in_message, now, || told)
    }

    fn begins(&mut self, bytes: u64) -> Ruling {
        self.looks(bytes, true)
    }

    fn waits(&mut self) -> Ruling {
        self.looks(0, false)
    }

    /// Whether it watches what waits at all connections.
    fn watches(&mut self) -> bool {
        self.share.watched() > 0
    }

    fn is_told(&self) -> bool {
        self.told.0.load(Ordering::Relaxed)
    }
}

fn budget(limit: u64) -> Arc<Budget> {
    let budget = Budget::new();
    budget.set_limit(limit);
    budget
}

fn later(budget: &Budget) {
    budget.accounts().last = None;
}

fn pipes() -> (Pipe, Pipe) {
    Pipe::pair(PipeConfig::default(), PipeConfig::default())
}

fn write(pipe: &mut Pipe, bytes: u64) {
    pipe.write_unchecked(&mut Message::from(vec![0; bytes as usize]));
}

#[test]
fn the_last_quarter_is_for_connections_that_hold_little() {
    let budget = budget(400 * MIB);
    let (mut greedy, mut modest) = (Peer::of(&budget), Peer::of(&budget));
    let (mut near, far) = pipes();
    greedy.share.follow(&near);
    for _ in 0..31 {
        write(&mut near, 10 * MIB);
    }
    assert_eq!(greedy.waits(), Ruling::Wait);
    assert!(greedy.share.poll_timeout().is_some());
    later(&budget);
    assert_eq!(modest.begins(10 * MIB), Ruling::Go);
    assert_eq!(modest.begins(49 * MIB), Ruling::Go);
    later(&budget);
    // The application only has to receive.
    assert_eq!(modest.begins(90 * MIB), Ruling::Wait);
    drop(far);
    later(&budget);
    assert_eq!(greedy.waits(), Ruling::Go);
    assert_eq!(modest.begins(90 * MIB), Ruling::Go);
}

#[test]
fn a_used_up_budget_does_not_hold_back_small_connections() {
    let budget = budget(4 * MIB);
    let (mut greedy, mut small) = (Peer::of(&budget), Peer::of(&budget));
    let (mut near, _far) = pipes();
    greedy.share.follow(&near);
    write(&mut near, 9 * MIB);
    assert_eq!(greedy.waits(), Ruling::Wait);
    // While little has arrived, the connection does not even check the budget.
    assert!(!small.share.is_due(STEP - 1));
    assert!(small.share.entry.is_none());
    for held in [0, 100, STEP, LITTLE - 1] {
        assert_eq!(small.begins(held), Ruling::Go);
        assert_eq!(small.looks(held, false), Ruling::Go);
    }
    // It checks the budget again before it holds more than that.
    assert!(small.share.is_due(LITTLE));
    // An equal share of the last quarter is not little, and still allowed.
    assert_eq!(small.begins(MIB / 2 - 1), Ruling::Go);
    assert_eq!(small.begins(MIB / 2), Ruling::Wait);
    // A new connection is admitted.
    assert!(budget.admits());
}

#[test]
fn connections_that_hold_nothing_are_admitted_up_to_a_quarter() {
    let budget = budget(4 * MIB);
    let mut greedy = Peer::of(&budget);
    assert_eq!(greedy.begins(MIB), Ruling::Go);
    budget.set_limit(MIB);
    later(&budget);
    let mut others = Vec::new();
    while budget.admits() {
        others.push(budget.join());
    }
    assert_eq!(others.len() as u64, MIB / 4 / CONNECTION - 1);
    others.clear();
    drop(greedy);
    assert_eq!(budget.used.load(Ordering::Relaxed), 0);
}

#[test]
fn what_connections_keep_of_their_peers_counts() {
    let budget = budget(4 * MIB);
    let mut shares = Vec::new();
    while budget.admits() {
        let mut share = budget.join();
        share.keep(STEP);
        shares.push(share);
        assert!(shares.len() < 100);
    }
    assert_eq!(shares.len() as u64, (4 * MIB).div_ceil(STEP + CONNECTION));
    later(&budget);
    assert_eq!(budget.count().used, budget.used.load(Ordering::Relaxed));
    let Some(share) = shares.first_mut() else {
        panic!("there are shares");
    };
    share.lost(0);
    assert!(budget.admits());
    shares.clear();
    assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    assert_eq!(budget.kept.load(Ordering::Relaxed), 0);
}

#[test]
fn the_largest_of_too_large_messages_ends_its_connection() {
    let budget = budget(100 * MIB);
    let mut peers: Vec<Peer> = (0..3).map(|_| Peer::of(&budget)).collect();
    for (peer, size) in peers.iter_mut().zip([20, 30, 24]) {
        assert_eq!(peer.begins(size * MIB), Ruling::Go);
    }
    later(&budget);
    assert_eq!(peers[0].begins(22 * MIB), Ruling::Wait);
    assert!(peers[1].is_told());
    assert!(peers[1].share.has_to_go(|| 30 * MIB));
    assert_eq!(peers[1].begins(31 * MIB), Ruling::End);
    peers.remove(1);
    later(&budget);
    assert_eq!(peers[0].begins(23 * MIB), Ruling::Go);
    assert_eq!(peers[1].begins(25 * MIB), Ruling::Go);
    later(&budget);
    // The message alone is too large.
    assert_eq!(peers[1].begins(80 * MIB), Ruling::End);
}

/// Eight peers whose messages of 10 MiB stay incomplete, and one that sends a larger message ever faster; when it is held
/// back, who is told to end?
fn victim(budget: &Arc<Budget>, mut hold: impl FnMut(&mut Peer, Instant, u64)) -> Option<usize> {
    let mut holders: Vec<Peer> = (0..8).map(|_| Peer::of(budget)).collect();
    let mut sender = Peer::of(budget);
    let start = Instant::now();
    for tick in 0..20 {
        let now = start + tick * Duration::from_millis(200);
        later(budget);
        for peer in &mut holders {
            hold(peer, now, tick.into());
        }
        if tick > 10 && sender.looks_at(now, u64::from(tick - 10) * 3 * MIB, true) == Ruling::End {
            return None;
        }
        let told = holders.iter().position(Peer::is_told);
        if told.is_some() {
            return told;
        }
    }
    panic!("the budget was not used up");
}

#[test]
fn a_peer_whose_message_arrives_outlives_those_that_only_hold_memory() {
    // Silent peers, of which the first has been silent for longest.
    let mut silent = 0;
    let told = victim(&budget(120 * MIB), |peer, now, tick| {
        if tick == 0 {
            silent += 1;
            let start = now + Duration::from_millis(silent);
            assert_eq!(peer.looks_at(start, 10 * MIB, true), Ruling::Go);
        }
    });
    assert_eq!(told, Some(0));
    // Peers that send a byte now and then.
    let told = victim(&budget(120 * MIB), |peer, now, tick| {
        peer.looks_at(now, 10 * MIB + tick, true);
    });
    assert!(told.is_some());
    // Peers that came just before.
    let told = victim(&budget(120 * MIB), |peer, now, tick| {
        if tick >= 10 {
            peer.looks_at(now, 10 * MIB, true);
        }
    });
    assert!(told.is_some());
}

#[test]
fn small_messages_that_have_stalled_are_not_ended_for_a_large_one() {
    let budget = budget(100 * MIB);
    let mut small: Vec<Peer> = (0..50).map(|_| Peer::of(&budget)).collect();
    let mut large = Peer::of(&budget);
    let start = Instant::now();
    for peer in &mut small {
        assert_eq!(peer.looks_at(start, MIB / 2, true), Ruling::Go);
    }
    let now = start + 5 * progress::STALLED;
    later(&budget);
    assert_eq!(large.looks_at(now, 60 * MIB, true), Ruling::End);
    assert!(small.iter().all(|peer| !peer.is_told()));
}

#[test]
fn as_many_stalled_messages_end_at_once_as_hold_a_sixteenth_of_the_budget() {
    let budget = budget(160 * MIB);
    let mut stalled: Vec<Peer> = (0..119).map(|_| Peer::of(&budget)).collect();
    let mut sender = Peer::of(&budget);
    let start = Instant::now();
    for peer in &mut stalled {
        assert_eq!(peer.looks_at(start, MIB, true), Ruling::Go);
    }
    later(&budget);
    let now = start + progress::STALLED;
    assert_eq!(sender.looks_at(now, 2 * MIB, true), Ruling::Wait);
    let told = stalled.iter().filter(|peer| peer.is_told());
    assert_eq!(told.count(), 10);
}

#[test]
fn a_peer_that_completes_its_message_may_stay() {
    let budget = budget(100 * MIB);
    let (mut large, mut other) = (Peer::of(&budget), Peer::of(&budget));
    for settles in [true, false] {
        assert_eq!(large.begins(50 * MIB), Ruling::Go);
        assert_eq!(other.begins(10 * MIB), Ruling::Go);
        later(&budget);
        assert_eq!(other.begins(40 * MIB), Ruling::Wait);
        assert!(large.told.0.swap(false, Ordering::Relaxed));
        // The peer has begun another message by the time it finds out.
        let now = 100;
        assert!(!large.share.has_to_go(|| now));
        if settles {
            assert!(large.share.is_unsettled(|| now));
            large.share.settle(now, true, Instant::now());
            assert!(!large.share.is_unsettled(|| now));
        } else {
            assert_eq!(large.begins(now), Ruling::Go);
        }
        later(&budget);
        assert_eq!(other.begins(40 * MIB), Ruling::Go);
        // Not even a larger message is too large now.
        assert!(!large.share.has_to_go(|| 55 * MIB));
        assert_eq!(other.begins(0), Ruling::Go);
        assert_eq!(large.begins(55 * MIB), Ruling::Go);
        assert_eq!(large.begins(0), Ruling::Go);
    }
}

#[test]
fn the_worst_account_is_judged_by_its_current_incomplete_message() {
    let budget = budget(100 * MIB);
    let (mut silent, mut other) = (Peer::of(&budget), Peer::of(&budget));
    assert_eq!(silent.begins(20 * MIB), Ruling::Go);
    // The connection has read more than that since the check, and then nothing.
    assert!(silent.share.is_unsettled(|| 40 * MIB));
    silent.share.settle(40 * MIB, true, Instant::now());
    later(&budget);
    assert_eq!(other.begins(38 * MIB), Ruling::Wait);
    assert!(silent.is_told());
    // Its message is complete, and the room is still allocated.
    silent.share.settle(40 * MIB, false, Instant::now());
    later(&budget);
    assert_eq!(other.begins(70 * MIB), Ruling::Wait);
    silent.share.settle(0, false, Instant::now());
    later(&budget);
    assert_eq!(other.begins(70 * MIB), Ruling::Go);
}

#[test]
fn messages_of_an_ended_connection_count_until_they_are_received() {
    for is_unbound in [false, true] {
        let budget = budget(10 * MIB);
        let (mut near, mut far) = pipes();
        let mut gone = Peer::of(&budget);
        gone.share.follow(&near);
        write(&mut near, 11 * MIB);
        if is_unbound {
            far.half_close();
        }
        drop((gone, near));
        assert!(!budget.admits(), "unbound: {is_unbound}");
        drop(far);
        later(&budget);
        assert!(budget.admits());
        assert!(budget.accounts().left.is_empty());
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn messages_of_ended_small_connections_count_without_an_account() {
    let budget = budget(10 * MIB);
    let mut far_ends = Vec::new();
    while budget.admits() {
        let (mut near, far) = pipes();
        let mut gone = Peer::of(&budget);
        gone.share.follow(&near);
        write(&mut near, STEP / 2);
        assert!(gone.share.entry.is_none());
        far_ends.push(far);
        assert!(far_ends.len() < 1000);
    }
    // The same holds for a peer that comes back to another pipe.
    let (mut near, far) = pipes();
    let mut back = budget.join();
    back.follow(&near);
    write(&mut near, 100);
    let before = budget.accounts().left.len();
    back.follow(&pipes().0);
    assert_eq!(budget.accounts().left.len(), before + 1);
    drop((far, far_ends, back));
    later(&budget);
    assert!(budget.admits());
    assert_eq!(budget.used.load(Ordering::Relaxed), 0);
}

#[test]
fn messages_received_after_their_connection_ended_leave_no_entry() {
    let budget = budget(400 * MIB);
    for _ in 0..10_000 {
        let (mut near, far) = pipes();
        let mut gone = Peer::of(&budget);
        gone.share.follow(&near);
        write(&mut near, 100);
        drop(gone);
        drop((near, far));
    }
    let left = budget.accounts().left.len();
    assert!(left < 200, "{left} entries");
    assert!(budget.used.load(Ordering::Relaxed) < 200 * CONNECTION);
}

#[test]
fn a_connection_that_ends_removes_only_its_own_account() {
    let budget = budget(400 * MIB);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let mut peer = Peer::of(&budget);
                    assert_eq!(peer.begins(STEP), Ruling::Go);
                    later(&budget);
                    budget.count();
                    let entry = peer.share.entry.as_ref().unwrap();
                    let accounts = budget.accounts();
                    let found = accounts.living.get(entry.key);
                    assert!(found.is_some_and(|it| Arc::ptr_eq(it, &entry.account)));
                    drop(accounts);
                }
            });
        }
    });
    assert!(budget.accounts().living.is_empty());
    assert_eq!(budget.used.load(Ordering::Relaxed), 0);
}

#[test]
fn a_pause_that_has_passed_is_cleared() {
    let budget = budget(MIB);
    let (mut near, _far) = pipes();
    let mut peer = Peer::of(&budget);
    peer.share.follow(&near);
    write(&mut near, 2 * MIB);
    assert_eq!(peer.waits(), Ruling::Wait);
    let at = peer.share.poll_timeout().unwrap();
    peer.share.handle_timeout(at - PAUSE);
    assert_eq!(peer.share.poll_timeout(), Some(at));
    peer.share.handle_timeout(at);
    assert_eq!(peer.share.poll_timeout(), None);
}

#[test]
fn another_connection_watches_when_one_that_watched_leaves() {
    let budget = budget(0);
    let mut peers = [0; 3].map(|_| Peer::of(&budget));
    peers[0].begins(BACKLOG_LARGE);
    assert!(!peers[0].is_told());
    // One that only reports, as datagrams do, does not watch.
    assert!(peers[1].watches());
    assert!(!peers[2].watches());
    peers[2].begins(STEP);
    let [_holds, watched, mut silent] = peers;
    drop(watched);
    assert!(silent.watches());
    drop(silent);
}

#[test]
fn the_end_of_a_watch_notifies_a_connection_that_is_silent() {
    let budget = budget(0);
    let mut peers = [0; 2].map(|_| Peer::of(&budget));
    peers[0].begins(BACKLOG_LARGE);
    assert!(peers[1].watches());
    let [mut silent, watched] = peers;
    drop(watched);
    assert!(silent.is_told() && silent.watches());
    // No other is there, and with little waiting none is needed.
    let mut last = Peer::of(&budget);
    last.begins(STEP);
    silent.waits();
    drop(silent);
    assert!(!last.is_told());
}

#[test]
fn topics_take_half_of_the_budget_of_which_a_greedy_peer_gets_half() {
    const TOPIC: u64 = MIB / 2;
    let budget = budget(16 * MIB);
    let mut peer = Peer::of(&budget);
    let _second = budget.join();
    let (mut greedy, mut other) = (Topics::of(&budget), Topics::of(&budget));
    let mut held = 0;
    while greedy.admits(held, TOPIC) {
        held += TOPIC;
        greedy.note(held);
        assert!(held < 20 * MIB);
    }
    assert_eq!(held, 4 * MIB);
    // Messages have the rest, and do not matter for topics.
    assert_eq!(budget.count().used, 4 * MIB + 2 * CONNECTION);
    assert_eq!(peer.begins(7 * MIB), Ruling::Go);
    // Another peer has its share of the second quarter, whatever the greedy one does, and a little is always there.
    assert!(other.admits(MIB, MIB) && !other.admits(MIB, MIB + 1));
    other.note(4 * MIB);
    assert!(!other.admits(MIB, MIB));
    assert!(other.admits(0, 2 * CONNECTION - 1));
    // The greedy peer cancels all but one.
    greedy.note(TOPIC);
    other.note(3 * MIB);
    assert!(other.admits(3 * MIB, TOPIC));
    drop(greedy);
    assert_eq!(budget.topics.load(Ordering::Relaxed), 3 * MIB);
    drop(other);
    assert_eq!(
        budget.used.load(Ordering::Relaxed),
        2 * CONNECTION + 7 * MIB
    );
}

#[test]
fn topics_do_not_keep_further_connections_out() {
    let budget = budget(MIB);
    let mut topics = Topics::of(&budget);
    topics.note(2 * MIB);
    assert!(budget.admits());
    assert_eq!(budget.usage().0, 2 * MIB);
}

#[test]
fn a_budget_without_a_limit_admits_any_topic() {
    let budget = budget(0);
    let mut topics = Topics::of(&budget);
    topics.note(1 << 40);
    assert!(topics.admits(1 << 40, 1 << 40));
}
