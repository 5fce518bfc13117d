//! Results that were there at once.
//!
//! Where a call had nothing to wait for, its result comes in a [`Ready`](class) instead of an `asyncio.Future`, which costs
//! more than receiving the message does. `await` gets the value without an exception being raised and caught where Python
//! asks the slot `am_send` for it, which classes made in the ordinary way cannot have, so this one is made by hand. The
//! slots are here; what else a program can do with a future that is done is in `python/zeroxide/_future.py`.
//!
//! An object of this class holds one reference to its value from its making to its end, and nothing ever changes it. Which
//! loop it belongs to is found out by the first who asks, in the thread it was made in: to ask asyncio each time costs, with
//! some Pythons, more than all the rest. As an `asyncio.Future` it takes attributes and weak references; the garbage
//! collector knows it, and breaks circles by its attributes and its loop: its value is older than itself, so that no circle
//! consists of values alone.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_uint, c_ulong, c_void};
use std::mem;
use std::ptr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// An object of the class.
#[repr(C)]
struct Object {
    head: ffi::PyObject,
    value: *mut ffi::PyObject,
    /// Null until somebody has asked.
    event_loop: *mut ffi::PyObject,
    /// As Python's `threading.get_ident` has it.
    thread: c_ulong,
    /// Python makes these when they are needed.
    attributes: *mut ffi::PyObject,
    weak_references: *mut ffi::PyObject,
}

const NAME: &CStr = c"zeroxide._native.Ready";
const DOC: &CStr = c"A future that is done; takes the place of an asyncio.Future.";

/// The class.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    Ok(CLASS.get_or_try_init(py, || make_class(py))?.bind(py))
}

/// A future that is done with `value`.
#[inline]
pub(crate) fn wrap<'py>(py: Python<'py>, value: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let class = class(py)?;
    // SAFETY: the class has no items and no other allocator, so this makes an `Object` whose fields are null, or fails with
    // an exception set. The object takes over the reference to the value.
    unsafe {
        let object = ffi::PyType_GenericAlloc(class.as_ptr().cast(), 0);
        let object = Bound::from_owned_ptr_or_err(py, object)?;
        let fields = object.as_ptr().cast::<Object>();
        (*fields).value = value.into_ptr();
        (*fields).thread = ffi::PyThread_get_thread_ident();
        Ok(object)
    }
}

/// The value, if `object` is of this class.
pub(crate) fn value_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    let py = object.py();
    if !object.get_type().is(class(py)?) {
        return Ok(None);
    }
    // SAFETY: the class cannot be subclassed, and every object of it was made by `wrap`: its value is an object.
    let value = unsafe { Bound::from_borrowed_ptr(py, (*object.as_ptr().cast::<Object>()).value) };
    Ok(Some(value.unbind()))
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
    // Python holds a reference to what is written there, and gives up the one before.
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
    // SAFETY: the slots hold functions of the types that Python expects there; Python copies the members, and the getters
    // live for ever.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&mut spec))? };
    Ok(class.cast_into::<PyType>()?.unbind())
}

/// `isinstance(call, asyncio.Future)` is true of every call; and what a program adds to one can be looked at.
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
    // The class refers to them as long as it lives, which is as long as the process does.
    Box::leak(Box::new(getters)).as_mut_ptr()
}

// ---- slots ---------------------------------------------------------------------------------------------------------------
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
    // SAFETY: this is the end of the object: nobody else has it, and the collector forgets it first. Its memory is from
    // `PyType_GenericAlloc`, which for such a class is the collector's; objects of a class made at run time hold a
    // reference to it.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        let class = ffi::Py_TYPE(object);
        let fields = object.cast::<Object>();
        if !(*fields).weak_references.is_null() {
            ffi::PyObject_ClearWeakRefs(object);
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
        let held = [
            (*fields).value,
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
    // SAFETY: a live object. What goes may run Python code, which finds the place empty.
    unsafe {
        let fields = object.cast::<Object>();
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

/// Ends at once, with the value.
unsafe extern "C" fn send(
    object: *mut ffi::PyObject,
    _sent: *mut ffi::PyObject,
    result: *mut *mut ffi::PyObject,
) -> ffi::PySendResult {
    // SAFETY: a live object, and a place for the result.
    unsafe { *result = ffi::Py_NewRef((*object.cast::<Object>()).value) };
    ffi::PySendResult::PYGEN_RETURN
}

/// The same for those who call `next`: `await` does, since Python 3.12.
unsafe extern "C" fn next(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a live object; what the call returns is ours to give back.
    unsafe {
        let value = (*object.cast::<Object>()).value;
        if value == ffi::Py_None() {
            // Without an exception it is the end, too, with nothing as its value.
        } else if ffi::PyBytes_CheckExact(value) != 0 {
            ffi::PyErr_SetObject(ffi::PyExc_StopIteration, value);
        } else {
            // Of a tuple, Python would make several arguments, and an exception would be taken for the one to raise.
            let nothing = ptr::null_mut::<ffi::PyObject>();
            let end = ffi::PyObject_CallFunctionObjArgs(ffi::PyExc_StopIteration, value, nothing);
            if !end.is_null() {
                ffi::PyErr_SetObject(ffi::PyExc_StopIteration, end);
                ffi::Py_DECREF(end);
            }
        }
    }
    ptr::null_mut()
}

unsafe extern "C" fn future_class(
    _object: *mut ffi::PyObject,
    _closure: *mut c_void,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this.
    let py = unsafe { Python::assume_attached() };
    match asyncio(py).and_then(|asyncio| asyncio.getattr("Future")) {
        Ok(class) => class.into_ptr(),
        Err(error) => {
            error.restore(py);
            ptr::null_mut()
        }
    }
}

// ---- asyncio -------------------------------------------------------------------------------------------------------------

fn asyncio<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("asyncio")?.into_any().unbind())
    })?;
    Ok(module.bind(py).clone())
}

/// The loop that runs in this thread, or None.
pub(crate) fn running_loop<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let function = FUNCTION.get_or_try_init(py, || {
        asyncio(py)?.getattr("_get_running_loop").map(Bound::unbind)
    })?;
    function.bind(py).call0()
}
