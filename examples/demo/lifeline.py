"""Ends a process when its parent is gone, and forwards the lines that the parent writes."""

import os
import threading
from collections.abc import Callable


def hold_on(heard: Callable[[str], None] = lambda line: None) -> None:
    """Watches standard input, whose other end the parent holds, in a thread.

    Calls `heard` with each line. The end of the input ends the process.
    """

    def watch() -> None:
        # Not through sys.stdin, whose lock this thread would hold at the interpreter's exit.
        rest = b""
        while chunk := os.read(0, 1024):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                heard(line.decode())
        os._exit(1)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()
