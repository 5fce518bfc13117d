//! Notices of the start and end of connections, for applications that exchange plain bytes with their peers, and for those
//! that ask for them (ROUTER_NOTIFY).

use std::collections::VecDeque;

use zeroxide_proto::message::Message;

use crate::patterns::drops::DropReason;
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::ring::Ring;
use crate::patterns::router_table::RouterTable;
use crate::pipe::PipeId;

/// While this many messages wait for an application that does not receive, connections that end without having sent
/// anything are counted instead of reported.
pub(super) const NOTICES_MAX: usize = 10_000;

/// If this many messages or bytes of a pipe's lost connections wait to be received, another one that was not reported
/// yet is not kept apart from its successor.
const APART_MAX: (usize, usize) = (100, 1 << 20);

/// Adds a notice, the connection's id and an empty frame, before and after the data of a connection.
pub(super) struct Notices {
    /// Whether starts are reported, and whether ends are.
    of_starts: bool,
    of_ends: bool,
    /// Connections that were not reported yet. They are reported before anything is received from them.
    fresh: Ring,
    /// Connections that were reported, and whose end was not.
    announced: Ring,
    /// Messages to receive before all others: ends of connections, and the data before them.
    pending: VecDeque<(Message, PipeId)>,
}

impl Default for Notices {
    fn default() -> Notices {
        Notices {
            of_starts: true,
            of_ends: true,
            fresh: Ring::default(),
            announced: Ring::default(),
            pending: VecDeque::new(),
        }
    }
}

impl Notices {
    /// Reports only starts, or only ends, from now on.
    pub(super) fn limit(&mut self, of_starts: bool, of_ends: bool) {
        self.of_starts = of_starts;
        self.of_ends = of_ends;
    }

    /// A connection was established.
    pub(super) fn connected(&mut self, id: PipeId) {
        self.fresh.insert(id);
    }

    /// A connection was lost, and its pipe will carry the next one.
    ///
    /// Everything received so far belongs to the lost connection.
    pub(super) fn disconnected(&mut self, pipes: &mut PipeSet, table: &RouterTable, id: PipeId) {
        if self.fresh.contains(id) && self.has_room_for(pipes, id) {
            self.fresh.remove(id);
            if self.of_starts {
                self.push(table, id);
            }
        } else if !self.announced.remove(id) {
            return;
        }
        for _ in 0..pipes.queued_in(id) {
            let Some(chunk) = pipes.read(id) else { break };
            self.pending.push_back((named(table, id, chunk), id));
        }
        self.push_end(table, id);
    }

    /// Whether so little of earlier connections waits that another one can be kept apart, however often the peer reconnects.
    fn has_room_for(&self, pipes: &mut PipeSet, id: PipeId) -> bool {
        let arrived = pipes.get(id).map_or(0, |pipe| pipe.queued_bytes_in());
        let (mut count, mut bytes) = (0, arrived as usize);
        for (message, _) in self.pending.iter().filter(|(_, of)| *of == id) {
            count += 1;
            bytes += message.size();
        }
        count < APART_MAX.0 && bytes < APART_MAX.1
    }

    /// A connection has ended and everything from it was received. The table still has its name.
    pub(super) fn detach(&mut self, pipes: &mut PipeSet, table: &RouterTable, id: PipeId) {
        if self.fresh.remove(id) {
            let wanted = [self.of_starts, self.of_ends];
            for _ in wanted.into_iter().filter(|wanted| *wanted) {
                if self.pending.len() < NOTICES_MAX {
                    self.push(table, id);
                } else {
                    pipes.count_drop(None, DropReason::HighWater);
                }
            }
        }
        if self.announced.remove(id) {
            self.push_end(table, id);
        }
    }

    /// The application closes a connection, and needs no notice of its end.
    pub(super) fn forget(&mut self, id: PipeId) {
        self.fresh.remove(id);
        self.announced.remove(id);
    }

    /// The next notice, or the next chunk after the id of its connection.
    pub(super) fn recv(
        &mut self,
        pipes: &mut PipeSet,
        table: &RouterTable,
        inbound: &mut FairQueue,
    ) -> Option<(Message, PipeId)> {
        if let Some(pending) = self.pending.pop_front() {
            return Some(pending);
        }
        while let Some(id) = self.fresh.front() {
            self.fresh.remove(id);
            self.announced.insert(id);
            if self.of_starts {
                return Some((named(table, id, Message::new()), id));
            }
        }
        if let Some((chunk, id)) = inbound.recv(pipes) {
            return Some((named(table, id, chunk), id));
        }
        self.note_ends(pipes, table);
        self.pending.pop_front()
    }

    /// Whether [`recv`](Self::recv) would return a message.
    pub(super) fn can_recv(
        &mut self,
        pipes: &mut PipeSet,
        table: &RouterTable,
        inbound: &mut FairQueue,
    ) -> bool {
        let starts = self.of_starts && self.fresh.front().is_some();
        let there = !self.pending.is_empty() || starts;
        if there || inbound.can_recv(pipes) {
            return true;
        }
        self.note_ends(pipes, table);
        !self.pending.is_empty()
    }

    /// After the last data of an ended connection is read, its end must become receivable at once, because the
    /// application may be about to wait and no other event would wake it.
    fn note_ends(&mut self, pipes: &PipeSet, table: &RouterTable) {
        for id in pipes.finished() {
            if self.announced.remove(*id) {
                self.push_end(table, *id);
            }
        }
    }

    fn push_end(&mut self, table: &RouterTable, id: PipeId) {
        if self.of_ends {
            self.push(table, id);
        }
    }

    fn push(&mut self, table: &RouterTable, id: PipeId) {
        self.pending
            .push_back((named(table, id, Message::new()), id));
    }
}

/// Prefixes the connection's id to its data, which is empty for a new or ended connection.
fn named(table: &RouterTable, id: PipeId, mut body: Message) -> Message {
    if let Some(name) = table.name(id) {
        body.push_front(name.clone());
    }
    body
}

#[cfg(test)]
mod tests {
    use crate::error::ErrorKind;
    use crate::options::PatternOption;
    use crate::patterns::drops::{DoomReason, DropReason};
    use crate::patterns::rig::{Rig, message};
    use crate::patterns::router::ROUTER;

    #[test]
    fn a_router_reports_what_it_is_asked_to_report() {
        for (bits, expected) in [
            (0, &["a/1"][..]),
            (1, &["a/", "a/1"]),
            (2, &["a/1", "a/"]),
            (3, &["a/", "a/1", "a/"]),
        ] {
            let mut rig = Rig::new(&ROUTER);
            rig.set(PatternOption::RouterNotify(bits)).unwrap();
            let id = rig.accept("a");
            assert_eq!(rig.can_recv(), bits & 1 != 0);
            rig.far_send(id, ["1"]);
            rig.settle();
            let count = expected.len() - usize::from(bits & 2 != 0);
            let before: Vec<_> = (0..count).map(|_| rig.recv().unwrap().join("/")).collect();
            assert_eq!(before, expected[..count]);
            rig.far_close(id);
            rig.settle();
            assert_eq!(rig.recv_all(), expected[count..]);
            assert!(rig.is_empty());
            // A connection from which no message was received yet.
            let id = rig.accept("b");
            rig.far_close(id);
            rig.settle();
            assert_eq!(rig.recv_all().len(), bits.count_ones() as usize);
        }
    }

    #[test]
    fn a_router_distinguishes_lost_connections_from_their_successors_and_stores_only_some() {
        let mut rig = Rig::new(&ROUTER);
        rig.set(PatternOption::RouterNotify(2)).unwrap();
        let id = rig.connect();
        for n in 0..1000 {
            rig.ready(id, "a");
            rig.far_send(id, [n.to_string()]);
            rig.disconnected(id);
        }
        let all = rig.recv_all();
        assert_eq!(all[..4], ["a/0", "a/", "a/1", "a/"]);
        let ends = all.iter().filter(|message| *message == "a/").count();
        assert!(ends < 100, "{ends}");
    }

    #[test]
    fn a_router_reports_no_peers_without_a_name() {
        let mut rig = Rig::new(&ROUTER);
        rig.set(PatternOption::RouterNotify(3)).unwrap();
        rig.set(PatternOption::RouterHandover(true)).unwrap();
        let first = rig.accept("a");
        assert_eq!(rig.recv_all(), ["a/"]);
        let second = rig.accept("a");
        assert_eq!(rig.recv_all(), ["a/"]);
        rig.far_close(first);
        rig.settle();
        assert!(rig.recv_all().is_empty());
        rig.far_close(second);
        rig.settle();
        assert_eq!(rig.recv_all(), ["a/"]);
        assert!(rig.is_empty());
    }

    fn raw_router() -> Rig {
        let mut rig = Rig::new(&ROUTER);
        rig.set(PatternOption::RouterRaw(true)).unwrap();
        rig
    }

    fn bodies(rig: &mut Rig) -> Vec<String> {
        std::iter::from_fn(|| rig.recv().ok())
            .map(|frames| frames[1..].join("/"))
            .collect()
    }

    #[test]
    fn a_raw_router_reports_connections_and_their_ends() {
        let mut rig = raw_router();
        let a = rig.accept("");
        let b = rig.accept("");
        rig.far_send(b, ["b"]);
        rig.far_send(a, ["a"]);
        rig.settle();
        assert!(rig.can_recv());
        let first = rig.recv_from().unwrap();
        assert_eq!((first.0.len(), &first.0[1][..], first.1), (2, "", Some(a)));
        assert_eq!(bodies(&mut rig), ["", "a", "b"]);
        rig.far_send(a, ["bye"]);
        rig.far_close(a);
        rig.settle();
        for (look_first, expected) in [(true, "bye"), (false, "")] {
            assert!(!look_first || rig.can_recv());
            let (frames, from) = rig.recv_from().unwrap();
            assert_eq!(frames, [first.0[0].clone(), expected.into()]);
            assert_eq!(from, Some(a));
        }
        assert_eq!(rig.recv(), Err(ErrorKind::Again));
        assert!(rig.is_gone(a) && !rig.is_gone(b));
    }

    #[test]
    fn a_raw_router_that_closes_a_connection_gets_no_notice_of_its_end() {
        let mut rig = raw_router();
        let id = rig.accept("");
        let (name, _) = rig.recv_message().unwrap();
        let name = name.head().clone();
        rig.send_message(message([&name[..], b"last words"]))
            .unwrap();
        rig.send_message(message([&name[..], b""])).unwrap();
        assert_eq!(rig.doomed(id), Some(DoomReason::Requested));
        assert_eq!(rig.far_recv_all(id), ["last words"]);
        assert!(!rig.can_recv());
        // Like any ROUTER, it only counts undeliverable messages.
        rig.send_message(message([&name[..], b"late"])).unwrap();
        assert_eq!(rig.dropped(DropReason::Unroutable), 1);
    }

    #[test]
    fn a_raw_router_distinguishes_a_lost_connection_from_its_successor() {
        let mut rig = raw_router();
        let id = rig.connect();
        rig.ready(id, "");
        assert_eq!(bodies(&mut rig), [""]);
        rig.far_send(id, ["1"]);
        rig.disconnected(id);
        rig.ready(id, "");
        rig.far_send(id, ["2"]);
        rig.settle();
        assert_eq!(bodies(&mut rig), ["1", "", "", "2"]);
    }
}
