//! A session with a test in the place of its socket, its waiting thread and its peer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use zeroxide_proto::socket_type::SocketType;

use self::raw::COMMAND;
use super::*;
use crate::error::Result;
use crate::json::Json;
use crate::monitor::{EventKind, MonitorEvent};
use crate::options::{ContextOptions, Options};
use crate::patterns::DropReason;
use crate::pipe::{Pipe, PipeEvent, PipeId, PipeOwner};
use crate::port::{Origin, SocketPort};
use crate::registry::{ContextUser, Registry};
use crate::session::Seed;
use crate::sys::poll::{self, Ready};
use crate::transports::{self, ByteTransport, Listen, Opening, Target, Targets};

#[path = "../../../../../tests/common/raw.rs"]
#[allow(dead_code)]
mod raw;

/// Returns the address without its scheme, for `raw`.
fn address(endpoint: &str) -> &str {
    endpoint
}

const PATIENCE: Duration = Duration::from_secs(60);
const MS: Duration = Duration::from_millis(1);

/// The socket's side of the session.
struct Near {
    events: Sender<(EventKind, Option<String>)>,
    /// Whether it panics when there is something to read.
    grumpy: AtomicBool,
}

impl SocketPort for Near {
    fn attach(&self, _: Pipe, _: &str, _: Origin) {}

    fn count_drop(&self, _: DropReason, _: u64) {}

    fn is_backlogged(&self) -> bool {
        false
    }

    fn wants(&self, _: EventKind) -> bool {
        true
    }

    fn emit(&self, event: MonitorEvent) {
        // The test may have ended.
        let _ = self.events.send((event.kind, event.reason));
    }
}

impl ContextUser for Near {
    fn on_context_shutdown(&self) {}

    fn on_context_end(&self, _: Option<Duration>) {}

    fn describe(&self, _: &mut Json, _: usize) {}
}

impl PipeOwner for Near {
    fn on_pipe(&self, _: PipeId, event: PipeEvent) {
        if event == PipeEvent::Readable && self.grumpy.swap(false, Ordering::Relaxed) {
            panic!("the test asks for a panic");
        }
    }
}

/// Like tcp, but the address may be a list with commas, which acts as a name that resolves to all of them.
struct SeveralAddresses;

fn tcp() -> &'static dyn ByteTransport {
    transports::find("tcp").unwrap()
}

impl ByteTransport for SeveralAddresses {
    fn scheme(&self) -> &'static str {
        tcp().scheme()
    }

    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()> {
        tcp().check(address, socket, bind)
    }

    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>> {
        tcp().listen(address, options)
    }

    fn targets(&self, addresses: &str, options: &Options) -> Result<Targets> {
        let mut all = Vec::new();
        for address in addresses.split(',') {
            match tcp().targets(address, options)? {
                Targets::Ready(targets) => all.extend(targets),
                Targets::Resolve(_) => panic!("{address} is a name"),
                Targets::NotYet(error) => return Err(error),
            }
        }
        Ok(Targets::Ready(all))
    }

    fn open(&self, address: &str, target: &Target, options: &Options) -> Result<Opening> {
        tcp().open(address, target, options)
    }
}

struct Rig {
    registry: Arc<Registry>,
    session: Arc<Session>,
    pipe: Pipe,
    near: Arc<Near>,
    events: Receiver<(EventKind, Option<String>)>,
    listener: TcpListener,
}

impl Rig {
    /// A PULL socket's session that connects to the test.
    fn new(set: impl FnOnce(&mut Options)) -> Rig {
        Rig::with_addresses(set, |test| test.to_string())
    }

    /// Like [`new`](Self::new), but connects to the first of several addresses that does not refuse. The test listens
    /// on one of them.
    fn with_addresses(
        set: impl FnOnce(&mut Options),
        addresses: impl FnOnce(SocketAddr) -> String,
    ) -> Rig {
        let (sender, events) = mpsc::channel();
        let near = Arc::new(Near {
            events: sender,
            grumpy: AtomicBool::new(false),
        });
        let registry = Registry::new(ContextOptions::default());
        let user: Weak<Near> = Arc::downgrade(&near);
        registry.add_socket(user).unwrap();
        let mut options = registry.with_options(|context| Options::new(SocketType::Pull, context));
        options.reconnect_ivl = Some(MS);
        set(&mut options);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (io, guard) = registry.choose_io(0).unwrap();
        let seed = Seed {
            io,
            guard,
            registry: registry.clone(),
            port: near.clone(),
            options: Arc::new(options),
            socket_type: SocketType::Pull,
            endpoint: "tcp://test".to_owned(),
            source: 0,
            peer_name: None,
        };
        let addresses = addresses(listener.local_addr().unwrap());
        let (session, pipe) = Session::connecting(seed, &SeveralAddresses, &addresses);
        let pipe = pipe.unwrap();
        pipe.set_owner(near.clone(), PipeId(1));
        session.start();
        Rig {
            registry,
            session,
            pipe,
            near,
            events,
            listener,
        }
    }

    /// Accepts the next connection and completes its handshake.
    fn accept(&self) -> TcpStream {
        let (mut peer, _) = self.listener.accept().unwrap();
        peer.set_nodelay(true).unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        peer.write_all(&raw::greeting()).unwrap();
        peer.write_all(&raw::frame(COMMAND, &raw::ready("PUSH")))
            .unwrap();
        peer.read_exact(&mut [0; 64]).unwrap();
        raw::read_frame(&mut peer).unwrap();
        peer
    }

    /// Takes the connection over when the I/O thread has nothing more to do for it.
    fn loan(&self) -> FdLoan {
        let patience = Instant::now() + PATIENCE;
        loop {
            if let Some(loan) = self.session.take_over() {
                return loan;
            }
            assert!(
                Instant::now() < patience,
                "the connection cannot be taken over"
            );
            thread::sleep(MS);
        }
    }

    fn wait_for(&self, kind: EventKind) -> Option<String> {
        loop {
            let (seen, reason) = self
                .events
                .recv_timeout(PATIENCE)
                .expect("the event is emitted");
            if seen == kind {
                return reason;
            }
        }
    }

    /// Returns the next message, which has arrived or will arrive without further action.
    fn receive(&mut self) -> String {
        let patience = Instant::now() + PATIENCE;
        while !self.pipe.check_read() {
            assert!(Instant::now() < patience, "no message arrives");
            thread::sleep(MS);
        }
        let message = self.pipe.read().unwrap();
        String::from_utf8(message.head().to_vec()).unwrap()
    }

    fn end(self) {
        drop(self.pipe);
        drop(self.listener);
        self.session.close(Some(Duration::ZERO));
        let patience = Instant::now() + PATIENCE;
        while !self.session.has_ended() {
            assert!(Instant::now() < patience, "the session does not end");
            thread::sleep(MS);
        }
        self.registry.end();
    }
}

/// Waits until something has arrived at a descriptor.
fn arrival(loan: FdLoan) {
    let wanted = Ready {
        readable: true,
        ..Ready::default()
    };
    let found = poll::wait(&[(loan.fd, wanted)], Some(Instant::now() + PATIENCE)).unwrap();
    assert!(found[0].readable, "nothing arrives");
}

#[test]
fn an_old_loan_is_not_valid_for_the_next_connection() {
    let mut rig = Rig::new(|_| ());
    let peer = rig.accept();
    let old = rig.loan();
    drop(peer);
    // No thread looks, but the end is reported no matter how the connection is lent.
    rig.wait_for(EventKind::Disconnected);
    let mut peer = rig.accept();
    let new = rig.loan();

    assert_eq!(rig.session.look(old, false, None), Look::Elsewhere);
    rig.session.give_back(old, false);
    assert_eq!(rig.session.take_over(), None);
    peer.write_all(&raw::frame(0, b"for the new one")).unwrap();
    arrival(new);
    assert!(!rig.pipe.check_read());
    let came_in = Look::CameIn { paused: false };
    assert_eq!(rig.session.look(new, false, None), came_in);
    assert_eq!(rig.receive(), "for the new one");
    rig.end();
}

#[test]
fn a_panic_of_the_reading_thread_ends_only_the_connection() {
    let mut rig = Rig::new(|_| ());
    let mut peer = rig.accept();
    let loan = rig.loan();
    assert!(!rig.pipe.check_read());
    rig.near.grumpy.store(true, Ordering::Relaxed);
    peer.write_all(&raw::frame(0, b"bad news")).unwrap();
    arrival(loan);
    // The call also notifies the socket, because the I/O thread has to handle the end.
    assert_eq!(rig.session.look(loan, true, None), Look::Elsewhere);
    rig.session.give_back(loan, false);
    let reason = rig.wait_for(EventKind::Disconnected);
    assert_eq!(reason.as_deref(), Some("internal error in this connection"));
    assert_eq!(rig.receive(), "bad news");

    let mut peer = rig.accept();
    peer.write_all(&raw::frame(0, b"good news")).unwrap();
    assert_eq!(rig.receive(), "good news");
    rig.end();
}

#[test]
fn received_bytes_count_before_a_peer_is_declared_dead() {
    // These answers are not read, because the thread that took the connection over never looks at it. There are more
    // PINGs than would be sent before the first of them had to be answered.
    let rig = Rig::new(|options| {
        options.heartbeat_ivl = Some(50 * MS);
        options.heartbeat_timeout = Some(1000 * MS);
    });
    let mut peer = rig.accept();
    let loan = rig.loan();
    for _ in 0..25 {
        let (flags, body) = raw::read_frame(&mut peer).unwrap();
        assert_eq!((flags, &body[..5]), (COMMAND, &b"\x04PING"[..]));
        peer.write_all(&raw::frame(COMMAND, b"\x04PONG")).unwrap();
    }
    rig.session.give_back(loan, false);
    rig.end();
}

#[test]
fn the_refusal_of_one_address_does_not_end_the_connect_to_another() {
    let rig = Rig::with_addresses(
        |options| options.reconnect_stop = 1,
        |test| {
            let closed = TcpListener::bind("127.0.0.1:0").unwrap();
            format!("{},{test}", closed.local_addr().unwrap())
        },
    );
    for _ in 0..2 {
        // An ordinary loss follows.
        drop(rig.accept());
        rig.wait_for(EventKind::Disconnected);
        rig.wait_for(EventKind::ConnectRetried);
    }
    rig.end();
}

#[test]
fn a_thread_takes_in_messages_between_two_waits() {
    let mut rig = Rig::new(|_| ());
    let mut peer = rig.accept();
    for _ in 0..100 {
        let loan = rig.loan();
        assert!(!rig.session.take_in(), "the connection is in use");
        peer.write_all(&raw::frame(0, b"news")).unwrap();
        arrival(loan);
        rig.session.give_back(loan, true);
        // Not if the guard came first.
        if rig.session.take_in() {
            assert!(rig.pipe.check_read());
        }
        assert!(!rig.session.take_in());
        assert_eq!(rig.receive(), "news");
    }
    rig.end();
}

#[test]
fn the_end_of_an_attempt_does_not_end_the_next() {
    let rig = Rig::with_addresses(
        |_| (),
        |test| {
            let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
            format!("{},{test}", nobody.local_addr().unwrap())
        },
    );
    let _peer = rig.accept();
    // The connection cannot be taken over if it counts as hung up, as the first attempt did.
    rig.loan();
    rig.end();
}
