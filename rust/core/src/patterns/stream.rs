//! STREAM: raw connections without ZMTP, each with an id; data is transferred in chunks.

use bytes::Bytes;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, ids};
use crate::patterns::drops::{DoomReason, DropReason};
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::notices::Notices;
use crate::patterns::pipe_set::{PipeSet, Side};
use crate::patterns::router_table::{Given, RouterTable};
use crate::patterns::{Pattern, PatternSpec, Priority};
use crate::pipe::PipeId;

struct Stream {
    table: RouterTable,
    inbound: FairQueue,
    notices: Notices,
    notify: bool,
    newest: Option<Bytes>,
}

impl Stream {
    fn new() -> Stream {
        Stream {
            table: RouterTable::new(),
            inbound: FairQueue::default(),
            notices: Notices::default(),
            notify: true,
            newest: None,
        }
    }

    /// The application closes a connection.
    fn close(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.notices.forget(id);
        self.inbound.remove(id);
        self.table.unroute(id);
        pipes.doom(id, DoomReason::Requested);
    }
}

fn nobody(name: &Frame) -> Error {
    let text = format!("no connection is called \"{}\"", name.escape_ascii());
    Error::with(ErrorKind::HostUnreachable, text)
}

impl Pattern for Stream {
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        let ours = pipes.side(id) == Some(Side::Connecting);
        match pipes.get(id).and_then(|pipe| pipe.peer_name()) {
            Some(name) => {
                if let Some(before) = self.table.route(&name) {
                    self.table.unroute(before);
                }
                self.table.insert(id, name, Given::Chosen);
            }
            None => self.table.insert_automatic(id),
        }
        if ours {
            self.newest = self.table.name(id).map(|name| name.to_bytes());
        }
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
        if self.notify {
            self.notices.connected(id);
        }
    }

    fn disconnected(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.notices.disconnected(pipes, &self.table, id);
    }

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.table.unroute(id);
        self.inbound.far_closed(pipes, id);
    }

    fn detach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.notices.detach(pipes, &self.table, id);
        self.inbound.remove(id);
        self.table.remove(id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        if message.len() > 2 {
            let text = "a STREAM message is a connection's id and the bytes for it, no more";
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        let Some(id) = self.table.route(message.head()) else {
            return Err(nobody(message.head()));
        };
        let Some(bytes) = message.get(1) else {
            pipes.count_drop(Some(id), DropReason::Malformed);
            return Ok(());
        };
        if bytes.is_empty() {
            self.close(pipes, id);
            return Ok(());
        }
        if !pipes.check_write(id) {
            let gone = pipes.get(id).is_none_or(|pipe| pipe.is_far_closed());
            return Err(if gone {
                nobody(message.head())
            } else {
                Error::new(ErrorKind::Again)
            });
        }
        message.pop_front();
        pipes.write_checked(id, message);
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        let next = self.notices.recv(pipes, &self.table, &mut self.inbound);
        match next {
            Some((next, id)) => {
                *message = next;
                Ok(Some(id))
            }
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        true
    }

    fn check_send(&mut self, pipes: &mut PipeSet, head: &Frame) -> Result<()> {
        match self.table.route(head) {
            Some(id) if pipes.check_write(id) => Ok(()),
            Some(id) if pipes.get(id).is_some_and(|pipe| !pipe.is_far_closed()) => {
                Err(Error::new(ErrorKind::Again))
            }
            _ => Err(nobody(head)),
        }
    }

    fn take_peer_name(&mut self) -> Option<Bytes> {
        self.table.take_reserved()
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.notices.can_recv(pipes, &self.table, &mut self.inbound)
    }

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            PatternOption::StreamNotify(on) => self.notify = *on,
            PatternOption::ConnectRoutingId(id) => self.table.reserve(id)?,
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }

    fn newest_routing_id(&self) -> Option<Bytes> {
        self.newest.clone()
    }
}

pub(super) static STREAM: PatternSpec = PatternSpec {
    may_be_raw: true,
    options: &[ids::CONNECT_ROUTING_ID, ids::STREAM_NOTIFY],
    ..PatternSpec::new(SocketType::Stream, || Box::new(Stream::new()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::notices::NOTICES_MAX;
    use crate::patterns::rig::{Rig, message};

    /// Receives one message: the connection's id, and the rest.
    fn recv(rig: &mut Rig) -> Option<(Bytes, String)> {
        let result = rig.recv_message();
        rig.settle();
        let (message, _) = result.ok()?;
        assert_eq!(message.len(), 2);
        let name = message.head().to_bytes();
        let body = message.get(1)?.escape_ascii().to_string();
        Some((name, body))
    }

    fn bodies(rig: &mut Rig) -> Vec<String> {
        std::iter::from_fn(|| recv(rig))
            .map(|(_, body)| body)
            .collect()
    }

    fn send(rig: &mut Rig, name: &[u8], body: &str) -> std::result::Result<(), ErrorKind> {
        let result = rig.send_message(message([name, body.as_bytes()]));
        result.map_err(|rejected| rejected.error.kind())
    }

    #[test]
    fn a_connection_its_data_and_its_end_are_reported() {
        let mut rig = Rig::new(&STREAM);
        let id = rig.accept("");
        rig.far_send(id, ["GET / HTTP/1.0"]);
        rig.settle();
        let (name, body) = recv(&mut rig).unwrap();
        assert_eq!((name.len(), name[0], &body[..]), (5, 0, ""));
        assert_eq!(
            recv(&mut rig).unwrap(),
            (name.clone(), "GET / HTTP/1.0".into())
        );
        send(&mut rig, &name, "HTTP/1.0 200 OK").unwrap();
        assert_eq!(rig.far_recv_all(id), ["HTTP/1.0 200 OK"]);
        rig.far_send(id, ["bye"]);
        rig.far_close(id);
        rig.settle();
        assert_eq!(recv(&mut rig).unwrap(), (name.clone(), "bye".into()));
        assert_eq!(recv(&mut rig).unwrap(), (name.clone(), "".into()));
        assert!(!rig.can_recv());
        assert!(rig.is_empty());
        assert_eq!(send(&mut rig, &name, "x"), Err(ErrorKind::HostUnreachable));
    }

    #[test]
    fn the_end_follows_the_last_bytes_in_the_very_next_receive() {
        for look_first in [false, true] {
            let mut rig = Rig::new(&STREAM);
            let id = rig.accept("");
            rig.far_send(id, ["x"]);
            rig.far_close(id);
            rig.settle();
            for expected in ["", "x", ""] {
                assert!(!look_first || rig.can_recv());
                assert_eq!(rig.recv().unwrap()[1], expected);
            }
            assert!(!rig.can_recv());
            assert!(rig.is_empty());
        }
    }

    #[test]
    fn an_empty_message_closes_the_connection_after_earlier_data() {
        let mut rig = Rig::new(&STREAM);
        let id = rig.accept("");
        let (name, _) = recv(&mut rig).unwrap();
        send(&mut rig, &name, "last words").unwrap();
        send(&mut rig, &name, "").unwrap();
        assert_eq!(rig.doomed(id), Some(DoomReason::Requested));
        assert!(rig.is_far_end_closed(id));
        assert_eq!(rig.far_recv_all(id), ["last words"]);
        // The side that closes a connection needs no notice of it.
        assert!(!rig.can_recv());
        assert_eq!(send(&mut rig, &name, "x"), Err(ErrorKind::HostUnreachable));
    }

    #[test]
    fn no_notices_if_they_are_turned_off() {
        let mut rig = Rig::new(&STREAM);
        rig.set(PatternOption::StreamNotify(false)).unwrap();
        let id = rig.accept("");
        assert!(!rig.can_recv());
        rig.far_send(id, ["x"]);
        rig.far_close(id);
        rig.settle();
        assert_eq!(bodies(&mut rig), ["x"]);
        assert!(rig.is_empty());
    }

    #[test]
    fn each_connection_is_reported_before_its_data_and_all_are_read_fairly() {
        let mut rig = Rig::new(&STREAM);
        let a = rig.accept("");
        let b = rig.accept("");
        for _ in 0..3 {
            rig.far_send(a, ["a"]);
        }
        rig.far_send(b, ["b"]);
        rig.settle();
        assert_eq!(bodies(&mut rig), ["", "", "a", "b", "a", "a"]);
    }

    #[test]
    fn a_connection_of_our_own_can_be_written_to_and_named_at_once() {
        let mut rig = Rig::new(&STREAM);
        let id = rig.connect();
        let name = rig.pattern.newest_routing_id().unwrap();
        send(&mut rig, &name, "early").unwrap();
        rig.ready(id, "");
        assert_eq!(rig.far_recv_all(id), ["early"]);
        assert_eq!(recv(&mut rig).unwrap(), (name.clone(), "".into()));

        let chosen = Bytes::from_static(b"mine");
        rig.set(PatternOption::ConnectRoutingId(chosen.clone()))
            .unwrap();
        rig.accept("");
        assert_eq!(rig.pattern.newest_routing_id(), Some(name));
        let second = rig.connect();
        assert_eq!(rig.pattern.newest_routing_id(), Some(chosen));
        send(&mut rig, b"mine", "hi").unwrap();
        assert_eq!(rig.far_recv_all(second), ["hi"]);
    }

    #[test]
    fn a_lost_connection_is_distinguished_from_its_successor() {
        let mut rig = Rig::new(&STREAM);
        let id = rig.connect();
        rig.ready(id, "");
        assert_eq!(bodies(&mut rig), [""]);
        rig.far_send(id, ["1"]);
        rig.far_send(id, ["2"]);
        rig.disconnected(id);
        rig.ready(id, "");
        rig.far_send(id, ["3"]);
        rig.settle();
        assert_eq!(bodies(&mut rig), ["1", "2", "", "", "3"]);
    }

    #[test]
    fn connections_that_were_lost_unseen_are_distinguished() {
        let mut rig = Rig::new(&STREAM);
        let id = rig.connect();
        for text in ["1", "2", "3"] {
            rig.ready(id, "");
            rig.far_send(id, [text]);
            rig.disconnected(id);
        }
        rig.ready(id, "");
        rig.settle();
        assert_eq!(
            bodies(&mut rig),
            ["", "1", "", "", "2", "", "", "3", "", ""]
        );
    }

    #[test]
    fn a_peer_that_reconnects_unseen_accumulates_little() {
        let mut rig = Rig::with_hwm(&STREAM, 10);
        let id = rig.connect();
        let mut sent = 0;
        for _ in 0..1000 {
            rig.ready(id, "");
            while rig.far_try_send(id, Message::from("x")) {
                sent += 1;
            }
            rig.disconnected(id);
        }
        rig.ready(id, "");
        assert!((10..=120).contains(&sent), "{sent}");
        let all = bodies(&mut rig);
        assert_eq!(all.iter().filter(|body| *body == "x").count(), sent);

        let mut rig = Rig::new(&STREAM);
        for _ in 0..100_000 {
            let id = rig.accept("");
            rig.far_close(id);
            rig.settle();
        }
        assert!(rig.is_empty());
        assert_eq!(bodies(&mut rig).len(), NOTICES_MAX);
        let missing = 2 * 100_000 - NOTICES_MAX as u64;
        assert_eq!(rig.dropped(DropReason::HighWater), missing);
    }

    #[test]
    fn a_message_that_does_not_fit_is_returned() {
        let mut rig = Rig::with_hwm(&STREAM, 1);
        rig.accept("");
        let (name, _) = recv(&mut rig).unwrap();
        assert!(rig.can_send());
        send(&mut rig, &name, "1").unwrap();
        assert_eq!(send(&mut rig, &name, "2"), Err(ErrorKind::Again));
        assert_eq!(
            send(&mut rig, b"nobody", "2"),
            Err(ErrorKind::HostUnreachable)
        );
        let rejected = rig
            .send_message(message([&name[..], b"2", b"3"]))
            .unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Invalid);
        assert_eq!(rejected.message, message([&name[..], b"2", b"3"]));
        rig.send_message(message([&name])).unwrap();
        assert_eq!(rig.dropped(DropReason::Malformed), 1);
        assert_eq!(
            rig.set(PatternOption::RouterMandatory(true)),
            Err(ErrorKind::Invalid)
        );
    }
}
