//! Threads that other code ends in the middle of a call.
//!
//! An interpreter that shuts down may end any other thread that wants to continue in it, with `pthread_exit`. That
//! unwinds the thread's stack through the frames of this library, which stop all unwinding at their boundary, and the
//! system then aborts the process. Such a thread therefore does not unwind: it sleeps until the process ends.

#[cfg(target_env = "gnu")]
use glibc::prepare;
use std::cell::Cell;
use std::sync::OnceLock;

thread_local! {
    static IS_PREPARED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a thread that is being ended must sleep instead, for the rest of the process.
static IS_OVER: OnceLock<fn() -> bool> = OnceLock::new();

/// From now on, a thread that was [prepared](prepare_for_exit) and is ended while `is_over` returns true sleeps
/// instead. Only the first function that is set counts.
pub fn sleep_instead_of_exit(is_over: fn() -> bool) {
    let _ = IS_OVER.set(is_over);
}

/// Prepares the calling thread to sleep instead of being ended.
#[inline]
pub fn prepare_for_exit() {
    IS_PREPARED.with(|is_prepared| {
        if !is_prepared.get() {
            is_prepared.set(true);
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

    /// The structure that glibc runs before unwinding past it: `struct _pthread_cleanup_buffer`.
    #[repr(C)]
    struct Cleanup {
        routine: extern "C" fn(*mut c_void),
        argument: *mut c_void,
        cancel_type: c_int,
        previous: *mut Cleanup,
    }

    thread_local! {
        /// Dropped with the thread, when nothing can end it any more.
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
            // SAFETY: the buffer has glibc's layout, does not move, and lives until the thread's local values are
            // dropped, which happens after its stack was left or unwound, when glibc does not access it any more.
            // Because it is not on the stack, glibc treats it as left by the first frame that is unwound.
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
        // SAFETY: the sender was leaked for this thread.
        let tell = unsafe { &*tell.cast::<mpsc::Sender<&'static str>>() };
        prepare_for_exit();
        prepare_for_exit();
        tell.send("ends").unwrap();
        // SAFETY: no frame of this thread has anything to drop, and the frames are not unwound.
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
        // SAFETY: the thread is joinable, and joined nowhere else.
        let joined = unsafe { libc::pthread_tryjoin_np(thread, ptr::null_mut()) };
        assert_eq!(joined, libc::EBUSY);
    }
}
