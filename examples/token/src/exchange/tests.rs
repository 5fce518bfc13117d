//! The two state machines against each other, with an attacker in between.

use std::sync::atomic::{AtomicU64, Ordering};

use zeroxide::SocketType;
use zeroxide::mechanisms::Greeted;

use super::*;

const SECRET_BYTES: &[u8] = b"0123456789abcdef";
const SERVER_PROPERTIES: &[u8] = b"\x0bSocket-Type\0\0\0\x04PULL";
const CLIENT_PROPERTIES: &[u8] = b"\x0bSocket-Type\0\0\0\x04PUSH";

/// Other bytes for each connection.
fn counted(bytes: &mut [u8]) -> bool {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    bytes.fill(7);
    bytes[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    true
}

fn side(as_server: bool, secret: &'static [u8], authenticate: bool) -> Box<dyn Mechanism> {
    let config = MechanismConfig {
        spec: &MECHANISM,
        parameters: vec![
            (SECRET, Bytes::from_static(secret)),
            (NAME, Bytes::from_static(b"sensor 7")),
        ],
    };
    let local = Local {
        socket_type: SocketType::Pull,
        as_server,
        authenticate,
        properties: match as_server {
            true => SERVER_PROPERTIES,
            false => CLIENT_PROPERTIES,
        },
        random: counted,
        peer: Greeted {
            minor: 1,
            libzmq: false,
        },
    };
    start(&config, local).ok().unwrap()
}

fn client() -> Box<dyn Mechanism> {
    side(false, SECRET_BYTES, false)
}

fn server() -> Box<dyn Mechanism> {
    side(true, SECRET_BYTES, false)
}

/// How a handshake ended: the peer that each side has met, and the first error.
struct Outcome {
    client: Option<Peer>,
    server: Option<Peer>,
    error: Option<CloseReason>,
}

/// Passes commands on until there are none, or one is refused. `attack` may change each; they are numbered.
fn run(
    client: &mut dyn Mechanism,
    server: &mut dyn Mechanism,
    mut attack: impl FnMut(usize, &mut Vec<u8>),
) -> Outcome {
    let mut outcome = Outcome {
        client: None,
        server: None,
        error: None,
    };
    let mut number = 0;
    loop {
        let mut to_server = true;
        let mut command = client.poll_command();
        if command.is_none() {
            to_server = false;
            command = server.poll_command();
        }
        outcome.client = outcome.client.or_else(|| client.poll_peer());
        outcome.server = outcome.server.or_else(|| server.poll_peer());
        let Some(mut command) = command else {
            return outcome;
        };
        attack(number, &mut command);
        number += 1;
        let handled = match to_server {
            true => server.handle_command(&command),
            false => client.handle_command(&command),
        };
        if let Err(error) = handled {
            outcome.error = Some(error);
            return outcome;
        }
    }
}

/// The commands of a handshake that succeeds.
fn transcript() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let outcome = run(&mut *client(), &mut *server(), |_, command| {
        all.push(command.clone());
    });
    assert!(outcome.client.is_some() && outcome.server.is_some());
    all
}

#[test]
fn both_sides_meet() {
    let outcome = run(&mut *client(), &mut *server(), |_, _| {});
    assert_eq!(outcome.error, None);
    let (at_client, at_server) = (outcome.client.unwrap(), outcome.server.unwrap());
    assert_eq!(at_server.user_id.as_deref(), Some("sensor 7"));
    assert_eq!(at_server.properties[0].1, "PUSH");
    assert_eq!((at_client.user_id, at_client.key), (None, None));
    assert_eq!(at_client.properties[0].1, "PULL");
}

#[test]
fn nothing_shows_the_token_or_is_repeated() {
    let (one, other) = (transcript(), transcript());
    for (first, second) in one.iter().zip(&other) {
        assert_ne!(first, second);
        let shows = first.windows(SECRET_BYTES.len());
        assert!(!shows.into_iter().any(|bytes| bytes == SECRET_BYTES));
    }
}

#[test]
fn a_client_with_another_token_is_refused() {
    let mut client = side(false, b"another token of some length", false);
    let outcome = run(&mut *client, &mut *server(), |_, _| {});
    let refused = ProtocolError::Cryptographic("INITIATE");
    assert_eq!(outcome.error, Some(refused.into()));
    assert!(outcome.client.is_none() && outcome.server.is_none());
}

#[test]
fn a_server_that_does_not_know_the_token_is_refused() {
    let mut client = client();
    client.poll_command().unwrap();
    let challenge = [CHALLENGE, &[7; NONCE]].concat();
    client.handle_command(&challenge).unwrap();
    let initiate = client.poll_command().unwrap();
    // The proof of the client does not prove the server.
    let reflected = &initiate[INITIATE.len()..];
    let ready = [command::READY, reflected].concat();
    let error = client.handle_command(&ready).unwrap_err();
    assert_eq!(error, ProtocolError::Cryptographic("READY").into());
    assert!(client.poll_peer().is_none());
}

#[test]
fn a_proof_of_another_connection_is_refused() {
    let recorded = transcript();
    let mut server = server();
    server.handle_command(&recorded[0]).unwrap();
    server.poll_command().unwrap();
    let error = server.handle_command(&recorded[2]).unwrap_err();
    assert_eq!(error, ProtocolError::Cryptographic("INITIATE").into());
    assert!(server.poll_peer().is_none());
}

#[test]
fn a_changed_bit_is_noticed_wherever_it_is() {
    for (number, command) in transcript().iter().enumerate() {
        for bit in 0..command.len() * 8 {
            let outcome = run(&mut *client(), &mut *server(), |at, command| {
                if at == number {
                    command[bit / 8] ^= 1 << (bit % 8);
                }
            });
            assert!(outcome.error.is_some(), "bit {bit} of command {number}");
            assert!(outcome.client.is_none());
            // A changed READY comes after the client has proved itself.
            assert_eq!(outcome.server.is_some(), number == 3);
        }
    }
}

#[test]
fn a_command_of_another_length_is_refused() {
    for (number, command) in transcript().iter().enumerate() {
        for length in (0..command.len()).chain([command.len() + 1, 60_000]) {
            let outcome = run(&mut *client(), &mut *server(), |at, command| {
                if at == number {
                    command.resize(length, b'x');
                }
            });
            assert!(
                outcome.error.is_some(),
                "{length} bytes of command {number}"
            );
            assert!(outcome.client.is_none());
        }
    }
}

#[test]
fn a_command_at_another_time_is_refused() {
    let all = transcript();
    for wrong in &all {
        for (number, right) in all.iter().enumerate() {
            if wrong == right {
                continue;
            }
            let outcome = run(&mut *client(), &mut *server(), |at, command| {
                if at == number {
                    command.clone_from(wrong);
                }
            });
            assert!(outcome.error.is_some() && outcome.client.is_none());
        }
    }
}

#[test]
fn a_proven_command_may_still_be_malformed() {
    let token = Token::new(SECRET_BYTES).unwrap();
    let mut server = server();
    let hello = [HELLO, &[1; NONCE], b"x".as_slice()].concat();
    server.handle_command(&hello).unwrap();
    let challenge = server.poll_command().unwrap();
    let about = Transcript {
        client_nonce: [1; NONCE],
        server_nonce: challenge[CHALLENGE.len()..].try_into().unwrap(),
        name: b"x".to_vec(),
    };
    let proof = token.prove(Side::Client, &about, b"\xffcut");
    let initiate = [INITIATE, &proof, b"\xffcut"].concat();
    let error = server.handle_command(&initiate).unwrap_err();
    assert!(matches!(
        error,
        CloseReason::Protocol(ProtocolError::Metadata(_))
    ));
}

#[test]
fn an_authenticator_is_asked_after_the_proof_and_before_the_answer() {
    let (mut client, mut server) = (client(), side(true, SECRET_BYTES, true));
    assert_eq!(server.poll_credentials(), None);
    let outcome = run(&mut *client, &mut *server, |_, _| {});
    assert!(outcome.client.is_none() && outcome.server.is_none() && outcome.error.is_none());
    assert_eq!(server.poll_credentials().unwrap(), ["sensor 7"]);
    assert_eq!(server.poll_credentials(), None);
    assert!(server.poll_command().is_none() && server.poll_peer().is_none());
    server.accept();
    let outcome = run(&mut *client, &mut *server, |_, _| {});
    assert!(outcome.client.is_some() && outcome.server.is_some());
}

#[test]
fn a_refused_client_learns_why() {
    let mut client = client();
    client.poll_command().unwrap();
    let error = server().error_command("400");
    let told = client.handle_command(&error).unwrap_err();
    assert_eq!(told, CloseReason::AuthFailed(400));
}

#[test]
fn without_random_bytes_nothing_starts() {
    let local = Local {
        socket_type: SocketType::Pull,
        as_server: true,
        authenticate: false,
        properties: b"",
        random: |_| false,
        peer: Greeted {
            minor: 1,
            libzmq: false,
        },
    };
    let config = MechanismConfig {
        spec: &MECHANISM,
        parameters: vec![(SECRET, Bytes::from_static(SECRET_BYTES))],
    };
    assert!(start(&config, local).is_err());
}
