"""Runs in the machine whose power is cut: a collector, three producers and a group of readers on one disk.

    python power_guest.py work|look DISK SHARED

Writes what the log has to SHARED/found, and then, with `work`, sends rows until it ends with the machine. The value of
each row is its number.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from pathlib import Path

from zeroxide.pipeline import Client, Collector, Delivery, Producer

GROUP = "readers"
PRODUCERS = ("plain", "spooled", "synced")


class Counter:
    """A number in a file of the host, which survives the machine."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)

    def write(self, number: int) -> None:
        os.pwrite(self._file, number.to_bytes(8, "little"), 0)


def look(client: Client) -> dict[str, object]:
    """Reads the whole log, and checks the order of each producer's rows."""
    rows = dict.fromkeys(PRODUCERS, 0)
    wrong = []
    info = client.info()
    for batch in client.fetch(info.earliest, info.latest):
        for row in batch.select(["producer", "value"]).to_pylist():
            name, number = row["producer"], int(row["value"])
            if number != rows[name] and len(wrong) < 10:
                wrong.append(f"{name}: row {number} follows {rows[name]} rows")
            rows[name] = number + 1
    return rows | {"wrong": wrong, "group": client.committed(GROUP) or 0}


def send(name: str, endpoint: str, disk: Path, shared: Path) -> None:
    counter = Counter(shared / f"promise-{name}")

    def on_delivery(delivery: Delivery) -> None:
        if delivery.error is None:
            counter.write(delivery.last_seq + 1)

    spool = {} if name == "plain" else {"spool": disk / name, "spool_sync": name == "synced"}
    producer = Producer(endpoint, name=name, linger_ms=5, on_delivery=on_delivery, **spool)
    while (number := producer.stats()["collectors"][endpoint]["next_seq"]) is None:
        threading.Event().wait(0.005)
    while True:
        producer.send(b"%d" % number)
        number += 1
        if number % 100 == 0:
            threading.Event().wait(0.002)


def commit(client: Client, shared: Path) -> None:
    """Commits the end of the log, which moves."""
    counter = Counter(shared / "promise-group")
    while True:
        counter.write(client.commit(GROUP, client.info().latest))


def main() -> None:
    mode, disk, shared = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    with Collector(
        disk / "log", bind=f"ipc://{disk.parent}/collector", segment_bytes="1M"
    ) as collector:
        client = Client(collector.endpoint)
        found = json.dumps(look(client))
        (shared / "found").write_text(found)
        if mode == "look":
            return
        loops = [(send, name, collector.endpoint, disk, shared) for name in PRODUCERS]
        loops.append((commit, client, shared))
        for function, *arguments in loops:
            threading.Thread(target=function, args=arguments).start()
        (shared / "working").touch()
        threading.Event().wait()


def on_failure(args: threading.ExceptHookArgs) -> None:
    """Ends the machine's work if one of its threads fails."""
    report = traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback)
    Path(sys.argv[3], "errors").write_text("".join(report))
    os._exit(1)


if __name__ == "__main__":
    threading.excepthook = on_failure
    try:
        main()
    except BaseException:
        Path(sys.argv[3], "errors").write_text(traceback.format_exc())
        raise
