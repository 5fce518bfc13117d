"""Draws docs/assets/top.svg: the screen of `zeroxide top` over programs that run for it.

`python tools/top_picture.py` needs rich, and the package installed. The numbers are those of the run, so the picture differs
each time. `--output FILE` writes another file.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from zeroxide.cli.top.rates import Rates
from zeroxide.cli.top.screen import Screen
from zeroxide.cli.top.targets import Watch, discover
from zeroxide.cli.top.views import Choice
from zeroxide.pipeline import Client

PICTURE = Path(__file__).resolve().parent.parent / "docs/assets/top.svg"

WIDTH, HEIGHT = 122, 33

# Programs, by the name that the screen shows. Each stops with its stdin.
PROGRAMS = {
    "feed.py": """
import threading, time
import zeroxide as zmq
context = zmq.Context()
feed, jobs = context.socket(zmq.PUB), context.socket(zmq.PUSH)
feed.sndhwm = 1000
feed.bind("tcp://127.0.0.1:5601")
jobs.bind("tcp://127.0.0.1:5602")
while True:
    for _ in range(50):
        feed.send(b"x" * 200)
        jobs.send(b"job")
    time.sleep(0.01)
""",
    "worker.py": """
import time
import zeroxide as zmq
context = zmq.Context()
jobs, feed = context.socket(zmq.PULL), context.socket(zmq.SUB)
jobs.routing_id = b"worker"
jobs.connect("tcp://127.0.0.1:5602")
feed.routing_id = b"worker"
feed.subscribe("")
feed.connect("tcp://127.0.0.1:5601")
while True:
    for _ in range(20):
        jobs.recv()
        feed.recv()
    time.sleep(0.01)
""",
    "viewer.py": """
import time
import zeroxide as zmq
context = zmq.Context()
feed = context.socket(zmq.SUB)
feed.routing_id = b"viewer"
feed.rcvhwm = 100
feed.rcvbuf = 4096
feed.subscribe("")
feed.connect("tcp://127.0.0.1:5601")
while True:
    feed.recv()
    time.sleep(0.02)
""",
    "collector.py": """
import itertools, time
from zeroxide.pipeline import Client, Collector
with Collector("log", "tcp://127.0.0.1:5603") as collector:
    for number in itertools.count():
        topic = ("kitchen", "cellar", "roof")[number % 3]
        collector.append([{"value": b"21.5", "topic": topic}] * (number % 7 * 10 + 10))
        if not number % 20:
            with Client(collector.endpoint) as client:
                client.commit("reports", client.info().latest)
                client.commit("archive", client.info().latest // 2)
        time.sleep(0.02)
""",
}

# How long the programs run before the screen is drawn, in seconds.
WARM_UP = 6


def picture() -> str:
    """The screen as an SVG."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="zx"))
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {
            **os.environ,
            "PATH": path,
            "XDG_RUNTIME_DIR": folder,
            "ZEROXIDE_OBSERVE": "1",
        }
        for name, source in PROGRAMS.items():
            Path(folder, name).write_text(source)
            process = subprocess.Popen(["python", name], cwd=folder, env=environment)
            stack.callback(process.wait)
            stack.callback(process.kill)
        time.sleep(WARM_UP)
        observed = os.path.join(folder, "zeroxide")
        targets = [*discover(observed), "tcp://127.0.0.1:5603"]
        watch = Watch(targets, observed, 10, Client)
        stack.callback(watch.close)
        screen = Screen(watch, Rates(), Choice(), 1.0)
        for _ in range(2):
            screen.look()
            time.sleep(1)
        text = screen.draw(WIDTH, HEIGHT)
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(text)
    svg = console.export_svg(title="zeroxide top", theme=MONOKAI)
    # No page loads anything from another host, fonts included.
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=PICTURE, help="the file to write")
    parser.parse_args().output.write_text(picture())
    return 0


if __name__ == "__main__":
    sys.exit(main())
