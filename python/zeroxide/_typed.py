"""Objects of a known type as messages: received data is validated, and runs no code.

The encoding is MessagePack; msgspec does the work (``pip install zeroxide[typed]``).
"""

import functools
from collections.abc import Callable
from typing import Any

from ._hints import tell_cure
from ._optional import needed_by
from .error import InvalidMessage

__all__ = ["decode", "encode"]

_Hook = Callable[..., Any]


def encode(obj: object, enc_hook: _Hook | None = None) -> bytes:
    """An object as MessagePack.

    Raises `TypeError` for objects that MessagePack cannot express and `enc_hook` does not
    replace.
    """
    try:
        body: bytes = _msgspec().msgpack.encode(obj, enc_hook=enc_hook)
    except OverflowError as error:
        raise TypeError(f"an int in the object is too large for MessagePack: {error}") from None
    except UnicodeEncodeError as error:
        tell_cure(error)
        raise
    return body


def decode(body: Any, kind: Any, dec_hook: _Hook | None = None) -> Any:
    """Decodes an object of type `kind` from a frame or bytes; raises `InvalidMessage` if it has another type."""
    msgspec = _msgspec()
    try:
        decoder = _decoder(kind, dec_hook)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        decoder = msgspec.msgpack.Decoder(kind, dec_hook=dec_hook)
    try:
        return decoder.decode(getattr(body, "buffer", body))
    except msgspec.DecodeError as error:
        name = getattr(kind, "__name__", None) or repr(kind)
        data = getattr(body, "bytes", body)
        raise InvalidMessage(f"not a message of type {name}: {error}", data) from error


@functools.lru_cache(256)
def _decoder(kind: Any, dec_hook: _Hook | None) -> Any:
    return _msgspec().msgpack.Decoder(kind, dec_hook=dec_hook)


def _msgspec() -> Any:
    with needed_by("a typed message", extra="typed"):
        import msgspec.msgpack
    return msgspec
