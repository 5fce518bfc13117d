"""An authenticator in a separate thread."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from .. import Context, Poller, Socket, _checks
from .. import asyncio as _zmq_asyncio
from .._exports import exports_only
from ..constants import ENOTSOCK, ENOTSUP, ETERM, NOBLOCK, PAIR, POLLIN
from ..error import Again, ZMQError
from .base import Authenticator

__all__ = ["AuthenticationThread", "Authenticator", "ThreadAuthenticator"]


def __dir__() -> list[str]:
    return exports_only(globals())


def _threads_are_greenlets() -> bool:
    """Whether gevent has replaced the system's threads with its own."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and monkey.is_module_patched("threading")


class AuthenticationThread(Thread):
    """The thread of a `ThreadAuthenticator`.

    Args:
        authenticator: The authenticator, started.
        pipe: A PAIR socket. The message ``TERMINATE`` on it ends the thread, which then closes it.

    Raises:
        TypeError: `authenticator` is not an authenticator.
        RuntimeError: It is not started.

    Source:
        pyzmq's ``zmq.auth.thread.AuthenticationThread``
    """

    authenticator: Authenticator
    pipe: "Socket[Any] | None"
    """The thread's end of `ThreadAuthenticator.pipe`; None once the thread has ended."""
    started: Event
    """Set once the thread answers requests, or cannot begin to."""
    log: Any
    """The logger of the authenticator."""

    def __init__(self, authenticator: Authenticator, pipe: "Socket[Any] | None" = None) -> None:
        if not isinstance(authenticator, Authenticator):
            raise TypeError(
                f"authenticator takes an Authenticator, not {_checks.shown(authenticator)}"
            )
        if authenticator.zap_socket is None:
            raise RuntimeError("this authenticator is not started; call its start() first")
        super().__init__(daemon=True, name="zeroxide-auth")
        self.authenticator = authenticator
        self.log = authenticator.log
        self.pipe = pipe
        self.started = Event()
        self._failure: Exception | None = None
        self._requests = authenticator.zap_socket
        self._commands = pipe
        self._is_greenlet = _threads_are_greenlets()
        if self._is_greenlet:
            from .. import green

            self._requests = green.Socket(shadow=authenticator.zap_socket)
            self._commands = pipe and green.Socket(shadow=pipe)

    def stop(self) -> None:
        """Closes the sockets, and waits for the thread to end."""
        if self._commands is not None:
            self._commands.close()
        self._requests.close()
        self.join()

    def run(self) -> None:
        """Answers requests until the socket is closed, or ``TERMINATE`` arrives."""
        try:
            self._answer()
        except Exception as error:
            if self.started.is_set():
                raise
            self._failure = error
        finally:
            self.started.set()
            if self._commands is not None:
                self._commands.close()
            self.pipe = None

    def _answer(self) -> None:
        with asyncio.Runner() as runner:
            if self._is_greenlet:
                self._answer_in_greenlet(runner)
                return
            loop = runner.get_loop()
            serving = loop.create_task(self._serve())
            while not serving.done():
                # A task of a provider that calls sys.exit() would end this thread only, and without a word.
                with suppress(SystemExit):
                    loop.run_until_complete(serving)

    async def _serve(self) -> None:
        """Answers in a loop that also runs the tasks of providers between requests."""
        poller: _zmq_asyncio.Poller[Any] = _zmq_asyncio.Poller()
        sockets = self._sockets()
        for socket in sockets:
            poller.register(_zmq_asyncio.Socket(shadow=socket), POLLIN)
        self.started.set()
        with _ends_with_socket():
            while True:
                await poller.poll()
                if self._is_told_to_end():
                    return
                with suppress(Again):
                    request = self._requests.recv_multipart(NOBLOCK)
                    await self.authenticator._answer_apart(request)

    def _answer_in_greenlet(self, runner: asyncio.Runner) -> None:
        """Answers without a loop between requests, because a loop would block the other greenlets."""
        from .. import green

        poller: Poller[Any] = green.Poller()
        for socket in self._sockets():
            poller.register(socket, POLLIN)
        self.started.set()
        is_alone = self._commands is None
        with _ends_with_socket():
            while True:
                # A poll does not end when a socket is closed, but a call that receives does.
                if not is_alone:
                    poller.poll()
                    if self._is_told_to_end():
                        return
                with suppress(Again):
                    request = self._requests.recv_multipart(0 if is_alone else NOBLOCK)
                    with suppress(SystemExit):
                        runner.run(self.authenticator._answer_apart(request))

    def _sockets(self) -> "list[Socket[Any]]":
        return [self._requests, *([] if self._commands is None else [self._commands])]

    def _is_told_to_end(self) -> bool:
        commands = self._commands
        if commands is None:
            return False
        with suppress(Again):
            command = commands.recv_multipart(NOBLOCK)
            if command[0] == b"TERMINATE":
                return True
            self.log.error("Invalid command to the authenticator: %r", command)
            commands.send(b"ERROR", NOBLOCK)
        return False


@contextmanager
def _ends_with_socket() -> Iterator[None]:
    try:
        yield
    except asyncio.CancelledError:
        pass  # so a poll ends if a socket is closed
    except ZMQError as error:
        # A poll that begins later raises ENOTSUP.
        if error.errno not in (ENOTSOCK, ENOTSUP, ETERM):
            raise


class ThreadAuthenticator(Authenticator):
    """An `Authenticator` that answers from a thread.

    Its settings can be changed at any time, from any thread.

    Args:
        context: The context whose sockets ask; None for ``Context.instance()``.
        encoding: The encoding of domains, addresses, user names and passwords.
        log: A logger; None for ``logging.getLogger("zmq.auth")``.

    Example:
        >>> from zeroxide.auth.thread import ThreadAuthenticator
        >>> authenticator = ThreadAuthenticator(context)
        >>> authenticator.start()
        >>> authenticator.configure_plain(passwords={"alice": "secret"})
        >>> authenticator.stop()

    Source:
        27/ZAP, section "Message Format"; pyzmq's ``zmq.auth.thread.ThreadAuthenticator``
    """

    thread: AuthenticationThread | None
    """The thread; None while the authenticator is stopped."""
    pipe: "Socket[Any] | None"
    """A PAIR socket to the thread; None while the authenticator is stopped."""
    pipe_endpoint: str
    """The address that `pipe` is bound to while the authenticator runs."""

    def __init__(
        self,
        context: "Context[Any] | None" = None,
        encoding: str = "utf-8",
        log: Any = None,
    ) -> None:
        super().__init__(context=context, encoding=encoding, log=log)
        self.thread = None
        self.pipe = None
        self.pipe_endpoint = f"inproc://{id(self)}.inproc"

    def start(self) -> None:
        """Starts the thread.

        Raises:
            ZMQError: ``EADDRINUSE`` if the context has an authenticator already.
            OSError: The system has no descriptors or no memory left.
        """
        super().start()
        opened: list[Socket[Any]] = []
        try:
            for _ in range(2):
                opened.append(self.context.socket(PAIR, Socket))
                opened[-1].linger = 0
            ours, theirs = opened
            ours.bind(self.pipe_endpoint)
            theirs.connect(self.pipe_endpoint)
            thread = AuthenticationThread(self, theirs)
            thread.start()
            thread.started.wait()
            if thread._failure is not None:
                raise thread._failure
        except BaseException:
            for socket in opened:
                socket.close()
            super().stop()
            raise
        self.pipe, self.thread = ours, thread

    def stop(self) -> None:
        """Stops the thread. Does nothing if it is not running."""
        if self.thread is not None and self.pipe is not None:
            try:
                self.pipe.send(b"TERMINATE", NOBLOCK)
                self.thread.join()
            except ZMQError:
                # The program has closed the pipe, or the context.
                self.thread.stop()
            self.pipe.close()
        self.thread = self.pipe = None
        super().stop()

    def is_alive(self) -> bool:
        """Tells whether the thread runs.

        Returns:
            Whether it runs.
        """
        return self.thread is not None and self.thread.is_alive()

    def __del__(self) -> None:
        # An object whose constructor failed has no thread.
        if getattr(self, "thread", None) is not None:
            self.stop()
