//! MESSAGE: after the handshake, every frame is in a box of its own.

use super::boxes::{self, BoxKey, BoxSeries};
use crate::command;
use crate::error::{CloseReason, ProtocolError};
use crate::mechanisms::{Cipher, Content, Opened};

const MESSAGE: &[u8; 8] = b"\x07MESSAGE";
/// Name, nonce, tag, flags.
const OVERHEAD: usize = 8 + 8 + boxes::OVERHEAD + 1;
/// Where the box begins.
const BOX: usize = 16;

const MORE: u8 = 0x01;
const COMMAND: u8 = 0x02;

/// The messages of a connection in both directions.
pub(super) struct Messages {
    sealing: BoxSeries,
    opening: BoxSeries,
    /// The numbers of the last command sent and received.
    sent: u64,
    received: u64,
}

impl Messages {
    /// Continues the numbers of the handshake's last commands.
    pub(super) fn new(shared: &[u8; 32], server: bool, sent: u64, received: u64) -> Messages {
        let (from_client, from_server) = (b"CurveZMQMESSAGEC", b"CurveZMQMESSAGES");
        let (ours, theirs) = if server {
            (from_server, from_client)
        } else {
            (from_client, from_server)
        };
        Messages {
            sealing: BoxSeries::new(BoxKey::new(shared, ours)),
            opening: BoxSeries::new(BoxKey::new(shared, theirs)),
            sent,
            received,
        }
    }
}

impl Cipher for Messages {
    fn overhead(&self) -> usize {
        OVERHEAD
    }

    fn seal(&mut self, content: Content<'_>, out: &mut Vec<u8>) -> Result<(), CloseReason> {
        // The number is part of the nonce, and a nonce that is used twice reveals what is in both boxes.
        self.sent = self.sent.checked_add(1).ok_or(CloseReason::NumbersUsedUp)?;
        let flags = if content.more { MORE } else { 0 } | if content.command { COMMAND } else { 0 };
        let start = out.len();
        let mut header = [0; OVERHEAD];
        header[..8].copy_from_slice(MESSAGE);
        header[8..BOX].copy_from_slice(&self.sent.to_be_bytes());
        header[OVERHEAD - 1] = flags;
        out.extend_from_slice(&header);
        out.extend_from_slice(content.prefix);
        out.extend_from_slice(content.body);
        let sealed = &mut out[start + BOX..];
        let (tag, data) = sealed.split_at_mut(boxes::OVERHEAD);
        tag.copy_from_slice(&self.sealing.seal(self.sent, data));
        Ok(())
    }

    fn open(&mut self, body: &mut [u8]) -> Result<Opened, ProtocolError> {
        let Some((name, rest)) = body.split_first_chunk_mut() else {
            return Err(not_a_message(body));
        };
        if name != MESSAGE {
            return Err(not_a_message(body));
        }
        let Some((number, rest)) = rest.split_first_chunk_mut::<8>() else {
            return Err(malformed("shorter than its nonce"));
        };
        let Some((tag, data)) = rest.split_first_chunk_mut() else {
            return Err(malformed("shorter than its tag"));
        };
        if data.is_empty() {
            return Err(malformed("without flags"));
        }
        let got = u64::from_be_bytes(*number);
        let expected = self.received.saturating_add(1);
        if got != expected || got == self.received {
            return Err(ProtocolError::Sequence { expected, got });
        }
        if !self.opening.open(got, tag, data) {
            return Err(ProtocolError::Cryptographic("MESSAGE"));
        }
        self.received = got;
        let flags = data[0];
        if flags > COMMAND {
            return Err(malformed("flags without a meaning"));
        }
        Ok(Opened {
            start: OVERHEAD,
            more: flags == MORE,
            command: flags == COMMAND,
        })
    }
}

fn malformed(problem: &'static str) -> ProtocolError {
    ProtocolError::Malformed {
        command: "MESSAGE",
        problem,
    }
}

/// The error for a body that is not even called MESSAGE: a command, or anything unencrypted.
fn not_a_message(body: &[u8]) -> ProtocolError {
    match command::split(body) {
        Ok((name, _)) => command::unexpected("MESSAGE", name),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_a_meaning() {
        for flags in 0..=255 {
            let mut server = Messages::new(&[1; 32], true, 1, 2);
            let mut content = [flags, b'x'];
            let key = BoxKey::new(&[1; 32], b"CurveZMQMESSAGEC");
            let tag = BoxSeries::new(key).seal(3, &mut content);
            let number = 3u64.to_be_bytes();
            let mut message = [&MESSAGE[..], &number, &tag, &content].concat();
            let opened = server.open(&mut message);
            assert_eq!(opened.is_ok(), flags <= 2, "{flags}");
        }
    }

    #[test]
    fn a_sender_without_numbers_seals_nothing_more() {
        let content = Content {
            command: false,
            more: false,
            prefix: &[],
            body: b"x",
        };
        let mut sender = Messages::new(&[1; 32], true, u64::MAX - 1, 1);
        let mut out = Vec::new();
        assert_eq!(sender.seal(content, &mut out), Ok(()));
        assert_eq!(out[8..BOX], u64::MAX.to_be_bytes());
        let before = out.clone();
        for _ in 0..2 {
            let refused = sender.seal(content, &mut out);
            assert_eq!(refused, Err(CloseReason::NumbersUsedUp));
            assert_eq!(out, before);
        }
    }

    #[test]
    fn numbers_do_not_start_again() {
        let mut receiver = Messages::new(&[1; 32], true, 1, u64::MAX);
        for number in [0, 1, u64::MAX] {
            let mut message = [&MESSAGE[..], &number.to_be_bytes(), &[0; 18]].concat();
            let error = receiver.open(&mut message).unwrap_err();
            assert!(matches!(error, ProtocolError::Sequence { .. }), "{error}");
        }
    }
}
