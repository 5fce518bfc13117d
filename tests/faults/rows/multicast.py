"""Groups of epgm: a receiver that loses packets, and strangers who send to the group."""

from __future__ import annotations

import os
import signal
import socket
import struct

from ..bench import Bench
from ..row import Skipped, check, row
from ..subject import Subject

MIB = 1 << 20

# Bytes of a message, and of a packet's header before its checksum.
SIZE = 500
SPM, DATA, REPAIR, NAK, NCF = 0x00, 0x04, 0x05, 0x08, 0x0A
FIRST, AFTER = struct.Struct(">HHBB"), struct.Struct(">6sH")

JOIN = """
context = zmq.Context()
socket = context.socket(zmq.{kind})
socket.rate = 100_000
socket.sndhwm = socket.rcvhwm = 100_000
socket.linger = 0
{options}
socket.connect({endpoint!r})
"""
RECEIVE = """
socket.subscribe(b"")
socket.rcvtimeo = 20_000
socket.rcvbuf = 65_536
"""


class Group:
    """A PUB and a SUB, in processes of their own, that have exchanged a message."""

    def __init__(self, bench: Bench) -> None:
        if not bench.zmq.has("epgm"):
            raise Skipped(f"{bench.module} has no epgm://")
        high, low = divmod(os.getpid() % 65_536, 256)
        self.address = f"239.253.{high}.{low}", 20_000 + bench.seed % 10_000
        endpoint = "epgm://lo;{}:{}".format(*self.address)
        self.receiver = bench.subject()
        self.receiver.run(JOIN.format(kind="SUB", options=RECEIVE, endpoint=endpoint))
        self.sender = bench.subject()
        self.sender.run(JOIN.format(kind="PUB", options="", endpoint=endpoint))
        self.send(range(1))
        check(self.receive(1) == [0], "no message arrived")

    def send(self, numbers: range) -> None:
        self.sender.run(f"""
            for n in {numbers!r}:
                socket.send(b"%d" % n + bytes({SIZE}))
            socket.flush(20_000)
        """)

    def receive(self, count: int) -> list[int]:
        return self.receiver.run(f"[int(socket.recv().rstrip(bytes(1))) for _ in range({count})]")

    def end(self) -> None:
        for subject in (self.sender, self.receiver):
            subject.run("socket.close()\ncontext.term()")
            subject.end()


@row()
def receiver_that_loses_packets(bench: Bench) -> None:
    """A SUB over epgm whose kernel has a buffer of 64 KiB is stopped while 1 MB arrives: afterwards each of 2000 messages
    arrives once and in order, and no gap is counted."""
    group = Group(bench)
    stop(group.receiver)
    group.send(range(1, 2001))
    group.receiver.signal(signal.SIGCONT)
    check(group.receive(2000) == list(range(1, 2001)), "messages are lost or out of order")
    dropped = group.receiver.run("socket.stats()['dropped']")
    check(dropped["gap"] == 0, f"{dropped['gap']} packets are lost")
    group.end()


@row()
def strangers_in_a_group(bench: Bench) -> None:
    """Strangers send to a group of epgm: packets of thousands of senders with random numbers, requests for every packet,
    and random bytes. Messages arrive once and in order meanwhile, for less than 32 MiB."""
    group = Group(bench)
    before = [subject.memory() for subject in (group.sender, group.receiver)]
    with member(group.address) as stranger:
        group.send(range(1, 2))
        source, port = heard(stranger)
        for number in range(2, bench.amount(20, 200)):
            for _ in range(50):
                stranger.sendto(packet(bench, group.address[1]), group.address)
            request = nak(bench, group.address, source, port)
            stranger.sendto(request, ("127.0.0.1", group.address[1]))
            stranger.sendto(request, group.address)
            group.send(range(number, number + 1))
        got = group.receive(number)
        check(got == list(range(1, number + 1)), "messages are lost or out of order")
    for subject, memory in zip((group.sender, group.receiver), before, strict=True):
        check(subject.memory() - memory < 32 * MIB, "the strangers cost more than 32 MiB")
    dropped = group.receiver.run("socket.stats()['dropped']")
    check(dropped["malformed"] and dropped["excess"], "the strangers are not counted")
    group.end()


def stop(subject: Subject) -> None:
    subject.signal(signal.SIGSTOP)
    os.waitid(os.P_PID, subject.pid, os.WSTOPPED)


def member(address: tuple[str, int]) -> socket.socket:
    """A socket that is in the group."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(address)
    loopback = socket.inet_aton("127.0.0.1")
    made.setsockopt(
        socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(address[0]) + loopback
    )
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
    made.settimeout(20)
    return made


def heard(stranger: socket.socket) -> tuple[bytes, int]:
    """The identifier and the port of the sender."""
    while True:
        received = stranger.recv(65_536)
        if received[4] == DATA:
            return received[8:14], struct.unpack_from(">H", received)[0]


def packet(bench: Bench, port: int) -> bytes:
    """A packet of a random sender, or random bytes."""
    random = bench.random
    kind = random.choice((SPM, DATA, REPAIR, NAK, NCF, None))
    if kind is None:
        return random.randbytes(random.randrange(100))
    body = random.randbytes(random.randrange(8, 60))
    if kind == SPM:
        body = random.randbytes(12) + place("127.0.0.1")
    ports = random.randrange(65_536), port
    return sealed(kind, ports, random.randbytes(6), body)


def nak(bench: Bench, group: tuple[str, int], source: bytes, port: int) -> bytes:
    """A request for one of the last packets."""
    number = struct.pack(">I", bench.random.randrange(300))
    return sealed(NAK, (group[1], port), source, number + place("127.0.0.1") + place(group[0]))


def place(address: str) -> bytes:
    return struct.pack(">HH", 1, 0) + socket.inet_aton(address)


def sealed(kind: int, ports: tuple[int, int], source: bytes, body: bytes) -> bytes:
    """A packet of this kind, with its checksum (RFC 3208, section 8)."""
    size = max(0, len(body) - 8) if kind in (DATA, REPAIR) else 0
    head, rest = FIRST.pack(*ports, kind, 0), AFTER.pack(source, size) + body
    whole = head + bytes(2) + rest + bytes(len(rest) % 2)
    total = sum(word for (word,) in struct.iter_unpack(">H", whole))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return head + struct.pack(">H", ~total & 0xFFFF) + rest
