//! The protocol between a collector and its clients: producers, readers, sinks.
//!
//! The collector has one ROUTER, and clients have DEALERs. A message is one header frame, followed by payload frames
//! for some kinds. The header consists of `ZX`, the version, the kind, the number that the client gave its request (0
//! for unsolicited messages), and the fields of the kind, little endian. Names and texts follow their length in two
//! bytes.
//!
//! | request | reply |
//! | --- | --- |
//! | [`Request::Hello`] | [`Reply::Welcome`] |
//! | [`Request::Append`], one payload frame | [`Reply::Ack`], once the rows are on disk |
//! | [`Request::Info`] | [`Reply::Info`] |
//! | [`Request::OffsetAt`], [`Request::Weigh`] | [`Reply::Offset`] |
//! | [`Request::Fetch`] | [`Reply::Fetched`] with stored frames as payload, [`Reply::OutOfRange`] |
//! | [`Request::Follow`] | the same, once there is a row or the time is up |
//! | [`Request::Commit`] | [`Reply::Committed`] |
//! | [`Request::Position`] | [`Reply::Position`] |
//! | [`Request::DropGroup`] | [`Reply::Dropped`] |
//! | [`Request::Stage`], one payload frame | [`Reply::Staged`], once the rows are on disk |
//! | [`Request::Publish`] | [`Reply::Published`], once the rows are on disk; before that [`Reply::Publishing`] at intervals |
//! | [`Request::Abort`] | [`Reply::Aborted`] |
//! | [`Request::Stats`] | [`Reply::Stats`] |
//! | [`Request::Limits`] | [`Reply::Limits`] |
//! | any | [`Reply::Refused`] |
//! | none | [`Reply::Status`], when what a producer may send changes |
//!
//! # The conversation of a producer
//!
//! It sends its name and an epoch, a number that grows each time the producer is started, and receives what the log has
//! of it. From then on, an older epoch of that name is [`Code::Fenced`]. So is one that is more than a day ahead of the
//! collector's clock, because it would exclude all later runs, unless it follows the last one closely (see
//! [`EPOCH_STEP`]). A run that was not welcomed yet takes an epoch after the one that the refusal names. The producer
//! appends batches of consecutive sequence numbers, with several in transit at once within its [`Credit`]: the rows and
//! bytes that may be unacknowledged. Unless the credit is nothing, one batch may always be in transit, however large it
//! is. Rows that the log already has are acknowledged and dropped. A batch that leaves a gap is refused with
//! [`Code::Gap`] and the expected number, and the producer continues from there. A collector that was restarted
//! requests another HELLO with [`Code::HelloFirst`].
//!
//! The welcome lists the epochs that have written rows of the name, each with its last sequence number. A producer that
//! finds a foreign epoch after its own last one knows that another producer has used its name, and gives new numbers to
//! the rows that never arrived. If its own epochs end below what was acknowledged, rows have been lost.
//!
//! # Positions
//!
//! An offset belongs to a log, and to a generation: the opening of the log that wrote the row before it. If a log has a
//! row of another generation there, an older copy of its folder has replaced it and grown since. A reader that has read
//! up to there has not read this log.
//!
//! When the disk is full, nothing is refused and nothing is acknowledged. A status gives the reason, with a credit of
//! nothing, and another one, with credit, reports that there is room again. Batches sent in between are dropped, and
//! must be sent again from the sequence number after the status' `last_seq`.

mod codec;
mod kinds;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use thiserror::Error;
use zeroxide_log::Generations;

pub use crate::wire::kinds::Code;
pub(crate) use crate::wire::kinds::too_big;

/// The version of this protocol.
pub const VERSION: u8 = 2;

/// The maximum number of bytes of a name of a producer, a group or a query.
pub const NAME_MAX: usize = 255;

/// The maximum number of bytes of a text for people; longer ones are cut.
pub const TEXT_MAX: usize = 4096;

/// The maximum number of attempts that one request publishes or aborts.
pub const ATTEMPTS_MAX: usize = 65_536;

/// The maximum number of topics in one fetch.
pub const TOPICS_MAX: usize = 1024;

/// The maximum time, in milliseconds, that a collector waits for a row before it answers a [`Request::Follow`].
pub const FOLLOW_MAX: u32 = 30_000;

/// The maximum by which the epoch of a run may exceed the one that it follows, whatever clocks say. A run that knows
/// that epoch chooses one within this distance, so that two runs do not choose the same.
pub const EPOCH_STEP: u64 = 1 << 20;

/// The maximum number of stored frames in one reply.
pub const FRAMES_MAX: usize = 4096;

/// The id of a log, which never changes.
pub type LogId = [u8; 16];

/// The rows and bytes that a producer may have unacknowledged. The producer keeps to it; the collector does not enforce it,
/// because its shares shrink when producers join. If both are 0, it must send nothing until a status says
/// otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit {
    /// Rows.
    pub rows: u64,
    /// Bytes of encoded batches.
    pub bytes: u64,
}

impl Credit {
    /// Whether nothing may be sent.
    pub fn is_nothing(self) -> bool {
        self.rows == 0 || self.bytes == 0
    }
}

/// One attempt of one task at one partition of a sink's batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Attempt {
    /// The partition of the batch.
    pub partition: u32,
    /// A number that distinguishes this attempt from others of this batch.
    pub attempt: u64,
}

/// An attempt to publish, and how many parts it staged: numbers 0 to `parts` - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Won {
    /// The attempt.
    pub attempt: Attempt,
    /// The number of its parts.
    pub parts: u32,
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A producer introduces itself.
    Hello {
        /// Its name, not empty.
        producer: String,
        /// The epoch of this run: greater than in any run before.
        epoch: u64,
        /// The sequence number of the first unacknowledged row. A collector that does not know this producer expects
        /// its rows from there on.
        next_seq: u64,
    },
    /// Rows of a producer.
    Append {
        /// Its name, not empty.
        producer: String,
        /// As in the HELLO.
        epoch: u64,
        /// The sequence number of the first row; the others follow.
        first_seq: u64,
        /// A batch in its wire form.
        batch: Bytes,
    },
    /// Requests the state of the log.
    Info,
    /// Requests the first offset whose rows were received at this time or later.
    OffsetAt {
        /// Microseconds since 1970, UTC.
        timestamp: i64,
    },
    /// Requests the end of a range of rows of a given size.
    Weigh {
        /// The first offset.
        start: u64,
        /// The size in bytes.
        bytes: u64,
    },
    /// Requests stored rows.
    Fetch {
        /// The first offset.
        start: u64,
        /// The offset after the last one.
        end: u64,
        /// The approximate number of bytes to send: at least one frame, and at most the collector's own limit.
        max_bytes: u64,
        /// Only rows whose topic begins with one of these; empty = all rows.
        topics: Vec<String>,
        /// The generation of the row before `start`, if that row was read; otherwise 0.
        generation: u64,
    },
    /// Requests stored rows from an offset on, and waits for the next row if there is none.
    Follow {
        /// The first offset.
        start: u64,
        /// The approximate number of bytes to send.
        max_bytes: u64,
        /// Only rows whose topic begins with one of these; empty = all rows.
        topics: Vec<String>,
        /// The generation of the row before `start`, if that row was read; otherwise 0.
        generation: u64,
        /// The time to wait before an empty reply, in milliseconds; at most [`FOLLOW_MAX`].
        wait: u32,
    },
    /// Requests the position of a group of consumers.
    Position {
        /// Its name, not empty.
        group: String,
    },
    /// Commits the position of a group of consumers, which needs no rows below it any more.
    Commit {
        /// Its name, not empty.
        group: String,
        /// The first offset that it still needs.
        offset: u64,
        /// The generation of the row before it; 0 if unknown.
        generation: u64,
    },
    /// Drops a group, which then holds nothing back.
    DropGroup {
        /// Its name, not empty.
        group: String,
    },
    /// Stages rows of a sink, which are not visible yet.
    Stage {
        /// The name of the query, not empty.
        query: String,
        /// The batch of that query.
        batch: u64,
        /// The attempt that writes them.
        attempt: Attempt,
        /// The number of this part within the attempt, from 0.
        part: u32,
        /// A batch in its wire form.
        rows: Bytes,
    },
    /// Publishes the rows of these attempts: all of them, or none if a part is missing. The other attempts at this
    /// batch are discarded.
    Publish {
        /// The name of the query, not empty.
        query: String,
        /// The batch of that query.
        batch: u64,
        /// The attempts, in the order of their rows in the log; at most [`ATTEMPTS_MAX`].
        won: Vec<Won>,
    },
    /// Discards staged rows.
    Abort {
        /// The name of the query, not empty.
        query: String,
        /// The batch of that query.
        batch: u64,
        /// The attempts, at most [`ATTEMPTS_MAX`]; empty = the whole batch.
        attempts: Vec<Attempt>,
    },
    /// Requests counters. If there are many requests, the answer may be an earlier one, which is about a second old at most.
    Stats,
    /// Requests the limits for batches.
    Limits,
}

/// A message of the collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The reply to a producer's HELLO.
    Welcome {
        /// The id of the log.
        log_id: LogId,
        /// The epochs of this producer that have rows in the log, in the order in which they wrote them, and the sequence
        /// number of the last row of each.
        writers: Vec<(u64, u64)>,
        /// Whether the list is complete; of many epochs, the earliest are forgotten.
        is_whole: bool,
        /// The rows and bytes that it may have unacknowledged.
        credit: Credit,
        /// The maximum number of bytes of a batch.
        max_batch_bytes: u64,
        /// The address under which other machines reach this collector; empty if not configured.
        advertise: String,
    },
    /// The rows of a batch, and all before them, are on disk.
    Ack {
        /// The sequence number of the last row of the batch.
        seq: u64,
        /// The offset of the first new row of the batch; None if the log already had all of them.
        offset: Option<u64>,
        /// The rows and bytes that the producer may have unacknowledged from now on.
        credit: Credit,
    },
    /// The request was refused.
    Refused {
        /// The reason, for programs.
        code: Code,
        /// With [`Code::Gap`], the expected sequence number. With [`Code::Fenced`], the epoch that has taken over or,
        /// if that is below the given one, the epoch that a new run should follow. With [`Code::TooBig`], the limit.
        /// With [`Code::OtherRows`], the first offset whose row differs. With [`Code::Invalid`], if the time of a row is
        /// too far ahead, the latest time that is accepted, in microseconds since 1970. Otherwise 0.
        detail: u64,
        /// The reason, for people.
        text: String,
    },
    /// The credit of a producer has changed.
    Status {
        /// The producer's name.
        producer: String,
        /// Its epoch.
        epoch: u64,
        /// The obstacle: [`Code::Full`], [`Code::ReadOnly`], [`Code::Failed`] or [`Code::Closing`]; [`Code::Fine`] if
        /// there is none any more.
        code: Code,
        /// The sequence number of its last row in the log. All later rows must be sent again.
        last_seq: Option<u64>,
        /// The rows and bytes that it may have unacknowledged from now on.
        credit: Credit,
        /// The reason, for people.
        text: String,
    },
    /// The state of the log.
    Info {
        /// The id of the log.
        log_id: LogId,
        /// The first offset that can be fetched.
        earliest: u64,
        /// The offset after the last one that can be fetched.
        durable: u64,
        /// The times at which the first and the last of these rows were received, in microseconds since 1970.
        times: Option<(i64, i64)>,
        /// The size of the log on disk.
        bytes: u64,
        /// The address under which other machines reach this collector; empty if not configured.
        advertise: String,
        /// The generations that wrote the rows, with their first offsets.
        generations: Generations,
    },
    /// The requested offset.
    Offset {
        /// If all rows were received earlier, the offset of the next row.
        offset: u64,
    },
    /// Stored rows.
    Fetched {
        /// The id of the log.
        log_id: LogId,
        /// The first offset that can be fetched.
        earliest: u64,
        /// The offset after the last one that can be fetched.
        durable: u64,
        /// The offset at which to continue; all rows before it were considered.
        next: u64,
        /// The generation of the row before `next`; 0 if unknown.
        generation: u64,
        /// Frames as stored. The first and the last may have rows outside the requested range.
        frames: Vec<Bytes>,
    },
    /// The start of a fetch is not in the log, or the row before it differs.
    OutOfRange {
        /// The id of the log.
        log_id: LogId,
        /// The requested offset.
        asked: u64,
        /// The first offset that can be fetched.
        earliest: u64,
        /// The offset after the last one that can be fetched.
        durable: u64,
        /// The first offset whose row differs from the one that was read, as far as it is known.
        others: Option<u64>,
    },
    /// The group's position was stored.
    Committed,
    /// The position of a group.
    Position {
        /// The first offset that it still needs; None if there is no such group.
        offset: Option<u64>,
    },
    /// The group was dropped.
    Dropped {
        /// Whether it existed.
        existed: bool,
    },
    /// The part is on disk.
    Staged,
    /// The batch is in the log.
    Published {
        /// The offset of its first row.
        first: u64,
        /// The offset after its last row.
        end: u64,
        /// Whether it had been published before, or was being published when this request came, perhaps with the rows of other
        /// attempts. The offsets are known for the query's last batch only; otherwise
        /// `first` and `end` are 0.
        already: bool,
    },
    /// The batch is being published; further messages follow.
    Publishing,
    /// The staged rows were discarded and will not be published. Refused if the batch is already published, which then
    /// remains.
    Aborted,
    /// Counters, as a JSON object.
    Stats {
        /// The JSON text.
        json: Bytes,
    },
    /// The limits for batches.
    Limits {
        /// The maximum number of bytes of a batch, or of a staged part.
        max_batch_bytes: u64,
    },
}

/// A message that does not follow this protocol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct WireError {
    /// The number of the request, if it could be read.
    pub id: Option<u64>,
    /// The fault.
    pub what: What,
}

/// The fault of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum What {
    /// It does not begin with `ZX`.
    #[error("a message that does not begin with ZX is not of the collector's protocol")]
    Magic,
    /// It has another version.
    #[error("version {0} of the protocol, while this side speaks version {VERSION}")]
    Version(u8),
    /// A kind that this side does not know.
    #[error("there is no message of kind {0} in this direction")]
    Kind(u8),
    /// The length of the header does not match its kind.
    #[error("the header of a message is too short or too long for its kind")]
    Length,
    /// A name or a text is not UTF-8.
    #[error("a name or text is not UTF-8")]
    Text,
    /// A name is empty, or too long.
    #[error("a name is empty or longer than {NAME_MAX} bytes")]
    Name,
    /// More topics or frames than allowed.
    #[error("more topics or frames than one message may have")]
    Many,
    /// More attempts than allowed.
    #[error(
        "a request to publish or abort a batch names more than {ATTEMPTS_MAX} attempts: write the batch with fewer tasks, \
         and abort it with several requests, or as a whole with one that names no attempt"
    )]
    Attempts,
    /// The number of frames does not match the kind.
    #[error("a message has more or fewer frames than its kind")]
    Frames,
    /// A field has an impossible value.
    #[error("a field has a value that it cannot have")]
    Value,
}
