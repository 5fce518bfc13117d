"""Copies of a collector's segments, on any file system that pyarrow knows.

A segment is copied once it is sealed; readers and Spark read the copies with `FilesLog`,
``fetch=files`` and ``collector.dir`` as they read the folder itself, also when its disk is
gone. Rows of the segment that was being written to then are lost with it: a collector that
ends in order archives that one, too.
"""

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from .errors import CollectorError
from .files import INDEX, SEGMENT, FilesLog, Segment, open_address

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = ["Archiver", "archive_segments"]

CHUNK = 8 << 20

_log = logging.getLogger("zeroxide.collector")


def archive_segments(
    directory: str | os.PathLike[str],
    filesystem: "FileSystem",
    path: str,
    *,
    all_segments: bool = False,
) -> list[str]:
    """Copies what is not in the archive yet; returns the names of what was copied.

    The last segment is being written to and is left out, but for `all_segments`; it is
    copied again when it has grown. A folder of another log raises `CollectorError`.
    """
    from pyarrow.fs import FileSelector, LocalFileSystem

    filesystem.create_dir(path, recursive=True)
    listed = filesystem.get_file_info(FileSelector(path))
    there = {entry.base_name: entry.size for entry in listed}
    _check_same_log(directory, filesystem, path, there)
    names = sorted(name for name in os.listdir(directory) if name.endswith(SEGMENT))
    copied = []
    for name in names if all_segments else names[:-1]:
        local = os.path.join(directory, name)
        try:
            size = os.path.getsize(local)
            if there.get(name, -1) >= size:
                continue
            segment = Segment(LocalFileSystem(), local, size, int(name.removesuffix(SEGMENT)))
            _copy(segment, filesystem, f"{path}/{name}")
        except FileNotFoundError:
            continue  # retention was faster
        copied.append(name)
    return copied


def _check_same_log(
    directory: str | os.PathLike[str], filesystem: "FileSystem", path: str, there: dict[str, int]
) -> None:
    if not any(name.endswith(SEGMENT) for name in there):
        return
    with FilesLog(directory) as own, FilesLog(path, filesystem) as archived:
        ids = own.info().log_id, archived.info().log_id
    if ids[0] != ids[1]:
        raise CollectorError(
            f"{path} holds an archive of the log {ids[1]}, and {os.fspath(directory)} is the log"
            f" {ids[0]}: an archive is of one log"
        )


def _copy(segment: Segment, filesystem: "FileSystem", target: str) -> None:
    """Copies a segment, and places in it; what is damaged is said, and copied as it is."""
    index = segment.index()
    damaged = index.position < segment.size
    part = target + ".part"
    with filesystem.open_output_stream(part) as output:
        for position in range(0, segment.size, CHUNK):
            output.write(segment.read(position, CHUNK, CHUNK)[:CHUNK])
    with filesystem.open_output_stream(target.removesuffix(SEGMENT) + INDEX) as output:
        output.write(index.to_json().encode())
    # Whoever sees a segment sees all of it.
    filesystem.move(part, target)
    segment.close()
    if damaged:
        fields = {"segment": segment.path, "position": index.position}
        _log.warning("archived_what_is_damaged", extra={"fields": fields})


class Archiver:
    """Archives the folder of a collector, on a thread of its own, until it is closed.

    `address` is a folder or a URL: ``s3://bucket/ticks``, ``gs://...``, ``hdfs://...``,
    ``file:///mnt/...``. What fails is logged and tried again. `on_progress` is told the
    offset below which everything is archived, at the start and whenever that grows.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        address: str,
        *,
        every: float = 10.0,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self.directory = directory
        self.address = address
        self.every = every
        self.archived = 0
        self.failure: Exception | None = None
        self._on_progress = on_progress
        self._filesystem, self._path = open_address(address)
        self._stop = threading.Event()
        self._look = threading.Lock()
        self._report(0)
        self._thread = threading.Thread(target=self._run, name="zeroxide-archive", daemon=True)
        self._thread.start()

    def archive(self, *, all_segments: bool = False) -> list[str]:
        """Archives what there is to archive, now."""
        with self._look:
            copied = archive_segments(
                self.directory, self._filesystem, self._path, all_segments=all_segments
            )
            nothing_yet = contextlib.suppress(CollectorError)
            with nothing_yet, FilesLog(self._path, self._filesystem) as archive:
                self._report(archive.info().latest)
        for name in copied:
            _log.info("archived", extra={"fields": {"segment": name, "to": self.address}})
        return copied

    def close(self) -> None:
        """Archives everything, the last segment included, and ends.

        To be called when the collector has ended. Raises what the file system says.
        """
        self._stop.set()
        self._thread.join()
        self.archive(all_segments=True)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.archive()
                self.failure = None
            except Exception as error:  # whatever pyarrow raises: the next look may succeed
                self.failure = error
                fields = {"to": self.address, "reason": str(error) or type(error).__name__}
                _log.error("not_archived", extra={"fields": fields})
            self._stop.wait(self.every)

    def _report(self, offset: int) -> None:
        if self._on_progress is not None and (offset > self.archived or offset == 0):
            self._on_progress(offset)
        self.archived = max(self.archived, offset)
