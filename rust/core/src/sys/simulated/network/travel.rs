//! How requests to connect and bytes travel.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use socket2::{Domain, Socket, Type};

use super::link::{Link, Stage};
use super::{Network, Random, Weather, pair};

/// How long a connection lives whose host takes no bytes. Sockets have to notice it before.
const GIVEN_UP: Duration = Duration::from_secs(300);
/// When a request to connect without an answer is sent again, and how often.
const RETRY: Duration = Duration::from_secs(1);
const RETRIES: u32 = 30;
/// Half of the pieces are longer than the weather says: by these powers of two, up to this length. Long messages would
/// take thousands of pieces otherwise.
const LONGER: [u32; 4] = [0, 0, 4, 8];
/// See [`LONGER`].
const LONGEST: usize = 1 << 13;

impl Network {
    /// Moves what is due on one connection.
    pub(super) fn advance(
        &mut self,
        link: &mut Link,
        random: &mut Random,
        now: Instant,
    ) -> Outcome {
        if link.flows[0].is_gone() && !matches!(link.stage, Stage::Up) {
            // The program has given up its attempt.
            return Outcome::over(Errno::CONNRESET);
        }
        let can_reach = self.can_reach(link.address);
        match link.stage {
            Stage::Asking { at, .. } | Stage::Answering { at, .. } if at > now => Outcome::due(at),
            Stage::Asking { tries, .. } => {
                let is_taken = can_reach.then(|| self.ask(link, now));
                if is_taken == Some(Asked::Full) || is_taken.is_none() {
                    if tries >= RETRIES {
                        return Outcome::over(Errno::TIMEDOUT);
                    }
                    let at = now + RETRY;
                    let tries = tries + 1;
                    link.stage = Stage::Asking { at, tries };
                    return Outcome::due(at);
                }
                let at = self.arrival(random, now);
                let refused = is_taken == Some(Asked::Refused);
                link.stage = Stage::Answering { at, refused };
                Outcome::due(at)
            }
            _ if !can_reach => self.wait(link, now),
            _ if let Some(side) = link.bereaved => {
                link.silent.get_or_insert(now);
                let probe = link.probe(side, 0);
                match link.flows[side].has_news() || probe.is_some_and(|at| at <= now) {
                    true => Outcome::over(Errno::CONNRESET),
                    false => Outcome {
                        due: probe,
                        ..self.wait(link, now)
                    },
                }
            }
            Stage::Answering { refused: true, .. } => Outcome::over(Errno::CONNREFUSED),
            Stage::Answering { .. } => {
                link.stage = Stage::Up;
                link.heard = now;
                self.moved = true;
                link.empty_attempt();
                Outcome::due(now)
            }
            Stage::Up => {
                link.silent = None;
                self.carry(link, random, now)
            }
        }
    }

    /// The request to connect has arrived.
    fn ask(&mut self, link: &mut Link, now: Instant) -> Asked {
        let Some(listening) = self.listeners.get_mut(&link.address[1]) else {
            return Asked::Refused;
        };
        let Ok(socket) = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)
        else {
            return Asked::Full;
        };
        let sized = socket.set_send_buffer_size(self.weather.room);
        match sized.and_then(|()| socket.connect(&listening.name)) {
            Ok(()) => {
                link.ends[1].socket = Some(socket.into());
                link.opened[1] = now;
                listening.queue.push_back(link.id);
                self.moved = true;
                Asked::Taken
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Asked::Full,
            Err(_) => Asked::Refused,
        }
    }

    /// Two hosts cannot reach each other. The kernel of each notices it in the end.
    fn wait(&mut self, link: &mut Link, now: Instant) -> Outcome {
        let until = *link.silent.get_or_insert(now) + GIVEN_UP;
        if until <= now {
            return Outcome::over(Errno::TIMEDOUT);
        }
        // The bytes of the programs leave later.
        let mut due = until;
        for side in 0..2 {
            match link.gives_up(side) {
                _ if link.bereaved == Some(1 - side) => {}
                Some(at) if at <= now && link.bereaved == Some(side) => {
                    return Outcome::over(Errno::TIMEDOUT);
                }
                Some(at) if at <= now => self.end_one(link, side, Errno::TIMEDOUT),
                Some(at) => due = due.min(at),
                None => {}
            }
        }
        Outcome::due(due)
    }

    fn carry(&mut self, link: &mut Link, random: &mut Random, now: Instant) -> Outcome {
        let mut outcome = Outcome::default();
        for side in 0..2 {
            let [near, far] = [&link.ends[side], &link.ends[1 - side]];
            let (Some(from), Some(to)) = (&near.socket, &far.socket) else {
                continue;
            };
            let flow = &mut link.flows[side];
            while flow.has_room(self.weather.window) {
                let longest = self.weather.longest(random);
                let piece = 1 + random.below(longest);
                let at = self.arrival(random, now);
                self.moved = true;
                if !flow.take(from.as_fd(), piece, [now, at], &mut self.room) {
                    break;
                }
            }
            if flow.has_arrived(now) && link.fuse.is_none() {
                link.fuse = self
                    .fuses
                    .remove(&pair(link.address[0].ip(), link.address[1].ip()));
            }
            if flow.deliver(to.as_fd(), now, &mut link.fuse) {
                self.moved = true;
                link.heard = now;
            }
            let more = flow.has_room(self.weather.window).then_some(now);
            outcome.due = [outcome.due, flow.due(), more].into_iter().flatten().min();
        }
        for side in 0..2 {
            if link.flows[side].is_refused {
                // The kernel of a program that has closed resets the connection, and discards what it still holds.
                link.flows[1 - side].note_broken();
            }
        }
        let is_over = |side: usize| link.flows[side].is_over();
        if link.flows[0].is_refused || link.flows[1].is_refused || link.fuse == Some(0) {
            outcome.over = Some(Errno::CONNRESET);
        } else if is_over(0) && is_over(1) {
            outcome.over = Some(Errno::PIPE);
        }
        outcome
    }
}

impl Weather {
    /// The length of the next piece at most.
    fn longest(&self, random: &mut Random) -> usize {
        let longer = self.piece << LONGER[random.below(LONGER.len())];
        longer.min(LONGEST.max(self.piece))
    }
}

#[derive(PartialEq, Eq)]
enum Asked {
    Taken,
    Refused,
    Full,
}

/// The result of looking at a connection.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) due: Option<Instant>,
    pub(super) over: Option<Errno>,
}

impl Outcome {
    fn due(at: Instant) -> Outcome {
        Outcome {
            due: Some(at),
            ..Outcome::default()
        }
    }

    fn over(error: Errno) -> Outcome {
        Outcome {
            over: Some(error),
            ..Outcome::default()
        }
    }
}
