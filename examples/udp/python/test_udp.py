"""The transport in Python. Run with the folder of the built module on the path; see `tools/stages.py`."""

from __future__ import annotations

import subprocess
import sys

import pytest

zeroxide_udp = pytest.importorskip("zeroxide_udp")

import zeroxide as zmq  # noqa: E402  (it must follow)


def test_messages_arrive_over_udp() -> None:
    with zmq.Context() as context:
        zeroxide_udp.add_to(context)
        with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
            pull.bind("udp://127.0.0.1:0")
            push.connect(pull.last_endpoint)
            for number in range(100):
                push.send_multipart([b"number", str(number).encode()])
                assert pull.recv_multipart() == [b"number", str(number).encode()]


def test_other_transports_and_contexts_are_as_before() -> None:
    with zmq.Context() as context, context.socket(zmq.PULL) as pull:
        with pytest.raises(zmq.ZMQError, match="no transport is called 'udp'"):
            pull.bind("udp://127.0.0.1:0")
        with context.socket(zmq.PUSH) as push:
            pull.bind("tcp://127.0.0.1:*")
            push.connect(pull.last_endpoint)
            push.send(b"hello")
            assert pull.recv() == b"hello"


def test_mistakes_are_reported() -> None:
    with zmq.Context() as context:
        zeroxide_udp.add_to(context)
        with pytest.raises(zmq.ZMQError, match="'udp' already"):
            zeroxide_udp.add_to(context)
        with (
            context.socket(zmq.DEALER) as dealer,
            pytest.raises(zmq.ZMQError, match="PUSH sockets connect"),
        ):
            dealer.connect("udp://127.0.0.1:1")


def test_an_import_in_the_wrong_order_says_what_to_do() -> None:
    program = "import zeroxide, zeroxide_udp"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "import zeroxide_udp before it" in result.stderr
