"""Sockets and contexts for gevent."""

import contextlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import gevent
from gevent.event import Event
from gevent.hub import get_hub
from gevent.socket import wait_read

from .. import _checks, _native, as_zmq
from .._closing import Closing
from .._exports import exports_only
from .._native import LastPart, arrow_messages, strerror
from ..constants import (
    DONTWAIT,
    EAGAIN,
    ENOTSOCK,
    ENOTSUP,
    EVENT_ALL,
    POLLIN,
    POLLOUT,
    RCVTIMEO,
    SNDMORE,
    SNDTIMEO,
    SocketOption,
)
from ..context import Context as _BlockingContext
from ..error import Again, ZMQError, failure
from ..events import SocketEvent, SocketEvents
from ..socket import Socket as _BlockingSocket
from .poll import _Poller, patiently
from .waiting import Waiting, in_thread, others

if TYPE_CHECKING:
    from .._undelivered import Undelivered

__all__ = ["_Context", "_Socket"]


def __dir__() -> list[str]:
    return exports_only(globals())


_T = TypeVar("_T")

# How many ms an iterable may keep other greenlets from running.
_LIMIT = 2.0
# The sums of NOBLOCK and SNDMORE.
_FLAGS = (0, 1, 2, 3)


class _Socket(_BlockingSocket[bytes]):
    """A socket for gevent: a call that waits blocks only its greenlet.

    Source:
        pyzmq's ``zmq.green.Socket``
    """

    _repr_cls: ClassVar[str] = "zmq.green.Socket"
    _poller_class = _Poller
    # By hub: each thread has its own.
    _waiting: "WeakKeyDictionary[Any, Waiting] | None" = None

    def _waiting_here(self) -> Waiting:
        waiting = self._waiting
        if waiting is None:
            waiting = self._waiting = WeakKeyDictionary()
        hub = get_hub()
        if hub not in waiting:
            # gevent may keep a hub that was destroyed, with its thread's last frames.
            for gone in [hub for hub in list(waiting) if hub.loop is None]:
                waiting.pop(gone, None)
            waiting[hub] = Waiting(self)
        return waiting[hub]

    def _has_waiters(self, event: int) -> bool:
        return bool(self._waiting) and self._waiting_here().has_waiters(event)

    def _call(
        self,
        event: int,
        option: SocketOption,
        attempt: Callable[[int], _T],
        flags: int,
        timeout: float | None = None,
    ) -> _T:
        """Tries at once, and waits for its turn if that fails."""
        if flags not in _FLAGS:
            self._check_flags(flags, event == POLLOUT)
        # A call that would have to queue does not yield first.
        if not self._has_waiters(event) and not flags & DONTWAIT and timeout != 0:
            others()
        if not self._has_waiters(event):
            try:
                return attempt(flags | DONTWAIT)
            except Again:
                if flags & DONTWAIT or timeout == 0:
                    raise
        elif flags & DONTWAIT:
            raise Again(msg=f"{strerror(EAGAIN)}: other greenlets wait for this socket already")
        if timeout is None:
            timeout = int(super().get(option))
        late = partial(self._waited_in_vain, event == POLLOUT, int(timeout))
        return self._waiting_here().call(event, attempt, flags, timeout / 1000, late)

    if not TYPE_CHECKING:
        # Type checkers see the inherited methods: only the waiting differs.

        def recv(self, flags: int = 0, copy: bool = True, track: bool = False) -> Any:
            attempt = super().recv
            return self._call(POLLIN, RCVTIMEO, lambda flags: attempt(flags, copy, track), flags)

        def recv_multipart(self, flags: int = 0, copy: bool = True, track: bool = False) -> Any:
            attempt = super().recv_multipart
            return self._call(POLLIN, RCVTIMEO, lambda flags: attempt(flags, copy, track), flags)

        def recv_into(self, buffer: Any, /, *, nbytes: int = 0, flags: int = 0) -> int:
            attempt = super().recv_into
            return self._call(
                POLLIN, RCVTIMEO, lambda flags: attempt(buffer, nbytes=nbytes, flags=flags), flags
            )

        def recv_batch(
            self,
            max_messages: int = 1024,
            timeout: float | None = None,
            flags: int = 0,
            *,
            multipart: bool = False,
            copy: bool = True,
        ) -> Any:
            attempt: Any = super().recv_batch
            return self._call(
                POLLIN,
                RCVTIMEO,
                lambda flags: attempt(max_messages, 0, flags, multipart=multipart, copy=copy),
                flags,
                timeout,
            )

        def _recv_rows(
            self, max_rows: int, max_bytes: int, timeout: float | None, flags: int, frames: bool
        ) -> Any:
            attempt = super()._recv_rows
            return self._call(
                POLLIN,
                RCVTIMEO,
                lambda flags: attempt(max_rows, max_bytes, 0, flags, frames),
                flags,
                timeout,
            )

        def _send_rows(self, data: Any, flags: int = 0) -> int:
            return self.send_batch(arrow_messages(data), flags)

        def send(
            self,
            data: Any,
            flags: int = 0,
            copy: bool = True,
            track: bool = False,
            routing_id: int | None = None,
            group: str | None = None,
        ) -> Any:
            attempt = super().send
            if flags not in _FLAGS:
                self._check_flags(flags, True)
            if not flags & SNDMORE and (last := self._last_part([data], copy, track)):
                return self._finish(last, flags)
            return self._call(
                POLLOUT,
                SNDTIMEO,
                lambda flags: attempt(data, flags, copy, track, routing_id, group),
                flags,
            )

        def send_multipart(
            self,
            msg_parts: Any,
            flags: int = 0,
            copy: bool = True,
            track: bool = False,
            **kwargs: Any,
        ) -> Any:
            attempt = super().send_multipart
            parts = _parts(msg_parts)
            if flags not in _FLAGS:
                self._check_flags(flags, True)
            if not flags & SNDMORE and (last := self._last_part(parts, copy, track)):
                return self._finish(last, flags)
            return self._call(
                POLLOUT, SNDTIMEO, lambda flags: attempt(parts, flags, copy, track, **kwargs), flags
            )

        def _finish(self, last: LastPart, flags: int) -> Any:
            # Parts that were sent before this one: messages of other greenlets must not join them.
            try:
                return self._call(POLLOUT, SNDTIMEO, lambda _: last.attempt(), flags)
            finally:
                last.give_up()

        def send_batch(self, messages: Any, flags: int = 0) -> int:
            if not isinstance(messages, list | tuple):
                return self._send_each(_native.Sending(self, messages), flags)
            attempt = super().send_batch
            left, sent = list(messages), 0
            while left:
                try:
                    taken = self._call(POLLOUT, SNDTIMEO, lambda flags: attempt(left, flags), flags)  # noqa: B023
                except Again:
                    if not sent:
                        raise
                    break
                sent += taken
                if flags & DONTWAIT:
                    break
                left = left[taken:]
            return sent

    def _send_each(self, sending: _native.Sending, flags: int) -> int:
        if flags & DONTWAIT:
            return sending.sent if sending.send() else sending.so_far()
        try:
            while not self._call(POLLOUT, SNDTIMEO, lambda _: sending.send(_LIMIT), flags):
                pass
        except Again as late:
            try:
                return sending.so_far()
            except Again as error:
                error.strerror = late.strerror
                raise
        return sending.sent

    def poll(self, timeout: float | None = None, flags: int = POLLIN) -> int:
        look = super().poll
        ready = look(0, flags)
        timeout = _checks.milliseconds(timeout)
        if timeout == 0:
            return ready
        if ready:
            # Other greenlets run, and may take the messages.
            gevent.sleep(0)
            ready = look(0, flags)
            if ready:
                return ready
        waiting, event = self._waiting_here(), Event()
        waiting.join(event)
        try:
            return patiently(lambda: look(0, flags), event, timeout) or 0
        except ZMQError as error:
            if error.errno != ENOTSUP:
                raise
            # Only a socket that was closed before the call began is ENOTSUP to `poll`, as in pyzmq.
            raise failure(ENOTSOCK, "this socket is closed") from None
        finally:
            waiting.leave(event)

    def wait_connected(self, *, count: int = 1, timeout: float | None = None) -> int:
        return self._wait_for(self.count_connected, count, timeout, "connected")

    def wait_subscribed(
        self, topic: bytes | str | None = None, count: int = 1, timeout: float | None = None
    ) -> int:
        return self._wait_for(lambda: self.count_subscribed(topic), count, timeout, "subscribed")

    def _wait_for(
        self, look: Callable[[], int], count: int, timeout: float | None, what: str
    ) -> int:
        _checks.whole("count", count)
        timeout = _checks.milliseconds(timeout)
        waiting, event = self._waiting_here(), Event()

        def enough() -> bool:
            return look() >= count

        waiting.join(event)
        try:
            if not patiently(enough, event, timeout):
                raise self._too_few(look(), count, what)
            return look()
        finally:
            waiting.leave(event)

    def monitor_events(
        self, events: int = EVENT_ALL, timeout: float | None = None
    ) -> "_SocketEvents":
        return _SocketEvents(self._event_stream(events), timeout)

    def open_context(self) -> "_SocketContext":  # type: ignore[override]
        return _SocketContext(self, super().open_context())

    def flush(self, timeout: float | None = None) -> None:
        # A mistake in the thread would also be printed by gevent.
        in_thread(super().flush, _checks.milliseconds(timeout))

    def get(self, option: int) -> Any:
        _tell_of_timeouts(option)
        return super().get(option)

    def set(self, option: int, optval: int | bytes) -> None:
        _tell_of_timeouts(option)
        super().set(option, optval)

    def close(  # type: ignore[override]
        self, linger: float | None = None, *, timeout: float | None = None
    ) -> "Undelivered | None":
        close = partial(super().close, linger, timeout=timeout)
        left: Undelivered | None = close() if timeout is None else in_thread(close)
        waiting, self._waiting = self._waiting, None
        for here in list((waiting or {}).values()):
            here.close()
        return left


class _SocketContext(Closing):
    """A context whose calls wait in the hub."""

    def __init__(self, socket: _Socket, context: _native.SocketContext) -> None:
        self._socket = socket
        self._context = context

    def __repr__(self) -> str:
        state = "closed, " if self.closed else ""
        return f"<zmq.green.SocketContext at {id(self):#x}: {state}of {self._socket!r}>"

    @property
    def closed(self) -> bool:
        return self._context.closed

    def send(self, data: Any, flags: int = 0) -> None:
        self._call(POLLOUT, SNDTIMEO, lambda flags: self._context.send(data, flags), flags)

    def recv(self, flags: int = 0) -> bytes:
        return self._call(POLLIN, RCVTIMEO, self._context.recv, flags)

    def close(self) -> None:
        self._context.close()

    def _call(
        self, event: int, option: SocketOption, attempt: Callable[[int], _T], flags: int
    ) -> _T:
        if not flags & DONTWAIT:
            others()
        try:
            return attempt(flags | DONTWAIT)
        except Again:
            if flags & DONTWAIT:
                raise
        timeout = int(self._socket.get(option))
        # Contexts do not wait for each other, so there is no line.
        waiting, news = self._socket._waiting_here(), Event()
        done: list[_T] = []

        def attempted() -> bool:
            with contextlib.suppress(Again):
                done.append(attempt(flags | DONTWAIT))
            return bool(done)

        waiting.join(news)
        try:
            if not patiently(attempted, news, timeout):
                raise self._socket._waited_in_vain(event == POLLOUT, timeout)
        finally:
            waiting.leave(news)
        return done[0]


def _parts(given: Any) -> Any:
    """Copies a list, so that it cannot change while the call waits. The call refuses the rest."""
    one = isinstance(given, bytes | bytearray | memoryview | str)
    return given if one or not hasattr(given, "__iter__") else list(given)


class _SocketEvents(SocketEvents):
    """An iterator over events that blocks only its greenlet."""

    def recv(self, timeout: float | None = None) -> SocketEvent | None:
        try:
            return super().recv(0)
        except Again:
            if timeout is not None and timeout <= 0:
                raise
        seconds = None if timeout is None or timeout < 0 else timeout / 1000
        with contextlib.suppress(TimeoutError):
            wait_read(self.fileno(), seconds)
        return super().recv(0)


def _tell_of_timeouts(option: int) -> None:
    # A program that was written for pyzmq may set them, and rely on them having no effect.
    if option in (RCVTIMEO, SNDTIMEO) and as_zmq.installed():
        warnings.warn(
            "RCVTIMEO and SNDTIMEO hold in zeroxide.green; in pyzmq's they have no effect",
            UserWarning,
            stacklevel=3,
        )


class _Context(_BlockingContext[_Socket]):
    """A context whose sockets are for gevent.

    Source:
        pyzmq's ``zmq.green.Context``
    """

    _socket_class: ClassVar[type[Any]] = _Socket
    _repr_cls: ClassVar[str] = "zmq.green.Context"
    # Not the class of blocking contexts.
    _instance: ClassVar[Any] = None

    def term(self, *, timeout: float | None = None) -> "Undelivered | None":  # type: ignore[override]
        return in_thread(partial(super().term, timeout=timeout))
