"""Rows of a log as messages and as JSON: `tail` writes what `produce` reads."""

import argparse
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from ..pipeline import Record
from .formats import Message, bytes_of, json_value, parts_of

__all__ = [
    "FIELDS",
    "INPUT_FIELDS",
    "field_names",
    "from_json",
    "from_parts",
    "to_json",
    "to_parts",
]

INPUT_FIELDS = ("value", "key", "topic", "timestamp")
FIELDS = (*INPUT_FIELDS, "offset", "producer", "seq")


def field_names(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """The kind of an option that takes names of fields, with commas in between."""

    def parse(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        wrong = [name for name in names if name not in known or names.count(name) > 1]
        if wrong:
            *most, last = known
            raise argparse.ArgumentTypeError(
                f"expected {', '.join(most)} or {last}, each at most once and with commas in"
                f" between, got {text!r}"
            )
        return names

    return parse


def to_parts(record: Record, fields: Sequence[str]) -> list[bytes]:
    """The fields of a row; one that it does not have is empty."""
    return [_text(getattr(record, field)) for field in fields]


def _text(value: object) -> bytes:
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    return (value.isoformat() if isinstance(value, datetime) else str(value)).encode()


def from_parts(message: Message, fields: Sequence[str]) -> dict[str, Any]:
    """A row for `Producer.send_batch`. Empty fields but the value count as missing.

    Raises:
        ValueError: If there are more fields or fewer, or one of them is malformed.
    """
    parts = parts_of(message)
    if len(parts) != len(fields):
        raise ValueError(f"expected {len(fields)} fields ({', '.join(fields)}), got {len(parts)}")
    row: dict[str, Any] = {
        field: part for field, part in zip(fields, parts, strict=True) if part or field == "value"
    }
    if "timestamp" in row:
        row["timestamp"] = _timestamp(row["timestamp"].decode("utf-8", "replace"))
    if "topic" in row:
        row["topic"] = _topic(row["topic"])
    return {"value": b"", **row}


def to_json(record: Record) -> dict[str, Any]:
    """All fields of a row."""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp.isoformat(),
        "topic": record.topic,
        "key": _optional(record.key),
        "value": json_value(record.value),
        "headers": [[name, _optional(value)] for name, value in record.headers],
        "producer": record.producer,
        "seq": record.seq,
    }


def _optional(value: bytes | None) -> Any:
    return None if value is None else json_value(value)


def from_json(given: Any) -> dict[str, Any]:
    """A row for `Producer.send_batch`, from an object as `to_json` makes it, or from a value.

    Raises:
        ValueError: If it is neither.
    """
    if not isinstance(given, dict) or "base64" in given:
        return {"value": bytes_of(given)}
    if "value" not in given:
        raise ValueError('expected an object with "value"')
    row: dict[str, Any] = {"value": bytes_of(given["value"])}
    if given.get("key") is not None:
        row["key"] = bytes_of(given["key"])
    if given.get("topic") is not None:
        row["topic"] = _topic(bytes_of(given["topic"]))
    if given.get("timestamp") is not None:
        row["timestamp"] = _timestamp(given["timestamp"])
    if given.get("headers"):
        row["headers"] = _headers(given["headers"])
    return row


def _topic(topic: bytes) -> str:
    try:
        return topic.decode()
    except UnicodeDecodeError:
        raise ValueError(f"a topic is text in UTF-8, got {topic[:60]!r}") from None


def _timestamp(given: object) -> datetime:
    """A time; one without a time zone is local, as with `tail --since`."""
    try:
        # Digits only are no year, but a number of seconds, milliseconds or another unit.
        if isinstance(given, str) and not given.strip().isdecimal():
            return datetime.fromisoformat(given).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"expected a time such as 2030-01-31T12:00, got {given!r}")


def _headers(given: Any) -> list[tuple[str, bytes]]:
    try:
        return [(_topic(bytes_of(name)), bytes_of(value or "")) for name, value in given]
    except (TypeError, ValueError):
        raise ValueError(f'expected headers such as [["name", "value"]], got {given!r}') from None
