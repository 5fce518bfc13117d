//! CURVE byte by byte, compared with libsodium's results for the same keys and random bytes, and with every byte of
//! every command altered.

mod wire;

use wire::curve::{
    alone, client_config, client_keys, hex, local, not_random, server_config, server_keys,
};
use zeroxide_proto::mechanisms::curve::CURVE;
use zeroxide_proto::mechanisms::{Cipher, Content, Local, Mechanism, Opened, Peer, Random};
use zeroxide_proto::{CloseReason, ProtocolError};

const HELLO: &str = "0548454c4c4f010000000000000000000000000000000000000000000000000000000000000000000000000000000000
    0000000000000000000000000000000000000000000000000000000000000000f0b4fd8be480349293ab61f0505ebb5b
    afccdf8a4127de221e6ef3db20e03d2900000000000000015cc044fc9995cf5e3dfb44831c54caa20b23e7ce6b2f6493
    3bc5e8a3e9eee636b114b6a66282c05bdccc149d3e325d444008ac1031ca6a825248ccdacd9b1c67c6d382cfacbb4b70
    462f37c8061ed9e6";
const WELCOME: &str = "0757454c434f4d45b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3edbcfd2aaa103847d50e1f326d036d96b7a8f9a465a571
    3a49ada569de651985d42061013e23d0f3ac75d3a3e278a43a88309fb208cc33f9c32406dbbde7553862f31867029b41
    dc8bc6f76331678eb48da3abe10782d46ca6b31c96b3706feee746f0061322e38f47a17b5d06f89b871e50f7446c53f8
    25ccd1f0d2c4caa0a53fb7a8aec1e0f6fa0079d0bbac8b76";
const INITIATE: &str = "08494e495449415445b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2414550c8ee24577b742a22e4d9f62249d36fc3caad7dce
    92a0d8347a656058331b5d1fcb893bf70546ab07e85e40f2d149131de146881127a92f53476d7386c0a6857bc69dbeef
    26f8296c5df3ea56ac000000000000000295dd3c993b8f912f738b3b4e7950a152c06019e7706eaee8b26f2aad72ece2
    ade51de95759339303be8a76ad070e7edef636753a717b262ea2d9ae90681e142b5696da115e46bc425058e3ab07a8d7
    53db9c375fa4a934371f78868476356d4664e7c51853abfbd7e5436902aef7937af541f67d2721261addd8376ccb400c
    b12d7a9e83d2cdbc30615289630c070cbdb8cca35fb4660a655cba1a04bc272daa8a70658f";
const READY: &str = "055245414459000000000000000111d0e731bdca7e9c800d6d5160349d2f3d1ce22a8c7239998cb82bb39e792274e4e0
    bf19";
const MESSAGE: &str =
    "074d45535341474500000000000000038809cc1ccc46c344c8a72bbd38283c9f20f38bb2c086";
const LAST_MESSAGE: &str = "074d455353414745000000000000000444dc1028e6391e1a8690424a2a2cf7aea8";
const PING: &str =
    "074d4553534147450000000000000002d757cb2da27d4c8d51b3c4e99f69d55f68f34c7a39e062ec";

fn with(random: Random, as_server: bool) -> Local<'static> {
    Local {
        random,
        ..local(as_server)
    }
}

fn client() -> Box<dyn Mechanism> {
    alone(&CURVE, &client_config(), with(not_random(0xa0), false))
}

fn server() -> Box<dyn Mechanism> {
    alone(&CURVE, &server_config(), with(not_random(0xb0), true))
}

#[track_caller]
fn says(mechanism: &mut dyn Mechanism, expected: &str) {
    let said = mechanism.poll_command().expect("a command");
    assert!(said == hex(expected), "{}", said.escape_ascii());
    assert!(mechanism.poll_command().is_none());
}

fn content(body: &[u8]) -> Content<'_> {
    Content {
        command: false,
        more: false,
        prefix: b"",
        body,
    }
}

/// Both ends of a connection after their handshake.
fn met() -> (Peer, Peer) {
    let mut client = client();
    says(&mut *client, HELLO);
    let mut server = server();
    server.handle_command(&hex(HELLO)).unwrap();
    says(&mut *server, WELCOME);
    client.handle_command(&hex(WELCOME)).unwrap();
    says(&mut *client, INITIATE);
    server.handle_command(&hex(INITIATE)).unwrap();
    says(&mut *server, READY);
    client.handle_command(&hex(READY)).unwrap();
    (client.poll_peer().unwrap(), server.poll_peer().unwrap())
}

fn ciphers() -> (Box<dyn Cipher>, Box<dyn Cipher>) {
    let (server, client) = met();
    (server.cipher.unwrap(), client.cipher.unwrap())
}

#[test]
fn commands_are_equal_to_those_of_libsodium() {
    let (server, client) = met();
    assert_eq!(server.properties[0].1, "PULL");
    assert_eq!(client.properties[0].1, "PUSH");
    let (mut sender, mut receiver) = (server.cipher.unwrap(), client.cipher.unwrap());
    let mut sent = b"before".to_vec();
    let first = Content {
        command: false,
        more: true,
        prefix: b"he",
        body: b"llo",
    };
    sender.seal(first, &mut sent).unwrap();
    assert_eq!(sent[6..], hex(MESSAGE));
    assert_eq!(sent.len() - 6, sender.overhead() + 5);
    let opened = receiver.open(&mut sent[6..]).unwrap();
    assert_eq!(&sent[6 + opened.start..], b"hello");
    assert!(opened.more && !opened.command);

    let mut last = Vec::new();
    sender.seal(content(b""), &mut last).unwrap();
    assert_eq!(last, hex(LAST_MESSAGE));
    let opened = receiver.open(&mut last).unwrap();
    let expected = Opened {
        start: 33,
        command: false,
        more: false,
    };
    assert_eq!(opened, expected);

    let mut ping = Vec::new();
    let command = Content {
        command: true,
        more: false,
        prefix: b"\x04PING",
        body: &[0, 0],
    };
    receiver.seal(command, &mut ping).unwrap();
    assert_eq!(ping, hex(PING));
    assert!(sender.open(&mut ping).unwrap().command);
}

/// Every command that differs from this one in one bit of one byte, in the lowest and in the highest; and those
/// that are shorter or longer.
fn altered(command: &str) -> impl Iterator<Item = Vec<u8>> {
    let command = hex(command);
    let len = command.len();
    let flipped = (0..len * 2).map({
        let command = command.clone();
        move |at| {
            let mut altered = command.clone();
            altered[at / 2] ^= if at % 2 == 0 { 0x01 } else { 0x80 };
            altered
        }
    });
    let cut = (0..len).map(move |end| command[..end].to_vec());
    flipped.chain(cut)
}

/// A mechanism that refuses a command keeps its state. If the right command is accepted at the end, only the alteration
/// was wrong.
#[track_caller]
fn refuses_all_but(mechanism: &mut dyn Mechanism, command: &str) {
    let longer = [&hex(command)[..], &[0]].concat();
    for altered in altered(command).chain([longer]) {
        let Err(CloseReason::Protocol(error)) = mechanism.handle_command(&altered) else {
            panic!("taken: {}", altered.escape_ascii());
        };
        assert!(error.code() >= 0x1000_0000);
        assert!(mechanism.poll_command().is_none());
        assert!(mechanism.poll_credentials().is_none());
        assert!(mechanism.poll_peer().is_none());
    }
    mechanism.handle_command(&hex(command)).unwrap();
}

#[test]
fn every_altered_byte_of_a_hello_is_noticed() {
    let mut server = server();
    refuses_all_but(&mut *server, HELLO);
    says(&mut *server, WELCOME);
}

#[test]
fn every_altered_byte_of_a_welcome_is_noticed() {
    let mut client = client();
    says(&mut *client, HELLO);
    refuses_all_but(&mut *client, WELCOME);
    says(&mut *client, INITIATE);
}

#[test]
fn every_altered_byte_of_an_initiate_is_noticed() {
    let mut server = server();
    server.handle_command(&hex(HELLO)).unwrap();
    says(&mut *server, WELCOME);
    refuses_all_but(&mut *server, INITIATE);
    says(&mut *server, READY);
}

#[test]
fn every_altered_byte_of_a_ready_is_noticed() {
    let mut client = client();
    says(&mut *client, HELLO);
    client.handle_command(&hex(WELCOME)).unwrap();
    says(&mut *client, INITIATE);
    refuses_all_but(&mut *client, READY);
    assert!(client.poll_peer().is_some());
}

#[test]
fn every_altered_byte_of_a_message_is_noticed() {
    let (_, mut receiver) = ciphers();
    let longer = [&hex(MESSAGE)[..], &[0]].concat();
    for mut altered in altered(MESSAGE).chain([longer]) {
        assert!(receiver.open(&mut altered).is_err());
    }
    assert!(receiver.open(&mut hex(MESSAGE)).is_ok());
}

#[test]
fn messages_that_are_repeated_lost_or_swapped_are_noticed() {
    let sequence = |expected, got| Err(ProtocolError::Sequence { expected, got });
    let (mut sender, mut receiver) = ciphers();
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for body in [b"a", b"b", b"c"] {
        let mut message = Vec::new();
        sender.seal(content(body), &mut message).unwrap();
        messages.push(message);
    }
    let mut open = |at: usize| receiver.open(&mut messages[at].clone());
    assert_eq!(open(1), sequence(3, 4));
    assert!(open(0).is_ok());
    assert_eq!(open(0), sequence(4, 3));
    assert_eq!(open(2), sequence(4, 5));
    assert!(open(1).is_ok());
    assert!(open(2).is_ok());
    assert_eq!(open(2), sequence(6, 5));
    let error = sequence(6, 5).unwrap_err();
    assert_eq!(error.code(), 0x1000_0002);
}

#[test]
fn messages_do_not_open_on_the_way_back_or_on_another_connection() {
    let (mut client, _) = ciphers();
    let mut message = Vec::new();
    client
        .seal(content(b"to the server"), &mut message)
        .unwrap();
    // The server's first message has another number, which is not secret.
    message[15] = 2;
    let reflected = client.open(&mut message.clone());
    assert_eq!(reflected, Err(ProtocolError::Cryptographic("MESSAGE")));

    // The same two with other transient keys.
    let mut server = alone(&CURVE, &server_config(), with(not_random(0xd0), true));
    let mut other = alone(&CURVE, &client_config(), with(not_random(0xc0), false));
    for _ in 0..2 {
        let to_server = other.poll_command().unwrap();
        not_random(0xd0);
        server.handle_command(&to_server).unwrap();
        other
            .handle_command(&server.poll_command().unwrap())
            .unwrap();
    }
    let mut receiver = server.poll_peer().unwrap().cipher.unwrap();
    let replayed = receiver.open(&mut hex(MESSAGE));
    assert_eq!(replayed, Err(ProtocolError::Cryptographic("MESSAGE")));
}

#[test]
fn an_initiate_does_not_work_on_another_connection() {
    let mut server = alone(&CURVE, &server_config(), with(not_random(0xd0), true));
    server.handle_command(&hex(HELLO)).unwrap();
    assert!(server.poll_command().unwrap() != hex(WELCOME));
    let replayed = server.handle_command(&hex(INITIATE)).unwrap_err();
    let expected = ProtocolError::Cryptographic("the cookie of INITIATE");
    assert_eq!(replayed, CloseReason::Protocol(expected));
}

#[test]
fn an_unexpected_body_is_named_in_the_error() {
    let (_, mut receiver) = ciphers();
    let mut open = |body: &[u8]| receiver.open(&mut body.to_vec()).unwrap_err();
    let in_clear = open(b"hello, in clear");
    assert_eq!(in_clear.code(), 0x1000_0011);
    let command = open(b"\x09SUBSCRIBEtopic");
    assert_eq!(command.to_string(), "expected MESSAGE, got SUBSCRIBE");
    assert_eq!(command.code(), 0x1000_0001);
    let short = open(&hex(LAST_MESSAGE)[..32]);
    assert_eq!(short.code(), 0x1000_0012);
}

#[test]
fn commands_out_of_turn_are_refused() {
    let error = b"\x05ERROR\x03400".to_vec();
    let all = [hex(HELLO), hex(WELCOME), hex(INITIATE), hex(READY), error];
    let unexpected = |mechanism: &mut dyn Mechanism, welcome: &[usize]| {
        for (at, command) in all.iter().enumerate() {
            if welcome.contains(&at) {
                continue;
            }
            let Err(CloseReason::Protocol(error)) = mechanism.handle_command(command) else {
                panic!("command {at} is taken");
            };
            assert_eq!(error.code(), 0x1000_0001);
        }
    };
    let mut client = client();
    unexpected(&mut *client, &[]);
    client.poll_command().unwrap();
    unexpected(&mut *client, &[1, 4]);
    client.handle_command(&hex(WELCOME)).unwrap();
    client.poll_command().unwrap();
    unexpected(&mut *client, &[3, 4]);
    client.handle_command(&hex(READY)).unwrap();
    unexpected(&mut *client, &[]);

    let mut server = server();
    unexpected(&mut *server, &[0]);
    server.handle_command(&hex(HELLO)).unwrap();
    server.poll_command().unwrap();
    unexpected(&mut *server, &[2]);
    server.handle_command(&hex(INITIATE)).unwrap();
    server.poll_command().unwrap();
    unexpected(&mut *server, &[]);
}

#[test]
fn a_client_takes_no_for_an_answer() {
    for before in [&[][..], &[WELCOME]] {
        let mut client = client();
        client.poll_command().unwrap();
        for command in before {
            client.handle_command(&hex(command)).unwrap();
            client.poll_command().unwrap();
        }
        let refused = client.handle_command(b"\x05ERROR\x03400").unwrap_err();
        assert_eq!(refused, CloseReason::AuthFailed(400));
    }
}

#[test]
fn keys_are_not_shown() {
    let shown = format!(
        "{:?} {:?} {:?} {:?}",
        client_config(),
        server_config(),
        client_keys(),
        server_keys()
    );
    // As numbers or as text.
    for secret in ["67, 67", "83, 83", "CC", "SS"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
