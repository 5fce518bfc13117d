//! Requests to a collector, each with its reply. A call has a time limit, is retried on a new connection, and its
//! errors say what to do.
//!
//! Every request may be repeated, because a client that did not receive the reply asks again. A call can be made in
//! steps ([`Client::begin`], [`Client::advance`]), for callers that have other work while they wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;
use zeroxide::{Context, ErrorKind};
use zeroxide_log::Generations;

use crate::link::{Change, Denial, Link, Security};
use crate::wire::{Attempt, Code, LogId, Reply, Request, WireError, Won, too_big};

/// The number of idle connections that are kept for later calls.
const IDLE_MAX: usize = 4;

/// The pause before a collector that is closing is asked again.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The time to wait for a reply before asking again.
    pub timeout: Duration,
    /// The number of retries.
    pub retries: u32,
    /// Keys, if the collector requires them.
    pub security: Option<Security>,
}

impl Default for ClientConfig {
    fn default() -> ClientConfig {
        ClientConfig {
            timeout: Duration::from_secs(10),
            retries: 3,
            security: None,
        }
    }
}

/// The reason why a call failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The collector did not answer.
    #[error(
        "the collector at {endpoint} did not answer for {seconds:.1} s: is it running, and is this its address?"
    )]
    Gone {
        /// The collector's endpoint.
        endpoint: String,
        /// The time waited, in seconds.
        seconds: f64,
    },
    /// The collector, or this client, rejected the handshake.
    #[error("the collector at {endpoint} {why}")]
    Denied {
        /// The collector's endpoint.
        endpoint: String,
        /// The reason.
        why: Denial,
    },
    /// The collector refused the request.
    #[error("the collector at {endpoint} refused: {text}")]
    Refused {
        /// The collector's endpoint.
        endpoint: String,
        /// The reason, for programs.
        code: Code,
        /// A number whose meaning depends on the code.
        detail: u64,
        /// The reason, for people.
        text: String,
    },
    /// The requested rows are not in the log.
    #[error("{text}")]
    DataLoss {
        /// The requested offset.
        asked: u64,
        /// The first offset in the log.
        earliest: u64,
        /// The offset after the last row in the log.
        latest: u64,
        /// The id of the log.
        log_id: LogId,
        /// From this offset on, the rows differ from those that were read: the log is an older copy that has grown
        /// since.
        others: Option<u64>,
        /// A description, for people.
        text: String,
    },
    /// The reply is not one of a collector.
    #[error("{endpoint} is not a collector, or one of another version: {what}")]
    Foreign {
        /// The endpoint that sent it.
        endpoint: String,
        /// The fault of the message.
        what: String,
    },
    /// A socket failed.
    #[error(transparent)]
    Socket(#[from] zeroxide::Error),
}

/// The result of [`Client::info`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The id of the log.
    pub log_id: LogId,
    /// The first offset that can be fetched.
    pub earliest: u64,
    /// The offset after the last row that can be fetched.
    pub latest: u64,
    /// The times at which the first and the last of these rows were received, in microseconds since 1970.
    pub times: Option<(i64, i64)>,
    /// The size of the log on disk.
    pub bytes: u64,
    /// The address under which other machines reach this collector.
    pub advertise: String,
    /// The generations that wrote the rows, with their first offsets.
    pub generations: Generations,
}

/// The result of [`Client::publish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The offset of the first row.
    pub first: u64,
    /// The offset after the last row.
    pub end: u64,
    /// Whether the batch had been published before, or was being published already. Then the rows may be those of other
    /// attempts.
    pub already: bool,
}

/// A client of one collector. Any thread may use it, and calls do not wait for each other.
pub struct Client {
    context: Context,
    endpoint: String,
    config: ClientConfig,
    idle: Mutex<Vec<Link>>,
    requests: AtomicU64,
}

/// A request in progress.
pub struct Call {
    request: Request,
    /// The connection that carried the request, and its number there.
    asked: Option<(Link, u64)>,
    began: Instant,
    tries: u32,
    patience: Instant,
    pause: Option<Instant>,
}

impl Client {
    /// Creates a client of the collector at `endpoint`, which need not be running yet.
    ///
    /// # Errors
    /// If the endpoint is malformed.
    pub fn new(endpoint: &str, config: ClientConfig) -> Result<Client, ClientError> {
        let context = Context::new();
        let link = Link::open(&context, endpoint, config.security.as_ref())?;
        Ok(Client {
            context,
            endpoint: endpoint.to_owned(),
            config,
            idle: Mutex::new(vec![link]),
            requests: AtomicU64::new(0),
        })
    }

    /// The collector's endpoint.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The time that an unanswered call takes until it fails.
    pub fn patience(&self) -> Duration {
        self.config
            .timeout
            .saturating_mul(self.config.retries.saturating_add(1))
    }

    /// The time until a call is retried.
    pub fn timeout(&self) -> Duration {
        self.config.timeout
    }

    /// Whether this process created the client. A forked child must not use it.
    pub fn is_own_process(&self) -> bool {
        self.context.is_own_process()
    }

    // ---- calls in steps --------------------------------------------------------------------------------------------

    /// Begins a call without sending anything.
    pub fn begin(&self, request: Request) -> Call {
        let now = Instant::now();
        Call {
            request,
            asked: None,
            began: now,
            tries: 0,
            patience: now,
            pause: None,
        }
    }

    /// Continues a call until its reply arrives or a point in time is reached (`None` = no limit). In the second case,
    /// returns `None`.
    ///
    /// # Errors
    /// [`ClientError::Gone`] when the retries are used up, and refusals of the collector.
    pub fn advance(
        &self,
        call: &mut Call,
        until: Option<Instant>,
    ) -> Result<Option<Reply>, ClientError> {
        loop {
            let now = Instant::now();
            if now.saturating_duration_since(call.began) >= self.patience() {
                call.asked = None;
                return Err(self.gone(call.began));
            }
            if let Some(pause) = call.pause {
                if pause > now {
                    let until = until.map_or(pause, |until| until.min(pause));
                    std::thread::sleep(until.saturating_duration_since(now));
                    if until < pause {
                        return Ok(None);
                    }
                }
                call.pause = None;
            }
            if call.asked.is_none() {
                self.ask(call, now)?;
            }
            if let Some(reply) = self.listen(call)? {
                return Ok(Some(reply));
            }
            let Some((link, _)) = &call.asked else {
                continue;
            };
            if call.patience <= now {
                call.asked = None;
                continue;
            }
            if until.is_some_and(|until| until <= now) {
                return Ok(None);
            }
            let wake = until.map_or(call.patience, |until| until.min(call.patience));
            match link.wait(Some(wake)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(None),
                other => other?,
            }
        }
    }

    /// Makes a call and waits for its reply.
    ///
    /// # Errors
    /// As for [`advance`](Self::advance).
    pub fn call(&self, request: Request) -> Result<Reply, ClientError> {
        let mut call = self.begin(request);
        loop {
            if let Some(reply) = self.advance(&mut call, None)? {
                return Ok(reply);
            }
        }
    }

    fn ask(&self, call: &mut Call, now: Instant) -> Result<(), ClientError> {
        // The first idle connection may have broken while no call used it.
        let link = match call.tries {
            0 => self.take_link()?,
            _ => self.open_link()?,
        };
        let id = self.next_id();
        link.send(call.request.clone().encode(id));
        call.tries += 1;
        call.patience = now + self.config.timeout;
        call.asked = Some((link, id));
        Ok(())
    }

    /// Returns the reply if it has arrived.
    fn listen(&self, call: &mut Call) -> Result<Option<Reply>, ClientError> {
        let Some((link, id)) = &call.asked else {
            return Ok(None);
        };
        while let Some(message) = link.poll_message() {
            let (answered, reply) = self.decode(message)?;
            if answered != *id {
                continue;
            }
            if reply == Reply::Publishing {
                // Publishing takes as long as necessary, and the time limit restarts with each progress message.
                call.began = Instant::now();
                call.patience = call.began + self.config.timeout;
                continue;
            }
            if matches!(&reply, Reply::Refused { code, .. } if *code == Code::Closing) {
                call.asked = None;
                call.pause = Some(Instant::now() + PAUSE);
                return Ok(None);
            }
            if let Some((link, _)) = call.asked.take() {
                self.give_link(link);
            }
            return self.check(reply).map(Some);
        }
        match link.poll_change() {
            Some(Change::Denied(why)) => Err(self.denied(why)),
            Some(Change::Down) => {
                call.asked = None;
                Ok(None)
            }
            Some(Change::Up | Change::Away) | None => Ok(None),
        }
    }

    /// A connection for a call.
    pub(crate) fn take_link(&self) -> Result<Link, ClientError> {
        while let Some(link) = { self.idle().pop() } {
            let mut is_up = true;
            while let Some(change) = link.poll_change() {
                is_up = change == Change::Up;
            }
            if is_up {
                while link.poll_message().is_some() {}
                return Ok(link);
            }
        }
        self.open_link()
    }

    pub(crate) fn open_link(&self) -> Result<Link, ClientError> {
        let security = self.config.security.as_ref();
        Ok(Link::open(&self.context, &self.endpoint, security)?)
    }

    /// Keeps a connection that no call is using any more.
    pub(crate) fn give_link(&self, link: Link) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(link);
        }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Closes the idle connections. The next call opens one.
    pub fn hang_up(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn decode(&self, message: zeroxide::Message) -> Result<(u64, Reply), ClientError> {
        Reply::decode(message).map_err(|WireError { what, .. }| self.foreign(what))
    }

    /// Turns refusals into errors.
    pub(crate) fn check(&self, reply: Reply) -> Result<Reply, ClientError> {
        match reply {
            Reply::Refused { code, detail, text } => Err(ClientError::Refused {
                endpoint: self.endpoint.clone(),
                code,
                detail,
                text,
            }),
            reply => Ok(reply),
        }
    }

    pub(crate) fn gone(&self, since: Instant) -> ClientError {
        ClientError::Gone {
            endpoint: self.endpoint.clone(),
            seconds: since.elapsed().as_secs_f64(),
        }
    }

    pub(crate) fn denied(&self, why: Denial) -> ClientError {
        ClientError::Denied {
            endpoint: self.endpoint.clone(),
            why,
        }
    }

    pub(crate) fn foreign(&self, what: impl ToString) -> ClientError {
        ClientError::Foreign {
            endpoint: self.endpoint.clone(),
            what: what.to_string(),
        }
    }

    fn unexpected(&self) -> ClientError {
        self.foreign("the reply is to another kind of request")
    }
}

/// Typed calls, and the contents of their replies.
impl Client {
    /// The state of the log.
    ///
    /// # Errors
    /// As for [`call`](Self::call), also below.
    pub fn info(&self) -> Result<Info, ClientError> {
        self.read_info(self.call(Request::Info)?)
    }

    /// Reads the reply to [`Request::Info`].
    ///
    /// # Errors
    /// If it is another reply.
    pub fn read_info(&self, reply: Reply) -> Result<Info, ClientError> {
        match reply {
            Reply::Info {
                log_id,
                earliest,
                durable,
                times,
                bytes,
                advertise,
                generations,
            } => Ok(Info {
                log_id,
                earliest,
                latest: durable,
                times,
                bytes,
                advertise,
                generations,
            }),
            _ => Err(self.unexpected()),
        }
    }

    /// The first offset whose rows were received at `timestamp`, in microseconds since 1970, or later.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn offset_at(&self, timestamp: i64) -> Result<u64, ClientError> {
        self.read_offset(self.call(Request::OffsetAt { timestamp })?)
    }

    /// The end of a range of rows from `start` on that takes about `bytes` bytes in the log: at least one row, if there
    /// is one.
    ///
    /// # Errors
    /// As for [`call`](Self::call); `Malformed` from a collector that does not know the request.
    pub fn offset_after(&self, start: u64, bytes: u64) -> Result<u64, ClientError> {
        self.read_offset(self.call(Request::Weigh { start, bytes })?)
    }

    /// Reads the reply to [`Request::OffsetAt`] or [`Request::Weigh`].
    ///
    /// # Errors
    /// If it is another reply.
    pub fn read_offset(&self, reply: Reply) -> Result<u64, ClientError> {
        match reply {
            Reply::Offset { offset } => Ok(offset),
            _ => Err(self.unexpected()),
        }
    }

    /// Commits the position of a group of consumers: it does not need rows below `offset` any more. `generation` is
    /// that of the row before; 0 if unknown.
    ///
    /// # Errors
    /// As for [`call`](Self::call); `OtherRows` if the group has read another copy of the log.
    pub fn commit(&self, group: &str, offset: u64, generation: u64) -> Result<(), ClientError> {
        let group = group.to_owned();
        self.read_done(self.call(Request::Commit {
            group,
            offset,
            generation,
        })?)
    }

    /// Reads the reply to [`Request::Position`]: the group's position, if there is such a group.
    ///
    /// # Errors
    /// If it is another reply.
    pub fn read_position(&self, reply: Reply) -> Result<Option<u64>, ClientError> {
        match reply {
            Reply::Position { offset } => Ok(offset),
            _ => Err(self.unexpected()),
        }
    }

    /// Reads the reply to [`Request::DropGroup`]: whether there was one.
    ///
    /// # Errors
    /// If it is another reply.
    pub fn read_dropped(&self, reply: Reply) -> Result<bool, ClientError> {
        match reply {
            Reply::Dropped { existed } => Ok(existed),
            _ => Err(self.unexpected()),
        }
    }

    /// Reads a reply that only confirms an operation.
    ///
    /// # Errors
    /// If it is another reply.
    pub fn read_done(&self, reply: Reply) -> Result<(), ClientError> {
        match reply {
            Reply::Committed | Reply::Staged | Reply::Aborted => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    /// Publishes the rows of the attempts `won`, in this order.
    ///
    /// # Errors
    /// As for [`call`](Self::call); `NotStaged` if parts are missing.
    pub fn publish(
        &self,
        query: &str,
        batch: u64,
        won: Vec<Won>,
    ) -> Result<Published, ClientError> {
        let query = query.to_owned();
        self.read_published(self.call(Request::Publish { query, batch, won })?)
    }

    /// Reads the reply to [`Request::Publish`].
    ///
    /// # Errors
    /// If it is another reply.
    pub fn read_published(&self, reply: Reply) -> Result<Published, ClientError> {
        match reply {
            Reply::Published {
                first,
                end,
                already,
            } => Ok(Published {
                first,
                end,
                already,
            }),
            _ => Err(self.unexpected()),
        }
    }

    /// Discards the rows that these attempts staged; an empty list means the whole batch. If the batch is being
    /// published, that is cancelled.
    ///
    /// # Errors
    /// `Refused` with `Invalid` if the batch is already published; otherwise as for [`call`](Self::call).
    pub fn abort(
        &self,
        query: &str,
        batch: u64,
        attempts: Vec<Attempt>,
    ) -> Result<(), ClientError> {
        let query = query.to_owned();
        self.read_done(self.call(Request::Abort {
            query,
            batch,
            attempts,
        })?)
    }

    /// Reads the reply to [`Request::Limits`]: whether a batch of `bytes` bytes is accepted.
    ///
    /// # Errors
    /// `Refused` if it is not.
    pub fn read_limits(&self, reply: Reply, bytes: usize) -> Result<(), ClientError> {
        match reply {
            Reply::Limits { max_batch_bytes } if bytes as u64 > max_batch_bytes => self
                .check(Reply::Refused {
                    code: Code::TooBig,
                    detail: max_batch_bytes,
                    text: too_big("part", bytes, max_batch_bytes),
                })
                .map(drop),
            Reply::Limits { .. } => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    /// The collector's counters, as a JSON object.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn stats(&self) -> Result<bytes::Bytes, ClientError> {
        self.read_stats(self.call(Request::Stats)?)
    }

    /// Reads the reply to [`Request::Stats`].
    ///
    /// # Errors
    /// If it is another reply.
    pub fn read_stats(&self, reply: Reply) -> Result<bytes::Bytes, ClientError> {
        match reply {
            Reply::Stats { json } => Ok(json),
            _ => Err(self.unexpected()),
        }
    }
}
