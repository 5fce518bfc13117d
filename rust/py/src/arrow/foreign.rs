//! Checks data that other libraries pass by Arrow's C data interface, before and after conversion.
//!
//! The interface has no sizes of buffers, so a producer must be trusted about their lengths. Released structs, counts
//! and pointers that do not match the type, negative lengths, and decreasing offsets are refused here.
//! `ArrayData::validate_full` finds other faults, such as text that is not UTF-8.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Display;
use std::ptr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::{ArrayRef, make_array};
use arrow_schema::Field;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arrow_error;

/// `ArrowSchema` of the interface.
#[repr(C)]
struct RawSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut RawSchema,
    dictionary: *mut RawSchema,
    release: Option<unsafe extern "C" fn(*mut RawSchema)>,
    private_data: *mut c_void,
}

/// `ArrowArray` of the interface.
#[repr(C)]
struct RawArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut RawArray,
    dictionary: *mut RawArray,
    release: Option<unsafe extern "C" fn(*mut RawArray)>,
    private_data: *mut c_void,
}

/// `ArrowArrayStream` of the interface.
#[repr(C)]
pub(super) struct RawStream {
    get_schema: Option<unsafe extern "C" fn(*mut RawStream, *mut FFI_ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut RawStream, *mut FFI_ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut RawStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut RawStream)>,
    private_data: *mut c_void,
}

/// The maximum depth of nested types.
const DEPTH_MAX: usize = 64;

fn refused(what: impl Display) -> PyErr {
    PyValueError::new_err(format!(
        "what an Arrow producer handed in is not valid: {what}"
    ))
}

/// Converts a schema to a field, after checking it.
pub(super) fn field(schema: &FFI_ArrowSchema) -> PyResult<Field> {
    // SAFETY: the same struct, as defined by the interface.
    unsafe { check_schema(ptr::from_ref(schema).cast(), 0)? };
    Field::try_from(schema).map_err(arrow_error)
}

/// Converts an array whose schema was accepted by `field`.
pub(super) fn array(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> PyResult<ArrayRef> {
    if array.is_released() {
        return Err(refused("the array was already consumed or released"));
    }
    // SAFETY: the same structs, as defined by the interface.
    unsafe { check_array(ptr::from_ref(schema).cast(), ptr::from_ref(&array).cast())? };
    // SAFETY: it was checked above. The producer guarantees that its buffers have the stated lengths.
    let data = unsafe { from_ffi(array, schema) }.map_err(arrow_error)?;
    data.validate_full().map_err(refused)?;
    Ok(make_array(data))
}

/// # Safety
/// The pointer is null or points to a schema as defined by the interface.
unsafe fn check_schema(schema: *const RawSchema, depth: usize) -> PyResult<()> {
    // SAFETY: by this function's contract.
    let Some(schema) = (unsafe { schema.as_ref() }) else {
        return Err(refused("a child of a schema is missing"));
    };
    if schema.release.is_none() {
        return Err(refused("the schema was released before"));
    }
    if depth > DEPTH_MAX {
        return Err(refused("types are nested too deeply"));
    }
    // SAFETY: null or C strings, as required by the interface.
    let is_text = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_str().is_ok();
    if schema.format.is_null() || !is_text(schema.format) {
        return Err(refused("a schema has no format"));
    }
    if !schema.name.is_null() && !is_text(schema.name) {
        return Err(refused("the name of a field is not text"));
    }
    let count = children(schema.n_children, schema.children.cast(), "schema")?;
    for index in 0..count {
        // SAFETY: the schema has this number of children.
        unsafe { check_schema(*schema.children.add(index), depth + 1)? };
    }
    if !schema.dictionary.is_null() {
        // SAFETY: a schema, or null.
        unsafe { check_schema(schema.dictionary, depth + 1)? };
    }
    Ok(())
}

fn children(count: i64, list: *const c_void, of: &str) -> PyResult<usize> {
    let count = usize::try_from(count)
        .map_err(|_| refused(format_args!("the {of} has {count} children")))?;
    if count > 0 && list.is_null() {
        return Err(refused(format_args!(
            "the children of the {of} are missing"
        )));
    }
    Ok(count)
}

/// # Safety
/// The schema was checked; the other pointer is null or points to an array as defined by the interface.
unsafe fn check_array(schema: *const RawSchema, array: *const RawArray) -> PyResult<()> {
    // SAFETY: by this function's contract.
    let (Some(schema), Some(array)) = (unsafe { (schema.as_ref(), array.as_ref()) }) else {
        return Err(refused("a child of an array is missing"));
    };
    // SAFETY: a C string, as checked above.
    let format = unsafe { CStr::from_ptr(schema.format) }.to_string_lossy();
    // Far more than possible, but small enough not to overflow when multiplied by a width.
    let sane = |number: i64| (0..=1 << 48).contains(&number);
    if !sane(array.length) || !sane(array.offset) {
        let (length, offset) = (array.length, array.offset);
        let text = format_args!("an array of length {length} and offset {offset}");
        return Err(refused(text));
    }
    if array.null_count < -1 || array.null_count > array.length {
        let (nulls, length) = (array.null_count, array.length);
        return Err(refused(format_args!(
            "an array of {length} with {nulls} nulls"
        )));
    }
    let count = children(array.n_children, array.children.cast(), "array")?;
    if array.n_children != schema.n_children {
        let (has, wanted) = (array.n_children, schema.n_children);
        let text = format_args!("an array of {has} children, with a schema of {wanted}");
        return Err(refused(text));
    }
    if array.dictionary.is_null() != schema.dictionary.is_null() {
        return Err(refused("only one of array and schema has a dictionary"));
    }
    // SAFETY: by this function's contract.
    unsafe { check_buffers(&format, array, count)? };
    for index in 0..count {
        // SAFETY: both have this number of children.
        unsafe { check_array(*schema.children.add(index), *array.children.add(index))? };
    }
    if !schema.dictionary.is_null() {
        // SAFETY: both exist.
        unsafe { check_array(schema.dictionary, array.dictionary)? };
    }
    Ok(())
}

/// # Safety
/// The array is as defined by the interface, and has this format.
unsafe fn check_buffers(format: &str, array: &RawArray, count: usize) -> PyResult<()> {
    let (buffers, wanted) = match format {
        "n" => (0..=0, 0),
        "+r" => (0..=0, 2),
        "u" | "U" | "z" | "Z" => (3..=3, 0),
        // Validity, views, any number of further buffers, and their sizes.
        "vu" | "vz" => (3..=1 << 24, 0),
        "+l" | "+L" | "+m" => (2..=2, 1),
        "+vl" | "+vL" => (3..=3, 1),
        "+s" => (1..=1, count),
        _ if format.starts_with("+w") => (1..=1, 1),
        // Some producers write a validity bitmap, as earlier versions did.
        _ if format.starts_with("+ud") => (2..=3, count),
        _ if format.starts_with("+us") => (1..=2, count),
        _ => (2..=2, 0),
    };
    if !buffers.contains(&array.n_buffers) || count != wanted {
        let has = array.n_buffers;
        let text =
            format_args!("an array of format {format:?} with {has} buffers, {count} children");
        return Err(refused(text));
    }
    if array.n_buffers == 0 {
        return Ok(());
    }
    if array.buffers.is_null() {
        return Err(refused("the buffers of an array are missing"));
    }
    // SAFETY: the array has this number of buffers.
    let buffer = |index: usize| unsafe { *array.buffers.add(index) };
    let has_validity = !format.starts_with("+u");
    if has_validity && array.null_count > 0 && buffer(0).is_null() {
        return Err(refused("an array with nulls does not say which they are"));
    }
    let (length, offset) = (array.length as usize, array.offset as usize);
    if length + offset == 0 {
        return Ok(());
    }
    let last = match format {
        // SAFETY: the interface requires one offset more than the length.
        "u" | "z" | "+l" | "+m" => unsafe { last_offset::<i32>(buffer(1), offset + length)? },
        // SAFETY: As above.
        "U" | "Z" | "+L" => unsafe { last_offset::<i64>(buffer(1), offset + length)? },
        "vu" | "vz" => i64::from(buffer(1).is_null()),
        _ => {
            let data = usize::from(has_validity)..array.n_buffers as usize;
            i64::from(data.into_iter().any(|index| buffer(index).is_null()))
        }
    };
    let missing = match format {
        "u" | "U" | "z" | "Z" => last > 0 && buffer(2).is_null(),
        "+l" | "+L" | "+m" => false,
        _ => last > 0,
    };
    if missing {
        let text = format_args!("a buffer of an array of format {format:?} is missing");
        return Err(refused(text));
    }
    Ok(())
}

/// The end of the range to which the offsets refer.
///
/// # Safety
/// The pointer is null or points to `count` + 1 numbers.
unsafe fn last_offset<T: Copy + Into<i64>>(buffer: *const c_void, count: usize) -> PyResult<i64> {
    if buffer.is_null() {
        return Err(refused("the offsets of an array are missing"));
    }
    let numbers = buffer.cast::<T>();
    let mut before = 0;
    for index in 0..=count {
        // SAFETY: within bounds; the address may be unaligned.
        let next: i64 = unsafe { numbers.add(index).read_unaligned() }.into();
        if next < before {
            let text = format_args!("offset {index} of an array is {next}, after {before}");
            return Err(refused(text));
        }
        before = next;
    }
    Ok(before)
}

/// A stream of arrays, which is released when this is dropped.
pub(super) struct Stream(RawStream);

impl Stream {
    /// Takes a stream and leaves a released one in its place.
    ///
    /// # Safety
    /// The pointer points to a stream as defined by the interface.
    pub(super) unsafe fn take(from: *mut RawStream) -> PyResult<Stream> {
        // SAFETY: by this function's contract.
        let raw = unsafe {
            let raw = ptr::read(from);
            (*from).release = None;
            raw
        };
        if raw.release.is_none() {
            return Err(refused("the stream was already consumed or released"));
        }
        Ok(Stream(raw))
    }

    pub(super) fn schema(&mut self) -> PyResult<FFI_ArrowSchema> {
        let mut schema = FFI_ArrowSchema::empty();
        let Some(get) = self.0.get_schema else {
            return Err(refused("a stream without get_schema"));
        };
        // SAFETY: a stream that was not released, and space for the result.
        let code = unsafe { get(&raw mut self.0, &raw mut schema) };
        self.check(code)?;
        Ok(schema)
    }

    /// The next array, if there is one.
    pub(super) fn next(&mut self) -> PyResult<Option<FFI_ArrowArray>> {
        let mut array = FFI_ArrowArray::empty();
        let Some(get) = self.0.get_next else {
            return Err(refused("a stream without get_next"));
        };
        // SAFETY: as above.
        let code = unsafe { get(&raw mut self.0, &raw mut array) };
        self.check(code)?;
        Ok((!array.is_released()).then_some(array))
    }

    fn check(&mut self, code: c_int) -> PyResult<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: a stream whose last call failed.
        let told = self
            .0
            .get_last_error
            .map(|tell| unsafe { tell(&raw mut self.0) });
        Err(match told.filter(|told| !told.is_null()) {
            // SAFETY: a C string, valid until the next call.
            Some(told) => PyValueError::new_err(
                unsafe { CStr::from_ptr(told) }
                    .to_string_lossy()
                    .into_owned(),
            ),
            None => PyValueError::new_err(std::io::Error::from_raw_os_error(code).to_string()),
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: it is released once, here.
            unsafe { release(&raw mut self.0) };
        }
    }
}
