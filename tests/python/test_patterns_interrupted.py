"""An exception of a signal's handler, such as Ctrl-C, may end a call of the patterns before any bytecode."""

import asyncio
import contextlib
import itertools
import sys
import threading
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

# Python calls no handler of a signal between the acquisition of a lock and the `with` block that releases it, but a
# function that traces bytecodes.
LOCKING = ("prepare_stop", "_empty_wake")


@contextlib.contextmanager
def interrupted(number: int) -> Iterator[None]:
    """Raises `KeyboardInterrupt` before one of the next bytecodes in the modules of the patterns, counted from 0."""
    left = number

    def trace(frame: Any, event: str, argument: object) -> Any:
        nonlocal left
        code = frame.f_code
        if not code.co_filename.startswith(MODULES) or code.co_name in LOCKING:
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


# ---- workers ------------------------------------------------------------------------

WORKERS = pytest.mark.parametrize("kind", ["Majordomo", "ParanoidPirate", "SimplePirate"])


@contextlib.contextmanager
def queue(kind: str, context: Any, **options: Any) -> Iterator[tuple[Any, Callable[..., Any]]]:
    """Runs a queue; yields a client of it, and a function that opens workers. No heartbeat is due in the test."""
    beats = {} if kind == "SimplePirate" else {"heartbeat": 60_000}
    options = {"attempts": None, "context": context} | options
    if kind == "Majordomo":
        server = patterns.MajordomoBroker("inproc://clients", context=context, **beats)
        client: Any = patterns.MajordomoClient("inproc://clients", **options)
        arguments = ["inproc://clients", "service"]
    else:
        ends = ["inproc://clients", "inproc://workers"]
        server = getattr(patterns, f"{kind}Queue")(*ends, context=context, **beats)
        client = patterns.LazyPirateClient("inproc://clients", **options)
        arguments = ["inproc://workers"]
    with server, client:
        serving = Background(server.run)
        yield (
            client,
            lambda form="": getattr(patterns, f"{form}{kind}Worker")(
                *arguments, context=context, **beats
            ),
        )
        server.stop()
        serving.result()


def request(client: Any, body: bytes) -> list[bytes]:
    service = ["service"] if isinstance(client, patterns.MajordomoClient) else []
    reply: list[bytes] = client.request(*service, body)
    return reply


def answer(request: Any) -> bytes:
    return b"re:" + getattr(request, "parts", request)[0]


@WORKERS
def test_a_worker_whose_handler_failed_runs_again(context, kind):
    requests: list[object] = []

    def fail_once(request: Any) -> bytes:
        requests.append(request)
        if len(requests) == 1:
            raise ValueError("one bad request")
        return answer(request)

    with queue(kind, context, timeout=200) as (client, open_worker), open_worker() as worker:
        asking = Background(request, client, b"one")
        with pytest.raises(ValueError, match="one bad request"):
            worker.run(fail_once)
        running = Background(worker.run, fail_once)
        assert asking.result() == [b"re:one"]
        assert request(client, b"two") == [b"re:two"]
        worker.stop()
        running.result()


@WORKERS
def test_a_worker_whose_task_was_cancelled_runs_again(context, kind):
    async def main(client: Any, worker: Any) -> None:
        called = asyncio.Event()

        async def hang(request: Any) -> bytes:
            called.set()
            await asyncio.Event().wait()
            return b""

        async def answer_async(request: Any) -> bytes:
            return answer(request)

        asking = asyncio.create_task(asyncio.to_thread(request, client, b"one"))
        running = asyncio.create_task(worker.run(hang))
        await called.wait()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        running = asyncio.create_task(worker.run(answer_async))
        assert await asyncio.wait_for(asking, PATIENCE) == [b"re:one"]
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        worker.close()

    with queue(kind, context, timeout=200) as (client, open_worker):
        asyncio.run(main(client, open_worker("Async")))


def test_a_broker_gives_the_request_of_a_failed_worker_to_another_one(context):
    """At once: the client does not ask again, and no worker is silent for too long."""
    with (
        queue("Majordomo", context, timeout=60_000, attempts=1) as (client, open_worker),
        open_worker() as first,
        open_worker() as second,
    ):
        asking = Background(request, client, b"one")
        with pytest.raises(ZeroDivisionError):
            first.run(lambda request: 1 // 0)
        running = Background(second.run, answer)
        assert asking.result() == [b"re:one"]
        second.stop()
        running.result()


@pytest.mark.parametrize(
    ("kind", "step"), [("Majordomo", 1), ("ParanoidPirate", 31), ("SimplePirate", 31)]
)
def test_an_interrupted_worker_runs_again(context, kind, step):
    with queue(kind, context, timeout=100) as (client, open_worker), open_worker() as worker:

        def ask(body: bytes, done: threading.Event) -> list[bytes]:
            reply = request(client, body)
            done.set()
            worker.stop()
            return reply

        is_interrupted = True
        for number in itertools.count(0, step):
            done = threading.Event()
            asking = Background(ask, b"%d" % number, done)
            try:
                with interrupted(number):
                    while not done.is_set():
                        worker.run(answer)
                is_interrupted = False
            except KeyboardInterrupt:
                while not done.is_set():
                    worker.run(answer)
            assert asking.result() == [b"re:%d" % number]
            if not is_interrupted:
                break
        assert number > 100, "a request has many bytecodes"
