//! Encoded messages are decoded unchanged, and all others are refused without a panic.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use zeroxide::{Frame, Message};
use zeroxide_log::Generation;

use super::*;

fn name() -> impl Strategy<Value = String> {
    "[a-zü/]{1,20}"
}

fn text() -> impl Strategy<Value = String> {
    "[a-zä€ ]{0,40}"
}

fn payload() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

fn attempt() -> impl Strategy<Value = Attempt> {
    any::<(u32, u64)>().prop_map(|(partition, attempt)| Attempt { partition, attempt })
}

fn credit() -> impl Strategy<Value = Credit> {
    any::<(u64, u64)>().prop_map(|(rows, bytes)| Credit { rows, bytes })
}

fn code() -> impl Strategy<Value = Code> {
    proptest::sample::select(&Code::ALL[..])
}

fn request() -> impl Strategy<Value = Request> {
    let hello = (name(), any::<u64>(), any::<u64>());
    let append = (name(), any::<u64>(), any::<u64>(), payload());
    let fetch = (any::<(u64, u64, u64, u64)>(), vec(text(), 0..5));
    let follow = (any::<(u64, u64, u64, u32)>(), vec(text(), 0..5));
    let stage = (name(), any::<u64>(), attempt(), any::<u32>(), payload());
    let won = (attempt(), any::<u32>()).prop_map(|(attempt, parts)| Won { attempt, parts });
    prop_oneof![
        hello.prop_map(|(producer, epoch, next_seq)| Request::Hello {
            producer,
            epoch,
            next_seq
        }),
        append.prop_map(|(producer, epoch, first_seq, batch)| Request::Append {
            producer,
            epoch,
            first_seq,
            batch
        }),
        Just(Request::Info),
        any::<i64>().prop_map(|timestamp| Request::OffsetAt { timestamp }),
        (any::<u64>(), any::<u64>()).prop_map(|(start, bytes)| Request::Weigh { start, bytes }),
        fetch.prop_map(
            |((start, end, max_bytes, generation), topics)| Request::Fetch {
                start,
                end,
                max_bytes,
                topics,
                generation,
            }
        ),
        (name(), any::<(u64, u64)>()).prop_map(|(group, (offset, generation))| Request::Commit {
            group,
            offset,
            generation,
        }),
        follow.prop_map(
            |((start, max_bytes, generation, wait), topics)| Request::Follow {
                start,
                max_bytes,
                topics,
                generation,
                wait,
            }
        ),
        name().prop_map(|group| Request::Position { group }),
        name().prop_map(|group| Request::DropGroup { group }),
        stage.prop_map(|(query, batch, attempt, part, rows)| Request::Stage {
            query,
            batch,
            attempt,
            part,
            rows
        }),
        (name(), any::<u64>(), vec(won, 0..5)).prop_map(|(query, batch, won)| Request::Publish {
            query,
            batch,
            won
        }),
        (name(), any::<u64>(), vec(attempt(), 0..5)).prop_map(|(query, batch, attempts)| {
            Request::Abort {
                query,
                batch,
                attempts,
            }
        }),
        Just(Request::Stats),
        Just(Request::Limits),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let welcome = (
        any::<(LogId, bool, u64)>(),
        vec(any::<(u64, u64)>(), 0..5),
        credit(),
        text(),
    );
    let status = (
        name(),
        any::<u64>(),
        code(),
        option::of(any::<u64>()),
        credit(),
        text(),
    );
    let info = (
        any::<(LogId, u64, u64, Option<(i64, i64)>, u64)>(),
        text(),
        vec(any::<(u64, u64)>(), 0..5),
    );
    let fetched = (any::<(LogId, u64, u64, u64, u64)>(), vec(payload(), 0..5));
    prop_oneof![
        welcome.prop_map(
            |((log_id, is_whole, max_batch_bytes), writers, credit, advertise)| {
                Reply::Welcome {
                    log_id,
                    writers,
                    is_whole,
                    credit,
                    max_batch_bytes,
                    advertise,
                }
            }
        ),
        (any::<u64>(), option::of(any::<u64>()), credit()).prop_map(|(seq, offset, credit)| {
            Reply::Ack {
                seq,
                offset,
                credit,
            }
        }),
        (code(), any::<u64>(), text()).prop_map(|(code, detail, text)| Reply::Refused {
            code,
            detail,
            text
        }),
        status.prop_map(|(producer, epoch, code, last_seq, credit, text)| {
            Reply::Status {
                producer,
                epoch,
                code,
                last_seq,
                credit,
                text,
            }
        }),
        info.prop_map(
            |((log_id, earliest, durable, times, bytes), advertise, all)| {
                Reply::Info {
                    log_id,
                    earliest,
                    durable,
                    times,
                    bytes,
                    advertise,
                    generations: Generations::new(
                        all.into_iter().map(|(first, id)| Generation { first, id }),
                    ),
                }
            }
        ),
        any::<u64>().prop_map(|offset| Reply::Offset { offset }),
        fetched.prop_map(|((log_id, earliest, durable, next, generation), frames)| {
            Reply::Fetched {
                log_id,
                earliest,
                durable,
                next,
                generation,
                frames,
            }
        }),
        any::<(LogId, u64, u64, u64, Option<u64>)>().prop_map(
            |(log_id, asked, earliest, durable, others)| Reply::OutOfRange {
                log_id,
                asked,
                earliest,
                durable,
                others,
            }
        ),
        Just(Reply::Committed),
        any::<Option<u64>>().prop_map(|offset| Reply::Position { offset }),
        any::<bool>().prop_map(|existed| Reply::Dropped { existed }),
        Just(Reply::Staged),
        any::<(u64, u64, bool)>().prop_map(|(first, end, already)| Reply::Published {
            first,
            end,
            already
        }),
        Just(Reply::Aborted),
        Just(Reply::Publishing),
        payload().prop_map(|json| Reply::Stats { json }),
        any::<u64>().prop_map(|max_batch_bytes| Reply::Limits { max_batch_bytes }),
    ]
}

/// The message with another header.
fn with_header(message: &Message, header: &[u8]) -> Message {
    let payload = message.iter().skip(1).cloned();
    Message::from_frames(std::iter::once(Frame::copy_from(header)).chain(payload))
}

proptest! {
    #[test]
    fn a_request_comes_through(id: u64, request in request()) {
        let message = request.clone().encode(id);
        prop_assert_eq!(Request::decode(message), Ok((id, request)));
    }

    #[test]
    fn a_reply_comes_through(id: u64, reply in reply()) {
        let message = reply.clone().encode(id);
        prop_assert_eq!(Reply::decode(message), Ok((id, reply)));
    }

    #[test]
    fn a_header_that_is_cut_or_too_long_is_refused(request in request(), reply in reply(), cut: prop::sample::Index) {
        let message = request.encode(7);
        let header = message.head().as_slice();
        prop_assert!(Request::decode(with_header(&message, &header[..cut.index(header.len())])).is_err());
        let longer = [header, b"!"].concat();
        prop_assert!(Request::decode(with_header(&message, &longer)).is_err());

        let message = reply.encode(7);
        let header = message.head().as_slice();
        prop_assert!(Reply::decode(with_header(&message, &header[..cut.index(header.len())])).is_err());
    }

    #[test]
    fn other_numbers_of_frames_are_refused(request in request()) {
        let mut message = request.encode(7);
        if message.len() > 1 {
            let alone = with_header(&Message::new(), message.head());
            prop_assert_eq!(Request::decode(alone).map_err(|error| error.what), Err(What::Frames));
        }
        message.push(Frame::copy_from(b"more"));
        prop_assert!(Request::decode(message).is_err());
    }

    #[test]
    fn a_changed_byte_never_panics(request in request(), at: prop::sample::Index, byte: u8) {
        let message = request.encode(7);
        let mut header = message.head().to_vec();
        let at = at.index(header.len());
        header[at] = byte;
        let _ = Request::decode(with_header(&message, &header));
    }

    #[test]
    fn noise_never_panics(frames in vec(vec(any::<u8>(), 0..80), 0..4), prefixed: bool, kind: u8) {
        let mut frames: Vec<Vec<u8>> = frames;
        if let Some(first) = frames.first_mut().filter(|_| prefixed) {
            first.splice(0..0, [b'Z', b'X', VERSION, kind]);
        }
        let message = Message::from_frames(frames.iter().map(|frame| Frame::copy_from(frame)));
        let _ = Request::decode(message.clone());
        let _ = Reply::decode(message);
    }
}

#[test]
fn each_code_has_its_number_and_a_name_of_its_own() {
    for (number, code) in Code::ALL.into_iter().enumerate() {
        assert_eq!(code as usize, number);
        assert_eq!(Code::parse(number as u8), Some(code));
    }
    let mut names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Code::ALL.len());
    assert_eq!(Code::parse(Code::ALL.len() as u8), None);
}

#[test]
fn each_fault_has_a_name() {
    let what = |message| Request::decode(message).unwrap_err().what;
    assert_eq!(what(Message::new()), What::Magic);
    assert_eq!(what("ZX\x07\x03".into()), What::Version(7));
    let future = Request::decode("ZX\x07\x0312345678".into()).unwrap_err();
    assert_eq!(
        future.id, None,
        "another version may have the number elsewhere"
    );
    let reply = Reply::Committed.encode(3);
    assert_eq!(what(reply), What::Kind(134));
    let nameless = Request::Commit {
        group: String::new(),
        offset: 0,
        generation: 0,
    };
    assert_eq!(what(nameless.encode(3)), What::Name);
    let long = Request::Commit {
        group: "g".repeat(NAME_MAX + 1),
        offset: 0,
        generation: 0,
    };
    assert_eq!(what(long.encode(3)), What::Name);
    let topics = Request::Fetch {
        start: 0,
        end: 1,
        max_bytes: 1,
        topics: vec![String::new(); TOPICS_MAX + 1],
        generation: 0,
    };
    assert_eq!(what(topics.encode(3)), What::Many);
}

#[test]
fn topics_are_counted_before_they_take_memory() {
    let topics = Request::Fetch {
        start: 0,
        end: 1,
        max_bytes: 1,
        topics: vec!["t".to_owned(); TOPICS_MAX + 1],
        generation: 0,
    };
    let mut bytes = topics.encode(3).into_iter().next().unwrap().to_vec();
    // The first topic is not UTF-8, which would be noticed if it were read.
    let first = bytes.len() - 3 * (TOPICS_MAX + 1);
    bytes[first + 2] = 0xff;
    let error = Request::decode(bytes.into()).unwrap_err();
    assert_eq!(error.what, What::Many);
}

#[test]
fn attempts_of_a_request_are_limited() {
    let attempt = Attempt {
        partition: 1,
        attempt: 2,
    };
    let publish = |count| Request::Publish {
        query: "q".to_owned(),
        batch: 0,
        won: vec![Won { attempt, parts: 1 }; count],
    };
    let abort = |count| Request::Abort {
        query: "q".to_owned(),
        batch: 0,
        attempts: vec![attempt; count],
    };
    for request in [publish(ATTEMPTS_MAX), abort(ATTEMPTS_MAX)] {
        assert_eq!(Request::decode(request.clone().encode(3)), Ok((3, request)));
    }
    for request in [publish(ATTEMPTS_MAX + 1), abort(ATTEMPTS_MAX + 1)] {
        let error = Request::decode(request.encode(3)).unwrap_err();
        assert_eq!((error.id, error.what), (Some(3), What::Attempts));
        assert!(error.to_string().contains("fewer tasks"), "{error}");
    }
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let refused = Reply::Refused {
        code: Code::Failed,
        detail: 0,
        text: "€".repeat(2000),
    };
    let (_, reply) = Reply::decode(refused.encode(1)).unwrap();
    let Reply::Refused { text, .. } = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(text, "€".repeat(TEXT_MAX / 3));
}
