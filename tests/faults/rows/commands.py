"""Commands of ZMTP that are malformed, repeated or too many."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

from .. import wire
from ..bench import PATIENCE_S, Bench
from ..row import check, row
from ..subject import CallFailed

MIB = 1 << 20

# RFC 28, 29, 30, 31 and 47: the types that may be peers.
PARTNERS = {
    "REQ": {"REP", "ROUTER"},
    "REP": {"REQ", "DEALER"},
    "DEALER": {"REP", "DEALER", "ROUTER"},
    "ROUTER": {"REQ", "DEALER", "ROUTER"},
    "PUB": {"SUB", "XSUB"},
    "XPUB": {"SUB", "XSUB"},
    "SUB": {"PUB", "XPUB"},
    "XSUB": {"PUB", "XPUB"},
    "PUSH": {"PULL"},
    "PULL": {"PUSH"},
    "PAIR": {"PAIR"},
    "CLIENT": {"SERVER"},
    "SERVER": {"CLIENT"},
    "RADIO": {"DISH"},
    "DISH": {"RADIO"},
    "SCATTER": {"GATHER"},
    "GATHER": {"SCATTER"},
    "CHANNEL": {"CHANNEL"},
    "PEER": {"PEER"},
}


@row()
def damaged_commands(bench: Bench) -> None:
    """READY, ERROR, PING, PONG, SUBSCRIBE and JOIN with random changes: ignored, or the connection ends."""
    scene = bench.echo()
    good = [
        wire.ready(b"DEALER"),
        wire.command(b"PING", b"\0\x0acontext"),
        wire.command(b"PONG", b"context"),
        wire.command(b"SUBSCRIBE", b"topic"),
        wire.command(b"JOIN", b"group"),
        wire.command(b"ERROR", b"\x04what"),
    ]
    for _ in range(bench.amount(200, 5000)):
        stream = wire.dial(scene.endpoint)
        start = wire.greeting() + (wire.ready(b"DEALER") if bench.random.random() < 0.7 else b"")
        spoilt = bytearray(bench.random.choice(good))
        for _ in range(bench.random.randrange(1, 4)):
            place = bench.random.randrange(len(spoilt))
            how = bench.random.randrange(3)
            if how == 0:
                spoilt[place] = bench.random.randrange(256)
            elif how == 1:
                del spoilt[place + 1 :]
            else:
                spoilt.insert(place, bench.random.randrange(256))
        wire.shout(stream, start + spoilt)
        wire.reset(stream)
    scene.ends_well()


@row()
def large_metadata(bench: Bench) -> None:
    """READY with names of 0 and 255 bytes, 20 MiB of values, thousands of properties, and repeated ones: the
    connection ends or works, for less than 64 MiB."""
    scene = bench.echo()
    kind = {b"Socket-Type": b"DEALER"}
    bodies = [
        wire.properties(kind | {b"": b"empty name"}),
        wire.properties(kind | {b"x" * 255: b"long name"}),
        wire.properties(kind | {b"X-Large": bytes(20 * MIB)}),
        wire.properties(kind | {b"X-%d" % number: b"" for number in range(100_000)}),
        wire.properties(kind) * 2,
        wire.properties(kind)[:-3],
        b"\x0bSocket-Type" + struct.pack(">I", (1 << 32) - 1) + b"DEALER",
    ]
    for body in bodies:
        stream = wire.dial(scene.endpoint)
        wire.shout(stream, wire.greeting() + wire.command(b"READY", body))
        wire.hang_up(stream)
        check(wire.closed(stream, PATIENCE_S), "the connection stays open")
        check(scene.grown() < 64 * MIB, "metadata costs more than 64 MiB")
        stream.close()
    scene.ends_well()


# Binds a socket of each type, and tells whether the handshake of the next peer succeeds.
LISTEN = """
socket = context.socket(zmq.{kind})
socket.linger = 0
events = zmq.EVENT_ACCEPTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
for name in ("NO_DETAIL", "PROTOCOL", "AUTH"):
    events |= getattr(zmq, f"EVENT_HANDSHAKE_FAILED_{{name}}")
monitor = socket.get_monitor_socket(events)
monitor.rcvtimeo = 20_000

def event():
    return int.from_bytes(monitor.recv_multipart()[0][:2], sys.byteorder)

socket.bind("tcp://127.0.0.1:*")
socket.last_endpoint.decode()
"""
OUTCOME = """
while event() != zmq.EVENT_ACCEPTED:
    pass
event() == zmq.EVENT_HANDSHAKE_SUCCEEDED
"""


@row()
def wrong_socket_types(bench: Bench) -> None:
    """Each type meets each other type: exactly the pairs of the RFCs are connected, and the others get an ERROR."""
    subject = bench.subject()
    subject.run("context = zmq.Context()")
    wrong = []
    for ours in PARTNERS:
        try:
            endpoint = subject.run(LISTEN.format(kind=ours))
        except CallFailed:
            bench.remarks.append("without drafts")
            continue
        for theirs in [*PARTNERS, "XYZZY", ""]:
            stream = wire.dial(endpoint)
            wire.shout(stream, wire.greeting() + wire.ready(theirs.encode()))
            if subject.run(OUTCOME) != (theirs in PARTNERS[ours]):
                wrong.append(f"{ours} and {theirs or 'nothing'}")
            elif theirs not in PARTNERS[ours] and b"\x05ERROR" not in rest(stream):
                wrong.append(f"{ours} and {theirs or 'nothing'}, which gets no ERROR")
            stream.close()
        subject.run("monitor = socket.disable_monitor(); socket.close()")
    check(not wrong, f"wrong for {', '.join(wrong[:5])} ({len(wrong)} in all)")
    subject.run("context.destroy(linger=0)")
    subject.end()


def rest(stream: socket.socket) -> bytes:
    """What a peer gets until its connection ends."""
    heard = b""
    with contextlib.suppress(OSError):
        while chunk := stream.recv(4096):
            heard += chunk
    return heard


@row()
def ping_flood(bench: Bench) -> None:
    """10 MiB of PINGs from a peer that reads no PONG: the answers are not queued without a bound."""
    scene = bench.echo()
    stream = wire.join(scene.endpoint, b"DEALER")
    stream.settimeout(0.2)
    many = wire.command(b"PING", b"\0\x000123456789abcdef") * 1000
    sent = 0
    while sent < bench.amount(10, 100) * MIB and wire.shout(stream, many):
        sent += len(many)
    scene.others_are_served()
    check(scene.grown() < 16 * MIB, "queued PONGs cost more than 16 MiB")
    stream.close()
    scene.ends_well()


@row()
def ping_context(bench: Bench) -> None:
    """PONG repeats the context of a PING, from 0 to 16 bytes. A longer one does no harm."""
    scene = bench.echo()
    for length in range(18):
        stream = wire.join(scene.endpoint, b"DEALER")
        context = b"0123456789abcdefg"[:length]
        wire.shout(stream, wire.command(b"PING", b"\0\0" + context))
        if length <= 16:
            answer = wire.read_frame(stream)[1]
            check(answer == b"\x04PONG" + context, f"{answer!r} answers {context!r}")
        stream.close()
    scene.ends_well()


@row()
def ping_time_to_live(bench: Bench) -> None:
    """A PING with a time to live of 0.2 s, then silence: the connection ends. With 0 and with 6553 s, it stays."""
    scene = bench.echo()
    short, none, long = (wire.join(scene.endpoint, b"DEALER") for _ in range(3))
    wire.shout(none, wire.command(b"PING", b"\0\0"))
    wire.shout(long, wire.command(b"PING", b"\xff\xff"))
    wire.shout(short, wire.command(b"PING", b"\0\x02"))
    check(wire.closed(short, PATIENCE_S), "silence beyond the time to live has no effect")
    for stream in (none, long):
        wire.read_frame(stream)
        wire.shout(stream, wire.frame(0, b"alive"))
        check(wire.read_frame(stream)[1] == b"alive", "another connection ended")
        stream.close()
    short.close()
    scene.ends_well()


@row()
def older_protocols(bench: Bench) -> None:
    """A peer that speaks ZMTP 2.0 exchanges messages, or is refused and disconnected."""
    scene = bench.echo()
    stream = wire.dial(scene.endpoint)
    # A signature, version 1 (which is ZMTP 2.0), the type DEALER and an empty name.
    stream.sendall(b"\xff" + bytes(8) + b"\x7f\x01\x05\x00\x00")
    stream.sendall(wire.frame(0, b"question"))
    stream.settimeout(2)
    heard = b""
    deadline = time.monotonic() + PATIENCE_S
    try:
        while b"question" not in heard and time.monotonic() < deadline:
            chunk = stream.recv(4096)
            if not chunk:
                bench.remarks.append("refused")
                break
            heard += chunk
    except TimeoutError:
        check(False, "neither served nor refused")
    except ConnectionError:
        bench.remarks.append("refused")
    stream.close()
    scene.ends_well()
