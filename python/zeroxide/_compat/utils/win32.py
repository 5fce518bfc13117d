"""Ctrl-C on Windows; nothing to do elsewhere."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

__all__ = ["allow_interrupt"]


class allow_interrupt:
    """A ``with`` block in which Ctrl-C interrupts a waiting call.

    In zeroxide, every call can be interrupted, so `action` is not called.
    """

    def __init__(self, action: Callable[[], Any] | None = None) -> None:
        self.action = action

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass
