//! What is said between a collector and its clients: producers, readers, sinks.
//!
//! The collector has one ROUTER, clients have DEALERs. A message is one header frame and, for some kinds, payload
//! frames behind it. The header: `ZX`, the version, the kind, the number that the client gave its request (0 where
//! nobody asked), then the fields of the kind, little endian. Names and texts have their length in two bytes in front.
//!
//! | request | reply |
//! | --- | --- |
//! | [`Request::Hello`] | [`Reply::Welcome`] |
//! | [`Request::Append`], one payload frame | [`Reply::Ack`], once the rows are on disk |
//! | [`Request::Info`] | [`Reply::Info`] |
//! | [`Request::OffsetAt`], [`Request::Weigh`] | [`Reply::Offset`] |
//! | [`Request::Fetch`] | [`Reply::Fetched`] with stored frames as payload, [`Reply::OutOfRange`] |
//! | [`Request::Follow`] | the same, once there is a row or the time is over |
//! | [`Request::Commit`] | [`Reply::Committed`] |
//! | [`Request::Position`] | [`Reply::Position`] |
//! | [`Request::DropGroup`] | [`Reply::Dropped`] |
//! | [`Request::Stage`], one payload frame | [`Reply::Staged`], once the rows are on disk |
//! | [`Request::Publish`] | [`Reply::Published`], once the rows are on disk; before that [`Reply::Publishing`] now and then |
//! | [`Request::Abort`] | [`Reply::Aborted`] |
//! | [`Request::Stats`] | [`Reply::Stats`] |
//! | [`Request::Limits`] | [`Reply::Limits`] |
//! | any | [`Reply::Refused`] |
//! | nothing | [`Reply::Status`], when what a producer may send changes |
//!
//! # The conversation of a producer
//!
//! It names itself and an epoch, a number that grows each time the producer is started, and is told what the log has of
//! it. From then on an older epoch of that name is [`Code::Fenced`]. So is one that is more than a day ahead of the
//! collector's clock, unless it follows the last one closely (see [`EPOCH_STEP`]): it would shut out all later runs.
//! A run that was not welcome yet takes an epoch behind the one that the refusal names. It appends batches of consecutive sequence numbers,
//! several on their way at once within its [`Credit`]: rows and bytes that may be unacknowledged; one batch may be
//! on its way however large it is, unless the credit is nothing. What is there already is acknowledged and dropped,
//! what leaves a gap is refused with [`Code::Gap`] and the number that is expected: the producer goes on from there.
//! A collector that was restarted asks for another HELLO with [`Code::HelloFirst`].
//!
//! The welcome says which epochs have written the rows that the log has of the name, and up to which sequence number each.
//! A producer that finds none of its own behind its last one knows that another one has used its name: it gives the
//! rows that never got there new numbers. It has lost rows if its own end below what was acknowledged to it.
//!
//! # Positions
//!
//! An offset belongs to a log, and to a generation: the opening of the log that wrote the row before it. Where a log has a row
//! of another generation there, an older copy of its folder was put in its place and has grown since. Who has read up
//! to there has not read this log.
//!
//! When the disk is full nothing is refused and nothing acknowledged: a status says why, with a credit of nothing, and
//! another one, with credit, that there is room again. Batches sent in between are dropped, and to be sent again from
//! the sequence number behind the status' `last_seq`.

mod codec;
mod kinds;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use thiserror::Error;
use zeroxide_log::Generations;

pub use crate::wire::kinds::Code;

/// The version of all this.
pub const VERSION: u8 = 2;

/// The most bytes of a name: of a producer, a group, a query.
pub const NAME_MAX: usize = 255;

/// The most bytes of a text for people; longer ones are cut.
pub const TEXT_MAX: usize = 4096;

/// The most topics in one fetch.
pub const TOPICS_MAX: usize = 1024;

/// The most milliseconds that a collector waits for a row before it answers a [`Request::Follow`].
pub const FOLLOW_MAX: u32 = 30_000;

/// By how much the epoch of a run may exceed the one that it follows, whatever clocks say. A run that was told which one
/// that is goes ahead of it by something below this, so that two of them do not take the same.
pub const EPOCH_STEP: u64 = 1 << 20;

/// The most stored frames in one reply.
pub const FRAMES_MAX: usize = 4096;

/// Which log it is, for as long as it lives.
pub type LogId = [u8; 16];

/// What a producer may have unacknowledged. Nothing of both: send nothing until a status says so.
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
    /// Which attempt at it, unlike any other of this batch.
    pub attempt: u64,
}

/// An attempt that won, and how many parts it staged: numbers 0 to `parts` - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Won {
    /// The attempt.
    pub attempt: Attempt,
    /// How many parts it staged.
    pub parts: u32,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A producer introduces itself.
    Hello {
        /// Its name, not empty.
        producer: String,
        /// Which run of it this is: larger than in any run before.
        epoch: u64,
        /// The sequence number of the first row that nobody has acknowledged yet. A collector that has never heard of
        /// this producer expects its rows from there on.
        next_seq: u64,
    },
    /// Rows of a producer.
    Append {
        /// Its name, not empty.
        producer: String,
        /// As in its HELLO.
        epoch: u64,
        /// The sequence number of the first row; the others follow.
        first_seq: u64,
        /// A batch in its wire form.
        batch: Bytes,
    },
    /// What there is.
    Info,
    /// The first offset whose rows were received at this time or later.
    OffsetAt {
        /// Microseconds since 1970, UTC.
        timestamp: i64,
    },
    /// How far rows of so many bytes go.
    Weigh {
        /// The offset of the first of them.
        start: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// Stored rows.
    Fetch {
        /// The first offset.
        start: u64,
        /// The offset behind the last one.
        end: u64,
        /// About how much to send: at least one frame, as far as the collector's own limit goes.
        max_bytes: u64,
        /// Only rows whose topic begins with one of these; none = all rows.
        topics: Vec<String>,
        /// The generation of the row before `start`, for whoever has read it; else 0.
        generation: u64,
    },
    /// Stored rows from an offset on, waiting for the next row where there is none yet.
    Follow {
        /// The first offset.
        start: u64,
        /// About how much to send.
        max_bytes: u64,
        /// Only rows whose topic begins with one of these; none = all rows.
        topics: Vec<String>,
        /// The generation of the row before `start`, for whoever has read it; else 0.
        generation: u64,
        /// How many milliseconds to wait before the answer is that there is nothing; at most [`FOLLOW_MAX`].
        wait: u32,
    },
    /// How far a group of consumers has come.
    Position {
        /// Its name, not empty.
        group: String,
    },
    /// A group of consumers needs nothing below an offset any more.
    Commit {
        /// Its name, not empty.
        group: String,
        /// The first offset that it still needs.
        offset: u64,
        /// The generation of the row before that; 0 if it is not known.
        generation: u64,
    },
    /// There is no such group any more: it holds nothing back.
    DropGroup {
        /// Its name, not empty.
        group: String,
    },
    /// Rows of a sink that nobody may see yet.
    Stage {
        /// Whose they are, not empty.
        query: String,
        /// The batch of that query.
        batch: u64,
        /// Which task writes them.
        attempt: Attempt,
        /// The number of this part within the attempt, from 0.
        part: u32,
        /// A batch in its wire form.
        rows: Bytes,
    },
    /// Everybody may see the rows of these attempts now: all of them, or none if one is missing. The other attempts
    /// at this batch are forgotten.
    Publish {
        /// Whose they are, not empty.
        query: String,
        /// The batch of that query.
        batch: u64,
        /// The attempts, in the order in which their rows shall appear.
        won: Vec<Won>,
    },
    /// Forget staged rows.
    Abort {
        /// Whose they are, not empty.
        query: String,
        /// The batch of that query.
        batch: u64,
        /// Which attempts; none = all of the batch.
        attempts: Vec<Attempt>,
    },
    /// Counters.
    Stats,
    /// How large a batch may be.
    Limits,
}

/// What the collector says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To a producer's HELLO.
    Welcome {
        /// Which log this is.
        log_id: LogId,
        /// The epochs of this producer that have rows in the log, in the order in which they wrote them, and the sequence
        /// number of the last row of each.
        writers: Vec<(u64, u64)>,
        /// Whether that is all of them: the earliest of many are forgotten.
        is_whole: bool,
        /// What it may have unacknowledged.
        credit: Credit,
        /// The most bytes of a batch.
        max_batch_bytes: u64,
        /// The address at which others reach this collector; empty if it was not told.
        advertise: String,
    },
    /// The rows of a batch are on disk, and all before them.
    Ack {
        /// The sequence number of the last row of the batch.
        seq: u64,
        /// The offset of the first row of the batch that was new; none when all were there already.
        offset: Option<u64>,
        /// What the producer may have unacknowledged from now on.
        credit: Credit,
    },
    /// No.
    Refused {
        /// Why, for programs.
        code: Code,
        /// With [`Code::Gap`] the sequence number that is expected, with [`Code::Fenced`] the epoch that has taken over,
        /// or, if that is below the one that was given, the one that a new run should follow; with [`Code::TooBig`]
        /// the limit, with [`Code::OtherRows`] the offset from which on; else 0.
        detail: u64,
        /// Why, for people.
        text: String,
    },
    /// What a producer may send has changed, for this reason.
    Status {
        /// Which producer.
        producer: String,
        /// Its epoch.
        epoch: u64,
        /// What stands in the way: [`Code::Full`], [`Code::ReadOnly`], [`Code::Failed`], [`Code::Closing`];
        /// [`Code::Fine`] when nothing does any more.
        code: Code,
        /// The sequence number of its last row that is in the log: everything behind it is to be sent again.
        last_seq: Option<u64>,
        /// What it may have unacknowledged from now on.
        credit: Credit,
        /// The reason, for people.
        text: String,
    },
    /// What there is.
    Info {
        /// Which log this is.
        log_id: LogId,
        /// The first offset that can be fetched.
        earliest: u64,
        /// The offset behind the last one that can be fetched.
        durable: u64,
        /// When the first and the last of these rows were received, in microseconds since 1970.
        times: Option<(i64, i64)>,
        /// The size of the log on disk.
        bytes: u64,
        /// The address at which others reach this collector; empty if it was not told.
        advertise: String,
        /// Which generation wrote the rows from which offset on.
        generations: Generations,
    },
    /// The offset that was asked for.
    Offset {
        /// It is that of the next row to come when all rows were received earlier.
        offset: u64,
    },
    /// Stored rows.
    Fetched {
        /// Which log this is.
        log_id: LogId,
        /// The first offset that can be fetched.
        earliest: u64,
        /// The offset behind the last one that can be fetched.
        durable: u64,
        /// Where to go on: everything from the start that was asked for up to here was looked at.
        next: u64,
        /// The generation of the row before `next`; 0 if it is not known.
        generation: u64,
        /// Frames as they are stored; the first and the last may hold rows outside of what was asked for.
        frames: Vec<Bytes>,
    },
    /// The start of a fetch is not, or no more, in the log, or the row before it is another one there.
    OutOfRange {
        /// Which log this is.
        log_id: LogId,
        /// The offset that was asked for.
        asked: u64,
        /// The first offset that can be fetched.
        earliest: u64,
        /// The offset behind the last one that can be fetched.
        durable: u64,
        /// From which offset on rows are others than those that were read, as far as that is known.
        others: Option<u64>,
    },
    /// The group's offset is kept.
    Committed,
    /// How far a group has come.
    Position {
        /// The first offset that it still needs; none if there is no such group.
        offset: Option<u64>,
    },
    /// The group is gone.
    Dropped {
        /// There was one.
        existed: bool,
    },
    /// The part is on disk.
    Staged,
    /// The batch is in the log.
    Published {
        /// The offset of its first row.
        first: u64,
        /// The offset behind its last row.
        end: u64,
        /// It was there before; where is known of the query's last batch only, otherwise `first` and `end` are 0.
        already: bool,
    },
    /// The batch is on its way into the log: there is more to come.
    Publishing,
    /// What was staged is forgotten, and nothing of it is published. Refused once the batch is: then it stays.
    Aborted,
    /// Counters, as a JSON object.
    Stats {
        /// The JSON text.
        json: Bytes,
    },
    /// How large something may be.
    Limits {
        /// The most bytes of a batch, or of a part that is staged.
        max_batch_bytes: u64,
    },
}

/// A message that is not of this protocol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct WireError {
    /// The number of the request, if that much could be read.
    pub id: Option<u64>,
    /// What is wrong with it.
    pub what: What,
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum What {
    /// It does not begin with `ZX`.
    #[error("a message that does not begin with ZX is not of the collector's protocol")]
    Magic,
    /// Another version.
    #[error("version {0} of the protocol, while this side speaks version {VERSION}")]
    Version(u8),
    /// A kind that this side does not know.
    #[error("there is no message of kind {0} in this direction")]
    Kind(u8),
    /// The header ends too early, or too late.
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
    /// More or fewer frames than the kind has.
    #[error("a message has more or fewer frames than its kind")]
    Frames,
    /// A field with a value it cannot have.
    #[error("a field has a value that it cannot have")]
    Value,
}
