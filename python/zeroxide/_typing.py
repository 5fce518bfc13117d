"""Types shared by the stubs and the modules."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Buffer, TypeVar

    from ._native import Frame
    from .socket import Socket

    # With a default, so that a bare ``zmq.Socket`` in an annotation is not "generic
    # without parameters"; the standard library has defaults only from 3.13 on.
    ReturnT_co = TypeVar("ReturnT_co", covariant=True, default=bytes)
    SocketT_co = TypeVar("SocketT_co", bound=Socket[Any], covariant=True, default=Socket[bytes])

    Part: TypeAlias = Frame | Buffer
    # One message of a batch: a single part, or several.
    BatchItem: TypeAlias = Part | Sequence[Part]
    Batch: TypeAlias = Iterable[BatchItem]
else:
    from typing import TypeVar

    ReturnT_co = TypeVar("ReturnT_co", covariant=True)
    SocketT_co = TypeVar("SocketT_co", covariant=True)

OptionValue: TypeAlias = int | bytes


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


__all__ = ["ArrowData", "HasFileno", "OptionValue", "ReturnT_co", "SocketT_co"]
