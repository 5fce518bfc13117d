"""Former names of keyword arguments."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

__all__ = ["renamed"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def renamed(**names: str) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Lets a method take arguments under their former names, with a DeprecationWarning.

    Args:
        names: The present name of each former one.
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old, new in names.items():
                if old in kwargs and new not in kwargs:
                    place = type(args[0]).__name__
                    if function.__name__ != "__init__":
                        place += f".{function.__name__}"
                    message = f"{place}: {old} was renamed to {new}"
                    warnings.warn(message, DeprecationWarning, stacklevel=2)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return cast("Callable[_P, _T]", call)

    return decorate
