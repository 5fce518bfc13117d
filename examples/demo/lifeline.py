"""Ends a process when the one that started it is gone, however that came about."""

import os
import threading


def hold_on() -> None:
    """Watches standard input, of which the parent holds the other end, from now on."""

    def watch() -> None:
        # Not through sys.stdin, whose lock this thread would hold at the interpreter's exit.
        while os.read(0, 1024):
            pass
        os._exit(1)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()
