"""Sockets of another process, driven from the test by remote calls.

The other process runs the real libzmq, through pyzmq. Run as a program, this file is
that process; imported, it is the test's side of the connection.
"""

import contextlib
import importlib
import itertools
import os
import signal
import subprocess
import sys
from multiprocessing.connection import Connection, Pipe
from typing import Any


class RemoteError(Exception):
    """The exception of the remote call; `errno` is that of a ZMQError."""

    def __init__(self, text: str, errno: int | None) -> None:
        super().__init__(text, errno)
        self.errno = errno


class Peer:
    """A process with sockets in it."""

    def __init__(self, module: str = "zmq") -> None:
        self._connection, theirs = Pipe()
        # Output of the process, if any, is part of the test's output.
        self._process = subprocess.Popen(
            [sys.executable, __file__, module, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._numbers = itertools.count()

    @property
    def pid(self) -> int:
        return self._process.pid

    def socket(self, kind: int, **options: Any) -> "RemoteSocket":
        """Creates a socket in the other process, with options by name."""
        number = next(self._numbers)
        self.call(None, "socket", number, int(kind), options)
        return RemoteSocket(self, number, kind)

    def call(self, number: int | None, method: str, *arguments: Any, **named: Any) -> Any:
        """Calls and waits for the result."""
        self.start(number, method, *arguments, **named)
        return self.result()

    def start(self, number: int | None, method: str, *arguments: Any, **named: Any) -> None:
        """Begins a call; call `result` before the next one."""
        self._connection.send((number, method, arguments, named))

    def result(self) -> Any:
        """The result of the call begun last."""
        if not self._connection.poll(60):
            raise AssertionError(f"process {self.pid} does not answer")
        succeeded, value = self._connection.recv()
        if not succeeded:
            raise RemoteError(*value)
        return value

    def freeze(self) -> None:
        """Stops the process; its connections stay."""
        os.kill(self.pid, signal.SIGSTOP)
        # The signal was sent but may not have taken effect: the parent is notified of the stop.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kills the process, so that it cannot close its connections."""
        self._process.kill()
        self._process.wait()
        self._connection.close()

    def close(self) -> None:
        """Ends the process normally."""
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._connection.send(None)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        self._connection.close()


class RemoteSocket:
    """Represents a socket of another process; calls wait for their results."""

    of_libzmq = True

    def __init__(self, peer: Peer, number: int, kind: int) -> None:
        self._peer = peer
        self._number = number
        self.type = kind

    def __getattr__(self, method: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            return self._peer.call(self._number, method, *arguments, **named)

        return call

    @property
    def last_endpoint(self) -> bytes:
        return self.get(32)


def serve(module: str, descriptor: int) -> None:
    """Runs commands until the command to end, or until the test is gone."""
    zmq = importlib.import_module(module)
    connection = Connection(descriptor)
    context = zmq.Context()
    sockets: dict[int, Any] = {}

    def make(number: int, kind: int, options: dict[str, Any]) -> None:
        socket = sockets[number] = context.socket(kind)
        socket.linger = 0
        socket.rcvtimeo = socket.sndtimeo = 30_000
        for name, value in options.items():
            setattr(socket, name, value)

    guards: list[Any] = []

    def authenticate(passwords: dict[str, str] | None) -> None:
        """A ZAP handler that knows these users and accepts any key; replaces the previous one."""
        while guards:
            guards.pop().stop()
        if passwords is not None:
            auth = importlib.import_module(f"{module}.auth.thread")

            class Nameless(auth.ThreadAuthenticator):  # type: ignore[name-defined, misc]
                """Names no user: libzmq's REQ accepts no message from a peer with a User-Id."""

                def _send_zap_reply(self, number: Any, code: Any, text: Any, *_: Any) -> None:
                    super()._send_zap_reply(number, code, text, "")

            guards.append(Nameless(context))
            guards[-1].start()
            guards[-1].configure_plain(passwords=passwords)
            guards[-1].configure_curve(location="*")

    # Commands that are not methods of a socket.
    own = {"socket": make, "authenticate": authenticate}

    def plain(value: Any) -> Any:
        # Context managers of bind and connect stay here.
        return value if isinstance(value, (int, bytes, list, str)) else None

    while True:
        try:
            request = connection.recv()
        except EOFError:
            break
        if request is None:
            break
        number, method, arguments, named = request
        try:
            call = own[method] if number is None else getattr(sockets[number], method)
            answer = (True, plain(call(*arguments, **named)))
        except Exception as error:
            answer = (False, (f"{method}: {error!r}", getattr(error, "errno", None)))
        connection.send(answer)
    authenticate(None)
    context.destroy(linger=0)


if __name__ == "__main__":
    # Ctrl-C is for the test, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.argv[1], int(sys.argv[2]))
