"""The options of ``mode=log``: reading what collectors keep, in streams and in batches.

    ``mode``                ``log``; ``live`` has other options, see `zeroxide.spark.options`
    ``endpoint``            the collectors' addresses, a comma-separated list. Executors use them,
                            too. Required, except with ``fetch=files``
    ``subscribe``           only topics that begin with one of these, a comma-separated list,
                            sorted out by the collector. ``topics`` is the same
    ``startingOffsets``     where a new query begins: ``latest`` in streams and ``earliest`` in
                            batches, or JSON: ``{"tcp://a:5555": 70, "tcp://b:5555": "earliest"}``.
                            A query that has a checkpoint goes on from there, whatever this says
    ``startingTimestamp``   the same by time of receipt: milliseconds since 1970, or a time like
                            ``2026-01-31T12:00:00Z``; comes before ``startingOffsets``
    ``endingOffsets``       batches: where to end, behind the last; ``latest``
    ``endingTimestamp``     batches: the same by time of receipt
    ``includeHeaders``      adds the column ``headers``
    ``includeFrames``       adds the column ``frames``, of messages kept with all their frames
    ``failOnDataLoss``      true; false goes on where rows are that can be had, with a warning
    ``minPartitions``       as many tasks at least, as far as there are rows. Left out: as many
                            as this machine has cores, none of them small
    ``maxRecordsPerPartition``  no task gets more

Streams; a batch takes no notice of these
    ``maxOffsetsPerTrigger``   rows per batch, shared out by what each collector has
    ``maxBytesPerTrigger``     about so many bytes per batch, as they lie in the log
    ``minOffsetsPerTrigger``   a batch waits for so many rows, but no longer than
    ``maxTriggerDelay``        ``15m``
    ``consumerGroup``          tells collectors what this query has read, so that their retention
                               keeps the rest

The way to the rows
    ``fetch``                  ``socket``, or ``files``: executors read the folders in
                               ``collector.dir``, which they must see
    ``fetch.timeoutMs``        10000; for each answer
    ``fetch.retries``          3
    ``collector.graceMs``      60000; how long a collector may be away before the query fails
    ``collector.dir``          the folder of the log; one per endpoint. With ``fetch=files`` also
                               a URL that pyarrow knows: an archive
    ``collector``              ``embedded``: the query starts a collector of its own in
                               ``collector.dir``, which binds to ``endpoint`` and lives as long
    ``collector.advertise``    embedded: under which address executors find it
    ``collector.retentionBytes``, ``collector.retentionHours``, ``collector.retentionGroups``,
    ``collector.pull``, ``collector.subscribe``, ``collector.keepFrames``, ``framing``
                               embedded: what ``zeroxide collector`` calls the same
    ``collector.secretKey``, ``collector.allow``
                               embedded: its key as ``env:NAME`` or ``file:PATH``, and a folder
                               with the certificates of those it lets in, or ``*``
    ``collector.openToNetwork`` embedded: without a key, binds to what other machines reach
    ``zmq.curve_serverkey``, ``zmq.curve_publickey``, ``zmq.curve_secretkey``
                               keys as ``env:NAME`` or ``file:PATH``, looked up where they are used
    ``filterPushdown``         batches: filters on offset, partition, topic and receive_time read
                               less; needs ``spark.sql.python.filterPushdown.enabled=true``
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias, cast

from .options import FRAMINGS, _Given
from .schema import LOG_COLUMNS

__all__ = ["EARLIEST", "LATEST", "Embedded", "Kept", "LogReadOptions", "Where", "columns", "mode"]

EARLIEST: Literal["earliest"] = "earliest"
LATEST: Literal["latest"] = "latest"


@dataclass(frozen=True)
class Kept:
    """An offset as a checkpoint has it: of this log, and of no other."""

    offset: int
    log: str
    generation: str | None = None


# Where to begin or end: for all collectors, or for each by its endpoint.
Mark: TypeAlias = int | Kept | Literal["earliest", "latest"]
Where: TypeAlias = Literal["earliest", "latest"] | Mapping[str, Mark]

# Kafka's numbers for the same.
BY_NUMBER: dict[int, Mark] = {-2: "earliest", -1: "latest"}

MODES = ("log", "live")

# What only `mode=live` has.
LIVE_ONLY = frozenset({"attach", "socket", "maxrows", "maxbytes", "timeoutms", "endofstream"})

# What only the collector that a query starts is told by it.
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

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}

CURVE_KEYS = ("curve_serverkey", "curve_publickey", "curve_secretkey")


@dataclass(frozen=True)
class Embedded:
    """The collector that a query starts by itself."""

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
    """What a read of a log was told."""

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
    filter_pushdown: bool

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool) -> "LogReadOptions":
        """Reads and checks the options of a batch or streaming read."""
        given = _LogGiven(options, "reading")
        given.choice("mode", MODES, "log")
        given.refuse_live()
        embedded = given.embedded()
        directories = given.names("collector.dir")
        fetch = given.choice("fetch", ("socket", "files"), "socket")
        # A log that lies somewhere can be read without its collector.
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
            filter_pushdown=given.flag("filterPushdown"),
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
                "option 'consumerGroup' needs option 'endpoint': files alone take note of nothing"
            )
        if streaming:
            if self.ending != LATEST or self.ending_timestamp is not None:
                raise ValueError(
                    "options 'endingOffsets' and 'endingTimestamp' are of spark.read: a stream does"
                    " not end; trigger(availableNow=True) ends it at what is there"
                )
            if self.filter_pushdown:
                raise ValueError(
                    "option 'filterPushdown' is of spark.read: Spark hands streams no filters."
                    " Option 'subscribe' lets the collector sort out topics"
                )
        else:
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
    """``log``, or ``live`` if these options say so."""
    return _LogGiven(options, "reading").choice("mode", MODES, "log")


def columns(options: Mapping[str, str]) -> list[str]:
    """The columns that a read with these options has, checking nothing else."""
    given = _LogGiven(options, "reading")
    asked = {"headers": given.flag("includeHeaders"), "frames": given.flag("includeFrames")}
    return [*LOG_COLUMNS, *(name for name in asked if asked[name])]


class _LogGiven(_Given):
    """Options as they came, with what a log's have besides."""

    def refuse_live(self) -> None:
        for name in self._values:
            if name in LIVE_ONLY:
                raise ValueError(
                    f"option {self._left.get(name, name)!r} is one of mode=live, which reads from"
                    " sockets; without it, rows are read from a collector's log"
                )

    def endpoints(self, embedded: Embedded | None) -> tuple[str, ...]:
        endpoints = self.addresses()
        if len(set(endpoints)) < len(endpoints):
            raise ValueError("option 'endpoint' names a collector twice")
        for endpoint in endpoints:
            if embedded is None and re.search(r"://(\*|0\.0\.0\.0|\[::\]):|:(\*|0)$", endpoint):
                raise ValueError(
                    f"option 'endpoint' has {endpoint!r}, to which one can only bind: name the"
                    " address under which Spark's driver and executors reach the collector"
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
            bind=self.peek("endpoint") or "",
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
                    " of certificates, or * for everybody"
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
                    f"option 'collector.{name}' is for collector=embedded: a collector of its own"
                    f" is told when it is started"
                )
        if self.peek("framing") is not None:
            raise ValueError(
                "option 'framing' is for mode=live or collector=embedded: what part of a message"
                " is what, a collector of its own is told when it is started (--framing)"
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
                return int(text) * 1000
            time = datetime.fromisoformat(text)
            if time.tzinfo is None:
                time = time.replace(tzinfo=UTC)
            return round(time.timestamp() * 1_000_000)

        expected = "milliseconds since 1970, or a time like 2026-01-31T12:00:00Z"
        return self._read(name, expected, read, default=None)

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
        # What this source itself writes, as it stands in a checkpoint or in a query's progress.
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
