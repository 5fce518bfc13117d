"""Z85, the text form of keys (ZeroMQ RFC 32): 4 bytes as 5 printable characters."""

from typing import TYPE_CHECKING, Final

from .._exports import exports_only

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Z85CHARS", "Z85MAP", "decode", "encode"]


def __dir__() -> list[str]:
    return exports_only(globals())


Z85CHARS: Final = (
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
Z85MAP: Final = {character: value for value, character in enumerate(Z85CHARS)}

# The weights of the five digits of a group.
_PLACES = (85**4, 85**3, 85**2, 85, 1)


def encode(rawbytes: "Buffer") -> bytes:
    """Encodes bytes as Z85.

    Args:
        rawbytes: The bytes; their number must be a multiple of 4.

    Returns:
        The text, as `bytes`: 5 characters for 4 bytes.

    Raises:
        TypeError: It is not bytes.
        ValueError: The number of bytes is not a multiple of 4.

    Example:
        >>> from zeroxide.utils import z85
        >>> z85.encode(bytes.fromhex("864fd26fb559f75b"))
        b'HelloWorld'

    Source:
        32/Z85, section "Formal Specification"; zmq_z85_encode(3)
    """
    try:
        raw = bytes(memoryview(rawbytes))
    except TypeError:
        kind = type(rawbytes).__name__
        raise TypeError(f"encode takes bytes, not {kind}; decode makes bytes of text") from None
    if len(raw) % 4:
        raise ValueError(f"length must be multiple of 4, not {len(raw)}")
    digits = bytearray()
    for start in range(0, len(raw), 4):
        value = int.from_bytes(raw[start : start + 4], "big")
        digits += bytes(Z85CHARS[value // place % 85] for place in _PLACES)
    return bytes(digits)


def decode(z85bytes: "str | Buffer") -> bytes:
    """Decodes Z85.

    Args:
        z85bytes: The text, as `bytes` or `str`; its length must be a multiple of 5.

    Returns:
        The bytes: 4 for 5 characters.

    Raises:
        TypeError: It is neither text nor bytes.
        ValueError: The text is not Z85.

    Example:
        >>> from zeroxide.utils import z85
        >>> z85.decode("HelloWorld").hex()
        '864fd26fb559f75b'

    Source:
        32/Z85, section "Formal Specification"; zmq_z85_decode(3)
    """
    if isinstance(z85bytes, str):
        try:
            digits = z85bytes.encode("ascii")
        except UnicodeEncodeError:
            raise ValueError("Z85 is made of ASCII characters only") from None
    else:
        try:
            digits = bytes(memoryview(z85bytes))
        except TypeError:
            kind = type(z85bytes).__name__
            raise TypeError(f"decode takes Z85 as str or bytes, not {kind}") from None
    if len(digits) % 5:
        raise ValueError(f"Z85 length must be multiple of 5, not {len(digits)}")
    raw = bytearray()
    for start in range(0, len(digits), 5):
        group = digits[start : start + 5]
        try:
            value = sum(Z85MAP[digit] * place for digit, place in zip(group, _PLACES, strict=True))
            raw += value.to_bytes(4, "big")
        except KeyError:
            # Only the position, because the text may be a secret key.
            raise ValueError(f"not Z85: an unknown digit in the group at {start}") from None
        except OverflowError:
            raise ValueError(f"not Z85: the group at {start} is out of range") from None
    return bytes(raw)
