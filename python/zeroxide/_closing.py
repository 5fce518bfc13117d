"""Makes objects with a `close` method context managers."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

__all__ = ["Closing"]


class Closing:
    """Closes itself at the end of a ``with`` block."""

    if TYPE_CHECKING:

        def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
