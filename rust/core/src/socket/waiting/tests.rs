//! A socket with a connection that the test controls.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zeroxide_proto::socket_type::SocketType;
use zeroxide_queue::loan::Lending;

use super::*;
use crate::context::Context;
use crate::error::ErrorKind;
use crate::signal::{Level, interrupted_by};
use crate::socket::{Socket, SocketInternals, Wait};
use crate::sys::wake_fd::WakeFd;
use crate::watcher::Watcher;

/// The result of a look, chosen by the test.
type Looking = Box<dyn Fn() -> Look + Send + Sync>;

/// Records its calls. Its descriptor is always readable, and the test decides what a look finds.
struct Fake {
    fd: WakeFd,
    look: Looking,
    given_back: Mutex<Vec<bool>>,
    on_give_back: Box<dyn Fn() + Send + Sync>,
    released: AtomicUsize,
    taken_in: AtomicUsize,
}

impl Fake {
    fn new(look: impl Fn() -> Look + Send + Sync + 'static) -> Fake {
        let fd = WakeFd::new().unwrap();
        fd.signal();
        Fake {
            fd,
            look: Box::new(look),
            given_back: Mutex::default(),
            on_give_back: Box::new(|| ()),
            released: AtomicUsize::new(0),
            taken_in: AtomicUsize::new(0),
        }
    }

    fn released(&self) -> usize {
        self.released.load(Ordering::Relaxed)
    }

    fn taken_in(&self) -> usize {
        self.taken_in.load(Ordering::Relaxed)
    }
}

impl Line for Fake {
    fn take_over(&self) -> Option<FdLoan> {
        let fd = self.fd.as_fd().as_raw_fd();
        let loan = Lending::new().lend(1)?;
        Some(FdLoan { fd, loan })
    }

    fn look(&self, _: FdLoan, _: bool, since: Option<Instant>) -> Look {
        match (self.look)() {
            Look::CameIn { .. } => {
                let paused = since.is_some();
                self.given_back.lock().unwrap().push(paused);
                (self.on_give_back)();
                Look::CameIn { paused }
            }
            look => look,
        }
    }

    fn give_back(&self, _: FdLoan, soon: bool) {
        self.given_back.lock().unwrap().push(soon);
        (self.on_give_back)();
    }

    fn release(&self) {
        self.released.fetch_add(1, Ordering::Relaxed);
    }

    fn take_in(&self) -> bool {
        self.taken_in.fetch_add(1, Ordering::Relaxed);
        false
    }
}

fn pull() -> (Context, Socket) {
    let context = Context::new();
    let pull = context.socket(SocketType::Pull).unwrap();
    (context, pull)
}

/// Makes the socket's last wait one that read from this connection.
fn lend(pull: &Socket, fake: &Arc<Fake>) {
    let line: Weak<Fake> = Arc::downgrade(fake);
    pull.core().lock().line = Some(line);
}

#[test]
fn a_call_meets_its_deadline_although_the_peer_never_pauses() {
    let (_context, pull) = pull();
    let core = pull.core();
    let start = Instant::now();
    // Longer than the deadline, but not forever, so that a failing test ends.
    let fake = Fake::new(move || {
        if start.elapsed() < Duration::from_secs(20) {
            Look::Again
        } else {
            Look::Elsewhere
        }
    });
    let loan = fake.take_over().unwrap();
    let deadline = Some(start + Duration::from_millis(20));
    let driven = core.drive(&fake, loan, false, core.signal.ticket(), start, deadline);
    assert_eq!(driven, Driven::Woken(Woken::TimedOut));
}

#[test]
fn a_call_that_does_not_wait_reads_a_lent_connection() {
    let (_context, pull) = pull();
    let fake = Arc::new(Fake::new(|| Look::Again));
    lend(&pull, &fake);
    let failed = pull.recv(Wait::Dont).unwrap_err();
    assert_eq!((failed.kind(), fake.taken_in()), (ErrorKind::Again, 1));
    assert!(!pull.take_in());
    assert_eq!(fake.taken_in(), 2);
    // A caller that tries before it waits will read the connection in its wait.
    let _ = pull.try_recv();
    let _ = pull.try_recv_batch_as(5, |message| message);
    assert_eq!((fake.taken_in(), fake.released()), (2, 0));
}

#[test]
fn a_new_watcher_releases_a_lent_connection() {
    let (_context, pull) = pull();
    let fake = Arc::new(Fake::new(|| Look::Again));
    lend(&pull, &fake);
    pull.events().unwrap();
    assert_eq!(fake.released(), 1);
    pull.readiness().unwrap();
    assert_eq!(fake.released(), 2);
    let watcher = Watcher::new(&pull).unwrap();
    watcher.watch();
    assert_eq!(fake.released(), 3);
    pull.fd().unwrap();
    assert_eq!(fake.released(), 4);
}

#[test]
fn a_wait_without_the_connection_releases_it() {
    let (_context, pull) = pull();
    let fake = Arc::new(Fake::new(|| Look::Again));
    lend(&pull, &fake);
    let core = pull.core();
    let mut state = core.lock();
    // Several messages at once: the next wait leaves reading to the I/O thread.
    state.rhythm.note_run(2);
    core.outlook(&mut state);
    assert_eq!(fake.released(), 1);
    core.outlook(&mut state);
    assert_eq!(fake.released(), 1);
}

/// Waits with a connection that has something at once. Returns whether the connection stays lent.
fn stays_lent(pull: &Socket, fake: &Arc<Fake>) -> bool {
    let core = pull.core();
    let outlook = Outlook {
        line: Some((fake.clone(), PipeId(7))),
        awaits_answer: false,
    };
    let waited = core.wait_for_message(&outlook, core.signal.ticket(), None);
    assert!(matches!(
        waited,
        Waited::CameIn(PipeId(7)) | Waited::Woken(Woken::Notified)
    ));
    fake.given_back.lock().unwrap().pop().unwrap()
}

/// Two connections whose look ends the wait at once: one by a message, one by a wake from elsewhere.
fn bringing(pull: &Socket) -> [Fake; 2] {
    let core = pull.core().arc().unwrap();
    let here = Fake::new(|| Look::CameIn { paused: true });
    let elsewhere = Fake::new(move || {
        core.signal.wake();
        Look::Again
    });
    [here, elsewhere]
}

#[test]
fn while_others_watch_a_connection_does_not_stay_lent_after_the_wait() {
    let (_context, pull) = pull();
    let watcher = Watcher::new(&pull).unwrap();
    let fakes = bringing(&pull).map(Arc::new);
    watcher.watch();
    fakes
        .iter()
        .for_each(|fake| assert!(!stays_lent(&pull, fake)));
    watcher.rest();
    pull.fd().unwrap();
    fakes
        .iter()
        .for_each(|fake| assert!(!stays_lent(&pull, fake)));
}

#[test]
fn a_watcher_that_joins_while_a_connection_is_given_back_is_noticed() {
    let (_context, pull) = pull();
    for mut fake in bringing(&pull) {
        let core = pull.core().arc().unwrap();
        let watcher = Arc::new(Level::default());
        let watches = watcher.clone();
        fake.on_give_back = Box::new(move || core.signal.watch(watches.clone()));
        let fake = Arc::new(fake);
        // After a long wait, the next one is not expected to be short.
        let soon = stays_lent(&pull, &fake);
        assert_eq!(fake.released(), usize::from(soon));
        pull.core().signal.unwatch(&watcher);
    }
}

#[test]
fn a_thread_that_waits_with_an_alarm_counts_as_another_watcher() {
    let (_context, pull) = pull();
    let core = pull.core().arc().unwrap();
    let quiet = WakeFd::new().unwrap();
    let other = std::thread::spawn({
        let (core, ticket) = (core.clone(), core.signal.ticket());
        move || interrupted_by(quiet.as_fd(), || core.signal.wait(ticket, None))
    });
    let patience = Instant::now() + Duration::from_secs(20);
    while !core.signal.has_others() {
        assert!(Instant::now() < patience, "a connection would stay lent");
        std::thread::yield_now();
    }
    core.signal.wake();
    assert_eq!(other.join().unwrap(), Woken::Notified);
    assert!(!core.signal.has_others());
}
