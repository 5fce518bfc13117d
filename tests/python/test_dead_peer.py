"""A peer whose machine has died is noticed by default, and a slow peer stays connected.

A machine is a network namespace; it dies when its cable is moved to another one.
"""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from test_hang_up import Server
from test_lent import Peer

pytestmark = pytest.mark.zeroxide_only

# The documented limit, and some time for a busy machine.
NOTICED = 15 + 5

PUBLISHER = """
    import time
    server = zmq.Context().socket(zmq.PUB)
    server.bind("tcp://10.77.0.1:5555")
    while True:
        server.send_string(sys.argv[1])
        time.sleep(0.05)
"""

# Is silent until it receives the command to publish.
SILENT = """
    server = zmq.Context().socket(zmq.XPUB)
    server.bind("tcp://10.77.0.1:5555")
    server.recv()
    server.send_string(sys.argv[1])
    server.recv()
    server.recv()
"""

SUBSCRIBER = """
    socket = zmq.Context().socket(zmq.SUB)
    events = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    socket.subscribe("")
    socket.connect("tcp://10.77.0.1:5555")
    said = None
    poller = zmq.Poller()
    poller.register(socket, zmq.POLLIN)
    poller.register(events, zmq.POLLIN)
    while True:
        for ready, _ in poller.poll():
            if ready is events:
                events.recv_multipart()
                said = "disconnected"
                print(said, flush=True)
            elif (message := socket.recv_string()) != said:
                said = message
                print(said, flush=True)
"""

# Publishes more than any queue takes.
FLOOD = """
    import time
    server = zmq.Context().socket(zmq.PUB)
    server.bind("tcp://10.77.0.1:5555")
    while True:
        server.send(bytes(10_000))
        time.sleep(0.001)
"""

# Receives one message, and the others when it is told to.
PAUSED = """
    socket = zmq.Context().socket(zmq.SUB)
    socket.rcvhwm = 2
    socket.subscribe("")
    socket.connect("tcp://10.77.0.1:5555")
    socket.recv()
    print("paused", flush=True)
    sys.stdin.readline()
    while socket.recv() != b"two":
        pass
    print("two", flush=True)
"""

# A publisher of ZMTP 3.0 that sends one message.
OLDER = """
    listener = zmq.create_server(("10.77.0.1", 5555))
    stream, _ = listener.accept()
    greeting = b"\\xff" + bytes(8) + b"\\x7f\\x03\\x00NULL" + bytes(48)
    ready = b"\\x05READY\\x0bSocket-Type\\x00\\x00\\x00\\x03PUB"
    stream.sendall(greeting + bytes((4, len(ready))) + ready + b"\\x00\\x03one")
    while stream.recv(4096):
        pass
"""

# Exchanges a message with its peer, and tells when the peer is gone.
PAIR = """
    socket = zmq.Context().socket(zmq.PAIR)
    events = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    getattr(socket, sys.argv[1])(sys.argv[2])
    socket.send(b"hello")
    socket.recv()
    print("met", flush=True)
    events.recv_multipart()
    print("disconnected", flush=True)
"""

# Receives one message, and no more.
FULL = """
    import time
    server = zmq.Context().socket(zmq.PULL)
    server.rcvhwm = 1
    server.bind("tcp://10.77.0.1:5555")
    server.recv()
    time.sleep(1000)
"""

PUSHER = """
    import time
    socket = zmq.Context().socket(zmq.PUSH)
    events = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    socket.sndhwm = 2
    socket.connect("tcp://10.77.0.1:5555")
    body = bytes(1 << 20)
    socket.send(b"first")
    while socket.poll(2000, zmq.POLLOUT):
        socket.send(body)
    print("full", flush=True)
    events.recv_multipart()
    print("disconnected", flush=True)
"""


# A receiver that reads nothing after the handshake. Its kernel has little room.
STUCK = """
    import time
    listener = zmq.create_server(("10.77.0.1", 5555))
    listener.setsockopt(zmq.SOL_SOCKET, zmq.SO_RCVBUF, 1 << 16)
    stream, _ = listener.accept()
    greeting = b"\\xff" + bytes(8) + b"\\x7f\\x03\\x00NULL" + bytes(48)
    ready = b"\\x05READY\\x0bSocket-Type\\x00\\x00\\x00\\x04PULL"
    stream.sendall(greeting + bytes((4, len(ready))) + ready)
    time.sleep(1000)
"""

# Sends what both kernels take, and closes its socket when it is told to. Says whether the report has a message.
# Messages in its queue would wait for a new connection.
CLOSER = """
    import time
    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    socket.connect("tcp://10.77.0.1:5555")
    socket.wait_connected()
    for _ in range(int(sys.argv[1])):
        socket.send(bytes(10_000))
    while socket.stats()["queued_out"] > 0:
        time.sleep(0.01)
    time.sleep(0.5)
    print("sent", flush=True)
    sys.stdin.readline()
    socket.send(b"last")
    print("closing", flush=True)
    print(socket.close(timeout=-1).messages > 0, flush=True)
    context.term()
    print("ended", flush=True)
"""

# Sends when it is told to. Then it closes its socket within a time, and prints the number of messages in the report, or
# ends, and prints what the end of a program reports.
SENDER = """
    import time
    count, size, timeout = map(int, sys.argv[1:4])
    socket = zmq.Context().socket(zmq.PUSH)
    socket.connect("tcp://10.77.0.1:5555")
    socket.wait_connected()
    print("connected", flush=True)
    sys.stdin.readline()
    for _ in range(count):
        socket.send(bytes(size))
    if timeout < 0:
        sys.stderr = sys.stdout
    else:
        print(socket.close(timeout=timeout).messages)
"""


def says(program, *lines):
    """Waits until a program has printed these lines; ignores others."""
    for line in lines:
        while program.stdout.readline().strip() != line:
            assert program.poll() is None


@pytest.mark.slow
@pytest.mark.parametrize("module", ["zeroxide", "zmq"])
@pytest.mark.parametrize("script", [PUBLISHER, SILENT], ids=["talks", "silent"])
def test_a_subscriber_reconnects_to_the_replacement(machines, script, module):
    machines.cable()
    machines.plug_in()
    machines.start(machines.place, module, script, "one")
    subscriber = machines.start(machines.home, "zeroxide", SUBSCRIBER)
    says(subscriber, "one")
    machines.cable()
    machines.plug_in()
    start = time.monotonic()
    machines.start(machines.place, module, PUBLISHER, "two")
    says(subscriber, "disconnected", "two")
    assert time.monotonic() - start < NOTICED


@pytest.mark.slow
@pytest.mark.parametrize("module", ["zeroxide", "zmq"])
@pytest.mark.parametrize("pause", [1, 25])
def test_a_subscriber_at_its_mark_reconnects_to_the_replacement(machines, pause, module):
    """It asks no publisher for a sign of life while it does not read."""
    machines.cable()
    machines.plug_in()
    machines.start(machines.place, module, FLOOD)
    subscriber = machines.start(machines.home, "zeroxide", PAUSED)
    says(subscriber, "paused")
    time.sleep(5)
    machines.cable()
    machines.plug_in()
    machines.start(machines.place, module, PUBLISHER, "two")
    time.sleep(pause)
    start = time.monotonic()
    subscriber.stdin.write("read\n")
    subscriber.stdin.flush()
    says(subscriber, "two")
    assert time.monotonic() - start < NOTICED


@pytest.mark.slow
@pytest.mark.parametrize("module", ["zeroxide", "zmq"])
@pytest.mark.parametrize("script", [PUBLISHER, SILENT], ids=["talks", "silent"])
def test_a_dead_machine_is_noticed(machines, script, module):
    machines.cable()
    machines.plug_in()
    machines.start(machines.place, module, script, "one")
    subscriber = machines.start(machines.home, "zeroxide", SUBSCRIBER)
    says(subscriber, "one")
    start = time.monotonic()
    machines.cable()
    says(subscriber, "disconnected")
    assert time.monotonic() - start < NOTICED
    machines.plug_in()
    machines.start(machines.place, module, PUBLISHER, "two")
    says(subscriber, "two")


@pytest.mark.slow
def test_a_dead_machine_of_an_older_peer_is_noticed(machines):
    """The peer speaks ZMTP 3.0 and never gets a PING: the kernel sends probes."""
    machines.cable()
    machines.plug_in()
    machines.start(machines.place, "socket", OLDER)
    subscriber = machines.start(machines.home, "zeroxide", SUBSCRIBER)
    says(subscriber, "one")
    start = time.monotonic()
    machines.cable()
    says(subscriber, "disconnected")
    assert time.monotonic() - start < NOTICED


@pytest.mark.slow
@pytest.mark.parametrize("module", ["zeroxide", "zmq"])
@pytest.mark.parametrize("binds", [True, False], ids=["binds", "connects"])
def test_a_stopped_peer_whose_machine_dies_later_is_noticed(machines, binds, module):
    """Its kernel has taken the PING, to which no answer comes, so nothing is left to be acknowledged."""
    machines.cable()
    machines.plug_in()
    endpoint = f"tcp://10.77.0.{2 if binds else 1}:5555"
    actions = ["bind", "connect"] if binds else ["connect", "bind"]
    watcher = machines.start(machines.home, "zeroxide", PAIR, actions[0], endpoint)
    peer = machines.start(machines.place, module, PAIR, actions[1], endpoint)
    says(peer, "met")
    says(watcher, "met")
    peer.send_signal(signal.SIGSTOP)
    time.sleep(12)
    start = time.monotonic()
    machines.cable()
    says(watcher, "disconnected")
    assert time.monotonic() - start < NOTICED


@pytest.mark.slow
@pytest.mark.parametrize("module", ["zeroxide", "zmq"])
def test_a_dead_machine_with_a_full_receiver_is_noticed(machines, module):
    """From Linux 6.15 on; older kernels probe for room too rarely."""
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 15):
        pytest.skip("needs Linux 6.15")
    machines.cable()
    machines.plug_in()
    machines.start(machines.place, module, FULL)
    pusher = machines.start(machines.home, "zeroxide", PUSHER)
    says(pusher, "full")
    time.sleep(20)
    assert pusher.poll() is None
    start = time.monotonic()
    machines.cable()
    says(pusher, "disconnected")
    assert time.monotonic() - start < NOTICED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("messages", "when"),
    [(0, "before"), (15, "before"), (15, "while")],
    ids=["room", "full", "while it waits"],
)
def test_close_ends_if_the_peers_machine_dies(machines, messages, when):
    """With no limit: a machine that does not answer cannot receive the rest. The report has it."""
    machines.cable()
    machines.plug_in()
    machines.start(machines.place, "socket", STUCK)
    closer = machines.start(machines.home, "zeroxide", CLOSER, str(messages))
    says(closer, "sent")

    def tell():
        closer.stdin.write("close\n")
        closer.stdin.flush()
        says(closer, "closing")

    if when == "while":
        tell()
        time.sleep(3)
        assert closer.poll() is None
    start = time.monotonic()
    machines.cable()
    if when == "before":
        tell()
    says(closer, "True", "ended")
    assert time.monotonic() - start < NOTICED


@pytest.mark.parametrize(
    ("count", "size", "timeout"),
    [(100, 1000, 0), (100, 1000, 400), (500, 20_000, 400), (100, 1000, -1), (500, 20_000, -1)],
    ids=["at once", "kernel", "kernel and queue", "end", "end with queue"],
)
def test_what_a_dead_machine_did_not_acknowledge_is_reported(machines, count, size, timeout):
    """The kernel has taken some of it, which is not enough."""
    machines.cable()
    machines.plug_in()
    machines.start(machines.place, "socket", STUCK)
    sender = machines.start(machines.home, "zeroxide", SENDER, *map(str, (count, size, timeout)))
    says(sender, "connected")
    machines.cable()
    sender.stdin.write("send\n")
    sender.stdin.flush()
    line = sender.stdout.readline().strip()
    end = f"zeroxide: gave up sending, messages lost: {count} to tcp://10.77.0.1:5555"
    assert line == (str(count) if timeout >= 0 else end)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["zeroxide", "zmq"])
@pytest.mark.parametrize("state", ["full", "stopped"])
def test_a_peer_that_does_not_read_stays_connected(zmq, context, module, state):
    """A peer that applies back-pressure, and one that is stopped, for longer than a dead machine has."""
    script = f"""
        import sys, time
        import {module} as zmq
        server = zmq.Context().socket(zmq.DEALER)
        server.rcvhwm = 1
        server.bind("tcp://127.0.0.1:*")
        print(server.last_endpoint.decode(), flush=True)
        server.send(b"hello")
        sys.stdin.readline()
        count = 0
        while server.recv() != b"end":
            count += 1
        print(count, flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as program:
        socket = context.socket(zmq.DEALER)
        events = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        socket.sndhwm = 2
        socket.connect(program.stdout.readline().strip())
        assert socket.recv() == b"hello"
        if state == "stopped":
            program.send_signal(signal.SIGSTOP)
        sent = 0
        if state == "full":
            while socket.poll(1000, zmq.POLLOUT):
                socket.send(bytes(1 << 20))
                sent += 1
        assert not events.poll(45_000)
        program.send_signal(signal.SIGCONT)
        program.stdin.write("read\n")
        program.stdin.flush()
        socket.send(b"end")
        assert program.stdout.readline() == f"{sent}\n"
        assert not events.poll(0)


def test_silent_peers_get_a_ping_if_they_support_it(zmq, context, directory):
    """This is the default, which reads 0; setting 0 turns it off. PING exists since ZMTP 3.1."""

    def meet(minor, **options):
        server = Server("tcp", directory, b"DEALER")
        socket = context.socket(zmq.DEALER)
        assert socket.heartbeat_ivl == 0
        for name, value in options.items():
            setattr(socket, name, value)
        socket.connect(server.endpoint)
        server.accept(minor)
        sockets.append(socket)
        return server

    sockets = []
    asked = meet(1)
    others = [meet(0), meet(1, heartbeat_ivl=0)]
    asked.stream.sendall(Peer.frame(0, b"a sign of life"))
    assert asked.frame() == (4, b"\x04PING\x00\x00")
    asked.stream.sendall(Peer.frame(4, b"\x04PONG"))
    for other in others:
        other.stream.settimeout(1)
        with pytest.raises(TimeoutError):
            other.frame()
    for server in [asked, *others]:
        server.close()
        server.listener.close()
