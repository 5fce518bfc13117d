"""Text and bytes for programs from the days of two Pythons; deprecated."""

import warnings

__all__ = ["asbytes", "b", "basestring", "bytes", "cast_bytes", "cast_unicode", "u", "unicode"]

bytes = bytes
unicode = str
basestring = (str,)


def cast_bytes(s: str | bytes, encoding: str = "utf8", errors: str = "strict") -> bytes:
    """Bytes as they are, text encoded."""
    _warn()
    if isinstance(s, str):
        return s.encode(encoding, errors)
    if isinstance(s, bytes):
        return s
    raise TypeError(f"Expected unicode or bytes, got {s!r}")


def cast_unicode(s: str | bytes, encoding: str = "utf8", errors: str = "strict") -> str:
    """Text as it is, bytes decoded."""
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
