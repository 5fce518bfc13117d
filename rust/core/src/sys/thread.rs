//! Threads that receive no signals, with a name, a priority and a set of CPUs.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use rustix::thread::{CpuSet, sched_setaffinity};

use super::sync::thread::{self, JoinHandle};

/// The settings of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadSettings {
    /// Its name; the kernel shows the first 15 bytes.
    pub(crate) name: String,
    /// Real-time priority, or with an ordinary policy any value above 0 to run at the best niceness.
    pub(crate) priority: Option<i32>,
    /// One of the `SCHED_*` numbers.
    pub(crate) policy: Option<i32>,
    /// The CPUs on which it may run; empty leaves the affinity unchanged.
    pub(crate) cpus: Vec<usize>,
}

/// Starts a thread in which no signal handler ever runs, so that every signal goes to a thread of the program, and
/// interrupts its wait.
pub(crate) fn spawn(
    settings: ThreadSettings,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    // A thread inherits its creator's mask. Signals are blocked here, so that not even its first instructions are
    // exposed.
    let _masked = Masked::new();
    let name = settings.name.replace('\0', "");
    thread::Builder::new().name(name).spawn(move || {
        settle(&settings);
        body();
    })
}

/// Starts a thread with this name in which no signal handler ever runs, so that every signal goes to a thread of the
/// program.
///
/// # Errors
/// The system's error, if there can be no more threads.
pub fn spawn_without_signals(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let settings = ThreadSettings {
        name: name.to_owned(),
        priority: None,
        policy: None,
        cpus: Vec::new(),
    };
    spawn(settings, body)
}

/// Applies the settings to the calling thread, except its name, and blocks its signals. Settings that the system
/// refuses are skipped, because a thread with the wrong priority still does its work.
pub(crate) fn settle(settings: &ThreadSettings) {
    block_signals();
    if !settings.cpus.is_empty() {
        let _ = pin(&settings.cpus);
    }
    if settings.priority.is_some() || settings.policy.is_some() {
        let _ = schedule(settings.policy, settings.priority);
    }
}

/// Binds the calling thread to these CPUs.
fn pin(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

fn schedule(policy: Option<i32>, priority: Option<i32>) -> io::Result<()> {
    // SAFETY: takes no pointer; 0 means the calling thread.
    let policy = policy.unwrap_or_else(|| unsafe { libc::sched_getscheduler(0) });
    let real_time = policy == libc::SCHED_FIFO || policy == libc::SCHED_RR;
    let lowest = if real_time { 1 } else { 0 };
    // SAFETY: integers, for which zero is valid. musl has more fields than glibc, so they are not named.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = if real_time {
        priority.unwrap_or(lowest)
    } else {
        lowest
    };
    // SAFETY: the parameters are initialised and outlive the call; 0 means the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &parameters) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if !real_time && priority.is_some_and(|priority| priority > 0) {
        // Ordinary policies have no priority; the nearest equivalent is the best niceness.
        rustix::process::nice(-20)?;
    }
    Ok(())
}

/// Signals blocked in this thread until dropped.
struct Masked {
    before: libc::sigset_t,
}

impl Masked {
    fn new() -> Masked {
        Masked {
            before: block_signals(),
        }
    }
}

/// Blocks all signals in this thread, except those that report a fault of the thread itself: a blocked fault kills the
/// process without running its handler. Returns the previous mask.
fn block_signals() -> libc::sigset_t {
    let faults = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGABRT,
    ];
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises `all` before it is read, and pthread_sigmask initialises `before`; neither fails
    // with valid pointers and a valid first argument.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        for fault in faults {
            libc::sigdelset(all.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        // SAFETY: pthread_sigmask initialised `before`; with a null pointer, nothing is returned.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn blocked(signal: i32) -> bool {
        let mut mask = MaybeUninit::uninit();
        // SAFETY: only reads the mask, which initialises it.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), mask.as_mut_ptr());
            libc::sigismember(mask.as_ptr(), signal) == 1
        }
    }

    #[test]
    fn signals_are_blocked_there_and_not_here() {
        let (tell, told) = mpsc::channel();
        let settings = ThreadSettings {
            name: "nul\0here".into(),
            ..ThreadSettings::default()
        };
        spawn(settings, move || {
            let name = thread::current().name().map(str::to_owned);
            tell.send((blocked(libc::SIGINT), blocked(libc::SIGSEGV), name))
                .unwrap();
        })
        .unwrap()
        .join()
        .unwrap();
        assert_eq!(
            told.recv().unwrap(),
            (true, false, Some("nulhere".to_owned()))
        );
        assert!(!blocked(libc::SIGINT));
    }

    fn allowed_cpus() -> Vec<usize> {
        let set = rustix::thread::sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .collect()
    }

    #[test]
    fn applies_its_settings() {
        let cpu = allowed_cpus()[0];
        let (tell, told) = mpsc::channel();
        let settings = ThreadSettings {
            cpus: vec![cpu],
            ..ThreadSettings::default()
        };
        spawn(settings, move || tell.send(allowed_cpus()).unwrap())
            .unwrap()
            .join()
            .unwrap();
        assert_eq!(told.recv().unwrap(), [cpu]);
        assert!(pin(&[usize::MAX]).is_err());
    }

    #[test]
    fn a_refused_priority_does_not_stop_it() {
        let settings = ThreadSettings {
            priority: Some(-7),
            policy: Some(99),
            ..ThreadSettings::default()
        };
        spawn(settings, || {}).unwrap().join().unwrap();
    }
}
