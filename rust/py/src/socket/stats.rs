//! Counters as Python sees them.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use zeroxide::{Counters, DropReason, PeerStats, SocketStats};

use crate::counters::fill;

pub(super) fn to_dict<'py>(py: Python<'py>, stats: &SocketStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    fill!(dict, stats => sent, sent_bytes, received, received_bytes, queued_out, queued_in);
    fill!(dict, stats => lingering, spilled, spilled_bytes);
    fill!(dict, stats => connections, reconnects, full_out, full_in);
    dict.set_item("dropped", dropped(py, &stats.dropped)?)?;
    dict.set_item(
        "no_subscriber",
        stats.dropped.dropped(DropReason::NoSubscriber),
    )?;
    fill!(dict, stats => missed_events);
    let peers = PyList::empty(py);
    for peer in &stats.peers {
        peers.append(peer_dict(py, peer)?)?;
    }
    dict.set_item("peers", peers)?;
    Ok(dict)
}

fn peer_dict<'py>(py: Python<'py>, peer: &PeerStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    fill!(dict, peer => endpoint, address);
    dict.set_item("routing_id", PyBytes::new(py, &peer.routing_id))?;
    fill!(dict, peer => connected, waiting, sent, sent_bytes, received, received_bytes, queued_out, queued_in);
    fill!(dict, peer => spilled, spilled_bytes, reconnects, full_out, full_in);
    dict.set_item("dropped", dropped(py, &peer.dropped)?)?;
    Ok(dict)
}

/// All reasons for losses, by name.
fn dropped<'py>(py: Python<'py>, counters: &Counters) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for reason in DropReason::ALL {
        if reason != DropReason::NoSubscriber {
            dict.set_item(reason.name(), counters.dropped(reason))?;
        }
    }
    Ok(dict)
}
