//! A peer that leaves while messages are returned from disk.

use zeroxide_proto::message::Message;

use super::*;
use crate::error::Result;
use crate::pipe::Pipe;

/// A PUSH whose only peer leaves as soon as it is found to have room.
struct Deserted {
    push: Box<dyn Pattern>,
    far: Option<Pipe>,
}

impl Pattern for Deserted {
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.push.attach(pipes, id);
    }

    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.push.ready(pipes, id);
    }

    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.push.readable(pipes, id);
    }

    fn writable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.push.writable(pipes, id);
    }

    fn detach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.push.detach(pipes, id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        self.push.send(pipes, message)
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        self.push.recv(pipes, message)
    }

    fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        let can_send = self.push.can_send(pipes);
        self.far.take_if(|_| can_send);
        can_send
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.push.can_recv(pipes)
    }
}

#[test]
fn a_message_stays_on_disk_if_the_only_puller_leaves_meanwhile() {
    for keep in [false, true] {
        let mut socket = Socket::new(&push::PUSH, 0, keep);
        for n in 0..3 {
            socket.rig.send([format!("{n}")]).unwrap();
        }
        let before = (socket.on_disk(), socket.bytes_on_disk());
        let peer = socket.accept("");
        let far = socket.rig.far.remove(&peer);
        let push = std::mem::replace(&mut socket.rig.pattern, (push::PUSH.new)());
        socket.rig.pattern = Box::new(Deserted { push, far });
        assert_eq!(socket.drain().next, Next::Event);
        assert_eq!((socket.on_disk(), socket.bytes_on_disk()), before);
        assert_eq!(socket.rig.dropped_in_all(), 0);
        if keep {
            socket.restart(false);
            assert_eq!((socket.on_disk(), socket.bytes_on_disk()), before);
        }
        let peer = socket.accept("");
        socket.drain();
        assert_eq!(socket.rig.far_recv_all(peer), ["0", "1", "2"]);
        socket.drain();
        assert_eq!((socket.on_disk(), socket.bytes_on_disk()), (0, 0));
    }
}

#[test]
fn a_peer_that_has_hung_up_gets_nothing_from_disk() {
    for keep in [false, true] {
        let mut socket = Socket::new(&dealer::DEALER, 0, keep);
        let first = socket.accept("");
        socket.rig.far_send(first, ["unread"]);
        socket.rig.far_hang_up(first);
        for n in 0..3 {
            socket.rig.send([format!("{n}")]).unwrap();
        }
        let second = socket.accept("");
        socket.drain();
        assert_eq!(socket.rig.far_recv_all(second), ["0", "1", "2"]);
        assert!(socket.rig.far_recv_all(first).is_empty());
    }
}
