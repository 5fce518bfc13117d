//! The mechanism in use, through the public interface of `zeroxide` alone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use zeroxide::mechanisms::MechanismSpec;
use zeroxide::{
    Context, ErrorKind, EventKind, EventStream, Message, MonitorEvent, Socket, SocketType, Value,
    Wait, ids,
};
use zeroxide_token::{MECHANISM, NUMBER, TOKEN_NAME, TOKEN_SECRET, TOKEN_SERVER};

const SECRET: &str = "0123456789abcdef";
const PATIENCE: Duration = Duration::from_secs(60);

fn context() -> Context {
    let context = Context::new();
    context.add_mechanism(&MECHANISM).unwrap();
    context
}

fn patience() -> Wait {
    Wait::Until(Instant::now() + PATIENCE)
}

fn server(context: &Context, secret: &str) -> Socket {
    let socket = context.socket(SocketType::Rep).unwrap();
    socket.set_option(TOKEN_SERVER, &Value::from(true)).unwrap();
    socket
        .set_option(TOKEN_SECRET, &Value::from(secret))
        .unwrap();
    socket
}

fn client(context: &Context, secret: &str) -> Socket {
    let socket = context.socket(SocketType::Req).unwrap();
    socket
        .set_option(TOKEN_NAME, &Value::from("sensor 7"))
        .unwrap();
    socket
        .set_option(TOKEN_SECRET, &Value::from(secret))
        .unwrap();
    socket
}

/// A request and its reply, and who has sent the request.
fn round_trip(client: &Socket, server: &Socket) -> Option<String> {
    client.send("21 degrees", patience()).unwrap();
    let (request, peer) = server.recv_from(patience()).unwrap();
    server.send(request, patience()).unwrap();
    assert_eq!(
        client.recv(patience()).unwrap(),
        Message::from("21 degrees")
    );
    peer.unwrap().user_id.clone()
}

fn failures(socket: &Socket) -> EventStream {
    let kinds = EventKind::HandshakeFailedAuth as u32
        | EventKind::HandshakeFailedProtocol as u32
        | EventKind::HandshakeFailedNoDetail as u32;
    socket.event_stream(kinds).unwrap()
}

fn next(events: &EventStream) -> MonitorEvent {
    events.next(patience()).unwrap().unwrap()
}

#[test]
fn sockets_with_the_same_token_talk() {
    let context = context();
    let folder = std::env::temp_dir().join(format!("zeroxide-token-{}", std::process::id()));
    for endpoint in ["tcp://127.0.0.1:*", &format!("ipc://{}", folder.display())] {
        let server = server(&context, SECRET);
        let client = client(&context, SECRET);
        client.connect(&server.bind(endpoint).unwrap()).unwrap();
        let user = round_trip(&client, &server);
        assert_eq!(user.as_deref(), Some("sensor 7"));
        assert_eq!(client.get_int(ids::MECHANISM).unwrap(), i64::from(NUMBER));
    }
}

#[test]
fn the_server_may_be_the_side_that_connects() {
    let context = context();
    let (server, client) = (server(&context, SECRET), client(&context, SECRET));
    server
        .connect(&client.bind("tcp://127.0.0.1:*").unwrap())
        .unwrap();
    assert_eq!(round_trip(&client, &server).as_deref(), Some("sensor 7"));
}

#[test]
fn another_token_is_refused_and_both_sides_say_why() {
    let context = context();
    let server = server(&context, SECRET);
    let client = client(&context, "another token of some length");
    let (at_server, at_client) = (failures(&server), failures(&client));
    client
        .connect(&server.bind("tcp://127.0.0.1:*").unwrap())
        .unwrap();
    let event = next(&at_server);
    assert_eq!(event.kind, EventKind::HandshakeFailedProtocol);
    assert!(event.reason.unwrap().contains("INITIATE"));
    let reason = next(&at_client).reason.unwrap();
    assert!(
        reason.contains("its TOKEN_SECRET may be another one"),
        "{reason}"
    );
    assert_eq!(server.count_connected().unwrap(), 0);
}

#[test]
fn a_peer_without_the_mechanism_is_refused() {
    let context = context();
    let server = server(&context, SECRET);
    let events = failures(&server);
    let endpoint = server.bind("tcp://127.0.0.1:*").unwrap();
    let client = Context::new().socket(SocketType::Req).unwrap();
    client.connect(&endpoint).unwrap();
    let reason = next(&events).reason.unwrap();
    assert!(reason.contains("expected mechanism TOKEN"), "{reason}");
}

#[test]
fn a_zap_handler_decides_by_the_name() {
    let context = context();
    let handler = context.socket(SocketType::Rep).unwrap();
    handler.bind("inproc://zeromq.zap.01").unwrap();
    let thread = thread::spawn(move || {
        let mut asked = Vec::new();
        for status in ["400", "200"] {
            let request = handler.recv(patience()).unwrap();
            let frames: Vec<_> = request.iter().map(|frame| frame.to_vec()).collect();
            asked.push((frames[5].clone(), frames[6].clone(), frames.len()));
            let fixed = [&frames[0][..], &frames[1], status.as_bytes()];
            let reply = [&fixed[..], &[b"", b"alice", b""]].concat();
            let reply: Vec<_> = reply.into_iter().map(<[u8]>::to_vec).collect();
            handler.send(reply, patience()).unwrap();
        }
        asked
    });
    let server = server(&context, SECRET);
    let endpoint = server.bind("tcp://127.0.0.1:*").unwrap();
    let refused = client(&context, SECRET);
    let events = failures(&refused);
    refused.connect(&endpoint).unwrap();
    let event = next(&events);
    assert_eq!(
        (event.kind, event.value),
        (EventKind::HandshakeFailedAuth, 400)
    );
    refused.close(None);
    let client = client(&context, SECRET);
    client.connect(&endpoint).unwrap();
    assert_eq!(round_trip(&client, &server).as_deref(), Some("alice"));
    let asked = thread.join().unwrap();
    assert_eq!(asked, vec![(b"TOKEN".to_vec(), b"sensor 7".to_vec(), 7); 2]);
}

#[test]
fn noise_after_the_greeting_does_no_harm() {
    let context = context();
    let server = server(&context, SECRET);
    let events = failures(&server);
    let endpoint = server.bind("tcp://127.0.0.1:*").unwrap();
    let address = endpoint.strip_prefix("tcp://").unwrap();
    let mut greeting = [0; 64];
    greeting[..10].copy_from_slice(b"\xff\0\0\0\0\0\0\0\x01\x7f");
    greeting[10..17].copy_from_slice(b"\x03\x01TOKEN");
    let frames: [&[u8]; 5] = [
        b"\x04\x06\x05HELLO",
        b"\x04\x0e\x08INITIATEshort",
        b"\x04\x00",
        b"\x00\x05hello",
        b"\x06\x7f\xff\xff\xff\xff\xff\xff\xff",
    ];
    for frame in frames {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&greeting).unwrap();
        stream.write_all(frame).unwrap();
        assert!(next(&events).reason.is_some());
        // The server's greeting, and then the end.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() <= 64 + 100, "{} bytes", rest.len());
    }
    let client = client(&context, SECRET);
    client.connect(&endpoint).unwrap();
    round_trip(&client, &server);
}

#[test]
fn missing_settings_are_reported_where_they_are_used() {
    let context = context();
    let bare = context.socket(SocketType::Rep).unwrap();
    bare.set_option(TOKEN_SERVER, &Value::from(true)).unwrap();
    let error = bare.bind("tcp://127.0.0.1:*").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains("TOKEN needs TOKEN_SECRET"),
        "{error}"
    );
    bare.set_option(TOKEN_SECRET, &Value::from("short"))
        .unwrap();
    let error = bare.bind("tcp://127.0.0.1:*").unwrap_err();
    assert!(error.to_string().contains("at least 16 bytes"), "{error}");
    let nameless = context.socket(SocketType::Req).unwrap();
    nameless
        .set_option(TOKEN_SECRET, &Value::from(SECRET))
        .unwrap();
    let error = nameless.connect("tcp://127.0.0.1:1").unwrap_err();
    assert!(error.to_string().contains("needs TOKEN_NAME"), "{error}");
}

#[test]
fn options_are_those_of_the_context() {
    let context = context();
    assert!(context.has("token") && !zeroxide::has("token"));
    let socket = context.socket(SocketType::Rep).unwrap();
    assert_eq!(socket.get_int(TOKEN_SERVER).unwrap(), 0);
    socket.set_option(TOKEN_SERVER, &Value::from(true)).unwrap();
    assert_eq!(socket.get_int(TOKEN_SERVER).unwrap(), 1);
    socket
        .set_option(TOKEN_NAME, &Value::from("sensor 7"))
        .unwrap();
    assert_eq!(
        socket.get_option(TOKEN_NAME).unwrap(),
        Value::from("sensor 7")
    );
    assert_eq!(socket.get_int(TOKEN_SERVER).unwrap(), 0);
    for (option, value) in [
        (TOKEN_SERVER, Value::Int(2)),
        (TOKEN_SERVER, Value::from("yes")),
        (TOKEN_SECRET, Value::Int(1)),
        (TOKEN_SECRET, Value::from("")),
    ] {
        let error = socket.set_option(option, &value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("TOKEN_S"), "{error}");
    }
    let other = Context::new();
    assert!(!other.has("token"));
    let error = other
        .socket(SocketType::Rep)
        .unwrap()
        .set_option(TOKEN_SERVER, &Value::from(true))
        .unwrap_err();
    assert!(
        error.to_string().contains("no socket option 2000"),
        "{error}"
    );
}

#[test]
fn taken_names_and_numbers_are_refused() {
    static SAME_NUMBER: MechanismSpec = MechanismSpec {
        name: "SEAL",
        settings: &[],
        ..MechanismSpec::new("SEAL", NUMBER, MECHANISM.start)
    };
    let context = context();
    for (spec, text) in [
        (&MECHANISM, "its name is taken"),
        (&SAME_NUMBER, "its number 100 is taken by TOKEN"),
    ] {
        let error = context.add_mechanism(spec).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddressInUse);
        assert!(error.to_string().contains(text), "{error}");
    }
}
