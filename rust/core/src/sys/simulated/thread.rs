//! Threads that the scheduler runs, with the interface of `std::thread`. Counted, so that the kernel thread ends last.

use std::io;
use std::time::Duration;

pub use shuttle::thread::{JoinHandle, ThreadId, current};

use super::{Awaits, WORLD, now, rest};

/// As in the standard library.
pub(crate) struct Builder {
    name: String,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            name: String::new(),
        }
    }

    pub(crate) fn name(self, name: String) -> Builder {
        Builder { name }
    }

    pub(crate) fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        WORLD.with_borrow_mut(|world| world.threads += 1);
        let counted = move || {
            let result = body();
            WORLD.with_borrow_mut(|world| world.threads -= 1);
            result
        };
        shuttle::thread::Builder::new()
            .name(self.name)
            .spawn(counted)
    }
}

/// Starts a thread of a scenario.
///
/// # Panics
/// Never: there is no limit.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let builder = Builder::new().name(name.to_owned());
    builder.spawn(body).expect("coroutines have no limit")
}

/// Sleeps for this time of the simulated clock.
pub fn sleep(time: Duration) {
    rest(Awaits::Time, Some(now() + time));
}
