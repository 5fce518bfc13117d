"""One airport: replays its flights of the year, in order, and tells how it goes."""

import argparse
import time
from collections.abc import Callable
from typing import Any

import zeroxide as zmq

from . import flights, lifeline

# A batch is sent at most this large, and at most this often, and told about as often.
BATCH = 2_000
TICK_S = 0.02
REPORT_S = 0.15

Report = Callable[[int, str], None]


def main() -> None:
    """Runs the publisher of ``--airport``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--airport", required=True)
    parser.add_argument("--report", required=True, help="where to tell how it goes")
    parser.add_argument("--seconds", type=float, required=True, help="for the whole year")
    parser.add_argument("--limit", type=float, required=True, help="seconds to give up after")
    arguments = parser.parse_args()
    lifeline.hold_on()
    limit_ms = int(arguments.limit * 1000)

    with zmq.Context() as context, context.socket(zmq.PUSH) as out, context.socket(zmq.PUSH) as log:
        log.connect(arguments.report)
        # Without a reader the demo is over: do not wait for one longer than it may last.
        log.linger = out.linger = 1000
        out.sndtimeo = limit_ms
        port = out.bind_to_random_port("tcp://127.0.0.1")
        lines = sorted(flights.lines(arguments.airport), key=flights.date)

        def report(sent: int, state: str) -> None:
            log.send_json(
                {
                    "airport": arguments.airport,
                    "endpoint": f"tcp://127.0.0.1:{port}",
                    "state": state,
                    "sent": sent,
                    "total": len(lines),
                    "date": flights.date(lines[min(sent, len(lines) - 1)]),
                    "bytes": sum(map(len, lines)) if state == "done" else 0,
                    "seconds": time.monotonic() - began,
                    "stats": totals(out.stats()),
                }
            )

        began = time.monotonic()
        report(0, "waiting")
        # Room for a message there is as soon as the reader is.
        if not out.poll(limit_ms, zmq.POLLOUT):
            raise SystemExit(f"{arguments.airport}: nobody came to read")
        began = time.monotonic()
        replay(out, lines, arguments.seconds, report)
        out.send(flights.END)
        out.flush(limit_ms)
        report(len(lines), "done")
        log.flush(limit_ms)


def replay(out: zmq.Socket, lines: list[bytes], seconds: float, report: Report) -> None:
    """Sends all lines, spread evenly over `seconds`."""
    began = reported = time.monotonic()
    sent = 0
    while sent < len(lines):
        now = time.monotonic()
        due = len(lines)
        if seconds:
            due = min(due, int(len(lines) * (now - began) / seconds))
        if due > sent:
            sent += out.send_batch(lines[sent : min(due, sent + BATCH)])
        else:
            time.sleep(TICK_S)
        if now - reported > REPORT_S:
            report(sent, "sending")
            reported = now


def totals(stats: Any) -> dict[str, int]:
    """Of a socket's counters those that the demo shows."""
    return {
        "sent": stats["sent"],
        "received": stats["received"],
        "queued": stats["queued_out"] + stats["queued_in"],
        "dropped": sum(stats["dropped"].values()),
        "peers": sum(peer["connected"] for peer in stats["peers"]),
    }


if __name__ == "__main__":
    main()
