//! Clients of a collector.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use zeroxide_log::{Batch, Generations};
use zeroxide_pipeline::client::{Client as CoreClient, ClientConfig, ClientError};
use zeroxide_pipeline::producer::encoded;
use zeroxide_pipeline::reader::{Fetch as CoreFetch, FetchConfig, Fetched, hex};
use zeroxide_pipeline::wire::{Attempt, LogId, Reply, Request, Won};

use super::follow::Follow;
use super::shared::Shared;
use super::{Own, of_client, security, span, wait};
use crate::arguments;
use crate::arrow::{self, ArrowTable};
use crate::parting;

/// The maximum number of rows of a part; the caller stages more rows as several parts.
const PART_ROWS: usize = 1 << 20;

/// Larger parts are not sent before the collector has confirmed its limit. Every collector receives parts of this size,
/// if only to refuse them.
const ASK_FROM: usize = 16 << 20;

#[doc = text!(Client)]
#[pyclass(subclass, frozen, module = "zeroxide._native")]
pub(crate) struct Client {
    open: OnceLock<Own<Arc<CoreClient>>>,
}

/// Log id, earliest, latest, times of the first and last row, bytes, the address that the collector advertises, generations.
type InfoRow = (
    String,
    u64,
    u64,
    Option<(i64, i64)>,
    u64,
    String,
    Vec<(u64, String)>,
);

impl Client {
    fn core(&self) -> PyResult<&Arc<CoreClient>> {
        parting::prepare();
        match self.open.get() {
            Some(open) => open.get(),
            None => Err(PyValueError::new_err("the client was never opened")),
        }
    }

    /// Makes a call, and runs signal handlers between its steps.
    fn call(&self, py: Python<'_>, request: Request) -> PyResult<(&Arc<CoreClient>, Reply)> {
        let core = self.core()?;
        let mut call = core.begin(request);
        let reply = wait(py, None, |until| core.advance(&mut call, Some(until)))?;
        Ok((
            core,
            reply.expect("a wait without a deadline ends with a reply"),
        ))
    }
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Client {
        Client {
            open: OnceLock::new(),
        }
    }

    /// Makes the client.
    #[pyo3(signature = (endpoint, *, timeout, retries, server_key, public_key, secret_key))]
    fn _open(
        &self,
        endpoint: &str,
        timeout: f64,
        retries: u32,
        server_key: Option<&Bound<'_, PyAny>>,
        public_key: Option<&Bound<'_, PyAny>>,
        secret_key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let config = ClientConfig {
            timeout: span(timeout)?.unwrap_or(Duration::from_secs(1 << 32)),
            retries,
            security: security(server_key, public_key, secret_key)?,
        };
        let core = CoreClient::new(endpoint, config).map_err(of_client)?;
        let _ = self.open.set(Own::new(Arc::new(core), "client"));
        Ok(())
    }

    /// The state of the log.
    fn _info(&self, py: Python<'_>) -> PyResult<InfoRow> {
        let (core, reply) = self.call(py, Request::Info)?;
        let info = core.read_info(reply).map_err(of_client)?;
        Ok((
            hex(&info.log_id),
            info.earliest,
            info.latest,
            info.times,
            info.bytes,
            info.advertise,
            generation_rows(&info.generations),
        ))
    }

    /// The first offset received at a time, in microseconds since 1970, or later.
    fn _offset_at(&self, py: Python<'_>, timestamp: i64) -> PyResult<u64> {
        let (core, reply) = self.call(py, Request::OffsetAt { timestamp })?;
        core.read_offset(reply).map_err(of_client)
    }

    /// The end of a range of rows from `start` on that takes about `size` bytes.
    fn _offset_after(&self, py: Python<'_>, start: u64, size: u64) -> PyResult<u64> {
        let bytes = size;
        let (core, reply) = self.call(py, Request::Weigh { start, bytes })?;
        core.read_offset(reply).map_err(of_client)
    }

    /// Commits the position of a group of consumers, where the row before it is of this generation.
    fn _commit(
        &self,
        py: Python<'_>,
        group: &str,
        offset: u64,
        generation: Option<&str>,
    ) -> PyResult<()> {
        let request = Request::Commit {
            group: group.to_owned(),
            offset,
            generation: parse_generation(generation)?,
        };
        let (core, reply) = self.call(py, request)?;
        core.read_done(reply).map_err(of_client)
    }

    #[doc = text!(Client::drop_group)]
    fn drop_group(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::group)] group: String,
    ) -> PyResult<bool> {
        let (core, reply) = self.call(py, Request::DropGroup { group })?;
        core.read_dropped(reply).map_err(of_client)
    }

    #[doc = text!(Client::close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(open) = self.open.get().filter(|open| open.is_own()) {
            let core = open.get()?;
            py.detach(|| core.hang_up());
        }
        Ok(())
    }

    /// Begins a fetch.
    #[pyo3(signature = (start, end, *, topics, max_bytes, log_id, generation, partition, headers, frames))]
    #[allow(clippy::too_many_arguments, reason = "the options of a fetch")]
    fn _fetch(
        &self,
        start: u64,
        end: u64,
        topics: Vec<String>,
        max_bytes: u64,
        log_id: Option<&str>,
        generation: Option<&str>,
        partition: i32,
        headers: bool,
        frames: bool,
    ) -> PyResult<Fetch> {
        let config = FetchConfig {
            range: start..end.max(start),
            topics,
            max_bytes,
            log_id: log_id.map(parse_log_id).transpose()?,
            generation: parse_generation(generation)?,
            follows: false,
        };
        Ok(Fetch {
            core: Own::new(
                Shared::new(CoreFetch::new(self.core()?.clone(), config)),
                "fetch",
            ),
            partition,
            headers,
            frames,
        })
    }

    /// Begins to follow the log from an offset on; with `end`, returns the existing rows before that offset.
    #[pyo3(signature = (start, end, *, topics, max_bytes, log_id, generation, partition, headers, frames))]
    #[allow(clippy::too_many_arguments, reason = "the options of a follower")]
    fn _follow(
        &self,
        start: u64,
        end: Option<u64>,
        topics: Vec<String>,
        max_bytes: u64,
        log_id: Option<&str>,
        generation: Option<&str>,
        partition: i32,
        headers: bool,
        frames: bool,
    ) -> PyResult<Follow> {
        let config = FetchConfig {
            range: start..end.unwrap_or(u64::MAX),
            topics,
            max_bytes,
            log_id: log_id.map(parse_log_id).transpose()?,
            generation: parse_generation(generation)?,
            follows: end.is_none(),
        };
        let fetch = CoreFetch::new(self.core()?.clone(), config);
        Follow::new(fetch, partition, headers, frames)
    }

    /// The first offset that a group of consumers still needs; none if there is no such group.
    fn _position(&self, py: Python<'_>, group: &str) -> PyResult<Option<u64>> {
        let group = group.to_owned();
        let (core, reply) = self.call(py, Request::Position { group })?;
        core.read_position(reply).map_err(of_client)
    }

    /// Stages rows of a query's batch; returns how many.
    fn _stage(
        &self,
        py: Python<'_>,
        query: &str,
        batch: u64,
        attempt: (u32, u64),
        part: u32,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let table = arrow::import(rows)?
            .to_batch()
            .map_err(arrow::table_error)?;
        if table.num_rows() > PART_ROWS {
            return Err(PyValueError::new_err(format!(
                "a part has at most {PART_ROWS} rows, this one {}: stage it in several",
                table.num_rows()
            )));
        }
        let rows = py
            .detach(|| Batch::from_record_batch(&table).map(|batch| encoded(&batch)))
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        if rows.len() > ASK_FROM {
            let (core, reply) = self.call(py, Request::Limits)?;
            core.read_limits(reply, rows.len()).map_err(of_client)?;
        }
        let request = Request::Stage {
            query: query.to_owned(),
            batch,
            attempt: attempt_of(attempt),
            part,
            rows,
        };
        let (core, reply) = self.call(py, request)?;
        core.read_done(reply).map_err(of_client)?;
        Ok(table.num_rows())
    }

    /// Publishes attempts (partition, attempt, parts) of a query's batch; returns the first offset, the end, and
    /// whether it was published before.
    fn _publish(
        &self,
        py: Python<'_>,
        query: &str,
        batch: u64,
        won: Vec<(u32, u64, u32)>,
    ) -> PyResult<(u64, u64, bool)> {
        let won = won.into_iter().map(|(partition, attempt, parts)| Won {
            attempt: Attempt { partition, attempt },
            parts,
        });
        let request = Request::Publish {
            query: query.to_owned(),
            batch,
            won: won.collect(),
        };
        let (core, reply) = self.call(py, request)?;
        let published = core.read_published(reply).map_err(of_client)?;
        Ok((published.first, published.end, published.already))
    }

    /// Discards attempts (partition, attempt) of a query's batch; empty = all.
    fn _abort(
        &self,
        py: Python<'_>,
        query: &str,
        batch: u64,
        attempts: Vec<(u32, u64)>,
    ) -> PyResult<()> {
        let request = Request::Abort {
            query: query.to_owned(),
            batch,
            attempts: attempts.into_iter().map(attempt_of).collect(),
        };
        let (core, reply) = self.call(py, request)?;
        core.read_done(reply).map_err(of_client)
    }

    /// The collector's counters as JSON.
    fn _stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (core, reply) = self.call(py, Request::Stats)?;
        let json = core.read_stats(reply).map_err(of_client)?;
        Ok(PyBytes::new(py, &json))
    }
}

fn attempt_of((partition, attempt): (u32, u64)) -> Attempt {
    Attempt { partition, attempt }
}

/// First offsets and ids.
fn generation_rows(generations: &Generations) -> Vec<(u64, String)> {
    let rows = generations.iter();
    rows.map(|one| (one.first, format!("{:016x}", one.id)))
        .collect()
}

fn parse_generation(text: Option<&str>) -> PyResult<u64> {
    let Some(text) = text else { return Ok(0) };
    let number = u64::from_str_radix(text, 16).ok();
    number
        .filter(|_| text.len() == 16)
        .ok_or_else(|| PyValueError::new_err("a generation is 16 hexadecimal digits"))
}

fn parse_log_id(text: &str) -> PyResult<LogId> {
    let number = (text.len() == 32)
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten();
    match number {
        Some(number) => Ok(number.to_be_bytes()),
        None => Err(PyValueError::new_err("a log id is 32 hexadecimal digits")),
    }
}

#[doc = text!(Fetch)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct Fetch {
    core: Own<Shared>,
    partition: i32,
    headers: bool,
    frames: bool,
}

#[pymethods]
impl Fetch {
    fn __iter__(this: Py<Fetch>) -> Py<Fetch> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ArrowTable>> {
        let core = self.core.get()?;
        let mut resume = true;
        let table = wait(py, None, |until| {
            Ok::<_, ClientError>(match core.step(until, std::mem::take(&mut resume))? {
                Fetched::Waiting => None,
                Fetched::End => Some(None),
                Fetched::Batch(stored, range) => Some(Some(stored.to_record_batch(
                    range,
                    self.partition,
                    self.headers,
                    self.frames,
                ))),
            })
        })?;
        Ok(table.flatten().map(ArrowTable::of_batch))
    }
}
