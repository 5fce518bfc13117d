//! The limits within which inputs run: memory, the stack, and panics.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

use crate::Target;
use crate::instruments;

/// The stack on which targets run. Recursion on the length of an input overflows it.
pub const STACK: usize = 128 << 10;

/// The memory that an input of no bytes may take.
const ALLOWANCE: usize = 64 << 10;
/// The memory that a byte of an input may take.
const FACTOR: usize = 4;

/// The memory of buffers for reading files, whose size does not depend on what the files hold.
const BUFFERS: usize = 4 << 20;

/// Does the work on `bytes` bytes of input. Panics if it has more than four times as many bytes of memory in use at once,
/// in addition to 64 KiB.
pub fn bounded<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    within(bytes * FACTOR + ALLOWANCE, bytes, work)
}

/// The same for input in files, which are read through buffers.
pub fn bounded_files<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    within(bytes * FACTOR + BUFFERS, bytes, work)
}

fn within<T>(allowed: usize, bytes: usize, work: impl FnOnce() -> T) -> T {
    let before = instruments::start_measuring();
    let result = work();
    let peak = instruments::peak().saturating_sub(before);
    assert!(
        peak <= allowed,
        "{bytes} bytes of input took {peak} bytes of memory, and {allowed} are allowed"
    );
    result
}

/// Runs `work` on a small stack, and returns what it returns.
pub fn on_small_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("fuzz".to_owned())
            .stack_size(STACK);
        let thread = thread.spawn_scoped(scope, work).expect("a thread");
        match thread.join() {
            Ok(result) => result,
            Err(panic) => panic::resume_unwind(panic),
        }
    })
}

thread_local! {
    /// The first panic since the last input began, with its place in the source.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Feeds an input to a target.
///
/// # Errors
/// The text of the first panic and its place in the source, also of a panic that was caught.
pub fn run(target: &Target, input: &[u8]) -> Result<(), String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        panic::set_hook(Box::new(|info| {
            PANIC.with_borrow_mut(|first| first.get_or_insert_with(|| info.to_string()).len());
        }));
    });
    PANIC.take();
    let _ = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    match PANIC.take() {
        None => Ok(()),
        Some(text) => Err(text),
    }
}
