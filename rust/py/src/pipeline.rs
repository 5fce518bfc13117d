//! The pipeline for Python: producers, clients and collectors. Their classes in `python/zeroxide` add names and defaults.

pub(crate) mod client;
pub(crate) mod collector;
mod fields;
pub(crate) mod files;
pub(crate) mod follow;
pub(crate) mod producer;
mod rows;
mod shared;

use std::time::{Duration, Instant};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zeroxide_pipeline::Security;
use zeroxide_pipeline::client::ClientError;
use zeroxide_pipeline::producer::Failure;
use zeroxide_pipeline::reader::hex;

use crate::access::key;
use crate::blocking::Slices;
use crate::error::raise;
use crate::fork::generation;
use crate::interruption;

/// Stands for no limit, for calls that need a number.
const LONG: Duration = Duration::from_secs(3600);

/// An object that belongs to the process that created it.
pub(crate) struct Own<T> {
    inner: T,
    generation: u32,
    pid: u32,
    what: &'static str,
}

impl<T> Own<T> {
    pub(crate) fn new(inner: T, what: &'static str) -> Own<T> {
        Own {
            inner,
            generation: generation(),
            pid: std::process::id(),
            what,
        }
    }

    /// The object, in the process that created it.
    #[inline]
    pub(crate) fn get(&self) -> PyResult<&T> {
        if self.generation == generation() {
            Ok(&self.inner)
        } else {
            Err(self.inherited())
        }
    }

    /// Whether this is the process that created it.
    pub(crate) fn is_own(&self) -> bool {
        self.generation == generation()
    }

    #[cold]
    fn inherited(&self) -> PyErr {
        PyRuntimeError::new_err(format!(
            "this {} belongs to process {}; make a new one after fork()",
            self.what, self.pid
        ))
    }
}

/// Repeats `step` without the GIL until it returns a result, fails, or the deadline passes, which returns `None`.
/// Python's signal handlers run in between, and an exception from one ends the wait.
pub(crate) fn wait<T: Send, E: Into<Raised> + Send>(
    py: Python<'_>,
    deadline: Option<Instant>,
    mut step: impl FnMut(Instant) -> Result<Option<T>, E> + Send,
) -> PyResult<Option<T>> {
    let mut slices = Slices::equal(py)?;
    loop {
        let until = slices.next(deadline);
        let until = interruption::limit(until.unwrap_or_else(|| Instant::now() + LONG));
        match py.detach(|| step(until)) {
            Ok(Some(value)) => return Ok(Some(value)),
            Ok(None) => {
                py.check_signals()?;
                interruption::check()?;
            }
            Err(error) => {
                let Raised(error) = error.into();
                return Err(error);
            }
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Ok(None);
        }
    }
}

/// The point in time `timeout` seconds from now; `None` = never.
pub(crate) fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    match timeout {
        None => Ok(None),
        Some(seconds) => Ok(span(seconds)?.and_then(|span| Instant::now().checked_add(span))),
    }
}

/// A duration in seconds; `None` if it is too long to represent.
pub(crate) fn span(seconds: f64) -> PyResult<Option<Duration>> {
    if seconds.is_nan() {
        return Err(PyValueError::new_err("a time is not a number"));
    }
    Ok(Duration::try_from_secs_f64(seconds.max(0.0)).ok())
}

/// The keys of a client, if it has any.
pub(crate) fn security(
    server_key: Option<&Bound<'_, PyAny>>,
    public_key: Option<&Bound<'_, PyAny>>,
    secret_key: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Security>> {
    let Some(server_key) = server_key else {
        return match (public_key, secret_key) {
            (None, None) => Ok(None),
            _ => Err(PyValueError::new_err(
                "public_key and secret_key require server_key, the collector's public key",
            )),
        };
    };
    let secret = secret_key.map(key).transpose()?;
    if let Some(public_key) = public_key {
        let public = key(public_key)?;
        match secret {
            Some(secret) if zeroxide::curve_public(&secret) == public => {}
            Some(_) => {
                return Err(PyValueError::new_err(
                    "public_key and secret_key are not a pair",
                ));
            }
            None => {
                return Err(PyValueError::new_err("public_key requires its secret_key"));
            }
        }
    }
    Security::new(key(server_key)?, secret)
        .map(Some)
        .map_err(raise)
}

// ---- errors --------------------------------------------------------------------------------------------------------

/// An error in transit to Python.
pub(crate) struct Raised(pub(crate) PyErr);

impl From<Failure> for Raised {
    fn from(failure: Failure) -> Raised {
        Raised(of_failure(&failure))
    }
}

impl From<ClientError> for Raised {
    fn from(error: ClientError) -> Raised {
        Raised(of_client(error))
    }
}

/// An exception of `zeroxide.pipeline`: its class, text and attributes.
fn exception(
    class: &str,
    text: String,
    attributes: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyErr {
    Python::attach(|py| {
        let build = || -> PyResult<PyErr> {
            let class = py.import("zeroxide.pipeline")?.getattr(class)?;
            let keywords = PyDict::new(py);
            attributes(&keywords)?;
            let arguments = PyTuple::new(py, [text])?;
            Ok(PyErr::from_value(class.call(arguments, Some(&keywords))?))
        };
        build().unwrap_or_else(|failed| failed)
    })
}

/// A producer's failure as an exception.
pub(crate) fn of_failure(failure: &Failure) -> PyErr {
    let text = failure.to_string();
    match failure {
        Failure::Gone {
            endpoint, seconds, ..
        } => exception("CollectorGone", text, |set| {
            set.set_item("endpoint", endpoint)?;
            set.set_item("seconds", seconds)
        }),
        Failure::Denied { .. } => exception("Refused", text, |set| set.set_item("code", "denied")),
        Failure::Blocked { code, .. }
        | Failure::Refused { code, .. }
        | Failure::Setback { code, .. } => {
            exception("Refused", text, |set| set.set_item("code", code.name()))
        }
        Failure::Fenced {
            name,
            unacknowledged,
            ..
        } => exception("Fenced", text, |set| {
            set.set_item("producer", name)?;
            set.set_item("unacknowledged", unacknowledged)
        }),
        Failure::Row(_) | Failure::Invalid(_) => PyValueError::new_err(text),
        Failure::Socket(error) => raise(error.clone()),
        Failure::Spool(_) | Failure::SpoolFull { .. } | Failure::Closed => {
            exception("CollectorError", text, |_| Ok(()))
        }
    }
}

/// A client's error as an exception.
pub(crate) fn of_client(error: ClientError) -> PyErr {
    let text = error.to_string();
    match error {
        ClientError::Gone { endpoint, seconds } => exception("CollectorGone", text, |set| {
            set.set_item("endpoint", endpoint)?;
            set.set_item("seconds", seconds)
        }),
        ClientError::Denied { .. } => {
            exception("Refused", text, |set| set.set_item("code", "denied"))
        }
        ClientError::Refused { code, detail, .. } => exception("Refused", text, |set| {
            set.set_item("code", code.name())?;
            set.set_item("detail", detail)
        }),
        ClientError::DataLoss {
            asked,
            earliest,
            latest,
            log_id,
            others,
            ..
        } => exception("DataLoss", text, |set| {
            set.set_item("asked", asked)?;
            set.set_item("earliest", earliest)?;
            set.set_item("latest", latest)?;
            set.set_item("log_id", hex(&log_id))?;
            set.set_item("others", others)
        }),
        ClientError::Foreign { .. } => exception("CollectorError", text, |_| Ok(())),
        ClientError::Socket(error) => raise(error),
    }
}
