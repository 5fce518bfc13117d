//! Counters as Python sees them.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use zeroxide::{Counters, DropReason, PeerStats, SocketStats};

pub(super) fn to_dict<'py>(py: Python<'py>, stats: &SocketStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("sent", stats.sent)?;
    dict.set_item("sent_bytes", stats.sent_bytes)?;
    dict.set_item("received", stats.received)?;
    dict.set_item("received_bytes", stats.received_bytes)?;
    dict.set_item("queued_out", stats.queued_out)?;
    dict.set_item("queued_in", stats.queued_in)?;
    dict.set_item("dropped", dropped(py, &stats.dropped)?)?;
    dict.set_item(
        "no_subscriber",
        stats.dropped.dropped(DropReason::NoSubscriber),
    )?;
    let peers = PyList::empty(py);
    for peer in &stats.peers {
        peers.append(peer_dict(py, peer)?)?;
    }
    dict.set_item("peers", peers)?;
    Ok(dict)
}

fn peer_dict<'py>(py: Python<'py>, peer: &PeerStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("endpoint", &peer.endpoint)?;
    dict.set_item("address", &peer.address)?;
    dict.set_item("routing_id", PyBytes::new(py, &peer.routing_id))?;
    dict.set_item("connected", peer.connected)?;
    dict.set_item("sent", peer.sent)?;
    dict.set_item("sent_bytes", peer.sent_bytes)?;
    dict.set_item("received", peer.received)?;
    dict.set_item("received_bytes", peer.received_bytes)?;
    dict.set_item("queued_out", peer.queued_out)?;
    dict.set_item("queued_in", peer.queued_in)?;
    dict.set_item("dropped", dropped(py, &peer.dropped)?)?;
    Ok(dict)
}

/// Every reason that is a loss, in words.
fn dropped<'py>(py: Python<'py>, counters: &Counters) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for reason in DropReason::ALL {
        if reason != DropReason::NoSubscriber {
            dict.set_item(reason.name(), counters.dropped(reason))?;
        }
    }
    Ok(dict)
}
