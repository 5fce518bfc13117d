//! Frames: one part of a message, with its memory, metadata and tracker.

use std::collections::hash_map::DefaultHasher;
use std::ffi::c_int;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyMemoryView, PyString};
use zeroxide::{Error, ErrorKind, Frame as CoreFrame, PeerInfo};

use crate::buffer::{self, Release};
use crate::error::{Failure, raise};
use crate::install::{default_copy_threshold, finished_tracker, installed};

/// One part of a message. Its memory is shared with the core, never copied unless asked for.
#[pyclass(subclass, frozen, weakref, dict, module = "zeroxide")]
pub(crate) struct Frame {
    body: CoreFrame,
    more: AtomicBool,
    tracker: Option<Py<PyAny>>,
    peer: Option<Arc<PeerInfo>>,
    bytes: PyOnceLock<Py<PyBytes>>,
}

impl Frame {
    /// A frame that was received.
    pub(crate) fn received(
        py: Python<'_>,
        body: CoreFrame,
        more: bool,
        peer: Option<Arc<PeerInfo>>,
        track: bool,
    ) -> Frame {
        let tracker = track.then(|| finished_tracker(py));
        Frame {
            body,
            more: AtomicBool::new(more),
            tracker,
            peer,
            bytes: PyOnceLock::new(),
        }
    }

    /// The body, sharing its memory.
    pub(crate) fn body(&self) -> CoreFrame {
        let mut body = self.body.clone();
        body.set_more(false);
        body
    }

    /// The tracker, if it has one.
    pub(crate) fn tracker_of(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.tracker.as_ref().map(|tracker| tracker.clone_ref(py))
    }

    fn copy_of(&self, py: Python<'_>) -> Frame {
        Frame {
            body: self.body.clone(),
            more: AtomicBool::new(self.more.load(Ordering::Relaxed)),
            tracker: self.tracker_of(py),
            peer: self.peer.clone(),
            bytes: PyOnceLock::new(),
        }
    }

    fn property(&self, name: &str) -> Option<String> {
        let peer = self.peer.as_ref()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match name {
            "Socket-Type" => peer
                .socket_type
                .map(|socket_type| socket_type.name().to_owned()),
            "Routing-Id" | "Identity" => Some(text(&peer.routing_id)),
            "User-Id" => peer.user_id.clone(),
            _ => peer
                .properties
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| text(value)),
        }
    }
}

/// A tracker for `release`, if there is something to wait for; the one that is done otherwise.
pub(crate) fn tracker_for(py: Python<'_>, release: Option<Release>) -> PyResult<Py<PyAny>> {
    match (installed(), release) {
        (Some(installed), Some(release)) => Ok(installed
            .tracker
            .bind(py)
            .call1((Py::new(py, release)?,))?
            .unbind()),
        _ => Ok(finished_tracker(py)),
    }
}

#[pymethods]
impl Frame {
    #[new]
    #[pyo3(signature = (data=None, track=false, copy=None, copy_threshold=None))]
    fn new(
        py: Python<'_>,
        data: Option<&Bound<'_, PyAny>>,
        track: bool,
        copy: Option<bool>,
        copy_threshold: Option<usize>,
    ) -> PyResult<Frame> {
        buffer::reclaim();
        let (body, tracker) = match data {
            None => (CoreFrame::new(), track.then(|| finished_tracker(py))),
            Some(data) => {
                if data.is_instance_of::<PyString>() {
                    return Err(PyTypeError::new_err(
                        "Str objects not allowed. Only: bytes, buffer interfaces.",
                    ));
                }
                let threshold = match copy {
                    Some(true) => usize::MAX,
                    Some(false) => 0,
                    None => copy_threshold.unwrap_or_else(|| default_copy_threshold(py)),
                };
                let lent = buffer::lent(data, threshold, track)?;
                let tracker = if track {
                    Some(tracker_for(py, lent.release)?)
                } else {
                    None
                };
                (lent.frame, tracker)
            }
        };
        Ok(Frame {
            body,
            more: AtomicBool::new(false),
            tracker,
            peer: None,
            bytes: PyOnceLock::new(),
        })
    }

    /// The body as bytes; the same object each time.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> Py<PyBytes> {
        self.bytes
            .get_or_init(py, || PyBytes::new(py, self.body.as_slice()).unbind())
            .clone_ref(py)
    }

    /// The body as a memoryview, without a copy.
    #[getter]
    fn buffer<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyMemoryView>> {
        PyMemoryView::from(slf.as_any())
    }

    /// Whether more parts of the message follow.
    #[getter]
    fn more(&self) -> bool {
        self.more.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_more(&self, more: bool) {
        self.more.store(more, Ordering::Relaxed);
    }

    /// The tracker of its memory, or None.
    #[getter]
    fn tracker(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.tracker_of(py)
    }

    fn __len__(&self) -> usize {
        self.body.len()
    }

    fn __bytes__(&self, py: Python<'_>) -> Py<PyBytes> {
        self.bytes(py)
    }

    fn __hash__(slf: &Bound<'_, Self>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (slf.as_ptr() as usize).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let class = slf.get_type();
        let name = if class.is(slf.py().get_type::<Frame>()) {
            "zmq.Frame".to_owned()
        } else {
            format!("{}.{}", class.module()?, class.qualname()?)
        };
        Ok(format!(
            "<{name}({})>",
            summary(slf.py(), this.body.as_slice())?
        ))
    }

    fn __str__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Frame::__repr__(slf)
    }

    /// A property: MORE, SHARED by number, or the peer's metadata by name.
    fn get(&self, py: Python<'_>, option: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if let Ok(number) = option.extract::<i32>() {
            let value = match number {
                1 => i32::from(self.more()),
                3 => i32::from(!self.body.is_inline()),
                _ => {
                    let text = format!("a frame has no property {number}");
                    return Err(Failure::with(ErrorKind::Invalid, text).into());
                }
            };
            return Ok(value.into_pyobject(py)?.into_any().unbind());
        }
        let name = match option.cast::<PyString>() {
            Ok(name) => name.to_str()?.to_owned(),
            Err(_) => match option.cast::<PyBytes>() {
                Ok(name) => String::from_utf8_lossy(name.as_bytes()).into_owned(),
                Err(_) => {
                    return Err(PyTypeError::new_err(format!(
                        "expected int or str, got: {}",
                        option.repr()?
                    )));
                }
            },
        };
        match name.as_str() {
            "routing_id" => self.routing_id(),
            "group" => self.group(),
            _ => match self.property(&name) {
                Some(value) => Ok(PyString::new(py, &value).into_any().unbind()),
                None => Err(Failure::with(
                    ErrorKind::Invalid,
                    format!("the peer announced no {name}"),
                )
                .into()),
            },
        }
    }

    fn __getitem__(&self, py: Python<'_>, option: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.get(py, option)
    }

    /// There is no property that can be set.
    fn set(&self, _option: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(raise(Error::new(ErrorKind::Invalid)))
    }

    #[getter]
    fn routing_id(&self) -> PyResult<Py<PyAny>> {
        Err(draft("routing_id"))
    }

    #[setter]
    fn set_routing_id(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(draft("routing_id"))
    }

    #[getter]
    fn group(&self) -> PyResult<Py<PyAny>> {
        Err(draft("group"))
    }

    #[setter]
    fn set_group(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(draft("group"))
    }

    /// Another frame of the same memory.
    fn fast_copy(&self, py: Python<'_>) -> Frame {
        self.copy_of(py)
    }

    fn __copy__(&self, py: Python<'_>) -> Frame {
        self.copy_of(py)
    }

    #[allow(unsafe_code)]
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: `view` comes from the interpreter; the frame is frozen, so its body neither moves nor changes.
        unsafe { buffer::export(view, flags, slf.as_any(), slf.get().body.as_slice()) }
    }
}

fn draft(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "{what} belongs to draft sockets, which are not built in"
    ))
}

/// `b'...'`, cut after 12 bytes when it is long.
fn summary(py: Python<'_>, body: &[u8]) -> PyResult<String> {
    const SHOWN: usize = 16;
    const CUT: usize = 12;
    if body.len() <= SHOWN {
        return Ok(PyBytes::new(py, body).repr()?.to_string());
    }
    let mut text = PyBytes::new(py, &body[..CUT]).repr()?.to_string();
    let n = body.len();
    let (count, unit) = match n {
        0..1_000 => (n, "B"),
        1_000..1_048_576 => (n / 1_000, "kB"),
        1_048_576..1_000_000_000 => (n / 1_000_000, "MB"),
        _ => (n / 1_000_000_000, "GB"),
    };
    // Writing to a String does not fail.
    let _ = write!(text, "...{count}{unit}");
    Ok(text)
}
