//! Two layers that hand each other their bytes, without I/O.

use std::io::IoSlice;
use std::sync::Arc;

use super::*;
use crate::certificates::{Authority, Identity};
use crate::options::{ContextOptions, Value, ids};
use crate::transports::layers::{Layer, Phase};

fn options(settings: &[(i32, Value)]) -> Options {
    let mut options = Options::new(SocketType::Dealer, &ContextOptions::default());
    for (id, value) in settings {
        options.set(*id, value).unwrap();
    }
    options
}

fn text(text: &str) -> Value {
    Value::from(text)
}

fn of(identity: &Identity) -> Vec<(i32, Value)> {
    vec![
        (ids::TLS_CERTIFICATE, text(&identity.certificate)),
        (ids::TLS_KEY, text(&identity.key)),
    ]
}

fn trusting(authority: &Authority) -> Vec<(i32, Value)> {
    vec![(ids::TLS_CA, text(&authority.certificate))]
}

fn server(settings: &[(i32, Value)]) -> TlsLayer {
    let server = Server::new(&options(settings)).unwrap();
    server.layer().unwrap()
}

fn client(host: &str, settings: &[(i32, Value)]) -> TlsLayer {
    let address = format!("{host}:443");
    let client = Client::new(&address, &options(settings)).unwrap();
    client.layer().unwrap()
}

/// A client and a server that trust each other.
fn pair() -> (TlsLayer, TlsLayer) {
    let authority = Authority::new();
    (
        client("localhost", &trusting(&authority)),
        server(&of(&authority.issue(&["localhost"]))),
    )
}

/// Moves what `from` has to send, at most `piece` bytes at a time. Appends what arrives above.
fn pass(
    from: &mut TlsLayer,
    to: &mut TlsLayer,
    piece: usize,
    arrived: &mut Vec<u8>,
) -> Result<bool> {
    let mut moved = false;
    while !from.poll_transmit().is_empty() {
        moved = true;
        let bytes = from.poll_transmit();
        let bytes = bytes[..bytes.len().min(piece)].to_vec();
        from.transmitted(bytes.len());
        to.handle_input(&bytes)?;
        while to.has_input() {
            let mut buffer = Vec::with_capacity(1000);
            to.poll_input(&mut buffer)?;
            arrived.extend(buffer);
        }
    }
    Ok(moved)
}

/// Passes bytes both ways until neither side has any.
fn settle(near: &mut TlsLayer, far: &mut TlsLayer, piece: usize) -> Result<()> {
    let mut arrived = Vec::new();
    while pass(near, far, piece, &mut arrived)? | pass(far, near, piece, &mut arrived)? {}
    assert!(arrived.is_empty());
    Ok(())
}

/// The errors of both sides, the one that fails first in front.
fn failures(near: &mut TlsLayer, far: &mut TlsLayer) -> Vec<String> {
    let mut arrived = Vec::new();
    let mut failed = Vec::new();
    for _ in 0..10 {
        for there in [true, false] {
            let passed = match there {
                true => pass(near, far, usize::MAX, &mut arrived),
                false => pass(far, near, usize::MAX, &mut arrived),
            };
            failed.extend(passed.err().map(|error| error.to_string()));
        }
    }
    failed
}

fn write(layer: &mut TlsLayer, bytes: &[u8]) -> usize {
    layer.handle_output(&[IoSlice::new(bytes)])
}

/// A client sends as soon as its own handshake is complete, so a server may read the end of it and messages at once.
#[test]
fn bytes_that_arrive_with_the_end_of_the_handshake_count() {
    let (mut client, mut server) = pair();
    let mut arrived = Vec::new();
    pass(&mut client, &mut server, usize::MAX, &mut arrived).unwrap();
    pass(&mut server, &mut client, usize::MAX, &mut arrived).unwrap();
    assert_eq!(
        (client.phase(), server.phase()),
        (Phase::Open, Phase::Opening)
    );
    let sent = vec![7; 40_000];
    assert_eq!(write(&mut client, &sent), sent.len());
    server.handle_input(client.poll_transmit()).unwrap();
    assert_eq!(server.phase(), Phase::Open);
    while server.has_input() {
        let mut buffer = Vec::with_capacity(1000);
        server.poll_input(&mut buffer).unwrap();
        arrived.extend(buffer);
    }
    assert!(arrived == sent);
}

/// A server with several names chooses its certificate by it (RFC 6066, section 3).
#[test]
fn a_client_sends_the_name_of_the_server() {
    let (mut client, mut server) = pair();
    settle(&mut client, &mut server, usize::MAX).unwrap();
    match &server.connection {
        rustls::Connection::Server(server) => assert_eq!(server.server_name(), Some("localhost")),
        rustls::Connection::Client(_) => unreachable!("a server"),
    }
}

#[test]
fn bytes_arrive_however_they_are_cut() {
    for piece in [1, 7, 1000, 5000, 16 * 1024, usize::MAX] {
        let (mut client, mut server) = pair();
        assert_eq!(client.phase(), Phase::Opening);
        settle(&mut client, &mut server, piece).unwrap();
        assert_eq!((client.phase(), server.phase()), (Phase::Open, Phase::Open));
        let sent: Vec<u8> = (0..40_000_u32).map(|n| (n / 7) as u8).collect();
        let mut both = [client, server];
        for _ in 0..2 {
            let [from, to] = &mut both;
            let (head, body) = sent.split_at(9);
            let slices = [IoSlice::new(head), IoSlice::new(&[]), IoSlice::new(body)];
            assert_eq!(from.handle_output(&slices), sent.len());
            assert!(!from.poll_transmit().windows(9).any(|window| window == head));
            let mut arrived = Vec::new();
            pass(from, to, piece, &mut arrived).unwrap();
            assert!(arrived == sent, "{piece}");
            both.reverse();
        }
    }
}

#[test]
fn a_layer_that_is_not_read_takes_no_more_and_loses_nothing() {
    let (mut client, mut server) = pair();
    settle(&mut client, &mut server, usize::MAX).unwrap();
    let mut written = 0;
    loop {
        let count = write(&mut client, &[7; 10_000]);
        written += count;
        if count == 0 {
            break;
        }
    }
    assert!(client.poll_transmit().len() < 200_000);
    let mut arrived = Vec::new();
    pass(&mut client, &mut server, 16 * 1024, &mut arrived).unwrap();
    assert_eq!(arrived.len(), written);
    assert!(
        client.outgoing.buffer().capacity() == 0,
        "an idle layer has no buffer"
    );
    assert!(write(&mut client, b"again") == 5);
}

#[test]
fn a_large_write_is_taken_in_part() {
    let (mut client, mut server) = pair();
    settle(&mut client, &mut server, usize::MAX).unwrap();
    let taken = write(&mut client, &vec![1; 10 << 20]);
    assert!((1..1 << 17).contains(&taken), "{taken}");
}

#[test]
fn the_farewell_ends_the_other_side() {
    let (mut client, mut server) = pair();
    settle(&mut client, &mut server, usize::MAX).unwrap();
    write(&mut client, b"last words");
    client.finish();
    let mut arrived = Vec::new();
    pass(&mut client, &mut server, usize::MAX, &mut arrived).unwrap();
    assert_eq!(arrived, b"last words");
    assert!(server.has_ended() && !client.has_ended());
    // What follows the end is ignored.
    server.handle_input(b"more").unwrap();
    assert!(!server.has_input());
    server.handle_end(None).unwrap();
}

#[test]
fn tampering_is_noticed() {
    let (mut client, mut server) = pair();
    settle(&mut client, &mut server, usize::MAX).unwrap();
    write(&mut client, b"pay 10");
    let mut bytes = client.poll_transmit().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let error = server.handle_input(&bytes).unwrap_err();
    assert!(error.to_string().contains("decrypt"), "{error}");
}

#[test]
fn addresses_and_other_names_are_checked_as_well() {
    let authority = Authority::new();
    let trust = trusting(&authority);
    let identity = authority.issue(&["127.0.0.1", "::1", "collector.example"]);
    for host in [
        "127.0.0.1",
        "[::1]",
        "collector.example",
        "192.0.2.1:0;127.0.0.1",
    ] {
        let (mut near, mut far) = (client(host, &trust), server(&of(&identity)));
        settle(&mut near, &mut far, usize::MAX).unwrap();
    }
    let named = [
        &trust[..],
        &[(ids::TLS_HOSTNAME, text("collector.example"))],
    ]
    .concat();
    let (mut near, mut far) = (client("127.0.0.2", &named), server(&of(&identity)));
    settle(&mut near, &mut far, usize::MAX).unwrap();
}

#[test]
fn a_certificate_that_is_not_trusted_is_refused_on_both_sides() {
    let (authority, other) = (Authority::new(), Authority::new());
    let expired = authority.issue_with(&["localhost"], |params| {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    let early = authority.issue_with(&["localhost"], |params| {
        params.not_before = rcgen::date_time_ymd(3000, 1, 1);
    });
    let ca = authority.issue_with(&["localhost"], |params| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    });
    let purpose = authority.issue_with(&["localhost"], |params| {
        params
            .extended_key_usages
            .push(rcgen::ExtendedKeyUsagePurpose::ClientAuth);
    });
    for (identity, words, told) in [
        (expired, "renew it", "has expired"),
        (early, "not valid yet", "certificate"),
        (
            other.issue(&["localhost"]),
            "TLS_CA",
            "does not trust the CA",
        ),
        (
            authority.issue(&["a.example"]),
            "is for a.example, not for localhost",
            "refuses",
        ),
        (
            authority.issue(&[]),
            "has no name in subjectAltName",
            "refuses",
        ),
        (ca, "CA:TRUE", "certificate"),
        (purpose, "serverAuth", "certificate"),
    ] {
        let mut near = client("localhost", &trusting(&authority));
        let mut far = server(&of(&identity));
        let failed = failures(&mut near, &mut far);
        assert!(failed[0].contains(words), "{failed:?}");
        assert!(failed[0].contains("the server localhost"), "{failed:?}");
        assert!(failed[1].contains(told), "{failed:?}");
        // Unless the application does not want the check.
        let settings = [(ids::TLS_VERIFY, Value::Int(0))];
        let mut near = client("localhost", &settings);
        let mut far = server(&of(&identity));
        settle(&mut near, &mut far, usize::MAX).unwrap();
    }
}

#[test]
fn clients_have_certificates_if_the_server_requires_them() {
    let (authority, other) = (Authority::new(), Authority::new());
    let trust = trusting(&authority);
    let run = |auth: Option<i64>, identity: Option<Identity>| {
        let mut near = trust.clone();
        near.extend(identity.iter().flat_map(of));
        let mut far = [&of(&authority.issue(&["localhost"]))[..], &trust].concat();
        far.extend(auth.map(|auth| (ids::TLS_CLIENT_AUTH, Value::Int(auth))));
        failures(&mut client("localhost", &near), &mut server(&far))
    };
    let known = || Some(authority.issue(&["alice"]));
    let stranger = || Some(other.issue(&["mallory"]));
    for auth in [None, Some(1), Some(2)] {
        assert_eq!(run(auth, known()), Vec::<String>::new());
        let failed = run(auth, stranger());
        assert!(
            failed[0].contains("put its CA's certificate into TLS_CA"),
            "{failed:?}"
        );
        assert!(failed[1].contains("does not trust the CA"), "{failed:?}");
        let failed = run(auth, None);
        match auth {
            Some(1) => assert_eq!(failed, Vec::<String>::new()),
            _ => {
                assert!(
                    failed[0].contains("the client has no certificate"),
                    "{failed:?}"
                );
                assert!(failed[1].contains("set TLS_CERTIFICATE"), "{failed:?}");
            }
        }
    }
    assert_eq!(run(Some(0), None), Vec::<String>::new());
    assert_eq!(run(Some(0), stranger()), Vec::<String>::new());
}

#[test]
fn protocols_are_negotiated_if_both_sides_have_some() {
    let authority = Authority::new();
    let identity = authority.issue(&["localhost"]);
    let alpn = |mut settings: Vec<(i32, Value)>, names: &str| {
        settings.push((ids::TLS_ALPN, text(names)));
        settings
    };
    let run = |ours: &str, theirs: &str| {
        let mut near = client("localhost", &alpn(trusting(&authority), ours));
        let mut far = server(&alpn(of(&identity), theirs));
        let failed = failures(&mut near, &mut far);
        let chosen = near.connection.alpn_protocol().map(<[u8]>::to_vec);
        (failed, chosen)
    };
    assert_eq!(
        run("zmtp, http/1.1", "http/1.1,zmtp").1.unwrap(),
        b"http/1.1"
    );
    for (ours, theirs) in [("", ""), ("zmtp", ""), ("", "zmtp")] {
        assert_eq!(run(ours, theirs), (Vec::new(), None));
    }
    let (failed, _) = run("zmtp", "h2");
    assert!(
        failed[0].contains("offers no protocol that is in TLS_ALPN"),
        "{failed:?}"
    );
    assert!(
        failed[1].contains("none of the protocols in TLS_ALPN"),
        "{failed:?}"
    );
}

#[test]
fn a_peer_that_does_not_speak_tls_is_recognised() {
    let greeting = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL";
    for (said, words) in [
        (&greeting[..], "let it connect to tls+tcp://"),
        (b"GET / HTTP/1.1\r\n", "does not speak TLS"),
    ] {
        let error = pair().1.handle_input(said).unwrap_err().to_string();
        assert!(
            error.contains("the client") && error.contains(words),
            "{error}"
        );
    }
    let error = pair().0.handle_input(greeting).unwrap_err().to_string();
    assert!(error.contains("connect to tcp://"), "{error}");
    for mut layer in [pair().0, pair().1] {
        let gone = layer.handle_end(None).unwrap_err().to_string();
        assert!(gone.contains("during the TLS handshake"), "{gone}");
    }
}

#[test]
fn no_bytes_make_it_panic_or_keep_much() {
    let (mut near, mut far) = pair();
    let hello = near.poll_transmit().to_vec();
    near.transmitted(hello.len());
    far.handle_input(&hello).unwrap();
    let answer = far.poll_transmit().to_vec();
    let config = match Client::new("localhost:1", &options(&[(ids::TLS_VERIFY, Value::Int(0))])) {
        Ok(client) => client.config,
        Err(error) => panic!("{error}"),
    };
    let identity = Authority::new().issue(&["localhost"]);
    let accepting = Server::new(&options(&of(&identity))).unwrap();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..400 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (mut layer, said) = match round % 2 {
            0 => (accepting.layer().unwrap(), &hello),
            _ => {
                let name = ServerName::try_from("localhost").unwrap();
                let layer = TlsLayer::client(Arc::clone(&config), name).unwrap();
                (layer, &answer)
            }
        };
        let mut said = said.clone();
        let place = (random >> 32) as usize % said.len();
        said[place] ^= (random as u8).max(1);
        let _ = layer.handle_input(&said);
        assert!(layer.received.len() <= said.len());
        assert!(layer.poll_transmit().len() < 20_000);
    }
    // A handshake message that never ends.
    let mut layer = accepting.layer().unwrap();
    let record = [
        &[22, 3, 1, 0x40, 0][..],
        &[1, 0xff, 0xff, 0xff],
        &[0; 16_380],
    ]
    .concat();
    let refused = (0..10).find_map(|_| layer.handle_input(&record).err());
    assert!(refused.is_some());
}

#[test]
fn mistakes_are_found_before_the_first_connection() {
    let authority = Authority::new();
    let (identity, other) = (authority.issue(&["a"]), authority.issue(&["b"]));
    let refused = |settings: &[(i32, Value)]| match Server::new(&options(settings)) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("accepted"),
    };
    let certificate = (ids::TLS_CERTIFICATE, text(&identity.certificate));
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (settings, words) in [
        (vec![], "needs TLS_CERTIFICATE and TLS_KEY"),
        (vec![certificate.clone()], "TLS_KEY is missing"),
        (
            vec![certificate.clone(), (ids::TLS_KEY, text(&other.key))],
            "TLS_KEY is not the key of TLS_CERTIFICATE",
        ),
        (
            vec![
                certificate.clone(),
                (ids::TLS_KEY, text(&identity.certificate)),
            ],
            "TLS_KEY has no private key",
        ),
        (
            vec![certificate.clone(), (ids::TLS_KEY, text(encrypted))],
            "with a password",
        ),
        (
            vec![(ids::TLS_CERTIFICATE, text(&identity.key))],
            "TLS_CERTIFICATE has no certificate",
        ),
        (
            vec![(ids::TLS_CERTIFICATE, text("/no/such/file"))],
            "TLS_CERTIFICATE /no/such/file",
        ),
        (
            [&of(&identity)[..], &[(ids::TLS_CLIENT_AUTH, Value::Int(2))]].concat(),
            "TLS_CLIENT_AUTH = 2 needs TLS_CA",
        ),
        (
            [
                &of(&identity)[..],
                &[(ids::TLS_CA, text("-----BEGIN nonsense"))],
            ]
            .concat(),
            "TLS_CA",
        ),
        (
            [&of(&identity)[..], &[(ids::TLS_ALPN, text("a,,b"))]].concat(),
            "TLS_ALPN",
        ),
    ] {
        let error = refused(&settings);
        assert!(error.contains(words), "{error}");
        assert!(!error.contains("BEGIN PRIVATE"), "{error}");
    }
    let both = format!("{}{}", identity.certificate, identity.key);
    server(&[(ids::TLS_CERTIFICATE, text(&both))]);
    let untrusting = [(ids::TLS_TRUST_SYSTEM, Value::Int(0))];
    for (host, settings, words) in [
        ("localhost", &untrusting[..], "leaves no CA to trust"),
        ("eth0:1", &trusting(&authority), "set TLS_HOSTNAME"),
        (
            "localhost",
            &[(ids::TLS_CA, text("/no/file"))],
            "TLS_CA /no/file",
        ),
    ] {
        let address = format!("{host}:443");
        match Client::new(&address, &options(settings)) {
            Err(error) => assert!(error.to_string().contains(words), "{error}"),
            Ok(_) => panic!("{host} is accepted"),
        }
    }
}

#[test]
fn a_changed_option_counts_from_the_next_connection_on() {
    let authority = Authority::new();
    let mut options = options(&trusting(&authority));
    let before = Client::new("localhost:1", &options).unwrap().config;
    let again = Client::new("localhost:1", &options).unwrap().config;
    assert!(Arc::ptr_eq(&before, &again));
    options.set(ids::TLS_VERIFY, &Value::Int(0)).unwrap();
    let after = Client::new("localhost:1", &options).unwrap().config;
    assert!(!Arc::ptr_eq(&before, &after));
    assert!(!format!("{options:?}").contains("BEGIN PRIVATE"));
}

#[test]
fn a_connection_to_an_unchecked_server_is_not_private() {
    let (near, far) = pair();
    assert!(near.is_private() && far.is_private());
    let unchecked = client("localhost", &[(ids::TLS_VERIFY, Value::Int(0))]);
    assert!(!unchecked.is_private());
}

#[test]
fn an_end_without_close_notify_is_an_error() {
    let (mut client, mut server) = pair();
    settle(&mut client, &mut server, usize::MAX).unwrap();
    assert_eq!(write(&mut client, b"all"), 3);
    let mut arrived = Vec::new();
    pass(&mut client, &mut server, usize::MAX, &mut arrived).unwrap();
    assert_eq!(arrived, b"all");
    let error = server.handle_end(None).unwrap_err().to_string();
    assert!(error.contains("the connection was cut"), "{error}");
    client.finish();
    pass(&mut client, &mut server, usize::MAX, &mut arrived).unwrap();
    assert!(server.has_ended());
    server.handle_end(None).unwrap();
}
