"""Threads and tasks that share sockets, close them and are cancelled."""

from __future__ import annotations

import errno

from ..bench import Bench
from ..row import Failed, Skipped, check, row
from ..subject import CallFailed

DRAFTS = ("CLIENT", "SERVER", "RADIO", "SCATTER", "CHANNEL", "PEER")

SHARED = """
context = zmq.Context()
pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
push.linger = 0
pull.rcvtimeo = push.sndtimeo = 20_000
push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
errors = []

def run(threads):
    def guarded(work):
        try:
            work()
        except Exception as error:
            errors.append(repr(error))
    started = [threading.Thread(target=guarded, args=(work,)) for work in threads]
    for thread in started: thread.start()
    for thread in started: thread.join()
"""


@row()
def shared_sockets(bench: Bench) -> None:
    """Four threads send messages of three parts on one PUSH, four receive on one PULL: no part is interleaved, lost or
    repeated."""
    subject = bench.subject()
    subject.run(SHARED)
    count = bench.amount(1000, 20_000)
    got = subject.run(
        f"""
        got = []
        def send(who):
            for n in range({count}):
                push.send_multipart([b"%d" % who, b"%d" % n, b"%d" % (who * n)])
        def receive():
            for _ in range({count}):
                got.append(tuple(map(int, pull.recv_multipart())))
        run([lambda who=who: send(who) for who in range(4)] + [receive] * 4)
        errors[:1] or [sum(a * b != c for a, b, c in got), len(set(got))]
        """,
        50,
    )
    check(got == [0, 4 * count], f"wrong: {got}")
    subject.run("push.close(); pull.close(); context.term()")
    subject.end()


# Pairs of types, of which the first sends. Its peer has connected, and a first message has arrived, when `ready` returns.
TYPES = """
PAIRS = [
    ("PUSH", "PULL"), ("PAIR", "PAIR"), ("DEALER", "DEALER"), ("DEALER", "ROUTER"), ("ROUTER", "DEALER"),
    ("PUB", "SUB"), ("XPUB", "XSUB"), ("STREAM", "STREAM"), ("REQ", "REP"),
    ("CLIENT", "SERVER"), ("SERVER", "CLIENT"), ("RADIO", "DISH"), ("SCATTER", "GATHER"), ("CHANNEL", "CHANNEL"),
    ("PEER", "PEER"),
]
THREADS = 8

class Ends:
    def __init__(self, kinds):
        self.one, self.other = (context.socket(getattr(zmq, kind)) for kind in kinds)
        for socket in (self.one, self.other):
            socket.linger = 0
            socket.sndhwm = socket.rcvhwm = 0
            socket.rcvtimeo = socket.sndtimeo = 20_000
        self.kinds, self.prefix, self.given = kinds, [], {}
        self.ready(*kinds)

    def ready(self, kind, other):
        self.one.bind("tcp://127.0.0.1:*")
        endpoint = self.one.last_endpoint.decode()
        if other == "SUB": self.other.subscribe(b"")
        if other == "XSUB": self.other.send(b"\\1")
        if other == "DISH": self.other.join("g")
        if kind == "RADIO": self.given = {"group": "g"}
        self.other.connect(endpoint)
        if kind == "ROUTER":
            self.other.send(b"hello")
            self.prefix = [self.one.recv_multipart()[0]]
        elif kind == "STREAM":
            # Both report the connection by a message without bytes.
            name, nothing = self.one.recv_multipart()
            self.prefix = [name]
            assert nothing == b""
            assert self.other.recv_multipart()[1] == b""
        elif kind in ("SERVER", "PEER"):
            if kind == "PEER":
                self.other.send(b"hello", routing_id=self.other.connect_peer(endpoint))
            else:
                self.other.send(b"hello")
            self.given = {"routing_id": self.one.recv(copy=False).routing_id}
        if kind == "REQ":
            return
        end = time.monotonic() + 20
        heard = False
        # A publisher drops what is sent before it knows the subscription.
        while not heard and time.monotonic() < end:
            self.send(self.one, [b"0" * 8] * 3)
            heard = self.other.poll(20 if kind in ("PUB", "XPUB", "RADIO") else 20_000)
        assert heard, "no first message"
        while self.other.poll(50):
            self.other.recv_multipart()

    def single(self):
        return self.kinds[0] in ("CLIENT", "SERVER", "RADIO", "SCATTER", "CHANNEL", "PEER")

    def send(self, socket, parts):
        if self.single() or self.kinds[0] == "STREAM":
            parts = [b" ".join(parts) + b";"]
        if self.single():
            socket.send(parts[0], **self.given)
        else:
            socket.send_multipart(self.prefix + parts)

    def recv(self):
        if self.single():
            return self.other.recv()[:-1].split()
        parts = self.other.recv_multipart()
        expected = 4 if self.kinds[1] == "ROUTER" else 3
        assert len(parts) == expected, f"{len(parts)} parts"
        return parts[-3:]

def parts(who, n):
    return [b"%d" % who, b"%d" % n, b"%d" % (who * n)]

def one_way(ends, count):
    got = []
    def send(who):
        for n in range(count): ends.send(ends.one, parts(who, n))
    def receive():
        for _ in range(count): got.append(tuple(map(int, ends.recv())))
    if ends.kinds[0] == "STREAM":
        # Bytes have no boundaries: one thread reads them, and the others send.
        stream = bytearray()
        def read():
            while stream.count(b";") < (THREADS - 1) * count: stream.extend(ends.other.recv_multipart()[1])
        run([lambda who=who: send(who) for who in range(THREADS - 1)] + [read])
        got += [tuple(map(int, record.split())) for record in bytes(stream).split(b";")[:-1]]
        return got, (THREADS - 1) * count
    half = THREADS // 2
    run([lambda who=who: send(who) for who in range(half)] + [receive] * half)
    return got, half * count

def in_turns(ends, count):
    # A REQ and a REP have a state: the calls that it forbids raise EFSM, and the others succeed.
    got, left, asked = [], threading.Event(), []
    def attempt(call, *arguments):
        while not left.is_set():
            try:
                return call(*arguments)
            except zmq.ZMQError as error:
                if error.errno not in (zmq.EFSM, zmq.EAGAIN): raise
                time.sleep(0.0001)
    def ask(who):
        for n in range(count):
            attempt(ends.one.send_multipart, parts(who, n), zmq.NOBLOCK)
            answer = ends.one.recv_multipart()
            assert answer == parts(who, n), answer
            got.append(tuple(map(int, answer)))
        asked.append(who)
        if len(asked) == THREADS // 2: left.set()
    def answer():
        while not left.is_set():
            request = attempt(ends.other.recv_multipart, zmq.NOBLOCK)
            if request: ends.other.send_multipart(request)
    run([lambda who=who: ask(who) for who in range(THREADS // 2)] + [answer] * (THREADS // 2))
    return got, THREADS // 2 * count

def share(kinds, count):
    ends = Ends(kinds)
    errors.clear()
    got, expected = (in_turns if kinds[0] == "REQ" else one_way)(ends, count)
    ends.one.close(); ends.other.close()
    if errors: return errors[0]
    if any(a * b != c for a, b, c in got): return "parts of several messages are mixed"
    if len(got) != expected or len(set(got)) != expected: return f"{len(set(got))} of {expected} arrived, in {len(got)}"
"""


@row(seconds=120)
def shared_sockets_of_every_type(bench: Bench) -> None:
    """Eight threads share the two sockets of each pair of types, half of them at each end: no part of a message is mixed with those of
    others, lost or repeated. REQ and REP raise EFSM for calls out of turn."""
    subject = bench.subject()
    subject.run(SHARED + TYPES)
    for kinds in subject.run("PAIRS"):
        if not subject.run(f"all(hasattr(zmq, kind) for kind in {kinds})"):
            bench.remarks.append("without drafts")
            continue
        try:
            wrong = subject.run(f"share({kinds}, {bench.amount(200, 5000)})", 60)
        except CallFailed as fault:
            # A libzmq without drafts refuses their sockets.
            check(fault.errno == errno.EINVAL and kinds[0] in DRAFTS, f"{kinds}: {fault}")
            bench.remarks.append("without drafts")
            continue
        except Failed as fault:
            raise Failed(f"{' and '.join(kinds)}: {fault}") from None
        check(wrong is None, f"{' and '.join(kinds)}: {wrong}")
    subject.run("push.close(); pull.close(); context.term()")
    subject.end()


@row()
def thread_that_polls_beside_another(bench: Bench) -> None:
    """One thread waits in recv at a PAIR, a DEALER and a PULL, and another one polls the same socket all the time: each of 100 messages
    (5000 in a full run), which come one by one, is received before the next one is sent."""
    for one, other in (("PAIR", "PAIR"), ("DEALER", "DEALER"), ("PUSH", "PULL")):
        subject = bench.subject()
        got = subject.run(
            f"""
            context = zmq.Context()
            here, there = context.socket(zmq.{one}), context.socket(zmq.{other})
            here.linger = 0
            there.rcvtimeo = 20_000
            here.connect(f"tcp://127.0.0.1:{{there.bind_to_random_port('tcp://127.0.0.1')}}")
            here.send(b"first")
            there.recv()
            count, got, received = {bench.amount(100, 5000)}, [], threading.Semaphore(0)
            def receive():
                for _ in range(count):
                    got.append(int(there.recv()))
                    received.release()
            def look():
                while receiver.is_alive(): there.poll(0)
            receiver = threading.Thread(target=receive)
            threads = [receiver, threading.Thread(target=look)]
            for thread in threads: thread.start()
            for n in range(count):
                here.send(b"%d" % n)
                if not received.acquire(timeout=15): break
            for thread in threads: thread.join()
            got == list(range(count)) or len(got)
            """,
            50,
        )
        check(got is True, f"{other}: {got} messages were received, and then a wake-up was lost")
        subject.run("here.close(); there.close(); context.term()")
        subject.end()


@row()
def close_under_fire(bench: Bench) -> None:
    """Eight threads send, receive, poll and set options while their sockets and the context are closed, 20 times (1000
    in a full run): every call ends with a result or an error, and the process lives."""
    subject = bench.subject()
    rounds = bench.amount(20, 1000)
    subject.run(
        f"""
        wrong = set()
        for round in range({rounds}):
            context = zmq.Context()
            pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
            push.linger = 0
            push.connect(f"tcp://127.0.0.1:{{pull.bind_to_random_port('tcp://127.0.0.1')}}")
            ready = threading.Barrier(9)
            def call(what):
                ready.wait()
                while True:
                    try:
                        what()
                    except zmq.ZMQError as error:
                        if error.errno in (zmq.ETERM, zmq.ENOTSOCK):
                            return
                        if error.errno != zmq.EAGAIN:
                            wrong.add(str(error))
                            return
            poller = zmq.Poller()
            def poll():
                if pull.closed or push.closed:
                    raise zmq.ZMQError(zmq.ENOTSOCK)
                pull.poll(1)
            calls = [lambda: push.send(b"x"), pull.recv, poll, lambda: pull.set(zmq.RCVHWM, 100)]
            threads = [threading.Thread(target=call, args=(what,)) for what in calls * 2]
            for thread in threads: thread.start()
            ready.wait()
            if round % 2:
                push.close(); pull.close(); context.term()
            else:
                ended = threading.Thread(target=context.term)
                ended.start()
                for thread in threads: thread.join(20)
                push.close(); pull.close()
                ended.join(20)
                assert not ended.is_alive(), "term does not end"
            for thread in threads:
                thread.join(20)
                assert not thread.is_alive(), "a call does not end"
        assert not wrong, wrong
        """,
        50 + rounds / 4,
    )
    subject.end()


@row()
def term_with_messages_left(bench: Bench) -> None:
    """term() with a peer that does not exist and LINGER 300: it ends, and no earlier than after 300 ms."""
    subject = bench.subject()
    took = subject.run("""
        context = zmq.Context()
        push = context.socket(zmq.PUSH)
        push.linger = 300
        push.connect("tcp://127.0.0.1:1")
        push.send(b"x")
        push.close()
        start = time.monotonic()
        context.term()
        time.monotonic() - start
    """)
    check(0.25 < took < 10, f"term() took {took:.2f} s")
    subject.end()


ASYNC = """
import asyncio, importlib
aio = importlib.import_module(zmq.__name__ + ".asyncio")

async def main():
    context = aio.Context()
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    push.linger = 0
    push.connect(f"tcp://127.0.0.1:{{pull.bind_to_random_port('tcp://127.0.0.1')}}")
    try:
        return await work(context, pull, push)
    finally:
        context.destroy(linger=0)

{work}
asyncio.run(main())
"""


@row()
def cancelled_receives(bench: Bench) -> None:
    """2000 asyncio receives (10,000 in a full run) are cancelled at every stage while messages arrive: each message is
    received once."""
    subject = bench.subject()
    count = bench.amount(2000, 10_000)
    work = f"""
async def work(context, pull, push):
    got = []
    async def receive():
        got.append(int(await pull.recv()))
    async def send():
        for n in range({count}):
            await push.send(b"%d" % n)
            if n % 7 == 0:
                await asyncio.sleep(0)
    sender = asyncio.ensure_future(send())
    turn = 0
    while len(got) < {count}:
        if turn % 8 == 0:
            # The next calls find messages at once.
            await asyncio.sleep(0.001)
        tasks = [asyncio.ensure_future(receive()) for _ in range(4)]
        # A call as a task, without a coroutine around it.
        direct = [asyncio.ensure_future(pull.recv()) for _ in range(2)]
        tasks += direct
        for _ in range(turn % 4):
            await asyncio.sleep(0)
        turn += 1
        if turn % 50 == 0:
            await asyncio.sleep(0.001)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        got += [int(task.result()) for task in direct if not task.cancelled()]
        if turn > {count} * 20:
            break
    await sender
    return sorted(got) == list(range({count})), len(got)
"""
    whole, length = subject.run(ASYNC.format(work=work), 50)
    check(whole, f"{length} of {count} messages were received")
    subject.end()


@row()
def abandoned_receives(bench: Bench) -> None:
    """A task calls recv while messages are there, and fails before it awaits the result: the next call receives the
    message."""
    subject = bench.subject()
    work = """
async def work(context, pull, push):
    for n in range(50):
        await push.send(b"%d" % n)
    got = []
    while len(got) < 50:
        if not await pull.poll(1000):
            break
        abandoned = pull.recv()
        del abandoned
        if not await pull.poll(1000):
            break
        got.append(int(await pull.recv()))
    return got
"""
    got = subject.run(ASYNC.format(work=work))
    check(got == list(range(50)), f"{len(got)} of 50 messages were received")
    subject.end()


@row()
def loop_that_starves(bench: Bench) -> None:
    """A task polls a socket that stays readable, with a timeout: another task of the asyncio loop runs."""
    subject = bench.subject()
    work = """
async def work(context, pull, push):
    await push.send(b"unread")
    poller = aio.Poller()
    poller.register(pull, zmq.POLLIN)
    turns = 0
    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)
    task = asyncio.ensure_future(other())
    for _ in range(200):
        await poller.poll(1000)
        await pull.poll(1000)
    task.cancel()
    return turns
"""
    turns = subject.run(ASYNC.format(work=work))
    check(turns >= 100, f"the other task had {turns} turns during 400 polls")
    subject.end()


@row()
def busy_task(bench: Bench) -> None:
    """A task receives without a pause because messages are always there: another task of the loop runs."""
    subject = bench.subject()
    work = """
async def work(context, pull, push):
    pull.rcvhwm = push.sndhwm = 0
    turns = 0
    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)
    task = asyncio.ensure_future(other())
    async def send():
        for n in range(50_000):
            await push.send(b"x")
    sender = asyncio.ensure_future(send())
    for _ in range(50_000):
        await pull.recv()
    await sender
    task.cancel()
    return turns
"""
    turns = subject.run(ASYNC.format(work=work), 50)
    check(turns >= 5, f"the other task had {turns} turns during 50,000 messages")
    subject.end()


@row()
def uvloop_and_events(bench: Bench) -> None:
    """asyncio on uvloop, with reads of EVENTS between the awaits: no wake-up is missed."""
    subject = bench.subject()
    if not subject.run("import importlib.util; importlib.util.find_spec('uvloop') is not None"):
        raise Skipped("uvloop is not installed")
    work = """
async def work(context, pull, push):
    async def receive():
        got = []
        while len(got) < 500:
            pull.get(zmq.EVENTS)
            got.append(await asyncio.wait_for(pull.recv(), 10))
            pull.get(zmq.EVENTS)
        return len(got)
    receiver = asyncio.ensure_future(receive())
    for n in range(500):
        push.get(zmq.EVENTS)
        await push.send(b"x")
        pull.get(zmq.EVENTS)
        if n % 5 == 0:
            await asyncio.sleep(0.0005)
    return await receiver
"""
    code = ASYNC.format(work=work).replace(
        "asyncio.run(main())", "import uvloop\nuvloop.run(main())"
    )
    got = subject.run(code)
    check(got == 500, f"{got} messages")
    subject.end()
