"""Starts the processes, shows their progress, kills one of them, checks the result, and ends."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import webbrowser
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import zeroxide as zmq
from zeroxide.pipeline import Client, Collector
from zeroxide.spark import JavaNotFound, ensure_java

from . import flights, picture
from .flights import Answer, Delays, Group
from .state import Phase, State
from .view import View, tables
from .web import WebView, finished_page

ROOT = Path(__file__).resolve().parents[2]

# The demo takes a minute on an idle machine; this limit ends it in any case.
LIMIT_S = 600.0

# The query is killed when this share of the year is final.
KILL_AT = 0.25

# How often to look at the logs.
LOOK_S = 0.1

# How much of Spark's log is shown when it fails.
LOG_LINES = 25


class Failed(Exception):
    """The demo cannot continue; the text gives the reason."""


def main() -> int:
    """Runs the demo; the exit code is 0 if the result was exact."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "demo", help="folder for all files"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=20.0,
        help="time to spread the year over; 0 sends without pause (default: 20)",
    )
    parser.add_argument(
        "--port", type=int, default=0, help="port of the page (default: a free one)"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the page's URL only")
    parser.add_argument(
        "--keep",
        action=argparse.BooleanOptionalAction,
        default=sys.stdout.isatty(),
        help="serve the page after the end, until Ctrl-C (default: in a terminal)",
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    # When `kill` ends the demo, it ends its processes too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        ensure_java()
        with Demo(arguments.out, arguments.seconds, arguments.port) as demo:
            print(f"live view  {demo.web.url}", flush=True)
            if sys.stdout.isatty() and not arguments.no_browser:
                webbrowser.open(demo.web.url)
            code = demo.run()
            if arguments.keep:
                print(f"the page stays at {demo.web.url} until Ctrl-C", flush=True)
                with contextlib.suppress(KeyboardInterrupt):
                    threading.Event().wait()
            return code
    except (Failed, JavaNotFound) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


class Demo:
    """The two collectors, the processes, and their reports."""

    def __init__(self, out: Path, seconds: float, port: int) -> None:
        self.out = out
        self.seconds = seconds
        self.deadline = time.monotonic() + LIMIT_S
        self.state = State()
        self.terminal = View()
        self.web = WebView(port)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.published: dict[str, Any] = {}
        self.answer_read = 0

    def __enter__(self) -> "Demo":
        for name in ("flights", "answer", "checkpoint"):
            shutil.rmtree(self.out / name, ignore_errors=True)
        for name in ("publisher", "pipeline"):
            self._log_of(name).unlink(missing_ok=True)
        self.flights = Collector(self.out / "flights")
        self.answer = Collector(self.out / "answer")
        self.flights_client = Client(self.flights.endpoint)
        self.answer_client = Client(self.answer.endpoint)
        self.context = zmq.Context()
        self.reports, self.reports_at = self._bound(zmq.PULL)
        self.live, self.live_at = self._bound(zmq.SUB)
        self.live.subscribe(b"")
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self._kill(name)
        self.web.close()
        self.context.destroy(linger=0)
        for client in (self.flights_client, self.answer_client):
            client.close()
        self.flights.close()
        self.answer.close()

    def run(self) -> int:
        """From the first flight to the check."""
        state = self.state
        state.text = "starting Spark, which takes some seconds"
        self._start_query()
        self._start("publisher", "--collector", self.flights.endpoint, "--seconds", self.seconds)
        self._until("the publisher", lambda: state.total > 0)
        self._until("the first flights", lambda: state.acked > 0)
        state.phase = Phase.REPLAY
        self._until("the first windows", lambda: state.final >= state.total * KILL_AT)

        self._kill("pipeline")
        state.kills.append(state.elapsed)
        state.phase, state.text = Phase.KILLED, "killed with SIGKILL, starting again"
        killed_at = state.batches
        self._start_query()
        self._until("the next batch", lambda: state.batches > killed_at)
        state.phase = Phase.RECOVERED
        self._until("the last window", lambda: state.final >= state.total)
        self._until("the end of the publisher", lambda: "seconds" in self.published)

        self._kill("pipeline")
        state.phase, state.text = Phase.CHECKED, "finished"
        return self._conclude()

    def _start_query(self) -> None:
        self._start(
            "pipeline",
            *("--flights", self.flights.endpoint),
            *("--answer", self.answer.endpoint),
            *("--view", self.live_at),
            *("--checkpoint", self.out / "checkpoint"),
        )

    def _start(self, module: str, *arguments: object) -> None:
        command = [sys.executable, "-m", f"{__package__}.{module}", *map(str, arguments)]
        limit = self.deadline - time.monotonic()
        with open(self._log_of(module), "ab") as log:
            self.processes[module] = subprocess.Popen(
                [*command, "--report", self.reports_at, "--limit", f"{limit:.0f}"],
                cwd=ROOT,
                stdin=subprocess.PIPE,  # a lifeline
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _kill(self, name: str) -> None:
        """Kills a process and all processes it has started, without warning, as a power cut would."""
        process = self.processes.pop(name)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _bound(self, kind: int) -> tuple[zmq.Socket, str]:
        socket = self.context.socket(kind)
        return socket, f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}"

    def _until(self, what: str, reached: Callable[[], bool]) -> None:
        """Receives and shows reports until the condition holds."""
        poller = zmq.Poller()
        poller.register(self.reports, zmq.POLLIN)
        poller.register(self.live, zmq.POLLIN)
        look = 0.0
        while not reached():
            if time.monotonic() > self.deadline:
                raise Failed(f"gave up after {LIMIT_S:.0f} s, waiting for {what}")
            for name, process in self.processes.items():
                if process.poll():
                    raise Failed(self._obituary(name))
            ready = dict(poller.poll(100))
            if self.reports in ready:
                for body in self.reports.recv_batch(timeout=0):
                    self._hear(json.loads(body))
            if self.live in ready:
                for _, body in self.live.recv_batch(timeout=0, multipart=True):
                    window = json.loads(body)
                    self.state.add_day(window["day"], window["origin"], _delays(window))
            if self.state.elapsed >= look:
                look = self.state.elapsed + LOOK_S
                self._look()
                self.terminal.show(self.state)
                self.web.show(self.state)

    def _hear(self, report: dict[str, Any]) -> None:
        if "ready" in report:
            self._pace(self.state.read)
        elif "batch" in report:
            self.state.batches = report["batch"]
            self.state.read = min(report["read"], self.state.sent)
            self._pace(self.state.read)
            if self.state.phase is not Phase.KILLED:
                self.state.text = f"finished batch {report['batch']}"
        else:
            self.published = report
            self.state.date, self.state.sent = report["date"], report["sent"]
            self.state.total = report["total"]

    def _pace(self, read: int) -> None:
        """Tells the publisher how far the query is."""
        publisher = self.processes["publisher"].stdin
        assert publisher is not None
        with contextlib.suppress(BrokenPipeError):  # it has sent everything and ended
            publisher.write(b"%d\n" % read)
            publisher.flush()

    def _look(self) -> None:
        """Reads the current ends of both logs."""
        # The last row is not a flight.
        self.state.acked = self.flights_client.info().latest - ("seconds" in self.published)
        end = self.answer_client.info().latest
        for _, delays in self._windows(self.answer_read, end):
            self.state.final += delays.flights
            self.state.windows += 1
        self.answer_read = end
        self.state.tick()

    def _windows(self, start: int, end: int) -> "list[tuple[Group, Delays]]":
        """Returns the rows of the result log between two offsets."""
        found = []
        for batch in self.answer_client.fetch(start, end):
            for body in batch["value"].to_pylist():
                row = json.loads(body)
                found.append(((row["day"], row["origin"], row["carrier"]), _delays(row)))
        return found

    def _log_of(self, name: str) -> Path:
        return self.out / f"{name}.log"

    def _obituary(self, name: str) -> str:
        log = self._log_of(name)
        lines = log.read_text(errors="replace").splitlines()
        # Only the messages of a JVM's stack trace.
        told = [line for line in lines if not line.startswith(("\tat ", "    at "))]
        tail = "\n".join(told[-LOG_LINES:])
        return f"{name} failed with code {self.processes[name].returncode}; {log} ends:\n{tail}"

    def _conclude(self) -> int:
        # Reads the log again from the beginning, because it is complete now.
        windows = self._windows(0, self.answer_client.info().latest)
        counts = Counter(group for group, _ in windows)
        answer = dict(windows)
        problems = compare(counts, answer, flights.expected())
        received = flights.total(delays for _, delays in windows).flights
        sent = self.published["sent"]
        state = self.state
        state.exact = not problems and sent == received == state.total
        state.verdict = (
            f"{'exact' if state.exact else 'NOT exact'}:"
            f" {sent:,} flights in, {received:,} flights out"
        )
        self.terminal.show(state, last=True)
        self.web.show(state)
        page = self.out / "flights.html"
        page.write_text(finished_page(state), encoding="utf-8")

        names = flights.airlines()
        print("\n" + tables(answer, names) + "\n")
        drawing = self.out / "flights.svg"
        picture.save(answer, names, drawing)
        size, seconds = self.published["bytes"], self.published["seconds"]
        paced = f", paced to {self.seconds:g} s" if self.seconds else ""
        print(
            f"picture   {drawing}\n"
            f"page      {page}\n"
            f"sent      {sent:,} flights, {size / 1e6:.1f} MB, by {len(flights.AIRPORTS)} producers"
            f" in {seconds:.1f} s: {sent / seconds:,.0f}/s{paced}\n"
            f"killed    the query, after {state.kills[0]:.1f} s, with SIGKILL\n"
            f"received  {len(windows):,} windows with {received:,} flights, on the log"
        )
        for problem in problems[:5]:
            print(f"  {problem}", file=sys.stderr)
        print(state.verdict, file=sys.stdout if state.exact else sys.stderr)
        return 0 if state.exact else 1


def compare(counts: "Counter[Group]", answer: Answer, expected: Answer) -> list[str]:
    """Describes the errors in the windows of the log."""
    problems = [
        f"{' '.join(group)} is there {count} times" for group, count in counts.items() if count > 1
    ]
    problems += [
        f"{' '.join(group)}: {answer.get(group)}, should be {expected.get(group)}"
        for group in sorted(expected.keys() | answer.keys())
        if answer.get(group) != expected.get(group)
    ]
    return problems


def _delays(row: dict[str, Any]) -> Delays:
    return Delays(**{field.name: row[field.name] for field in fields(Delays)})


if __name__ == "__main__":
    sys.exit(main())
