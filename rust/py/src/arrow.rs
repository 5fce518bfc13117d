//! Imports and exports Arrow tables by the PyCapsule interface, without a library on either side. `unsafe` is allowed
//! in this file.
//!
//! * Imported memory belongs to its producer. It may be Python's, so it must not be used after the call by a thread
//!   without the GIL. Code that keeps rows copies them.
//! * Exported memory is Rust's; consumers release it from any thread.

#![allow(unsafe_code)]

mod foreign;

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, StructArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use zeroxide_log::{Table, TableError};

use crate::buffer::{copy_of, with_contiguous};
use crate::frame::Frame;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// A table that Arrow rejects is a mistake of the caller.
pub(crate) fn arrow_error(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn table_error(error: TableError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[doc = text!(ArrowTable)]
#[pyclass(frozen, module = "zeroxide")]
pub(crate) struct ArrowTable {
    table: Table,
}

impl ArrowTable {
    pub(crate) fn new(table: Table) -> ArrowTable {
        ArrowTable { table }
    }

    /// Wraps one batch.
    pub(crate) fn of_batch(batch: RecordBatch) -> ArrowTable {
        ArrowTable::new(Table {
            schema: batch.schema(),
            batches: vec![batch],
        })
    }
}

#[pymethods]
impl ArrowTable {
    /// Takes the rows of an object of another library, which may read them from a stream that waits.
    #[staticmethod]
    fn _of(data: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        import(data).map(ArrowTable::new)
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.table.rows()
    }

    #[doc = text!(ArrowTable::num_rows)]
    #[getter]
    fn num_rows(&self) -> usize {
        self.table.rows()
    }

    #[doc = text!(ArrowTable::num_batches)]
    #[getter]
    fn num_batches(&self) -> usize {
        self.table.batches.len()
    }

    #[doc = text!(ArrowTable::nbytes)]
    #[getter]
    fn nbytes(&self) -> usize {
        let columns = self.table.batches.iter().flat_map(RecordBatch::columns);
        columns
            .map(|column| column.to_data().get_slice_memory_size().unwrap_or(0))
            .sum()
    }

    #[doc = text!(ArrowTable::column_names)]
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let fields = self.table.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    #[doc = text!(ArrowTable::batches)]
    fn batches(&self) -> Vec<ArrowTable> {
        let batches = self.table.batches.iter().cloned();
        batches.map(ArrowTable::of_batch).collect()
    }

    /// The type of a row, for Arrow's C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.table.schema).map_err(arrow_error)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    /// All rows as one array of structs. A requested schema is ignored, because the consumer can cast.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema; // may be ignored, and is
        let rows = StructArray::from(self.table.to_batch().map_err(table_error)?).to_data();
        let (array, _) = to_ffi(&rows).map_err(arrow_error)?;
        let array = PyCapsule::new_with_value(py, array, ARRAY)?;
        PyTuple::new(py, [self.__arrow_c_schema__(py)?, array])
    }

    /// The batches, one at a time.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // may be ignored, and is
        let batches = self.table.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.table.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, STREAM)
    }

    fn __repr__(&self) -> String {
        format!(
            "<zeroxide.ArrowTable {} rows: {}>",
            self.table.rows(),
            self.column_names().join(", ")
        )
    }
}

/// The rows of any object with the Arrow interface. An array that is not of structs is a column named `value`.
///
/// The memory belongs to the object: see the top of this file. `Table::to_batch` makes one batch of the result.
pub(crate) fn import(data: &Bound<'_, PyAny>) -> PyResult<Table> {
    if let Ok(own) = data.cast_exact::<ArrowTable>() {
        return Ok(own.get().table.clone());
    }
    let py = data.py();
    // Prefer a stream, because the object may have to concatenate its data for an array.
    if data.hasattr(pyo3::intern!(py, "__arrow_c_stream__"))? {
        return import_stream(&data.call_method0(pyo3::intern!(py, "__arrow_c_stream__"))?);
    }
    if data.hasattr(pyo3::intern!(py, "__arrow_c_array__"))? {
        let pair = data.call_method0(pyo3::intern!(py, "__arrow_c_array__"))?;
        let (schema, array) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        return import_array(&schema, &array);
    }
    let name = data.get_type().qualname()?;
    Err(PyTypeError::new_err(format!(
        "{name} does not support the Arrow C data interface (__arrow_c_stream__ or __arrow_c_array__), as tables of \
         pyarrow, polars and pandas 2.2 do"
    )))
}

fn import_array(schema: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>) -> PyResult<Table> {
    let schema = capsule(schema, SCHEMA)?.cast::<FFI_ArrowSchema>();
    let array = capsule(array, ARRAY)?.cast::<FFI_ArrowArray>();
    // SAFETY: a capsule of this name points to such a struct and keeps it alive; the schema is only read. Taking the
    // array leaves a released one, as the interface requires.
    let (schema, array) = unsafe { (&*schema, FFI_ArrowArray::from_raw(array)) };
    let field = foreign::field(schema)?;
    let batch = rows(&Arc::new(field), foreign::array(array, schema)?)?;
    Ok(Table {
        schema: batch.schema(),
        batches: vec![batch],
    })
}

fn import_stream(stream: &Bound<'_, PyAny>) -> PyResult<Table> {
    let stream = capsule(stream, STREAM)?.cast();
    // SAFETY: a capsule of this name points to such a struct.
    let mut stream = unsafe { foreign::Stream::take(stream)? };
    let schema = stream.schema()?;
    let field = Arc::new(foreign::field(&schema)?);
    let mut batches = Vec::new();
    while let Some(array) = stream.next()? {
        batches.push(rows(&field, foreign::array(array, &schema)?)?);
    }
    Ok(Table {
        schema: schema_of(&field),
        batches,
    })
}

/// The pointer of a capsule with this name.
fn capsule(object: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut std::ffi::c_void> {
    let capsule = object.cast::<PyCapsule>().map_err(|_| {
        PyTypeError::new_err("an Arrow method returned something else than a PyCapsule")
    })?;
    Ok(capsule.pointer_checked(Some(name))?.as_ptr())
}

fn schema_of(field: &FieldRef) -> SchemaRef {
    Arc::new(match field.data_type() {
        DataType::Struct(fields) => {
            Schema::new_with_metadata(fields.clone(), field.metadata().clone())
        }
        _ => Schema::new(vec![column(field)]),
    })
}

/// Turns an array that is not of structs into a column.
fn column(field: &FieldRef) -> Field {
    field.as_ref().clone().with_name("value")
}

/// The rows of an array.
fn rows(field: &FieldRef, array: ArrayRef) -> PyResult<RecordBatch> {
    let schema = schema_of(field);
    let Some(structs) = array.as_any().downcast_ref::<StructArray>() else {
        return RecordBatch::try_new(schema, vec![array]).map_err(arrow_error);
    };
    if structs.null_count() > 0 {
        return Err(PyValueError::new_err(
            "rows that are null as a whole are not rows of a table",
        ));
    }
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(structs.len()));
    RecordBatch::try_new_with_options(schema, structs.columns().to_vec(), &options)
        .map_err(arrow_error)
}

#[doc = text!(arrow_encode)]
#[pyfunction]
pub(crate) fn arrow_encode<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let table = import(data)?;
    let message = data.py().detach(|| table.encode()).map_err(table_error)?;
    Ok(PyBytes::new(data.py(), &message))
}

#[doc = text!(arrow_decode)]
#[pyfunction]
pub(crate) fn arrow_decode(message: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
    let bytes = match message.cast::<Frame>() {
        Ok(frame) => frame.get().body()?.into_bytes(),
        Err(_) => with_contiguous(message, copy_of)??.into_bytes(),
    };
    let table = message
        .py()
        .detach(|| Table::decode(bytes))
        .map_err(table_error)?;
    Ok(ArrowTable::new(table))
}
