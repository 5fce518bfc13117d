//! REQ: sends a request to one of its peers in turn, then waits for that peer's reply.
//!
//! Only the peer that was asked is read, and its earlier messages are discarded. A late or repeated reply can therefore
//! never be taken for the reply to a later request, except with REQ_RELAXED and without REQ_CORRELATE.
//!
//! A request that certainly never reached its peer, because the peer had already disconnected, is sent again: to the
//! next peer, or over the next connection. A request that may have arrived is not sent again, because its peer may have
//! acted on it.

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, ids};
use crate::patterns::drops::DropReason;
use crate::patterns::load_balancer::LoadBalancer;
use crate::patterns::pipe_set::{PipeSet, effort};
use crate::patterns::{Dialogue, Pattern, PatternSpec, Priority, Turns};
use crate::pipe::PipeId;
use crate::sys::chance;
use crate::undelivered::UndeliveredPeer;

/// The maximum size of a request that is kept in case it does not arrive. It is a copy, because memory lent by the
/// program must be released before the reply.
const KEEP_MAX: usize = 16 << 10;

struct Req {
    outbound: LoadBalancer,
    waiting: Option<Waiting>,
    next_number: u32,
    correlate: bool,
    relaxed: bool,
}

/// A request without a reply.
struct Waiting {
    /// The peer that was asked. Stays here when that peer has left permanently, and then no reply comes.
    from: PipeId,
    /// The number with which the reply must start (REQ_CORRELATE).
    number: Option<[u8; 4]>,
    /// The reply without its envelope, found but not taken yet.
    reply: Option<Message>,
    /// The request, unless it is too large to be kept.
    request: Option<Message>,
    /// The number of the request among the messages to `from`.
    place: u64,
    /// The request and its peer, if it did not arrive and there was no other peer to ask.
    back: Option<Box<UndeliveredPeer>>,
}

impl Waiting {
    /// Looks for the reply, unless it was found.
    fn look(&mut self, pipes: &mut PipeSet) -> bool {
        while self.reply.is_none() {
            let Some(message) = pipes.read(self.from) else {
                // Puts the reader to sleep, or finds messages published since.
                if pipes.check_read(self.from) {
                    continue;
                }
                return false;
            };
            let effort = effort(&message);
            if !self.take(pipes, message) && !pipes.spend(effort) {
                return false;
            }
        }
        true
    }

    /// Looks for the reply among everything that a peer sent before it left.
    fn look_to_the_end(&mut self, pipes: &mut PipeSet) -> bool {
        for _ in 0..pipes.queued_in(self.from) {
            if self.reply.is_none()
                && let Some(message) = pipes.read(self.from)
            {
                self.take(pipes, message);
            }
        }
        self.look(pipes)
    }

    /// Keeps a message if it is the reply, and drops it otherwise.
    fn take(&mut self, pipes: &mut PipeSet, mut message: Message) -> bool {
        match self.open(&mut message) {
            Ok(()) => self.reply = Some(message),
            Err(reason) => pipes.count_drop(Some(self.from), reason),
        }
        self.reply.is_some()
    }

    /// Removes the envelope, or returns what is wrong with it.
    fn open(&self, message: &mut Message) -> std::result::Result<(), DropReason> {
        if let Some(number) = self.number {
            let head = message.pop_front().ok_or(DropReason::Malformed)?;
            if head.len() != number.len() {
                return Err(DropReason::Malformed);
            }
            if head[..] != number {
                return Err(DropReason::Stale);
            }
        }
        match message.pop_front() {
            Some(delimiter) if delimiter.is_empty() => Ok(()),
            _ => Err(DropReason::Malformed),
        }
    }
}

impl Req {
    fn new() -> Req {
        Req {
            outbound: LoadBalancer::default(),
            waiting: None,
            // Replies to requests of an earlier run of this program must not match.
            next_number: chance::number() as u32,
            correlate: false,
            relaxed: false,
        }
    }

    fn may_send(&self) -> bool {
        self.waiting.is_none() || self.relaxed
    }

    /// Drops what a peer that has hung up has sent beside the reply.
    fn refuse_departed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        let is_asked = |waiting: &Waiting| waiting.from == id && waiting.reply.is_none();
        if !self.waiting.as_ref().is_some_and(is_asked) {
            pipes.discard_departed(id, DropReason::Stale);
        }
    }

    /// The connection to a peer has ended, or the peer has left.
    fn recover(&mut self, pipes: &mut PipeSet, id: PipeId) {
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        if waiting.from != id || waiting.reply.is_some() || waiting.back.is_some() {
            return;
        }
        let (Some((pipe, endpoint)), Some(request)) = (pipes.get_named(id), &waiting.request)
        else {
            return;
        };
        // A peer that has unbound may still receive the request.
        let unread = pipe.is_far_closed() && pipe.has_far_ended_reading() && pipe.queued_out() > 0;
        if pipe.never_arrived() == waiting.place || unread {
            // From now on, this request is counted here, and not in the pipe.
            pipe.count_resent();
            let (peer, bytes) = (pipe.peer(), request.size() as u64);
            let left = UndeliveredPeer::new(endpoint, peer.as_deref(), 1, bytes);
            waiting.back = Some(Box::new(left));
            self.ask_again(pipes);
        }
    }

    /// Sends a returned request again, if there is a peer to ask.
    fn ask_again(&mut self, pipes: &mut PipeSet) {
        let Some(waiting) = self
            .waiting
            .as_mut()
            .filter(|waiting| waiting.back.is_some())
        else {
            return;
        };
        let (Some(request), Some(to)) = (&waiting.request, self.outbound.next(pipes)) else {
            return;
        };
        pipes.discard(to, DropReason::Stale);
        if pipes.write_behind(to, envelope(waiting.number), &mut request.clone()) {
            self.outbound.took();
            waiting.from = to;
            waiting.place = written(pipes, to);
            waiting.back = None;
        }
    }
}

/// The frames before a request.
fn envelope(number: Option<[u8; 4]>) -> impl Iterator<Item = Frame> {
    let number = number.map(|number| Frame::copy_from(&number));
    number.into_iter().chain([Frame::new()])
}

#[cold]
fn reply_comes_first() -> Error {
    let text = "this REQ socket has sent a request and must receive the reply first; \
                set REQ_RELAXED to 1, or use a DEALER socket, to send again without it";
    Error::with(ErrorKind::Fsm, text)
}

#[cold]
fn request_comes_first() -> Error {
    let text = "a REQ socket must send a request before it can receive a reply";
    Error::with(ErrorKind::Fsm, text)
}

/// How many messages have been written for a peer.
fn written(pipes: &mut PipeSet, id: PipeId) -> u64 {
    pipes.get(id).map_or(0, |pipe| pipe.written().0)
}

/// A copy of a request that shares no memory with it.
fn kept(request: &Message) -> Option<Message> {
    let copies = || request.iter().map(|frame| Frame::copy_from(frame));
    (request.size() <= KEEP_MAX).then(|| Message::from_frames(copies()))
}

impl Pattern for Req {
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.insert(id);
        self.ask_again(pipes);
    }

    fn disconnected(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.recover(pipes, id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.outbound.set_priority(id, priority.send);
    }

    fn ready(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.hung_up(pipes, id);
        self.refuse_departed(pipes, id);
    }

    // Only the peer that was asked is read, when the application waits for it. The others are when they have hung up.
    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.refuse_departed(pipes, id);
    }

    fn writable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.writable(pipes, id);
        self.ask_again(pipes);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        let asked = self.waiting.as_mut().filter(|waiting| waiting.from == id);
        // A reply sent before it left counts. Its other messages do not.
        if asked.is_none_or(|waiting| waiting.look_to_the_end(pipes)) {
            pipes.discard(id, DropReason::Stale);
            pipes.check_read(id);
        } else {
            self.recover(pipes, id);
        }
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        if !self.may_send() {
            return Err(reply_comes_first());
        }
        let Some(to) = self.outbound.next(pipes) else {
            return Err(Error::new(ErrorKind::Again));
        };
        if let Some(abandoned) = self.waiting.take() {
            pipes.count_drop(Some(abandoned.from), DropReason::Stale);
            self.refuse_departed(pipes, abandoned.from);
        }
        pipes.discard(to, DropReason::Stale);
        let number = self.correlate.then(|| self.next_number.to_ne_bytes());
        let request = kept(message);
        if !pipes.write_behind(to, envelope(number), message) {
            return Err(Error::new(ErrorKind::Again));
        }
        self.outbound.took();
        self.next_number = self.next_number.wrapping_add(1);
        self.waiting = Some(Waiting {
            from: to,
            number,
            reply: None,
            request,
            place: written(pipes, to),
            back: None,
        });
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        let Some(waiting) = &mut self.waiting else {
            return Err(request_comes_first());
        };
        waiting.look(pipes);
        let from = waiting.from;
        match waiting.reply.take() {
            Some(reply) => {
                self.waiting = None;
                self.refuse_departed(pipes, from);
                *message = reply;
                Ok(Some(from))
            }
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        self.may_send() && self.outbound.can_send(pipes)
    }

    fn check_send(&mut self, pipes: &mut PipeSet, _: &Frame) -> Result<()> {
        if !self.may_send() {
            return Err(reply_comes_first());
        }
        if self.outbound.can_send(pipes) {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Again))
        }
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.waiting
            .as_mut()
            .is_some_and(|waiting| waiting.look(pipes))
    }

    fn abandon(&mut self) -> Option<UndeliveredPeer> {
        self.waiting.as_mut()?.back.take().map(|left| *left)
    }

    fn turns(&self) -> Turns {
        if self.relaxed {
            Turns::Relaxed
        } else {
            Turns::Strict
        }
    }

    fn takes_back(&self) -> bool {
        self.waiting.is_none()
    }

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            PatternOption::ReqCorrelate(on) => self.correlate = *on,
            PatternOption::ReqRelaxed(on) => self.relaxed = *on,
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }
}

pub(super) static REQ: PatternSpec = PatternSpec {
    single_connect: true,
    dialogue: Dialogue::Asks,
    options: &[ids::PROBE_ROUTER, ids::REQ_CORRELATE, ids::REQ_RELAXED],
    ..PatternSpec::new(SocketType::Req, || Box::new(Req::new()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::{Rig, message};

    #[test]
    fn request_and_reply_take_turns() {
        let mut rig = Rig::new(&REQ);
        assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
        assert!(!rig.can_send());
        assert_eq!(rig.send(["x"]).unwrap_err().error.kind(), ErrorKind::Again);
        let id = rig.accept("");
        rig.send(["question", "more"]).unwrap();
        assert_eq!(rig.far_recv(id).unwrap(), ["", "question", "more"]);
        assert!(!rig.can_send() && !rig.can_recv());
        let rejected = rig.send(["again"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Fsm);
        assert_eq!(rejected.message, message(["again"]));
        assert_eq!(rig.recv(), Err(ErrorKind::Again));
        rig.far_send(id, ["", "answer"]);
        rig.settle();
        assert!(rig.can_recv());
        assert_eq!(rig.recv_from().unwrap(), (vec!["answer".into()], Some(id)));
        assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
        assert!(rig.can_send());
    }

    #[test]
    fn peers_are_asked_in_turn_and_only_the_asked_one_is_read() {
        let mut rig = Rig::new(&REQ);
        let a = rig.accept("");
        let b = rig.accept("");
        rig.send(["qa"]).unwrap();
        rig.far_send(b, ["", "not asked"]);
        rig.settle();
        assert!(!rig.can_recv());
        rig.far_send(a, ["", "ra"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["ra"]);
        // A message that b sent before it was asked is not a reply.
        rig.send(["qb"]).unwrap();
        assert!(!rig.can_recv());
        assert_eq!(rig.dropped(DropReason::Stale), 1);
        rig.far_send(b, ["", "rb"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["rb"]);
        assert_eq!(rig.far_recv_all(a), ["/qa"]);
        assert_eq!(rig.far_recv_all(b), ["/qb"]);
    }

    #[test]
    fn a_repeated_reply_is_not_the_answer_to_the_next_question() {
        let mut rig = Rig::new(&REQ);
        let id = rig.accept("");
        rig.send(["q1"]).unwrap();
        rig.far_send(id, ["", "r1"]);
        rig.far_send(id, ["", "r1 again"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["r1"]);
        rig.send(["q2"]).unwrap();
        rig.far_send(id, ["", "r2"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["r2"]);
        assert_eq!(rig.dropped(DropReason::Stale), 1);
    }

    #[test]
    fn malformed_replies_are_skipped_and_counted() {
        let mut rig = Rig::new(&REQ);
        let id = rig.accept("");
        rig.send(["q"]).unwrap();
        for malformed in [&["no delimiter"][..], &["a", "b"], &[""], &["a", "", "b"]] {
            rig.far_send(id, malformed);
        }
        rig.settle();
        assert!(!rig.can_recv());
        assert_eq!(rig.dropped(DropReason::Malformed), 4);
        rig.far_send(id, ["", "", "fine"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["", "fine"]);
    }

    #[test]
    fn correlate_numbers_requests_and_takes_only_the_matching_reply() {
        let mut rig = Rig::new(&REQ);
        rig.set(PatternOption::ReqCorrelate(true)).unwrap();
        let id = rig.accept("");
        let mut numbers = Vec::new();
        for _ in 0..2 {
            rig.send(["q"]).unwrap();
            let request = rig.far_recv_message(id).unwrap();
            assert_eq!(request.len(), 3);
            assert_eq!(&request.get(1).unwrap()[..], b"");
            let number: [u8; 4] = request.head()[..].try_into().unwrap();
            numbers.push(u32::from_ne_bytes(number));
            let other = (number[0] ^ 1, number[1]);
            let wrong = [other.0, other.1, number[2], number[3]];
            rig.far_send(id, [&wrong[..], b"", b"stale"]);
            rig.far_send(id, [&b""[..], b"unnumbered"]);
            rig.far_send(id, [&number[..], b"no delimiter"]);
            rig.far_send(id, [&number[..], b"", b"r"]);
            rig.settle();
            assert_eq!(rig.recv().unwrap(), ["r"]);
        }
        assert_eq!(numbers[1], numbers[0].wrapping_add(1));
        assert_eq!(rig.dropped(DropReason::Stale), 2);
        assert_eq!(rig.dropped(DropReason::Malformed), 4);
    }

    #[test]
    fn relaxed_abandons_the_request_and_asks_the_next_peer() {
        let mut rig = Rig::new(&REQ);
        rig.set(PatternOption::ReqRelaxed(true)).unwrap();
        rig.set(PatternOption::ReqCorrelate(true)).unwrap();
        let a = rig.accept("");
        let b = rig.accept("");
        rig.send(["q1"]).unwrap();
        assert!(rig.can_send());
        rig.send(["q2"]).unwrap();
        assert_eq!(rig.dropped(DropReason::Stale), 1);
        let q1 = rig.far_recv_message(a).unwrap();
        let q2 = rig.far_recv_message(b).unwrap();
        rig.far_send(a, [&q1.head()[..], b"", b"too late"]);
        rig.settle();
        assert!(!rig.can_recv());
        rig.send(["q3"]).unwrap();
        let q3 = rig.far_recv_message(a).unwrap();
        // Late again, from the very peer that is asked now.
        rig.far_send(a, [&q1.head()[..], b"", b"much too late"]);
        rig.far_send(b, [&q2.head()[..], b"", b"too late"]);
        rig.far_send(a, [&q3.head()[..], b"", b"r3"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["r3"]);
        assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
    }

    #[test]
    fn a_failed_send_changes_nothing() {
        let mut rig = Rig::with_hwm(&REQ, 1);
        rig.set(PatternOption::ReqRelaxed(true)).unwrap();
        let id = rig.accept("");
        rig.send(["q1"]).unwrap();
        let rejected = rig.send(["q2"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Again);
        assert_eq!(rejected.message, message(["q2"]));
        assert_eq!(rig.far_recv(id).unwrap(), ["", "q1"]);
        rig.far_send(id, ["", "r1"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["r1"]);
        assert_eq!(rig.dropped_in_all(), 0);
    }

    #[test]
    fn a_strict_request_whose_peer_is_gone_waits_and_reads_no_other_peer() {
        let mut rig = Rig::new(&REQ);
        let asked = rig.accept("");
        rig.send(["q"]).unwrap();
        rig.far_recv(asked).unwrap();
        rig.far_close(asked);
        rig.settle();
        assert!(rig.is_gone(asked));
        let other = rig.accept("");
        rig.far_send(other, ["", "not yours"]);
        rig.settle();
        assert_eq!(rig.recv(), Err(ErrorKind::Again));
        assert!(!rig.can_send());
        rig.set(PatternOption::ReqRelaxed(true)).unwrap();
        rig.send(["q again"]).unwrap();
        assert_eq!(rig.dropped(DropReason::Stale), 2);
        rig.far_send(other, ["", "r"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["r"]);
    }

    #[test]
    fn a_reply_that_came_before_its_peer_left_is_received() {
        let mut rig = Rig::new(&REQ);
        let id = rig.accept("");
        rig.send(["q"]).unwrap();
        rig.far_send(id, ["", "r"]);
        rig.far_close(id);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["r"]);
        rig.settle();
        // Peers that leave while sending are not kept by an idle socket either.
        let talker = rig.accept("");
        rig.far_send(talker, ["", "what?"]);
        rig.far_close(talker);
        rig.settle();
        assert!(rig.is_empty());
    }

    #[test]
    fn a_peer_that_leaves_after_its_reply_was_taken_is_forgotten() {
        let mut rig = Rig::new(&REQ);
        let id = rig.accept("");
        rig.send(["q"]).unwrap();
        rig.far_send(id, ["", "r"]);
        rig.far_send(id, ["", "and another thing"]);
        rig.far_close(id);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["r"]);
        rig.settle();
        assert!(rig.is_gone(id));
    }

    #[test]
    fn a_request_waits_for_a_connection_that_comes_back() {
        let mut rig = Rig::new(&REQ);
        let id = rig.connect();
        rig.send(["q"]).unwrap();
        rig.ready(id, "");
        rig.disconnected(id);
        rig.ready(id, "");
        assert_eq!(rig.far_recv(id).unwrap(), ["", "q"]);
        rig.far_send(id, ["", "r"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["r"]);
    }

    #[test]
    fn a_request_that_never_arrived_is_asked_again_and_not_counted_as_lost() {
        let mut rig = Rig::new(&REQ);
        rig.set(PatternOption::ReqCorrelate(true)).unwrap();
        let id = rig.connect();
        rig.ready(id, "");
        rig.send(["q", "more"]).unwrap();
        let request = rig.far_recv_message(id).unwrap();
        // It may have arrived.
        rig.far_loses(id, 1, 0);
        rig.disconnected(id);
        assert_eq!(rig.far_recv(id), None);
        rig.far_loses(id, 1, 1);
        rig.disconnected(id);
        assert_eq!(rig.far_recv_message(id).unwrap(), request);
        // Once for each time that it was lost.
        rig.disconnected(id);
        assert_eq!(rig.far_recv(id), None);
        rig.far_send(id, [&request.head()[..], b"", b"r"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["r"]);
    }

    #[test]
    fn a_request_that_was_not_lost_is_not_asked_again_for_an_earlier_one() {
        let mut rig = Rig::new(&REQ);
        rig.set(PatternOption::ReqRelaxed(true)).unwrap();
        rig.set(PatternOption::ReqCorrelate(true)).unwrap();
        let id = rig.connect();
        rig.ready(id, "");
        rig.send(["first"]).unwrap();
        assert!(rig.far_recv(id).is_some());
        // This one is still in the queue when the first one is lost with the connection.
        rig.send(["second"]).unwrap();
        rig.far_loses(id, 1, 1);
        rig.disconnected(id);
        rig.ready(id, "");
        assert!(
            rig.far_recv(id)
                .is_some_and(|request| request[2] == "second")
        );
        assert_eq!(rig.far_recv(id), None);
    }

    #[test]
    fn a_request_that_never_arrived_goes_to_a_present_peer() {
        let mut rig = Rig::new(&REQ);
        let first = rig.accept("");
        rig.send(["q"]).unwrap();
        assert_eq!(rig.far_recv(first).unwrap(), ["", "q"]);
        rig.far_loses(first, 1, 1);
        rig.far_close(first);
        rig.settle();
        assert!(rig.is_gone(first));
        assert!(!rig.can_send());
        // No peer was there. The next one does not even receive it.
        let second = rig.accept("");
        rig.far_close(second);
        rig.settle();
        let third = rig.accept("");
        assert_eq!(rig.far_recv(third).unwrap(), ["", "q"]);
        rig.far_send(third, ["", "r"]);
        rig.settle();
        assert_eq!(rig.recv_from().unwrap(), (vec!["r".into()], Some(third)));
        assert_eq!(rig.dropped_in_all(), 0);
    }

    #[test]
    fn a_peer_that_has_hung_up_is_asked_nothing_more() {
        let mut rig = Rig::with_hwm(&REQ, 1);
        let first = rig.accept("");
        rig.far_hang_up(first);
        rig.pattern.writable(&mut rig.pipes, first);
        assert!(!rig.can_send(), "no peer is left");
        let second = rig.accept("");
        rig.send(["q"]).unwrap();
        assert_eq!(rig.far_recv(second).unwrap(), ["", "q"]);
    }
}
