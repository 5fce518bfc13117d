//! Frames: one part of a message, with its memory, metadata and tracker.

use std::collections::hash_map::DefaultHasher;
use std::ffi::c_int;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyMemoryView, PyString, PyWeakrefMethods, PyWeakrefReference};
use zeroxide::{Error, ErrorKind, Frame as CoreFrame, PeerInfo};

use crate::arguments;
use crate::buffer::{self, Private, Release, Shown};
use crate::error::{Failure, raise};
use crate::installed::{default_copy_threshold, finished_tracker, installed};
use crate::labels::{self, Labels};

#[doc = text!(Frame)]
#[pyclass(subclass, frozen, weakref, dict, module = "zeroxide")]
pub(crate) struct Frame {
    memory: Mutex<Memory>,
    more: AtomicBool,
    tracker: Option<Py<PyAny>>,
    peer: Option<Arc<PeerInfo>>,
    /// The routing id and the group, if there are any.
    labels: Mutex<Option<Box<Labels>>>,
    /// The result of `bytes`, once it was requested; set from the start if the body is the memory of such an object.
    bytes: PyOnceLock<Py<PyBytes>>,
    /// The last view returned by `buffer`, as a weak reference, because the view refers to the frame itself.
    view: Mutex<Option<Py<PyWeakrefReference>>>,
}

/// The memory of the body.
struct Memory {
    body: CoreFrame,
    /// Replaces `body` from the first writable view on.
    private: Option<Private>,
}

impl Memory {
    fn as_slice(&self) -> &[u8] {
        match &self.private {
            Some(private) => private.as_slice(),
            None => self.body.as_slice(),
        }
    }
}

impl Frame {
    fn made_of(body: CoreFrame, more: bool, tracker: Option<Py<PyAny>>) -> Frame {
        Frame {
            memory: Mutex::new(Memory {
                body,
                private: None,
            }),
            more: AtomicBool::new(more),
            tracker,
            peer: None,
            labels: Mutex::new(None),
            bytes: PyOnceLock::new(),
            view: Mutex::new(None),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frame that was received.
    pub(crate) fn received(
        py: Python<'_>,
        body: CoreFrame,
        more: bool,
        peer: Option<Arc<PeerInfo>>,
        track: bool,
        labels: Option<Box<Labels>>,
    ) -> Frame {
        let tracker = track.then(|| finished_tracker(py));
        Frame {
            peer,
            labels: Mutex::new(labels),
            ..Frame::made_of(body, more, tracker)
        }
    }

    /// The body, sharing its memory unless there is a writable view.
    pub(crate) fn body(&self) -> PyResult<CoreFrame> {
        let memory = self.memory();
        match &memory.private {
            Some(private) => buffer::copy_of(private.as_slice()),
            None => {
                let mut body = memory.body.clone();
                body.set_more(false);
                Ok(body)
            }
        }
    }

    /// The routing id and the group, if there are any.
    pub(crate) fn labels(&self) -> Option<Box<Labels>> {
        self.labels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn change_labels(&self, change: impl FnOnce(&mut Labels)) {
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        change(labels.get_or_insert_default());
    }

    /// The tracker, if it has one.
    pub(crate) fn tracker_of(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.tracker.as_ref().map(|tracker| tracker.clone_ref(py))
    }

    fn copy_of(&self, py: Python<'_>) -> PyResult<Frame> {
        let copy = Frame {
            peer: self.peer.clone(),
            labels: Mutex::new(self.labels()),
            ..Frame::made_of(self.body()?, self.more(), self.tracker_of(py))
        };
        if let Some(bytes) = self.bytes.get(py) {
            // A new cell is empty.
            let _ = copy.bytes.set(py, bytes.clone_ref(py));
        }
        Ok(copy)
    }

    /// The descriptor of its connection in this process; the connection may have ended.
    fn descriptor(&self) -> Option<i32> {
        self.property("__fd")?.parse().ok()
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

/// The part, if it is a frame.
#[inline]
pub(crate) fn frame_of<'a>(part: &'a Bound<'_, PyAny>) -> Option<&'a Frame> {
    // Most parts are `bytes`, and the comparison with their type is the cheaper one.
    if part.is_exact_instance_of::<PyBytes>() {
        return None;
    }
    part.cast::<Frame>().ok().map(Bound::get)
}

/// The labels of a part, if it is a frame that has some.
#[inline]
pub(crate) fn labels_of(part: &Bound<'_, PyAny>) -> Option<Box<Labels>> {
    frame_of(part)?.labels()
}

/// A tracker for `release`, if there is something to wait for; otherwise the one that is done.
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
        #[pyo3(from_py_with = arguments::track)] track: bool,
        #[pyo3(from_py_with = arguments::copy)] copy: Option<bool>,
        #[pyo3(from_py_with = arguments::copy_threshold)] copy_threshold: Option<usize>,
    ) -> PyResult<Frame> {
        buffer::reclaim();
        let bytes = PyOnceLock::new();
        let (body, tracker) = match data {
            None => (CoreFrame::new(), track.then(|| finished_tracker(py))),
            Some(data) => {
                if data.is_instance_of::<PyString>() {
                    return Err(PyTypeError::new_err(
                        "a frame is bytes, not str: encode the text first",
                    ));
                }
                let threshold = match copy {
                    Some(true) => usize::MAX,
                    Some(false) => 0,
                    None => copy_threshold.unwrap_or_else(|| default_copy_threshold(py)),
                };
                let lent = buffer::lent(data, threshold, track)?;
                if lent.is_lent
                    && let Ok(object) = data.cast_exact::<PyBytes>()
                {
                    let _ = bytes.set(py, object.clone().unbind());
                }
                let tracker = if track {
                    Some(tracker_for(py, lent.release)?)
                } else {
                    None
                };
                (lent.frame, tracker)
            }
        };
        Ok(Frame {
            bytes,
            ..Frame::made_of(body, false, tracker)
        })
    }

    #[doc = text!(Frame::bytes)]
    #[getter]
    fn bytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        let made = self.bytes.get_or_try_init(py, || {
            buffer::bytes_of(py, self.memory().as_slice()).map(Bound::unbind)
        })?;
        Ok(made.clone_ref(py))
    }

    #[doc = text!(Frame::buffer)]
    #[getter]
    fn buffer<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let last = || {
            slf.get()
                .view
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let seen = last().as_ref().map(|view| view.clone_ref(slf.py()));
        if let Some(view) = seen.and_then(|view| view.bind(slf.py()).upgrade()) {
            return Ok(view);
        }
        let view = PyMemoryView::from(slf.as_any())?.into_any();
        let weak = PyWeakrefReference::new(&view)?.unbind();
        // The previous view is dropped after the lock is released.
        let _former = last().replace(weak);
        Ok(view)
    }

    #[doc = text!(Frame::more)]
    #[getter]
    fn more(&self) -> bool {
        self.more.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_more(&self, more: bool) {
        self.more.store(more, Ordering::Relaxed);
    }

    #[doc = text!(Frame::MORE)]
    #[getter(MORE)]
    fn more_number(&self) -> i32 {
        i32::from(self.more())
    }

    #[doc = text!(Frame::SRCFD)]
    #[getter(SRCFD)]
    fn srcfd(&self) -> PyResult<i32> {
        self.descriptor()
            .ok_or_else(|| PyAttributeError::new_err("it did not come over a descriptor"))
    }

    #[doc = text!(Frame::SHARED)]
    #[getter(SHARED)]
    fn shared(&self) -> i32 {
        i32::from(!self.memory().body.is_inline())
    }

    #[doc = text!(Frame::tracker)]
    #[getter]
    fn tracker(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.tracker_of(py)
    }

    fn __len__(&self) -> usize {
        self.memory().as_slice().len()
    }

    fn __bytes__(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
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
            summary(slf.py(), this.memory().as_slice())?
        ))
    }

    fn __str__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Frame::__repr__(slf)
    }

    #[doc = text!(Frame::get)]
    fn get(&self, py: Python<'_>, option: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if let Ok(number) = option.extract::<i32>() {
            let value = match number {
                1 => i32::from(self.more()),
                2 => self.descriptor().ok_or_else(|| {
                    Failure::with(ErrorKind::Invalid, "it did not come over a descriptor")
                })?,
                3 => self.shared(),
                _ => {
                    let text = format!("a frame has no property {number}");
                    return Err(Failure::with(ErrorKind::Invalid, text).into());
                }
            };
            return Ok(value.into_pyobject(py)?.into_any().unbind());
        }
        let name = match option.cast::<PyString>() {
            Ok(name) => arguments::text(name)?.to_owned(),
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
            "routing_id" => Ok(self.routing_id()?.into_pyobject(py)?.into_any().unbind()),
            "group" => Ok(PyString::new(py, &self.group()).into_any().unbind()),
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

    #[doc = text!(Frame::set)]
    fn set(&self, option: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = option.extract::<String>().unwrap_or_default();
        match name.as_str() {
            "routing_id" => self.set_routing_id(value),
            "group" => self.set_group(value),
            _ => Err(raise(Error::new(ErrorKind::Invalid))),
        }
    }

    #[doc = text!(Frame::routing_id)]
    #[getter]
    fn routing_id(&self) -> PyResult<u32> {
        let routing_id = self.labels().and_then(|labels| labels.routing_id);
        let none = "it has no routing id: only what SERVER and PEER receive has one";
        routing_id.ok_or_else(|| Failure::with(ErrorKind::Invalid, none).into())
    }

    #[setter]
    fn set_routing_id(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let routing_id = labels::routing_id(value)?;
        self.change_labels(|labels| labels.routing_id = Some(routing_id));
        Ok(())
    }

    #[doc = text!(Frame::group)]
    #[getter]
    fn group(&self) -> String {
        let group = self.labels().and_then(|labels| labels.group);
        String::from_utf8_lossy(&group.unwrap_or_default()).into_owned()
    }

    #[setter]
    fn set_group(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let group = labels::group(value)?;
        self.change_labels(|labels| labels.group = Some(group));
        Ok(())
    }

    #[doc = text!(Frame::fast_copy)]
    fn fast_copy(&self, py: Python<'_>) -> PyResult<Frame> {
        self.copy_of(py)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Frame> {
        self.copy_of(py)
    }

    #[allow(unsafe_code)]
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let mut memory = slf.get().memory();
        let Memory { body, private } = &mut *memory;
        let shown = if buffer::only_reads(flags) && private.is_none() {
            Shown::ReadOnly(body.as_slice())
        } else {
            let writable = match private.take() {
                Some(private) => private,
                None => Private::of(body)?,
            };
            Shown::Writable(private.insert(writable))
        };
        // SAFETY: the interpreter provides `view`. Neither the frame nor its body moves, because the memory of a view
        // is kept until the frame is dropped.
        unsafe { buffer::export(view, flags, slf.as_any(), &shown) }
    }
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
