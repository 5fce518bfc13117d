"""The context: I/O threads, the sockets on them, and their end."""

import atexit
import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from functools import partial
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

from . import _checks, _native, _observing, as_zmq
from ._exports import exports_only
from ._last_turns import raise_at_end, report_at_end, take_turns
from ._options import is_declared, no_option
from ._typing import OptionValue, SocketT_co
from .constants import EFAULT, LINGER, ContextOption, Errno, SocketOption
from .error import ZMQError, failure
from .socket import Socket

__all__ = ["Context", "SyncContext"]


def __dir__() -> list[str]:
    return exports_only(globals())


_S = TypeVar("_S", bound="Socket[Any]")

if TYPE_CHECKING:
    from ._option_names import ContextOptions, SocketOptions
    from ._undelivered import Undelivered

    class _Attributes(_native.Context, ContextOptions, SocketOptions):
        """The options of a context, and the defaults of its sockets' options."""

        subscribe: bytes

else:
    _Attributes = _native.Context

# Implicit termination (garbage collection, interpreter exit) goes on while bytes move
# and gives up after this long without.
IDLE_MS = 2000


class Context(_Attributes, Generic[SocketT_co]):
    """Owns the I/O threads that move messages, and the sockets made with it.

    A program usually has one context. As a ``with`` block, it closes its sockets and
    terminates at the end. ``Context(other)`` and ``Context(shadow=other)`` are further
    handles of the same context.

    Options of the context are attributes: ``context.max_sockets = 5000``. An option of
    sockets that is set on the context (``context.linger = 0``) is the default of sockets
    made later. The page "Options" lists both.

    A context may be used from any thread. After a fork, the child needs a new one.

    Args:
        io_threads: The number of I/O threads, or the context to make another handle of. One
            thread moves several GB per second.
        shadow: The context (or its `underlying` number) to make another handle of.

    Raises:
        ZMQError: ``EINVAL`` if the number of threads is not 0 to 1024, ``EFAULT`` if there
            is no context to shadow.

    Example:
        >>> with zmq.Context() as ctx:
        ...     ctx.linger = 500  # ms
        ...     ctx.socket(zmq.PUSH).linger
        500

    Source:
        zmq_ctx_new(3); pyzmq's ``Context``
    """

    sockopts: dict[int, OptionValue]
    """The defaults of socket options, by number. `setsockopt` sets them."""
    trust_pickles: "bool | Literal['nobody']" = False
    """Whose pickles `Socket.recv_pyobj` opens: True for those of every peer, ``'nobody'`` for none.

    The default is False: those of peers that are on this machine or authenticated.
    """
    _repr_cls: ClassVar[str] = "zmq.Context"
    _socket_class: ClassVar[type[Socket[Any]]] = Socket
    _instance: ClassVar[Any] = None
    _shadow: bool = False
    _pid: int = 0
    # Keeps what a shadow stands for alive.
    _shadow_obj: "Context[Any] | None" = None
    _sockets: "weakref.WeakValueDictionary[int, Socket[Any]]"

    def __init__(
        self,
        io_threads: "int | Context[Any]" = 1,
        shadow: "Context[Any] | int | None" = None,
    ) -> None:
        if isinstance(io_threads, Context):
            shadow, io_threads = io_threads, 1
        # A plain dictionary of weak references: adding and dropping entries from
        # several threads needs no lock.
        self._sockets = weakref.WeakValueDictionary()
        self.sockopts = {}
        self._pid = os.getpid()
        if shadow:
            original = _find(shadow)
            self._shadow = True
            self._shadow_obj = original
            self._share(original)
        else:
            self._open(io_threads)
            _contexts[self.underlying] = self
            _observing.note_start()

    # ---- the shared one, and other handles ------------------------------------------

    @classmethod
    def instance(cls, io_threads: int = 1) -> Self:
        """Returns the context that the process shares, made on first use.

        There is a new one after a fork, and after the old one was terminated. Subclasses share
        that of their base class unless they set ``_instance = None``.

        Args:
            io_threads: The number of I/O threads, if the context is made by this call.

        Returns:
            The context.

        Example:
            >>> zmq.Context.instance() is zmq.Context.instance()
            True

        Source:
            pyzmq's ``Context.instance``
        """
        with _instance_lock:
            context = cls._instance
            # An inherited context reports itself closed after a fork.
            if context is None or context.closed:
                context = cls(io_threads=io_threads)
                cls._instance = context
            return cast(Self, context)

    @classmethod
    def shadow(cls, address: "Context[Any] | int") -> Self:
        """Returns another handle of a context.

        Args:
            address: The context, or its `underlying` number.

        Returns:
            The handle. Terminating it terminates the context.

        Raises:
            ZMQError: ``EFAULT`` if there is no context with that number in this process.

        Source:
            pyzmq's ``Context.shadow``
        """
        return cls(shadow=address)

    @classmethod
    def shadow_pyczmq(cls, ctx: object) -> Self:
        """Raises `ZMQError`: contexts of CZMQ belong to libzmq.

        Args:
            ctx: The context of CZMQ.

        Returns:
            Nothing.

        Raises:
            ZMQError: ``ENOTSUP``, always.
        """
        raise failure(Errno.ENOTSUP, f"{ctx!r} belongs to another library")

    def __copy__(self) -> Self:
        return type(self)(shadow=self)

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be pickled: make a new one where it is used")

    # ---- sockets --------------------------------------------------------------------

    @overload
    def socket(
        self,
        socket_type: int,
        socket_class: Callable[..., SocketT_co] | None = None,
        *,
        copy_threshold: int | None = None,
    ) -> SocketT_co: ...
    @overload
    def socket(self, socket_type: int, socket_class: type[_S], **kwargs: Any) -> _S: ...
    @overload
    def socket(self, socket_type: int, socket_class: Callable[..., _S], **kwargs: Any) -> _S: ...
    def socket(
        self,
        socket_type: int,
        socket_class: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Creates a socket with the context's default options.

        Args:
            socket_type: The type: a `SocketType` such as ``zmq.PUSH``.
            socket_class: The class of the socket; None for the context's own.
            **kwargs: Further arguments of the class, such as `copy_threshold`.

        Returns:
            The socket.

        Raises:
            ContextTerminated: The context was shut down.
            TypeError: `socket_type` is not a socket type, or `socket_class` is not a class of sockets.
            ZMQError: ``EINVAL`` if there is no such type, ``EMFILE`` if the context has
                ``MAX_SOCKETS`` sockets, ``ENOTSUP`` if it was terminated.

        Example:
            >>> with context.socket(zmq.SUB) as socket:
            ...     socket.type.name
            'SUB'

        Source:
            zmq_socket(3); pyzmq's ``Context.socket``
        """
        if self.closed and self._pid == os.getpid():
            number = Errno.EFAULT if self._shadow else Errno.ENOTSUP
            raise failure(number, "the context is closed; make a new one")
        # The native call refuses a context inherited through a fork, with the reason.
        make = socket_class or self._socket_class
        if not callable(make):
            raise TypeError(f"socket_class takes a class of sockets, not {_checks.shown(make)}")
        socket = make(self, socket_type, **kwargs)
        for option, value in self.sockopts.items():
            # A default only applies to socket types that have the option: SUBSCRIBE
            # has no effect on a PUSH socket.
            with contextlib.suppress(ZMQError):
                socket.set(option, value)
        return socket

    def _add_socket(self, socket: Socket[Any]) -> None:
        self._sockets[id(socket)] = socket

    def _rm_socket(self, socket: Socket[Any]) -> None:
        self._sockets.pop(id(socket), None)

    def _open_sockets(self) -> list[Socket[Any]]:
        sockets = [reference() for reference in self._sockets.valuerefs()]
        return [socket for socket in sockets if socket is not None and not socket.closed]

    # ---- the end --------------------------------------------------------------------

    @overload
    def term(self) -> None: ...
    @overload
    def term(self, *, timeout: float) -> "Undelivered": ...
    @overload
    def term(self, *, timeout: float | None = None) -> "Undelivered | None": ...
    def term(self, *, timeout: float | None = None) -> "Undelivered | None":
        """Waits until every socket is closed and its messages are sent, then ends the context.

        Messages that cannot be sent are given up after the ``LINGER`` time of their socket.
        Calls that wait on sockets of this context raise `ContextTerminated`. A signal handler
        that raises interrupts the wait; calling `term` again continues it.

        With a `timeout`, the call returns what was not delivered, and to whom. When the time is
        up, sockets that are still open are closed, and what they could not send is given up. The
        report has what all sockets of the context gave up when they were closed, also before this
        call.

        Args:
            timeout: How long to wait, in ms. A negative number means no limit, and so does None.

        Returns:
            What was not delivered, which is false if all was. None without a `timeout`.

        Raises:
            ContextTerminated: Never by this call, but by calls that wait on the context's
                sockets in other threads.

        Example:
            >>> with zmq.Context() as ctx:
            ...     ctx.term(timeout=1000)
            <Undelivered: everything was delivered>

        Source:
            zmq_ctx_term(3); pyzmq's ``Context.term``; `timeout` is zeroxide's
        """
        if timeout is None:
            return super().term()
        from ._undelivered import reported

        return reported(self._term_within(timeout))

    def destroy(self, linger: float | None = None) -> None:
        """Closes all sockets of the context, and terminates it.

        Args:
            linger: How long to keep sending queued messages, in ms. -1 means no limit, and
                None the ``LINGER`` of each socket. A fraction is rounded up.

        Raises:
            TypeError: `linger` is not a number.
            ValueError: `linger` is nan or out of range.

        Source:
            pyzmq's ``Context.destroy``
        """
        self._destroy(linger, warn=False)

    def _destroy(self, linger: float | None, *, warn: bool) -> None:
        if self.closed:
            return
        unclosed = self._close_sockets(_checks.linger(linger))
        try:
            # All are closed by now: where warnings are errors, the first one raises.
            for text in unclosed if warn else ():
                warnings.warn(text, ResourceWarning, stacklevel=3)
        finally:
            self.term()

    def _close_sockets(self, linger: int | None = None) -> list[str]:
        """Closes what is open and returns a line about each."""
        closed = []
        for socket in self._open_sockets():
            closed.append(f"Destroying context with unclosed socket {socket}")
            if linger is not None:
                with contextlib.suppress(ZMQError):
                    socket.set(LINGER, linger)
            socket.close()
        return closed

    def _terminate_implicitly(self, hurried: bool = False) -> None:
        """Closes everything without waiting for a peer that does not take its messages."""
        self._close_sockets()
        left: dict[str, int] = {}
        for endpoint, _, _, messages, _ in self._term_idle(0 if hurried else IDLE_MS):
            left[endpoint] = left.get(endpoint, 0) + messages
        if left:
            parts = ", ".join(f"{n} to {endpoint}" for endpoint, n in left.items())
            report_at_end(f"zeroxide: gave up sending, messages lost: {parts}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._destroy(None, warn=True)

    def __del__(self) -> None:
        # `closed` is also true for an unfinished object, and for one inherited through a fork.
        if self._shadow or self.closed:
            return
        try:
            warnings.warn(f"Unclosed context {self}", ResourceWarning, stacklevel=2, source=self)
        finally:
            # Also where warnings are errors.
            interruption = take_turns([self._terminate_implicitly])
            if interruption is not None:
                raise interruption

    # ---- options --------------------------------------------------------------------

    def set(self, option: int, optval: int | str | bytes) -> None:
        """Sets an option of the context.

        Options are attributes as well: ``context.max_sockets = 5000``.

        Args:
            option: The number of the option: a `ContextOption` such as ``zmq.MAX_SOCKETS``.
            optval: The value: an int, or text for ``THREAD_NAME_PREFIX``.

        Raises:
            RuntimeError: The context was terminated.
            TypeError: The option takes another type of value.
            ZMQError: ``EINVAL`` if there is no such option, it cannot be set, or the value is
                out of range.

        Source:
            zmq_ctx_set(3); pyzmq's ``Context.set``
        """
        if self.closed:
            raise RuntimeError("Context has been destroyed; make a new one")
        super().set(option, optval)

    def get(self, option: int) -> int:
        """Reads an option of the context.

        Args:
            option: The number of the option: a `ContextOption` such as ``zmq.MAX_SOCKETS``.

        Returns:
            The value.

        Raises:
            RuntimeError: The context was terminated.
            ZMQError: ``EINVAL`` if there is no such option, or it cannot be read.

        Example:
            >>> context.get(zmq.IO_THREADS)
            1

        Source:
            zmq_ctx_get(3); pyzmq's ``Context.get``
        """
        if self.closed:
            raise RuntimeError("Context has been destroyed; make a new one")
        return super().get(option)

    def setsockopt(self, opt: int, value: OptionValue) -> None:
        """Sets the default of a socket option, for sockets made later.

        Types of sockets that do not have the option ignore it.

        Args:
            opt: The number of the option: a `SocketOption` such as ``zmq.LINGER``.
            value: The value, which is checked when a socket is made.

        Raises:
            TypeError: `opt` is not a number.

        Example:
            >>> context.setsockopt(zmq.SNDHWM, 5000)  # messages
            >>> with context.socket(zmq.PUSH) as socket:
            ...     socket.sndhwm
            5000

        Source:
            pyzmq's ``Context.setsockopt``
        """
        if not isinstance(opt, int):
            raise TypeError(f"an option is a number such as zmq.LINGER, not {_checks.shown(opt)}")
        self.sockopts[opt] = value

    def getsockopt(self, opt: int) -> OptionValue:
        """Returns the default of a socket option.

        Args:
            opt: The number of the option: a `SocketOption` such as ``zmq.LINGER``.

        Returns:
            The value.

        Raises:
            KeyError: The context has no default for the option.

        Source:
            pyzmq's ``Context.getsockopt``
        """
        try:
            return self.sockopts[opt]
        except (KeyError, TypeError):
            shown = getattr(opt, "name", None) or _checks.shown(opt)
            raise KeyError(f"this context has no default for the option {shown}") from None

    # To type checkers, an attribute that is not declared is a mistake.
    if not TYPE_CHECKING:

        def __getattr__(self, key: str) -> OptionValue:
            name = key.upper()
            if name in ContextOption.__members__:
                try:
                    return self.get(ContextOption[name])
                except ZMQError as error:
                    raise AttributeError(f"{key} cannot be read: {error}") from None
            try:
                return self.sockopts[SocketOption[name]]
            except KeyError:
                raise no_option(self, key) from None

        def __setattr__(self, key: str, value: Any) -> None:
            name = key.upper()
            if key in self.__dict__ or is_declared(type(self), key):
                object.__setattr__(self, key, value)
            elif name in ContextOption.__members__:
                self.set(ContextOption[name], value)
            elif name in SocketOption.__members__:
                self.sockopts[SocketOption[name]] = value
            else:
                raise no_option(self, key)

        def __delattr__(self, key: str) -> None:
            name = key.upper()
            if key not in self.__dict__ and name in SocketOption.__members__:
                try:
                    del self.sockopts[SocketOption[name]]
                except KeyError:
                    raise AttributeError(key) from None
            else:
                object.__delattr__(self, key)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *map(str.lower, ContextOption.__members__)}
        return sorted(names | set(ContextOption.__members__) if as_zmq.installed() else names)

    def __repr__(self) -> str:
        name = type(self).__dict__.get("_repr_cls")
        if name is None:
            name = f"{type(self).__module__}.{type(self).__name__}"
        count = len(self._open_sockets()) if "_sockets" in self.__dict__ else 0
        sockets = f"{count} socket{'s' if count > 1 else ''}" if count else ""
        closed = " closed" if self.closed else ""
        return f"<{name}({sockets}) at {id(self):#x}{closed}>"


# The contexts of this process by their number: for `Context.shadow` and the exit.
_contexts: "weakref.WeakValueDictionary[int, Context[Any]]" = weakref.WeakValueDictionary()
_instance_lock = threading.RLock()


def _find(shadow: "Context[Any] | int") -> "Context[Any]":
    if isinstance(shadow, Context):
        return shadow
    # A wrapper that passes attributes on has its number.
    number = getattr(shadow, "underlying", shadow)
    if not isinstance(number, int):
        raise TypeError(
            "shadow takes a context, or the `underlying` number of one, not"
            f" {_checks.shown(shadow)}"
        )
    context = _contexts.get(number)
    if context is None:
        raise failure(EFAULT, f"there is no context number {number}")
    return context


def _terminate_all() -> None:
    contexts = [reference() for reference in _contexts.valuerefs()]
    live = [context for context in contexts if context and not context.closed]
    # All contexts start to linger before the first wait, so that the waits overlap.
    unclosed: dict[Socket[Any], str] = {}
    begun = take_turns([partial(_begin_end, context, unclosed) for context in live])
    ended = take_turns(
        [context._terminate_implicitly for context in live], hurried=begun is not None
    )
    try:
        # Where warnings are errors, the first one raises.
        for socket, text in unclosed.items():
            warnings.warn(text, ResourceWarning, stacklevel=2, source=socket)
    finally:
        raise_at_end(begun or ended)


def _begin_end(context: "Context[Any]", unclosed: dict[Socket[Any], str], _hurried: bool) -> None:
    for socket in context._open_sockets():
        # The text of an open socket has its endpoints. Later, `__del__` finds it closed, and does not warn.
        unclosed[socket] = f"Unclosed socket {socket}"
    context._close_sockets()
    context.shutdown()


def _after_fork_in_child() -> None:
    # Another thread may have held the lock when the process was copied.
    global _instance_lock
    _instance_lock = threading.RLock()


atexit.register(_terminate_all)
os.register_at_fork(after_in_child=_after_fork_in_child)

if TYPE_CHECKING:
    SyncContext: TypeAlias = Context[Socket[bytes]]
else:
    SyncContext = Context
