//! The configuration of a collector.

use std::path::PathBuf;
use std::time::Duration;

use zeroxide::{AllowList, Key};
use zeroxide_log::LogConfig;

use crate::collector::access::Grants;
use crate::wire::Credit;

/// The default of [`Config::max_waiting`]: about 100 MB.
const WAITING: usize = 1 << 19;

/// The configuration of a collector. [`Config::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder of the log.
    pub dir: PathBuf,
    /// The address for producers, readers and sinks.
    pub bind: String,
    /// The address to give to clients. Without it, they keep the address with which they connected.
    pub advertise: Option<String>,
    /// Sockets for plain ZeroMQ peers.
    pub plain: Plain,
    /// The log's own settings.
    pub log: LogConfig,
    /// The maximum time that appended rows wait before they are synced together.
    pub flush_after: Duration,
    /// The number of appended rows that are synced without waiting longer.
    pub flush_rows: u64,
    /// The number of batches and requests that may wait for a sync. From there on, producers wait, and other requests are
    /// refused, until half of them are answered.
    pub max_waiting: usize,
    /// The maximum number of bytes of a batch.
    pub max_batch_bytes: usize,
    /// The maximum number of bytes of a reply to a fetch.
    pub max_fetch_bytes: usize,
    /// The maximum number of bytes of replies that all clients together may have requested and not taken.
    pub max_unread_bytes: u64,
    /// The rows and bytes that all producers together may have unacknowledged. Producers keep to their shares; this is
    /// not enforced.
    pub credit: Credit,
    /// The maximum number of connected producers.
    pub max_producers: usize,
    /// The maximum number of producers on one connection.
    pub max_names_per_connection: usize,
    /// The maximum number of bytes of staged rows.
    pub max_staged_bytes: u64,
    /// The size in bytes above which a staged transaction is written to a segment of its own, so that other writers
    /// need not wait for it.
    pub publish_beside: u64,
    /// The time after which staged rows that were not published are discarded.
    pub staged_for: Duration,
    /// The maximum by which the time of a row may be ahead of this machine's clock, or of the last rows in the log.
    pub max_ahead: Duration,
    /// The interval at which retention is applied.
    pub retain_every: Duration,
    /// The interval at which a failed write is retried.
    pub retry_every: Duration,
    /// The keys for CURVE on all bound sockets.
    pub security: Option<Security>,
    /// Whether other machines may connect without keys, and then write and read.
    pub open_to_network: bool,
}

/// The collector's key, and the keys of its clients.
#[derive(Clone, Debug)]
pub struct Security {
    /// The collector's own secret key.
    pub secret_key: Key,
    /// The keys that are accepted.
    pub allow: AllowList,
    /// The rights of each key; None = all rights, except names that belong to another key.
    pub grants: Option<Grants>,
}

/// Sockets for plain ZeroMQ peers.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// PULL sockets: an address to bind, or one to connect to after `connect:`.
    pub pull: Vec<String>,
    /// SUB sockets: an address to connect to, or one to bind after `bind:`; then topics, none = all.
    pub subscribe: Vec<(String, Vec<String>)>,
    /// ROUTER sockets for DEALERs: an address to bind, or one to connect to after `connect:`.
    pub dealer: Vec<String>,
    /// The meaning of a message's frames.
    pub framing: Framing,
    /// Whether the frames of all messages are kept in the column `frames`, and not only those that do not match the
    /// framing.
    pub keep_frames: bool,
}

impl Plain {
    /// Whether no sockets are configured.
    pub fn is_empty(&self) -> bool {
        self.pull.is_empty() && self.subscribe.is_empty() && self.dealer.is_empty()
    }
}

/// The meaning of the frames of a plain peer's message. If a message has more frames, or a topic that is not UTF-8, its
/// last frame is the value, and all frames are kept in `frames`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// One frame: the value.
    #[default]
    Single,
    /// The topic, then the value. A single frame is the value.
    TopicFirst,
    /// Topic, key, value, then a name and a value per header. A single frame is the value. An empty key means none.
    Envelope,
}

impl Framing {
    /// The framing of that name.
    pub fn parse(name: &str) -> Option<Framing> {
        match name {
            "single" => Some(Framing::Single),
            "topic-first" => Some(Framing::TopicFirst),
            "envelope" => Some(Framing::Envelope),
            _ => None,
        }
    }
}

impl Config {
    /// The defaults, for a log in `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Config {
        Config {
            dir: dir.into(),
            bind: "tcp://127.0.0.1:*".to_owned(),
            advertise: None,
            plain: Plain::default(),
            log: LogConfig::default(),
            flush_after: Duration::from_millis(10),
            flush_rows: 20_000,
            max_waiting: WAITING,
            max_batch_bytes: 16 << 20,
            max_fetch_bytes: 16 << 20,
            max_unread_bytes: 512 << 20,
            credit: Credit {
                rows: 8 << 20,
                bytes: 256 << 20,
            },
            max_producers: 100_000,
            max_names_per_connection: 64,
            max_staged_bytes: 16 << 30,
            publish_beside: 8 << 20,
            staged_for: Duration::from_secs(3600),
            max_ahead: Duration::from_secs(24 * 3600),
            retain_every: Duration::from_secs(1),
            retry_every: Duration::from_millis(500),
            security: None,
            open_to_network: false,
        }
    }
}
