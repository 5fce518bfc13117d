use super::refusals::{listed, schemes};
use super::*;
use crate::options::{ContextOptions, Value, ids};

/// An address to connect to, of each transport of streams.
fn address(scheme: &str) -> &'static str {
    match scheme {
        "ipc" => "/tmp/refused",
        "vsock" => "2:5555",
        "tipc" => "{20000,0}",
        _ => "127.0.0.1:5555",
    }
}

fn streams() -> impl Iterator<Item = &'static dyn ByteTransport> {
    TRANSPORTS.iter().filter_map(|row| match row {
        Row::Bytes(transport) => Some(*transport),
        Row::Messages(_) => None,
    })
}

#[test]
fn streams_that_leave_the_machine_use_the_proxy_or_are_refused() {
    let mut options = Options::new(SocketType::Push, &ContextOptions::default());
    options
        .set(ids::SOCKS_PROXY, &Value::from("127.0.0.1:1080"))
        .unwrap();
    options.set(ids::TLS_VERIFY, &Value::Int(0)).unwrap();
    for transport in streams().filter(|transport| transport.scheme() != "ipc") {
        let scheme = transport.scheme();
        match transport.targets(address(scheme), &options) {
            Ok(Targets::Ready(targets)) => assert!(targets[0].request.is_some(), "{scheme}"),
            Ok(Targets::Resolve(_)) => panic!("{scheme} looks a name up"),
            Ok(Targets::NotYet(error)) => panic!("{scheme}: {error}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{scheme}: {error}");
                let expected = format!("{scheme} would bypass it");
                assert!(error.to_string().contains(&expected), "{error}");
            }
        }
    }
}

#[test]
fn errors_list_what_the_tables_hold() {
    assert_eq!(listed(&["tcp"], "or"), "tcp");
    assert_eq!(listed(&["tcp", "ipc"], "or"), "tcp or ipc");
    assert_eq!(listed(&["a", "b", "c"], "and"), "a, b and c");
    assert_eq!(types(SocketType::has_groups), "RADIO");
    let plain = schemes(|transport| transport.carries_plain_bytes());
    assert!(plain.contains(&"tls+tcp") && !plain.contains(&"ws"));
    let error = check_no_descriptor(
        "udp",
        &Options {
            use_fd: Some(0),
            ..Options::new(SocketType::Dish, &ContextOptions::default())
        },
    );
    let text = error.unwrap_err().to_string();
    assert!(
        streams().all(|transport| text.contains(transport.scheme())),
        "{text}"
    );
}
