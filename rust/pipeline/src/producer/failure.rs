//! Why a producer cannot go on.

use thiserror::Error;
use zeroxide_log::{BatchError, LogError};

use crate::link::Denial;
use crate::producer::window::Ending;
use crate::wire::Code;

/// Why rows are not taken, or not acknowledged.
#[derive(Clone, Debug, Error)]
pub enum Failure {
    /// The collector has been silent for too long. It is still tried: the producer can be used again once it is back.
    #[error(
        "the collector at {endpoint} has not answered for {seconds:.1} s{}; {unacknowledged} rows are not acknowledged, and sent as soon as it is back",
        because(reason)
    )]
    Gone {
        /// Where it should be.
        endpoint: String,
        /// For how long it was silent.
        seconds: f64,
        /// How many rows are not acknowledged.
        unacknowledged: u64,
        /// What is known of the reason.
        reason: Option<String>,
    },
    /// The collector is there, and has taken nothing for too long.
    #[error(
        "the collector at {endpoint} has taken no rows for {seconds:.1} s{}",
        because(reason)
    )]
    Blocked {
        /// Where it is.
        endpoint: String,
        /// For how long.
        seconds: f64,
        /// Why, for programs.
        code: Code,
        /// What it says.
        reason: Option<String>,
    },
    /// The handshake ended in a no. It is still tried: the producer goes on when the collector lets it in.
    #[error(
        "the collector at {endpoint} {why}; {unacknowledged} rows are not acknowledged, and sent as soon as it lets this producer in"
    )]
    Denied {
        /// Where it is.
        endpoint: String,
        /// Why.
        why: Denial,
        /// How many rows are not acknowledged.
        unacknowledged: u64,
    },
    /// A later run has taken over the name.
    #[error(
        "another producer with the name {name:?} has taken over at {endpoint}; here {unacknowledged} rows are not acknowledged, and never will be: {text}"
    )]
    Fenced {
        /// At which collector.
        endpoint: String,
        /// The name of both.
        name: String,
        /// How many rows are not acknowledged.
        unacknowledged: u64,
        /// What the collector said.
        text: String,
    },
    /// The collector does not take these rows, now or later.
    #[error(
        "the collector at {endpoint} refused: {text}; {unacknowledged} rows are not acknowledged"
    )]
    Refused {
        /// Where it is.
        endpoint: String,
        /// Why, for programs.
        code: Code,
        /// Why, for people.
        text: String,
        /// How many rows are not acknowledged.
        unacknowledged: u64,
    },
    /// Rows will never get there, or are there no more. Told once: the others go on.
    #[error("{text}")]
    Setback {
        /// Why, for programs.
        code: Code,
        /// Which rows and why, for people.
        text: String,
    },
    /// The row itself.
    #[error("{0}")]
    Row(#[from] BatchError),
    /// The spool.
    #[error("the spool failed: {0}")]
    Spool(String),
    /// The spool's disk has been full for too long. The producer goes on when there is room.
    #[error(
        "there has been no room in the spool for {seconds:.1} s ({reason}); {rows} rows wait in memory, and go on as soon as there is"
    )]
    SpoolFull {
        /// For how long.
        seconds: f64,
        /// What the system says, and where.
        reason: String,
        /// How many rows are not in the spool.
        rows: u64,
    },
    /// The producer was made with something that does not go.
    #[error("{0}")]
    Invalid(String),
    /// A socket could not be made, or not attached to an endpoint.
    #[error(transparent)]
    Socket(#[from] zeroxide::Error),
    /// The system has no more threads or descriptors.
    #[error("{0}")]
    System(String),
    /// It was closed.
    #[error("the producer is closed")]
    Closed,
}

impl Failure {
    pub(super) fn spool(error: LogError) -> Failure {
        Failure::Spool(error.to_string())
    }

    /// A conversation that is over.
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

    /// The same, with the number of rows that it leaves unacknowledged.
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

fn because(reason: &Option<String>) -> String {
    reason
        .as_ref()
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default()
}
