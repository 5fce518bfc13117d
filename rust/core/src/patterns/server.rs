//! SERVER: each message has a single part, and goes to the client whose number is its routing id. Each received message
//! has the number of its sender.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::ids;
use crate::patterns::drops::DropReason;
use crate::patterns::load_balancer::LoadBalancer;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::router_table::RouterTable;
use crate::patterns::sieve::Sieve;
use crate::patterns::{Pattern, PatternSpec, Priority, single_part};
use crate::pipe::PipeId;

/// Also the behaviour of PEER.
pub(super) struct Server {
    socket_type: SocketType,
    table: RouterTable,
    inbound: Sieve,
    /// Peers with room, for POLLOUT.
    open: LoadBalancer,
}

impl Server {
    pub(super) fn new(socket_type: SocketType) -> Server {
        Server {
            socket_type,
            table: RouterTable::new(),
            inbound: Sieve::default(),
            open: LoadBalancer::default(),
        }
    }

    /// The error for a message without a routing id, or with one that no peer has.
    #[cold]
    fn nobody(&self, routing_id: Option<u32>) -> Error {
        let text = match routing_id {
            None => format!(
                "a message of a {} socket needs the routing id of its peer, which every received message has",
                self.socket_type
            ),
            Some(number) => format!("no peer has the routing id {number}, or it has left"),
        };
        Error::with(ErrorKind::HostUnreachable, text)
    }
}

/// A received message has the number of its sender.
#[inline]
fn admit(
    table: &RouterTable,
    id: PipeId,
    message: &mut Message,
) -> std::result::Result<(), DropReason> {
    single_part::admit(id, message)?;
    message.set_routing_id(table.number(id).unwrap_or(0));
    Ok(())
}

impl Pattern for Server {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.table.insert_number(id);
        self.inbound.insert(id);
        self.open.insert(id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if !pipes.is_gone(id) {
            self.open.insert(id);
        }
    }

    fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if pipes.is_gone(id) {
            self.table.unroute(id);
            self.open.remove(id);
        }
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.table.unroute(id);
        self.open.remove(id);
        self.inbound.far_closed(pipes, id);
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.table.remove(id);
        self.open.remove(id);
        self.inbound.remove(id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        single_part::check(message, self.socket_type)?;
        let number = message.routing_id();
        let Some(id) = number.and_then(|number| self.table.numbered(number)) else {
            return Err(self.nobody(number));
        };
        if !pipes.check_write(id) {
            if pipes.get(id).is_none_or(|pipe| pipe.is_far_closed()) {
                return Err(self.nobody(number));
            }
            return Err(Error::new(ErrorKind::Again));
        }
        // The pipe may have room that was found before a notification, which then does not come.
        self.open.insert(id);
        pipes.write_checked(id, message);
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        let Server { table, inbound, .. } = self;
        match inbound.recv_to(pipes, message, |id, message| admit(table, id, message)) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        self.open.can_send(pipes)
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        let Server { table, inbound, .. } = self;
        inbound.can_recv(pipes, |id, message| admit(table, id, message))
    }

    fn peer_number(&self, id: PipeId) -> Option<u32> {
        self.table.number(id)
    }

    fn peer_numbered(&self, number: u32) -> Option<PipeId> {
        self.table.numbered(number)
    }
}

pub(super) static SERVER: PatternSpec = PatternSpec {
    single_part: true,
    numbers_peers: true,
    options: &[ids::HELLO_MSG, ids::DISCONNECT_MSG],
    ..PatternSpec::new(SocketType::Server, || {
        Box::new(Server::new(SocketType::Server))
    })
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    fn to(number: u32, body: &str) -> Message {
        Message::from(body).with_routing_id(number)
    }

    #[test]
    fn replies_reach_the_client_whose_number_they_have() {
        let mut rig = Rig::new(&SERVER);
        let (a, b) = (rig.accept(""), rig.accept(""));
        rig.far_send(a, ["from a"]);
        rig.far_send(b, ["from b"]);
        rig.settle();
        for (id, body) in [(a, "from a"), (b, "from b")] {
            let (message, from) = rig.recv_message().unwrap();
            let number = message.routing_id().unwrap();
            assert_eq!((&message.head()[..], from), (body.as_bytes(), Some(id)));
            assert_eq!(rig.pattern.peer_number(id), Some(number));
            assert_eq!(rig.pattern.peer_numbered(number), Some(id));
            rig.send_message(to(number, &format!("to {body}"))).unwrap();
        }
        assert_eq!(rig.far_recv_all(a), ["to from a"]);
        assert_eq!(rig.far_recv_all(b), ["to from b"]);
    }

    #[test]
    fn a_client_that_left_and_a_missing_number_are_unreachable() {
        let mut rig = Rig::new(&SERVER);
        let id = rig.accept("");
        rig.far_send(id, ["bye"]);
        rig.settle();
        let number = rig.pattern.peer_number(id).unwrap();
        rig.far_close(id);
        // Before the socket is notified, and after.
        for _ in 0..2 {
            let rejected = rig.send_message(to(number, "late")).unwrap_err();
            assert_eq!(rejected.error.kind(), ErrorKind::HostUnreachable);
            assert_eq!(rejected.message, to(number, "late"));
            rig.settle();
        }
        let rejected = rig.send(["to nobody"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::HostUnreachable);
        assert!(rejected.error.to_string().contains("needs the routing id"));
        // What it sent before still has its number.
        let (message, _) = rig.recv_message().unwrap();
        assert_eq!(message, to(number, "bye"));
    }

    #[test]
    fn a_client_that_has_hung_up_is_unreachable_and_its_messages_are_received() {
        let mut rig = Rig::with_hwm(&SERVER, 1);
        let id = rig.accept("");
        rig.far_send(id, ["bye"]);
        rig.far_hang_up(id);
        rig.pattern.writable(&mut rig.pipes, id);
        let number = rig.pattern.peer_number(id).unwrap();
        let rejected = rig.send_message(to(number, "late")).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::HostUnreachable);
        assert!(!rig.can_send());
        assert_eq!(rig.recv().unwrap(), ["bye"]);
    }

    #[test]
    fn a_full_client_makes_only_its_own_messages_wait() {
        let mut rig = Rig::with_hwm(&SERVER, 1);
        let (slow, fast) = (rig.accept(""), rig.accept(""));
        let numbers = [slow, fast].map(|id| rig.pattern.peer_number(id).unwrap());
        rig.send_message(to(numbers[0], "1")).unwrap();
        let rejected = rig.send_message(to(numbers[0], "2")).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Again);
        assert!(rig.can_send());
        rig.send_message(to(numbers[1], "3")).unwrap();
        assert!(!rig.can_send());
        assert_eq!(rig.far_recv_all(slow), ["1"]);
        assert!(rig.can_send());
        rig.send_message(rejected.message).unwrap();
        assert_eq!(rig.far_recv_all(slow), ["2"]);
        assert_eq!(rig.dropped_in_all(), 0);
    }

    #[test]
    fn several_parts_are_refused_on_the_way_out_and_dropped_on_the_way_in() {
        let mut rig = Rig::new(&SERVER);
        let id = rig.accept("");
        let number = rig.pattern.peer_number(id).unwrap();
        let message = Message::from_iter(["a", "b"]).with_routing_id(number);
        let rejected = rig.send_message(message).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Invalid);
        rig.far_send(id, ["a", "b"]);
        rig.settle();
        assert!(!rig.can_recv());
        assert_eq!(rig.dropped(DropReason::Malformed), 1);
    }

    #[test]
    fn a_peer_can_be_addressed_before_it_is_connected_and_keeps_its_number() {
        let mut rig = Rig::new(&SERVER);
        let id = rig.connect();
        let number = rig.pattern.peer_number(id).unwrap();
        rig.send_message(to(number, "early")).unwrap();
        rig.ready(id, "");
        rig.disconnected(id);
        rig.ready(id, "");
        assert_eq!(rig.pattern.peer_number(id), Some(number));
        assert_eq!(rig.far_recv_all(id), ["early"]);
    }
}
