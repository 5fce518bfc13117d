//! Refusals of requests.

use zeroxide_log::LogError;

use crate::wire::Code;

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
