//! Moves messages between two sockets, both ways, without looking at them.

use std::time::Instant;

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

use crate::error::{Error, ErrorKind, Result};
use crate::patterns::DropReason;
use crate::poller::{POLLIN, POLLOUT, PollItem, Target, poll};
use crate::socket::{SendError, Socket, Wait};

/// How many messages go one way before the other one has its turn.
const BURST: usize = 1000;

/// What went through one side of a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideStats {
    /// Messages received from this side.
    pub received: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// Messages sent to this side.
    pub sent: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
}

/// A proxy between a front end and a back end, with an optional capture socket that gets a copy of everything, and an
/// optional control socket that takes PAUSE, RESUME, TERMINATE and STATISTICS.
pub struct Proxy {
    front: Socket,
    back: Socket,
    capture: Option<Socket>,
    control: Option<Socket>,
    paused: bool,
    /// Received and not delivered yet, and whether it goes to the back end.
    pending: Option<(bool, Message)>,
    front_stats: SideStats,
    back_stats: SideStats,
}

impl Proxy {
    /// A proxy that has not begun yet.
    pub fn new(
        front: Socket,
        back: Socket,
        capture: Option<Socket>,
        control: Option<Socket>,
    ) -> Proxy {
        Proxy {
            front,
            back,
            capture,
            control,
            paused: false,
            pending: None,
            front_stats: SideStats::default(),
            back_stats: SideStats::default(),
        }
    }

    /// What went through, front end first.
    pub fn stats(&self) -> (SideStats, SideStats) {
        (self.front_stats, self.back_stats)
    }

    /// Runs until TERMINATE comes.
    ///
    /// # Errors
    /// `Interrupted` when a signal handler ran: call again, nothing is lost. `Terminated` and `NotSocket` when a socket
    /// can no longer be used.
    pub fn run(&mut self) -> Result<()> {
        self.run_until(None)
    }

    /// As [`run`](Self::run), but no longer than until `deadline` (`None` = for ever).
    ///
    /// # Errors
    /// As [`run`](Self::run), and `Again` when the deadline passed: call again.
    pub fn run_until(&mut self, deadline: Option<Instant>) -> Result<()> {
        let same = self.front.id() == self.back.id();
        loop {
            if deadline.is_some_and(|at| at <= Instant::now()) {
                return Err(Error::new(ErrorKind::Again));
            }
            self.deliver_pending(deadline)?;
            let ready = self.wait_in(deadline)?;
            if ready.control && self.obey()? {
                return Ok(());
            }
            if self.paused {
                continue;
            }
            if ready.front && (same || self.back.events()?.writable) {
                self.forward(true, deadline)?;
            }
            if ready.back && !same && self.front.events()?.writable {
                self.forward(false, deadline)?;
            }
        }
    }

    /// Waits until something came that can be passed on.
    fn wait_in(&self, deadline: Option<Instant>) -> Result<Ready> {
        // A side that cannot take messages is waited for, instead of the side that has some: no busy loop.
        let front = self.front.events()?;
        let back = self.back.events()?;
        let flow = |blocked: bool, other_ready: bool| -> (i16, i16) {
            match (self.paused, blocked, other_ready) {
                (true, ..) => (0, 0),
                (false, true, true) => (0, POLLOUT),
                (false, ..) => (POLLIN, 0),
            }
        };
        let (front_in, back_out) = flow(!back.writable, front.readable);
        let (back_in, front_out) = flow(!front.writable, back.readable);
        let mut items = Vec::with_capacity(3);
        items.push(item(&self.front, front_in | front_out));
        items.push(item(&self.back, back_in | back_out));
        if let Some(control) = &self.control {
            items.push(item(control, POLLIN));
        }
        poll(&mut items, deadline)?;
        Ok(Ready {
            front: items[0].revents & POLLIN != 0,
            back: items[1].revents & POLLIN != 0,
            control: items.get(2).is_some_and(|item| item.revents & POLLIN != 0),
        })
    }

    fn forward(&mut self, to_back: bool, deadline: Option<Instant>) -> Result<()> {
        for _ in 0..BURST {
            let (from, to) = if to_back {
                (&self.front, &self.back)
            } else {
                (&self.back, &self.front)
            };
            if !to.events()?.writable {
                return Ok(());
            }
            let message = match from.recv(Wait::Dont) {
                Ok(message) => message,
                Err(error) if error.kind() == ErrorKind::Again => return Ok(()),
                Err(error) => return Err(error),
            };
            if let Some(capture) = &self.capture {
                // A capture that is not read misses messages, by its own rules or by this one; it does not stop the rest.
                if let Err(failed) = capture.send(message.clone(), Wait::Dont)
                    && failed.error.kind() == ErrorKind::Again
                {
                    capture.count_drop(DropReason::HighWater);
                }
            }
            self.pending = Some((to_back, message));
            self.deliver_pending(deadline)?;
        }
        Ok(())
    }

    /// Delivers what has been received already. It is kept when that takes too long or a signal wants to be handled.
    fn deliver_pending(&mut self, deadline: Option<Instant>) -> Result<()> {
        let Some((to_back, message)) = self.pending.take() else {
            return Ok(());
        };
        let size = message.size() as u64;
        let to = if to_back { &self.back } else { &self.front };
        let wait = deadline.map_or(Wait::Forever, Wait::Until);
        if let Err(SendError { message, error }) = to.send(message, wait) {
            match error.kind() {
                ErrorKind::Again | ErrorKind::Interrupted => {
                    self.pending = Some((to_back, message));
                    return Err(error);
                }
                // A pattern that refuses this one message (an unknown routing id) has counted it.
                ErrorKind::HostUnreachable | ErrorKind::Fsm => {}
                _ => return Err(error),
            }
        }
        let (from, to) = if to_back {
            (&mut self.front_stats, &mut self.back_stats)
        } else {
            (&mut self.back_stats, &mut self.front_stats)
        };
        from.received += 1;
        from.received_bytes += size;
        to.sent += 1;
        to.sent_bytes += size;
        Ok(())
    }

    /// Carries out what came over the control socket; true for TERMINATE.
    fn obey(&mut self) -> Result<bool> {
        let Some(control) = self.control.clone() else {
            return Ok(false);
        };
        let command = match control.recv(Wait::Dont) {
            Ok(command) => command,
            Err(error) if error.kind() == ErrorKind::Again => return Ok(false),
            Err(error) => return Err(error),
        };
        let mut done = false;
        let mut reply = Message::new();
        match command.head().as_slice() {
            b"PAUSE" => self.paused = true,
            b"RESUME" => self.paused = false,
            b"TERMINATE" => done = true,
            b"STATISTICS" => reply = self.statistics(),
            // Unknown words change nothing; a REP socket still has to answer.
            _ => {}
        }
        let answers = control.socket_type() == zeroxide_proto::socket_type::SocketType::Rep;
        if answers || command.head().as_slice() == b"STATISTICS" {
            answer(&control, reply)?;
        }
        Ok(done)
    }

    fn statistics(&self) -> Message {
        let sides = [self.front_stats, self.back_stats];
        let numbers = sides.iter().flat_map(|side| {
            [
                side.received,
                side.received_bytes,
                side.sent,
                side.sent_bytes,
            ]
        });
        Message::from_frames(numbers.map(|number| Frame::copy_from(&number.to_ne_bytes())))
    }
}

struct Ready {
    front: bool,
    back: bool,
    control: bool,
}

fn item(socket: &Socket, events: i16) -> PollItem<'_> {
    PollItem {
        target: Target::Socket(socket),
        events,
        revents: 0,
    }
}

/// A control socket that does not read its answers must not stop the proxy.
fn answer(control: &Socket, reply: Message) -> Result<()> {
    match control.send(reply, Wait::Dont) {
        Err(failed)
            if !matches!(
                failed.error.kind(),
                ErrorKind::Again | ErrorKind::HostUnreachable | ErrorKind::Fsm
            ) =>
        {
            Err(failed.error)
        }
        _ => Ok(()),
    }
}
