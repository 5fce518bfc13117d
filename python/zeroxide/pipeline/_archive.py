"""Copies of a collector's segments, on any file system that pyarrow supports.

A segment is copied when it is sealed. Readers and Spark read the copies with `FilesLog`,
``fetch=files`` and ``collector.dir`` like the folder itself, even if its disk is lost.
In that case, the rows of the segment that was being written are lost. A collector that
ends normally archives that segment, too.

If the archive is a folder, local or on a network file system, a copy counts when the file and
its name are synced; in other file systems, when all of it has been accepted.
"""

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from .._optional import needed_by
from ._errors import CollectorError
from ._files import FilesLog, open_address
from ._marks import GENERATIONS, generations, generations_text
from ._renamed import renamed
from ._segments import INDEX, SEGMENT, Segment

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = ["Archiver", "archive_segments", "check_address"]

CHUNK = 8 << 20

# The maximum wait, in seconds, before an archive that fails is retried.
PATIENCE_S = 300.0

# The schemes that pyarrow supports. Another scheme is a mistake, not an unavailable archive.
SCHEMES = frozenset(("file", "s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss", "hf", "mock"))

_log = logging.getLogger("zeroxide.collector")


def archive_segments(
    directory: str | os.PathLike[str],
    filesystem: "FileSystem",
    path: str,
    *,
    all_segments: bool = False,
    synced: set[str] | None = None,
) -> list[str]:
    """Copies the segments of a log that are not in its archive yet.

    Args:
        directory: The folder of the log.
        filesystem: A file system of pyarrow.
        path: The archive's folder in it. It is created if it does not exist.
        all_segments: Also copies the rows of the last segment that are on the disk, again
            whenever there are more of them.
        synced: Names of segments in the archive that are known to be on its disk. Names are
            added to it; the other ones are synced.

    Returns:
        The names of the segments that were copied.

    Raises:
        CollectorError: If the archive is of another log, or holds other rows than this one.
        ValueError: If the archive is the folder of the log itself.
    """
    with needed_by("archive_segments", extra="arrow"):
        from pyarrow.fs import FileSelector, LocalFileSystem

    synced = set() if synced is None else synced
    if (local := _local(filesystem, path)) is not None:
        _check_other_folder(directory, local)
        # The same mode as for the log itself. To let other users read the archive, create its folder for them.
        _make_folder(local, 0o700)
    filesystem.create_dir(path, recursive=True)
    listed = filesystem.get_file_info(FileSelector(path))
    there = {entry.base_name: entry.size for entry in listed}
    # Before the openings are copied, so that no row is archived before the opening that wrote it.
    sizes = _sizes(directory)
    with FilesLog(directory) as own:
        if any(name.endswith(SEGMENT) for name in there):
            _check_same_log(own, filesystem, path)
        # A damaged list does not replace a good one.
        if own._generations():
            _copy_generations(own._generations(), filesystem, path)
        if all_segments and sizes:
            _leave_out_what_is_not_durable(own, sizes)
    copied = []
    for name in sorted(sizes) if all_segments else sorted(sizes)[:-1]:
        local, size = os.path.join(directory, name), sizes[name]
        try:
            if there.get(name, -1) >= size and _is_synced(filesystem, f"{path}/{name}", synced):
                continue
            segment = Segment(LocalFileSystem(), local, size, int(name.removesuffix(SEGMENT)))
            # The next attempt syncs the folder, too, if this one does not get there.
            synced.discard(path)
            _copy(segment, filesystem, f"{path}/{name}")
        except FileNotFoundError:
            continue  # retention has already removed it
        copied.append(name)
    if path not in synced:
        _sync_folder(filesystem, path)
        synced.update((path, *copied))
    return copied


def _check_other_folder(directory: str | os.PathLike[str], archive: str) -> None:
    """Refuses to archive a log in its own folder: retention would take the only copy for a second one."""
    try:
        is_same = os.path.samefile(directory, archive)
    except OSError:
        # One of them does not exist yet, or its file system is unavailable.
        is_same = os.path.realpath(directory) == os.path.realpath(archive)
    if is_same:
        raise ValueError(
            f"the archive {archive} is the folder of the log itself, where retention deletes"
            " segments: archive it in another folder, if possible on another disk"
        )


def _make_folder(path: str, mode: int) -> None:
    """Makes a folder, and those above it, so that they outlast a crash of the machine."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(os.path.abspath(path))
    _make_folder(above, 0o777)
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        return
    try:
        _fsync(above)
    except OSError:
        # The next attempt makes it again, and syncs the folder above again.
        with contextlib.suppress(OSError):
            os.rmdir(path)
        raise


def _sizes(directory: str | os.PathLike[str]) -> dict[str, int]:
    """The sizes of a log's segments, by name."""
    sizes = {}
    for name in os.listdir(directory):
        # Retention may have removed one already.
        with contextlib.suppress(FileNotFoundError):
            if name.endswith(SEGMENT):
                sizes[name] = os.path.getsize(os.path.join(directory, name))
    return sizes


def _leave_out_what_is_not_durable(own: FilesLog, sizes: dict[str, int]) -> None:
    """Cuts the size of the last segment: a crash of the machine may put other rows in place of the rest."""
    segments = own._segments()
    last, latest = segments[-1], own._latest(segments)
    name = os.path.basename(last.path)
    position, end = last.end_of_rows(latest)
    # Damage before the last durable row is copied, too.
    if name in sizes and end >= latest:
        sizes[name] = min(sizes[name], position)


def _check_same_log(own: FilesLog, filesystem: "FileSystem", path: str) -> None:
    with FilesLog(path, filesystem) as archive:
        info, archived = own.info(), archive.info()
    if info.log_id != archived.log_id:
        raise CollectorError(
            f"{path} holds an archive of the log {archived.log_id}, and {own.address} is the log"
            f" {info.log_id}: an archive is of one log"
        )
    known, kept = set(info.generations), set(archived.generations)
    others = []
    if known and kept:
        # Of older rows, one of them does not know the opening. One without rows yet may be recorded again.
        since = max(min(known), min(kept))[0]
        others = [first for first, _ in known ^ kept if since <= first < archived.latest]
    end = max(info.latest, own._segments()[-1].index().end)
    if archived.latest > end:
        others.append(end)
    if others:
        raise CollectorError(
            f"{path} holds other rows from offset {min(others)} on than {own.address}, which is an"
            " older copy of the same log: archive it elsewhere"
        )


def _copy_generations(
    own: tuple[tuple[int, str], ...], filesystem: "FileSystem", path: str
) -> None:
    """Copies the list of which opening wrote which rows, before the rows themselves.

    The archive keeps older openings, which the log may have forgotten.
    """
    target = f"{path}/{GENERATIONS}"
    kept = b""
    with contextlib.suppress(OSError), filesystem.open_input_stream(target) as file:
        kept = file.read()
    older = tuple(entry for entry in generations(kept) if entry[0] < own[0][0])
    text = generations_text(older + own)
    if kept == text:
        return
    with filesystem.open_output_stream(target + ".part") as output:
        output.write(text)
    _sync_file(filesystem, target + ".part")
    filesystem.move(target + ".part", target)


def _copy(segment: Segment, filesystem: "FileSystem", target: str) -> None:
    """Copies a segment and its index; damage is logged, and copied unchanged."""
    index = segment.index()
    damaged = index.position < segment.size
    part = target + ".part"
    with filesystem.open_output_stream(part) as output:
        for position in range(0, segment.size, CHUNK):
            output.write(segment.read(position, CHUNK, CHUNK)[:CHUNK])
    _sync_file(filesystem, part)
    with filesystem.open_output_stream(target.removesuffix(SEGMENT) + INDEX) as output:
        output.write(index.to_json().encode())
    # A reader that sees a segment sees all of it.
    filesystem.move(part, target)
    segment.close()
    if damaged:
        fields = {"segment": segment.path, "position": index.position}
        _log.warning("archived_what_is_damaged", extra={"fields": fields})


def _is_synced(filesystem: "FileSystem", target: str, synced: set[str]) -> bool:
    """Whether an earlier copy is on the disk; if not, it must be made again."""
    name = target.rpartition("/")[2]
    if name not in synced:
        local = _local(filesystem, target)
        try:
            if local is not None:
                _fsync(local)
        except OSError:
            return False
        synced.add(name)
    return True


def _sync_file(filesystem: "FileSystem", target: str) -> None:
    """Syncs a file that was just written.

    A file that could not be synced is removed, because the next sync may report it as written.
    """
    local = _local(filesystem, target)
    if local is None:
        return
    try:
        _fsync(local)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(local)
        raise


def _sync_folder(filesystem: "FileSystem", path: str) -> None:
    """Syncs the names in a folder, and the folder's own name."""
    local = _local(filesystem, path)
    if local is not None:
        _fsync(local)
        # Needed only if another process has just made the folder. The one above may be one that this user cannot list.
        with contextlib.suppress(OSError):
            _fsync(os.path.dirname(os.path.abspath(local)))


def _local(filesystem: "FileSystem", path: str) -> str | None:
    """The local path; None for other file systems."""
    from pyarrow.fs import FSSpecHandler, LocalFileSystem, PyFileSystem, SubTreeFileSystem

    while isinstance(filesystem, SubTreeFileSystem):
        path = os.path.join(filesystem.base_path, path)
        filesystem = filesystem.base_fs
    if isinstance(filesystem, LocalFileSystem):
        return path
    handler = filesystem.handler if isinstance(filesystem, PyFileSystem) else None
    if isinstance(handler, FSSpecHandler) and "file" in handler.fs.protocol:
        return path
    return None


def _fsync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_address(directory: str | os.PathLike[str], address: str) -> None:
    """Raises `ValueError` for an address that no log in this folder can be archived at."""
    scheme, separator, rest = address.partition("://")
    if separator and scheme.partition("+")[0] not in SCHEMES:
        raise ValueError(
            f"an archive is a folder, or a URL that pyarrow knows"
            f" ({', '.join(sorted(SCHEMES))}), not {address!r}"
        )
    # Later, it would only be reported as an archive that is unavailable.
    if not separator:
        _check_other_folder(directory, address)
    elif scheme == "file":
        _check_other_folder(directory, unquote(rest))


class Archiver:
    """Archives the folder of a collector, on a thread of its own, until it is closed.

    A failure is logged, and tried again, with growing pauses of at most five minutes.
    `archived` is the offset below which everything is archived, and `failure` the exception
    of the last attempt, or None.

    Args:
        directory: The folder of the collector.
        address: A folder or a URL: ``s3://bucket/ticks``, ``gs://...``, ``hdfs://...``,
            ``file:///mnt/...``. It need not exist yet.
        every_s: Seconds between looks for segments to copy.
        on_progress: A function that is called with the offset below which everything is
            archived, at the start and whenever it grows.

    Raises:
        ValueError: If the URL is of an unknown kind, or the archive is the folder itself.
    """

    @renamed(every="every_s")
    def __init__(
        self,
        directory: str | os.PathLike[str],
        address: str,
        *,
        every_s: float = 10.0,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        check_address(directory, address)
        self.directory = directory
        self.address = address
        self.every_s = every_s
        self.archived: int = 0
        self.failure: Exception | None = None
        self._on_progress = on_progress
        self._opened: tuple[FileSystem, str] | None = None
        self._synced: set[str] = set()
        self._stop = threading.Event()
        self._look = threading.Lock()
        self._report(0)
        self._thread = threading.Thread(target=self._run, name="zeroxide-archive", daemon=True)
        self._thread.start()

    def archive(self, *, all_segments: bool = False) -> list[str]:
        """Copies what is not in the archive yet, at once.

        Args:
            all_segments: Also copies the segment that is being written to.

        Returns:
            The names of the segments that were copied.

        Raises:
            OSError: If the file system fails.
        """
        with self._look:
            # Not earlier, because finding an archive may take as long as its network needs.
            self._opened = self._opened or open_address(self.address)
            filesystem, path = self._opened
            copied = archive_segments(
                self.directory, filesystem, path, all_segments=all_segments, synced=self._synced
            )
            nothing_yet = contextlib.suppress(CollectorError)
            with nothing_yet, FilesLog(path, filesystem) as archive:
                self._report(archive.info().latest)
        for name in copied:
            _log.info("archived", extra={"fields": {"segment": name, "to": self.address}})
        return copied

    def close(self) -> None:
        """Archives everything, the last segment included, and ends.

        Call it when the collector has ended.

        Raises:
            OSError: If the file system fails.
        """
        self._stop.set()
        self._thread.join()
        self.archive(all_segments=True)

    def _run(self) -> None:
        pause = self.every_s
        while not self._stop.is_set():
            try:
                self.archive()
                self.failure = None
                pause = self.every_s
            except Exception as error:  # any error of pyarrow: the next attempt may succeed
                self.failure = error
                fields = {"to": self.address, "reason": str(error) or type(error).__name__}
                _log.error("not_archived", extra={"fields": fields})
                pause = min(2 * pause, max(PATIENCE_S, self.every_s))
            self._stop.wait(pause)

    def _report(self, offset: int) -> None:
        if self._on_progress is not None and (offset > self.archived or offset == 0):
            self._on_progress(offset)
        self.archived = max(self.archived, offset)
