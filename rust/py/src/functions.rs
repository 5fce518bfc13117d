//! Functions of the module that belong to no class.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;
use zeroxide::{CONTEXT_OPTIONS, ErrorKind, Kind, SOCKET_OPTIONS};

use crate::alarm;
use crate::error::last_errno;
use crate::reclaimer;

/// How often this process is a forked child: sockets made before the last fork are not its own.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The number of forks that lie between the first process and this one.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// To be called in the child after a fork.
#[pyfunction]
pub(crate) fn after_fork(py: Python<'_>) {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    alarm::forget(py);
    reclaimer::forget();
}

#[doc = text!(strerror)]
#[pyfunction]
pub(crate) fn strerror(errno: i32) -> String {
    ErrorKind::from_errno(errno).message().into_owned()
}

#[doc = text!(zmq_errno)]
#[pyfunction]
pub(crate) fn zmq_errno() -> i32 {
    last_errno()
}

#[doc = text!(has)]
#[pyfunction]
pub(crate) fn has(capability: &str) -> bool {
    matches!(capability, "ipc" | "curve" | "plain")
}

/// Name, number, type, readable, writable.
type Row = (String, i32, &'static str, bool, bool);

/// The socket options the core knows.
#[pyfunction]
pub(crate) fn socket_options() -> Vec<Row> {
    let row = |row: &zeroxide::OptionRow| {
        (
            row.name.to_owned(),
            row.id,
            kind(row.kind),
            row.readable,
            row.writable,
        )
    };
    SOCKET_OPTIONS.iter().map(row).collect()
}

#[doc = text!(own_addresses)]
#[pyfunction]
pub(crate) fn own_addresses() -> PyResult<Vec<String>> {
    let all = zeroxide::own_addresses()?;
    Ok(all.iter().map(ToString::to_string).collect())
}

/// The context options the core knows.
#[pyfunction]
pub(crate) fn context_options() -> Vec<Row> {
    let row = |row: &zeroxide::ContextRow| {
        (
            row.name.to_owned(),
            row.id,
            "int",
            row.readable,
            row.writable,
        )
    };
    CONTEXT_OPTIONS.iter().map(row).collect()
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Int | Kind::Bool => "int",
        Kind::Int64 | Kind::Uint64 => "int64",
        Kind::Bytes | Kind::Str => "bytes",
        Kind::Fd => "fd",
    }
}
