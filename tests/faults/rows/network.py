"""Machines of a network that vanish, move and give wrong names. A machine is a network namespace, so these rows need root."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..bench import Bench
from ..machines import Machines
from ..row import Skipped, check, row
from ..subject import Subject

# Seconds until a dead machine must have been noticed, with the default options, and from then on until messages arrive.
NOTICED_S, RECOVERED_S = 15, 2

PUBLISHER = """
context = zmq.Context()
pub = context.socket(zmq.PUB)
pub.linger = 0
pub.bind("tcp://10.77.0.1:5555")

sent = 0

def publish():
    global sent
    while True:
        pub.send(b"%s %d" % ({topic!r}, sent))
        sent += 1
        time.sleep(0.02)

threading.Thread(target=publish, daemon=True).start()
"""

SUBSCRIBER = """
context = zmq.Context()
sub = context.socket(zmq.SUB)
sub.rcvtimeo = 40_000
sub.subscribe(b"")
events = sub.get_monitor_socket(zmq.EVENT_DISCONNECTED)
events.rcvtimeo = 40_000
sub.connect("tcp://10.77.0.1:5555")

def receive():
    topic, number = sub.recv().split()
    return topic, int(number)
"""


@contextmanager
def network(loss: float = 0, seed: int = 0) -> Iterator[Machines]:
    """Two machines, with a cable between them that may lose packets of TCP."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise Skipped("network namespaces need root and the program ip")
    try:
        machines = Machines()
    except OSError as error:
        raise Skipped(f"no network namespaces here: {error}") from None
    try:
        if loss:
            machines.lossy_cable(loss, seed)
        else:
            machines.cable()
            machines.plug_in()
        yield machines
    finally:
        machines.end()


def on(bench: Bench, machine: str) -> Subject:
    return bench.subject(prefix=["ip", "netns", "exec", machine])


@row(slow=True, seconds=120)
def vanished_publisher(bench: Bench) -> None:
    """The publisher's machine vanishes without a word and another one takes its address: with default options, the SUB reports
    within 15 s that it is disconnected, and receives from the new one within 2 s of that."""
    with network() as machines:
        first = on(bench, machines.place)
        first.run(PUBLISHER.format(topic=b"one"))
        subject = on(bench, machines.home)
        subject.run(SUBSCRIBER)
        check(subject.run("receive()[0]") == b"one", "no message arrived")
        machines.cable()
        machines.plug_in()
        start = time.monotonic()
        second = on(bench, machines.place)
        second.run(PUBLISHER.format(topic=b"two"))
        check(subject.run("bool(events.poll(40_000))", 60), "no DISCONNECTED within 40 s")
        noticed = time.monotonic() - start
        subject.run("while receive()[0] != b'two': pass", 60)
        recovered = time.monotonic() - start - noticed
        check(noticed <= NOTICED_S, f"DISCONNECTED came after {noticed:.0f} s")
        check(recovered <= RECOVERED_S, f"messages came {recovered:.1f} s after DISCONNECTED")
        for each in (first, second, subject):
            each.kill()


@row(slow=True, seconds=120)
def messages_into_the_void(bench: Bench) -> None:
    """The machine of a PULL vanishes: each message that was sent meanwhile is delivered to the next machine or counted
    as lost."""
    with network() as machines:
        receive = """
            context = zmq.Context()
            pull = context.socket(zmq.PULL)
            pull.linger = 0
            pull.rcvtimeo = 40_000
            pull.bind("tcp://10.77.0.1:5555")
        """
        first = on(bench, machines.place)
        first.run(receive)
        subject = on(bench, machines.home)
        subject.run("""
            context = zmq.Context()
            push = context.socket(zmq.PUSH)
            push.linger = 0
            push.connect("tcp://10.77.0.1:5555")
            for n in range(10): push.send(b"%d" % n)
        """)
        got = first.run("[int(pull.recv()) for _ in range(10)]")
        check(got == list(range(10)), "no messages arrived")
        machines.cable()
        machines.plug_in()
        subject.run("for n in range(100): push.send(b'%d' % n)")
        second = on(bench, machines.place)
        second.run(receive)
        subject.begin("time.sleep(25); [push.send(b'end') for _ in range(1)]")
        got = second.run(
            "got = []\nwhile (body := pull.recv()) != b'end': got.append(int(body))\ngot", 60
        )
        subject.answer(60)
        missing = 100 - len(set(got))
        if subject.run("hasattr(push, 'stats')"):
            counted = subject.run("sum(push.stats()['dropped'].values())")
            check(counted >= missing, f"{missing} messages are missing, {counted} are counted")
        else:
            check(not missing, f"{missing} messages are missing, and the binding counts none")
        bench.remarks.append(f"{missing} lost")
        for each in (first, second, subject):
            each.kill()


@row(slow=True, seconds=120)
def unplugged_cable(bench: Bench) -> None:
    """The cable is unplugged for 3 s, the address is removed and comes back: messages that are sent after each arrive, and both processes
    live."""
    with network() as machines:
        publisher = on(bench, machines.place)
        publisher.run(PUBLISHER.format(topic=b"one"))
        subject = on(bench, machines.home)
        subject.run(SUBSCRIBER)
        subject.run("receive()")

        def hears(after: str) -> None:
            sent = publisher.run("sent")
            check(
                subject.run(f"while receive()[1] <= {sent}: pass\nTrue", 60),
                f"nothing arrived after {after}",
            )

        machines.cut()
        cut = publisher.run("sent")
        time.sleep(3)
        # Messages that were on their way may still be received, but no later ones.
        heard = subject.run("got = [-1]\nwhile sub.poll(100): got.append(receive()[1])\ngot[-1]")
        check(heard <= cut, f"message {heard} passed through a cable that was cut after {cut}")
        machines.plug_in()
        hears("the cable was plugged in")
        address = ("10.77.0.2/24", "dev", "near")
        machines.run("ip", "-n", machines.home, "addr", "del", *address)
        time.sleep(1)
        machines.run("ip", "-n", machines.home, "addr", "add", *address)
        hears("the address came back")
        for each in (publisher, subject):
            check(each.alive(), "a process died")
            each.kill()


@row(slow=True, seconds=120)
def slow_link(bench: Bench) -> None:
    """A link of 1 Mbit/s: 300 messages of 1000 bytes arrive once and in order, and the connection is not given up."""
    if shutil.which("tc") is None:
        raise Skipped("needs the program tc")
    with network() as machines:
        limit = ("tbf", "rate", "1mbit", "burst", "4kb", "latency", "500ms")
        machines.run(
            "ip",
            "netns",
            "exec",
            machines.home,
            "tc",
            "qdisc",
            "add",
            "dev",
            "near",
            "root",
            *limit,
        )
        receiver = on(bench, machines.place)
        receiver.run("""
            context = zmq.Context()
            pull = context.socket(zmq.PULL)
            pull.rcvtimeo = 30_000
            pull.bind("tcp://10.77.0.1:5555")
        """)
        subject = on(bench, machines.home)
        subject.run("""
            context = zmq.Context()
            push = context.socket(zmq.PUSH)
            push.linger = 0
            push.connect("tcp://10.77.0.1:5555")
            for n in range(300): push.send(b"%04d" % n + bytes(1000))
        """)
        got = receiver.run("[int(pull.recv()[:4]) for _ in range(300)]", 60)
        check(got == list(range(300)), "messages are missing, repeated or out of order")
        for each in (receiver, subject):
            each.kill()


@row(slow=True, seconds=120)
def lossy_link(bench: Bench) -> None:
    """A link loses 5 % of the packets of TCP in both directions: 2000 messages of 0 to 10,000 bytes arrive once and in order, and none is
    counted as lost."""
    with network(0.05, bench.seed) as machines:
        receiver = on(bench, machines.place)
        receiver.run("""
            context = zmq.Context()
            pull = context.socket(zmq.PULL)
            pull.rcvtimeo = 30_000
            pull.bind("tcp://10.77.0.1:5555")
        """)
        subject = on(bench, machines.home)
        subject.run("""
            context = zmq.Context()
            push = context.socket(zmq.PUSH)
            push.linger, push.sndhwm = 0, 0
            push.connect("tcp://10.77.0.1:5555")
            for n in range(2000): push.send(b"%04d" % n + bytes(n * 5 % 10_001))
        """)
        got = receiver.run("[(int(b[:4]), len(b)) for b in (pull.recv() for _ in range(2000))]", 90)
        sent = [(n, 4 + n * 5 % 10_001) for n in range(2000)]
        check(got == sent, "messages are missing, repeated, changed or out of order")
        lost = machines.lost()
        check(lost > 20, f"the link lost only {lost} packets")
        bench.remarks.append(f"{lost} packets lost")
        counted = "sum(push.stats()['dropped'].values()) if hasattr(push, 'stats') else 0"
        check(subject.run(counted) == 0, "messages that arrived are counted as lost")
        for each in (receiver, subject):
            each.kill()


class Names(threading.Thread):
    """A DNS server on the loopback interface of a machine that knows one name, or is silent."""

    def __init__(self, machine: str) -> None:
        super().__init__(daemon=True)
        self.addresses: list[str] = []
        self.silent = False
        self.asked = 0
        ready = threading.Event()

        def listen() -> None:
            # Namespaces belong to threads. Python has setns() from 3.12 on.
            with open(f"/run/netns/{machine}") as place:
                if ctypes.CDLL(None).setns(place.fileno(), 0):
                    raise OSError("setns() fails")
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.bind(("127.0.0.1", 53))
            ready.set()
            self.serve()

        self._target = listen
        self.start()
        ready.wait(10)

    def serve(self) -> None:
        while True:
            query, peer = self._socket.recvfrom(4096)
            self.asked += 1
            if self.silent:
                continue
            end = query.index(b"\0", 12) + 5
            wants_v4 = query[end - 4 : end - 2] == b"\0\1"
            found = self.addresses if wants_v4 else []
            flags = b"\x81\x80" if self.addresses else b"\x81\x83"  # NXDOMAIN
            answer = query[:2] + flags + struct.pack(">4H", 1, len(found), 0, 0) + query[12:end]
            for address in found:
                answer += b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 0, 4) + socket.inet_aton(address)
            self._socket.sendto(answer, peer)


@contextmanager
def names(machines: Machines) -> Iterator[Names]:
    """A name server for the programs that start on the first machine."""
    folder = Path("/etc/netns") / machines.home
    folder.mkdir(parents=True)
    try:
        (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:5 attempts:1\n")
        yield Names(machines.home)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


PULLER = """
context = zmq.Context()
pull = context.socket(zmq.PULL)
pull.linger = 0
pull.rcvtimeo = 30_000
pull.bind("tcp://{address}:5555")
"""


@row(slow=True, seconds=120)
def silent_name_server(bench: Bench) -> None:
    """20 sockets connect to names while the name server is silent: another socket of the context exchanges messages with gaps below 0.5 s,
    and below 50 ms in one of three periods of 3 s, and descriptors are level."""
    with network() as machines, names(machines) as server:
        server.silent = True
        subject = on(bench, machines.home)
        subject.run("""
            context = zmq.Context()
            rep, req = context.socket(zmq.REP), context.socket(zmq.REQ)
            req.connect(f"tcp://127.0.0.1:{rep.bind_to_random_port('tcp://127.0.0.1')}")
            def serve():
                while True: rep.send(rep.recv())
            threading.Thread(target=serve, daemon=True).start()
            req.send(b"x"); req.recv()
        """)
        before = subject.descriptors()
        connecting, *longest = subject.run(
            """
            start = time.monotonic()
            lost = []
            for n in range(20):
                socket = context.socket(zmq.PUSH)
                socket.linger = 0
                socket.connect(f"tcp://host{n}.test:5555")
                lost.append(socket)
            longest = [time.monotonic() - start]
            for _ in range(3):
                longest.append(0)
                end = time.monotonic() + 3
                while time.monotonic() < end:
                    start = time.monotonic()
                    req.send(b"x"); req.recv()
                    longest[-1] = max(longest[-1], time.monotonic() - start)
            longest
            """
        )
        check(server.asked, "no name was looked up")
        check(connecting < 0.5, f"connect() took {connecting:.1f} s")
        check(max(longest) < 0.5, f"another socket had to wait for {max(longest):.1f} s")
        # A gap of every period is none of a busy machine.
        check(min(longest) < 0.05, f"another socket had to wait for {min(longest) * 1000:.0f} ms")
        subject.run("for socket in lost: socket.close()")
        bench.until(lambda: subject.descriptors() <= before + 10, "descriptors stay open")
        subject.kill()


@row(slow=True, seconds=120)
def changed_address(bench: Bench) -> None:
    """A name does not exist, then has an address, then another one whose machine takes over: the PUSH finds each."""
    with network() as machines, names(machines) as server:
        subject = on(bench, machines.home)
        subject.run("""
            context = zmq.Context()
            push = context.socket(zmq.PUSH)
            push.linger = 0
            push.reconnect_ivl = 50
            push.connect("tcp://moving.test:5555")
        """)
        bench.until(lambda: server.asked, "no name was looked up")
        for address in ("127.0.0.2", "127.0.0.3"):
            receiver = on(bench, machines.home)
            receiver.run(PULLER.format(address=address))
            server.addresses = [address]
            subject.run("push.send(b'found')")
            check(receiver.run("pull.recv()", 40) == b"found", f"{address} was not found")
            receiver.kill()
            time.sleep(0.2)
        subject.kill()


@row(slow=True, seconds=60)
def several_addresses(bench: Bench) -> None:
    """A name has four addresses, of which only the last is listening: the PUSH finds it."""
    with network() as machines, names(machines) as server:
        server.addresses = [f"127.0.0.{n}" for n in (2, 3, 4, 5)]
        receiver = on(bench, machines.home)
        receiver.run(PULLER.format(address="127.0.0.5"))
        subject = on(bench, machines.home)
        subject.run("""
            context = zmq.Context()
            push = context.socket(zmq.PUSH)
            push.linger = 0
            push.connect("tcp://several.test:5555")
            push.send(b"found")
        """)
        check(receiver.run("pull.recv()", 40) == b"found", "no message arrived")
        receiver.kill()
        subject.kill()


@row(slow=True, seconds=60)
def pickle_of_a_stranger(bench: Bench) -> None:
    """recv_pyobj of a pickle that came from another machine without authentication: refused, and it does not run, also
    where ip_nonlocal_bind lets programs bind foreign addresses."""
    with network() as machines:
        setting = ("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind")
        machines.run("ip", "netns", "exec", machines.home, *setting)
        subject = on(bench, machines.home)
        subject.run("""
            context = zmq.Context()
            pull = context.socket(zmq.PULL)
            pull.rcvtimeo = 20_000
            pull.bind("tcp://10.77.0.2:5555")
        """)
        stranger = on(bench, machines.place)
        stranger.run("""
            import pickle
            class Code:
                def __reduce__(self):
                    return exec, ("import sys; sys.stranger = True",)
            context = zmq.Context()
            push = context.socket(zmq.PUSH)
            push.connect("tcp://10.77.0.2:5555")
            push.send(pickle.dumps(Code()))
        """)
        ran = subject.run("""
            try:
                pull.recv_pyobj()
            except Exception:
                pass
            hasattr(sys, "stranger")
        """)
        check(not ran, "the code of a stranger ran")
        stranger.kill()
        subject.kill()
