//! `zeroxide._native`: the core for Python. The only crate that knows Python; everything above it is in
//! `python/zeroxide`.

#![deny(unsafe_code)]

use pyo3::prelude::*;

// First: the modules below use its macro.
#[macro_use]
mod text;

mod access;
mod alarm;
mod arrow;
mod awaited;
mod begun;
mod blocking;
mod buffer;
mod context;
mod counters;
mod error;
mod events;
mod frame;
mod functions;
mod install;
mod parting;
mod pipeline;
mod poller;
mod reclaimer;
mod socket;

/// What Python sees of the core.
#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    use super::awaited::ready;

    #[pymodule_export]
    use super::access::{AllowList, Passwords, curve_keypair, curve_public};
    #[pymodule_export]
    use super::arrow::{ArrowTable, arrow_decode, arrow_encode};
    #[pymodule_export]
    use super::awaited::lane::Lane;
    #[pymodule_export]
    use super::awaited::settling::Undo;
    #[pymodule_export]
    use super::awaited::socket::AsyncSocket;
    #[pymodule_export]
    use super::awaited::turn::turn_is_over;
    #[pymodule_export]
    use super::awaited::watcher::Watcher;
    #[pymodule_export]
    use super::begun::LastPart;
    #[pymodule_export]
    use super::buffer::{Release, lent_buffers};
    #[pymodule_export]
    use super::context::Context;
    #[pymodule_export]
    use super::events::EventStream;
    #[pymodule_export]
    use super::frame::Frame;
    #[pymodule_export]
    use super::functions::own_addresses;
    #[pymodule_export]
    use super::functions::{after_fork, context_options, has, socket_options, strerror, zmq_errno};
    #[pymodule_export]
    use super::install::install;
    #[pymodule_export]
    use super::pipeline::client::{Client, Fetch};
    #[pymodule_export]
    use super::pipeline::collector::Collector;
    #[pymodule_export]
    use super::pipeline::files::{log_peek, log_rows, log_segment};
    #[pymodule_export]
    use super::pipeline::follow::Follow;
    #[pymodule_export]
    use super::pipeline::producer::Producer;
    #[pymodule_export]
    use super::poller::{monitored_queue, proxy, proxy_steerable, zmq_poll};
    #[pymodule_export]
    use super::socket::Socket;
    #[pymodule_export]
    use super::socket::each::Sending;
    #[pymodule_export]
    use super::socket::rows::{arrow_messages, arrow_rows};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    // A class that is not made in the ordinary way.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("Ready", ready::class(module.py())?)
    }
}
