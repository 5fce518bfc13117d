//! DISH: receives the messages of the groups that it has joined.

use std::collections::BTreeSet;

use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::message::{GROUP_MAX, Message};
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::patterns::drops::DropReason;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::ring::Ring;
use crate::patterns::sieve::Sieve;
use crate::patterns::{Pattern, PatternSpec, Priority};
use crate::pipe::PipeId;

#[derive(Default)]
struct Dish {
    groups: BTreeSet<Box<[u8]>>,
    connected: Ring,
    inbound: Sieve,
}

/// Checks the name of a group.
///
/// # Errors
/// `Invalid` if it is too long or has a zero byte.
pub(super) fn check_group(group: &[u8]) -> Result<()> {
    if group.len() <= GROUP_MAX && !group.contains(&0) {
        return Ok(());
    }
    Err(no_group(group))
}

#[cold]
fn no_group(group: &[u8]) -> Error {
    let problem = if group.len() > GROUP_MAX {
        format!("this one has {} bytes", group.len())
    } else {
        "this one has a zero byte".to_owned()
    };
    Error::with(
        ErrorKind::Invalid,
        format!(
            "the name of a group has at most {GROUP_MAX} bytes, none of which is zero; {problem}"
        ),
    )
}

/// Checks that a message consists of a joined group and a body. A radio may have sent it before it learned that the
/// group was left.
fn admit(
    groups: &BTreeSet<Box<[u8]>>,
    message: &mut Message,
) -> std::result::Result<(), DropReason> {
    if message.len() != 2 {
        return Err(DropReason::Malformed);
    }
    if !groups.contains(message.head().as_slice()) {
        return Err(DropReason::Filtered);
    }
    message.front_to_group();
    Ok(())
}

impl Dish {
    fn tell(&self, pipes: &mut PipeSet, kind: FrameKind, group: &[u8]) {
        self.connected
            .for_each(|id| pipes.write_exempt(id, call(kind, group)));
    }
}

fn call(kind: FrameKind, group: &[u8]) -> Message {
    Message::single(Frame::with_kind(kind, group))
}

impl Pattern for Dish {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        // A radio that has connected knows no groups yet and gets all of them, whatever the high-water mark.
        self.connected.insert(id);
        for group in &self.groups {
            pipes.write_exempt(id, call(FrameKind::Join, group));
        }
    }

    fn disconnected(&mut self, _: &mut PipeSet, id: PipeId) {
        self.connected.remove(id);
    }

    fn hung_up(&mut self, _: &mut PipeSet, id: PipeId) {
        self.connected.remove(id);
    }

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.connected.remove(id);
        self.inbound.far_closed(pipes, id);
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.connected.remove(id);
        self.inbound.remove(id);
    }

    fn send(&mut self, _: &mut PipeSet, _: &mut Message) -> Result<()> {
        Err(Error::new(ErrorKind::NotSupported))
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        let Dish {
            groups, inbound, ..
        } = self;
        match inbound.recv_to(pipes, message, |_, message| admit(groups, message)) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        false
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        let Dish {
            groups, inbound, ..
        } = self;
        inbound.can_recv(pipes, |_, message| admit(groups, message))
    }

    fn join(&mut self, pipes: &mut PipeSet, group: &[u8]) -> Result<()> {
        check_group(group)?;
        if !self.groups.insert(group.into()) {
            let text = format!("the group \"{}\" is joined already", group.escape_ascii());
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        self.tell(pipes, FrameKind::Join, group);
        Ok(())
    }

    fn leave(&mut self, pipes: &mut PipeSet, group: &[u8]) -> Result<()> {
        check_group(group)?;
        if !self.groups.remove(group) {
            let text = format!("the group \"{}\" is not joined", group.escape_ascii());
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        self.tell(pipes, FrameKind::Leave, group);
        Ok(())
    }
}

pub(super) static DISH: PatternSpec = PatternSpec {
    can_send: false,
    single_part: true,
    lingers: false,
    ..PatternSpec::new(SocketType::Dish, || Box::new(Dish::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    fn join(rig: &mut Rig, group: &str) -> std::result::Result<(), ErrorKind> {
        let joined = rig.pattern.join(&mut rig.pipes, group.as_bytes());
        rig.settle();
        joined.map_err(|error| error.kind())
    }

    fn leave(rig: &mut Rig, group: &str) -> std::result::Result<(), ErrorKind> {
        let left = rig.pattern.leave(&mut rig.pipes, group.as_bytes());
        rig.settle();
        left.map_err(|error| error.kind())
    }

    #[test]
    fn radios_get_the_groups_and_again_after_each_reconnect() {
        let mut rig = Rig::new(&DISH);
        join(&mut rig, "b").unwrap();
        let id = rig.connect();
        join(&mut rig, "a").unwrap();
        assert!(rig.far_recv_all(id).is_empty(), "not connected yet");
        rig.ready(id, "");
        assert_eq!(rig.far_recv_all(id), ["Join a", "Join b"]);
        leave(&mut rig, "b").unwrap();
        assert_eq!(rig.far_recv_all(id), ["Leave b"]);
        rig.disconnected(id);
        join(&mut rig, "c").unwrap();
        assert!(rig.far_recv_all(id).is_empty());
        rig.ready(id, "");
        assert_eq!(rig.far_recv_all(id), ["Join a", "Join c"]);
    }

    #[test]
    fn a_radio_that_has_hung_up_gets_nothing_more() {
        let mut rig = Rig::new(&DISH);
        let id = rig.accept("");
        rig.far_hang_up(id);
        join(&mut rig, "g").unwrap();
        assert!(rig.far_recv_all(id).is_empty());
    }

    #[test]
    fn a_group_is_joined_once_and_left_once() {
        let mut rig = Rig::new(&DISH);
        assert_eq!(leave(&mut rig, "g"), Err(ErrorKind::Invalid));
        assert_eq!(join(&mut rig, "g"), Ok(()));
        assert_eq!(join(&mut rig, "g"), Err(ErrorKind::Invalid));
        assert_eq!(leave(&mut rig, "g"), Ok(()));
        assert_eq!(leave(&mut rig, "g"), Err(ErrorKind::Invalid));
        let long = "x".repeat(256);
        for group in ["a\0", &long] {
            assert_eq!(join(&mut rig, group), Err(ErrorKind::Invalid));
        }
        assert_eq!(join(&mut rig, &long[1..]), Ok(()));
        assert_eq!(join(&mut rig, ""), Ok(()));
    }

    #[test]
    fn only_messages_of_joined_groups_are_received_and_have_their_group() {
        let mut rig = Rig::new(&DISH);
        let id = rig.accept("");
        join(&mut rig, "g").unwrap();
        for frames in [
            &["other", "1"][..],
            &["gg", "2"],
            &["g", "3"],
            &["g"],
            &["g", "4", "5"],
        ] {
            rig.far_send(id, frames);
        }
        rig.settle();
        assert!(rig.can_recv());
        let (message, from) = rig.recv_message().unwrap();
        assert_eq!(message, Message::from("3").with_group("g"));
        assert_eq!(from, Some(id));
        assert!(!rig.can_recv());
        assert_eq!(rig.recv().unwrap_err(), ErrorKind::Again);
        assert_eq!(rig.dropped(DropReason::Filtered), 2);
        assert_eq!(rig.dropped(DropReason::Malformed), 2);
        let error = rig.send(["x"]).unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::NotSupported);
    }

    #[test]
    fn a_group_that_was_left_is_not_received_any_more() {
        let mut rig = Rig::new(&DISH);
        let id = rig.accept("");
        join(&mut rig, "g").unwrap();
        rig.far_send(id, ["g", "sent before the radio knew"]);
        leave(&mut rig, "g").unwrap();
        assert!(!rig.can_recv());
        assert_eq!(rig.dropped(DropReason::Filtered), 1);
    }
}
