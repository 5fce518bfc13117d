//! GATHER: receives single parts from the scatterers, fairly.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::sieve::Sieve;
use crate::patterns::single_part::admit;
use crate::patterns::{Pattern, PatternSpec, Priority};
use crate::pipe::PipeId;

#[derive(Default)]
pub(super) struct Gather {
    inbound: Sieve,
}

impl Pattern for Gather {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.inbound.far_closed(pipes, id);
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.remove(id);
    }

    fn send(&mut self, _: &mut PipeSet, _: &mut Message) -> Result<()> {
        Err(Error::new(ErrorKind::NotSupported))
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        match self.inbound.recv_to(pipes, message, admit) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        false
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.inbound.can_recv(pipes, admit)
    }
}

pub(super) static GATHER: PatternSpec = PatternSpec {
    can_send: false,
    single_part: true,
    ..PatternSpec::new(SocketType::Gather, || Box::new(Gather::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::drops::DropReason;
    use crate::patterns::rig::Rig;

    #[test]
    fn scatterers_take_turns() {
        let mut rig = Rig::new(&GATHER);
        let a = rig.accept("");
        let b = rig.accept("");
        rig.far_send(a, ["a1"]);
        rig.far_send(a, ["a2"]);
        rig.far_send(b, ["b1"]);
        rig.settle();
        assert_eq!(rig.recv_all(), ["a1", "b1", "a2"]);
        let error = rig.send(["x"]).unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::NotSupported);
    }

    #[test]
    fn messages_of_several_parts_are_dropped_and_counted() {
        let mut rig = Rig::new(&GATHER);
        let id = rig.accept("");
        for frames in [&["1", "2"][..], &["good"], &["3", "4", "5"]] {
            rig.far_send(id, frames);
        }
        rig.settle();
        assert!(rig.can_recv());
        assert_eq!(rig.recv_from().unwrap(), (vec!["good".into()], Some(id)));
        assert!(!rig.can_recv(), "nothing that could be received is there");
        assert_eq!(rig.recv(), Err(ErrorKind::Again));
        assert_eq!(rig.dropped(DropReason::Malformed), 2);
    }

    #[test]
    fn a_message_that_was_found_outlives_its_scatterer() {
        let mut rig = Rig::new(&GATHER);
        let id = rig.accept("");
        rig.far_send(id, ["last"]);
        rig.settle();
        assert!(rig.can_recv());
        rig.far_close(id);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["last"]);
        assert!(rig.is_gone(id) && !rig.can_recv());
    }
}
