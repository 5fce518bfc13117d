//! Secrets do not stay in memory: those that were set, and those shown to a peer, are overwritten when they are
//! dropped.

mod common;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use common::{SocketExt, Watchdog, socket};
use zeroxide::{AllowList, Context, Passwords, Socket, SocketType, Value, curve_keypair, ids};

use SocketType::{Pull, Push};

/// A secret that exists nowhere else in memory, and here only in disguised form.
struct Secret {
    disguised: Vec<u8>,
}

const DISGUISE: u8 = 0x55;

impl Secret {
    fn new(mut bytes: Vec<u8>) -> Secret {
        bytes.iter_mut().for_each(|byte| *byte ^= DISGUISE);
        Secret { disguised: bytes }
    }

    /// Lends it for a moment.
    fn with<T>(&self, use_it: impl FnOnce(&[u8]) -> T) -> T {
        let mut plain: Vec<u8> = self.disguised.iter().map(|byte| byte ^ DISGUISE).collect();
        let result = use_it(&plain);
        plain.fill(0);
        std::hint::black_box(&plain);
        result
    }

    /// Lends it as the value of an option.
    fn set(&self, socket: &Socket, option: i32) {
        let mut value = self.with(|plain| Value::from(plain));
        socket.set_option(option, &value).unwrap();
        if let Value::Bytes(plain) = &mut value {
            plain.fill(0);
        }
        std::hint::black_box(&value);
    }

    /// How often it is in the heap of this process.
    fn found(&self) -> usize {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let memory = File::open("/proc/self/mem").unwrap();
        let mut found = 0;
        for line in maps.lines().filter(|line| is_heap(line)) {
            let (begin, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            let [begin, end] = [begin, end].map(|at| u64::from_str_radix(at, 16).unwrap());
            // Remains of calls on the stack are overwritten by later calls.
            let own_stack = (begin..end).contains(&(&raw const found as u64));
            if own_stack {
                continue;
            }
            let mut block = vec![0; (end - begin) as usize];
            if memory.read_exact_at(&mut block, begin).is_ok() {
                block.iter_mut().for_each(|byte| *byte ^= DISGUISE);
                let mut windows = block.windows(self.disguised.len());
                // Itself is in disguise twice then.
                found += windows.by_ref().filter(|it| *it == self.disguised).count();
                block.fill(0);
            }
        }
        found
    }
}

/// Writable memory that belongs to neither a file nor a stack.
fn is_heap(line: &str) -> bool {
    let fields: Vec<_> = line.split_whitespace().collect();
    fields[1].starts_with("rw") && fields.get(5).is_none_or(|name| *name == "[heap]")
}

#[test]
fn nothing_is_left_of_secrets() {
    let _watchdog = Watchdog::new("nothing_is_left_of_secrets");
    let _alone = common::alone();
    // Longer than anything that is kept inline somewhere.
    let password = Secret::new((0..120u8).map(|n| n.wrapping_mul(37) ^ 0x21).collect());
    let context = Context::new();
    let users = Passwords::new();
    password.with(|plain| users.add("somebody", plain.to_vec()));
    let pull = socket(&context, Pull);
    pull.password_server(&users).unwrap();
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let push = socket(&context, Push);
    push.bytes(ids::PLAIN_USERNAME, b"somebody");
    password.set(&push, ids::PLAIN_PASSWORD);
    push.connect(&endpoint).unwrap();
    push.put("let in");
    assert_eq!(pull.take(), "let in");
    assert!(password.found() > 0, "the test sees what is there");

    let (public, secret) = curve_keypair().unwrap();
    let (_, mine) = curve_keypair().unwrap();
    let keys = [secret, mine].map(|key| Secret::new(key.to_vec()));
    let server = socket(&context, Pull);
    keys[0].set(&server, ids::CURVE_SECRETKEY);
    keys[0].with(|key| {
        let key = key.try_into().unwrap();
        server.secure_server(key, &AllowList::anybody()).unwrap();
    });
    let endpoint = server.bind("tcp://127.0.0.1:*").unwrap();
    let client = socket(&context, Push);
    keys[1].with(|key| {
        let key = key.try_into().unwrap();
        client.secure_client(&public, Some(key)).unwrap();
    });
    client.connect(&endpoint).unwrap();
    client.put("let in");
    assert_eq!(server.take(), "let in");
    assert!(keys.iter().all(|key| key.found() > 0));

    drop((pull, push, server, client, users));
    context.term().unwrap();
    assert_eq!(password.found(), 0);
    assert_eq!(keys.map(|key| key.found()), [0, 0]);
}
