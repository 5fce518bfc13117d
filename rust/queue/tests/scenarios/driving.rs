//! A connection with its three threads: the I/O thread, a thread that waits for messages and reads them itself, and one
//! that sends and closes. Messages are only counted, and locks and sleeps are those of the sockets.

use std::ops::ControlFlow::{Break, Continue};

use zeroxide_queue::loan::{Event, Lending, State};
use zeroxide_queue::parker::{On, Parker, System};
use zeroxide_queue::waiters::{Waiter, Waiters};

use super::{Arc, AtomicU32, AtomicUsize, Condvar, Mutex, MutexGuard, Relaxed, thread};

/// The state that the system keeps. Everything that happens to it is one condition, on which both readers sleep.
#[derive(Default)]
struct Known {
    /// Messages that have arrived and have not been read.
    arrived: usize,
    /// Arrivals wake the I/O thread.
    watched: bool,
    /// The bell of the waiting thread sounds.
    bell: bool,
    /// The I/O thread was woken.
    io_woken: bool,
    /// All messages were received.
    done: bool,
}

#[derive(Default)]
struct Kernel {
    known: Mutex<Known>,
    changed: Condvar,
}

impl Kernel {
    fn change(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.known.lock().unwrap());
        self.changed.notify_all();
    }

    /// Sleeps until `ready`.
    fn sleep(&self, ready: impl Fn(&Known) -> bool) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap();
        while !ready(&known) {
            known = sleep_for_change(&self.changed, known);
        }
        known
    }
}

#[cfg(zeroxide_loom)]
fn sleep_for_change<'a>(changed: &Condvar, known: MutexGuard<'a, Known>) -> MutexGuard<'a, Known> {
    changed.wait(known).unwrap()
}

#[cfg(not(zeroxide_loom))]
fn sleep_for_change<'a>(changed: &Condvar, known: MutexGuard<'a, Known>) -> MutexGuard<'a, Known> {
    let (known, waited) = changed.wait_timeout(known, super::PATIENCE).unwrap();
    assert!(!waited.timed_out(), "a thread was not woken");
    known
}

/// How the waiting thread sleeps.
struct Sleep(Arc<Kernel>);

impl System for Sleep {
    fn wake_word(&self, _: &AtomicU32) {
        self.0.change(|_| ());
    }

    fn sound_bell(&self) {
        self.0.change(|known| known.bell = true);
    }
}

/// The part that the session's lock guards.
struct Session {
    /// The I/O thread will look whether the connection is still in use.
    guarded: bool,
}

struct Connection {
    kernel: Arc<Kernel>,
    session: Mutex<Session>,
    lending: Lending,
    /// The pipe: messages that have been read.
    inbox: AtomicUsize,
    waiters: Waiters<Sleep, ()>,
}

impl Connection {
    /// Under the session's lock: moves what has arrived into the pipe. Returns how much it was.
    fn read(&self, known: &mut Known) -> usize {
        let came_in = std::mem::take(&mut known.arrived);
        self.inbox.fetch_add(came_in, Relaxed);
        came_in
    }

    fn tell(&self) {
        if self.waiters.advance() {
            let wake = |waiter: Waiter<Sleep>| match waiter {
                Waiter::Thread(parker) => {
                    if let Some(on) = parker.notify() {
                        parker.rouse(on);
                    }
                }
                Waiter::Task(..) => unreachable!("there are no tasks"),
            };
            self.waiters.take(|()| (), wake);
        }
    }

    /// Under the session's lock: the I/O thread reads again if the event ends the loan.
    fn end_by(&self, session: &mut Session, event: Event) -> State {
        let (before, after) = self.lending.change(event);
        if before != State::Home && after == State::Home {
            session.guarded = false;
            self.kernel.change(|known| known.watched = true);
        }
        self.check(session);
        before
    }

    /// A connection is always looked after: by the I/O thread, by the thread that has it, or by the guard.
    fn check(&self, session: &Session) {
        let watched = self.kernel.known.lock().unwrap().watched;
        match self.lending.state() {
            State::Home => assert!(watched, "no thread reads"),
            State::Held { .. } => assert!(!watched, "two threads read"),
            State::Paused { .. } => assert!(!watched && session.guarded, "it may be forgotten"),
        }
    }

    /// The I/O thread, until everything was received.
    fn run_io(&self) {
        loop {
            let guarded = self.session.lock().unwrap().guarded;
            // The guard is a timer, so it may look at any time.
            let woken = |known: &Known| {
                guarded || known.done || known.io_woken || (known.watched && known.arrived > 0)
            };
            let mut known = self.kernel.sleep(woken);
            known.io_woken = false;
            let done = known.done;
            drop(known);
            if done {
                return;
            }
            let mut session = self.session.lock().unwrap();
            if session.guarded
                && matches!(
                    self.end_by(&mut session, Event::Look),
                    State::Held { used: false }
                )
            {
                session.guarded = false;
            }
            let came_in = if self.lending.state() == State::Home {
                self.read(&mut self.kernel.known.lock().unwrap())
            } else {
                0
            };
            drop(session);
            if came_in > 0 {
                self.tell();
            }
        }
    }

    /// The thread that waits, until it has received everything. `pauses` says what it does with the connection after each
    /// message that it has read itself.
    fn run_receiver(&self, total: usize, pauses: bool) {
        let parker = Arc::new(Parker::new(Sleep(self.kernel.clone())));
        let mut received = 0;
        loop {
            let ticket = self.waiters.ticket();
            received += self.inbox.swap(0, Relaxed);
            if received == total {
                break;
            }
            let loan = self.lending.resume().or_else(|| {
                let session = self.session.lock().unwrap();
                let loan = self.lending.lend(7)?;
                self.kernel.change(|known| known.watched = false);
                self.check(&session);
                Some(loan)
            });
            let Some(loan) = loan else {
                // The I/O thread reads, and tells.
                let sleep = |word: &AtomicU32, asleep| {
                    drop(self.kernel.sleep(|_| word.load(Relaxed) != asleep));
                    Continue::<()>(())
                };
                self.waiters.wait(&parker, ticket, On::Word, sleep);
                continue;
            };
            let sleep = |_: &AtomicU32, _| {
                let mut known = self.kernel.sleep(|known| known.bell || known.arrived > 0);
                known.bell = false;
                if known.arrived > 0 {
                    Break(())
                } else {
                    Continue(())
                }
            };
            self.waiters.wait(&parker, ticket, On::Descriptors, sleep);
            let mut session = self.session.lock().unwrap();
            if !self.lending.is_held(loan) {
                continue;
            }
            // Its own messages are no news: it reads next.
            self.read(&mut self.kernel.known.lock().unwrap());
            if pauses {
                if !session.guarded {
                    session.guarded = true;
                    // The I/O thread sets its timer.
                    self.kernel.change(|known| known.io_woken = true);
                }
                self.lending.change(Event::Pause);
                self.check(&session);
            } else {
                self.end_by(&mut session, Event::Return);
            }
        }
        let mut session = self.session.lock().unwrap();
        self.end_by(&mut session, Event::Revoke);
        self.kernel.change(|known| known.done = true);
    }
}

/// Every message is received, whichever thread reads it, while a third thread sends, waits for messages itself
/// (`Recall`), finds no room or closes (`Revoke`).
pub fn messages_are_received_by_either_reader(
    total: usize,
    pauses: bool,
    events: &'static [Event],
) {
    let kernel = Arc::new(Kernel::default());
    kernel.change(|known| known.watched = true);
    let connection = Arc::new(Connection {
        kernel,
        session: Mutex::new(Session { guarded: false }),
        lending: Lending::new(),
        inbox: AtomicUsize::new(0),
        waiters: Waiters::new(),
    });
    let io = connection.clone();
    let io = thread::spawn(move || io.run_io());
    let receiver = connection.clone();
    let receiver = thread::spawn(move || receiver.run_receiver(total, pauses));
    let mut events = events.iter().copied();
    for _ in 0..total {
        connection.kernel.change(|known| known.arrived += 1);
        if let Some(event) = events.next() {
            connection.end_by(&mut connection.session.lock().unwrap(), event);
        }
    }
    receiver.join().unwrap();
    io.join().unwrap();
    assert!(!connection.waiters.has_any());
}
