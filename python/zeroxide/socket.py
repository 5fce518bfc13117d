"""The socket: the part of it that is written in Python.

Sending, receiving and polling are inherited native methods. This module has the socket's life, its
endpoints and its events. `_option_calls`, `_objects` and `_tables` have further conveniences.
"""

import operator
import warnings
import weakref
from errno import ENODEV
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

from . import _checks, _native, as_zmq
from ._cautions import warn_of_security
from ._exports import exports_only
from ._native import SocketContext
from ._option_calls import OptionCalls
from ._options import HIDDEN, MIXED_CASE
from ._overridden import keep_replaced, own_calls, redirect
from ._pickles import is_local_endpoint
from ._tables import TableMessages
from ._typing import ReturnT_co
from .constants import (
    EVENT_ALL,
    PAIR,
    SOCKS_PROXY,
    TYPE,
    Errno,
    SocketType,
)
from .error import ZMQBindError, ZMQError, failure

if TYPE_CHECKING:
    from ._undelivered import Undelivered
    from .context import Context
    from .events import SocketEvents

__all__ = ["IPC_PATH_MAX_LEN", "Attachment", "Socket", "SyncSocket"]


def __dir__() -> list[str]:
    return exports_only(globals())


# Longest path behind ``ipc://``: what fits into sockaddr_un beside the closing zero.
IPC_PATH_MAX_LEN = 107

# Under a name, because inside the class `type` is the socket's.
_ExceptionType: TypeAlias = type[BaseException] | None

_S = TypeVar("_S", bound="Socket[Any]")


class Attachment(Generic[_S]):
    """The result of `Socket.bind` and `Socket.connect`: a ``with`` block that undoes the call.

    ``addr`` is the address, with wildcards filled in.

    Args:
        socket: The socket, which the block receives.
        kind: Whether it was bound or connected.
        endpoint: The address.

    Source:
        pyzmq's ``bind`` and ``connect``
    """

    def __init__(self, socket: _S, kind: Literal["bind", "connect"], endpoint: str) -> None:
        self.socket = socket
        self.kind = kind
        self.addr = endpoint

    def __repr__(self) -> str:
        return f"<SocketContext({self.kind}={self.addr!r})>"

    def __enter__(self) -> _S:
        return self.socket

    def __exit__(
        self,
        exc_type: _ExceptionType,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.socket.closed:
            return
        if self.kind == "bind":
            self.socket.unbind(self.addr)
        else:
            self.socket.disconnect(self.addr)


class Socket(OptionCalls, TableMessages, Generic[ReturnT_co]):
    """One end of a messaging pattern, made by `Context.socket`.

    Options are attributes: ``socket.linger = 0``, ``socket.last_endpoint``; the page
    "Options" lists them. As a ``with`` block, a socket closes itself.

    A socket may be used from any thread. ``Socket(other)`` and ``Socket(shadow=other)`` are
    further handles of the same socket: closing one closes all.

    Args:
        ctx_or_socket: The context, or the socket to make another handle of.
        socket_type: The type: a `SocketType` such as ``zmq.PUSH``.
        shadow: The socket (or its `underlying` number) to make another handle of.
        copy_threshold: Bodies below this many bytes are copied even with ``copy=False``;
            None stands for `zeroxide.COPY_THRESHOLD`.

    Raises:
        TypeError: There is no context, or no socket type.
        ZMQError: ``EINVAL`` if there is no such type, ``EMFILE`` if the context has
            ``MAX_SOCKETS`` sockets, ``ENOTSOCK`` if there is no socket to shadow.

    Example:
        >>> with zmq.Context() as ctx, ctx.socket(zmq.PUSH) as first, ctx.socket(zmq.PULL) as second:
        ...     port = first.bind_to_random_port("tcp://127.0.0.1")
        ...     _ = second.connect(f"tcp://127.0.0.1:{port}")
        ...     first.send(b"job")
        ...     second.recv()
        b'job'

    Source:
        zmq_socket(3); pyzmq's ``Socket``
    """

    # A value of the class, so that `dir` and test doubles (`Mock(spec=Socket)`) know the name.
    context: "Context[Any]" = cast("Context[Any]", None)
    """The context that made the socket."""
    type: SocketType
    """The socket's type; a plain number if an extension module has added the type."""
    _repr_cls: ClassVar[str] = "zmq.Socket"
    _shadow: bool = False
    # Whether an endpoint can ever be reached from another machine. Of a shadow, only that of the original counts.
    _was_exposed: bool = False
    # What `send`, `recv` and their multipart calls were when the class was made.
    _own_calls: ClassVar[dict[str, Any]]
    # Keeps what a shadow stands for alive.
    _shadow_obj: "Socket[Any] | None" = None
    _monitor_socket: "Socket[Any] | None" = None

    def __init__(
        self,
        ctx_or_socket: "Context[Any] | Socket[Any] | None" = None,
        socket_type: int = -1,
        *,
        shadow: "Socket[Any] | int | None" = None,
        copy_threshold: int | None = None,
    ) -> None:
        # Attributes that are not options bypass `__setattr__`, which takes microseconds.
        attributes = self.__dict__
        cls = self.__class__
        # A program may have replaced one in the class, as `mock.patch.object` does.
        if cls.send is not cls._own_calls["send"]:
            keep_replaced(self, "send")
        if cls.recv is not cls._own_calls["recv"]:
            keep_replaced(self, "recv")
        if isinstance(ctx_or_socket, Socket):
            shadow, ctx_or_socket = ctx_or_socket, None
        if shadow:
            original = _find(shadow)
            self._share(original)
            attributes.update(_shadow=True, _shadow_obj=original, context=original.context)
            if copy_threshold is not None:
                self.copy_threshold = copy_threshold
        else:
            context = _context_of(ctx_or_socket, socket_type)
            attributes["context"] = context
            self._open(context, socket_type, copy_threshold)
            _sockets[self.underlying] = self
            context._add_socket(self)
            if type(socket_type) is SocketType:
                attributes["type"] = socket_type
                return
        number = self.get(TYPE)
        try:
            attributes["type"] = SocketType(number)
        except ValueError:  # the type of an extension module
            attributes["type"] = number

    # ---- life -----------------------------------------------------------------------

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        redirect(cls)
        cls._own_calls = own_calls(cls)

    @classmethod
    def shadow(cls, address: "Socket[Any] | int") -> Self:
        """Returns another handle of a socket.

        Args:
            address: The socket, or its `underlying` number.

        Returns:
            The handle. Closing it closes the socket.

        Raises:
            ZMQError: ``ENOTSOCK`` if there is no socket with that number in this process.

        Source:
            pyzmq's ``Socket.shadow``
        """
        return cls(shadow=address)

    def __copy__(self) -> Self:
        return type(self)(shadow=self)

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be pickled: make a new one where it is used")

    @overload
    def close(self, linger: float | None = None) -> None: ...
    @overload
    def close(self, *, timeout: float) -> "Undelivered": ...
    @overload
    def close(
        self, linger: float | None = None, *, timeout: float | None = None
    ) -> "Undelivered | None": ...
    def close(
        self, linger: float | None = None, *, timeout: float | None = None
    ) -> "Undelivered | None":
        """Closes the socket and all its handles.

        Calls that wait on the socket in other threads raise `ZMQError`. Closing again does
        nothing.

        With a `timeout`, the call waits until all messages are delivered, and returns what was
        not delivered, and to whom. When the time is up, the rest is given up: the timeout
        replaces ``LINGER``. A message is delivered when the peer's kernel has it (tcp), when the
        kernel has taken it, or when it is in the queue of the other socket (inproc). `stats`
        counts the messages that were lost with earlier connections, and the report does not.

        Args:
            linger: How long the context keeps sending queued messages, in ms. -1 means no limit,
                and None the value of the option ``LINGER``. A fraction is rounded up.
            timeout: How long to wait until they are delivered, in ms. A negative number means no
                limit, and None that the call does not wait.

        Returns:
            What was not delivered, which is false if all was. None without a `timeout`.

        Raises:
            TypeError: Both `linger` and `timeout` are given, or one of them is not a number.
            ValueError: One of them is nan, or `linger` is out of range.

        Example:
            >>> push.close(timeout=1000)
            <Undelivered: everything was delivered>
            >>> push.closed
            True

        Source:
            zmq_close(3); pyzmq's ``Socket.close``; `timeout` is zeroxide's
        """
        if timeout is not None and linger is not None:
            raise TypeError("close takes linger or timeout, which replaces it, but not both")
        linger = _checks.linger(linger)
        try:
            if timeout is None:
                return super().close(linger)
            from ._undelivered import reported

            return reported(self._close_within(timeout))
        finally:
            # After a call that has refused its arguments, the context still has to close the socket.
            context = self.__dict__.get("context")
            if context is not None and self.closed:
                context._rm_socket(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: _ExceptionType,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # `closed` is also true for an unfinished object, and for one inherited through a fork.
        if self._shadow or self.closed:
            return
        try:
            warnings.warn(f"Unclosed socket {self}", ResourceWarning, stacklevel=2, source=self)
        finally:
            # Also where warnings are errors.
            self.close()

    def __repr__(self) -> str:
        cls = self.__class__
        name = cls.__dict__.get("_repr_cls")
        if name is None:
            name = f"{cls.__module__}.{cls.__name__}"
        kind_name = self._type_name()
        if self.closed:
            return f"<{name}({kind_name}) at {id(self):#x} closed>"
        overview = self._overview()
        where = f": {overview}" if overview else ""
        return f"<{name}({kind_name}) at {id(self):#x}{where}>"

    def _type_name(self) -> str:
        """Returns the type as programs write it."""
        kind: int | None = self.__dict__.get("type")
        if kind is None:
            return "zmq.UNKNOWN"
        return f"zmq.{kind.name}" if isinstance(kind, SocketType) else str(kind)

    def __dir__(self) -> list[str]:
        names = set(super().__dir__()) - MIXED_CASE
        # Programs that take this for pyzmq may look for its names.
        return sorted(names if as_zmq.installed() else names - HIDDEN - {"HWM"})

    @property
    def socket_type(self) -> int:
        """The old name of `type`. Deprecated."""
        warnings.warn(
            "Socket.socket_type is deprecated, use Socket.type",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.type

    # ---- endpoints ------------------------------------------------------------------

    def bind(self, addr: str | bytes) -> Attachment[Self]:  # type: ignore[override]
        """Listens at an address.

        Args:
            addr: The address: ``tcp://127.0.0.1:5555``, ``tcp://*:5555`` (all interfaces),
                ``tcp://eth0:0`` (a free port), ``ipc:///run/app.sock``, ``ipc://@abstract``,
                ``inproc://name``.

        Returns:
            An object whose ``addr`` is the address that was bound, with wildcards filled in. As
            a ``with`` block, it calls `unbind` at its end.

        Raises:
            TypeError: `addr` is neither `str` nor `bytes`.
            ZMQError: ``EADDRINUSE`` if another socket is bound there, ``EADDRNOTAVAIL`` if it is
                not an address of this machine, ``EINVAL`` if it is malformed, ``ENODEV`` if there is
                no such interface, ``EPROTONOSUPPORT`` if there is no such transport.

        Example:
            >>> with context.socket(zmq.PULL) as socket:
            ...     with socket.bind("tcp://127.0.0.1:*") as bound:
            ...         print(bound.last_endpoint[:16])
            b'tcp://127.0.0.1:'

        Source:
            zmq_bind(3), zmq_tcp(7), zmq_ipc(7), zmq_inproc(7); pyzmq's ``Socket.bind``
        """
        # Before anything is bound: where warnings are errors, a call that raises has done nothing.
        warn_of_security(self, addr)
        endpoint = super().bind(addr)
        self._note_exposure(endpoint)
        return Attachment(self, "bind", endpoint)

    def connect(self, addr: str | bytes) -> Attachment[Self]:  # type: ignore[override]
        """Connects to an address.

        Returns at once: the connection is made in the background, and made again whenever it is
        lost. The peer need not exist yet, even with inproc.

        Args:
            addr: The address: ``tcp://example.org:5555``, ``tcp://source;host:port`` (from an
                address of this machine), ``ipc:///run/app.sock``, ``inproc://name``.

        Returns:
            An object whose ``addr`` is the address. As a ``with`` block, it calls `disconnect`
            at its end.

        Raises:
            TypeError: `addr` is neither `str` nor `bytes`.
            ZMQError: ``EINVAL`` if the address is malformed, ``EPROTONOSUPPORT`` if there is no
                such transport.

        Example:
            >>> with context.socket(zmq.PUSH) as socket:
            ...     with socket.connect("tcp://127.0.0.1:5555") as connected:
            ...         print(connected.last_endpoint)
            b'tcp://127.0.0.1:5555'

        Source:
            zmq_connect(3); pyzmq's ``Socket.connect``
        """
        warn_of_security(self, addr)
        # A SOCKS server has a loopback of its own.
        has_proxy = bool(_native.Socket.get(self, SOCKS_PROXY))
        endpoint = super().connect(addr)
        is_on_network = not endpoint.startswith(("inproc:", "ipc:"))
        self._note_exposure("socks" if has_proxy and is_on_network else endpoint)
        return Attachment(self, "connect", endpoint)

    def _note_exposure(self, endpoint: str) -> None:
        if not is_local_endpoint(endpoint):
            _original(self).__dict__["_was_exposed"] = True

    def _has_local_peers_only(self) -> bool:
        # `connect_peer` is not noted.
        return not _original(self)._was_exposed and self.type != SocketType.PEER

    def bind_to_random_port(
        self,
        addr: str,
        min_port: int = 49152,
        max_port: int = 65536,
        max_tries: int = 100,
    ) -> int:
        """Listens at a free port.

        With a range, it also makes a unique ipc or inproc name: ``inproc://name:12345``.

        Args:
            addr: The address without the port: ``tcp://127.0.0.1``, ``tcp://*``.
            min_port: The lowest port to try. With the default range the system chooses.
            max_port: The port above the highest one to try. Ports above 65535 are not tried.
            max_tries: How many random ports of the range to try.

        Returns:
            The port.

        Raises:
            ValueError: A port is out of range, or `addr` has no ports and the range is the default.
            ZMQBindError: None of the ports tried is free.
            ZMQError: As in `bind`.

        Example:
            >>> with context.socket(zmq.PULL) as socket:
            ...     socket.bind_to_random_port("tcp://127.0.0.1", 20000, 30000) in range(20000, 30000)
            True

        Source:
            pyzmq's ``Socket.bind_to_random_port``
        """
        import re

        if re.fullmatch(r"tcp://(?:[\d.*]+|localhost):\d+", str(addr)):
            # As bind would, which first asks for the addresses of a host with this name.
            raise failure(
                ENODEV,
                "bind_to_random_port takes a tcp address without a port such as"
                f" 'tcp://127.0.0.1', not {_checks.shown(addr)}",
            )
        if (min_port, max_port) == (49152, 65536):
            self.bind(f"{addr}:*")
            endpoint = self.last_endpoint.decode()
            port_text = endpoint.rpartition(":")[2]
            if not port_text.isdecimal():
                self.unbind(endpoint)
                raise ValueError(
                    f"{addr} has no ports that the system could choose; pass min_port and max_port"
                    " for a name with a random number"
                )
            return int(port_text)
        import random

        _checks.whole("min_port", min_port, beyond=2**16)
        _checks.whole("max_port", max_port, least=min_port + 1)
        for _ in range(_checks.whole("max_tries", max_tries)):
            port = random.randrange(min_port, min(max_port, 2**16))
            try:
                self.bind(f"{addr}:{port}")
            except ZMQError as error:
                if error.errno != Errno.EADDRINUSE:
                    raise
            else:
                return port
        raise ZMQBindError(
            f"no free port for {addr} between {min_port} and {max_port} after {max_tries} tries"
        )

    # ---- monitoring -----------------------------------------------------------------

    def get_monitor_socket(self, events: int | None = None, addr: str | None = None) -> Self:
        """Returns a PAIR socket that receives the events of this socket's connections.

        There is one; a second call returns it again. Read it with `recv_monitor_message`.
        `monitor_events` returns the same events as objects.

        Args:
            events: The events to receive: a sum of ``EVENT_...`` numbers. None means all.
            addr: An ``inproc://`` address for the events. None chooses one.

        Returns:
            The PAIR socket.

        Source:
            zmq_socket_monitor(3); pyzmq's ``Socket.get_monitor_socket``
        """
        monitor = self._monitor_socket
        if monitor is None or monitor.closed:
            if addr is None:
                addr = f"inproc://monitor.s-{self.fileno()}"
            self.monitor(addr, EVENT_ALL if events is None else events)
            monitor = self.context.socket(PAIR)
            monitor.connect(addr)
            self._monitor_socket = monitor
        return cast(Self, monitor)

    def monitor_events(
        self, events: int = EVENT_ALL, timeout: float | None = None
    ) -> "SocketEvents":
        """Returns an iterator over the events of this socket's connections, from now on.

        There may be several, and `get_monitor_socket` beside them.

        Args:
            events: The events to receive: a sum of ``EVENT_...`` numbers.
            timeout: A ``for`` loop ends when nothing happens for this many ms; None waits
                without limit.

        Returns:
            An iterator over `SocketEvent`, for ``for`` and ``async for``.

        Raises:
            ZMQError: ``ENOTSOCK`` if the socket is closed.

        Example:
            >>> with context.socket(zmq.PULL) as socket:
            ...     events = socket.monitor_events(timeout=1000)
            ...     _ = socket.bind("tcp://127.0.0.1:*")
            ...     next(events).kind.name
            'LISTENING'

        Source:
            zeroxide only
        """
        from .events import SocketEvents

        return SocketEvents(self._event_stream(events), timeout)

    def open_context(self) -> SocketContext:
        """Opens a context: one of several requests or surveys of this socket at a time.

        SURVEYOR and RESPONDENT have contexts, and so have REQ and REP with ``WIRE_PROTOCOL`` 1.

        Returns:
            A `SocketContext`. An asyncio socket returns one whose `send` and `recv` are
            coroutines.

        Raises:
            ZMQError: ``ENOTSUP`` if this type has no contexts, ``ENOTSOCK`` if the socket is closed.

        Example:
            >>> with context.socket(zmq.SURVEYOR) as surveyor:
            ...     with surveyor.open_context() as one, surveyor.open_context() as other:
            ...         one.send(b"who?")
            ...         other.send(b"where?")

        Source:
            nng's ``nng_ctx_open``
        """
        return SocketContext(self)

    def disable_monitor(self) -> None:
        """Stops what `get_monitor_socket` started. The last event is ``EVENT_MONITOR_STOPPED``.

        Source:
            pyzmq's ``Socket.disable_monitor``
        """
        self._monitor_socket = None
        self.monitor(None, 0)


Socket._own_calls = own_calls(Socket)


def _context_of(context: Any, socket_type: Any) -> "Context[Any]":
    """Returns the context, or raises `TypeError` if the arguments do not make a socket."""
    if type(socket_type) is SocketType and isinstance(context, _native.Context):
        return cast("Context[Any]", context)
    if isinstance(socket_type, str):
        name = socket_type.upper()
        known = name if name in SocketType.__members__ else "PUSH"
        raise TypeError(f"socket_type is a zmq.SocketType such as zmq.{known}, not {socket_type!r}")
    if not hasattr(socket_type, "__index__"):
        raise TypeError(f"socket_type is a zmq.SocketType such as zmq.PUSH, not {socket_type!r}")
    if isinstance(context, int):
        known = context.name if isinstance(context, SocketType) else "PUSH"
        raise TypeError(
            f"the first argument is a Context, not {context!r}; use context.socket(zmq.{known})"
        )
    if not isinstance(context, _native.Context):
        what = "nothing" if context is None else repr(context)
        raise TypeError(
            f"the first argument is a Context, not {what}; use context.socket(zmq.PUSH)"
        )
    if operator.index(socket_type) < 0:
        raise TypeError("socket_type is missing; use context.socket(zmq.PUSH)")
    return cast("Context[Any]", context)


# The sockets of this process by their number, for `Socket.shadow`.
_sockets: "weakref.WeakValueDictionary[int, Socket[Any]]" = weakref.WeakValueDictionary()


def _find(shadow: "Socket[Any] | int") -> "Socket[Any]":
    if isinstance(shadow, Socket):
        return shadow
    # A wrapper that passes attributes on has its number.
    number = getattr(shadow, "underlying", shadow)
    if not isinstance(number, int):
        raise TypeError(
            f"shadow takes a socket, or the `underlying` number of one, not {_checks.shown(shadow)}"
        )
    socket = _sockets.get(number)
    if socket is None:
        raise failure(Errno.ENOTSOCK, f"there is no socket number {number}")
    return socket


def _original(socket: "Socket[Any]") -> "Socket[Any]":
    """Returns the socket that a shadow stands for, and any other socket itself."""
    while (shadowed := socket._shadow_obj) is not None:
        socket = shadowed
    return socket


if TYPE_CHECKING:
    SyncSocket: TypeAlias = Socket[bytes]
else:
    # Not Socket[bytes]: isinstance() must work with it.
    SyncSocket = Socket
