//! Calls that must end in time, also where the machine itself is late.

use std::collections::BTreeMap;
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the thread that looks after the calls sleeps.
const STEP: Duration = Duration::from_millis(1);

/// Ends the process, and says which call it was, if a call takes longer than it may.
pub struct Deadlines {
    callers: Arc<Vec<Mutex<Caller>>>,
    allowed: Duration,
    forgives: bool,
    _alive: Sender<()>,
}

#[derive(Default)]
struct Caller {
    running: Option<Call>,
    longest: BTreeMap<&'static str, Duration>,
}

struct Call {
    what: &'static str,
    start: Instant,
    limit: Duration,
    /// How long a plain thread waited for a processor since the start.
    late: Duration,
}

impl Deadlines {
    /// Calls of threads with the numbers from 0 to `callers` end at most `allowed` after their own limits. With `forgives`,
    /// the time does not count in which this machine does not let a plain thread run that wants to.
    pub fn new(callers: usize, allowed: Duration, forgives: bool) -> Deadlines {
        let (alive, listen) = mpsc::channel::<()>();
        let callers: Arc<Vec<_>> = Arc::new((0..callers).map(|_| Mutex::default()).collect());
        let watched = callers.clone();
        thread::spawn(move || {
            let mut before = Instant::now();
            while listen.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
                let now = Instant::now();
                let late = (now - before).saturating_sub(STEP);
                before = now;
                for caller in &*watched {
                    if let Some(call) = &mut lock(caller).running {
                        call.late += late.min(now.saturating_duration_since(call.start));
                        call.check(now, allowed, forgives);
                    }
                }
            }
        });
        Deadlines {
            callers,
            allowed,
            forgives,
            _alive: alive,
        }
    }

    /// Makes a call, which has a limit of its own.
    pub fn call<T>(
        &self,
        caller: usize,
        what: &'static str,
        limit: Duration,
        work: impl FnOnce() -> T,
    ) -> T {
        lock(&self.callers[caller]).running = Some(Call {
            what,
            start: Instant::now(),
            limit,
            late: Duration::ZERO,
        });
        let result = work();
        let now = Instant::now();
        let mut caller = lock(&self.callers[caller]);
        let call = caller.running.take().unwrap();
        call.check(now, self.allowed, self.forgives);
        let longest = caller.longest.entry(what).or_default();
        *longest = (*longest).max(call.beyond(now));
        result
    }

    /// How long the calls of each kind have taken beyond their limits, at most.
    pub fn longest(&self) -> BTreeMap<&'static str, Duration> {
        let mut all = BTreeMap::new();
        for caller in &*self.callers {
            for (what, beyond) in &lock(caller).longest {
                let longest: &mut Duration = all.entry(*what).or_default();
                *longest = (*longest).max(*beyond);
            }
        }
        all
    }
}

impl Call {
    fn beyond(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.start + self.limit)
    }

    fn check(&self, now: Instant, allowed: Duration, forgives: bool) {
        let (beyond, late) = (self.beyond(now), self.late);
        let forgiven = if forgives { late } else { Duration::ZERO };
        if beyond > allowed + forgiven {
            let what = self.what;
            eprintln!(
                "{what} takes {beyond:?} longer than its limit, of which a plain thread waited {late:?}"
            );
            super::print_threads();
            // The call may never end, so the test cannot return an error.
            process::abort();
        }
    }
}

fn lock(caller: &Mutex<Caller>) -> MutexGuard<'_, Caller> {
    caller.lock().unwrap_or_else(PoisonError::into_inner)
}
