"""Enemies in the network, and peers that may not connect."""

from __future__ import annotations

import contextlib
from typing import Any

from .. import wire
from ..bench import PATIENCE_S, Bench
from ..proxy import Path, Proxy
from ..row import check, row
from ..subject import Subject

MECHANISM, VERSION = slice(12, 32), 10

HANDLER = """
handler = context.socket(zmq.REP)
handler.linger = 0
handler.bind("inproc://zeromq.zap.01")

def handle():
    while True:
        try:
            request = handler.recv_multipart()
            handler.send_multipart(answer(request))
        except zmq.ZMQError:
            return

threading.Thread(target=handle, daemon=True).start()
"""

SERVER = """
context = zmq.Context()
{handler}
pull = context.socket(zmq.PULL)
pull.linger = 0
pull.rcvtimeo = 20_000
pull.handshake_ivl = 1000
{options}
pull.bind("tcp://127.0.0.1:*")
pull.last_endpoint.decode()
"""


class Keys:
    """A CURVE server's keys and a client's, as options."""

    def __init__(self, zmq: Any) -> None:
        self.public, secret = zmq.curve_keypair()
        mine, my_secret = zmq.curve_keypair()
        self.server = f"pull.curve_server = True; pull.curve_secretkey = {secret!r}"
        self.client = {
            "curve_serverkey": self.public,
            "curve_publickey": mine,
            "curve_secretkey": my_secret,
        }


def server(bench: Bench, options: str, handler: str = "") -> tuple[Subject, str]:
    subject = bench.subject()
    return subject, subject.run(SERVER.format(options=options, handler=handler))


def push(bench: Bench, endpoint: str, **options: Any) -> Any:
    socket = bench.context.socket(bench.zmq.PUSH)
    for name, value in ({"reconnect_ivl": 20, "handshake_ivl": 1000} | options).items():
        setattr(socket, name, value)
    socket.connect(endpoint)
    return socket


def works(bench: Bench, subject: Subject, endpoint: str, **options: Any) -> None:
    """An honest client is served, and only its message has arrived."""
    socket = push(bench, endpoint, **options)
    socket.send(b"honest")
    got = subject.run("pull.recv()")
    check(got == b"honest", f"{got[:40]!r} has arrived")
    socket.close()
    check(not subject.run("pull.poll(0)"), "another message has arrived")


def rewriting(place: slice | int, value: bytes) -> Any:
    """Replaces bytes at a position of the stream."""
    start = place.start if isinstance(place, slice) else place

    def rewrite(gone: int, data: bytes) -> bytes:
        changed = bytearray(data)
        for number, byte in enumerate(value):
            if gone <= start + number < gone + len(data):
                changed[start + number - gone] = byte
        return bytes(changed)

    return rewrite


@row()
def downgrade(bench: Bench) -> None:
    """The greetings of CURVE peers are changed to NULL, PLAIN, ZMTP 2 and ZMTP 1 in transit: refused, a monitor reports it, and no byte of
    a message is sent."""
    keys = Keys(bench.zmq)
    names = ("NO_DETAIL", "PROTOCOL", "AUTH")
    failures = " | ".join(f"zmq.EVENT_HANDSHAKE_FAILED_{name}" for name in names)
    events = f"events = pull.get_monitor_socket({failures}); events.rcvtimeo = 20_000"
    subject, endpoint = server(bench, f"{keys.server}\n{events}")
    forged = [(MECHANISM, name.ljust(20, b"\0")) for name in (b"NULL", b"PLAIN")]
    forged += [(VERSION, b"\x01"), (0, b"\x01")]
    for place, value in forged:
        heard, rewrite = bytearray(), rewriting(place, value)

        def listen(gone: int, data: bytes) -> bytes:
            heard.extend(data)
            return rewrite(gone, data)

        path = Path(rewrite=listen)
        with Proxy(endpoint, up=path, down=Path(rewrite=rewrite)) as proxy:
            socket = push(bench, proxy.endpoint, **keys.client)
            socket.send(b"secret text")
            bench.until(lambda: proxy.connections > 1, f"{value!r} is not refused")
            check(b"secret text" not in heard, "the message was sent in the clear")
            reported = "events.poll(20_000) and len(events.recv_multipart())"
            check(subject.run(reported) == 2, f"the monitor does not report {value!r}")
            subject.run("while events.poll(0): events.recv_multipart()")
            socket.close()
    works(bench, subject, endpoint, **keys.client)


@row()
def curve_replay(bench: Bench) -> None:
    """A recorded MESSAGE is sent again, left out, or put after the next one: the connection ends, and no message is received twice or out
    of order."""
    keys = Keys(bench.zmq)
    subject, endpoint = server(bench, keys.server)
    for how in ("repeated", "missing", "late"):
        stream, held = bytearray(), bytearray()
        messages = 0

        def spoil(gone: int, data: bytes, how: str = how) -> bytes:
            nonlocal messages
            if gone == 0:
                stream.clear()
                held.clear()
                messages = 0
            before = len(stream)
            stream.extend(data)
            ends = frames(stream)
            # HELLO, INITIATE, and the messages after them.
            if len(ends) >= 3 and messages == 0 and before == ends[1][1]:
                messages = 1
                first = bytes(stream[slice(*ends[2])])
                if how == "repeated":
                    return data + first
                if how == "late":
                    held.extend(first)
                data = data[len(first) :]
            if held and data:
                data += held
                held.clear()
            return data

        with Proxy(endpoint, up=Path(rewrite=spoil)) as proxy:
            socket = push(bench, proxy.endpoint, **keys.client)
            socket.send(b"pay 1")
            if how != "repeated":
                bench.until(lambda: messages, "no message was sent")
                check(not subject.run("pull.poll(200)"), "a message that was dropped arrived")
                socket.send(b"pay 2")
            bench.until(lambda: proxy.connections > 1, f"a {how} message goes unnoticed")
            socket.close()
        got = subject.run("got = []\nwhile pull.poll(200): got.append(pull.recv())\ngot")
        check(got == sorted(set(got)), f"received {got} with a {how} message")
    works(bench, subject, endpoint, **keys.client)


def frames(stream: bytes) -> list[tuple[int, int]]:
    """The start and end of each complete frame after the greeting."""
    at, found = 64, []
    while at + 2 <= len(stream):
        if stream[at] & wire.LONG:
            end = at + 9 + int.from_bytes(stream[at + 1 : at + 9], "big")
        else:
            end = at + 2 + stream[at + 1]
        if end > len(stream):
            break
        found.append((at, end))
        at = end
    return found


@row(seconds=180)
def curve_bit_flips(bench: Bench) -> None:
    """One bit of each byte of HELLO, INITIATE, WELCOME, READY and a MESSAGE is flipped, in one connection each (every 29th
    in a quick run): each connection ends, no message of it is accepted, and neither process dies."""
    keys = Keys(bench.zmq)
    subject, endpoint = server(bench, keys.server + "; pull.handshake_ivl = 300")
    for name, places in spoilable(bench, subject, endpoint, keys).items():
        for place in places[bench.seed % 29 :: bench.amount(29, 1)]:
            with Proxy(endpoint, **{name: Path(flip=frozenset({place}))}) as proxy:
                options = keys.client | {"reconnect_ivl": -1, "handshake_ivl": 300}
                socket = push(bench, proxy.endpoint, **options)
                # The second one is there in case the length of the first one has grown. A connection that has failed
                # already takes no message.
                with contextlib.suppress(bench.zmq.Again):
                    for number in range(2):
                        socket.send(
                            b"%s %d %d" % (name.encode(), place, number), bench.zmq.DONTWAIT
                        )
                where = f"with a change of byte {place} {name}"
                bench.until(lambda: proxy.flipped, f"nothing is changed {where}")
                bench.until(lambda: proxy.ended, f"the connection stays open {where}")
                socket.close()
    got = subject.run("got = []\nwhile pull.poll(100): got.append(pull.recv())\ngot")
    check(not got, f"messages of changed connections arrived: {got[:3]}")
    works(bench, subject, endpoint, **keys.client)


def spoilable(bench: Bench, subject: Subject, endpoint: str, keys: Keys) -> dict[str, list[int]]:
    """The positions after the greeting of a connection that carries one message, in each direction."""
    heard = {"up": bytearray(), "down": bytearray()}

    def listening(name: str) -> Path:
        return Path(rewrite=lambda gone, data: heard[name].extend(data) or data)

    with Proxy(endpoint, up=listening("up"), down=listening("down")) as proxy:
        socket = push(bench, proxy.endpoint, **keys.client)
        socket.send(b"up 123 0")
        check(subject.run("pull.recv()") == b"up 123 0", "no message arrived")
        socket.close()
    places = {}
    for name, commands in (("up", 3), ("down", 2)):
        found = frames(heard[name])
        check(len(found) >= commands, f"{len(found)} frames {name}")
        # CurveZMQ does not protect the flags of a MESSAGE: the row curve-outer-flags.
        open_ = {found[2][0]} if name == "up" else set()
        places[name] = [at for at in range(64, found[commands - 1][1]) if at not in open_]
    return places


@row()
def curve_outer_flags(bench: Bench) -> None:
    """A peer sets MORE on the frame around a MESSAGE, which CurveZMQ does not forbid: the message arrives."""
    keys = Keys(bench.zmq)
    subject, endpoint = server(bench, keys.server)
    stream = bytearray()

    def mark(gone: int, data: bytes) -> bytes:
        if gone == 0:
            stream.clear()
        stream.extend(data)
        changed = bytearray(data)
        for start, _ in frames(stream)[2:]:
            if gone <= start:
                changed[start - gone] |= wire.MORE
        return bytes(changed)

    with Proxy(endpoint, up=Path(rewrite=mark)) as proxy:
        works(bench, subject, proxy.endpoint, **keys.client)


@row()
def curve_with_the_other_binding(bench: Bench) -> None:
    """CURVE with heartbeats every 20 ms between this binding and another one, in both roles: messages arrive."""
    keys = Keys(bench.zmq)
    options = keys.server + "; pull.heartbeat_ivl = 20"
    theirs = bench.subject(bench.other())
    endpoint = theirs.run(SERVER.format(options=options, handler=""))
    count = bench.amount(300, 10_000)
    socket = push(bench, endpoint, heartbeat_ivl=20, **keys.client)
    for number in range(count):
        socket.send(b"%d" % number)
    got = theirs.run(f"[int(pull.recv()) for _ in range({count})]")
    check(got == list(range(count)), "messages to the other binding are missing")
    subject, endpoint = server(bench, options)
    theirs.run(f"""
        push = context.socket(zmq.PUSH)
        push.linger = 0
        for name, value in {keys.client!r}.items(): setattr(push, name, value)
        push.heartbeat_ivl = 20
        push.connect({endpoint!r})
        for number in range({count}): push.send(b"%d" % number)
    """)
    got = subject.run(f"[int(pull.recv()) for _ in range({count})]")
    check(got == list(range(count)), "messages of the other binding are missing")


@row()
def strangers_at_secure_sockets(bench: Bench) -> None:
    """Peers with NULL, PLAIN, ZMTP 2, ZMTP 1 or the wrong key at a CURVE server, and with NULL at a PLAIN server: no byte
    of them reaches the program."""
    keys, wrong = Keys(bench.zmq), Keys(bench.zmq)
    plain = "pull.plain_server = True"
    allow = "def answer(request): return [b'1.0', request[1], b'200', b'', b'', b'']\n" + HANDLER
    for options, handler, honest in (
        (keys.server, "", keys.client),
        (plain, allow, {"plain_username": b"user", "plain_password": b"password"}),
    ):
        subject, endpoint = server(bench, options, handler)
        message = wire.frame(0, b"from a stranger")
        ready = wire.ready(b"PUSH")
        for start in (
            wire.greeting() + ready,
            wire.greeting(b"CURVE") + ready,
            wire.greeting(b"PLAIN") + ready,
            b"\xff" + bytes(8) + b"\x7f\x01\x08\x00\x00",  # ZMTP 2.0
            b"\x01\x00",  # ZMTP 1.0
            b"",
        ):
            stream = wire.dial(endpoint)
            wire.shout(stream, start + message * 3)
            check(wire.closed(stream, PATIENCE_S), f"{start[:12]!r} stays connected")
            stream.close()
        socket = push(bench, endpoint, **wrong.client)
        socket.send(b"from a stranger")
        works(bench, subject, endpoint, **honest)
        socket.close()


# The answers of a handler to each peer; `late` comes when the peer that asked first has given up.
ANSWERS = {
    "late": "late(request)",
    "300": "[b'1.0', request[1], b'300', b'later', b'', b'']",
    "400": "[b'1.0', request[1], b'400', b'no', b'', b'']",
    "500": "[b'1.0', request[1], b'500', b'broken', b'', b'']",
    "another version": "[b'2.0', request[1], b'200', b'', b'', b'']",
    "another request": "[b'1.0', b'other', b'200', b'', b'', b'']",
    "garbage": "[b'\\xff' * 100]",
    "too few parts": "[b'1.0', request[1], b'200']",
    "damaged metadata": "[b'1.0', request[1], b'200', b'', b'', b'\\xff\\xff\\xff']",
    "silence": "time.sleep(1000)",
    "death": "handler.close()",
}


LATE = """
gone, answered = threading.Event(), threading.Event()

def late(request):
    status = b"400"
    if not gone.is_set():
        gone.wait()
        status = b"200"
    else:
        # The answer before this one has been sent.
        answered.set()
    return [b"1.0", request[1], status, b"", b"", b""]
"""


@row()
def handlers_that_fail(bench: Bench) -> None:
    """A ZAP handler answers 300, 400, 500, garbage, not at all, or 200 when the peer has given up, or it closes its socket: no peer
    is accepted without a 200 that is its own where ZAP_ENFORCE_DOMAIN is set, and the process lives."""
    keys = Keys(bench.zmq)
    for name, answer in ANSWERS.items():
        code = f"{LATE}\ndef answer(request): return {answer}\n{HANDLER}"
        options = keys.server + "; pull.zap_domain = b'global'; pull.zap_enforce_domain = True"
        subject, endpoint = server(bench, options, code)
        with Proxy(endpoint) as proxy:
            socket = push(bench, proxy.endpoint, **keys.client)
            socket.send(b"may I")
            bench.until(lambda: proxy.passed["up"] > 400, f"{name}: no handshake")
            if name == "late":
                bench.until(lambda: proxy.connections > 1, "the peer does not give up")
                check(subject.run("gone.set(); answered.wait(20)"), "the next peer is not checked")
            check(not subject.run("pull.poll(150)"), f"{name}: a peer is accepted")
            socket.close()
        subject.kill()


@row()
def missing_handler(bench: Bench) -> None:
    """PLAIN without a ZAP handler: no password is accepted."""
    subject, endpoint = server(bench, "pull.plain_server = True")
    with Proxy(endpoint) as proxy:
        options = {"plain_username": b"user", "plain_password": b"password"}
        socket = push(bench, proxy.endpoint, **options)
        socket.send(b"may I")
        bench.until(lambda: proxy.passed["up"] > 64, "no handshake")
        check(not subject.run("pull.poll(300)"), "a peer is accepted without a check")
        socket.close()


@row()
def pending_authentications(bench: Bench) -> None:
    """300 peers (3000 in a full run) wait for a ZAP handler that never answers: the memory is bounded and free again when
    they have left, and a socket without security is served."""
    bench.needs_descriptors(bench.amount(1000, 4000))
    scene = bench.echo()
    secure = scene.subject.run(
        "secure = context.socket(zmq.ROUTER); secure.linger = 0; secure.plain_server = True\n"
        "secure.handshake_ivl = 60_000\n"
        "handler = context.socket(zmq.REP); handler.bind('inproc://zeromq.zap.01')\n"
        "secure.bind('tcp://127.0.0.1:*'); secure.last_endpoint.decode()"
    )
    hello = wire.command(b"HELLO", b"\x04user\x08password")
    streams = []
    for _ in range(bench.amount(300, 3000)):
        streams.append(wire.dial(secure))
        wire.shout(streams[-1], wire.greeting(b"PLAIN") + hello)
    scene.others_are_served()
    check(scene.grown() < 64 << 20, "pending requests cost more than 64 MiB")
    for stream in streams:
        stream.close()
    # libzmq cannot end while a handler's requests are unread.
    scene.subject.run("secure.close(); handler.close(0)")
    scene.ends_well()


@row()
def plain_to_the_network(bench: Bench) -> None:
    """PLAIN is bound to all interfaces: allowed, with a warning."""
    subject = bench.subject()
    seen = subject.run("""
        import warnings
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.plain_server = True
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            pull.bind("tcp://0.0.0.0:*")
        [str(one.message) for one in seen]
    """)
    check(any("PLAIN" in text for text in seen), "no warning")
