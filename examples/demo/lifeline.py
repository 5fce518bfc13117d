"""Ends a process when its parent is gone for any reason."""

import os
import threading


def hold_on() -> None:
    """Starts to watch standard input, of which the parent holds the other end."""

    def watch() -> None:
        # Not through sys.stdin, whose lock this thread would hold at the interpreter's exit.
        while os.read(0, 1024):
            pass
        os._exit(1)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()
