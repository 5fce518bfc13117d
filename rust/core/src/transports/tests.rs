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
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{scheme}: {error}");
                let expected = format!("{scheme} would bypass it");
                assert!(error.to_string().contains(&expected), "{error}");
            }
        }
    }
}
