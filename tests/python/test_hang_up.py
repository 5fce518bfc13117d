"""Messages to a peer that has hung up reach the next one, or are counted."""

import asyncio
import contextlib
import importlib
import socket as system
import threading
import time

import pytest
from support import PATIENCE, Background, bind_once_free, eventually, lasting_endpoint
from test_lent import Peer

pytestmark = pytest.mark.zeroxide_only

# Turns after which a connection is lent to the thread that waits for messages.
WARM = 20

# The time between the end of the connection and the next message, in seconds. The end has arrived by then; the shorter
# the time, the fewer threads have noticed it.
PAUSES = [0, 0.0005, 0.002, 0.01]

PARTNERS = {"REQ": b"REP", "DEALER": b"DEALER", "PAIR": b"PAIR", "PUSH": b"PULL"}


class Server:
    """Accepts connections, one after the other, and sends arbitrary bytes."""

    def __init__(self, transport, directory, kind):
        self.kind = kind
        if transport == "tcp":
            self.listener = system.create_server(("127.0.0.1", 0))
            self.endpoint = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        else:
            self.listener = system.socket(system.AF_UNIX)
            self.listener.bind(f"{directory}/server")
            self.listener.listen()
            self.endpoint = f"ipc://{directory}/server"
        self.listener.settimeout(PATIENCE)
        self.stream = None

    def accept(self, minor=1):
        self.stream, _ = self.listener.accept()
        self.stream.settimeout(PATIENCE)
        if self.stream.family != system.AF_UNIX:
            self.stream.setsockopt(system.IPPROTO_TCP, system.TCP_NODELAY, 1)
        ready = b"\x05READY\x0bSocket-Type" + len(self.kind).to_bytes(4, "big") + self.kind
        greeting = bytearray(Peer.GREETING)
        greeting[11] = minor
        self.stream.sendall(greeting + Peer.frame(4, ready))
        self.read(64)
        self.frame()

    def read(self, count):
        data = b""
        while len(data) < count:
            more = self.stream.recv(count - len(data))
            assert more, "the connection has ended"
            data += more
        return data

    def frame(self):
        flags, length = self.read(2)
        if flags & 2:
            length = int.from_bytes(bytes((length,)) + self.read(7), "big")
        return flags, self.read(length)

    def receive(self):
        frames = []
        while True:
            flags, body = self.frame()
            if not flags & 4:
                frames.append(body)
                if not flags & 1:
                    return frames

    def send(self, frames):
        last = len(frames) - 1
        parts = [Peer.frame(int(number < last), body) for number, body in enumerate(frames)]
        self.stream.sendall(b"".join(parts))

    def answer(self):
        frames = self.receive()
        self.send(frames)
        return frames[-1]

    def close(self):
        self.stream.close()


@pytest.fixture(params=["tcp", "ipc"])
def transport(request):
    return request.param


@pytest.fixture
def serve(transport, directory):
    servers = []

    def serve(kind):
        servers.append(Server(transport, directory, PARTNERS[kind]))
        return servers[-1]

    yield serve
    for server in servers:
        server.listener.close()
        if server.stream is not None:
            server.close()


def play(socket, server, turns=WARM):
    """Makes round trips; the socket's thread waits for each answer."""
    for number in range(turns):
        socket.send(b"%d" % number)
        answering = server.answer()
        assert answering == b"%d" % number
        assert socket.recv() == answering


def lost(socket):
    return sum(socket.stats()["dropped"].values())


def answering(server, turns):
    """Another thread answers this many times, then hangs up."""

    def answer():
        for _ in range(turns):
            server.answer()
        server.close()

    return Background(answer)


def ask(socket, turns):
    for number in range(turns):
        socket.send(b"%d" % number)
        assert socket.recv() == b"%d" % number


@pytest.mark.parametrize("pause", PAUSES)
@pytest.mark.parametrize("kind", ["REQ", "DEALER", "PAIR"])
def test_messages_after_a_hang_up_reach_the_next_peer(zmq, context, serve, kind, pause):
    server = serve(kind)
    socket = context.socket(getattr(zmq, kind))
    socket.reconnect_ivl = 1
    socket.connect(server.endpoint)
    for _ in range(5):
        accepting = Background(server.accept)
        accepting.result()
        serving = answering(server, WARM)
        ask(socket, WARM)
        serving.result()
        time.sleep(pause)
        socket.send(b"after the end")
        server.accept()
        assert server.answer() == b"after the end"
        assert socket.recv() == b"after the end"
        assert lost(socket) == 0
        server.close()


@pytest.mark.parametrize("pause", PAUSES)
def test_messages_pushed_after_a_hang_up_arrive_or_are_counted(zmq, context, serve, pause):
    server = serve("PUSH")
    socket = context.socket(zmq.PUSH)
    socket.reconnect_ivl = 1
    socket.connect(server.endpoint)
    counted = 0
    for _ in range(10):
        server.accept()
        for number in range(WARM):
            socket.send(b"%d" % number)
            while server.receive() != [b"%d" % number]:
                pass
        server.close()
        time.sleep(pause)
        socket.send(b"after the end")
        server.accept()
        socket.send(b"later")
        received = server.receive()
        if received == [b"after the end"]:
            received = server.receive()
        else:
            counted += 1
        assert received == [b"later"]
        assert lost(socket) == counted
        server.close()
    # The first message may have been in transit when the end arrived; with time to notice, none may be lost.
    assert counted == 0 or pause == 0


@pytest.mark.parametrize("kind", ["REQ", "DEALER", "PAIR"])
def test_a_hang_up_is_noticed_while_the_program_is_idle(zmq, context, serve, kind):
    """The connection is lent, no thread waits, and the monitor reports the end."""
    server = serve(kind)
    socket = context.socket(getattr(zmq, kind))
    socket.reconnect_ivl = 1
    events = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    events.rcvtimeo = int(PATIENCE * 1000)
    socket.connect(server.endpoint)
    server.accept()
    serving = answering(server, WARM)
    ask(socket, WARM)
    serving.result()
    events.recv_multipart()


@pytest.mark.parametrize("turns", [20, 1000])
@pytest.mark.parametrize("pause", PAUSES)
def test_a_server_that_comes_back_gets_the_request(
    zmq, context, transport, directory, turns, pause
):
    def serve(address):
        # Terminating its context ends its connections.
        with zmq.Context() as context, context.socket(zmq.REP) as server:
            server.linger = 1000
            server.rcvtimeo = int(PATIENCE * 1000)
            bind_once_free(zmq, server, address)
            for _ in range(turns):
                server.send(server.recv())

    address = lasting_endpoint() if transport == "tcp" else f"ipc://{directory}/back"
    client = context.socket(zmq.REQ)
    client.reconnect_ivl = 1
    serving = Background(serve, address)
    client.connect(address)
    client.send(b"first")
    for _ in range(3):
        assert client.recv() == b"first"
        ask(client, turns - 1)
        serving.result()
        time.sleep(pause)
        client.send(b"first")
        serving = Background(serve, address)
    assert client.recv() == b"first"
    assert lost(client) == 0
    ask(client, turns - 1)
    serving.result()


def test_a_loop_sends_requests_after_a_hang_up(zmq, serve):
    """The same with asyncio, on connections for which threads have waited before."""
    aio = importlib.import_module(f"{zmq.__name__}.asyncio")
    server = serve("REQ")

    async def main():
        with aio.Context() as context, context.socket(zmq.REQ) as socket:
            socket.linger = 0
            socket.reconnect_ivl = 1
            socket.connect(server.endpoint)
            for pause in PAUSES:
                await asyncio.to_thread(server.accept)
                serving = answering(server, WARM)
                await asyncio.to_thread(ask, zmq.Socket.shadow(socket), WARM // 2)
                for number in range(WARM // 2):
                    await socket.send(b"%d" % number)
                    assert await socket.recv() == b"%d" % number
                serving.result()
                await asyncio.sleep(pause)
                await socket.send(b"after the end")
                await asyncio.to_thread(server.accept)
                assert await asyncio.to_thread(server.answer) == b"after the end"
                assert await socket.recv() == b"after the end"
                assert lost(socket) == 0
                server.close()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["REP", "ROUTER"])
def test_a_reply_to_a_client_that_has_hung_up_is_counted(zmq, sockets, kind):
    server = sockets.bound(getattr(zmq, kind))
    for number in range(1, 6):
        client = Peer(server, b"REQ")
        for _ in range(WARM):
            client.stream.sendall(Peer.frame(1, b"") + Peer.frame(0, b"question"))
            server.send_multipart(server.recv_multipart())
            while client.command()[0] != 0:
                pass
        client.stream.sendall(Peer.frame(1, b"") + Peer.frame(0, b"question"))
        question = server.recv_multipart()
        client.stream.close()
        server.send_multipart(question)
        eventually(lambda number=number: lost(server) == number)


def test_a_request_during_a_hang_up_is_answered_or_counted(zmq, context, directory):
    """A request may cross the end of the connection. It may have arrived, so it is not repeated, but counted."""
    server = Server("tcp", directory, PARTNERS["REQ"])
    socket = context.socket(zmq.REQ)
    socket.reconnect_ivl = 1
    socket.req_relaxed = socket.req_correlate = 1
    socket.connect(server.endpoint)
    over = threading.Event()

    def answer():
        server.listener.settimeout(0.1)
        while not over.is_set():
            with contextlib.suppress(TimeoutError, AssertionError, OSError):
                server.accept()
                for _ in range(WARM):
                    server.answer()
            if server.stream is not None:
                server.close()

    serving = Background(answer)
    counted = 0
    for number in range(50 * WARM):
        socket.send(b"%d" % number)
        while not socket.poll(50):
            # It counts the request that is repeated now.
            now = socket.stats()["dropped"]["peer_gone"]
            if now > counted:
                counted = now
                socket.send(b"%d" % number)
        assert socket.recv() == b"%d" % number
    over.set()
    socket.close(linger=0)
    serving.result()
    server.listener.close()
