//! CHANNEL: one peer, both directions, single parts.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::patterns::drops::DropReason;
use crate::patterns::pair::Pair;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::{Pattern, PatternSpec, single_part};
use crate::pipe::PipeId;

/// A PAIR, and a message that was received from it, but not returned to the application yet.
pub(super) struct Channel {
    socket_type: SocketType,
    pair: Pair,
    found: Option<(Message, Option<PipeId>)>,
}

impl Channel {
    pub(super) fn new(socket_type: SocketType) -> Channel {
        Channel {
            socket_type,
            pair: Pair::default(),
            found: None,
        }
    }
}

impl Pattern for Channel {
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.pair.attach(pipes, id);
    }

    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.pair.ready(pipes, id);
    }

    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.pair.readable(pipes, id);
    }

    fn writable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.pair.writable(pipes, id);
    }

    fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.pair.hung_up(pipes, id);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.pair.far_closed(pipes, id);
    }

    fn detach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.pair.detach(pipes, id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        single_part::check(message, self.socket_type)?;
        self.pair.send(pipes, message)
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        if let Some((found, id)) = self.found.take() {
            *message = found;
            return Ok(id);
        }
        loop {
            let id = self.pair.recv(pipes, message)?;
            if message.len() == 1 {
                return Ok(id);
            }
            if !pipes.drop_read(id, message, DropReason::Malformed) {
                return Err(Error::new(ErrorKind::Again));
            }
        }
    }

    fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        self.pair.can_send(pipes)
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        if self.found.is_none() {
            let mut message = Message::new();
            let id = self.recv(pipes, &mut message).ok();
            self.found = id.map(|id| (message, id));
        }
        self.found.is_some()
    }
}

pub(super) static CHANNEL: PatternSpec = PatternSpec {
    single_part: true,
    ..PatternSpec::new(SocketType::Channel, || {
        Box::new(Channel::new(SocketType::Channel))
    })
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::patterns::drops::DoomReason;
    use crate::patterns::rig::Rig;

    #[test]
    fn talks_both_ways_in_single_parts() {
        let mut rig = Rig::new(&CHANNEL);
        assert_eq!(rig.send(["x"]).unwrap_err().error.kind(), ErrorKind::Again);
        let id = rig.accept("");
        rig.send(["there"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["there"]);
        let rejected = rig.send(["a", "b"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Invalid);
        rig.far_send(id, ["a", "b"]);
        rig.settle();
        assert!(!rig.can_recv());
        rig.far_send(id, ["back"]);
        rig.settle();
        assert!(rig.can_recv());
        assert_eq!(rig.recv_from().unwrap(), (vec!["back".into()], Some(id)));
        assert_eq!(rig.dropped(DropReason::Malformed), 1);
    }

    #[test]
    fn a_peer_that_has_hung_up_does_not_exclude_its_successor() {
        let mut rig = Rig::with_hwm(&CHANNEL, 1);
        let first = rig.accept("");
        rig.far_send(first, ["last words"]);
        rig.far_hang_up(first);
        assert!(!rig.can_send());
        let second = rig.accept("");
        rig.send(["x"]).unwrap();
        assert_eq!(rig.far_recv_all(second), ["x"]);
        assert_eq!(rig.recv_all(), ["last words"]);
    }

    #[test]
    fn a_second_peer_is_turned_away_until_the_first_is_gone() {
        let mut rig = Rig::new(&CHANNEL);
        let first = rig.accept("");
        let second = rig.accept("");
        assert_eq!(rig.doomed(second), Some(DoomReason::SecondPeer));
        rig.far_send(first, ["last words"]);
        rig.far_close(first);
        rig.settle();
        let third = rig.accept("");
        rig.send(["x"]).unwrap();
        assert_eq!(rig.far_recv_all(third), ["x"]);
        assert_eq!(rig.recv_all(), ["last words"]);
    }
}
