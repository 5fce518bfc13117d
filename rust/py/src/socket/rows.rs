//! Messages as rows of an Arrow table: received into columns, and sent from them, without a Python object per message.

use std::collections::TryReserveError;
use std::convert::identity;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use zeroxide::binding::{Attempt, SocketInternals};
use zeroxide::{Frame, Message, Socket as CoreSocket};
use zeroxide_log::Table;

use super::Socket;
use super::recv::{bytes, unread};
use crate::arrow::{self, ArrowTable};
use crate::buffer::{copy_of, list_of, no_memory, reclaim, with_contiguous};

/// A batch is ended before its 32-bit offsets overflow.
const MOST_BYTES: usize = 1 << 30;

/// The number of messages taken first, whose size determines how many follow.
const FEW: usize = 64;

impl Socket {
    /// Waits for a message and takes it together with other waiting messages.
    pub(super) fn recv_rows(
        &self,
        py: Python<'_>,
        max_rows: i64,
        max_bytes: i64,
        timeout: Option<i64>,
        flags: i32,
        frames: bool,
    ) -> PyResult<ArrowTable> {
        reclaim();
        let core = self.core()?;
        let most = |limit: i64, name: &str| match usize::try_from(limit) {
            Ok(limit) if limit > 0 => Ok(limit),
            _ => Err(PyValueError::new_err(format!("{name} must be at least 1"))),
        };
        let (max_rows, max_bytes) = (most(max_rows, "max_rows")?, most(max_bytes, "max_bytes")?);
        let first = match rest_of_parts(core) {
            Some(message) => vec![message],
            None => self.some(py, max_rows.min(FEW), timeout, flags, identity)?,
        };
        let gathered = py.detach(|| {
            let mut rows = Rows::new(frames);
            let mut messages = first;
            loop {
                if !gather(core, &mut rows, messages)? {
                    return Ok(rows);
                }
                let Some(room) = rows.room(max_rows, max_bytes) else {
                    return Ok(rows);
                };
                messages = match core.try_recv_batch_as(room, identity) {
                    Attempt::Done(messages) => messages,
                    // The rows received so far are not lost; the next call meets the error.
                    _ => return Ok(rows),
                };
            }
        });
        let rows: Rows = gathered.map_err(|refusal: Refusal| PyErr::from(refusal))?;
        Ok(ArrowTable::new(rows.finish()))
    }

    /// Sends every row as a message; returns their number.
    pub(super) fn send_rows(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        flags: i32,
    ) -> PyResult<usize> {
        reclaim();
        let messages = messages_of(&arrow::import(data)?)?;
        self.send_messages(py, messages, flags)
    }
}

/// The reason why a message cannot be a row.
enum Refusal {
    /// It is longer than any row.
    TooLong,
    /// There is no memory for it now.
    NoMemory(TryReserveError),
}

impl From<Refusal> for PyErr {
    fn from(refusal: Refusal) -> PyErr {
        match refusal {
            Refusal::TooLong => PyValueError::new_err(
                "a message of more than 1 GiB does not go into a column; it is lost",
            ),
            Refusal::NoMemory(error) => no_memory(&error),
        }
    }
}

/// Makes rows of messages. Returns false if one of them cannot be a row: it and the messages after it are received
/// next. It is discarded, with an error, only if it comes first and can never be a row.
fn gather(
    core: &CoreSocket,
    rows: &mut Rows,
    messages: impl IntoIterator<Item = Message>,
) -> Result<bool, Refusal> {
    let mut messages = messages.into_iter();
    while let Some(message) = messages.next() {
        let Err(refusal) = rows.push(&message) else {
            continue;
        };
        let stays = rows.rows > 0 || matches!(refusal, Refusal::NoMemory(_));
        let kept = stays.then_some(message);
        unread(core, kept.into_iter().chain(messages));
        return if rows.rows > 0 {
            Ok(false)
        } else {
            Err(refusal)
        };
    }
    Ok(true)
}

/// The rest of a message whose first parts were received one by one.
fn rest_of_parts(core: &CoreSocket) -> Option<Message> {
    let (first, _) = core.next_part()?;
    let mut message = Message::single(first);
    while let Some((frame, _)) = core.next_part() {
        message.push(frame);
    }
    Some(message)
}

/// Columns that grow with each message.
struct Rows {
    schema: SchemaRef,
    value: BinaryBuilder,
    frames: Option<ListBuilder<BinaryBuilder>>,
    done: Vec<RecordBatch>,
    /// The size of the batch under construction.
    building: usize,
    rows: usize,
    bytes: usize,
    largest: usize,
    /// The size of a batch for which memory has been reserved.
    assured: usize,
}

impl Rows {
    fn new(with_frames: bool) -> Rows {
        let item = Arc::new(Field::new("element", DataType::Binary, false));
        let mut fields = vec![Field::new("value", DataType::Binary, false)];
        if with_frames {
            fields.push(Field::new("frames", DataType::List(item.clone()), false));
        }
        Rows {
            schema: Arc::new(Schema::new(fields)),
            value: BinaryBuilder::new(),
            frames: with_frames.then(|| ListBuilder::new(BinaryBuilder::new()).with_field(item)),
            done: Vec::new(),
            building: 0,
            rows: 0,
            bytes: 0,
            largest: 1,
            assured: 0,
        }
    }

    /// The number of messages to take next; None if there are enough.
    fn room(&self, max_rows: usize, max_bytes: usize) -> Option<usize> {
        let rows = max_rows.saturating_sub(self.rows);
        let bytes = max_bytes.saturating_sub(self.bytes);
        let fitting = (bytes / self.largest).clamp(1, 16 * FEW);
        (rows > 0 && bytes > 0).then(|| rows.min(fitting))
    }

    fn push(&mut self, message: &Message) -> Result<(), Refusal> {
        let parts = message.iter().map(Frame::len);
        let size = parts.fold(0, |sum: usize, part| sum.saturating_add(part));
        if size > MOST_BYTES {
            return Err(Refusal::TooLong);
        }
        if self.building + size > MOST_BYTES {
            self.end_batch();
        }
        self.assure(size).map_err(Refusal::NoMemory)?;
        let value = message.iter().last().map_or(&[][..], Frame::as_slice);
        self.value.append_value(value);
        if let Some(frames) = &mut self.frames {
            for frame in message.iter() {
                frames.values().append_value(frame.as_slice());
            }
            frames.append(true);
        }
        self.rows += 1;
        self.bytes += size;
        self.building += size;
        self.largest = self.largest.max(size);
        Ok(())
    }

    /// Makes sure that the columns can grow by a message, because they abort the process if they cannot. They double
    /// their size each time.
    fn assure(&mut self, size: usize) -> Result<(), TryReserveError> {
        let needed = self.building + size;
        if needed > self.assured {
            let columns = 1 + usize::from(self.frames.is_some());
            let assured = needed.max(1 << 16) * 2;
            Vec::<u8>::new().try_reserve_exact(assured.saturating_mul(columns))?;
            self.assured = assured;
        }
        Ok(())
    }

    fn end_batch(&mut self) {
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.value.finish())];
        columns.extend(
            self.frames
                .as_mut()
                .map(|frames| Arc::new(frames.finish()) as ArrayRef),
        );
        let batch = RecordBatch::try_new(self.schema.clone(), columns);
        self.done
            .push(batch.expect("columns as the schema has them"));
        self.building = 0;
        self.assured = 0;
    }

    fn finish(mut self) -> Table {
        self.end_batch();
        Table {
            schema: self.schema,
            batches: self.done,
        }
    }
}

/// Every row as a message: its `frames`, or else its `value`.
fn messages_of(table: &Table) -> PyResult<Vec<Message>> {
    let mut messages = Vec::with_capacity(table.rows());
    for batch in &table.batches {
        if let Some(frames) = batch.column_by_name("frames") {
            let lists = frames.as_list_opt::<i32>();
            let lists = lists.ok_or_else(|| wrong("frames", "a list of bytes or text", frames))?;
            for row in 0..lists.len() {
                let parts = lists.value(row);
                if lists.is_null(row) || parts.is_empty() {
                    return Err(PyValueError::new_err("a message has at least one part"));
                }
                let bodies = Bodies::of("frames", &parts)?;
                let frames = (0..parts.len()).map(|at| bodies.frame(at));
                messages.push(Message::from_vec(frames.collect::<PyResult<Vec<_>>>()?));
            }
            continue;
        }
        let value = batch.column_by_name("value");
        let value = value.ok_or_else(|| {
            PyValueError::new_err("the rows have no column named value: select(value=...) first")
        })?;
        let bodies = Bodies::of("value", value)?;
        for row in 0..value.len() {
            messages.push(Message::single(bodies.frame(row)?));
        }
    }
    Ok(messages)
}

fn wrong(name: &str, expected: &str, found: &ArrayRef) -> PyErr {
    let found = found.data_type();
    PyValueError::new_err(format!(
        "the column {name} is of type {found}, not {expected}"
    ))
}

/// A column of bytes or text.
enum Bodies<'a> {
    Binary(&'a arrow_array::BinaryArray),
    LargeBinary(&'a arrow_array::LargeBinaryArray),
    BinaryView(&'a arrow_array::BinaryViewArray),
    Text(&'a arrow_array::StringArray),
    LargeText(&'a arrow_array::LargeStringArray),
    TextView(&'a arrow_array::StringViewArray),
}

impl<'a> Bodies<'a> {
    fn of(name: &str, column: &'a ArrayRef) -> PyResult<Bodies<'a>> {
        if column.null_count() > 0 {
            let text = format!("a null in the column {name} cannot be sent");
            return Err(PyValueError::new_err(text));
        }
        Ok(match column.data_type() {
            DataType::Binary => Bodies::Binary(column.as_binary()),
            DataType::LargeBinary => Bodies::LargeBinary(column.as_binary()),
            DataType::BinaryView => Bodies::BinaryView(column.as_binary_view()),
            DataType::Utf8 => Bodies::Text(column.as_string()),
            DataType::LargeUtf8 => Bodies::LargeText(column.as_string()),
            DataType::Utf8View => Bodies::TextView(column.as_string_view()),
            _ => return Err(wrong(name, "bytes or text", column)),
        })
    }

    /// A copy of the body, because the column's memory may belong to Python.
    fn frame(&self, row: usize) -> PyResult<Frame> {
        copy_of(match self {
            Bodies::Binary(column) => column.value(row),
            Bodies::LargeBinary(column) => column.value(row),
            Bodies::BinaryView(column) => column.value(row),
            Bodies::Text(column) => column.value(row).as_bytes(),
            Bodies::LargeText(column) => column.value(row).as_bytes(),
            Bodies::TextView(column) => column.value(row).as_bytes(),
        })
    }
}

#[doc = text!(arrow_messages)]
#[pyfunction]
pub(crate) fn arrow_messages<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = data.py();
    let list = PyList::empty(py);
    for message in messages_of(&arrow::import(data)?)? {
        let parts = message.iter().map(|frame| bytes(py, frame));
        list.append(list_of(py, parts)?)?;
    }
    Ok(list)
}

#[doc = text!(arrow_rows)]
#[pyfunction]
pub(crate) fn arrow_rows(
    socket: &Bound<'_, Socket>,
    messages: &Bound<'_, PyList>,
    frames: bool,
) -> PyResult<ArrowTable> {
    let message = |parts: Bound<'_, PyAny>| {
        let part = |part: PyResult<Bound<'_, PyAny>>| with_contiguous(&part?, copy_of)?;
        let parts = parts.try_iter()?.map(part);
        Ok(Message::from_vec(parts.collect::<PyResult<Vec<_>>>()?))
    };
    let mut failed: Option<PyErr> = None;
    let messages = messages
        .iter()
        .map_while(|parts| message(parts).map_err(|error| failed = Some(error)).ok());
    let mut rows = Rows::new(frames);
    gather(socket.get().core()?, &mut rows, messages)?;
    match failed {
        None => Ok(ArrowTable::new(rows.finish())),
        Some(error) => Err(error),
    }
}
