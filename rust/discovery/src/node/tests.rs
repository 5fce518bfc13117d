//! The bounds of a node over real sockets.

use std::net::UdpSocket;

use super::*;

fn patience() -> Wait {
    within(Some(Duration::from_secs(50)))
}

fn until(condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(50);
    while !condition() {
        assert!(Instant::now() < end, "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn whispered(node: &Node) -> String {
    loop {
        if let Event::Whisper { content, .. } = node.recv(patience()).unwrap() {
            return String::from_utf8(content.head().as_slice().to_vec()).unwrap();
        }
    }
}

#[test]
fn events_that_are_not_read_are_bounded() {
    let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = probe.local_addr().unwrap().port();
    drop(probe);
    let start = |name: &str| {
        let mut builder = Node::builder(name).interface("lo").port(port);
        builder.events_max = 10;
        builder.interval(Duration::from_millis(50)).start().unwrap()
    };
    let (one, other) = (start("one"), start("other"));
    until(|| !one.peers().is_empty() && !other.peers().is_empty());
    let numbers: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let whisper_all = || {
        for number in &numbers {
            assert_eq!(one.whisper(other.id(), number.as_str()), Ok(true));
        }
    };
    whisper_all();
    until(|| other.dropped() == 11);
    for number in &numbers[..9] {
        assert_eq!(&whispered(&other), number);
    }
    // From the first call on, what finds no room waits in the sockets.
    whisper_all();
    for number in &numbers {
        assert_eq!(&whispered(&other), number);
    }
    assert_eq!(other.dropped(), 11);
}
