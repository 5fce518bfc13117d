"""Messages at the moments in which they get lost: a peer hangs up, a part cannot be sent, a queue is full."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

from .. import wire
from ..bench import PATIENCE_S, Bench
from ..proxy import Proxy
from ..row import check, row


class Answering:
    """A server on plain TCP that answers this many requests of each connection, hangs up, and accepts the next."""

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = "tcp://{}:{}".format(*self._listener.getsockname())
        self.hung_up = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                stream, _ = self._listener.accept()
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                stream.sendall(wire.greeting() + wire.ready(b"REP"))
                wire.finish(stream)
                for _ in range(self._turns):
                    wire.read_frame(stream)
                    stream.sendall(
                        wire.frame(wire.MORE, b"") + wire.frame(0, wire.read_frame(stream)[1])
                    )
                stream.close()
                self.hung_up.set()
            except Exception:
                return

    def close(self) -> None:
        self._listener.close()


@row()
def request_after_a_hang_up(bench: Bench) -> None:
    """A server answers 20 requests and hangs up; 0 to 10 ms later, the client asks again: the request reaches the next
    connection, and is answered."""
    server = Answering(20)
    lost, rounds = 0, bench.amount(8, 200)
    req = asking(bench, server)
    for number in range(rounds):
        try:
            for turn in range(20):
                req.send(b"%d" % turn)
                check(req.recv() == b"%d" % turn, "a wrong answer")
        except bench.zmq.Again:
            # It is the first one of a connection. The next client starts anew.
            lost += 1
            if lost == 3:
                break
            req.close()
            req = asking(bench, server)
            continue
        check(server.hung_up.wait(PATIENCE_S), "the server did not hang up")
        server.hung_up.clear()
        time.sleep((0, 0.0005, 0.002, 0.01)[number % 4])
    check(not lost, f"{lost} requests of {number + 1} were lost")
    req.close()
    server.close()


def asking(bench: Bench, server: Answering) -> Any:
    req = bench.context.socket(bench.zmq.REQ)
    req.reconnect_ivl = 10
    req.rcvtimeo = 3000
    req.connect(server.endpoint)
    return req


@row()
def messages_after_a_hang_up(bench: Bench) -> None:
    """The peer of a PUSH is killed and another takes its place; messages that are sent after the hang-up was noticed, or
    when 50 ms have passed, arrive."""
    first, second = bench.subject(), bench.subject()
    bind = """
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.linger = 0
        pull.rcvtimeo = 20_000
        pull.bind({!r})
        pull.last_endpoint.decode()
    """
    endpoint = first.run(bind.format("tcp://127.0.0.1:*"))
    push = bench.context.socket(bench.zmq.PUSH)
    push.reconnect_ivl = 10
    push.connect(endpoint)
    push.send(b"before")
    check(first.run("pull.recv()") == b"before", "no message arrived")
    first.kill()
    time.sleep(0.05)
    for number in range(100):
        push.send(b"%d" % number)
    second.run(bind.format(endpoint))
    got = second.run("[int(pull.recv()) for _ in range(100)]")
    check(got == list(range(100)), f"{got[:3]}... instead of all messages")
    push.close()


@row()
def last_part_that_cannot_be_sent(bench: Bench) -> None:
    """The only peer leaves between two parts of a message, and the last part raises EAGAIN: the next message does not
    contain parts of the one before."""
    zmq = bench.zmq
    push = bench.context.socket(zmq.PUSH)
    push.sndtimeo = 100
    push.bind("tcp://127.0.0.1:*")
    endpoint = push.last_endpoint.decode()
    first, second = (bench.context.socket(zmq.PULL) for _ in range(2))
    first.connect(endpoint)
    push.send(b"hello")
    first.recv()
    push.send(b"head", zmq.SNDMORE)
    first.close()
    try:
        deadline = time.monotonic() + PATIENCE_S
        # libzmq learns of the end during calls only.
        while push.get(zmq.EVENTS) & zmq.POLLOUT and time.monotonic() < deadline:
            time.sleep(0.005)
        push.send(b"body")
    except zmq.Again:
        pass
    second.connect(endpoint)
    push.sndtimeo = int(PATIENCE_S * 1000)
    push.send_multipart([b"head 2", b"body 2"])
    got = second.recv_multipart()
    check(got == [b"head 2", b"body 2"], f"received {got}")


@row()
def batch_of_an_endless_iterable(bench: Bench) -> None:
    """send_batch gets an endless generator while there is room for 10 messages, with a time limit: it returns, and has
    taken no more items than it sent, and one."""
    push = bench.context.socket(bench.zmq.PUSH)
    if not hasattr(push, "send_batch"):
        bench.needs("send_batch")
    subject = bench.subject()
    taken, sent = subject.run("""
        taken = 0
        def items():
            global taken
            while True:
                taken += 1
                yield b"%d" % taken
        context = zmq.Context()
        push = context.socket(zmq.PUSH)
        push.linger, push.sndhwm = 0, 10
        push.connect("tcp://127.0.0.1:1")
        try:
            sent = push.send_batch(items(), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            sent = error.sent
        taken, sent
    """)
    check(sent == 10 and taken <= 11, f"took {taken} items and sent {sent}")
    subject.kill()


@row()
def events_that_no_thread_reads(bench: Bench) -> None:
    """A monitor is opened and never read while 500 peers come and go (5000 in a full run): others are served, and the
    memory is bounded."""
    scene = bench.echo("monitor = server.get_monitor_socket()")
    for _ in range(bench.amount(500, 5000)):
        stream = wire.join(scene.endpoint, b"DEALER")
        stream.close()
    scene.others_are_served()
    check(scene.grown() < 16 << 20, "events cost more than 16 MiB")
    scene.subject.run("server.disable_monitor() if zmq.__name__ == 'zeroxide' else None")
    scene.subject.run("monitor.close(0)")
    # The monitor's descriptors are part of the level that was measured.
    scene.ends_well()


@row()
def server_that_restarts(bench: Bench) -> None:
    """A server is killed and restarted at its address five times: a DEALER gets an answer from each life, for the first
    message that it sends after each restart."""
    with Proxy("tcp://127.0.0.1:1") as probe:
        endpoint = probe.endpoint
    dealer: Any = None
    for life in range(5):
        subject = bench.subject()
        subject.run(f"""
            context = zmq.Context()
            rep = context.socket(zmq.REP)
            rep.rcvtimeo = 20_000
            rep.bind({endpoint!r})
        """)
        if dealer is None:
            dealer = bench.context.socket(bench.zmq.DEALER)
            dealer.reconnect_ivl = 10
            dealer.connect(endpoint)
        subject.begin(f"got = rep.recv(); rep.send(b'{life}'); got")
        dealer.send_multipart([b"", b"question"])
        check(subject.answer() == b"question", f"the question of life {life} did not arrive")
        check(dealer.recv_multipart() == [b"", b"%d" % life], f"no answer in life {life}")
        subject.kill()
        # The end of the connection has arrived.
        time.sleep(0.05)
    dealer.close()


@row()
def lasting_backlog(bench: Bench) -> None:
    """Messages are sent to a peer that does not exist yet, up to the high-water mark: the next one raises EAGAIN, and all
    accepted ones arrive when the peer starts."""
    with Proxy("tcp://127.0.0.1:1") as probe:
        endpoint = probe.endpoint
    push = bench.context.socket(bench.zmq.PUSH)
    push.sndhwm = 100
    push.sndtimeo = 0
    push.reconnect_ivl = 10
    push.connect(endpoint)
    sent = 0
    try:
        while sent < 10_000:
            push.send(b"%d" % sent)
            sent += 1
    except bench.zmq.Again:
        pass
    check(sent == 100, f"{sent} messages were accepted with SNDHWM 100")
    subject = bench.subject()
    got = subject.run(f"""
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.rcvtimeo = 20_000
        pull.bind({endpoint!r})
        [int(pull.recv()) for _ in range({sent})]
    """)
    check(got == list(range(sent)), "messages are missing")
    push.close()


@row()
def messages_of_peers_that_left(bench: Bench) -> None:
    """Peers send and leave; their messages can be received, and a context that ends with unread ones keeps no
    descriptor."""
    subject = bench.subject()
    begin = """
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.linger = 0
        pull.rcvtimeo = 20_000
        pull.bind("tcp://127.0.0.1:*")
        pull.last_endpoint.decode()
    """
    before = 0
    for number in range(4):
        endpoint = subject.run(begin)
        for peer in range(10):
            stream = wire.join(endpoint, b"PUSH")
            wire.shout(stream, wire.frame(0, b"%d" % peer) + wire.frame(0, b"unread"))
            stream.close()
        got = subject.run("[pull.recv() for _ in range(10)]")
        check(b"0" in got, f"{got} arrived")
        subject.run("pull.close(); context.term()")
        if number == 1:
            before = subject.descriptors()
    bench.until(lambda: subject.descriptors() <= before, "descriptors remain")
    subject.end()
