"""The options of ``zeroxide collector``, on the command line and in the environment."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._arguments import Choice, above, address, file, flag, folder, size
from .._hints import did_you_mean

__all__ = ["SECRET_KEY", "add_arguments", "settle"]

PREFIX = "ZEROXIDE_COLLECTOR_"

# Kubernetes sets such variables in every container if a service is called zeroxide-collector, or zeroxide-collector-http.
_OF_SERVICES = re.compile(
    r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
# The value of those whose names end with PORT, by which they are known.
_SERVICE = re.compile(r"(tcp|udp|sctp)://.*")


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


_GROUPS: dict[str, tuple[_Option, ...]] = {
    "where": (
        _Option(
            "dir",
            "folder of the log, used by one collector at a time (required)",
            metavar="DIR",
        ),
        _Option(
            "bind",
            "endpoint for producers, readers and sinks",
            default="tcp://127.0.0.1:5555",
            metavar="ENDPOINT",
        ),
        _Option(
            "advertise",
            "endpoint under which other machines reach --bind, if it differs from that",
            metavar="ENDPOINT",
        ),
        _Option(
            "http",
            "address of the HTTP server: a page at /, POST /pub and /mpub, GET /metrics, /stats, /rows, /health, /live",
            address,
            metavar="HOST:PORT",
        ),
        _Option(
            "http_host",
            "further name that HTTP requests may use for this server (repeatable)",
            metavar="NAME",
            many=True,
        ),
    ),
    "plain peers": (
        _Option(
            "pull",
            "endpoint that PUSH peers send to (repeatable)",
            metavar="ENDPOINT",
            many=True,
        ),
        _Option(
            "subscribe",
            "endpoint of a PUB peer, then topics after spaces (repeatable)",
            metavar="ENDPOINT",
            many=True,
        ),
        _Option(
            "dealer",
            "endpoint that DEALER peers send to (repeatable)",
            metavar="ENDPOINT",
            many=True,
        ),
        _Option(
            "framing",
            "layout of plain messages",
            Choice("single", "topic-first", "envelope"),
            "single",
        ),
        _Option("keep_frames", "store all frames of plain messages, too", flag, False),
    ),
    "the log": (
        _Option(
            "retention_bytes",
            "delete the oldest segments above this size",
            size,
            metavar="SIZE",
        ),
        _Option(
            "retention_hours",
            "delete segments older than this",
            above(0.0, "hours"),
            metavar="HOURS",
        ),
        _Option(
            "retention_groups",
            "delete segments that every consumer group has read",
            flag,
            False,
        ),
        _Option(
            "archive",
            "copy full segments to this URL, such as s3://bucket/path",
            metavar="URL",
        ),
        _Option("segment_bytes", "size of a segment file", size, 128 << 20, "SIZE"),
        _Option(
            "flush_ms",
            "longest time before rows are synced to disk, in milliseconds",
            above(0.0, "milliseconds"),
            10.0,
            "MS",
        ),
        _Option(
            "flush_rows",
            "sync to disk after this many rows",
            above(1, "rows"),
            20_000,
            "ROWS",
        ),
    ),
    "limits": (
        _Option("max_batch_bytes", "largest batch of rows", size, 16 << 20, "SIZE"),
        _Option(
            "max_producers",
            "producers connected at a time",
            above(1, "producers"),
            100_000,
            "N",
        ),
        _Option(
            "max_names_per_connection",
            "producer names on one connection",
            above(1, "names"),
            64,
            "N",
        ),
        _Option("max_staged_bytes", "rows staged but not published", size, 16 << 30, "SIZE"),
        _Option(
            "staged_hours",
            "hours to keep rows that are staged but not published",
            above(0.0, "hours"),
            1.0,
            "HOURS",
        ),
        _Option(
            "max_ahead_hours",
            "hours by which the time of a row may be ahead of the clock",
            above(0.0, "hours"),
            24.0,
            "HOURS",
        ),
        _Option(
            "credit_bytes",
            "unacknowledged bytes of all producers together",
            size,
            256 << 20,
            "SIZE",
        ),
        _Option(
            "credit_rows",
            "unacknowledged rows of all producers together",
            above(1, "rows"),
            8 << 20,
            "ROWS",
        ),
        _Option("http_body_bytes", "largest body of a POST request", size, 16 << 20, "SIZE"),
    ),
    "security": (
        _Option("key", "this collector's certificate with its secret key", file, metavar="FILE"),
        _Option(
            "allow",
            "folder of certificates that may connect, or * for any key (needs --key)",
            folder,
            metavar="FOLDER",
        ),
        _Option("roles", "TOML file: what each key may do (needs --key)", file, metavar="FILE"),
        _Option(
            "http_token",
            "file with the token that HTTP requests must carry",
            file,
            metavar="FILE",
        ),
        _Option(
            "open_to_network",
            "listen on a network address without keys; any client that can reach it can read and write",
            flag,
            False,
        ),
    ),
    "logging": (
        _Option(
            "log_format",
            "layout of log lines on stderr",
            Choice("text", "json"),
            "text",
        ),
        _Option(
            "log_level",
            "least severe messages to log",
            Choice("debug", "info", "warning", "error"),
            "info",
        ),
    ),
}

# The secret key itself: in the environment only, where other users cannot see it.
SECRET_KEY = PREFIX + "SECRET_KEY"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``zeroxide collector``."""
    parser.usage = "%(prog)s --dir DIR [OPTION ...]"
    for title, options in _GROUPS.items():
        group = parser.add_argument_group(title)
        for option in options:
            text = option.help
            if option.default not in (None, False):
                text += f" (default: {_shown(option)})"
            if option.parse is flag:
                group.add_argument(option.flag, action="store_true", default=None, help=text)
                continue
            choices = option.parse.values if isinstance(option.parse, Choice) else None
            group.add_argument(
                option.flag,
                help=text,
                type=option.parse,
                choices=choices,
                metavar=None if choices else option.metavar,
                default=None,
                action="append" if option.many else "store",
            )


def _shown(option: _Option) -> str:
    """The default, as it would be given."""
    if option.parse is size:
        number, power = option.default, 0
        while number % 1024 == 0 and power < 4:
            number, power = number // 1024, power + 1
        return f"{number}{' KMGT'[power].strip()}"
    if isinstance(option.default, float):
        return f"{option.default:g}"
    return str(option.default)


def settle(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Fills in missing options from the environment, or else with the defaults.

    An unknown variable is a mistake, as an unknown option is: the option that was meant would
    have no effect.
    """
    _check_variables(options, environment)
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
            except argparse.ArgumentTypeError as error:
                options.fail(f"{option.variable}: {error}")
        setattr(options, option.name, value)
    if not options.dir:
        options.fail(f"--dir is required: the folder of the log (or set {PREFIX}DIR)")


def _check_variables(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    known = {option.variable for group in _GROUPS.values() for option in group} | {SECRET_KEY}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable in known or not text.strip():
            continue
        name = variable.removeprefix(PREFIX)
        is_port = re.fullmatch(r"(\w+_)?PORT", name) and "SERVICE_PORT" not in name
        if _OF_SERVICES.fullmatch(name) and (not is_port or _SERVICE.fullmatch(text)):
            continue
        # Without the prefix, which makes all of them similar.
        hint = did_you_mean(name, (one.removeprefix(PREFIX) for one in known))
        options.fail(f"{variable}: there is no option {name!r}{hint}")
