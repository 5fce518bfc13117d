"""Types shared by the stubs and the modules."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Generator
    from json import JSONDecoder, JSONEncoder
    from typing import TypedDict

    from typing_extensions import Buffer, TypeVar

    from ._native import Frame
    from .socket import Socket

    # With a default, so that a bare ``zmq.Socket`` in an annotation is not "generic
    # without parameters"; the standard library has defaults only from 3.13 on.
    ReturnT_co = TypeVar("ReturnT_co", covariant=True, default=bytes)
    SocketT_co = TypeVar("SocketT_co", bound=Socket[Any], covariant=True, default=Socket[bytes])
    # The objects that a poller waits for; `Poller[Socket]` returns sockets.
    PolledT = TypeVar("PolledT", bound="int | HasFileno", default=Any)

    Part: TypeAlias = Frame | Buffer
    # One message of a batch: a single part, or several.
    BatchItem: TypeAlias = Part | Sequence[Part]
    Batch: TypeAlias = Iterable[BatchItem]

    class TrackArgument(TypedDict, total=False):
        """A further argument of `Socket.send_serialized`."""

        track: bool

    class SendArguments(TrackArgument, total=False):
        """Further arguments of `Socket.send_string`, which passes them to `send`."""

        routing_id: int | None
        group: str | None

    class SendObjectArguments(SendArguments, total=False):
        """Further arguments of `Socket.send_pyobj` and `send_typed`."""

        copy: bool

    class SocketArguments(TypedDict, total=False):
        """Further arguments of sockets of all kinds."""

        shadow: Socket[Any] | int | None
        copy_threshold: int | None

    class PortArguments(TypedDict, total=False):
        """Further arguments of `Socket.bind_to_random_port`."""

        min_port: int
        max_port: int
        max_tries: int

    class StreamArguments(TypedDict, total=False):
        """Further arguments of `ZMQStream.send_string`, which passes them to `send`."""

        copy: bool
        track: bool

    class DumpArguments(TypedDict, total=False):
        """Arguments of `json.dumps`."""

        skipkeys: bool
        ensure_ascii: bool
        check_circular: bool
        allow_nan: bool
        cls: type[JSONEncoder] | None
        indent: int | str | None
        separators: tuple[str, str] | None
        default: Callable[[Any], Any] | None
        sort_keys: bool

    class LoadArguments(TypedDict, total=False):
        """Arguments of `json.loads`."""

        cls: type[JSONDecoder] | None
        object_hook: Callable[[dict[Any, Any]], Any] | None
        parse_float: Callable[[str], Any] | None
        parse_int: Callable[[str], Any] | None
        parse_constant: Callable[[str], Any] | None
        object_pairs_hook: Callable[[list[tuple[Any, Any]]], Any] | None

else:
    from typing import TypeVar

    ReturnT_co = TypeVar("ReturnT_co", covariant=True)
    SocketT_co = TypeVar("SocketT_co", covariant=True)
    PolledT = TypeVar("PolledT")

OptionValue: TypeAlias = int | bytes


if TYPE_CHECKING:
    _ResultT = TypeVar("_ResultT")

    class Future(asyncio.Future[_ResultT], Coroutine[Any, Any, _ResultT]):
        """A future of the result of a call of an asyncio socket.

        Await it, or pass it to `asyncio.create_task`, `asyncio.wait_for` or `asyncio.gather`.
        """

        def __await__(self) -> Generator[Any, None, _ResultT]: ...


class HasArrowArray(Protocol):
    """A batch or an array of an Arrow library."""

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...


class HasArrowStream(Protocol):
    """A table of an Arrow library, or a data frame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


ArrowData: TypeAlias = HasArrowArray | HasArrowStream


class HasFileno(Protocol):
    """A file, a pipe end, a TCP socket."""

    def fileno(self) -> int: ...


__all__ = ["ArrowData", "HasFileno", "OptionValue", "PolledT", "ReturnT_co", "SocketT_co"]
