//! Waiting for several sockets and descriptors, and the proxies.

use std::os::fd::RawFd;
use std::time::Instant;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use zeroxide::{Error, ErrorKind, Events, PollItem, Proxy, Socket as CoreSocket, poll};

use crate::arguments;
use crate::blocking::{self, Step, deadline_in, retry};
use crate::error::{Failure, raise};
use crate::interruption;
use crate::socket::Socket;

const PAIRS: &str = "sockets takes a list of pairs (socket, flags) such as (socket, zmq.POLLIN)";

enum Watched {
    Socket(CoreSocket),
    Fd(RawFd),
}

#[doc = text!(zmq_poll)]
#[pyfunction]
#[pyo3(signature = (sockets, timeout=-1), text_signature = "(sockets, timeout=-1)")]
pub(crate) fn zmq_poll<'py>(
    py: Python<'py>,
    sockets: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::whole_timeout)] timeout: i64,
) -> PyResult<Bound<'py, PyList>> {
    crate::buffer::reclaim();
    let mut watched = Vec::new();
    let mut objects = Vec::new();
    let mut closed = 0;
    for pair in arguments::items(sockets, PAIRS)? {
        let pair = pair?;
        let (object, events): (Bound<'py, PyAny>, i16) = arguments::taken(&pair, PAIRS)?;
        if let Ok(socket) = object.cast::<Socket>() {
            if socket.get().is_over() {
                closed += 1;
                continue;
            }
            watched.push((Watched::Socket(socket.get().core()?.clone()), events));
            objects.push(object);
        } else {
            let fd = descriptor(&object)?;
            if fd < 0 {
                // What `fileno()` of a closed socket of Python returns. poll(2) passes over it, too.
                closed += 1;
                continue;
            }
            watched.push((Watched::Fd(fd), events));
            objects.push(fd.into_pyobject(py)?.into_any());
        }
    }
    let result = PyList::empty(py);
    if watched.is_empty() && (closed == 0 || timeout == 0) {
        return Ok(result);
    }
    if watched.is_empty() && timeout < 0 {
        let text = "everything to wait for is closed, so this would never return";
        return Err(Failure::with(ErrorKind::NotSocket, text).into());
    }
    let deadline = deadline_in(timeout);
    let found = match look(&watched, Some(Instant::now())) {
        Ok(Some(found)) => found,
        Ok(None) if timeout == 0 => return Ok(result),
        Ok(None) => {
            let waited = blocking::wait(py, None, |until| {
                let until = match (until, deadline) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
                match look(&watched, until) {
                    Ok(Some(found)) => Ok(Step::Done(Some(found))),
                    Ok(None) if deadline.is_some_and(|at| at <= Instant::now()) => {
                        Ok(Step::Done(None))
                    }
                    Ok(None) => Ok(Step::Again),
                    Err(error) => retry(Err(error)),
                }
            })?;
            match waited {
                Some(found) => found,
                None => return Ok(result),
            }
        }
        Err(error) => return Err(raise(error)),
    };
    for (object, revents) in objects.into_iter().zip(found) {
        if revents != 0 {
            result.append(PyTuple::new(
                py,
                [object, revents.into_pyobject(py)?.into_any()],
            )?)?;
        }
    }
    Ok(result)
}

/// The events of each, or None if the time is up.
fn look(watched: &[(Watched, i16)], until: Option<Instant>) -> Result<Option<Vec<i16>>, Error> {
    let mut items: Vec<PollItem<'_>> = watched
        .iter()
        .map(|(what, events)| match what {
            Watched::Socket(socket) => PollItem::socket(socket, Events::from_bits(*events)),
            Watched::Fd(fd) => PollItem::fd(*fd, Events::from_bits(*events)),
        })
        .collect();
    let ready = poll(&mut items, until)?;
    Ok((ready > 0).then(|| items.iter().map(|item| item.revents.bits()).collect()))
}

fn descriptor(object: &Bound<'_, PyAny>) -> PyResult<RawFd> {
    if let Ok(fd) = object.extract::<RawFd>() {
        return Ok(fd);
    }
    let Ok(fileno) = object.getattr("fileno") else {
        let text = format!(
            "expected a socket, a descriptor or something with fileno(), got: {}",
            object.repr()?
        );
        return Err(PyTypeError::new_err(text));
    };
    let number = fileno.call0()?;
    number.extract::<RawFd>().or_else(|_| {
        Err(PyValueError::new_err(format!(
            "fileno() returned {}, which is no descriptor",
            number.repr()?
        )))
    })
}

#[doc = text!(proxy)]
#[pyfunction]
#[pyo3(signature = (frontend, backend, capture=None))]
pub(crate) fn proxy(
    py: Python<'_>,
    frontend: &Bound<'_, PyAny>,
    backend: &Bound<'_, PyAny>,
    capture: Option<&Bound<'_, PyAny>>,
) -> PyResult<i32> {
    proxy_steerable(py, frontend, backend, capture, None)
}

#[doc = text!(proxy_steerable)]
#[pyfunction]
#[pyo3(signature = (frontend, backend, capture=None, control=None))]
pub(crate) fn proxy_steerable(
    py: Python<'_>,
    frontend: &Bound<'_, PyAny>,
    backend: &Bound<'_, PyAny>,
    capture: Option<&Bound<'_, PyAny>>,
    control: Option<&Bound<'_, PyAny>>,
) -> PyResult<i32> {
    let optional = |name, socket: Option<_>| socket.map(|socket| core(name, socket)).transpose();
    let proxy = Proxy::new(
        core("frontend", frontend)?,
        core("backend", backend)?,
        optional("capture", capture)?,
        optional("control", control)?,
    );
    run(py, proxy)
}

#[doc = text!(monitored_queue)]
#[pyfunction]
#[pyo3(signature = (in_socket, out_socket, mon_socket, in_prefix=None, out_prefix=None))]
pub(crate) fn monitored_queue(
    py: Python<'_>,
    in_socket: &Bound<'_, PyAny>,
    out_socket: &Bound<'_, PyAny>,
    mon_socket: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = arguments::in_prefix)] in_prefix: Option<Vec<u8>>,
    #[pyo3(from_py_with = arguments::out_prefix)] out_prefix: Option<Vec<u8>>,
) -> PyResult<i32> {
    let proxy = Proxy::monitored(
        core("in_socket", in_socket)?,
        core("out_socket", out_socket)?,
        core("mon_socket", mon_socket)?,
        in_prefix.unwrap_or_else(|| b"in".into()).into(),
        out_prefix.unwrap_or_else(|| b"out".into()).into(),
    );
    run(py, proxy)
}

fn core(name: &str, socket: &Bound<'_, PyAny>) -> PyResult<CoreSocket> {
    let takes = format!("{name} takes a socket of this package");
    let socket: &Bound<'_, Socket> = arguments::instance(socket, &takes)?;
    Ok(socket.get().core()?.clone())
}

fn run(py: Python<'_>, mut proxy: Proxy) -> PyResult<i32> {
    let step = |until: Option<Instant>| {
        if interruption::is_over() {
            // Its greenlet was killed. A message that waits for room returns to its socket.
            return Ok(Step::Done(false));
        }
        let until = [until, interruption::next_look()]
            .into_iter()
            .flatten()
            .min();
        Ok(match retry(proxy.run_until(until))? {
            Step::Done(()) => Step::Done(true),
            Step::Again => Step::Again,
        })
    };
    if !blocking::wait(py, None, step)? {
        interruption::check()?;
    }
    Ok(0)
}
