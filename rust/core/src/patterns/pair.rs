//! PAIR: one peer, both directions.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::patterns::drops::DoomReason;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::{Pattern, PatternSpec};
use crate::pipe::PipeId;

/// The behaviour of PAIR, on which CHANNEL and DGRAM are based.
#[derive(Default)]
pub(super) struct Pair<R = ()> {
    current: Option<PipeId>,
    /// The previous peer: gone, but some of its messages have not been received yet.
    previous: Option<PipeId>,
    rule: R,
}

/// A rule for the messages that the application sends.
pub(super) trait Rule: Send {
    /// The socket has got this peer.
    fn attached(&mut self, pipes: &mut PipeSet, id: PipeId) {
        let _ = (pipes, id);
    }

    /// Checks a message.
    ///
    /// # Errors
    /// The reason why it cannot be sent.
    fn check(&self, message: &Message) -> Result<()> {
        let _ = message;
        Ok(())
    }
}

impl Rule for () {}

impl<R> Pair<R> {
    /// A peer that is gone does not exclude its successor, but its messages come first.
    fn admits(&mut self, pipes: &mut PipeSet) -> bool {
        let Some(current) = self.current else {
            return true;
        };
        let Some(pipe) = pipes.get(current) else {
            return true;
        };
        let is_finished = pipe.is_finished();
        if !pipes.is_gone(current) {
            return false;
        }
        if is_finished {
            // No other call would check this pipe again.
            pipes.check_read(current);
            return true;
        }
        if self.previous.is_some() {
            return false;
        }
        self.previous = Some(current);
        true
    }

    /// Whether more messages of a previous peer follow, which come before those of its successor.
    fn has_more(&self, pipes: &mut PipeSet, id: PipeId) -> bool {
        self.previous == Some(id) && pipes.is_open(id)
    }

    /// Sends nothing more to a peer that is gone. Its messages can still be received.
    fn retire(&mut self, pipes: &mut PipeSet) {
        if self.previous.is_none() && self.current.is_some_and(|id| pipes.is_gone(id)) {
            self.previous = self.current.take();
        }
    }
}

impl<R: Rule> Pattern for Pair<R> {
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if self.admits(pipes) {
            self.current = Some(id);
            self.rule.attached(pipes, id);
        } else {
            pipes.doom(id, DoomReason::SecondPeer);
        }
    }

    fn ready(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn readable(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn writable(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn hung_up(&mut self, pipes: &mut PipeSet, _: PipeId) {
        self.retire(pipes);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        // Marks the pipe as finished if it is empty.
        pipes.check_read(id);
    }

    fn detach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.current = self.current.filter(|current| *current != id);
        self.previous = self.previous.filter(|previous| *previous != id);
        self.retire(pipes);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        self.rule.check(message)?;
        match self.current {
            Some(id) if !pipes.is_gone(id) && pipes.write(id, message) => Ok(()),
            _ => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        for id in [self.previous, self.current].into_iter().flatten() {
            if pipes.read_to(id, message) {
                return Ok(Some(id));
            }
            // Puts the reader to sleep, or finds messages published since.
            if pipes.check_read(id) && pipes.read_to(id, message) {
                return Ok(Some(id));
            }
            if self.has_more(pipes, id) {
                break;
            }
        }
        Err(Error::new(ErrorKind::Again))
    }

    fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        self.current
            .is_some_and(|id| !pipes.is_gone(id) && pipes.check_write(id))
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        for id in [self.previous, self.current].into_iter().flatten() {
            if pipes.check_read(id) {
                return true;
            }
            if self.has_more(pipes, id) {
                break;
            }
        }
        false
    }
}

pub(super) static PAIR: PatternSpec =
    PatternSpec::new(SocketType::Pair, || Box::new(Pair::<()>::default()));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    #[test]
    fn a_peer_that_has_hung_up_does_not_exclude_its_successor() {
        let mut rig = Rig::with_hwm(&PAIR, 2);
        let first = rig.accept("");
        rig.far_send(first, ["1"]);
        rig.far_send(first, ["2"]);
        rig.far_hang_up(first);
        assert!(!rig.can_send(), "nothing more is sent to it");
        let second = rig.accept("");
        rig.send(["hello"]).unwrap();
        assert_eq!(rig.far_recv_all(second), ["hello"]);
        rig.far_send(second, ["3"]);
        rig.settle();
        assert_eq!(rig.recv_all(), ["1", "2"], "more may follow");
        rig.far_close(first);
        rig.settle();
        assert_eq!(rig.recv_all(), ["3"]);
        assert_eq!(rig.dropped_in_all(), 0);
    }

    #[test]
    fn several_peers_that_have_hung_up_are_read_in_order_and_sent_nothing() {
        let mut rig = Rig::with_hwm(&PAIR, 2);
        let first = rig.accept("");
        rig.far_send(first, ["1"]);
        rig.far_hang_up(first);
        let second = rig.accept("");
        rig.far_send(second, ["2"]);
        rig.far_hang_up(second);
        assert!(!rig.can_send());
        assert_eq!(rig.recv_all(), ["1"]);
        rig.far_close(first);
        rig.settle();
        assert_eq!(rig.recv_all(), ["2"]);
        rig.settle();
        assert!(rig.is_gone(first) && !rig.can_send());
        let third = rig.accept("");
        rig.send(["hello"]).unwrap();
        assert_eq!(rig.far_recv_all(third), ["hello"]);
    }

    #[test]
    fn talks_both_ways() {
        let mut rig = Rig::new(&PAIR);
        assert!(!rig.can_send());
        assert_eq!(rig.send(["x"]).unwrap_err().error.kind(), ErrorKind::Again);
        let id = rig.accept("");
        rig.send(["a", "b"]).unwrap();
        assert_eq!(rig.far_recv(id).unwrap(), ["a", "b"]);
        assert_eq!(rig.recv().unwrap_err(), ErrorKind::Again);
        rig.far_send(id, ["c"]);
        rig.settle();
        assert!(rig.can_recv());
        assert_eq!(rig.recv_from().unwrap(), (vec!["c".into()], Some(id)));
    }

    #[test]
    fn a_second_peer_is_turned_away_at_once() {
        let mut rig = Rig::new(&PAIR);
        let first = rig.accept("");
        let second = rig.accept("");
        assert_eq!(rig.doomed(second), Some(DoomReason::SecondPeer));
        assert!(rig.is_far_end_closed(second));
        rig.send(["for the first"]).unwrap();
        assert_eq!(rig.far_recv(first).unwrap(), ["for the first"]);
        assert!(rig.far_recv_all(second).is_empty());
    }

    #[test]
    fn a_successor_is_welcome_once_the_first_is_gone() {
        let mut rig = Rig::new(&PAIR);
        let first = rig.accept("");
        rig.far_close(first);
        rig.settle();
        assert!(!rig.can_send());
        let second = rig.accept("");
        rig.send(["x"]).unwrap();
        assert_eq!(rig.far_recv(second).unwrap(), ["x"]);
    }

    #[test]
    fn a_successor_does_not_wait_until_the_messages_of_the_first_are_read() {
        let mut rig = Rig::new(&PAIR);
        let first = rig.accept("");
        rig.far_send(first, ["1"]);
        rig.far_close(first);
        rig.settle();
        let second = rig.accept("");
        rig.far_send(second, ["2"]);
        rig.settle();
        rig.send(["x"]).unwrap();
        assert_eq!(rig.far_recv(second).unwrap(), ["x"]);
        // But a third is refused while two have unread messages.
        rig.far_close(second);
        rig.settle();
        let third = rig.accept("");
        assert_eq!(rig.doomed(third), Some(DoomReason::SecondPeer));
        assert_eq!(rig.recv().unwrap(), ["1"]);
        assert_eq!(rig.recv().unwrap(), ["2"]);
        assert!(!rig.can_recv());
        rig.settle();
        assert!(rig.is_empty());
    }

    #[test]
    fn a_peer_whose_last_message_was_just_received_is_forgotten_with_its_successor() {
        let mut rig = Rig::new(&PAIR);
        let first = rig.accept("");
        rig.far_send(first, ["last"]);
        rig.far_close(first);
        rig.settle();
        assert_eq!(rig.recv_message().unwrap().1, Some(first));
        rig.accept("");
        assert!(rig.is_gone(first));
    }

    #[test]
    fn blocks_at_the_high_water_mark() {
        let mut rig = Rig::with_hwm(&PAIR, 2);
        let id = rig.accept("");
        rig.send(["1"]).unwrap();
        rig.send(["2"]).unwrap();
        assert!(!rig.can_send());
        assert_eq!(rig.send(["3"]).unwrap_err().error.kind(), ErrorKind::Again);
        assert_eq!(rig.far_recv_all(id), ["1", "2"]);
        assert!(rig.can_send());
    }
}
