"""Contexts and sockets as decorators: made for each call of a function, closed after it.

    from zeroxide.decorators import context, socket

    @context()
    @socket(zmq.PUSH)
    def work(ctx, push):
        ...

The new object follows the caller's positional arguments, or is passed under a name:
``@socket("push", zmq.PUSH)``, ``@socket(zmq.PUSH, name="push")``.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Protocol, TypeVar, overload

from ._exports import exports_only
from .context import Context
from .socket import Socket

__all__ = ("context", "socket")


def __dir__() -> list[str]:
    return exports_only(globals())


_R = TypeVar("_R")
# Creates the object to pass to the function, given the arguments of the call.
_Maker = Callable[[tuple[Any, ...], dict[str, Any]], AbstractContextManager[Any]]


class _Decorator(Protocol):
    def __call__(self, function: Callable[..., _R], /) -> Callable[..., _R]: ...


@overload
def context(
    name: str, /, io_threads: int = 1, shadow: Context[Any] | int | None = None
) -> _Decorator: ...
@overload
def context(
    io_threads: int = 1, shadow: Context[Any] | int | None = None, *, name: str | None = None
) -> _Decorator: ...
def context(*args: Any, **kwargs: Any) -> _Decorator:
    """Passes a new context to a function at each call, and destroys it afterwards.

    Args:
        *args: The name of the parameter that receives the context, if any, and the
            arguments of `Context`.
        **kwargs: The keyword arguments of `Context`, and ``name``, another way to give the
            name. Without a name, the context follows the positional arguments of the call.

    Returns:
        The decorator.

    Example:
        >>> from zeroxide.decorators import context
        >>> @context()
        ... def work(ctx):
        ...     return ctx.closed
        >>> work()
        False

    Source:
        pyzmq's ``zmq.decorators.context``
    """
    name, args, kwargs = _name_of(args, kwargs)
    return _decorator(name, lambda _args, _kwargs: Context(*args, **kwargs))


@overload
def socket(
    name: str,
    socket_type: int,
    /,
    socket_class: Callable[..., Socket[Any]] | None = None,
    *,
    context_name: str = "context",
    copy_threshold: int | None = None,
) -> _Decorator: ...
@overload
def socket(
    socket_type: int,
    socket_class: Callable[..., Socket[Any]] | None = None,
    *,
    name: str | None = None,
    context_name: str = "context",
    copy_threshold: int | None = None,
) -> _Decorator: ...
def socket(*args: Any, context_name: str = "context", **kwargs: Any) -> _Decorator:
    """Passes a new socket to a function at each call, and closes it afterwards.

    The socket's context is the argument called `context_name`, or else the first context
    among the positional arguments, or else ``Context.instance()``.

    Args:
        *args: The name of the parameter that receives the socket, if any, and the arguments
            of `Context.socket`.
        context_name: The name of the argument that holds the context.
        **kwargs: The keyword arguments of `Context.socket`, and ``name``, another way to
            give the name. Without a name, the socket follows the positional arguments of
            the call.

    Returns:
        The decorator.

    Example:
        >>> from zeroxide.decorators import context, socket
        >>> @context()
        ... @socket("push", zmq.PUSH)
        ... def work(ctx, push):
        ...     return push.type.name
        >>> work()
        'PUSH'

    Source:
        pyzmq's ``zmq.decorators.socket``
    """
    name, args, kwargs = _name_of(args, kwargs)

    def make(call_args: tuple[Any, ...], call_kwargs: dict[str, Any]) -> Any:
        candidates = [call_kwargs.get(context_name), *call_args]
        found = next((item for item in candidates if isinstance(item, Context)), None)
        return (found or Context.instance()).socket(*args, **kwargs)

    return _decorator(name, make)


def _name_of(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str | None, tuple[Any, ...], dict[str, Any]]:
    """Takes the name out of a decorator's arguments."""
    if isinstance(kwargs.get("name"), str):
        kwargs = dict(kwargs)
        return kwargs.pop("name"), args, kwargs
    if args and isinstance(args[0], str):
        return args[0], args[1:], kwargs
    return None, args, kwargs


def _decorator(name: str | None, make: _Maker) -> _Decorator:
    def decorate(function: Callable[..., _R]) -> Callable[..., _R]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> _R:
            with make(args, kwargs) as made:
                if name is None:
                    return function(*args, made, **kwargs)
                if name in kwargs:
                    raise TypeError(
                        f"{function.__name__}() got multiple values for argument {name!r}"
                    )
                return function(*args, **kwargs, **{name: made})

        return call

    return decorate
