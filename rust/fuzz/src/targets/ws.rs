//! The layers between a descriptor and ZMTP that parse what a peer or a proxy sends: WebSocket, its upgrade from HTTP, and
//! SOCKS.

use zeroxide::SocketType;
use zeroxide::fuzzing::Conversation;

use super::Parts;
use crate::mutate::Chance;
use crate::{Target, guard};

pub(super) const TARGET: Target = Target {
    name: "ws",
    about: "WebSocket's upgrade and frames, and the replies of SOCKS proxies",
    run,
    seeds,
    words: &[
        b"GET / HTTP/1.1\r\n",
        b"HTTP/1.1 101 \r\n",
        b"\r\n",
        b"\r\n\r\n",
        b": ",
        b"Upgrade: websocket\r\n",
        b"Connection: Upgrade\r\n",
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
        b"Sec-WebSocket-Protocol: ZWS2.0/NULL\r\n",
        b"Sec-WebSocket-Version: 13\r\n",
        b"Sec-WebSocket-Accept: ",
        b"\x82\x81",
        b"\x82\xfe",
        b"\x82\xff",
        b"\x02\x81",
        b"\0\x80",
        b"\0\x81",
        b"\x80\x81",
        b"\x88\x80",
        b"\x89\x84",
        b"\x8a\x80",
        b"\x05\0",
        b"\x05\x02",
        b"\x01\0",
        b"\x05\0\0\x01",
    ],
    longest: 9000,
};

/// The bytes of a conversation for above, the text of an error, and the bytes to send.
type Deeds = (Vec<u8>, Option<String>, Vec<u8>);

fn start(number: u8) -> Conversation {
    match number % 5 {
        0 => Conversation::ws_server(SocketType::Pair),
        1 => Conversation::ws_client(SocketType::Pair),
        2 => Conversation::opened_ws_server(SocketType::Pair),
        3 => Conversation::opened_ws_client(SocketType::Pair),
        _ => Conversation::socks(),
    }
}

/// Gives bytes to a conversation in pieces.
fn drive(number: u8, bytes: &[u8], mut cut: impl FnMut() -> usize) -> Deeds {
    let mut conversation = start(number);
    let mut above = Vec::new();
    let mut rest = bytes;
    let mut error = None;
    while !rest.is_empty() && error.is_none() {
        let (piece, after) = rest.split_at(cut().clamp(1, rest.len()));
        match conversation.input(piece) {
            Ok(bytes) => above.extend(bytes),
            Err(why) => error = Some(why.to_string()),
        }
        rest = after;
    }
    let is_ws = number % 5 < 4;
    let above = if is_ws { joined(&above) } else { above };
    (above, error, conversation.output())
}

/// The bytes for above without the headers between the pieces of a frame, whose number depends on how the input was cut.
/// The length of a frame comes after it, so that the beginning of the input has the beginning of these bytes.
fn joined(above: &[u8]) -> Vec<u8> {
    // A greeting of ZMTP, if there is one.
    let greeting = if above.first() == Some(&0xff) { 64 } else { 0 };
    let (greeting, mut rest) = above.split_at(greeting.min(above.len()));
    let (mut all, mut begun) = (greeting.to_vec(), None);
    while let Some((&flags, after)) = rest.split_first() {
        let (start, length) = match after.first_chunk() {
            Some(length) if flags & 2 != 0 => (9, u64::from_be_bytes(*length)),
            _ => (2, after.first().copied().unwrap_or_default().into()),
        };
        let size = usize::try_from(length & !(1 << 63)).unwrap_or(usize::MAX);
        let body = rest.get(start..).unwrap_or_default();
        let body = &body[..size.min(body.len())];
        let before = begun.take().unwrap_or_else(|| {
            all.push(flags);
            0
        });
        all.extend(body);
        if body.len() < size {
            break;
        }
        match length >> 63 {
            0 => all.extend((before + size).to_be_bytes()),
            _ => begun = Some(before + size),
        }
        rest = &rest[start + size..];
    }
    all
}

fn run(input: &[u8]) {
    let mut parts = Parts(input);
    let number = parts.byte();
    let bytes = parts.0;
    let whole = guard::bounded(input.len(), || drive(number, bytes, || 16 << 10));
    let mut sizes = Chance::new(u64::from(crc32c::crc32c(bytes)));
    let pieces = guard::bounded(input.len(), || {
        drive(number, bytes, || 1 + sizes.below(300))
    });
    for (way, mut other) in [
        ("one byte at a time", drive(number, bytes, || 1)),
        ("in pieces", pieces),
    ] {
        let is_client = matches!(number % 5, 1 | 3);
        // A client's masks are random.
        if is_client {
            other.2.clone_from(&whole.2);
        }
        // Before an error, bytes of the same read may be lost, because the connection ends.
        if whole.1.is_some() {
            let length = whole.0.len().min(other.0.len());
            assert_eq!(whole.0[..length], other.0[..length], "{way}");
            assert_eq!(whole.1, other.1, "{way}");
        } else {
            assert_eq!(whole, other, "{way}");
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mask = b"\0\0\0\0";
    let frames = |first: u8| {
        [
            &[0x82, first | 4][..],
            if first > 0 { mask } else { b"" },
            b"\0abc",
        ]
        .concat()
    };
    let ping = |first: u8| {
        [
            &[0x89, first | 2][..],
            if first > 0 { mask } else { b"" },
            b"hi",
        ]
        .concat()
    };
    let request = "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: ZWS2.0/NULL\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: ZWS2.0/NULL\r\n\r\n";
    let long = [&[0x82, 126, 1, 0][..], &[0; 256]].concat();
    let fragments = |first: u8| {
        let mask = if first > 0 { &mask[..] } else { b"" };
        [
            (2, &b"\0ab"[..]),
            (0, b""),
            (0x89, b"hi"),
            (0, b"c"),
            (0x80, b"de"),
        ]
        .iter()
        .flat_map(|(opcode, body)| [&[*opcode, first | body.len() as u8], mask, body].concat())
        .collect::<Vec<u8>>()
    };
    vec![
        [b"\0", request.as_bytes(), &frames(0x80), &ping(0x80)].concat(),
        [b"\x01", answer.as_bytes()].concat(),
        [b"\x01", &b"HTTP/1.1 403 No\r\n\r\n"[..]].concat(),
        [&[2], &frames(0x80)[..], &ping(0x80), b"\x88\x80\0\0\0\0"].concat(),
        [&[3], &frames(0)[..], &ping(0), &long, b"\x88\0"].concat(),
        [&[2], &fragments(0x80)[..], &frames(0x80)].concat(),
        [&[3], &fragments(0)[..], &frames(0)].concat(),
        b"\x04\x05\x02\x01\0\x05\0\0\x01\x7f\0\0\x01\0\x50rest".to_vec(),
        b"\x04\x05\0\x05\0\0\x03\x01h\0\x50rest".to_vec(),
        b"\x04\x05\0\x05\x05\0\x04".to_vec(),
    ]
}
