//! Options of sockets and contexts: any option, any value, any order.

use std::cell::OnceCell;

use zeroxide::{CONTEXT_OPTIONS, Context, OptionKind, SOCKET_OPTIONS, SocketType, Value, ids};

use super::Parts;
use super::peer::TYPES;
use crate::{Target, guard};

pub(super) const TARGET: Target = Target {
    name: "options",
    about: "options of sockets and contexts",
    run,
    seeds,
    words: &[
        b"127.0.0.1/8",
        b"::1/64",
        b"\0",
        b"X-A:b",
        b"rq:u?M8?D=J%*2^w)yCzrO/9t3Q6mJd1z3oo(<",
    ],
    longest: 400,
};

/// It would take over a descriptor of this process.
const NEVER: [i32; 1] = [ids::USE_FD];

thread_local! {
    static CONTEXT: OnceCell<Context> = const { OnceCell::new() };
}

fn run(input: &[u8]) {
    CONTEXT.with(|context| {
        let context = context.get_or_init(Context::new);
        // The first socket starts the threads of the context.
        drop(context.socket(TYPES[0]).expect("a socket"));
        guard::bounded(input.len(), || set(context, &mut Parts(input)));
    });
}

fn set(context: &Context, parts: &mut Parts<'_>) {
    let number = usize::from(parts.byte());
    if number > 0xf0 {
        return of_context(parts);
    }
    let socket = context
        .socket(TYPES[number % TYPES.len()])
        .expect("a socket");
    while !parts.is_empty() {
        let row = &SOCKET_OPTIONS[usize::from(parts.byte()) % SOCKET_OPTIONS.len()];
        let value = value(parts);
        if NEVER.contains(&row.id) || socket.set_option(row.id, &value).is_err() || !row.readable {
            continue;
        }
        let set = socket.get_option(row.id).expect("an option that was set");
        if row.kind != OptionKind::Bytes {
            socket
                .set_option(row.id, &set)
                .expect("the value that it has");
            assert_eq!(
                socket.get_option(row.id).expect("the same option"),
                set,
                "{}",
                row.name
            );
        }
    }
    for row in SOCKET_OPTIONS.iter() {
        let _ = socket.get_option(row.id);
    }
}

fn of_context(parts: &mut Parts<'_>) {
    let context = Context::new();
    while !parts.is_empty() {
        let row = &CONTEXT_OPTIONS[usize::from(parts.byte()) % CONTEXT_OPTIONS.len()];
        let value = value(parts);
        if context.set_option(row.id, &value).is_ok() {
            let _ = context.get_option(row.id);
        }
    }
}

/// A small number, a large one, or bytes.
fn value(parts: &mut Parts<'_>) -> Value {
    match parts.byte() {
        length @ 0..=100 => Value::Bytes(parts.take(usize::from(length)).to_vec()),
        101..=180 => Value::Int(i64::from(parts.byte()) - 2),
        _ => {
            let mut bytes = [0; 8];
            let taken = parts.take(8);
            bytes[..taken.len()].copy_from_slice(taken);
            Value::Int(i64::from_le_bytes(bytes))
        }
    }
}

/// Every option once, with a number and with a text.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    let dealer = TYPES
        .iter()
        .position(|known| *known == SocketType::Dealer)
        .unwrap_or(0) as u8;
    for number in 0..SOCKET_OPTIONS.len() as u8 {
        seeds.push(vec![
            dealer, number, 101, 3, number, 2, b'a', b'b', number, 200, 255, 255, 255, 127, 0, 0,
            0, 0,
        ]);
    }
    for number in 0..CONTEXT_OPTIONS.len() as u8 {
        seeds.push(vec![255, number, 101, 3, number, 2, b'a', b'b']);
    }
    seeds
}
