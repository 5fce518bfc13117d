use super::*;
use crate::access::{Gate, Passwords};

fn options(socket_type: SocketType) -> Options {
    Options::new(socket_type, &ContextOptions::default())
}

fn id(name: &str) -> i32 {
    let row = SOCKET_OPTIONS
        .iter()
        .find(|row| row.name == name || row.aliases.contains(&name));
    row.unwrap_or_else(|| panic!("no row {name}")).id
}

/// A value within the row's limits, different from the default if possible.
fn fitting(row: &OptionRow) -> Value {
    match row.limits {
        table::Limits::Range(low, high) => Value::Int(100.clamp(low, high)),
        table::Limits::Length(low, high) => Value::Bytes(vec![b'1'; 1.clamp(low, high)]),
    }
}

#[test]
fn the_table_is_sorted_and_its_names_are_unique() {
    assert!(
        SOCKET_OPTIONS
            .windows(2)
            .all(|pair| pair[0].id < pair[1].id)
    );
    let mut names: Vec<_> = SOCKET_OPTIONS
        .iter()
        .flat_map(|row| row.aliases.iter().chain([&row.name]))
        .collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(SOCKET_OPTIONS.iter().all(|row| row.doc.ends_with('.')));
}

#[test]
fn every_row_has_the_documented_effect() {
    for row in SOCKET_OPTIONS.iter() {
        let mut options = options(SocketType::Dealer);
        let mut value = fitting(row);
        match row.name {
            "TCP_ACCEPT_FILTER" => value = Value::from("10.0.0.0/8"),
            "METADATA" => value = Value::from("X-name:value"),
            "CURVE_PUBLICKEY" | "CURVE_SECRETKEY" | "CURVE_SERVERKEY" => {
                value = Value::from("JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6");
            }
            _ => {}
        }
        let set = options.set(row.id, &value);
        assert_eq!(set.is_ok(), row.writable, "{}: {set:?}", row.name);
        let answered_by_socket =
            ["RCVMORE", "FD", "EVENTS", "TOPICS_COUNT", "LAST_ENDPOINT"].contains(&row.name);
        let got = options.get(row.id);
        assert_eq!(
            got.is_ok(),
            row.readable && !answered_by_socket,
            "{}: {got:?}",
            row.name
        );
        if row.kind == OptionKind::Bool && value != Value::Int(0) {
            value = Value::Int(1);
        }
        if let (Ok(()), Ok(got)) = (set, got) {
            assert_eq!(got, value, "{} reads what was written", row.name);
        }
    }
}

#[test]
fn values_outside_the_limits_are_refused_with_the_limits() {
    for row in SOCKET_OPTIONS.iter().filter(|row| row.writable) {
        let mut options = options(SocketType::Dealer);
        let before = options.clone();
        match row.limits {
            table::Limits::Range(low, high) => {
                for wrong in [low.checked_sub(1), high.checked_add(1)]
                    .into_iter()
                    .flatten()
                {
                    let error = options.set(row.id, &Value::Int(wrong)).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Invalid, "{}", row.name);
                    assert!(error.to_string().contains(row.name), "{error}");
                }
                assert!(
                    options.set(row.id, &Value::Bytes(vec![0; 4])).is_err(),
                    "{}",
                    row.name
                );
            }
            table::Limits::Length(low, high) => {
                for wrong in [low.checked_sub(1), high.checked_add(1)]
                    .into_iter()
                    .flatten()
                {
                    assert!(
                        options
                            .set(row.id, &Value::Bytes(vec![b'1'; wrong]))
                            .is_err(),
                        "{}",
                        row.name
                    );
                }
                assert!(options.set(row.id, &Value::Int(1)).is_err(), "{}", row.name);
            }
        }
        assert_eq!(
            format!("{before:?}"),
            format!("{options:?}"),
            "{} is unchanged",
            row.name
        );
    }
}

#[test]
fn defaults_are_libzmqs() {
    let expected = [
        ("AFFINITY", 0),
        ("RATE", 100),
        ("RECOVERY_IVL", 10000),
        ("SNDBUF", -1),
        ("RCVBUF", -1),
        ("TYPE", 5),
        ("LINGER", -1),
        ("RECONNECT_IVL", 100),
        ("BACKLOG", 100),
        ("RECONNECT_IVL_MAX", 0),
        ("MAXMSGSIZE", -1),
        ("SNDHWM", 1000),
        ("RCVHWM", 1000),
        ("MULTICAST_HOPS", 1),
        ("RCVTIMEO", -1),
        ("SNDTIMEO", -1),
        ("IPV4ONLY", 1),
        ("TCP_KEEPALIVE", -1),
        ("TCP_KEEPALIVE_CNT", -1),
        ("TCP_KEEPALIVE_IDLE", -1),
        ("TCP_KEEPALIVE_INTVL", -1),
        ("IMMEDIATE", 0),
        ("IPV6", 0),
        ("MECHANISM", 0),
        ("PLAIN_SERVER", 0),
        ("CURVE_SERVER", 0),
        ("CONFLATE", 0),
        ("TOS", 0),
        ("HANDSHAKE_IVL", 30000),
        ("INVERT_MATCHING", 0),
        ("HEARTBEAT_IVL", 0),
        ("HEARTBEAT_TTL", 0),
        ("HEARTBEAT_TIMEOUT", -1),
        ("CONNECT_TIMEOUT", 0),
        ("TCP_MAXRT", 0),
        ("THREAD_SAFE", 0),
        ("MULTICAST_MAXTPDU", 1500),
        ("VMCI_BUFFER_SIZE", 0),
        ("VMCI_CONNECT_TIMEOUT", -1),
        ("USE_FD", -1),
    ];
    let options = options(SocketType::Dealer);
    for (name, value) in expected {
        assert_eq!(options.get(id(name)).unwrap(), Value::Int(value), "{name}");
    }
    for name in ["ROUTING_ID", "ZAP_DOMAIN", "SOCKS_PROXY", "BINDTODEVICE"] {
        assert_eq!(options.get(id(name)).unwrap(), Value::from(""), "{name}");
    }
}

#[test]
fn linger_depends_on_the_context() {
    let linger = |blocky| {
        let context = ContextOptions {
            blocky,
            ..ContextOptions::default()
        };
        Options::new(SocketType::Push, &context)
            .get(id("LINGER"))
            .unwrap()
    };
    assert_eq!(linger(true), Value::Int(-1));
    assert_eq!(linger(false), Value::Int(0));
    let context = ContextOptions {
        ipv6: true,
        ..ContextOptions::default()
    };
    assert!(Options::new(SocketType::Push, &context).ipv6);
}

#[test]
fn durations_keep_their_special_values() {
    let mut options = options(SocketType::Push);
    for (name, values) in [
        ("LINGER", [-1, 0, 5]),
        ("RECONNECT_IVL", [-1, 0, 5]),
        ("RECONNECT_IVL_MAX", [0, 1, 30000]),
        ("RCVTIMEO", [-1, 0, i32::MAX.into()]),
        ("HEARTBEAT_TIMEOUT", [0, 1, 5]),
        ("TCP_KEEPALIVE_IDLE", [-1, 1, 32767]),
    ] {
        for value in values {
            options.set(id(name), &Value::Int(value)).unwrap();
            assert_eq!(options.get(id(name)).unwrap(), Value::Int(value), "{name}");
        }
    }
    options
        .set(id("HEARTBEAT_TTL"), &Value::Int(6_553_599))
        .unwrap();
    assert_eq!(
        options.get(id("HEARTBEAT_TTL")).unwrap(),
        Value::Int(6_553_500)
    );
    options.set(id("AFFINITY"), &Value::Int(-1)).unwrap();
    assert_eq!(options.affinity, u64::MAX);
}

#[test]
fn filters_add_up_and_clear() {
    let mut options = options(SocketType::Pull);
    let filter = id("TCP_ACCEPT_FILTER");
    options.set(filter, &Value::from("127.0.0.1")).unwrap();
    options.set(filter, &Value::from("10.0.0.0/8")).unwrap();
    assert!(options.set(filter, &Value::from("everybody")).is_err());
    assert_eq!(options.tcp_accept_filters.len(), 2);
    options.set(filter, &Value::from("")).unwrap();
    assert!(options.tcp_accept_filters.is_empty());
}

#[test]
fn metadata_is_limited() {
    let mut options = options(SocketType::Push);
    let metadata = id("METADATA");
    assert!(
        options
            .set(metadata, &Value::from(&b"X-raw:\xff\0"[..]))
            .is_ok()
    );
    assert_eq!(options.metadata.pop().unwrap().1, &b"\xff\0"[..]);
    assert!(
        options
            .set(metadata, &Value::from(&b"X-\xff:raw"[..]))
            .is_err()
    );
    let mut set = |text: &str| options.set(metadata, &Value::from(text)).is_ok();
    assert!(set("X-a:1"));
    assert!(set("X-a:2"));
    assert!(!set(&format!("X-b:{}", "v".repeat(METADATA_BYTES))));
    assert!(set(&format!("X-b:{}", "v".repeat(METADATA_BYTES / 2))));
    assert!(!set(&format!("X-c:{}", "v".repeat(METADATA_BYTES / 2))));
    for n in 2..METADATA_COUNT {
        assert!(set(&format!("X-{n}:v")));
    }
    assert!(!set("X-more:v"));
    assert_eq!(options.metadata[0], ("X-a".to_owned(), "1".into()));
}

#[test]
fn options_that_do_not_exist_are_refused_with_the_reason() {
    let mut options = options(SocketType::Push);
    for (name, value) in [
        ("GSSAPI_SERVER", Value::Int(1)),
        ("PRIORITY", Value::Int(1)),
    ] {
        let error = options.set(id(name), &value).unwrap_err();
        assert_eq!(error.errno(), libc::EINVAL, "{name}");
        assert!(
            error.context().is_some_and(|text| text.starts_with(name)),
            "{error}"
        );
    }
    for unknown in [0, 10, 70, 999, i32::MIN] {
        assert!(options.set(unknown, &Value::Int(1)).is_err());
        assert!(options.get(unknown).is_err());
    }
}

/// MECHANISM, PLAIN_SERVER, CURVE_SERVER.
fn security(options: &Options) -> [i64; 3] {
    ["MECHANISM", "PLAIN_SERVER", "CURVE_SERVER"].map(|name| match options.get(id(name)).unwrap() {
        Value::Int(number) => number,
        Value::Bytes(_) => unreachable!(),
    })
}

#[test]
fn the_last_word_about_security_counts() {
    let key = Value::Bytes(vec![1; 32]);
    let mut options = options(SocketType::Push);
    for (name, value, expected) in [
        ("PLAIN_SERVER", Value::Int(1), [1, 1, 0]),
        ("PLAIN_USERNAME", Value::from("admin"), [1, 0, 0]),
        ("PLAIN_SERVER", Value::Int(0), [0, 0, 0]),
        ("CURVE_SERVER", Value::Int(1), [2, 0, 1]),
        ("CURVE_SECRETKEY", key.clone(), [2, 0, 1]),
        ("CURVE_SERVERKEY", key.clone(), [2, 0, 0]),
        ("PLAIN_PASSWORD", Value::from("secret"), [1, 0, 0]),
        ("CURVE_PUBLICKEY", key.clone(), [2, 0, 0]),
        ("CURVE_SERVER", Value::Int(0), [0, 0, 0]),
    ] {
        options.set(id(name), &value).unwrap();
        assert_eq!(security(&options), expected, "{name}");
    }
}

#[test]
fn keys_are_read_as_text() {
    let mut options = options(SocketType::Push);
    let secret = id("CURVE_SECRETKEY");
    assert_eq!(options.get(secret).unwrap(), Value::from(""));
    options.set(secret, &Value::Bytes(vec![0; 32])).unwrap();
    assert_eq!(
        options.get(secret).unwrap(),
        Value::from("0".repeat(40).as_str())
    );
    let error = options
        .set(secret, &Value::Bytes(vec![b'x'; 31]))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("CURVE_SECRETKEY: a CURVE key is 32 bytes or 40"),
        "{error}"
    );
    assert!(!format!("{options:?}").contains("0000"));
}

fn complete(options: &Options) -> Result<Arc<Options>> {
    Arc::new(options.clone()).complete()
}

#[test]
fn a_mechanism_without_its_keys_is_refused_early() {
    let mut options = options(SocketType::Push);
    complete(&options).unwrap();
    options.set(id("CURVE_SERVER"), &Value::Int(1)).unwrap();
    assert!(complete(&options).is_err());
    options
        .set(id("CURVE_SECRETKEY"), &Value::Bytes(vec![1; 32]))
        .unwrap();
    assert!(
        !complete(&options)
            .unwrap()
            .security
            .value(id("CURVE_PUBLICKEY"))
            .is_empty()
    );
    options.security.as_server = false;
    assert!(complete(&options).is_err());
    options.security.as_server = true;
    options.router_raw = true;
    assert!(complete(&options).is_err());
}

#[test]
fn a_list_is_not_forgotten_when_a_later_option_names_another_role() {
    let mut options = options(SocketType::Pull);
    options.security.gate = Some(Gate::Users(Passwords::new()));
    options.set(id("PLAIN_SERVER"), &Value::Int(1)).unwrap();
    complete(&options).unwrap();
    options
        .set(id("PLAIN_USERNAME"), &Value::from("me"))
        .unwrap();
    let error = complete(&options).unwrap_err();
    assert!(error.to_string().contains("made it a client"), "{error}");
    options.set(id("PLAIN_SERVER"), &Value::Int(0)).unwrap();
    assert!(complete(&options).is_err());
}

#[test]
fn a_domain_is_not_enforced_where_there_is_no_handshake() {
    let mut options = options(SocketType::Stream);
    options.set(id("ZAP_DOMAIN"), &Value::from("home")).unwrap();
    complete(&options).unwrap();
    options
        .set(id("ZAP_ENFORCE_DOMAIN"), &Value::Int(1))
        .unwrap();
    let error = complete(&options).unwrap_err();
    assert!(error.to_string().contains("ZAP_ENFORCE_DOMAIN"), "{error}");
}

/// Those that have a call of their own, those for old programs, and those that are not available.
#[test]
fn every_option_has_methods_that_are_called_as_it_is() {
    const OTHERWISE: [&str; 7] = [
        "SUBSCRIBE",
        "UNSUBSCRIBE",
        "RCVMORE",
        "FD",
        "EVENTS",
        "TYPE",
        "IPV4ONLY",
    ];
    macro_rules! methods_of_mechanisms {
        ($($name:ident [$($typed:tt)*]: $doc:literal,)*) => {
            [$((stringify!($name), stringify!($($typed)*), $doc),)*]
        };
    }
    let of_mechanisms = mechanism_options!(methods_of_mechanisms);
    for row in SOCKET_OPTIONS.iter() {
        let mechanism = of_mechanisms.iter().find(|(name, ..)| *name == row.name);
        if let Some((_, _, doc)) = mechanism {
            assert_eq!(*doc, row.doc);
        }
        let mechanism = mechanism.map(|(name, typed, _)| (*name, *typed));
        let found = table::METHODS.iter().find(|(name, _)| *name == row.name);
        let found = found.copied().or(mechanism);
        let (name, typed) = found.unwrap_or_else(|| panic!("no methods for {}", row.name));
        if OTHERWISE.contains(&name) || !(row.readable || row.writable) {
            assert_eq!(typed, "", "{name}");
            continue;
        }
        let get = name.to_lowercase();
        let methods = match (row.readable, row.writable) {
            (true, true) => format!("{get},set_{get}:"),
            (true, false) => format!("{get}:"),
            _ => format!("=>set_{get}:"),
        };
        let typed = typed.replace(' ', "");
        assert!(typed.starts_with(&methods), "{name}: {typed}");
    }
}
