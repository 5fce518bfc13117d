"""Helpers for several tests."""

import itertools
import os
import socket as tcp
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

_numbers = itertools.count()
_ports = itertools.count()

# How long to wait for an event that will happen. This is not a claim about speed: it must suffice on a machine that
# runs twenty other programs, and twice this time must fit into the two minutes that a test may take.
PATIENCE = 50.0


class Sockets:
    """Makes endpoints and connected pairs of sockets."""

    def __init__(self, zmq: ModuleType, context: Any, directory: Path) -> None:
        self.zmq = zmq
        self.context = context
        self.directory = directory

    def endpoint(self, transport: str = "tcp") -> str:
        """A new endpoint to bind, different at each call."""
        if transport in ("tcp", "ws", "tls+tcp", "wss"):
            return f"{transport}://127.0.0.1:*"
        if transport == "ipc":
            return f"ipc://{self.directory}/{next(_numbers)}"
        return f"inproc://test-{next(_numbers)}"

    def bound(self, kind: int, transport: str = "tcp", **options: Any) -> Any:
        """A bound socket; `last_endpoint` is its address."""
        socket = self.context.socket(kind)
        for name, value in options.items():
            setattr(socket, name, value)
        socket.bind(self.endpoint(transport))
        return socket

    def connected(self, kind: int, peer: Any, **options: Any) -> Any:
        """A socket connected to a bound one."""
        socket = self.context.socket(kind)
        for name, value in options.items():
            setattr(socket, name, value)
        socket.connect(peer.last_endpoint.decode())
        return socket

    def pair(self, bound: int, connected: int, transport: str = "tcp") -> tuple[Any, Any]:
        one = self.bound(bound, transport)
        return one, self.connected(connected, one)


def lasting_endpoint() -> str:
    """A tcp address for tests that bind it repeatedly.

    Its port is not among those that the system assigns, so no other program gets it in between.
    """
    while True:
        port = 10_000 + (os.getpid() * 61 + next(_ports)) % 20_000
        with tcp.socket() as probe:
            probe.setsockopt(tcp.SOL_SOCKET, tcp.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return f"tcp://127.0.0.1:{port}"


def free_udp_port() -> int:
    """Returns a UDP port that no other program uses now."""
    with tcp.socket(tcp.AF_INET, tcp.SOCK_DGRAM) as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port


def attend(zmq: ModuleType, *sockets: Any) -> None:
    """Lets sockets do background work although the test makes no calls on them.

    libzmq forwards subscriptions, closes connections and notices free room only during
    calls on the socket. zeroxide does not need this.
    """
    for socket in sockets:
        if zmq.__name__ == "zmq" or getattr(socket, "of_libzmq", False):
            socket.get(zmq.EVENTS)


def synchronise(publisher: Any, subscriber: Any, topic: bytes = b"") -> None:
    """Publishes on `topic` until a message arrives, and receives all of these messages."""
    for number in itertools.count():
        publisher.send_multipart([topic, b"synchronise", b"%d" % number])
        if subscriber.poll(20):
            break
    while subscriber.recv_multipart()[-1] != b"%d" % number:
        pass


def eventually(condition: Any, patience: float = PATIENCE) -> Any:
    """Waits for a condition that causes no event; returns its value when it is true."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)
    return value


class Background(threading.Thread):
    """Runs a function; `result` waits for it and raises its exception."""

    def __init__(self, function: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(daemon=True)
        self._call = (function, args, kwargs)
        self._outcome: tuple[bool, Any] | None = None
        self.start()

    def run(self) -> None:
        function, args, kwargs = self._call
        try:
            self._outcome = (True, function(*args, **kwargs))
        except BaseException as error:
            self._outcome = (False, error)

    def result(self) -> Any:
        self.join(PATIENCE)
        assert self._outcome is not None, "the thread does not end"
        succeeded, value = self._outcome
        if not succeeded:
            raise value
        return value


def bind_once_free(zmq: ModuleType, socket: Any, endpoint: str) -> None:
    """Binds a name that another socket has released: free at once, or when its I/O thread has processed the release."""

    def bound() -> bool:
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            assert error.errno == zmq.EADDRINUSE
            return False
        return True

    eventually(bound)


def start_script(
    module: str, source: str, *arguments: str, first: str = "", **options: Any
) -> subprocess.Popen:
    """Starts Python on `source`, in which the module under test is `zmq`; `first` runs before its import."""
    code = f"{first}\nimport {module} as zmq\n{textwrap.dedent(source)}"
    # The folder of this module, for scripts that import it.
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        **options,
    )


def finish_script(process: subprocess.Popen, *statuses: int) -> tuple[str, str]:
    """Waits for the end with status 0, or one of the given ones; returns stdout and stderr."""
    try:
        output, errors = process.communicate(timeout=PATIENCE * 2)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        raise AssertionError(f"the script does not end\n{output}\n{errors}") from None
    assert process.returncode in (statuses or (0,)), (
        f"status {process.returncode}\n{output}\n{errors}"
    )
    return output, errors


def run_script(module: str, source: str, *arguments: str) -> tuple[str, str]:
    """Runs a script and expects success."""
    return finish_script(start_script(module, source, *arguments))
