"""Logs in memory, for tests of the readers without a collector and without a JVM."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql.types import StructType

from zeroxide.pipeline import CollectorGone, DataLoss, Info, Refused
from zeroxide.spark._log_reader import StreamReader
from zeroxide.spark._schema import LOG_COLUMNS, spark_schema
from zeroxide.spark.log_options import LogReadOptions

SECOND = 1_000_000
A, B, C = "tcp://a:1", "tcp://b:1", "tcp://c:1"

# The schema of a client's batches: like Spark's, except for columns that are never null.
FETCHED = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("receive_time", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("producer", pa.string()),
        pa.field("seq", pa.int64()),
    ]
)


@dataclass
class Log:
    """Row number n was received at second n; its value is n, and its topic is t0 or t1."""

    log_id: str = "a1"
    earliest: int = 0
    latest: int = 0
    row_bytes: int = 100
    generations: tuple[tuple[int, str], ...] = ()
    away: bool = False
    refuses: list[str] = field(default_factory=list)  # codes, one per request
    frame: int = 7  # rows per record batch of a fetch
    fails_after: list[int] = field(default_factory=list)  # rows after which a fetch dies
    leaves_out: int | None = None
    damaged: tuple[int, int] = (0, 0)
    commits: dict[str, list[int]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def info(self):
        self._ask("info")
        size = (self.latest - self.earliest) * self.row_bytes
        return Info(self.log_id, self.earliest, self.latest, None, None, size, "", self.generations)

    def offset_at(self, timestamp):
        self._ask("offset_at")
        return min(max(-(-timestamp // SECOND), self.earliest), self.latest)

    def committed(self, group):
        self._ask("committed")
        return self.commits[group][-1] if self.commits.get(group) else None

    def commit(self, group, offset, generation=None):
        self._ask("commit")
        self.commits.setdefault(group, []).append(offset)

    def fetch(
        self,
        start,
        end,
        *,
        topics=None,
        partition=0,
        headers=False,
        frames=False,
        max_bytes=8 << 20,
        log_id=None,
        generation=None,
    ):
        self._ask("fetch")
        if log_id != self.log_id or start < self.earliest or end > self.latest:
            raise DataLoss("not there", start, self.earliest, self.latest, self.log_id)
        left = self.fails_after.pop(0) if self.fails_after else None
        for first in range(start, end, self.frame):
            rows = range(first, min(first + self.frame, end))
            if left is not None and left < len(rows):
                raise CollectorGone("it died", "fake", 1.0)
            left = None if left is None else left - len(rows)
            rows = [row for row in rows if row != self.leaves_out]
            if self.damaged[0] <= first < self.damaged[1]:
                raise Refused("segment 7 is damaged at byte 5.", "corrupt", self.damaged[1])
            if topics:
                rows = [row for row in rows if f"t{row % 2}".startswith(tuple(topics))]
            yield self._batch(rows or [first], partition).slice(0, len(rows))

    def close(self):
        pass

    def _ask(self, what):
        self.asked.append(what)
        if self.away:
            raise CollectorGone("no peer there", "fake", 0.1)
        if self.refuses:
            raise Refused("not now", self.refuses.pop(0))

    def _batch(self, rows, partition):
        times = [datetime.fromtimestamp(row, UTC) for row in rows]
        return pa.record_batch(
            [
                pa.nulls(len(rows), pa.binary()),
                pa.array([b"%d" % row for row in rows]),
                pa.array([f"t{row % 2}" for row in rows]),
                pa.array([partition] * len(rows), pa.int32()),
                pa.array(rows, pa.int64()),
                pa.array(times, FETCHED.field("timestamp").type),
                pa.array([0] * len(rows), pa.int32()),
                pa.array(times, FETCHED.field("timestamp").type),
                pa.array(["p"] * len(rows)),
                pa.array(rows, pa.int64()),
            ],
            schema=FETCHED,
        )


class Opener:
    """Finds logs by their address."""

    def __init__(self, **logs):
        self.logs = {f"tcp://{name}:1": log for name, log in logs.items()}

    def __call__(self, options, address, timeout, retries):
        return self.logs[address]

    def __hash__(self):
        return id(self)


def columns() -> StructType:
    return spark_schema(LOG_COLUMNS)


def options(*names, streaming=True, **given):
    endpoint = ",".join(f"tcp://{name}:1" for name in names or ("a",))
    texts = {name.replace("_", "."): str(value) for name, value in given.items()}
    texts = {"endpoint": endpoint, "collector.graceMs": "0", "fetch.timeoutMs": "10"} | texts
    return LogReadOptions.parse(texts, streaming=streaming)


def stream(opener, *names, **given):
    return StreamReader(options(*names, **given), columns(), opener)


def read_all(reader, partitions):
    """All rows of these partitions, and the record batches they came in."""
    batches = [batch for partition in partitions for batch in reader.read(partition)]
    return [row for batch in batches for row in batch.to_pylist()], batches


def at(offsets, name=A):
    return offsets["collectors"][name]["offset"]


def offsets_of(rows):
    return [row["offset"] for row in rows]


def run(reader, start, limit=None):
    """One batch: its end, and its rows."""
    limit = reader.getDefaultReadLimit() if limit is None else limit
    end = json.loads(json.dumps(reader.latestOffset(start, limit)))
    rows, _ = read_all(reader, reader.partitions(start, end))
    return end, rows
