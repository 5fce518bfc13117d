"""Memory used by a burst is returned to the system when the connection falls silent."""

import pytest
from support import run_script

pytestmark = pytest.mark.zeroxide_only

MEASURE = """
    import subprocess, sys, time

    def resident():
        # Free-threaded Python frees large objects only while it allocates small ones.
        [bytes(100) for _ in range(10_000)]
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096 >> 20

    def comes_down(base, allowed):
        # The allocator keeps some; the bursts took far more than that.
        deadline = time.monotonic() + 40
        while resident() > base + allowed and time.monotonic() < deadline:
            time.sleep(0.1)
        print("fine" if resident() <= base + allowed else (base, resident()))

    def peer(source, *arguments):
        source = "import sys, time, zeroxide as zmq\\n" + source
        return subprocess.Popen(
            [sys.executable, "-c", source, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
"""


SUBSCRIBER = """
sub = zmq.Context().socket(zmq.SUB)
sub.connect(sys.argv[1])
many = [b"some topic, number %d" % n for n in range(300_000)]
for topic in many if sys.argv[2] == "many" else [b"x" * (48 << 20)]:
    sub.subscribe(topic)
sub.subscribe(b"last")
sys.stdin.readline()
for topic in many if sys.argv[2] == "many" else [b"x" * (48 << 20)]:
    sub.unsubscribe(topic)
sub.unsubscribe(b"last")
sys.stdin.readline()
"""

RECEIVER = """
pull = zmq.Context().socket(zmq.PULL)
pull.rcvhwm = 0
pull.connect(sys.argv[1])
def resident():
    [bytes(100) for _ in range(10_000)]
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 >> 20
base = resident()
for _ in range(3):
    held = [pull.recv() for _ in range(100)]
    del held
deadline = time.monotonic() + 40
while resident() > base + 30 and time.monotonic() < deadline:
    time.sleep(0.1)
print("fine" if resident() <= base + 30 else (base, resident()))
"""


MANY = """
context = zmq.Context()
peers = [context.socket(zmq.PUSH) for _ in range(200)]
for peer in peers:
    peer.sndhwm = 0
    peer.connect(sys.argv[1])
for peer in peers:
    for _ in range(100):
        peer.send(bytes(10_000))
context.destroy()
print("sent", flush=True)
sys.stdin.readline()
"""

LEAVING = """
import socket
port = int(sys.argv[1].rsplit(":", 1)[1])
hello = b"\\xff" + bytes(8) + b"\\x7f\\x03\\x01NULL" + bytes(48)
ready = b"\\x05READY\\x0bSocket-Type" + (4).to_bytes(4, "big") + b"PUSH"
hello += bytes([4, len(ready)]) + ready
peers = [socket.create_connection(("127.0.0.1", port)) for _ in range(900)]
for peer in peers:
    peer.sendall(hello + b"\\x02" + (1 << 20).to_bytes(8, "big") + bytes(100_000))
print("sent", flush=True)
sys.stdin.readline()
for peer in peers:
    peer.close()
print("left", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("kind", ["PUB", "XPUB"])
@pytest.mark.parametrize("topics", ["many", "large"])
def test_removed_subscriptions(zmq, kind, topics):
    output, _ = run_script(
        zmq.__name__,
        MEASURE
        + f"    SUBSCRIBER = {SUBSCRIBER!r}\n"
        + """
    publisher = zmq.Context().socket(getattr(zmq, sys.argv[1]))
    publisher.max_subscriptions = publisher.max_subscription_bytes = 0
    publisher.bind("tcp://127.0.0.1:*")
    hears = sys.argv[1] == "XPUB"
    if hears:
        # Every subscription must be received.
        try:
            publisher.recv(zmq.DONTWAIT)
        except zmq.Again:
            pass

    def until(wanted):
        while hears and publisher.recv() != bytes([wanted]) + b"last":
            pass
        while publisher.count_subscribed(b"last") != wanted:
            time.sleep(0.01)

    base = resident()
    subscriber = peer(SUBSCRIBER, publisher.last_endpoint.decode(), sys.argv[2])
    until(1)
    subscriber.stdin.write("\\n")
    subscriber.stdin.flush()
    until(0)
    comes_down(base, 30)
    subscriber.communicate()
    """,
        kind,
        topics,
    )
    assert output == "fine\n"


@pytest.mark.parametrize("copy", [True, False])
def test_bursts_of_large_messages(zmq, copy):
    """The memory is returned on both sides, with every way of sending."""
    output, _ = run_script(
        zmq.__name__,
        MEASURE
        + f"    RECEIVER = {RECEIVER!r}\n"
        + """
    push = zmq.Context().socket(zmq.PUSH)
    push.sndhwm = 0
    push.bind("tcp://127.0.0.1:*")
    receiver = peer(RECEIVER, push.last_endpoint.decode())
    push.wait_connected()
    base = resident()
    for _ in range(3):
        for _ in range(100):
            push.send(bytearray(1_000_000), copy=sys.argv[1] == "True")
    comes_down(base, 30)
    print(receiver.communicate()[0].strip())
    """,
        str(copy),
    )
    assert output == "fine\nfine\n"


def test_many_small_backlogs(zmq):
    """No connection has much, so none would return memory on its own account."""
    output, _ = run_script(
        zmq.__name__,
        MEASURE
        + f"    MANY = {MANY!r}\n"
        + """
    pull = zmq.Context().socket(zmq.PULL)
    pull.rcvhwm = 0
    pull.bind("tcp://127.0.0.1:*")
    base = resident()
    many = peer(MANY, pull.last_endpoint.decode())
    many.stdout.readline()
    for _ in range(20_000):
        pull.recv()
    comes_down(base, 30)
    many.communicate()
    """,
    )
    assert output == "fine\n"


def test_many_peers_that_leave_within_a_message(zmq):
    output, _ = run_script(
        zmq.__name__,
        MEASURE
        + f"    LEAVING = {LEAVING!r}\n"
        + """
    pull = zmq.Context().socket(zmq.PULL)
    pull.bind("tcp://127.0.0.1:*")
    base = resident()
    leaving = peer(LEAVING, pull.last_endpoint.decode())
    leaving.stdout.readline()
    while resident() < base + 70:
        time.sleep(0.01)
    leaving.stdin.write("\\n")
    leaving.stdin.flush()
    leaving.stdout.readline()
    comes_down(base, 30)
    leaving.communicate()
    """,
    )
    assert output == "fine\n"


def test_objects_that_are_released_after_the_connection(zmq):
    """No connection returns memory here. The objects lie below a block in use, so the allocator would keep them."""
    output, _ = run_script(
        zmq.__name__,
        MEASURE
        + """
    context = zmq.Context()
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.bind("inproc://lent")
    push.connect("inproc://lent")
    base = resident()
    # Once a body of this size was freed, the allocator has the next ones side by side.
    bytearray(1_000_000)
    bodies = [bytearray(1_000_000) for _ in range(100)]
    above = bytearray(1_000_000)
    while bodies:
        push.send(bodies.pop(), copy=False)
        pull.recv()
    comes_down(base, 30)
    """,
    )
    assert output == "fine\n"
