//! Two layers that hand each other their bytes, without I/O. The file is long because it has all kinds of hostile frames.

use std::io::IoSlice;

use zeroxide_proto::sp;

use super::*;
use crate::transports::layers::{Layer, Phase};

/// A greeting of ZMTP, which the layer does not send.
const GREETING: [u8; 64] = [9; 64];
const NULL: Dialect = Dialect::Zws("NULL", SocketType::Dealer);

fn pair() -> (WsLayer, WsLayer) {
    (
        WsLayer::client("localhost:80", "/feed", NULL).unwrap(),
        WsLayer::server("/feed", NULL),
    )
}

/// Moves what `from` has to send, at most `piece` bytes at a time. Returns what arrives above.
fn pass(from: &mut WsLayer, to: &mut WsLayer, piece: usize) -> Result<Vec<u8>> {
    let mut arrived = Vec::new();
    while !from.poll_transmit().is_empty() {
        let bytes = from.poll_transmit();
        let bytes = bytes[..bytes.len().min(piece)].to_vec();
        from.transmitted(bytes.len());
        to.handle_input(&bytes)?;
        while to.has_input() {
            let mut buffer = Vec::with_capacity(1000);
            to.poll_input(&mut buffer)?;
            arrived.extend(buffer);
        }
    }
    Ok(arrived)
}

/// Two layers after the upgrade, and after the greetings of ZMTP.
fn open(piece: usize) -> (WsLayer, WsLayer) {
    let (mut client, mut server) = pair();
    let greeting = pass(&mut client, &mut server, piece).unwrap();
    assert_eq!(greeting.len(), 64);
    assert_eq!(&greeting[..16], b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL");
    assert_eq!(pass(&mut server, &mut client, piece).unwrap(), greeting);
    assert_eq!((client.phase(), server.phase()), (Phase::Open, Phase::Open));
    for layer in [&mut client, &mut server] {
        assert_eq!(write(layer, &GREETING), 64);
        assert!(layer.poll_transmit().is_empty());
    }
    (client, server)
}

fn write(layer: &mut WsLayer, bytes: &[u8]) -> usize {
    layer.handle_output(&[IoSlice::new(bytes)])
}

/// Frames of ZMTP with bodies of different lengths.
fn zmtp() -> Vec<u8> {
    let mut bytes = b"\x04\x06\x05READY".to_vec();
    for size in [0, 1, 124, 125, 126, 255] {
        bytes.extend([1, size as u8]);
        bytes.extend((0..size).map(|n| n as u8));
    }
    for size in [256_u64, 65_533, 65_534, 65_535, 70_000] {
        bytes.push(2);
        bytes.extend(size.to_be_bytes());
        bytes.extend((0..size).map(|n| n as u8));
    }
    bytes
}

#[test]
fn frames_arrive_however_they_are_cut() {
    for piece in [1, 7, 1000, 16 * 1024] {
        let (client, server) = open(piece);
        let mut both = [client, server];
        for _ in 0..2 {
            let [from, to] = &mut both;
            let sent = zmtp();
            let (mut taken, mut arrived) = (0, Vec::new());
            while taken < sent.len() {
                let end = sent.len().min(taken + 3 * piece);
                taken += write(from, &sent[taken..end]);
                assert!(from.poll_transmit().len() < 70_000);
                arrived.extend(pass(from, to, piece).unwrap());
            }
            assert!(arrived == sent, "{piece}");
            both.reverse();
        }
    }
}

/// RFC 6455, section 5.2: "the minimal number of bytes MUST be used to encode the length".
#[test]
fn lengths_take_as_few_bytes_as_possible() {
    // The payload has the flags, too.
    for (body, start) in [
        (124, &[0x82, 125][..]),
        (125, &[0x82, 126, 0, 126]),
        (65_534, &[0x82, 126, 0xff, 0xff]),
        (65_535, &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
    ] {
        let (_, mut server) = open(usize::MAX);
        write(&mut server, &[&[2][..], &u64::to_be_bytes(body)].concat());
        assert_eq!(server.poll_transmit(), [start, &[0]].concat());
    }
}

#[test]
fn a_layer_that_is_not_read_takes_no_more_and_loses_nothing() {
    let (mut client, mut server) = open(usize::MAX);
    let sent = zmtp();
    let first = write(&mut client, &sent);
    assert!((60_000..70_000).contains(&first));
    assert_eq!(write(&mut client, &sent[first..]), 0);
    let mut arrived = pass(&mut client, &mut server, 1 << 14).unwrap();
    let mut taken = first;
    while taken < sent.len() {
        taken += write(&mut client, &sent[taken..]);
        arrived.extend(pass(&mut client, &mut server, 1 << 14).unwrap());
    }
    assert!(arrived == sent);
}

#[test]
fn the_example_of_rfc_6455_is_answered_as_it_says() {
    let mut server = WsLayer::server("/chat", NULL);
    server
        .handle_input(b"GET /chat HTTP/1.1\r\nHost: server.example.com\r\nupgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: http://example.com\r\nSec-WebSocket-Protocol: other, ZWS2.0/NULL,ZWS2.0\r\nSec-WebSocket-Version: 13\r\n\r\n")
        .unwrap();
    let answer = String::from_utf8(server.poll_transmit().to_vec()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(
        answer.contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("\r\nSec-WebSocket-Protocol: ZWS2.0/NULL\r\n"),
        "{answer}"
    );
}

#[test]
fn a_request_of_nng_without_a_path_asks_for_the_root() {
    let request = upgrade::request("h", "", "dGhlIHNhbXBsZSBub25jZQ==", NULL);
    let request = request.replace("GET / ", "GET  ");
    let mut server = WsLayer::server("", NULL);
    // What follows the request is not lost.
    let ping = b"\x89\x80\0\0\0\0";
    server
        .handle_input(&[request.as_bytes(), ping].concat())
        .unwrap();
    assert!(server.poll_transmit().ends_with(b"\r\n\r\n\x8a\0"));
}

#[test]
fn a_client_accepts_only_the_right_answer() {
    let right = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: ZWS2.0/NULL\r\n\r\n";
    let check =
        |answer: &str| upgrade::check_answer(answer.as_bytes(), "dGhlIHNhbXBsZSBub25jZQ==", NULL);
    assert_eq!(check(right).unwrap(), Some(right.len()));
    assert_eq!(check(&right[..right.len() - 1]).unwrap(), None);
    for (wrong, words) in [
        (right.replace("101", "404"), "HTTP status 404"),
        (right.replace("s3p", "s4p"), "Sec-WebSocket-Accept"),
        (
            right.replace("\r\n\r\n", "\r\nSec-WebSocket-Accept: another\r\n\r\n"),
            "Sec-WebSocket-Accept",
        ),
        (
            right.replace(
                "\r\n\r\n",
                "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
            ),
            "an extension",
        ),
        (
            right.replace("ZWS2.0/NULL", "ZWS2.0/CURVE"),
            "expected ZWS2.0/NULL",
        ),
        (
            right
                .replace("101", "400")
                .replace("ZWS2.0/NULL", "rep.sp.nanomsg.org"),
            "it speaks rep.sp.nanomsg.org, this socket ZWS2.0/NULL; give both sockets the same WIRE_PROTOCOL",
        ),
        (
            right
                .replace("101", "400")
                .replace("ZWS2.0/NULL", "ZWS2.0/CURVE"),
            "give both sockets the same mechanism",
        ),
        (right.replace("websocket", "h2c"), "another protocol"),
        ("\x7f\0\0".to_owned(), "does not speak WebSocket"),
        (
            format!("HTTP/1.1 101 x\r\nA: {}", "b".repeat(9000)),
            "more than 8 KiB",
        ),
        (
            format!("HTTP/1.1 101 x\r\n{}\r\n", "A: b\r\n".repeat(65)),
            "more than 64 header fields",
        ),
    ] {
        let error = check(&wrong).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_server_says_what_is_wrong_with_a_request() {
    let right = upgrade::request("h:1", "/feed", "dGhlIHNhbXBsZSBub25jZQ==", NULL);
    for (wrong, status, words) in [
        (right.replace("GET", "POST"), "426", "asks for no WebSocket"),
        (
            right.replace("/feed", "/food"),
            "404",
            "\"/food\", expected \"/feed\"",
        ),
        (right.replace("13", "8"), "426", "another version"),
        (right.replace("dGhl", "dGh"), "400", "Sec-WebSocket-Key"),
        (
            right.replace("2.0/NULL", "2.0/PLAIN"),
            "400",
            "\"ZWS2.0/PLAIN\", expected ZWS2.0/NULL",
        ),
        ("\u{ff}\0\0\0".to_owned(), "400", "no HTTP request"),
        (
            format!("GET / HTTP/1.1\r\nA: {}", "b".repeat(9000)),
            "431",
            "more than 8 KiB",
        ),
        (
            format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65)),
            "431",
            "more than 64 header fields",
        ),
    ] {
        let mut server = WsLayer::server("/feed", NULL);
        let error = server
            .handle_input(wrong.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
        let answer = String::from_utf8(server.poll_transmit().to_vec()).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
}

#[test]
fn every_frame_of_a_client_has_another_mask() {
    let mut client = open(usize::MAX).0;
    let mut masks = std::collections::BTreeSet::new();
    for _ in 0..200 {
        assert_eq!(write(&mut client, b"\0\x01x"), 3);
        // Two bytes come before the mask.
        masks.insert(client.poll_transmit()[2..6].to_vec());
        client.transmitted(client.poll_transmit().len());
    }
    assert!(masks.len() > 195, "{}", masks.len());
}

#[test]
fn pings_are_answered_and_the_end_is_returned() {
    let (mut client, mut server) = open(usize::MAX);
    // "abc", masked.
    let ping = [0x89, 0x83, 1, 2, 3, 4, b'a' ^ 1, b'b' ^ 2, b'c' ^ 3];
    server.handle_input(&ping).unwrap();
    assert_eq!(server.poll_transmit(), [0x8a, 3, b'a', b'b', b'c']);
    pass(&mut server, &mut client, 1).unwrap();
    client.finish();
    pass(&mut client, &mut server, 1).unwrap();
    assert!(server.has_ended());
    pass(&mut server, &mut client, 1).unwrap();
    assert!(client.has_ended());
}

#[test]
fn a_malformed_close_is_answered_as_an_error_of_the_protocol() {
    for (sent, answered) in [
        (&[][..], &[][..]),
        (&[3, 232, b'x'], &[3, 232, b'x']),
        (&[19, 135], &[19, 135]),
        (&[3], &[3, 234]),
        (&[0, 5], &[3, 234]),
        (&[3, 237], &[3, 234]),
        (&[19, 136], &[3, 234]),
        (&[3, 232, 0xff], &[3, 234]),
    ] {
        let mut server = open(usize::MAX).1;
        server.handle_input(&frame(0x88, sent)).unwrap();
        let expected = [&[0x88, answered.len() as u8][..], answered].concat();
        assert_eq!(server.poll_transmit(), expected, "{sent:?}");
        assert!(server.has_ended());
    }
}

#[test]
fn frames_that_zws_does_not_have_are_refused() {
    for (frame, words) in [
        (&b"\x81\x81"[..], "sends text"),
        (b"\x83\x81", "a frame of a type"),
        (b"\x8b\x80", "a frame of a type"),
        (b"\xc2\x81", "extension"),
        (b"\x82\x01", "does not mask"),
        (b"\x89\xfe", "control frame of more"),
        (b"\x82\x80\0\0\0\0", "without flags"),
        (b"\x02\x80\0\0\0\0\x80\x80\0\0\0\0", "without flags"),
        (b"\x80\x81\0\0\0\0\0", "has not begun"),
        (
            b"\x02\x81\0\0\0\0\0\x02\x81\0\0\0\0\0",
            "in the middle of another",
        ),
        (b"\x02\x80\0\0\0\0\0\x81\0\0\0\0\x04", "flags"),
        (
            b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0",
            "impossible length",
        ),
        (b"\x82\x81\0\0\0\0\x04", "flags"),
    ] {
        let mut server = open(usize::MAX).1;
        let error = server.handle_input(frame).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = open(usize::MAX).0.handle_input(b"\x82\x81").unwrap_err();
    assert!(error.to_string().contains("masks its frames"), "{error}");
}

/// A frame of a client, masked with zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        size @ ..126 => frame.push(0x80 | size as u8),
        size => {
            frame.push(0x80 | 127);
            frame.extend((size as u64).to_be_bytes());
        }
    }
    [&frame, &[0; 4][..], payload].concat()
}

/// The frames of ZMTP in the bytes for above, whose pieces are joined: their flags and bodies. `flags` is where a long
/// header has them.
fn joined(mut bytes: &[u8], flags: usize) -> Vec<(u8, Vec<u8>)> {
    let (mut all, mut begun) = (Vec::new(), Vec::new());
    while !bytes.is_empty() {
        let header = u64::from_be_bytes(*bytes[1..].first_chunk().unwrap());
        let start = if flags == 0 { 9 } else { 10 };
        let size = (header & !(1 << 63)) as usize - usize::from(flags != 0);
        begun.extend_from_slice(&bytes[start..start + size]);
        let own = bytes[flags] & 5;
        bytes = &bytes[start + size..];
        if header >> 63 == 0 {
            all.push((own, std::mem::take(&mut begun)));
        }
    }
    assert!(begun.is_empty());
    all
}

#[test]
fn a_message_in_fragments_arrives_in_pieces_of_one_frame() {
    let body: Vec<u8> = (0..100_000).map(|n| (n % 251) as u8).collect();
    let whole = [&[1], &body[..]].concat();
    let sent = [
        // Empty fragments, the flags alone, control frames in between, and a command in fragments.
        frame(2, b""),
        frame(0, &whole[..1]),
        frame(0x89, b"ping"),
        frame(0, &whole[1..70_000]),
        frame(0, b""),
        frame(0x8a, b""),
        frame(0, &whole[70_000..]),
        frame(0x80, b""),
        frame(2, b"\0sma"),
        frame(0x80, b"ll"),
        frame(2, b"\0"),
        frame(0x80, b""),
    ]
    .concat();
    let expected = [(1, body), (0, b"small".to_vec()), (0, Vec::new())];
    for cut in [1, 7, 1000, usize::MAX] {
        for (dialect, flags) in [("ZWS2.0/NULL", 0), ("ZWS2.0", 9)] {
            let request = upgrade::request("h", "", "dGhlIHNhbXBsZSBub25jZQ==", NULL);
            let mut server = WsLayer::server("", NULL);
            let request = request.replace("ZWS2.0/NULL", dialect);
            server.handle_input(request.as_bytes()).unwrap();
            server.transmitted(server.poll_transmit().len());
            let mut greeting = Vec::with_capacity(100);
            server.poll_input(&mut greeting).unwrap();
            let mut above = Vec::new();
            for bytes in sent.chunks(cut) {
                server.handle_input(bytes).unwrap();
                while server.has_input() {
                    let mut buffer = Vec::with_capacity(1000);
                    server.poll_input(&mut buffer).unwrap();
                    above.extend(buffer);
                }
            }
            assert!(joined(&above, flags) == expected, "{cut} {dialect}");
            assert_eq!(server.poll_transmit(), b"\x8a\x04ping");
        }
    }
}

#[test]
fn a_message_has_a_limited_number_of_empty_fragments() {
    let mut server = open(usize::MAX).1;
    server.handle_input(b"\x02\x80\0\0\0\0").unwrap();
    let empty = b"\0\x80\0\0\0\0".repeat(1023);
    server.handle_input(&empty).unwrap();
    let error = server.handle_input(&empty).unwrap_err().to_string();
    assert!(error.contains("too many empty fragments"), "{error}");
    assert!(!server.has_input());
}

#[test]
fn a_control_frame_waits_for_the_end_of_a_message() {
    let (mut client, mut server) = open(usize::MAX);
    let header = b"\x02\0\0\0\0\0\0\x03\xe8";
    assert_eq!(write(&mut server, &[&header[..], &[7; 400]].concat()), 409);
    // Two pings: only the last one has to be answered.
    for ping in [b"\x89\x81\0\0\0\0a", b"\x89\x81\0\0\0\0b"] {
        server.handle_input(ping).unwrap();
    }
    server.ping();
    assert_eq!(server.poll_transmit().len(), 5 + 400);
    write(&mut server, &[7; 600]);
    write(&mut server, b"\0\x01x");
    let sent = server.poll_transmit()[5 + 1000..].to_vec();
    assert_eq!(sent, b"\x8a\x01b\x89\0\x82\x02\0x");
    let arrived = pass(&mut server, &mut client, 100).unwrap();
    assert_eq!(arrived.len(), 9 + 1000 + 3);
    // There is no place for the end of the connection in the middle of a message.
    write(&mut server, &[&header[..], &[7; 400]].concat());
    server.finish();
    assert_eq!(server.poll_transmit().len(), 5 + 400);
}

#[test]
fn pings_are_answered_although_the_peer_has_read_nothing_for_a_while() {
    let (_, mut server) = open(usize::MAX);
    let header = b"\x02\0\0\0\0\0\0\xff\xfb";
    write(&mut server, &[&header[..], &[7; 65_531]].concat());
    assert_eq!(write(&mut server, b"\0\x01x"), 0);
    let waiting = server.poll_transmit().len();
    server.handle_input(b"\x89\x80\0\0\0\0").unwrap();
    server.ping();
    assert_eq!(server.poll_transmit().len(), waiting);
    server.transmitted(waiting);
    assert_eq!(server.poll_transmit(), b"\x8a\0\x89\0");
}

#[test]
fn an_answer_to_a_ping_is_a_sign_of_life() {
    let (mut client, mut server) = open(usize::MAX);
    assert!(!client.take_sign_of_life());
    client.ping();
    pass(&mut client, &mut server, 1).unwrap();
    pass(&mut server, &mut client, 1).unwrap();
    for layer in [&mut client, &mut server] {
        assert!(layer.take_sign_of_life());
        assert!(!layer.take_sign_of_life());
    }
    // Bytes for above are one themselves.
    client.ping();
    write(&mut client, b"\0\x01x");
    assert_eq!(pass(&mut client, &mut server, 100).unwrap(), b"\0\x01x");
    assert!(!server.take_sign_of_life());
}

#[test]
fn a_socket_with_groups_needs_a_mechanism() {
    let request = upgrade::request("h", "", "dGhlIHNhbXBsZSBub25jZQ==", NULL);
    let request = request.replace("ZWS2.0/NULL", "ZWS2.0");
    let mut server = WsLayer::server("", Dialect::Zws("NULL", SocketType::Radio));
    let error = server.handle_input(request.as_bytes()).unwrap_err();
    assert!(
        error.to_string().contains("expected ZWS2.0/NULL"),
        "{error}"
    );
    // Other types do not, but there are no commands.
    let mut server = WsLayer::server("", NULL);
    server.handle_input(request.as_bytes()).unwrap();
    let command = b"\x82\x86\0\0\0\0\x02\x04JOIN";
    let error = server.handle_input(command).unwrap_err().to_string();
    assert!(error.contains("sends a command"), "{error}");
}

#[test]
fn no_bytes_make_it_panic_or_keep_much() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut client, _) = open(usize::MAX);
    write(&mut client, &zmtp()[..3000]);
    let good = client.poll_transmit().to_vec();
    for _ in 0..3000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut server = open(usize::MAX).1;
        let mut bytes = good.clone();
        let place = (random >> 32) as usize % bytes.len().min(200);
        bytes[place] ^= (random as u8).max(1);
        let _ = server.handle_input(&bytes);
        let mut buffer = Vec::with_capacity(10_000);
        server.poll_input(&mut buffer).unwrap();
        assert!(buffer.len() <= bytes.len() + 64);
        assert!(server.poll_transmit().len() <= bytes.len());
    }
}

/// Two layers of SP after the upgrade, and after the openings.
fn open_sp(piece: usize) -> (WsLayer, WsLayer) {
    let mut client = WsLayer::client("localhost:80", "", Dialect::other(sp::REQ).unwrap()).unwrap();
    let mut server = WsLayer::server("", Dialect::other(sp::REP).unwrap());
    let request = String::from_utf8(client.poll_transmit().to_vec()).unwrap();
    // Both sides name the type of the server, as nng does.
    assert!(
        request.contains("\r\nSec-WebSocket-Protocol: rep.sp.nanomsg.org\r\n"),
        "{request}"
    );
    let opening = pass(&mut client, &mut server, piece).unwrap();
    assert_eq!(opening, sp::opening(sp::REQ));
    let opening = pass(&mut server, &mut client, piece).unwrap();
    assert_eq!(opening, sp::opening(sp::REP));
    for layer in [&mut client, &mut server] {
        assert_eq!(write(layer, &[9; sp::OPENING]), sp::OPENING);
        assert!(layer.poll_transmit().is_empty());
    }
    (client, server)
}

/// The messages in the bytes that a layer of SP has for above, whose pieces are joined.
fn messages(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut begun) = (Vec::new(), Vec::new());
    while let Some((header, rest)) = bytes.split_first_chunk() {
        let header = u64::from_be_bytes(*header);
        let size = (header & !(1 << 63)) as usize;
        begun.extend_from_slice(&rest[..size]);
        bytes = &rest[size..];
        if header >> 63 == 0 {
            all.push(std::mem::take(&mut begun));
        }
    }
    assert!(begun.is_empty() && bytes.is_empty());
    all
}

#[test]
fn messages_of_sp_are_messages_of_websocket_in_frames_that_nng_accepts() {
    let bodies = [0, 1, 125, 126, 65_535, 65_536, 65_537, 200_000]
        .map(|size| (0..size).map(|n| (n % 251) as u8).collect::<Vec<u8>>());
    let above: Vec<u8> = bodies
        .iter()
        .flat_map(|body| [&(body.len() as u64).to_be_bytes()[..], body].concat())
        .collect();
    for cut in [1, 7, 1000, 16 * 1024] {
        let (client, server) = open_sp(cut);
        let mut both = [client, server];
        for _ in 0..2 {
            let [from, to] = &mut both;
            let (mut taken, mut arrived) = (0, Vec::new());
            while taken < above.len() {
                taken += write(from, &above[taken..]);
                arrived.extend(pass(from, to, cut).unwrap());
            }
            assert!(messages(&arrived) == bodies, "{cut}");
            both.reverse();
        }
    }
    let (_, mut server) = open_sp(1000);
    write(&mut server, b"\0\0\0\0\0\x02\0\0");
    write(&mut server, &[7; 70_000]);
    let sent = server.poll_transmit();
    // The first frame is not the last one.
    assert_eq!(sent[..10], [2, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    write(&mut server, &[7; 70_000]);
    assert!(server.poll_transmit().len() < 70_000);
}

#[test]
fn frames_that_sp_does_not_have_are_refused() {
    for (frames, words) in [
        (&b"\x80\x81\0\0\0\0x"[..], "has not begun"),
        (
            b"\x02\x81\0\0\0\0x\x82\x81\0\0\0\0x",
            "in the middle of another",
        ),
        (b"\x09\x80", "control frame in fragments"),
        (b"\x81\x80", "sends text"),
    ] {
        let (_, mut server) = open_sp(1000);
        let error = server.handle_input(frames).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    // A control frame may come between the pieces.
    let (_, mut server) = open_sp(1000);
    server
        .handle_input(b"\x02\x82\0\0\0\0ab\x89\x80\0\0\0\0\x00\x80\0\0\0\0\x80\x81\0\0\0\0c")
        .unwrap();
    let mut buffer = Vec::with_capacity(100);
    server.poll_input(&mut buffer).unwrap();
    assert_eq!(messages(&buffer), [b"abc"]);
    assert_eq!(server.poll_transmit(), [0x8a, 0]);
}

#[test]
fn a_server_of_sp_accepts_its_own_type_only() {
    for (dialect, offered, hint) in [
        (
            Dialect::other(sp::PUB).unwrap(),
            "ZWS2.0/NULL",
            "WIRE_PROTOCOL",
        ),
        (
            Dialect::other(sp::PUB).unwrap(),
            "sub.sp.nanomsg.org",
            "a type that fits",
        ),
        (
            Dialect::Zws("CURVE", SocketType::Dealer),
            "ZWS2.0",
            "mechanism",
        ),
        (NULL, "soap, pub.sp.nanomsg.org", "WIRE_PROTOCOL"),
    ] {
        let request = upgrade::request("h", "", "dGhlIHNhbXBsZSBub25jZQ==", NULL);
        let request = request.replace("ZWS2.0/NULL", offered);
        let mut server = WsLayer::server("", dialect);
        let error = server.handle_input(request.as_bytes()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(offered) && error.contains(hint), "{error}");
    }
}

/// What browsers and libraries for them send: no mechanism, but a routing id first.
#[test]
fn without_a_mechanism_the_peer_speaks_zmtp_1_to_the_engine() {
    let request = upgrade::request("h", "", "dGhlIHNhbXBsZSBub25jZQ==", NULL);
    let request = request.replace("ZWS2.0/NULL", "ZWS2.0");
    let mut server = WsLayer::server("", NULL);
    server.handle_input(request.as_bytes()).unwrap();
    let answer = String::from_utf8(server.poll_transmit().to_vec()).unwrap();
    assert!(answer.ends_with("\r\nSec-WebSocket-Protocol: ZWS2.0\r\n\r\n"));
    server.transmitted(answer.len());
    let mut buffer = Vec::with_capacity(1000);
    server.poll_input(&mut buffer).unwrap();
    // Version 1.0, and the type of a peer of a DEALER.
    assert_eq!(buffer[..11], *b"\xff\0\0\0\0\0\0\0\0\x7f\0");
    assert_eq!(buffer[11], SocketType::Dealer.peers()[0].id());
    write(&mut server, b"\xff\0\0\0\0\0\0\0\x03\x7f\x03\x05");
    write(&mut server, b"\x03\0me\x06\x01hello\x01\0");
    let long = [&b"\xff\0\0\0\0\0\0\x01\x01\0"[..], &[7; 256]].concat();
    write(&mut server, &long);
    let sent = server.poll_transmit();
    let expected = [
        &b"\x82\x03\0me\x82\x06\x01hello\x82\x01\0\x82\x7e\x01\x01\0"[..],
        &[7; 256],
    ]
    .concat();
    assert_eq!(sent, expected);
    let received = b"\x82\x83\0\0\0\0\0id\x82\x83\0\0\0\0\x01hi\x82\x81\0\0\0\0\0";
    server.handle_input(received).unwrap();
    let big = [&b"\x82\xfe\x01\0\0\0\0\0\0"[..], &[7; 255]].concat();
    server.handle_input(&big).unwrap();
    buffer.clear();
    server.poll_input(&mut buffer).unwrap();
    let expected = [
        &b"\x03\0id\x03\x01hi\x01\0\xff\0\0\0\0\0\0\x01\0\0"[..],
        &[7; 255],
    ]
    .concat();
    assert_eq!(buffer, expected);
}
