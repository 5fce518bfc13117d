"""The options of ``zeroxide collector``, on the command line and in the environment."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["SECRET_KEY", "add_arguments", "settle"]

PREFIX = "ZEROXIDE_COLLECTOR_"


@dataclass(frozen=True)
class _Option:
    """One option, on the command line and in the environment."""

    name: str
    help: str
    parse: Any = str
    default: Any = None
    metavar: str = "TEXT"
    many: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


def _size(text: str) -> int:
    """A number of bytes, with K, M, G or T for powers of 1024."""
    text = text.strip().upper().removesuffix("B").removesuffix("I")
    power = " KMGT".find(text[-1:]) if text[-1:].isalpha() else 0
    if power < 0:
        raise ValueError(text)
    size = float(text[:-1] if power else text) * 1024**power
    if not 1 <= size < 2**63:
        raise ValueError(text)
    return int(size)


def _above(least: float, kind: type[Any]) -> Any:
    """Parses a number that is not below `least`."""

    def parse(text: str) -> Any:
        value = kind(text)
        if not value >= least:
            raise ValueError(text)
        return value

    parse.__name__ = "number"
    return parse


def _address(text: str) -> tuple[str, int]:
    """HOST:PORT, with a host in brackets if it has colons."""
    host, colon, port = text.rpartition(":")
    if not colon:
        raise ValueError(text)
    return host.strip("[]") or "127.0.0.1", 0 if port == "*" else int(port)


def _choice(*values: str) -> Any:
    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    parse.__name__ = "value"
    return parse


def _flag(text: str) -> bool:
    if text.lower() not in ("1", "true", "yes", "on", "0", "false", "no", "off", ""):
        raise ValueError(text)
    return text.lower() in ("1", "true", "yes", "on")


_GROUPS: dict[str, tuple[_Option, ...]] = {
    "where": (
        _Option("dir", "folder of the log; it belongs to one collector at a time", metavar="DIR"),
        _Option(
            "bind",
            "for producers, readers and sinks",
            default="tcp://127.0.0.1:5555",
            metavar="ENDPOINT",
        ),
        _Option(
            "advertise",
            "the address of that for others, when it is not what is bound",
            metavar="ENDPOINT",
        ),
        _Option("http", "POST /pub and /mpub, GET /metrics", _address, metavar="HOST:PORT"),
        _Option(
            "http_host",
            "a name by which that is called, beside its address",
            metavar="NAME",
            many=True,
        ),
    ),
    "plain peers": (
        _Option("pull", "for PUSH peers", metavar="ENDPOINT", many=True),
        _Option(
            "subscribe",
            "to PUB peers; topics may follow after spaces",
            metavar="ENDPOINT",
            many=True,
        ),
        _Option("dealer", "for DEALER peers", metavar="ENDPOINT", many=True),
        _Option(
            "framing",
            "what their messages look like: single, topic-first or envelope",
            _choice("single", "topic-first", "envelope"),
            "single",
            metavar="FRAMING",
        ),
        _Option("keep_frames", "keep all frames of their messages as well", _flag, False),
    ),
    "the log": (
        _Option("retention_bytes", "delete the oldest rows beyond", _size, metavar="SIZE"),
        _Option(
            "retention_hours",
            "delete rows that are older",
            _above(0, float),
            metavar="HOURS",
        ),
        _Option(
            "retention_groups",
            "delete rows that every group of consumers has read",
            _flag,
            False,
        ),
        _Option("archive", "copy full segments there: s3://bucket/path, ...", metavar="URL"),
        _Option("segment_bytes", "size of the log's files", _size, 128 << 20, "SIZE"),
        _Option("flush_ms", "longest wait for a sync", _above(0, float), 10.0, "MS"),
        _Option("flush_rows", "rows that are synced at once", _above(1, int), 20_000, "ROWS"),
    ),
    "limits": (
        _Option("max_batch_bytes", "largest batch", _size, 16 << 20, "SIZE"),
        _Option("max_producers", "connected producers", _above(1, int), 100_000, "N"),
        _Option("max_names_per_connection", "producers that share one", _above(1, int), 64, "N"),
        _Option("max_staged_bytes", "rows that wait to be published", _size, 16 << 30, "SIZE"),
        _Option("staged_hours", "for how long they may", _above(0, float), 1.0, "HOURS"),
        _Option("credit_bytes", "unacknowledged, of all producers", _size, 256 << 20, "SIZE"),
        _Option("credit_rows", "unacknowledged, of all producers", _above(1, int), 8 << 20, "ROWS"),
        _Option("http_body_bytes", "largest body of a POST", _size, 16 << 20, "SIZE"),
    ),
    "security": (
        _Option("key", "our certificate with its secret key", metavar="FILE"),
        _Option(
            "allow", "certificates of those who may connect; * for everybody", metavar="FOLDER"
        ),
        _Option("roles", "TOML with what the owner of each key may do", metavar="FILE"),
        _Option("http_token", "file with the token that HTTP requests bring", metavar="FILE"),
        _Option(
            "open_to_network",
            "without keys or token, whoever reaches an address of other machines may write and read",
            _flag,
            False,
        ),
    ),
    "logging": (
        _Option("log_format", "text or json, on stderr", _choice("text", "json"), "text", "FORMAT"),
        _Option(
            "log_level",
            "debug, info, warning or error",
            _choice("debug", "info", "warning", "error"),
            "info",
            "LEVEL",
        ),
    ),
}

# The secret key itself: in the environment only, where other users cannot see it.
SECRET_KEY = PREFIX + "SECRET_KEY"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What follows ``zeroxide collector``."""
    for title, options in _GROUPS.items():
        group = parser.add_argument_group(title)
        for option in options:
            text = option.help
            if option.default not in (None, False):
                text += f"; {_shown(option)}"
            if option.parse is _flag:
                group.add_argument(option.flag, action="store_true", default=None, help=text)
                continue
            group.add_argument(
                option.flag,
                help=text,
                type=option.parse,
                metavar=option.metavar,
                default=None,
                action="append" if option.many else "store",
            )


def _shown(option: _Option) -> str:
    """The default, as it would be given."""
    if option.parse is _size:
        size, power = option.default, 0
        while size % 1024 == 0 and power < 4:
            size, power = size // 1024, power + 1
        return f"{size}{' KMGT'[power].strip()}"
    if isinstance(option.default, float):
        return f"{option.default:g}"
    return str(option.default)


def settle(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Fills in what was not given from the environment, or else with the defaults."""
    for option in (option for group in _GROUPS.values() for option in group):
        if getattr(options, option.name) is not None:
            continue
        text = environment.get(option.variable)
        if text is None or not text.strip():
            value = [] if option.many else option.default
        elif option.many:
            value = [one.strip() for one in text.split(",") if one.strip()]
        else:
            try:
                value = option.parse(text.strip())
            except ValueError:
                options.fail(f"{option.variable} is not a {option.metavar}: {text!r}")
        setattr(options, option.name, value)
    if not options.dir:
        options.fail(f"--dir is required, or {PREFIX}DIR")
