"""When memory runs out, the call fails, the message stays, the peer that needs too much is disconnected, and the process
survives. Each test runs in a child process whose address space is limited."""

import os
import subprocess
import sys
import textwrap

import pytest

# The start of every child's program.
PRELUDE = """
import asyncio, resource, socket, struct, sys, threading, time
import zeroxide as zmq
import zeroxide.asyncio

LARGE = 64 << 20

def space():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()

class Tight:
    "No more memory than there is, but for a little."

    def __init__(self, room=24 << 20):
        self.room = room

    def __enter__(self):
        _, self.most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (space() + self.room, self.most))

    def __exit__(self, *_):
        resource.setrlimit(resource.RLIMIT_AS, (self.most, self.most))

def fails(call):
    try:
        with Tight():
            call()
    except MemoryError:
        return
    raise AssertionError("there was memory enough")

def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)

def hello(socket_type):
    ready = b"\\x05READY\\x0bSocket-Type" + struct.pack(">I", len(socket_type)) + socket_type
    greeting = b"\\xff\\0\\0\\0\\0\\0\\0\\0\\1\\x7f\\3\\0" + b"NULL".ljust(52, b"\\0")
    return greeting + bytes([4, len(ready)]) + ready

def raw(endpoint):
    host, port = endpoint.removeprefix("tcp://").split(":")
    return socket.create_connection((host, int(port)))

context = zmq.Context()
sender, receiver = context.socket(zmq.PUSH), context.socket(zmq.PULL)
endpoint = f"tcp://127.0.0.1:{receiver.bind_to_random_port('tcp://127.0.0.1')}"
sender.connect(endpoint)
"""


def child(body: str) -> None:
    script = PRELUDE + textwrap.dedent(body) + "\nprint('lived')\n"
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        # A new thread's arena reserves address space and gives half of it back, perhaps just after it was measured.
        env=os.environ | {"MALLOC_ARENA_MAX": "1"},
    )
    assert (run.returncode, run.stdout) == (0, "lived\n"), run.stderr[-4000:]


RECEIVES = {
    "recv": ("sender.send(body)", "receiver.recv()", "body"),
    "the first part": (
        "sender.send_multipart([body, b'2'])",
        "receiver.recv()",
        "body",
    ),
    "recv_multipart": (
        "sender.send_multipart([b'1', body])",
        "receiver.recv_multipart()",
        "[b'1', body]",
    ),
    "recv_batch": (
        "sender.send(b'1'); sender.send(body)",
        "receiver.recv_batch(10)",
        "[b'1', body]",
    ),
    "recv_rows": (
        "sender.send(body)",
        "receiver.recv_batch_arrow()",
        None,
    ),
}


@pytest.mark.parametrize("name", RECEIVES)
def test_a_message_stays_in_its_queue_if_there_is_no_memory_for_it(name):
    send, receive, expected = RECEIVES[name]
    if expected is None:
        pytest.importorskip("pyarrow")
    check = (
        f"assert {receive} == {expected}"
        if expected
        else "import pyarrow as pa; assert pa.table(receiver.recv_batch_arrow()).column('value')[0].as_py() == body"
    )
    messages = send.count("sender.")
    child(f"""
        body = bytes(LARGE)
        {send}
        sender.flush(30_000)
        until(lambda: receiver.stats()["queued_in"] == {messages})
        for _ in range(2):
            fails(lambda: {receive})
        {check}
        sender.send(b"next")
        if receiver.rcvmore:
            assert receiver.recv() == b"2"
        assert receiver.recv() == b"next"
    """)


def test_a_later_part_stays_in_its_queue():
    child("""
        body = bytes(LARGE)
        sender.send_multipart([b"1", body, b"3"])
        assert receiver.recv() == b"1"
        for _ in range(2):
            fails(receiver.recv)
        fails(receiver.recv_multipart)
        assert receiver.recv() == body
        assert receiver.recv_multipart() == [b"3"]
    """)


def test_a_reply_can_be_received_later():
    child("""
        client, server = context.socket(zmq.REQ), context.socket(zmq.REP)
        server.bind("inproc://server")
        client.connect("inproc://server")
        client.send(b"question")
        server.recv()
        server.send(bytes(LARGE))
        assert client.poll(10_000)
        fails(client.recv)
        assert len(client.recv()) == LARGE
        client.send(b"again")
        assert server.recv() == b"again"
    """)


def test_a_task_gets_a_memory_error_and_then_the_message():
    child("""
        async def main():
            asynchronous = zeroxide.asyncio.Context()
            a, b = asynchronous.socket(zmq.PAIR), asynchronous.socket(zmq.PAIR)
            a.bind("inproc://a")
            b.connect("inproc://a")
            body = bytes(LARGE)
            for ready in (True, False):
                if ready:
                    await a.send(body)
                with Tight():
                    waiting = asyncio.ensure_future(b.recv())
                    if not ready:
                        await asyncio.sleep(0)
                        await a.send(body)
                    try:
                        await waiting
                    except MemoryError:
                        pass
                    else:
                        raise AssertionError("there was memory enough")
                assert await b.recv() == body
            a.close(), b.close()
        asyncio.run(main())
    """)


def test_a_body_that_cannot_be_copied_is_not_sent():
    child("""
        body = bytearray(LARGE)
        calls = [
            lambda: sender.send(body),
            lambda: sender.send_multipart([b"1", body]),
            lambda: sender.send(body, zmq.SNDMORE),
            lambda: sender.send_batch([body]),
            lambda: sender.send(memoryview(body)),
        ]
        for call in calls:
            fails(call)
        sender.send(b"small")
        sender.send(body)
        assert receiver.recv() == b"small"
        assert receiver.recv() == body
    """)


def test_too_many_parts_are_not_sent():
    child("""
        parts = [b""] * 2_000_000
        for call in (lambda: sender.send_multipart(parts), lambda: sender.send_batch([parts])):
            fails(call)
        sender.send(b"small")
        assert receiver.recv() == b"small"
    """)


def test_a_frame_survives_if_its_bytes_do_not_fit():
    child("""
        sender.send(bytes(LARGE))
        frame = receiver.recv(copy=False)
        fails(lambda: frame.bytes)
        fails(lambda: bytes(frame))
        shared = zmq.Frame(frame.bytes)
        fails(lambda: memoryview(shared))
        assert len(frame.bytes) == LARGE
    """)


@pytest.mark.parametrize("secure", [False, True])
def test_peers_with_messages_that_do_not_fit_are_disconnected_and_others_stay(secure):
    child(f"""
        secure = {secure}
        if secure:
            # No peer is accepted: bytes that unknown peers send must not exhaust memory either.
            public, secret = zmq.curve_keypair()
            receiver = context.socket(zmq.PULL)
            receiver.curve_server, receiver.curve_secretkey = True, secret
            endpoint = f"tcp://127.0.0.1:{{receiver.bind_to_random_port('tcp://127.0.0.1')}}"
            sender = context.socket(zmq.PUSH)
            sender.curve_serverkey = public
            sender.curve_publickey, sender.curve_secretkey = zmq.curve_keypair()
            sender.connect(endpoint)
        sender.send(b"before")
        assert receiver.recv() == b"before"
        go = threading.Event()
        body = bytes(1 << 20)
        def shout(peer):
            go.wait()
            try:
                peer.sendall(hello(b"PUSH"))
                for _ in range(3):
                    peer.sendall(b"\\2" + struct.pack(">Q", LARGE))
                    for _ in range(LARGE >> 20):
                        peer.sendall(body)
            except OSError:
                pass
        peers = [raw(endpoint) for _ in range(4)]
        threads = [threading.Thread(target=shout, args=[peer], daemon=True) for peer in peers]
        for thread in threads:
            thread.start()
        with Tight(96 << 20):
            go.set()
            if secure:
                for thread in threads:
                    thread.join(20)
            else:
                until(lambda: receiver.stats()["dropped"]["no_memory"] > 0)
            sender.send(b"meanwhile")
            seen = None
            while seen != b"meanwhile":
                assert receiver.poll(20_000), "no peer is served any more"
                try:
                    seen = receiver.recv()
                except MemoryError:
                    # Too large for what is left: this program looks at it without a copy.
                    seen = bytes(receiver.recv(copy=False).buffer[:16])
            for peer in peers:
                peer.close()
        sender.send(b"after")
        while receiver.recv(copy=False).buffer[:5] != b"after":
            pass
    """)


def test_incomplete_messages_use_as_much_memory_as_has_arrived():
    child("""
        sender.send(b"before")
        assert receiver.recv() == b"before"
        with Tight(64 << 20):
            peers = []
            for _ in range(200):
                peer = raw(endpoint)
                peer.sendall(hello(b"PUSH") + b"\\2" + struct.pack(">Q", 1 << 30) + bytes(100))
                peers.append(peer)
            for n in range(100):
                sender.send(b"%d" % n)
                assert receiver.recv() == b"%d" % n
    """)


@pytest.mark.parametrize("kind", ["PUB", "XPUB"])
@pytest.mark.parametrize("length", [60, 4 << 20])
def test_subscriptions_that_do_not_fit_are_ignored_and_counted(kind, length):
    child(f"""
        publisher = context.socket(zmq.{kind})
        publisher.max_subscription_bytes = publisher.max_subscriptions = 0
        endpoint = f"tcp://127.0.0.1:{{publisher.bind_to_random_port('tcp://127.0.0.1')}}"
        subscriber = context.socket(zmq.SUB)
        subscriber.subscribe("news")
        subscriber.connect(endpoint)
        # Its subscription is in effect before memory is short: afterwards, it might not fit.
        until(lambda: publisher.send(b"news") or subscriber.poll(10))
        while subscriber.poll(0):
            subscriber.recv()
        stranger = raw(endpoint)
        batch = 1 + 100_000 // {length}
        go = threading.Event()
        def ask():
            go.wait()
            n = 0
            try:
                while True:
                    body = b""
                    for _ in range(batch):
                        n += 1
                        topic = b"\\1" + b"%x" % (n * 2654435761 % 2**40) + bytes({length})
                        body += b"\\2" + struct.pack(">Q", len(topic)) + topic
                    stranger.sendall(body)
            except (OSError, MemoryError):
                pass
        stranger.sendall(hello(b"SUB"))
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        with Tight(64 << 20):
            go.set()
            until(lambda: publisher.stats()["dropped"]["no_memory"] > 0 or not asking.is_alive())
            until(lambda: publisher.send(b"news") or subscriber.poll(10))
            assert subscriber.recv() == b"news"
            stranger.close()
            asking.join()
        publisher.close(linger=0)
    """)


def test_io_threads_without_memory_for_a_stack():
    """The error says what the system refused, and the context works once it refuses no more."""
    child("""
        other = zmq.Context()
        try:
            with Tight(1 << 20):
                other.socket(zmq.PULL).bind("tcp://127.0.0.1:*")
        except zmq.ZMQError as error:
            assert error.errno == zmq.EMTHREAD, error
            assert "no I/O thread can be started" in str(error), error
        else:
            raise AssertionError("the thread was started")
        pull, push = other.socket(zmq.PULL), other.socket(zmq.PUSH)
        push.connect(pull.bind("tcp://127.0.0.1:*").addr)
        push.send(b"after")
        assert pull.recv() == b"after"
        other.destroy(linger=0)
    """)


@pytest.mark.parametrize("what", ["Collector(folder)", "Producer('tcp://127.0.0.1:9', name='p')"])
def test_pipelines_without_memory_for_a_stack(what, tmp_path):
    """Each of their threads may be the one for which there is no room."""
    child(f"""
        from zeroxide.pipeline import Collector, Producer
        folder = {str(tmp_path / "log")!r}
        texts, room = set(), 1
        while True:
            try:
                with Tight(room << 20):
                    made = {what}
            except zmq.ZMQError as error:
                assert error.errno == zmq.EMTHREAD, error
                texts.add(str(error).split(":")[1])
                room += 1
            else:
                made.close()
                break
        threads = [text for text in texts if text.startswith(" the thread ")]
        assert threads and all(text.endswith(" cannot be started") for text in threads), texts
    """)
