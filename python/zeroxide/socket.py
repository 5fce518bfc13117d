"""The socket: what the native class leaves to Python.

Sending, receiving and polling are native methods, inherited as they are. Here are the
conveniences over them, none of which a program calls a million times a second.
"""

import builtins
import operator
import warnings
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    NoReturn,
    Self,
    TypeAlias,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from . import _native, _pickles, _typed, as_zmq
from ._cautions import warn_of_security
from ._options import HIDDEN, OptionAttributes
from ._tracker import MessageTracker
from ._typing import ReturnT_co
from .constants import (
    EVENT_ALL,
    PAIR,
    RCVHWM,
    SNDHWM,
    SUBSCRIBE,
    TYPE,
    UNSUBSCRIBE,
    Errno,
    SocketOption,
    SocketType,
)
from .error import ZMQBindError, ZMQError

if TYPE_CHECKING:
    from ._typing import (
        ArrowData,
        DumpArguments,
        LoadArguments,
        Part,
        SendArguments,
        SendObjectArguments,
        TrackArgument,
    )
    from .context import Context
    from .events import SocketEvents

__all__ = ["IPC_PATH_MAX_LEN", "Socket", "SyncSocket"]

# Longest path behind ``ipc://``: what fits into sockaddr_un beside the closing zero.
IPC_PATH_MAX_LEN = 107

# Under a name, because inside the class `type` is the socket's.
_ExceptionType: TypeAlias = type[BaseException] | None

_T = TypeVar("_T")
_R = TypeVar("_R")
_S = TypeVar("_S", bound="Socket[Any]")


class _Attachment(Generic[_S]):
    """What `bind` and `connect` return: a ``with`` block that undoes them."""

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


class Socket(OptionAttributes, Generic[ReturnT_co]):
    """One end of a messaging pattern; made by ``ctx.socket(zmq.PUSH)``.

    A socket may be used from any thread. ``Socket(other)`` and
    ``Socket(shadow=other)`` are further handles of the same socket, of which closing
    one closes all.
    """

    context: "Context[Any]"
    type: SocketType
    _repr_cls: ClassVar[str] = "zmq.Socket"
    _shadow: bool = False
    # Keeps what a shadow stands for alive.
    _shadow_obj: "Socket[Any] | None" = None
    _monitor_socket: "Socket[Any] | None" = None
    # Whether `recv_pyobj` opens pickles of just anybody, or of nobody; None is what the context says.
    trust_pickles: "_pickles.Trust | None" = None

    def __init__(
        self,
        ctx_or_socket: "Context[Any] | Socket[Any] | None" = None,
        socket_type: int = -1,
        *,
        shadow: "Socket[Any] | int | None" = None,
        copy_threshold: int | None = None,
    ) -> None:
        # What is no option need not go through `__setattr__`, which takes microseconds.
        attributes = self.__dict__
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
        attributes["type"] = SocketType(self.get(TYPE))

    # ---- life -----------------------------------------------------------------------

    @classmethod
    def shadow(cls, address: "Socket[Any] | int") -> Self:
        """Another handle of a socket, given itself or its `underlying` number."""
        return cls(shadow=address)

    def __copy__(self) -> Self:
        return type(self)(shadow=self)

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be pickled: make a new one where it is used")

    def close(self, linger: int | None = None) -> None:
        """Closes the socket; what was sent goes out until ``LINGER`` ms are over.

        `linger` sets ``LINGER`` first. Calls that wait in other threads raise.
        """
        context = self.__dict__.get("context")
        if context is not None:
            context._rm_socket(self)
        super().close(linger)

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
        # `closed` is also true of an unfinished object, and of one that a fork brought.
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
        kind = self.__dict__.get("type")
        kind_name = "UNKNOWN" if kind is None else kind.name
        if self.closed:
            return f"<{name}(zmq.{kind_name}) at {id(self):#x} closed>"
        overview = self._overview()
        where = f": {overview}" if overview else ""
        return f"<{name}(zmq.{kind_name}) at {id(self):#x}{where}>"

    def __dir__(self) -> list[str]:
        names = set(super().__dir__())
        # Programs that take this for pyzmq may look for its names.
        return sorted(names if as_zmq.installed() else names - HIDDEN - {"HWM"})

    @property
    def socket_type(self) -> int:
        """The old name of `type`."""
        warnings.warn(
            "Socket.socket_type is deprecated, use Socket.type",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.type

    # ---- endpoints ------------------------------------------------------------------

    def bind(self, addr: str | bytes) -> _Attachment[Self]:  # type: ignore[override]
        """Accepts connections at `addr`; as a ``with`` block, until its end."""
        endpoint = super().bind(addr)
        warn_of_security(self, endpoint)
        return _Attachment(self, "bind", endpoint)

    def connect(self, addr: str | bytes) -> _Attachment[Self]:  # type: ignore[override]
        """Connects to `addr` now or later; as a ``with`` block, until its end."""
        endpoint = super().connect(addr)
        warn_of_security(self, endpoint)
        return _Attachment(self, "connect", endpoint)

    def bind_to_random_port(
        self,
        addr: str,
        min_port: int = 49152,
        max_port: int = 65536,
        max_tries: int = 100,
    ) -> int:
        """Binds to some free port of ``tcp://interface`` and returns it.

        Without a range the system chooses; otherwise ports from `min_port` up to, but
        not including, `max_port` are tried.
        """
        if (min_port, max_port) == (49152, 65536):
            self.bind(f"{addr}:*")
            return int(self.last_endpoint.decode().rpartition(":")[2])
        import random

        for _ in range(max_tries):
            port = random.randrange(min_port, max_port)
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

    # ---- options --------------------------------------------------------------------

    def setsockopt(self, option: int, optval: int | bytes) -> None:
        """The same as `set`."""
        self.set(option, optval)

    def getsockopt(self, option: int) -> Any:
        """The same as `get`."""
        return self.get(option)

    def set_string(self, option: int, optval: str, encoding: str = "utf-8") -> None:
        """Sets an option of bytes to encoded text."""
        if not isinstance(optval, str):
            raise TypeError(f"set_string takes str, not {optval!r}")
        self.set(option, optval.encode(encoding))

    setsockopt_string = set_string
    setsockopt_unicode = set_string

    def get_string(self, option: int, encoding: str = "utf-8") -> str:
        """Reads an option of bytes as text."""
        value = self.get(option)
        if not isinstance(value, bytes):
            name = SocketOption(option).name
            raise TypeError(f"{name} is a number, not text: use get(zmq.{name})")
        return value.decode(encoding)

    getsockopt_string = get_string
    getsockopt_unicode = get_string

    def get_hwm(self) -> int:
        """The high-water mark of what is sent, or of what is received."""
        try:
            return cast(int, self.get(SNDHWM))
        except ZMQError:
            return cast(int, self.get(RCVHWM))

    def set_hwm(self, value: int) -> None:
        """Sets ``SNDHWM`` and ``RCVHWM``."""
        self.set(SNDHWM, value)
        self.set(RCVHWM, value)

    @property
    def hwm(self) -> int:
        """Both high-water marks at once."""
        return self.get_hwm()

    @hwm.setter
    def hwm(self, value: int) -> None:
        self.set_hwm(value)

    if not TYPE_CHECKING:
        HWM = hwm

    def subscribe(self, topic: str | bytes) -> None:
        """Wants messages that begin with `topic` (SUB)."""
        self.set(SUBSCRIBE, topic.encode() if isinstance(topic, str) else topic)

    def unsubscribe(self, topic: str | bytes) -> None:
        """Takes one `subscribe` of the same topic back (SUB)."""
        self.set(UNSUBSCRIBE, topic.encode() if isinstance(topic, str) else topic)

    def join(self, group: str | bytes) -> NoReturn:
        """For DISH sockets, which are not built in."""
        raise RuntimeError("RADIO and DISH are draft sockets, which are not built in")

    def leave(self, group: str | bytes) -> NoReturn:
        """For DISH sockets, which are not built in."""
        self.join(group)

    # ---- serialised messages --------------------------------------------------------

    def _deserialize(self, recvd: Any, load: Callable[[Any], Any]) -> Any:
        """Makes the received bytes an object; other kinds of socket override this."""
        return load(recvd)

    def send_serialized(
        self,
        msg: _T,
        serialize: "Callable[[_T], Sequence[Part]]",
        flags: int = 0,
        copy: bool = True,
        **kwargs: "Unpack[TrackArgument]",
    ) -> MessageTracker | None:
        """Sends ``serialize(msg)``, the parts of a message."""
        return self.send_multipart(serialize(msg), flags, copy=copy, **kwargs)

    def recv_serialized(
        self,
        deserialize: Callable[[list[Any]], _R],
        flags: int = 0,
        copy: bool = True,
    ) -> _R:
        """Receives a message and returns ``deserialize(parts)``."""
        parts = self.recv_multipart(flags, copy=copy)
        return cast(_R, self._deserialize(parts, deserialize))

    def send_string(
        self,
        u: str,
        flags: int = 0,
        copy: bool = True,
        encoding: str = "utf-8",
        **kwargs: "Unpack[SendArguments]",
    ) -> MessageTracker | None:
        """Sends text."""
        if not isinstance(u, str):
            raise _not_text(u)
        return self.send(u.encode(encoding), flags, copy=copy, **kwargs)

    send_unicode = send_string

    def recv_string(self, flags: int = 0, encoding: str = "utf-8") -> str:
        """Receives text."""
        data = self.recv(flags)
        return cast(str, self._deserialize(data, lambda body: body.decode(encoding)))

    recv_unicode = recv_string

    def send_json(
        self,
        obj: object,
        flags: int = 0,
        *,
        routing_id: int | None = None,
        group: str | None = None,
        **kwargs: "Unpack[DumpArguments]",
    ) -> MessageTracker | None:
        """Sends an object as JSON; further arguments go to `json.dumps`."""
        import json

        body = json.dumps(obj, **kwargs).encode()
        return self.send(body, flags, routing_id=routing_id, group=group)

    def recv_json(self, flags: int = 0, **kwargs: "Unpack[LoadArguments]") -> Any:
        """Receives an object as JSON; further arguments go to `json.loads`."""
        import json

        data = self.recv(flags)
        return self._deserialize(data, lambda body: json.loads(body, **kwargs))

    def send_pyobj(
        self,
        obj: object,
        flags: int = 0,
        protocol: int | None = None,
        **kwargs: "Unpack[SendObjectArguments]",
    ) -> MessageTracker | None:
        """Sends a pickled object."""
        import pickle

        body = pickle.dumps(obj, protocol)
        tracker: MessageTracker | None = self.send(body, flags, **kwargs)
        return tracker

    def recv_pyobj(self, flags: int = 0) -> Any:
        """Receives a pickled object.

        Unpickling runs code of the sender's choice: only for peers that you trust as
        yourself. Pickles that come over tcp from another machine, from peers that did
        not prove who they are (CURVE, or PLAIN with an authenticator), raise
        `UntrustedPickle` unless `trust_pickles` says otherwise. `send_typed` and
        `recv_typed` need no such trust.
        """
        frame = self.recv(flags, copy=False)
        return self._deserialize(frame, self._unpickle)

    def _unpickle(self, frame: Any) -> Any:
        trusts = self.trust_pickles
        if trusts is None:
            trusts = self.context.trust_pickles
        return _pickles.load(frame, trusted=trusts)

    def send_typed(
        self,
        obj: object,
        flags: int = 0,
        *,
        enc_hook: Callable[[Any], Any] | None = None,
        **kwargs: "Unpack[SendObjectArguments]",
    ) -> MessageTracker | None:
        """Sends an object as MessagePack: numbers, text, dates, lists, dataclasses, ...

        Needs msgspec (``pip install 'zeroxide[typed]'``), and takes whatever that encodes;
        `enc_hook` replaces other objects by such. Further arguments go to `send`.
        """
        tracker: MessageTracker | None = self.send(_typed.encode(obj, enc_hook), flags, **kwargs)
        return tracker

    @overload
    def recv_typed(
        self,
        kind: builtins.type[_T],
        flags: int = 0,
        *,
        dec_hook: Callable[[builtins.type, Any], Any] | None = None,
    ) -> _T: ...
    @overload
    def recv_typed(
        self,
        kind: Any,
        flags: int = 0,
        *,
        dec_hook: Callable[[builtins.type, Any], Any] | None = None,
    ) -> Any: ...
    def recv_typed(
        self,
        kind: Any,
        flags: int = 0,
        *,
        dec_hook: Callable[[builtins.type, Any], Any] | None = None,
    ) -> Any:
        """Receives an object of type `kind`, from any peer: nothing in it is run.

        `kind` is whatever msgspec knows: a dataclass, ``msgspec.Struct``, ``TypedDict``,
        ``list[int]``, ``int | str``; `dec_hook` makes other types. Raises
        `InvalidMessage`, which says what is wrong and where, for anything else.
        """
        frame = self.recv(flags, copy=False)
        return self._deserialize(frame, lambda frame: _typed.decode(frame, kind, dec_hook))

    # ---- Arrow ----------------------------------------------------------------------

    def send_arrow(self, data: "ArrowData", flags: int = 0) -> MessageTracker | None:
        """Sends a table as one message, in Arrow's IPC stream format.

        `data` is anything that speaks Arrow: a table, batch or array of pyarrow, polars,
        nanoarrow or DuckDB, a data frame of pandas, what `recv_arrow` returned. An array
        that is not of structs is sent as a column named ``value``.
        """
        return self.send(_native.arrow_encode(data), flags)

    def recv_arrow(self, flags: int = 0) -> _native.ArrowTable:
        """Receives a table that was sent as one message.

        Every Arrow library takes it, without a copy: ``pyarrow.table(it)``,
        ``polars.from_arrow(it)``. Raises ValueError for a message that is something
        else, or made up: whatever a peer sends, nothing worse comes of it.
        """
        frame = self.recv(flags, copy=False)
        return cast(_native.ArrowTable, self._deserialize(frame, _native.arrow_decode))

    def send_batch_arrow(self, data: "ArrowData", flags: int = 0) -> int:
        """Sends every row as a message, as `send_batch` does; returns how many.

        The column ``value``, of bytes or text, has the messages; or ``frames``, lists of
        bytes, those of several parts.
        """
        return self._send_rows(data, flags)

    def recv_batch_arrow(
        self,
        max_rows: int = 10_000,
        timeout: float | None = None,
        flags: int = 0,
        *,
        max_bytes: int = 64 << 20,
        frames: bool = False,
    ) -> _native.ArrowTable:
        """Receives what is there, at least one message, as the rows of a table.

        As `recv_batch`, but the messages become a column ``value`` of bytes, without a
        Python object for each: the last part of every message, or the only one. With
        `frames` there is a column ``frames`` beside it, with the lists of all parts.
        Stops at about `max_bytes` bytes.
        """
        return self._recv_rows(max_rows, max_bytes, timeout, flags, frames)

    # ---- monitoring -----------------------------------------------------------------

    def get_monitor_socket(self, events: int | None = None, addr: str | None = None) -> Self:
        """A PAIR socket that delivers what happens to this socket's connections.

        Made once; read it with `recv_monitor_message`.
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
        """What happens to this socket's connections from now on, as `SocketEvent` objects.

            for event in socket.monitor_events():
                print(event.kind.name, event.endpoint, event.address, event.reason)

        `events` is a sum of kinds. A ``for`` loop ends when nothing happens for `timeout`
        ms. There may be several readers, and `get_monitor_socket` beside them.
        """
        from .events import SocketEvents

        return SocketEvents(self._event_stream(events), timeout)

    def disable_monitor(self) -> None:
        """Ends what `get_monitor_socket` began; the last event says so."""
        self._monitor_socket = None
        self.monitor(None, 0)


def _not_text(body: object) -> TypeError:
    cure = "send takes bytes" if isinstance(body, bytes) else "send_json takes objects"
    return TypeError(f"send_string takes str, not {type(body).__name__}: {cure}")


def _context_of(context: Any, socket_type: Any) -> "Context[Any]":
    """Returns the context, or raises `TypeError` if the two make no socket."""
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
    socket = _sockets.get(shadow)
    if socket is None:
        raise ZMQError(Errno.ENOTSOCK, f"there is no socket number {shadow}")
    return socket


if TYPE_CHECKING:
    SyncSocket: TypeAlias = Socket[bytes]
else:
    # Not Socket[bytes]: isinstance() must work with it.
    SyncSocket = Socket
