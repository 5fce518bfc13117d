//! Reports of what was not delivered, for `zeroxide._undelivered`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use zeroxide::Undelivered;

/// The fields of each peer.
pub(crate) fn to_list<'py>(
    py: Python<'py>,
    undelivered: &Undelivered,
) -> PyResult<Bound<'py, PyList>> {
    let peers = undelivered.peers.iter().map(|peer| {
        (
            &peer.endpoint,
            &peer.address,
            PyBytes::new(py, &peer.routing_id),
            peer.messages,
            peer.bytes,
        )
    });
    PyList::new(py, peers.collect::<Vec<_>>())
}
