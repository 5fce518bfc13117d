"""The collectors of a query, as its driver and its tasks reach them.

A driver asks at every trigger, so it must not wait long for an answer. While a collector is
unavailable, the driver does without it until its grace has ended. Tasks have nothing else to do
than to read their range, so they wait until the grace has ended.
"""

import errno
import logging
import math
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..error import ZMQBaseError
from ..pipeline import Client, Collector, CollectorError, CollectorGone, FilesLog, Refused
from ..pipeline import Info as FilesInfo
from ._sockets import look_up
from .log_options import Embedded, LogReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Collectors", "Info", "Log", "Opener", "is_away", "open_log", "opened"]

log: logging.Logger = logging.getLogger(__name__)

# The driver's time limit for one answer, and its pause before it asks an unavailable collector again.
DRIVER_TIMEOUT_S = 2.0
PAUSE_S = 0.1

# Temporary refusals of a collector: its disk is full or fails, it has too many requests,
# or it is about to end. `denied`, `version`, `malformed` and `corrupt` stay as they are.
PASSING = frozenset({"failed", "too-many", "full", "read-only", "closing"})

# The client's names for the keys.
CLIENT_KEYS = {
    "curve_serverkey": "server_key",
    "curve_publickey": "public_key",
    "curve_secretkey": "secret_key",
}

# The number of collectors that are asked at the same time.
AT_ONCE = 16


class Info(Protocol):
    """The bounds of a log."""

    @property
    def log_id(self) -> str:
        """The id of the log."""

    @property
    def earliest(self) -> int:
        """The first offset that can be read."""

    @property
    def latest(self) -> int:
        """The offset after the last row that can be read."""

    @property
    def bytes(self) -> int:
        """The log's size on disk, in bytes."""

    def generation(self, offset: int) -> str | None:
        """Returns the opening of the log that wrote the row before an offset."""

    def check(self, offset: int, generation: str | None) -> int | None:
        """Returns the first offset whose row differs from the one that was read; None if there is none."""


class Log(Protocol):
    """The part of `zeroxide.pipeline.Client` that reading needs."""

    def info(self) -> Info:
        """Returns the bounds of the log."""

    def offset_at(self, timestamp: int) -> int:
        """Returns the first offset received at this microsecond or later."""

    def fetch(
        self,
        start: int,
        end: int,
        *,
        topics: tuple[str, ...] | None,
        partition: int,
        headers: bool,
        frames: bool,
        log_id: str,
        generation: str | None,
    ) -> Iterator["pa.RecordBatch"]:
        """Yields rows in record batches."""

    def committed(self, group: str) -> int | None:
        """Returns the first offset whose row a group keeps; None if it keeps none yet."""

    def commit(self, group: str, offset: int, *, generation: str | None = None) -> object:
        """Releases the rows below an offset."""

    def close(self) -> None:
        """Closes the connection."""


_T = TypeVar("_T")

# How a log is opened, by its address, with a timeout in seconds and retries.
Opener = Callable[[LogReadOptions, str, float, int], Log]


def is_away(error: CollectorError) -> bool:
    """Returns whether the collector cannot answer now, but may later."""
    return isinstance(error, CollectorGone) or (
        isinstance(error, Refused) and error.code in PASSING
    )


@contextmanager
def _reporting(address: str) -> Iterator[None]:
    """Raises failures of a file system, such as a refusal of S3, as those of a collector that is away."""
    try:
        yield
    except (CollectorError, PermissionError, NotADirectoryError):
        raise  # `CollectorGone` is an `OSError`, and the others are mistakes, which waiting does not mend
    except OSError as error:
        raise CollectorGone(f"the files in {address} cannot be read: {error}", address) from error


class _Files(FilesLog):
    """A log's files, which are away while their file system fails."""

    def info(self) -> FilesInfo:
        """Returns the bounds of the log."""
        with _reporting(self.address):
            return super().info()

    def offset_at(self, timestamp: Any) -> int:
        """Returns the first offset received at this time or later."""
        with _reporting(self.address):
            return super().offset_at(timestamp)

    def fetch(self, *args: Any, **options: Any) -> Iterator["pa.RecordBatch"]:
        """Yields rows in record batches."""
        with _reporting(self.address):
            yield from super().fetch(*args, **options)


def open_log(options: LogReadOptions, address: str, timeout: float, retries: int) -> Log:
    """Opens one log in the way that the options ask for."""
    if address in options.directories:
        with _reporting(address):
            return _Files(address)
    keys = {CLIENT_KEYS[name]: look_up(f"zmq.{name}", text) for name, text in options.keys}
    return Client(address, timeout_s=timeout, retries=retries, **keys)


@dataclass
class _Known:
    """The driver's knowledge about one collector."""

    name: str
    address: str
    log: Log | None = None
    info: Info | None = None
    away_since: float | None = None
    reason: str = ""


class Collectors:
    """The collectors of one query, as its driver sees them."""

    def __init__(self, options: LogReadOptions, opener: Opener = open_log) -> None:
        self.options = options
        self._opener = opener
        self._own: Collector | None = None
        if options.embedded is not None:
            self._own = _start(options.embedded, options.grace_ms / 1000)
        self._known = {
            name: _Known(name, name if self._own is None else _reachable(self._own, options))
            for name in options.endpoints
        }

    def look(self, *, wait: bool = False) -> dict[str, Info | None]:
        """The current state of each; None for an unavailable one, which is an error after its grace.

        With `wait`, waits for unavailable collectors instead.
        """
        while True:
            known = list(self._known.values())
            if len(known) == 1:
                self._ask(known[0])
            else:
                with ThreadPoolExecutor(min(len(known), AT_ONCE)) as pool:
                    list(pool.map(self._ask, known))
            self._fail_after_grace()
            if not wait or all(one.away_since is None for one in known):
                return {one.name: one.info if one.away_since is None else None for one in known}
            time.sleep(PAUSE_S)

    def address(self, name: str) -> str:
        """Returns where tasks find the rows of this collector: its address, or its folder."""
        if name not in self._known:
            return name
        if self.options.fetch == "files":
            return self.options.directories[self.options.endpoints.index(name)]
        return self._known[name].address

    def offset_at(self, name: str, timestamp: int) -> int:
        """The first offset received at this time or later; waits for the collector."""
        return self._insist(name, lambda opened_log: opened_log.offset_at(timestamp))

    def offset_after(self, name: str, start: int, size: int) -> int | None:
        """The end of a range of this size; None if the log is too old to tell, or files."""

        def ask(opened_log: Log) -> int | None:
            weigh: Callable[[int, int], int] | None = getattr(opened_log, "offset_after", None)
            return None if weigh is None else weigh(start, size)

        try:
            return self._insist(name, ask) if name in self._known else None
        except Refused as error:
            if error.code != "malformed":
                raise
            return None

    def commit(self, name: str, group: str, offset: int, generation: str | None = None) -> None:
        """Reports to a collector what was read; an unavailable collector gets the report next time."""
        self._note(name, group, lambda log: log.commit(group, offset, generation=generation))

    def hold(self, name: str, group: str, offset: int) -> None:
        """Keeps the rows from an offset on, and the earlier ones that the group keeps already."""

        def keep(log: Log) -> None:
            kept = log.committed(group)
            if kept is None or kept > offset:
                log.commit(group, offset)

        self._note(name, group, keep)

    def close(self) -> None:
        """Closes the connections, and ends the embedded collector."""
        for one in self._known.values():
            self._hang_up(one)
        if self._own is not None:
            self._own.close()
            self._own = None

    def _note(self, name: str, group: str, request: Callable[[Log], object]) -> None:
        one = self._known[name]
        if one.away_since is not None:
            return
        try:
            request(self._open(one))
        except CollectorError as error:
            log.warning("zeromq: %s: the position of %r is not noted: %s", name, group, error)

    def _ask(self, one: _Known) -> None:
        asked = time.monotonic()
        try:
            one.info = self._open(one).info()
        except CollectorError as error:
            self._note_away(one, error, asked)
        else:
            self._note_back(one)

    def _note_away(self, one: _Known, error: CollectorError, asked: float) -> None:
        """Records that a collector cannot answer now; raises errors that are not temporary."""
        if not is_away(error):
            raise error
        self._hang_up(one)
        one.reason = str(error)
        if one.away_since is None:
            one.away_since = asked
            log.warning("zeromq: collector %s is away: %s", one.name, error)

    def _note_back(self, one: _Known) -> None:
        if one.away_since is not None:
            away = time.monotonic() - one.away_since
            log.warning("zeromq: collector %s is back after %.1f s", one.name, away)
        one.away_since = None

    def _fail_after_grace(self) -> None:
        grace = self.options.grace_ms / 1000
        for one in self._known.values():
            if one.away_since is not None and time.monotonic() - one.away_since >= grace:
                away = time.monotonic() - one.away_since
                raise CollectorGone(
                    f"collector {one.name} has been away for {away:.0f} s, longer than option"
                    f" 'collector.graceMs' ({self.options.grace_ms} ms) allows: start it, and this"
                    f" query again, which continues where it stopped ({one.reason})",
                    one.name,
                    away,
                )

    def _insist(self, name: str, request: Callable[[Log], _T]) -> _T:
        one = self._known[name]
        while True:
            asked = time.monotonic()
            try:
                found = request(self._open(one))
            except CollectorError as error:
                self._note_away(one, error, asked)
            else:
                self._note_back(one)
                return found
            self._fail_after_grace()
            time.sleep(PAUSE_S)

    def _open(self, one: _Known) -> Log:
        if one.log is None:
            timeout = min(self.options.timeout_ms / 1000, DRIVER_TIMEOUT_S)
            one.log = self._opener(self.options, one.address, timeout, 0)
        return one.log

    def _hang_up(self, one: _Known) -> None:
        if one.log is not None:
            one.log.close()
            one.log = None


# Connections of this process that no task is using. A forked worker begins without any: what
# its parent has is the parent's.
_idle: dict[tuple[Any, ...], list[Log]] = {}

KEPT_PER_ADDRESS = 4


@contextmanager
def opened(
    options: LogReadOptions, address: str, opener: Opener = open_log, left: float = math.inf
) -> Iterator[Log]:
    """A log for one task, which the next task reuses unless an error occurred.

    A request takes no longer than the rest of the grace, in seconds, but may always take as
    long as those of the driver.
    """
    timeout = min(options.timeout_ms / 1000, max(left, DRIVER_TIMEOUT_S))
    retries = options.retries
    if left < timeout * (retries + 1):
        retries = max(int(left / timeout) - 1, 0)
    key = (os.getpid(), address, timeout, retries, options.keys, opener)
    # Other times give a key that hardly any other task has.
    is_shared = left >= options.grace_ms / 1000
    idle = _idle.setdefault(key, []) if is_shared else []
    current = idle.pop() if idle else opener(options, address, timeout, retries)
    try:
        yield current
    except BaseException:
        # Answers to earlier requests may still be in transit.
        current.close()
        raise
    if is_shared and len(idle) < KEPT_PER_ADDRESS:
        idle.append(current)
    else:
        current.close()


def _start(embedded: Embedded, patience: float) -> Collector:
    """Starts the query's own collector; that of the last run may still be ending."""
    settings: dict[str, Any] = {
        "pull": embedded.pull,
        "subscribe": embedded.subscribe,
        "framing": embedded.framing,
        "keep_frames": embedded.keep_frames,
        "retention_bytes": embedded.retention_bytes,
        "retention_hours": embedded.retention_hours,
        "retention_groups": embedded.retention_groups,
        "advertise": embedded.advertise,
        "open_to_network": embedded.open_to_network,
    }
    if embedded.secret_key is not None:
        settings["secret_key"] = look_up("collector.secretKey", embedded.secret_key)
        settings["allow"] = embedded.allow
    deadline = time.monotonic() + patience
    while True:
        try:
            return Collector(embedded.directory, embedded.bind, **settings)
        except (ZMQBaseError, OSError) as error:
            if not _is_taken(error) or time.monotonic() >= deadline:
                raise CollectorError(
                    f"the collector that option 'collector' (embedded) asks for did not start in"
                    f" {embedded.directory} at {embedded.bind}: {error}"
                ) from error
        time.sleep(PAUSE_S)


def _is_taken(error: Exception) -> bool:
    """Returns whether another process still has the folder or the address."""
    if isinstance(error, Refused):
        return error.code == "locked"
    return getattr(error, "errno", None) == errno.EADDRINUSE


def _reachable(own: Collector, options: LogReadOptions) -> str:
    assert options.embedded is not None
    return options.embedded.advertise or own.endpoint
