use std::io::IoSlice;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::*;
use crate::options::ContextOptions;
use crate::resolver::Resolver;
use crate::sys::selector::{Events, Selector};

fn options() -> Options {
    Options::new(SocketType::Dealer, &ContextOptions::default())
}

fn listen(address: &str, options: &Options) -> Result<Box<dyn Listen>> {
    TCP.check(address, SocketType::Dealer, true)?;
    TCP.listen(address, options)
}

/// The address after the scheme.
fn address(listener: &dyn Listen) -> String {
    let endpoint = listener.endpoint();
    endpoint.strip_prefix("tcp://").unwrap().to_owned()
}

fn until_ready(fd: BorrowedFd<'_>) {
    let selector = Selector::new().unwrap();
    selector.add(fd, 0).unwrap();
    let mut events = Events::with_capacity(1);
    selector
        .wait(&mut events, Some(Instant::now() + Duration::from_secs(5)))
        .unwrap();
    assert!(
        events.iter().next().is_some(),
        "nothing happened in five seconds"
    );
}

fn targets(address: &str, options: &Options) -> Result<Vec<Target>> {
    TCP.check(address, SocketType::Dealer, false)?;
    match TCP.targets(address, options)? {
        Targets::Ready(targets) => Ok(targets),
        Targets::NotYet(error) => Err(error),
        Targets::Resolve(job) => {
            let resolver = Resolver::new();
            let (tell, told) = std::sync::mpsc::channel();
            resolver.submit(job, || true, move |targets| tell.send(targets).unwrap())?;
            told.recv_timeout(Duration::from_secs(20)).unwrap()
        }
    }
}

fn connect(address: &str, options: &Options) -> Result<Stream> {
    let mut failure = Error::new(ErrorKind::NoEntry);
    for target in targets(address, options)? {
        match try_target(&target, options) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn try_target(target: &Target, options: &Options) -> Result<Stream> {
    let Opening {
        mut stream,
        connected,
        ..
    } = TCP.open("", target, options)?;
    if !connected {
        until_ready(stream.fd());
        stream.take_error()?;
    }
    Ok(stream)
}

fn accept(listener: &dyn Listen) -> Stream {
    until_ready(listener.fd());
    listener.accept().unwrap().unwrap().unwrap()
}

#[test]
fn bytes_go_both_ways() {
    let options = options();
    let listener = listen("127.0.0.1:*", &options).unwrap();
    assert!(listener.accept().unwrap().is_none());
    let mut near = connect(&address(&*listener), &options).unwrap();
    let mut far = accept(&*listener);
    assert_eq!(
        near.send(&[IoSlice::new(b"to "), IoSlice::new(b"you")], false)
            .unwrap(),
        6
    );
    until_ready(far.fd());
    let mut buffer = Vec::new();
    assert_eq!(far.recv(&mut buffer).unwrap(), 6);
    assert_eq!(buffer, b"to you");
    assert_eq!(
        far.recv(&mut buffer).unwrap_err().kind(),
        io::ErrorKind::WouldBlock
    );
    assert_eq!(
        (near.peer_address(), far.peer_address()),
        ("127.0.0.1".into(), "127.0.0.1".into())
    );
    let near_socket = SockRef::from(&near.fd);
    let peer = near_socket.peer_addr().unwrap();
    assert_eq!(crate::transports::endpoint(&peer), listener.endpoint());
    near.shutdown_write();
    until_ready(far.fd());
    assert_eq!(far.recv(&mut buffer).unwrap(), 0);
}

#[test]
fn endpoints_are_printed_like_libzmq_prints_them() {
    let mut options = options();
    let port = |endpoint: &str, prefix: &str| -> u16 {
        endpoint.strip_prefix(prefix).unwrap().parse().unwrap()
    };
    let any = listen("*:*", &options).unwrap();
    assert_ne!(port(&any.endpoint(), "tcp://0.0.0.0:"), 0);
    let named = listen("lo:0", &options).unwrap();
    assert_ne!(port(&named.endpoint(), "tcp://127.0.0.1:"), 0);
    let host = listen("localhost:0", &options).unwrap();
    assert_ne!(port(&host.endpoint(), "tcp://127.0.0.1:"), 0);
    options.ipv6 = true;
    let v6 = listen("[::1]:0", &options).unwrap();
    assert_ne!(port(&v6.endpoint(), "tcp://[::1]:"), 0);
    let both = listen("*:0", &options).unwrap();
    let both_port = port(&both.endpoint(), "tcp://[::]:");
    connect(&format!("127.0.0.1:{both_port}"), &options).unwrap();
    assert_eq!(accept(&*both).peer_address(), "127.0.0.1");
    connect(&format!("[::1]:{both_port}"), &options).unwrap();
    assert_eq!(accept(&*both).peer_address(), "::1");
}

#[test]
fn a_failed_bind_gives_the_reason() {
    let options = options();
    let kind = |address: &str| listen(address, &options).map(|_| ()).unwrap_err().kind();
    assert_eq!(kind("127.0.0.1:70000"), ErrorKind::Invalid);
    assert_eq!(kind("127.0.0.1:55x"), ErrorKind::Invalid);
    assert_eq!(kind("eth99:5555"), ErrorKind::NoDevice);
    assert_eq!(kind("[::1]:5555"), ErrorKind::NoDevice);
    assert_eq!(kind("192.0.2.1:5555"), ErrorKind::AddressNotAvailable);
    let listener = listen("127.0.0.1:0", &options).unwrap();
    let taken = address(&*listener);
    assert_eq!(kind(&taken), ErrorKind::AddressInUse);
    drop(listener);
    listen(&taken, &options).unwrap();
}

#[test]
fn all_addresses_are_not_bound_if_another_program_has_those_of_ipv6() {
    let mut options = options();
    options.ipv6 = true;
    let other = Socket::new(Domain::IPV6, Type::STREAM, None).unwrap();
    other.set_only_v6(true).unwrap();
    other
        .bind(&SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0)).into())
        .unwrap();
    other.listen(1).unwrap();
    let port = other.local_addr().unwrap().as_socket().unwrap().port();
    let failure = listen(&format!("*:{port}"), &options)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::AddressInUse);
}

#[test]
fn an_address_is_free_again_while_old_connections_linger() {
    let options = options();
    let listener = listen("127.0.0.1:0", &options).unwrap();
    let taken = address(&*listener);
    let near = connect(&taken, &options).unwrap();
    // The listening side closes first and keeps the port in TIME_WAIT.
    drop(accept(&*listener));
    drop(listener);
    until_ready(near.fd());
    drop(near);
    listen(&taken, &options).unwrap();
}

#[test]
fn a_failed_connect_gives_the_reason() {
    let mut options = options();
    let kind = |address: &str, options: &Options| targets(address, options).unwrap_err().kind();
    assert_eq!(kind("*:5555", &options), ErrorKind::Invalid);
    assert_eq!(kind("127.0.0.1:0", &options), ErrorKind::Invalid);
    assert_eq!(kind("eth99;127.0.0.1:5555", &options), ErrorKind::NoDevice);
    assert_eq!(kind("[::1]:5555", &options), ErrorKind::NoDevice);
    options.ipv6 = true;
    assert_eq!(
        kind("127.0.0.1;[::1]:5555", &options),
        ErrorKind::HostUnreachable
    );
    for proxy in ["127.0.0.1", "127.0.0.1:0", "*:1080", "lo;127.0.0.1:1080"] {
        options.socks_proxy = proxy.into();
        assert_eq!(kind("127.0.0.1:5555", &options), ErrorKind::Invalid);
    }
}

#[test]
fn with_a_proxy_the_proxy_is_connected_to_and_gets_the_target() {
    let mut options = options();
    options.socks_proxy = "127.0.0.1:1080".into();
    // Neither the name nor the family of the peer's address is resolved here.
    for peer in ["no..such:5555", "10.0.0.1:5555", "[2001:db8::1]:5555"] {
        let targets = targets(peer, &options).unwrap();
        assert_eq!(targets.len(), 1);
        assert_eq!(targets[0].to_string(), "tcp://127.0.0.1:1080");
        assert!(targets[0].request.is_some());
    }
    let zone = targets("[fe80::1%lo]:5555", &options).unwrap_err();
    assert_eq!(zone.kind(), ErrorKind::Invalid);
    options.socks_username = "x".repeat(256);
    let long = targets("10.0.0.1:5555", &options).unwrap_err();
    assert_eq!(long.kind(), ErrorKind::Invalid);
}

#[test]
fn a_port_without_a_listener_refuses() {
    let options = options();
    let listener = listen("127.0.0.1:0", &options).unwrap();
    let gone = address(&*listener);
    drop(listener);
    assert_eq!(
        connect(&gone, &options).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
}

#[test]
fn names_resolve_to_all_their_addresses() {
    let mut options = options();
    let Targets::Resolve(_) = TCP.targets("localhost:7", &options).unwrap() else {
        panic!("localhost is a name")
    };
    let (v4, v6): (SocketAddr, SocketAddr) =
        (([127, 0, 0, 1], 7).into(), "[::1]:7".parse().unwrap());
    let both = vec![v6, v4];
    let print = |targets: Vec<Target>| targets.iter().map(Target::to_string).collect::<Vec<_>>();
    assert_eq!(
        print(targets_of(both.clone(), None, None, false).unwrap()),
        ["tcp://127.0.0.1:7"]
    );
    assert_eq!(
        print(targets_of(both.clone(), None, None, true).unwrap()),
        ["tcp://[::1]:7", "tcp://127.0.0.1:7"]
    );
    let source = Address {
        host: Host::Any,
        port: 0,
    };
    assert_eq!(
        print(targets_of(both.clone(), Some(&source), None, true).unwrap()),
        ["tcp://[::1]:7", "tcp://127.0.0.1:7"]
    );
    let source = Address {
        host: Host::Name("lo".into()),
        port: 0,
    };
    let from_lo = targets_of(both, Some(&source), None, true).unwrap();
    let source = |target: &Target| target.source.as_ref().unwrap().as_socket().unwrap().ip();
    assert_eq!(
        from_lo.iter().map(source).collect::<Vec<_>>(),
        [v6.ip(), v4.ip()]
    );
    options.ipv6 = true;
    let listener = listen("*:0", &options).unwrap();
    let port = address(&*listener).rsplit_once(':').unwrap().1.to_owned();
    let found = targets(&format!("localhost:{port}"), &options).unwrap();
    assert!(
        found
            .iter()
            .any(|target| try_target(target, &options).is_ok()),
        "{found:?}"
    );
}

#[test]
fn the_source_address_is_used() {
    let options = options();
    let listener = listen("127.0.0.1:0", &options).unwrap();
    for source in ["127.0.0.3", "127.0.0.4:*", "lo"] {
        let near = connect(&format!("{source};{}", address(&*listener)), &options).unwrap();
        let expected = source
            .strip_suffix(":*")
            .unwrap_or(source)
            .replace("lo", "127.0.0.1");
        assert_eq!(accept(&*listener).peer_address(), expected);
        drop(near);
    }
}

#[test]
fn an_interface_that_is_missing_may_appear_later() {
    let options = options();
    let ipv6 = Options {
        ipv6: true,
        ..options.clone()
    };
    for (address, options) in [
        ("eth99:0;127.0.0.1:5555", &options),
        ("127.0.0.1%eth99:5555", &options),
        ("[fe80::1%eth99]:5555", &ipv6),
        ("[fe80::2%eth99]:0;[fe80::1%lo]:5555", &ipv6),
    ] {
        let Targets::NotYet(error) = TCP.targets(address, options).unwrap() else {
            panic!("{address} has targets")
        };
        assert_eq!(error.kind(), ErrorKind::NoDevice, "{address}");
    }
    assert!(TCP.targets("[fe80::1%eth99]:5555", &options).is_err());
}

#[test]
fn a_connection_to_itself_is_refused() {
    let options = options();
    // A free port, used as the source and the target: the socket connects to itself.
    let port = address(&*listen("127.0.0.1:0", &options).unwrap())
        .rsplit_once(':')
        .unwrap()
        .1
        .to_owned();
    let error = connect(&format!("127.0.0.1:{port};127.0.0.1:{port}"), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    // It does not keep the port from the program that is meant to listen there.
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let address: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    listener.bind(&address.into()).unwrap();
}

#[test]
fn options_reach_the_socket_on_both_sides() {
    let mut options = options();
    options.tcp_keepalive = Some(true);
    options.tcp_keepalive_cnt = Some(5);
    options.tcp_keepalive_idle = Some(Duration::from_secs(77));
    options.tcp_keepalive_intvl = Some(Duration::from_secs(9));
    options.tcp_maxrt = Some(Duration::from_millis(1234));
    options.tos = 0x28;
    options.sndbuf = Some(50_000);
    options.rcvbuf = Some(60_000);
    let listener = listen("127.0.0.1:0", &options).unwrap();
    let near = connect(&address(&*listener), &options).unwrap();
    let far = accept(&*listener);
    for stream in [&near, &far] {
        let socket = SockRef::from(&stream.fd);
        assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 5);
        assert_eq!(
            socket.tcp_keepalive_time().unwrap(),
            Duration::from_secs(77)
        );
        assert_eq!(
            socket.tcp_keepalive_interval().unwrap(),
            Duration::from_secs(9)
        );
        assert_eq!(
            socket.tcp_user_timeout().unwrap(),
            Some(Duration::from_millis(1234))
        );
        assert_eq!(socket.tos_v4().unwrap(), 0x28);
        // The kernel doubles the given value.
        assert_eq!(socket.send_buffer_size().unwrap(), 100_000);
        assert_eq!(socket.recv_buffer_size().unwrap(), 120_000);
        assert!(socket.nonblocking().unwrap());
        let flags = rustix::io::fcntl_getfd(&stream.fd).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
    options.ipv6 = true;
    let v6 = listen("[::1]:0", &options).unwrap();
    let near = connect(&address(&*v6), &options).unwrap();
    assert_eq!(SockRef::from(&near.fd).tclass_v6().unwrap(), 0x28);
}

#[test]
fn a_dead_machine_is_detected_by_probes_unless_they_are_disabled() {
    let mut options = options();
    for (set, on, idle) in [
        (None, true, 8),
        (Some(false), false, 0),
        (Some(true), true, 0),
    ] {
        options.tcp_keepalive = set;
        let listener = listen("127.0.0.1:0", &options).unwrap();
        let near = connect(&address(&*listener), &options).unwrap();
        let far = accept(&*listener);
        // Without an option, a connection gets its probes only on request.
        let at_once = SockRef::from(&near.fd).keepalive().unwrap();
        assert_eq!(at_once, set == Some(true));
        near.probe_silent(&options);
        for stream in [&near, &far] {
            let socket = SockRef::from(&stream.fd);
            assert_eq!(socket.keepalive().unwrap(), on);
            let time = socket.tcp_keepalive_time().unwrap();
            assert_eq!(time == Duration::from_secs(8), idle == 8);
            // It would also end a connection to a slow peer.
            assert_eq!(socket.tcp_user_timeout().unwrap(), None);
        }
    }
    options.tcp_keepalive = None;
    options.tcp_keepalive_idle = Some(Duration::from_secs(77));
    // Without a handshake limit, there may never be a timer that asks for probes.
    options.handshake_ivl = None;
    let listener = listen("127.0.0.1:0", &options).unwrap();
    let near = connect(&address(&*listener), &options).unwrap();
    let socket = SockRef::from(&near.fd);
    let (time, count) = (socket.tcp_keepalive_time(), socket.tcp_keepalive_retries());
    assert_eq!(
        (time.unwrap(), count.unwrap()),
        (Duration::from_secs(77), 3)
    );
}

#[test]
fn a_device_is_used_and_an_unknown_one_is_refused() {
    let mut options = options();
    options.bind_to_device = "lo".into();
    let listener = listen("127.0.0.1:0", &options).unwrap();
    let near = connect(&address(&*listener), &options).unwrap();
    for fd in [listener.fd(), near.fd()] {
        assert_eq!(SockRef::from(&fd).device().unwrap().unwrap(), b"lo");
    }
    options.bind_to_device = "eth99".into();
    let error = listen("127.0.0.1:0", &options).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoDevice);
    assert!(error.to_string().contains("BINDTODEVICE eth99"), "{error}");
}

#[test]
fn filters_admit_and_refuse() {
    let mut options = options();
    options.tcp_accept_filters = vec!["127.0.0.8/30".parse().unwrap()];
    let listener = listen("127.0.0.1:0", &options).unwrap();
    let mut refused = connect(&format!("127.0.0.3;{}", address(&*listener)), &options).unwrap();
    until_ready(listener.fd());
    let turned_away = listener.accept().unwrap().unwrap().unwrap_err();
    assert_eq!(turned_away.kind(), ErrorKind::Access);
    until_ready(refused.fd());
    assert!(!matches!(refused.recv(&mut Vec::new()), Ok(1..)));
    let _admitted = connect(&format!("127.0.0.9;{}", address(&*listener)), &options).unwrap();
    assert_eq!(accept(&*listener).peer_address(), "127.0.0.9");
}

#[test]
fn a_listening_descriptor_is_adopted_and_closed() {
    let mut options = options();
    let theirs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let local = theirs.local_addr().unwrap();
    options.use_fd = Some(theirs.into_raw_fd());
    let listener = listen("127.0.0.1:1", &options).unwrap();
    assert_eq!(listener.endpoint(), format!("tcp://{local}"));
    let _near = TcpStream::connect(local).unwrap();
    listener.accept().unwrap().unwrap().unwrap();
    assert!(listener.accept().unwrap().is_none());
    drop(listener);
    assert!(TcpStream::connect(local).is_err());
}

#[test]
fn a_refused_descriptor_stays_open() {
    let mut options = options();
    let theirs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = TcpStream::connect(theirs.local_addr().unwrap()).unwrap();
    let mut refused = |fd| {
        options.use_fd = Some(fd);
        listen("127.0.0.1:1", &options).map(drop).unwrap_err()
    };
    assert_eq!(refused(999_999).kind(), ErrorKind::Invalid);
    assert_eq!(refused(connected.as_raw_fd()).kind(), ErrorKind::Invalid);
    assert!(connected.peer_addr().is_ok());
    // The socket fits, but cannot be prepared.
    options.bind_to_device = "nosuchdevice".to_owned();
    options.use_fd = Some(theirs.as_raw_fd());
    assert!(listen("127.0.0.1:1", &options).is_err());
    assert!(theirs.local_addr().is_ok());
}

#[test]
fn a_backlog_holds_connections_until_they_are_accepted() {
    let options = options();
    let listener = listen("127.0.0.1:0", &options).unwrap();
    let _waiting: Vec<_> = (0..20)
        .map(|_| connect(&address(&*listener), &options).unwrap())
        .collect();
    thread::sleep(Duration::from_millis(20));
    let accepted: Result<Vec<_>> = std::iter::from_fn(|| listener.accept().unwrap()).collect();
    assert_eq!(accepted.unwrap().len(), 20);
}

#[test]
fn without_descriptors_connections_wait_and_none_is_lost() {
    // The limit applies to the whole process, so this test exhausts it in a process of its own.
    const CHILD: &str = "ZEROXIDE_TEST_WITHOUT_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let name = thread::current().name().unwrap().to_owned();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let status = child
            .args(["--exact", &name, "--nocapture"])
            .env(CHILD, "1")
            .status();
        assert!(status.unwrap().success());
        return;
    }
    let options = options();
    let listener = listen("127.0.0.1:0", &options).unwrap();
    let waiting: Vec<_> = (0..10)
        .map(|_| connect(&address(&*listener), &options).unwrap())
        .collect();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let limit_to = |current| {
        let lowered = rustix::process::Rlimit {
            current,
            maximum: limit.maximum,
        };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, lowered).unwrap();
    };
    limit_to(Some(waiting[9].id() + 1));
    let mut accepted = Vec::new();
    let error = loop {
        match listener.accept() {
            Ok(arrival) => accepted.push(arrival.unwrap().unwrap()),
            Err(error) => break error,
        }
    };
    assert!(
        error.kind() == ErrorKind::TooManySockets && error.is_exhausted(),
        "{error}"
    );
    let refused = TCP.open(
        "",
        &targets(&address(&*listener), &options).unwrap()[0],
        &options,
    );
    assert_eq!(
        refused.map(|_| ()).unwrap_err().kind(),
        ErrorKind::TooManySockets
    );
    limit_to(limit.current);
    while let Some(arrival) = listener.accept().unwrap() {
        accepted.push(arrival.unwrap());
    }
    assert_eq!(accepted.len(), 10);
}
