"""Starts the processes, shows what they do, checks the answer, and ends."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import zeroxide as zmq
from zeroxide.spark import JavaNotFound, ensure_java

from . import flights, picture
from .flights import AIRPORTS, BY_CARRIER, BY_HOUR, TOTAL, Answer, Delays
from .publisher import totals
from .view import Reports, View, tables

ROOT = Path(__file__).resolve().parents[2]

# Everything ends within three minutes, this process last.
LIMIT_S = 160.0

# How much of Spark's log is shown when it fails.
LOG_LINES = 25


class Failed(Exception):
    """The demo cannot go on; the text says why."""


def main() -> int:
    """Runs the demo; the exit code tells whether the answer was exact."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "demo", help="for the picture")
    parser.add_argument(
        "--seconds",
        type=float,
        default=12.0,
        help="to spread the year over, so that there is something to see; 0: as fast as it goes",
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    # Ended by `kill` it ends its processes too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        ensure_java()
        with Demo(arguments.out, arguments.seconds) as demo:
            return demo.run()
    except (Failed, JavaNotFound) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


class Demo:
    """The processes, and the two sockets that listen to them."""

    def __init__(self, out: Path, seconds: float) -> None:
        self.out = out
        self.seconds = seconds
        self.deadline = time.monotonic() + LIMIT_S
        self.view = View()
        self.reports: Reports = {}
        self.answer: Answer = {}
        self.messages = 0
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Demo":
        self.context = zmq.Context()
        self.progress = self.context.socket(zmq.PULL)
        self.progress_port = self.progress.bind_to_random_port("tcp://127.0.0.1")
        self.subscriber = self.context.socket(zmq.SUB)
        self.subscriber.subscribe(b"")
        self.subscriber_port = self.subscriber.bind_to_random_port("tcp://127.0.0.1")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            # A session of its own, so that Spark's JVM and workers end with it.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.context.destroy(linger=0)

    def run(self) -> int:
        """From the first flight to the check."""
        for airport in AIRPORTS:
            self._start(
                airport,
                "publisher",
                *("--airport", airport, "--seconds", str(self.seconds)),
                *("--report", f"tcp://127.0.0.1:{self.progress_port}"),
            )
        self._until("the publishers' endpoints", lambda: len(self.reports) == len(AIRPORTS))
        endpoints = [self.reports[airport]["endpoint"] for airport in AIRPORTS]
        self._start(
            "Spark",
            "pipeline",
            *("--flights", ",".join(endpoints)),
            *("--answer", f"tcp://127.0.0.1:{self.subscriber_port}"),
        )
        self._until("the answer", self._complete)
        self._until("the end of Spark", lambda: self.processes["Spark"].poll() is not None)
        self._until("the end of the publishers", self._published)
        self.view.show(self.reports, self._spark_state(), self.messages, last=True)
        return self._conclude()

    def _start(self, name: str, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", f"{__package__}.{module}", *arguments]
        limit = self.deadline - time.monotonic()
        with open(self.out / f"{name.lower()}.log", "wb") as log:
            self.processes[name] = subprocess.Popen(
                [*command, "--limit", f"{limit:.0f}"],
                cwd=ROOT,
                stdin=subprocess.PIPE,  # a lifeline
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _until(self, what: str, reached: Callable[[], bool]) -> None:
        """Takes in what comes until the condition holds."""
        poller = zmq.Poller()
        poller.register(self.progress, zmq.POLLIN)
        poller.register(self.subscriber, zmq.POLLIN)
        while not reached():
            if time.monotonic() > self.deadline:
                raise Failed(f"gave up after {LIMIT_S:.0f} s, waiting for {what}")
            for name, process in self.processes.items():
                if process.poll():
                    raise Failed(self._obituary(name))
            ready = dict(poller.poll(100))
            if self.progress in ready:
                for body in self.progress.recv_batch(timeout=0):
                    report = json.loads(body)
                    self.reports[report["airport"]] = report
            if self.subscriber in ready:
                for topic, body in self.subscriber.recv_batch(timeout=0, multipart=True):
                    self._take(topic.decode(), json.loads(body))
            self.view.show(self.reports, self._spark_state(), self.messages)

    def _take(self, topic: str, row: dict[str, Any]) -> None:
        parts = {BY_CARRIER: ("carrier", "origin"), BY_HOUR: ("hour",), TOTAL: ()}[topic]
        group = (topic, *(str(row[part]) for part in parts))
        self.answer[group] = Delays(**{f.name: row[f.name] for f in fields(Delays)})
        self.messages += 1

    def _complete(self) -> bool:
        """Whether the groups add up to the total: then none is missing."""
        total = self.answer.get((TOTAL,))
        if total is None:
            return False
        sums = {
            topic: sum(d.flights for key, d in self.answer.items() if key[0] == topic)
            for topic in (BY_CARRIER, BY_HOUR)
        }
        return all(flights == total.flights for flights in sums.values())

    def _published(self) -> bool:
        return all(self.reports[airport]["state"] == "done" for airport in AIRPORTS)

    def _spark_state(self) -> str:
        states = [report["state"] for report in self.reports.values()]
        if "Spark" not in self.processes:
            return "not started"
        if self.answer:
            return "done"
        if states.count("done") == len(AIRPORTS):
            return "aggregating"
        if states.count("waiting") == len(AIRPORTS):
            return "starting"
        return f"reading, {len(states)} partitions"

    def _obituary(self, name: str) -> str:
        log = self.out / f"{name.lower()}.log"
        lines = log.read_text(errors="replace").splitlines()
        # Of a JVM's stack only the words.
        told = [line for line in lines if not line.startswith(("\tat ", "    at "))]
        tail = "\n".join(told[-LOG_LINES:])
        return f"{name} failed with code {self.processes[name].returncode}; {log} ends:\n{tail}"

    def _conclude(self) -> int:
        names = flights.airlines()
        print("\n" + tables(self.answer, names) + "\n")
        drawing = self.out / "flights.svg"
        picture.save(self.answer, names, drawing)

        reports = list(self.reports.values())
        sent = sum(report["stats"]["sent"] for report in reports) - len(reports)  # but the ends
        size = sum(report["bytes"] for report in reports)
        longest = max(report["seconds"] for report in reports)
        own = totals(self.subscriber.stats())
        dropped = sum(report["stats"]["dropped"] for report in reports) + own["dropped"]
        received = self.answer[(TOTAL,)].flights
        paced = f", paced to {self.seconds:g} s" if self.seconds else ""
        print(
            f"picture   {drawing}\n"
            f"sent      {sent:,} flights, {size / 1e6:.1f} MB, by {len(reports)} PUSH sockets"
            f" in {longest:.1f} s: {sent / longest:,.0f}/s, {size / longest / 1e6:.1f} MB/s{paced}\n"
            f"received  {received:,} flights by Spark, from {len(reports)} PULL sockets;"
            f" {own['received']} messages of the answer by the SUB socket\n"
            f"dropped   {dropped} messages"
        )
        return verdict(sent, self.answer, flights.expected())


def verdict(sent: int, answer: Answer, expected: Answer) -> int:
    """Compares with what the data says, prints the outcome, returns the exit code."""
    total = expected[(TOTAL,)].flights
    received = answer[(TOTAL,)].flights
    different = [
        group
        for group in expected.keys() | answer.keys()
        if answer.get(group) != expected.get(group)
    ]
    if sent == total == received and not different:
        print(f"exact: {sent} flights in, {received} flights out")
        return 0
    print(f"NOT exact: {total} flights in the data, {sent} in, {received} out", file=sys.stderr)
    for group in sorted(different)[:5]:
        print(
            f"  {' '.join(group)}: {answer.get(group)}, should be {expected.get(group)}",
            file=sys.stderr,
        )
    return 1


if __name__ == "__main__":
    sys.exit(main())
