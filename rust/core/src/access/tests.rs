//! Lists and their decisions.

use std::sync::atomic::AtomicUsize;

use zeroxide_proto::mechanisms::MECHANISMS;

use super::*;

#[derive(Default)]
struct Connection {
    revoked: AtomicUsize,
    over: AtomicBool,
}

impl Admitted for Connection {
    fn revoke(&self) {
        self.revoked.fetch_add(1, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

fn connection() -> (Arc<Connection>, Weak<dyn Admitted>) {
    let connection = Arc::new(Connection::default());
    let weak: Weak<Connection> = Arc::downgrade(&connection);
    (connection, weak)
}

fn ask(gate: &Gate, mechanism: &'static str, credentials: &[&[u8]]) -> (u16, String) {
    let credentials = credentials.iter().map(|each| Bytes::copy_from_slice(each));
    let peer = Credentials {
        mechanism,
        credentials: credentials.collect(),
    };
    let mut all = MECHANISMS.iter();
    let spec = all.find(|spec| spec.name == mechanism).unwrap();
    let decision = gate.judge(&peer, spec.shows, connection().1);
    (
        decision.verdict.status,
        decision.verdict.user_id.unwrap_or_default(),
    )
}

#[test]
fn a_list_knows_a_key_however_it_is_spelled() {
    let mut spelled = [1; 32];
    spelled[31] |= 0x80;
    let allowed = AllowList::new();
    allowed.add(spelled, "alice");
    let gate = Gate::Keys(allowed.clone());
    assert_eq!(ask(&gate, "CURVE", &[&[1; 32]]), (200, "alice".to_owned()));
    assert!(allowed.contains(&spelled) && allowed.contains(&[1; 32]));
    allowed.replace([(spelled, "bob".to_owned())]);
    assert_eq!(ask(&gate, "CURVE", &[&[1; 32]]), (200, "bob".to_owned()));
    assert!(allowed.remove(&spelled) && allowed.is_empty());
}

#[test]
fn clients_that_are_not_listed_are_refused() {
    let allowed = AllowList::new();
    let gate = Gate::Keys(allowed.clone());
    assert_eq!(ask(&gate, "CURVE", &[&[1; 32]]).0, 400);
    allowed.add([1; 32], "alice");
    allowed.add([2; 32], "");
    assert_eq!(ask(&gate, "CURVE", &[&[1; 32]]), (200, "alice".to_owned()));
    assert_eq!(ask(&gate, "CURVE", &[&[2; 32]]), (200, key_text(&[2; 32])));
    for (mechanism, credentials) in [
        ("CURVE", &[][..]),
        ("CURVE", &[&[1; 31][..]]),
        ("CURVE", &[&[1; 32][..], &[1; 32]]),
        ("NULL", &[]),
        ("PLAIN", &[b"alice", b""]),
    ] {
        assert_eq!(ask(&gate, mechanism, credentials).0, 400);
    }
    assert!(allowed.remove(&[1; 32]) && !allowed.remove(&[1; 32]));
    assert_eq!(ask(&gate, "CURVE", &[&[1; 32]]).0, 400);
}

#[test]
fn admitting_every_client_ends_with_the_first_list() {
    let allowed = AllowList::anybody();
    let gate = Gate::Keys(allowed.clone());
    assert_eq!(ask(&gate, "CURVE", &[&[3; 32]]), (200, key_text(&[3; 32])));
    allowed.replace([]);
    assert_eq!(ask(&gate, "CURVE", &[&[3; 32]]).0, 400);
}

#[test]
fn a_user_needs_the_password() {
    let users = Passwords::new();
    users.add("bob", "builder");
    let gate = Gate::Users(users.clone());
    assert_eq!(
        ask(&gate, "PLAIN", &[b"bob", b"builder"]),
        (200, "bob".to_owned())
    );
    for (user, password) in [
        ("bob", ""),
        ("bob", "builde"),
        ("bob", "builderr"),
        ("rob", ""),
        ("", ""),
    ] {
        let credentials: &[&[u8]] = &[user.as_bytes(), password.as_bytes()];
        assert_eq!(ask(&gate, "PLAIN", credentials).0, 400);
    }
    users.replace([("rob".to_owned(), "x")]);
    assert_eq!(users.users(), ["rob"]);
    assert_eq!(ask(&gate, "PLAIN", &[b"bob", b"builder"]).0, 400);
}

#[test]
fn clients_that_were_removed_can_be_disconnected() {
    let allowed = AllowList::new();
    allowed.add([1; 32], "");
    allowed.add([2; 32], "");
    let (first, second, over) = (connection(), connection(), connection());
    over.0.over.store(true, Ordering::Relaxed);
    for (key, (_, weak)) in [([1; 32], &first), ([2; 32], &second), ([1; 32], &over)] {
        assert_eq!(allowed.judge(key, weak.clone()).verdict.status, 200);
    }
    assert_eq!(allowed.disconnect_strangers(), 0);
    allowed.remove(&[1; 32]);
    assert_eq!(allowed.disconnect_strangers(), 1);
    let revoked =
        |(connection, _): &(Arc<Connection>, _)| connection.revoked.load(Ordering::Relaxed);
    assert_eq!(
        (revoked(&first), revoked(&second), revoked(&over)),
        (1, 0, 0)
    );
}

#[test]
fn an_earlier_peer_of_a_session_does_not_end_a_later_one() {
    let allowed = AllowList::new();
    for key in [[1; 32], [2; 32]] {
        allowed.add(key, "");
    }
    // A session that connects to one peer after the other.
    let (session, weak) = connection();
    for key in [[1; 32], [2; 32]] {
        assert_eq!(allowed.judge(key, weak.clone()).verdict.status, 200);
    }
    allowed.remove(&[1; 32]);
    assert_eq!(allowed.disconnect_strangers(), 0);
    assert_eq!(session.revoked.load(Ordering::Relaxed), 0);
    allowed.remove(&[2; 32]);
    assert_eq!(allowed.disconnect_strangers(), 1);
    assert_eq!(session.revoked.load(Ordering::Relaxed), 1);
}

#[test]
fn passwords_of_any_length_are_compared() {
    let long = vec![b'x'; 300];
    for length in [0, 1, 254, 255, 256, 300] {
        assert!(is_same(&long[..length], &long[..length]));
        assert!(!is_same(
            &long[..length],
            &[&long[..length], b"\0"].concat()
        ));
        assert!(!is_same(
            &[&long[..length], b"\0"].concat(),
            &long[..length]
        ));
        if length > 0 {
            let mut other = long[..length].to_vec();
            other[length - 1] = b'y';
            assert!(!is_same(&long[..length], &other));
        }
    }
}

#[test]
fn connections_that_are_over_do_not_pile_up() {
    let allowed = AllowList::anybody();
    for _ in 0..10_000 {
        allowed.judge([1; 32], connection().1);
    }
    assert!(lock(&allowed.shared.names.admitted).len() < 100);
}

#[test]
fn keys_are_raw_or_z85() {
    let key = [7; 32];
    let text = key_text(&key);
    assert_eq!(parse_key(&key).unwrap(), key);
    assert_eq!(parse_key(text.as_bytes()).unwrap(), key);
    assert_eq!(parse_key(format!("{text}\0").as_bytes()).unwrap(), key);
    for wrong in [&b""[..], &[7; 31], &[7; 33], &[b'"'; 40], &[b'a'; 41]] {
        let error = parse_key(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(
            error.to_string().contains("32 bytes or 40 characters"),
            "{error}"
        );
    }
}
