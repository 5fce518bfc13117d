//! CURVE against an implementation of NaCl's boxes by others: whole handshakes in both roles and messages in both
//! directions, with random keys, properties and sizes. RFC 26 has the layouts.

use bytes::Bytes;
use crypto_box::aead::{Aead, Nonce};
use crypto_box::{PublicKey, SalsaBox, SecretKey};
use zeroxide_fuzz::mutate::Chance;
use zeroxide_proto::mechanisms::curve::{CURVE, KeyPair, SECRET_KEY, SERVER_KEY};
use zeroxide_proto::mechanisms::{Cipher, Content, Greeted, Local, Mechanism, system_random};
use zeroxide_proto::{MechanismConfig, SocketType};

/// A connection per role and round.
const ROUNDS: u64 = 60;

/// The box of two keys, and a nonce of 24 bytes: a prefix and the rest.
struct Reference(SalsaBox);

impl Reference {
    fn new(ours: &[u8; 32], theirs: &[u8]) -> Reference {
        let theirs = PublicKey::from_slice(theirs).expect("32 bytes");
        Reference(SalsaBox::new(&theirs, &SecretKey::from_bytes(*ours)))
    }

    fn seal(&self, prefix: &[u8], rest: &[u8], content: &[u8]) -> Vec<u8> {
        self.0
            .encrypt(&nonce(prefix, rest), content)
            .expect("sealed")
    }

    fn open(&self, prefix: &[u8], rest: &[u8], sealed: &[u8]) -> Vec<u8> {
        self.0
            .decrypt(&nonce(prefix, rest), sealed)
            .expect("a box that the reference opens")
    }
}

fn nonce(prefix: &[u8], rest: &[u8]) -> Nonce<SalsaBox> {
    *Nonce::<SalsaBox>::from_slice(&[prefix, rest].concat())
}

fn bytes(chance: &mut Chance, count: usize) -> Vec<u8> {
    (0..count).map(|_| chance.number() as u8).collect()
}

fn key(chance: &mut Chance) -> [u8; 32] {
    bytes(chance, 32).try_into().expect("32 bytes")
}

fn public(secret: &[u8; 32]) -> [u8; 32] {
    *SecretKey::from_bytes(*secret).public_key().as_bytes()
}

/// A valid property with a random value.
fn properties(chance: &mut Chance) -> Vec<u8> {
    let mut body = Vec::new();
    let count = chance.below(400);
    zeroxide_proto::command::put_property(&mut body, "X-Random", &bytes(chance, count));
    body
}

fn start(
    as_server: bool,
    secret: [u8; 32],
    server: [u8; 32],
    properties: &[u8],
) -> Box<dyn Mechanism> {
    let mut parameters = vec![(SECRET_KEY, Bytes::copy_from_slice(&secret))];
    if !as_server {
        parameters.push((SERVER_KEY, Bytes::copy_from_slice(&server)));
    }
    let local = Local {
        socket_type: SocketType::Pair,
        as_server,
        authenticate: false,
        properties,
        random: system_random,
        peer: Greeted {
            minor: 1,
            libzmq: true,
        },
    };
    match (CURVE.start)(
        &MechanismConfig {
            spec: &CURVE,
            parameters,
        },
        local,
    ) {
        Ok(mechanism) => mechanism,
        Err(reason) => panic!("{reason}"),
    }
}

#[test]
fn public_keys_are_the_same() {
    let mut chance = Chance::new(1);
    for _ in 0..ROUNDS {
        let secret = key(&mut chance);
        assert_eq!(KeyPair::from_secret(secret).public, public(&secret));
    }
}

#[test]
fn our_server_understands_the_reference() {
    for seed in 0..ROUNDS {
        let chance = &mut Chance::new(seed);
        let (server, client, transient) = (key(chance), key(chance), key(chance));
        let (ours, theirs) = (properties(chance), properties(chance));
        let mut mechanism = start(true, server, public(&server), &ours);

        let hello = Reference::new(&transient, &public(&server));
        let sealed = hello.seal(b"CurveZMQHELLO---", &1u64.to_be_bytes(), &[0; 64]);
        let command = [
            b"\x05HELLO\x01\0",
            &[0; 72][..],
            &public(&transient),
            &1u64.to_be_bytes(),
            &sealed,
        ]
        .concat();
        mechanism.handle_command(&command).expect("HELLO");

        let welcome = mechanism.poll_command().expect("WELCOME");
        let (name, rest) = welcome.split_at(8);
        assert_eq!(name, b"\x07WELCOME");
        let content = hello.open(b"WELCOME-", &rest[..16], &rest[16..]);
        let (session, cookie) = content.split_at(32);
        assert_eq!(cookie.len(), 96);

        let vouch_nonce = bytes(chance, 16);
        let vouched = [public(&transient), public(&server)].concat();
        let vouch = Reference::new(&client, session).seal(b"VOUCH---", &vouch_nonce, &vouched);
        let shared = Reference::new(&transient, session);
        let content = [&public(&client)[..], &vouch_nonce, &vouch, &theirs].concat();
        let sealed = shared.seal(b"CurveZMQINITIATE", &2u64.to_be_bytes(), &content);
        let command = [b"\x08INITIATE", cookie, &2u64.to_be_bytes(), &sealed].concat();
        mechanism.handle_command(&command).expect("INITIATE");

        let ready = mechanism.poll_command().expect("READY");
        assert_eq!(&ready[..6], b"\x05READY");
        assert_eq!(
            shared.open(b"CurveZMQREADY---", &ready[6..14], &ready[14..]),
            ours
        );
        let peer = mechanism.poll_peer().expect("a peer");
        assert_eq!(peer.key.as_deref(), Some(&public(&client)[..]));
        assert_eq!(peer.properties[0].1, theirs[13..]);
        let cipher = peer.cipher.expect("a cipher");
        messages(
            cipher,
            &shared,
            [b"CurveZMQMESSAGES", b"CurveZMQMESSAGEC"],
            2,
            chance,
        );
    }
}

#[test]
fn our_client_understands_the_reference() {
    for seed in 0..ROUNDS {
        let chance = &mut Chance::new(1000 + seed);
        let (server, client, session) = (key(chance), key(chance), key(chance));
        let (ours, theirs) = (properties(chance), properties(chance));
        let mut mechanism = start(false, client, public(&server), &ours);

        let hello = mechanism.poll_command().expect("HELLO");
        assert_eq!(hello.len(), 200);
        let (head, rest) = hello.split_at(80);
        assert_eq!(
            (&head[..8], &head[8..]),
            (&b"\x05HELLO\x01\0"[..], &[0; 72][..])
        );
        let (transient, rest) = rest.split_at(32);
        let opening = Reference::new(&server, transient);
        assert_eq!(
            opening.open(b"CurveZMQHELLO---", &rest[..8], &rest[8..]),
            [0; 64]
        );

        let (cookie, nonce) = (bytes(chance, 96), bytes(chance, 16));
        let content = [&public(&session)[..], &cookie].concat();
        let sealed = opening.seal(b"WELCOME-", &nonce, &content);
        mechanism
            .handle_command(&[b"\x07WELCOME", &nonce[..], &sealed].concat())
            .expect("WELCOME");

        let initiate = mechanism.poll_command().expect("INITIATE");
        let (name, rest) = initiate.split_at(9);
        assert_eq!((name, &rest[..96]), (&b"\x08INITIATE"[..], &cookie[..]));
        let shared = Reference::new(&session, transient);
        let content = shared.open(b"CurveZMQINITIATE", &rest[96..104], &rest[104..]);
        assert_eq!(content[..32], public(&client));
        let vouch = Reference::new(&session, &public(&client));
        let vouched = vouch.open(b"VOUCH---", &content[32..48], &content[48..128]);
        assert_eq!(vouched, [transient, &public(&server)].concat());
        assert_eq!(content[128..], ours);

        let sealed = shared.seal(b"CurveZMQREADY---", &1u64.to_be_bytes(), &theirs);
        mechanism
            .handle_command(&[b"\x05READY", &1u64.to_be_bytes()[..], &sealed].concat())
            .expect("READY");
        let peer = mechanism.poll_peer().expect("a peer");
        assert_eq!(peer.properties[0].1, theirs[13..]);
        let cipher = peer.cipher.expect("a cipher");
        messages(
            cipher,
            &shared,
            [b"CurveZMQMESSAGEC", b"CurveZMQMESSAGES"],
            1,
            chance,
        );
    }
}

/// Messages of random sizes in both directions. `received` is the number of the last command from the reference.
fn messages(
    mut cipher: Box<dyn Cipher>,
    shared: &Reference,
    [ours, theirs]: [&[u8; 16]; 2],
    mut received: u64,
    chance: &mut Chance,
) {
    for _ in 0..20 {
        let count = match chance.below(4) {
            0 => chance.below(40),
            1 => chance.below(300),
            2 => chance.below(5000),
            // Around the lengths at which the cipher changes its way.
            _ => (64 * (1 + chance.below(20)) + chance.below(5)).saturating_sub(34),
        };
        let body = bytes(chance, count);
        let command = chance.below(4) == 0;
        let more = !command && chance.below(2) == 0;
        let flags = u8::from(more) | u8::from(command) << 1;
        let content = Content {
            command,
            more,
            prefix: &[],
            body: &body,
        };
        let mut sealed = Vec::new();
        cipher
            .seal(content, &mut sealed)
            .expect("a number for the frame");
        assert_eq!(&sealed[..8], b"\x07MESSAGE");
        let opened = shared.open(ours, &sealed[8..16], &sealed[16..]);
        assert_eq!((opened[0], &opened[1..]), (flags, &body[..]));

        received += 1;
        let sealed = shared.seal(
            theirs,
            &received.to_be_bytes(),
            &[&[flags], &body[..]].concat(),
        );
        let mut message = [b"\x07MESSAGE", &received.to_be_bytes()[..], &sealed].concat();
        let opened = cipher
            .open(&mut message)
            .expect("a message of the reference");
        assert_eq!(message[opened.start..], body);
        assert_eq!((opened.command, opened.more), (flags == 2, flags == 1));
    }
}
