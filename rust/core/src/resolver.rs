//! [`Resolver`]: turns host names into addresses without blocking its callers.
//!
//! The system's resolver blocks, for half a minute in the worst case. So a few separate threads call it, which are
//! started with the first name and end when there has been none for a while. Concurrent requests for one name share an
//! answer, so a thousand sockets that depend on one dead name server block one thread, and not all. A name that waits for
//! a thread is dropped when all its callers have gone.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::mem;
use std::net::{SocketAddr, ToSocketAddrs};
use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::sys::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use crate::sys::thread::{self, ThreadSettings};

/// The maximum number of concurrent lookups.
const THREADS_MAX: usize = 8;
/// The maximum number of names that wait for a thread.
const QUEUE_MAX: usize = 1024;
/// The maximum number of callers that wait for an answer.
const ASKERS_MAX: usize = 65536;
/// The time that a thread waits for another name before it ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// A host name, and the port for its addresses.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A name to look up, and the conversion of its addresses.
pub(crate) struct Job<T> {
    name: HostPort,
    convert: Box<dyn FnOnce(Vec<SocketAddr>) -> Result<T> + Send>,
}

/// See the module text. One per context; dropping it ends its threads.
pub(crate) struct Resolver {
    shared: Arc<Shared>,
    pid: u32,
}

type Addresses = Result<Vec<SocketAddr>>;

/// A caller that waits for an answer.
struct Asker {
    is_waiting: Box<dyn Fn() -> bool + Send>,
    answer: Box<dyn FnOnce(Addresses) + Send>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    look_up: fn(&HostPort) -> Addresses,
}

#[derive(Default)]
struct State {
    queue: VecDeque<HostPort>,
    /// The callers that wait for each name that is queued or being looked up.
    askers: HashMap<HostPort, Vec<Asker>>,
    asker_count: usize,
    threads: usize,
    idle: usize,
    service: Service,
}

impl State {
    /// Takes out the names for which no caller waits any more. Their callers are dropped after the lock is released.
    fn take_abandoned(&mut self) -> Vec<Asker> {
        let mut abandoned = Vec::new();
        let askers = &mut self.askers;
        self.queue.retain(|name| {
            let waits = |asker: &Asker| (asker.is_waiting)();
            let is_wanted = askers.get(name).is_some_and(|all| all.iter().any(waits));
            if !is_wanted {
                abandoned.extend(askers.remove(name).unwrap_or_default());
            }
            is_wanted
        });
        self.asker_count = self.asker_count.saturating_sub(abandoned.len());
        abandoned
    }
}

/// Whether names are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Service {
    /// They are, and threads start when they are needed.
    #[default]
    Open,
    /// They are not. Threads end once they return from the system's resolver.
    Closed,
}

/// What changes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ServiceEvent {
    /// The context ends.
    Close,
}

impl Service {
    /// A closed resolver stays closed.
    fn next(self, event: ServiceEvent) -> Service {
        match event {
            ServiceEvent::Close => Service::Closed,
        }
    }
}

/// All addresses of a name, in the order in which the system would try them. Blocks.
///
/// # Errors
/// `HostUnreachable`, with the system's text.
pub(crate) fn look_up(name: &HostPort) -> Addresses {
    let found = (name.host.as_str(), name.port).to_socket_addrs();
    let why = match found {
        Ok(addresses) => {
            let addresses: Vec<_> = addresses.collect();
            if !addresses.is_empty() {
                return Ok(addresses);
            }
            "it has no address".to_owned()
        }
        Err(error) => error.to_string(),
    };
    let text = format!("cannot resolve '{}': {why}", name.host);
    Err(Error::with(ErrorKind::HostUnreachable, text))
}

impl<T> Job<T> {
    /// `convert` is called once the addresses are known, on a thread where it may block.
    pub(crate) fn new(
        name: HostPort,
        convert: impl FnOnce(Vec<SocketAddr>) -> Result<T> + Send + 'static,
    ) -> Job<T> {
        Job {
            name,
            convert: Box::new(convert),
        }
    }
}

impl<T> fmt::Debug for Job<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({}:{})", self.name.host, self.name.port)
    }
}

impl Resolver {
    /// A resolver without threads yet.
    pub(crate) fn new() -> Resolver {
        Resolver::with_look_up(look_up)
    }

    fn with_look_up(look_up: fn(&HostPort) -> Addresses) -> Resolver {
        let shared = Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            look_up,
        };
        Resolver {
            shared: Arc::new(shared),
            pid: process::id(),
        }
    }

    /// Looks a name up and calls `done` with the job's result, once, from another thread and without any lock of the
    /// resolver. If the resolver is closed meanwhile, `done` is dropped instead. It is also dropped if the name is still
    /// queued when no caller waits for it any more. `is_waiting` says whether this one does, and is called with the lock.
    ///
    /// # Errors
    /// Too much is waiting already, no thread can be created, or the resolver is closed. `done` is not called then.
    pub(crate) fn submit<T: 'static>(
        &self,
        job: Job<T>,
        is_waiting: impl Fn() -> bool + Send + 'static,
        done: impl FnOnce(Result<T>) + Send + 'static,
    ) -> Result<()> {
        let Job { name, convert } = job;
        let asker = Asker {
            is_waiting: Box::new(is_waiting),
            answer: Box::new(move |addresses| done(addresses.and_then(convert))),
        };
        let mut abandoned = Vec::new();
        let mut state = self.shared.lock();
        if state.service == Service::Closed {
            return Err(Error::new(ErrorKind::Terminated));
        }
        if state.queue.len() >= QUEUE_MAX {
            abandoned.append(&mut state.take_abandoned());
        }
        if state.asker_count >= ASKERS_MAX || state.queue.len() >= QUEUE_MAX {
            let text = "too many host names wait to be resolved";
            return Err(Error::with(ErrorKind::NoMemory, text));
        }
        if let Some(askers) = state.askers.get_mut(&name) {
            askers.push(asker);
            state.asker_count += 1;
            return Ok(());
        }
        if state.idle <= state.queue.len() && state.threads < THREADS_MAX {
            match self.start_thread(state.threads) {
                Ok(()) => state.threads += 1,
                // If a thread is running, the name only has to wait.
                Err(error) if state.threads == 0 => return Err(error.into()),
                Err(_) => {}
            }
        }
        state.queue.push_back(name.clone());
        state.askers.insert(name, vec![asker]);
        state.asker_count += 1;
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }

    /// Discards waiting names and ends the threads. A thread that is blocked in the system's resolver ends when that
    /// returns; this function does not wait for it.
    pub(crate) fn close(&self) {
        let mut state = self.shared.lock();
        state.service = state.service.next(ServiceEvent::Close);
        state.queue.clear();
        state.asker_count = 0;
        let forgotten = mem::take(&mut state.askers);
        drop(state);
        self.shared.work.notify_all();
        // After the lock is released, because dropping a caller's closure may call back.
        drop(forgotten);
    }

    fn start_thread(&self, index: usize) -> io::Result<()> {
        let settings = ThreadSettings {
            name: format!("ZMQbg/DNS/{index}"),
            ..ThreadSettings::default()
        };
        let shared = self.shared.clone();
        thread::spawn(settings, move || shared.serve())?;
        Ok(())
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        // In a forked child the threads do not exist, and one of them may hold the lock forever.
        if self.pid == process::id() {
            self.close();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The main function of a thread.
    fn serve(&self) {
        while let Some(name) = self.next_name() {
            let addresses = (self.look_up)(&name);
            let askers = {
                let mut state = self.lock();
                let askers = state.askers.remove(&name).unwrap_or_default();
                state.asker_count = state.asker_count.saturating_sub(askers.len());
                askers
            };
            for asker in askers {
                // A panic of one caller's closure must not affect the others.
                let answer = || (asker.answer)(addresses.clone());
                let _ = panic::catch_unwind(AssertUnwindSafe(answer));
            }
        }
    }

    /// The next name to look up; `None` if the thread should end.
    fn next_name(&self) -> Option<HostPort> {
        let mut abandoned = Vec::new();
        let mut state = self.lock();
        let name = loop {
            if state.service == Service::Closed {
                break None;
            }
            abandoned.append(&mut state.take_abandoned());
            if let Some(name) = state.queue.pop_front() {
                break Some(name);
            }
            state.idle += 1;
            let waited = self
                .work
                .wait_timeout(state, IDLE_MAX)
                .unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            state.idle -= 1;
            if waited.1.timed_out() && state.queue.is_empty() {
                break None;
            }
        };
        if name.is_none() {
            state.threads -= 1;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread as std_thread;
    use std::time::Instant;

    use super::*;
    use crate::drawing;

    drawing::events!(ServiceEvent {
        Close => "the context is dropped",
    });

    #[test]
    fn the_page_shows_the_resolver() {
        let name = |service: Service| format!("`{service:?}`");
        let starts = [Service::Open];
        drawing::check("resolver", &starts, EVENTS, Service::next, name, event_name);
    }

    fn job(host: &str) -> Job<Vec<SocketAddr>> {
        Job::new(
            HostPort {
                host: host.to_owned(),
                port: 5,
            },
            Ok,
        )
    }

    fn always() -> bool {
        true
    }

    /// Delays names that ask for it.
    fn pretend(name: &HostPort) -> Addresses {
        if name.host.starts_with("slow") {
            std_thread::sleep(Duration::from_millis(300));
        }
        Ok(vec![SocketAddr::from(([10, 0, 0, 1], name.port))])
    }

    #[test]
    fn localhost_resolves_off_this_thread() {
        let resolver = Resolver::new();
        let (tell, told) = mpsc::channel();
        let here = std_thread::current().id();
        let done = move |answer: Result<Vec<SocketAddr>>| {
            assert_ne!(std_thread::current().id(), here);
            tell.send(answer).unwrap();
        };
        resolver.submit(job("localhost"), always, done).unwrap();
        let addresses = told.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
        assert!(
            addresses
                .iter()
                .any(|address| address.ip().is_loopback() && address.port() == 5)
        );
    }

    #[test]
    fn an_invalid_name_is_refused() {
        let name = HostPort {
            host: "no..such".to_owned(),
            port: 1,
        };
        let error = look_up(&name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HostUnreachable);
        assert!(error.to_string().contains("'no..such'"), "{error}");
    }

    #[test]
    fn the_same_name_is_looked_up_once() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let resolver = Resolver::with_look_up(|name| {
            CALLS.fetch_add(1, Ordering::Relaxed);
            pretend(name)
        });
        let (tell, told) = mpsc::channel();
        for _ in 0..100 {
            let tell = tell.clone();
            resolver
                .submit(job("slow"), always, move |answer| {
                    tell.send(answer.is_ok()).unwrap()
                })
                .unwrap();
        }
        drop(tell);
        assert_eq!(told.iter().filter(|ok| *ok).count(), 100);
        assert_eq!(CALLS.load(Ordering::Relaxed), 1);
        assert_eq!(resolver.shared.lock().asker_count, 0);
    }

    #[test]
    fn a_slow_name_holds_no_other_up_and_threads_are_few() {
        let resolver = Resolver::with_look_up(pretend);
        let (tell, told) = mpsc::channel();
        let start = Instant::now();
        for host in ["slow", "quick"] {
            let tell = tell.clone();
            resolver
                .submit(job(host), always, move |_| tell.send(host).unwrap())
                .unwrap();
        }
        assert_eq!(told.recv().unwrap(), "quick");
        assert!(start.elapsed() < Duration::from_millis(250));
        for index in 0..50 {
            resolver
                .submit(job(&format!("host{index}")), always, |_| {})
                .unwrap();
        }
        assert!(resolver.shared.lock().threads <= THREADS_MAX);
        assert_eq!(told.recv().unwrap(), "slow");
    }

    #[test]
    fn a_panicking_asker_is_alone() {
        let resolver = Resolver::with_look_up(pretend);
        let (tell, told) = mpsc::channel();
        resolver
            .submit(job("slow"), always, |_| {
                panic!("an asker's bug, wanted by this test")
            })
            .unwrap();
        resolver
            .submit(job("slow"), always, move |_| tell.send(()).unwrap())
            .unwrap();
        told.recv().unwrap();
    }

    #[test]
    fn closing_does_not_wait() {
        let resolver = Resolver::with_look_up(|name| {
            std_thread::sleep(Duration::from_secs(2));
            pretend(name)
        });
        let (tell, told) = mpsc::channel::<()>();
        resolver
            .submit(job("stuck"), always, move |_| drop(tell))
            .unwrap();
        let start = Instant::now();
        resolver.close();
        assert!(told.recv().is_err(), "the asker was dropped, not called");
        let refused = resolver.submit(job("late"), always, |_| {}).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Terminated);
        drop(resolver);
        assert!(start.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn waiting_names_are_bounded() {
        let resolver = Resolver::with_look_up(|name| {
            std_thread::sleep(Duration::from_millis(500));
            pretend(name)
        });
        let accepted = (0..2 * QUEUE_MAX)
            .map(|index| resolver.submit(job(&format!("host{index}")), always, |_| {}))
            .take_while(|submitted| submitted.is_ok())
            .count();
        assert!(
            (QUEUE_MAX..=QUEUE_MAX + THREADS_MAX).contains(&accepted),
            "{accepted}"
        );
    }

    #[test]
    fn names_of_callers_that_have_gone_are_not_looked_up_and_take_no_place() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        static GATE: Mutex<()> = Mutex::new(());
        let gate = GATE.lock().unwrap();
        let resolver = Resolver::with_look_up(|name| {
            CALLS.fetch_add(1, Ordering::Relaxed);
            drop(GATE.lock().unwrap());
            pretend(name)
        });
        let caller = Arc::new(());
        let submit = |index: usize| {
            let caller = Arc::downgrade(&caller);
            let is_waiting = move || caller.strong_count() > 0;
            resolver.submit(job(&format!("gone{index}")), is_waiting, |_| {})
        };
        let mut names = 0..;
        // Every thread is in a look-up, and the queue is full.
        while names
            .by_ref()
            .map(&submit)
            .any(|submitted| submitted.is_err())
            && CALLS.load(Ordering::Relaxed) < THREADS_MAX
        {
            std_thread::yield_now();
        }
        assert!(
            names
                .by_ref()
                .map(&submit)
                .any(|submitted| submitted.is_err())
        );
        drop(caller);
        let (tell, told) = mpsc::channel();
        resolver
            .submit(job("here"), always, move |_| tell.send(()).unwrap())
            .unwrap();
        assert_eq!(resolver.shared.lock().queue.len(), 1);
        assert_eq!(resolver.shared.lock().asker_count, 1 + THREADS_MAX);
        drop(gate);
        told.recv().unwrap();
        assert_eq!(CALLS.load(Ordering::Relaxed), 1 + THREADS_MAX);
    }
}
