"""Our side of the pipeline: a collector in a process of its own, and its producer."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

import zeroxide

COLLECT = """
import sys
from zeroxide.pipeline import Collector
with Collector(sys.argv[1]) as collector:
    print(collector.endpoint, flush=True)
    sys.stdin.read()
"""

CHUNK_BYTES = 4 << 20
STEP_S = 0.01


class CollectorLog:
    """A running collector."""

    format = "zeromq"

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.options = {"endpoint": endpoint}

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[CollectorLog]:
        process = subprocess.Popen(
            [sys.executable, "-c", COLLECT, str(folder / "log")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            yield cls(process.stdout.readline().strip())
        finally:
            process.communicate()

    @staticmethod
    def settings() -> dict[str, str]:
        """The settings that Spark needs for this source."""
        return {}

    def fill(self, size: int, rows: int) -> float:
        """Sends rows; returns the seconds from the first call to the last acknowledgement."""
        chunk = max(1, min(rows, CHUNK_BYTES // size))
        table = values(size, chunk)
        with zeroxide.Producer(self.endpoint, timeout_s=None) as producer:
            began = time.perf_counter()
            for _ in range(rows // chunk):
                producer.send_arrow(table)
            if rows % chunk:
                producer.send_arrow(table.slice(0, rows % chunk))
            producer.flush()
            return time.perf_counter() - began

    def pace(self, size: int, rows: int, rate: int) -> None:
        """Sends `rate` rows per second, each with the time of sending."""
        value, step = bytes(size), round(rate * STEP_S)
        with zeroxide.Producer(self.endpoint, timeout_s=None) as producer:
            began = time.time()
            for at in range(0, rows, step):
                producer.send_batch([value] * step, timestamp=time.time())
                time.sleep(max(0.0, began + (at + step) / rate - time.time()))
            producer.flush()

    def ends(self, offsets: dict[str, Any]) -> dict[int, int]:
        """The offset of each partition in a checkpoint."""
        found = offsets["collectors"].values()
        return {position["partition"]: position["offset"] for position in found}


def values(size: int, rows: int) -> pa.Table:
    """A table of `rows` values of `size` bytes."""
    data = pa.py_buffer(bytes(range(256)) * (size * rows // 256 + 1))
    ends = pa.array(range(0, size * (rows + 1), size), pa.int32()).buffers()[1]
    return pa.table({"value": pa.BinaryArray.from_buffers(pa.binary(), rows, [None, ends, data])})
