//! Reads and exports Python memory. `unsafe` is allowed in this file.
//!
//! * Memory that is sent without a copy is owned by a [`Lent`], which keeps the Python object alive; its bytes do not
//!   move while the object lives. Exact `bytes` objects never change. Other buffers are lent only if the program
//!   requests it (`copy=False`) and, as everywhere in Python, must not be changed before their tracker is done.
//! * The last reference to lent memory may be dropped in an I/O thread, which never waits for the GIL. A dropped
//!   [`Lent`] therefore puts its Python object into a queue, which the next call into the module or the
//!   [`reclaimer`](crate::reclaimer) empties.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::TryReserveError;
use std::ffi::c_int;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString, PyTuple};
use zeroxide::binding::Copies;
use zeroxide::{Frame, Message};
use zeroxide_queue::mpsc::Queue;

use crate::fork::generation;
use crate::reclaimer::{self, Lender};

/// `bytes` objects of at least this size are lent instead of copied. For smaller ones, a copy is cheaper than keeping
/// the object.
const LEND_FROM: usize = 12 * 1024;

/// Objects whose memory is not needed any more, until a thread with the GIL releases them. Lock-free, because a fork
/// could happen while an I/O thread held a lock, and the child would wait for it forever.
static SPENT: Queue<Owner> = Queue::new();

enum Owner {
    Object { _object: Py<PyAny> },
    Buffer { _buffer: View },
}

/// Releases Python objects whose memory is no longer needed. Called with the GIL held.
#[inline]
pub(crate) fn reclaim() {
    if !SPENT.is_empty() {
        reclaim_now();
    }
}

#[cold]
fn reclaim_now() {
    reclaimer::note_reclaimed();
    // A destructor may run Python code that sends and calls this function again, which finds an empty queue or later
    // arrivals.
    drop(SPENT.take_all());
}

/// The number of [`Lent`] objects.
static LENT: AtomicUsize = AtomicUsize::new(0);

/// The number of bytes that were ever lent. It wraps around.
static VOLUME: AtomicUsize = AtomicUsize::new(0);

/// All that is lent by this module.
struct Buffers;

impl Lender for Buffers {
    fn is_anything_lent(&self) -> bool {
        LENT.load(Ordering::SeqCst) > 0
    }

    fn is_anything_spent(&self) -> bool {
        !SPENT.is_empty()
    }

    fn volume(&self) -> usize {
        VOLUME.load(Ordering::Relaxed)
    }

    fn reclaim(&self) {
        reclaim();
    }
}

#[doc = text!(lent_buffers)]
#[pyfunction]
pub(crate) fn lent_buffers() -> usize {
    reclaim();
    LENT.load(Ordering::Relaxed)
}

/// Memory of a Python object that the core refers to.
struct Lent {
    memory: *const u8,
    len: usize,
    owner: Option<Owner>,
    done: Option<Arc<Done>>,
}

// SAFETY: the memory is only read, and does not move while `owner` keeps the Python object alive (and, for a buffer,
// its view open). `owner` itself is accessed only with the GIL: `Drop` merely moves it into the queue.
unsafe impl Send for Lent {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `memory` points to `len` readable bytes for as long as `owner` lives, which is as long as `self`. A
        // program that changes a lent buffer violates the contract of `copy=False`; the peer then receives undefined
        // contents, as with every zero-copy send in Python.
        unsafe { slice::from_raw_parts(self.memory, self.len) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            SPENT.push(owner);
        }
        // Last, because once nothing is lent, nothing can be added to the queue.
        LENT.fetch_sub(1, Ordering::SeqCst);
        if let Some(done) = &self.done {
            done.set();
        }
    }
}

struct Done {
    flag: AtomicBool,
    /// The process that lent the memory.
    process: u32,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Done {
    fn new() -> Arc<Done> {
        Arc::new(Done {
            flag: AtomicBool::new(false),
            process: generation(),
            lock: Mutex::new(()),
            changed: Condvar::new(),
        })
    }

    fn is_set(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.flag.store(true, Ordering::Release);
        // A thread that has not seen the flag holds the lock until it waits.
        if let Some(_guard) = self.locked() {
            self.changed.notify_all();
        }
    }

    /// Waits until it is set, for up to `limit`. Returns whether it is.
    fn wait(&self, limit: Duration) -> bool {
        if self.is_set() {
            return true;
        }
        match self.locked() {
            Some(guard) if !self.is_set() => {
                let waited = self.changed.wait_timeout(guard, limit);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
            Some(_) => {}
            // Without the lock, another thread of this child cannot wake this one.
            None => thread::sleep(limit),
        }
        self.is_set()
    }

    /// Takes the lock. `None` in a forked child, because a thread of the parent may have held the lock at the fork, and
    /// then it stays locked there.
    fn locked(&self) -> Option<MutexGuard<'_, ()>> {
        let is_own = self.process == generation();
        is_own.then(|| self.lock.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[doc = text!(Release)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct Release {
    done: Arc<Done>,
}

#[pymethods]
impl Release {
    #[doc = text!(Release::done)]
    #[getter]
    fn done(&self) -> bool {
        reclaim();
        self.done.is_set()
    }

    #[doc = text!(Release::wait)]
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let deadline = match timeout {
            None => None,
            Some(seconds) => {
                let span = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
                Instant::now().checked_add(span)
            }
        };
        loop {
            let slice = Duration::from_millis(50);
            let left = deadline.map_or(slice, |at| {
                at.saturating_duration_since(Instant::now()).min(slice)
            });
            let done = py.detach(|| self.done.wait(left));
            reclaim();
            py.check_signals()?;
            if done || deadline.is_some_and(|at| at <= Instant::now()) {
                return Ok(done);
            }
        }
    }
}

/// A body in the form that the core takes.
pub(crate) struct Body {
    pub(crate) frame: Frame,
    /// Whether it is the Python object's own memory instead of a copy.
    pub(crate) is_lent: bool,
    /// Its release, if it was lent and a tracker was requested.
    pub(crate) release: Option<Release>,
}

impl Body {
    fn copied(frame: Frame) -> Body {
        Body {
            frame,
            is_lent: false,
            release: None,
        }
    }
}

/// Converts a body for an ordinary send: copied, except for large `bytes` objects, which never change. Inlined, with the
/// functions it calls: a frame is large, and each return in a `Result` would move it.
#[inline(always)]
pub(crate) fn copied(data: &Bound<'_, PyAny>) -> PyResult<Frame> {
    match data.cast_exact::<PyBytes>() {
        Ok(object) => of_bytes(object),
        Err(_) => with_contiguous(data, copy)?,
    }
}

/// Puts `bytes` into an empty message. Bodies that are stored in the frame are written in place, because moving the frame
/// right after it was written would have to wait for the stores.
#[inline(always)]
pub(crate) fn fill_message(message: &mut Message, object: &Bound<'_, PyBytes>) -> PyResult<()> {
    let body = object.as_bytes();
    if Copies::takes(body.len()) && fill_from_block(message, body) {
        return Ok(());
    }
    if body.len() < LEND_FROM {
        return message.try_fill(body).map_err(|error| no_memory(&error));
    }
    *message.head_mut() = lend_bytes(object, false).frame;
    Ok(())
}

/// Puts a body that shares a block into an empty message. Fails at the end of a thread, after its blocks are gone.
#[inline(never)]
fn fill_from_block(message: &mut Message, body: &[u8]) -> bool {
    COPIES
        .try_with(|copies| copies.borrow_mut().fill(message, body))
        .is_ok()
}

/// Like [`copied`], for `bytes`.
#[inline(always)]
pub(crate) fn of_bytes(object: &Bound<'_, PyBytes>) -> PyResult<Frame> {
    let body = object.as_bytes();
    if body.len() < LEND_FROM {
        copy(body)
    } else {
        Ok(lend_bytes(object, false).frame)
    }
}

/// A copy of a body of any size.
#[inline]
pub(crate) fn copy_of(body: &[u8]) -> PyResult<Frame> {
    Frame::try_copy_from(body).map_err(|error| no_memory(&error))
}

/// The exception of a call that found no memory.
#[cold]
pub(crate) fn no_memory(error: &TryReserveError) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}

/// Adds an item to a list of any length.
#[inline]
pub(crate) fn push<T>(items: &mut Vec<T>, item: T) -> PyResult<()> {
    items.try_reserve(1).map_err(|error| no_memory(&error))?;
    items.push(item);
    Ok(())
}

/// A `bytes` object with a copy of a body of any size.
#[inline]
pub(crate) fn bytes_of<'py>(py: Python<'py>, body: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // A slice has at most `isize::MAX` bytes.
    let len = body.len() as ffi::Py_ssize_t;
    // SAFETY: `body` has `len` readable bytes. The result is a new reference to a `bytes` object, or null with an
    // exception set.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(body.as_ptr().cast(), len);
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// A list of objects created one by one; there may be any number of them.
pub(crate) fn list_of<'py>(
    py: Python<'py>,
    mut items: impl ExactSizeIterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyList>> {
    let len = items.len() as ffi::Py_ssize_t;
    // SAFETY: a new reference to a list, or null with an exception set.
    let list = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyList_New(len))? };
    for index in 0..len {
        let item = items.next().ok_or_else(|| PyMemoryError::new_err(()))??;
        // SAFETY: no other code has a reference to the list, which has room for `len` items; it takes over the item's
        // reference. If the loop ends early, the rest stays null, which the destructor of lists allows.
        if unsafe { ffi::PyList_SetItem(list.as_ptr(), index, item.into_ptr()) } != 0 {
            return Err(PyErr::fetch(py));
        }
    }
    // SAFETY: PyList_New has created it.
    Ok(unsafe { list.cast_into_unchecked() })
}

thread_local! {
    static COPIES: RefCell<Copies> = RefCell::new(Copies::new());
}

#[inline(always)]
fn copy(body: &[u8]) -> PyResult<Frame> {
    if !Copies::takes(body.len()) {
        return copy_of(body);
    }
    COPIES
        .try_with(|copies| Ok(copies.borrow_mut().frame(body)))
        .unwrap_or_else(|_| copy_of(body))
}

/// Takes a body without copying it if it has at least `threshold` bytes.
pub(crate) fn lent(data: &Bound<'_, PyAny>, threshold: usize, track: bool) -> PyResult<Body> {
    if let Ok(object) = data.cast_exact::<PyBytes>() {
        if object.as_bytes().len() >= threshold.max(1) {
            return Ok(lend_bytes(object, track));
        }
        return Ok(Body::copied(copy(object.as_bytes())?));
    }
    let buffer = view(data)?;
    if buffer.len() < threshold.max(1) {
        return Ok(Body::copied(with_contiguous(data, copy)??));
    }
    let done = track.then(Done::new);
    let lent = Lent {
        memory: buffer.pointer(),
        len: buffer.len(),
        owner: Some(Owner::Buffer { _buffer: buffer }),
        done: done.clone(),
    };
    Ok(finish(lent, done))
}

fn lend_bytes(object: &Bound<'_, PyBytes>, track: bool) -> Body {
    let body = object.as_bytes();
    let done = track.then(Done::new);
    let lent = Lent {
        memory: body.as_ptr(),
        len: body.len(),
        owner: Some(Owner::Object {
            _object: object.clone().into_any().unbind(),
        }),
        done: done.clone(),
    };
    finish(lent, done)
}

fn finish(lent: Lent, done: Option<Arc<Done>>) -> Body {
    VOLUME.fetch_add(lent.len, Ordering::Relaxed);
    LENT.fetch_add(1, Ordering::SeqCst);
    reclaimer::note_lent(&Buffers);
    Body {
        // Never a copy inside the frame, however small, because lent memory is in use until the frame is dropped.
        frame: Frame::shared(Bytes::from_owner(lent)),
        is_lent: true,
        release: done.map(|done| Release { done }),
    }
}

/// A view of a buffer as plain bytes. pyo3's own type has requirements that not every exporter meets.
struct View {
    /// On the heap: exporters may keep its address.
    raw: Box<ffi::Py_buffer>,
}

// SAFETY: a view describes memory; nothing in it belongs to a thread, and it is only released with the GIL.
unsafe impl Send for View {}

impl View {
    fn get(data: &Bound<'_, PyAny>, flags: c_int) -> PyResult<View> {
        let mut raw = Box::new(ffi::Py_buffer::new());
        // SAFETY: `data` is an object, and `raw` has room for its description.
        if unsafe { ffi::PyObject_GetBuffer(data.as_ptr(), &raw mut *raw, flags) } == 0 {
            Ok(View { raw })
        } else {
            Err(PyErr::fetch(data.py()))
        }
    }

    fn pointer(&self) -> *mut u8 {
        self.raw.buf.cast()
    }

    fn len(&self) -> usize {
        usize::try_from(self.raw.len).unwrap_or(0)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: it was filled in by PyObject_GetBuffer and is released once, with the GIL.
        Python::attach(|_| unsafe { ffi::PyBuffer_Release(&raw mut *self.raw) });
    }
}

/// The error for a message that is not bytes; it names the call that sends such an object.
#[cold]
fn not_bytes(data: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let kind = data.get_type().qualname()?;
    let cure = if data.is_instance_of::<PyString>() {
        format!("send_string({}) encodes text", shown(data)?)
    } else if data.is_instance_of::<PyList>() || data.is_instance_of::<PyTuple>() {
        "send_multipart takes a list of parts".to_owned()
    } else {
        "send_json, send_typed and send_pyobj take objects".to_owned()
    };
    Ok(PyTypeError::new_err(format!(
        "a message is bytes, not {kind}: {cure}"
    )))
}

/// The beginning of an object's `repr`, for errors.
pub(crate) fn shown(object: &Bound<'_, PyAny>) -> PyResult<String> {
    const LONGEST: usize = 40;
    let shown = object.repr()?.to_string_lossy().into_owned();
    match shown.char_indices().nth(LONGEST) {
        Some((end, _)) => Ok(format!("{}...", &shown[..end])),
        None => Ok(shown),
    }
}

/// Whether the argument is one body, or text, where a list is expected.
pub(crate) fn is_one_body(data: &Bound<'_, PyAny>) -> bool {
    data.is_instance_of::<PyBytes>()
        || data.is_instance_of::<PyString>()
        || data.is_instance_of::<PyByteArray>()
        || data.is_instance_of::<PyMemoryView>()
}

/// The bytes of a buffer to send, whose memory is in one piece.
fn view(data: &Bound<'_, PyAny>) -> PyResult<View> {
    view_or(data, "send a copy, e.g. bytes(data)")
}

/// The same; `advice` is what to do about memory that is not in one piece.
fn view_or(data: &Bound<'_, PyAny>, advice: &str) -> PyResult<View> {
    // SAFETY: `data` is an object.
    if unsafe { ffi::PyObject_CheckBuffer(data.as_ptr()) } == 0 {
        return Err(not_bytes(data)?);
    }
    match View::get(data, ffi::PyBUF_SIMPLE) {
        // NumPy raises a ValueError in this case; so does a released memoryview, for another reason.
        Err(error)
            if error.is_instance_of::<PyBufferError>(data.py())
                || (error.is_instance_of::<PyValueError>(data.py())
                    && !data.is_instance_of::<PyMemoryView>()) =>
        {
            // In one piece, but with the columns before the rows, as in Fortran. The bytes are sent as they are stored.
            View::get(data, ffi::PyBUF_ANY_CONTIGUOUS)
                .map_err(|_| not_contiguous(&error, advice, data.py()))
        }
        other => other,
    }
}

/// The error for a buffer with gaps: a `BufferError` and a `ValueError`, because exporters raise either.
#[cold]
fn not_contiguous(error: &PyErr, advice: &str, py: Python<'_>) -> PyErr {
    let text = format!(
        "{}; the buffer must be contiguous: {advice}",
        error.value(py)
    );
    let class = py
        .import("zeroxide._hints")
        .and_then(|hints| hints.getattr("NotContiguous"));
    match class.and_then(|class| class.call1((text,))) {
        Ok(error) => PyErr::from_value(error),
        Err(failed) => failed,
    }
}

/// Looks at a contiguous buffer as bytes.
pub(crate) fn with_contiguous<T>(
    data: &Bound<'_, PyAny>,
    look: impl FnOnce(&[u8]) -> T,
) -> PyResult<T> {
    let buffer = view(data)?;
    let len = buffer.len();
    if len == 0 {
        return Ok(look(&[]));
    }
    // SAFETY: a plain view is contiguous, has `len` readable bytes from `pointer` on, and stays open until the end of
    // this function. Python code in another thread may write to it meanwhile. The bytes are only copied, so the worst
    // result is a torn copy, as with every such read in CPython.
    Ok(look(unsafe {
        slice::from_raw_parts(buffer.pointer(), len)
    }))
}

/// A writable buffer for a message. While this exists, the owner of the memory cannot resize or release it.
pub(crate) struct Target {
    buffer: View,
    room: usize,
}

impl Target {
    /// Checks before receiving that the buffer can hold `nbytes` bytes of a message (0 = all it has room for).
    pub(crate) fn of(target: &Bound<'_, PyAny>, nbytes: i64) -> PyResult<Target> {
        let nbytes = usize::try_from(nbytes)
            .map_err(|_| PyValueError::new_err("nbytes must not be negative"))?;
        let advice = "receive into another one, such as a bytearray";
        let buffer = view_or(target, advice).map_err(|error| {
            let kind = target.get_type().qualname();
            match kind
                .ok()
                .filter(|_| error.is_instance_of::<PyTypeError>(target.py()))
            {
                Some(kind) => PyTypeError::new_err(format!(
                    "recv_into takes a writable buffer such as a bytearray, not {kind}"
                )),
                None => error,
            }
        })?;
        check_target(&buffer, nbytes)?;
        let room = if nbytes == 0 { buffer.len() } else { nbytes };
        Ok(Target { buffer, room })
    }

    /// Copies the beginning of `body`, as much of it as there is room for.
    pub(crate) fn fill(&self, body: &[u8]) {
        let count = self.room.min(body.len());
        if count > 0 {
            // SAFETY: the view is writable, contiguous, and has at least `room` bytes (checked by `of`). `body` may
            // overlap it, because over inproc it may be memory lent by the sender, and `copy` allows that.
            unsafe { std::ptr::copy(body.as_ptr(), self.buffer.pointer(), count) };
        }
    }
}

fn check_target(buffer: &View, nbytes: usize) -> PyResult<()> {
    if buffer.raw.readonly != 0 {
        return Err(PyBufferError::new_err("the buffer is read-only"));
    }
    if nbytes > buffer.len() {
        let text = format!(
            "nbytes={nbytes} is more than the buffer has: {}",
            buffer.len()
        );
        return Err(PyValueError::new_err(text));
    }
    Ok(())
}

/// The memory of a frame after a writable view was requested: not shared with anything else.
pub(crate) struct Private {
    start: *mut u8,
    len: usize,
    /// Keeps the memory and is never read, because the holder of a view may be writing through `start`.
    _block: BytesMut,
}

// SAFETY: the memory belongs exclusively to this object. Python code in several threads may write to it through views,
// as to a bytearray; here it is only copied, so the worst result is a torn copy.
unsafe impl Send for Private {}
// SAFETY: as above.
unsafe impl Sync for Private {}

impl Private {
    /// Takes the memory of `frame` if it is not shared, and a copy otherwise. Existing views stay valid, because memory
    /// that is not taken stays in the frame.
    pub(crate) fn of(frame: &mut Frame) -> PyResult<Private> {
        let mut block = if frame.is_inline() {
            BytesMut::from(frame.as_slice())
        } else {
            match std::mem::take(frame).into_bytes().try_into_mut() {
                Ok(block) => block,
                Err(shared) => {
                    let copy = copy_of(&shared);
                    *frame = Frame::shared(shared);
                    let copy = copy?.into_bytes();
                    // The copy has no other references yet.
                    copy.try_into_mut()
                        .unwrap_or_else(|copy| BytesMut::from(copy.as_ref()))
                }
            }
        };
        Ok(Private {
            start: block.as_mut_ptr(),
            len: block.len(),
            _block: block,
        })
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: `start` points to `len` initialised bytes of the block, which neither moves nor is freed before
        // `self`.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

/// Memory to export to Python.
pub(crate) enum Shown<'a> {
    ReadOnly(&'a [u8]),
    Writable(&'a Private),
}

/// Whether a request for a buffer with these flags may be given shared memory. A request for plain bytes only reads
/// them; a memoryview reports whether it is writable, and NumPy accepts either.
pub(crate) fn only_reads(flags: c_int) -> bool {
    flags == ffi::PyBUF_SIMPLE
}

/// Fills in a buffer view of `memory`, which belongs to the Python object `owner` and lives as long as it.
///
/// # Safety
/// `view` is the pointer that the interpreter passed to `__getbuffer__`.
pub(crate) unsafe fn export(
    view: *mut ffi::Py_buffer,
    flags: c_int,
    owner: &Bound<'_, PyAny>,
    memory: &Shown<'_>,
) -> PyResult<()> {
    let (start, len, read_only) = match memory {
        Shown::ReadOnly(body) => (body.as_ptr().cast_mut(), body.len(), 1),
        Shown::Writable(private) => (private.start, private.len, 0),
    };
    // SAFETY: `view` is valid by this function's contract. The memory outlives the view, because the view has a
    // reference to `owner`, which keeps the memory in place. Only private memory is exported as writable.
    let result = unsafe {
        ffi::PyBuffer_FillInfo(
            view,
            owner.as_ptr(),
            start.cast(),
            len as ffi::Py_ssize_t,
            read_only,
            flags,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(PyErr::fetch(owner.py()))
    }
}
