//! SUB: receives everything that is published, and keeps the messages that match its subscriptions.

use zeroxide_proto::message::Message;
use zeroxide_proto::sp;
use zeroxide_proto::subscription::Subscriptions;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, ids};
use crate::patterns::drops::DropReason;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::sieve::Sieve;
use crate::patterns::{Pattern, PatternSpec, Priority};
use crate::pipe::PipeId;

#[derive(Default)]
struct Sub {
    filter: Filter,
    inbound: Sieve,
}

#[derive(Default)]
struct Filter {
    subscriptions: Subscriptions,
    /// Whether to receive messages that do not match.
    invert: bool,
}

impl Filter {
    fn admit(&self, message: &Message) -> std::result::Result<(), DropReason> {
        if message.len() != 1 {
            return Err(DropReason::Malformed);
        }
        match self.subscriptions.matches(message.head()) != self.invert {
            true => Ok(()),
            false => Err(DropReason::Filtered),
        }
    }
}

impl Pattern for Sub {
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
        let Sub { filter, inbound } = self;
        match inbound.recv_to(pipes, message, |_, message| filter.admit(message)) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        false
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        let Sub { filter, inbound } = self;
        inbound.can_recv(pipes, |_, message| filter.admit(message))
    }

    fn topics(&self) -> Option<usize> {
        Some(self.filter.subscriptions.len())
    }

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        let Filter {
            subscriptions,
            invert,
        } = &mut self.filter;
        match option {
            PatternOption::Subscribe(topic) => {
                subscriptions.add(topic);
            }
            PatternOption::Unsubscribe(topic) => {
                subscriptions.remove(topic);
            }
            PatternOption::InvertMatching(on) => *invert = *on,
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }
}

pub(in crate::patterns) static SUB: PatternSpec = PatternSpec {
    can_send: false,
    conflates: true,
    single_connect: true,
    lingers: false,
    single_part: true,
    options: &[
        ids::SUBSCRIBE,
        ids::UNSUBSCRIBE,
        ids::INVERT_MATCHING,
        ids::TOPICS_COUNT,
    ],
    ..PatternSpec::new(sp::SUB, || Box::new(Sub::default()))
};

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::patterns::rig::Rig;

    #[test]
    fn messages_are_filtered_here_and_no_subscription_is_sent() {
        let mut rig = Rig::new(&SUB);
        let id = rig.accept("");
        for topic in ["a", "a", "bc"] {
            let topic = Bytes::from_static(topic.as_bytes());
            rig.set(PatternOption::Subscribe(topic)).unwrap();
        }
        assert_eq!(rig.pattern.topics(), Some(2));
        assert_eq!(rig.far_recv_all(id), [""; 0]);
        for body in ["a1", "b", "bc", "c"] {
            rig.far_send(id, [body]);
        }
        rig.far_send(id, ["a", "b"]);
        rig.settle();
        assert_eq!(rig.recv_all(), ["a1", "bc"]);
        assert_eq!(rig.dropped(DropReason::Filtered), 2);
        assert_eq!(rig.dropped(DropReason::Malformed), 1);
        for expected in [&["a2"][..], &[]] {
            let topic = Bytes::from_static(b"a");
            rig.set(PatternOption::Unsubscribe(topic)).unwrap();
            rig.far_send(id, ["a2"]);
            rig.settle();
            assert_eq!(rig.recv_all(), expected);
        }
        rig.set(PatternOption::InvertMatching(true)).unwrap();
        rig.far_send(id, ["bc"]);
        rig.far_send(id, ["d"]);
        rig.settle();
        assert!(rig.can_recv());
        assert_eq!(rig.recv_all(), ["d"]);
    }
}
