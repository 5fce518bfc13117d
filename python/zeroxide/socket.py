"""The socket: what the native class leaves to Python.

Sending, receiving and polling are native methods, inherited as they are. Here are the
conveniences over them, none of which a program calls a million times a second.

This is one file because it is one class: more than half of its lines are docstrings, which
`help()` and editors show.
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


class Attachment(Generic[_S]):
    """What `Socket.bind` and `Socket.connect` return: a ``with`` block that undoes them.

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


class Socket(OptionAttributes, Generic[ReturnT_co]):
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

    context: "Context[Any]"
    type: SocketType
    _repr_cls: ClassVar[str] = "zmq.Socket"
    _shadow: bool = False
    # Keeps what a shadow stands for alive.
    _shadow_obj: "Socket[Any] | None" = None
    _monitor_socket: "Socket[Any] | None" = None
    # Whether `recv_pyobj` opens the pickles of every peer, or of none; None means the context's setting.
    trust_pickles: "_pickles.Trust | None" = None

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

    def close(self, linger: int | None = None) -> None:
        """Closes the socket and all its handles.

        Calls that wait on the socket in other threads raise `ZMQError`. Closing again does
        nothing.

        Args:
            linger: How long the context keeps sending what is queued, in ms: -1 without limit,
                None as the option ``LINGER`` says.

        Example:
            >>> push.close(linger=0)
            >>> push.closed
            True

        Source:
            zmq_close(3); pyzmq's ``Socket.close``
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
        endpoint = super().bind(addr)
        warn_of_security(self, endpoint)
        return Attachment(self, "bind", endpoint)

    def connect(self, addr: str | bytes) -> Attachment[Self]:  # type: ignore[override]
        """Connects to an address.

        Returns at once: the connection is made in the background, and made again whenever it is
        lost. The peer need not be there yet, with inproc neither.

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
        endpoint = super().connect(addr)
        warn_of_security(self, endpoint)
        return Attachment(self, "connect", endpoint)

    def bind_to_random_port(
        self,
        addr: str,
        min_port: int = 49152,
        max_port: int = 65536,
        max_tries: int = 100,
    ) -> int:
        """Listens at a free port.

        Args:
            addr: The address without the port: ``tcp://127.0.0.1``, ``tcp://*``.
            min_port: The lowest port to try. With the default range the system chooses.
            max_port: The port above the highest one to try.
            max_tries: How many random ports of the range to try.

        Returns:
            The port.

        Raises:
            ZMQBindError: None of the ports tried is free.
            ZMQError: As in `bind`.

        Example:
            >>> with context.socket(zmq.PULL) as socket:
            ...     socket.bind_to_random_port("tcp://127.0.0.1", 20000, 30000) in range(20000, 30000)
            True

        Source:
            pyzmq's ``Socket.bind_to_random_port``
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
        """The same as `set`.

        Args:
            option: The number of the option.
            optval: The value.

        Source:
            pyzmq's ``Socket.setsockopt``
        """
        self.set(option, optval)

    def getsockopt(self, option: int) -> Any:
        """The same as `get`.

        Args:
            option: The number of the option.

        Returns:
            The value: an int, or `bytes`.

        Source:
            pyzmq's ``Socket.getsockopt``
        """
        return self.get(option)

    def set_string(self, option: int, optval: str, encoding: str = "utf-8") -> None:
        """Sets an option that takes bytes to encoded text.

        Args:
            option: The number of the option.
            optval: The text.
            encoding: How to encode it.

        Raises:
            TypeError: `optval` is not text.
            ZMQError: As in `set`.

        Example:
            >>> dealer.set_string(zmq.ROUTING_ID, "worker-1")
            >>> dealer.routing_id
            b'worker-1'

        Source:
            pyzmq's ``Socket.set_string``
        """
        if not isinstance(optval, str):
            raise TypeError(f"set_string takes str, not {optval!r}")
        self.set(option, optval.encode(encoding))

    setsockopt_string = set_string
    setsockopt_unicode = set_string

    def get_string(self, option: int, encoding: str = "utf-8") -> str:
        """Reads an option that holds bytes as text.

        Args:
            option: The number of the option.
            encoding: How to decode it.

        Returns:
            The text.

        Raises:
            TypeError: The option is a number.
            ZMQError: As in `get`.

        Source:
            pyzmq's ``Socket.get_string``
        """
        value = self.get(option)
        if not isinstance(value, bytes):
            name = SocketOption(option).name
            raise TypeError(f"{name} is a number, not text: use get(zmq.{name})")
        return value.decode(encoding)

    getsockopt_string = get_string
    getsockopt_unicode = get_string

    def get_hwm(self) -> int:
        """Returns the high-water mark.

        Returns:
            ``SNDHWM``, in messages per peer.

        Source:
            pyzmq's ``Socket.get_hwm``
        """
        try:
            return cast(int, self.get(SNDHWM))
        except ZMQError:
            return cast(int, self.get(RCVHWM))

    def set_hwm(self, value: int) -> None:
        """Sets both high-water marks, ``SNDHWM`` and ``RCVHWM``.

        Args:
            value: How many messages may be queued per peer and direction; 0 means no limit.

        Source:
            pyzmq's ``Socket.set_hwm``
        """
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
        """Subscribes to messages that begin with a topic (SUB, XPUB with ``XPUB_MANUAL``).

        Args:
            topic: What the first part of the messages begins with; text is sent as UTF-8. The
                empty topic subscribes to everything.

        Raises:
            ZMQError: ``EINVAL`` if the socket has another type.

        Example:
            >>> sub.subscribe("weather")
            >>> pub.wait_subscribed("weather", timeout=1000)
            1

        Source:
            29/PUBSUB, section "The SUB Socket Type"; ``ZMQ_SUBSCRIBE`` of zmq_setsockopt(3)
        """
        self.set(SUBSCRIBE, topic.encode() if isinstance(topic, str) else topic)

    def unsubscribe(self, topic: str | bytes) -> None:
        """Undoes one `subscribe` with the same topic.

        Args:
            topic: The topic, as passed to `subscribe`.

        Raises:
            ZMQError: ``EINVAL`` if the socket has another type, or is not subscribed to `topic`.

        Source:
            29/PUBSUB, section "The SUB Socket Type"; ``ZMQ_UNSUBSCRIBE`` of zmq_setsockopt(3)
        """
        self.set(UNSUBSCRIBE, topic.encode() if isinstance(topic, str) else topic)

    def join(self, group: str | bytes) -> NoReturn:
        """Raises `RuntimeError`: DISH sockets are a draft, which is not built in.

        Args:
            group: The group to join.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("RADIO and DISH are draft sockets, which are not built in")

    def leave(self, group: str | bytes) -> NoReturn:
        """Raises `RuntimeError`: DISH sockets are a draft, which is not built in.

        Args:
            group: The group to leave.
        """
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
        """Sends an object by means of a function that makes a message of it.

        Args:
            msg: The object.
            serialize: Makes the parts of a message of it: a list of `bytes`.
            flags: As in `send`.
            copy: As in `send_multipart`.
            **kwargs: Further arguments of `send_multipart`.

        Returns:
            What `send_multipart` returns.

        Example:
            >>> push.send_serialized(("a", "b"), lambda pair: [part.encode() for part in pair])
            >>> pull.recv_serialized(lambda parts: [part.decode() for part in parts])
            ['a', 'b']

        Source:
            pyzmq's ``Socket.send_serialized``
        """
        return self.send_multipart(serialize(msg), flags, copy=copy, **kwargs)

    def recv_serialized(
        self,
        deserialize: Callable[[list[Any]], _R],
        flags: int = 0,
        copy: bool = True,
    ) -> _R:
        """Receives an object by means of a function that makes it of a message.

        Args:
            deserialize: Makes an object of the parts of a message, a list.
            flags: As in `recv`.
            copy: False passes frames to `deserialize` instead of `bytes`.

        Returns:
            What `deserialize` returns.

        Source:
            pyzmq's ``Socket.recv_serialized``
        """
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
        """Sends text.

        Args:
            u: The text.
            flags: As in `send`.
            copy: As in `send`.
            encoding: How to encode the text.
            **kwargs: Further arguments of `send`.

        Returns:
            What `send` returns.

        Raises:
            TypeError: `u` is not text.
            ZMQError: As in `send`.

        Example:
            >>> push.send_string("grüße")
            >>> pull.recv_string()
            'grüße'

        Source:
            pyzmq's ``Socket.send_string``
        """
        if not isinstance(u, str):
            raise _not_text(u)
        return self.send(u.encode(encoding), flags, copy=copy, **kwargs)

    send_unicode = send_string

    def recv_string(self, flags: int = 0, encoding: str = "utf-8") -> str:
        """Receives text.

        Args:
            flags: As in `recv`.
            encoding: How to decode the text.

        Returns:
            The text of one part.

        Raises:
            UnicodeDecodeError: The part is not text in this encoding.
            ZMQError: As in `recv`.

        Source:
            pyzmq's ``Socket.recv_string``
        """
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
        """Sends an object as JSON.

        Args:
            obj: The object: anything that `json.dumps` takes.
            flags: As in `send`.
            routing_id: For draft sockets, which are not built in.
            group: For draft sockets, which are not built in.
            **kwargs: Further arguments of `json.dumps`.

        Returns:
            None.

        Raises:
            TypeError: The object has no form in JSON.
            ZMQError: As in `send`.

        Example:
            >>> push.send_json({"id": 1})
            >>> pull.recv_json()
            {'id': 1}

        Source:
            pyzmq's ``Socket.send_json``
        """
        import json

        body = json.dumps(obj, **kwargs).encode()
        return self.send(body, flags, routing_id=routing_id, group=group)

    def recv_json(self, flags: int = 0, **kwargs: "Unpack[LoadArguments]") -> Any:
        """Receives an object as JSON.

        Args:
            flags: As in `recv`.
            **kwargs: Further arguments of `json.loads`.

        Returns:
            The object.

        Raises:
            ValueError: The part is not JSON.
            ZMQError: As in `recv`.

        Source:
            pyzmq's ``Socket.recv_json``
        """
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
        """Sends a pickled object. Prefer `send_typed`, or `send_json`: see `recv_pyobj`.

        Args:
            obj: The object.
            flags: As in `send`.
            protocol: The version of the pickle format.
            **kwargs: Further arguments of `send`.

        Returns:
            What `send` returns.

        Raises:
            PicklingError: The object cannot be pickled.
            ZMQError: As in `send`.

        Source:
            pyzmq's ``Socket.send_pyobj``
        """
        import pickle

        body = pickle.dumps(obj, protocol)
        tracker: MessageTracker | None = self.send(body, flags, **kwargs)
        return tracker

    def recv_pyobj(self, flags: int = 0) -> Any:
        """Receives a pickled object.

        Unpickling runs code of the sender's choice: use it only with peers that you trust with
        your program. Pickles that arrive over tcp from another machine, from peers that are not
        authenticated (by CURVE, or by PLAIN), are refused unless ``socket.trust_pickles`` or
        ``context.trust_pickles`` is True. `send_typed` and `recv_typed` need no trust.

        Args:
            flags: As in `recv`.

        Returns:
            The object.

        Raises:
            UntrustedPickle: The pickle was refused. The message is lost.
            UnpicklingError: The part is not a pickle.
            ZMQError: As in `recv`.

        Source:
            pyzmq's ``Socket.recv_pyobj``
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
        """Sends an object as MessagePack: numbers, text, dates, lists, dataclasses and more.

        Needs msgspec (``pip install zeroxide[typed]``).

        Args:
            obj: The object: anything that msgspec encodes.
            flags: As in `send`.
            enc_hook: Replaces an object that msgspec does not know by one that it does.
            **kwargs: Further arguments of `send`.

        Returns:
            What `send` returns.

        Raises:
            ModuleNotFoundError: msgspec is not installed.
            TypeError: msgspec cannot encode the object.
            ZMQError: As in `send`.

        Example:
            >>> push.send_typed({"id": 1, "tags": ["a", "b"]})
            >>> pull.recv_typed(dict[str, int | list[str]])
            {'id': 1, 'tags': ['a', 'b']}

        Source:
            zeroxide only
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
        """Receives an object of a known type. Safe with any peer: it runs no code.

        Needs msgspec (``pip install zeroxide[typed]``).

        Args:
            kind: The type of the object, as msgspec knows it: a dataclass, a
                ``msgspec.Struct``, a ``TypedDict``, ``list[int]``, ``int | str``.
            flags: As in `recv`.
            dec_hook: Makes objects of types that msgspec does not know: ``dec_hook(type, value)``.

        Returns:
            The object.

        Raises:
            InvalidMessage: The message holds something else. The text says what and where, and
                ``data`` has the message.
            ModuleNotFoundError: msgspec is not installed.
            ZMQError: As in `recv`.

        Example:
            >>> push.send_typed([1, 2, "three"])
            >>> pull.recv_typed(list[int])
            Traceback (most recent call last):
            zeroxide.error.InvalidMessage: not a message of type list: Expected `int`, got `str` - at `$[2]`

        Source:
            zeroxide only
        """
        frame = self.recv(flags, copy=False)
        return self._deserialize(frame, lambda frame: _typed.decode(frame, kind, dec_hook))

    # ---- Arrow ----------------------------------------------------------------------

    def send_arrow(self, data: "ArrowData", flags: int = 0) -> MessageTracker | None:
        """Sends a table as one message, in Arrow's IPC stream format.

        Args:
            data: A table, batch or array of pyarrow, polars, nanoarrow or DuckDB, a pandas data
                frame, or what `recv_arrow` returned: any object with Arrow's PyCapsule
                interface. An array that is not of structs becomes a column named ``value``.
            flags: As in `send`.

        Returns:
            None.

        Raises:
            TypeError: `data` does not have Arrow's interface.
            ZMQError: As in `send`.

        Example:
            >>> push.send_batch([b"one", b"two"])
            2
            >>> push.send_arrow(pull.recv_batch_arrow())
            >>> pull.recv_arrow().num_rows
            2

        Source:
            Arrow IPC streaming format; zeroxide only
        """
        return self.send(_native.arrow_encode(data), flags)

    def recv_arrow(self, flags: int = 0) -> _native.ArrowTable:
        """Receives a table that was sent as one message. Safe with any peer.

        Args:
            flags: As in `recv`.

        Returns:
            The table. Arrow libraries take it without a copy: ``pyarrow.table(table)``,
            ``polars.from_arrow(table)``.

        Raises:
            ValueError: The message is not a table in Arrow's IPC stream format.
            ZMQError: As in `recv`.

        Source:
            Arrow IPC streaming format; zeroxide only
        """
        frame = self.recv(flags, copy=False)
        return cast(_native.ArrowTable, self._deserialize(frame, _native.arrow_decode))

    def send_batch_arrow(self, data: "ArrowData", flags: int = 0) -> int:
        """Sends every row of a table as a message of its own.

        Args:
            data: A table with a column ``value`` of bytes or text, or with a column ``frames``
                of lists of bytes for messages of several parts. As in `send_arrow`, any object
                with Arrow's interface will do.
            flags: 0, or ``DONTWAIT`` to stop instead of waiting for room.

        Returns:
            How many rows were sent, as in `send_batch`.

        Raises:
            Again: There was no room for even the first row.
            TypeError: `data` does not have Arrow's interface.
            ValueError: `data` has neither of the columns.
            ZMQError: As in `send`.

        Source:
            zeroxide only
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
        """Receives the messages that have arrived, at least one, as rows of a table.

        Does what `recv_batch` does, but makes no Python object of each message.

        Args:
            max_rows: How many messages to return at most; 1 or more.
            timeout: How long to wait for the first message, in ms. None waits as `recv` does,
                for ``RCVTIMEO`` ms.
            flags: 0, or ``DONTWAIT`` to raise `Again` instead of waiting.
            max_bytes: The size to stop at, in bytes.
            frames: Whether to add a column ``frames`` with the lists of all parts.

        Returns:
            A table with a column ``value`` of bytes: the last part of every message.

        Raises:
            Again: Nothing arrived in time.
            ValueError: `max_rows` or `max_bytes` is below 1, or a message is larger than 1 GiB.
            ZMQError: As in `recv`.

        Example:
            >>> push.send_batch([b"one", b"two"])
            2
            >>> pull.recv_batch_arrow(timeout=1000).num_rows
            2

        Source:
            zeroxide only
        """
        return self._recv_rows(max_rows, max_bytes, timeout, flags, frames)

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

    def disable_monitor(self) -> None:
        """Stops what `get_monitor_socket` started. The last event is ``EVENT_MONITOR_STOPPED``.

        Source:
            pyzmq's ``Socket.disable_monitor``
        """
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
