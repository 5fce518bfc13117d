"""Forks: children that have their parent's sockets, and live on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap

from .. import wire
from ..bench import PATIENCE_S, Bench
from ..row import check, row
from .process import PAIR
from .threads import ASYNC

# Forks a child that has all descriptors of its parent until `release` is called, or until the parent ends.
LIVE_ON = """
children = []

def live_on():
    here, over = os.pipe()
    child = os.fork()
    if not child:
        os.close(over)
        os.read(here, 1)
        os._exit(0)
    os.close(here)
    children.append((child, over))

def release():
    # A child also has the pipes of those before it.
    for _, over in children: os.close(over)
    for child, _ in children: os.waitpid(child, 0)
"""

SOCKET = """
context = zmq.Context()
socket = context.socket(zmq.{kind})
socket.linger = 20_000
socket.bind({endpoint!r})
socket.last_endpoint.decode()
"""


@row()
def forks(bench: Bench) -> None:
    """Children are forked from a process with busy sockets, use sockets of their own, and end: the parent is not
    affected."""
    subject = bench.subject()
    subject.run(PAIR)
    rounds = bench.amount(5, 50)
    result = subject.run(
        f"""
        statuses = []
        for n in range({rounds}):
            for k in range(100): push.send(b"%d" % k)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    mine = zmq.Context()
                    one, two = mine.socket(zmq.PAIR), mine.socket(zmq.PAIR)
                    one.rcvtimeo = two.rcvtimeo = 10_000
                    two.connect(f"tcp://127.0.0.1:{{one.bind_to_random_port('tcp://127.0.0.1')}}")
                    two.send(b"child")
                    status = 0 if one.recv() == b"child" else 2
                finally:
                    os._exit(status)
            got = [pull.recv() for _ in range(100)]
            assert got == [b"%d" % k for k in range(100)], got
            statuses.append(os.waitpid(child, 0)[1])
        statuses
        """,
        50,
    )
    check(set(result) == {0}, f"the children end with {result}")
    subject.run("push.close(); pull.close(); context.term()")
    subject.end()


@row()
def inherited_sockets(bench: Bench) -> None:
    """A child uses a socket of its parent, and closes it: an error that names the owner, and the parent is not
    affected."""
    subject = bench.subject()
    subject.run(PAIR)
    text = subject.run("""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(5)
            try:
                push.sndtimeo = 1000
                push.send(b"from the child")
                text = "sent"
            except zmq.ZMQError as error:
                text = str(error)
            except BaseException as error:
                text = type(error).__name__
            try:
                push.close(); pull.close(); context.term()
            except BaseException:
                pass
            os.write(write, text.encode() or b"no text")
            os._exit(0)
        os.close(write)
        told = b""
        while more := os.read(read, 1000):
            told += more
        os.waitpid(child, 0)
        push.send(b"from the parent")
        assert pull.recv() == b"from the parent"
        told.decode()
    """)
    check(text not in ("sent", "", "no text"), f"the child's call: {text or 'no answer'}")
    check(str(subject.pid) in text or "process" in text, f"the error does not help: {text}")
    subject.run("push.close(); pull.close(); context.term()")
    subject.end()


@row()
def multiprocessing(bench: Bench) -> None:
    """multiprocessing with fork and spawn beside open sockets: the workers' sockets work, and the parent's."""
    script = f"""
        import multiprocessing, sys
        import {bench.module} as zmq

        def ask(endpoint):
            with zmq.Context() as context, context.socket(zmq.REQ) as req:
                req.rcvtimeo, req.linger = 20_000, 0
                req.connect(endpoint)
                req.send(b"question")
                sys.exit(0 if req.recv() == b"answer" else 1)

        if __name__ == "__main__":
            context = zmq.Context()
            rep = context.socket(zmq.REP)
            rep.rcvtimeo = 20_000
            endpoint = f"tcp://127.0.0.1:{{rep.bind_to_random_port('tcp://127.0.0.1')}}"
            for method in ("fork", "spawn"):
                worker = multiprocessing.get_context(method).Process(target=ask, args=(endpoint,))
                worker.start()
                rep.recv()
                rep.send(b"answer")
                worker.join()
                assert worker.exitcode == 0, (method, worker.exitcode)
            rep.close()
            context.term()
    """
    file = bench.directory / "script.py"
    file.write_text(textwrap.dedent(script))
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=50, env=os.environ
    )
    check(done.returncode == 0, f"status {done.returncode}: {done.stderr.strip()[-200:]}")


@row()
def listener_beside_a_child(bench: Bench) -> None:
    """A forked child lives while its parent closes a socket that listens at tcp and ipc: its peer notices, connections are refused,
    another process binds the same endpoint, and the peer finds it."""
    zmq = bench.zmq
    for address in ("tcp://127.0.0.1:*", f"ipc://{bench.directory}/beside"):
        first, second = bench.subject(), bench.subject()
        endpoint = first.run(LIVE_ON + SOCKET.format(kind="PULL", endpoint=address))
        push = bench.context.socket(zmq.PUSH)
        push.reconnect_ivl = 10
        monitor = push.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        push.connect(endpoint)
        push.send(b"before")
        check(first.run("socket.recv()") == b"before", "no message arrived")
        first.run("live_on(); socket.close()")
        bench.until(lambda: refused(endpoint), f"{endpoint} still accepts connections")
        check(monitor.poll(int(PATIENCE_S * 1000)), "the peer does not notice the end")
        second.run(SOCKET.format(kind="PULL", endpoint=endpoint))
        push.send(b"after")
        second.run(f"socket.rcvtimeo = {int(PATIENCE_S * 1000)}")
        check(second.run("socket.recv()") == b"after", "no message arrived at the next process")
        push.disable_monitor()
        push.close()
        first.run("release(); context.term()")
        first.end()


def refused(endpoint: str) -> bool:
    """Whether a new connection is refused."""
    scheme, place = endpoint.split("://")
    family, target = socket.AF_UNIX, place
    if scheme == "tcp":
        family, target = socket.AF_INET, wire.address(endpoint)
    with socket.socket(family) as stream:
        # The queue of a listener that accepts nothing may be full.
        stream.settimeout(1)
        try:
            stream.connect(target)
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except TimeoutError:
            return False
    return False


@row()
def connection_beside_a_child(bench: Bench) -> None:
    """A forked child lives while its parent closes a socket that only received, with LINGER 0, and another one after 500 messages of
    10,000 bytes: all arrive, and both connections end."""
    for address in ("tcp://127.0.0.1:*", f"ipc://{bench.directory}/beside"):
        subject = bench.subject()
        endpoint = subject.run(LIVE_ON + SOCKET.format(kind="PUSH", endpoint=address))
        push, pull = (bench.context.socket(kind) for kind in (bench.zmq.PUSH, bench.zmq.PULL))
        pull.reconnect_ivl = -1
        ends = [one.get_monitor_socket(bench.zmq.EVENT_DISCONNECTED) for one in (push, pull)]
        push.bind("tcp://127.0.0.1:*")
        pull.connect(endpoint)
        subject.begin(f"""
            idle = context.socket(zmq.PULL)
            idle.linger = 0
            idle.connect({push.last_endpoint.decode()!r})
            socket.send(b"first")
            idle.recv()
        """)
        push.send(b"first")
        check(subject.answer() == pull.recv() == b"first", "no message arrived")
        subject.run("""
            live_on()
            idle.close()
            for n in range(500): socket.send(b"%04d" % n + bytes(10_000))
            socket.close()
        """)
        got = [int(pull.recv()[:4]) for _ in range(500)]
        check(got == list(range(500)), "messages are missing, repeated or out of order")
        for one, monitor in zip((push, pull), ends, strict=True):
            check(monitor.poll(int(PATIENCE_S * 1000)), "a connection does not end")
            one.disable_monitor()
            one.close()
        subject.run("release(); context.term()")
        subject.end()


@row()
def results_that_a_child_drops(bench: Bench) -> None:
    """A child is forked while an asyncio call has a result that its task has not used, and drops the result: the child ends, the
    parent's socket is not woken, and the task gets its message once."""
    subject = bench.subject()
    work = """
async def work(context, pull, push):
    import gc, select
    got, statuses, woken = [], set(), 0
    for n in range(20):
        result = asyncio.ensure_future(pull.recv())
        if n % 2:
            # A call whose task has not begun, and one that waits.
            await asyncio.sleep(0)
        await push.send(b"%d" % n)
        while not result.done():
            await asyncio.sleep(0)
        descriptor = pull.get(zmq.FD)
        pull.get(zmq.EVENTS)
        before = select.select([descriptor], [], [], 0)[0]
        child = os.fork()
        if not child:
            signal.alarm(10)
            del result
            gc.collect()
            os._exit(0)
        statuses.add(os.waitpid(child, 0)[1])
        woken += select.select([descriptor], [], [], 0)[0] != before
        got.append(int(await result))
    return got, statuses, woken
"""
    got, statuses, woken = subject.run(ASYNC.format(work=work))
    check(statuses == {0}, f"the children end with {statuses}")
    check(not woken, f"the parent was woken {woken} times")
    check(got == list(range(20)), f"{got} were received")
    subject.end()


@row()
def ipc_binds_beside_children(bench: Bench) -> None:
    """Children are forked while another thread binds ipc endpoints, and live on: five binds of another process in the same folder
    take less than 3 s together."""
    subject, other = bench.subject(), bench.subject()
    subject.run(LIVE_ON)
    subject.run(f"""
        context = zmq.Context()
        stop = threading.Event()
        def bind():
            while not stop.is_set():
                with context.socket(zmq.PULL) as socket:
                    socket.bind("ipc://{bench.directory}/one")
        binder = threading.Thread(target=bind)
        binder.start()
        for _ in range({bench.amount(40, 200)}):
            live_on()
            time.sleep(0.001)
        stop.set()
        binder.join()
    """)
    took = other.run(f"""
        context = zmq.Context()
        start = time.monotonic()
        for n in range(5):
            with context.socket(zmq.PULL) as socket:
                socket.bind(f"ipc://{bench.directory}/other{{n}}")
        time.monotonic() - start
    """)
    check(took < 3, f"the binds took {took:.1f} s")
    for each in (subject, other):
        each.run("release() if 'children' in globals() else None; context.term()")
        each.end()
