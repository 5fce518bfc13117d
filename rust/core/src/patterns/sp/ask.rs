//! REQ: sends a request to one of its peers in turn, then waits for the reply.
//!
//! Peers that are connected come first. A request that waits for an absent peer goes to the next one that connects.
//! Otherwise a request is sent again, to the next peer, if its peer leaves or if no reply comes within RESEND_IVL. So a
//! peer may get a request that another peer has acted on already. Requests have numbers, and a reply without the number
//! of a request that waits for it is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::sp;

use super::envelope::{self, LOOK_MAX, Numbers};
use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, RESEND_IVL, ids};
use crate::patterns::drops::DropReason;
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::load_balancer::LoadBalancer;
use crate::patterns::pipe_set::{PipeSet, effort};
use crate::patterns::{Dialogue, Pattern, PatternSpec, Priority, Turns, single_part};
use crate::pipe::PipeId;
use crate::sys::chance;
use crate::sys::clock;

/// A request up to this size is copied, so that memory lent by the program is released before the reply. A larger one
/// is shared.
const COPY_MAX: usize = 16 << 10;

struct Req {
    /// The peers that are connected.
    outbound: LoadBalancer,
    /// The others, which keep a request until they are connected.
    absent: LoadBalancer,
    inbound: FairQueue,
    numbers: Numbers,
    /// The requests that wait for a reply, or whose reply was not taken yet, by their numbers.
    asked: BTreeMap<u32, Asked>,
    /// The number of each context's request.
    current: BTreeMap<u64, u32>,
    /// When to send a request again.
    deadlines: BTreeSet<(Instant, u32)>,
    /// When a look at the messages that have arrived had to stop before the last of them.
    behind: Option<Instant>,
    /// The context of the current call.
    context: u64,
    resend_ivl: Option<Duration>,
}

struct Asked {
    request: Message,
    /// The peer that was asked; `None` if the request must be sent again, and no connected peer has room.
    to: Option<PipeId>,
    /// How many messages had been written to that peer, with this one.
    place: u64,
    due: Option<Instant>,
    /// The reply without its header, found but not taken yet.
    reply: Option<(Message, PipeId)>,
}

/// The copy of a request that is kept until its reply comes.
fn kept(request: &Message) -> Message {
    let body = request.head();
    Message::single(match body.len() {
        ..=COPY_MAX => Frame::copy_from(body),
        _ => Frame::from_bytes(body.to_bytes()),
    })
}

impl Req {
    fn new() -> Req {
        Req {
            outbound: LoadBalancer::default(),
            absent: LoadBalancer::default(),
            inbound: FairQueue::default(),
            // Replies to requests of an earlier run of this program must not match.
            numbers: Numbers::new(chance::number()),
            asked: BTreeMap::new(),
            current: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            behind: None,
            context: 0,
            resend_ivl: Some(RESEND_IVL),
        }
    }

    /// Looks for the reply to the current context's request. Returns whether there is one. The replies to other
    /// requests are kept for their contexts.
    fn look(&mut self, pipes: &mut PipeSet) -> bool {
        let Some(number) = self.current.get(&self.context).copied() else {
            return false;
        };
        let is_there = |all: &BTreeMap<u32, Asked>| {
            let asked = all.get(&number);
            asked.is_some_and(|asked| asked.reply.is_some())
        };
        while !is_there(&self.asked) {
            let Some((message, from)) = self.inbound.recv(pipes) else {
                return false;
            };
            let effort = effort(&message);
            self.open(pipes, message, from);
            if !is_there(&self.asked) && !pipes.spend(effort) {
                return false;
            }
        }
        true
    }

    /// Reads one message. Returns false if there is none.
    fn take_in(&mut self, pipes: &mut PipeSet) -> bool {
        let Some((message, from)) = self.inbound.recv(pipes) else {
            return false;
        };
        self.open(pipes, message, from);
        true
    }

    /// Keeps a message if it is the reply to a request that waits for one, and otherwise drops it.
    fn open(&mut self, pipes: &mut PipeSet, mut reply: Message, from: PipeId) {
        let number = match envelope::unwrap_number(&mut reply) {
            Ok(number) => number,
            Err(reason) => return pipes.count_drop(Some(from), reason),
        };
        match self.asked.get_mut(&number) {
            Some(asked) if asked.reply.is_none() => {
                asked.reply = Some((reply, from));
                if let Some(due) = asked.due.take() {
                    self.deadlines.remove(&(due, number));
                }
            }
            _ => pipes.count_drop(Some(from), DropReason::Stale),
        }
    }

    /// Reads everything that a peer sent before it left, because the reply may be there. Of the others, only some messages
    /// are read: a peer that sends all the time would keep the call from ending.
    fn take_in_last(&mut self, pipes: &mut PipeSet, id: PipeId) {
        for _ in 0..pipes.queued_in(id) {
            let Some(message) = pipes.read(id) else {
                break;
            };
            self.open(pipes, message, id);
        }
        self.take_in_early(pipes);
    }

    /// Reads what has arrived, before the application asks for it. Replies that no request waits for would otherwise take
    /// room and memory until its next request.
    fn take_in_early(&mut self, pipes: &mut PipeSet) {
        let has_more = (0..LOOK_MAX).all(|_| self.take_in(pipes));
        self.behind = has_more.then(clock::now);
    }

    /// Forgets the request of a context. It counts as dropped if its reply was not taken.
    fn cancel(&mut self, pipes: &mut PipeSet, context: u64) {
        let Some(number) = self.current.remove(&context) else {
            return;
        };
        if let Some(asked) = self.asked.remove(&number) {
            if let Some(due) = asked.due {
                self.deadlines.remove(&(due, number));
            }
            pipes.count_drop(asked.to, DropReason::Stale);
        }
    }

    /// A peer leaves, or its connection has ended. Requests that still wait in its queue stay there, unless it is `gone`.
    fn recover(&mut self, pipes: &mut PipeSet, id: PipeId, gone: bool) {
        for asked in self.asked.values_mut() {
            if asked.to == Some(id) && (gone || !asked.is_queued(pipes)) {
                asked.to = None;
            }
        }
        self.ask_again(pipes);
    }

    /// Sends requests to connected peers that have to be sent again, or that wait for an absent peer.
    fn ask_again(&mut self, pipes: &mut PipeSet) {
        for (number, asked) in &mut self.asked {
            if asked.reply.is_some() || asked.to.is_some_and(|to| is_connected(pipes, to)) {
                continue;
            }
            let Some(to) = self.outbound.next(pipes) else {
                return;
            };
            let mut request = asked.request.clone();
            envelope::wrap(&number.to_be_bytes(), &mut request);
            pipes.write_checked(to, &mut request);
            self.outbound.took();
            asked.to = Some(to);
            asked.place = written(pipes, to);
        }
    }

    /// The peers to which this one belongs.
    fn peers(&mut self, pipes: &mut PipeSet, id: PipeId) -> &mut LoadBalancer {
        match is_connected(pipes, id) {
            true => &mut self.outbound,
            false => &mut self.absent,
        }
    }
}

impl Asked {
    /// Whether the request still waits in the queue of its peer.
    fn is_queued(&self, pipes: &mut PipeSet) -> bool {
        let pipe = self.to.and_then(|to| pipes.get(to));
        pipe.is_some_and(|pipe| self.place + pipe.queued_out() > pipe.written().0)
    }
}

fn is_connected(pipes: &mut PipeSet, id: PipeId) -> bool {
    pipes.get(id).is_some_and(|pipe| pipe.is_connected())
}

/// How many messages were written to a peer.
fn written(pipes: &mut PipeSet, id: PipeId) -> u64 {
    pipes.get(id).map_or(0, |pipe| pipe.written().0)
}

#[cold]
fn request_comes_first() -> Error {
    let text = "a REQ socket must send a request before it can receive a reply";
    Error::with(ErrorKind::Fsm, text)
}

impl Pattern for Req {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.absent.insert(id);
        self.inbound.insert(id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.outbound.set_priority(id, priority.send);
        self.absent.set_priority(id, priority.send);
    }

    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.absent.remove(id);
        self.outbound.insert(id);
        self.ask_again(pipes);
    }

    fn disconnected(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.absent.insert(id);
        self.take_in_last(pipes, id);
        self.recover(pipes, id, false);
    }

    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
        self.take_in_early(pipes);
    }

    fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.hung_up(pipes, id);
    }

    fn writable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if !pipes.is_gone(id) {
            self.peers(pipes, id).insert(id);
        }
        self.ask_again(pipes);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.absent.remove(id);
        self.take_in_last(pipes, id);
        self.inbound.far_closed(pipes, id);
        self.recover(pipes, id, true);
    }

    fn detach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.absent.remove(id);
        self.inbound.remove(id);
        self.recover(pipes, id, true);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        single_part::check(message, sp::REQ)?;
        let (peers, to) = match self.outbound.next(pipes) {
            Some(to) => (&mut self.outbound, to),
            None => match self.absent.next(pipes) {
                Some(to) => (&mut self.absent, to),
                None => return Err(Error::new(ErrorKind::Again)),
            },
        };
        peers.took();
        self.cancel(pipes, self.context);
        let number = self.numbers.next();
        let request = kept(message);
        envelope::wrap(&number.to_be_bytes(), message);
        pipes.write_checked(to, message);
        let due = self
            .resend_ivl
            .and_then(|ivl| clock::now().checked_add(ivl));
        self.deadlines.extend(due.map(|due| (due, number)));
        self.current.insert(self.context, number);
        let asked = Asked {
            request,
            to: Some(to),
            place: written(pipes, to),
            due,
            reply: None,
        };
        self.asked.insert(number, asked);
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        let Some(number) = self.current.get(&self.context).copied() else {
            return Err(request_comes_first());
        };
        self.look(pipes);
        let asked = self.asked.get_mut(&number);
        let Some((reply, from)) = asked.and_then(|asked| asked.reply.take()) else {
            return Err(Error::new(ErrorKind::Again));
        };
        self.current.remove(&self.context);
        self.asked.remove(&number);
        *message = reply;
        Ok(Some(from))
    }

    fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        self.outbound.can_send(pipes) || self.absent.can_send(pipes)
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.look(pipes)
    }

    fn turns(&self) -> Turns {
        Turns::Relaxed
    }

    fn takes_back(&self) -> bool {
        !self.current.contains_key(&self.context)
    }

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            PatternOption::ResendIvl(ivl) => self.resend_ivl = *ivl,
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.behind
            .or_else(|| self.deadlines.first().map(|(due, _)| *due))
    }

    fn handle_timeout(&mut self, pipes: &mut PipeSet, now: Instant) {
        self.take_in_early(pipes);
        while let Some((due, number)) = self.deadlines.first().copied()
            && due <= now
        {
            self.deadlines.pop_first();
            let Some(asked) = self.asked.get_mut(&number) else {
                continue;
            };
            asked.due = self.resend_ivl.and_then(|ivl| now.checked_add(ivl));
            self.deadlines.extend(asked.due.map(|due| (due, number)));
            // An absent peer still gets what waits in its queue.
            if asked.to.is_some_and(|to| is_connected(pipes, to)) || !asked.is_queued(pipes) {
                asked.to = None;
            }
        }
        self.ask_again(pipes);
    }

    fn enter(&mut self, context: u64) -> bool {
        self.context = context;
        true
    }

    fn end_context(&mut self, pipes: &mut PipeSet, context: u64) {
        self.cancel(pipes, context);
    }
}

pub(in crate::patterns) static REQ: PatternSpec = PatternSpec {
    single_connect: true,
    single_part: true,
    dialogue: Dialogue::Asks,
    timed: true,
    prompt: true,
    options: &[ids::RESEND_IVL],
    ..PatternSpec::new(sp::REQ, || Box::new(Req::new()))
};

#[cfg(test)]
mod tests;
