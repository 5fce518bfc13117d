"""Shows the sockets of running programs, and collectors, live.

Without a target it shows every observable program of this user. A program is observable after
zeroxide.observe(), or if it was started with ZEROXIDE_OBSERVE=1. It is asked over a socket that
only its own user can open.

columns of a program:
  socket     the context and the socket, by number
  peers      connected peers, which have lines below their socket if there are several
  in/s       messages received per second; out/s those sent
  q.in       messages that wait for the program; q.out those that wait to be sent
  at mark    how often a queue reached its high-water mark
  reconn     connections that replaced a lost one
  dropped    messages that were not delivered, by reason

keys, with the package rich (pip install 'zeroxide[top]'):
  s  sort by another column    /  filter; Enter ends, Esc clears    p  hide and show peers
  up, down, page up, page down  scroll                              q  quit

Without rich, or if stdout is no terminal, tables are printed one after the other.

exit codes: 0 --count was reached, or q; 1 a target does not answer, or all have ended; 2 a mistake
in the arguments

examples:
  ZEROXIDE_OBSERVE=1 python app.py & zeroxide top
  zeroxide top 4711 --interval 0.5 --sort queued
  zeroxide top tcp://collector:5555
  zeroxide top --json --count 1 | jq '.programs[].sockets[] | {type, queued_out, dropped}'
  zeroxide top --prometheus 127.0.0.1:9100

a collector with CURVE (see zeroxide keygen --name) asks for a key with the role admin:
  zeroxide top tcp://collector:5555 --key keys/a.key_secret --server-key keys/collector.key
"""

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator

from ... import _observing
from ..._arguments import Choice as OneOf
from ..._arguments import above, address
from ..._native import curve_public, observer_folder
from ...pipeline import Client
from ..keys import public_key, secret_key
from ..streams import FAILED, check_reader, flush
from .rates import Rates
from .tables import layout
from .targets import Watch, endpoint_of
from .views import ORDERS, Choice, tables

__all__ = ["add_arguments", "run"]

_ORDER = OneOf(*ORDERS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide top``."""
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        type=_target,
        help="the PID of an observable program, its endpoint, or the endpoint of a collector"
        " (default: every observable program of this user)",
    )
    parser.add_argument(
        "--interval",
        type=above(0.1, "seconds"),
        metavar="SECONDS",
        default=1.0,
        help="time between two looks (default: 1)",
    )
    parser.add_argument(
        "--count",
        type=above(1, "tables"),
        metavar="N",
        help="end after N tables or objects; the first comes after an interval",
    )
    parser.add_argument("--json", action="store_true", help="print an object per interval")
    parser.add_argument(
        "--plain", action="store_true", help="print tables one after the other, without a screen"
    )
    parser.add_argument(
        "--sort",
        metavar="ORDER",
        type=_ORDER,
        choices=_ORDER.values,
        default="socket",
        help=f"order of sockets: {', '.join(_ORDER.values)} (default: socket)",
    )
    parser.add_argument(
        "--filter",
        metavar="TEXT",
        default="",
        help="show only sockets, topics and groups that have this text in a column",
    )
    parser.add_argument(
        "--peers",
        metavar="N",
        type=above(0, "peers"),
        help="peers to list per socket, those with the longest queues first (default: 10; 100 with"
        " --json; none with --prometheus)",
    )
    parser.add_argument(
        "--folder",
        metavar="DIR",
        help="where programs are found, if they use another folder (default:"
        " $XDG_RUNTIME_DIR/zeroxide or /tmp/zeroxide-UID)",
    )
    parser.add_argument(
        "--prometheus",
        metavar="HOST:PORT",
        type=address,
        help="serve the numbers at http://HOST:PORT/metrics instead of showing them",
    )
    parser.add_argument(
        "--timeout",
        type=above(0.001, "seconds"),
        metavar="SECONDS",
        default=5.0,
        help="longest wait for a program's first answer, and for each of a collector (default: 5)",
    )
    group = parser.add_argument_group("collectors")
    group.add_argument(
        "--key", type=secret_key, metavar="FILE", help="your certificate with its secret key"
    )
    group.add_argument(
        "--server-key",
        type=public_key,
        metavar="FILE",
        help="the collector's certificate, or its public key in Z85",
    )


def _target(text: str) -> str:
    if text.isdecimal() or "://" in text:
        return text
    raise argparse.ArgumentTypeError(
        f"expected a PID or an endpoint, such as 4711 or tcp://collector:5555, got {text!r}"
    )


def run(options: argparse.Namespace) -> int:
    """Shows, prints or serves what is watched."""
    # A watcher is of no interest to watchers.
    _observing.refuse()
    watch = _watch(options)
    try:
        if not _finds(watch, options):
            return FAILED
        if options.prometheus:
            from .exporter import export

            return export(watch, options.prometheus)
        return _show(watch, options)
    finally:
        watch.close()


def _watch(options: argparse.Namespace) -> Watch:
    if options.key and not options.server_key:
        options.fail("--key requires --server-key")
    peers = options.peers
    if peers is None:
        peers = 0 if options.prometheus else 100 if options.json else 10
    public = curve_public(options.key) if options.key else None

    def make_client(endpoint: str) -> Client:
        return Client(
            endpoint,
            timeout_s=options.timeout,
            retries=0,
            server_key=options.server_key,
            public_key=public,
            secret_key=options.key,
        )

    folder = options.folder or observer_folder()
    targets = [endpoint_of(text, folder) if text.isdecimal() else text for text in options.targets]
    return Watch(targets, folder, peers, make_client)


def _finds(watch: Watch, options: argparse.Namespace) -> bool:
    """Looks for the first time. Returns False, and reports why, if a target that was named does not answer."""
    # A program that was only found may be suspended, and is not worth a long wait.
    watch.look(min(options.timeout, 1.0) if watch.finds else options.timeout)
    missing = _missing(watch)
    for line in missing:
        print(f"zeroxide: {line}", file=sys.stderr)
    return not missing


def _show(watch: Watch, options: argparse.Namespace) -> int:
    rates = Rates()
    # From here on there are rates.
    rates.report(watch)
    choice = Choice(options.sort, options.filter)
    if _has_screen(options):
        from .screen import Screen

        return Screen(watch, rates, choice, options.interval).run(options.count)
    return _print(watch, rates, choice, options)


def _missing(watch: Watch) -> list[str]:
    """Why there is nothing to show of targets that were named."""
    programs = [program for program in watch.programs if program.snapshot is None]
    lines = [
        f"process {program.pid}: {program.problem or 'it does not answer'}" for program in programs
    ]
    lines += [
        f"there is no observable process {program.pid} (no answer at {program.endpoint})"
        for program in watch.ended
    ]
    lines += [
        f"{collector.endpoint} does not answer: {collector.problem}"
        for collector in watch.collectors
        if collector.problem
    ]
    return [] if watch.finds else lines


def _has_screen(options: argparse.Namespace) -> bool:
    if options.json or options.plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    if os.environ.get("TERM") in (None, "", "dumb"):
        return False
    try:
        import rich  # noqa: F401
    except ModuleNotFoundError:
        hint = "zeroxide: pip install 'zeroxide[top]' for a live screen; this prints tables"
        print(hint, file=sys.stderr)
        return False
    return True


def _print(watch: Watch, rates: Rates, choice: Choice, options: argparse.Namespace) -> int:
    width = _width()
    for number in _intervals(options.interval, options.count):
        watch.look()
        report = rates.report(watch)
        if watch.has_ended:
            print("zeroxide: everything that was watched has ended", file=sys.stderr)
            return FAILED
        if options.json:
            print(json.dumps({"time": round(time.time(), 3), **report}, ensure_ascii=False))
        else:
            if number:
                print()
            for table in tables(report, choice):
                for line in layout(table, width):
                    print("".join(text for text, _ in line).rstrip())
        flush()
        check_reader()
    return 0


def _intervals(interval: float, count: int | None) -> Iterator[int]:
    """Counts from 0, once per interval. Slow work does not shift the later ones."""
    start = time.monotonic()
    number = 0
    while count is None or number < count:
        due = start + (number + 1) * interval
        with contextlib.suppress(ValueError):
            time.sleep(due - time.monotonic())
        yield number
        number += 1


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        columns = os.environ.get("COLUMNS", "")
        return int(columns) if columns.isdecimal() and int(columns) else 80
