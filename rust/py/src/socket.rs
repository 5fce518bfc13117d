//! Sockets. The methods that transfer messages keep the GIL as long as they need not wait.

pub(crate) mod bodies;
pub(crate) mod each;
pub(crate) mod flags;
pub(crate) mod last_part;
pub(crate) mod recv;
pub(crate) mod rows;
mod send;
mod settings;
mod stats;

pub(crate) use bodies::is_there;
pub(crate) use flags::{DONTWAIT, SNDMORE};
use last_part::LastPart;
use recv::Items;
pub(crate) use recv::RCVTIMEO;
pub(crate) use send::SNDTIMEO;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use zeroxide::binding::{Direction, SocketInternals};
use zeroxide::{Error, ErrorKind, Events, Socket as CoreSocket};

use crate::access::{self, AllowList, Passwords};
use crate::arguments;
use crate::arrow::ArrowTable;
use crate::blocking::{self, Limit, Step, deadline_in, millis, retry};
use crate::buffer::reclaim;
use crate::context::Context;
use crate::error::{Failure, not_flushed, not_now, raise};
use crate::events::EventStream;
use crate::fork::generation;
use crate::frame::labels_of;
use crate::installed::default_copy_threshold;
use crate::labels::{self, Labels};
use crate::parting;
use crate::undelivered;

#[doc = text!(Socket)]
#[pyclass(subclass, frozen, module = "zeroxide._native")]
pub(crate) struct Socket {
    open: OnceLock<Open>,
    copy_threshold: AtomicUsize,
}

struct Open {
    core: CoreSocket,
    generation: u32,
    pid: u32,
}

impl Socket {
    /// The core's socket, if it can be used in this process.
    #[inline]
    pub(crate) fn core(&self) -> PyResult<&CoreSocket> {
        parting::prepare();
        match self.open.get() {
            Some(open) if open.generation == generation() => Ok(&open.core),
            other => Err(unusable(other)),
        }
    }

    /// A handle without a socket.
    pub(crate) fn unopened() -> Socket {
        Socket {
            open: OnceLock::new(),
            copy_threshold: AtomicUsize::new(65536),
        }
    }

    /// Whether it cannot be used.
    pub(crate) fn is_closed(&self) -> bool {
        self.own().is_none_or(CoreSocket::is_closed)
    }

    /// Whether it was closed here.
    pub(crate) fn is_over(&self) -> bool {
        self.own().is_some_and(CoreSocket::is_closed)
    }

    fn own(&self) -> Option<&CoreSocket> {
        self.open
            .get()
            .filter(|open| open.generation == generation())
            .map(|open| &open.core)
    }
}

#[cold]
fn unusable(open: Option<&Open>) -> PyErr {
    let text = match open {
        None => "the socket was never opened".to_owned(),
        Some(open) => {
            format!(
                "this socket belongs to process {}; make a new Context after fork()",
                open.pid
            )
        }
    };
    Failure::with(ErrorKind::NotSocket, text).into()
}

/// Whether an optional flag was given and is true, as Python sees it.
#[inline]
pub(crate) fn truth(value: Option<&Bound<'_, PyAny>>, default: bool) -> PyResult<bool> {
    match value {
        None => Ok(default),
        Some(value) => value.is_truthy(),
    }
}

/// The time limit of a call according to the option `id`; None = no limit.
fn limit_of(core: &CoreSocket, id: i32) -> PyResult<Option<Limit>> {
    Ok(Limit::of(core.get_int(id).map_err(raise)?))
}

#[pymethods]
impl Socket {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Socket {
        Socket::unopened()
    }

    /// Makes the core's socket.
    #[pyo3(signature = (context, socket_type, copy_threshold=None))]
    fn _open(
        &self,
        py: Python<'_>,
        context: &Context,
        #[pyo3(from_py_with = arguments::socket_type)] socket_type: i32,
        #[pyo3(from_py_with = arguments::copy_threshold)] copy_threshold: Option<usize>,
    ) -> PyResult<()> {
        if context.is_ended() {
            return Err(Failure::with(ErrorKind::NotSupported, "the context is closed").into());
        }
        let context = context.core()?;
        let socket_type = context.socket_type(socket_type).ok_or_else(|| {
            PyErr::from(Failure::with(
                ErrorKind::Invalid,
                format!("there is no socket type {socket_type}"),
            ))
        })?;
        let core = context.socket(socket_type).map_err(raise)?;
        self.copy_threshold.store(
            copy_threshold.unwrap_or_else(|| default_copy_threshold(py)),
            Ordering::Relaxed,
        );
        let _ = self.open.set(Open {
            core,
            generation: generation(),
            pid: std::process::id(),
        });
        Ok(())
    }

    /// Makes this another handle of `other`'s socket.
    fn _share(&self, other: &Socket) -> PyResult<()> {
        let core = other.core()?.clone();
        self.copy_threshold.store(
            other.copy_threshold.load(Ordering::Relaxed),
            Ordering::Relaxed,
        );
        let _ = self.open.set(Open {
            core,
            generation: generation(),
            pid: std::process::id(),
        });
        Ok(())
    }

    // ---- messages --------------------------------------------------------------------------------------------------

    #[doc = text!(Socket::send)]
    #[pyo3(signature = (data, flags=0, copy=None, track=None, routing_id=None, group=None), text_signature = "($self, data, flags=0, copy=True, track=False, routing_id=None, group=None)")]
    #[allow(clippy::too_many_arguments, reason = "the signature is pyzmq's")]
    fn send(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = flags::of_send)] flags: i32,
        copy: Option<&Bound<'_, PyAny>>,
        track: Option<&Bound<'_, PyAny>>,
        routing_id: Option<&Bound<'_, PyAny>>,
        group: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let (copy, track) = (truth(copy, true)?, truth(track, false)?);
        if routing_id.is_some() || group.is_some() {
            reclaim();
            if let (None, Some(group)) = (routing_id, group)
                && self.send_to_group(py, data, flags, copy, group)?
            {
                return Ok(None);
            }
            let labels = Labels::given(self.core()?, labels_of(data), routing_id, group)?;
            return self.send_labelled(py, data, flags, copy, track, labels);
        }
        self.send_one(py, data, flags, copy, track)
    }

    #[doc = text!(Socket::recv)]
    #[pyo3(signature = (flags=0, copy=None, track=None), text_signature = "($self, flags=0, copy=True, track=False)")]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = flags::of_recv)] flags: i32,
        copy: Option<&Bound<'py, PyAny>>,
        track: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if truth(copy, true)? {
            self.recv_bytes(py, flags)
        } else {
            self.recv_frame(py, flags, truth(track, false)?)
        }
    }

    #[doc = text!(Socket::send_multipart)]
    #[pyo3(signature = (msg_parts, flags=0, copy=None, track=None), text_signature = "($self, msg_parts, flags=0, copy=True, track=False)")]
    fn send_multipart(
        &self,
        py: Python<'_>,
        msg_parts: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = flags::of_send)] flags: i32,
        copy: Option<&Bound<'_, PyAny>>,
        track: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let (copy, track) = (truth(copy, true)?, truth(track, false)?);
        self.send_parts(py, msg_parts, flags, copy, track)
    }

    /// The last parts of the message that this thread has begun to send, if there is one.
    fn _last_part(
        slf: &Bound<'_, Self>,
        msg_parts: &Bound<'_, PyAny>,
        copy: &Bound<'_, PyAny>,
        track: &Bound<'_, PyAny>,
    ) -> PyResult<Option<LastPart>> {
        Socket::last_part(slf, msg_parts, copy.is_truthy()?, track.is_truthy()?)
    }

    #[doc = text!(Socket::recv_multipart)]
    #[pyo3(signature = (flags=0, copy=None, track=None), text_signature = "($self, flags=0, copy=True, track=False)")]
    fn recv_multipart<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = flags::of_recv)] flags: i32,
        copy: Option<&Bound<'py, PyAny>>,
        track: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (copy, track) = (truth(copy, true)?, truth(track, false)?);
        self.recv_parts(py, flags, copy, track)
    }

    #[doc = text!(Socket::send_batch)]
    #[pyo3(signature = (messages, flags=0))]
    fn send_batch(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = flags::of_send)] flags: i32,
    ) -> PyResult<usize> {
        self.send_many(py, messages, flags)
    }

    #[doc = text!(Socket::recv_batch)]
    #[pyo3(signature = (max_messages=1024, timeout=None, flags=0, *, multipart=false, copy=true))]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn recv_batch<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::max_messages)] max_messages: i64,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
        #[pyo3(from_py_with = flags::of_recv)] flags: i32,
        #[pyo3(from_py_with = arguments::multipart)] multipart: bool,
        #[pyo3(from_py_with = arguments::copies)] copy: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        self.recv_many(
            py,
            max_messages,
            timeout.map(|timeout| millis(Some(timeout))),
            flags,
            Items { multipart, copy },
        )
    }

    /// Sends every row of a table as a message; returns their number.
    #[pyo3(signature = (data, flags=0))]
    fn _send_rows(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = flags::of_send)] flags: i32,
    ) -> PyResult<usize> {
        self.send_rows(py, data, flags)
    }

    /// Waits for a message and returns it together with other waiting messages, as rows of a table.
    fn _recv_rows(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::max_rows)] max_rows: i64,
        #[pyo3(from_py_with = arguments::max_bytes)] max_bytes: i64,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
        #[pyo3(from_py_with = flags::of_recv)] flags: i32,
        #[pyo3(from_py_with = arguments::frames)] frames: bool,
    ) -> PyResult<ArrowTable> {
        let timeout = timeout.map(|timeout| millis(Some(timeout)));
        self.recv_rows(py, max_rows, max_bytes, timeout, flags, frames)
    }

    #[doc = text!(Socket::recv_into)]
    #[pyo3(signature = (buffer, /, *, nbytes=0, flags=0))]
    fn recv_into(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::nbytes)] nbytes: i64,
        #[pyo3(from_py_with = flags::of_recv)] flags: i32,
    ) -> PyResult<usize> {
        self.recv_to(py, buffer, nbytes, flags)
    }

    #[doc = text!(Socket::poll)]
    #[pyo3(signature = (timeout=None, flags=1))]
    fn poll(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
        #[pyo3(from_py_with = arguments::poll_flags)] flags: i16,
    ) -> PyResult<i16> {
        reclaim();
        // A closed socket raises ENOTSUP here, as in pyzmq; an inherited one names the process it belongs to.
        let core = match self.open.get() {
            Some(open) if open.generation == generation() && open.core.is_closed() => None,
            Some(_) => Some(self.core()?),
            None => None,
        };
        let Some(core) = core else {
            return Err(Failure::with(ErrorKind::NotSupported, "this socket is closed").into());
        };
        let wanted = Events::from_bits(flags);
        let mask = |events: Events| events.bits() & flags;
        let ready = mask(core.events().map_err(raise)?);
        let millis = millis(timeout);
        if ready != 0 || millis == 0 {
            return Ok(ready);
        }
        let deadline = deadline_in(millis);
        blocking::wait(py, None, |until| {
            let until = match (until, deadline) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            let left = until.map(|at| at.saturating_duration_since(Instant::now()));
            match core.poll(wanted, left) {
                Ok(events) if mask(events) != 0 => Ok(Step::Done(mask(events))),
                Ok(_) if deadline.is_some_and(|at| at <= Instant::now()) => Ok(Step::Done(0)),
                Ok(_) => Ok(Step::Again),
                Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Step::Again),
                Err(error) => Err(error),
            }
        })
    }

    // ---- endpoints -------------------------------------------------------------------------------------------------

    #[doc = text!(Socket::bind)]
    fn bind(&self, py: Python<'_>, addr: &Bound<'_, PyAny>) -> PyResult<String> {
        let (core, addr) = (self.core()?, address(addr)?);
        py.detach(|| core.bind(&addr)).map_err(raise)
    }

    #[doc = text!(Socket::connect)]
    fn connect(&self, py: Python<'_>, addr: &Bound<'_, PyAny>) -> PyResult<String> {
        let (core, addr) = (self.core()?, address(addr)?);
        py.detach(|| core.connect(&addr)).map_err(raise)
    }

    #[doc = text!(Socket::connect_peer)]
    fn connect_peer(&self, py: Python<'_>, addr: &Bound<'_, PyAny>) -> PyResult<u32> {
        let (core, addr) = (self.core()?, address(addr)?);
        py.detach(|| core.connect_peer(&addr)).map_err(raise)
    }

    #[doc = text!(Socket::disconnect_peer)]
    fn disconnect_peer(&self, py: Python<'_>, routing_id: &Bound<'_, PyAny>) -> PyResult<()> {
        let (core, number) = (self.core()?, labels::routing_id(routing_id)?);
        py.detach(|| core.disconnect_peer(number)).map_err(raise)
    }

    #[doc = text!(Socket::join)]
    fn join(&self, py: Python<'_>, group: &Bound<'_, PyAny>) -> PyResult<()> {
        let (core, group) = (self.core()?, labels::group(group)?);
        py.detach(|| core.join(&group)).map_err(raise)
    }

    #[doc = text!(Socket::leave)]
    fn leave(&self, py: Python<'_>, group: &Bound<'_, PyAny>) -> PyResult<()> {
        let (core, group) = (self.core()?, labels::group(group)?);
        py.detach(|| core.leave(&group)).map_err(raise)
    }

    #[doc = text!(Socket::set_priority)]
    #[pyo3(signature = (addr, *, send = None, recv = None))]
    fn set_priority(
        &self,
        py: Python<'_>,
        addr: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::send)] send: Option<i64>,
        #[pyo3(from_py_with = arguments::recv)] recv: Option<i64>,
    ) -> PyResult<()> {
        let (core, addr) = (self.core()?, address(addr)?);
        // The core refuses 0.
        let priority = |number: i64| u8::try_from(number).unwrap_or(0);
        py.detach(|| core.set_priority(&addr, send.map(priority), recv.map(priority)))
            .map_err(raise)
    }

    #[doc = text!(Socket::unbind)]
    fn unbind(&self, py: Python<'_>, addr: &Bound<'_, PyAny>) -> PyResult<()> {
        let (core, addr) = (self.core()?, address(addr)?);
        py.detach(|| core.unbind(&addr)).map_err(raise)
    }

    #[doc = text!(Socket::disconnect)]
    fn disconnect(&self, py: Python<'_>, addr: &Bound<'_, PyAny>) -> PyResult<()> {
        let (core, addr) = (self.core()?, address(addr)?);
        py.detach(|| core.disconnect(&addr)).map_err(raise)
    }

    // ---- options ---------------------------------------------------------------------------------------------------

    #[doc = text!(Socket::set)]
    fn set(&self, option: &Bound<'_, PyAny>, optval: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_value(settings::number_of(option)?, optval)
    }

    #[doc = text!(Socket::get)]
    fn get<'py>(&self, py: Python<'py>, option: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.get_value(py, settings::number_of(option)?)
    }

    /// The exception of a call that timed out after `millis`, for callers with their own way to wait.
    fn _waited_in_vain(&self, py: Python<'_>, sending: bool, millis: i64) -> PyResult<Py<PyAny>> {
        let direction = Direction::of(sending);
        let error = match Limit::of(millis) {
            Some(limit) => limit.is_over(py, self.core()?, direction),
            None => not_now(py, direction),
        };
        Ok(error.into_value(py).into_any())
    }

    /// The exception of a call that found too few peers, for callers with their own way to wait.
    fn _too_few(
        &self,
        py: Python<'_>,
        found: usize,
        wanted: usize,
        what: &str,
    ) -> PyResult<Py<PyAny>> {
        let core = self.core()?;
        let error = py.detach(|| core.too_few(found, wanted, what));
        Ok(raise(error).into_value(py).into_any())
    }

    /// Raises for unknown flags, for callers with further flags.
    fn _check_flags(&self, flags: &Bound<'_, PyAny>, sending: bool) -> PyResult<()> {
        flags::check(flags, Direction::of(sending)).map(drop)
    }

    #[doc = text!(Socket::fileno)]
    fn fileno(&self) -> PyResult<i32> {
        self.core()?.fd().map_err(raise)
    }

    #[doc = text!(Socket::copy_threshold)]
    #[getter]
    fn copy_threshold(&self) -> usize {
        self.copy_threshold.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_copy_threshold(&self, bytes: usize) {
        self.copy_threshold.store(bytes, Ordering::Relaxed);
    }

    // ---- life ------------------------------------------------------------------------------------------------------

    #[doc = text!(Socket::close)]
    #[pyo3(signature = (linger=None))]
    fn close(&self, py: Python<'_>, #[pyo3(from_py_with = arguments::linger)] linger: Option<i64>) {
        if let Some(core) = self.own() {
            let linger = linger.map(|millis| u64::try_from(millis).ok().map(Duration::from_millis));
            py.detach(|| core.close(linger));
            reclaim();
        }
    }

    /// Closes the socket, waits until its messages are delivered, and returns what was not. With `begin`, waits for
    /// nothing: the next call continues.
    #[pyo3(signature = (timeout, begin = false))]
    fn _close_within<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
        begin: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let Some(core) = self.own() else {
            return Ok(PyList::empty(py));
        };
        let deadline = deadline_in(millis(timeout));
        if begin {
            // Whether it is over already is for the next call to say.
            let _ = py.detach(|| core.close_by(deadline, Some(Instant::now())));
            reclaim();
            return Ok(PyList::empty(py));
        }
        let outcome = blocking::wait(py, None, |until| retry(core.close_by(deadline, until)));
        if outcome.is_err() {
            // A signal handler has raised. The remaining messages keep their time, but no caller waits for them.
            py.detach(|| core.close(None));
        }
        reclaim();
        undelivered::to_list(py, &outcome?)
    }

    #[doc = text!(Socket::closed)]
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed()
    }

    #[doc = text!(Socket::underlying)]
    #[getter]
    fn underlying(&self) -> usize {
        self.open.get().map_or(0, |open| open.core.id())
    }

    #[doc = text!(Socket::stats)]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stats::to_dict(py, &self.core()?.stats().map_err(raise)?)
    }

    #[doc = text!(Socket::flush)]
    #[pyo3(signature = (timeout=None))]
    fn flush(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
    ) -> PyResult<()> {
        let core = self.core()?;
        let deadline = deadline_in(millis(timeout));
        let outcome = blocking::wait(py, None, |until| {
            let until = match (until, deadline) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            match core.flush(until.map(|at| at.saturating_duration_since(Instant::now()))) {
                Ok(()) => Ok(Step::Done(None)),
                Err(failed) if failed.error.kind() == ErrorKind::Interrupted => Ok(Step::Again),
                Err(failed) if failed.error.kind() == ErrorKind::Again => {
                    if deadline.is_some_and(|at| at <= Instant::now()) {
                        Ok(Step::Done(Some(failed.remaining)))
                    } else {
                        Ok(Step::Again)
                    }
                }
                Err(failed) => Err(failed.error),
            }
        })?;
        reclaim();
        match outcome {
            None => Ok(()),
            Some(remaining) => Err(not_flushed(py, remaining)),
        }
    }

    // ---- security --------------------------------------------------------------------------------------------------

    #[doc = text!(Socket::secure_server)]
    #[pyo3(signature = (secret_key, allow=None))]
    fn secure_server(
        &self,
        secret_key: &Bound<'_, PyAny>,
        allow: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<AllowList> {
        let (secret, allowed) = (access::key(secret_key)?, AllowList::from_any(allow)?);
        self.core()?
            .secure_server(&secret, &allowed)
            .map_err(raise)?;
        Ok(allowed.into())
    }

    #[doc = text!(Socket::secure_client)]
    #[pyo3(signature = (server_key, secret_key=None))]
    fn secure_client(
        &self,
        server_key: &Bound<'_, PyAny>,
        secret_key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let secret = secret_key.map(access::key).transpose()?;
        let server = access::key(server_key)?;
        self.core()?
            .secure_client(&server, secret.as_ref())
            .map_err(raise)
    }

    #[doc = text!(Socket::password_server)]
    #[pyo3(signature = (users=None))]
    fn password_server(&self, users: Option<&Bound<'_, PyAny>>) -> PyResult<Passwords> {
        let users = Passwords::from_any(users)?;
        self.core()?.password_server(&users).map_err(raise)?;
        Ok(users.into())
    }

    #[doc = text!(Socket::password_client)]
    #[pyo3(signature = (username, password))]
    fn password_client(
        &self,
        #[pyo3(from_py_with = arguments::username)] username: String,
        password: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let password = access::password(password)?;
        self.core()?
            .password_client(&username, &password)
            .map_err(raise)
    }

    #[doc = text!(Socket::monitor)]
    #[pyo3(signature = (addr, events=0xFFFF))]
    fn monitor(
        &self,
        addr: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = arguments::events)] events: u32,
    ) -> PyResult<()> {
        let core = self.core()?;
        match addr {
            None => {
                core.stop_monitor();
                Ok(())
            }
            Some(addr) => core.monitor(&address(addr)?, events).map_err(raise),
        }
    }

    /// The socket's events, for a reader in this process.
    fn _event_stream(
        &self,
        #[pyo3(from_py_with = arguments::events)] events: u32,
    ) -> PyResult<EventStream> {
        let stream = self.core()?.event_stream(events).map_err(raise)?;
        Ok(EventStream::new(stream))
    }

    // ---- peers -----------------------------------------------------------------------------------------------------

    /// For a socket that connects to what peers name: leaves the last descriptors of the process to the program.
    fn _leave_descriptors(&self) -> PyResult<()> {
        self.core()?.leave_descriptors().map_err(raise)
    }

    /// The endpoints and the number of peers of each, as text; `None` if getting them would block.
    fn _overview(&self) -> Option<String> {
        self.core().ok()?.overview()
    }

    #[doc = text!(Socket::count_connected)]
    fn count_connected(&self) -> PyResult<usize> {
        self.core()?.count_connected().map_err(raise)
    }

    #[doc = text!(Socket::wait_connected)]
    #[pyo3(signature = (*, count=1, timeout=None))]
    fn wait_connected(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::count)] count: usize,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
    ) -> PyResult<usize> {
        let core = self.core()?;
        blocking::wait_saying(py, deadline_in(millis(timeout)), |wait| {
            core.wait_connected(count, wait)
        })
    }

    #[doc = text!(Socket::count_subscribed)]
    #[pyo3(signature = (topic=None))]
    fn count_subscribed(&self, topic: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
        let topic = prefix(topic)?;
        self.core()?.count_subscribed(&topic).map_err(raise)
    }

    #[doc = text!(Socket::wait_subscribed)]
    #[pyo3(signature = (topic=None, count=1, timeout=None))]
    fn wait_subscribed(
        &self,
        py: Python<'_>,
        topic: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = arguments::count)] count: usize,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
    ) -> PyResult<usize> {
        let core = self.core()?;
        let topic = prefix(topic)?;
        blocking::wait_saying(py, deadline_in(millis(timeout)), |wait| {
            core.wait_subscribed(&topic, count, wait)
        })
    }
}

/// The bytes of a topic, given as bytes or text.
fn prefix(topic: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<u8>> {
    match topic {
        None => Ok(Vec::new()),
        Some(topic) => match topic.cast::<PyString>() {
            Ok(text) => Ok(arguments::text(text)?.as_bytes().to_vec()),
            Err(_) => arguments::taken(topic, "topic takes bytes or text"),
        },
    }
}

fn address(addr: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = addr.cast::<PyString>() {
        return Ok(arguments::text(text)?.to_owned());
    }
    if let Ok(bytes) = addr.cast::<PyBytes>() {
        // Another name in its place would be another endpoint.
        return String::from_utf8(bytes.as_bytes().to_vec()).map_err(|_| {
            let text =
                format!("the endpoint {bytes:?} is not UTF-8; rename the file or folder in it");
            raise(Error::with(ErrorKind::Invalid, text))
        });
    }
    Err(PyTypeError::new_err(format!(
        "an endpoint is text such as 'tcp://127.0.0.1:5555', not {}",
        addr.repr()?
    )))
}
