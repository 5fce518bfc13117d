"""Passwords in clear on a network: whoever sends them is told once."""

import pytest
from support import run_script

pytestmark = pytest.mark.zeroxide_only

SCRIPT = """
import sys
import warnings

import zeroxide as zmq
import zeroxide.asyncio

warnings.simplefilter("always")
how = sys.argv[1]
context = zmq.asyncio.Context() if how == "asyncio" else zmq.Context()


def told(side, *endpoints):
    socket = context.socket(zmq.REP if side == "server" else zmq.REQ)
    if side == "server":
        socket.plain_server = True
    else:
        socket.plain_username, socket.plain_password = b"alice", b"wonderland"
    socket.ipv6 = side == "client"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for endpoint in endpoints:
            socket.bind(endpoint) if side == "server" else socket.connect(endpoint)
    socket.close(0)
    return [(str(one.message), one.filename == "<string>") for one in seen]


secure = context.socket(zmq.REP)
secure.bind("tcp://*:*")  # not PLAIN
assert told("server", "tcp://127.0.0.1:*", "inproc://here") == []
assert told("client", "tcp://127.0.0.1:9", "tcp://localhost:9", "tcp://[::1]:9") == []
if how == "client":
    [(text, here)] = told("client", "tcp://192.0.2.1:9", "tcp://192.0.2.2:9")
    assert "PLAIN at tcp://192.0.2.1:9" in text
else:
    [(text, here)] = told("server", "tcp://*:*", "tcp://*:*")
    assert "PLAIN at tcp://0.0.0.0:" in text
assert "CURVE" in text and here
assert told("server", "tcp://*:*") == []
context.destroy(linger=0)
"""


@pytest.mark.parametrize("how", ["server", "client", "asyncio"])
def test_passwords_in_clear_off_this_machine_are_told_once(how):
    run_script("zeroxide", SCRIPT, how)
