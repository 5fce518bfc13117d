"""Sends the same bytes to zeroxide and to libzmq, and compares what the sockets receive.

The inputs are those of the targets `engine` and `curve` of `rust/fuzz`, from their corpora, and changes of them. For
each, a socket of each library listens over ipc, and its peer sends the bytes and hangs up. Whether the handshake
succeeds must be the same, and the messages, too. `strictness.py` has what zeroxide refuses and libzmq accepts. The
program fails with status 1 if there is any other difference.

    python tests/fuzz/differential.py --seconds 300 --seed 1 [--corpus build/fuzz/engine.corpus]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from curve_peer import Conversation, Missing, sodium
from libraries import Library
from observing import Input, Seen, serve
from strictness import defined, remainders
from web import change  # the neighbour of this file

CORPORA = Path(__file__).parents[2] / "rust" / "fuzz" / "corpus"

# The types in the order of the target `engine`, as far as libzmq has them without drafts.
TYPES = [
    *("PAIR", "PUB", "SUB", "REQ", "REP", "DEALER", "ROUTER", "PULL", "PUSH", "XPUB", "XSUB"),
    "STREAM",
]
# The types of the target `curve`.
CURVE_TYPES = ["PULL", "XPUB", "ROUTER", "PAIR"]
# Those whose messages count: the others receive none, and REQ only after it has sent.
RECEIVING = {"PAIR", "SUB", "REP", "DEALER", "ROUTER", "PULL", "XPUB", "XSUB", "STREAM"}
# Of this many inputs or more, three in four must be the same: otherwise something compares nothing.
ENOUGH = 50


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--runs", type=int, help="the number of inputs, instead of a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    try:
        sodium()
    except Missing as error:
        sys.exit(f"cannot compare: {error}")
    end = None if arguments.runs else time.monotonic() + arguments.seconds
    seen, wrong = compare(arguments.seed, arguments.runs, end, arguments.corpus)
    for verdict, count in seen.most_common():
        print(f"{count:6} {verdict}")
    sys.exit(1 if wrong else 0)


def compare(
    seed: int, runs: int | None, end: float | None, corpora: list[Path]
) -> tuple[Counter[str], list[str]]:
    """Compares inputs; returns how many there were of each verdict, and the differences that are not accepted."""
    chance = random.Random(seed)
    engine = inputs([CORPORA / "engine.corpus", *corpora])
    curve = inputs([CORPORA / "curve.corpus"])
    seen, wrong = Counter[str](), list[str]()
    ours, theirs = Library("zeroxide", serve), Library("zmq", serve)
    try:
        for given in map(defined, generate(engine, curve, chance)):
            count = sum(seen.values())
            if (runs is not None and count >= runs) or (end and time.monotonic() > end):
                break
            verdict = judge(given, ours, theirs)
            seen[verdict] += 1
            if verdict.startswith(("laxer", "different", "zeroxide")):
                results = f"zeroxide {ours.ask(given)}\n  libzmq   {theirs.ask(given)}"
                wrong.append(f"{verdict}: {given}\n  {results}")
                if len(wrong) <= 20:
                    print(wrong[-1], file=sys.stderr)
    finally:
        ours.close()
        theirs.close()
    if seen["same"] < 0.75 * sum(seen.values()) and sum(seen.values()) >= ENOUGH:
        wrong.append(f"too few results are the same: {dict(seen)}")
        print(wrong[-1], file=sys.stderr)
    return seen, wrong


def inputs(paths: list[Path]) -> list[bytes]:
    """The inputs of corpora."""
    lines = [line for path in paths for line in path.read_text().splitlines()]
    found = (line.encode().decode("unicode_escape").encode("latin-1") for line in lines)
    return [data for data in found if len(data) > 3]


def generate(engine: list[bytes], curve: list[bytes], chance: random.Random) -> Iterator[Input]:
    """The inputs of both corpora in a random order, and then changes of them without an end."""
    known = [(of_engine, data) for data in engine] + [(of_curve, data) for data in curve]
    chance.shuffle(known)
    for read, data in known:
        yield read(data)
    while True:
        (read, data), (_, other) = chance.choice(known), chance.choice(known)
        data = change(data, other, chance)
        if len(data) > 3:
            yield read(data)


def of_engine(data: bytes) -> Input:
    """An input of `engine`, whose second byte says the mechanism. Options are left out, and STREAM has no mechanism."""
    kind = TYPES[data[0] % 20 % len(TYPES)]
    return Input(kind, 0 if kind == "STREAM" else data[1] % 6, data[3:])


def of_curve(data: bytes) -> Input:
    """An input of `curve`, for the role of the server."""
    return Input(CURVE_TYPES[data[0] >> 1 & 3], 5, Conversation.of(data[1:]))


def judge(given: Input, ours: Library, theirs: Library) -> str:
    """Compares what both libraries make of an input. For zeroxide to be stricter, libzmq must agree with it about what is
    left of the input without a reason that is listed."""
    results = [library.ask(given) for library in (ours, theirs)]
    for name, result in zip(("zeroxide", "libzmq"), results, strict=True):
        if isinstance(result, str):
            return f"{name} {result}"
    mine, libzmq = (result for result in results if isinstance(result, Seen))
    if agree(given, mine, libzmq):
        return "same"
    for sentence, rest in remainders(given, mine):
        before = theirs.ask(rest)
        if isinstance(before, Seen) and agree(given, mine, before):
            return f"stricter: {sentence}"
    is_laxer = is_accepted(given, mine) > is_accepted(given, libzmq)
    return "laxer" if is_laxer else "different"


def agree(given: Input, mine: Seen, theirs: Seen) -> bool:
    is_same = is_accepted(given, mine) == is_accepted(given, theirs)
    return is_same and received(given, mine) == received(given, theirs)


def is_accepted(given: Input, seen: Seen) -> bool:
    """libzmq has events of handshakes for ZMTP 3 only."""
    data = given.sent
    is_current = not isinstance(data, bytes) or (data[:1] == b"\xff" and data[9:11] == b"\x7f\x03")
    return seen.succeeded if is_current and given.kind != "STREAM" else True


def received(given: Input, seen: Seen) -> list[list[bytes]]:
    if given.kind not in RECEIVING:
        return []
    if given.kind == "XPUB":
        # The end of a connection ends its subscriptions, which is seen before or after the last look.
        return [parts for parts in seen.messages if parts[0][:1] != b"\0"]
    return seen.messages


if __name__ == "__main__":
    main()
