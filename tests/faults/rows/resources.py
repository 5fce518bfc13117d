"""A machine that runs out of descriptors, memory or system calls that work."""

from __future__ import annotations

import errno
import itertools
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections import Counter

from .. import wire
from ..bench import PATIENCE_S, Bench
from ..row import Failed, Skipped, check, row
from ..subject import CallFailed, Subject

MIB = 1 << 20

TIGHT = """
import resource

def tight(what, room):
    if what == "space":
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        limit = resource.RLIMIT_AS
    else:
        used, limit = max(map(int, os.listdir("/proc/self/fd"))), resource.RLIMIT_NOFILE
    resource.setrlimit(limit, (used + room, resource.getrlimit(limit)[1]))

def loose():
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE):
        most = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most, most))
"""


@row()
def no_descriptors_for_accept(bench: Bench) -> None:
    """80 peers connect while only 20 descriptors are left, and stay for a second (10 s in a full run): the process is idle meanwhile, and
    accepts again afterwards, within a second in a full run."""
    scene = bench.echo()
    scene.subject.run(TIGHT)
    scene.subject.run("tight('fd', 20)")
    streams = [wire.dial(scene.endpoint) for _ in range(80)]
    scene.exchange(scene.client)
    before = scene.subject.processor_time()
    held = bench.amount(1, 10)
    time.sleep(held)
    spent = (scene.subject.processor_time() - before) / held
    check(
        spent < 0.05, f"the process uses {spent:.0%} of a processor while descriptors are missing"
    )
    scene.exchange(scene.client)
    for stream in streams:
        stream.close()
    start = time.monotonic()
    client = scene.connect()
    scene.exchange(client, 1)
    took = time.monotonic() - start
    check(took < bench.amount(20, 1), f"a peer was accepted {took:.1f} s after the others had left")
    client.close()
    scene.newcomer()
    scene.subject.run("loose()")
    scene.ends_well()


@row()
def no_descriptors_for_calls(bench: Bench) -> None:
    """Contexts, sockets, binds and connects while 0 to 11 descriptors are left: each call works or raises one of the
    binding's errors, the process lives, and no descriptor is lost."""
    subject = bench.subject()
    subject.run(TIGHT)
    subject.run("""
        def work(timeout=20_000):
            with zmq.Context() as context:
                with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
                    push.linger = 0
                    pull.rcvtimeo = push.sndtimeo = timeout
                    pull.bind("tcp://127.0.0.1:*")
                    push.connect(pull.last_endpoint.decode())
                    push.send(b"x")
                    pull.recv()
        work()
    """)
    # A thread may make its own descriptors when it first waits, which is not always the first call.
    before = subject.descriptors() + 3
    for room in [*range(12)] * bench.amount(2, 10):
        code = f"tight('fd', {room})\ntry: work(100)\nexcept (zmq.ZMQError, OSError): pass\nloose()"
        subject.run(code)
    subject.run("work()")
    bench.until(lambda: subject.descriptors() <= before, "descriptors are lost")
    subject.end()


@row()
def messages_that_do_not_fit_into_memory(bench: Bench) -> None:
    """Four peers send messages of 64 MiB to a process that may grow by 96 MiB: peers are disconnected or messages are
    refused, others are served, and the process lives."""
    # A copy would need the memory once more.
    scene = bench.echo(copy=False)
    scene.subject.run(TIGHT)
    scene.subject.run("tight('space', 96 << 20)")

    def send() -> None:
        stream = wire.join(scene.endpoint, b"DEALER")
        header = bytes((wire.LONG,)) + struct.pack(">Q", 64 * MIB)
        for _ in range(3):
            if not wire.shout(stream, header):
                break
            if not all(wire.shout(stream, bytes(MIB)) for _ in range(64)):
                break
        stream.close()

    senders = [threading.Thread(target=send, daemon=True) for _ in range(4)]
    for sender in senders:
        sender.start()
    scene.exchange(scene.client)
    for sender in senders:
        sender.join(PATIENCE_S)
    scene.others_are_served()
    scene.subject.run("loose()")
    # glibc keeps the end of a thread's arena, which has at most 64 MiB.
    scene.ends_well(growth=(64 + 32) * MIB)


@row()
def memory_that_does_not_suffice_for_calls(bench: Bench) -> None:
    """Sending and receiving 64 MiB while 24 MiB are left: MemoryError or ENOMEM, and the message can be received
    later."""
    subject = bench.subject()
    subject.run(TIGHT)
    subject.run("""
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        push.linger = 0
        pull.rcvtimeo = push.sndtimeo = 10_000
        push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
        body = bytes(64 << 20)

        def fails(call):
            tight("space", 24 << 20)
            try:
                call()
            except MemoryError:
                return True
            except zmq.ZMQError as error:
                return error.errno == 12
            finally:
                loose()
            return False
    """)
    check(subject.run("fails(lambda: push.send(bytearray(body)))"), "sending does not fail")
    subject.run("push.send(body); pull.poll(10_000)")
    subject.run("time.sleep(0.2)")
    check(subject.run("fails(lambda: pull.recv())"), "receiving does not fail")
    check(subject.run("len(pull.recv())") == 64 * MIB, "the message is lost")
    subject.run("context.destroy(linger=0)")
    subject.end()


@row()
def greedy_peer(bench: Bench) -> None:
    """One peer announces and sends a message without an end: it is stopped before it costs 3 GiB, and other sockets of
    the context are served meanwhile."""
    scene = bench.echo()
    other = scene.subject.run(
        "greedy = context.socket(zmq.PULL); greedy.linger = 0\n"
        "greedy.bind('tcp://127.0.0.1:*'); greedy.last_endpoint.decode()"
    )
    if hasattr(bench.zmq, "MEMORY_BUDGET"):
        scene.subject.run(f"context.memory_budget = {64 * MIB}")
    stream = wire.join(other, b"PUSH")
    stream.settimeout(2)
    wire.shout(stream, bytes((wire.LONG,)) + struct.pack(">Q", 1 << 40))
    sent = 0
    while sent < 3 << 30 and wire.shout(stream, bytes(16 * MIB)):
        sent += 16 * MIB
        check(scene.grown() < 256 * MIB, f"one peer costs {scene.grown() >> 20} MiB")
    scene.others_are_served()
    stream.close()
    scene.subject.run("greedy.close()")
    scene.ends_well()


@row()
def bursts_of_large_messages(bench: Bench) -> None:
    """100 messages of 1 MiB wait and are received: a few seconds later, their memory is free again."""
    subject = bench.subject()
    subject.run("""
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        push.linger = 0
        push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
        push.send(b"x")
        pull.recv()
    """)
    before = subject.memory()
    subject.run("for _ in range(100): push.send(bytes(1 << 20))")
    subject.run("for _ in range(100): pull.recv()")
    bench.until(lambda: subject.memory() - before < 32 * MIB, "memory of a burst stays in use")
    subject.run("push.close(); pull.close(); context.term()")
    subject.end()


@row()
def lent_memory_is_given_back(bench: Bench) -> None:
    """40 objects of 5 MiB are sent with copy=False and received; the program makes no further call: their memory is free
    again."""
    subject = bench.subject()
    subject.run("""
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        push.linger = 0
        push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
        push.send(b"x")
        pull.recv()
    """)
    before = subject.memory()
    subject.run("""
        for _ in range(40):
            push.send(bytearray(5 << 20), copy=False)
            pull.recv()
    """)
    bench.until(lambda: subject.memory() - before < 32 * MIB, "lent memory stays in use")
    subject.run("push.close(); pull.close(); context.term()")
    subject.end()


# What strace lets fail: system calls, each with errors that the kernel may return. A binding uses some of these names.
# Not injected: close, whose failure loses a descriptor by definition; read and write, which the agent uses, too; futex,
# madvise, munmap and mprotect, which fail for wrong arguments only.
INJECTIONS = {
    "accept4": ("EMFILE", "ENFILE", "ENOMEM", "ENOBUFS", "ECONNABORTED", "EINTR"),
    "recvfrom": ("ECONNRESET", "ENOMEM", "EINTR", "ETIMEDOUT", "EHOSTUNREACH"),
    "recvmsg": ("ENOMEM", "EINTR"),
    "recvmmsg": ("ENOMEM", "EINTR", "ECONNREFUSED"),
    "sendto": ("EPIPE", "ECONNRESET", "ENOBUFS", "EINTR", "ENETDOWN"),
    "sendmsg": ("EPIPE", "ECONNRESET", "ENOBUFS", "EINTR", "EHOSTUNREACH"),
    "sendmmsg": ("ENOBUFS", "EINTR", "ENETDOWN"),
    "writev": ("EPIPE", "ECONNRESET", "EINTR"),
    "connect": ("ECONNREFUSED", "ENETUNREACH", "EADDRNOTAVAIL", "ETIMEDOUT"),
    "socket": ("EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"),
    "eventfd2": ("EMFILE", "ENFILE", "ENOMEM"),
    "epoll_create1": ("EMFILE", "ENOMEM"),
    "epoll_ctl": ("ENOMEM", "ENOSPC"),
    "epoll_wait": ("EINTR",),
    "epoll_pwait": ("EINTR",),
    "poll": ("EINTR", "ENOMEM"),
    "ppoll": ("EINTR", "ENOMEM"),
    "bind": ("EADDRINUSE", "ENOMEM"),
    "listen": ("EADDRINUSE",),
    "getsockname": ("ENOBUFS",),
    "getpeername": ("ENOTCONN", "ENOBUFS"),
    "getsockopt": ("ENOBUFS",),
    "setsockopt": ("ENOMEM", "EINVAL"),
    "shutdown": ("ENOTCONN",),
    "fcntl": ("EMFILE",),
    "mmap": ("ENOMEM",),
    "clone3": ("EAGAIN",),
}
# Every binding has to use one of each, or the table has lost its meaning.
NEEDED = (
    {"accept4"},
    {"recvfrom", "recvmsg"},
    {"sendto", "sendmsg", "writev"},
    {"connect"},
    {"socket"},
    {"epoll_wait", "epoll_pwait"},
    {"poll", "ppoll"},
    {"bind"},
    {"listen"},
    {"mmap"},
    {"clone3"},
)
# The calls of one name that fail: from one of these on, each fifth.
FIRST = (1, 4, 9)

WORK = """
import socket
def talk(context, endpoint):
    with context.socket(zmq.REP) as rep, context.socket(zmq.REQ) as req:
        rep.rcvtimeo = req.rcvtimeo = req.sndtimeo = rep.sndtimeo = 1000
        req.reconnect_ivl = 10
        rep.bind(endpoint)
        req.connect(rep.last_endpoint.decode().rstrip("\\0"))
        for size in (8, 8, 8, 100_000, 8):
            req.send_multipart([b"q" * size] * 3)
            rep.send_multipart(rep.recv_multipart())
            req.recv_multipart()

def cast(context):
    with context.socket(zmq.RADIO) as radio, context.socket(zmq.DISH) as dish:
        dish.rcvtimeo = 100
        dish.bind("udp://127.0.0.1:*")
        dish.join("group")
        radio.connect(dish.last_endpoint.decode().rstrip("\\0"))
        for _ in range(3):
            radio.send(b"message", group="group")
            dish.recv()

def work():
    failed = 0
    for number in range(4):
        try:
            with zmq.Context() as context:
                context.linger = 0
                talk(context, "tcp://127.0.0.1:*" if number % 2 else "ipc://*")
                # pyzmq has the types of udp in drafts only.
                if zmq.__name__ == "zeroxide":
                    cast(context)
        except (zmq.ZMQError, OSError, MemoryError, RuntimeError):
            failed += 1
    return failed
"""


@row(slow=True, seconds=1500)
def system_calls_that_fail(bench: Bench) -> None:
    """Each system call of a REQ and a REP over tcp and ipc, and of a RADIO and a DISH over udp, fails with each error that
    it has, the 1st, 4th and 9th time and then each fifth time, as strace's log shows: calls work or raise an error, the
    process lives, has its old number of descriptors, and ends. Not close, read, write and futex."""
    if shutil.which("strace") is None:
        raise Skipped("needs strace")
    probe = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True)
    if probe.returncode:
        raise Skipped("strace is not allowed here")
    usual = most_calls(traced(bench, []))
    missing = [names for names in NEEDED if not names & usual.keys()]
    check(not missing, f"none of these is called, so that none can fail: {missing}")
    wrong = []
    for call in [name for name in INJECTIONS if name in usual]:
        for error, first in itertools.product(INJECTIONS[call], FIRST):
            if usual[call] < first:
                continue
            try:
                rule = f"inject={call}:error={error}:when={first}+5"
                log = traced(bench, ["-e", f"trace={call}", "-e", rule])
                # Threads take turns, so that a call of theirs may come less often than without a fault.
                is_called = first == 1 or most_calls(log)[call] >= first
                check("(INJECTED)" in log or not is_called, "nothing was injected")
            except (Failed, CallFailed) as fault:
                wrong.append(f"{call} {error} from {first}: {fault}")
    check(not wrong, "; ".join(wrong[:5]) + f" ({len(wrong)} in all)")


def most_calls(log: str) -> Counter[str]:
    """How often each call comes in one thread, at most: strace counts for each thread."""
    counts = Counter(re.findall(r"^(\d+) +(\w+)\(", log, re.MULTILINE))
    most = Counter[str]()
    for (_, call), count in counts.items():
        most[call] = max(most[call], count)
    return most


def traced(bench: Bench, rules: list[str]) -> str:
    """Lets a process work under strace, and returns the log."""
    # Python starts without faults; then strace attaches to it.
    subject = bench.subject()
    subject.run(WORK)
    subject.run("work()")
    descriptors = subject.descriptors()
    with tempfile.NamedTemporaryFile() as log:
        tracer = subprocess.Popen(
            ["strace", "-f", "-o", log.name, *rules, "-p", str(subject.pid)],
            stderr=subprocess.PIPE,
        )
        try:
            # strace prints a line when it is attached.
            assert tracer.stderr is not None
            tracer.stderr.readline()
            # Twice, so that what each fault leaves behind is more than the pair of sockets that zeroxide keeps for signals.
            subject.run("work()", 60)
            subject.run("work()", 60)
            bench.until(lambda: subject.descriptors() <= descriptors + 2, "descriptors stay open")
        finally:
            tracer.terminate()
            tracer.communicate()
        subject.end()
        return log.read().decode(errors="replace")


def limited(bench: Bench, what: int, most: int) -> Subject:
    return bench.subject(limits={what: most})


@row()
def no_file_for_an_ipc_socket(bench: Bench) -> None:
    """Binds an ipc path in a folder that does not exist or may not be written to, on a path of 108 bytes, and with no descriptor left: one
    of the binding's errors, and the process lives."""
    subject = limited(bench, resource.RLIMIT_NOFILE, 64)
    subject.run(TIGHT)
    subject.run("context = zmq.Context(); pull = context.socket(zmq.PULL)")
    calls = {
        "pull.bind('ipc:///does/not/exist')": {errno.ENOENT},
        # Also root may not make files there.
        "pull.bind('ipc:///proc/self/zf')": {errno.ENOENT, errno.EACCES, errno.EPERM},
        "pull.bind('ipc:///sys/zf')": {errno.EACCES, errno.EPERM, errno.EROFS},
        f"pull.bind('ipc://{bench.directory}/{'x' * 108}')": {errno.ENAMETOOLONG},
        f"tight('fd', 1); pull.bind('ipc://{bench.directory}/a')": {errno.EMFILE, None},
    }
    for call, numbers in calls.items():
        try:
            subject.run(call)
        except CallFailed as fault:
            check(fault.errno in numbers or fault.kind == "ZMQError", str(fault))
        else:
            check(None in numbers, f"{call} does not fail")
    subject.run("loose(); context.destroy(linger=0)")
    subject.end()
