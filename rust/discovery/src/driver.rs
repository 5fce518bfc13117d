//! Moves messages between the machines of a node and its sockets, in a thread.
//!
//! The thread keeps a node alive for its peers while the program does something else. Calls of the program run in its own
//! threads: they take the lock, change the machine, and send what it says, which never waits.

mod state;

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zeroxide::{Error, ErrorKind, Events, PollItem, Result, Wait, poll};

use crate::event::Event;
use crate::machine::Machine;
pub(crate) use state::{EVENTS_MAX, LINGER, Parts, State, Watcher};

/// How long `stop` waits for the thread, which only has to say goodbye.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sockets of a node, and the thread that serves them.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The state that the thread and the calls of the program share.
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Wakes the thread.
    nudge: UnixStream,
}

impl Driver {
    /// Starts the thread.
    pub(crate) fn start(machine: Machine, parts: Parts, name: &str) -> Result<Driver> {
        let (nudge, woken) = UnixStream::pair().map_err(|error| of_system(&error))?;
        for end in [&nudge, &woken] {
            end.set_nonblocking(true)
                .map_err(|error| of_system(&error))?;
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(machine, parts)),
            changed: Condvar::new(),
            nudge,
        });
        let served = shared.clone();
        let builder = thread::Builder::new().name(format!("node {name}").replace('\0', " "));
        let thread = builder.spawn(move || served.run(&woken));
        let thread = thread.map_err(|error| of_system(&error))?;
        let thread = Mutex::new(Some(thread));
        Ok(Driver { shared, thread })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Says goodbye, and waits until the sockets are closed.
    pub(crate) fn stop(&self) {
        let mut state = self.shared.lock();
        state.is_closing = true;
        self.shared.nudge();
        let changed = &self.shared.changed;
        while !state.is_closed {
            let (guard, waited) = changed
                .wait_timeout(state, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if waited.timed_out() {
                return; // a function of the program does not return
            }
        }
        drop(state);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Looks at the node, which works after its end, too.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    /// Calls a function with the machine, and carries out what the machine wants.
    pub(crate) fn call<T>(&self, function: impl FnOnce(&mut Machine) -> T) -> Result<T> {
        let mut state = self.lock();
        state.check()?;
        let result = function(&mut state.machine);
        let carried_out = state.carry_out();
        self.changed.notify_all();
        carried_out.map(|()| result)
    }

    /// Adds a watcher after calling a function with the machine, so that no event is missed between the two. Returns the
    /// number of the watcher.
    pub(crate) fn watch(&self, watcher: Watcher, begin: impl FnOnce(&Machine)) -> Result<u64> {
        let mut state = self.lock();
        state.check()?;
        begin(&state.machine);
        Ok(state.watch(watcher))
    }

    /// Removes a watcher.
    pub(crate) fn unwatch(&self, number: u64) {
        self.lock().unwatch(number);
    }

    /// Waits for the next event.
    pub(crate) fn recv(&self, wait: Wait) -> Result<Event> {
        let mut state = self.lock();
        loop {
            let was_stalled = state.is_stalled();
            if let Some(event) = state.take() {
                if was_stalled && !state.is_stalled() {
                    self.nudge();
                }
                return Ok(event);
            }
            state.check()?;
            state = self.wait(state, wait)?;
        }
    }

    /// Waits until a condition is true. Returns early with `Again` if the time is up.
    pub(crate) fn wait_for(&self, wait: Wait, condition: impl Fn(&Machine) -> bool) -> Result<()> {
        let mut state = self.lock();
        while !condition(&state.machine) {
            state.check()?;
            state = self.wait(state, wait)?;
        }
        Ok(())
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, wait: Wait) -> Result<MutexGuard<'a, State>> {
        let left = match wait {
            Wait::Dont => None,
            Wait::Until(end) => end.checked_duration_since(Instant::now()),
            Wait::Default | Wait::Forever => Some(Duration::MAX),
        };
        match left.filter(|left| !left.is_zero()) {
            None => Err(Error::with(ErrorKind::Again, "the node has no event")),
            Some(Duration::MAX) => Ok(self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner)),
            Some(left) => {
                let waited = self.changed.wait_timeout(state, left);
                Ok(waited.unwrap_or_else(PoisonError::into_inner).0)
            }
        }
    }

    /// A panic of a function of the program leaves the node as it was between two steps.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nudge(&self) {
        let _ = (&self.nudge).write(&[0]); // a full stream wakes the thread, too
    }

    fn run(&self, woken: &UnixStream) {
        let _end = End(self);
        let mut outcome = Ok(());
        while outcome.is_ok() && !self.lock().is_closing {
            outcome = self.step(woken);
        }
        let mut state = self.lock();
        match outcome {
            Ok(()) => state.say_goodbye(),
            Err(error) => state.error = Some(error),
        }
    }

    fn step(&self, woken: &UnixStream) -> Result<()> {
        let mut state = self.lock();
        state.carry_out()?;
        let due = state.due();
        let (sockets, beacon) = state.sources();
        drop(state);
        let mut items: Vec<PollItem<'_>> = sockets
            .iter()
            .map(|socket| PollItem::socket(socket, Events::READABLE))
            .collect();
        let descriptors = beacon.into_iter().chain([woken.as_raw_fd()]);
        items.extend(descriptors.map(|fd| PollItem::fd(fd, Events::READABLE)));
        match poll(&mut items, Some(due)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let mut buffer = [0; 64];
        while matches!((&*woken).read(&mut buffer), Ok(length) if length > 0) {}
        let mut state = self.lock();
        let taken = state.take_everything();
        self.changed.notify_all();
        taken
    }
}

/// Ends the node with its thread, also if a function of the program panicked there.
struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if thread::panicking() {
            let text = "a function that the node called has panicked";
            state.error = Some(Error::with(ErrorKind::Fault, text));
        }
        state.end();
        self.0.changed.notify_all();
    }
}

/// An error of the system, as one of this crate.
pub(crate) fn of_system(error: &std::io::Error) -> Error {
    let kind = error
        .raw_os_error()
        .map_or(ErrorKind::Invalid, ErrorKind::from_errno);
    Error::with(kind, error.to_string())
}
