//! Errors of a producer.

use thiserror::Error;
use zeroxide_log::{BatchError, LogError};

use crate::link::Denial;
use crate::producer::window::Ending;
use crate::wire::Code;

/// The reason why rows are not accepted, or not acknowledged.
#[derive(Clone, Debug, Error)]
pub enum Failure {
    /// The collector has been silent for too long. The producer keeps trying, and can be used again once the collector
    /// is back.
    #[error(
        "the collector at {endpoint} has not answered for {seconds:.1} s{}; {} not acknowledged, and {}",
        because(reason), counted(*unacknowledged), fate.text("it is back")
    )]
    Gone {
        /// The collector's endpoint.
        endpoint: String,
        /// The duration of its silence, in seconds.
        seconds: f64,
        /// The number of unacknowledged rows.
        unacknowledged: u64,
        /// The reason, as far as it is known.
        reason: Option<String>,
        /// What becomes of these rows.
        fate: Fate,
    },
    /// The collector answers, but has accepted nothing for too long.
    #[error(
        "the collector at {endpoint} has taken no rows for {seconds:.1} s{}",
        because(reason)
    )]
    Blocked {
        /// The collector's endpoint.
        endpoint: String,
        /// The duration, in seconds.
        seconds: f64,
        /// The reason, for programs.
        code: Code,
        /// The collector's text.
        reason: Option<String>,
    },
    /// The handshake was rejected. The producer keeps trying, and continues when the collector accepts it.
    #[error(
        "the collector at {endpoint} {why}; {} not acknowledged, and {}",
        counted(*unacknowledged), fate.text("it lets this producer in")
    )]
    Denied {
        /// The collector's endpoint.
        endpoint: String,
        /// The reason.
        why: Denial,
        /// The number of unacknowledged rows.
        unacknowledged: u64,
        /// What becomes of these rows.
        fate: Fate,
    },
    /// A later run has taken over the name.
    #[error(
        "another producer with the name {name:?} has taken over at {endpoint}; here {} not acknowledged, and never will be: {text}",
        counted(*unacknowledged)
    )]
    Fenced {
        /// The collector at which this happened.
        endpoint: String,
        /// The name of both runs.
        name: String,
        /// The number of unacknowledged rows.
        unacknowledged: u64,
        /// The collector's text.
        text: String,
    },
    /// The collector does not accept these rows, now or later.
    #[error(
        "the collector at {endpoint} refused: {text}; {} not acknowledged",
        counted(*unacknowledged)
    )]
    Refused {
        /// The collector's endpoint.
        endpoint: String,
        /// The reason, for programs.
        code: Code,
        /// The reason, for people.
        text: String,
        /// The number of unacknowledged rows.
        unacknowledged: u64,
    },
    /// Rows will never arrive, or were lost. Returned once; the other rows are sent as usual.
    #[error("{text}")]
    Setback {
        /// The reason, for programs.
        code: Code,
        /// The rows and the reason, for people.
        text: String,
    },
    /// The row itself is invalid.
    #[error("{0}")]
    Row(#[from] BatchError),
    /// The spool failed.
    #[error("the spool failed: {0}")]
    Spool(String),
    /// The spool's disk has been full for too long, or files in it could not be opened. The producer continues when that has
    /// passed.
    #[error(
        "the spool has taken no rows for {seconds:.1} s ({reason}); {rows} rows wait in memory, and go on as soon as it does"
    )]
    SpoolFull {
        /// The duration, in seconds.
        seconds: f64,
        /// The system's error and the path.
        reason: String,
        /// The number of rows that are not in the spool.
        rows: u64,
    },
    /// The producer's settings are invalid.
    #[error("{0}")]
    Invalid(String),
    /// A socket could not be created, or not be connected to an endpoint.
    #[error(transparent)]
    Socket(#[from] zeroxide::Error),
    /// The producer was closed.
    #[error("the producer is closed")]
    Closed,
}

/// What becomes of rows that are not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The producer keeps trying to send them.
    Sent,
    /// The producer is closed, and the next one with its spool sends them.
    Spooled,
    /// The producer is closed.
    Lost,
}

impl Fate {
    fn text(self, until: &str) -> String {
        match self {
            Fate::Sent => format!("sent as soon as {until}"),
            Fate::Spooled => "kept in the spool for the next producer with it".to_owned(),
            Fate::Lost => {
                "not sent again, because this producer is closed; a spool would keep them"
                    .to_owned()
            }
        }
    }
}

impl Failure {
    pub(super) fn spool(error: LogError) -> Failure {
        Failure::Spool(match error {
            LogError::Failed { what, reason } => format!(
                "{what} failed ({reason}), so what its disk holds is unknown; check the disk, and start the producer again, \
                 which reads the spool anew"
            ),
            error => error.to_string(),
        })
    }

    /// The error for a conversation that has ended.
    pub(super) fn of_ending(endpoint: &str, name: &str, ending: &Ending) -> Failure {
        let (endpoint, text) = (endpoint.to_owned(), ending.text.clone());
        match ending.code {
            Code::Fenced => Failure::Fenced {
                endpoint,
                name: name.to_owned(),
                unacknowledged: 0,
                text,
            },
            code => Failure::Refused {
                endpoint,
                code,
                text,
                unacknowledged: 0,
            },
        }
    }

    /// The same error with the number of unacknowledged rows.
    pub(super) fn with_unacknowledged(&self, rows: u64) -> Failure {
        let mut failure = self.clone();
        if let Failure::Fenced { unacknowledged, .. } | Failure::Refused { unacknowledged, .. } =
            &mut failure
        {
            *unacknowledged = rows;
        }
        failure
    }
}

fn counted(rows: u64) -> String {
    match rows {
        1 => "1 row is".to_owned(),
        _ => format!("{rows} rows are"),
    }
}

fn because(reason: &Option<String>) -> String {
    reason
        .as_ref()
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default()
}
