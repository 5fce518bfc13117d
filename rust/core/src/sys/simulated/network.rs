//! A network between the hosts of a schedule: latency, partitions, resets and hosts that fail, in an order that the seed
//! decides.
//!
//! A connection is two pairs of sockets of the kernel, one at each end, and this network carries the bytes between them. The
//! descriptors are real, so selectors and waits work as they do with TCP. The time is simulated, so nothing here waits.
//!
//! ```text
//!  program ── socket pair ──► flow: bytes in transit, each with its time of arrival ──► socket pair ── program
//! ```
//!
//! A connecting socket is full of bytes that the network has not read, and therefore not writable, until it is connected.
//! A listening socket has a hidden name, at which the network connects when a request to connect arrives.
mod calls;
mod faults;
mod flow;
mod link;
mod travel;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use socket2::SockAddr;

pub(crate) use self::calls::{
    accepted, acks, connect, error, keep_alive, listen, note_read, note_written, peer,
    stop_listening, unsent,
};
pub use self::faults::{
    break_after, heal, partition, power_off, power_on, reset, reset_one_end, set_weather, streams,
};
pub use self::flow::Stream;
use self::link::{Link, Stage};
use super::{Random, WORLD, stir};

/// The first port that the network chooses.
const FIRST_PORT: u16 = 50_000;

/// How the network behaves.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// The shortest time in transit, and how much longer it may take.
    pub latency: Duration,
    /// See `latency`.
    pub jitter: Duration,
    /// Bytes travel in pieces of up to this many; some are longer.
    pub piece: usize,
    /// How many bytes a direction of a connection carries at once.
    pub window: usize,
    /// Roughly how many bytes the host of a new connection holds for a program that does not read.
    pub room: usize,
}

pub(super) struct Network {
    weather: Weather,
    links: Vec<Link>,
    next: u64,
    port: u16,
    listeners: BTreeMap<SocketAddr, Listening>,
    /// Pairs of hosts, the lower first, between which nothing travels.
    cut: BTreeSet<(IpAddr, IpAddr)>,
    /// After how many bytes the next connection between two hosts breaks.
    fuses: BTreeMap<(IpAddr, IpAddr), usize>,
    /// Hosts without power.
    off: BTreeSet<IpAddr>,
    /// The descriptors of the programs.
    ends: BTreeMap<RawFd, (u64, usize)>,
    /// Connections that are over, for a program that has not closed its end.
    over: BTreeMap<RawFd, Over>,
    /// Connections that are over, with what they carried.
    past: Vec<Link>,
    /// Room for one piece.
    room: Vec<u8>,
    /// A socket has changed since the kernel was asked.
    moved: bool,
}

struct Listening {
    /// The hidden name of the socket.
    name: SockAddr,
    /// Connections that the program has not accepted.
    queue: VecDeque<u64>,
}

struct Over {
    error: Errno,
    unsent: usize,
    address: SocketAddr,
}

impl Network {
    pub(super) fn new() -> Network {
        Network {
            weather: Weather {
                latency: Duration::from_micros(100),
                jitter: Duration::from_micros(100),
                piece: 1 << 16,
                window: 1 << 16,
                room: 1 << 16,
            },
            links: Vec::new(),
            next: 0,
            port: FIRST_PORT,
            listeners: BTreeMap::new(),
            cut: BTreeSet::new(),
            fuses: BTreeMap::new(),
            off: BTreeSet::new(),
            ends: BTreeMap::new(),
            over: BTreeMap::new(),
            past: Vec::new(),
            room: Vec::new(),
            moved: false,
        }
    }

    fn new_port(&mut self) -> u16 {
        self.port += 1;
        self.port
    }

    /// A new descriptor of a program, which may have the number of one that is closed.
    fn own(&mut self, program: BorrowedFd<'_>, id: u64, side: usize) {
        self.over.remove(&program.as_raw_fd());
        self.ends.insert(program.as_raw_fd(), (id, side));
    }

    fn end(&self, program: RawFd) -> Option<(&Link, usize)> {
        let (id, side) = *self.ends.get(&program)?;
        let link = self.links.iter().find(|link| link.id == id)?;
        Some((link, side))
    }

    /// A connection of which a program has a descriptor, whether it is over or not.
    fn known(&mut self, id: u64) -> Option<&mut Link> {
        let mut all = self.links.iter_mut().chain(&mut self.past);
        all.find(|link| link.id == id)
    }

    fn arrival(&self, random: &mut Random, now: Instant) -> Instant {
        let jitter = random.below(self.weather.jitter.as_nanos() as usize + 1);
        now + self.weather.latency + Duration::from_nanos(jitter as u64)
    }

    fn can_reach(&self, [a, b]: [SocketAddr; 2]) -> bool {
        let (a, b) = (a.ip(), b.ip());
        !self.cut.contains(&pair(a, b)) && !self.off.contains(&a) && !self.off.contains(&b)
    }

    /// Moves everything that is due. Returns when there is more to do, and whether sockets have changed.
    pub(super) fn pump(&mut self, random: &mut Random, now: Instant) -> (Option<Instant>, bool) {
        let mut due: Option<Instant> = None;
        let mut links = std::mem::take(&mut self.links);
        self.moved = false;
        let mut at = 0;
        while let Some(link) = links.get_mut(at) {
            let outcome = self.advance(link, random, now);
            due = [due, outcome.due].into_iter().flatten().min();
            match outcome.over {
                Some(error) => self.bury(links.remove(at), error),
                None => at += 1,
            }
        }
        self.links = links;
        (due, self.moved)
    }

    /// What to ask the kernel about all sockets.
    pub(super) fn polled(&self) -> Vec<PollFd<'_>> {
        let mut polled = Vec::new();
        for link in &self.links {
            for (side, end) in link.ends.iter().enumerate() {
                if let Some(socket) = &end.socket {
                    let mut flags = PollFlags::IN | PollFlags::RDHUP;
                    flags.set(PollFlags::OUT, link.flows[1 - side].is_blocked);
                    polled.push(PollFd::from_borrowed_fd(socket.as_fd(), flags));
                }
            }
        }
        polled
    }

    /// The kernel's answers, in the same order.
    pub(super) fn note(&mut self, answers: &[PollFlags], now: Instant) {
        let mut answers = answers.iter().copied();
        for link in &mut self.links {
            for side in 0..2 {
                if link.ends[side].socket.is_some() {
                    let flags = answers.next().unwrap_or(PollFlags::empty());
                    link.flows[side].note(flags, now);
                    if flags.contains(PollFlags::OUT) {
                        link.flows[1 - side].is_blocked = false;
                    }
                }
            }
        }
    }

    fn break_links(&mut self, mut which: impl FnMut(&Link) -> bool, error: Errno) {
        let links = std::mem::take(&mut self.links);
        for link in links {
            match which(&link) && !matches!(link.stage, Stage::Asking { .. }) {
                true => self.bury(link, error),
                false => self.links.push(link),
            }
        }
    }

    /// Breaks the connections between two hosts for the first one.
    fn break_ends(&mut self, host: IpAddr, peer: IpAddr, error: Errno) {
        let mut links = std::mem::take(&mut self.links);
        for link in &mut links {
            if link.is_between(host, peer) {
                let side = usize::from(link.address[0].ip() != host);
                self.end_one(link, side, error);
            }
        }
        self.links = links;
    }

    /// A connection breaks for one end. The other one finds out when its kernel sends something.
    fn end_one(&mut self, link: &mut Link, side: usize, error: Errno) {
        if !matches!(link.stage, Stage::Up) || link.bereaved.is_some() {
            return;
        }
        self.bury_end(link, side, error);
        link.flows[side].lose_transit();
        link.ends[side].close();
        link.bereaved = Some(1 - side);
    }

    /// A connection is over.
    fn bury(&mut self, mut link: Link, error: Errno) {
        for side in 0..2 {
            self.bury_end(&mut link, side, error);
        }
        for end in &mut link.ends {
            end.close();
        }
        self.past.push(link);
    }

    /// A connection is over for one program, which finds out when it reads, after what has arrived.
    fn bury_end(&mut self, link: &mut Link, side: usize, error: Errno) {
        self.moved = true;
        let unsent = link.unsent(side);
        if let Some(program) = link.ends[side].program
            && self.ends.get(&program) == Some(&(link.id, side))
        {
            let address = link.address[1 - side];
            // Otherwise everything has arrived, and a program learns this only if it asks.
            if error != Errno::PIPE {
                link.flows[side].note_broken();
            }
            let over = Over {
                error,
                unsent,
                address,
            };
            self.over.insert(program, over);
        }
        if let Some(socket) = &link.ends[side].socket
            && matches!(link.stage, Stage::Up)
        {
            link.flows[side].take_all(socket.as_fd());
        }
    }
}

struct Now<'a> {
    random: &'a mut Random,
    now: Instant,
}

fn with<T>(work: impl FnOnce(&mut Network, &mut Now<'_>) -> T) -> T {
    stir();
    WORLD.with_borrow_mut(|world| {
        let mut now = Now {
            random: &mut world.random,
            now: world.now,
        };
        work(&mut world.network, &mut now)
    })
}

fn pair(a: IpAddr, b: IpAddr) -> (IpAddr, IpAddr) {
    (a.min(b), a.max(b))
}
