"""A socket in tornado's loop, with callbacks.

    stream = ZMQStream(socket)
    stream.on_recv(lambda parts: print(parts))
    stream.send_multipart([b"a", b"b"])

One message is received and one sent per turn of the loop, so that streams share it
fairly. Sent messages wait in a queue for their turn.
"""

import asyncio
import pickle
import warnings
from collections.abc import Awaitable, Callable, Sequence
from queue import Queue
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, overload

from tornado.ioloop import IOLoop
from tornado.log import gen_log

from .. import _checks, _native
from .._exports import exports_only
from .._future import _AsyncSocket
from .._hints import encoded
from .._tracker import MessageTracker
from ..constants import NOBLOCK, POLLIN, POLLOUT
from ..error import Again, ContextTerminated, ZMQError
from ..poll import Poller
from ..socket import Socket
from ..utils import jsonapi
from .future import _Registered

if TYPE_CHECKING:
    from .._native import Frame
    from .._typing import StreamArguments

__all__ = ["ZMQStream"]


def __dir__() -> list[str]:
    return exports_only(globals())


# The message that was sent, and the result of the send.
_OnSend: TypeAlias = Callable[[Sequence[Any], "MessageTracker | ZMQError | None"], object]


class ZMQStream:
    """A socket in tornado's loop, which calls back when messages arrive or were sent.

    Callbacks may be coroutine functions; those run as tasks.

    Args:
        socket: A blocking socket.
        io_loop: The loop; None for the current one.

    Source:
        pyzmq's ``zmq.eventloop.zmqstream.ZMQStream``
    """

    socket: Any
    """The socket; None once the stream is closed."""
    io_loop: IOLoop
    """The loop that calls the callbacks."""
    poller: Poller
    """The poller of `flush`."""

    def __init__(self, socket: "Socket[Any]", io_loop: IOLoop | None = None) -> None:
        if not isinstance(socket, _native.Socket):
            raise TypeError(f"socket takes a socket of this package, not {_checks.shown(socket)}")
        if isinstance(socket, _AsyncSocket):
            warnings.warn(
                f"ZMQStream needs a blocking socket, and {socket} is asynchronous, so it uses a blocking"
                f" handle of {socket}. To avoid this warning, pass `Socket(shadow=socket)`, or create"
                " the socket with `socket_class=zmq.Socket`.",
                RuntimeWarning,
                stacklevel=2,
            )
            socket = Socket(shadow=socket)
        self.socket = socket
        self.io_loop = io_loop or IOLoop.current()
        self.poller = Poller()
        self._watcher = _native.Watcher(socket)
        self._registered = _Registered(socket, self._watcher)
        self._send_queue: Queue[tuple[Sequence[Any], dict[str, Any]]] = Queue()
        self._recv_callback: Callable[[Any], object] | None = None
        self._send_callback: _OnSend | None = None
        self._close_callback: Callable[[], object] | None = None
        self._recv_copy = False
        # Within a turn of the loop, after `flush`, which has called the callbacks.
        self._flushed = False
        self._state = 0
        self.io_loop.add_handler(self._registered, self._handle_events, IOLoop.READ)

        self.bind: Callable[[str | bytes], Any] = socket.bind
        self.bind_to_random_port: Callable[..., int] = socket.bind_to_random_port
        self.connect: Callable[[str | bytes], Any] = socket.connect
        self.setsockopt: Callable[[int, int | bytes], None] = socket.setsockopt
        self.getsockopt: Callable[[int], Any] = socket.getsockopt
        self.setsockopt_string: Callable[..., None] = socket.setsockopt_string
        self.getsockopt_string: Callable[..., str] = socket.getsockopt_string
        self.setsockopt_unicode: Callable[..., None] = socket.setsockopt_unicode
        self.getsockopt_unicode: Callable[..., str] = socket.getsockopt_unicode

    # ---- callbacks ------------------------------------------------------------------

    @overload
    def on_recv(
        self, callback: Callable[[list[bytes]], object] | None, copy: Literal[True] = True
    ) -> None: ...
    @overload
    def on_recv(
        self, callback: Callable[["list[Frame]"], object], copy: Literal[False]
    ) -> None: ...
    @overload
    def on_recv(
        self, callback: Callable[[list[Any]], object] | None, copy: bool = True
    ) -> None: ...
    def on_recv(self, callback: Callable[[Any], object] | None, copy: bool = True) -> None:
        """Sets the callback for messages. There is one at a time.

        Args:
            callback: Called with the list of parts of each message; None stops receiving.
            copy: False passes frames instead of `bytes`.
        """
        self._check_closed()
        if callback is not None:
            _checks.callback("callback", callback, "a function of a list of parts, or None")
        self._recv_callback = callback
        self._recv_copy = copy
        if callback is None:
            self._drop_io_state(POLLIN)
        else:
            self._add_io_state(POLLIN)

    @overload
    def on_recv_stream(
        self,
        callback: Callable[["ZMQStream", list[bytes]], object] | None,
        copy: Literal[True] = True,
    ) -> None: ...
    @overload
    def on_recv_stream(
        self, callback: Callable[["ZMQStream", "list[Frame]"], object], copy: Literal[False]
    ) -> None: ...
    @overload
    def on_recv_stream(
        self, callback: Callable[["ZMQStream", list[Any]], object] | None, copy: bool = True
    ) -> None: ...
    def on_recv_stream(
        self, callback: Callable[["ZMQStream", Any], object] | None, copy: bool = True
    ) -> None:
        """Does what `on_recv` does, with the stream as the callback's first argument.

        Args:
            callback: Called with the stream and the list of parts; None stops receiving.
            copy: False passes frames instead of `bytes`.
        """
        if callback is None:
            self.stop_on_recv()
        else:
            self.on_recv(lambda parts: callback(self, parts), copy=copy)

    def on_send(self, callback: _OnSend | None) -> None:
        """Sets the callback for messages that were sent.

        Args:
            callback: Called with the parts, and with what `Socket.send_multipart` returned or the
                error it raised; None stops that.
        """
        self._check_closed()
        if callback is not None:
            _checks.callback("callback", callback, "a function of parts and a result, or None")
        self._send_callback = callback

    def on_send_stream(
        self,
        callback: "Callable[[ZMQStream, Sequence[Any], Any], object] | None",
    ) -> None:
        """Does what `on_send` does, with the stream as the callback's first argument.

        Args:
            callback: Called with the stream, the parts and the result; None stops that.
        """
        if callback is None:
            self.stop_on_send()
        else:
            self.on_send(lambda parts, status: callback(self, parts, status))

    def on_err(self, callback: Callable[..., object]) -> None:
        """Does nothing.

        Args:
            callback: Ignored.
        """
        gen_log.warning("ZMQStream.on_err does nothing")

    def stop_on_recv(self) -> None:
        """Stops receiving."""
        self.on_recv(None)

    def stop_on_send(self) -> None:
        """Removes the callback for messages that were sent."""
        self.on_send(None)

    def stop_on_err(self) -> None:
        """Does nothing."""
        gen_log.warning("ZMQStream.on_err does nothing")

    def set_close_callback(self, callback: Callable[[], object] | None) -> None:
        """Sets the callback for the end of the stream.

        Args:
            callback: Called without arguments when the stream is closed; None stops that.
        """
        self._close_callback = callback

    # ---- sending --------------------------------------------------------------------

    def send(
        self,
        msg: Any,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        callback: _OnSend | None = None,
    ) -> None:
        """Queues a message of one part.

        Args:
            msg: The part, as in `Socket.send`.
            flags: As in `Socket.send`.
            copy: As in `Socket.send`.
            track: As in `Socket.send`.
            callback: As in `on_send`, for this message and later ones; None changes nothing.
        """
        self.send_multipart([msg], flags, copy=copy, track=track, callback=callback)

    def send_multipart(
        self,
        msg: Sequence[Any],
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        callback: _OnSend | None = None,
    ) -> None:
        """Queues a message of several parts.

        Args:
            msg: The parts, as in `Socket.send_multipart`.
            flags: As in `Socket.send_multipart`.
            copy: As in `Socket.send_multipart`.
            track: As in `Socket.send_multipart`.
            callback: As in `on_send`, for this message and later ones; None changes nothing.
        """
        self._send_queue.put((msg, {"flags": flags, "copy": copy, "track": track}))
        self.on_send(callback or self._send_callback or _ignore)
        self._add_io_state(POLLOUT)

    def send_string(
        self,
        u: str,
        flags: int = 0,
        encoding: str = "utf-8",
        callback: _OnSend | None = None,
        **kwargs: "Unpack[StreamArguments]",
    ) -> None:
        """Queues text.

        Args:
            u: The text.
            flags: As in `Socket.send`.
            encoding: How to encode the text.
            callback: As in `send`.
            **kwargs: Further arguments of `send`.

        Raises:
            TypeError: `u` is not text.
        """
        if not isinstance(u, str):
            raise TypeError(f"expected str, got: {u!r}")
        self.send(encoded(u, encoding), flags=flags, callback=callback, **kwargs)

    send_unicode = send_string

    def send_json(
        self,
        obj: Any,
        flags: int = 0,
        callback: _OnSend | None = None,
        **kwargs: "Unpack[StreamArguments]",
    ) -> None:
        """Queues an object as JSON.

        Args:
            obj: The object: anything that `json.dumps` takes.
            flags: As in `Socket.send`.
            callback: As in `send`.
            **kwargs: Further arguments of `send`.
        """
        self.send(jsonapi.dumps(obj), flags=flags, callback=callback, **kwargs)

    def send_pyobj(
        self,
        obj: Any,
        flags: int = 0,
        protocol: int = -1,
        callback: _OnSend | None = None,
        **kwargs: "Unpack[StreamArguments]",
    ) -> None:
        """Queues a pickled object: see `Socket.recv_pyobj` for who may receive it.

        Args:
            obj: The object.
            flags: As in `Socket.send`.
            protocol: The version of the pickle format; -1 for the newest.
            callback: As in `send`.
            **kwargs: Further arguments of `send`.
        """
        self.send(pickle.dumps(obj, protocol), flags, callback=callback, **kwargs)

    # ---- flushing -------------------------------------------------------------------

    def flush(self, flag: int = POLLIN | POLLOUT, limit: int | None = None) -> int:
        """Receives and sends what is possible now, without waiting for the loop.

        Callbacks run. With ``POLLIN``, messages are received even if there is no callback for
        them, and are dropped. The loop then skips the stream for one turn.

        Args:
            flag: ``POLLIN`` to receive, ``POLLOUT`` to send, or their sum.
            limit: How many messages at most; None means no limit.

        Returns:
            How many messages were received and sent.
        """
        self._check_closed()
        already_flushed = self._flushed
        self._flushed = False
        count = 0
        while not limit or count < limit:
            mask = self._flushable(flag)
            if not mask:
                break
            self.poller.register(self.socket, mask)
            ready = self.poller.poll(0)
            if not ready:
                break
            events = ready[0][1]
            if events & POLLIN:
                self._handle_recv()
                count += 1
            # The callback may have closed the stream.
            if self.socket is not None and events & POLLOUT and self.sending():
                self._handle_send()
                count += 1
            if self.socket is None:
                break
        if count:
            self._flushed = True
            if not already_flushed:
                self.io_loop.add_callback(self._finish_flush)
        else:
            self._flushed = already_flushed
        self._rebuild_io_state()
        return count

    def _flushable(self, flag: int) -> int:
        return flag & (POLLIN | POLLOUT) if self.sending() else flag & POLLIN

    def _finish_flush(self) -> None:
        self._flushed = False

    # ---- state ----------------------------------------------------------------------

    def receiving(self) -> bool:
        """Tells whether there is a callback for messages.

        Returns:
            Whether there is.
        """
        return self._recv_callback is not None

    def sending(self) -> bool:
        """Tells whether messages wait to be sent.

        Returns:
            Whether some do.
        """
        return not self._send_queue.empty()

    def closed(self) -> bool:
        """Tells whether the stream is closed. If its socket is closed, it closes the stream.

        Returns:
            Whether it is closed.
        """
        if self.socket is None:
            return True
        if self.socket.closed:
            self.close()
            return True
        return False

    def close(self, linger: float | None = None) -> None:
        """Closes the stream and its socket.

        Args:
            linger: How long the context keeps sending queued messages, in ms. -1 means no limit,
                and None the value of the option ``LINGER``. A fraction is rounded up.

        Raises:
            TypeError: `linger` is not a number.
            ValueError: `linger` is nan or out of range.
        """
        if self.socket is None:
            return
        # A call that has refused its argument must leave the stream as it was.
        linger = _checks.linger(linger)
        if self.socket.closed:
            warnings.warn(
                f"unregistering descriptor {self._watcher.fileno()} after closing socket: close the stream"
                " instead of its socket",
                stacklevel=2,
            )
        self._watcher.rest()
        self.io_loop.remove_handler(self._registered)
        self.socket.close(linger)
        self.socket = None
        if self._close_callback:
            self._run_callback(self._close_callback)

    def _check_closed(self) -> None:
        if self.socket is None:
            raise OSError("Stream is closed")

    # ---- the loop's side ------------------------------------------------------------

    def _handle_events(self, fd: Any, events: int) -> None:
        if self.socket is None:
            gen_log.warning("got events for closed stream %s", self)
            return
        self._watcher.clear()
        try:
            ready = self.socket.events
        except ContextTerminated:
            gen_log.warning("the context of stream %s is terminated", self)
            # No more messages will arrive; closing the socket is up to its owner.
            self._watcher.rest()
            self.closed()
            return
        except ZMQError as error:
            if self.closed():
                gen_log.warning("got events for stream %s of a closed socket: %s", self, error)
            else:
                gen_log.error("stream %s has no events: %s", self, error)
            return
        try:
            if ready & POLLIN and self.receiving():
                self._handle_recv()
                if self.socket is None:
                    return
            if ready & POLLOUT and self.sending():
                self._handle_send()
                if self.socket is None:
                    return
            self._rebuild_io_state()
        except Exception:
            gen_log.error("Uncaught exception in ZMQStream callback", exc_info=True)
            raise

    def _handle_recv(self) -> None:
        if self._flushed:
            return
        try:
            parts = self.socket.recv_multipart(NOBLOCK, copy=self._recv_copy)
        except Again:
            # Another receiver was faster.
            return
        if self._recv_callback:
            self._run_callback(self._recv_callback, parts)

    def _handle_send(self) -> None:
        if self._flushed:
            return
        if not self.sending():
            gen_log.error("there is nothing to send")
            return
        parts, arguments = self._send_queue.get()
        status: MessageTracker | ZMQError | None
        try:
            status = self.socket.send_multipart(parts, **arguments)
        except ZMQError as error:
            gen_log.error("SEND Error: %s", error)
            status = error
        if self._send_callback:
            self._run_callback(self._send_callback, parts, status)

    def _run_callback(self, callback: Callable[..., object], *args: Any) -> None:
        try:
            result = callback(*args)
        except Exception:
            gen_log.error("Uncaught exception in ZMQStream callback", exc_info=True)
            # The loop gets the exception, too.
            raise
        if isinstance(result, Awaitable):
            asyncio.ensure_future(result).add_done_callback(self._on_callback_done)

    def _on_callback_done(self, task: "asyncio.Future[Any]") -> None:
        try:
            task.result()
        except Exception:
            gen_log.error("Uncaught exception in ZMQStream callback", exc_info=True)

    def _rebuild_io_state(self) -> None:
        if self.socket is None:
            return
        self._state = (POLLIN if self.receiving() else 0) | (POLLOUT if self.sending() else 0)
        self._update_handler(self._state)

    def _add_io_state(self, state: int) -> None:
        self._state |= state
        self._update_handler(self._state)

    def _drop_io_state(self, state: int) -> None:
        self._state &= ~state
        self._update_handler(self._state)

    def _update_handler(self, state: int) -> None:
        """Watches the socket if there is an event to wait for, and checks its state."""
        if self.socket is None:
            return
        if not state:
            self._watcher.rest()
            return
        self._watcher.watch()
        if state & self.socket.events:
            self.io_loop.add_callback(lambda: self._handle_events(self.socket, 0))


def _ignore(*_arguments: object) -> None:
    pass
