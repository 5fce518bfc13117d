"""A thread that waits for a message from its only connection reads it directly from that connection.

This must have no visible effect, whatever happens to the socket in the meantime, and whatever other threads use it.
"""

import asyncio
import importlib
import itertools
import os
import select
import signal
import socket as system
import threading
import time

import pytest
from support import Background, bind_once_free, eventually, run_script

# Sockets of pyzmq belong to one thread.
pytestmark = pytest.mark.zeroxide_only

# Round trips before the actual test: the connection is lent by then.
WARM = 30


@pytest.fixture(params=["tcp", "ipc"])
def transport(request):
    return request.param


def echo(socket, turns=None):
    """Echoes this many messages, or until the socket is closed or its context terminated."""
    for _ in itertools.count() if turns is None else range(turns):
        try:
            ball = socket.recv()
            if ball == b"stop":
                return
            socket.send(ball)
        except Exception as error:
            if getattr(error, "errno", None) is None:
                raise
            return


def play(socket, turns=WARM):
    for number in range(turns):
        socket.send(b"%d" % number)
        assert socket.recv() == b"%d" % number


@pytest.fixture
def court(zmq, sockets, transport):
    """A DEALER that has exchanged messages with another one, which keeps echoing."""
    far = sockets.bound(zmq.DEALER, transport)
    near = sockets.connected(zmq.DEALER, far)
    far.rcvtimeo = -1
    echoing = Background(echo, far)
    play(near)
    yield near, far
    for socket in (near, far):
        socket.close(linger=0)
    echoing.result()


# ---- several threads ---------------------------------------------------------------------


def test_two_threads_receive(zmq, court):
    """Each message reaches one of them, and both continue while the peer echoes."""
    near, _ = court
    total, received, lock = 600, [], threading.Lock()

    def take():
        while True:
            ball = near.recv()
            if ball == b"enough":
                return
            with lock:
                received.append(int(ball))

    takers = [Background(take) for _ in range(2)]
    for number in range(total):
        near.send(b"%d" % number)
        if number % 20 == 0:
            # One by one for some time, so that the connection is lent.
            eventually(lambda number=number: len(received) > number)
    eventually(lambda: len(received) == total)
    for _ in takers:
        near.send(b"enough")
    for taker in takers:
        taker.result()
    assert sorted(received) == list(range(total))


@pytest.mark.parametrize("ending", ["close", "term"])
def test_the_end_while_another_thread_reads(zmq, directory, transport, ending):
    for number in range(20):
        context = zmq.Context()
        far, near = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
        far.linger = near.linger = 0
        address = "tcp://127.0.0.1:*" if transport == "tcp" else f"ipc://{directory}/{number}"
        far.bind(address)
        near.connect(far.last_endpoint.decode())
        echoing = Background(echo, far, WARM)
        play(near)
        echoing.result()
        waiting = Background(near.recv)
        ender = Background(near.close if ending == "close" else context.term)
        with pytest.raises(zmq.ZMQError) as caught:
            waiting.result()
        assert caught.value.errno in (zmq.ENOTSOCK, zmq.ETERM)
        near.close()
        far.close()
        ender.result()
        context.term()


def test_others_look_while_a_thread_reads(zmq, court):
    """Other threads use the descriptor, EVENTS, poll and recv(DONTWAIT) while one thread waits repeatedly."""
    near, _ = court
    over = threading.Event()
    seen = {"fd": 0, "events": 0, "poll": 0, "attempt": 0}
    descriptor = near.fd

    def by_descriptor():
        while not over.is_set():
            if select.select([descriptor], [], [], 0.01)[0]:
                seen["fd"] += 1

    def by_events():
        while not over.is_set():
            seen["events"] += bool(near.get(zmq.EVENTS) & zmq.POLLIN)

    def by_poll():
        while not over.is_set():
            seen["poll"] += bool(near.poll(10))

    lookers = [Background(look) for look in (by_descriptor, by_events, by_poll)]
    play(near, 300)
    over.set()
    for looker in lookers:
        looker.result()
    # None of the threads misses messages that arrive while no thread reads.
    near.send(b"ball")
    assert near.poll(20_000)
    assert select.select([descriptor], [], [], 20)[0]
    assert near.recv() == b"ball"


def test_a_descriptor_is_ready_for_messages_after_a_wait(zmq, court):
    near, _ = court
    descriptor = near.fd
    for number in range(100):
        play(near, 3)
        near.send(b"%d" % number)
        assert select.select([descriptor], [], [], 20)[0]
        while not near.get(zmq.EVENTS) & zmq.POLLIN:
            assert select.select([descriptor], [], [], 20)[0]
        assert near.recv() == b"%d" % number


def test_attempts_after_waits(zmq, court):
    """Messages that have arrived are received without waiting, although the last wait read directly."""
    near, _ = court
    for number in range(50):
        play(near, 2)
        near.send(b"%d" % number)

        def attempt():
            try:
                return near.recv(zmq.DONTWAIT)
            except zmq.Again:
                return None

        assert eventually(attempt) == b"%d" % number


def test_asyncio_beside_a_thread(zmq, court):
    """A loop takes over after a thread has read, and the other way round."""
    near, _ = court
    aio = importlib.import_module(f"{zmq.__name__}.asyncio")

    async def main():
        handle = aio.Socket.shadow(near)
        for number in range(50):
            await handle.send(b"%d" % number)
            assert await asyncio.wait_for(handle.recv(), 20) == b"%d" % number
            await asyncio.to_thread(play, near, 3)

    asyncio.run(main())


def test_a_proxy_beside_a_thread(zmq, context, sockets, transport):
    """A thread's round trips pass through a proxy, on whose sockets threads have waited before."""
    server = sockets.bound(zmq.REP, transport)
    back = sockets.connected(zmq.DEALER, server)
    front = sockets.bound(zmq.ROUTER, transport)
    server.rcvtimeo = -1
    serving = Background(echo, server)
    for number in range(WARM):
        back.send_multipart([b"", b"%d" % number])
        assert back.recv_multipart() == [b"", b"%d" % number]
    control, orders = sockets.pair(zmq.PAIR, zmq.PAIR, "inproc")
    proxying = Background(zmq.proxy_steerable, front, back, None, control)
    client = sockets.connected(zmq.REQ, front)
    play(client, 200)
    orders.send(b"TERMINATE")
    proxying.result()
    client.send(b"stop")
    back.send_multipart([b"", b"stop"])
    serving.result()


# ---- the connection ----------------------------------------------------------------------


class Peer:
    """The other end of a connection, which sends arbitrary bytes."""

    GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)

    def __init__(self, socket, kind=b"DEALER"):
        host, port = socket.last_endpoint.decode().removeprefix("tcp://").rsplit(":", 1)
        self.stream = system.create_connection((host, int(port)), 20)
        self.stream.setsockopt(system.IPPROTO_TCP, system.TCP_NODELAY, 1)
        ready = b"\x05READY\x0bSocket-Type" + len(kind).to_bytes(4, "big") + kind
        self.stream.sendall(self.GREETING + self.frame(4, ready))
        self.read(64)
        self.command()

    @staticmethod
    def frame(flags, body):
        if len(body) < 256:
            return bytes((flags, len(body))) + body
        return bytes((flags | 2,)) + len(body).to_bytes(8, "big") + body

    def read(self, count):
        data = b""
        while len(data) < count:
            more = self.stream.recv(count - len(data))
            assert more, "the connection has ended"
            data += more
        return data

    def command(self):
        flags, length = self.read(2)
        return flags, self.read(length)

    def send(self, body):
        self.stream.sendall(self.frame(0, body))

    def play(self, socket, turns=WARM):
        for number in range(turns):
            self.send(b"%d" % number)
            assert socket.recv() == b"%d" % number

    def is_gone(self):
        """Waits until the other side has closed its end."""
        while self.stream.recv(65536):
            pass
        return True


@pytest.mark.parametrize("linger", [0, 1000])
def test_unbinding_while_a_thread_reads(zmq, sockets, linger):
    """The peer sees the end although the thread keeps waiting; the thread gets the next peer's message."""
    near = sockets.bound(zmq.DEALER, linger=linger)
    for _ in range(10):
        peer = Peer(near)
        peer.play(near)
        waiting = Background(near.recv)
        near.unbind(near.last_endpoint)
        assert peer.is_gone()
        near.bind("tcp://127.0.0.1:*")
        other = Peer(near)
        other.send(b"for who still waits")
        assert waiting.result() == b"for who still waits"
        other.stream.close()


@pytest.mark.parametrize("linger", [0, 1000])
def test_disconnecting_while_a_thread_reads(zmq, sockets, transport, linger):
    far = sockets.bound(zmq.DEALER, transport)
    address = far.last_endpoint.decode()
    near = sockets.connected(zmq.DEALER, far, linger=linger)
    for _ in range(10):
        echoing = Background(echo, far, WARM)
        play(near)
        echoing.result()
        waiting = Background(near.recv)
        near.disconnect(address)
        near.connect(address)
        # A message to the connection that ends is lost with it.
        while waiting.is_alive():
            far.send(b"for who still waits")
            waiting.join(0.02)
        assert waiting.result() == b"for who still waits"
        near.rcvtimeo = 50
        with pytest.raises(zmq.Again):
            while True:
                near.recv()
        near.rcvtimeo = 20_000


def test_a_peer_that_comes_back(zmq, sockets, context):
    """A waiting thread reads from the next connection, and from the one after that."""
    listener = sockets.bound(zmq.DEALER)
    address = listener.last_endpoint.decode()
    near = sockets.connected(zmq.DEALER, listener, reconnect_ivl=1)
    for number in range(10):
        echoing = Background(echo, listener, WARM)
        play(near)
        echoing.result()
        waiting = Background(near.recv)
        listener.close(linger=0)
        listener = context.socket(zmq.DEALER)
        bind_once_free(zmq, listener, address)
        listener.send(b"%d" % number)
        assert waiting.result() == b"%d" % number


def test_heartbeats_while_a_thread_reads(zmq, sockets):
    """While a thread has the descriptor, PINGs are answered, and silence ends the connection."""
    near = sockets.bound(zmq.DEALER, heartbeat_ivl=100, heartbeat_timeout=2000)
    peer = Peer(near)
    peer.play(near)
    waiting = Background(near.recv)
    peer.stream.sendall(peer.frame(4, b"\x04PING\x00\x00context"))
    answered = asked = 0
    while not answered or asked < 3:
        flags, body = peer.command()
        assert flags == 4
        if body.startswith(b"\x04PONG"):
            assert body == b"\x04PONGcontext"
            answered += 1
        else:
            assert body.startswith(b"\x04PING")
            peer.stream.sendall(peer.frame(4, b"\x04PONG"))
            asked += 1
    # The peer is silent from here on.
    assert peer.is_gone()
    other = Peer(near)
    other.send(b"alive")
    assert waiting.result() == b"alive"


@pytest.mark.parametrize("mark", [1, 2, 10])
def test_high_water_marks_hold(zmq, sockets, transport, mark):
    """A receiver that takes messages one by one gets all of them, in order, although there is room for few."""
    pull = sockets.bound(zmq.PULL, transport, rcvhwm=mark)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=mark)
    total = 2000
    sending = Background(lambda: [push.send(b"%d" % number) for number in range(total)])
    for number in range(total):
        if number % 100 == 0:
            time.sleep(0.001)
        assert pull.recv() == b"%d" % number
    sending.result()


def test_the_newest_of_a_conflating_pair(zmq, sockets, transport):
    pull = sockets.bound(zmq.PULL, transport, conflate=1)
    push = sockets.connected(zmq.PUSH, pull)
    last = -1
    for number in range(300):
        push.send(b"%d" % number)
        if number % 3 == 0:
            value = int(pull.recv())
            assert value > last
            last = value
    push.send(b"end")
    while pull.recv() != b"end":
        pass


# ---- time and signals --------------------------------------------------------------------


def test_receive_timeouts_are_kept(zmq, court):
    near, _ = court
    for timeout in (1, 5, 20, 60):
        play(near, 3)
        near.rcvtimeo = timeout
        start = time.monotonic()
        with pytest.raises(zmq.Again):
            near.recv()
        assert time.monotonic() - start >= timeout / 1000
        near.rcvtimeo = 20_000


def test_a_message_that_never_ends_does_not_delay_a_timeout(zmq, sockets):
    near = sockets.bound(zmq.DEALER, rcvtimeo=20_000)
    peer = Peer(near)
    peer.play(near)
    over = threading.Event()

    def talk():
        peer.stream.sendall(b"\x02" + (1 << 40).to_bytes(8, "big"))
        while not over.is_set():
            peer.stream.sendall(b"x" * 50)

    talking = Background(talk)
    near.rcvtimeo = 50
    for _ in range(5):
        with pytest.raises(zmq.Again):
            near.recv()
    over.set()
    talking.result()


def test_signals_while_a_thread_reads(zmq, court):
    """The handler of a signal runs between two round trips or during one, and no message is lost or duplicated."""
    near, _ = court
    ticks = []
    before = signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for number in itertools.count():
            near.send(b"%d" % number)
            assert near.recv() == b"%d" % number
            if number >= 200 and len(ticks) >= 20:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_exception_of_a_handler_only_ends_the_wait(zmq, court):
    near, _ = court

    class Interruption(Exception):
        pass

    def handler(*_):
        raise Interruption

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(20):
            play(near, 3)
            signal.setitimer(signal.ITIMER_REAL, 0.005)
            with pytest.raises(Interruption):
                near.recv()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    play(near)


def test_ctrl_c_beside_a_message_that_never_ends(zmq):
    """A peer that sends without a pause does not block Ctrl-C."""
    script = """
    import os, signal, socket, threading, time
    from test_lent import Peer
    context = zmq.Context()
    near = context.socket(zmq.DEALER)
    near.linger = 0
    near.bind("tcp://127.0.0.1:*")
    peer = Peer(near)
    peer.play(near)
    def talk():
        try:
            peer.stream.sendall(b"\\x02" + (1 << 40).to_bytes(8, "big"))
            while True:
                peer.stream.sendall(b"x" * 50)
        except OSError:
            pass
    threading.Thread(target=talk, daemon=True).start()
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        near.recv()
    except KeyboardInterrupt:
        print("interrupted")
    near.close()
    context.term()
    """
    assert run_script(zmq.__name__, script)[0] == "interrupted\n"


def test_a_fork_while_a_thread_reads(zmq, court):
    """The child continues independently, and the parent's connection is not affected."""
    near, _ = court
    for _ in range(5):
        play(near, 3)
        waiting = Background(near.recv)
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        near.send(b"after the fork")
        assert waiting.result() == b"after the fork"
    play(near)
