"""The service side of `rpc`: a function behind a ROUTER socket.

A request is an envelope, an empty frame and a body, as a REQ or DEALER socket sends it; the
reply carries the same envelope. Any program that can talk to a REP socket can therefore call this
service, and any REP socket can replace it.

The body is an Arrow IPC stream or plain bytes. A reply of one frame is a result. A reply of two
frames, the first of which is ``error``, is the reason of a failure.
"""

import contextlib
import logging
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import zeroxide as zmq

from .._closing import Closing
from ._ipc import from_stream, one_batch, to_stream
from ._sockets import apply_options

__all__ = ["ERROR", "UNITS", "Body", "Service", "Unit", "serve"]

log: logging.Logger = logging.getLogger(__name__)

# The first frame of a reply that is an error.
ERROR = b"error"

Unit: TypeAlias = Literal["batch", "message"]
UNITS = ("batch", "message")

Body: TypeAlias = "bytes | memoryview[int]"

# The interval at which a service checks whether it was closed.
LOOK_MS = 200

# The time limit for sending its last replies.
FLUSH_MS = 1000


def serve(
    fn: Callable[..., Any],
    endpoint: str,
    *,
    unit: Unit = "batch",
    threads: int = 1,
    options: Mapping[str, str] | None = None,
) -> None:
    """Replies to requests with the result of a function, until the process is interrupted.

        def score(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch: ...

        serve(score, "tcp://*:5560")

    Exceptions of `fn` are raised at the caller, and the service continues. `Service` does the
    same in the background.

    Args:
        fn: Takes a ``pyarrow.RecordBatch`` and returns one, or a table. With
            ``unit="message"``, it takes bytes and returns bytes or text.
        endpoint: The address to bind.
        unit: ``batch`` or ``message``, as in `rpc`.
        threads: How many threads call `fn`, which must allow that.
        options: Socket options by their names, such as ``curve_secretkey``; a value
            ``env:NAME`` or ``file:PATH`` is read from there.

    Raises:
        ValueError: An argument is invalid.
        ZMQError: The address cannot be bound.

    Source:
        28/REQREP, section "The ROUTER Socket Type"; zeroxide only
    """
    with Service(fn, endpoint, unit=unit, threads=threads, options=options) as service:
        try:
            service.wait()
        except KeyboardInterrupt:
            log.info("zeromq: %s was interrupted", service.endpoint)


class Service(Closing):
    """A function that replies to requests in its own threads, until it is closed.

    As a ``with`` block, it closes itself. ``endpoint`` is the address of the service, with the
    port that replaced a wildcard.

    Args:
        fn: The function, as in `serve`.
        endpoint: The address to bind, such as ``tcp://*:5560``.
        unit: ``batch`` or ``message``, as in `rpc`.
        threads: How many threads call `fn`, which must allow that.
        options: Socket options by their names; a value ``env:NAME`` or ``file:PATH`` is read
            from there.

    Raises:
        ValueError: An argument is invalid.
        ZMQError: The address cannot be bound.

    Example:
        from zeroxide.spark import Service

        with Service(lambda request: request.upper(), "tcp://127.0.0.1:*", unit="message") as service:
            print(service.endpoint)

    Source:
        28/REQREP, section "The ROUTER Socket Type"; zeroxide only
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        endpoint: str,
        *,
        unit: Unit = "batch",
        threads: int = 1,
        options: Mapping[str, str] | None = None,
    ) -> None:
        if unit not in UNITS:
            raise ValueError(f"unit is {unit!r}; it should be one of: {', '.join(UNITS)}")
        if threads < 1:
            raise ValueError(f"threads is {threads}; it should be at least 1")
        self._answer = _batch_answer(fn) if unit == "batch" else _message_answer(fn)
        self._context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        try:
            # Replies to a caller that has left or does not read are dropped, so that others do not wait.
            self._router.linger = 0
            self._router.sndtimeo = self._router.rcvtimeo = LOOK_MS
            apply_options(self._router, tuple((options or {}).items()))
            self._router.bind(endpoint)
        except BaseException:
            self._context.destroy(linger=0)
            raise
        #: The address of the service, with the port that replaced a wildcard.
        self.endpoint: str = self._router.last_endpoint.decode()
        self._closing = threading.Event()
        self._failure: BaseException | None = None
        self._threads: list[threading.Thread] = []
        try:
            for number in range(threads):
                name = f"zeroxide-service-{number}"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
        except BaseException:
            self.close()
            raise

    def wait(self) -> None:
        """Waits until the service is closed.

        Raises:
            ZMQError: The service ended, because its socket failed.
        """
        self._join()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Ends the service after replying to the requests in progress."""
        self._closing.set()
        self._join()
        if not self._router.closed:
            with contextlib.suppress(zmq.Again):
                self._router.flush(FLUSH_MS)
        self._context.destroy(linger=0)

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            log.exception("zeromq: %s has failed", self.endpoint)
            # Otherwise the service would go on with fewer threads, and `wait` would not report it.
            self._failure = self._failure or error
            self._closing.set()

    def _work(self) -> None:
        # Threads share the socket: each message is received by one of them, completely.
        while not self._closing.is_set():
            try:
                message = self._router.recv_multipart()
            except zmq.Again:
                continue
            if b"" not in message[1:]:
                log.warning("zeromq: %s dropped a message without an envelope", self.endpoint)
                continue
            body = message.index(b"", 1) + 1
            reply = [*message[:body], *self._reply(message[body:])]
            try:
                self._router.send_multipart(reply)
            except zmq.Again:
                continue  # the caller does not take replies
            except zmq.ZMQError as error:
                # With the option router_mandatory, a caller that has left is an error.
                if error.errno != zmq.EHOSTUNREACH:
                    raise

    def _reply(self, request: list[bytes]) -> list[Body]:
        try:
            if len(request) != 1:
                raise ValueError(f"a request has one frame, this one has {len(request)}")
            return [self._answer(request[0])]
        # sys.exit(), too: the caller waits, and this thread is not its own.
        except BaseException as error:
            log.exception("zeromq: %s could not answer a request", self.endpoint)
            text = "".join(traceback.format_exception(error))
            return [ERROR, text.encode("utf-8", "backslashreplace")]


def _batch_answer(fn: Callable[..., Any]) -> Callable[[bytes], Body]:
    import pyarrow as pa

    def answer(request: bytes) -> Body:
        result = fn(from_stream(request))
        if isinstance(result, pa.Table):
            result = one_batch(result)
        if not isinstance(result, pa.RecordBatch):
            raise TypeError(
                f"the service returned {type(result).__name__}, not a pyarrow RecordBatch or Table"
            )
        return to_stream(result)

    return answer


def _message_answer(fn: Callable[..., Any]) -> Callable[[bytes], Body]:
    def answer(request: bytes) -> Body:
        result = fn(request)
        if isinstance(result, str):
            return result.encode()
        if not isinstance(result, bytes | bytearray | memoryview):
            raise TypeError(f"the service returned {type(result).__name__}, not bytes or str")
        return bytes(result)

    return answer
