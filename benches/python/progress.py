"""The progress of a long run on a terminal: one line, which the next result replaces."""

from __future__ import annotations

import sys
import time


class Progress:
    """Counts steps of about the same length, and estimates the remaining time from the finished ones."""

    def __init__(self, steps: int) -> None:
        self.steps, self.done, self.started = steps, 0, time.monotonic()

    def show(self, name: str) -> None:
        """Shows the running step; called again for each part of a step."""
        if not sys.stderr.isatty():
            return
        elapsed = time.monotonic() - self.started
        left = elapsed / self.done * (self.steps - self.done) if self.done > 2 else None
        about = f", about {left / 60:.0f} min left" if left is not None else ""
        where = f"[{self.done + 1}/{self.steps}, {elapsed:.0f} s{about}]"
        print(f"\r\x1b[K{where} {name}", end="\r", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Prints a result in place of the line."""
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        print(text, flush=True)

    def step(self) -> None:
        self.done += 1
