"""Each partition of a live read is read once.

A socket gives a message to one reader only, and Spark may run the same scan twice within a
query, the second time to find nothing: a global sort first samples what it sorts, a lost
executor takes its share of a shuffle along. Rows would be missing without a word. So the
first task to read a partition claims it, by an empty file that all workers of this machine
see, and the second is told. On another machine it is not: there is nothing to ask.
"""

import os
import tempfile
import time
from pathlib import Path

__all__ = ["claim"]

# What is older belongs to queries that have ended.
KEEP_S = 24 * 3600


def claim(partition: str) -> bool:
    """Takes a partition, by a name that no other has; false if it was taken before."""
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
