//! Connections through a SOCKS5 proxy: the test contains a small one with configurable behaviour.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use common::{Monitor, SocketExt, Watchdog, address, free_tcp_endpoint, socket, until};
use zeroxide::{Context, DropReason, ErrorKind, EventKind, Socket, SocketType, ids};

use SocketType::{Dealer, Pull, Push};

/// The proxy's reaction to a client.
#[derive(Clone, Copy, PartialEq)]
enum Manners {
    /// Connects to wherever it stands in the test, whatever it is asked for.
    Plain,
    /// The same for a client with this name and password.
    Login(&'static str, &'static str),
    /// As `Plain`, one byte at a time.
    Dribble,
    /// Refuses with this code.
    Refuse(u8),
    /// Sends these bytes and nothing more; closes the connection if the flag is set.
    Say(&'static [u8], bool),
}

/// A client's request to the proxy: the type of address, the address, the port.
type Asked = (u8, Vec<u8>, u16);

/// Starts a proxy that connects every client to `destination`. Returns its `host:port`, and the requests.
fn proxy(destination: &str, manners: Manners) -> (String, Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().to_string();
    let destination = address(destination).to_owned();
    let (tell, asked) = mpsc::channel();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (destination, tell) = (destination.clone(), tell.clone());
            thread::spawn(move || {
                // A client that gives up is no failure of the proxy's.
                let _ = serve(client?, &destination, manners, &tell);
                std::io::Result::Ok(())
            });
        }
    });
    (own, asked)
}

fn serve(
    mut client: TcpStream,
    destination: &str,
    manners: Manners,
    tell: &mpsc::Sender<Asked>,
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    if let Manners::Say(bytes, close) = manners {
        client.write_all(bytes)?;
        if close {
            client.shutdown(Shutdown::Write)?;
        }
        // Listens until the client has had enough.
        std::io::copy(&mut client, &mut std::io::sink())?;
        return Ok(());
    }
    let [version, methods] = take(&mut client)?;
    assert_eq!(version, 5);
    let methods = take_vec(&mut client, methods.into())?;
    match manners {
        Manners::Login(name, password) if methods.contains(&2) => {
            client.write_all(&[5, 2])?;
            let [1, len] = take(&mut client)? else {
                panic!("no login")
            };
            let said_name = take_vec(&mut client, len.into())?;
            let [len] = take(&mut client)?;
            let said_password = take_vec(&mut client, len.into())?;
            let right = said_name == name.as_bytes() && said_password == password.as_bytes();
            client.write_all(&[1, u8::from(!right)])?;
        }
        Manners::Login(..) => client.write_all(&[5, 0xff])?,
        _ => client.write_all(&[5, 0])?,
    }
    let [5, 1, 0, kind] = take(&mut client)? else {
        panic!("no request to connect")
    };
    let len = match kind {
        1 => 4,
        4 => 16,
        _ => take::<1>(&mut client)?[0].into(),
    };
    let host = take_vec(&mut client, len)?;
    let port = u16::from_be_bytes(take(&mut client)?);
    let _ = tell.send((kind, host, port));
    if let Manners::Refuse(code) = manners {
        return client.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
    }
    let mut peer = TcpStream::connect(destination)?;
    peer.set_nodelay(true)?;
    // The peer's greeting follows the reply immediately.
    let mut reply = vec![5, 0, 0, 3, 5];
    reply.extend(b"proxy\x12\x34");
    let greeting: [u8; 10] = take(&mut peer)?;
    reply.extend(greeting);
    if manners == Manners::Dribble {
        for byte in reply {
            client.write_all(&[byte])?;
            thread::yield_now();
        }
    } else {
        client.write_all(&reply)?;
    }
    let (mut from_client, mut to_peer) = (client.try_clone()?, peer.try_clone()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_peer);
        let _ = to_peer.shutdown(Shutdown::Write);
    });
    std::io::copy(&mut peer, &mut client)?;
    client.shutdown(Shutdown::Write)
}

fn take<const N: usize>(stream: &mut TcpStream) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn take_vec(stream: &mut TcpStream, len: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A PULL that is bound, and a PUSH that connects through the proxy.
fn through(context: &Context, manners: Manners) -> (Socket, Socket, Receiver<Asked>) {
    let pull = socket(context, Pull);
    let (proxy, asked) = proxy(&pull.bind("tcp://127.0.0.1:*").unwrap(), manners);
    let push = socket(context, Push);
    push.bytes(ids::SOCKS_PROXY, proxy.as_bytes());
    push.int(ids::RECONNECT_IVL, 1);
    (pull, push, asked)
}

#[test]
fn names_and_addresses_reach_the_proxy_as_they_are() {
    let _watchdog = Watchdog::new("names_and_addresses_reach_the_proxy_as_they_are");
    let context = Context::new();
    for manners in [Manners::Plain, Manners::Dribble] {
        for (endpoint, kind, host) in [
            ("tcp://collector.example:5555", 3, &b"collector.example"[..]),
            (
                "tcp://192.0.2.7:5555",
                1,
                &Ipv4Addr::new(192, 0, 2, 7).octets(),
            ),
            ("tcp://[::1]:5555", 4, &Ipv6Addr::LOCALHOST.octets()),
        ] {
            let (pull, push, asked) = through(&context, manners);
            let monitor = Monitor::of(&context, &push);
            push.connect(endpoint).unwrap();
            push.put("through");
            assert_eq!(pull.take(), "through");
            assert_eq!(asked.recv().unwrap(), (kind, host.to_vec(), 5555));
            monitor.wait_for(EventKind::Connected);
            monitor.wait_for(EventKind::HandshakeSucceeded);
            assert_eq!(push.peers(), 1);
        }
    }
}

#[test]
fn the_same_connection_comes_back_through_the_proxy() {
    let _watchdog = Watchdog::new("the_same_connection_comes_back_through_the_proxy");
    let context = Context::new();
    let endpoint = free_tcp_endpoint();
    let (proxy, asked) = proxy(&endpoint, Manners::Plain);
    let client = socket(&context, Dealer);
    client.bytes(ids::SOCKS_PROXY, proxy.as_bytes());
    client.int(ids::RECONNECT_IVL, 1);
    client.connect("tcp://server.example:1").unwrap();
    for _ in 0..3 {
        let server = socket(&context, Dealer);
        until(|| server.bind(&endpoint).is_ok());
        until(|| server.peers() == 1);
        server.put("hello");
        assert_eq!(client.take(), "hello");
    }
    assert!(asked.try_iter().count() >= 3);
}

#[test]
fn a_login_opens_the_proxy_and_a_wrong_one_does_not() {
    let _watchdog = Watchdog::new("a_login_opens_the_proxy_and_a_wrong_one_does_not");
    let context = Context::new();
    for (name, password, works) in [
        ("mole", "secret", true),
        ("mole", "", false),
        ("", "secret", false),
        ("badger", "secret", false),
    ] {
        let (pull, push, asked) = through(&context, Manners::Login("mole", "secret"));
        push.bytes(ids::SOCKS_USERNAME, name.as_bytes());
        push.bytes(ids::SOCKS_PASSWORD, password.as_bytes());
        let monitor = Monitor::of(&context, &push);
        push.connect("tcp://collector.example:5555").unwrap();
        push.put("through");
        if works {
            assert_eq!(pull.take(), "through");
        } else {
            let closed = monitor.wait_for(EventKind::Closed);
            assert_eq!(closed.value, ErrorKind::Access.errno() as u32);
            monitor.wait_for(EventKind::ConnectRetried);
            // And again.
            monitor.wait_for(EventKind::Closed);
            assert!(asked.try_recv().is_err());
            assert_eq!(pull.peers(), 0);
        }
    }
}

#[test]
fn a_wrong_answer_of_a_proxy_is_a_failed_attempt_and_is_retried() {
    let _watchdog = Watchdog::new("a_wrong_answer_of_a_proxy_is_a_failed_attempt_and_is_retried");
    let context = Context::new();
    let errno = |kind: ErrorKind| kind.errno() as u32;
    let refused = errno(ErrorKind::ConnectionRefused);
    let reset = errno(ErrorKind::Os(104));
    let unreachable = errno(ErrorKind::HostUnreachable);
    let garbage = errno(ErrorKind::Os(71));
    for (manners, value) in [
        (Manners::Refuse(1), unreachable),
        (Manners::Refuse(2), errno(ErrorKind::Access)),
        (Manners::Refuse(4), unreachable),
        (Manners::Refuse(5), refused),
        (Manners::Refuse(7), unreachable),
        (Manners::Refuse(99), unreachable),
        (
            Manners::Say(b"HTTP/1.1 400 Bad Request\r\n\r\n", false),
            garbage,
        ),
        (Manners::Say(b"\x05\x09", false), garbage),
        (Manners::Say(b"\x05\x00\x05\x00\x00\x07", false), garbage),
        (Manners::Say(b"", true), reset),
        (Manners::Say(b"\x05", true), reset),
        (
            Manners::Say(b"\x05\x00\x05\x00\x00\x03\xffhalf", true),
            reset,
        ),
    ] {
        let (_pull, push, _) = through(&context, manners);
        if value != refused {
            // It stops for a refusal of the peer only.
            push.int(ids::RECONNECT_STOP, 1);
        }
        let monitor = Monitor::of(&context, &push);
        push.connect("tcp://collector.example:5555").unwrap();
        for _ in 0..2 {
            assert_eq!(monitor.wait_for(EventKind::Closed).value, value);
            monitor.wait_for(EventKind::ConnectRetried);
        }
        assert_eq!(push.dropped(DropReason::PeerGone), 0);
    }
}

#[test]
fn a_silent_proxy_is_given_up_in_time() {
    let _watchdog = Watchdog::new("a_silent_proxy_is_given_up_in_time");
    let context = Context::new();
    for half in [&b""[..], b"\x05", b"\x05\x00\x05\x00\x00\x01\x7f"] {
        for limit in [ids::HANDSHAKE_IVL, ids::CONNECT_TIMEOUT] {
            let (_pull, push, _) = through(&context, Manners::Say(half, false));
            push.int(limit, 20);
            let monitor = Monitor::of(&context, &push);
            push.connect("tcp://collector.example:5555").unwrap();
            for _ in 0..2 {
                let closed = monitor.wait_for(EventKind::Closed);
                assert_eq!(closed.value, ErrorKind::TimedOut.errno() as u32);
                monitor.wait_for(EventKind::ConnectRetried);
            }
        }
    }
}

#[test]
fn closing_waits_for_no_proxy() {
    let _watchdog = Watchdog::with_patience("closing_waits_for_no_proxy", Duration::from_secs(20));
    let context = Context::new();
    let (pull, push, _) = through(&context, Manners::Say(b"\x05", false));
    push.connect("tcp://collector.example:5555").unwrap();
    push.put("never");
    drop((pull, push));
    context.term().unwrap();
}

#[test]
fn a_malformed_proxy_address_is_refused_at_connect() {
    let context = Context::new();
    let push = socket(&context, Push);
    push.bytes(ids::SOCKS_PROXY, b"no port");
    let refused = push.connect("tcp://127.0.0.1:5555").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("SOCKS_PROXY"), "{refused}");
    push.bytes(ids::SOCKS_PROXY, b"");
    push.connect("tcp://127.0.0.1:5555").unwrap();
}
