//! Module functions that belong to no class.

use pyo3::prelude::*;
use zeroxide::{CONTEXT_OPTIONS, ErrorKind, OptionKind, SOCKET_OPTIONS};

use crate::arguments;
use crate::error::last_errno;

#[doc = text!(strerror)]
#[pyfunction]
pub(crate) fn strerror(#[pyo3(from_py_with = arguments::errno)] errno: i32) -> String {
    ErrorKind::from_errno(errno).message().into_owned()
}

#[doc = text!(zmq_errno)]
#[pyfunction]
pub(crate) fn zmq_errno() -> i32 {
    last_errno()
}

#[doc = text!(has)]
#[pyfunction]
pub(crate) fn has(#[pyo3(from_py_with = arguments::capability)] capability: String) -> bool {
    zeroxide::has(&capability)
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
    let all = zeroxide::binding::own_addresses()?;
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

/// Name, allowed values, the socket types that have it (none = all), sentence.
type Text = (&'static str, String, Vec<&'static str>, &'static str);

/// The descriptions of all socket options in the core's table.
#[pyfunction]
pub(crate) fn socket_option_texts() -> Vec<Text> {
    let text = |row: &zeroxide::OptionRow| {
        let sockets = row.sockets().iter().map(|socket| socket.name()).collect();
        (row.name, format!("{:?}", row.kind), sockets, row.doc)
    };
    SOCKET_OPTIONS.iter().map(text).collect()
}

/// The same for the options of contexts; each takes a number.
#[pyfunction]
pub(crate) fn context_option_texts() -> Vec<Text> {
    let text = |row: &zeroxide::ContextRow| (row.name, "Int".to_owned(), Vec::new(), row.doc);
    CONTEXT_OPTIONS.iter().map(text).collect()
}

fn kind(kind: OptionKind) -> &'static str {
    match kind {
        OptionKind::Int | OptionKind::Bool => "int",
        OptionKind::Int64 | OptionKind::Uint64 => "int64",
        OptionKind::Bytes | OptionKind::Str => "bytes",
        OptionKind::Fd => "fd",
    }
}
