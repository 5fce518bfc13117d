//! REP and RESPONDENT: receive a request or a survey, and then send the answer to the peer that asked. They may receive
//! the next one instead, and leave the earlier one unanswered.

use std::collections::BTreeMap;

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;
use zeroxide_proto::sp;

use super::envelope;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{MAX_TTL, PatternOption, ids};
use crate::patterns::drops::DropReason;
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::{Dialogue, Pattern, PatternSpec, Priority, Turns, single_part};
use crate::pipe::PipeId;

struct Respond {
    socket_type: SocketType,
    inbound: FairQueue,
    /// A question that was found, but not taken yet, without its header.
    found: Option<(Message, Asked)>,
    /// The question that each context has to answer.
    asked: BTreeMap<u64, Asked>,
    /// The context of the current call.
    context: u64,
    max_ttl: usize,
}

/// The origin of a question.
struct Asked {
    /// The header, which leads the answer back.
    header: Frame,
    from: PipeId,
}

impl Respond {
    fn new(socket_type: SocketType) -> Respond {
        Respond {
            socket_type,
            inbound: FairQueue::default(),
            found: None,
            asked: BTreeMap::new(),
            context: 0,
            max_ttl: usize::from(MAX_TTL),
        }
    }

    /// Looks for a question, unless there is one.
    fn look(&mut self, pipes: &mut PipeSet) {
        while self.found.is_none() {
            let Some((mut message, from)) = self.inbound.recv(pipes) else {
                return;
            };
            match envelope::unwrap(&mut message, self.max_ttl) {
                Ok(header) => self.found = Some((message, Asked { header, from })),
                Err(reason) if pipes.drop_read(Some(from), &mut message, reason) => {}
                Err(_) => return,
            }
        }
    }

    #[cold]
    fn nothing_asked(&self) -> Error {
        let text = format!(
            "a {} socket must receive before it can send an answer",
            self.socket_type
        );
        Error::with(ErrorKind::Fsm, text)
    }
}

impl Pattern for Respond {
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
        single_part::check(message, self.socket_type)?;
        let Some(Asked { header, from }) = self.asked.remove(&self.context) else {
            return Err(self.nothing_asked());
        };
        // A peer that is gone or does not read must not delay the others.
        if pipes.check_write(from) {
            envelope::wrap(&header, message);
            pipes.write_checked(from, message);
        } else {
            let reason = match pipes.is_open(from) {
                true => DropReason::HighWater,
                false => DropReason::PeerGone,
            };
            pipes.count_drop(Some(from), reason);
        }
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        self.look(pipes);
        let Some((question, asked)) = self.found.take() else {
            return Err(Error::new(ErrorKind::Again));
        };
        *message = question;
        let from = asked.from;
        self.asked.insert(self.context, asked);
        Ok(Some(from))
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        self.asked.contains_key(&self.context)
    }

    fn check_send(&mut self, pipes: &mut PipeSet, _: &Frame) -> Result<()> {
        match self.can_send(pipes) {
            true => Ok(()),
            false => Err(self.nothing_asked()),
        }
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.look(pipes);
        self.found.is_some()
    }

    fn turns(&self) -> Turns {
        Turns::Strict
    }

    fn takes_back(&self) -> bool {
        self.asked.contains_key(&self.context)
    }

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            PatternOption::MaxTtl(most) => self.max_ttl = usize::from(*most),
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }

    fn enter(&mut self, context: u64) -> bool {
        self.context = context;
        true
    }

    fn end_context(&mut self, _: &mut PipeSet, context: u64) {
        self.asked.remove(&context);
    }
}

pub(in crate::patterns) static REP: PatternSpec = PatternSpec {
    dialogue: Dialogue::Answers,
    single_part: true,
    options: &[ids::MAX_TTL],
    ..PatternSpec::new(sp::REP, || Box::new(Respond::new(sp::REP)))
};

pub(in crate::patterns) static RESPONDENT: PatternSpec = PatternSpec {
    dialogue: Dialogue::Answers,
    single_part: true,
    options: &[ids::MAX_TTL],
    ..PatternSpec::new(sp::RESPONDENT, || Box::new(Respond::new(sp::RESPONDENT)))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    const HEADER: &str = "\0\0\0\x01\0\0\0\x02";

    /// A question that has passed `hops` sockets.
    fn question(hops: usize, body: &str) -> Vec<u8> {
        let mut bytes = HEADER.as_bytes()[..4].repeat(hops);
        bytes.extend_from_slice(b"\x80\0\0\x07");
        bytes.extend_from_slice(body.as_bytes());
        bytes
    }

    #[test]
    fn an_answer_takes_the_way_back_to_the_peer_that_asked() {
        let mut rig = Rig::new(&RESPONDENT);
        let (a, b) = (rig.accept(""), rig.accept(""));
        assert!(!rig.can_send());
        assert_eq!(rig.send(["x"]).unwrap_err().error.kind(), ErrorKind::Fsm);
        rig.far_send(a, [question(0, "a?")]);
        rig.far_send(b, [question(2, "b?")]);
        rig.settle();
        assert_eq!(rig.recv_from().unwrap(), (vec!["a?".into()], Some(a)));
        rig.send(["a!"]).unwrap();
        assert!(!rig.can_send());
        assert_eq!(rig.recv().unwrap(), ["b?"]);
        rig.send(["b!"]).unwrap();
        let got = rig.far_recv_message(a).unwrap();
        assert_eq!(&got.head()[..], question(0, "a!"));
        let got = rig.far_recv_message(b).unwrap();
        assert_eq!(&got.head()[..], question(2, "b!"));
    }

    #[test]
    fn a_question_may_stay_unanswered() {
        let mut rig = Rig::new(&REP);
        let id = rig.accept("");
        rig.far_send(id, [question(0, "1")]);
        rig.far_send(id, [question(0, "2")]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["1"]);
        assert_eq!(rig.recv().unwrap(), ["2"]);
        assert_eq!(rig.recv(), Err(ErrorKind::Again));
        rig.send(["answer to 2"]).unwrap();
        assert_eq!(rig.send(["more"]).unwrap_err().error.kind(), ErrorKind::Fsm);
    }

    #[test]
    fn questions_that_travel_in_circles_are_dropped() {
        let mut rig = Rig::new(&REP);
        let id = rig.accept("");
        for hops in [7, 8] {
            rig.far_send(id, [question(hops, "?")]);
        }
        rig.settle();
        assert_eq!(rig.recv_all(), ["?"]);
        assert_eq!(rig.dropped(DropReason::Hops), 1);
        rig.set(PatternOption::MaxTtl(1)).unwrap();
        rig.far_send(id, [question(1, "?")]);
        rig.far_send(id, [&b"\0\0\0\x01"[..]]);
        rig.settle();
        assert!(!rig.can_recv());
        assert_eq!(rig.dropped(DropReason::Hops), 2);
        assert_eq!(rig.dropped(DropReason::Malformed), 1);
    }

    #[test]
    fn answers_to_peers_that_are_gone_or_full_are_counted() {
        let mut rig = Rig::with_hwm(&REP, 1);
        let id = rig.accept("");
        for reason in [DropReason::HighWater, DropReason::PeerGone] {
            for _ in 0..2 {
                rig.far_send(id, [question(0, "?")]);
                rig.settle();
                rig.recv().unwrap();
                if reason == DropReason::PeerGone && rig.has_far(id) {
                    rig.far_close(id);
                    rig.settle();
                    rig.send(["!"]).unwrap();
                    break;
                }
                rig.send(["!"]).unwrap();
            }
            assert_eq!(rig.dropped(reason), 1, "{reason:?}");
        }
    }

    #[test]
    fn each_context_answers_its_own_question() {
        let mut rig = Rig::new(&REP);
        let (a, b) = (rig.accept(""), rig.accept(""));
        rig.far_send(a, [question(0, "a?")]);
        rig.far_send(b, [question(0, "b?")]);
        rig.settle();
        for context in [1, 2] {
            rig.pattern.enter(context);
            rig.recv().unwrap();
        }
        rig.pattern.enter(0);
        assert!(!rig.can_send());
        rig.pattern.enter(2);
        rig.send(["b!"]).unwrap();
        rig.pattern.enter(1);
        rig.send(["a!"]).unwrap();
        let got = rig.far_recv_message(a).unwrap();
        assert_eq!(&got.head()[..], question(0, "a!"));
        let got = rig.far_recv_message(b).unwrap();
        assert_eq!(&got.head()[..], question(0, "b!"));
    }
}
