//! REP: receives a request, then sends its reply to the peer that asked.

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, ids};
use crate::patterns::drops::DropReason;
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::{Dialogue, Pattern, PatternSpec, Priority, Turns};
use crate::pipe::PipeId;

/// An envelope with more frames does not keep its capacity for the next one.
const ENVELOPE_KEPT: usize = 16;

#[derive(Default)]
struct Rep {
    inbound: FairQueue,
    /// The frames before the request, including the empty one; sent in front of the reply.
    envelope: Vec<Frame>,
    turn: Turn,
}

#[derive(Default)]
enum Turn {
    /// The next operation is to receive a request.
    #[default]
    Receive,
    /// A request was found, without its envelope; the application has not taken it yet.
    Received(Message, PipeId),
    /// The next operation is to send the reply to this peer.
    Reply(PipeId),
}

impl Rep {
    /// Looks for a request, unless there is one.
    fn look(&mut self, pipes: &mut PipeSet) {
        while matches!(self.turn, Turn::Receive) {
            let Some((mut message, id)) = self.inbound.recv(pipes) else {
                return;
            };
            if self.open(&mut message).is_some() {
                self.turn = Turn::Received(message, id);
                return;
            }
            let envelope = self.envelope.drain(..).rev();
            envelope.for_each(|frame| message.push_front(frame));
            if !pipes.drop_read(Some(id), &mut message, DropReason::Malformed) {
                return;
            }
        }
    }

    /// Removes the envelope. `None` if there is no empty frame, or nothing after it.
    fn open(&mut self, message: &mut Message) -> Option<()> {
        self.envelope.clear();
        self.envelope.shrink_to(ENVELOPE_KEPT);
        loop {
            let frame = message.pop_front()?;
            let last = frame.is_empty();
            self.envelope.push(frame);
            if last {
                return Some(());
            }
        }
    }
}

#[cold]
fn request_comes_first() -> Error {
    let text = "a REP socket must receive a request before it can send a reply";
    Error::with(ErrorKind::Fsm, text)
}

#[cold]
fn reply_comes_first() -> Error {
    let text = "this REP socket has received a request and must send the reply first; \
                a ROUTER socket can receive several before it replies";
    Error::with(ErrorKind::Fsm, text)
}

impl Pattern for Rep {
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

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        let Turn::Reply(to) = self.turn else {
            return Err(request_comes_first());
        };
        self.turn = Turn::Receive;
        // A peer that is gone or does not read must not delay the others.
        if !pipes.write_behind(to, self.envelope.drain(..), message) {
            let gone = pipes.get(to).is_none_or(|pipe| pipe.is_far_closed());
            let reason = if gone {
                DropReason::PeerGone
            } else {
                DropReason::HighWater
            };
            pipes.count_drop(Some(to), reason);
        }
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        self.look(pipes);
        match std::mem::take(&mut self.turn) {
            Turn::Receive => Err(Error::new(ErrorKind::Again)),
            Turn::Received(request, from) => {
                self.turn = Turn::Reply(from);
                *message = request;
                Ok(Some(from))
            }
            Turn::Reply(to) => {
                self.turn = Turn::Reply(to);
                Err(reply_comes_first())
            }
        }
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        matches!(self.turn, Turn::Reply(_))
    }

    fn check_send(&mut self, pipes: &mut PipeSet, _: &Frame) -> Result<()> {
        if self.can_send(pipes) {
            Ok(())
        } else {
            Err(request_comes_first())
        }
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.look(pipes);
        matches!(self.turn, Turn::Received(..))
    }

    fn turns(&self) -> Turns {
        Turns::Strict
    }

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            // These concern the names of peers, which REP does not use: a reply goes to the peer that asked.
            PatternOption::RouterMandatory(_)
            | PatternOption::RouterHandover(_)
            | PatternOption::ConnectRoutingId(_) => {}
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }

    fn takes_back(&self) -> bool {
        matches!(self.turn, Turn::Reply(_))
    }
}

pub(super) static REP: PatternSpec = PatternSpec {
    dialogue: Dialogue::Answers,
    options: &[
        ids::ROUTER_MANDATORY,
        ids::PROBE_ROUTER,
        ids::ROUTER_HANDOVER,
        ids::CONNECT_ROUTING_ID,
    ],
    ..PatternSpec::new(SocketType::Rep, || Box::new(Rep::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    #[test]
    fn request_and_reply_take_turns() {
        let mut rig = Rig::new(&REP);
        let id = rig.accept("");
        assert_eq!(rig.send(["x"]).unwrap_err().error.kind(), ErrorKind::Fsm);
        assert_eq!(rig.recv(), Err(ErrorKind::Again));
        rig.far_send(id, ["", "question", "more"]);
        rig.settle();
        assert!(rig.can_recv() && !rig.can_send());
        assert_eq!(
            rig.recv_from().unwrap(),
            (vec!["question".into(), "more".into()], Some(id))
        );
        assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
        assert!(!rig.can_recv() && rig.can_send());
        rig.send(["answer"]).unwrap();
        assert_eq!(rig.far_recv(id).unwrap(), ["", "answer"]);
        assert_eq!(rig.send(["x"]).unwrap_err().error.kind(), ErrorKind::Fsm);
    }

    #[test]
    fn each_reply_gets_its_own_envelope() {
        let mut rig = Rig::new(&REP);
        let a = rig.accept("");
        let b = rig.accept("");
        rig.far_send(a, ["hop1", "hop2", "", "qa"]);
        rig.far_send(b, ["", "", "qb"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["qa"]);
        rig.send(["ra", ""]).unwrap();
        // Only the first empty frame belongs to the envelope.
        assert_eq!(rig.recv().unwrap(), ["", "qb"]);
        rig.send(["rb"]).unwrap();
        assert_eq!(rig.far_recv_all(a), ["hop1/hop2//ra/"]);
        assert_eq!(rig.far_recv_all(b), ["/rb"]);
    }

    #[test]
    fn requests_without_delimiter_or_body_are_dropped_whole() {
        let mut rig = Rig::new(&REP);
        let id = rig.accept("");
        for malformed in [&["no delimiter"][..], &["a", "b", "c"], &[""], &["a", ""]] {
            rig.far_send(id, malformed);
        }
        rig.settle();
        assert!(!rig.can_recv());
        assert_eq!(rig.recv(), Err(ErrorKind::Again));
        assert_eq!(rig.dropped(DropReason::Malformed), 4);
        rig.far_send(id, ["", ""]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), [""]);
        rig.send(["fine"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["/fine"]);
    }

    #[test]
    fn the_reply_to_a_vanished_peer_is_dropped_and_the_next_turn_begins() {
        let mut rig = Rig::new(&REP);
        let gone = rig.accept("");
        let other = rig.accept("");
        rig.far_send(gone, ["", "q1"]);
        rig.far_send(other, ["", "q2"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["q1"]);
        rig.far_close(gone);
        rig.settle();
        assert!(rig.is_gone(gone));
        rig.send(["lost"]).unwrap();
        assert_eq!(rig.dropped(DropReason::PeerGone), 1);
        assert_eq!(rig.recv().unwrap(), ["q2"]);
        rig.send(["r2"]).unwrap();
        assert_eq!(rig.far_recv_all(other), ["/r2"]);
    }

    #[test]
    fn a_peer_that_does_not_read_its_replies_does_not_block_others() {
        let mut rig = Rig::with_hwm(&REP, 1);
        let id = rig.accept("");
        for n in 0..3 {
            rig.far_send(id, ["", "q"]);
            rig.settle();
            assert_eq!(rig.recv().unwrap(), ["q"]);
            rig.send([format!("{n}")]).unwrap();
        }
        assert_eq!(rig.dropped(DropReason::HighWater), 2);
        assert_eq!(rig.far_recv_all(id), ["/0"]);
    }

    #[test]
    fn a_request_that_was_only_looked_at_is_not_lost_with_its_peer() {
        let mut rig = Rig::new(&REP);
        let id = rig.accept("");
        rig.far_send(id, ["", "q"]);
        rig.settle();
        assert!(rig.can_recv());
        rig.far_close(id);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["q"]);
        rig.send(["r"]).unwrap();
    }

    #[test]
    fn a_long_envelope_is_given_back_whole_and_not_kept() {
        let mut rep = Rep::default();
        let frames = (0..10_000).map(|n: u32| Frame::copy_from(&n.to_be_bytes()));
        let mut request = Message::from_frames(frames.chain([Frame::new(), Frame::from("q")]));
        assert!(rep.open(&mut request).is_some());
        assert_eq!(request, Message::from("q"));
        assert_eq!(rep.envelope.len(), 10_001);
        assert!(rep.open(&mut Message::from_iter(["", "q"])).is_some());
        assert!(rep.envelope.capacity() <= ENVELOPE_KEPT);
    }
}
