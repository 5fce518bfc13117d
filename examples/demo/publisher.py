"""The three airports: replays the year in order, over producers that neither lose nor repeat rows."""

import argparse
import threading
import time
from collections import defaultdict
from datetime import datetime

import pyarrow as pa

import zeroxide as zmq

from . import flights, lifeline

# The interval between progress reports: no shorter than the views can draw.
REPORT_S = 0.1

# The replay may be this many flights ahead of the query: enough to see a lag grow, and little
# enough to have flights left to send when the query is killed.
AHEAD = 60_000


class Pace:
    """Holds the replay back until the query is ready, and while it is too far behind."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.read: int | None = None

    def heard(self, line: str) -> None:
        """Takes the number of flights that the query has read."""
        with self.changed:
            self.read = int(line)
            self.changed.notify_all()

    def allows(self, sent: int) -> bool:
        """Whether more flights may follow `sent` ones."""
        return self.read is not None and sent - self.read < AHEAD

    def wait(self, sent: int) -> None:
        """Returns when more flights may follow `sent` ones."""
        with self.changed:
            self.changed.wait_for(lambda: self.allows(sent))


def main() -> None:
    """Sends the flights of all airports to the collector, each airport as a producer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collector", required=True, help="its endpoint")
    parser.add_argument("--report", required=True, help="endpoint for progress reports")
    parser.add_argument(
        "--seconds",
        type=float,
        required=True,
        help="time to spread the year over; 0 sends without pause and does not wait for the query",
    )
    parser.add_argument("--limit", type=float, required=True, help="seconds to give up after")
    arguments = parser.parse_args()
    pace = Pace()
    lifeline.hold_on(pace.heard)

    days = by_day()
    total = sum(batch.num_rows for day in days.values() for batch in day.values())
    producers = {
        airport: zmq.Producer(arguments.collector, name=airport) for airport in flights.AIRPORTS
    }
    with zmq.Context() as context, context.socket(zmq.PUSH) as log:
        log.connect(arguments.report)
        # If the reader is gone, the demo is over: do not wait.
        log.linger = 1000
        log.send_json({"date": "", "sent": 0, "total": total})
        if arguments.seconds:
            pace.wait(0)
        sent = size = 0
        began = reported = due = time.monotonic()
        for number, (day, batches) in enumerate(days.items()):
            if arguments.seconds:
                pace.wait(sent)
                # Time spent waiting for the query is not made up for by a burst.
                due = max(due + arguments.seconds / len(days), time.monotonic())
                time.sleep(due - time.monotonic() if due > time.monotonic() else 0)
            for airport, batch in batches.items():
                producers[airport].send_arrow(batch)
                sent += batch.num_rows
                size += batch.nbytes
            if (number + 1) % flights.AHEAD.days == 0:
                # The query would drop rows that are later than the watermark allows. So no
                # airport begins a week before the last week of the others is on the log.
                for producer in producers.values():
                    producer.flush(arguments.limit)
            if time.monotonic() - reported > REPORT_S:
                reported = time.monotonic()
                log.send_json({"date": day, "sent": sent, "total": total})
        for producer in producers.values():
            producer.flush(arguments.limit)
        seconds = time.monotonic() - began

        # One more row moves the watermark beyond the year, so that all windows end.
        last = producers[flights.AIRPORTS[0]]
        last.send(b"", timestamp=flights.LAST)
        for producer in producers.values():
            producer.close()
        log.send_json(
            {"date": day, "sent": sent, "total": total, "bytes": size, "seconds": seconds}
        )


def by_day() -> dict[str, dict[str, pa.RecordBatch]]:
    """The flights of each day and airport in the order of the timetable."""
    lines: dict[str, dict[str, list[tuple[datetime, bytes]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for line in flights.lines():
        when = flights.scheduled(line)
        airport = line.split(b",", flights.ORIGIN + 1)[flights.ORIGIN].decode()
        lines[f"{when:%Y-%m-%d}"][airport].append((when, line))
    return {
        day: {airport: _batch(sorted(rows)) for airport, rows in airports.items()}
        for day, airports in sorted(lines.items())
    }


def _batch(rows: list[tuple[datetime, bytes]]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "value": pa.array([line for _, line in rows], pa.binary()),
            "topic": pa.array([flights.TOPIC] * len(rows)),
            "timestamp": pa.array([when for when, _ in rows], pa.timestamp("us", "UTC")),
        }
    )


if __name__ == "__main__":
    main()
