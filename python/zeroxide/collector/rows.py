"""The last rows of a log as JSON, for people: the beginning of each, whatever bytes it has."""

import codecs
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..pipeline import Collector

__all__ = ["ROWS", "ROWS_MAX", "last_rows"]

#: How many rows there are unless more are wanted, and at most.
ROWS = 20
ROWS_MAX = 100

# How much of a value, a key and a topic is shown.
_BYTES = 256

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def last_rows(collector: "Collector", topic: str | None, most: int) -> dict[str, Any]:
    """Reads the last rows of a topic, or of all."""
    rows, start, end = collector._tail(topic, most, _BYTES)
    return {"searched_from": start, "end": end, "rows": [_row(*row) for row in rows]}


def _row(
    offset: int,
    received: int,
    topic: str | None,
    key: bytes | None,
    producer: str,
    seq: int | None,
    value: bytes,
    size: int,
    key_size: int,
) -> dict[str, Any]:
    return {
        "offset": offset,
        "received": (_EPOCH + timedelta(microseconds=received)).isoformat(),
        "topic": None if topic is None else topic[:_BYTES],
        "producer": producer,
        "seq": seq,
        "key": None if key is None else _shown(key, key_size),
        "value": _shown(value, size),
    }


def _shown(beginning: bytes, size: int) -> dict[str, Any]:
    """Text if it is UTF-8 as far as it is shown, else hexadecimal digits."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        # A character may be cut in two.
        text = decoder.decode(beginning, final=len(beginning) == size)
    except UnicodeDecodeError:
        return {"hex": beginning.hex(), "bytes": size, "shown": len(beginning)}
    return {"text": text, "bytes": size, "shown": len(text.encode())}
