"""epgm and pgm between machines whose network loses and reorders packets, with zeroxide and with libzmq's OpenPGM."""

import ctypes.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from wire import Wire

PROGRAM = Path(__file__).with_name("pgm_program.py")
COUNT = 1500
RATE = 20_000  # kbit/s


# Another libzmq in this process would be taken for it, because it has the same name for the loader.
HAS_PGM = "import ctypes, sys; sys.exit(not ctypes.CDLL(sys.argv[1]).zmq_has(b'pgm'))"


def libzmq_with_pgm() -> str:
    """The system's libzmq, if it has OpenPGM."""
    name = ctypes.util.find_library("zmq")
    if name and subprocess.run([sys.executable, "-c", HAS_PGM, name], check=False).returncode == 0:
        return name
    return ""


THEIRS = libzmq_with_pgm()


def has_networks() -> bool:
    try:
        Wire(0, 0).end()
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(
    not has_networks(), reason="no network namespaces (root, iproute2, veth)"
)

a_cell = pytest.mark.cell(transport="{scheme}", types="PUB SUB", peer="libzmq")
with_libzmq = pytest.mark.skipif(not THEIRS, reason="no libzmq with OpenPGM (Debian's libzmq5)")


@pytest.fixture
def wire(request):
    made = Wire(*request.param)
    yield made
    made.end()


def carry(wire, sender, receivers, scheme="epgm"):
    """Sends messages from the left machine to programs on the right one, and returns what these have heard."""
    group = "239.192.7.8:5560"
    numbers = (str(RATE), str(COUNT))
    left, right = (f"{scheme}://10.78.0.{host};{group}" for host in (1, 2))
    ends = [wire.start("right", PROGRAM, "receive", one, right, *numbers) for one in receivers]
    for end in ends:
        assert end.stdout.readline() == "ready\n"
    source = wire.start("left", PROGRAM, "send", sender, left, *numbers)
    for end in ends:
        assert end.stdout.readline() == "joined\n"
    source.stdin.write("go\n")
    source.stdin.flush()
    results = [json.loads(end.stdout.readline()) for end in ends]
    source.stdin.close()
    assert source.wait() == 0
    return results


EVERYTHING = {"received": COUNT, "same": True, "lost": 0}


@pytest.mark.cell(transport="epgm", types="PUB SUB", peer="zeroxide")
@pytest.mark.parametrize(
    "wire", [(0, 0), (0.01, 0), (0.05, 0), (0, 0.2), (0.05, 0.2)], ids=str, indirect=True
)
def test_nothing_is_lost_within_the_window(wire):
    assert carry(wire, "zeroxide", ["zeroxide", "zeroxide"]) == [EVERYTHING] * 2


@pytest.mark.cell(transport="pgm", types="PUB SUB", peer="zeroxide")
@pytest.mark.parametrize("wire", [(0.05, 0.2)], ids=str, indirect=True)
def test_pgm_without_udp(wire):
    assert carry(wire, "zeroxide", ["zeroxide", "zeroxide"], "pgm") == [EVERYTHING] * 2


@a_cell
@with_libzmq
@pytest.mark.parametrize("scheme", ["epgm", "pgm"])
@pytest.mark.parametrize("wire", [(0, 0), (0.02, 0)], ids=str, indirect=True)
def test_subscriber_of_theirs(wire, scheme):
    assert carry(wire, "zeroxide", [THEIRS], scheme) == [EVERYTHING]


@a_cell
@with_libzmq
@pytest.mark.parametrize("scheme", ["epgm", "pgm"])
@pytest.mark.parametrize("wire", [(0, 0), (0.02, 0)], ids=str, indirect=True)
def test_publisher_of_theirs(wire, scheme):
    assert carry(wire, THEIRS, ["zeroxide", "zeroxide"], scheme) == [EVERYTHING] * 2


@with_libzmq
@pytest.mark.parametrize("wire", [(0.02, 0)], ids=str, indirect=True)
def test_subscribers_of_both(wire):
    assert carry(wire, "zeroxide", ["zeroxide", THEIRS]) == [EVERYTHING] * 2


ADDRESSES = """
import sys

import zeroxide as zmq

with zmq.Context() as context:
    for endpoint in sys.argv[1:]:
        pub, sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
        pub.ipv6 = sub.ipv6 = 1
        pub.linger, sub.rcvtimeo = 0, 50_000
        sub.subscribe(b"")
        sub.bind(endpoint)
        pub.bind(endpoint)
        pub.send(b"here")
        print(sub.recv().decode(), flush=True)
    context.destroy()
"""


@pytest.mark.parametrize("wire", [(0, 0)], ids=str, indirect=True)
def test_interfaces_have_names_and_addresses(wire):
    wire.run("-n", wire.names["right"], "addr", "add", "fe80::7/64", "dev", "wire", "nodad")
    places = (
        "wire;239.192.7.9:5561",
        "10.78.0.2;239.192.7.10:5562",
        "wire;[ff02::7:7]:5563",
        "fe80::7;[ff02::7:8]:5564",
        "[ff02::7:9%wire]:5565",
    )
    endpoints = [f"{scheme}://{place}" for scheme in ("epgm", "pgm") for place in places]
    program = wire.start("right", "-c", ADDRESSES, *endpoints)
    heard = [program.stdout.readline() for _ in endpoints]
    assert heard == ["here\n"] * len(endpoints)
