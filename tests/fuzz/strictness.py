"""What zeroxide refuses or ignores, and libzmq accepts.

Each reason finds in an input what zeroxide does not accept, without zeroxide's help, and removes it. With the rest,
libzmq must come to the same result as zeroxide with the whole input. So nothing else may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from curve_peer import GREETING, Conversation
from observing import Input, Seen

SIGNATURE, GREETING_2, GREETING_3 = 10, 12, 64
MORE, LONG, COMMAND = 1, 2, 4
# The number of commands in the handshake of a peer: NULL, PLAIN, CURVE.
HANDSHAKES = (1, 2, 2)
# The types in the order of their numbers in ZMTP 2, and the types that each may talk to.
PEERS = {
    "PAIR": {"PAIR"},
    "PUB": {"SUB", "XSUB"},
    "SUB": {"PUB", "XPUB"},
    "REQ": {"REP", "ROUTER"},
    "REP": {"REQ", "DEALER"},
    "DEALER": {"REP", "DEALER", "ROUTER"},
    "ROUTER": {"REQ", "DEALER", "ROUTER"},
    "PULL": {"PUSH"},
    "PUSH": {"PULL"},
    "XPUB": {"SUB", "XSUB"},
    "XSUB": {"PUB", "XPUB"},
}


class Frame(NamedTuple):
    """A frame, and where it begins. Of an incomplete one, the body is None."""

    at: int
    flags: int
    body: bytes | None


@dataclass(frozen=True)
class Reason:
    """A sentence, what zeroxide says (None if it ignores something), and the place in an input."""

    sentence: str
    words: str | None
    place: Callable[[Input], int | None]


def remainders(given: Input, mine: Seen) -> Iterator[tuple[str, Input]]:
    """The reasons that zeroxide had and that hold for an input, each with what is left of the input without it."""
    said = " ".join(mine.reasons)
    without = ignored(given)
    if without != given:
        yield IGNORED, without
    for reason in REASONS:
        place = reason.place(given)
        if place is not None and (reason.words is None or re.search(reason.words, said)):
            yield reason.sentence, ignored(cut(given, place))


def cut(given: Input, place: int) -> Input:
    """What comes before a place: a byte, or the number of a box and -1 for the properties before the first one."""
    sent = given.sent
    if isinstance(sent, bytes):
        return replace(given, sent=sent[:place])
    if place < 0:
        return replace(given, sent=GREETING)
    return replace(given, sent=replace(sent, boxes=sent.boxes[:place]))


def defined(given: Input) -> Input:
    """What comes before a part of several that begins like a subscription, at an XPUB. No RFC says what it is: zeroxide
    takes each such part for a subscription, and libzmq takes some."""
    if given.kind != "XPUB":
        return given
    is_within = False
    start = None
    for at, flags, body in all_frames(given):
        if flags & COMMAND:
            continue
        start = at if not is_within else start
        if (is_within or flags & MORE) and (body is None or body[:1] in (b"\0", b"\1")):
            return cut(given, start if start is not None else at)
        is_within = bool(flags & MORE)
    return given


IGNORED = "libzmq hands SUBSCRIBE and CANCEL to a socket without subscriptions as messages."


def ignored(given: Input) -> Input:
    """An input without the commands that only publishers understand, unless the socket is one."""
    if given.kind in ("PUB", "XPUB"):
        return given
    sent = given.sent
    if isinstance(sent, Conversation):
        boxes = (box for box in sent.boxes if not is_subscription(box[0] & 2, box[1:]))
        return replace(given, sent=replace(sent, boxes=tuple(boxes)))
    kept, last = sent[:GREETING_3], GREETING_3
    for frame in frames(sent) if is_version_3(sent) else ():
        end = len(sent) if frame.body is None else frame.at + head(frame) + len(frame.body)
        if not is_subscription(frame.flags & COMMAND, frame.body or b""):
            kept += sent[frame.at : end]
        last = end
    return replace(given, sent=kept + sent[last:])


def is_subscription(is_command: int, body: bytes) -> bool:
    return bool(is_command) and body.startswith((b"\x09SUBSCRIBE", b"\x06CANCEL"))


# -- the frames of an input


def is_version_3(data: bytes) -> bool:
    return len(data) > GREETING_3 and data[:1] == b"\xff" and data[9] & 1 == 1 and data[10] >= 3


def is_version_2(data: bytes) -> bool:
    return (
        len(data) >= GREETING_2 and data[:1] == b"\xff" and data[9] & 1 == 1 and data[10] in (1, 2)
    )


def frames(data: bytes, at: int = GREETING_3) -> Iterator[Frame]:
    while at < len(data):
        flags = data[at]
        length = data[at + 1 : at + (9 if flags & LONG else 2)]
        start, size = at + 1 + len(length), int.from_bytes(length, "big")
        is_whole = len(length) == (8 if flags & LONG else 1) and start + size <= len(data)
        yield Frame(at, flags, data[start : start + size] if is_whole else None)
        if not is_whole:
            return
        at = start + size


def frames_1(data: bytes) -> Iterator[Frame]:
    """The frames of ZMTP 1, whose length counts the flags."""
    at = 0
    while at < len(data):
        start = at + (9 if data[at] == 0xFF else 1)
        size = int.from_bytes(
            data[at + 1 : start] if data[at] == 0xFF else data[at : at + 1], "big"
        )
        if start >= len(data) or size == 0:
            return
        is_whole = start + size <= len(data)
        yield Frame(at, data[start], data[start + 1 : start + size] if is_whole else None)
        if not is_whole:
            return
        at = start + size


def head(frame: Frame) -> int:
    return 9 if frame.flags & LONG else 2


def all_frames(given: Input) -> Iterator[Frame]:
    """The frames of a peer; of a conversation, its boxes, whose flags are like those of frames."""
    sent = given.sent
    if isinstance(sent, Conversation):
        for number, box in enumerate(sent.boxes):
            flags = (COMMAND if box[0] & 2 else 0) | (MORE if box[0] & 1 else 0)
            yield Frame(number, flags, box[1:])
    elif is_version_3(sent):
        yield from frames(sent)
    elif is_version_2(sent):
        yield from frames(sent, GREETING_2)
    elif len(sent) > SIGNATURE and not (sent[0] == 0xFF and sent[9] & 1):
        yield from frames_1(sent)


def first(given: Input, is_it: Callable[[Frame], bool]) -> int | None:
    return next((frame.at for frame in all_frames(given) if is_it(frame)), None)


# -- places


def wrong_flags(given: Input) -> int | None:
    """Reserved bits, a command of several parts, and a message in the place of a command of the handshake."""
    commands, allowed, sent = 0, MORE, given.sent
    if isinstance(sent, Conversation):
        allowed |= COMMAND
    elif is_version_3(sent):
        commands, allowed = HANDSHAKES[given.mechanism // 2], MORE | LONG | COMMAND
    elif is_version_2(sent):
        allowed |= LONG
    for number, (at, flags, _) in enumerate(all_frames(given)):
        is_reserved = flags & ~allowed or flags & (COMMAND | MORE) == COMMAND | MORE
        if is_reserved or (number < commands and not flags & COMMAND):
            return at
    return None


def properties(given: Input) -> tuple[int, list[tuple[bytes, bytes]] | None] | None:
    """Where the properties of a peer of ZMTP 3 are, and the properties, or None if they do not fit their command."""
    if isinstance(given.sent, Conversation):
        return -1, pairs(given.sent.properties)
    if is_version_3(given.sent):
        for at, flags, body in frames(given.sent):
            found = re.match(rb"\x05READY|\x08INITIATE", body or b"")
            if flags & COMMAND and found and body is not None:
                return at, pairs(body[found.end() :])
    return None


def pairs(rest: bytes) -> list[tuple[bytes, bytes]] | None:
    found = []
    while rest:
        name, rest = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
        size, rest = int.from_bytes(rest[:4], "big"), rest[4:]
        if not name or len(rest) < size:
            return None
        found.append((name, rest[:size]))
        rest = rest[size:]
    return found


def wrong_properties(given: Input) -> int | None:
    """The command with properties, if they are not those of an honest peer."""
    found = properties(given)
    if found is None:
        return None
    at, those = found
    names = [name.lower() for name, _ in those or []]
    is_proper = len(set(names)) == len(names) and b"socket-type" in names
    return None if is_proper else at


def wrong_type(given: Input) -> int | None:
    """The type in a greeting of ZMTP 2, or in a property whose name has other capitals."""
    if given.kind not in PEERS:
        return None
    if isinstance(given.sent, bytes) and is_version_2(given.sent):
        number = given.sent[GREETING_2 - 1]
        theirs = list(PEERS)[number] if number < len(PEERS) else ""
        return GREETING_2 if theirs not in PEERS[given.kind] else None
    found = properties(given)
    if found is None:
        return None
    for name, value in found[1] or []:
        is_other = name != b"Socket-Type" and name.lower() == b"socket-type"
        if is_other and value.decode("latin-1") not in PEERS[given.kind]:
            return found[0]
    return None


def command_within_a_message(given: Input) -> int | None:
    is_within = False
    for at, flags, _ in all_frames(given):
        if flags & COMMAND:
            if is_within:
                return at
        else:
            is_within = bool(flags & MORE)
    return None


def command_without_a_name(given: Input) -> int | None:
    def is_it(frame: Frame) -> bool:
        body = frame.body
        return bool(frame.flags & COMMAND) and body is not None and not has_name(body)

    return first(given, is_it)


def has_name(body: bytes) -> bool:
    return bool(body) and 0 < body[0] < len(body)


def name_in_parts(given: Input) -> int | None:
    """The first frame of ZMTP 1 or 2, which is the name of the peer."""
    sent = given.sent
    if isinstance(sent, Conversation) or is_version_3(sent):
        return None
    frame = next(all_frames(given), None)
    return frame.at if frame and frame.flags & MORE else None


REASONS = [
    Reason(
        "The RFCs reserve the other bits of flags, and commands have one part; libzmq ignores that.",
        "flag bits a frame may have|flags without a meaning|expected .*handshake",
        wrong_flags,
    ),
    Reason(
        "READY and INITIATE have properties with different names, among them Socket-Type; libzmq accepts any.",
        "malformed metadata",
        wrong_properties,
    ),
    Reason(
        "A socket type has peers of some types only, and names of properties have no case; libzmq"
        " does not compare types in ZMTP 2, and compares names with their case.",
        "cannot talk to",
        wrong_type,
    ),
    Reason(
        "Commands come between messages; libzmq also takes them between parts.",
        "expected the next frame of a message",
        command_within_a_message,
    ),
    Reason(
        "A command begins with its name; libzmq ignores commands without one.",
        "a command with a name",
        command_without_a_name,
    ),
    Reason(
        "The name of a peer of ZMTP 1 and 2 has one part; libzmq ignores the flag.",
        "a routing id in one frame",
        name_in_parts,
    ),
]
