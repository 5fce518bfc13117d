"""What happens to the process itself: signals, and its end."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time

from ..bench import Bench
from ..row import Failed, check, row

PAIR = """
context = zmq.Context()
pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
push.linger = 0
pull.rcvtimeo = push.sndtimeo = 20_000
push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
push.send(b"x")
pull.recv()
"""

# How a program may end: its code, and the exit status.
ENDINGS = {
    "sockets that were not closed": ("", 0),
    "messages that cannot be sent": ("push.send(b'x' * 1000); pull.close(0)", 0),
    "os._exit": ("push.send(b'x'); import os; os._exit(3)", 3),
    "sys.exit in a thread's way": (
        "import threading\n"
        "threading.Thread(target=pull.recv, daemon=True).start()\n"
        "import sys; sys.exit(4)",
        4,
    ),
    "a daemon thread that never stops calling": (
        "import threading\n"
        "def call():\n"
        "    while True:\n"
        "        try: push.send(bytearray(1000), copy=False); pull.recv()\n"
        "        except zmq.ZMQError: pass\n"
        "threading.Thread(target=call, daemon=True).start()\n"
        "import time; time.sleep(0.1)",
        0,
    ),
    "a cycle that is collected": (
        "class Holder: pass\n"
        "holder = Holder(); holder.holder = holder\n"
        "holder.socket = context.socket(zmq.PAIR)\n"
        "holder.socket.bind('inproc://x'); del holder\n"
        "import gc; gc.collect()",
        0,
    ),
    "an exception": ("raise RuntimeError('on purpose')", 1),
    "an exception in an asyncio task": (
        "import asyncio, {module}.asyncio\n"
        "async def main():\n"
        "    with {module}.asyncio.Context() as ctx, ctx.socket(zmq.PULL) as waiting:\n"
        "        waiting.bind('tcp://127.0.0.1:*')\n"
        "        task = asyncio.ensure_future(waiting.recv())\n"
        "        await asyncio.sleep(0)\n"
        "        raise RuntimeError('on purpose')\n"
        "asyncio.run(main())",
        1,
    ),
}


@row()
def endings(bench: Bench) -> None:
    """A program ends with open sockets, unsent messages, os._exit, blocked and busy daemon threads, cycles and exceptions:
    within 2 s (10 s in a quick run), with its own exit status, and without a signal."""
    for name, (code, status) in ENDINGS.items():
        script = f"import {bench.module} as zmq\n{textwrap.dedent(PAIR)}\n"
        script += code.replace("{module}", bench.module)
        command = [sys.executable, "-c", script]
        for _ in range(bench.amount(1, 10)):
            try:
                limit = bench.amount(10, 2)
                done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
            except subprocess.TimeoutExpired:
                raise Failed(f"{name}: the process does not end") from None
            wrong = f"{name}: status {done.returncode} {done.stderr.strip()[-100:]}"
            check(done.returncode == status, wrong)


@row()
def storm_of_signals(bench: Bench) -> None:
    """1000 SIGALRM per second with a handler, during 2000 round trips (50,000 in a full run): every message arrives, and no call fails."""
    subject = bench.subject()
    rounds = bench.amount(2000, 50_000)
    result = subject.run(
        f"""
        alarms = 0
        def count(*_):
            global alarms
            alarms += 1
        signal.signal(signal.SIGALRM, count)
        context = zmq.Context()
        rep, req = context.socket(zmq.REP), context.socket(zmq.REQ)
        rep.linger = req.linger = 0
        rep.rcvtimeo = req.rcvtimeo = 20_000
        req.connect(f"tcp://127.0.0.1:{{rep.bind_to_random_port('tcp://127.0.0.1')}}")
        def serve():
            for _ in range({rounds}): rep.send(rep.recv())
        server = threading.Thread(target=serve)
        server.start()
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        wrong = 0
        for n in range({rounds}):
            req.send(b"%d" % n)
            wrong += req.recv() != b"%d" % n
        signal.setitimer(signal.ITIMER_REAL, 0)
        server.join()
        wrong, alarms
        """,
        50,
    )
    check(result[0] == 0, f"{result[0]} answers are wrong")
    check(result[1] > 0, "no signal came")
    subject.run("req.close(); rep.close(); context.term()")
    subject.end()


@row()
def interrupted_calls(bench: Bench) -> None:
    """Ctrl-C during recv, send without a peer, poll and term: KeyboardInterrupt within 100 ms in one of five attempts and always within 5 s,
    and the sockets work afterwards."""
    subject = bench.subject()
    subject.run(PAIR)
    subject.run("""
        lonely = context.socket(zmq.PUSH)
        lonely.linger = -1
        pull.rcvtimeo = lonely.sndtimeo = -1
        poller = zmq.Poller()
        poller.register(pull, zmq.POLLIN)
        ended = zmq.Context()
        held = ended.socket(zmq.PUSH)
    """)
    for call in (
        "pull.recv()",
        "lonely.send(b'x')",
        "poller.poll()",
        "pull.poll()",
        "ended.term()",
    ):
        fastest = 5.0
        for _ in range(5):
            subject.begin(f"""
                try:
                    {call}
                except KeyboardInterrupt:
                    interrupted = True
                else:
                    interrupted = False
                interrupted
            """)
            bench.idle(subject)
            start = time.monotonic()
            subject.signal(signal.SIGINT)
            check(subject.answer(5), f"{call} is not interrupted")
            fastest = min(fastest, time.monotonic() - start)
            if fastest <= 0.1:
                break
        check(fastest <= 0.1, f"{call} is interrupted after {fastest * 1000:.0f} ms or later")
    subject.run("held.close(); lonely.close(); push.send(b'y'); got = pull.recv()")
    check(subject.run("got") == b"y", "the socket does not work afterwards")
    subject.run("context.destroy(linger=0); ended.term()")
    subject.end()


@row()
def signal_to_another_thread(bench: Bench) -> None:
    """Ctrl-C is delivered to another thread while the main thread is blocked in recv: KeyboardInterrupt in the main
    thread, and the socket works afterwards."""
    subject = bench.subject()
    subject.run(PAIR)
    subject.run("""
        pull.rcvtimeo = -1
        go = threading.Event()
        def interrupt():
            go.wait()
            # The main thread is blocked by then, or will notice the signal before it is.
            time.sleep(0.1)
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
    """)
    interrupted = subject.run(
        """
        go.set()
        try:
            pull.recv()
        except KeyboardInterrupt:
            interrupted = True
        else:
            interrupted = False
        interrupted
        """,
        10,
    )
    check(interrupted, "recv is not interrupted")
    subject.run("push.send(b'y'); got = pull.recv()")
    check(subject.run("got") == b"y", "the socket does not work afterwards")
    subject.run("context.destroy(linger=0)")
    subject.end()


@row()
def stopped_peer(bench: Bench) -> None:
    """The peer of a PUSH and of a DEALER is stopped (SIGSTOP): SNDTIMEO 0 and 100 raise EAGAIN at the high-water mark, at once and after 100
    to 300 ms in one of five attempts, a call without a limit continues after SIGCONT, and every accepted message arrives once."""
    for kinds in (("PUSH", "PULL"), ("DEALER", "DEALER")):
        blocked(bench, *kinds)


def blocked(bench: Bench, kind: str, peer: str) -> None:
    subject = bench.subject()
    endpoint = subject.run(f"""
        context = zmq.Context()
        pull = context.socket(zmq.{peer})
        pull.rcvtimeo, pull.rcvhwm, pull.linger = 20_000, 10, 0
        pull.bind("tcp://127.0.0.1:*")
        pull.last_endpoint.decode()
    """)
    push = bench.context.socket(getattr(bench.zmq, kind))
    push.sndhwm = 10
    push.sndbuf = 10_000
    push.connect(endpoint)
    push.send(b"%06d" % 0)
    check(subject.run("pull.recv()") == b"%06d" % 0, "no message arrived")
    subject.signal(signal.SIGSTOP)
    try:
        sent = 1
        for timeout in (0, 100):
            push.sndtimeo = timeout
            took = []
            while sent < 100_000 and len(took) < 5:
                start = time.monotonic()
                try:
                    push.send(b"%06d" % sent + bytes(4000))
                    sent += 1
                except bench.zmq.Again:
                    took.append(time.monotonic() - start)
            check(sent < 100_000, "400 MB are queued for a stopped peer")
            # EAGAIN comes in time, apart from the delays of a busy machine.
            late = min(took) - timeout / 1000
            check(-0.01 <= late <= 0.2, f"EAGAIN came after {min(took):.3f} s")
    except BaseException:
        subject.signal(signal.SIGCONT)
        raise
    subject.begin(f"[int(pull.recv()[:6]) for _ in range({sent})]")
    push.sndtimeo = -1
    continues = threading.Timer(0.2, subject.signal, [signal.SIGCONT])
    continues.start()
    push.send(b"%06d" % sent)
    continues.join()
    got = subject.answer()
    check(got == list(range(1, sent + 1)), "messages are missing, repeated or out of order")
    check(not subject.run("pull.poll(100)"), "a message arrived that was not accepted")
    push.close()
    subject.kill()


@row(seconds=120)
def stopped_subscriber(bench: Bench) -> None:
    """One SUB is stopped (SIGSTOP) while 80 MB are published (800 MB in a full run): another one loses nothing, the publisher's memory stays
    within the high-water mark, and exactly the messages that the first one does not receive after SIGCONT are counted."""
    slow = bench.subject()
    publisher = bench.subject()
    # Without heartbeats, a publisher does not give up a peer that is stopped for a minute.
    endpoint = publisher.run("""
        context = zmq.Context()
        pub = context.socket(zmq.XPUB)
        pub.linger = 0
        pub.rcvtimeo = 20_000
        pub.sndhwm = 100
        pub.sndbuf = 100_000
        pub.heartbeat_ivl = 0
        pub.bind("tcp://127.0.0.1:*")
        sent = 0
        def publish(count, size):
            global sent
            for _ in range(count):
                pub.send(b"%06d" % sent + bytes(size))
                sent += 1
        pub.last_endpoint.decode()
    """)
    slow.run(f"""
        context = zmq.Context()
        sub = context.socket(zmq.SUB)
        sub.linger = 0
        sub.rcvtimeo = 20_000
        sub.rcvhwm, sub.rcvbuf = 10, 100_000
        sub.heartbeat_ivl = 0
        sub.subscribe(b"")
        sub.connect({endpoint!r})
    """)
    publisher.run("pub.recv()")
    slow.signal(signal.SIGSTOP)
    fast = bench.context.socket(bench.zmq.SUB)
    fast.subscribe(b"")
    fast.connect(endpoint)

    # With the default of XPUB, the same subscription of a second peer is not reported.
    def hears() -> bool:
        publisher.run("publish(1, 0)")
        return bool(fast.poll(50))

    bench.until(hears, "the other subscriber hears nothing")
    last = publisher.run("sent - 1")
    while int(fast.recv()[:6]) != last:
        pass
    before = publisher.memory()
    count = bench.amount(400, 4000)
    for _ in range(0, count, 50):
        publisher.run("publish(50, 200_000)")
        for _ in range(50):
            last += 1
            got = int(fast.recv()[:6])
            check(got == last, f"the other subscriber lost {last}")
    grown = publisher.memory() - before
    check(grown < 100 * 200_000 + (32 << 20), f"the publisher holds {grown >> 20} MiB")
    slow.signal(signal.SIGCONT)
    slow.run("received = []")

    # A message that arrives comes after all that were kept for the slow one.
    def catches_up() -> bool:
        publisher.run("publish(1, 0)")
        last = publisher.run("sent - 1")
        return slow.run(
            f"while sub.poll(200):\n    received.append(int(sub.recv()[:6]))\n"
            f"    if received[-1] == {last}: break\nreceived[-1:] == [{last}]"
        )

    bench.until(catches_up, "the subscriber receives nothing after SIGCONT")
    received = slow.run("received")
    check(received == sorted(set(received)), "messages are repeated or out of order")
    lost = publisher.run("sent") - len(received)
    check(lost > count // 2, f"only {lost} messages are dropped for a peer that reads nothing")
    if publisher.run("hasattr(pub, 'stats')"):
        counted = publisher.run("pub.stats()['dropped']['high_water']")
        check(counted == lost, f"{lost} messages are dropped, {counted} are counted")
        every = publisher.run("sum(pub.stats()['dropped'].values())")
        check(every == lost, f"{lost} messages are dropped, {every} are counted for all reasons")
    else:
        bench.remarks.append("not counted")
    for each in (publisher, slow):
        each.run("context.destroy(linger=0)")
        each.end()
