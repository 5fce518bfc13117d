//! The numbers of the protocol.

/// The text of [`Code::TooBig`]. `what` is what has `bytes` bytes: a batch, a part, a row.
pub(crate) fn too_big(what: &str, bytes: usize, most: u64) -> String {
    format!(
        "a {what} has {bytes} bytes, and {most} is the most that this collector takes (max_batch_bytes)"
    )
}

/// The reason for a refusal, or the obstacle for a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Code {
    /// There is no obstacle.
    Fine = 0,
    /// The message does not follow this protocol.
    Malformed = 1,
    /// The message has a version that the collector does not support.
    Version = 2,
    /// The collector does not know this producer, because it was restarted or has too many. Send HELLO.
    HelloFirst = 3,
    /// A newer run of this producer has taken over.
    Fenced = 4,
    /// Rows are missing between the last one and this batch.
    Gap = 5,
    /// The batch is larger than allowed.
    TooBig = 6,
    /// The disk is full.
    Full = 7,
    /// The folder cannot be written to.
    ReadOnly = 8,
    /// Writing, reading or syncing failed.
    Failed = 9,
    /// Stored data is damaged.
    Corrupt = 10,
    /// There are more producers, groups, queries or requests than the collector keeps.
    TooMany = 11,
    /// Parts to publish were never staged, or have expired.
    NotStaged = 12,
    /// The collector is closing.
    Closing = 13,
    /// The request follows this protocol, but is impossible.
    Invalid = 14,
    /// The client's key lacks the role or the name that the request requires.
    Denied = 15,
    /// The rows before the offset differ from those that were read, because an older copy of the log replaced it.
    OtherRows = 16,
}

impl Code {
    /// Every code.
    pub const ALL: [Code; 17] = [
        Code::Fine,
        Code::Malformed,
        Code::Version,
        Code::HelloFirst,
        Code::Fenced,
        Code::Gap,
        Code::TooBig,
        Code::Full,
        Code::ReadOnly,
        Code::Failed,
        Code::Corrupt,
        Code::TooMany,
        Code::NotStaged,
        Code::Closing,
        Code::Invalid,
        Code::Denied,
        Code::OtherRows,
    ];

    pub(super) fn parse(number: u8) -> Option<Code> {
        Code::ALL.get(usize::from(number)).copied()
    }

    /// Its name in counters and in errors.
    pub fn name(self) -> &'static str {
        match self {
            Code::Fine => "fine",
            Code::Malformed => "malformed",
            Code::Version => "version",
            Code::HelloFirst => "hello-first",
            Code::Fenced => "fenced",
            Code::Gap => "gap",
            Code::TooBig => "too-big",
            Code::Full => "full",
            Code::ReadOnly => "read-only",
            Code::Failed => "failed",
            Code::Corrupt => "corrupt",
            Code::TooMany => "too-many",
            Code::NotStaged => "not-staged",
            Code::Closing => "closing",
            Code::Invalid => "invalid",
            Code::Denied => "denied",
            Code::OtherRows => "other-rows",
        }
    }
}

/// Declares numbers as constants of their own module.
macro_rules! numbers {
    ($name:ident { $($kind:ident = $number:literal,)* }) => {
        pub(super) mod $name {
            $(pub const $kind: u8 = $number;)*
        }
    };
}

numbers!(request {
    HELLO = 1,
    APPEND = 2,
    INFO = 3,
    OFFSET_AT = 4,
    FETCH = 5,
    COMMIT = 6,
    STAGE = 7,
    PUBLISH = 8,
    ABORT = 9,
    STATS = 10,
    WEIGH = 11,
    DROP_GROUP = 12,
    LIMITS = 13,
    FOLLOW = 14,
    POSITION = 15,
});

// Kinds of replies have the highest bit set, so that they cannot be mistaken for requests.
numbers!(reply {
    WELCOME = 129,
    ACK = 130,
    INFO = 131,
    OFFSET = 132,
    FETCHED = 133,
    COMMITTED = 134,
    STAGED = 135,
    PUBLISHED = 136,
    ABORTED = 137,
    STATS = 138,
    OUT_OF_RANGE = 139,
    DROPPED = 140,
    LIMITS = 141,
    PUBLISHING = 142,
    POSITION = 143,
    REFUSED = 160,
    STATUS = 161,
});
