//! [`generation`]: tells a forked child from its parent, without asking the kernel each time.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between this process and the first one that asked. A descriptor of another
/// generation may be shared with the parent.
#[inline]
pub(crate) fn generation() -> u32 {
    static ASKED: Once = Once::new();
    ASKED.call_once(|| {
        // SAFETY: `count` may run in a child in which other threads held locks, because it only adds to a number. It
        // is never unloaded, because Python does not unload extension modules.
        let result = unsafe { libc::pthread_atfork(None, None, Some(count)) };
        // Fails only without memory, as any allocation would.
        assert_eq!(result, 0, "the system can note a function");
    });
    FORKS.load(Ordering::Relaxed)
}

extern "C" fn count() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_of_another_generation() {
        let ours = generation();
        // SAFETY: the child only compares two numbers and ends.
        match unsafe { libc::fork() } {
            0 => {
                let is_other = generation() != ours;
                // SAFETY: ends the process at once.
                unsafe { libc::_exit(i32::from(is_other)) }
            }
            child => {
                let mut status = 0;
                // SAFETY: `status` is a valid place for the result.
                let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert_eq!((ended, libc::WEXITSTATUS(status)), (child, 1));
                assert_eq!(generation(), ours);
            }
        }
    }
}
