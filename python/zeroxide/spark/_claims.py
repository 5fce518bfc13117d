"""Ensures that each partition of a live read is read once.

A socket gives a message to one reader only, and Spark may run the same scan twice within a
query: a global sort first samples its input, and a lost executor loses its share of a shuffle.
The second scan would find no messages, and rows would be silently missing. The first task that
reads a partition therefore claims it with an empty file that all workers of this machine see,
and the second task gets an error. This does not work across machines.
"""

import os
import tempfile
import time
from pathlib import Path

__all__ = ["claim"]

# Older claims belong to queries that have ended.
KEEP_S = 24 * 3600


def claim(partition: str) -> bool:
    """Claims a partition by its unique name; false if it was already claimed."""
    folder = _folder()
    _forget_old(folder)
    try:
        (folder / partition).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"zeroxide-live-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _forget_old(folder: Path) -> None:
    for file in folder.iterdir():
        try:
            if time.time() - file.stat().st_mtime > KEEP_S:
                file.unlink()
        except FileNotFoundError:
            continue  # another worker was faster
