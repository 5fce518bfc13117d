"""Peers that send garbage, too much, too little or nothing."""

from __future__ import annotations

import struct
import time

from .. import wire
from ..bench import PATIENCE_S, Bench
from ..row import Skipped, check, row

MIB = 1 << 20


def spoilt_greetings(bench: Bench) -> list[bytes]:
    """Every truncation, every byte flipped, every version."""
    good = wire.greeting()
    spoilt = [good[:length] for length in range(64)]
    for place in range(64):
        spoilt.append(good[:place] + bytes((good[place] ^ 0xFF,)) + good[place + 1 :])
    spoilt += [wire.greeting(version=(major, 0)) for major in range(256)]
    return spoilt if bench.full else spoilt[::2]


@row()
def spoilt_greeting(bench: Bench) -> None:
    """A greeting cut at each byte, with each byte flipped, with each version: the connection ends when the peer
    hangs up. Others are served, and nothing remains."""
    scene = bench.echo()
    for greeting in spoilt_greetings(bench):
        stream = wire.dial(scene.endpoint)
        wire.shout(stream, greeting)
        wire.hang_up(stream)
        check(wire.closed(stream, PATIENCE_S), f"the connection stays open after {greeting[:12]!r}")
        stream.close()
    scene.ends_well()


@row()
def greeting_that_never_ends(bench: Bench) -> None:
    """A peer that stops within the greeting, or sends a byte of it now and then, is disconnected when HANDSHAKE_IVL is over."""
    scene = bench.echo("server.handshake_ivl = 200")
    streams = []
    for length in (0, 1, 10, 11, 12, 32, 63, 64):
        streams.append(wire.dial(scene.endpoint))
        wire.shout(streams[-1], wire.greeting()[:length])
    for stream in streams:
        check(wire.closed(stream, PATIENCE_S), "a silent handshake stays open")
        stream.close()
    # It would take 13 s for the greeting.
    stream = wire.dial(scene.endpoint)
    sent = 0
    while sent < 64 and wire.shout(stream, wire.greeting()[sent : sent + 1]):
        sent += 1
        if wire.closed(stream, 0.2):
            break
    check(sent < 64, "a slow handshake stays open")
    stream.close()
    scene.ends_well()


@row()
def random_bytes(bench: Bench) -> None:
    """Random bytes after nothing, a greeting or a handshake: the connection ends, others are served, nothing
    remains."""
    scene = bench.echo()
    for number in range(bench.amount(100, 3000)):
        stream = wire.dial(scene.endpoint)
        start = (b"", wire.greeting(), wire.greeting() + wire.ready(b"DEALER"))[number % 3]
        wire.shout(stream, start + bench.random.randbytes(bench.random.randrange(4096)))
        wire.shout(stream, b"")
        wire.reset(stream)
    scene.ends_well()


@row()
def http_request(bench: Bench) -> None:
    """A browser or a port scanner: the connection ends."""
    scene = bench.echo()
    for text in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 4, b"\x16\x03\x01\x02\x00\x01" * 20):
        stream = wire.dial(scene.endpoint)
        wire.shout(stream, text)
        wire.hang_up(stream)
        check(wire.closed(stream, PATIENCE_S), "the connection stays open")
        stream.close()
    scene.ends_well()


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: ZWS2.0/NULL\r\n\r\n"
)


@row()
def strangers_at_websockets(bench: Bench) -> None:
    """Truncated, endless and ordinary HTTP requests and frames of any kind at a ws:// endpoint: the connection ends, for
    less than 32 MiB."""
    if not bench.zmq.has("ws"):
        raise Skipped(f"{bench.module} has no ws://")
    scene = bench.echo(bind="ws://127.0.0.1:*")
    for number in range(bench.amount(100, 3000)):
        stream = wire.dial(scene.endpoint)
        if number % 2:
            wire.shout(stream, UPGRADE + bench.random.randbytes(bench.random.randrange(300)))
        else:
            wire.shout(stream, UPGRADE[: number % len(UPGRADE)])
        wire.hang_up(stream)
        check(wire.closed(stream, PATIENCE_S), "the connection stays open")
        stream.close()
    for endless in (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 1_000_000, b"GET /" + b"x" * (8 * MIB)):
        stream = wire.dial(scene.endpoint)
        wire.shout(stream, endless)
        check(wire.closed(stream, PATIENCE_S), "an endless request is read")
        stream.close()
    frame = b"\x82\xff" + struct.pack(">Q", (1 << 63) - 1) + bytes(1000)
    stream = wire.dial(scene.endpoint)
    wire.shout(stream, UPGRADE + frame)
    scene.others_are_served()
    check(scene.grown() < 32 * MIB, "requests cost more than 32 MiB")
    stream.close()
    scene.ends_well()


@row()
def silent_connections(bench: Bench) -> None:
    """3000 connections that never shake hands: others are served meanwhile, and the server keeps at most 2100 of
    them."""
    bench.needs_descriptors(4000)
    scene = bench.echo()
    streams = [wire.dial(scene.endpoint) for _ in range(3000)]
    for number, stream in enumerate(streams):
        wire.shout(stream, wire.greeting()[: number % 3])
    scene.others_are_served()
    kept = scene.subject.descriptors()
    check(kept < 2100, f"{kept} silent connections are kept")
    check(scene.grown() < 64 * MIB, "silent connections cost more than 64 MiB")
    for stream in streams:
        stream.close()
    scene.ends_well()


@row()
def impossible_lengths(bench: Bench) -> None:
    """Frames that announce up to 2^64-1 bytes: the address space grows by less than 64 MiB."""
    scene = bench.echo()
    before = scene.subject.space()
    streams = []
    for length in (1 << 63, (1 << 64) - 1, (1 << 63) - 1, 1 << 48, 1 << 40, 1 << 33):
        for flags in (wire.LONG, wire.LONG | wire.MORE, wire.LONG | wire.COMMAND):
            streams.append(wire.join(scene.endpoint, b"DEALER"))
            wire.shout(streams[-1], bytes((flags,)) + struct.pack(">Q", length) + bytes(1024))
    scene.others_are_served()
    check(scene.subject.space() - before < 64 * MIB, "memory is taken for bytes that never came")
    for stream in streams:
        stream.close()
    scene.ends_well()


@row()
def half_messages(bench: Bench) -> None:
    """200 peers announce 1 GiB each and send 100 bytes: the process needs less than 256 MiB, in memory and address
    space."""
    scene = bench.echo()
    before = scene.subject.space()
    streams = []
    for _ in range(200):
        stream = wire.join(scene.endpoint, b"DEALER")
        wire.shout(stream, bytes((wire.LONG,)) + struct.pack(">Q", 1 << 30) + bytes(100))
        streams.append(stream)
    scene.others_are_served()
    check(scene.grown() < 256 * MIB, "memory is taken for bytes that never came")
    check(scene.subject.space() - before < 256 * MIB, "address space is taken")
    for stream in streams:
        stream.close()
    scene.ends_well()


@row()
def stalled_message(bench: Bench) -> None:
    """A peer that stops within a message is disconnected after STALL_IVL."""
    bench.needs_option("STALL_IVL")
    scene = bench.echo("server.stall_ivl = 200")
    stream = wire.join(scene.endpoint, b"DEALER")
    wire.shout(stream, b"\0\x7fhalf")
    check(wire.closed(stream, PATIENCE_S), "the connection stays open")
    stream.close()
    scene.ends_well()


@row()
def message_size_limit(bench: Bench) -> None:
    """MAXMSGSIZE is exact, and holds for all parts of a message together: a larger message ends the connection."""
    scene = bench.echo("server.maxmsgsize = 1000")
    for sizes in ([999], [1000], [500, 500], [0, 1000]):
        stream = wire.join(scene.endpoint, b"DEALER")
        for number, size in enumerate(sizes):
            more = wire.MORE if number + 1 < len(sizes) else 0
            wire.shout(stream, wire.frame(more, bytes(size)))
        for size in sizes:
            got = len(wire.read_frame(stream)[1])
            check(got == size, f"a message of {sizes} came back with a part of {got} bytes")
        stream.close()
    for sizes in ([1001], [500, 501], [1000, 0, 1]):
        stream = wire.join(scene.endpoint, b"DEALER")
        for number, size in enumerate(sizes):
            more = wire.MORE if number + 1 < len(sizes) else 0
            wire.shout(stream, wire.frame(more, bytes(size)))
        check(wire.closed(stream, PATIENCE_S), f"parts of {sizes} bytes are accepted")
        stream.close()
    scene.ends_well()


def endless(bench: Bench, part: bytes) -> None:
    scene = bench.echo()
    stream = wire.join(scene.endpoint, b"DEALER")
    stream.settimeout(PATIENCE_S)
    many = part * 10_000
    parts = 0
    while wire.shout(stream, many):
        parts += 10_000
        check(parts < 10_000_000, "10 million parts of one message are accepted")
        check(scene.grown() < 256 * MIB, f"{parts} parts of one message cost 256 MiB")
    stream.close()
    scene.ends_well()


@row()
def endless_parts(bench: Bench) -> None:
    """A message of 10 million parts of one byte: the peer is disconnected before they cost 256 MiB."""
    endless(bench, wire.frame(wire.MORE, b"x"))


@row()
def endless_empty_parts(bench: Bench) -> None:
    """The same with empty parts, which count too."""
    endless(bench, wire.frame(wire.MORE, b""))


@row()
def unfinished_messages(bench: Bench) -> None:
    """Peers that leave in the middle of a message: no part of it is delivered, and no memory remains."""
    scene = bench.echo()
    rounds = bench.amount(30, 300)
    for _ in range(rounds):
        stream = wire.join(scene.endpoint, b"DEALER")
        wire.shout(stream, wire.frame(wire.MORE, bytes(MIB)) + b"\2" + struct.pack(">Q", MIB))
        wire.shout(stream, bytes(MIB // 2))
        wire.reset(stream)
    scene.ends_well()


@row()
def peer_that_does_not_read(bench: Bench) -> None:
    """A peer sends messages and reads no echo: the queue for it is bounded, and others are served."""
    scene = bench.echo()
    stream = wire.join(scene.endpoint, b"DEALER")
    stream.settimeout(0.2)
    many = wire.frame(0, bytes(1000)) * 1000
    sent = 0
    while sent < bench.amount(16, 64) * MIB and wire.shout(stream, many):
        sent += len(many)
    scene.others_are_served()
    bench.counted(scene.subject, "server", "high_water")
    check(scene.grown() < 32 * MIB, "what one peer does not read costs more than 32 MiB")
    stream.close()
    scene.ends_well()


@row()
def reset_connections(bench: Bench) -> None:
    """Peers that reset the connection before, during and after the handshake: others are served, nothing remains."""
    scene = bench.echo()
    good = wire.greeting() + wire.ready(b"DEALER") + wire.frame(0, b"question")
    for number in range(bench.amount(200, 5000)):
        stream = wire.dial(scene.endpoint)
        wire.shout(stream, good[: number % (len(good) + 1)])
        wire.reset(stream)
    scene.ends_well()


@row(slow=True, seconds=300)
def connection_churn(bench: Bench) -> None:
    """100,000 connections that come, ask and go: memory, descriptors and threads are level."""
    scene = bench.echo()
    threads = scene.subject.threads()
    good = wire.greeting() + wire.ready(b"DEALER") + wire.frame(0, b"question")
    start = time.monotonic()
    number = 0
    # As many as fit into the time of the row on a slow machine.
    while number < 100_000 and time.monotonic() - start < 200:
        stream = wire.dial(scene.endpoint)
        wire.shout(stream, good)
        wire.finish(stream)
        wire.read_frame(stream)
        wire.reset(stream)
        number += 1
        if number == 20_000:
            scene.others_are_served()
            level = scene.subject.memory()
    check(number == 100_000, f"only {number} connections in 200 s")
    check(scene.subject.threads() == threads, "threads remain")
    check(scene.subject.memory() - level < 8 * MIB, "memory grows with each connection")
    scene.ends_well()
