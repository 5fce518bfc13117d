"""What a row works with: processes under test, a well-behaved client, and the oracle that most rows share."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from .row import Failed, Skipped, check
from .subject import CallFailed, Subject

# The longest wait for something that will happen, in seconds, on a machine that runs other programs.
PATIENCE_S = 20.0
# The memory that a process may have gained once the fault is over.
GROWTH = 32 << 20
# A process is idle if it ran for no longer than this share of such a window, in seconds.
IDLE_WINDOW_S, IDLE_SHARE = 0.2, 0.05

ECHO = """
context = zmq.Context()
server = context.socket(zmq.ROUTER)
server.linger = 0
server.backlog = 4096
{options}
server.bind({bind!r})
endpoint = server.last_endpoint.decode()

def echo():
    while True:
        try:
            server.send_multipart(server.recv_multipart(copy={copy}), copy={copy})
        except zmq.ContextTerminated:
            return
        except (zmq.ZMQError, MemoryError):
            if server.closed:
                return

threading.Thread(target=echo, daemon=True).start()
endpoint
"""


class Bench:
    """Starts processes with the binding, and ends them.

    Attributes:
        module: The name of the binding.
        full: Whether the row runs at full size, instead of the size for `make test`.
        random: Decides everything that is random.
        remarks: What the report says about a row that passes.
    """

    def __init__(self, module: str, full: bool, seed: int) -> None:
        self.module = module
        self.full = full
        self.seed = seed
        self.random = random.Random(seed)
        self.remarks: list[str] = []
        self._subjects: list[Subject] = []
        self._numbers = itertools.count()

    @cached_property
    def zmq(self) -> Any:
        """The binding, in this process."""
        return importlib.import_module(self.module)

    @cached_property
    def context(self) -> Any:
        context = self.zmq.Context()
        context.linger = 0
        context.rcvtimeo = context.sndtimeo = int(PATIENCE_S * 1000)
        return context

    @cached_property
    def directory(self) -> Path:
        """An empty folder with a short name, for ipc."""
        return Path(tempfile.mkdtemp(prefix="zf"))

    def amount(self, quick: int, full: int) -> int:
        return full if self.full else quick

    def subject(self, module: str | None = None, **given: Any) -> Subject:
        """Starts a process with the binding, or with another one."""
        self._subjects.append(Subject(module or self.module, **given))
        return self._subjects[-1]

    def needs(self, *names: str) -> None:
        """Skips a row about something that the binding does not have."""
        for name in names:
            if not hasattr(self.zmq, name):
                raise Skipped(f"{self.module} has no {name}")

    def needs_descriptors(self, count: int) -> None:
        """Skips a row where a process may not have this many descriptors."""
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most != resource.RLIM_INFINITY and most < count:
            raise Skipped(f"needs {count} descriptors, and {most} are allowed")

    def needs_option(self, name: str) -> None:
        """Fails a row that asks for a limit that the binding does not have."""
        check(hasattr(self.zmq, name), f"{self.module} has no limit for it ({name})")

    def other(self) -> str:
        """Another binding, for the other end of a connection."""
        other = "zmq" if self.module == "zeroxide" else "zeroxide"
        try:
            importlib.import_module(other)
        except ImportError:
            raise Skipped(f"{other} is not installed") from None
        return other

    def end(self) -> None:
        for subject in self._subjects:
            with contextlib.suppress(Exception):
                subject.kill()
        if "context" in self.__dict__:
            self.context.destroy(linger=0)
        if "directory" in self.__dict__:
            shutil.rmtree(self.directory, ignore_errors=True)

    # -- the oracle

    def until(self, condition: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> Any:
        """Waits for a condition that causes no event.

        Raises:
            Failed: With `what`, if it does not become true.
        """
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise Failed(f"{what}, after {seconds:g} s")
            time.sleep(0.005)
        return value

    def idle(self, subject: Subject) -> None:
        """Waits until a process has nothing to do."""

        def rests() -> bool:
            before = subject.processor_time()
            time.sleep(IDLE_WINDOW_S)
            return subject.processor_time() - before < IDLE_WINDOW_S * IDLE_SHARE

        self.until(rests, "the idle process uses more than 5 % of a processor")

    def counted(self, subject: Subject, counters: str, *reasons: str) -> None:
        """Waits until one of these reasons has been counted; `counters` is the socket in the process."""
        if subject.run(f"not hasattr({counters}, 'stats')"):
            self.remarks.append("not counted")
            return

        def rises() -> bool:
            dropped = subject.run(f"{counters}.stats()['dropped']")
            return any(dropped[reason] for reason in reasons)

        self.until(rises, f"{' or '.join(reasons)} is not counted")

    def echo(self, options: str = "", **given: Any) -> Scene:
        return Scene(self, options, **given)


class Scene:
    """A server that echoes, in its own process, and a client that was connected before the fault."""

    def __init__(
        self,
        bench: Bench,
        options: str = "",
        client: dict[str, Any] | None = None,
        copy: bool = True,
        bind: str = "tcp://127.0.0.1:*",
        **given: Any,
    ) -> None:
        self.bench = bench
        self.subject = bench.subject(**given)
        self.endpoint = self.subject.run(ECHO.format(options=options, copy=copy, bind=bind))
        self._options = client or {}
        self.client = self.connect()
        # Whatever is made at the first use exists before anything is counted.
        self.exchange(self.client)
        self.newcomer()
        self._descriptors = self.settled()
        self._memory = self.subject.memory()

    def settled(self) -> int:
        """The descriptors once the newcomer's is closed."""
        before = self.subject.descriptors()
        deadline = time.monotonic() + 0.2
        while time.monotonic() < deadline and self.subject.descriptors() == before:
            time.sleep(0.005)
        return self.subject.descriptors()

    def connect(self, endpoint: str | None = None, **options: Any) -> Any:
        client = self.bench.context.socket(self.bench.zmq.DEALER)
        for name, value in (self._options | options).items():
            setattr(client, name, value)
        client.connect(endpoint or self.endpoint)
        return client

    def exchange(self, client: Any, count: int | None = None) -> None:
        """Sends messages and receives their echoes."""
        deadline = time.monotonic() + self.bench.amount(int(PATIENCE_S), 5)
        for number in range(count or self.bench.amount(300, 1000)):
            body = b"%d" % number
            try:
                client.send(body)
                echo = client.recv()
            except self.bench.zmq.Again:
                raise Failed(f"a well-behaved client is not served: {self.fate()}") from None
            check(echo == body, f"{echo[:40]!r} instead of {body!r}")
            check(time.monotonic() < deadline, "a well-behaved client is served too slowly")

    def fate(self) -> str:
        return "the server is alive" if self.subject.alive() else self.subject.end_of_life()

    def newcomer(self) -> None:
        """A client connects, is served, and leaves."""
        client = self.connect()
        self.exchange(client)
        client.close()

    def others_are_served(self) -> None:
        """During the fault."""
        self.exchange(self.client)
        self.newcomer()

    def grown(self) -> int:
        """How much memory the process has gained, in bytes."""
        return self.subject.memory() - self._memory

    def ends_well(self, growth: int = GROWTH) -> None:
        """The fault is over: everything is as it was before, and the process ends."""
        self.others_are_served()
        self.bench.until(
            lambda: self.subject.descriptors() <= self._descriptors, "descriptors stay open"
        )
        self.bench.until(
            lambda: self.grown() <= growth, f"{growth >> 20} MiB of memory stay in use"
        )
        self.bench.idle(self.subject)
        self.client.close()
        self.subject.run("server.close()\ncontext.term()" if self.thread_safe() else "None")
        if self.thread_safe():
            self.subject.end()

    def thread_safe(self) -> bool:
        """Whether a socket may be closed while another thread uses it."""
        return self.bench.module == "zeroxide"

    def stats(self) -> dict[str, Any] | None:
        try:
            return self.subject.run("server.stats()")
        except CallFailed:
            return None
