"""The live screen, drawn with rich."""

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from datetime import datetime
from types import FrameType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..streams import FAILED
from .rates import Rates
from .tables import Line, layout
from .targets import Watch
from .views import ORDERS, Choice, tables

__all__ = ["Screen", "draw"]

# How often a change of the terminal's size is looked for, in seconds.
_LOOK_EVERY = 0.25

# What terminals send for keys, by what they do.
_KEYS = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1b": "escape",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x0c": "redraw",
}


class Screen:
    """The state of the screen: what is shown, from which line on, and what is typed."""

    def __init__(self, watch: Watch, rates: Rates, choice: Choice, interval: float) -> None:
        self._watch = watch
        self._rates = rates
        self._interval = interval
        self._report: dict[str, Any] | None = None
        self.choice: Choice = choice
        self.first: int = 0
        # The filter while it is typed.
        self.typed: str | None = None
        self._size = (0, 0)

    def run(self, count: int | None) -> int:
        """Shows the screen until `q`, the last of `count` looks, or the end of all targets."""
        console = Console()
        with _keys() as read_keys, _live(console) as live:
            due = time.monotonic() + self._interval
            while True:
                while (left := due - time.monotonic()) > 0:
                    keys = read_keys(min(left, _LOOK_EVERY))
                    if not all(self.press(key) for key in keys):
                        return 0
                    if keys or console.size != self._size:
                        self._show(live, console)
                due = max(due + self._interval, time.monotonic())
                self.look()
                if self._watch.has_ended:
                    break
                self._show(live, console)
                if count is not None:
                    count -= 1
                    if not count:
                        return 0
        print("zeroxide: everything that was watched has ended", file=sys.stderr)
        return FAILED

    def look(self) -> None:
        """Takes the numbers that the screen shows from now on."""
        self._watch.look()
        self._report = self._rates.report(self._watch)

    def press(self, key: str) -> bool:
        """Does what a key means; False if it ends the screen."""
        if self.typed is not None:
            self._type(key)
        elif key == "q":
            return False
        elif key == "s":
            orders = list(ORDERS)
            following = orders[(orders.index(self.choice.order) + 1) % len(orders)]
            self.choice = self.choice._replace(order=following)
        elif key == "p":
            self.choice = self.choice._replace(peers=not self.choice.peers)
        elif key == "/":
            self.typed = self.choice.text
        elif key == "escape":
            self.choice = self.choice._replace(text="")
        else:
            page = max(self._size[1] - 3, 1)
            steps = {"up": -1, "down": 1, "page up": -page, "page down": page}
            self.first = max(self.first + steps.get(key, 0), 0)
        return True

    def _type(self, key: str) -> None:
        typed = self.typed or ""
        if key == "enter":
            self.typed = None
            return
        if key == "escape":
            self.typed, typed = None, ""
        elif key == "backspace":
            self.typed = typed = typed[:-1]
        elif len(key) == 1 and key.isprintable():
            self.typed = typed = typed + key
        self.choice = self.choice._replace(text=typed)
        self.first = 0

    def _show(self, live: Live, console: Console) -> None:
        self._size = console.size
        live.update(self.draw(*self._size), refresh=True)

    def draw(self, width: int, height: int) -> Text:
        """The screen at this size."""
        body: list[Line] = []
        for table in tables(self._report, self.choice) if self._report is not None else []:
            body += [*layout(table, width), []]
        room = max(height - 2, 1)
        self.first = min(self.first, max(len(body) - room, 0))
        shown = body[self.first : self.first + room]
        shown += [[]] * (room - len(shown))
        return draw([self._head(width), *shown, self._foot(width)])

    def _head(self, width: int) -> Line:
        now = datetime.now().strftime("%H:%M:%S")
        words = [f"zeroxide top  {now}  every {self._interval:g} s  by {self.choice.order}"]
        if self.choice.text:
            words.append(f"with {self.choice.text!r}")
        return [("  ".join(words)[:width], "reverse")]

    def _foot(self, width: int) -> Line:
        if self.typed is not None:
            return [(f"filter: {self.typed}_"[:width], "bold")]
        return [("s sort  / filter  p peers  up, down scroll  q quit"[:width], "dim")]


def draw(lines: list[Line]) -> Text:
    """Lines as rich shows them."""
    text = Text(no_wrap=True, overflow="crop", end="")
    for number, line in enumerate(lines):
        if number:
            text.append("\n")
        for words, style in line:
            text.append(words, style or None)
    return text


@contextlib.contextmanager
def _live(console: Console) -> Iterator[Live]:
    """The other screen of the terminal, left while the command is suspended."""
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def suspend(number: int, frame: FrameType | None) -> None:
            live.stop()
            before = termios.tcgetattr(sys.stdin)
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, _cooked)
            os.kill(os.getpid(), signal.SIGSTOP)
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
            live.start()

        _cooked = termios.tcgetattr(sys.stdin)
        _cooked[3] |= termios.ECHO | termios.ICANON
        former = signal.signal(signal.SIGTSTP, suspend)
        try:
            yield live
        finally:
            signal.signal(signal.SIGTSTP, former)


@contextlib.contextmanager
def _keys() -> Iterator[Any]:
    """Reads keys one by one, without their echo."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def read(seconds: float) -> list[str]:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        if not ready:
            return []
        data = os.read(descriptor, 1024)
        # The terminal has gone.
        return keys_of(data) if data else ["q"]

    tty.setcbreak(descriptor)
    try:
        yield read
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def keys_of(data: bytes) -> list[str]:
    """The keys in what a terminal has sent."""
    keys = []
    while data:
        for sequence, name in _KEYS.items():
            # A lone escape is the key; others begin sequences.
            if data.startswith(sequence) and (sequence != b"\x1b" or len(data) == 1):
                keys.append(name)
                data = data[len(sequence) :]
                break
        else:
            if data.startswith(b"\x1b"):
                break  # a key that has no meaning here
            sign = data.decode(errors="replace")[0]
            keys.append(sign)
            data = data[len(sign.encode()) :]
    return keys
