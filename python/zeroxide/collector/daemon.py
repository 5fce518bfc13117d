"""Keeps a durable log of messages, until it is stopped.

Producers, readers and Spark connect to --bind. An endpoint of --pull, --subscribe or
--dealer is for peers that know nothing but ZeroMQ: PUSH, PUB and DEALER; those of --pull
and --dealer are bound, those of --subscribe connected to, and connect:tcp://... or
bind:tcp://... says otherwise. Ports may be *, and what was bound is printed.

Each option can be given in the environment as well, as ZEROXIDE_COLLECTOR_ and its name:
ZEROXIDE_COLLECTOR_RETENTION_BYTES=100G. Where an option may be given several times, its
values are separated by commas. Sizes may end in K, M, G or T, for powers of 1024.

examples:
  zeroxide collector --bind tcp://*:5555 --dir /var/lib/zeroxide
  zeroxide collector --bind tcp://*:5555 --dir /var/lib/zeroxide \\
      --advertise tcp://collector-0.example.org:5555 --retention-bytes 100G --retention-hours 72
  zeroxide collector --bind tcp://*:5555 --dir /var/lib/zeroxide --http 127.0.0.1:8080 \\
      --pull tcp://*:5556 --subscribe "tcp://ticker:5557 EUR USD" --framing topic-first

with CURVE (see zeroxide keygen --name):
  zeroxide collector --bind tcp://*:5555 --dir /var/lib/zeroxide \\
      --key keys/collector.key_secret --allow clients/

signals: SIGTERM and SIGINT end it in order, SIGHUP reads the folder of --allow anew
"""

import argparse
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..error import ZMQBaseError
from .errors import CollectorError
from .service import Collector

if TYPE_CHECKING:
    from ..auth import AllowList
    from .http import HttpServer

__all__ = ["add_arguments", "main", "run"]

PREFIX = "ZEROXIDE_COLLECTOR_"

# How often to look whether everything is as it should be.
_LOOK_EVERY = 1.0

_log = logging.getLogger("zeroxide.collector")


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
        _Option("archive", "copy full segments there: s3://bucket/path, ...", metavar="URL"),
        _Option("segment_bytes", "size of the log's files", _size, 128 << 20, "SIZE"),
        _Option("flush_ms", "longest wait for a sync", _above(0, float), 10.0, "MS"),
        _Option("flush_rows", "rows that are synced at once", _above(1, int), 20_000, "ROWS"),
    ),
    "limits": (
        _Option("max_batch_bytes", "largest batch", _size, 16 << 20, "SIZE"),
        _Option("max_producers", "connected producers", _above(1, int), 100_000, "N"),
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
        _Option("http_token", "file with the token that a POST has to bring", metavar="FILE"),
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


def run(options: argparse.Namespace) -> int:
    """Serves until SIGINT or SIGTERM; 1 when the collector has failed."""
    settle(options, os.environ)
    _set_up_logging(options)
    stop = threading.Event()
    with _handled(stop) as reloads:
        allow, secret_key = _security(options)
        with Collector(
            options.dir,
            options.bind,
            pull=options.pull,
            subscribe=options.subscribe,
            dealer=options.dealer,
            framing=options.framing,
            keep_frames=options.keep_frames,
            retention_bytes=options.retention_bytes,
            retention_hours=options.retention_hours,
            flush_ms=options.flush_ms,
            flush_rows=options.flush_rows,
            segment_bytes=options.segment_bytes,
            max_batch_bytes=options.max_batch_bytes,
            max_producers=options.max_producers,
            max_staged_bytes=options.max_staged_bytes,
            staged_hours=options.staged_hours,
            credit_rows=options.credit_rows,
            credit_bytes=options.credit_bytes,
            advertise=options.advertise,
            secret_key=secret_key,
            allow=allow,
            archive=options.archive,
        ) as collector:
            http = _open_http(options, collector)
            try:
                _announce(options, collector, http)
                return _watch(collector, stop, reloads, allow)
            finally:
                _notify("STOPPING=1")
                if http is not None:
                    http.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m zeroxide.collector``."""
    help, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m zeroxide.collector",
        description=help,
        epilog=details.rstrip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.set_defaults(fail=parser.error)
    try:
        return run(parser.parse_args(arguments))
    except (ZMQBaseError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1


@contextmanager
def _handled(stop: threading.Event) -> Iterator[threading.Event]:
    """Turns signals into events: the end, and what is given, that keys are to be read anew."""
    reloads = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    def reload(number: int, frame: FrameType | None) -> None:
        reloads.set()

    handlers = {signal.SIGTERM: end, signal.SIGINT: end, signal.SIGHUP: reload}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield reloads
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _security(options: argparse.Namespace) -> "tuple[AllowList | None, bytes | None]":
    """Who may come in, and our own secret key."""
    from ..auth import AllowList, load_certificate

    secret = os.environ.get(SECRET_KEY, "").strip().encode() or None
    if options.key:
        secret = load_certificate(options.key)[1]
        if secret is None:
            options.fail(f"{options.key} holds no secret key")
    if secret is None:
        if options.allow:
            options.fail("--allow is of use with --key only: without it nobody proves who they are")
        return None, None
    if not options.allow:
        options.fail("--key needs --allow to let anybody in: a folder of certificates, or *")
    return AllowList(options.allow), secret


def _open_http(options: argparse.Namespace, collector: Collector) -> "HttpServer | None":
    if options.http is None:
        return None
    from .http import HttpServer

    token = None
    if options.http_token:
        with open(options.http_token, encoding="utf-8") as file:
            token = file.read().strip()
        if not token:
            options.fail(f"{options.http_token} holds no token")
    http = HttpServer(collector, options.http, max_body_bytes=options.http_body_bytes, token=token)
    http.start()
    return http


def _announce(options: argparse.Namespace, collector: Collector, http: "HttpServer | None") -> None:
    """Says where it listens and what it found; whoever started it may wait for that."""
    recovery = collector.recovery
    if recovery.dropped_bytes:
        _log.info(
            "unacknowledged_rows_dropped", extra={"fields": {"bytes": recovery.dropped_bytes}}
        )
    for first, end in recovery.damaged:
        _log.error("rows_damaged", extra={"fields": {"first": first, "end": end}})
    for note in recovery.notes:
        _log.warning("recovered", extra={"fields": {"note": note}})
    has_key = options.key or os.environ.get(SECRET_KEY)
    if has_key and http is not None and not options.http_token:
        _log.warning("http_is_open", extra={"fields": {"hint": "--http-token asks for a token"}})
    plain = iter(collector.plain_endpoints)
    where = {"bind": [collector.endpoint]}
    where |= {
        name: [next(plain) for _ in getattr(options, name)]
        for name in ("pull", "subscribe", "dealer")
    }
    where["http"] = [http.endpoint] if http is not None else []
    if options.log_format == "text":
        for name, endpoints in where.items():
            for number, endpoint in enumerate(endpoints):
                verb = "connected" if _connects(options, name, number) else "bound"
                print(f"{name} is {verb} to {endpoint}", flush=True)
    fields: dict[str, Any] = {name: endpoints for name, endpoints in where.items() if endpoints}
    fields |= {"log_id": collector.log_id, "pid": os.getpid()}
    _log.info("listening", extra={"fields": fields})
    _notify("READY=1")


def _connects(options: argparse.Namespace, name: str, number: int) -> bool:
    """Whether this endpoint of an option is connected to, and not bound."""
    if name == "subscribe":
        return not options.subscribe[number].startswith("bind:")
    given = getattr(options, name)
    return isinstance(given, list) and given[number].startswith("connect:")


def _watch(
    collector: Collector,
    stop: threading.Event,
    reloads: threading.Event,
    allow: "AllowList | None",
) -> int:
    """Waits for the end; says when something goes wrong, and when it is well again."""
    state = "fine"
    while not stop.wait(_LOOK_EVERY):
        if reloads.is_set():
            reloads.clear()
            _reload(allow)
        try:
            stats = collector.stats()
        except CollectorError as error:
            if not collector.running:
                _log.error("failed", extra={"fields": {"reason": str(error)}})
                return 1
            _log.warning("slow", extra={"fields": {"reason": str(error)}})
            continue
        if stats["state"] != state:
            state = stats["state"]
            fields = {"state": state, "reason": stats["reason"]}
            if state == "fine":
                _log.info("writing_again", extra={"fields": {"durable": stats["durable"]}})
            else:
                _log.error("cannot_write", extra={"fields": fields})
    _log.info("stopping")
    return 0


def _reload(allow: "AllowList | None") -> None:
    if allow is None:
        return
    try:
        _log.info("keys_read", extra={"fields": {"keys": allow.reload()}})
    except (ZMQBaseError, OSError) as error:
        # Who was let in before still is.
        _log.error("keys_not_read", extra={"fields": {"reason": str(error)}})


def _notify(text: str) -> None:
    """Tells systemd, if it asked to be told."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify:
            notify.sendto(text.encode(), address)
    except OSError as error:
        _log.warning("systemd_not_told", extra={"fields": {"reason": str(error)}})


def _set_up_logging(options: argparse.Namespace) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if options.log_format == "json" else _Text())
    _log.handlers[:] = [handler]
    _log.propagate = False
    _log.setLevel(options.log_level.upper())


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(record, "fields", {})
    return fields


class _Json(logging.Formatter):
    """One object per line: time, level, event, and what belongs to it."""

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
    """A line for people."""

    def format(self, record: logging.LogRecord) -> str:
        time_ = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        words = [time_, record.levelname.lower(), record.getMessage().replace("_", " ")]
        for name, value in _fields(record).items():
            text = " ".join(value) if isinstance(value, list) else str(value)
            words.append(f"{name}={text}")
        return " ".join(words)
