"""A peer that reads late gets everything, although the sender has closed: also what was still in the sender's kernel.

A kernel resets a closed connection when something arrives, and discards what it still holds.
"""

import socket as system
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from support import PATIENCE, Background
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
    # Fewer than the kernels take, and more than the receiver's.
    sent = 0
    try:
        while sent < 250_000:
            push.send(b"%d" % sent)
            sent += 1
    except zmq.Again:
        pass
    print(sent, flush=True)
    push.close()
    context.term()
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


@pytest.mark.parametrize("end", ["close", "disconnect"])
def test_a_peer_that_does_not_read_may_still_send(zmq, server, end):
    """It sends a PING, a while after the last message left the queue, and then reads."""
    with zmq.Context() as context:
        push = context.socket(zmq.PUSH)
        push.sndhwm = 1
        push.connect(server.endpoint)
        server.accept()
        sent = fill(push, zmq)
        if end == "close":
            push.close()
        else:
            push.disconnect(server.endpoint)
        # Some of it, so that everything is in the kernels.
        received = [server.receive() for _ in range(sent // 2)]
        time.sleep(A_WHILE)
        server.stream.sendall(b"\x04\x07\x04PING\x00\x00")
        received += [server.receive() for _ in range(sent - len(received))]
        assert received == [[BODY]] * sent


def test_close_waits_for_a_peer_that_reads_slowly(zmq, server):
    """Its report comes when the peer's kernel has everything."""
    with zmq.Context() as context:
        push = context.socket(zmq.PUSH)
        push.sndhwm = 1
        push.connect(server.endpoint)
        server.accept()
        sent = fill(push, zmq)
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
        push = context.socket(zmq.PUSH)
        push.connect(server.endpoint)
        server.accept()
        fill(push, zmq)
        push.close(linger=200)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["zeroxide", "zmq"])
def test_an_application_that_pauses_loses_nothing(zmq, context, module):
    """The sender is a program that has ended, or waits to end, when the receiver goes on."""
    pull = context.socket(zmq.PULL)
    port = pull.bind_to_random_port("tcp://127.0.0.1")
    script = textwrap.dedent(SENDER.format(module=module))
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

    sender = threading.Thread(target=send)
    sender.start()
    end = time.monotonic() + LONG
    frame = None
    while frame != b"the last":
        flags, frame = server.frame()
        assert flags == 0
        if time.monotonic() > end:
            over.set()
    sender.join()
