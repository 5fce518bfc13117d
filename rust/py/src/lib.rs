//! `zeroxide._native`: the core for Python. This is the only crate that uses Python's API; the rest of the package is
//! in `python/zeroxide`.
//!
//! The same source is also a library, `rust/py/library`, for extension modules that add transports,
//! patterns and mechanisms of other crates.

#![deny(unsafe_code)]

use pyo3::prelude::*;

// First, because the modules below use its macro.
#[macro_use]
mod text;

mod access;
mod alarm;
mod arguments;
mod arrow;
mod attempt;
mod awaited;
mod begun;
mod blocking;
mod buffer;
mod context;
mod counters;
mod error;
mod events;
mod fork;
mod frame;
mod functions;
mod install;
mod installed;
mod interpreter;
mod interruption;
mod labels;
mod main_thread;
mod observer;
mod parting;
mod pipeline;
mod poller;
mod reclaimer;
mod socket;
mod socket_context;
mod trouble;
mod undelivered;

pub use crate::context::Context;

/// The Python module.
#[pymodule(gil_used = false)]
pub mod _native {
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
    use super::functions::{
        context_option_texts, context_options, has, socket_option_texts, socket_options, strerror,
        zmq_errno,
    };
    #[pymodule_export]
    use super::install::{after_fork, install};
    #[pymodule_export]
    use super::interruption::Interruption;
    #[pymodule_export]
    use super::observer::{Observer, observer_folder, snapshot};
    #[pymodule_export]
    use super::pipeline::client::{Client, Fetch};
    #[pymodule_export]
    use super::pipeline::collector::Collector;
    #[pymodule_export]
    use super::pipeline::files::{log_next, log_peek, log_rows, log_segment};
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
    use super::socket::last_part::LastPart;
    #[pymodule_export]
    use super::socket::rows::{arrow_messages, arrow_rows};
    #[pymodule_export]
    use super::socket_context::SocketContext;
    #[pymodule_export]
    use super::trouble::{Trouble, trouble_of};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    // A class that needs special registration.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::interpreter::claim()?;
        module.add("Ready", ready::class(module.py())?)
    }
}
