//! Converts messages to values and back. Every field is checked, and nothing is allocated ahead of received bytes.

use bytes::Bytes;
use zeroxide::{Frame, Message};
use zeroxide_log::{Generation, Generations};

use super::kinds::{reply, request};
use super::{
    ATTEMPTS_MAX, Attempt, Code, Credit, FRAMES_MAX, LogId, NAME_MAX, Reply, Request, TEXT_MAX,
    TOPICS_MAX, VERSION, What, WireError, Won,
};

const MAGIC: &[u8] = b"ZX";

impl Request {
    /// Encodes the request under the number `id`.
    pub fn encode(self, id: u64) -> Message {
        match self {
            Request::Hello {
                producer,
                epoch,
                next_seq,
            } => Header::new(request::HELLO, id)
                .name(&producer)
                .u64(epoch)
                .u64(next_seq)
                .alone(),
            Request::Append {
                producer,
                epoch,
                first_seq,
                batch,
            } => Header::new(request::APPEND, id)
                .name(&producer)
                .u64(epoch)
                .u64(first_seq)
                .with([batch]),
            Request::Info => Header::new(request::INFO, id).alone(),
            Request::OffsetAt { timestamp } => {
                Header::new(request::OFFSET_AT, id).i64(timestamp).alone()
            }
            Request::Weigh { start, bytes } => Header::new(request::WEIGH, id)
                .u64(start)
                .u64(bytes)
                .alone(),
            Request::Fetch {
                start,
                end,
                max_bytes,
                topics,
                generation,
            } => {
                let mut header = Header::new(request::FETCH, id)
                    .u64(start)
                    .u64(end)
                    .u64(max_bytes)
                    .u64(generation)
                    .u32(topics.len() as u32);
                for topic in &topics {
                    header = header.text(topic, usize::from(u16::MAX));
                }
                header.alone()
            }
            Request::Follow {
                start,
                max_bytes,
                topics,
                generation,
                wait,
            } => {
                let mut header = Header::new(request::FOLLOW, id)
                    .u64(start)
                    .u64(max_bytes)
                    .u64(generation)
                    .u32(wait)
                    .u32(topics.len() as u32);
                for topic in &topics {
                    header = header.text(topic, usize::from(u16::MAX));
                }
                header.alone()
            }
            Request::Position { group } => Header::new(request::POSITION, id).name(&group).alone(),
            Request::Commit {
                group,
                offset,
                generation,
            } => Header::new(request::COMMIT, id)
                .name(&group)
                .u64(offset)
                .u64(generation)
                .alone(),
            Request::DropGroup { group } => {
                Header::new(request::DROP_GROUP, id).name(&group).alone()
            }
            Request::Stage {
                query,
                batch,
                attempt,
                part,
                rows,
            } => Header::new(request::STAGE, id)
                .name(&query)
                .u64(batch)
                .attempt(attempt)
                .u32(part)
                .with([rows]),
            Request::Publish { query, batch, won } => {
                let mut header = Header::new(request::PUBLISH, id)
                    .name(&query)
                    .u64(batch)
                    .u32(won.len() as u32);
                for one in &won {
                    header = header.attempt(one.attempt).u32(one.parts);
                }
                header.alone()
            }
            Request::Abort {
                query,
                batch,
                attempts,
            } => {
                let mut header = Header::new(request::ABORT, id)
                    .name(&query)
                    .u64(batch)
                    .u32(attempts.len() as u32);
                for attempt in &attempts {
                    header = header.attempt(*attempt);
                }
                header.alone()
            }
            Request::Stats => Header::new(request::STATS, id).alone(),
            Request::Limits => Header::new(request::LIMITS, id).alone(),
        }
    }

    /// Decodes a request and its number from a message, without the name that a ROUTER adds in front.
    ///
    /// # Errors
    /// If it is not exactly what [`encode`](Self::encode) produces.
    pub fn decode(message: Message) -> Result<(u64, Request), WireError> {
        decode(message, |kind, fields, payload| {
            let request = match kind {
                request::HELLO => Request::Hello {
                    producer: fields.name()?,
                    epoch: fields.u64()?,
                    next_seq: fields.u64()?,
                },
                request::APPEND => Request::Append {
                    producer: fields.name()?,
                    epoch: fields.u64()?,
                    first_seq: fields.u64()?,
                    batch: payload.one()?,
                },
                request::INFO => Request::Info,
                request::OFFSET_AT => Request::OffsetAt {
                    timestamp: fields.i64()?,
                },
                request::WEIGH => Request::Weigh {
                    start: fields.u64()?,
                    bytes: fields.u64()?,
                },
                request::FETCH => Request::Fetch {
                    start: fields.u64()?,
                    end: fields.u64()?,
                    max_bytes: fields.u64()?,
                    generation: fields.u64()?,
                    topics: fields.topics()?,
                },
                request::FOLLOW => Request::Follow {
                    start: fields.u64()?,
                    max_bytes: fields.u64()?,
                    generation: fields.u64()?,
                    wait: fields.u32()?,
                    topics: fields.topics()?,
                },
                request::POSITION => Request::Position {
                    group: fields.name()?,
                },
                request::COMMIT => Request::Commit {
                    group: fields.name()?,
                    offset: fields.u64()?,
                    generation: fields.u64()?,
                },
                request::DROP_GROUP => Request::DropGroup {
                    group: fields.name()?,
                },
                request::STAGE => Request::Stage {
                    query: fields.name()?,
                    batch: fields.u64()?,
                    attempt: fields.attempt()?,
                    part: fields.u32()?,
                    rows: payload.one()?,
                },
                request::PUBLISH => Request::Publish {
                    query: fields.name()?,
                    batch: fields.u64()?,
                    won: fields.list(16, ATTEMPTS_MAX, What::Attempts, |fields| {
                        Ok(Won {
                            attempt: fields.attempt()?,
                            parts: fields.u32()?,
                        })
                    })?,
                },
                request::ABORT => Request::Abort {
                    query: fields.name()?,
                    batch: fields.u64()?,
                    attempts: fields.list(12, ATTEMPTS_MAX, What::Attempts, Fields::attempt)?,
                },
                request::STATS => Request::Stats,
                request::LIMITS => Request::Limits,
                other => return Err(What::Kind(other)),
            };
            Ok(request)
        })
    }
}

impl Reply {
    /// Encodes the reply to the request with the number `id`.
    pub fn encode(self, id: u64) -> Message {
        match self {
            Reply::Welcome {
                log_id,
                writers,
                is_whole,
                credit,
                max_batch_bytes,
                advertise,
            } => Header::new(reply::WELCOME, id)
                .log_id(&log_id)
                .pairs(writers)
                .flag(is_whole)
                .credit(credit)
                .u64(max_batch_bytes)
                .text(&advertise, TEXT_MAX)
                .alone(),
            Reply::Ack {
                seq,
                offset,
                credit,
            } => Header::new(reply::ACK, id)
                .u64(seq)
                .optional(offset)
                .credit(credit)
                .alone(),
            Reply::Refused { code, detail, text } => Header::new(reply::REFUSED, id)
                .u8(code as u8)
                .u64(detail)
                .text(&text, TEXT_MAX)
                .alone(),
            Reply::Status {
                producer,
                epoch,
                code,
                last_seq,
                credit,
                text,
            } => Header::new(reply::STATUS, id)
                .name(&producer)
                .u64(epoch)
                .u8(code as u8)
                .optional(last_seq)
                .credit(credit)
                .text(&text, TEXT_MAX)
                .alone(),
            Reply::Info {
                log_id,
                earliest,
                durable,
                times,
                bytes,
                advertise,
                generations,
            } => {
                let (first, last) = times.unwrap_or_default();
                Header::new(reply::INFO, id)
                    .log_id(&log_id)
                    .u64(earliest)
                    .u64(durable)
                    .flag(times.is_some())
                    .i64(first)
                    .i64(last)
                    .u64(bytes)
                    .text(&advertise, TEXT_MAX)
                    .pairs(generations.iter().map(|one| (one.first, one.id)))
                    .alone()
            }
            Reply::Offset { offset } => Header::new(reply::OFFSET, id).u64(offset).alone(),
            Reply::Fetched {
                log_id,
                earliest,
                durable,
                next,
                generation,
                frames,
            } => Header::new(reply::FETCHED, id)
                .log_id(&log_id)
                .u64(earliest)
                .u64(durable)
                .u64(next)
                .u64(generation)
                .with(frames),
            Reply::OutOfRange {
                log_id,
                asked,
                earliest,
                durable,
                others,
            } => Header::new(reply::OUT_OF_RANGE, id)
                .log_id(&log_id)
                .u64(asked)
                .u64(earliest)
                .u64(durable)
                .optional(others)
                .alone(),
            Reply::Committed => Header::new(reply::COMMITTED, id).alone(),
            Reply::Position { offset } => Header::new(reply::POSITION, id).optional(offset).alone(),
            Reply::Dropped { existed } => Header::new(reply::DROPPED, id).flag(existed).alone(),
            Reply::Staged => Header::new(reply::STAGED, id).alone(),
            Reply::Published {
                first,
                end,
                already,
            } => Header::new(reply::PUBLISHED, id)
                .u64(first)
                .u64(end)
                .flag(already)
                .alone(),
            Reply::Publishing => Header::new(reply::PUBLISHING, id).alone(),
            Reply::Aborted => Header::new(reply::ABORTED, id).alone(),
            Reply::Stats { json } => Header::new(reply::STATS, id).with([json]),
            Reply::Limits { max_batch_bytes } => {
                Header::new(reply::LIMITS, id).u64(max_batch_bytes).alone()
            }
        }
    }

    /// Decodes a reply and the number of its request.
    ///
    /// # Errors
    /// If it is not exactly what [`encode`](Self::encode) produces.
    pub fn decode(message: Message) -> Result<(u64, Reply), WireError> {
        decode(message, |kind, fields, payload| {
            let reply = match kind {
                reply::WELCOME => Reply::Welcome {
                    log_id: fields.log_id()?,
                    writers: fields.pairs()?,
                    is_whole: fields.flag()?,
                    credit: fields.credit()?,
                    max_batch_bytes: fields.u64()?,
                    advertise: fields.text(TEXT_MAX)?,
                },
                reply::ACK => Reply::Ack {
                    seq: fields.u64()?,
                    offset: fields.optional()?,
                    credit: fields.credit()?,
                },
                reply::REFUSED => Reply::Refused {
                    code: fields.code()?,
                    detail: fields.u64()?,
                    text: fields.text(TEXT_MAX)?,
                },
                reply::STATUS => Reply::Status {
                    producer: fields.name()?,
                    epoch: fields.u64()?,
                    code: fields.code()?,
                    last_seq: fields.optional()?,
                    credit: fields.credit()?,
                    text: fields.text(TEXT_MAX)?,
                },
                reply::INFO => Reply::Info {
                    log_id: fields.log_id()?,
                    earliest: fields.u64()?,
                    durable: fields.u64()?,
                    times: {
                        let there = fields.flag()?;
                        let times = (fields.i64()?, fields.i64()?);
                        there.then_some(times)
                    },
                    bytes: fields.u64()?,
                    advertise: fields.text(TEXT_MAX)?,
                    generations: {
                        let all = fields.pairs()?.into_iter();
                        Generations::new(all.map(|(first, id)| Generation { first, id }))
                    },
                },
                reply::OFFSET => Reply::Offset {
                    offset: fields.u64()?,
                },
                reply::FETCHED => Reply::Fetched {
                    log_id: fields.log_id()?,
                    earliest: fields.u64()?,
                    durable: fields.u64()?,
                    next: fields.u64()?,
                    generation: fields.u64()?,
                    frames: payload.up_to(FRAMES_MAX)?,
                },
                reply::OUT_OF_RANGE => Reply::OutOfRange {
                    log_id: fields.log_id()?,
                    asked: fields.u64()?,
                    earliest: fields.u64()?,
                    durable: fields.u64()?,
                    others: fields.optional()?,
                },
                reply::COMMITTED => Reply::Committed,
                reply::POSITION => Reply::Position {
                    offset: fields.optional()?,
                },
                reply::DROPPED => Reply::Dropped {
                    existed: fields.flag()?,
                },
                reply::STAGED => Reply::Staged,
                reply::PUBLISHED => Reply::Published {
                    first: fields.u64()?,
                    end: fields.u64()?,
                    already: fields.flag()?,
                },
                reply::PUBLISHING => Reply::Publishing,
                reply::ABORTED => Reply::Aborted,
                reply::STATS => Reply::Stats {
                    json: payload.one()?,
                },
                reply::LIMITS => Reply::Limits {
                    max_batch_bytes: fields.u64()?,
                },
                other => return Err(What::Kind(other)),
            };
            Ok(reply)
        })
    }
}

/// Decodes the header of a message, which must have no further bytes.
fn decode<T>(
    message: Message,
    read: impl FnOnce(u8, &mut Fields<'_>, &mut Payload) -> Result<T, What>,
) -> Result<(u64, T), WireError> {
    let frames = message.len() - 1;
    let mut payload = Payload {
        frames: message.into_iter(),
        left: frames,
    };
    let header = payload.frames.next().unwrap_or_default();
    let mut fields = Fields {
        left: header.as_slice(),
    };
    let wrong = |id, what| WireError { id, what };
    let kind = fields.start().map_err(|what| wrong(None, what))?;
    let id = fields.u64().map_err(|what| wrong(None, what))?;
    let value = read(kind, &mut fields, &mut payload).map_err(|what| wrong(Some(id), what))?;
    if !fields.left.is_empty() {
        return Err(wrong(Some(id), What::Length));
    }
    if payload.left > 0 {
        return Err(wrong(Some(id), What::Frames));
    }
    Ok((id, value))
}

/// The frames after the header.
struct Payload {
    frames: <Message as IntoIterator>::IntoIter,
    left: usize,
}

impl Payload {
    fn one(&mut self) -> Result<Bytes, What> {
        self.left = self.left.checked_sub(1).ok_or(What::Frames)?;
        let frame = self.frames.next().ok_or(What::Frames)?;
        Ok(frame.into_bytes())
    }

    fn up_to(&mut self, most: usize) -> Result<Vec<Bytes>, What> {
        if self.left > most {
            return Err(What::Many);
        }
        self.left = 0;
        Ok(self.frames.by_ref().map(Frame::into_bytes).collect())
    }
}

/// Reads the fields of a header.
struct Fields<'a> {
    left: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Checks magic and version; returns the kind.
    fn start(&mut self) -> Result<u8, What> {
        if self.left.get(..2) != Some(MAGIC) {
            return Err(What::Magic);
        }
        self.take(2)?;
        match self.u8()? {
            VERSION => self.u8(),
            other => Err(What::Version(other)),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], What> {
        let (taken, left) = self.left.split_at_checked(count).ok_or(What::Length)?;
        self.left = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], What> {
        let (taken, left) = self.left.split_first_chunk().ok_or(What::Length)?;
        self.left = left;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, What> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, What> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, What> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, What> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Result<i64, What> {
        self.array().map(i64::from_le_bytes)
    }

    fn flag(&mut self) -> Result<bool, What> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(What::Value),
        }
    }

    fn optional(&mut self) -> Result<Option<u64>, What> {
        let there = self.flag()?;
        let value = self.u64()?;
        Ok(there.then_some(value))
    }

    fn code(&mut self) -> Result<Code, What> {
        Code::parse(self.u8()?).ok_or(What::Value)
    }

    fn log_id(&mut self) -> Result<LogId, What> {
        self.array()
    }

    fn credit(&mut self) -> Result<Credit, What> {
        Ok(Credit {
            rows: self.u64()?,
            bytes: self.u64()?,
        })
    }

    fn attempt(&mut self) -> Result<Attempt, What> {
        Ok(Attempt {
            partition: self.u32()?,
            attempt: self.u64()?,
        })
    }

    fn text(&mut self, most: usize) -> Result<String, What> {
        let length = usize::from(self.u16()?);
        let bytes = self.take(length)?;
        if length > most {
            return Err(What::Value);
        }
        let text = str::from_utf8(bytes).map_err(|_| What::Text)?;
        Ok(text.to_owned())
    }

    fn name(&mut self) -> Result<String, What> {
        let name = self.text(usize::from(u16::MAX))?;
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(What::Name);
        }
        Ok(name)
    }

    fn topics(&mut self) -> Result<Vec<String>, What> {
        self.list(2, TOPICS_MAX, What::Many, |fields| {
            fields.text(usize::from(u16::MAX))
        })
    }

    fn pairs(&mut self) -> Result<Vec<(u64, u64)>, What> {
        self.list(16, usize::MAX, What::Many, |fields| {
            Ok((fields.u64()?, fields.u64()?))
        })
    }

    /// Reads a list of at most `most` entries, which have at least `smallest` bytes each; a longer one is the fault
    /// `many`. Its length is checked before memory is allocated.
    fn list<T>(
        &mut self,
        smallest: usize,
        most: usize,
        many: What,
        mut read: impl FnMut(&mut Self) -> Result<T, What>,
    ) -> Result<Vec<T>, What> {
        let count = self.u32()? as usize;
        if count > self.left.len() / smallest {
            return Err(What::Length);
        }
        if count > most {
            return Err(many);
        }
        (0..count).map(|_| read(self)).collect()
    }
}

/// A header under construction.
struct Header {
    bytes: Vec<u8>,
}

impl Header {
    fn new(kind: u8, id: u64) -> Header {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[VERSION, kind]);
        Header { bytes }.u64(id)
    }

    fn put(mut self, bytes: &[u8]) -> Header {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn u8(self, value: u8) -> Header {
        self.put(&[value])
    }

    fn u32(self, value: u32) -> Header {
        self.put(&value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Header {
        self.put(&value.to_le_bytes())
    }

    fn i64(self, value: i64) -> Header {
        self.put(&value.to_le_bytes())
    }

    fn flag(self, value: bool) -> Header {
        self.u8(value.into())
    }

    fn optional(self, value: Option<u64>) -> Header {
        self.flag(value.is_some()).u64(value.unwrap_or_default())
    }

    fn log_id(self, id: &LogId) -> Header {
        self.put(id)
    }

    fn credit(self, credit: Credit) -> Header {
        self.u64(credit.rows).u64(credit.bytes)
    }

    fn attempt(self, attempt: Attempt) -> Header {
        self.u32(attempt.partition).u64(attempt.attempt)
    }

    fn pairs(
        self,
        pairs: impl IntoIterator<Item = (u64, u64), IntoIter: ExactSizeIterator>,
    ) -> Header {
        let pairs = pairs.into_iter();
        let header = self.u32(pairs.len() as u32);
        pairs.fold(header, |header, (first, second)| {
            header.u64(first).u64(second)
        })
    }

    /// Writes a text, cut after the last complete character within `most` bytes.
    fn text(self, text: &str, most: usize) -> Header {
        let text = &text[..text.floor_char_boundary(most)];
        self.put(&(text.len() as u16).to_le_bytes())
            .put(text.as_bytes())
    }

    /// Writes a name unchanged. If it is too long, the other side refuses it; a cut name would be another one.
    fn name(self, name: &str) -> Header {
        self.text(name, usize::from(u16::MAX))
    }

    fn alone(self) -> Message {
        Message::single(Frame::from_bytes(self.bytes.into()))
    }

    fn with(self, payload: impl IntoIterator<Item = Bytes>) -> Message {
        let mut message = self.alone();
        for frame in payload {
            message.push(Frame::from_bytes(frame));
        }
        message
    }
}
