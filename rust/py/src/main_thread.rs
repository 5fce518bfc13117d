//! Tells Python's main thread from the others.

use std::cell::Cell;

use pyo3::prelude::*;

use crate::fork::generation;

/// Whether this is the main thread of the process.
pub(crate) fn is_current(py: Python<'_>) -> PyResult<bool> {
    thread_local! {
        /// Whether this is the main thread, and of which process: in a forked child, the thread that forked is the main
        /// thread.
        static MAIN: Cell<Option<(u32, bool)>> = const { Cell::new(None) };
    }
    let generation = generation();
    if let Some((known_in, main)) = MAIN.get()
        && known_in == generation
    {
        return Ok(main);
    }
    let threading = py.import("threading")?;
    let me: u64 = threading.call_method0("get_ident")?.extract()?;
    let main: u64 = threading
        .call_method0("main_thread")?
        .getattr("ident")?
        .extract()?;
    MAIN.set(Some((generation, me == main)));
    Ok(me == main)
}
