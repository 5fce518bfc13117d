"""What may differ between zeroxide and libzmq in a program, each with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

DETACHED = re.compile(r"\.(?:disconnect|unbind)\((.*)\)")


@dataclass(frozen=True)
class Difference:
    """The first statement of a program whose results differ, with those before it, and all results so far."""

    statements: list[str]
    ours: list[str] | str
    theirs: list[str] | str

    @property
    def last(self) -> tuple[str, str]:
        """The results of the statement."""
        ours, theirs = self.ours, self.theirs
        return (
            ours if isinstance(ours, str) else ours[-1],
            theirs if isinstance(theirs, str) else theirs[-1],
        )

    @property
    def has_less(self) -> bool:
        """Whether zeroxide has received nothing, or a part of what libzmq has."""
        ours, theirs = self.last
        return ours == "EAGAIN" or ours in theirs

    @property
    def has_more(self) -> bool:
        ours, theirs = self.last
        return theirs == "EAGAIN" or theirs in ours

    @property
    def sockets(self) -> int:
        return sum(" = context.socket(" in statement for statement in self.statements)

    @property
    def is_at_detached(self) -> bool:
        """Whether the socket of the last statement has had an endpoint that a socket has left."""
        last = self.statements[-1].removeprefix("rest(")[0]
        ended = {found[1] for each in self.statements if (found := DETACHED.search(each))}
        return any(
            each.startswith(f"{last}.{verb}({endpoint})")
            for each in self.statements
            for verb in ("bind", "connect")
            for endpoint in ended
        )

    def has(self, *words: str | tuple[str, ...]) -> bool:
        """Whether the program has each of the words, or one of several."""
        program = "\n".join(self.statements)
        return all(
            any(one in program for one in ([word] if isinstance(word, str) else word))
            for word in words
        )

    def __str__(self) -> str:
        earlier = self.ours if isinstance(self.ours, list) else [""] * len(self.statements)
        lines = [
            f"  {statement:44} # {found}"
            for statement, found in zip(self.statements[:-1], earlier, strict=False)
        ]
        ours, theirs = self.last
        return "\n".join(
            [*lines, f"  {self.statements[-1]}", f"  zeroxide: {ours}", f"  libzmq:   {theirs}"]
        )


def only_order(found: Difference) -> bool:
    ours, theirs = found.last
    return sorted(ours.split("\n")) == sorted(theirs.split("\n"))


# A look, and a request, at a socket that has got a probe.
REFUSALS = {("0", "1"), ("done", "EAGAIN")}
ORDER = "messages of different peers come in any order"

# What may differ, each with the reason and how to know it.
DIFFERENCES: list[tuple[str, Callable[[Difference], bool]]] = [
    (
        "libzmq ends the process",
        lambda found: isinstance(found.theirs, str) and found.theirs.startswith("ended with"),
    ),
    (
        "a path of ipc in use is not taken away from the socket that listens",
        lambda found: found.last[0] == "EADDRINUSE" and found.has(".bind(ipc"),
    ),
    (
        "a STREAM knows that a connection has ended before its last message was received",
        lambda found: found.has("STREAM") and found.last == ("EHOSTUNREACH", "EAGAIN"),
    ),
    (
        "a STREAM gets nothing of a connection that it ended with an empty message",
        lambda found: found.has("STREAM", ", b''])"),
    ),
    (
        "CONNECT_ROUTING_ID also names a connection with IMMEDIATE",
        lambda found: found.has("connect_routing_id", "immediate"),
    ),
    (
        "a name that a connection of the socket has cannot be given to another",
        lambda found: found.last == ("EADDRINUSE", "done") and found.has("connect_routing_id"),
    ),
    (
        "a REP serves several peers of one name",
        lambda found: found.has("REP)", "routing_id") and found.has_more,
    ),
    (
        "a REP or REQ is not readable for messages that it refuses, and keeps the connection",
        lambda found: found.has("probe_router", ("REP)", "REQ)")) and found.last in REFUSALS,
    ),
    (
        "a probe from the socket that binds inproc reaches one that connected before",
        lambda found: found.has("probe_router", ".connect(inproc") and found.has_more,
    ),
    (
        "after a request that could not be sent, the reply to the one before is still received",
        lambda found: found.has("req_relaxed") and ".recv_multipart()" in found.statements[-1],
    ),
    (
        "subscriptions do not count against high-water marks",
        lambda found: found.has("XPUB)", "hwm") and found.has_more,
    ),
    (
        "topics of a subscriber that was replaced are not sent to its successor",
        lambda found: found.has("PUB)", ".close()", ".connect(") and found.has_less,
    ),
    (
        "messages that a peer sent before it closed are received, although there was no room",
        lambda found: found.has("rcvhwm", ".close()") and found.has_more,
    ),
    (
        "LINGER of 0 also holds for messages to an inproc endpoint that is not bound yet",
        lambda found: found.has(".connect(inproc", ".close()") and found.has_less,
    ),
    (
        "an inproc connection whose peer has left can be disconnected",
        lambda found: found.last == ("done", "ENOENT") and found.has(".disconnect(inproc"),
    ),
    (
        "at disconnect and unbind, another part of what has arrived is still received",
        lambda found: found.is_at_detached and (found.has_less or found.has_more),
    ),
    (
        "a STREAM gets a notice of connections that it ends by disconnect or unbind",
        lambda found: found.is_at_detached and found.has("STREAM") and "'']" in found.last[0],
    ),
    (
        "an XPUB that connects gets the end of the subscriptions of a peer that it has lost",
        lambda found: found.has("XPUB)", ".close()") and found.has_more,
    ),
    (
        "libzmq learns in steps that messages were read, and has no room until then",
        lambda found: found.has("hwm") and found.last in {("done", "EAGAIN"), ("2", "0")},
    ),
    (
        "a REP may serve any of several peers first",
        lambda found: found.has("REP)") and found.sockets > 2 and "EAGAIN" not in found.last,
    ),
    (ORDER, only_order),
]


def known(found: Difference) -> str | None:
    """The reason why a difference is accepted. zeroxide must neither end nor hang."""
    if isinstance(found.ours, str):
        return None
    return next((reason for reason, holds in DIFFERENCES if holds(found)), None)
