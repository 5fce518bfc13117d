//! Transfers messages between two sockets, in both directions, without interpreting them.

use std::collections::VecDeque;
use std::iter;
use std::time::{Duration, Instant};

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

use crate::error::{Error, ErrorKind, Result};
use crate::poller::{PollItem, poll};
use crate::socket::{Events, SendError, Socket, SocketInternals, Stuck, Wait};
use crate::sys::clock;

/// The maximum number of messages in one direction before the other one has its turn. Both sockets are locked
/// meanwhile.
const BURST: usize = 256;

/// The maximum time that a message may delay the commands of a control socket.
const STUCK_SLICE: Duration = Duration::from_millis(20);

/// The counters of one side of a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideStats {
    /// Messages received from this side.
    pub received: u64,
    /// Bytes of these messages.
    pub received_bytes: u64,
    /// Messages sent to this side.
    pub sent: u64,
    /// Bytes of these messages.
    pub sent_bytes: u64,
}

/// The receiver of a copy of every message.
struct Capture {
    socket: Socket,
    /// Frames to put in front of copies of messages to the back end and to the front end.
    marks: Option<[Frame; 2]>,
    /// Copies to send.
    copies: VecDeque<Message>,
}

/// A proxy between a front end and a back end, with an optional capture socket that gets a copy of every message, and
/// an optional control socket that accepts PAUSE, RESUME, TERMINATE and STATISTICS.
///
/// A capture socket that waits for its peers delays the proxy; a PUB socket never does.
pub struct Proxy {
    front: Socket,
    back: Socket,
    capture: Option<Capture>,
    control: Option<Socket>,
    /// Between two ROUTER sockets: whether the routing ids of sender and receiver are swapped.
    swaps: bool,
    paused: bool,
    /// A message that was received and not delivered yet, and its direction.
    stuck: Option<(Way, Stuck)>,
    front_stats: SideStats,
    back_stats: SideStats,
}

/// The direction of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToBack,
    ToFront,
}

impl Proxy {
    /// A proxy that has not started yet.
    pub fn new(
        front: Socket,
        back: Socket,
        capture: Option<Socket>,
        control: Option<Socket>,
    ) -> Proxy {
        Proxy {
            front,
            back,
            capture: capture.map(|socket| Capture {
                socket,
                marks: None,
                copies: VecDeque::new(),
            }),
            control,
            swaps: false,
            paused: false,
            stuck: None,
            front_stats: SideStats::default(),
            back_stats: SideStats::default(),
        }
    }

    /// A proxy whose monitor gets a copy of every message with a frame in front that identifies its origin: `in_mark`
    /// for messages from `front`, `out_mark` for messages from `back`. Between two ROUTER sockets, the first two frames
    /// are swapped: peers of either side send the routing id of a peer of the other, and receive the sender's instead.
    pub fn monitored(
        front: Socket,
        back: Socket,
        monitor: Socket,
        in_mark: Frame,
        out_mark: Frame,
    ) -> Proxy {
        let routes = |socket: &Socket| socket.spec().addresses_names;
        let swaps = routes(&front) && routes(&back);
        let mut proxy = Proxy::new(front, back, Some(monitor), None);
        proxy.swaps = swaps;
        if let Some(capture) = &mut proxy.capture {
            capture.marks = Some([in_mark, out_mark]);
        }
        proxy
    }

    /// The counters, front end first.
    pub fn stats(&self) -> (SideStats, SideStats) {
        (self.front_stats, self.back_stats)
    }

    /// Runs until TERMINATE is received.
    ///
    /// # Errors
    /// `Interrupted` if a signal handler ran: call again, nothing is lost. `Terminated` and `NotSocket` if a socket can
    /// no longer be used.
    pub fn run(&mut self) -> Result<()> {
        self.run_until(None)
    }

    /// Like [`run`](Self::run), with a deadline (`None` = no limit).
    ///
    /// # Errors
    /// As for [`run`](Self::run), and `Again` if the deadline passed: call again.
    pub fn run_until(&mut self, deadline: Option<Instant>) -> Result<()> {
        loop {
            if deadline.is_some_and(|at| at <= clock::now()) {
                return Err(Error::new(ErrorKind::Again));
            }
            if self.obey()? {
                return Ok(());
            }
            let free = self.deliver_copies()? && self.deliver_stuck(deadline)?;
            if free && !self.paused {
                let mut moved = self.forward(Way::ToBack)?;
                if !self.is_echo() {
                    moved |= self.forward(Way::ToFront)?;
                }
                if moved {
                    continue;
                }
            }
            self.wait(deadline)?;
        }
    }

    /// Whether both ends are the same socket.
    fn is_echo(&self) -> bool {
        self.front.id() == self.back.id()
    }

    /// Transfers several messages in one direction. Returns whether there were any.
    fn forward(&mut self, way: Way) -> Result<bool> {
        // The message that remains from one direction goes first, so that there is never more than one.
        if self.stuck.is_some() {
            return Ok(false);
        }
        let (from, to) = match way {
            Way::ToBack => (&self.front, &self.back),
            Way::ToFront => (&self.back, &self.front),
        };
        let (swaps, capture) = (self.swaps, &mut self.capture);
        let relayed = from.relay(to, BURST, &mut |message| {
            if swaps {
                swap_first_two(message);
            }
            if let Some(capture) = capture {
                capture.copy(way, message);
            }
        })?;
        self.count(way, relayed.messages, relayed.bytes);
        let moved = relayed.messages > 0 || relayed.stuck.is_some();
        self.stuck = relayed.stuck.map(|stuck| (way, stuck));
        if let Some(error) = relayed.failed {
            return Err(error);
        }
        if moved {
            self.deliver_copies()?;
        }
        Ok(moved)
    }

    fn count(&mut self, way: Way, messages: u64, bytes: u64) {
        let (from, to) = match way {
            Way::ToBack => (&mut self.front_stats, &mut self.back_stats),
            Way::ToFront => (&mut self.back_stats, &mut self.front_stats),
        };
        from.received += messages;
        from.received_bytes += bytes;
        to.sent += messages;
        to.sent_bytes += bytes;
    }

    /// Sends copies to the capture socket. Returns whether all were sent.
    fn deliver_copies(&mut self) -> Result<bool> {
        let Some(Capture { socket, copies, .. }) = &mut self.capture else {
            return Ok(true);
        };
        while !copies.is_empty() {
            let (_, failed) = socket.send_batch(iter::from_fn(|| copies.pop_front()), Wait::Dont);
            match failed {
                None => {}
                Some(SendError { message, error }) => match error.kind() {
                    ErrorKind::Again => {
                        copies.push_front(message);
                        return Ok(false);
                    }
                    // A capture socket without a peer to reply to, or with an unknown name, must not stop the proxy.
                    _ => socket.drop_unwanted(error)?,
                },
            }
        }
        Ok(true)
    }

    /// Delivers the message that had to wait. Returns whether it was sent. Some patterns make a message wait although
    /// the socket is writable, and do not report when the message can be sent. So this waits in the call, but only briefly, so
    /// that commands are not delayed.
    fn deliver_stuck(&mut self, deadline: Option<Instant>) -> Result<bool> {
        let Some((way, Stuck { message, peer })) = self.stuck.take() else {
            return Ok(true);
        };
        let to = match way {
            Way::ToBack => &self.back,
            Way::ToFront => &self.front,
        };
        let slice = clock::now() + STUCK_SLICE;
        let until = deadline.map_or(slice, |at| at.min(slice));
        let size = message.size() as u64;
        match to.send(message, Wait::Until(until)) {
            Ok(()) => self.count(way, 1, size),
            Err(SendError { message, error }) => {
                if error.kind() == ErrorKind::Again {
                    self.stuck = Some((way, Stuck { message, peer }));
                    return Ok(false);
                }
                if let Err(error) = to.drop_unwanted(error) {
                    // The next run, or the destructor, delivers it.
                    self.stuck = Some((way, Stuck { message, peer }));
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Waits until there is something to do.
    fn wait(&self, deadline: Option<Instant>) -> Result<()> {
        if self.stuck.is_some() {
            return Ok(());
        }
        let mut items = Vec::with_capacity(4);
        let full = self.capture.as_ref().filter(|it| !it.copies.is_empty());
        if let Some(capture) = full {
            items.push(PollItem::socket(&capture.socket, Events::WRITABLE));
        } else if self.is_echo() && !self.paused {
            items.push(PollItem::socket(&self.front, Events::READABLE));
        } else if !self.paused {
            // If a side cannot take messages, wait for that side instead of the side that has some, to avoid a busy
            // loop.
            let front = self.front.events()?;
            let back = self.back.events()?;
            let flow = |source: Events, target: Events| {
                if source.is_readable() && !target.is_writable() {
                    (Events::NONE, Events::WRITABLE)
                } else {
                    (Events::READABLE, Events::NONE)
                }
            };
            let (front_in, back_out) = flow(front, back);
            let (back_in, front_out) = flow(back, front);
            items.push(PollItem::socket(&self.front, front_in | front_out));
            items.push(PollItem::socket(&self.back, back_in | back_out));
        }
        if let Some(control) = &self.control {
            items.push(PollItem::socket(control, Events::READABLE));
        }
        poll(&mut items, deadline)?;
        Ok(())
    }

    /// Executes the commands of the control socket; returns true for TERMINATE.
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
            // Unknown commands change nothing.
            _ => {}
        }
        // As in libzmq 4.3.5, each command has a reply, which programs wait for.
        if control.spec().can_send {
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

impl Drop for Proxy {
    /// If the proxy is dropped between two messages, the waiting one is returned to its socket.
    fn drop(&mut self) {
        let Some((way, Stuck { mut message, peer })) = self.stuck.take() else {
            return;
        };
        if self.swaps {
            swap_first_two(&mut message);
        }
        let from = match way {
            Way::ToBack => &self.front,
            Way::ToFront => &self.back,
        };
        from.give_back(0, vec![(message, peer)]);
    }
}

impl Capture {
    fn copy(&mut self, way: Way, message: &Message) {
        let copy = match &self.marks {
            None => message.clone(),
            Some([in_mark, out_mark]) => {
                let mark = match way {
                    Way::ToBack => in_mark,
                    Way::ToFront => out_mark,
                };
                let mut copy = message.clone();
                copy.push_front(mark.clone());
                copy
            }
        };
        self.copies.push_back(copy);
    }
}

/// Swaps the frames of a message that has at least two.
fn swap_first_two(message: &mut Message) {
    if let Some(first) = message.pop_front() {
        let second = message.pop_front();
        match second {
            Some(second) => {
                message.push_front(first);
                message.push_front(second);
            }
            // The second frame is the last, and stays there.
            None => message.push(first),
        }
    }
}

/// A control socket that does not read its answers must not block the proxy.
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
