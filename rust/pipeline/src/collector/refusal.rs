//! Refusals of requests.

use zeroxide_log::LogError;

use crate::wire::{Code, too_big};

/// The text about a log that could not be opened again after a failure.
pub(super) const NOT_OPEN: &str = "the log is not open";

/// A refusal: a code for programs, its number, and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub code: Code,
    pub detail: u64,
    pub text: String,
}

impl Refusal {
    pub fn new(code: Code, detail: u64, text: impl Into<String>) -> Refusal {
        Refusal {
            code,
            detail,
            text: text.into(),
        }
    }

    pub fn not_open() -> Refusal {
        Refusal::new(Code::Failed, 0, NOT_OPEN)
    }

    /// `what` is what has `bytes` bytes: a batch, a part, a row.
    pub fn too_big(what: &str, bytes: usize, most: usize) -> Refusal {
        let most = most as u64;
        Refusal::new(Code::TooBig, most, too_big(what, bytes, most))
    }
}

/// The refusal that corresponds to an error of the log.
pub(super) fn refusal_of(error: &LogError) -> Refusal {
    let code = match error {
        LogError::Batch(_) => Code::Malformed,
        LogError::TooMany { .. } => Code::TooMany,
        LogError::Full { .. } => Code::Full,
        LogError::ReadOnly { .. } => Code::ReadOnly,
        _ => Code::Failed,
    };
    Refusal::new(code, 0, error.to_string())
}
