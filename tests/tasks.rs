//! Sockets in async programs: on tokio, and on a bare executor of a thread that parks.

mod common;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use common::{Watchdog, inproc_name};
use tokio::runtime::{Builder, Runtime};
use zeroxide::{Context, ErrorKind, Message, Socket, SocketType, Value, Wait, ids};

/// Wakes a thread, and counts how often.
struct Unpark(Thread, AtomicUsize);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.unpark();
    }
}

fn unpark() -> Arc<Unpark> {
    Arc::new(Unpark(thread::current(), AtomicUsize::new(0)))
}

/// The bare executor.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(unpark());
    loop {
        match future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn tokio() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
}

fn transports() -> [String; 2] {
    ["tcp://127.0.0.1:*".to_owned(), inproc_name()]
}

fn pair(context: &Context, endpoint: &str, types: [SocketType; 2]) -> [Socket; 2] {
    let [one, two] = types.map(|of| context.socket(of).unwrap());
    for socket in [&one, &two] {
        socket.set_option(ids::SNDHWM, &Value::Int(2)).unwrap();
        socket.set_option(ids::RCVHWM, &Value::Int(2)).unwrap();
    }
    two.connect(&one.bind(endpoint).unwrap()).unwrap();
    [one, two]
}

const PAIR: [SocketType; 2] = [SocketType::Pair, SocketType::Pair];
const PIPELINE: [SocketType; 2] = [SocketType::Pull, SocketType::Push];

fn text(message: Message) -> String {
    String::from_utf8(message.into_head().to_vec()).unwrap()
}

/// Answers until the context is shut down.
async fn echo(socket: Socket) -> ErrorKind {
    loop {
        match socket.recv_async().await {
            Ok(message) => match socket.send_async(message).await {
                Ok(()) => {}
                Err(failed) => return failed.error.kind(),
            },
            Err(error) => return error.kind(),
        }
    }
}

/// Many more messages than the queues take, with the answers read at the same time.
async fn ask(socket: &Socket, count: usize) {
    let mut sent = 0;
    let mut received = 0;
    let mut message = Message::from("0");
    poll_fn(|context| {
        while sent < count && socket.poll_send(context, &mut message).is_ready() {
            sent += 1;
            message = Message::from(sent.to_string().as_str());
        }
        while let Poll::Ready(answer) = socket.poll_recv(context) {
            assert_eq!(text(answer.unwrap()), received.to_string());
            received += 1;
            if received == count {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    })
    .await;
}

#[test]
fn messages_pass_both_ways_on_a_bare_executor() {
    let _watchdog = Watchdog::new("messages_pass_both_ways_on_a_bare_executor");
    for endpoint in transports() {
        let context = Context::new();
        let [one, two] = pair(&context, &endpoint, PAIR);
        let other = thread::spawn(|| block_on(echo(one)));
        block_on(ask(&two, 1000));
        context.shutdown();
        assert_eq!(other.join().unwrap(), ErrorKind::Terminated);
        two.close(None);
        context.term().unwrap();
    }
}

#[test]
fn messages_pass_both_ways_on_tokio() {
    let _watchdog = Watchdog::new("messages_pass_both_ways_on_tokio");
    let runtime = tokio();
    for endpoint in transports() {
        let context = Context::new();
        let [one, two] = pair(&context, &endpoint, PAIR);
        let other = runtime.spawn(echo(one));
        let asking = runtime.spawn(async move { ask(&two, 1000).await });
        runtime.block_on(asking).unwrap();
        context.shutdown();
        assert_eq!(runtime.block_on(other).unwrap(), ErrorKind::Terminated);
        context.term().unwrap();
    }
}

#[test]
fn a_full_queue_holds_the_sender_up_until_there_is_room() {
    let _watchdog = Watchdog::new("a_full_queue_holds_the_sender_up_until_there_is_room");
    for endpoint in transports() {
        let context = Context::new();
        let [pull, push] = pair(&context, &endpoint, PIPELINE);
        let body = vec![0; 1 << 20];
        let task = unpark();
        let waker = Waker::from(task.clone());
        let mut room = TaskContext::from_waker(&waker);
        block_on(poll_fn(|context| push.poll_send_ready(context))).unwrap();
        let mut sent = 0;
        loop {
            let mut message = Message::from(body.as_slice());
            match push.poll_send(&mut room, &mut message) {
                Poll::Ready(result) => result.unwrap(),
                Poll::Pending => {
                    assert_eq!(message.size(), body.len(), "it stays");
                    // The I/O thread may just be making room.
                    let woken = task.1.load(Ordering::Relaxed);
                    let mut probe = TaskContext::from_waker(Waker::noop());
                    if woken == 0 && push.poll_send_ready(&mut probe).is_pending() {
                        break;
                    }
                    task.1.store(0, Ordering::Relaxed);
                    continue;
                }
            }
            assert_eq!(message.size(), 0, "it is gone");
            sent += 1;
        }
        assert!(sent >= 2);
        thread::scope(|scope| {
            let rest = scope.spawn(|| {
                for _ in 0..10 {
                    block_on(push.send_async(body.as_slice())).unwrap();
                }
            });
            for _ in 0..sent + 10 {
                assert_eq!(block_on(pull.recv_async()).unwrap().size(), body.len());
            }
            rest.join().unwrap();
        });
        assert_eq!(push.stats().unwrap().sent, sent as u64 + 10);
    }
}

/// Polls once, with a waker that is counted.
fn poll_once<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut TaskContext::from_waker(waker))
}

#[test]
fn a_future_that_is_dropped_loses_no_message_and_leaves_no_waker() {
    let _watchdog = Watchdog::new("a_future_that_is_dropped_loses_no_message_and_leaves_no_waker");
    for endpoint in transports() {
        let context = Context::new();
        let [pull, push] = pair(&context, &endpoint, PIPELINE);
        let task = unpark();
        let waker = Waker::from(task.clone());
        let kept = || Arc::strong_count(&task);
        let before = kept();
        let mut receiving = pull.recv_async();
        assert!(poll_once(&mut receiving, &waker).is_pending());
        assert!(poll_once(&mut receiving, &waker).is_pending());
        assert_eq!(kept(), before + 1);
        push.send("first", Wait::Forever).unwrap();
        // Woken, and not polled again.
        while task.1.load(Ordering::Relaxed) == 0 {
            thread::park();
        }
        drop(receiving);
        // The thread that woke it lets go of the waker last.
        while kept() > before {
            thread::yield_now();
        }
        assert_eq!(text(block_on(pull.recv_async()).unwrap()), "first");

        let mut receiving = pull.recv_async();
        assert!(poll_once(&mut receiving, &waker).is_pending());
        drop(receiving);
        assert_eq!(kept(), before, "dropped while it waits");

        let alone = context.socket(SocketType::Push).unwrap();
        let mut sending = alone.send_async("unsent");
        assert!(poll_once(&mut sending, &waker).is_pending());
        assert_eq!(text(sending.into_message().unwrap()), "unsent");
        assert_eq!(kept(), before);
    }
}

#[test]
fn a_timeout_of_the_runtime_cancels_nothing_but_the_wait() {
    let _watchdog = Watchdog::new("a_timeout_of_the_runtime_cancels_nothing_but_the_wait");
    let runtime = tokio();
    let context = Context::new();
    let [pull, push] = pair(&context, "tcp://127.0.0.1:*", PIPELINE);
    const COUNT: usize = 200;
    let sender = runtime.spawn(async move {
        for number in 0..COUNT {
            let number = number.to_string();
            push.send_async(number.as_str()).await.unwrap();
            tokio::task::yield_now().await;
        }
        push
    });
    runtime.block_on(async {
        let mut next = 0;
        while next < COUNT {
            let moment = Duration::from_micros(20);
            if let Ok(message) = tokio::time::timeout(moment, pull.recv_async()).await {
                assert_eq!(text(message.unwrap()), next.to_string());
                next += 1;
            }
        }
        sender.await.unwrap();
    });
}

#[test]
fn every_task_that_waits_learns_of_the_end() {
    let _watchdog = Watchdog::new("every_task_that_waits_learns_of_the_end");
    let runtime = tokio();
    for (ends, expected) in [
        (0, ErrorKind::NotSocket),
        (1, ErrorKind::Terminated),
        (2, ErrorKind::Terminated),
    ] {
        let context = Context::new();
        let socket = context.socket(SocketType::Dealer).unwrap();
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let receiver = socket.clone();
            waiting.push(
                runtime.spawn(async move { receiver.recv_async().await.unwrap_err().kind() }),
            );
            let sender = socket.clone();
            waiting.push(runtime.spawn(async move {
                let failed = sender.send_async("unsent").await.unwrap_err();
                assert_eq!(text(failed.message), "unsent");
                failed.error.kind()
            }));
            let ready = socket.clone();
            waiting.push(runtime.spawn(async move {
                let ready = poll_fn(|context| ready.poll_send_ready(context)).await;
                ready.unwrap_err().kind()
            }));
        }
        let task = unpark();
        let waker = Waker::from(task.clone());
        let mut receiving = socket.recv_async();
        let mut sending = socket.send_async("unsent");
        assert!(poll_once(&mut receiving, &waker).is_pending());
        assert!(poll_once(&mut sending, &waker).is_pending());
        let ending = match ends {
            0 => {
                socket.close(None);
                None
            }
            1 => {
                context.shutdown();
                None
            }
            _ => {
                let context = context.clone();
                Some(runtime.spawn_blocking(move || context.term().unwrap()))
            }
        };
        while task.1.load(Ordering::Relaxed) < 2 {
            thread::park();
        }
        assert_eq!(block_on(receiving).unwrap_err().kind(), expected);
        assert_eq!(block_on(sending).unwrap_err().error.kind(), expected);
        for task in waiting {
            assert_eq!(runtime.block_on(task).unwrap(), expected);
        }
        drop(socket);
        if let Some(ending) = ending {
            runtime.block_on(ending).unwrap();
        }
    }
}

#[test]
fn tasks_that_wait_for_one_socket_share_its_messages() {
    let _watchdog = Watchdog::new("tasks_that_wait_for_one_socket_share_its_messages");
    let runtime = tokio();
    for endpoint in transports() {
        let context = Context::new();
        let [pull, push] = pair(&context, &endpoint, PIPELINE);
        let receive = |socket: Socket, count: usize| async move {
            for _ in 0..count {
                socket.recv_async().await.unwrap();
            }
        };
        let tasks = [1, 100, 399].map(|count| runtime.spawn(receive(pull.clone(), count)));
        // A thread may wait at the same time.
        let thread = thread::spawn(move || {
            for _ in 0..100 {
                pull.recv(Wait::Forever).unwrap();
            }
            pull
        });
        for _ in 0..600 {
            runtime.block_on(push.send_async("x")).unwrap();
        }
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
        let pull = thread.join().unwrap();
        assert_eq!(pull.recv(Wait::Dont).unwrap_err().kind(), ErrorKind::Again);
    }
}

/// A thread that waits again and again keeps the connection to itself in between.
#[test]
fn a_task_may_wait_after_a_thread_did() {
    let _watchdog = Watchdog::new("a_task_may_wait_after_a_thread_did");
    let context = Context::new();
    let [rep, req] = pair(
        &context,
        "tcp://127.0.0.1:*",
        [SocketType::Rep, SocketType::Req],
    );
    let server = thread::spawn(move || block_on(echo(rep)));
    for _ in 0..50 {
        for _ in 0..3 {
            req.send("thread", Wait::Forever).unwrap();
            req.recv(Wait::Forever).unwrap();
        }
        block_on(req.send_async("task")).unwrap();
        assert_eq!(text(block_on(req.recv_async()).unwrap()), "task");
    }
    context.shutdown();
    assert_eq!(server.join().unwrap(), ErrorKind::Terminated);
}

#[cfg(feature = "futures")]
mod streams {
    use futures_core::{FusedStream, Stream};
    use futures_sink::Sink;

    use super::*;

    #[test]
    fn a_socket_is_a_stream_and_a_sink() {
        let _watchdog = Watchdog::new("a_socket_is_a_stream_and_a_sink");
        for endpoint in transports() {
            let context = Context::new();
            let [pull, push] = pair(&context, &endpoint, PIPELINE);
            let sender = thread::spawn(move || {
                let mut sink = pin!(push.sink());
                for number in 0..500 {
                    let number = number.to_string();
                    block_on(poll_fn(|context| {
                        Sink::<&str>::poll_ready(sink.as_mut(), context)
                    }))
                    .unwrap();
                    sink.as_mut().start_send(number.as_str()).unwrap();
                }
                block_on(poll_fn(|context| {
                    Sink::<&str>::poll_close(sink.as_mut(), context)
                }))
                .unwrap();
                push
            });
            let mut stream = pin!(pull.stream());
            let mut next = || block_on(poll_fn(|context| stream.as_mut().poll_next(context)));
            for number in 0..500 {
                assert_eq!(text(next().unwrap().unwrap()), number.to_string());
            }
            pull.close(None);
            let error = next().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotSocket);
            assert!(next().is_none());
            assert!(stream.is_terminated());
            sender.join().unwrap();
        }
    }

    #[test]
    fn a_sink_that_cannot_send_gives_the_message_back() {
        let _watchdog = Watchdog::new("a_sink_that_cannot_send_gives_the_message_back");
        let context = Context::new();
        let push = context.socket(SocketType::Push).unwrap();
        let task = unpark();
        let waker = Waker::from(task.clone());
        let mut context = TaskContext::from_waker(&waker);
        let mut sink = push.sink();
        Pin::new(&mut sink).start_send("kept").unwrap();
        assert!(Sink::<&str>::poll_flush(Pin::new(&mut sink), &mut context).is_pending());
        assert_eq!(text(sink.into_message().unwrap()), "kept");
        assert_eq!(Arc::strong_count(&task), 2, "the test's and the waker's");

        let mut sink = push.sink();
        Pin::new(&mut sink).start_send("refused").unwrap();
        push.close(None);
        let flushed = block_on(poll_fn(|context| {
            Sink::<&str>::poll_flush(Pin::new(&mut sink), context)
        }));
        let failed = flushed.unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::NotSocket);
        assert_eq!(text(failed.message), "refused");
    }
}
