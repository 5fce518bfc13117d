//! [`Resolver`]: turns host names into addresses without stopping anybody who has better things to do.
//!
//! The system's resolver blocks, for half a minute if it must. So a few threads of their own call it, started when the
//! first name comes and gone when none has come for a while. Whoever asks for a name that is being asked for already
//! gets the same answer: a thousand sockets behind one dead name server hold up one thread, not all.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::mem;
use std::net::{SocketAddr, ToSocketAddrs};
use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::options::ThreadSettings;
use crate::sys::thread;

/// How many names are looked up at a time.
const THREADS_MAX: usize = 8;
/// How many names may wait for a thread.
const QUEUE_MAX: usize = 1024;
/// How many askers may wait for an answer.
const ASKERS_MAX: usize = 65536;
/// How long a thread waits for another name before it leaves.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// A host name and the port that its addresses are to have.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A name to look up, and what to make of its addresses.
pub(crate) struct Job<T> {
    name: HostPort,
    convert: Box<dyn FnOnce(Vec<SocketAddr>) -> Result<T> + Send>,
}

/// See the module text. One per context; dropping it lets its threads go.
pub(crate) struct Resolver {
    shared: Arc<Shared>,
    pid: u32,
}

type Addresses = Result<Vec<SocketAddr>>;
type Answer = Box<dyn FnOnce(Addresses) + Send>;

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    look_up: fn(&HostPort) -> Addresses,
}

#[derive(Default)]
struct State {
    queue: VecDeque<HostPort>,
    /// Who waits for each name that is queued or being looked up.
    askers: HashMap<HostPort, Vec<Answer>>,
    asker_count: usize,
    threads: usize,
    idle: usize,
    closed: bool,
}

/// All addresses of a name, in the order in which the system would try them. Blocks.
///
/// # Errors
/// `HostUnreachable`, with the system's own words.
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
    /// `convert` runs once the addresses are known, where it may block.
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

    /// Looks a name up and calls `done` with what the job makes of it, once, from another thread and without any lock
    /// of the resolver. When the resolver is closed meanwhile, `done` is dropped instead.
    ///
    /// # Errors
    /// Too much is waiting already, there is no thread to be had, or the resolver is closed. `done` is not called then.
    pub(crate) fn submit<T: 'static>(
        &self,
        job: Job<T>,
        done: impl FnOnce(Result<T>) + Send + 'static,
    ) -> Result<()> {
        let Job { name, convert } = job;
        let answer: Answer = Box::new(move |addresses| done(addresses.and_then(convert)));
        let mut state = self.shared.lock();
        if state.closed {
            return Err(Error::new(ErrorKind::Terminated));
        }
        if state.asker_count >= ASKERS_MAX || state.queue.len() >= QUEUE_MAX {
            let text = "too many host names wait to be resolved";
            return Err(Error::with(ErrorKind::NoMemory, text));
        }
        if let Some(askers) = state.askers.get_mut(&name) {
            askers.push(answer);
            state.asker_count += 1;
            return Ok(());
        }
        if state.idle <= state.queue.len() && state.threads < THREADS_MAX {
            match self.start_thread(state.threads) {
                Ok(()) => state.threads += 1,
                // With a thread at work the name only has to wait.
                Err(error) if state.threads == 0 => return Err(error.into()),
                Err(_) => {}
            }
        }
        state.queue.push_back(name.clone());
        state.askers.insert(name, vec![answer]);
        state.asker_count += 1;
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }

    /// Forgets what is waiting and lets the threads go. One that is stuck in the system's resolver leaves when that
    /// returns; nobody waits for it.
    pub(crate) fn close(&self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.queue.clear();
        state.asker_count = 0;
        let forgotten = mem::take(&mut state.askers);
        drop(state);
        self.shared.work.notify_all();
        // After the lock: what an asker held may call back on its way out.
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
        // In a forked child the threads do not exist, and the lock may be held by one of them for ever.
        if self.pid == process::id() {
            self.close();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a thread.
    fn serve(&self) {
        while let Some(name) = self.next_name() {
            let addresses = (self.look_up)(&name);
            let askers = {
                let mut state = self.lock();
                let askers = state.askers.remove(&name).unwrap_or_default();
                state.asker_count = state.asker_count.saturating_sub(askers.len());
                askers
            };
            for answer in askers {
                // One asker's bug is not the others'.
                let _ = panic::catch_unwind(AssertUnwindSafe(|| answer(addresses.clone())));
            }
        }
    }

    /// The next name to look up; `None` when it is time to leave.
    fn next_name(&self) -> Option<HostPort> {
        let mut state = self.lock();
        let name = loop {
            if state.closed {
                break None;
            }
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

    fn job(host: &str) -> Job<Vec<SocketAddr>> {
        Job::new(
            HostPort {
                host: host.to_owned(),
                port: 5,
            },
            Ok,
        )
    }

    /// Slow for names that say so.
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
        resolver.submit(job("localhost"), done).unwrap();
        let addresses = told.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
        assert!(
            addresses
                .iter()
                .any(|address| address.ip().is_loopback() && address.port() == 5)
        );
    }

    #[test]
    fn a_name_that_is_none_says_so() {
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
                .submit(job("slow"), move |answer| {
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
                .submit(job(host), move |_| tell.send(host).unwrap())
                .unwrap();
        }
        assert_eq!(told.recv().unwrap(), "quick");
        assert!(start.elapsed() < Duration::from_millis(250));
        for index in 0..50 {
            resolver
                .submit(job(&format!("host{index}")), |_| {})
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
            .submit(job("slow"), |_| {
                panic!("an asker's bug, wanted by this test")
            })
            .unwrap();
        resolver
            .submit(job("slow"), move |_| tell.send(()).unwrap())
            .unwrap();
        told.recv().unwrap();
    }

    #[test]
    fn closing_waits_for_nobody() {
        let resolver = Resolver::with_look_up(|name| {
            std_thread::sleep(Duration::from_secs(2));
            pretend(name)
        });
        let (tell, told) = mpsc::channel::<()>();
        resolver.submit(job("stuck"), move |_| drop(tell)).unwrap();
        let start = Instant::now();
        resolver.close();
        assert!(told.recv().is_err(), "the asker was dropped, not called");
        let refused = resolver.submit(job("late"), |_| {}).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Terminated);
        drop(resolver);
        assert!(start.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn what_waits_is_bounded() {
        let resolver = Resolver::with_look_up(|name| {
            std_thread::sleep(Duration::from_millis(500));
            pretend(name)
        });
        let accepted = (0..2 * QUEUE_MAX)
            .map(|index| resolver.submit(job(&format!("host{index}")), |_| {}))
            .take_while(|submitted| submitted.is_ok())
            .count();
        assert!(
            (QUEUE_MAX..=QUEUE_MAX + THREADS_MAX).contains(&accepted),
            "{accepted}"
        );
    }
}
