"""The exceptions.

The extension module raises the classes defined here. `EXCEPTIONS` tells it which class
stands for which error number; for every other number it raises a plain `ZMQError`.
"""

from collections.abc import Callable
from errno import EACCES, EINTR
from typing import TYPE_CHECKING, Any

from ._exports import exports_only
from ._native import strerror, zmq_errno
from .constants import EAGAIN, ETERM, ETOOSLOW
from .version import zmq_version, zmq_version_info

__all__ = [
    "Again",
    "ContextTerminated",
    "DraftFDWarning",
    "InterruptedSystemCall",
    "InvalidMessage",
    "NotDone",
    "NotFlushed",
    "ProactorSelectorThreadWarning",
    "TooSlow",
    "UntrustedPickle",
    "ZMQBaseError",
    "ZMQBindError",
    "ZMQError",
    "ZMQVersionError",
]


def __dir__() -> list[str]:
    return exports_only(globals())


class ZMQBaseError(Exception):
    """The base class of the exceptions of this package.

    Source:
        pyzmq's ``ZMQBaseError``
    """


class _FromArguments:
    """The number or text of an error that the extension module created without `__init__`.

    Such an error only has them in `args`. On other errors, the attribute of the instance
    takes precedence.
    """

    def __init__(self, index: int, default: Callable[[Any], Any]) -> None:
        self._index = index
        self._default = default

    def __get__(self, error: "ZMQError | None", kind: type["ZMQError"]) -> Any:
        if error is None or len(error.args) <= self._index:
            return self._default(kind)
        return error.args[self._index]


class ZMQError(ZMQBaseError):
    """A call failed. ``errno`` has the reason as a number, the text has it in words.

    Args:
        errno: The number: ``zmq.EFSM``, or one of the system's. None stands for the last
            error of the calling thread.
        msg: The text; None for that of the number.

    Example:
        >>> try:
        ...     pull.send(b"wrong direction")
        ... except zmq.ZMQError as error:
        ...     error.errno == zmq.ENOTSUP
        True

    Source:
        zmq_errno(3); pyzmq's ``ZMQError``
    """

    if TYPE_CHECKING:
        errno: int | None = None
        """The error number; None if the error was made from text alone."""
        strerror: str
        """The text."""
    else:
        errno = _FromArguments(0, lambda kind: None)
        strerror = _FromArguments(1, lambda kind: strerror(kind.errno or 0))

    def __init__(self, errno: int | None = None, msg: str | None = None) -> None:
        if errno is None:
            errno = zmq_errno()
        # Text in the place of the number is taken as the message: programs do that.
        self.errno = errno if isinstance(errno, int) else None
        if msg is None:
            msg = strerror(errno) if isinstance(errno, int) else str(errno)
        self.strerror = msg

    def __str__(self) -> str:
        return self.strerror

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.strerror!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # By default a copy is made with `__init__`, whose attributes an error of a call does not have.
        return _restored, (type(self), self.args, self.__dict__)


class Again(ZMQError):
    """The call would have to wait (``DONTWAIT``), or its time is up (``RCVTIMEO``).

    Args:
        errno: Ignored: always ``EAGAIN``.
        msg: The text; None for the usual one.

    Source:
        pyzmq's ``Again``
    """

    errno: int | None = EAGAIN

    def __init__(self, errno: object = EAGAIN, msg: str | None = None) -> None:
        super().__init__(EAGAIN, msg)


class ContextTerminated(ZMQError):
    """The socket's context was shut down or terminated.

    Args:
        errno: Ignored: always ``ETERM``.
        msg: The text; None for the usual one.

    Source:
        pyzmq's ``ContextTerminated``
    """

    errno: int | None = ETERM

    def __init__(self, errno: object = ETERM, msg: str | None = None) -> None:
        super().__init__(ETERM, msg)


class InterruptedSystemCall(ZMQError, InterruptedError):
    """A signal interrupted the call. Calls are resumed, so programs rarely see it.

    Args:
        errno: Ignored: always ``EINTR``.
        msg: The text; None for the usual one.

    Source:
        pyzmq's ``InterruptedSystemCall``
    """

    errno: int | None = EINTR
    strerror: str

    def __init__(self, errno: object = EINTR, msg: str | None = None) -> None:
        super().__init__(EINTR, msg)


class TooSlow(ZMQError):
    """A SUB has not kept up with its publishers, so messages are missing.

    Either a message has waited for longer than ``MAX_LAG``, or a publisher over inproc has
    disconnected the socket (``SLOW_SUBSCRIBER``). The next call receives messages that were
    sent after the gap.

    Args:
        errno: Ignored: always ``ETOOSLOW``.
        msg: The text; None for the usual one.

    Source:
        zeroxide only
    """

    errno: int | None = ETOOSLOW

    def __init__(self, errno: object = ETOOSLOW, msg: str | None = None) -> None:
        super().__init__(ETOOSLOW, msg)


class NotFlushed(Again):
    """`Socket.flush` ran out of time.

    ``remaining`` has the number of messages that are not sent yet, by endpoint.

    Args:
        remaining: That number by endpoint.

    Source:
        zeroxide only
    """

    remaining: dict[str, int]
    """How many messages are not sent yet, by endpoint."""

    def __init__(self, remaining: dict[str, int] | None = None) -> None:
        self.remaining = dict(remaining or {})
        parts = ", ".join(f"{n} to {peer}" for peer, n in self.remaining.items())
        super().__init__(EAGAIN, f"{strerror(EAGAIN)}: messages not yet sent: {parts or 'unknown'}")


class UntrustedPickle(ZMQError):
    """`Socket.recv_pyobj` refused a pickle from a peer that is not authenticated.

    The message is lost. ``peer`` is the sender's address.

    Args:
        peer: The sender's address.
        msg: The reason, which follows the text of ``EACCES``.

    Source:
        zeroxide only
    """

    peer: str
    """The sender's address."""

    def __init__(self, peer: str, msg: str) -> None:
        super().__init__(EACCES, f"{strerror(EACCES)}: {msg}")
        self.peer = peer


class InvalidMessage(ZMQBaseError, ValueError):
    """`Socket.recv_typed` received something that is not of the expected type.

    The text says what is wrong and where. ``data`` is the message.

    Args:
        msg: The text.
        data: The message.

    Source:
        zeroxide only
    """

    data: bytes
    """The message."""

    def __init__(self, msg: str, data: bytes) -> None:
        super().__init__(msg)
        self.data = data

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, a copy is made with the text only.
        return type(self), (*self.args, self.data), self.__dict__


class ZMQBindError(ZMQBaseError):
    """`Socket.bind_to_random_port` found no free port.

    Source:
        pyzmq's ``ZMQBindError``
    """


class NotDone(ZMQBaseError):
    """`MessageTracker.wait` ran out of time.

    Source:
        pyzmq's ``NotDone``
    """


class ZMQVersionError(NotImplementedError):
    """A feature needs a newer version of ZeroMQ.

    Args:
        min_version: The version it needs.
        msg: The name of the feature.

    Source:
        pyzmq's ``ZMQVersionError``
    """

    def __init__(self, min_version: str, msg: str = "Feature") -> None:
        super().__init__(min_version, msg)
        self.min_version = min_version
        self.msg = msg

    def __str__(self) -> str:
        return f"{self.msg} requires ZeroMQ >= {self.min_version}"


class DraftFDWarning(RuntimeWarning):
    """The file descriptor of a draft socket is experimental. Never issued: there are no drafts.

    Source:
        pyzmq's ``DraftFDWarning``
    """


class ProactorSelectorThreadWarning(RuntimeWarning):
    """asyncio's proactor loop needs a helper thread. Never issued: that loop is for Windows.

    Source:
        pyzmq's ``ProactorSelectorThreadWarning``
    """


EXCEPTIONS: dict[int, type[ZMQError]] = {
    EAGAIN: Again,
    ETERM: ContextTerminated,
    EINTR: InterruptedSystemCall,
    ETOOSLOW: TooSlow,
}


def failure(errno: int, reason: str) -> ZMQError:
    """Returns an error whose text is that of the number, followed by the reason, as in the extension module."""
    return ZMQError(errno, f"{strerror(errno)}: {reason}")


def _check_rc(rc: int, errno: int | None = None, error_without_errno: bool = True) -> None:
    """Raises the error of the number `errno` if `rc` is -1: for programs that call C themselves."""
    if rc != -1:
        return
    number = zmq_errno() if errno is None else errno
    if number or error_without_errno:
        raise EXCEPTIONS.get(number, ZMQError)(number)


def _check_version(min_version_info: tuple[int, ...], msg: str = "Feature") -> None:
    """Raises `ZMQVersionError` if the version of libzmq whose behaviour this has is older."""
    if zmq_version_info() < min_version_info:
        wanted = ".".join(map(str, min_version_info))
        raise ZMQVersionError(wanted, f"{msg} (this is {zmq_version()})")


def _restored(kind: type[ZMQError], args: tuple[Any, ...], state: dict[str, Any]) -> ZMQError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error
