"""A peer that reads late gets everything, although the sender has closed: also what was still in the sender's kernel.

A kernel resets a closed connection when something arrives, and discards what it still holds for the peer.
"""

import contextlib
import fcntl
import select
import signal
import socket as system
import subprocess
import sys
import termios
import textwrap
import threading
import time

import pytest
from support import PATIENCE, Background, eventually
from test_hang_up import Server

pytestmark = pytest.mark.zeroxide_only

BODY = bytes(10_000)

# Longer than a connection that drains waits for a peer whose kernel does not answer.
A_WHILE = 1.5

# Longer than a peer may be silent before it gets a PING.
LONG = 9

SENDER = """
    import sys
    import {module} as zmq
    context = zmq.Context()
    push = context.socket(zmq.PUSH)
    push.connect(sys.argv[1])
    push.sndtimeo = 1000
    # More than the receiver and its kernel take, and less than the sender's kernel takes as well.
    sent = 0
    try:
        while sent < 200_000:
            push.send(b"%d" % sent)
            sent += 1
    except zmq.Again:
        pass
    print(sent, flush=True)
    {end}
"""


@pytest.fixture
def server(directory):
    """A peer whose kernel takes little."""
    server = Server("tcp", directory, b"PULL")
    server.listener.setsockopt(system.SOL_SOCKET, system.SO_RCVBUF, 1 << 16)
    yield server
    server.listener.close()
    server.close()


def fill(socket, zmq):
    """Sends until the peer's kernel, ours and the queue are full."""
    socket.sndtimeo = 500
    sent = 0
    try:
        while True:
            socket.send(BODY)
            sent += 1
    except zmq.Again:
        return sent


def unread(stream):
    """The number of bytes that its kernel has for a stream."""
    return int.from_bytes(fcntl.ioctl(stream, termios.FIONREAD, bytes(4)), sys.byteorder)


def wait_for_reset(stream):
    poll = select.poll()
    poll.register(stream, 0)  # errors are reported without being asked for
    assert poll.poll(PATIENCE * 1000)


def full(zmq, context, server):
    """A PUSH whose peer, kernel and queue are full, and how much it has sent."""
    push = context.socket(zmq.PUSH)
    # So small a queue fits into the kernels as soon as the peer reads some.
    push.sndhwm = 1
    push.connect(server.endpoint)
    server.accept()
    return push, fill(push, zmq)


@pytest.mark.parametrize("end", ["close", "disconnect"])
def test_a_peer_that_does_not_read_may_still_send(zmq, server, end):
    """It sends a PING, a while after the last message left the queue, and then reads."""
    with zmq.Context() as context:
        push, sent = full(zmq, context, server)
        if end == "close":
            push.close()
        else:
            push.disconnect(server.endpoint)
        # Some of it, so that everything is in the kernels.
        received = [server.receive() for _ in range(sent // 2)]
        time.sleep(A_WHILE)
        server.stream.sendall(b"\x04\x07\x04PING\x00\x00")
        received += [server.receive() for _ in range(sent - len(received))]
        assert len(received) == sent
        assert all(message == [BODY] for message in received)


def test_close_waits_for_a_peer_that_reads_slowly(zmq, server):
    """Its report comes when the peer's kernel has everything."""
    with zmq.Context() as context:
        push, sent = full(zmq, context, server)
        closing = Background(lambda: push.close(timeout=int(PATIENCE * 1000)))
        for _ in range(sent // 2):
            server.receive()
        # The rest is in the kernels.
        time.sleep(A_WHILE)
        assert closing.is_alive()
        for _ in range(sent - sent // 2):
            server.receive()
        assert not closing.result()


def test_linger_limits_the_wait_for_a_peer_that_does_not_read(zmq, server):
    with zmq.Context() as context:
        push, _ = full(zmq, context, server)
        push.close(linger=200)
        start = time.monotonic()
    assert time.monotonic() - start < A_WHILE * 4


def test_a_report_counts_what_the_peers_kernel_has_no_room_for(zmq, server):
    """Our kernel holds it, and discards it if the peer sends something after the close."""
    with zmq.Context() as context:
        push, sent = full(zmq, context, server)
        for _ in range(sent // 2):
            server.receive()
        push.flush()
        report = push.close(timeout=300)
        assert 0 < sum(peer.messages for peer in report.peers) <= sent - sent // 2


def test_a_report_counts_the_kernel_beside_the_queue(zmq, server):
    """Messages still wait in the queue when the time is up. Everything arrives or is reported."""
    with zmq.Context() as context:
        push, sent = full(zmq, context, server)
        report = push.close(timeout=300)
        reported = sum(peer.messages for peer in report.peers)
        # Now the kernel discards what it held.
        server.stream.sendall(b"\x04\x07\x04PING\x00\x00")
        wait_for_reset(server.stream)
        received = 0
        with contextlib.suppress(AssertionError, ConnectionError):
            while True:
                server.receive()
                received += 1
        assert received < sent <= received + reported


def test_a_report_counts_what_the_peers_kernel_throws_away(zmq, server):
    """It promised room that it no longer has. Bytes that are sent again and again are always in transit."""
    server.listener.setsockopt(system.SOL_SOCKET, system.SO_RCVBUF, 1 << 20)
    with zmq.Context() as context:
        push = context.socket(zmq.PUSH)
        push.connect(server.endpoint)
        server.accept()
        server.stream.setsockopt(system.SOL_SOCKET, system.SO_RCVBUF, 1 << 12)
        sent = fill(push, zmq)
        report = push.close(timeout=300)
        size = len(BODY) + 9
        arrived = unread(server.stream) // size
        # How many messages of one write had arrived is an estimate.
        assert sent - arrived <= report.messages + 1 <= sent + 1


def test_a_report_has_the_bytes_of_messages_only(zmq, server):
    """The answers to PINGs that the peer does not read are none."""
    with zmq.Context() as context:
        push = context.socket(zmq.PUSH)
        push.connect(server.endpoint)
        server.accept()
        pings = (b"\x04\x17\x04PING\x00\x00" + bytes(16)) * 1000
        # Until the answers fill its kernel. Ours has the next ones.
        while unread(server.stream) < 1 << 16:
            server.stream.sendall(pings)
        for _ in range(100):
            server.stream.sendall(pings)
        push.send(b"one message")
        report = push.close(timeout=100)
        # The share of a message in a write is an estimate.
        assert report.messages == 1
        assert 0 < report.bytes <= len(b"\x00\x0bone message")


def test_what_the_peers_kernel_takes_late_is_not_reported(zmq, directory):
    """It has room, and may acknowledge 40 ms later what has arrived."""
    server = Server("tcp", directory, b"PULL")
    with zmq.Context() as context:
        for _ in range(20):
            push = context.socket(zmq.PUSH)
            push.connect(server.endpoint)
            server.accept()
            for _ in range(10):
                push.send(b"one of some")
            # None waits in the queue.
            eventually(lambda push=push: push.stats()["queued_out"] == 0)
            assert not push.close(timeout=0)
            server.close()
    server.listener.close()


@pytest.mark.parametrize("end", ["close", "option", "destroy"])
def test_no_linger_ends_connections_that_disconnect_has_left(zmq, server, end):
    context = zmq.Context()
    push, _ = full(zmq, context, server)
    push.disconnect(server.endpoint)
    if end == "close":
        push.close(linger=0)
    elif end == "option":
        push.linger = 0
        push.close()
    Background(context.destroy, linger=0).result()


def test_a_process_that_was_stopped_reads_before_it_judges_its_peers(zmq, context):
    """Its timers are due when it continues, but the heartbeats of its peer have arrived."""
    script = """
        import zeroxide as zmq
        pull = zmq.Context().socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")
        print(pull.last_endpoint.decode(), flush=True)
        while True:
            print(pull.recv().decode(), flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            push = context.socket(zmq.PUSH)
            push.heartbeat_ivl = 100
            push.heartbeat_ttl = 300
            push.connect(program.stdout.readline().strip())
            push.send(b"first")
            assert program.stdout.readline() == "first\n"
            # Until a PING has told how long it may be silent.
            time.sleep(0.2)
            program.send_signal(signal.SIGSTOP)
            for number in range(1000):
                push.send(b"%d" % number)
            time.sleep(1)
            program.send_signal(signal.SIGCONT)
            for number in range(1000):
                assert program.stdout.readline() == f"{number}\n"
        finally:
            program.kill()


def test_a_process_that_was_stopped_reads_from_all_of_its_peers_before_it_judges_them(zmq, context):
    """They are more than one turn of an I/O thread takes."""
    script = """
        import zeroxide as zmq
        pull = zmq.Context().socket(zmq.PULL)
        pull.rcvtimeo = 5000
        pull.bind("tcp://127.0.0.1:*")
        print(pull.last_endpoint.decode(), flush=True)
        while True:
            print(pull.recv().decode(), flush=True)
    """
    peers = 600
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            endpoint = program.stdout.readline().strip()
            sockets = [context.socket(zmq.PUSH) for _ in range(peers)]
            for socket in sockets:
                socket.heartbeat_ivl = 100
                socket.heartbeat_ttl = 300
                socket.connect(endpoint)
                socket.send(b"first")
            for _ in sockets:
                assert program.stdout.readline() == "first\n"
            # Until PINGs have told how long the peers may be silent.
            time.sleep(0.2)
            program.send_signal(signal.SIGSTOP)
            for number, socket in enumerate(sockets):
                socket.send(b"%d" % number)
            time.sleep(1)
            program.send_signal(signal.SIGCONT)
            arrived = [program.stdout.readline().strip() for _ in sockets]
            assert sorted(arrived) == sorted(map(str, range(peers)))
        finally:
            program.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "end"),
    [
        ("zeroxide", "push.close(); context.term()"),
        # Gives up the wait after two seconds, and leaves the rest to the kernel.
        ("zeroxide", "pass"),
        ("zeroxide", "push.close(linger=500); context.term()"),
        ("zmq", "push.close(); context.term()"),
    ],
)
def test_an_application_that_pauses_loses_nothing(zmq, context, module, end):
    """The sender is a program that has ended, or waits to end, when the receiver goes on."""
    pull = context.socket(zmq.PULL)
    port = pull.bind_to_random_port("tcp://127.0.0.1")
    script = textwrap.dedent(SENDER.format(module=module, end=end))
    command = [sys.executable, "-c", script, f"tcp://127.0.0.1:{port}"]
    pull.rcvtimeo = int(PATIENCE * 1000)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            sent = int(program.stdout.readline())
            time.sleep(LONG)
            for number in range(sent):
                assert pull.recv() == b"%d" % number
            assert program.wait(PATIENCE) == 0
        finally:
            program.kill()


@pytest.mark.slow
def test_a_peer_that_takes_everything_is_not_asked_for_a_sign_of_life(zmq, context, server):
    """Its kernel acknowledges the messages. An answer to a PING could come after the sender has closed."""
    push = context.socket(zmq.PUSH)
    push.connect(server.endpoint)
    server.accept()
    over = threading.Event()

    def send():
        while not over.wait(0.1):
            push.send(b"one of many")
        push.send(b"the last")

    sender = Background(send)
    end = time.monotonic() + LONG
    frame = None
    try:
        while frame != b"the last":
            flags, frame = server.frame()
            assert flags == 0
            if time.monotonic() > end:
                over.set()
    finally:
        over.set()
    sender.result()
