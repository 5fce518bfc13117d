//! The program of one member: a thread that does random things with one socket.

use std::collections::BTreeSet;
use std::time::Duration;

use zeroxide::simulation::{self, network};
use zeroxide::{Context, Error, ErrorKind, Frame, Message, Socket, SocketType, Wait};

use super::dice::Dice;
use super::history::{self, Receipt, note};
use super::letter::{Letter, TOPICS};
use super::life::Life;
use super::plan::{Pattern, Role, host};

/// How long a socket that closes during a run delivers its messages: shorter than some pauses of its peers, or longer than all.
const LINGERS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(30)];

/// How long a handshake takes at most. A session that its socket has left gives up a host that has lost its power before
/// the last look.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// See the module text.
pub struct Member {
    pub pattern: &'static Pattern,
    pub role: Role,
    dice: Dice,
    context: Context,
    pub socket: Socket,
    pub life: Life,
    pub lives: Vec<Life>,
    pub topics: BTreeSet<u8>,
    /// The peers that can be addressed, each with the number of the socket there.
    pub routes: Vec<(Route, u16)>,
    /// The letter to answer next.
    asked: (u16, u32),
    /// The request that waits for its reply.
    request: Option<u32>,
    /// A reply to an earlier socket was taken for one to this socket. The replies that follow answer earlier requests.
    is_behind: bool,
    pub connected: BTreeSet<usize>,
    sockets: u16,
}

/// How a peer is addressed.
#[derive(Clone, PartialEq, Debug)]
pub enum Route {
    Name(Vec<u8>),
    Number(u32),
}

impl Member {
    pub fn new(pattern: &'static Pattern, role: Role, dice: Dice) -> Member {
        let context = Context::new();
        let socket = context.socket(role.kind).unwrap();
        let mut member = Member {
            pattern,
            life: Life::new(&role, 0),
            role,
            dice,
            context,
            socket,
            lives: Vec::new(),
            topics: BTreeSet::new(),
            routes: Vec::new(),
            asked: (0, 0),
            request: None,
            is_behind: false,
            connected: BTreeSet::new(),
            sockets: 0,
        };
        member.begin();
        member
    }

    /// Prepares a new socket.
    fn begin(&mut self) {
        self.sockets += 1;
        // Member and socket in one number.
        let number = (self.role.index as u16 + 1) << 8 | self.sockets;
        self.life = Life::new(&self.role, number);
        self.routes.clear();
        self.topics.clear();
        self.connected.clear();
        self.asked = (0, 0);
        self.request = None;
        self.is_behind = false;
        let (options, socket) = (self.role.options, &self.socket);
        socket.set_sndhwm(options.sndhwm).unwrap();
        socket.set_rcvhwm(options.rcvhwm).unwrap();
        socket.set_reconnect_ivl(Some(options.reconnect)).unwrap();
        socket.set_reconnect_ivl_max(options.reconnect_max).unwrap();
        socket.set_immediate(options.immediate).unwrap();
        socket.set_handshake_ivl(Some(HANDSHAKE)).unwrap();
        if let Some(interval) = options.heartbeat {
            socket.set_heartbeat_ivl(Some(interval)).unwrap();
        }
        if self.pattern.conflates {
            socket.set_conflate(true).unwrap();
        }
        let name = format!("socket-{number}");
        match self.role.kind {
            SocketType::Router => socket.set_router_mandatory(options.mandatory).unwrap(),
            SocketType::Dealer if options.named => socket.set_routing_id(&name).unwrap(),
            SocketType::Req if options.relaxed => {
                socket.set_req_relaxed(true).unwrap();
                socket.set_req_correlate(true).unwrap();
            }
            _ => {}
        }
        for topic in TOPICS {
            if self.wants_topics() && self.dice.one_in(2) {
                self.subscribe(topic, true);
            }
        }
        if self.role.binds {
            self.socket.bind(&self.role.endpoint()).unwrap();
        }
        for peer in self.role.peers.clone() {
            self.connect(peer);
        }
        note(format_args!("{self} begins: {:?}", self.role.options));
    }

    /// Runs the program.
    pub fn run(&mut self) {
        for _ in 0..self.role.steps {
            self.step();
        }
    }

    fn step(&mut self) {
        match self.dice.below(100) {
            0..45 => self.send(),
            45..75 => {
                let wait = self.wait();
                self.receive(wait);
            }
            75..85 => {
                let time = match self.role.options.drowsy && self.dice.one_in(3) {
                    // Longer than a silent peer is left in peace.
                    true => Duration::from_millis(self.dice.below(20_000) as u64),
                    false => self.dice.time_up_to(Duration::from_millis(300)),
                };
                simulation::sleep(time);
            }
            85..90 => drop(self.stats()),
            90..94 => self.resubscribe(),
            94..97 => self.reconnect(),
            97 => self.crash(),
            98 => self.restart(),
            _ => {
                for _ in 0..20 {
                    self.send();
                }
            }
        }
    }

    fn wait(&mut self) -> Wait {
        match self.dice.one_in(2) {
            true => Wait::Dont,
            false => {
                let time = self.dice.time_up_to(Duration::from_millis(100));
                Wait::Until(simulation::now() + time)
            }
        }
    }

    // ---- messages --------------------------------------------------------------------------------------------------

    pub fn sends(&self) -> bool {
        use SocketType::*;
        !matches!(self.role.kind, Pull | Gather | Sub | Xsub | Dish)
    }

    pub fn wants_topics(&self) -> bool {
        use SocketType::*;
        matches!(self.role.kind, Sub | Xsub | Dish)
    }

    /// Sends a letter if it may.
    pub fn send(&mut self) {
        let wait = self.wait();
        let route = match self.routes.len() {
            0 => None,
            count => Some(self.routes[self.dice.below(count)].0.clone()),
        };
        if self.sends() && (route.is_some() || !self.addresses()) {
            // The check of the reason is all that matters.
            let _ = self.send_to(route, wait);
        }
    }

    /// Whether it has to name a peer for each message.
    fn addresses(&self) -> bool {
        matches!(self.role.kind, SocketType::Router | SocketType::Server)
    }

    /// Sends a letter, and returns its number.
    ///
    /// # Errors
    /// The kind of a refusal that is allowed.
    pub fn send_to(&mut self, route: Option<Route>, wait: Wait) -> Result<u32, ErrorKind> {
        let number = history::with(|history| {
            let tried = history.tried.entry(self.life.number).or_default();
            *tried += 1;
            *tried
        });
        let letter = Letter {
            from: self.life.number,
            number,
            answers: self.asked,
            is_single: self.pattern.is_single,
        };
        let mut message = letter.message();
        if let Some((_, to)) = self
            .routes
            .iter()
            .find(|(known, _)| Some(known) == route.as_ref())
        {
            let member = usize::from(to >> 8) - 1;
            history::with(|history| history.addressed.insert((letter.from, number), member));
        }
        match route {
            Some(Route::Name(name)) => message.push_front(Frame::copy_from(&name)),
            Some(Route::Number(number)) => message.set_routing_id(number),
            None if self.role.kind == SocketType::Radio => message.set_group(&[letter.topic()]),
            None => {}
        }
        // It may arrive before the call returns.
        match self.socket.send(message, wait) {
            Ok(()) => {
                history::with(|history| history.accepted.insert((letter.from, number)));
                note(format_args!("{self} sent {number}"));
                if self.role.kind == SocketType::Req {
                    self.request = Some(number);
                }
                Ok(number)
            }
            Err(refused) => {
                self.refused(&refused.error);
                Err(refused.error.kind())
            }
        }
    }

    fn refused(&self, error: &Error) {
        use ErrorKind::{Again, Fsm, HostUnreachable};
        let expected = match self.role.kind {
            SocketType::Req | SocketType::Rep => [Again, Fsm].contains(&error.kind()),
            SocketType::Router | SocketType::Server => {
                [Again, HostUnreachable].contains(&error.kind())
            }
            _ => error.kind() == Again,
        };
        assert!(expected, "{self} may not be told: {error}");
    }

    /// Receives a letter if there is one. Returns whether there was.
    pub fn receive(&mut self, wait: Wait) -> bool {
        use SocketType::{Pub, Push, Radio, Scatter};
        if matches!(self.role.kind, Push | Pub | Radio | Scatter) {
            return false;
        }
        let (message, peer) = match self.socket.recv_from(wait) {
            Ok(received) => received,
            Err(error) => {
                self.refused(&error);
                return false;
            }
        };
        let skipped = match self.role.kind {
            SocketType::Router => 1,
            SocketType::Xpub if message.head().as_slice().first().is_some_and(|&b| b < 2) => {
                return true;
            }
            _ => 0,
        };
        let letter =
            Letter::read(&message, skipped).unwrap_or_else(|wrong| panic!("{self}: {wrong}"));
        note(format_args!(
            "{self} received {} of {:x}",
            letter.number, letter.from
        ));
        self.check(&letter, &message);
        self.learn(&message, letter.from);
        self.asked = (letter.from, letter.number);
        history::with(|history| {
            let received = history.received.entry(self.life.number).or_default();
            received.push(Receipt { letter, peer });
        });
        true
    }

    /// What this socket itself knows about a letter that it received.
    fn check(&mut self, letter: &Letter, message: &Message) {
        let sent = (letter.from, letter.number);
        let to = history::with(|history| history.addressed.get(&sent).copied());
        let is_mine = to.is_none_or(|member| member == self.role.index);
        assert!(
            is_mine,
            "{self} received {letter:?}, which was addressed to {to:?}"
        );
        match self.role.kind {
            SocketType::Dish => {
                let group = message.group().unwrap_or_default();
                assert_eq!(group, [letter.topic()], "{self}: the group of {letter:?}");
                // What was in the queue when it left the group still arrives.
                let wanted = self.topics.contains(&letter.topic()) || self.life.resubscribed;
                assert!(wanted, "{self} did not join the group of {letter:?}");
            }
            // XSUB does not filter what an XPUB had queued for an earlier socket on this host.
            SocketType::Sub => {
                let wanted = self.topics.contains(&letter.topic()) || self.life.resubscribed;
                assert!(wanted, "{self} did not subscribe to {letter:?}");
            }
            SocketType::Req => {
                let request = self.request.take().map(|number| (self.life.number, number));
                // Only REQ_CORRELATE recognises a late reply to an earlier socket at this address.
                let is_late = letter.answers.0 != self.life.number;
                self.is_behind |= is_late && !self.role.options.relaxed;
                assert!(
                    self.is_behind || Some(letter.answers) == request,
                    "{self} receives an answer to {:x?} and asked {request:x?}",
                    letter.answers
                );
            }
            _ => {}
        }
    }

    fn learn(&mut self, message: &Message, from: u16) {
        let route = match self.role.kind {
            SocketType::Router => Route::Name(message.head().as_slice().to_vec()),
            SocketType::Server => Route::Number(message.routing_id().expect("it has a number")),
            _ => return,
        };
        if self.routes.iter().all(|(known, _)| *known != route) {
            self.routes.push((route, from));
        }
    }

    // ---- peers -----------------------------------------------------------------------------------------------------

    fn connect(&mut self, peer: usize) {
        self.socket.connect(&self.role.endpoint_of(peer)).unwrap();
        self.connected.insert(peer);
    }

    fn subscribe(&mut self, topic: u8, on: bool) {
        let result = match (self.role.kind, on) {
            (SocketType::Dish, true) => self.socket.join([topic]),
            (SocketType::Dish, false) => self.socket.leave([topic]),
            (SocketType::Xsub, _) => {
                let message = Message::from(&[u8::from(on), topic]);
                self.socket
                    .send(message, Wait::Dont)
                    .map_err(|refused| refused.error)
            }
            (_, true) => self.socket.subscribe([topic]),
            (_, false) => self.socket.unsubscribe([topic]),
        };
        result.unwrap();
        match on {
            true => self.topics.insert(topic),
            false => self.topics.remove(&topic),
        };
    }

    fn resubscribe(&mut self) {
        if self.wants_topics() {
            let topic = self.dice.pick(&TOPICS);
            let on = !self.topics.contains(&topic);
            note(format_args!("{self} subscribes to {topic}: {on}"));
            self.life.resubscribed = true;
            self.subscribe(topic, on);
        }
    }

    /// Leaves its peers for a while.
    fn reconnect(&mut self) {
        let time = self.dice.time_up_to(Duration::from_millis(100));
        self.life.disturbed = true;
        if self.role.binds {
            note(format_args!("{self} unbinds for {time:?}"));
            self.socket.unbind(&self.role.endpoint()).unwrap();
            simulation::sleep(time);
            self.socket.bind(&self.role.endpoint()).unwrap();
        } else {
            let peer = self.dice.pick(&self.role.peers);
            note(format_args!("{self} disconnects from {peer} for {time:?}"));
            if self.dice.one_in(2) {
                // The connection ends at the moment in which the socket leaves it.
                network::reset(self.role.host(), host(peer));
            }
            self.socket
                .disconnect(&self.role.endpoint_of(peer))
                .unwrap();
            simulation::sleep(time);
            self.connect(peer);
        }
    }

    /// Its host loses its power, and starts again.
    fn crash(&mut self) {
        let time = self.dice.time_up_to(Duration::from_secs(20));
        note(format_args!("{self} crashes for {time:?}"));
        self.life.crashed = true;
        network::power_off(self.role.host());
        self.socket.close(Some(Some(Duration::ZERO)));
        // Peers that it had disconnected from may still have had messages to get.
        self.context.term_within(Some(Duration::ZERO)).unwrap();
        simulation::sleep(time);
        network::power_on(self.role.host());
        self.start_again();
    }

    /// Closes its socket and creates another one.
    fn restart(&mut self) {
        let linger = self.dice.pick(&LINGERS);
        note(format_args!("{self} closes within {linger:?}"));
        self.end(linger);
        self.start_again();
    }

    fn start_again(&mut self) {
        self.context = Context::new();
        self.socket = self.context.socket(self.role.kind).unwrap();
        let next = Life::new(&self.role, 0);
        self.lives.push(std::mem::replace(&mut self.life, next));
        self.begin();
    }

    /// Closes its socket and its context.
    pub fn end(&mut self, linger: Duration) {
        drop(self.stats());
        self.life.left = true;
        let before = simulation::now();
        self.life.delivers_until = Some(before + linger);
        let report = self.socket.close_within(Some(linger)).unwrap();
        self.context.term_within(Some(linger)).unwrap();
        // Connections may have ended since any look before the close.
        let stats = self.socket.last_stats();
        self.account(&stats);
        self.check_report(&stats, report.messages());
        let took = simulation::now().saturating_duration_since(before);
        assert!(
            took < 2 * linger + Duration::from_secs(2),
            "{self} took {took:?} to close"
        );
    }
}

impl std::fmt::Display for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:x}", self.role.kind, self.life.number)
    }
}
