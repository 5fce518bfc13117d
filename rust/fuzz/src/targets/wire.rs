//! The protocol between a collector and its clients, in both directions.

use bytes::Bytes;
use zeroxide::{Frame, Message};
use zeroxide_log::{Generation, Generations};
use zeroxide_pipeline::wire::{Attempt, Code, Credit, Reply, Request, Won};

use super::Parts;
use crate::{Target, guard};

pub(super) const TARGET: Target = Target {
    name: "wire",
    about: "requests and replies of the collector's protocol",
    run,
    seeds,
    words: &[b"ZX\x02", b"\0\0\0\0\0\0\0\0", b"\xff\xff", b"\x01\0\0\0"],
    longest: 20_000,
};

/// Frames after their lengths in two bytes.
fn message(mut parts: Parts<'_>) -> Message {
    let mut message: Option<Message> = None;
    while !parts.is_empty() {
        let length = parts.short();
        let frame = Frame::from_bytes(Bytes::copy_from_slice(parts.take(length)));
        match &mut message {
            None => message = Some(Message::single(frame)),
            Some(message) => message.push(frame),
        }
    }
    message.unwrap_or_default()
}

fn run(input: &[u8]) {
    let message = message(Parts(input));
    // The parts of a message take memory before it is decoded, which counts when it is received.
    let memory = message.size() + message.len() * size_of::<Frame>();
    let request = message.clone();
    if let Ok((id, request)) = guard::bounded(memory, || Request::decode(request)) {
        let again = Request::decode(request.clone().encode(id));
        assert_eq!(again, Ok((id, request.clone())));
        assert_eq!(request.encode(id), message);
    }
    let reply = message.clone();
    if let Ok((id, reply)) = guard::bounded(memory, || Reply::decode(reply)) {
        let again = Reply::decode(reply.clone().encode(id));
        assert_eq!(again, Ok((id, reply)));
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let attempt = Attempt {
        partition: 1,
        attempt: 2,
    };
    let credit = Credit {
        rows: 10,
        bytes: 1000,
    };
    let (producer, query) = ("p".to_owned(), "q".to_owned());
    let topics = || vec!["a".to_owned(), "bc".to_owned()];
    let requests = [
        Request::Hello {
            producer: producer.clone(),
            epoch: 1,
            next_seq: 2,
        },
        Request::Append {
            producer: producer.clone(),
            epoch: 1,
            first_seq: 2,
            batch: Bytes::from("rows"),
        },
        Request::Info,
        Request::OffsetAt { timestamp: -1 },
        Request::Weigh { start: 1, bytes: 2 },
        Request::Fetch {
            start: 0,
            end: 9,
            max_bytes: 100,
            topics: topics(),
            generation: 0,
        },
        Request::Follow {
            start: 0,
            max_bytes: 100,
            topics: topics(),
            generation: 0,
            wait: 10,
        },
        Request::Position {
            group: "g".to_owned(),
        },
        Request::Commit {
            group: "g".to_owned(),
            offset: 3,
            generation: 4,
        },
        Request::DropGroup {
            group: "g".to_owned(),
        },
        Request::Stage {
            query: query.clone(),
            batch: 1,
            attempt,
            part: 0,
            rows: Bytes::from("rows"),
        },
        Request::Publish {
            query: query.clone(),
            batch: 1,
            won: vec![Won { attempt, parts: 1 }],
        },
        Request::Abort {
            query,
            batch: 1,
            attempts: vec![attempt],
        },
        Request::Stats,
        Request::Limits,
    ];
    let (log_id, text) = ([7; 16], "a text".to_owned());
    let generations = Generations::new([
        Generation { first: 0, id: 1 },
        Generation { first: 5, id: 2 },
    ]);
    let replies = [
        Reply::Welcome {
            log_id,
            writers: vec![(1, 2)],
            is_whole: true,
            credit,
            max_batch_bytes: 1000,
            advertise: "tcp://h:1".to_owned(),
        },
        Reply::Ack {
            seq: 1,
            offset: Some(2),
            credit,
        },
        Reply::Refused {
            code: Code::Gap,
            detail: 1,
            text: text.clone(),
        },
        Reply::Status {
            producer,
            epoch: 1,
            code: Code::Full,
            last_seq: None,
            credit,
            text,
        },
        Reply::Info {
            log_id,
            earliest: 0,
            durable: 9,
            times: Some((1, 2)),
            bytes: 100,
            advertise: String::new(),
            generations,
        },
        Reply::Offset { offset: 1 },
        Reply::Fetched {
            log_id,
            earliest: 0,
            durable: 9,
            next: 5,
            generation: 1,
            frames: vec![Bytes::from("frame"); 2],
        },
        Reply::OutOfRange {
            log_id,
            asked: 1,
            earliest: 2,
            durable: 3,
            others: Some(4),
        },
        Reply::Committed,
        Reply::Position { offset: Some(1) },
        Reply::Dropped { existed: true },
        Reply::Staged,
        Reply::Published {
            first: 1,
            end: 2,
            already: false,
        },
        Reply::Publishing,
        Reply::Aborted,
        Reply::Stats {
            json: Bytes::from("{}"),
        },
        Reply::Limits { max_batch_bytes: 5 },
    ];
    let requests = requests.into_iter().map(|request| request.encode(3));
    let messages = requests.chain(replies.into_iter().map(|reply| reply.encode(3)));
    let split = |message: Message| {
        let frames = message.into_iter();
        frames
            .flat_map(|frame| [&(frame.len() as u16).to_le_bytes()[..], &frame].concat())
            .collect()
    };
    messages.map(split).collect()
}
