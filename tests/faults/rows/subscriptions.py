"""Subscribers that ask for too much, and publishers that must not lose a subscription."""

from __future__ import annotations

from .. import wire
from ..bench import Bench
from ..row import check, row

MIB = 1 << 20

PUBLISHER = """
context = zmq.Context()
publisher = context.socket(zmq.PUB)
publisher.linger = 0
publisher.sndhwm = {hwm}
publisher.bind({where!r})
stop = threading.Event()

def publish():
    while not stop.is_set():
        publisher.send(b"news")
        time.sleep(0.005)

thread = threading.Thread(target=publish)
thread.start()
publisher.last_endpoint.decode()
"""


def hears(bench: Bench, endpoint: str) -> None:
    """An honest subscriber receives news."""
    subscriber = bench.context.socket(bench.zmq.SUB)
    subscriber.subscribe(b"news")
    subscriber.connect(endpoint)
    check(subscriber.poll(20_000), "another subscriber hears nothing")
    subscriber.close()


def ends(bench: Bench, subject) -> None:
    subject.run("stop.set(); thread.join(); publisher.close(0); context.term()")
    subject.end()


@row()
def subscription_flood(bench: Bench) -> None:
    """A subscriber with 100,000 random topics of 20 bytes (1 million in a full run): at most 100 bytes for each and 4 MiB, others are served,
    and the memory is free again after it has left."""
    subject = bench.subject()
    endpoint = subject.run(PUBLISHER.format(hwm=1000, where="tcp://127.0.0.1:*"))
    hears(bench, endpoint)
    before = subject.memory()
    stream = wire.join(endpoint, b"SUB")
    count = bench.amount(100_000, 1_000_000)
    for _ in range(0, count, 10_000):
        topics = (wire.frame(0, b"\1" + bench.random.randbytes(20)) for _ in range(10_000))
        if not wire.shout(stream, b"".join(topics)):
            bench.remarks.append("disconnected")
            break
    # A PING is answered after everything before it.
    wire.shout(stream, wire.command(b"PING", b"\0\0end"))
    stream.settimeout(30)
    try:
        while not wire.read_frame(stream)[1].startswith(b"\x04PONG"):
            pass
    except Exception:
        bench.remarks.append("disconnected")
    hears(bench, endpoint)
    grown = subject.memory() - before
    check(grown < count * 100 + 4 * MIB, f"{grown // count} bytes for each topic")
    stream.close()
    bench.until(lambda: subject.memory() - before < 32 * MIB, "memory of topics stays in use")
    ends(bench, subject)


@row()
def long_topics(bench: Bench) -> None:
    """Topics of 4 and 64 MiB, subscribed, unsubscribed and left behind: at most twice the bytes and 4 MiB at any time, and no
    recursion."""
    subject = bench.subject()
    endpoint = subject.run(PUBLISHER.format(hwm=1000, where="tcp://127.0.0.1:*"))
    hears(bench, endpoint)
    before = subject.memory()
    for size in (4, 64):
        # 64 MiB fit into the default limit for all topics of a peer, MAX_SUBSCRIPTION_BYTES.
        topic = bench.random.randbytes(1024) * (size * 1024 - 1)
        for unsubscribe in (True, False):
            level = subject.memory()
            subject.forget_peak()
            stream = wire.join(endpoint, b"SUB")
            wire.shout(stream, wire.frame(0, b"\1" + topic))
            if unsubscribe:
                wire.shout(stream, wire.frame(0, b"\0" + topic))
            wire.shout(stream, wire.command(b"PING", b"\0\0end"))
            wire.read_frame(stream)
            grown = subject.peak() - level
            check(grown <= (2 * size + 4) * MIB, f"{grown >> 20} MiB for {size} MiB")
            hears(bench, endpoint)
            stream.close()
    bench.until(lambda: subject.memory() - before < 32 * MIB, "memory of topics stays in use")
    ends(bench, subject)


@row()
def many_long_topics(bench: Bench) -> None:
    """One subscriber asks for 512 MiB of topics: its topics are bounded, and others are served."""
    subject = bench.subject()
    endpoint = subject.run(PUBLISHER.format(hwm=1000, where="tcp://127.0.0.1:*"))
    hears(bench, endpoint)
    before = subject.memory()
    stream = wire.join(endpoint, b"SUB")
    topic = bench.random.randbytes(4 * MIB)
    for number in range(128):
        if not wire.shout(stream, wire.frame(0, b"\1%d" % number + topic)):
            break
        grown = subject.memory() - before
        check(grown < 192 * MIB, f"topics of one peer cost {grown >> 20} MiB")
    hears(bench, endpoint)
    bench.counted(subject, "publisher", "excess")
    stream.close()
    bench.until(lambda: subject.memory() - before < 32 * MIB, "memory of topics stays in use")
    ends(bench, subject)


@row()
def unsubscribing_what_was_not_subscribed(bench: Bench) -> None:
    """Topics are unsubscribed that never were subscribed, or twice, by a stranger and by a SUB: ignored."""
    subject = bench.subject()
    endpoint = subject.run(PUBLISHER.format(hwm=1000, where="tcp://127.0.0.1:*"))
    stream = wire.join(endpoint, b"SUB")
    for number in range(bench.amount(1000, 100_000)):
        topic = b"%d" % (number % 97)
        wire.shout(stream, wire.frame(0, b"\0" + topic))
        if number % 3 == 0:
            wire.shout(stream, wire.frame(0, b"\1" + topic) + wire.frame(0, b"\0" + topic) * 2)
    wire.shout(stream, wire.command(b"PING", b"\0\0end"))
    hears(bench, endpoint)
    wire.read_frame(stream)
    stream.close()
    subscriber = bench.context.socket(bench.zmq.SUB)
    subscriber.subscribe(b"news")
    subscriber.connect(endpoint)
    for topic in (b"never", b"", b"news", b"news"):
        subscriber.unsubscribe(topic)
    subscriber.subscribe(b"news")
    check(subscriber.poll(20_000), "a subscriber hears nothing after it unsubscribed too often")
    subscriber.close()
    ends(bench, subject)


@row()
def messages_to_a_publisher(bench: Bench) -> None:
    """A peer sends ordinary messages to a PUB: ignored, and nothing of them is kept."""
    subject = bench.subject()
    endpoint = subject.run(PUBLISHER.format(hwm=1000, where="tcp://127.0.0.1:*"))
    hears(bench, endpoint)
    before = subject.memory()
    stream = wire.join(endpoint, b"SUB")
    stream.settimeout(1)
    for _ in range(bench.amount(30, 300)):
        if not wire.shout(stream, wire.frame(0, b"\2" + bytes(MIB))):
            break
    hears(bench, endpoint)
    bench.until(lambda: subject.memory() - before < 32 * MIB, "messages to a PUB are kept")
    stream.close()
    ends(bench, subject)


@row(slow=True, seconds=180)
def more_subscriptions_than_the_high_water_mark(bench: Bench) -> None:
    """100,000 subscriptions with SNDHWM 1000, and the publisher restarts: all are in effect both times."""
    subscriber = bench.context.socket(bench.zmq.SUB)
    subscriber.sndhwm = 1000
    subscriber.reconnect_ivl = 10
    count = 100_000
    endpoint = "tcp://127.0.0.1:*"
    for life in range(2):
        subject = bench.subject()
        endpoint = subject.run(f"""
            context = zmq.Context()
            publisher = context.socket(zmq.XPUB)
            publisher.linger = 0
            publisher.sndhwm = publisher.rcvhwm = 0
            publisher.rcvtimeo = 20_000
            publisher.bind({endpoint!r})
            publisher.last_endpoint.decode()
        """)
        if life == 0:
            for number in range(count):
                subscriber.subscribe(b"%06d" % number)
            subscriber.connect(endpoint)
        got = subject.run(
            f"seen = set()\nwhile len(seen) < {count}: seen.add(publisher.recv())\nlen(seen)", 60
        )
        check(got == count, f"{got} subscriptions arrived")
        subject.run(f"for n in range({count}): publisher.send(b'%06d' % n)", 60)
        for number in range(count):
            got = subscriber.recv()
            check(got == b"%06d" % number, f"{got!r} instead of {number}")
        subject.kill()
    subscriber.close()


@row()
def topics_of_every_length(bench: Bench) -> None:
    """Topics of 240 to 260 bytes between this binding and another one, in both directions: all are in effect."""
    subject = bench.subject(bench.other())
    zmq, context = bench.zmq, bench.context
    lengths = range(240, 261)
    xpub, sub = context.socket(zmq.XPUB), context.socket(zmq.SUB)
    xpub.bind("tcp://127.0.0.1:*")
    subject.run(f"""
        context = zmq.Context()
        xpub, sub = context.socket(zmq.XPUB), context.socket(zmq.SUB)
        xpub.linger = sub.linger = 0
        xpub.rcvtimeo = sub.rcvtimeo = 20_000
        for n in {list(lengths)}: sub.subscribe(b"x" * n)
        sub.connect({xpub.last_endpoint.decode()!r})
    """)
    endpoint = subject.run("xpub.bind('tcp://127.0.0.1:*'); xpub.last_endpoint.decode()")
    for length in lengths:
        sub.subscribe(b"x" * length)
    sub.connect(endpoint)
    ours = {len(xpub.recv()) - 1 for _ in lengths}
    theirs = set(subject.run(f"[len(xpub.recv()) - 1 for _ in {list(lengths)}]"))
    check(ours == theirs == set(lengths), f"{ours} and {theirs} arrived")
    xpub.send(b"x" * 260)
    check(subject.run("len(sub.recv())") == 260, "the message did not arrive")
    subject.run("xpub.send(b'x' * 260)")
    check(len(sub.recv()) == 260, "the message did not arrive")
    subject.kill()
