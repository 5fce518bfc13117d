"""Measures messages per second and round trips, on this machine or between two.

On one machine, the other side is a process of its own; for inproc, it is a thread. Between two,
one side listens, and the other one connects, decides what is measured, and prints the results. The
listening side uses two ports: the one of --listen, and the next one.

patterns:
  pushpull      PUSH connects and sends, PULL counts
  pubsub        the same with PUB, which waits instead of dropping messages, and SUB
  reqrep        REQ sends each request after the reply to the one before
  dealerrouter  DEALER keeps --window requests in transit

Bars compare the transports for each size, or the sizes if there is one transport. The bar of a
round trip is solid up to the median, and light up to the 99th percentile, if that fits.

programs of the guide, which also measure with those of libzmq:
  local_thr  ENDPOINT SIZE COUNT   PULL binds, and prints messages per second
  remote_thr ENDPOINT SIZE COUNT   PUSH connects, and sends
  local_lat  ENDPOINT SIZE COUNT   REP binds, and answers
  remote_lat ENDPOINT SIZE COUNT   REQ connects, and prints half of the mean round trip

exit codes: 0 measured, 1 an error, 2 a mistake in the arguments, 124 a timeout

examples:
  zeroxide bench
  zeroxide bench tcp ipc --sizes 64,1KiB,64KiB --patterns pushpull,dealerrouter
  zeroxide bench --json > before.json
  zeroxide bench --listen tcp://*:5555
  zeroxide bench --connect tcp://server:5555 --repeats 5
  zeroxide bench local_thr tcp://*:5555 64 1000000
  zeroxide bench remote_thr tcp://server:5555 64 1000000

with CURVE (see zeroxide keygen --name):
  zeroxide bench tcp --curve
  zeroxide bench --listen tcp://*:5555 --key keys/server.key_secret --allow clients/
  zeroxide bench --connect tcp://server:5555 --key alice.key_secret --server-key server.key
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from ..._arguments import Choice, above, size
from ..._native import __version__, curve_keypair, has
from ...context import Context
from ...socket import Socket
from ..keys import add_keys, secure
from ..streams import FAILED, TIMED_OUT, TimedOut
from .chart import Style, chart, progress
from .drive import Driver, Plan
from .figures import Measurement
from .guide import PROGRAMS, run_program
from .local import peer_process, peer_thread
from .patterns import PATTERNS, Configure, Failed
from .serve import serve

__all__ = ["add_arguments", "run"]

_PATTERN = Choice(*PATTERNS)

# Where the listening side is on this machine. Others have to be given as endpoints.
_TRANSPORTS = {
    "tcp": "tcp://127.0.0.1:*",
    "ipc": "ipc://{folder}/bench",
    "inproc": "inproc://bench",
}


def add_arguments(parser: Any) -> None:
    """Adds the arguments of ``zeroxide bench``."""
    parser.add_argument(
        "what",
        nargs="*",
        metavar="TRANSPORT",
        help="tcp, ipc, inproc (default: these) or an endpoint of another transport; or a program"
        " of the guide with its arguments",
    )
    sides = parser.add_argument_group("two machines")
    sides.add_argument(
        "--listen", metavar="ENDPOINT", help="listen here until a signal, as in tcp://*:5555"
    )
    sides.add_argument(
        "--connect", metavar="ENDPOINT", help="measure with the side that listens there"
    )
    measured = parser.add_argument_group("what is measured")
    measured.add_argument(
        "--patterns",
        type=_list_of(_PATTERN),
        default=["pushpull", "reqrep"],
        metavar="NAMES",
        help=f"some of {', '.join(PATTERNS)} (default: pushpull,reqrep)",
    )
    measured.add_argument(
        "--sizes",
        type=_list_of(size),
        default=[64, 1 << 10, 1 << 16],
        metavar="BYTES",
        help="sizes of messages, with K or M for KiB or MiB (default: 64,1K,64K)",
    )
    measured.add_argument(
        "--repeats",
        type=above(1, "repeats"),
        default=3,
        metavar="N",
        help="measurements of each; the median and the range are shown (default: %(default)s)",
    )
    measured.add_argument(
        "--seconds",
        type=above(0.001, "seconds"),
        default=0.5,
        metavar="SEC",
        help="about how long each measurement takes (default: %(default)s)",
    )
    measured.add_argument(
        "--count",
        type=above(1, "messages"),
        metavar="N",
        help="messages of each measurement, instead of --seconds",
    )
    measured.add_argument(
        "--window",
        type=above(1, "requests"),
        default=100,
        metavar="N",
        help="requests in transit with dealerrouter (default: %(default)s)",
    )
    measured.add_argument(
        "--timeout",
        type=above(0.001, "seconds"),
        metavar="SEC",
        help="longest wait for the other side (default: 10; with --listen 5)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    security = parser.add_argument_group("security")
    security.add_argument(
        "--curve", action="store_true", help="on one machine: use CURVE, with new keys"
    )
    add_keys(security)


def _list_of(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Values of this kind, with commas between them."""

    def parse(text: str) -> list[Any]:
        return list(dict.fromkeys(kind(word) for word in text.split(",")))

    return parse


def run(options: argparse.Namespace) -> int:
    """Measures, or lets the other side measure."""
    try:
        if options.what and options.what[0] in PROGRAMS:
            _run_program(options)
        elif options.listen is not None:
            _check_side(options, "--listen")
            _listen(options)
        else:
            _measure(options)
    except (Failed, TimedOut) as error:
        print(f"zeroxide: {error}", file=sys.stderr)
        return TIMED_OUT if isinstance(error, TimedOut) else FAILED
    return 0


def _run_program(options: argparse.Namespace) -> None:
    name, *arguments = options.what
    if options.curve or options.json or options.listen or options.connect or options.timeout:
        options.fail(f"{name} takes no options but keys")
    if len(arguments) != 3:
        options.fail(f"{name} takes an endpoint, a size and a count")
    endpoint, *numbers = arguments
    try:
        bytes_, count = above(0, "bytes")(numbers[0]), above(1, "messages")(numbers[1])
    except argparse.ArgumentTypeError as error:
        options.fail(f"{name}: {error}")
    run_program(name, endpoint, bytes_, count, _configure(options))


def _check_side(options: argparse.Namespace, side: str) -> None:
    if options.what:
        options.fail(f"{side} measures between two sides, so {options.what[0]!r} is not possible")
    if options.listen is not None and options.connect is not None:
        options.fail("one side takes --listen, and the other one --connect")
    if options.curve:
        options.fail(f"--curve is for one machine; {side} takes keys")


def _listen(options: argparse.Namespace) -> None:
    def tell(bound: str, beside: str) -> None:
        print(f"bound to {bound}; measured sockets at {beside}", file=sys.stderr, flush=True)

    context: Context[Any] = Context()
    try:
        # A client that went away is given up before the next one gives up.
        timeout = options.timeout or 5.0
        serve(context, options.listen, _configure(options), timeout, on_bound=tell)
    finally:
        context.destroy(linger=0)


def _configure(options: argparse.Namespace) -> Configure:
    return lambda socket: secure(socket, options)


def _measure(options: argparse.Namespace) -> None:
    results: list[Measurement] = []
    style = Style(sys.stdout)
    try:
        for result in _results(options):
            results.append(result)
    finally:
        progress("")
    if options.json:
        facts = {"zeroxide": __version__, "results": [result.facts() for result in results]}
        print(json.dumps(facts, indent=1))
        return
    for line in chart(results, style):
        print(line.rstrip())


def _results(options: argparse.Namespace) -> Iterator[Measurement]:
    plan = Plan(
        seconds=options.seconds,
        count=options.count,
        repeats=options.repeats,
        window=options.window,
        timeout=options.timeout or 10.0,
    )
    if options.connect is not None:
        _check_side(options, "--connect")
        yield from _between(options, plan, options.connect, _configure(options), ends=False)
        return
    if options.key or options.allow or options.server_key:
        options.fail("keys are for --listen and --connect; on one machine, --curve makes them")
    yield from _on_this_machine(options, plan, options.what or _default_transports(options))


def _default_transports(options: argparse.Namespace) -> list[str]:
    """The transports that this build has, and that CURVE protects."""
    names = ["tcp"]
    if has("ipc"):
        names.append("ipc")
    return names if options.curve else [*names, "inproc"]


def _on_this_machine(
    options: argparse.Namespace, plan: Plan, targets: list[str]
) -> Iterator[Measurement]:
    for target in targets:
        if target not in _TRANSPORTS and "://" not in target:
            options.fail(f"expected {', '.join(_TRANSPORTS)} or an endpoint, got {target!r}")
    of_listener, of_client = _new_keys() if options.curve else (_no_keys, _no_keys)
    with tempfile.TemporaryDirectory(prefix="zeroxide-") as folder, ExitStack() as stack:
        endpoints = [_TRANSPORTS.get(target, target).format(folder=folder) for target in targets]
        # All processes start before there is a context.
        bound = [
            endpoint
            if _is_within(endpoint)
            else stack.enter_context(peer_process(endpoint, of_listener, plan.timeout))
            for endpoint in endpoints
        ]
        for endpoint in bound:
            if _is_within(endpoint):
                yield from _within(options, plan, endpoint, of_listener, of_client)
            else:
                yield from _between(options, plan, endpoint, of_client, ends=True)


def _is_within(endpoint: str) -> bool:
    """Whether the transport is one within a process."""
    return endpoint.startswith("inproc:")


def _within(
    options: argparse.Namespace,
    plan: Plan,
    endpoint: str,
    of_listener: Configure,
    of_client: Configure,
) -> Iterator[Measurement]:
    context: Context[Any] = Context()
    try:
        with peer_thread(context, endpoint, of_listener, plan.timeout):
            yield from _with_driver(options, plan, context, endpoint, of_client, ends=True)
    finally:
        context.destroy(linger=0)


def _between(
    options: argparse.Namespace, plan: Plan, endpoint: str, configure: Configure, *, ends: bool
) -> Iterator[Measurement]:
    context: Context[Any] = Context()
    try:
        yield from _with_driver(options, plan, context, endpoint, configure, ends=ends)
    finally:
        context.destroy(linger=0)


def _with_driver(
    options: argparse.Namespace,
    plan: Plan,
    context: Context[Any],
    endpoint: str,
    configure: Configure,
    *,
    ends: bool,
) -> Iterator[Measurement]:
    transport = endpoint.partition(":")[0]
    driver = Driver(context, endpoint, configure, plan)
    for name in options.patterns:
        for number, result in enumerate(driver.series(transport, name, options.sizes), 1):
            done = f"{number} of {len(options.sizes)} sizes"
            progress(f"{transport} {result.pattern}: {done}")
            yield result
    driver.close(ends=ends)


def _no_keys(socket: Socket[Any]) -> None:
    """Leaves a socket without CURVE."""


def _new_keys() -> tuple[Configure, Configure]:
    """Keys for the listening side and the other one."""
    (server, server_secret), (_, client_secret) = curve_keypair(), curve_keypair()
    return (
        lambda socket: socket.secure_server(server_secret, "*"),
        lambda socket: socket.secure_client(server, client_secret),
    )
