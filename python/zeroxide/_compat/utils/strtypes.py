"""Text and bytes for programs that supported Python 2 and 3; deprecated."""

import warnings

__all__ = ["asbytes", "b", "basestring", "bytes", "cast_bytes", "cast_unicode", "u", "unicode"]

bytes = bytes
unicode = str
basestring = (str,)


def cast_bytes(s: str | bytes, encoding: str = "utf8", errors: str = "strict") -> bytes:
    """Returns bytes unchanged, and encodes text."""
    _warn()
    if isinstance(s, str):
        return s.encode(encoding, errors)
    if isinstance(s, bytes):
        return s
    raise TypeError(f"Expected unicode or bytes, got {s!r}")


def cast_unicode(s: str | bytes, encoding: str = "utf8", errors: str = "strict") -> str:
    """Returns text unchanged, and decodes bytes."""
    _warn()
    if isinstance(s, bytes):
        return s.decode(encoding, errors)
    if isinstance(s, str):
        return s
    raise TypeError(f"Expected unicode or bytes, got {s!r}")


def _warn() -> None:
    warnings.warn(
        "zmq.utils.strtypes is deprecated, use str.encode and bytes.decode",
        DeprecationWarning,
        stacklevel=3,
    )


b = asbytes = cast_bytes
u = cast_unicode
