"""The options of ``mode=log``: reading the logs of collectors, in streams and in batches.

    ``mode``                ``log``; ``live`` has other options, see `zeroxide.spark.options`
    ``endpoint``            the collectors' addresses, a comma-separated list. Executors use them
                            too. Required, except with ``fetch=files``
    ``subscribe``           only topics that begin with one of these, a comma-separated list; the
                            collector filters. ``topics`` is the same
    ``startingOffsets``     the start of a new query: ``latest`` in streams and ``earliest`` in
                            batches, or JSON: ``{"tcp://a:5555": 70, "tcp://b:5555": "earliest"}``.
                            A query with a checkpoint ignores this and continues there
    ``startingTimestamp``   the same by time of receipt: milliseconds since 1970, or a time like
                            ``2026-01-31T12:00:00Z``; takes precedence over ``startingOffsets``
    ``endingOffsets``       batches: the end, after the last row; default ``latest``
    ``endingTimestamp``     batches: the same by time of receipt
    ``includeHeaders``      adds the column ``headers``
    ``includeFrames``       adds the column ``frames``, of messages kept with all their frames
    ``failOnDataLoss``      default true; false continues at the next available row, with a warning
    ``minPartitions``       the minimum number of tasks, if there are enough rows. Default: the
                            number of cores of this machine, without small tasks
    ``maxRecordsPerPartition``  the maximum number of rows of a task

Streams; batches ignore these
    ``maxOffsetsPerTrigger``   rows per batch, divided in proportion to what each collector has
    ``maxBytesPerTrigger``     approximate bytes per batch, as stored in the log
    ``minOffsetsPerTrigger``   a batch waits for this many rows, but no longer than
    ``maxTriggerDelay``        ``15m``
    ``consumerGroup``          records at the collectors what this query has read, so that their
                               retention keeps the other rows

Fetching the rows
    ``fetch``                  ``socket``, or ``files``: executors read the folders in
                               ``collector.dir``, which they must be able to access
    ``fetch.timeoutMs``        10000; for each answer
    ``fetch.retries``          3
    ``collector.graceMs``      60000; how long a collector may be unavailable before the query fails
    ``collector.dir``          the folder of the log; one per endpoint. With ``fetch=files`` also
                               a URL that pyarrow supports: an archive
    ``collector``              ``embedded``: the query starts its own collector in
                               ``collector.dir``, which binds ``endpoint`` and ends with the query
    ``collector.advertise``    embedded: the address at which executors find it
    ``collector.retentionBytes``, ``collector.retentionHours``, ``collector.retentionGroups``,
    ``collector.pull``, ``collector.subscribe``, ``collector.keepFrames``, ``framing``
                               embedded: as the options of ``zeroxide collector``
    ``collector.secretKey``, ``collector.allow``
                               embedded: its key as ``env:NAME`` or ``file:PATH``, and a folder
                               with the certificates of accepted clients, or ``*``
    ``collector.openToNetwork`` embedded: binds addresses that other machines reach without a key
    ``zmq.curve_serverkey``, ``zmq.curve_publickey``, ``zmq.curve_secretkey``
                               keys as ``env:NAME`` or ``file:PATH``, read where they are used
    ``filterPushdown``         batches: ``once``: filters on offset, partition, topic and
                               receive_time reduce what is read. **load() again for each query**:
                               a DataFrame or view that is used twice returns wrong rows, because
                               Spark keeps the filters of one use for the others. Needs
                               ``spark.sql.python.filterPushdown.enabled=true``
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias, cast

from .._exports import exports_only
from ._schema import LOG_COLUMNS
from .options import FRAMINGS, _Given

__all__ = ["EARLIEST", "LATEST", "Embedded", "Kept", "LogReadOptions", "Where", "columns", "mode"]


def __dir__() -> list[str]:
    return exports_only(globals())


EARLIEST: Literal["earliest"] = "earliest"
LATEST: Literal["latest"] = "latest"


@dataclass(frozen=True)
class Kept:
    """An offset from a checkpoint, which belongs to this log only."""

    offset: int
    log: str
    generation: str | None = None


# The start or end: for all collectors, or for each by its endpoint.
Mark: TypeAlias = int | Kept | Literal["earliest", "latest"]
Where: TypeAlias = Literal["earliest", "latest"] | Mapping[str, Mark]

# The same as Kafka's numbers.
BY_NUMBER: dict[int, Mark] = {-2: "earliest", -1: "latest"}

MODES = ("log", "live")

# Options that only `mode=live` has.
LIVE_ONLY = frozenset({"attach", "socket", "maxrows", "maxbytes", "timeoutms", "endofstream"})

# Options that only apply to a collector started by the query.
EMBEDDED_ONLY = (
    "advertise",
    "retentionBytes",
    "retentionHours",
    "retentionGroups",
    "pull",
    "subscribe",
    "keepFrames",
    "secretKey",
    "allow",
    "openToNetwork",
)

# The value of `filterPushdown`, which promises that the DataFrame is used once.
ONCE = "once"

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}

CURVE_KEYS = ("curve_serverkey", "curve_publickey", "curve_secretkey")


@dataclass(frozen=True)
class Embedded:
    """The collector that a query starts."""

    directory: str
    bind: str
    advertise: str | None
    retention_bytes: int | None
    retention_hours: float | None
    retention_groups: bool
    pull: tuple[str, ...]
    subscribe: tuple[str, ...]
    framing: str
    keep_frames: bool
    secret_key: str | None
    allow: str | None
    open_to_network: bool = False


@dataclass(frozen=True)
class LogReadOptions:
    """The options of a read of a log."""

    endpoints: tuple[str, ...]
    directories: tuple[str, ...]
    topics: tuple[str, ...]
    starting: Where
    starting_timestamp: int | None
    ending: Where
    ending_timestamp: int | None
    include_headers: bool
    include_frames: bool
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records: int | None
    max_offsets: int | None
    max_bytes: int | None
    min_offsets: int | None
    max_delay_ms: int
    group: str | None
    fetch: Literal["socket", "files"]
    timeout_ms: int
    retries: int
    grace_ms: int
    embedded: Embedded | None
    keys: tuple[tuple[str, str], ...]
    filter_pushdown: str | None  # `once`, or another value that is refused

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool) -> "LogReadOptions":
        """Reads and checks the options of a batch or streaming read.

        Args:
            options: The options by their names, in any case.
            streaming: Whether the read is a stream, which has other defaults.

        Returns:
            The options with their defaults.

        Raises:
            ValueError: An option is unknown, invalid, or contradicts another.
        """
        given = _LogGiven(options, "reading")
        given.choice("mode", MODES, "log")
        given.refuse_live()
        embedded = given.embedded()
        directories = given.names("collector.dir")
        fetch = given.choice("fetch", ("socket", "files"), "socket")
        # A log's files can be read without its collector.
        only_files = fetch == "files" and given.peek("endpoint") is None
        endpoints = directories if only_files else given.endpoints(embedded)
        if fetch == "files" and len(directories) != len(endpoints):
            raise ValueError(
                f"option 'fetch' is 'files', which needs one folder in option 'collector.dir' for"
                f" each endpoint: there are {len(directories)} for {len(endpoints)}"
            )
        starting = given.where("startingOffsets", LATEST if streaming else EARLIEST)
        ending = given.where("endingOffsets", LATEST)
        read = cls(
            endpoints=endpoints,
            directories=directories,
            topics=given.names("subscribe") + given.names("topics"),
            starting=starting,
            starting_timestamp=given.time("startingTimestamp"),
            ending=ending,
            ending_timestamp=given.time("endingTimestamp"),
            include_headers=given.flag("includeHeaders"),
            include_frames=given.flag("includeFrames"),
            fail_on_data_loss=given.flag("failOnDataLoss", default=True),
            min_partitions=given.number("minPartitions", None, least=1),
            max_records=given.number("maxRecordsPerPartition", None, least=1),
            max_offsets=given.number("maxOffsetsPerTrigger", None, least=1),
            max_bytes=given.number("maxBytesPerTrigger", None, least=1),
            min_offsets=given.number("minOffsetsPerTrigger", None, least=1),
            max_delay_ms=given.duration("maxTriggerDelay", 15 * 60_000),
            group=given.text("consumerGroup"),
            fetch=cast(Literal["socket", "files"], fetch),
            timeout_ms=given.number("fetch.timeoutMs", 10_000, least=1),
            retries=given.number("fetch.retries", 3, least=0),
            grace_ms=given.number("collector.graceMs", 60_000, least=0),
            embedded=embedded,
            keys=given.keys(),
            filter_pushdown=given.pushdown(),
        )
        given.finish()
        read._check(streaming)
        return read

    def _check(self, streaming: bool) -> None:
        if self.directories and self.embedded is None and self.fetch == "socket":
            raise ValueError(
                "option 'collector.dir' is for fetch=files or collector=embedded: rows that a"
                " collector serves are fetched from option 'endpoint', wherever its folder is"
            )
        if self.group is not None and self.endpoints == self.directories:
            raise ValueError(
                "option 'consumerGroup' needs option 'endpoint': files alone record no positions"
            )
        if streaming:
            if self.ending != LATEST or self.ending_timestamp is not None:
                raise ValueError(
                    "options 'endingOffsets' and 'endingTimestamp' are for spark.read: a stream does"
                    " not end; with trigger(availableNow=True), it ends at the latest row"
                )
            if self.filter_pushdown is not None:
                raise ValueError(
                    "option 'filterPushdown' is for spark.read: Spark passes no filters to streams."
                    " Option 'subscribe' lets the collector filter topics"
                )
        else:
            if self.filter_pushdown not in (None, ONCE):
                raise ValueError(
                    f"option 'filterPushdown' is {self.filter_pushdown!r}, but Spark keeps the"
                    " filters of the first use of a DataFrame or view, and later uses would miss"
                    " rows without an error. Set 'once', and call load() again for each use"
                )
            if self.starting == LATEST and self.starting_timestamp is None:
                raise ValueError(
                    "option 'startingOffsets' is 'latest', and a batch that begins there is empty"
                )
            if self.ending == EARLIEST:
                raise ValueError(
                    "option 'endingOffsets' is 'earliest', and a batch that ends there is empty"
                )
            if self.embedded is not None:
                raise ValueError(
                    "option 'collector' is 'embedded', which is for streams: a batch reads the same"
                    " folder with fetch=files"
                )
        if (
            self.min_offsets is not None
            and self.max_offsets is not None
            and self.min_offsets > self.max_offsets
        ):
            raise ValueError(
                f"option 'minOffsetsPerTrigger' is {self.min_offsets}, above"
                f" 'maxOffsetsPerTrigger', which is {self.max_offsets}"
            )


def mode(options: Mapping[str, str]) -> str:
    """Returns the option ``mode``.

    Args:
        options: The options by their names, in any case.

    Returns:
        ``log``, the default, or ``live``.
    """
    return _LogGiven(options, "reading").choice("mode", MODES, "log")


def columns(options: Mapping[str, str]) -> list[str]:
    """Returns the columns that a read from a log has with these options, checking nothing else.

    Args:
        options: The options by their names, in any case.

    Returns:
        The names of the columns.
    """
    given = _LogGiven(options, "reading")
    asked = {"headers": given.flag("includeHeaders"), "frames": given.flag("includeFrames")}
    return [*LOG_COLUMNS, *(name for name in asked if asked[name])]


class _LogGiven(_Given):
    """The raw options, with the additions for logs."""

    def refuse_live(self) -> None:
        for name in self._values:
            if name in LIVE_ONLY:
                raise ValueError(
                    f"option {self._left.get(name, name)!r} is for mode=live, which reads from"
                    " sockets; without it, rows are read from a collector's log"
                )

    def endpoints(self, embedded: Embedded | None) -> tuple[str, ...]:
        endpoints = self.addresses()
        if len(set(endpoints)) < len(endpoints):
            raise ValueError("option 'endpoint' names a collector twice")
        for endpoint in endpoints:
            if embedded is None and re.search(r"://(\*|0\.0\.0\.0|\[::\]):|:(\*|0)$", endpoint):
                raise ValueError(
                    f"option 'endpoint' has {endpoint!r}, which can only be bound: name the"
                    " address at which Spark's driver and executors reach the collector"
                )
        if embedded is not None and len(endpoints) > 1:
            raise ValueError("option 'collector' is 'embedded', which binds to one endpoint")
        return endpoints

    def embedded(self) -> Embedded | None:
        is_embedded = self.choice("collector", ("external", "embedded"), "external") == "embedded"
        names = self.names("collector.dir")
        secret = self.text("collector.secretKey")
        if secret is not None and not secret.startswith(("env:", "file:")):
            raise ValueError(
                "option 'collector.secretKey' would show its value in query plans: give env:NAME"
                " or file:PATH"
            )
        found = Embedded(
            directory=names[0] if names else "",
            bind=next(iter(self.names("endpoint")), ""),
            advertise=self.text("collector.advertise"),
            retention_bytes=self.number("collector.retentionBytes", None, least=1),
            retention_hours=self.hours("collector.retentionHours"),
            retention_groups=self.flag("collector.retentionGroups"),
            pull=self.names("collector.pull"),
            subscribe=self.names("collector.subscribe"),
            framing=self.choice("framing", FRAMINGS, "single"),
            keep_frames=self.flag("collector.keepFrames"),
            secret_key=secret,
            allow=self.text("collector.allow"),
            open_to_network=self.flag("collector.openToNetwork"),
        )
        if is_embedded:
            if (found.secret_key is None) != (found.allow is None):
                raise ValueError(
                    "options 'collector.secretKey' and 'collector.allow' belong together: a folder"
                    " of certificates, or * for every client"
                )
            if len(names) != 1:
                raise ValueError(
                    "option 'collector' is 'embedded', which needs option 'collector.dir': the"
                    " folder, on the driver's machine, that keeps the log"
                )
            return found
        for name in EMBEDDED_ONLY:
            if self.peek(f"collector.{name}") is not None:
                raise ValueError(
                    f"option 'collector.{name}' is for collector=embedded: a separate collector"
                    f" gets this option when it is started"
                )
        if self.peek("framing") is not None:
            raise ValueError(
                "option 'framing' is for mode=live or collector=embedded: a separate collector"
                " gets this option when it is started (--framing)"
            )
        return None

    def where(self, name: str, default: Literal["earliest", "latest"]) -> Where:
        text = (self.text(name) or default).strip()
        if text.lower() in (EARLIEST, LATEST):
            return cast(Where, text.lower())
        try:
            return _by_collector(json.loads(text))
        except (ValueError, TypeError, AttributeError, KeyError):
            raise ValueError(
                f"option {name!r} is {text!r}; it should be earliest, latest, or JSON like"
                ' {"tcp://a:5555": 70, "tcp://b:5555": "earliest"}'
            ) from None

    def time(self, name: str) -> int | None:
        """Microseconds since 1970."""

        def read(text: str) -> int | None:
            if re.fullmatch(r"\d+", text):
                micros = int(text) * 1000
                if micros >= 2**63:
                    raise ValueError
                return micros
            time = datetime.fromisoformat(text)
            if time.tzinfo is None:
                time = time.replace(tzinfo=UTC)
            return round(time.timestamp() * 1_000_000)

        expected = "milliseconds since 1970, or a time like 2026-01-31T12:00:00Z"
        return self._read(name, expected, read, default=None)

    def pushdown(self) -> str | None:
        value = (self.text("filterPushdown") or "false").lower()
        return None if value == "false" else value

    def hours(self, name: str) -> float | None:
        def read(text: str) -> float | None:
            hours = float(text)
            if not hours > 0:
                raise ValueError
            return hours

        return self._read(name, "a number above 0", read, default=None)

    def duration(self, name: str, default_ms: int) -> int:
        def read(text: str) -> int:
            found = re.fullmatch(r"(\d+)\s*(ms|s|m|h)?", text.lower())
            if found is None:
                raise ValueError
            return int(found[1]) * UNITS_MS[found[2] or "ms"]

        return self._read(name, "a time like 500ms, 10s, 15m or 1h", read, default=default_ms)

    def keys(self) -> tuple[tuple[str, str], ...]:
        found = self._socket_options()
        for name, _ in found:
            if name not in CURVE_KEYS:
                raise ValueError(
                    f"option 'zmq.{name}' is for mode=live: with mode=log there are"
                    f" {', '.join(f'zmq.{key}' for key in CURVE_KEYS)}"
                )
        return found


def _by_collector(given: object) -> Mapping[str, Mark]:
    if not isinstance(given, dict):
        raise ValueError
    if "collectors" in given:
        # The source's own format, as in a checkpoint or in a query's progress.
        return {
            name: Kept(int(entry["offset"]), str(entry["log"]), entry.get("generation"))
            for name, entry in given["collectors"].items()
        }
    marks: dict[str, Mark] = {}
    for name, mark in given.items():
        if mark in (EARLIEST, LATEST):
            marks[name] = mark
        elif isinstance(mark, int) and not isinstance(mark, bool) and mark >= -2:
            marks[name] = BY_NUMBER.get(mark, mark)
        else:
            raise ValueError
    return marks
