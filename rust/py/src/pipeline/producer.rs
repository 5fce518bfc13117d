//! Producers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};
use zeroxide_log::{Batch, BatchBuilder, Row, Table};
use zeroxide_pipeline::producer::{
    Failure, Notice, Place, Producer as CoreProducer, ProducerConfig,
};
use zeroxide_pipeline::reader::hex;

use super::fields::{Extras, Fields};
use super::rows::octets;
use super::{Own, deadline, of_failure, security, span, wait};
use crate::arguments;
use crate::arrow;
use crate::buffer::{is_one_body, reclaim};
use crate::counters::fill;
use crate::error::{say, told};
use crate::parting;
use crate::socket::is_there;

/// The number of rows of a table that are copied at once.
const TABLE_ROWS: usize = 1 << 16;

/// A batch has at most 1 GiB, so large rows are taken in steps of about this size.
const TABLE_BYTES: usize = 64 << 20;

/// The error of `send_batch` for one row, which would otherwise be read as many: a dict as rows of its names.
const ONE_ROW: &str = "send_batch takes many values; send takes one";

#[doc = text!(Producer)]
#[pyclass(subclass, frozen, module = "zeroxide._native")]
pub(crate) struct Producer {
    open: OnceLock<Own<CoreProducer>>,
}

impl Producer {
    #[inline]
    fn core(&self) -> PyResult<&CoreProducer> {
        parting::prepare();
        match self.open.get() {
            Some(open) => open.get(),
            None => Err(of_failure(&Failure::Closed)),
        }
    }

    /// Waits until there is room.
    fn wait_room(&self, py: Python<'_>, core: &CoreProducer) -> PyResult<()> {
        wait(py, None, |until| {
            core.wait_room(until).map(|room| room.then_some(()))
        })?;
        Ok(())
    }

    /// Waits until all rows before the mark are acknowledged. Returns whether they are.
    fn wait_mark(&self, py: Python<'_>, until: Option<Instant>) -> PyResult<bool> {
        let core = self.core()?;
        let mark = core.mark();
        let done = wait(py, until, |slice| {
            core.wait_mark(&mark, slice).map(|done| done.then_some(()))
        })?;
        Ok(done.is_some())
    }
}

#[pymethods]
impl Producer {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Producer {
        Producer {
            open: OnceLock::new(),
        }
    }

    /// Makes the producer.
    #[pyo3(signature = (endpoints, *, name, spool, spool_bytes, spool_sync, max_unacked_rows, max_unacked_bytes, linger_ms,
        batch_rows, batch_bytes, timeout, server_key, public_key, secret_key, notices))]
    #[allow(clippy::too_many_arguments, reason = "the options of a producer")]
    fn _open(
        &self,
        py: Python<'_>,
        endpoints: Vec<String>,
        name: Option<String>,
        spool: Option<PathBuf>,
        spool_bytes: u64,
        spool_sync: bool,
        max_unacked_rows: u64,
        max_unacked_bytes: u64,
        linger_ms: f64,
        batch_rows: usize,
        batch_bytes: usize,
        timeout: Option<f64>,
        server_key: Option<&Bound<'_, PyAny>>,
        public_key: Option<&Bound<'_, PyAny>>,
        secret_key: Option<&Bound<'_, PyAny>>,
        notices: bool,
    ) -> PyResult<()> {
        let linger = span(linger_ms / 1e3)?.unwrap_or(Duration::from_secs(3600));
        let config = ProducerConfig {
            endpoints,
            name,
            spool,
            max_rows: max_unacked_rows,
            max_bytes: max_unacked_bytes,
            spool_bytes,
            spool_sync,
            linger: linger.min(Duration::from_secs(3600)),
            batch_rows,
            batch_bytes,
            patience: timeout.map(span).transpose()?.flatten(),
            security: security(server_key, public_key, secret_key)?,
        };
        let core = py
            .detach(|| CoreProducer::open(config))
            .map_err(|failure| of_failure(&failure))?;
        if notices {
            core.notices().want();
        }
        let _ = self.open.set(Own::new(core, "producer"));
        Ok(())
    }

    #[doc = text!(Producer::send)]
    #[pyo3(signature = (value, key=None, topic=None, headers=None, timestamp=None))]
    fn send(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        topic: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        timestamp: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        while self
            ._try_send(value, key, topic, headers, timestamp)?
            .is_none()
        {
            self.wait_room(py, self.core()?)?;
        }
        Ok(())
    }

    /// Accepts a row if there is room for it; returns the index of the collector and the number of the row.
    #[pyo3(signature = (value, key=None, topic=None, headers=None, timestamp=None))]
    fn _try_send(
        &self,
        value: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        topic: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        timestamp: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<(usize, u64)>> {
        let core = self.core()?;
        let body = octets(value)?;
        let taken = if key.is_none() && topic.is_none() && headers.is_none() && timestamp.is_none()
        {
            core.push(Row {
                value: &body,
                ..Row::default()
            })
        } else {
            Extras::new(key, topic, headers, timestamp)?.with(&body, |row| core.push(row))?
        };
        let place = taken.map_err(|failure| of_failure(&failure))?;
        Ok(place.map(|Place { collector, row }| (collector, row)))
    }

    #[doc = text!(Producer::send_batch)]
    #[pyo3(signature = (values, key=None, topic=None, headers=None, timestamp=None))]
    fn send_batch(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        topic: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        timestamp: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let core = self.core()?;
        let common = Extras::new(key, topic, headers, timestamp)?;
        if !is_there(values) {
            if is_one_body(values) || values.cast::<PyMapping>().is_ok() {
                return Err(PyTypeError::new_err(ONE_ROW));
            }
            return self.send_each(py, core, values, &common);
        }
        let mut taken = 0;
        match self.send_rows(py, core, values, &common, &mut taken) {
            Ok(()) => Ok(taken),
            Err(error) => Err(told(py, error, taken)),
        }
    }

    /// Accepts one of many rows if there is room for it. Returns whether there was.
    #[pyo3(signature = (row, key=None, topic=None, headers=None, timestamp=None))]
    fn _try_take(
        &self,
        row: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        topic: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        timestamp: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let core = self.core()?;
        let common = Extras::new(key, topic, headers, timestamp)?;
        self.try_take(core, row, &common)
    }

    #[doc = text!(Producer::send_arrow)]
    fn send_arrow(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let core = self.core()?;
        let table = arrow::import(data)?;
        let mut taken = 0;
        match self.send_table(py, core, &table, &mut taken) {
            Ok(()) => Ok(taken),
            Err(error) => Err(told(py, error, taken)),
        }
    }

    /// Sends open batches and waits until everything is acknowledged. Returns the unacknowledged rows by endpoint.
    #[pyo3(signature = (timeout=None))]
    fn _flush<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyDict>> {
        reclaim();
        let until = deadline(timeout)?;
        let left = PyDict::new(py);
        if !self.wait_mark(py, until)? {
            for (endpoint, rows) in self.core()?.unacknowledged() {
                left.set_item(endpoint, rows)?;
            }
        }
        Ok(left)
    }

    /// Seals open batches; returns the number of accepted rows for each collector.
    fn _mark(&self) -> PyResult<Vec<u64>> {
        Ok(self.core()?.mark().rows().to_vec())
    }

    /// Raises if nothing can be sent any more, or the collector has been gone for too long.
    fn _check(&self) -> PyResult<()> {
        self.core()?
            .check_now()
            .map_err(|failure| of_failure(&failure))
    }

    /// Raises if accepted rows can no longer be acknowledged, or have not been for too long.
    fn _check_pending(&self) -> PyResult<()> {
        let result = self.core()?.check_pending();
        result.map_err(|failure| of_failure(&failure))
    }

    /// Accepts no more rows.
    fn _shut(&self) -> PyResult<()> {
        self.core()?.shut();
        Ok(())
    }

    /// Ends the producer.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        let core = self.core()?;
        py.detach(|| core.end());
        Ok(())
    }

    /// Raises the setback of some rows, once.
    fn _check_setback(&self) -> PyResult<()> {
        let result = self.core()?.check_setback();
        result.map_err(|failure| of_failure(&failure))
    }

    /// Further reports in words, each once.
    fn _take_reports(&self) -> PyResult<Vec<String>> {
        Ok(self.core()?.take_reports())
    }

    /// The number of accepted rows that are not in the spool because it is full, by endpoint.
    fn _unspooled(&self) -> PyResult<HashMap<String, u64>> {
        Ok(self.core()?.unspooled().into_iter().collect())
    }

    #[doc = text!(Producer::closed)]
    #[getter]
    fn closed(&self) -> bool {
        self.open
            .get()
            .is_none_or(|open| !open.is_own() || open.get().is_ok_and(CoreProducer::is_shut))
    }

    #[doc = text!(Producer::name)]
    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.core()?.name().to_owned())
    }

    /// Waits for notices up to `timeout` seconds: True if there are some, False if not, None after the end.
    fn _await_notices(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<bool>> {
        let core = self.core()?;
        let until = deadline(Some(timeout))?.unwrap_or_else(Instant::now);
        Ok(py.detach(|| core.notices().wait(until)))
    }

    /// The waiting notices: collector, first row, rows, first sequence number, first offset, the reason if they are
    /// lost.
    fn _take_notices(&self) -> PyResult<Vec<NoticeRow>> {
        let notices = self.core()?.notices().take();
        Ok(notices.into_iter().map(notice_row).collect())
    }

    /// A descriptor that becomes readable when there are notices.
    fn _notices_fd(&self) -> PyResult<i32> {
        Ok(self.core()?.notices().fd()?)
    }

    /// The counters and the state at each collector.
    fn _stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.core()?.stats();
        let all = PyDict::new(py);
        fill!(all, stats => rows, acknowledged, unacknowledged, unacknowledged_bytes);
        fill!(all, stats => batches, bytes, resent, reconnects);
        let collectors = PyDict::new(py);
        for collector in stats.collectors {
            let one = PyDict::new(py);
            one.set_item("connected", collector.is_connected)?;
            fill!(one, collector => reason);
            one.set_item("obstacle", collector.obstacle.map(|code| code.name()))?;
            one.set_item("log_id", collector.log_id.as_ref().map(hex))?;
            fill!(one, collector => epoch, next_seq, acknowledged_seq);
            fill!(one, collector => renumbered, lost, set_aside);
            one.set_item("credit_rows", collector.credit.rows)?;
            one.set_item("credit_bytes", collector.credit.bytes)?;
            one.set_item("flying_rows", collector.flying.rows)?;
            one.set_item("flying_bytes", collector.flying.bytes)?;
            collectors.set_item(collector.endpoint, one)?;
        }
        all.set_item("collectors", collectors)?;
        Ok(all)
    }
}

/// See `_take_notices`.
type NoticeRow = (usize, u64, u64, Option<u64>, Option<u64>, Option<String>);

fn notice_row(notice: Notice) -> NoticeRow {
    (
        notice.collector,
        notice.first_row,
        notice.rows,
        notice.first_seq,
        notice.offset,
        notice.lost.map(|why| why.to_string()),
    )
}

/// Shorter runs are added to the open batch instead of becoming one.
const SHORT_RUN: usize = 256;

/// Consecutive rows that differ only in their values.
struct Run<'a> {
    builder: BatchBuilder,
    common: &'a Extras<'a>,
    topic: Option<&'a str>,
    headers: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Run<'a> {
    fn new(common: &'a Extras<'a>) -> PyResult<Run<'a>> {
        let headers = common.headers.iter();
        Ok(Run {
            builder: BatchBuilder::new(),
            common,
            topic: common.topic()?,
            headers: headers
                .map(|(name, value)| (name.as_str(), value.as_ref()))
                .collect(),
        })
    }

    #[inline]
    fn push(&mut self, value: &[u8]) -> PyResult<()> {
        let row = Row {
            value,
            key: self.common.key.as_deref(),
            topic: self.topic,
            timestamp: self.common.timestamp,
            headers: &self.headers,
            frames: None,
        };
        let taken = self.builder.push(row);
        taken.map_err(|error| of_failure(&error.into()))
    }
}

impl Producer {
    /// Pushes a run, waits for room, and counts its rows.
    fn push_run(
        &self,
        py: Python<'_>,
        core: &CoreProducer,
        run: &mut Run<'_>,
        taken: &mut usize,
    ) -> PyResult<()> {
        if run.builder.is_empty() {
            return Ok(());
        }
        let batch = run.builder.finish();
        if batch.rows() < SHORT_RUN && !core.is_full_batch(batch.rows(), batch.size()) {
            let mut at = 0;
            loop {
                let pushed = core.push_rows(&batch, at);
                let pushed = pushed.map_err(|failure| of_failure(&failure))?;
                at += pushed;
                *taken += pushed;
                if at == batch.rows() {
                    return Ok(());
                }
                self.wait_room(py, core)?;
            }
        }
        let key = run.common.key.as_deref();
        let mut at = 0;
        loop {
            let pushed = core.push_run(&batch, at, key);
            let pushed = pushed.map_err(|failure| of_failure(&failure))?;
            (at, *taken) = (at + pushed, *taken + pushed);
            if at == batch.rows() {
                return Ok(());
            }
            self.wait_room(py, core)?;
        }
    }

    /// Accepts the rows of a list or tuple, and counts them.
    fn send_rows(
        &self,
        py: Python<'_>,
        core: &CoreProducer,
        rows: &Bound<'_, PyAny>,
        common: &Extras<'_>,
        taken: &mut usize,
    ) -> PyResult<()> {
        // Rows form a batch of their own as long as only their values differ.
        let mut run = Run::new(common)?;
        for item in rows.try_iter()? {
            let item = item?;
            let pushed = match Fields::of(&item) {
                Ok(Some(fields)) => {
                    self.push_run(py, core, &mut run, taken)?;
                    self.push_fields(py, core, &fields, common)?;
                    *taken += 1;
                    continue;
                }
                Ok(None) => octets(&item).and_then(|value| run.push(&value)),
                Err(error) => Err(error),
            };
            if let Err(error) = pushed {
                self.push_run(py, core, &mut run, taken)?;
                return Err(error);
            }
            if core.is_full_batch(run.builder.rows(), run.builder.size()) {
                self.push_run(py, core, &mut run, taken)?;
            }
        }
        self.push_run(py, core, &mut run, taken)
    }

    /// Accepts the rows of a table, and counts them.
    fn send_table(
        &self,
        py: Python<'_>,
        core: &CoreProducer,
        table: &Table,
        taken: &mut usize,
    ) -> PyResult<()> {
        for whole in &table.batches {
            let mut from = 0;
            while from < whole.num_rows() {
                let rows = TABLE_ROWS.min(whole.num_rows() - from);
                let piece = whole.slice(from, rows);
                let batches = py
                    .detach(|| Batch::cut_record_batch(&piece, TABLE_BYTES))
                    .map_err(|error| PyValueError::new_err(error.to_string()))?;
                for batch in batches {
                    let mut at = 0;
                    while at < batch.rows() {
                        let pushed = py.detach(|| core.push_batch(&batch, at));
                        let pushed = pushed.map_err(|failure| of_failure(&failure))?;
                        at += pushed;
                        *taken += pushed;
                        if at < batch.rows() {
                            self.wait_room(py, core)?;
                        }
                    }
                }
                from += rows;
            }
        }
        Ok(())
    }

    /// Accepts the items of an iterable, each before the next is requested, because the iterable may be slow or
    /// endless.
    fn send_each(
        &self,
        py: Python<'_>,
        core: &CoreProducer,
        rows: &Bound<'_, PyAny>,
        common: &Extras<'_>,
    ) -> PyResult<usize> {
        let mut count = 0;
        for row in arguments::items(
            rows,
            "send_batch takes a list of values, or anything to iterate over",
        )? {
            let row = row.map_err(|error| told(py, error, count))?;
            let taken = loop {
                match self.try_take(core, &row, common) {
                    Ok(true) => break Ok(()),
                    Ok(false) => {}
                    Err(error) => break Err(error),
                }
                if let Err(error) = self.wait_room(py, core) {
                    break Err(error);
                }
            };
            taken.map_err(|error| {
                say(py, &error, "unsent", &row);
                told(py, error, count)
            })?;
            count += 1;
        }
        Ok(count)
    }

    /// Accepts a value, or a row given as a mapping, if there is room for it.
    fn try_take(
        &self,
        core: &CoreProducer,
        row: &Bound<'_, PyAny>,
        common: &Extras<'_>,
    ) -> PyResult<bool> {
        let taken = match Fields::of(row)? {
            Some(fields) => {
                let value = octets(&fields.value)?;
                let extras = fields.extras(common)?;
                extras.with(&value, |row| core.push(row))?
            }
            None => common.with(&octets(row)?, |row| core.push(row))?,
        };
        Ok(taken.map_err(|failure| of_failure(&failure))?.is_some())
    }

    /// Accepts a row given as a mapping; waits while there is no room for it.
    fn push_fields(
        &self,
        py: Python<'_>,
        core: &CoreProducer,
        fields: &Fields<'_>,
        common: &Extras<'_>,
    ) -> PyResult<()> {
        let extras = fields.extras(common)?;
        let value = octets(&fields.value)?;
        loop {
            let taken = extras.with(&value, |row| core.push(row))?;
            if taken.map_err(|failure| of_failure(&failure))?.is_some() {
                return Ok(());
            }
            self.wait_room(py, core)?;
        }
    }
}
