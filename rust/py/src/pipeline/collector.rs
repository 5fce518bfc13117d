//! Collectors in this process.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use zeroxide_log::{Batch, BatchBuilder, Hold, LogError, Row};
use zeroxide_pipeline::collector::{
    Collector as CoreCollector, CollectorError, Config, Framing, Grant, Grants, Plain, Role,
    Security,
};
use zeroxide_pipeline::reader::hex;

use super::fields::{Extras, Fields};
use super::rows::octets;
use super::{Own, Raised, deadline, exception, span, wait};
use crate::access::{AllowList, key};
use crate::arguments;
use crate::arrow;
use crate::error::raise;
use crate::parting;

/// The approximate size of a batch of this process, because readers receive whole batches.
const BATCH_BYTES: usize = 4 << 20;

/// The number of rows of a table that are processed together.
const TABLE_ROWS: usize = 1 << 16;

/// The time limit for reading counters.
const STATS_PATIENCE: Duration = Duration::from_secs(10);

/// A key with its roles and its reserved names.
type KeyRoles = (String, Vec<String>, Vec<String>);

#[doc = text!(Collector)]
#[pyclass(subclass, frozen, module = "zeroxide._native")]
pub(crate) struct Collector {
    open: OnceLock<Own<CoreCollector>>,
    hold: Hold,
}

impl Collector {
    fn core(&self) -> PyResult<&CoreCollector> {
        parting::prepare();
        match self.open.get() {
            Some(open) => open.get(),
            None => Err(of_collector(CollectorError::Closed)),
        }
    }

    /// Waits until rows are on disk.
    fn append(
        &self,
        py: Python<'_>,
        batches: Vec<Batch>,
        timeout: Option<f64>,
    ) -> PyResult<(u64, u64)> {
        let until = deadline(timeout)?;
        let mut appending = self.core()?.begin_append(batches);
        let range = wait(py, until, |slice| {
            appending.wait(slice.saturating_duration_since(Instant::now()))
        })?;
        match range {
            Some(range) => Ok((range.start, range.end)),
            None => {
                let span = timeout.map(span).transpose()?.flatten().unwrap_or_default();
                Err(of_collector(CollectorError::Timeout(span)))
            }
        }
    }
}

#[pymethods]
impl Collector {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Collector {
        Collector {
            open: OnceLock::new(),
            hold: Hold::default(),
        }
    }

    /// Prevents retention from deleting rows from this offset on.
    fn _hold(&self, offset: u64) {
        self.hold.set(offset);
    }

    /// Opens the log, binds, and serves.
    #[pyo3(signature = (directory, bind, *, pull, subscribe, dealer, framing, keep_frames, retention_bytes,
        retention_seconds, retention_groups, flush_seconds, flush_rows, segment_bytes, max_batch_bytes, max_producers, max_staged_bytes,
        staged_seconds, ahead_seconds, credit_rows, credit_bytes, advertise, secret_key, allow,
        open_to_network, roles, max_names_per_connection))]
    #[allow(clippy::too_many_arguments, reason = "the options of a collector")]
    fn _open(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        bind: String,
        pull: Vec<String>,
        subscribe: Vec<(String, Vec<String>)>,
        dealer: Vec<String>,
        framing: &str,
        keep_frames: bool,
        retention_bytes: Option<u64>,
        retention_seconds: Option<f64>,
        retention_groups: bool,
        flush_seconds: f64,
        flush_rows: u64,
        segment_bytes: u64,
        max_batch_bytes: usize,
        max_producers: usize,
        max_staged_bytes: u64,
        staged_seconds: f64,
        ahead_seconds: f64,
        credit_rows: u64,
        credit_bytes: u64,
        advertise: Option<String>,
        secret_key: Option<&Bound<'_, PyAny>>,
        allow: Option<&Bound<'_, PyAny>>,
        open_to_network: bool,
        roles: Option<Vec<KeyRoles>>,
        max_names_per_connection: usize,
    ) -> PyResult<()> {
        let mut config = Config::new(directory);
        config.bind = bind;
        config.advertise = advertise;
        config.plain = Plain {
            pull,
            subscribe,
            dealer,
            framing: Framing::parse(framing).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "framing is \"single\", \"topic-first\" or \"envelope\", not {framing:?}"
                ))
            })?,
            keep_frames,
        };
        config.log.retention_bytes = retention_bytes;
        config.log.retention_time = retention_seconds.map(span).transpose()?.flatten();
        config.log.retention_groups = retention_groups;
        config.log.segment_bytes = segment_bytes;
        config.log.hold = self.hold.clone();
        config.flush_after = span(flush_seconds)?.unwrap_or_default();
        config.flush_rows = flush_rows;
        config.max_batch_bytes = max_batch_bytes;
        config.max_producers = max_producers;
        config.max_staged_bytes = max_staged_bytes;
        config.staged_for = span(staged_seconds)?.unwrap_or(Duration::MAX);
        config.max_ahead = span(ahead_seconds)?.unwrap_or(Duration::MAX);
        config.credit.rows = credit_rows;
        config.credit.bytes = credit_bytes;
        config.open_to_network = open_to_network;
        config.max_names_per_connection = max_names_per_connection;
        config.security = match secret_key {
            Some(secret_key) => Some(Security {
                secret_key: key(secret_key)?,
                allow: AllowList::from_any(allow)?,
                grants: roles.map(grants).transpose()?,
            }),
            None if roles.is_some() => {
                return Err(PyValueError::new_err(
                    "roles require secret_key: without it, clients are not authenticated",
                ));
            }
            None if allow.is_some_and(|allow| !allow.is_none()) => {
                return Err(PyValueError::new_err(
                    "allow requires secret_key: without it, clients are not authenticated",
                ));
            }
            None => None,
        };
        let core = py
            .detach(|| CoreCollector::start(config))
            .map_err(of_collector)?;
        // A second call changes nothing, because an object stands for one collector.
        let _ = self.open.set(Own::new(core, "collector"));
        Ok(())
    }

    /// Appends values, or mappings with `value`, `key`, `topic`, `headers`, `timestamp`, and waits until they are on
    /// disk. Returns the first offset, and the offset after the last row.
    fn _append(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<(u64, u64)> {
        let mut batches = Vec::new();
        let mut builder = BatchBuilder::new();
        for row in arguments::items(
            rows,
            "append takes many rows: a list of values or dicts, or a table",
        )? {
            push(&mut builder, &row?)?;
            if builder.size() >= BATCH_BYTES {
                cut(builder.finish(), &mut batches);
            }
        }
        if !builder.is_empty() {
            cut(builder.finish(), &mut batches);
        }
        self.append(py, batches, timeout)
    }

    /// The same for anything with Arrow's columns.
    fn _append_arrow(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<(u64, u64)> {
        let table = arrow::import(data)?;
        let mut batches = Vec::new();
        for whole in &table.batches {
            let mut from = 0;
            while from < whole.num_rows() {
                let rows = TABLE_ROWS.min(whole.num_rows() - from);
                let piece = whole.slice(from, rows);
                let cut = Batch::cut_record_batch(&piece, BATCH_BYTES);
                batches.extend(cut.map_err(refused_row)?);
                from += rows;
            }
        }
        self.append(py, batches, timeout)
    }

    /// The counters, as JSON.
    fn _stats(&self, py: Python<'_>) -> PyResult<String> {
        let core = self.core()?;
        py.detach(|| core.stats(STATS_PATIENCE))
            .map_err(of_collector)
    }

    /// The last rows of a topic, or of all, the last row first: offset, time of receipt in microseconds, topic, key,
    /// producer, sequence number, the value, and how many bytes it and the key have. Of keys and values no more than
    /// `cut` bytes. Then the offset down to which it was looked for rows, and the end of the log.
    fn _tail<'py>(
        &self,
        py: Python<'py>,
        topic: Option<&str>,
        most: usize,
        cut: usize,
    ) -> PyResult<(Vec<Last<'py>>, u64, u64)> {
        let core = self.core()?;
        let tail = py
            .detach(|| core.tail(topic, most, STATS_PATIENCE))
            .map_err(of_collector)?;
        let short = |bytes: &[u8]| PyBytes::new(py, &bytes[..bytes.len().min(cut)]);
        let rows = tail.rows.iter().map(|(stored, row)| {
            let (batch, row) = (&stored.batch, *row);
            let (key, value) = (batch.key(row), batch.value(row));
            (
                stored.offset(row),
                stored.origin.receive_time,
                batch.topic(row).map(str::to_owned),
                key.map(short),
                stored.origin.producer.to_string(),
                stored.seq(row),
                short(value),
                value.len() as u64,
                key.map_or(0, <[u8]>::len) as u64,
            )
        });
        Ok((rows.collect(), tail.from, tail.end))
    }

    #[doc = text!(Collector::drop_group)]
    fn drop_group(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::group)] group: String,
    ) -> PyResult<bool> {
        let core = self.core()?;
        py.detach(|| core.drop_group(&group, STATS_PATIENCE))
            .map_err(of_collector)
    }

    #[doc = text!(Collector::endpoint)]
    #[getter]
    fn endpoint(&self) -> PyResult<String> {
        Ok(self.core()?.endpoint().to_owned())
    }

    #[doc = text!(Collector::plain_endpoints)]
    #[getter]
    fn plain_endpoints(&self) -> PyResult<Vec<String>> {
        Ok(self.core()?.plain_endpoints().to_vec())
    }

    #[doc = text!(Collector::log_id)]
    #[getter]
    fn log_id(&self) -> PyResult<String> {
        Ok(hex(&self.core()?.log_id()))
    }

    #[doc = text!(Collector::running)]
    #[getter]
    fn running(&self) -> bool {
        self.open
            .get()
            .is_some_and(|open| open.is_own() && open.get().is_ok_and(CoreCollector::is_running))
    }

    /// The state after a crash: bytes that were dropped, damaged ranges of offsets, and notes.
    #[getter]
    fn _recovery(&self) -> PyResult<Found> {
        let recovery = self.core()?.recovery();
        let damaged = recovery.damaged.iter();
        Ok((
            recovery.dropped_bytes,
            damaged.map(|range| (range.start, range.end)).collect(),
            recovery.notes.clone(),
        ))
    }

    #[doc = text!(Collector::close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(open) = self.open.get().filter(|open| open.is_own()) else {
            return Ok(());
        };
        let core = open.get()?;
        py.detach(|| core.close()).map_err(of_collector)
    }
}

/// The rights of each name or key: its roles, and its names of producers.
fn grants(given: Vec<(String, Vec<String>, Vec<String>)>) -> PyResult<Grants> {
    let role = |name: &String| {
        Role::parse(name).ok_or_else(|| {
            let known = Role::ALL.map(Role::name).join(", ");
            PyValueError::new_err(format!("there is no role {name:?}: there is {known}"))
        })
    };
    let grant = |(who, roles, names): (String, Vec<String>, Vec<String>)| {
        let roles = roles.iter().map(role).collect::<PyResult<_>>()?;
        Ok((who, Grant { roles, names }))
    };
    given.into_iter().map(grant).collect()
}

/// One of the last rows.
type Last<'py> = (
    u64,
    i64,
    Option<String>,
    Option<Bound<'py, PyBytes>>,
    String,
    Option<u64>,
    Bound<'py, PyBytes>,
    u64,
    u64,
);

/// Dropped bytes, damaged ranges of offsets, notes.
type Found = (u64, Vec<(u64, u64)>, Vec<String>);

/// Adds a row.
fn push(builder: &mut BatchBuilder, row: &Bound<'_, PyAny>) -> PyResult<()> {
    let pushed = match Fields::of(row)? {
        Some(fields) => {
            let value = octets(&fields.value)?;
            let common = Extras::default();
            let extras = fields.extras(&common)?;
            extras.with(&value, |row| builder.push(row))?
        }
        None => builder.push(Row {
            value: &octets(row)?,
            ..Row::default()
        }),
    };
    pushed.map_err(refused_row)
}

/// Moves a last row that made a batch much too large to a batch of its own.
fn cut(batch: Batch, batches: &mut Vec<Batch>) {
    let rows = batch.rows();
    if rows > 1 && batch.size() > 2 * BATCH_BYTES {
        batches.push(batch.slice(0, rows - 1));
        batches.push(batch.slice(rows - 1, 1));
    } else {
        batches.push(batch);
    }
}

fn refused_row(error: zeroxide_log::BatchError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl From<CollectorError> for Raised {
    fn from(error: CollectorError) -> Raised {
        Raised(of_collector(error))
    }
}

/// A collector's error as an exception.
fn of_collector(error: CollectorError) -> PyErr {
    let text = error.to_string();
    match error {
        CollectorError::Socket(error) => raise(error),
        CollectorError::Refused { code, .. } => {
            exception("Refused", text, |set| set.set_item("code", code.name()))
        }
        CollectorError::Log(LogError::Locked { .. }) => {
            exception("Refused", text, |set| set.set_item("code", "locked"))
        }
        CollectorError::Io(error) => error.into(),
        _ => exception("CollectorError", text, |_| Ok(())),
    }
}
