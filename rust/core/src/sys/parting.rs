//! Threads that somebody else ends in the middle of a call.
//!
//! An interpreter that goes down may end any other thread that wants to go on in it, with `pthread_exit`. That unwinds the
//! thread's stack through the frames of this library, which stop every unwinding at their edge, and the system then aborts
//! the process. So such a thread does not get to unwind anything: it sleeps until the process is gone.

#[cfg(target_env = "gnu")]
use glibc::prepare;
use std::cell::Cell;
use std::sync::OnceLock;

thread_local! {
    static IS_PREPARED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a thread that is being ended now shall sleep instead, for as long as the process lives.
static IS_OVER: OnceLock<fn() -> bool> = OnceLock::new();

/// From now on, a thread that was [prepared](prepare_for_exit) and is ended while `is_over` says so sleeps instead. The
/// first one to be given counts.
pub fn sleep_instead_of_exit(is_over: fn() -> bool) {
    let _ = IS_OVER.set(is_over);
}

/// Makes the calling thread one that may sleep instead of being ended.
#[inline]
pub fn prepare_for_exit() {
    IS_PREPARED.with(|is_prepared| {
        if !is_prepared.replace(true) {
            prepare();
        }
    });
}

/// With other C libraries, ending a thread unwinds nothing.
#[cfg(not(target_env = "gnu"))]
fn prepare() {}

#[cfg(target_env = "gnu")]
mod glibc {
    use super::IS_OVER;
    use std::cell::RefCell;
    use std::ffi::{c_int, c_void};
    use std::ptr;

    /// What glibc runs before a thread unwinds past it: `struct _pthread_cleanup_buffer`.
    #[repr(C)]
    struct Cleanup {
        routine: extern "C" fn(*mut c_void),
        argument: *mut c_void,
        cancel_type: c_int,
        previous: *mut Cleanup,
    }

    thread_local! {
        /// Gone with the thread, when nothing can end it any more.
        static CLEANUP: RefCell<Option<Box<Cleanup>>> = const { RefCell::new(None) };
    }

    #[cold]
    pub fn prepare() {
        unsafe extern "C" {
            fn _pthread_cleanup_push(
                buffer: *mut Cleanup,
                routine: extern "C" fn(*mut c_void),
                argument: *mut c_void,
            );
        }
        CLEANUP.with_borrow_mut(|cleanup| {
            let buffer = cleanup.insert(Box::new(Cleanup {
                routine: sleep,
                argument: ptr::null_mut(),
                cancel_type: 0,
                previous: ptr::null_mut(),
            }));
            // SAFETY: The buffer has glibc's layout, stays where it is, and lives until the thread's own values go, which is
            // after its stack was left or unwound: nobody looks at it any more then. Not being on the stack, it counts as left
            // by whichever frame is unwound first.
            unsafe { _pthread_cleanup_push(&raw mut **buffer, sleep, ptr::null_mut()) };
        });
    }

    extern "C" fn sleep(_: *mut c_void) {
        while IS_OVER.get().is_some_and(|is_over| is_over()) {
            std::thread::park();
        }
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;
    use std::ffi::c_void;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    static OVER: AtomicBool = AtomicBool::new(true);

    extern "C" fn ended(tell: *mut c_void) -> *mut c_void {
        // SAFETY: The sender was leaked for this thread.
        let tell = unsafe { &*tell.cast::<mpsc::Sender<&'static str>>() };
        prepare_for_exit();
        prepare_for_exit();
        tell.send("ends").unwrap();
        // SAFETY: There is nothing to drop in any frame of this thread; and it does not get to unwind them.
        unsafe { libc::pthread_exit(ptr::null_mut()) }
    }

    #[test]
    fn a_thread_that_is_ended_at_the_end_sleeps() {
        sleep_instead_of_exit(|| OVER.load(Ordering::Relaxed));
        let (tell, told) = mpsc::channel();
        let tell = Box::into_raw(Box::new(tell));
        let mut thread = 0;
        // SAFETY: `thread` is written before the call returns, and the argument is never freed.
        let made = unsafe {
            libc::pthread_create(&raw mut thread, ptr::null(), ended, tell.cast::<c_void>())
        };
        assert_eq!(made, 0);
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok("ends"));
        // SAFETY: The thread is joinable, and joined nowhere else.
        let joined = unsafe { libc::pthread_tryjoin_np(thread, ptr::null_mut()) };
        assert_eq!(joined, libc::EBUSY);
    }
}
