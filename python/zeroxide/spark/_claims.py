"""Ensures that each partition of a live read is read once.

A socket gives a message to one reader only, and Spark may run the same scan twice within a
query: a global sort first samples its input, and a lost executor loses its share of a shuffle.
The second scan would find no messages, and rows would be silently missing. The first task that
reads a partition therefore claims it with an empty file that all workers of this machine see,
and the second task gets an error. This does not work across machines.
"""

import contextlib
import errno
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["claim"]

# Older claims belong to queries that have ended.
KEEP_S = 24 * 3600

# A scan, a partition of it, and what Spark runs it for. Other files in the folder are left alone.
_CLAIM = re.compile(r"[0-9a-f]{32}-[0-9]+-\w+")


def claim(partition: str) -> bool:
    """Claims a partition by its unique name; false if it was already claimed.

    Raises:
        PermissionError: Another user could change the folder of claims.
    """
    with _folder() as folder:
        _forget_old(folder)
        try:
            os.close(
                os.open(partition, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            )
        except FileExistsError:
            return False
        return True


@contextmanager
def _folder() -> Iterator[int]:
    """Opens the folder of this user's claims, whose name every other user can predict and take first."""
    path = os.path.join(tempfile.gettempdir(), f"zeroxide-live-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise _refusal(path, "is not a folder") from None
        if error.errno == errno.EACCES:
            raise _refusal(path, "cannot be opened by this user") from None
        raise
    try:
        found = os.fstat(folder)
        if found.st_uid != os.getuid():
            raise _refusal(path, "belongs to another user")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _refusal(path, "can be changed by other users")
        yield folder
    finally:
        os.close(folder)


def _refusal(path: str, why: str) -> PermissionError:
    return PermissionError(
        errno.EACCES,
        f"live reads need a folder that only this user can change, and {path} {why}: remove it, or"
        " set TMPDIR to a folder of this user",
    )


def _forget_old(folder: int) -> None:
    for name in os.listdir(folder):
        if not _CLAIM.fullmatch(name):
            continue
        # Another worker may be faster.
        with contextlib.suppress(FileNotFoundError):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime > KEEP_S:
                os.unlink(name, dir_fd=folder)
