//! REQ and REP from outside: which server gets a request, which client gets the reply, and what happens when one of
//! them is gone.

mod common;

use std::collections::HashMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::raw::{self, COMMAND, MORE};
use common::{
    IpcName, Monitor, SocketExt, Watchdog, free_tcp_endpoint, in_threads, inproc_name, message,
    rounds, socket, text, until,
};
use zeroxide::binding::{PartsReceiver, SocketInternals};
use zeroxide::{
    Context, DropReason, ErrorKind, EventKind, Proxy, Socket, SocketType, Value, Wait, ids,
};

use SocketType::{Dealer, Rep, Req, Router};

fn endpoints() -> Vec<String> {
    vec![
        "tcp://127.0.0.1:*".to_owned(),
        IpcName::new().endpoint(),
        inproc_name(),
    ]
}

/// A REP that answers with its own name, until its context ends.
fn answerer(context: &Context, endpoint: &str, name: &'static str) -> thread::JoinHandle<()> {
    let rep = socket(context, Rep);
    rep.connect(endpoint).unwrap();
    thread::spawn(move || {
        while let Ok(question) = rep.recv(Wait::Forever) {
            let answer = message([name.as_bytes(), question.head()]);
            if rep.send(answer, Wait::Forever).is_err() {
                return;
            }
        }
    })
}

#[test]
fn all_peers_are_asked_in_turn() {
    let _watchdog = Watchdog::new("all_peers_are_asked_in_turn");
    for endpoint in endpoints() {
        let context = Context::new();
        let req = socket(&context, Req);
        let endpoint = req.bind(&endpoint).unwrap();
        let answerers = ["a", "b", "c"].map(|name| answerer(&context, &endpoint, name));
        until(|| req.peers() == 3);
        let mut answers: HashMap<String, usize> = HashMap::new();
        for n in 0..30 {
            let question = n.to_string();
            req.put(&question);
            let answer = req.take();
            let (who, what) = answer.split_once('/').unwrap();
            assert_eq!(what, question);
            *answers.entry(who.to_owned()).or_default() += 1;
        }
        assert_eq!(
            answers,
            HashMap::from([("a".into(), 10), ("b".into(), 10), ("c".into(), 10)])
        );
        context.shutdown();
        answerers
            .into_iter()
            .for_each(|answerer| answerer.join().unwrap());
    }
}

#[test]
fn calls_out_of_turn_are_errors() {
    let context = Context::new();
    let (rep, req) = (socket(&context, Rep), socket(&context, Req));
    req.connect(&rep.bind(&inproc_name()).unwrap()).unwrap();
    assert_eq!(
        rep.send("x", Wait::Dont).unwrap_err().error.kind(),
        ErrorKind::Fsm
    );
    assert_eq!(req.nothing(), ErrorKind::Fsm);
    req.put("question");
    assert_eq!(
        req.send("x", Wait::Dont).unwrap_err().error.kind(),
        ErrorKind::Fsm
    );
    assert_eq!(rep.take(), "question");
    assert_eq!(rep.nothing(), ErrorKind::Fsm);
    rep.put("answer");
    assert_eq!(req.take(), "answer");
}

/// Two hops, many clients, many workers: each answer returns to the client that asked.
#[test]
fn answers_find_their_way_back_through_a_queue() {
    let _watchdog = Watchdog::new("answers_find_their_way_back_through_a_queue");
    let context = Context::new();
    let (front, back) = (socket(&context, Router), socket(&context, Dealer));
    let front_endpoint = front.bind("tcp://127.0.0.1:*").unwrap();
    let back_endpoint = back.bind(&inproc_name()).unwrap();
    let queue = thread::spawn(move || Proxy::new(front, back, None, None).run());
    let workers = ["a", "b", "c"].map(|name| answerer(&context, &back_endpoint, name));
    let asking = context.clone();
    let each = rounds(300, 20_000);
    in_threads(8, move |client| {
        let req = socket(&asking, Req);
        req.connect(&front_endpoint).unwrap();
        for n in 0..each {
            let question = format!("{client}.{n}");
            req.put(&question);
            assert!(req.take().ends_with(&format!("/{question}")));
        }
    });
    context.shutdown();
    assert_eq!(
        queue.join().unwrap().unwrap_err().kind(),
        ErrorKind::Terminated
    );
    workers
        .into_iter()
        .for_each(|worker| worker.join().unwrap());
}

#[test]
fn an_answer_to_a_departed_peer_is_counted() {
    let _watchdog = Watchdog::new("an_answer_to_a_departed_peer_is_counted");
    for endpoint in endpoints() {
        let context = Context::new();
        let rep = socket(&context, Rep);
        let endpoint = rep.bind(&endpoint).unwrap();
        for n in 1..=5 {
            let gone = socket(&context, Req);
            gone.connect(&endpoint).unwrap();
            gone.put("question");
            assert_eq!(rep.take(), "question");
            drop(gone);
            until(|| rep.stats().unwrap().peers.is_empty());
            rep.put("answer");
            assert_eq!(rep.dropped(DropReason::PeerGone), n);
        }
        let here = socket(&context, Req);
        here.connect(&endpoint).unwrap();
        here.put("question");
        assert_eq!(rep.take(), "question");
        rep.put("answer");
        assert_eq!(here.take(), "answer");
    }
}

/// A strict REQ waits for the peer that it asked, without a limit. With REQ_RELAXED it may ask another one.
#[test]
fn a_question_whose_answerer_died() {
    let _watchdog = Watchdog::new("a_question_whose_answerer_died");
    let context = Context::new();
    let endpoint = free_tcp_endpoint();
    for relaxed in [false, true] {
        let req = socket(&context, Req);
        req.int(ids::RECONNECT_IVL, 1);
        req.int(ids::REQ_RELAXED, relaxed.into());
        req.int(ids::REQ_CORRELATE, 1);
        let events = Monitor::of(&context, &req);
        req.connect(&endpoint).unwrap();
        let rep = socket(&context, Rep);
        until(|| rep.bind(&endpoint).is_ok());
        req.put("first");
        assert_eq!(rep.take(), "first");
        drop(rep);
        events.wait_for(EventKind::Disconnected);
        let rep = socket(&context, Rep);
        until(|| rep.bind(&endpoint).is_ok());
        events.wait_for(EventKind::HandshakeSucceeded);
        assert_eq!(req.nothing(), ErrorKind::Again);
        let second = req.send("second", Wait::Forever);
        if relaxed {
            second.unwrap();
            assert_eq!(rep.take(), "second");
            rep.put("answer");
            assert_eq!(req.take(), "answer");
        } else {
            assert_eq!(second.unwrap_err().error.kind(), ErrorKind::Fsm);
        }
    }
}

/// A late answer is not taken for the answer to a later question.
#[test]
fn late_answers_are_distinguished_by_their_number() {
    let _watchdog = Watchdog::new("late_answers_are_distinguished_by_their_number");
    for endpoint in endpoints() {
        let context = Context::new();
        let router = socket(&context, Router);
        let req = socket(&context, Req);
        req.int(ids::REQ_RELAXED, 1);
        req.int(ids::REQ_CORRELATE, 1);
        req.connect(&router.bind(&endpoint).unwrap()).unwrap();
        let mut questions = Vec::new();
        for n in 0..10 {
            req.put(&n.to_string());
            questions.push(router.recv(Wait::Forever).unwrap());
        }
        // The last one last.
        for question in &questions {
            assert_eq!(question.len(), 4, "name, number, delimiter, body");
            router.send(question.clone(), Wait::Forever).unwrap();
        }
        assert_eq!(req.take(), "9");
        assert_eq!(
            req.dropped(DropReason::Stale),
            9 + 9,
            "given up, and answered all the same"
        );
    }
}

#[test]
fn requests_without_an_envelope_are_not_seen() {
    let _watchdog = Watchdog::new("requests_without_an_envelope_are_not_seen");
    let context = Context::new();
    let rep = socket(&context, Rep);
    let endpoint = rep.bind("tcp://127.0.0.1:*").unwrap();
    let dealer = socket(&context, Dealer);
    dealer.connect(&endpoint).unwrap();
    dealer.put("no delimiter");
    dealer
        .send(message([b"", b"proper"]), Wait::Forever)
        .unwrap();
    assert_eq!(rep.take(), "proper");
    rep.put("answer");
    assert_eq!(dealer.take(), "/answer");
    dealer
        .send(message([b"a", b"b", b""]), Wait::Forever)
        .unwrap();
    dealer
        .send(message([b"route", b"", b"", b"body"]), Wait::Forever)
        .unwrap();
    // The first empty frame ends the envelope.
    assert_eq!(rep.take(), "/body");
    rep.put("answer");
    assert_eq!(dealer.take(), "route//answer");
    assert_eq!(rep.dropped(DropReason::Malformed), 2);
}

/// Answers a REQ with arbitrary messages.
fn raw_answers(listener: &TcpListener, frames: &[(u8, &[u8])]) -> TcpStream {
    use std::io::Read;
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&raw::greeting()).unwrap();
    stream
        .write_all(&raw::frame(COMMAND, &raw::ready("REP")))
        .unwrap();
    stream.read_exact(&mut [0; 64]).unwrap();
    raw::read_frame(&mut stream).unwrap();
    // The question: delimiter and body.
    assert_eq!(raw::read_frame(&mut stream).unwrap(), (MORE, vec![]));
    raw::read_frame(&mut stream).unwrap();
    for (flags, body) in frames {
        stream.write_all(&raw::frame(*flags, body)).unwrap();
    }
    stream
}

#[test]
fn answers_without_an_envelope_are_not_taken() {
    let _watchdog = Watchdog::new("answers_without_an_envelope_are_not_taken");
    let context = Context::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let req = socket(&context, Req);
    req.connect(&format!("tcp://{}", listener.local_addr().unwrap()))
        .unwrap();
    req.put("question");
    let _stream = raw_answers(
        &listener,
        &[
            (0, b"no delimiter"),
            (0, b""),
            (MORE, b"x"),
            (0, b"y"),
            (MORE, b""),
            (MORE, b"proper"),
            (0, b"answer"),
        ],
    );
    assert_eq!(text(&req.recv(Wait::Forever).unwrap()), "proper/answer");
    assert_eq!(req.dropped(DropReason::Malformed), 3);
}

/// A timeout is a timeout of the call: the answer can be waited for once more.
#[test]
fn an_answer_can_be_waited_for_again() {
    let _watchdog = Watchdog::new("an_answer_can_be_waited_for_again");
    let context = Context::new();
    let (rep, req) = (socket(&context, Rep), socket(&context, Req));
    req.connect(&rep.bind("tcp://127.0.0.1:*").unwrap())
        .unwrap();
    req.int(ids::RCVTIMEO, 5);
    req.put("question");
    assert_eq!(
        req.recv(Wait::Default).unwrap_err().kind(),
        ErrorKind::Again
    );
    let soon = Wait::Until(Instant::now() + Duration::from_millis(5));
    assert_eq!(req.recv(soon).unwrap_err().kind(), ErrorKind::Again);
    assert_eq!(rep.take(), "question");
    rep.put("answer");
    assert_eq!(req.take(), "answer");
}

/// No client is served twice before every waiting client is served once.
#[test]
fn questions_are_answered_fairly() {
    let _watchdog = Watchdog::new("questions_are_answered_fairly");
    let context = Context::new();
    let rep = socket(&context, Rep);
    let endpoint = rep.bind("tcp://127.0.0.1:*").unwrap();
    let many = socket(&context, Dealer);
    many.connect(&endpoint).unwrap();
    for _ in 0..1000 {
        many.send(message([b"", b"loud"]), Wait::Forever).unwrap();
    }
    let clients: Vec<Socket> = (0..9)
        .map(|_| {
            let client = socket(&context, Req);
            client.connect(&endpoint).unwrap();
            client
        })
        .collect();
    for round in 0..rounds(20, 100) {
        clients
            .iter()
            .for_each(|client| client.put(&round.to_string()));
        let waiting = || {
            rep.stats()
                .unwrap()
                .peers
                .iter()
                .filter(|peer| peer.queued_in > 0)
                .count()
        };
        until(|| waiting() == 10);
        let mut seen = 0;
        for _ in 0..10 {
            let question = rep.take();
            seen += usize::from(question == round.to_string());
            rep.put(&question);
        }
        assert_eq!(seen, 9);
        clients
            .iter()
            .for_each(|client| assert_eq!(client.take(), round.to_string()));
    }
}

/// A question whose asker left with the answer, which came back.
#[test]
fn an_answer_that_was_given_back_answers_no_later_question() {
    for relaxed in [false, true] {
        for parts in [false, true] {
            let context = Context::new();
            let (rep, req) = (socket(&context, Rep), socket(&context, Req));
            req.int(ids::REQ_RELAXED, relaxed.into());
            req.int(ids::REQ_CORRELATE, relaxed.into());
            req.connect(&rep.bind(&inproc_name()).unwrap()).unwrap();
            req.put("one");
            rep.take();
            rep.send(message([b"first", b"more"]), Wait::Dont).unwrap();
            let answer = req.recv(Wait::Dont).unwrap();
            if parts {
                let first = req.begin_parts(answer, None);
                let me = PartsReceiver::current().unwrap();
                req.give_back_parts(&me, 0, vec![first], None);
            } else {
                req.give_back(0, vec![(answer, None)]);
            }
            assert_eq!(req.events().unwrap().is_writable(), relaxed);
            if relaxed {
                req.put("two");
                assert_eq!(req.dropped(DropReason::Stale), 1);
                assert_eq!(req.nothing(), ErrorKind::Again);
            } else {
                let (sent, failed) = req.send_batch(["two"], Wait::Dont);
                assert_eq!((sent, failed.unwrap().error.kind()), (0, ErrorKind::Fsm));
                let failed = req.send("two", Wait::Dont).unwrap_err();
                assert_eq!(failed.error.kind(), ErrorKind::Fsm);
                assert_eq!(&req.recv_part(Wait::Dont).unwrap()[..], b"first");
                assert_eq!(&req.recv_part(Wait::Dont).unwrap()[..], b"more");
                req.put("two");
            }
            assert_eq!(rep.take(), "two");
            rep.put("second");
            assert_eq!(req.take(), "second");
        }
    }
}

/// The client sent another request before it turned out that its answer was not taken.
#[test]
fn an_answer_that_comes_back_too_late_is_forgotten() {
    let context = Context::new();
    let (rep, req) = (socket(&context, Rep), socket(&context, Req));
    req.connect(&rep.bind(&inproc_name()).unwrap()).unwrap();
    req.put("one");
    let question = rep.recv(Wait::Dont).unwrap();
    rep.put("first");
    rep.give_back(0, vec![(question, None)]);
    assert_eq!(rep.nothing(), ErrorKind::Again);
    let answer = req.recv(Wait::Dont).unwrap();
    req.put("two");
    req.give_back(1, vec![(answer, None)]);
    assert_eq!(req.nothing(), ErrorKind::Again);
    assert_eq!(req.dropped(DropReason::Stale), 1);
    assert_eq!(rep.take(), "two");
    rep.put("second");
    assert_eq!(req.take(), "second");
}

#[test]
fn a_question_that_was_given_back_is_not_answered() {
    let context = Context::new();
    let (rep, req) = (socket(&context, Rep), socket(&context, Req));
    req.connect(&rep.bind(&inproc_name()).unwrap()).unwrap();
    req.put("question");
    let question = rep.recv(Wait::Dont).unwrap();
    rep.give_back(0, vec![(question, None)]);
    let events = rep.events().unwrap();
    assert!(events.is_readable() && !events.is_writable());
    assert_eq!(
        rep.send("x", Wait::Dont).unwrap_err().error.kind(),
        ErrorKind::Fsm
    );
    assert_eq!(rep.take(), "question");
    rep.put("answer");
    assert_eq!(req.take(), "answer");
}

#[test]
fn a_rep_takes_the_options_of_a_router_that_mean_nothing_to_it() {
    let _watchdog = Watchdog::new("a_rep_takes_the_options_of_a_router_that_mean_nothing_to_it");
    let context = Context::new();
    let rep = socket(&context, Rep);
    for option in [
        ids::ROUTER_MANDATORY,
        ids::ROUTER_HANDOVER,
        ids::PROBE_ROUTER,
    ] {
        rep.int(option, 1);
    }
    rep.bytes(ids::CONNECT_ROUTING_ID, b"x");
    let raw = rep.set_option(ids::ROUTER_RAW, &Value::Int(1));
    assert_eq!(raw.unwrap_err().kind(), ErrorKind::Invalid);
    let endpoint = rep.bind("tcp://127.0.0.1:*").unwrap();
    let dealer = socket(&context, Dealer);
    dealer.connect(&endpoint).unwrap();
    assert_eq!(dealer.take(), "");
    let req = socket(&context, Req);
    req.connect(&endpoint).unwrap();
    req.put("question");
    assert_eq!(rep.take(), "question");
    rep.put("answer");
    assert_eq!(req.take(), "answer");
}
