//! Services in the DNS, with a name server of the tests.

#![cfg_attr(not(feature = "srv"), allow(dead_code))] // what only the tests of SRV records use

mod network;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs, thread};

use network::{Lan, PATIENCE, socket, until};
use zeroxide::{Context, ErrorKind, Socket, SocketType, Wait};
use zeroxide_discovery::Lookup;

const A: u16 = 1;
const AAAA: u16 = 28;
const SRV: u16 = 33;
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;
const INTERVAL: Duration = Duration::from_millis(20);

/// The answer of the name server: a code, and records of some types with their data.
#[derive(Default)]
struct Zone {
    code: u8,
    records: Vec<(u16, Vec<u8>)>,
}

/// A name server. It answers each question with the records of the type that is asked for.
struct NameServer {
    zone: Arc<Mutex<Zone>>,
    place: SocketAddr,
}

impl NameServer {
    fn start(place: &str) -> NameServer {
        let own = UdpSocket::bind(place).unwrap();
        let server = NameServer {
            zone: Arc::default(),
            place: own.local_addr().unwrap(),
        };
        let zone = server.zone.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((length, from)) = own.recv_from(&mut buffer) {
                let answer = answer(&buffer[..length], &zone.lock().unwrap());
                own.send_to(&answer, from).unwrap();
            }
        });
        server
    }

    fn set(&self, code: u8, records: impl IntoIterator<Item = (u16, Vec<u8>)>) {
        let records = records.into_iter().collect();
        *self.zone.lock().unwrap() = Zone { code, records };
    }
}

/// The answer of RFC 1035, section 4.1, to a question.
fn answer(query: &[u8], zone: &Zone) -> Vec<u8> {
    let name = query[12..].iter().position(|byte| *byte == 0).unwrap();
    let question = &query[12..12 + name + 5];
    let asked = u16::from_be_bytes([question[name + 1], question[name + 2]]);
    let found = zone.records.iter().filter(|(kind, _)| *kind == asked);
    let found: Vec<_> = found.collect();
    let mut answer = query[..2].to_vec();
    answer.extend([
        0x81,
        0x80 | zone.code,
        0,
        1,
        0,
        found.len() as u8,
        0,
        0,
        0,
        0,
    ]);
    answer.extend(question);
    for (kind, data) in found {
        answer.extend([0xC0, 12]); // the name of the question
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 5, 0, data.len() as u8]);
        answer.extend(data);
    }
    answer
}

fn a(address: Ipv4Addr) -> (u16, Vec<u8>) {
    (A, address.octets().to_vec())
}

fn srv(priority: u16, port: u16, target: &str) -> (u16, Vec<u8>) {
    let mut data = Vec::new();
    for number in [priority, 0, port] {
        data.extend(number.to_be_bytes());
    }
    for label in target.split('.').filter(|label| !label.is_empty()) {
        data.push(label.len() as u8);
        data.extend(label.as_bytes());
    }
    data.push(0);
    (SRV, data)
}

fn pull(context: &Context, endpoint: &str) -> (Socket, u16) {
    let pull = socket(context, SocketType::Pull);
    let bound = pull.bind(endpoint).unwrap();
    let (_, port) = bound.rsplit_once(':').unwrap();
    (pull, port.parse().unwrap())
}

fn received(pull: &Socket) -> Vec<u8> {
    pull.recv(Wait::Forever).unwrap().head().as_slice().to_vec()
}

/// Runs a test of this file in a network of its own, where 127.0.0.1 is the system's name server. Returns whether this is
/// that run.
fn is_in_own_network(test: &str) -> bool {
    const IS_INSIDE: &str = "ZEROXIDE_OWN_NETWORK";
    if env::var_os(IS_INSIDE).is_some() {
        return true;
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "--net"]);
        command
    };
    let is_allowed = unshare().args(["ip", "link"]).output();
    if !is_allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine allows no networks of tests");
        return false;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [resolv, switch] = ["resolv.conf", "nsswitch.conf"].map(|name| folder.join(name));
    fs::write(
        &resolv,
        "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
    )
    .unwrap();
    fs::write(&switch, "hosts: files dns\n").unwrap();
    let script = "ip link set lo up && mount --bind \"$1\" /etc/resolv.conf && \
        mount --bind \"$2\" /etc/nsswitch.conf && exec \"$3\" --exact \"$4\" --nocapture";
    let output = unshare()
        .args(["sh", "-c", script, "sh"])
        .args([&resolv, &switch, &env::current_exe().unwrap()])
        .arg(test)
        .env(IS_INSIDE, "1")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&text)
    );
    false
}

#[test]
fn a_socket_follows_the_addresses_of_a_name() {
    if !is_in_own_network("a_socket_follows_the_addresses_of_a_name") {
        return;
    }
    let server = NameServer::start("127.0.0.1:53");
    let context = Context::new();
    let (_first, port) = pull(&context, "tcp://127.0.0.1:*");
    let (second, _) = pull(&context, &format!("tcp://127.0.0.2:{port}"));
    let at = |host: &str| format!("tcp://{host}:{port}");
    let push = socket(&context, SocketType::Push);
    server.set(NXDOMAIN, []);
    let lookup = Lookup::new(format!("dns://workers.example:{port}")).interval(INTERVAL);
    let follower = lookup.follow(&push).unwrap();
    assert!(!follower.wait(1, Some(Duration::from_millis(50))));
    assert!(follower.error().is_none());
    let [one, two] = [1, 2].map(|last| a(Ipv4Addr::new(127, 0, 0, last)));
    let sixth = (AAAA, Ipv6Addr::LOCALHOST.octets().to_vec());
    server.set(0, [two.clone(), one, sixth.clone()]);
    assert!(follower.wait(2, Some(PATIENCE)));
    assert_eq!(follower.endpoints(), [at("127.0.0.1"), at("127.0.0.2")]);
    server.set(0, [two.clone(), sixth.clone()]);
    until(|| follower.endpoints() == [at("127.0.0.2")]);
    push.send("one is left", Wait::Forever).unwrap();
    assert_eq!(received(&second), b"one is left");
    // No server knows: the provider may still be there.
    server.set(SERVFAIL, []);
    until(|| follower.error().is_some());
    let error = follower.error().unwrap();
    assert_eq!(error.kind(), ErrorKind::HostUnreachable);
    assert!(error.to_string().contains("workers.example: "), "{error}");
    assert_eq!(follower.endpoints(), [at("127.0.0.2")]);
    // A headless service without pods that are ready.
    server.set(NXDOMAIN, []);
    until(|| follower.endpoints().is_empty());
    assert!(follower.error().is_none());
    // A name without addresses of this kind.
    server.set(0, [two.clone()]);
    assert!(follower.wait(1, Some(PATIENCE)));
    server.set(0, []);
    until(|| follower.endpoints().is_empty());
    server.set(0, [two, sixth]);
    let both = socket(&context, SocketType::Push);
    both.set_ipv6(true).unwrap();
    let both = lookup.follow(&both).unwrap();
    assert!(both.wait(2, Some(PATIENCE)));
    assert_eq!(both.endpoints(), [at("127.0.0.2"), at("[::1]")]);
    #[cfg(feature = "srv")]
    {
        server.set(0, [srv(0, port, "worker.example")]);
        let lookup = Lookup::new("srv://_work._tcp.example.com");
        let follower = lookup.follow(&push).unwrap();
        assert!(follower.wait(1, Some(PATIENCE)));
        assert_eq!(follower.endpoints(), [at("worker.example")]);
    }
}

#[test]
fn a_name_of_the_system_is_found() {
    let context = Context::new();
    let (place, port) = pull(&context, "tcp://127.0.0.1:*");
    let push = socket(&context, SocketType::Push);
    let lookup = Lookup::new(format!("dns://localhost:{port}"));
    let follower = lookup.follow(&push).unwrap();
    assert!(follower.wait(1, Some(PATIENCE)));
    drop(follower);
    push.send("still", Wait::Forever).unwrap();
    assert_eq!(received(&place), b"still");
}

#[test]
fn a_follower_of_names_ends_with_its_socket() {
    let context = Context::new();
    let push = socket(&context, SocketType::Push);
    let lookup = Lookup::new("dns://127.0.0.1:9").interval(INTERVAL);
    let follower = lookup.follow(&push).unwrap();
    assert!(follower.wait(1, Some(PATIENCE)));
    push.close(None);
    assert!(!follower.wait(2, Some(PATIENCE)));
    assert!(follower.has_ended());
}

#[cfg(feature = "srv")]
#[test]
fn a_socket_follows_srv_records() {
    let server = NameServer::start("127.0.0.1:0");
    let context = Context::new();
    let [(first, one), (second, two)] = [(); 2].map(|()| pull(&context, "tcp://127.0.0.1:*"));
    let at = |port: u16| format!("tcp://localhost:{port}");
    let push = socket(&context, SocketType::Push);
    let spare = srv(20, 1, "spare");
    server.set(
        0,
        [spare, srv(10, one, "localhost"), srv(10, two, "localhost")],
    );
    let lookup = Lookup::new("srv://_work._tcp.example.com").interval(INTERVAL);
    let follower = lookup.name_server(server.place).follow(&push).unwrap();
    assert!(follower.wait(2, Some(PATIENCE)));
    let mut ports = [one, two];
    ports.sort_by_key(|port| at(*port));
    assert_eq!(follower.endpoints(), ports.map(at));
    (0..2).for_each(|_| push.send("both", Wait::Forever).unwrap());
    assert_eq!(
        (received(&first), received(&second)),
        (b"both".to_vec(), b"both".to_vec())
    );
    server.set(0, [srv(10, two, "localhost")]);
    until(|| follower.endpoints() == [at(two)]);
    server.set(NXDOMAIN, []);
    until(|| follower.endpoints().is_empty());
    // The domain says that it has no such service.
    for nothing in [srv(0, 0, "."), srv(0, 9, "."), srv(0, 0, "localhost")] {
        server.set(0, [nothing]);
        assert!(!follower.wait(1, Some(Duration::from_millis(50))));
        let error = follower.error();
        assert!(error.is_none(), "{error:?}");
    }
    server.set(0, [srv(0, one, "localhost")]);
    assert!(follower.wait(1, Some(PATIENCE)));
    server.set(SERVFAIL, []);
    until(|| follower.error().is_some());
    let error = follower.error().unwrap().to_string();
    assert!(error.contains("_work._tcp.example.com: "), "{error}");
    assert_eq!(follower.endpoints(), [at(one)]);
    server.set(0, [srv(0, two, "localhost")]);
    until(|| follower.endpoints() == [at(two)]);
    assert!(follower.error().is_none());
}

#[test]
fn mistakes_are_reported() {
    let context = Context::new();
    let push = socket(&context, SocketType::Push);
    for (service, text) in [
        ("work", "needs a node to find it: use Node::follow"),
        ("dns://name", "is 'dns://host:port', not \"dns://name\""),
        ("dns://:5", "is 'dns://host:port'"),
        ("dns://name:0", "is 'dns://host:port'"),
        ("dns://name:+5", "is 'dns://host:port'"),
        ("dns://name:70000", "is 'dns://host:port'"),
        ("srv://", "is 'srv://_name._tcp.domain'"),
        #[cfg(feature = "srv")]
        ("srv://a..b", "srv://a..b: "),
    ] {
        let error = Lookup::new(service).follow(&push).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(text), "{error}");
    }
    let hasty = Lookup::new("dns://localhost:5").interval(Duration::ZERO);
    let error = hasty.follow(&push).map(drop).unwrap_err().to_string();
    assert!(error.contains("1 ms or more, not 0ns"), "{error}");
    let node = Lan::new().node("own").start().unwrap();
    for service in ["dns://name:5", "srv://name"] {
        let error = node.follow(&push, service).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("use Lookup::new"), "{error}");
    }
    #[cfg(not(feature = "srv"))]
    {
        let lookup = Lookup::new("srv://_work._tcp.example.com");
        let error = lookup.follow(&push).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.to_string().contains("feature \"srv\""), "{error}");
    }
}
