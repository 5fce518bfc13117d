"""The scalability protocols against nanomsg itself: every pair of types, either side binding, tcp, ipc and ws."""

import nanomsg_library
import pytest
from nanomsg_library import NanomsgSocket
from sp_pairs import THEY_SPEAK, WE_SPEAK
from support import PATIENCE, eventually, lasting_endpoint

NAME = nanomsg_library.find()

pytestmark = [
    pytest.mark.skipif(NAME is None, reason="needs nanomsg (Debian: libnanomsg5)"),
    pytest.mark.parametrize("transport", ["tcp", "ipc", "ws"]),
    pytest.mark.parametrize("we_bind", [True, False], ids=["we bind", "they bind"]),
    pytest.mark.cell(transport="{transport}", types="{ours} {theirs}", peer="nanomsg", sp=True),
]

BODIES = [b"", b"x", b"y" * 65, b"z" * 66, b"v" * 300, b"w" * 70_000, b"u" * 300_000]


@pytest.fixture
def pair(zmq, sockets, transport, we_bind):
    """Makes our socket and one of nanomsg, connected."""
    made = []

    def make(ours, theirs):
        one = sockets.context.socket(getattr(zmq, ours))
        one.wire_protocol = zmq.SP
        if ours == "SUB":
            one.subscribe(b"")
        if ours == "SURVEYOR":
            one.survey_timeout = int(PATIENCE * 1000)
        other = NanomsgSocket(nanomsg_library.Library(NAME), theirs, PATIENCE)
        made.append(other)
        address = sockets.endpoint("ipc")
        if transport != "ipc":
            address = lasting_endpoint().replace("tcp", transport)
        first, second = (one, other) if we_bind else (other, one)
        first.bind(address)
        second.connect(address)
        one.wait_connected(timeout=PATIENCE * 1000)
        eventually(other.connections)
        return one, other

    yield make
    for other in made:
        other.close()


@pytest.mark.parametrize(("ours", "theirs", "answers"), WE_SPEAK)
def test_we_speak_to_nanomsg(pair, ours, theirs, answers):
    one, other = pair(ours, theirs)
    for body in BODIES:
        one.send(body)
        assert other.recv() == body
        if answers:
            other.send(body + b"!")
            assert one.recv() == body + b"!"


@pytest.mark.parametrize(("ours", "theirs", "answers"), THEY_SPEAK)
def test_nanomsg_speaks_to_us(pair, ours, theirs, answers):
    one, other = pair(ours, theirs)
    for body in BODIES:
        other.send(body)
        assert one.recv() == body
        if answers:
            one.send(body + b"!")
            assert other.recv() == body + b"!"
