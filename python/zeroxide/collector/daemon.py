"""Runs a collector: a durable log of messages.

Producers, readers and Spark connect to --bind. Plain ZeroMQ peers use --pull (for PUSH),
--subscribe (for PUB) and --dealer (for DEALER). Endpoints of --pull and --dealer are bound,
those of --subscribe are connected to; the prefixes connect: and bind: choose the other way,
as in connect:tcp://host:5556. A port of * picks a free one. The bound endpoints are printed.

Every option is also an environment variable: --retention-bytes 100G is
ZEROXIDE_COLLECTOR_RETENTION_BYTES=100G. Separate the values of a repeatable option with
commas. Sizes take K, M, G or T for powers of 1024.

examples:
  zeroxide collector --bind tcp://127.0.0.1:5555 --dir /var/lib/zeroxide
  zeroxide collector --bind tcp://127.0.0.1:5555 --dir /var/lib/zeroxide --http 127.0.0.1:8080 \\
      --pull tcp://127.0.0.1:5556 --subscribe "tcp://ticker:5557 EUR USD" --framing topic-first

for other machines, with CURVE (see zeroxide keygen --name):
  zeroxide collector --bind tcp://*:5555 --dir /var/lib/zeroxide \\
      --key keys/collector.key_secret --allow clients/ \\
      --advertise tcp://collector-0.example.org:5555 --retention-bytes 100G --retention-hours 72

for other machines on a network that you trust, without keys: --open-to-network

signals: SIGTERM and SIGINT shut down cleanly, SIGHUP reads the folder of --allow again
"""

import argparse
import logging
import os
import signal
import socket
import sys
import threading
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from .._arguments import Parser
from ..error import ZMQBaseError
from ..pipeline import Collector, CollectorError
from .lines import write_lines
from .settings import SECRET_KEY, add_arguments, settle

if TYPE_CHECKING:
    from ..auth import AllowList
    from .http import HttpServer

__all__ = ["add_arguments", "main", "run"]

# The interval of checks.
_LOOK_EVERY = 1.0

# A clock that is this many seconds ahead is logged.
_CLOCK_AHEAD = 3600

_log = logging.getLogger("zeroxide.collector")


def run(options: argparse.Namespace) -> int:
    """Serves until SIGINT or SIGTERM; 1 when the collector has failed."""
    settle(options, os.environ)
    write_lines(_log, options.log_format, options.log_level)
    _check_archive(options)
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
            retention_groups=options.retention_groups,
            flush_ms=options.flush_ms,
            flush_rows=options.flush_rows,
            segment_bytes=options.segment_bytes,
            max_batch_bytes=options.max_batch_bytes,
            max_producers=options.max_producers,
            max_staged_bytes=options.max_staged_bytes,
            staged_hours=options.staged_hours,
            max_ahead_hours=options.max_ahead_hours,
            credit_rows=options.credit_rows,
            credit_bytes=options.credit_bytes,
            advertise=options.advertise,
            secret_key=secret_key,
            allow=allow,
            archive=options.archive,
            open_to_network=options.open_to_network,
            roles=_roles(options),
            max_names_per_connection=options.max_names_per_connection,
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
    parser = Parser(prog="python -m zeroxide.collector", description=help, epilog=details.rstrip())
    add_arguments(parser)
    parser.set_defaults(fail=parser.error)
    try:
        return run(parser.read(arguments))
    except (ZMQBaseError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1


@contextmanager
def _handled(stop: threading.Event) -> Iterator[threading.Event]:
    """Turns signals into events: the end, and a request to read the keys again."""
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


def _check_archive(options: argparse.Namespace) -> None:
    if options.archive is None:
        return
    from ..pipeline._archive import check_address

    try:
        check_address(options.dir, options.archive)
    except ValueError as error:
        options.fail(f"--archive: {error}")


def _security(options: argparse.Namespace) -> "tuple[AllowList | None, bytes | None]":
    """The allow-list and the collector's secret key."""
    from ..auth import AllowList, load_certificate

    secret = os.environ.get(SECRET_KEY, "").strip().encode() or None
    if options.key:
        try:
            secret = load_certificate(options.key)[1]
        except (OSError, ValueError) as error:
            options.fail(f"--key: {error}")
        if secret is None:
            options.fail(f"--key: {options.key} holds no secret key; name the file NAME.key_secret")
    if secret is None:
        if options.allow:
            options.fail("--allow requires --key: without a key, clients are not authenticated")
        return None, None
    if not options.allow:
        options.fail("--key requires --allow: a folder of client certificates, or * for any key")
    return AllowList(options.allow), secret


def _roles(options: argparse.Namespace) -> dict[str, Any] | None:
    """The roles of each key."""
    if not options.roles:
        return None
    if not (options.key or os.environ.get(SECRET_KEY)):
        options.fail("--roles requires --key: without a key, clients are not authenticated")
    with open(options.roles, "rb") as file:
        try:
            return tomllib.load(file)
        except ValueError as error:
            options.fail(f"--roles: {options.roles} is not TOML: {error}")
    return None


def _open_http(options: argparse.Namespace, collector: Collector) -> "HttpServer | None":
    if options.http is None:
        return None
    from .http import HttpServer

    token = None
    if options.http_token:
        with open(options.http_token, encoding="utf-8") as file:
            token = file.read().strip()
        if not token:
            options.fail(f"--http-token: {options.http_token} is empty")
    http = HttpServer(
        collector,
        options.http,
        max_body_bytes=options.http_body_bytes,
        token=token,
        hosts=options.http_host,
        open_to_network=options.open_to_network,
    )
    http.start()
    return http


def _announce(options: argparse.Namespace, collector: Collector, http: "HttpServer | None") -> None:
    """Logs the endpoints and the state of the log; a program that started this may wait for that."""
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
    if options.open_to_network and not has_key:
        _log.warning("open_to_network", extra={"fields": {"hint": "--key asks for keys"}})
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
    """Returns whether this endpoint of an option is connected to, not bound."""
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
    """Waits for the end; logs each failure and each recovery."""
    state = "fine"
    told: set[str] = set()
    away: dict[str, int] = {}
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
        for name in ("plain_too_large", "too_large"):
            if stats[name] and name not in told:
                # Logged only once; the counters have the number.
                told.add(name)
                fields = {"counter": name, "max_batch_bytes": stats["max_batch_bytes"]}
                _log.warning("message_too_large", extra={"fields": fields})
        if stats["clock_ahead_seconds"] > _CLOCK_AHEAD and "clock" not in told:
            told.add("clock")
            fields = {
                "seconds": stats["clock_ahead_seconds"],
                "hint": "--retention-hours ignores the jump until the clock has kept its new time for as many hours",
            }
            _log.warning("clock_ahead", extra={"fields": fields})
        counts = {why: count for why, count in stats["turned_away"].items() if why != "other"}
        if counts != away and any(counts.values()):
            fields = {**counts, "last": stats["turned_away_last"]}
            _log.warning("turned_away", extra={"fields": fields})
        away = counts
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
        # The keys that were accepted before remain accepted.
        _log.error("keys_not_read", extra={"fields": {"reason": str(error)}})


def _notify(text: str) -> None:
    """Notifies systemd, if it requested notifications."""
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
