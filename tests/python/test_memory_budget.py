"""Peers that use memory which MEMORY_BUDGET has to count."""

import socket as system
import struct
from pathlib import Path

import pytest
from support import eventually, run_script

pytestmark = pytest.mark.zeroxide_only

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)
READY = b"\x04\x26\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH\x08Identity\x00\x00\x00\x00"


def stranger(endpoint):
    """A PUSH without a library, once it has shaken hands."""
    port = int(endpoint.decode().rpartition(":")[2])
    peer = system.create_connection(("127.0.0.1", port))
    peer.sendall(GREETING + READY[:1] + bytes([len(READY) - 2]) + READY[2:])
    received = b""
    while b"READY" not in received:
        received += peer.recv(4096)
    return peer


def memory_used(zmq, context):
    """What the peers of a context use, in bytes."""
    contexts = zmq.metrics.snapshot()["contexts"]
    (found,) = [each for each in contexts if each["memory_budget"] == context.memory_budget]
    return found["memory"]


def frame(flags, size):
    return struct.pack(">BQ", flags | 2, size)


def test_a_peer_that_leaves_within_a_message_while_the_budget_is_full_is_gone(zmq, context):
    """It is not read from then, so only the kernel knows that it has left."""
    context.set(zmq.MEMORY_BUDGET, 1 << 20)
    pull = context.socket(zmq.PULL)
    pull.bind("tcp://127.0.0.1:*")
    # Messages that the program does not receive.
    sender = stranger(pull.last_endpoint)
    sender.setblocking(False)
    try:
        while True:
            sender.send(frame(0, 10_000) + bytes(10_000))
    except BlockingIOError:
        pass
    leaving = [stranger(pull.last_endpoint) for _ in range(5)]
    for peer in leaving:
        peer.sendall(frame(0, 1 << 20) + bytes(200_000))
    for peer in leaving:
        peer.close()
    eventually(lambda: len(pull.stats()["peers"]) == 1)
    assert pull.recv() == bytes(10_000)
    sender.close()


def test_small_parts_between_long_commands_cost_little(zmq):
    """Each part kept the whole block of its read alive, and counted with its own bytes."""
    output, _ = run_script(
        zmq.__name__,
        """
        import resource, sys
        sys.path.insert(0, sys.argv[1])
        from test_memory_budget import frame, stranger

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

        pull = zmq.Context().socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")
        peer = stranger(pull.last_endpoint)
        before = peak()
        command = b"\\x04XING" + bytes(65_000)
        unit = frame(1, 80) + bytes(80) + frame(4, len(command)) + command
        for _ in range(1500):
            peer.sendall(unit)
        peer.sendall(frame(0, 4) + b"last")
        assert pull.recv_multipart()[-1] == b"last"
        print(peak() - before)
        """,
        str(Path(__file__).parent),
    )
    assert int(output) < 20


def test_a_message_that_arrives_is_not_dropped_for_older_ones_that_do_not(zmq, context):
    """It is larger than each of theirs."""
    context.set(zmq.MEMORY_BUDGET, 4 << 20)
    pull = context.socket(zmq.PULL)
    pull.bind("tcp://127.0.0.1:*")
    holders = [stranger(pull.last_endpoint) for _ in range(8)]
    for peer in holders:
        peer.sendall(frame(0, 1 << 30) + bytes(300_000))
    sender = stranger(pull.last_endpoint)
    eventually(lambda: memory_used(zmq, context) > 8 * 300_000)
    size = 1_500_000
    sender.sendall(frame(0, size) + bytes(size))
    assert pull.recv() == bytes(size)
    dropped = pull.stats()["dropped"]["no_memory"]
    assert 0 < dropped <= len(holders)
