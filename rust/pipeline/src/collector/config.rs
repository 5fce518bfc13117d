//! What a collector is told when it starts.

use std::path::PathBuf;
use std::time::Duration;

use zeroxide::{AllowList, Key};
use zeroxide_log::LogConfig;

use crate::collector::access::Grants;
use crate::wire::Credit;

/// Everything about a collector. [`Config::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder of the log.
    pub dir: PathBuf,
    /// Where producers, readers and sinks connect to.
    pub bind: String,
    /// The address of that for others; without it they use the one that brought them here.
    pub advertise: Option<String>,
    /// Peers that only know ZeroMQ.
    pub plain: Plain,
    /// The log's own settings.
    pub log: LogConfig,
    /// How long appended rows may wait for others before they are synced together.
    pub flush_after: Duration,
    /// How many of them need not wait any longer.
    pub flush_rows: u64,
    /// The most bytes of a batch.
    pub max_batch_bytes: usize,
    /// The most bytes of a reply to a fetch.
    pub max_fetch_bytes: usize,
    /// What all readers together may have asked for and not taken.
    pub max_unread_bytes: u64,
    /// What all producers together may have on its way.
    pub credit: Credit,
    /// How many producers may be connected at a time.
    pub max_producers: usize,
    /// How many of them may share a connection.
    pub max_names_per_connection: usize,
    /// The most bytes of rows that wait for being published.
    pub max_staged_bytes: u64,
    /// Staged rows of more bytes are not copied into the log while others wait, but made a segment of their own beside it.
    pub publish_beside: u64,
    /// How long staged rows may wait for being published before they are forgotten.
    pub staged_for: Duration,
    /// How often to look for what retention allows to delete.
    pub retain_every: Duration,
    /// How often to try again to write when that failed.
    pub retry_every: Duration,
    /// CURVE for everything that is bound.
    pub security: Option<Security>,
    /// Without it, other machines may connect, and whoever does may write and read.
    pub open_to_network: bool,
}

/// Who the collector is, and who may come in.
#[derive(Clone, Debug)]
pub struct Security {
    /// The collector's own secret key.
    pub secret_key: Key,
    /// Whose keys are let in.
    pub allow: AllowList,
    /// What each of them may do; none = everything, except under names that another key has.
    pub grants: Option<Grants>,
}

/// Sockets for peers that only know ZeroMQ.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// PULL sockets: an address to bind, or one to connect to behind `connect:`.
    pub pull: Vec<String>,
    /// SUB sockets: an address to connect to, or one to bind behind `bind:`; then topics, none = all.
    pub subscribe: Vec<(String, Vec<String>)>,
    /// ROUTER sockets for DEALERs: an address to bind, or one to connect to behind `connect:`.
    pub dealer: Vec<String>,
    /// What the frames of a message are.
    pub framing: Framing,
    /// Whether all messages are kept raw as well, in `frames`; else only those that the framing does not explain.
    pub keep_frames: bool,
}

impl Plain {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pull.is_empty() && self.subscribe.is_empty() && self.dealer.is_empty()
    }
}

/// What the frames of a plain peer's message are. Of a message that has more of them, or a topic that is not UTF-8, the
/// last frame is the value, and all of them are kept in `frames`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// One frame, the value.
    #[default]
    Single,
    /// The topic, then the value; of a single frame that is all.
    TopicFirst,
    /// Topic, key, value, then a name and a value per header; of a single frame that is the value. An empty key is none.
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
            retain_every: Duration::from_secs(1),
            retry_every: Duration::from_millis(500),
            security: None,
            open_to_network: false,
        }
    }
}
