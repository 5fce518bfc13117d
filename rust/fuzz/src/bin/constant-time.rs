//! CURVE with secrets that memcheck takes for undefined bytes, so that it reports every branch and every address that
//! depends on them: a peer could learn secrets from the time that these take. The stage `constant time` runs this under
//! valgrind. With the argument `leak`, a branch depends on a secret, which has to be reported.

use std::hint::black_box;

use bytes::Bytes;
use zeroxide_fuzz::instruments::{hide, reveal};
use zeroxide_proto::mechanisms::curve::{CURVE, KeyPair, SECRET_KEY, SERVER_KEY};
use zeroxide_proto::mechanisms::{Cipher, Content, Greeted, Local, Mechanism, system_random};
use zeroxide_proto::{MechanismConfig, SocketType};

fn main() {
    let [server, client] = [(); 2].map(|()| secret());
    let public = KeyPair::from_secret(server).public;
    reveal(&public);
    let mut server = start(true, vec![(SECRET_KEY, Bytes::copy_from_slice(&server))]);
    let keys = vec![
        (SECRET_KEY, Bytes::copy_from_slice(&client)),
        (SERVER_KEY, Bytes::copy_from_slice(&public)),
    ];
    let mut client_side = start(false, keys);
    for _ in 0..2 {
        pass(&mut *client_side, &mut *server);
        pass(&mut *server, &mut *client_side);
    }
    let (mut to, mut from) = (meet(&mut *client_side), meet(&mut *server));
    for length in [0, 1, 30, 31, 63, 64, 65, 200, 1000, 5000] {
        carry(&mut *to, &mut *from, length);
        carry(&mut *from, &mut *to, length);
    }
    if std::env::args().any(|argument| argument == "leak") {
        leak(&client);
    }
    println!("the time taken depends on no secret, unless memcheck reports one");
}

/// A branch that depends on a secret.
#[inline(never)]
fn leak(secret: &[u8; 32]) {
    if secret[0] == 7 {
        black_box(());
    }
}

fn secret() -> [u8; 32] {
    let mut key = [0; 32];
    hidden(&mut key);
    key
}

/// Random bytes that are secret.
fn hidden(bytes: &mut [u8]) -> bool {
    let filled = system_random(bytes);
    hide(bytes);
    filled
}

fn start(as_server: bool, parameters: Vec<(&'static str, Bytes)>) -> Box<dyn Mechanism> {
    let local = Local {
        socket_type: SocketType::Pair,
        as_server,
        authenticate: false,
        properties: b"\x0bSocket-Type\0\0\0\x04PAIR",
        random: hidden,
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

/// Carries a command, which is public.
fn pass(from: &mut dyn Mechanism, to: &mut dyn Mechanism) {
    let command = from.poll_command().expect("a command");
    reveal(&command);
    if let Err(reason) = to.handle_command(&command) {
        panic!("{reason}");
    }
}

/// Takes the cipher. What else is known of the peer is dropped, which takes as long as its properties are large.
#[inline(never)]
fn meet(mechanism: &mut dyn Mechanism) -> Box<dyn Cipher> {
    mechanism
        .poll_peer()
        .and_then(|peer| peer.cipher)
        .expect("a cipher")
}

/// Carries a message whose content is secret, too.
#[inline(never)]
fn carry(from: &mut dyn Cipher, to: &mut dyn Cipher, length: usize) {
    let mut body = vec![0; length];
    hidden(&mut body);
    let content = Content {
        command: false,
        more: false,
        prefix: &[],
        body: &body,
    };
    let mut sealed = Vec::new();
    from.seal(content, &mut sealed)
        .expect("a number for the frame");
    reveal(&sealed);
    let opened = to.open(&mut sealed).expect("a message");
    black_box(&sealed[opened.start..]);
}
