"""The formats in which messages are written to stdout and read from stdin.

A message is `bytes`, or a list of `bytes` if it has several parts. The formats ``quoted``,
``hex``, ``json``, ``msgpack`` and ``length`` keep every byte and the boundaries of parts.
"""

import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from .._arguments import Choice

__all__ = [
    "INPUT",
    "OUTPUT",
    "Decoder",
    "Encoder",
    "LineDecoder",
    "Malformed",
    "Message",
    "bytes_of",
    "json_value",
    "load_json",
    "make_decoder",
    "make_encoder",
    "parts_of",
]

Message: TypeAlias = bytes | list[bytes]
Encoder: TypeAlias = Callable[[Sequence[Message]], bytes]

INPUT = Choice("lines", "raw", "quoted", "hex", "json", "msgpack", "length")
OUTPUT = Choice("lines", "raw", "ascii", "quoted", "hex", "json", "msgpack", "length", "no")


class Malformed(ValueError):
    """The input does not follow its format."""


def parts_of(message: Message) -> list[bytes]:
    """The parts of a message."""
    return [message] if isinstance(message, bytes) else message


def make_encoder(name: str, separator: bytes | None = None) -> Encoder:
    """Returns the function that turns messages into output.

    Args:
        name: A format of `OUTPUT`.
        separator: What is between the parts of a message in ``lines`` and ``ascii``. Default: a tab.
    """
    between = b"\t" if separator is None else separator
    if name == "lines":
        return lambda messages: _lines(messages, between)
    if name == "ascii":
        return lambda messages: _lines([_ascii(message) for message in messages], between)
    one = _ENCODERS[name]
    return lambda messages: b"".join(map(one, messages))


class Decoder(ABC):
    """Turns input, which arrives in pieces, into messages."""

    _wrong: Malformed | None = None

    @abstractmethod
    def feed(self, data: bytes) -> list[Message]:
        """Takes the next piece; returns the messages that it completes, up to a malformed one."""

    @abstractmethod
    def end(self) -> list[Message]:
        """Returns the message that only the end of the input completes."""

    def check(self) -> None:
        """Reports what is wrong with the input. The messages before it have been returned.

        Raises:
            Malformed: If a message was malformed.
        """
        if self._wrong is not None:
            raise self._wrong


def make_decoder(name: str, separator: bytes | None = None) -> Decoder:
    """Returns a decoder.

    Args:
        name: A format of `INPUT`.
        separator: What is between the parts of a message in ``lines``. Default: a line is one part.
    """
    if name == "raw":
        return _Raw()
    if name in _BINARY:
        return _Binary(name, *_BINARY[name])
    if name == "lines":
        split = None if not separator else lambda line: _flat(line.split(separator))
        return LineDecoder(split)
    return LineDecoder(_PARSERS[name])


def _flat(parts: list[bytes]) -> Message:
    return parts[0] if len(parts) == 1 else parts


# Lines


def _lines(messages: Sequence[Message], between: bytes) -> bytes:
    if not messages:
        return b""
    try:
        return b"\n".join(messages) + b"\n"  # type: ignore[arg-type]
    except TypeError:  # some have several parts
        return b"".join(between.join(parts_of(message)) + b"\n" for message in messages)


_PRINTABLE = bytes(code if 32 <= code < 127 else ord(".") for code in range(256))


def _ascii(message: Message) -> Message:
    return _flat([part.translate(_PRINTABLE) for part in parts_of(message)])


class LineDecoder(Decoder):
    """One message per line; without a function that parses it, the line itself."""

    def __init__(self, parse: Callable[[bytes], Message] | None = None) -> None:
        self._parse = parse
        self._pieces: list[bytes] = []
        self._count = 0

    def feed(self, data: bytes) -> list[Message]:
        lines: list[Any] = data.split(b"\n")
        if len(lines) == 1:
            self._pieces.append(data)
            return []
        if self._pieces:
            lines[0] = b"".join([*self._pieces, lines[0]])
        last = lines.pop()
        self._pieces = [last] if last else []
        return lines if self._parse is None else self._parsed(lines)

    def end(self) -> list[Message]:
        line = b"".join(self._pieces)
        self._pieces = []
        return self._parsed([line]) if line else []

    def _parsed(self, lines: Iterable[bytes]) -> list[Message]:
        if self._parse is None:
            return list(lines)
        messages = []
        for line in lines:
            self._count += 1
            try:
                if line.strip():
                    messages.append(self._parse(line))
            except ValueError as error:
                self._wrong = Malformed(f"line {self._count} of the input: {error}")
                break
        return messages


# Quoted and hex: the strings of C, as nngcat has them. `re` keeps what it compiles, and only these formats need it.

_SPECIAL = rb'[^ !#-\[\]-~]|["\\]'
# Possessive, because what could be tried again takes 100 times the memory of the string.
_STRING = rb'\s*"((?:[^"\\]++|\\.)*+)"'
_ESCAPE = rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)"
_SHORT = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_ESCAPED = {b"\n": rb"\n", b"\r": rb"\r", b"\\": rb"\\", b'"': rb"\""}


def _quoted(message: Message) -> bytes:
    parts = [b'"%b"' % re.sub(_SPECIAL, _escape, part) for part in parts_of(message)]
    return b" ".join(parts) + b"\n"


def _escape(found: re.Match[bytes]) -> bytes:
    return _ESCAPED.get(found[0]) or b"\\x%02x" % found[0][0]


def _hex(message: Message) -> bytes:
    parts = [b'"%b"' % b"".join(b"\\x%02x" % byte for byte in part) for part in parts_of(message)]
    return b" ".join(parts) + b"\n"


def _parse_quoted(line: bytes) -> Message:
    parts, position, string = [], 0, re.compile(_STRING, re.DOTALL)
    line = line.rstrip()
    while position < len(line):
        found = string.match(line, position)
        if found is None:
            raise ValueError(f'expected "text" in double quotes, got {_shown(line[position:])}')
        parts.append(re.sub(_ESCAPE, _unescape, found[1], flags=re.DOTALL))
        position = found.end()
    return _flat(parts)


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code[:1] == b"x" and len(code) == 3:
        return bytes([int(code[1:], 16)])
    if code.isdigit():
        return bytes([int(code, 8) & 0xFF])
    return _SHORT.get(code, code)


def _parse_hex(line: bytes) -> Message:
    if b'"' in line:
        return _parse_quoted(line)
    try:
        return _flat([bytes.fromhex(word.decode("ascii")) for word in line.split()])
    except ValueError:
        raise ValueError(
            f"expected hexadecimal digits, two for each byte, got {_shown(line)}"
        ) from None


# JSON: a list of parts, each text or base64. The other formats do not wait for its modules.


def _json(message: Message) -> bytes:
    import json

    return json.dumps([json_value(part) for part in parts_of(message)]).encode() + b"\n"


def json_value(part: bytes) -> str | dict[str, str]:
    """The form of bytes in JSON: text, or an object with base64 if they are not UTF-8."""
    try:
        return part.decode()
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(part).decode()}


def bytes_of(value: Any) -> bytes:
    """The bytes of what `json_value` returned."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and set(value) == {"base64"} and isinstance(value["base64"], str):
        import base64

        return base64.b64decode(value["base64"], validate=True)
    raise ValueError(f'expected a string or {{"base64": "..."}}, got {_shown(value)}')


def load_json(line: bytes) -> Any:
    """The value of a line of JSON.

    Raises:
        ValueError: If it is malformed, or nested deeper than Python's recursion limit.
    """
    import json

    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(f"expected JSON, got {_shown(line)}") from None


def _parse_json(line: bytes) -> Message:
    value = load_json(line)
    parts = value if isinstance(value, list) else [value]
    if not parts:
        raise ValueError("a message has at least one part, got []")
    return _flat([bytes_of(part) for part in parts])


# Binary formats


def _raw(message: Message) -> bytes:
    return b"".join(parts_of(message))


def _length(message: Message) -> bytes:
    parts = parts_of(message)
    return b"".join(
        [struct.pack(">I", len(parts)), *(struct.pack(">I", len(p)) + p for p in parts)]
    )


def _msgpack(message: Message) -> bytes:
    if isinstance(message, bytes):
        return _bin(message)
    count = len(message)
    head = bytes([0x90 | count]) if count < 16 else struct.pack(">BI", 0xDD, count)
    return head + b"".join(map(_bin, message))


def _bin(part: bytes) -> bytes:
    size = len(part)
    if size < 1 << 8:
        return struct.pack(">BB", 0xC4, size) + part
    if size < 1 << 16:
        return struct.pack(">BH", 0xC5, size) + part
    return struct.pack(">BI", 0xC6, size) + part


# The first byte of bin and str with the format of their length, and of arrays.
_SIZED = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}

# A number and the position after it; None if the data ends before.
_Read: TypeAlias = Callable[[memoryview, int], tuple[int, int] | None]


def _number(data: memoryview, position: int, layout: str = ">I") -> tuple[int, int] | None:
    end = position + struct.calcsize(layout)
    return None if len(data) < end else (struct.unpack_from(layout, data, position)[0], end)


def _msgpack_count(data: memoryview, position: int) -> tuple[int, int] | None:
    if len(data) <= position:
        return None
    code = data[position]
    if 0x90 <= code < 0xA0:
        return code - 0x90, position + 1
    if code in _ARRAYS:
        return _number(data, position + 1, _ARRAYS[code])
    return 1, position


def _msgpack_size(data: memoryview, position: int) -> tuple[int, int] | None:
    if len(data) <= position:
        return None
    code = data[position]
    if 0xA0 <= code < 0xC0:
        return code - 0xA0, position + 1
    if code in _SIZED:
        return _number(data, position + 1, _SIZED[code])
    raise ValueError(
        f"expected bin, str, or an array of these, got a value that begins with 0x{code:02x}"
    )


class _Binary(Decoder):
    """Messages with the number of their parts and the sizes of these in front."""

    def __init__(self, name: str, count: _Read, size: _Read) -> None:
        self._name = name
        self._count = count
        self._size = size
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        self._data += data
        messages: list[Message] = []
        position = 0
        with memoryview(self._data) as view:
            try:
                while (found := self._next(view, position)) is not None:
                    message, position = found
                    messages.append(message)
            except ValueError as error:
                self._wrong = Malformed(f"the input is not {self._name}: {error}")
        del self._data[:position]
        return messages

    def end(self) -> list[Message]:
        if self._data:
            left = len(self._data)
            self._wrong = Malformed(f"the input ends within a message: {left} bytes are left over")
        return []

    def _next(self, data: memoryview, position: int) -> tuple[Message, int] | None:
        found = self._count(data, position)
        if found is None:
            return None
        count, position = found
        if not count:
            raise ValueError("a message has at least one part, got none")
        # Nothing is copied before the message is complete.
        spans: list[slice] = []
        while len(spans) < count:
            found = self._size(data, position)
            if found is None or len(data) < sum(found):
                return None
            size, start = found
            position = start + size
            spans.append(slice(start, position))
        return _flat([bytes(data[span]) for span in spans]), position


class _Raw(Decoder):
    """The whole input is one message."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[Message]:
        self._pieces.append(data)
        return []

    def end(self) -> list[Message]:
        return [b"".join(self._pieces)] if self._pieces else []


def _shown(value: object) -> str:
    text = repr(value[:240].decode("utf-8", "replace") if isinstance(value, bytes) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_ENCODERS: dict[str, Callable[[Message], bytes]] = {
    "raw": _raw,
    "quoted": _quoted,
    "hex": _hex,
    "json": _json,
    "msgpack": _msgpack,
    "length": _length,
    "no": lambda message: b"",
}
_PARSERS: dict[str, Callable[[bytes], Message]] = {
    "quoted": _parse_quoted,
    "hex": _parse_hex,
    "json": _parse_json,
}
_BINARY: dict[str, tuple[_Read, _Read]] = {
    "msgpack": (_msgpack_count, _msgpack_size),
    "length": (_number, _number),
}
