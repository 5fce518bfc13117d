"""What `zeroxide top` watches: observable programs of this user, and collectors."""

import contextlib
import os
import re
import socket
import time
from collections.abc import Iterator
from typing import Any, Protocol

from ...constants import LINGER, REQ
from ...context import Context
from ...error import ZMQBaseError
from ...metrics import Snapshot, parse
from ...pipeline import Client
from ...poll import Poller
from ...socket import Socket

__all__ = ["ClientMaker", "Collector", "Program", "Watch", "discover", "endpoint_of", "is_program"]

PROTOCOL = b"zeroxide-observe/1"

# How long programs may take for an answer before they are shown as silent, unless the caller names
# another time, in seconds.
PATIENCE = 0.5

_FILE = re.compile(r"([0-9]+)\.sock")


class ClientMaker(Protocol):
    """Makes the client of a collector."""

    def __call__(self, endpoint: str) -> Client: ...


def endpoint_of(pid: str, folder: str) -> str:
    """The endpoint of a program whose observer uses this folder."""
    return f"ipc://{folder}/{pid}.sock"


def is_program(endpoint: str) -> bool:
    """Whether this is the endpoint of an observed program. Other endpoints are those of collectors."""
    return endpoint.startswith("ipc://") and bool(_FILE.fullmatch(os.path.basename(endpoint)))


def discover(folder: str) -> Iterator[str]:
    """The endpoints of the observable programs in a folder. Removes what killed programs have left."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for pid, name in sorted(
        (int(found[1]), found[0]) for found in map(_FILE.fullmatch, names) if found
    ):
        path = os.path.join(folder, name)
        if pid == os.getpid():
            continue
        if _may_answer(pid, path):
            yield f"ipc://{path}"
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _may_answer(pid: int, path: str) -> bool:
    """Whether a program may listen at a path. The number of one in a container is that of no process here."""
    if _lives(pid):
        return os.path.exists(path)
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # its backlog is full, or this user may not connect
            return True
    return True


def _lives(pid: int) -> bool:
    """Whether there is such a process. One that has ended, and whose parent has not noticed, is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


class Program:
    """An observed program, which answers requests one by one."""

    def __init__(self, context: Context[Any], endpoint: str, peers: int) -> None:
        self.endpoint = endpoint
        self.pid: int = int(os.path.basename(endpoint).partition(".")[0])
        self._request = [PROTOCOL, str(peers).encode()]
        self.snapshot: Snapshot | None = None
        self.problem: str | None = None
        self.is_asked: bool = False
        self.socket: Socket[Any] = context.socket(REQ)
        self.socket.set(LINGER, 0)
        self.socket.connect(endpoint)

    def ask(self) -> bool:
        """Requests a snapshot; False if the program still owes one."""
        if self.is_asked:
            return False
        self.socket.send_multipart(self._request)
        self.is_asked = True
        return True

    def take(self) -> None:
        """Receives the snapshot, which has arrived, or notes why it cannot be read."""
        self.is_asked = False
        try:
            self.snapshot = parse(self.socket.recv())
            self.problem = None
        except ValueError as error:
            self.problem = str(error)

    @property
    def is_gone(self) -> bool:
        """Whether it has closed its end of the connection, or can never be connected."""
        if int(self.socket.count_connected()):
            return False
        path = self.endpoint.removeprefix("ipc://")
        return self.snapshot is not None or not _may_answer(self.pid, path)

    def close(self) -> None:
        self.socket.close()


class Collector:
    """A collector, which is asked with a client."""

    def __init__(self, make_client: ClientMaker, endpoint: str) -> None:
        self.endpoint = endpoint
        self.stats: dict[str, Any] | None = None
        self.time: float = 0.0
        self.problem: str | None = None
        self._client = make_client(endpoint)

    def ask(self) -> None:
        """Takes its counters, or notes why it does not answer."""
        try:
            self.stats = dict(self._client.stats())
            self.time = time.monotonic()
            self.problem = None
        except ZMQBaseError as error:
            self.problem = str(error)

    def close(self) -> None:
        self._client.close()


class Watch:
    """The programs and collectors that are watched.

    Args:
        endpoints: Theirs; none stands for every observable program of this user.
        folder: Where observable programs are found.
        peers: The number of peers of each socket to ask for.
        make_client: Makes the clients of collectors.
    """

    def __init__(
        self, endpoints: list[str], folder: str, peers: int, make_client: ClientMaker
    ) -> None:
        self._context: Context[Any] = Context()
        self.finds: bool = not endpoints
        self._folder = folder
        self._peers = peers
        self.programs: list[Program] = [
            Program(self._context, endpoint, peers)
            for endpoint in endpoints
            if is_program(endpoint)
        ]
        self.collectors: list[Collector] = [
            Collector(make_client, endpoint) for endpoint in endpoints if not is_program(endpoint)
        ]
        self.ended: list[Program] = []

    def look(self, patience: float = PATIENCE) -> None:
        """Takes new snapshots. Programs that have ended move to `ended`.

        Args:
            patience: How long programs may take for their answers, in seconds.
        """
        if self.finds:
            known = {program.endpoint for program in self.programs}
            for endpoint in discover(self._folder):
                if endpoint not in known:
                    self.programs.append(Program(self._context, endpoint, self._peers))
        self._forget_ended()
        poller = Poller()
        waiting = {}
        for program in self.programs:
            # One that has become silent is not waited for.
            if program.ask() or program.snapshot is None:
                waiting[program.socket] = program
                poller.register(program.socket)
            elif program.socket.poll(0):
                program.take()
        deadline = time.monotonic() + patience
        while waiting and (left := deadline - time.monotonic()) > 0:
            for ready, _ in poller.poll(left * 1000):
                waiting.pop(ready).take()
                poller.unregister(ready)
        self._forget_ended()
        for collector in self.collectors:
            collector.ask()

    def _forget_ended(self) -> None:
        for program in [program for program in self.programs if program.is_gone]:
            self.programs.remove(program)
            if not self.finds:
                self.ended.append(program)
            program.close()

    @property
    def has_ended(self) -> bool:
        """Whether all programs that were named have ended, and nothing else is watched."""
        return not (self.finds or self.programs or self.collectors)

    def close(self) -> None:
        """Ends all connections."""
        for program in self.programs:
            program.close()
        for collector in self.collectors:
            collector.close()
        self._context.destroy(linger=0)
