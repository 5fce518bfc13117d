"""Networks between two honest peers: slow, ragged, broken, stalled, damaged."""

from __future__ import annotations

import itertools
import time
from typing import Any

from ..bench import Bench
from ..proxy import Path, Proxy
from ..row import check, row

PULLER = """
context = zmq.Context()
pull = context.socket(zmq.PULL)
pull.linger = 0
pull.rcvtimeo = 20_000
{options}
pull.bind("tcp://127.0.0.1:*")
pull.last_endpoint.decode()
"""

BODIES = [b"", b"x", b"y" * 69, b"z" * 255, b"a" * 256, b"b" * 70_000]


def pusher(bench: Bench, endpoint: str, **options: Any) -> Any:
    push = bench.context.socket(bench.zmq.PUSH)
    for name, value in ({"reconnect_ivl": 10, "sndhwm": 10_000} | options).items():
        setattr(push, name, value)
    push.connect(endpoint)
    return push


def carry(bench: Bench, up: Path, count: int = 300, bodies: list[bytes] = BODIES) -> None:
    """Sends messages through a proxy; all arrive, once and in order."""
    subject = bench.subject()
    endpoint = subject.run(PULLER.format(options=""))
    with Proxy(endpoint, up=up, down=up, seed=bench.seed) as proxy:
        push = pusher(bench, proxy.endpoint)
        sent = [[b"%d" % n, body] for n, body in zip(range(count), itertools.cycle(bodies))]
        for parts in sent:
            push.send_multipart(parts)
        got = subject.run(
            f"[(int(a), len(b)) for a, b in (pull.recv_multipart() for _ in range({count}))]", 60
        )
        check(
            got == [(int(a), len(b)) for a, b in sent], "messages are missing, repeated or changed"
        )
        push.close()
    subject.run("pull.close(); context.term()")
    subject.end()


@row()
def latency(bench: Bench) -> None:
    """Each chunk is held for 2 to 20 ms: every message arrives, once and in order."""
    carry(bench, Path(latency=0.002, jitter=0.018))


@row()
def split_at_every_byte(bench: Bench) -> None:
    """Each byte is a packet of its own, in both directions: every message arrives, once and in order."""
    carry(bench, Path(piece=1), count=bench.amount(100, 1000), bodies=BODIES[:5])


@row()
def dribble(bench: Bench) -> None:
    """Packets of random sizes of at most 40 bytes, 0.2 ms apart: every message arrives, once and in order."""
    carry(bench, Path(ragged=40, pause=0.0002), count=bench.amount(200, 5000), bodies=BODIES[:5])


@row()
def resets(bench: Bench) -> None:
    """The connection is reset every 20,000 bytes: what arrives is whole and in order, each message once, and what had not
    reached the other machine is counted as lost."""
    subject = bench.subject()
    endpoint = subject.run(PULLER.format(options=""))
    count = bench.amount(1000, 10_000)
    subject.run("""
        got, ended = [], threading.Event()

        def receive():
            while True:
                number, body = pull.recv_multipart()
                if number == b"end":
                    return ended.set()
                got.append((int(number), len(body)))

        receiver = threading.Thread(target=receive)
        receiver.start()
    """)
    with Proxy(endpoint, up=Path(ragged=3000, cut=20_000), seed=bench.seed, window=4096) as proxy:
        push = pusher(bench, proxy.endpoint, sndbuf=4096)
        for number in range(count):
            push.send_multipart([b"%d" % number, bytes(number % 700)])
        # The last messages may be lost as well.
        while not subject.run("ended.wait(0.05)"):
            push.send_multipart([b"end", b""])
        check(proxy.connections > 3, "the connection was not reset")
        counted = sum(push.stats()["dropped"].values()) if hasattr(push, "stats") else None
        push.close()
    got = subject.run("receiver.join(); got")
    check(all(size == number % 700 for number, size in got), "a message is changed")
    check(got == sorted(set(got)), "messages are repeated or out of order")
    lost = count - len(got)
    bench.remarks.append(f"{lost} of {count} lost in {proxy.connections} connections")
    if counted is None:
        bench.remarks.append("not counted")
    else:
        # Each connection may have lost what the proxy had read, 16 KiB at most.
        uncounted = lost - counted
        check(uncounted <= 50 * proxy.connections, f"{uncounted} lost messages are not counted")
    subject.run("pull.close(); context.term()")
    subject.end()


@row()
def one_way_stall(bench: Bench) -> None:
    """No byte passes in one direction for a while: sending fails with EAGAIN at the high-water mark, and every accepted
    message arrives afterwards, once and in order."""
    subject = bench.subject()
    endpoint = subject.run(PULLER.format(options="pull.rcvhwm = 10; pull.rcvbuf = 10_000"))
    with Proxy(endpoint) as proxy:
        push = pusher(bench, proxy.endpoint, sndhwm=10, sndbuf=10_000, sndtimeo=200)
        push.send(b"%07d" % 0)
        check(subject.run("pull.recv()") == b"%07d" % 0, "the first message did not arrive")
        proxy.stall("up")
        sent = 1
        while sent < 100_000:
            try:
                push.send(b"%07d" % sent + bytes(2000))
            except bench.zmq.Again:
                break
            sent += 1
        check(sent < 100_000, "200 MB are queued for a peer that reads nothing")
        proxy.resume("up")
        got = subject.run(f"[int(pull.recv()[:7]) for _ in range({sent - 1})]", 60)
        check(got == list(range(1, sent)), "messages are missing, repeated or out of order")
        push.close()
    subject.run("pull.close(); context.term()")
    subject.end()


@row()
def half_closed_connection(bench: Bench) -> None:
    """The network ends one direction of a connection: the socket connects again, and messages arrive."""
    subject = bench.subject()
    endpoint = subject.run(PULLER.format(options=""))
    for name in ("up", "down"):
        with Proxy(endpoint) as proxy:
            push = pusher(bench, proxy.endpoint)
            push.send(b"before")
            check(subject.run("pull.recv()") == b"before", "the first message did not arrive")
            proxy.end(name)
            bench.until(lambda: proxy.connections > 1, f"the end of direction {name} is ignored")
            push.send(b"after")
            check(subject.run("pull.recv()") == b"after", "the next message did not arrive")
            push.close()
    subject.run("pull.close(); context.term()")
    subject.end()


@row()
def garbage_prefix(bench: Bench) -> None:
    """Bytes of another protocol come before the greeting of each connection: no message comes out of them, the process
    is idle, and a clean connection works."""
    scene = bench.echo()
    with Proxy(scene.endpoint, up=Path(garbage=b"SSH-2.0-OpenSSH_9.2\r\n")) as proxy:
        client = scene.connect(proxy.endpoint, reconnect_ivl=50)
        client.send(b"question")
        bench.until(lambda: proxy.passed["up"], "the socket does not connect")
        check(not client.poll(300), "a message came through garbage")
        client.close()
    scene.ends_well()


@row()
def bit_flips(bench: Bench) -> None:
    """One bit of each byte of the handshake and of the first message is flipped, in one connection each (every 4th in a quick
    run): neither process dies, and the next clean connection works."""
    subject = bench.subject()
    endpoint = subject.run(PULLER.format(options="pull.handshake_ivl = 200"))
    with Proxy(endpoint) as proxy:
        push = pusher(bench, proxy.endpoint)
        push.send(b"flipped")
        check(subject.run("pull.recv()") == b"flipped", "no message arrived")
        push.close()
        bench.until(lambda: proxy.ended == 2, "the connection stays open")
        length = proxy.passed["up"]
    for place in range(0, length, bench.amount(4, 1)):
        with Proxy(endpoint, up=Path(flip=frozenset({place}))) as proxy:
            push = pusher(bench, proxy.endpoint, reconnect_ivl=1000)
            push.send(b"flipped")
            bench.until(lambda: proxy.flipped, f"byte {place} was not sent")
            push.close()
    push = pusher(bench, endpoint)
    push.send(b"clean")
    subject.run("while pull.recv() != b'clean': pass")
    push.close()
    subject.run("pull.close(); context.term()")
    subject.end()


@row()
def refused_connections(bench: Bench) -> None:
    """A peer that refuses every connection, and then accepts: the message that was sent meanwhile arrives."""
    subject = bench.subject()
    endpoint = subject.run(PULLER.format(options=""))
    with Proxy(endpoint) as proxy:
        proxy.refuse()
        push = pusher(bench, proxy.endpoint)
        push.send(b"patience")
        bench.until(lambda: proxy.connections > 5, "the socket gives up")
        proxy.refuse(False)
        check(subject.run("pull.recv()") == b"patience", "the message did not arrive")
        push.close()
    subject.run("pull.close(); context.term()")
    subject.end()


@row()
def targets_that_never_listen(bench: Bench) -> None:
    """200 sockets (1000 in a full run) connect to a port that nothing listens at, with RECONNECT_IVL 0, 1, -1 and 100 up
    to 30,000: no crash, another socket is served, and with the growing interval the process is idle."""
    scene = bench.echo()
    count = bench.amount(200, 1000) // 4
    scene.subject.run("context.max_sockets = 5000")
    scene.subject.run(f"""
        idle = zmq.Context()
        sockets = []
        for interval, most in ((0, 0), (1, 0), (-1, 0), (100, 30_000)):
            for _ in range({count}):
                socket = idle.socket(zmq.DEALER)
                socket.linger = 0
                socket.reconnect_ivl, socket.reconnect_ivl_max = interval, most
                socket.connect("tcp://127.0.0.1:1")
                sockets.append(socket)
    """)
    scene.others_are_served()
    scene.subject.run(f"for socket in sockets[:{3 * count}]: socket.close()")
    scene.exchange(scene.client)
    bench.idle(scene.subject)
    scene.subject.run("for socket in sockets: socket.close()\nidle.term()")
    scene.ends_well()


@row(slow=True, seconds=400)
def reconnect_storm(bench: Bench) -> None:
    """A server restarts 50 times under 500 clients: all are back each time, within 5 s in nine lives of ten, and the memory of the clients
    is level over the second half."""
    clients = bench.subject()
    with Proxy("tcp://127.0.0.1:1") as probe:
        free = probe.endpoint
    clients.run(f"""
        context = zmq.Context()
        context.max_sockets = 1000
        sockets = []
        for n in range(500):
            socket = context.socket(zmq.DEALER)
            socket.linger = 0
            socket.routing_id = b"%d" % n
            socket.reconnect_ivl, socket.reconnect_ivl_max = 20, 200
            socket.rcvtimeo = 20_000
            socket.connect({free!r})
            sockets.append(socket)
    """)
    level = 0
    late = 0
    for life in range(50):
        server = bench.subject()
        start = time.monotonic()
        server.run(
            f"""
            context = zmq.Context()
            router = context.socket(zmq.ROUTER)
            router.router_mandatory = 1
            router.backlog = 1000
            router.sndtimeo = 20_000
            router.bind({free!r})
            def greet(n):
                deadline = time.monotonic() + 30
                while time.monotonic() < deadline:
                    try:
                        return router.send_multipart([b"%d" % n, b"{life}"])
                    except zmq.ZMQError:
                        # libzmq learns of new peers during calls only.
                        router.poll(10)
                raise TimeoutError(n)
            for n in range(500): greet(n)
        """,
            60,
        )
        late += time.monotonic() - start > 5
        got = clients.run("{socket.recv() for socket in sockets}", 60)
        check(got == {b"%d" % life}, f"{got} in life {life}")
        server.kill()
        if life == 25:
            level = clients.memory()
    check(late <= 5, f"the clients took more than 5 s to come back in {late} of 50 lives")
    check(clients.memory() - level < 8 << 20, "memory grows with each restart")
    clients.kill()
