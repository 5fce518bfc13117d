//! Follows a log and returns batches or rows as they arrive, for threads that wait and for event loops that do not.

use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use zeroxide_log::Stored;
use zeroxide_pipeline::client::ClientError;
use zeroxide_pipeline::reader::{Fetch as CoreFetch, Fetched, Interrupter};

use super::shared::Shared;
use super::{Own, deadline, of_client, wait};
use crate::arrow::ArrowTable;

#[doc = text!(Follow)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct Follow {
    core: Own<Shared>,
    /// None once it has ended.
    interrupter: Mutex<Option<Interrupter>>,
    is_over: AtomicBool,
    partition: i32,
    headers: bool,
    frames: bool,
}

/// A batch, and the range of its rows to return.
type Due = (Box<Stored>, Range<u64>);

impl Follow {
    pub(super) fn new(
        mut fetch: CoreFetch,
        partition: i32,
        headers: bool,
        frames: bool,
    ) -> PyResult<Follow> {
        let interrupter = fetch
            .interrupter()
            .map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(Follow {
            core: Own::new(Shared::new(fetch), "follower"),
            interrupter: Mutex::new(Some(interrupter)),
            is_over: AtomicBool::new(false),
            partition,
            headers,
            frames,
        })
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Ends every wait, now and later, and the connection.
    fn end(&self, core: &Shared) {
        self.is_over.store(true, Ordering::Release);
        let interrupter = {
            let mut interrupter = self
                .interrupter
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            interrupter.take()
        };
        if let Some(interrupter) = interrupter {
            interrupter.interrupt();
        }
        core.close();
    }

    fn due(&self, py: Python<'_>, timeout: Option<f64>, resume: bool) -> PyResult<Option<Due>> {
        let core = self.core.get()?;
        let mut resume = resume;
        let found = wait(py, deadline(timeout)?, |until| {
            if self.is_over() {
                return Ok(Some(None));
            }
            Ok::<_, ClientError>(match core.step(until, std::mem::take(&mut resume))? {
                Fetched::Waiting if self.is_over() => Some(None),
                Fetched::Waiting => None,
                Fetched::End => {
                    self.end(core);
                    Some(None)
                }
                Fetched::Batch(stored, range) => Some(Some((stored, range))),
            })
        })?;
        Ok(found.flatten())
    }
}

#[pymethods]
impl Follow {
    /// The next batch and the offset after it. None if none arrived within `timeout` seconds, or this was stopped.
    fn _next_table(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        resume: bool,
    ) -> PyResult<Option<(ArrowTable, u64)>> {
        Ok(self.due(py, timeout, resume)?.map(|(stored, range)| {
            let end = stored.end.min(range.end);
            let batch = stored.to_record_batch(range, self.partition, self.headers, self.frames);
            (ArrowTable::of_batch(batch), end)
        }))
    }

    /// The rows of the next batch and the offset after it: offset, value, key, topic, microseconds since 1970,
    /// producer, sequence number, headers.
    fn _next_rows<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
        resume: bool,
    ) -> PyResult<Option<(Bound<'py, PyList>, u64)>> {
        let Some((stored, range)) = self.due(py, timeout, resume)? else {
            return Ok(None);
        };
        let end = stored.end.min(range.end);
        let batch = py.detach(|| stored.to_record_batch(range, 0, true, false));
        Ok(Some((rows(py, &batch)?, end)))
    }

    /// The offset after everything that was read, and the generation of the row before it. None while a batch waits to
    /// be returned, or another thread is waiting.
    fn _position(&self) -> PyResult<Option<(u64, Option<String>)>> {
        let position = self.core.get()?.try_position();
        Ok(position.map(|(offset, generation)| {
            let generation = (generation != 0).then(|| format!("{generation:016x}"));
            (offset, generation)
        }))
    }

    /// Descriptors that become readable when there is something to process.
    fn _fds(&self) -> PyResult<Vec<RawFd>> {
        self.core.get()?.fds().map_err(of_client)
    }

    /// Ends every wait, now and later, and the connection. May be called from any thread.
    fn _stop(&self, py: Python<'_>) {
        match self.core.get() {
            Ok(core) => py.detach(|| self.end(core)),
            // A forked child does not touch what belongs to its parent.
            Err(_) => self.is_over.store(true, Ordering::Release),
        }
    }

    /// Whether it was stopped, or has returned everything before its end.
    #[getter]
    fn _stopped(&self) -> bool {
        self.is_over()
    }
}

fn rows<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyList>> {
    let column = |name| {
        batch
            .column_by_name(name)
            .expect("a column that is always there")
    };
    let offset = column("offset").as_primitive::<Int64Type>();
    let value = column("value").as_binary::<i32>();
    let key = column("key").as_binary::<i32>();
    let topic = column("topic").as_string::<i32>();
    let timestamp = column("timestamp").as_primitive::<TimestampMicrosecondType>();
    let producer = column("producer").as_string::<i32>();
    let seq = column("seq").as_primitive::<Int64Type>();
    let headers = column("headers").as_list::<i32>();
    let bytes = |value| PyBytes::new(py, value);
    // All rows of a batch have one producer, and most batches have few topics, so each text is created once.
    let mut texts: [Option<(&str, Bound<'py, PyString>)>; 2] = [None, None];
    let list = PyList::empty(py);
    for row in 0..batch.num_rows() {
        let topic = (!topic.is_null(row)).then(|| text(py, &mut texts[0], topic.value(row)));
        let producer =
            (!producer.is_null(row)).then(|| text(py, &mut texts[1], producer.value(row)));
        let pairs = match headers.is_null(row) {
            true => PyTuple::empty(py),
            false => pairs(py, &headers.value(row))?,
        };
        list.append((
            offset.value(row),
            bytes(value.value(row)),
            (!key.is_null(row)).then(|| bytes(key.value(row))),
            topic,
            timestamp.value(row),
            producer,
            (!seq.is_null(row)).then(|| seq.value(row)),
            pairs,
        ))?;
    }
    Ok(list)
}

/// Creates a text, or reuses the previous one.
fn text<'a, 'py>(
    py: Python<'py>,
    last: &mut Option<(&'a str, Bound<'py, PyString>)>,
    wanted: &'a str,
) -> Bound<'py, PyString> {
    if let Some((known, text)) = last
        && *known == wanted
    {
        return text.clone();
    }
    let text = PyString::new(py, wanted);
    *last = Some((wanted, text.clone()));
    text
}

/// Headers: names and values.
fn pairs<'py>(py: Python<'py>, headers: &dyn Array) -> PyResult<Bound<'py, PyTuple>> {
    let headers = headers.as_struct();
    let names = headers.column(0).as_string::<i32>();
    let values = headers.column(1).as_binary::<i32>();
    let pairs = (0..headers.len()).map(|at| {
        let value = (!values.is_null(at)).then(|| PyBytes::new(py, values.value(at)));
        (names.value(at), value)
    });
    PyTuple::new(py, pairs.collect::<Vec<_>>())
}
