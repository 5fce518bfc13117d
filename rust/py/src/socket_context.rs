//! Contexts of sockets: several requests or surveys at a time.

use pyo3::prelude::*;
use zeroxide::binding::Direction;
use zeroxide::{ErrorKind, Message, SocketContext as CoreContext, Wait};

use crate::blocking::{self, Limit, Step, retry};
use crate::buffer::{self, reclaim};
use crate::error::{Failure, raise, raise_of};
use crate::socket::{DONTWAIT, RCVTIMEO, SNDMORE, SNDTIMEO, Socket, flags};

#[doc = text!(SocketContext)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct SocketContext {
    socket: Py<Socket>,
    context: CoreContext,
}

impl SocketContext {
    /// The time limit of a call according to the option `id`.
    fn begin(&self, py: Python<'_>, id: i32) -> PyResult<Option<Limit>> {
        reclaim();
        let core = self.socket.bind(py).get().core()?;
        Ok(Limit::of(core.get_int(id).map_err(raise)?))
    }
}

#[pymethods]
impl SocketContext {
    #[new]
    fn new(socket: Bound<'_, Socket>) -> PyResult<SocketContext> {
        let context = socket.get().core()?.open_context().map_err(raise)?;
        Ok(SocketContext {
            socket: socket.unbind(),
            context,
        })
    }

    #[doc = text!(SocketContext::send)]
    #[pyo3(signature = (data, flags=0))]
    fn send(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = flags::of_send)] flags: i32,
    ) -> PyResult<()> {
        let (context, limit) = (&self.context, self.begin(py, SNDTIMEO)?);
        if flags & SNDMORE != 0 {
            let text = "a message of a context has one part: send it without SNDMORE";
            return Err(Failure::with(ErrorKind::Invalid, text).into());
        }
        let message = Message::single(buffer::copied(data)?);
        if flags & DONTWAIT != 0 {
            let sent = py.detach(|| context.send(message, Wait::Dont));
            return sent.map_err(|failed| raise_of(py, failed.error, Direction::Send));
        }
        let mut pending = Some(message);
        let core = context.socket();
        blocking::wait_for(py, core, Direction::Send, limit, |until| {
            let Some(message) = pending.take() else {
                return Ok(Step::Done(()));
            };
            match context.send(message, until.map_or(Wait::Forever, Wait::Until)) {
                Ok(()) => Ok(Step::Done(())),
                Err(failed) => {
                    pending = Some(failed.message);
                    retry(Err(failed.error))
                }
            }
        })
    }

    #[doc = text!(SocketContext::recv)]
    #[pyo3(signature = (flags=0))]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = flags::of_recv)] flags: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (context, limit) = (&self.context, self.begin(py, RCVTIMEO)?);
        let message = if flags & DONTWAIT != 0 {
            py.detach(|| context.recv(Wait::Dont))
                .map_err(|error| raise_of(py, error, Direction::Recv))?
        } else {
            let core = context.socket();
            blocking::wait_for(py, core, Direction::Recv, limit, |until| {
                retry(context.recv(until.map_or(Wait::Forever, Wait::Until)))
            })?
        };
        Ok(buffer::bytes_of(py, message.head().as_slice())?.into_any())
    }

    #[doc = text!(SocketContext::close)]
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.context.close());
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.context.is_closed()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let state = if this.context.is_closed() {
            "closed, "
        } else {
            ""
        };
        let socket = this.socket.bind(slf.py()).repr()?;
        let at = slf.as_ptr() as usize;
        Ok(format!(
            "<zmq.SocketContext at {at:#x}: {state}of {socket}>"
        ))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }
}
