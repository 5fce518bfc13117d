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

mod flow;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

pub use self::flow::Stream;
use self::flow::{Flow, fill};
use super::{Random, WORLD, stir};

/// The first port that the network chooses.
const FIRST_PORT: u16 = 50_000;
/// How long a connection lives whose host does not answer. Sockets have to notice it before.
const KEEPALIVE: Duration = Duration::from_secs(300);
/// When a request to connect without an answer is sent again, and how often.
const RETRY: Duration = Duration::from_secs(1);
const RETRIES: u32 = 30;
/// The buffers of a socket: one of these.
const BUFFERS: [usize; 3] = [2304, 8192, 40_000];
/// Half of the pieces are longer than the weather says: by these powers of two, up to this length. Long messages would
/// take thousands of pieces otherwise.
const LONGER: [u32; 4] = [0, 0, 4, 8];
/// See [`LONGER`].
const LONGEST: usize = 1 << 13;

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
    /// Of connections that are over.
    streams: Vec<Stream>,
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

struct Link {
    id: u64,
    address: [SocketAddr; 2],
    ends: [End; 2],
    /// From each end to the other.
    flows: [Flow; 2],
    stage: Stage,
    /// After how many bytes it breaks.
    fuse: Option<usize>,
    /// The side whose peer has lost its power.
    bereaved: Option<usize>,
    /// Since when one host could not reach the other.
    silent: Option<Instant>,
    heard: Instant,
}

enum Stage {
    /// The request to connect arrives then.
    Asking {
        at: Instant,
        tries: u32,
    },
    /// The answer arrives then.
    Answering {
        at: Instant,
        refused: bool,
    },
    Up,
}

/// The network's side of one end.
#[derive(Default)]
struct End {
    socket: Option<OwnedFd>,
    /// The program's descriptor, once it is known.
    program: Option<RawFd>,
    /// How many bytes the program has read.
    read: u64,
}

struct Over {
    error: Errno,
    unsent: usize,
    address: SocketAddr,
}

// ---- for tests -----------------------------------------------------------------------------------------------------

/// Changes the behaviour of the network from now on.
pub fn set_weather(weather: Weather) {
    with(|network, _| network.weather = weather);
}

/// Breaks every connection between two hosts. Bytes in transit are lost.
pub fn reset(a: IpAddr, b: IpAddr) {
    with(|network, _| network.break_links(|link| link.is_between(a, b), Errno::CONNRESET));
}

/// Breaks the next connection that carries bytes between two hosts, after this many: in the middle of a message.
pub fn break_after(a: IpAddr, b: IpAddr, bytes: usize) {
    with(|network, _| network.fuses.insert(pair(a, b), bytes));
}

/// Cuts two hosts off from each other, or joins them again. Connections survive unless it takes long.
pub fn partition(a: IpAddr, b: IpAddr, is_cut: bool) {
    with(|network, _| match is_cut {
        true => network.cut.insert(pair(a, b)),
        false => network.cut.remove(&pair(a, b)),
    });
}

/// Ends all partitions, and breaks no connection that has not been broken.
pub fn heal() {
    with(|network, _| {
        network.cut.clear();
        network.fuses.clear();
        for link in &mut network.links {
            link.fuse = None;
        }
    });
}

/// A host loses its power, with all its connections and bound addresses. The other hosts are not told. The caller has to end
/// the contexts there before the host gets its power back.
pub fn power_off(host: IpAddr) {
    with(|network, _| {
        network.off.insert(host);
        network.listeners.retain(|address, _| address.ip() != host);
        for link in network.links.iter_mut().filter(|link| link.is_at(host)) {
            let peer = usize::from(link.address[0].ip() == host);
            link.bereaved.get_or_insert(peer);
        }
    });
}

/// A host starts again. It knows nothing of its old connections, and resets them when their peers send something.
pub fn power_on(host: IpAddr) {
    with(|network, _| network.off.remove(&host));
}

/// The streams of bytes of all connections so far.
pub fn streams() -> Vec<Stream> {
    with(|network, _| {
        let mut streams = network.streams.clone();
        for link in &network.links {
            for side in 0..2 {
                streams.push(link.stream(side));
            }
        }
        streams
    })
}

// ---- for the transport ---------------------------------------------------------------------------------------------

/// Listens at an address; port 0 lets the network choose.
pub(crate) fn listen(mut address: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    // The system chooses a name.
    socket.bind(&SockAddr::unix("")?)?;
    socket.listen(128)?;
    let name = socket.local_addr()?;
    with(|network, _| {
        if address.port() == 0 {
            address.set_port(network.new_port());
        }
        if network.listeners.contains_key(&address) {
            return Err(Errno::ADDRINUSE.into());
        }
        let queue = VecDeque::new();
        network.listeners.insert(address, Listening { name, queue });
        Ok((socket.into(), address))
    })
}

/// A program has closed the socket that listens at an address.
pub(crate) fn stop_listening(address: SocketAddr) {
    with(|network, _| network.listeners.remove(&address));
}

/// A program has accepted a connection. Returns its peer's address.
pub(crate) fn accepted(address: SocketAddr, program: BorrowedFd<'_>) -> Option<SocketAddr> {
    with(|network, _| {
        let listening = network.listeners.get_mut(&address);
        let Some(id) = listening.and_then(|listening| listening.queue.pop_front()) else {
            // The host has no power. The descriptor may have the number of one that is closed.
            network.ends.remove(&program.as_raw_fd());
            network.over.remove(&program.as_raw_fd());
            return None;
        };
        network.own(program, id, 1);
        let link = network.links.iter_mut().find(|link| link.id == id)?;
        link.ends[1].program = Some(program.as_raw_fd());
        Some(link.address[0])
    })
}

/// Begins to connect.
pub(crate) fn connect(source: IpAddr, target: SocketAddr) -> io::Result<OwnedFd> {
    let (program, socket) = Socket::pair(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    let (program, socket) = (OwnedFd::from(program), OwnedFd::from(socket));
    with(|network, world| {
        let size = BUFFERS[world.random.below(BUFFERS.len())];
        socket2::SockRef::from(&program).set_send_buffer_size(size)?;
        fill(program.as_fd())?;
        let source = SocketAddr::new(source, network.new_port());
        network.next += 1;
        let id = network.next;
        network.own(program.as_fd(), id, 0);
        let near = End {
            socket: Some(socket),
            program: Some(program.as_raw_fd()),
            read: 0,
        };
        let at = network.arrival(world.random, world.now);
        network.links.push(Link {
            id,
            address: [source, target],
            ends: [near, End::default()],
            flows: [Flow::default(), Flow::default()],
            stage: Stage::Asking { at, tries: 0 },
            fuse: None,
            bereaved: None,
            silent: None,
            heard: world.now,
        });
        Ok(program)
    })
}

// ---- for `sys::stream` ---------------------------------------------------------------------------------------------

/// The peer of a connection of this network, if it is connected; `None` for a descriptor of another kind.
pub(crate) fn peer(fd: BorrowedFd<'_>) -> Option<Option<SocketAddr>> {
    with(|network, _| {
        let fd = fd.as_raw_fd();
        if let Some(over) = network.over.get(&fd) {
            let was_up = over.error != Errno::CONNREFUSED && over.error != Errno::TIMEDOUT;
            return Some(was_up.then_some(over.address));
        }
        let (link, side) = network.end(fd)?;
        let is_up = side == 1 || matches!(link.stage, Stage::Up);
        Some(is_up.then_some(link.address[1 - side]))
    })
}

/// The error that ended a connection.
pub(crate) fn error(fd: BorrowedFd<'_>) -> Option<io::Error> {
    with(|network, _| {
        let over = network.over.get(&fd.as_raw_fd())?;
        Some(over.error.into())
    })
}

/// How many bytes of the program have not reached the peer's host.
pub(crate) fn unsent(fd: BorrowedFd<'_>) -> Option<usize> {
    with(|network, _| {
        if let Some(over) = network.over.get(&fd.as_raw_fd()) {
            return Some(over.unsent);
        }
        let (id, side) = *network.ends.get(&fd.as_raw_fd())?;
        let link = network.links.iter_mut().find(|link| link.id == id)?;
        link.flows[side].note_told();
        Some(link.unsent(side))
    })
}

/// Whether the peer's host has not acknowledged everything, and the time since it did last.
pub(crate) fn acks(fd: BorrowedFd<'_>) -> Option<(bool, Duration)> {
    with(|network, world| {
        let (link, side) = network.end(fd.as_raw_fd())?;
        let last = world.now.saturating_duration_since(link.heard);
        Some((link.unsent(side) > 0, last))
    })
}

/// The program has written this many bytes at once.
pub(crate) fn note_written(fd: BorrowedFd<'_>, bytes: usize) {
    with(|network, _| {
        if let Some((id, side)) = network.ends.get(&fd.as_raw_fd()).copied()
            && let Some(link) = network.links.iter_mut().find(|link| link.id == id)
        {
            link.flows[side].note_written(bytes);
        }
    });
}

/// The program has read this many bytes, 0 at the end of the stream.
///
/// # Errors
/// The error of a broken connection, which the kernel's pair of sockets does not have.
pub(crate) fn note_read(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    with(|network, _| {
        let Some((id, side)) = network.ends.get(&fd.as_raw_fd()).copied() else {
            return Ok(());
        };
        if let Some(link) = network.links.iter_mut().find(|link| link.id == id) {
            link.ends[side].read += bytes as u64;
        } else {
            // Bytes that had arrived before the connection ended.
            let mut streams = network.streams.iter_mut();
            if let Some(stream) = streams.find(|stream| stream.is_of(id, 1 - side)) {
                stream.read += bytes as u64;
            }
        }
        match network.over.get(&fd.as_raw_fd()) {
            Some(over) if bytes == 0 && over.error != Errno::PIPE => Err(over.error.into()),
            _ => Ok(()),
        }
    })
}

// ---- the network ---------------------------------------------------------------------------------------------------

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

impl Network {
    pub(super) fn new() -> Network {
        Network {
            weather: Weather {
                latency: Duration::from_micros(100),
                jitter: Duration::from_micros(100),
                piece: 1 << 16,
                window: 1 << 16,
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
            streams: Vec::new(),
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
        links.retain_mut(|link| {
            let outcome = self.advance(link, random, now);
            due = [due, outcome.due].into_iter().flatten().min();
            match outcome.over {
                Some(error) => self.bury(link, error),
                None => return true,
            }
            false
        });
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
    pub(super) fn note(&mut self, answers: &[PollFlags]) {
        let mut answers = answers.iter().copied();
        for link in &mut self.links {
            for side in 0..2 {
                if link.ends[side].socket.is_some() {
                    let flags = answers.next().unwrap_or(PollFlags::empty());
                    link.flows[side].note(flags);
                    if flags.contains(PollFlags::OUT) {
                        link.flows[1 - side].is_blocked = false;
                    }
                }
            }
        }
    }

    fn advance(&mut self, link: &mut Link, random: &mut Random, now: Instant) -> Outcome {
        if link.flows[0].is_gone && !matches!(link.stage, Stage::Up) {
            // The program has given up its attempt.
            return Outcome::over(Errno::CONNRESET);
        }
        let can_reach = self.can_reach(link.address);
        match link.stage {
            Stage::Asking { at, .. } | Stage::Answering { at, .. } if at > now => Outcome::due(at),
            Stage::Asking { tries, .. } => {
                let is_taken = can_reach.then(|| self.ask(link));
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
            _ if let Some(side) = link.bereaved => match link.flows[side].has_news() {
                true => Outcome::over(Errno::CONNRESET),
                false => self.wait(link, now),
            },
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
    fn ask(&mut self, link: &mut Link) -> Asked {
        let Some(listening) = self.listeners.get_mut(&link.address[1]) else {
            return Asked::Refused;
        };
        let Ok(socket) = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)
        else {
            return Asked::Full;
        };
        match socket.connect(&listening.name) {
            Ok(()) => {
                link.ends[1].socket = Some(socket.into());
                listening.queue.push_back(link.id);
                self.moved = true;
                Asked::Taken
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Asked::Full,
            Err(_) => Asked::Refused,
        }
    }

    /// Two hosts cannot reach each other. The kernel of each notices it in the end.
    fn wait(&self, link: &mut Link, now: Instant) -> Outcome {
        let until = *link.silent.get_or_insert(now) + KEEPALIVE;
        if until > now {
            // The bytes of the programs leave later.
            return Outcome::due(until);
        }
        Outcome::over(Errno::TIMEDOUT)
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
                if !flow.take(from.as_fd(), piece, at, &mut self.room) {
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
        let is_over = |side: usize| link.flows[side].is_over();
        if link.flows[0].is_refused || link.flows[1].is_refused || link.fuse == Some(0) {
            outcome.over = Some(Errno::CONNRESET);
        } else if is_over(0) && is_over(1) {
            outcome.over = Some(Errno::PIPE);
        }
        outcome
    }

    fn break_links(&mut self, mut which: impl FnMut(&Link) -> bool, error: Errno) {
        let links = std::mem::take(&mut self.links);
        for mut link in links {
            match which(&link) && !matches!(link.stage, Stage::Asking { .. }) {
                true => self.bury(&mut link, error),
                false => self.links.push(link),
            }
        }
    }

    /// A connection is over. Its programs find out when they read, after what has arrived.
    fn bury(&mut self, link: &mut Link, error: Errno) {
        self.moved = true;
        for side in 0..2 {
            let unsent = link.unsent(side);
            if let Some(program) = link.ends[side].program
                && self.ends.get(&program) == Some(&(link.id, side))
            {
                let address = link.address[1 - side];
                link.flows[side].note_broken();
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
            self.streams.push(link.stream(side));
        }
        link.ends = [End::default(), End::default()];
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
struct Outcome {
    due: Option<Instant>,
    over: Option<Errno>,
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

impl Link {
    fn is_at(&self, host: IpAddr) -> bool {
        self.address.iter().any(|address| address.ip() == host)
    }

    fn is_between(&self, a: IpAddr, b: IpAddr) -> bool {
        pair(self.address[0].ip(), self.address[1].ip()) == pair(a, b)
    }

    fn stream(&self, side: usize) -> Stream {
        let hosts = [self.address[side].ip(), self.address[1 - side].ip()];
        self.flows[side].stream(self.id, side, hosts, self.ends[1 - side].read)
    }

    /// How many bytes of one end have not reached the other host.
    fn unsent(&self, side: usize) -> usize {
        let written = match (&self.ends[side].socket, &self.stage) {
            (Some(socket), Stage::Up) => flow::waiting(socket.as_fd()),
            _ => 0,
        };
        written + self.flows[side].in_transit()
    }

    /// The bytes that kept the connecting socket from being writable are read, so it is writable.
    fn empty_attempt(&mut self) {
        if let Some(socket) = &self.ends[0].socket {
            flow::discard(socket.as_fd());
        }
    }
}
