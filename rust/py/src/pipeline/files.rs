//! Parses the contents of a log's files, for `_files.py` and `_segments.py` in `python/zeroxide/pipeline`, which read them
//! from any file system.

use std::io;

use bytes::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zeroxide_log::{FrameInfo, ReadAt, SegmentInfo, Stored, Table, fetched_schema, next_frame};
use zeroxide_pipeline::reader::hex;

use crate::arrow::ArrowTable;
use crate::buffer::with_contiguous;

/// The length, first offset, end and time of receipt of a frame.
type Peeked = (usize, u64, u64, i64);

#[doc = text!(log_segment)]
#[pyfunction]
pub(crate) fn log_segment(data: &Bound<'_, PyAny>) -> PyResult<(String, u64, usize)> {
    let info = with_contiguous(data, SegmentInfo::read)?.map_err(PyValueError::new_err)?;
    Ok((hex(&info.log_id), info.first_offset, info.start))
}

#[doc = text!(log_peek)]
#[pyfunction]
pub(crate) fn log_peek(data: &Bound<'_, PyAny>, position: usize) -> PyResult<Option<Peeked>> {
    let peeked = with_contiguous(data, |bytes| {
        FrameInfo::peek(bytes.get(position..).unwrap_or_default())
    })?;
    let info = peeked.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(info.map(|info| {
        (
            info.length,
            info.first_offset,
            info.end,
            info.origin.receive_time,
        )
    }))
}

#[doc = text!(log_next)]
#[pyfunction]
pub(crate) fn log_next(
    py: Python<'_>,
    read: Py<PyAny>,
    position: u64,
    offset: u64,
    size: u64,
    end: u64,
) -> PyResult<Option<(u64, u64)>> {
    let segment = Opened(read);
    py.detach(|| next_frame(&segment, position, offset, size, end))
        .map_err(|error| error.downcast::<PyErr>().unwrap_or_else(PyErr::from))
}

/// A file that Python reads: a function of a position and a number of bytes.
struct Opened(Py<PyAny>);

impl ReadAt for Opened {
    fn bytes_at(&self, position: u64, length: usize) -> io::Result<Bytes> {
        Python::attach(|py| {
            let data = self.0.bind(py).call1((position, length))?;
            with_contiguous(&data, |bytes| {
                Bytes::copy_from_slice(&bytes[..length.min(bytes.len())])
            })
        })
        .map_err(io::Error::other::<PyErr>)
    }
}

#[doc = text!(log_rows)]
#[pyfunction]
#[pyo3(signature = (data, position, expected, start, end, topics, partition, headers, frames))]
#[allow(clippy::too_many_arguments)] // one call for many frames
pub(crate) fn log_rows(
    data: &Bound<'_, PyAny>,
    position: usize,
    expected: u64,
    start: u64,
    end: u64,
    topics: Option<Vec<String>>,
    partition: i32,
    headers: bool,
    frames: bool,
) -> PyResult<(ArrowTable, usize, u64, Option<String>)> {
    let topics: Option<Vec<&str>> = topics
        .as_ref()
        .map(|topics| topics.iter().map(String::as_str).collect());
    let bytes = with_contiguous(data, Bytes::copy_from_slice)?;
    let (mut position, mut expected, mut wrong) = (position, expected, None);
    let mut batches = Vec::new();
    while expected < end {
        let rest = bytes.get(position..).unwrap_or_default();
        let info = match FrameInfo::peek(rest) {
            Ok(Some(info)) if info.first_offset == expected => info,
            Ok(Some(info)) => {
                wrong = Some(format!(
                    "the frame says that its offset is {}",
                    info.first_offset
                ));
                break;
            }
            Ok(None) => break,
            Err(error) => {
                wrong = Some(error.to_string());
                break;
            }
        };
        if info.length > rest.len() {
            break;
        }
        if info.end > start {
            let frame = bytes.slice(position..position + info.length);
            let stored = match Stored::parse(frame) {
                Ok(stored) => stored,
                Err(error) => {
                    wrong = Some(error.to_string());
                    break;
                }
            };
            let stored = match &topics {
                Some(topics) => stored.pick(topics),
                None => stored,
            };
            let rows = stored.to_record_batch(start..end, partition, headers, frames);
            batches.extend((rows.num_rows() > 0).then_some(rows));
        }
        position += info.length;
        expected = info.end;
    }
    let schema = fetched_schema(headers, frames);
    let table = ArrowTable::new(Table { schema, batches });
    Ok((table, position, expected, wrong))
}
