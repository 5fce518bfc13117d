//! Futures of immediate results.
//!
//! If a call did not have to wait, its result comes in a [`Ready`](class) instead of an `asyncio.Future`, which costs
//! more than receiving the message does. `await` gets the value without raising and catching an exception if Python
//! finds the slot `am_send`. Classes made in the ordinary way cannot have that slot, so this class is made by hand. The
//! slots are in this file. Everything else that a program can do with a future that is done is in
//! `python/zeroxide/_futures.py`. This file is long because no other file in this folder may contain unsafe code.
//!
//! A received message belongs to the code that asks for the result, by `await` or by `result`. If no code ever does,
//! because the object is dropped, or because a task made from it is cancelled before its first step, the message goes
//! back to the socket. Until then, the object holds a reference to the socket.
//!
//! An object of this class holds one reference to its value for its whole life, unless it has given its message back.
//! Such an object has no value, and is a cancelled future. The object learns which loop it belongs to on the first
//! request, in the thread that made it, because with some Pythons asking asyncio for every object costs more than
//! everything else here. Like an `asyncio.Future`, it accepts attributes and weak references. The garbage collector
//! knows the object, and breaks cycles through its attributes, its loop and its socket. The value is older than the
//! object, so no cycle consists of values alone.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_uint, c_ulong, c_void};
use std::mem::{self, ManuallyDrop};
use std::ptr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::PyType;

use super::back::Back;
use crate::interpreter::is_interpreter_up;
use crate::socket::Socket;

/// An object of the class.
#[repr(C)]
struct Object {
    head: ffi::PyObject,
    /// Null after the message was given back.
    value: *mut ffi::PyObject,
    /// How to give the message back; `None` after the value was handed out.
    undo: Option<Undo>,
    /// Null until the first request for it.
    event_loop: *mut ffi::PyObject,
    /// The thread's number, as in Python's `threading.get_ident`.
    thread: c_ulong,
    /// Python creates these two on demand.
    attributes: *mut ffi::PyObject,
    weak_references: *mut ffi::PyObject,
}

/// How to give a message back. It owns its references, but cannot drop them by itself: see [`Undo::give_back`] and
/// [`Undo::forget`].
struct Undo {
    /// An `AsyncSocket`.
    socket: *mut ffi::PyObject,
    /// The original value, if a program's function made the current value from it. Otherwise null.
    original: *mut ffi::PyObject,
    back: Back,
}

/// A message from which a program's function makes a value; see [`take`].
pub(crate) struct Taken<'py> {
    socket: Bound<'py, PyAny>,
    original: Bound<'py, PyAny>,
    back: Back,
}

const NAME: &CStr = c"zeroxide._native.Ready";
const DOC: &CStr = c"A future that is done, used instead of an asyncio.Future.";

/// Returns the class.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    Ok(CLASS.get_or_try_init(py, || make_class(py))?.bind(py))
}

/// Makes a future that is done with `value`.
#[inline]
pub(crate) fn wrap<'py>(py: Python<'py>, value: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
    make(value.into_bound(py), None)
}

/// Makes a future that is done with a value that `socket` received. `back` gives its message back.
#[inline]
pub(crate) fn wrap_received<'py>(
    value: Bound<'py, PyAny>,
    socket: &Bound<'py, Socket>,
    back: Back,
) -> PyResult<Bound<'py, PyAny>> {
    let undo = Undo {
        socket: socket.clone().into_ptr(),
        original: ptr::null_mut(),
        back,
    };
    make(value, Some(undo))
}

/// Makes a future that is done with the value that a function made from a message.
pub(crate) fn wrap_loaded<'py>(
    value: Bound<'py, PyAny>,
    taken: Option<Taken<'py>>,
) -> PyResult<Bound<'py, PyAny>> {
    let undo = taken.map(|taken| Undo {
        socket: taken.socket.into_ptr(),
        original: taken.original.into_ptr(),
        back: taken.back,
    });
    make(value, undo)
}

#[inline]
fn make<'py>(value: Bound<'py, PyAny>, undo: Option<Undo>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let made = class(py).and_then(|class| {
        // SAFETY: the class has no items and no other allocator, so this call makes an `Object` whose fields are zero,
        // or fails with an exception set.
        unsafe {
            let object = ffi::PyType_GenericAlloc(class.as_ptr().cast(), 0);
            Bound::from_owned_ptr_or_err(py, object)
        }
    });
    match made {
        Ok(object) => {
            // SAFETY: no other code has seen the object yet. It takes over the references.
            unsafe {
                let fields = object.as_ptr().cast::<Object>();
                ptr::addr_of_mut!((*fields).undo).write(undo);
                (*fields).value = value.into_ptr();
                (*fields).thread = ffi::PyThread_get_thread_ident();
            }
            Ok(object)
        }
        Err(error) => {
            // There is not enough memory for the object.
            if let Some(undo) = undo {
                undo.give_back(&value);
            }
            Err(error)
        }
    }
}

impl Undo {
    /// Gives the message back; `value` is the value of the call.
    #[cold]
    fn give_back(self, value: &Bound<'_, PyAny>) {
        let py = value.py();
        // SAFETY: `self` owned the references. From now on, these two values own them.
        let (original, socket) = unsafe {
            (
                Bound::from_owned_ptr_or_opt(py, self.original),
                Bound::from_owned_ptr(py, self.socket),
            )
        };
        // At the end of the program, no code is left that could receive the message.
        if is_interpreter_up()
            && let Ok(socket) = socket.cast::<Socket>()
            && let Ok(core) = socket.get().core()
        {
            self.back
                .give_back(core, original.as_ref().unwrap_or(value));
        }
    }

    /// Drops the references after the message was handed out.
    ///
    /// # Safety
    /// The GIL is held.
    #[inline]
    unsafe fn forget(self) {
        drop(self.back);
        // SAFETY: `self` owned the references. Dropping an object may run Python code.
        unsafe {
            ffi::Py_XDECREF(self.original);
            ffi::Py_DECREF(self.socket);
        }
    }
}

/// Returns the value, if `object` is of this class and has one, for a function that makes another value from it. The
/// message then belongs to the caller.
pub(crate) fn take<'py>(
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyAny>, Option<Taken<'py>>)>> {
    let py = object.py();
    if !object.get_type().is(class(py)?) {
        return Ok(None);
    }
    // SAFETY: the class cannot be subclassed, and every object of it was made by `make`: its value is an object or
    // null. The references in `undo` are handed on.
    unsafe {
        let fields = object.as_ptr().cast::<Object>();
        let Some(value) = Bound::from_borrowed_ptr_or_opt(py, (*fields).value) else {
            return Ok(None);
        };
        let undo = alone(object.as_ptr(), |fields| fields.undo.take());
        let taken = undo.map(|undo| Taken {
            socket: Bound::from_owned_ptr(py, undo.socket),
            original: Bound::from_owned_ptr_or_opt(py, undo.original)
                .unwrap_or_else(|| undo.back.original(&value)),
            back: undo.back,
        });
        Ok(Some((value, taken)))
    }
}

/// Whether the caller holds the only reference to a future.
pub(crate) fn is_held_once(future: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::Py_REFCNT(future.as_ptr()) == 1 }
}

fn make_class(py: Python<'_>) -> PyResult<Py<PyType>> {
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let member = |name: &'static CStr, type_code: c_int, offset: usize| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code,
        offset: offset as ffi::Py_ssize_t,
        flags: ffi::Py_READONLY,
        doc: ptr::null(),
    };
    // When this member is written, Python takes a reference to the new value, and drops its reference to the old one.
    let event_loop = ffi::PyMemberDef {
        flags: 0,
        ..member(
            c"_made_in",
            ffi::Py_T_OBJECT_EX,
            mem::offset_of!(Object, event_loop),
        )
    };
    let mut members = [
        member(
            c"_result",
            ffi::Py_T_OBJECT_EX,
            mem::offset_of!(Object, value),
        ),
        event_loop,
        member(c"_thread", ffi::Py_T_ULONG, mem::offset_of!(Object, thread)),
        member(
            c"__dictoffset__",
            ffi::Py_T_PYSSIZET,
            mem::offset_of!(Object, attributes),
        ),
        member(
            c"__weaklistoffset__",
            ffi::Py_T_PYSSIZET,
            mem::offset_of!(Object, weak_references),
        ),
        ffi::PyMemberDef::default(),
    ];
    let mut slots = [
        slot(ffi::Py_tp_doc, DOC.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_new, new as *mut c_void),
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse as *mut c_void),
        slot(ffi::Py_tp_clear, clear as *mut c_void),
        slot(ffi::Py_tp_iter, itself as *mut c_void),
        slot(ffi::Py_tp_iternext, next as *mut c_void),
        slot(ffi::Py_am_await, itself as *mut c_void),
        slot(ffi::Py_am_send, send as *mut c_void),
        slot(ffi::Py_tp_methods, methods().cast()),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_getset, getters().cast()),
        slot(0, ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: NAME.as_ptr(),
        basicsize: mem::size_of::<Object>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_GC) as c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the slots hold functions of the types that Python expects there; Python copies the members, and the
    // getters live forever.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&mut spec))? };
    Ok(class.cast_into::<PyType>()?.unbind())
}

/// The getter of `__class__` makes `isinstance(call, asyncio.Future)` true for every call. The getter of `__dict__`
/// shows the attributes that a program has added.
fn getters() -> *mut ffi::PyGetSetDef {
    let getters = [
        ffi::PyGetSetDef {
            name: c"__class__".as_ptr(),
            get: Some(future_class),
            ..ffi::PyGetSetDef::default()
        },
        ffi::PyGetSetDef {
            name: c"__dict__".as_ptr(),
            get: Some(ffi::PyObject_GenericGetDict),
            set: Some(ffi::PyObject_GenericSetDict),
            ..ffi::PyGetSetDef::default()
        },
        ffi::PyGetSetDef::default(),
    ];
    // The class refers to them for its whole life, which is that of the process.
    Box::leak(Box::new(getters)).as_mut_ptr()
}

/// A program calls `result` for the value. A task that is cancelled before its first step calls `_give_back`.
fn methods() -> *mut ffi::PyMethodDef {
    let method = |name: &'static CStr, function: ffi::PyCFunction| ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: function,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: ptr::null(),
    };
    let methods = [
        method(c"result", result),
        method(c"_give_back", give_back),
        ffi::PyMethodDef::zeroed(),
    ];
    // Leaked for the same reason as the getters.
    Box::leak(Box::new(methods)).as_mut_ptr()
}

// ---- the message ----------------------------------------------------------------------------------------------------

/// Runs `work` while no other thread can do so with this object, because some Pythons have no GIL.
///
/// # Safety
/// `object` is a live object of the class; the GIL, if there is one, is held.
#[inline]
unsafe fn alone<T>(object: *mut ffi::PyObject, work: impl FnOnce(&mut Object) -> T) -> T {
    // SAFETY: as above. The caller keeps its reference. `work` runs no Python code.
    unsafe {
        let py = Python::assume_attached();
        let held = ManuallyDrop::new(Bound::from_owned_ptr(py, object));
        with_critical_section(&held, || work(&mut *object.cast::<Object>()))
    }
}

/// Gives the message back, unless the value was handed out. Returns whether the message was given back. Keeps an
/// exception that is set.
///
/// # Safety
/// As [`alone`].
#[cold]
unsafe fn undo(object: *mut ffi::PyObject) -> bool {
    // SAFETY: as above. The object owned the reference to the value. From now on, this function owns it.
    unsafe {
        let Some((undo, value)) = alone(object, |fields| {
            let undo = fields.undo.take()?;
            Some((undo, mem::replace(&mut fields.value, ptr::null_mut())))
        }) else {
            return false;
        };
        let py = Python::assume_attached();
        let (mut kind, mut error, mut traceback) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        ffi::PyErr_Fetch(&mut kind, &mut error, &mut traceback);
        let value = Bound::from_owned_ptr(py, value);
        undo.give_back(&value);
        drop(value);
        ffi::PyErr_Restore(kind, error, traceback);
        true
    }
}

/// Returns the value as a new reference, or null with an exception set if the message was given back.
///
/// # Safety
/// As [`alone`].
#[inline]
unsafe fn value_of(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above. `forget` may run Python code, which finds `undo` already taken.
    unsafe {
        let (value, undo) = alone(object, |fields| {
            ffi::Py_XINCREF(fields.value);
            (fields.value, fields.undo.take())
        });
        if let Some(undo) = undo {
            undo.forget();
        }
        if value.is_null() {
            cancelled();
        }
        value
    }
}

#[cold]
fn cancelled() {
    // SAFETY: the slots call this with the GIL held.
    let py = unsafe { Python::assume_attached() };
    let raised = asyncio(py).and_then(|asyncio| asyncio.getattr("CancelledError")?.call0());
    raised
        .map_or_else(|error| error, PyErr::from_value)
        .restore(py);
}

unsafe extern "C" fn result(
    object: *mut ffi::PyObject,
    _nothing: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a live object.
    unsafe { value_of(object) }
}

unsafe extern "C" fn give_back(
    object: *mut ffi::PyObject,
    _nothing: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a live object.
    unsafe { ffi::PyBool_FromLong(undo(object).into()) }
}

// ---- slots ----------------------------------------------------------------------------------------------------------
//
// Python calls these with the GIL held and with objects of the class, and takes over the references that they return.

unsafe extern "C" fn new(
    _class: *mut ffi::PyTypeObject,
    arguments: *mut ffi::PyObject,
    _keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python passes a tuple; the item is borrowed from it.
    let (py, value) = unsafe {
        let py = Python::assume_attached();
        if ffi::PyTuple_Size(arguments) != 1 {
            PyTypeError::new_err("Ready takes one argument").restore(py);
            return ptr::null_mut();
        }
        (
            py,
            Bound::from_borrowed_ptr(py, ffi::PyTuple_GetItem(arguments, 0)),
        )
    };
    match wrap(py, value.unbind()) {
        Ok(object) => object.into_ptr(),
        Err(error) => {
            error.restore(py);
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: the object ends here: no other code refers to it, and the collector forgets it first. Its memory is from
    // `PyType_GenericAlloc`, which for such a class is the collector's; objects of a class made at run time hold a
    // reference to it.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        let class = ffi::Py_TYPE(object);
        let fields = object.cast::<Object>();
        if !(*fields).weak_references.is_null() {
            ffi::PyObject_ClearWeakRefs(object);
        }
        if (*fields).undo.is_some() {
            undo(object);
        }
        let held = [(*fields).value, (*fields).event_loop, (*fields).attributes];
        ffi::PyObject_GC_Del(object.cast());
        for reference in held {
            ffi::Py_XDECREF(reference);
        }
        ffi::Py_DECREF(class.cast());
    }
}

unsafe extern "C" fn traverse(
    object: *mut ffi::PyObject,
    visit: ffi::visitproc,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: a live object, which may not have its value yet.
    unsafe {
        let fields = object.cast::<Object>();
        let class = ffi::Py_TYPE(object).cast();
        let (socket, original) = match &(*fields).undo {
            Some(undo) => (undo.socket, undo.original),
            None => (ptr::null_mut(), ptr::null_mut()),
        };
        let held = [
            (*fields).value,
            socket,
            original,
            (*fields).event_loop,
            (*fields).attributes,
            class,
        ];
        for reference in held.into_iter().filter(|reference| !reference.is_null()) {
            let result = visit(reference, argument);
            if result != 0 {
                return result;
            }
        }
    }
    0
}

unsafe extern "C" fn clear(object: *mut ffi::PyObject) -> c_int {
    // SAFETY: a live object. Dropping an object may run Python code, which finds the fields empty.
    unsafe {
        let fields = object.cast::<Object>();
        undo(object);
        let attributes = mem::replace(&mut (*fields).attributes, ptr::null_mut());
        let event_loop = mem::replace(&mut (*fields).event_loop, ptr::null_mut());
        ffi::Py_XDECREF(attributes);
        ffi::Py_XDECREF(event_loop);
    }
    0
}

unsafe extern "C" fn itself(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a live object.
    unsafe { ffi::Py_NewRef(object) }
}

/// Ends the `await` at once, with the value.
unsafe extern "C" fn send(
    object: *mut ffi::PyObject,
    _sent: *mut ffi::PyObject,
    result: *mut *mut ffi::PyObject,
) -> ffi::PySendResult {
    // SAFETY: a live object, and a place for the result.
    unsafe {
        *result = value_of(object);
        match (*result).is_null() {
            false => ffi::PySendResult::PYGEN_RETURN,
            true => ffi::PySendResult::PYGEN_ERROR,
        }
    }
}

/// The same for callers of `next`. `await` is one of them since Python 3.12.
unsafe extern "C" fn next(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a live object. This function owns the reference that `value_of` and the call return.
    unsafe {
        let value = value_of(object);
        if value.is_null() || value == ffi::Py_None() {
            // The future was cancelled, or its value is None, for which no exception is needed.
        } else if ffi::PyBytes_CheckExact(value) != 0 {
            ffi::PyErr_SetObject(ffi::PyExc_StopIteration, value);
        } else {
            // Python would turn a tuple into several arguments, and raise an exception that is given as the value.
            let nothing = ptr::null_mut::<ffi::PyObject>();
            let end = ffi::PyObject_CallFunctionObjArgs(ffi::PyExc_StopIteration, value, nothing);
            if !end.is_null() {
                ffi::PyErr_SetObject(ffi::PyExc_StopIteration, end);
                ffi::Py_DECREF(end);
            }
        }
        ffi::Py_XDECREF(value);
    }
    ptr::null_mut()
}

unsafe extern "C" fn future_class(
    _object: *mut ffi::PyObject,
    _closure: *mut c_void,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this getter with the GIL held.
    let py = unsafe { Python::assume_attached() };
    match asyncio(py).and_then(|asyncio| asyncio.getattr("Future")) {
        Ok(class) => class.into_ptr(),
        Err(error) => {
            error.restore(py);
            ptr::null_mut()
        }
    }
}

// ---- asyncio --------------------------------------------------------------------------------------------------------

fn asyncio<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("asyncio")?.into_any().unbind())
    })?;
    Ok(module.bind(py).clone())
}

/// Returns the loop that runs in this thread, or None.
pub(crate) fn running_loop<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let function = FUNCTION.get_or_try_init(py, || {
        asyncio(py)?.getattr("_get_running_loop").map(Bound::unbind)
    })?;
    function.bind(py).call0()
}
