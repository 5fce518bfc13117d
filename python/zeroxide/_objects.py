"""The socket's calls that send and receive objects: text, JSON, pickles, MessagePack."""

import builtins
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from . import _checks, _pickles, _typed, as_zmq
from ._hints import encoded
from ._options import OptionAttributes
from ._overridden import has_own_recv, takes_copy
from ._tracker import MessageTracker
from .error import UntrustedPickle

if TYPE_CHECKING:
    from ._typing import (
        DumpArguments,
        LoadArguments,
        Part,
        SendArguments,
        SendObjectArguments,
        TrackArgument,
    )
    from .context import Context

__all__ = ["ObjectMessages"]

# Where programs replace `dumps` and `loads`, as they do with pyzmq. It is above this module.
_JSONAPI = f"{__package__}.utils.jsonapi"

# The first byte of pickles since protocol 2.
_PICKLE = b"\x80"

_T = TypeVar("_T")
_R = TypeVar("_R")


def _json(name: str) -> Any:
    """Returns a function for JSON: that of the module where a program may have replaced it, if it is loaded."""
    jsonapi = sys.modules.get(_JSONAPI)
    # While another thread imports the module, it has no functions yet.
    if (function := getattr(jsonapi, name, None)) is not None:
        return function
    import json

    return getattr(json, name)


class ObjectMessages(OptionAttributes):
    """The part of `Socket` that sends and receives objects."""

    context: "Context[Any]"
    """The context that made the socket."""
    trust_pickles: "_pickles.Trust | None" = None
    """Whose pickles `recv_pyobj` opens; None for the setting of the context, `Context.trust_pickles`."""

    def _has_local_peers_only(self) -> bool:
        """Whether none of the socket's endpoints can be reached from another machine."""
        raise NotImplementedError("a socket knows its endpoints")

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
            A `MessageTracker` if ``copy=False`` and ``track=True`` are given, as in `send`;
            otherwise None.

        Raises:
            TypeError: `serialize` is not a function.
            ZMQError: As in `send`.

        Example:
            >>> push.send_serialized(("a", "b"), lambda pair: [part.encode() for part in pair])
            >>> pull.recv_serialized(lambda parts: [part.decode() for part in parts])
            ['a', 'b']

        Source:
            pyzmq's ``Socket.send_serialized``
        """
        try:
            parts = serialize(msg)
        except TypeError:
            if callable(serialize):
                raise
            raise TypeError(
                "serialize takes a function that makes a list of parts, not"
                f" {_checks.shown(serialize)}"
            ) from None
        return self.send_multipart(parts, flags=flags, copy=copy, **kwargs)

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
            The object that `deserialize` made of the parts.

        Source:
            pyzmq's ``Socket.recv_serialized``
        """
        parts = self.recv_multipart(flags=flags, copy=copy)
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
            A `MessageTracker` if ``copy=False`` and ``track=True`` are given, as in `send`;
            otherwise None.

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
        try:
            body = encoded(u, encoding)
        except TypeError:
            raise TypeError(
                "encoding takes the name of an encoding such as 'utf-8', not"
                f" {_checks.shown(encoding)}"
            ) from None
        return self.send(body, flags=flags, copy=copy, **kwargs)

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
        data = self.recv(flags=flags)

        def load(body: bytes) -> str:
            try:
                return body.decode(encoding)
            except UnicodeDecodeError as error:
                arrived = _arrived(self, body, f"text in {encoding}")
                error.reason += f"; {arrived}; recv receives any bytes"
                raise

        return cast(str, self._deserialize(data, load))

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
            obj: The object: anything that `json.dumps` takes, or what a program has put in the place of
                `zeroxide.utils.jsonapi.dumps`.
            flags: As in `send`.
            routing_id: As in `send`.
            group: As in `send`.
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
        text = _json("dumps")(obj, **kwargs)
        body = encoded(text) if isinstance(text, str) else text
        # A program's own `send` may not have these arguments.
        extra: SendArguments = {}
        if routing_id is not None:
            extra["routing_id"] = routing_id
        if group is not None:
            extra["group"] = group
        return self.send(body, flags=flags, **extra)

    def recv_json(self, flags: int = 0, **kwargs: "Unpack[LoadArguments]") -> Any:
        """Receives an object as JSON.

        Args:
            flags: As in `recv`.
            **kwargs: Further arguments of `json.loads`, or of what a program has put in the place of
                `zeroxide.utils.jsonapi.loads`.

        Returns:
            The object.

        Raises:
            ValueError: The part is not JSON: a `json.JSONDecodeError`, or a
                `UnicodeDecodeError` if it is not text.
            ZMQError: As in `recv`.

        Source:
            pyzmq's ``Socket.recv_json``
        """
        data = self.recv(flags)

        def load(body: bytes) -> Any:
            try:
                return _json("loads")(body, **kwargs)
            except ValueError as error:
                raise _not_json(self, body, error) from None

        return self._deserialize(data, load)

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
            A `MessageTracker` if ``copy=False`` and ``track=True`` are given, as in `send`;
            otherwise None.

        Raises:
            PicklingError: The object cannot be pickled.
            ZMQError: As in `send`.

        Source:
            pyzmq's ``Socket.send_pyobj``
        """
        import pickle

        if protocol is not None:
            _checks.whole("protocol", protocol, least=-1)
        body = pickle.dumps(obj, protocol)
        tracker: MessageTracker | None = self.send(body, flags=flags, **kwargs)
        return tracker

    def recv_pyobj(self, flags: int = 0) -> Any:
        """Receives a pickled object.

        Unpickling runs code of the sender's choice: use it only with peers that you trust with
        your program. Pickles that arrive over tcp from another machine, from peers that are not
        authenticated (by CURVE, or by PLAIN), are refused unless ``socket.trust_pickles`` or
        ``context.trust_pickles`` is True. If a subclass overrides `recv` and returns `bytes`, the sender is not known,
        so pickles are also refused if any endpoint that the socket has had can be reached from another machine.
        `send_typed` and `recv_typed` need no trust.

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
        is_own = has_own_recv(self)
        with_peer = is_own or self._can_ask_for_peer()
        body = self.recv(flags, copy=False) if with_peer else self.recv(flags)
        return self._deserialize(body, lambda body: self._unpickle(body, is_own))

    def _trusts_pickles(self) -> "_pickles.Trust":
        trusts = self.trust_pickles
        return self.context.trust_pickles if trusts is None else trusts

    def _can_ask_for_peer(self) -> bool:
        """Whether the `recv` of a program is to return a frame, because the sender matters. pyzmq never asks for one."""
        if self._trusts_pickles() or as_zmq.installed() or self._has_local_peers_only():
            return False
        return takes_copy(self.recv)

    def _unpickle(self, body: Any, is_own: bool) -> Any:
        trusts = self._trusts_pickles()
        try:
            if is_own:
                return _pickles.load(body, trusted=trusts)
            return _pickles.load_of_program(
                body, trusted=trusts, is_local=self._has_local_peers_only
            )
        except UntrustedPickle:
            raise
        except Exception as error:
            content = getattr(body, "bytes", body)
            if not isinstance(content, bytes) or content.startswith(_PICKLE):
                # The object's own code may have failed.
                raise
            raise _not_a_pickle(self, content, error) from error

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
            A `MessageTracker` if ``copy=False`` and ``track=True`` are given, as in `send`;
            otherwise None.

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
        body = _typed.encode(obj, enc_hook)
        tracker: MessageTracker | None = self.send(body, flags=flags, **kwargs)
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
        # A program's own `recv` may take no `copy`.
        body = self.recv(flags, copy=False) if has_own_recv(self) else self.recv(flags)
        return self._deserialize(body, lambda body: _typed.decode(body, kind, dec_hook))


def _not_json(socket: ObjectMessages, body: bytes, error: ValueError) -> ValueError:
    """The same error, which says what arrived and where."""
    import json

    arrived = _arrived(socket, body, "JSON")
    cure = "recv receives any bytes, and recv_json what send_json sends"
    if isinstance(error, json.JSONDecodeError):
        explained = json.JSONDecodeError("", error.doc, error.pos)
        explained.msg = error.msg
        explained.args = (f"{arrived}: {error}; {cure}",)
        return explained
    if isinstance(error, UnicodeDecodeError):
        error.reason += f"; {arrived}; {cure}"
    return error


def _not_a_pickle(socket: ObjectMessages, body: bytes, error: Exception) -> Exception:
    """The same error, which says what arrived and where."""
    import pickle

    cure = "recv receives any bytes, and recv_pyobj what send_pyobj sends"
    return pickle.UnpicklingError(f"{_arrived(socket, body, 'a pickle')}: {error}; {cure}")


def _arrived(socket: ObjectMessages, body: bytes, expected: str) -> str:
    return (
        f"{socket} received a message of {len(body)} bytes that is not {expected},"
        f" {_checks.shown(body)}"
    )


def _not_text(body: object) -> TypeError:
    cure = "send takes bytes" if isinstance(body, bytes) else "send_json takes objects"
    return TypeError(f"send_string takes str, not {type(body).__name__}: {cure}")
