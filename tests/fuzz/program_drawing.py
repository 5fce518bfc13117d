"""Draws programs: lists of statements that use a few sockets of types that fit together."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

# Which types a program uses together: those on one side of a connection, and those on the other. A type that is listed
# twice is drawn twice as often.
FAMILIES = [
    (["PAIR"], ["PAIR"]),
    (["PUSH"], ["PULL"]),
    (["PUB", "XPUB"], ["SUB", "SUB", "XSUB"]),
    (["REQ"], ["REP"]),
    (["DEALER", "ROUTER"], ["DEALER", "ROUTER"]),
    (["REQ", "DEALER"], ["REP", "ROUTER"]),
    (["STREAM"], ["STREAM"]),
]
TRANSPORTS = ["inproc", "ipc", "tcp"]
NAMES = "abcd"
TOPICS = ["", "a", "ab", "b"]
RECEIVING = {"PAIR", "PULL", "SUB", "XPUB", "XSUB", "REQ", "REP", "DEALER", "ROUTER", "STREAM"}
SENDING = {"PAIR", "PUSH", "PUB", "XPUB", "XSUB", "REQ", "REP", "DEALER", "ROUTER", "STREAM"}

# Options that a socket may get before it connects: those of every type, and those of one.
OPTIONS = [
    *("sndhwm = 1", "sndhwm = 2", "rcvhwm = 1", "rcvhwm = 2", "immediate = True", "ipv6 = True"),
    *("routing_id = b'A'", "routing_id = b'B'", "handshake_ivl = 1000"),
]
OPTIONS_OF = {
    "PUSH": ["conflate = True"],
    "PUB": ["conflate = True", "invert_matching = True", "xpub_nodrop = True"],
    "SUB": ["conflate = True", "invert_matching = True"],
    "XPUB": [
        *("xpub_verbose = True", "xpub_verboser = True", "xpub_nodrop = True"),
        *("xpub_manual = True", "xpub_welcome_msg = b'hello'"),
    ],
    "REQ": ["req_relaxed = True", "probe_router = True"],
    "DEALER": ["conflate = True", "probe_router = True"],
    "ROUTER": [
        *("router_mandatory = True", "router_handover = True", "probe_router = True"),
        *("connect_routing_id = b'A'", "connect_routing_id = b'B'"),
    ],
    "STREAM": ["connect_routing_id = b'A'", "stream_notify = False"],
}
# Those that it may get at any time.
LATER = {
    "XPUB": OPTIONS_OF["XPUB"],
    "REQ": ["req_relaxed = True", "req_relaxed = False"],
    "ROUTER": ["router_mandatory = True", "router_handover = True", "connect_routing_id = b'A'"],
    "STREAM": ["connect_routing_id = b'B'"],
}


class Drawing:
    """A program that grows by statements, and what it has so far."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.statements: list[str] = []
        self.kinds: dict[str, str] = {}
        self.sides: dict[str, int] = {}
        self.used: dict[str, list[tuple[str, str]]] = {}
        self.is_single = False
        self.family = chance.choice(FAMILIES)
        transports = ["tcp"] if self.has("STREAM") else TRANSPORTS
        self.transports = chance.sample(
            transports, k=min(len(transports), chance.choice([1, 1, 2]))
        )

    def has(self, kind: str) -> bool:
        return kind in self.family[0] + self.family[1]

    def create(self, name: str) -> None:
        """A socket, and options of it, most of which count only before it connects."""
        side = self.chance.randrange(2)
        self.kinds[name] = self.chance.choice(self.family[side])
        self.sides[name] = side
        self.used[name] = []
        self.statements.append(f"{name} = context.socket(zmq.{self.kinds[name]})")
        for _ in range(self.chance.choice([0, 0, 0, 1, 2])):
            special = OPTIONS_OF.get(self.kinds[name], OPTIONS)
            self.set_option(name, special if self.chance.random() < 0.6 else OPTIONS)
        if self.kinds[name] == "SUB" and self.chance.random() < 0.8:
            self.subscribe(name)

    def set_option(self, name: str, options: list[str]) -> None:
        option = self.chance.choice(options)
        if "conflate" in option:
            # libzmq ends the process when such a socket closes before anything listens, and cuts messages into parts.
            if "inproc" in self.transports:
                return
            self.is_single = True
        self.statements.append(f"{name}.{option}")

    def set_later(self, name: str) -> None:
        self.set_option(name, LATER.get(self.kinds[name], ["routing_id = b'B'"]))

    def subscribe(self, name: str) -> None:
        if self.kinds[name] != "SUB":
            return self.send(name)
        verb = self.chance.choice(["subscribe", "subscribe", "unsubscribe"])
        self.statements.append(f"{name}.{verb}({self.chance.choice(TOPICS)!r})")
        return None

    def attach(self, name: str, verb: str = "") -> None:
        """Binds or connects. Of the two endpoints of a transport, each side binds one."""
        if self.kinds[name] == "PAIR" and self.used[name]:
            return  # It has one peer.
        side = self.sides[name]
        verb = verb or self.chance.choice(["bind", "connect"])
        endpoint = f"{self.chance.choice(self.transports)}[{side if verb == 'bind' else 1 - side}]"
        if (verb, endpoint) in self.used[name] and endpoint.startswith("inproc"):
            return  # libzmq connects again.
        everywhere = itertools.chain.from_iterable(self.used.values())
        if ("bind", endpoint) in everywhere and verb == "bind" and endpoint.startswith("ipc"):
            return  # libzmq takes the path away from the socket that listens.
        self.used[name].append((verb, endpoint))
        self.statements.append(f"{name}.{verb}({endpoint})")

    def detach(self, name: str) -> None:
        verb, endpoint = self.chance.choice(self.used[name] or [("connect", "tcp[0]")])
        # Over inproc, `unbind` does not end connections in libzmq.
        if (verb, "inproc") != ("bind", endpoint[:6]):
            self.statements.append(
                f"{name}.{'unbind' if verb == 'bind' else 'disconnect'}({endpoint})"
            )

    def send(self, name: str) -> None:
        kind = self.kinds[name]
        if kind not in SENDING:
            return self.receive(name)
        count = 1 if self.is_single else self.chance.choice([1, 1, 1, 2, 3])
        parts = [self.body() for _ in range(count)]
        if kind == "XSUB" and self.chance.random() < 0.7:
            parts = [repr(bytes([self.chance.randrange(2)]) + self.chance.choice(TOPICS).encode())]
        if kind in ("ROUTER", "STREAM"):
            parts.insert(
                0, self.chance.choice([f"peer[{name!r}]", f"peer[{name!r}]", "b'A'", "b'B'"])
            )
        if kind == "STREAM":
            del parts[2:]
        if kind in ("DEALER", "ROUTER") and self.has("REP") and not self.is_single:
            parts.insert(len(parts) - 1, "b''")
        self.statements.append(f"{name}.send_multipart([{', '.join(parts)}])")
        return None

    def body(self) -> str:
        """Each message differs from those before it, so that one that is lost or repeated is seen."""
        number = len(self.statements)
        bodies = [f"b'{self.chance.choice('ab')}{number}'"] * 8 + ["b''", f"b'{number}' * 150"]
        # A STREAM gets pieces of any size, if there is more than fits into one.
        return self.chance.choice(
            bodies if self.has("STREAM") else [*bodies, f"b'{number:04}' * 5000"]
        )

    def receive(self, name: str) -> None:
        if self.kinds[name] not in RECEIVING:
            return self.send(name)
        self.statements.append(f"{name}.recv_multipart()")
        return None

    def look(self, name: str) -> None:
        self.statements.append(f"{name}.{self.chance.choice(['poll(0)', 'poll(0, zmq.POLLOUT)'])}")

    def close(self, name: str) -> None:
        self.statements.append(f"{name}.close()")
        if self.chance.random() < 0.7:
            self.create(name)
            self.attach(name)
        else:
            del self.kinds[name]


ACTIONS: list[tuple[int, Callable[[Drawing, str], None]]] = [
    (8, Drawing.send),
    (6, Drawing.receive),
    (2, Drawing.look),
    (2, Drawing.subscribe),
    (1, Drawing.set_later),
    (2, Drawing.attach),
    (1, Drawing.detach),
    (1, Drawing.close),
]


def draw(seed: int) -> list[str]:
    """The program of a seed. At its end, every socket receives what has arrived."""
    chance = random.Random(seed)
    drawing = Drawing(chance)
    # Of three PAIRs, any two may meet.
    for name in NAMES[: 2 if drawing.has("PAIR") else chance.choice([2, 3, 4])]:
        drawing.create(name)
    # Of several sockets that wait for one to listen, any may be the first one then. So this one listens first.
    drawing.attach("a", "bind")
    for name in list(drawing.kinds)[1:]:
        drawing.attach(name)
    weights = [weight for weight, _ in ACTIONS]
    for _ in range(chance.randrange(6, 20)):
        if not drawing.kinds:
            break
        (action,) = chance.choices([action for _, action in ACTIONS], weights)
        action(drawing, chance.choice(list(drawing.kinds)))
    ends = [f"rest({name})" for name, kind in drawing.kinds.items() if kind in RECEIVING]
    return drawing.statements + ends
