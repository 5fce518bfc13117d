"""Socket options as attributes.

Each option is a descriptor of the class rather than the work of ``__getattr__``: a
class with ``__getattr__`` makes every ``sock.send`` a slow attribute access, since the
interpreter's fast path for methods is then off.
"""

import sys
from typing import TYPE_CHECKING, Any

from . import _native
from ._hints import did_you_mean, encoded
from ._option_names import READ_ONLY, ReadOnlyOptions, SocketOptions, UpperCaseOptions
from ._overridden import forget_replaced, keep_replaced
from .constants import ContextOption, Errno, SocketOption
from .error import ZMQError

__all__ = ["HIDDEN", "MIXED_CASE", "OptionAttributes", "SocketOptions", "is_declared", "no_option"]


def _annotations(cls: type) -> dict[str, Any]:
    if sys.version_info >= (3, 14):
        # Names that only type checkers import must not be looked up.
        from annotationlib import Format, get_annotations

        return get_annotations(cls, format=Format.FORWARDREF)
    # `inspect` would do the same, and takes a third of the package's import time.
    annotations: dict[str, Any] = cls.__dict__.get("__annotations__", {})  # noqa: RUF063
    return annotations


class _Option:
    # ``sock.linger`` is ``sock.get(LINGER)``, ``sock.linger = 0`` is ``sock.set``.

    __slots__ = ("option",)

    def __init__(self, option: SocketOption) -> None:
        self.option = option

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self.option.__doc__

    def __get__(self, socket: "OptionAttributes | None", owner: type) -> Any:
        if socket is None:
            return self
        try:
            return socket.get(self.option)
        except ZMQError as error:
            if error.errno in (Errno.EINVAL, Errno.EFAULT):
                raise AttributeError(
                    f"{self.option.name.lower()} cannot be read: {error}"
                ) from None
            raise

    def __set__(self, socket: "OptionAttributes", value: Any) -> None:
        socket.set(self.option, value)


class OptionAttributes(_native.Socket, SocketOptions, UpperCaseOptions, ReadOnlyOptions):
    """The native socket with its options as attributes, in lower and upper case."""

    if not TYPE_CHECKING:  # to type checkers, an attribute that is not declared is a mistake

        def __setattr__(self, key: str, value: Any) -> None:
            if key.lower() in ("subscribe", "unsubscribe"):
                # Methods of these names exist, and programs also assign to these names.
                if isinstance(value, str):
                    value = encoded(value)
                self.set(SocketOption[key.upper()], value)
            elif key in self.__dict__ or is_declared(type(self), key):
                object.__setattr__(self, key, value)
                if key in ("send", "recv"):
                    keep_replaced(self, key)
            elif key.upper() in SocketOption.__members__:
                self.set(SocketOption[key.upper()], value)
                _spell(key, SocketOption[key.upper()])
            else:
                # A misspelt option must not become an attribute that does nothing.
                raise no_option(self, key)

        def __delattr__(self, key: str) -> None:
            object.__delattr__(self, key)
            if key in ("send", "recv"):
                forget_replaced(self, key)


# The names in mixed case that can be read. pyzmq reads all, and lists none of them.
MIXED_CASE: set[str] = set()


def _spell(name: str, option: SocketOption) -> None:
    """Makes an option an attribute by one more name, in mixed case.

    A `__getattr__` would find all such names, and slow every call of a method.
    """
    MIXED_CASE.add(name)
    setattr(OptionAttributes, name, _Option(option))


def _install_options() -> frozenset[str]:
    """Makes every option an attribute, and returns the names that completion need not offer."""
    offered = {*SocketOptions.__annotations__, *READ_ONLY}
    names: set[str] = set()
    for name, option in SocketOption.__members__.items():
        # Methods and properties of `Socket` go by the names of these four.
        if name not in ("HWM", "SUBSCRIBE", "UNSUBSCRIBE", "TYPE"):
            attribute = _Option(option)
            setattr(OptionAttributes, name, attribute)
            setattr(OptionAttributes, name.lower(), attribute)
            names |= {name, name.lower()}
        if name not in ("HWM", "SUBSCRIBE", "UNSUBSCRIBE"):
            _spell(name.capitalize(), option)
            _spell(name.title(), option)
    # In lower case, it is an attribute with the enum's member.
    OptionAttributes.TYPE = _Option(SocketOption.TYPE)  # type: ignore[attr-defined]
    names.add("TYPE")
    return frozenset(names - offered)


# Attributes of a socket that `dir` leaves out.
HIDDEN = _install_options()


# Calls that are often looked for at a context.
_OF_SOCKETS = frozenset({"bind", "connect", "send", "recv", "send_multipart", "recv_multipart"})


class _Misspelled:
    """The text of an error about an unknown name, built when the error is shown."""

    def __init__(self, kind: type, key: str) -> None:
        self._kind = kind
        self._key = key

    def __str__(self) -> str:
        kind, key = self._kind, self._key
        known = {name for name in dir(kind) if name.islower() and not name.startswith("_")}
        if issubclass(kind, OptionAttributes):
            known -= HIDDEN
        elif key in _OF_SOCKETS:
            call = f"socket = {kind.__name__.lower()}.socket(zmq.PUSH), then socket.{key}(...)"
            return f"{kind.__name__!r} has no {key!r}, which sockets have: {call}"
        elif key.lower() in READ_ONLY:
            return f"{kind.__name__!r} has no {key!r}, which sockets have"
        elif key.upper() in SocketOption.__members__:
            # A hint would suggest the same name.
            return f"this context has no default for the option {key!r}; sockets have their own"
        else:
            known |= {*map(str.lower, ContextOption.__members__), *_annotations(SocketOptions)}
        # Among hundreds of names, a less similar one would be a guess.
        hint = did_you_mean(key, sorted(known), cutoff=0.7)
        return f"{kind.__name__!r} has no option or attribute {key!r}{hint}"

    def __repr__(self) -> str:
        return repr(str(self))


def no_option(owner: object, key: str) -> AttributeError:
    """The error for a name that `owner`, a socket or a context, does not have."""
    # Without `obj`, because a traceback would then repeat the suggestion.
    return AttributeError(_Misspelled(type(owner), key), name=key)


def is_declared(cls: type, key: str) -> bool:
    """Whether the class has `key`, so that setting it is not setting an option."""
    # A loop that looks at annotations last is fast: every assignment to a socket's attribute calls this.
    for base in cls.__mro__:
        if key in base.__dict__:
            return True
    return any(key in _annotations(base) for base in cls.__mro__)
