"""An exception of a signal's handler, such as Ctrl-C, may end a call of a pattern's client before any bytecode."""

import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import PATIENCE, Background

from zeroxide import ROUTER, ZMQError, patterns
from zeroxide.patterns._clone_client import CloneClientMachine

pytestmark = [
    pytest.mark.zeroxide_only,
    # An exception between the call of a coroutine function and its `await`.
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),
]

FORMS = pytest.mark.parametrize("form", ["", "Async"], ids=["blocking", "asyncio"])

MODULES = str(Path(patterns.__file__).parent)


@contextlib.contextmanager
def interrupted(number: int) -> Iterator[None]:
    """Raises `KeyboardInterrupt` before one of the next bytecodes in the modules of the patterns, counted from 0."""
    left = number

    def trace(frame: Any, event: str, argument: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(MODULES):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.fixture
def echo(context):
    """A server that returns messages with `re:` before the last part, and those that begin with `late` at the second attempt."""
    server = context.socket(ROUTER)
    server.bind("inproc://echo")
    held: dict[bytes, list[bytes]] = {}

    def serve() -> None:
        with contextlib.suppress(ZMQError):
            while True:
                *envelope, body = server.recv_multipart()
                if body.startswith(b"late") and body not in held:
                    held[body] = envelope
                    continue
                for receiver in filter(None, (held.get(body), envelope)):
                    server.send_multipart([*receiver, b"re:" + body])

    serving = Background(serve)
    yield "inproc://echo"
    context.destroy(linger=0)
    serving.result()


@pytest.fixture
def freelance(context):
    with patterns.FreelanceServer("inproc://freelance", context=context) as server:
        serving = Background(server.run, lambda request: b"re:" + request[0])
        yield "inproc://freelance"
        server.stop()
        serving.result()


@pytest.fixture
def files(context, tmp_path):
    """A server of a file for each body, which has the reply in it."""
    with patterns.FileServer("inproc://files", tmp_path, context=context) as server:
        serving = Background(server.run)
        yield "inproc://files", tmp_path
        server.stop()
        serving.result()


def waited(result: Any) -> Any:
    """Returns what a call of the blocking form has returned, or what that of the asyncio form returns in a new loop."""
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


def check(ask: Callable[[bytes], list[bytes]], word: bytes, begin: Callable[[bool], None]) -> None:
    """Interrupts one request before each of its bytecodes, and checks the replies to the following ones."""
    for number in itertools.count():
        body = word + b"%d" % number
        begin(True)
        try:
            with interrupted(number):
                reply = ask(body)
        except KeyboardInterrupt:
            pass
        else:
            assert reply == [b"re:" + body]
            break
        begin(False)
        for following in (b"next %d" % number, b"next but one %d" % number):
            assert ask(following) == [b"re:" + following]
    assert number > 100, "a request has many bytecodes"


@pytest.mark.parametrize("word", [b"", b"late "], ids=["at once", "second attempt"])
@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("", "LazyPirate"),
        ("Async", "LazyPirate"),
        ("", "Failover"),
        ("", "BinaryStar"),
        ("", "Majordomo"),
        ("Async", "Majordomo"),
    ],
)
def test_an_interrupted_request_does_not_affect_the_next_ones(context, echo, form, kind, word):
    endpoint = [echo] if kind in ("Failover", "BinaryStar") else echo
    options = {"settle": 0} if kind == "BinaryStar" else {}
    service = ["service"] if kind == "Majordomo" else []
    client = getattr(patterns, f"{form}{kind}Client")(
        endpoint, timeout=60_000, attempts=None, context=context, **options
    )

    def begin(is_late: bool) -> None:
        client._machine._timeout = 1 if is_late and word else 60_000

    check(lambda body: waited(client.request(*service, body)), word, begin)
    client.close()


@FORMS
@pytest.mark.parametrize("kind", ["Freelance", "Shotgun"])
def test_an_interrupted_request_with_a_number_does_not_affect_the_next_ones(
    context, request, kind, form
):
    endpoint = request.getfixturevalue("freelance" if kind == "Freelance" else "echo")
    # A PING may be lost. The next one follows at once.
    options = {"ping": 1} if kind == "Freelance" else {}
    client = getattr(patterns, f"{form}{kind}Client")(
        [endpoint], timeout=60_000, context=context, **options
    )
    check(lambda body: waited(client.request(body)), b"", lambda is_first: None)
    client.close()


def test_an_interrupted_file_does_not_affect_the_next_ones(context, files):
    endpoint, folder = files
    client = patterns.FileClient(endpoint, chunk=10, pipeline=2, timeout=60_000, context=context)

    def fetch(body: bytes) -> list[bytes]:
        name = body.decode()
        (folder / name).write_bytes(b"re:" + body)
        client.download(name, folder / "copy")
        return [(folder / "copy").read_bytes()]

    check(fetch, b"", lambda is_first: None)
    client.close()


@FORMS
def test_an_interrupted_update_of_a_subtree_is_not_missing(context, form, monkeypatch):
    with (
        patterns.CloneServer("inproc://server", heartbeat=20, context=context) as server,
        patterns.CloneClient(["inproc://server"], resend=100, context=context) as writer,
    ):
        serving = Background(server.run)
        reader = getattr(patterns, f"{form}CloneClient")(
            ["inproc://server"], subtree="/a/", context=context
        )

        def until(values: dict[str, bytes]) -> None:
            deadline = time.monotonic() + PATIENCE
            while reader.values != values:
                assert time.monotonic() < deadline
                writer.wait(0)
                waited(reader.wait(20))

        writer.set("/a/1", b"one")
        until({"/a/1": b"one"})

        def fail(link: str, parts: list[bytes], now: float) -> None:
            if parts[0] == b"/a/2":
                monkeypatch.undo()
                raise KeyboardInterrupt
            CloneClientMachine.handle_message(reader._machine, link, parts, now)

        monkeypatch.setattr(reader._machine, "handle_message", fail)
        writer.set("/a/2", b"two")
        with pytest.raises(KeyboardInterrupt):
            until({"/a/1": b"one", "/a/2": b"two"})
        until({"/a/1": b"one", "/a/2": b"two"})
        reader.close()
        server.stop()
        serving.result()
