//! ROUTER: each message goes to the peer that its first frame names, and arrives behind the name of its sender.

use bytes::Bytes;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::PatternOption;
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::load_balancer::LoadBalancer;
use crate::patterns::notices::Notices;
use crate::patterns::pipe_set::{DoomReason, DropReason, PipeSet};
use crate::patterns::router_table::{self, Given, RouterTable};
use crate::patterns::{Pattern, PatternSpec};
use crate::pipe::PipeId;

struct Router {
    table: RouterTable,
    /// Only pipes whose peer has a name: nothing can be received from somebody without one.
    inbound: FairQueue,
    /// Peers with room, for POLLOUT when an unroutable message is an error.
    open: LoadBalancer,
    mandatory: bool,
    handover: bool,
    probe_router: bool,
    /// Peers speak bytes, not ZMTP: the application is told of their coming and going, and ends a connection with a
    /// message of nothing.
    raw: bool,
    notices: Notices,
}

impl Router {
    fn new() -> Router {
        Router {
            table: RouterTable::new(),
            inbound: FairQueue::default(),
            open: LoadBalancer::default(),
            mandatory: false,
            handover: false,
            probe_router: false,
            raw: false,
            notices: Notices::default(),
        }
    }

    /// Finds out what the peer of a fresh connection is called. False when it is turned away.
    fn identify(&mut self, pipes: &mut PipeSet, id: PipeId) -> bool {
        let announced = announced_id(pipes, id);
        match self.table.given(id) {
            // The same peer again, or one that the application has named itself.
            Some(Given::Chosen) => return true,
            Some(Given::Automatic) if announced.is_empty() => return true,
            Some(Given::Announced) if self.table.route(&announced) == Some(id) => return true,
            _ => {}
        }
        let refusal = if announced.is_empty() {
            None
        } else if !router_table::is_valid(&announced) {
            Some(DoomReason::InvalidRoutingId)
        } else if self.table.is_reserved(&announced) {
            Some(DoomReason::DuplicateRoutingId)
        } else {
            match self.table.route(&announced) {
                Some(holder) if !self.take_over(pipes, holder, id) => {
                    Some(DoomReason::DuplicateRoutingId)
                }
                _ => None,
            }
        };
        // A peer that comes back under another name has no claim to the old one.
        self.table.remove(id);
        if let Some(reason) = refusal {
            self.inbound.remove(id);
            self.open.remove(id);
            pipes.doom(id, reason);
            return false;
        }
        if announced.is_empty() {
            self.table.insert_automatic(id);
        } else {
            self.table.insert(id, announced, Given::Announced);
        }
        true
    }

    /// Frees the name that `holder` has for `newcomer`, if that may have it.
    fn take_over(&mut self, pipes: &mut PipeSet, holder: PipeId, newcomer: PipeId) -> bool {
        let gone = pipes.get(holder).is_none_or(|pipe| pipe.is_far_closed());
        if gone {
            self.table.unroute(holder);
            return true;
        }
        // Whoever was authenticated shares its name with nobody else.
        if !self.handover || user(pipes, holder) != user(pipes, newcomer) {
            return false;
        }
        self.depose(pipes, holder);
        true
    }

    /// Takes a peer's name away, and the peer with it.
    fn depose(&mut self, pipes: &mut PipeSet, holder: PipeId) {
        self.table.unroute(holder);
        self.inbound.remove(holder);
        self.open.remove(holder);
        pipes.doom(holder, DoomReason::HandedOver);
    }

    /// Why nothing can be sent to whoever `name` names.
    fn nobody(name: &Frame) -> Error {
        let text = format!("no peer is called \"{}\"", name.escape_ascii());
        Error::with(ErrorKind::HostUnreachable, text)
    }

    /// The message cannot be delivered because its addressee is not there.
    fn unroutable(&self, pipes: &mut PipeSet, message: &Message) -> Result<()> {
        if self.mandatory {
            return Err(Router::nobody(message.head()));
        }
        pipes.count_drop(None, DropReason::Unroutable);
        Ok(())
    }
}

fn announced_id(pipes: &mut PipeSet, id: PipeId) -> Bytes {
    let peer = pipes.get(id).and_then(|pipe| pipe.peer());
    peer.map(|peer| peer.routing_id.clone()).unwrap_or_default()
}

fn user(pipes: &mut PipeSet, id: PipeId) -> Option<String> {
    pipes.get(id)?.peer()?.user_id.clone()
}

impl Pattern for Router {
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        // With a name chosen beforehand the peer can be sent to before it is there.
        if let Some(name) = pipes.get(id).and_then(|pipe| pipe.peer_name()) {
            match self.table.route(&name) {
                Some(holder) if pipes.get(holder).is_some_and(|pipe| !pipe.is_far_closed()) => {
                    // Came in under this name while there was no connection: the application's word counts.
                    self.depose(pipes, holder);
                }
                Some(holder) => self.table.unroute(holder),
                None => {}
            }
            self.table.insert(id, name, Given::Chosen);
            self.inbound.insert(id);
            self.open.insert(id);
        }
    }

    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if !self.identify(pipes, id) {
            return;
        }
        self.inbound.insert(id);
        self.open.insert(id);
        if self.raw {
            self.notices.connected(id);
        }
        if self.probe_router {
            // Without room for it there are messages in front of it that tell the peer the same.
            pipes.write(id, &mut Message::new());
        }
    }

    fn disconnected(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if self.raw {
            self.notices.disconnected(pipes, &self.table, id);
        }
    }

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        if self.table.name(id).is_some() {
            self.inbound.insert(id);
        }
    }

    fn writable(&mut self, _: &mut PipeSet, id: PipeId) {
        if self.table.name(id).is_some() {
            self.open.insert(id);
        }
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.table.unroute(id);
        self.open.remove(id);
        if self.table.name(id).is_some() {
            self.inbound.far_closed(pipes, id);
        } else {
            pipes.discard(id, DropReason::PeerGone);
            pipes.check_read(id);
        }
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.notices.detach(&self.table, id);
        self.table.remove(id);
        self.inbound.remove(id);
        self.open.remove(id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        let Some(id) = self.table.route(message.head()) else {
            return self.unroutable(pipes, message);
        };
        if !pipes.check_write(id) {
            if pipes.get(id).is_none_or(|pipe| pipe.is_far_closed()) {
                return self.unroutable(pipes, message);
            }
            if self.mandatory {
                return Err(Error::new(ErrorKind::Again));
            }
            pipes.count_drop(Some(id), DropReason::HighWater);
            return Ok(());
        }
        if self.mandatory {
            // The pipe may have seen the room before anybody was told of it, and then nobody will be.
            self.open.insert(id);
        }
        // A name and nothing to deliver.
        if message.pop_front().is_none() {
            pipes.count_drop(Some(id), DropReason::Malformed);
            return Ok(());
        }
        if self.raw && message.size() == 0 {
            self.notices.forget(id);
            pipes.doom(id, DoomReason::Requested);
            return Ok(());
        }
        pipes.write_checked(id, message);
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        if self.raw {
            let next = self.notices.recv(pipes, &self.table, &mut self.inbound);
            let (next, id) = next.ok_or_else(|| Error::new(ErrorKind::Again))?;
            *message = next;
            return Ok(Some(id));
        }
        while let Some(id) = self.inbound.recv_to(pipes, message) {
            if let Some(name) = self.table.name(id) {
                message.push_front(name.clone());
                return Ok(Some(id));
            }
            *message = Message::new();
        }
        Err(Error::new(ErrorKind::Again))
    }

    fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        !self.mandatory || self.open.can_send(pipes)
    }

    fn check_send(&mut self, pipes: &mut PipeSet, head: &Frame) -> Result<()> {
        if !self.mandatory {
            return Ok(());
        }
        match self.table.route(head) {
            Some(id) if pipes.check_write(id) => {
                self.open.insert(id);
                Ok(())
            }
            Some(id) if pipes.get(id).is_some_and(|pipe| !pipe.is_far_closed()) => {
                Err(Error::new(ErrorKind::Again))
            }
            _ => Err(Router::nobody(head)),
        }
    }

    fn take_peer_name(&mut self) -> Option<Bytes> {
        self.table.take_reserved()
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        if self.raw {
            return self.notices.can_recv(pipes, &self.table, &mut self.inbound);
        }
        self.inbound.can_recv(pipes)
    }

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            PatternOption::RouterMandatory(on) => self.mandatory = *on,
            PatternOption::RouterHandover(on) => self.handover = *on,
            PatternOption::ProbeRouter(on) => self.probe_router = *on,
            PatternOption::ConnectRoutingId(id) => self.table.reserve(id)?,
            PatternOption::RouterRaw(on) => self.raw = *on,
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }
}

pub(super) static ROUTER: PatternSpec = PatternSpec {
    socket_type: SocketType::Router,
    new: || Box::new(Router::new()),
    can_send: true,
    can_recv: true,
    conflates: false,
    single_connect: false,
    eager: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::{Rig, message, peer};
    use zeroxide_proto::engine::PeerInfo;

    fn name(frames: &[String]) -> String {
        frames[0].clone()
    }

    #[test]
    fn replies_find_their_way_by_name() {
        let mut rig = Rig::new(&ROUTER);
        let a = rig.accept("alice");
        let b = rig.accept("bob");
        rig.far_send(a, ["", "hello"]);
        rig.far_send(b, ["x", "y"]);
        rig.settle();
        assert_eq!(
            rig.recv_from().unwrap(),
            (vec!["alice".into(), "".into(), "hello".into()], Some(a))
        );
        assert_eq!(rig.recv().unwrap(), ["bob", "x", "y"]);
        rig.send(["bob", "", "1"]).unwrap();
        rig.send(["alice", "2"]).unwrap();
        assert_eq!(rig.far_recv_all(a), ["2"]);
        assert_eq!(rig.far_recv_all(b), ["/1"]);
    }

    #[test]
    fn nameless_peers_get_five_bytes_that_start_with_zero() {
        let mut rig = Rig::new(&ROUTER);
        let a = rig.accept("");
        let b = rig.accept("");
        for id in [a, b] {
            rig.far_send(id, ["hi"]);
        }
        rig.settle();
        let mut names = Vec::new();
        for (id, body) in [(a, "for a"), (b, "for b")] {
            let (got, from) = rig.recv_message().unwrap();
            assert_eq!(from, Some(id));
            let name = got.head().clone();
            assert_eq!((name.len(), name[0]), (5, 0));
            names.push(u32::from_be_bytes(name[1..].try_into().unwrap()));
            rig.send_message(message([&name[..], body.as_bytes()]))
                .unwrap();
            assert_eq!(rig.far_recv_all(id), [body]);
        }
        assert_eq!(names[1], names[0].wrapping_add(1));
    }

    #[test]
    fn what_cannot_be_delivered_is_dropped_and_counted() {
        let mut rig = Rig::with_hwm(&ROUTER, 1);
        let a = rig.accept("a");
        assert!(rig.can_send());
        rig.send(["nobody", "x"]).unwrap();
        assert_eq!(rig.dropped(DropReason::Unroutable), 1);
        rig.send(["a"]).unwrap();
        assert_eq!(rig.dropped(DropReason::Malformed), 1);
        rig.send(["a", "1"]).unwrap();
        rig.send(["a", "2"]).unwrap();
        assert_eq!(rig.dropped(DropReason::HighWater), 1);
        assert!(rig.can_send());
        assert_eq!(rig.far_recv_all(a), ["1"]);
        rig.far_close(a);
        rig.send(["a", "3"]).unwrap();
        assert_eq!(rig.dropped(DropReason::Unroutable), 2);
    }

    #[test]
    fn mandatory_makes_it_an_error_and_gives_the_message_back() {
        let mut rig = Rig::with_hwm(&ROUTER, 1);
        rig.set(PatternOption::RouterMandatory(true)).unwrap();
        assert!(!rig.can_send());
        let rejected = rig.send(["nobody", "x"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::HostUnreachable);
        assert_eq!(rejected.message, message(["nobody", "x"]));

        let a = rig.accept("a");
        let b = rig.accept("b");
        rig.send(["a", "1"]).unwrap();
        let rejected = rig.send(["a", "2"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Again);
        assert_eq!(rejected.message, message(["a", "2"]));
        assert!(rig.can_send(), "b has room");
        rig.send(["b", "1"]).unwrap();
        assert!(!rig.can_send());
        assert_eq!(rig.far_recv_all(b), ["1"]);
        assert!(rig.can_send());

        rig.far_close(a);
        rig.settle();
        let error = rig.send(["a", "3"]).unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::HostUnreachable);
        assert_eq!(rig.dropped_in_all(), 0);
    }

    #[test]
    fn a_second_peer_of_the_same_name_is_turned_away_visibly() {
        let mut rig = Rig::new(&ROUTER);
        let first = rig.accept("x");
        let second = rig.accept("x");
        assert_eq!(rig.doomed(second), Some(DoomReason::DuplicateRoutingId));
        assert!(rig.is_far_end_closed(second));
        rig.send(["x", "1"]).unwrap();
        assert_eq!(rig.far_recv_all(first), ["1"]);
    }

    #[test]
    fn handover_gives_the_name_to_the_newcomer_and_closes_the_other() {
        let mut rig = Rig::new(&ROUTER);
        rig.set(PatternOption::RouterHandover(true)).unwrap();
        let first = rig.accept("x");
        rig.far_send(first, ["unread"]);
        let second = rig.accept("x");
        assert_eq!(rig.doomed(first), Some(DoomReason::HandedOver));
        assert!(rig.is_far_end_closed(first));
        assert_eq!(rig.dropped(DropReason::PeerGone), 1);
        rig.send(["x", "1"]).unwrap();
        assert_eq!(rig.far_recv_all(second), ["1"]);
        rig.far_send(second, ["2"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["x", "2"]);
    }

    #[test]
    fn handover_happens_only_to_the_same_user() {
        let known = |user: &str| PeerInfo {
            user_id: Some(user.into()),
            ..peer("x")
        };
        let mut rig = Rig::new(&ROUTER);
        rig.set(PatternOption::RouterHandover(true)).unwrap();
        let alice = rig.accept_as(known("alice"));
        for thief in [known("mallory"), peer("x")] {
            let id = rig.accept_as(thief);
            assert_eq!(rig.doomed(id), Some(DoomReason::DuplicateRoutingId));
        }
        assert!(!rig.is_gone(alice));
        let again = rig.accept_as(known("alice"));
        assert!(rig.is_gone(alice) && !rig.is_gone(again));
    }

    #[test]
    fn a_peer_that_comes_back_gets_its_name_even_while_its_last_words_are_unread() {
        let mut rig = Rig::new(&ROUTER);
        let first = rig.accept("x");
        rig.far_send(first, ["last words"]);
        rig.far_close(first);
        // Before the socket has heard of the loss.
        let second = rig.accept_at_once("x");
        assert!(!rig.is_gone(second));
        rig.send(["x", "welcome back"]).unwrap();
        assert_eq!(rig.far_recv_all(second), ["welcome back"]);
        assert_eq!(rig.recv().unwrap(), ["x", "last words"]);
        assert!(!rig.can_recv());
        rig.settle();
        assert!(rig.is_gone(first));
        rig.send(["x", "still there?"]).unwrap();
        assert_eq!(rig.far_recv_all(second), ["still there?"]);
    }

    #[test]
    fn names_that_peers_may_not_have_are_refused() {
        let mut rig = Rig::new(&ROUTER);
        for bad in [&[0u8, 1, 2, 3, 4][..], &[b'x'; 256][..]] {
            let id = rig.accept_as(peer(bad));
            assert_eq!(rig.doomed(id), Some(DoomReason::InvalidRoutingId));
        }
        let long = rig.accept_as(peer([b'x'; 255]));
        rig.far_send(long, ["hi"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap()[0].len(), 255);
    }

    #[test]
    fn a_connecting_pipe_is_anonymous_until_it_is_ready() {
        let mut rig = Rig::new(&ROUTER);
        let id = rig.connect();
        rig.far_send(id, ["too early"]);
        rig.settle();
        assert!(!rig.can_recv());
        rig.ready(id, "server");
        assert_eq!(rig.recv().unwrap(), ["server", "too early"]);
    }

    #[test]
    fn a_reconnected_peer_keeps_its_name_or_brings_another() {
        let mut rig = Rig::new(&ROUTER);
        let id = rig.connect();
        rig.ready(id, "one");
        rig.disconnected(id);
        rig.send(["one", "queued"]).unwrap();
        rig.ready(id, "one");
        rig.send(["one", "sent"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["queued", "sent"]);
        rig.disconnected(id);
        rig.ready(id, "two");
        rig.send(["one", "x"]).unwrap();
        assert_eq!(rig.dropped(DropReason::Unroutable), 1);
        rig.send(["two", "y"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["y"]);
        // Without a name of its own it gets an automatic one, and keeps that.
        let mut names = Vec::new();
        for _ in 0..2 {
            rig.disconnected(id);
            rig.ready(id, "");
            rig.far_send(id, ["hi"]);
            rig.settle();
            names.push(name(&rig.recv().unwrap()));
        }
        assert_eq!(names[0], names[1]);
        assert!(names[0].starts_with("\\x00"));
    }

    #[test]
    fn the_application_may_name_the_peer_of_its_next_connect() {
        let mut rig = Rig::new(&ROUTER);
        let choose = |id: &'static [u8]| PatternOption::ConnectRoutingId(Bytes::from_static(id));
        rig.set(choose(b"chosen")).unwrap();
        // Somebody who comes in meanwhile neither gets the name nor can take it.
        let other = rig.accept("other");
        let thief = rig.accept("chosen");
        assert_eq!(rig.doomed(thief), Some(DoomReason::DuplicateRoutingId));
        let id = rig.connect();
        rig.send(["chosen", "early"]).unwrap();
        rig.ready(id, "its own idea");
        rig.send(["chosen", "late"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["early", "late"]);
        rig.far_send(id, ["hi"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["chosen", "hi"]);
        assert_eq!(rig.set(choose(b"chosen")), Err(ErrorKind::AddressInUse));
        assert_eq!(rig.set(choose(b"\0")), Err(ErrorKind::Invalid));
        assert!(rig.far_recv_all(other).is_empty());
        // Only once.
        let next = rig.connect();
        rig.ready(next, "");
        rig.far_send(next, ["hi"]);
        rig.settle();
        assert!(rig.recv().unwrap()[0].starts_with("\\x00"));
    }

    #[test]
    fn probes_each_connection_when_told_to() {
        let mut rig = Rig::new(&ROUTER);
        rig.set(PatternOption::ProbeRouter(true)).unwrap();
        let id = rig.accept("x");
        assert_eq!(rig.far_recv(id).unwrap(), [""]);
        assert_eq!(
            rig.set(PatternOption::ReqRelaxed(true)),
            Err(ErrorKind::Invalid)
        );
    }

    #[test]
    fn many_come_and_go_and_leave_nothing() {
        let mut rig = Rig::new(&ROUTER);
        for round in 0..1000 {
            let id = rig.accept(&format!("peer {}", round % 7));
            rig.far_send(id, ["x"]);
            rig.settle();
            assert_eq!(name(&rig.recv().unwrap()), format!("peer {}", round % 7));
            rig.far_close(id);
            rig.settle();
        }
        assert!(rig.is_empty());
        assert_eq!(rig.dropped_in_all(), 0);
    }

    #[test]
    fn a_peer_with_room_is_one_to_send_to_whoever_saw_it_first() {
        let mut rig = Rig::with_hwm(&ROUTER, 100);
        rig.set(PatternOption::RouterMandatory(true)).unwrap();
        let id = rig.accept("a");
        let body = vec![0u8; 256 << 10];
        let msg = || crate::patterns::rig::message([&b"a"[..], &body[..]]);
        for _ in 0..5 {
            rig.send_message(msg()).unwrap();
        }
        for _ in 0..3 {
            rig.far_recv(id).unwrap();
        }
        while rig.send_message(msg()).is_ok() {}
        rig.far_recv(id).unwrap();
        rig.settle();
        assert!(!rig.can_send());
        for _ in 0..3 {
            rig.far_recv(id).unwrap();
            rig.settle();
        }
        rig.send_message(msg()).unwrap();
        rig.far_recv_all(id);
        rig.settle();
        assert!(rig.can_send());
    }
}
