"""Measures how long each pattern of `zeroxide.patterns` takes to recover from a broken link: `python benches/python/cuts.py`.

A link between two machines, which are network namespaces, is cut and mended; this needs root. The time from there to
the next reply or value is taken. All times of the patterns have their defaults. For pairs of servers, it is the time from
the cut to the first reply of the other server. The results are printed as the table in docs/patterns/index.md.
"""

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "python"))

import test_patterns_cut as scenes
from faults.machines import Machines

# How long to wait for a reply, in seconds.
PATIENCE = 120

# What scenes set for the sake of short tests.
TIMES = {
    "attempts",
    "heartbeat",
    "liveness",
    "ping",
    "reconnect",
    "resend",
    "retry",
    "settle",
    "timeout",
    "ttl",
}


class Client:
    """A program that prints replies without an end."""

    def __init__(self, program: Any) -> None:
        self._said: list[tuple[float, str]] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._read, args=[program], daemon=True).start()

    def reply_after(self, moment: float, text: str = "reply") -> float:
        """Waits for a reply that begins so after a moment, and returns when it came."""

        def found() -> float | None:
            later = (at for at, line in self._said if at > moment and line.startswith(text))
            return next(later, None)

        with self._changed:
            if not self._changed.wait_for(found, PATIENCE):
                raise TimeoutError(f"no {text}")
            at = found()
            assert at is not None
            return at

    def _read(self, program: Any) -> None:
        for line in program.stdout:
            with self._changed:
                self._said = [*self._said[-100:], (time.monotonic(), line)]
                self._changed.notify_all()


@contextlib.contextmanager
def defaults() -> Iterator[None]:
    """Lets the scenes use the defaults of all times."""
    start, ask = scenes.start, scenes.ask

    def without(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            kept = {name: value for name, value in options.items() if name not in TIMES}
            return function(*arguments, **kept)

        return call

    scenes.start, scenes.ask = without(start), without(ask)
    try:
        yield
    finally:
        scenes.start, scenes.ask = start, ask


def mended(machines: Machines, client: Client, cut: float) -> float:
    client.reply_after(0)
    machines.cut()
    time.sleep(cut)
    machines.plug_in()
    mended = time.monotonic()
    return client.reply_after(mended) - mended


def binary_star(machines: Machines) -> float:
    sides = {
        "primary": (machines.place, scenes.FAR, scenes.NEAR),
        "backup": (machines.home, scenes.NEAR, scenes.FAR),
    }
    for name, (machine, own, other) in sides.items():
        ends = {"endpoint": f"{own}:1", "local": f"{own}:2", "remote": f"{other}:2"}
        scenes.start(
            machines, machine, "BinaryStarServer", name, is_primary=name == "primary", **ends
        )
    places = [f"{scenes.FAR}:1", f"{scenes.NEAR}:1"]
    client = Client(scenes.ask(machines, "BinaryStarClient", places, "1"))
    client.reply_after(0, "reply primary")
    machines.cut()
    cut = time.monotonic()
    return client.reply_after(cut, "reply backup") - cut


SCENES: dict[str, tuple[str, Callable[..., Any]]] = {
    "Lazy Pirate": ("the client and the queue", scenes.lazy_pirate),
    "Paranoid Pirate": ("the queue and its worker", scenes.paranoid_pirate),
    "Majordomo": ("the broker and its worker", scenes.majordomo),
    "Titanic, client": ("the client and the broker", scenes.titanic_client),
    "Titanic, server": (
        "the broker, and the server with the requests and the worker",
        scenes.titanic_server,
    ),
    "Freelance, model 1": ("the client and the server", scenes.failover),
    "Freelance, model 2": ("the client and the server", scenes.shotgun),
    "Freelance, model 3": ("the client and the server", scenes.freelance),
    "Last value cache": ("the clients and the cache", scenes.last_value),
    "File transfer": ("the client and the server", scenes.files),
}


def measured(play: Callable[..., Any], cut: float) -> float:
    with tempfile.TemporaryDirectory(prefix="zx") as folder:
        machines = Machines()
        try:
            machines.cable()
            machines.plug_in()
            if play is binary_star:
                return binary_star(machines)
            needs = [Path(folder)] if play in scenes.WITH_FOLDERS else []
            return mended(machines, Client(play(machines, *needs)), cut)
        finally:
            machines.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cut", type=float, default=10, help="how long the link is cut, in s")
    parser.add_argument("--only", default="", help="scenes whose name contains this text")
    options = parser.parse_args()
    for name in ("FETCH", "STORE"):
        script = getattr(scenes, name)
        script = script.replace(", timeout=200, attempts=2", "")
        setattr(scenes, name, script.replace(json.dumps({"timeout": 200, "attempts": 2}), "{}"))
    print("| pattern | what the link joins | median | maximum |")
    print("| --- | --- | ---: | ---: |")
    pair = ("the active server, and its peer and the client", binary_star)
    with defaults():
        for name, (ends, play) in (SCENES | {"Binary Star": pair}).items():
            if options.only in name:
                times = [measured(play, options.cut) for _ in range(options.repeat)]
                median, most = statistics.median(times), max(times)
                print(f"| {name} | {ends} | {median:.1f} s | {most:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
