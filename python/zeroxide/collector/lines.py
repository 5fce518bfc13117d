"""The log of the collector's command on stderr: readable lines, or JSON objects for programs."""

import json
import logging
import sys
import time
from typing import Any

__all__ = ["write_lines"]


def write_lines(log: logging.Logger, form: str, level: str) -> None:
    """Makes a logger write lines in this format, ``text`` or ``json``, from this level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(level.upper())


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(record, "fields", {})
    return fields


class _Json(logging.Formatter):
    """One object per line: time, level, event and its details."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **_fields(record),
        }
        return json.dumps(line, default=str)


class _Text(logging.Formatter):
    """A readable line."""

    def format(self, record: logging.LogRecord) -> str:
        time_ = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        words = [time_, record.levelname.lower(), record.getMessage().replace("_", " ")]
        for name, value in _fields(record).items():
            text = " ".join(value) if isinstance(value, list) else str(value)
            words.append(f"{name}={text}")
        return " ".join(words)
