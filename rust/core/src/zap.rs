//! Asks the context's ZAP handler about peers. ZeroMQ RFC 27.
//!
//! The handler is the REP or ROUTER socket that the application has bound to `inproc://zeromq.zap.01`. Every request
//! has a pipe of its own to it, as if a REQ socket had connected. So an answer can only belong to its request, a
//! handler that closes takes all open requests with it, and a request that is no longer needed is withdrawn.

use std::sync::Arc;

use bytes::Bytes;
use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::mechanisms::{Credentials, MechanismConfig, Verdict};
use zeroxide_proto::message::Message;

use crate::patterns::FOR_QUESTIONS;
use crate::pipe::{Pipe, PipeConfig, PipeId, PipeOwner};
use crate::registry::Registry;

const ENDPOINT: &str = "inproc://zeromq.zap.01";
const VERSION: &[u8] = b"1.0";

/// The contents of a request.
pub(crate) struct Question<'a> {
    pub(crate) domain: &'a str,
    /// The peer's numeric address.
    pub(crate) address: &'a str,
    /// Our own routing id.
    pub(crate) routing_id: &'a Bytes,
    pub(crate) credentials: Credentials,
}

/// The reason why there is no verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// The code from `zmq.h`; `None` if the handler broke no rule.
    pub(crate) code: Option<u32>,
    pub(crate) problem: &'static str,
}

impl Failure {
    const fn protocol(code: u32, problem: &'static str) -> Failure {
        Failure {
            code: Some(code),
            problem,
        }
    }
}

const UNSPECIFIED: u32 = 0x2000_0000;
const MALFORMED_REPLY: u32 = 0x2000_0001;
const BAD_REQUEST_ID: u32 = 0x2000_0002;
const BAD_VERSION: u32 = 0x2000_0003;
const INVALID_STATUS_CODE: u32 = 0x2000_0004;
const INVALID_METADATA: u32 = 0x2000_0005;

/// The handler's answer: the verdict, and its text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    pub(crate) text: String,
}

/// An open request.
pub(crate) struct Exchange {
    pipe: Option<Pipe>,
    request_id: String,
}

/// Sends a request. `asker` is notified when [`poll`](Exchange::poll) has something to return. `None` if there is no
/// handler.
pub(crate) fn ask(
    registry: &Registry,
    question: Question<'_>,
    asker: Arc<dyn PipeOwner>,
    pipe_id: PipeId,
) -> Option<Result<Exchange, Failure>> {
    let handler = registry.transports.bound_port(ENDPOINT)?;
    if !FOR_QUESTIONS.compatible(handler.socket_type) {
        let problem = "what is bound to inproc://zeromq.zap.01 is neither REP nor ROUTER";
        return Some(Err(Failure::protocol(UNSPECIFIED, problem)));
    }
    let request_id = registry.next_request().to_string();
    // No limits, because there is one request and one answer.
    let (mut near, far) = Pipe::pair(PipeConfig::default(), PipeConfig::default());
    near.set_far_peer(Arc::new(PeerInfo {
        socket_type: Some(FOR_QUESTIONS),
        mechanism: MechanismConfig::default().spec.name,
        version: (3, 1),
        ..PeerInfo::default()
    }));
    near.write_unchecked(&mut question.into_message(&request_id));
    near.flush();
    near.set_owner(asker, pipe_id);
    // Puts the reader to sleep, so that it is woken.
    near.check_read();
    handler.attach_plain(far);
    let pipe = Some(near);
    Some(Ok(Exchange { pipe, request_id }))
}

impl Question<'_> {
    fn into_message(self, request_id: &str) -> Message {
        let fixed = [
            Frame::new(),
            Frame::from(VERSION),
            Frame::from(request_id),
            Frame::from(self.domain),
            Frame::from(self.address),
            Frame::from_bytes(self.routing_id.clone()),
            Frame::from(self.credentials.mechanism),
        ];
        let credentials = &self.credentials.credentials;
        let credentials = credentials.iter().map(|shown| Frame::copy_from(shown));
        Message::from_frames(fixed.into_iter().chain(credentials))
    }
}

impl Exchange {
    /// The answer, once it has arrived.
    pub(crate) fn poll(&mut self) -> Option<Result<Answer, Failure>> {
        let pipe = self.pipe.as_mut()?;
        if pipe.check_read()
            && let Some(reply) = pipe.read()
        {
            return Some(parse(reply, &self.request_id));
        }
        pipe.is_far_closed().then_some(Err(Failure {
            code: None,
            problem: "the handler went away without an answer",
        }))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Also from the queue of a handler that has not read it, because the queue would only grow while the handler
        // does not read.
        if let Some(pipe) = self.pipe.take() {
            pipe.withdraw();
        }
    }
}

/// Parses a reply.
fn parse(reply: Message, request_id: &str) -> Result<Answer, Failure> {
    let frames: Vec<Frame> = reply.into_iter().collect();
    let [delimiter, version, id, status, text, user_id, metadata] = &frames[..] else {
        let problem = "a reply has an empty frame and six more";
        return Err(Failure::protocol(MALFORMED_REPLY, problem));
    };
    if !delimiter.is_empty() {
        let problem = "the reply does not begin with an empty frame";
        return Err(Failure::protocol(UNSPECIFIED, problem));
    }
    if version[..] != *VERSION {
        return Err(Failure::protocol(BAD_VERSION, "the version is not 1.0"));
    }
    if id[..] != *request_id.as_bytes() {
        let problem = "the reply is to another request";
        return Err(Failure::protocol(BAD_REQUEST_ID, problem));
    }
    let status = match &status[..] {
        b"200" => 200,
        b"300" => 300,
        b"400" => 400,
        b"500" => 500,
        _ => {
            let problem = "the status is none of 200, 300, 400 and 500";
            return Err(Failure::protocol(INVALID_STATUS_CODE, problem));
        }
    };
    let metadata = Verdict::parse_metadata(metadata)
        .map_err(|_| Failure::protocol(INVALID_METADATA, "the metadata is malformed"))?;
    Ok(Answer {
        verdict: Verdict {
            status,
            user_id: Some(String::from_utf8_lossy(user_id).into_owned()),
            metadata,
        },
        text: String::from_utf8_lossy(text).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(frames: [&[u8]; 7]) -> Result<Answer, Failure> {
        parse(Message::from_frames(frames.map(Frame::from)), "7")
    }

    #[test]
    fn a_reply_is_a_verdict() {
        let metadata = b"\x05X-Age\0\0\0\x0242";
        let answer = reply([b"", b"1.0", b"7", b"200", b"OK", b"alice", metadata]).unwrap();
        assert_eq!(answer.verdict.user_id.as_deref(), Some("alice"));
        assert_eq!(
            answer.verdict.metadata,
            [("X-Age".to_owned(), Bytes::from("42"))]
        );
        let answer = reply([b"", b"1.0", b"7", b"400", b"No access", b"", b""]).unwrap();
        assert_eq!(
            (answer.verdict.status, &answer.text[..]),
            (400, "No access")
        );
    }

    #[test]
    fn each_kind_of_malformed_reply_has_a_number() {
        let good: [&[u8]; 7] = [b"", b"1.0", b"7", b"200", b"", b"", b""];
        for (place, wrong, code) in [
            (0, &b"x"[..], UNSPECIFIED),
            (1, b"1.1", BAD_VERSION),
            (2, b"8", BAD_REQUEST_ID),
            (3, b"201", INVALID_STATUS_CODE),
            (3, b"", INVALID_STATUS_CODE),
            (6, b"\x05X", INVALID_METADATA),
        ] {
            let mut frames = good;
            frames[place] = wrong;
            assert_eq!(reply(frames).unwrap_err().code, Some(code));
        }
        for count in [1, 6, 8] {
            let frames = Message::from_frames((0..count).map(|_| Frame::new()));
            assert_eq!(parse(frames, "7").unwrap_err().code, Some(MALFORMED_REPLY));
        }
    }
}
