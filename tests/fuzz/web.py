"""Fuzzes the parts of the collector's HTTP server that parse: heads of requests, their queries, and bodies.

`rust/fuzz` has the other targets. Here, the interpreter's trace function shows which lines an input reaches. The inputs
run on a small stack, and in a process that may hardly grow. `rust/fuzz/corpus/http.corpus` has the inputs that reach the
known lines. A test replays them, and runs the program briefly.

    python tests/fuzz/web.py --seconds 60 --seed 1 [--keep]
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from zeroxide.collector import pieces, request
from zeroxide.collector.request import Request, Wrong

CORPUS = Path(__file__).parents[2] / "rust" / "fuzz" / "corpus" / "http.corpus"
# The stack on which inputs run, and the calls that fit on it; and what the process may grow by.
STACK, DEPTH = 256 << 10, 60
ROOM = 64 << 20

SEEDS = [
    b"0GET / HTTP/1.1\r\nHost: localhost:8080",
    b"0POST /pub?topic=T&key=K HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue",
    b"0GET http://h/stats?a=%41 HTTP/1.0\r\nConnection: close\r\nAuthorization: Bearer x",
    b"0POST /mpub HTTP/1.1\r\nHost: [::1]:80\r\nTransfer-Encoding: chunked",
    b"1one\ntwo\n\nthree",
    b"2\0\0\0\2\0\0\0\3one\0\0\0\0",
]
WORDS = [
    *(
        b"\r\n",
        b": ",
        b"Host: ",
        b"Content-Length: ",
        b"Transfer-Encoding: chunked",
        b"Connection: ",
    ),
    *(
        b"+1",
        b"-1",
        b"0x1",
        b"1_0",
        b"Expect: 100-continue",
        b"HTTP/1.0",
        b"http://",
        b"%00",
        b"%ff",
        b"?",
        b"&",
        b"=",
        b"\0\0\0\1",
        b"\xff\xff\xff\xff",
    ),
]


def run(data: bytes) -> None:
    """Feeds an input: its first byte selects what it is."""
    kind, rest = data[:1], data[1:]
    if kind == b"1":
        body(pieces.Lines, rest)
    elif kind == b"2":
        body(pieces.Counted, rest)
    else:
        head(rest)


def head(data: bytes) -> None:
    try:
        parsed = request.parse(data)
    except Wrong:
        return
    with suppress(Wrong):
        parsed.parameters("topic", "key")
    assert 0 <= parsed.length < 10**18
    assert parsed.path.startswith("/")
    assert "\n" not in parsed.path + parsed.query + parsed.host
    # A proxy that reads the same request, and writes it as it understood it, must not change its meaning.
    first = data.removeprefix(b"\r\n").partition(b"\r\n")[0]
    version = "1.1" if first.endswith(b"1.1") else "1.0"
    again = request.parse(written(parsed, version))
    assert (again.length, again.is_kept, again.waits) == (
        parsed.length,
        parsed.is_kept,
        parsed.waits,
    )
    assert (again.method, again.path, again.query) == (parsed.method, parsed.path, parsed.query)


def written(parsed: Request, version: str) -> bytes:
    query = f"?{parsed.query}" if parsed.query else ""
    lines = [f"{parsed.method} {parsed.path}{query} HTTP/{version}"]
    if parsed.host:
        lines.append(f"host: {parsed.host}")
    lines += [
        f"{name}: {value}"
        for name, values in parsed.fields.items()
        if name != "host"
        for value in values
    ]
    return "\r\n".join(lines).encode("latin-1")


def body(reader: Callable[[], Any], data: bytes) -> None:
    """The same messages, however the body is cut, and whenever complete messages are taken."""
    whole = messages(reader(), [data])
    for size in (1, 3):
        assert (
            messages(reader(), [data[at : at + size] for at in range(0, len(data), size)]) == whole
        )


def messages(reader: Any, chunks: list[bytes]) -> list[bytes] | None:
    found: list[bytes] = []
    fed = 0
    try:
        for chunk in chunks:
            reader.add(chunk)
            fed += len(chunk)
            found += reader.take()
            assert reader.size <= fed
        return found + reader.finish()
    except Wrong:
        return None


class Lines:
    """The lines of the parsers that have been reached."""

    FILES = frozenset({pieces.__file__, request.__file__})

    def __init__(self) -> None:
        self.seen: set[tuple[str, int, int]] = set()
        self._last = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._line if frame.f_code.co_filename in self.FILES else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        # Pairs of lines show branches.
        self.seen.add((frame.f_code.co_name, self._last, frame.f_lineno))
        self._last = frame.f_lineno
        return self._line


def change(data: bytes, other: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(6):
            case 0 if at < len(changed):
                changed[at] ^= 1 << chance.randrange(8)
            case 1:
                del changed[at : at + chance.randrange(1, 9)]
            case 2:
                changed[at:at] = chance.choice(WORDS)
            case 3:
                changed[at:at] = chance.randbytes(chance.randrange(1, 5))
            case 4:
                start = chance.randrange(len(other) + 1)
                changed[at:at] = other[start : start + chance.randrange(1, 40)]
            case _:
                changed[at:at] = changed[at : at + 20] * chance.randrange(1, 4)
    return bytes(changed[:2000])


def kept() -> list[bytes]:
    """The inputs of the corpus, one a line, escaped as in Rust."""
    lines = CORPUS.read_text().splitlines() if CORPUS.exists() else []
    return [line.encode().decode("unicode_escape").encode("latin-1") for line in lines]


def keep(inputs: list[bytes]) -> None:
    """Replaces the corpus."""
    escaped = (repr(data)[2:-1].replace("\\'", "'") for data in inputs)
    CORPUS.write_text("".join(f"{line}\n" for line in escaped))


def limited(work: Callable[[], None]) -> None:
    """Does the work on a small stack, in a process that can hardly grow from now on.

    Raises:
        BaseException: What the work has raised.
    """
    found: list[BaseException] = []

    def guarded() -> None:
        sys.setrecursionlimit(DEPTH)
        try:
            work()
        except BaseException as error:
            found.append(error)

    threading.stack_size(STACK)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, resource.RLIM_INFINITY))
    thread = threading.Thread(target=guarded)
    depth = sys.getrecursionlimit()
    thread.start()
    thread.join()
    sys.setrecursionlimit(depth)
    if found:
        raise found[0]


def fuzz(
    seed: int, *, runs: int | None = None, seconds: float | None = None
) -> tuple[int, list[bytes], int]:
    """Replays the corpus, and changes inputs until one of the limits.

    Returns:
        The number of runs, the inputs that reached something new, and the number of pairs of lines.
    """
    chance = random.Random(seed)
    lines, known, corpus, count = Lines(), SEEDS + kept(), list[bytes](), 0
    end = None if seconds is None else time.monotonic() + seconds
    while (runs is None or count < runs) and (end is None or time.monotonic() < end):
        data = (
            known[count]
            if count < len(known)
            else change(chance.choice(corpus), chance.choice(corpus), chance)
        )
        before = len(lines.seen)
        try:
            with lines.watching():
                run(data)
        except BaseException as error:
            error.add_note(f"input: {data!r}")
            raise
        count += 1
        if len(lines.seen) > before:
            corpus.append(data)
    return count, corpus, len(lines.seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--runs", type=int, help="the number of inputs, instead of a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="replace the corpus")
    arguments = parser.parse_args()

    def work() -> None:
        seconds = None if arguments.runs else arguments.seconds
        count, inputs, pairs = fuzz(arguments.seed, runs=arguments.runs, seconds=seconds)
        if arguments.keep:
            keep(inputs)
        print(f"http: {count} runs, {pairs} pairs of lines, {len(inputs)} inputs kept, 0 finds")

    limited(work)


if __name__ == "__main__":
    main()
