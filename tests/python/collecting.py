"""Collectors in separate processes, and the contents of logs."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import lasting_endpoint

SERVE = """
import sys
from zeroxide.pipeline import Collector
collector = Collector(sys.argv[1], sys.argv[2])
print(collector.endpoint, flush=True)
sys.stdin.read()
collector.close()
"""


class Process:
    """A collector that can be killed and restarted at the same address."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.endpoint = lasting_endpoint()
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(self.directory), self.endpoint],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.endpoint = self._process.stdout.readline().strip()
        assert self.endpoint, "the collector did not start"
        return self.endpoint

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop_for_now(self) -> None:
        """Stops the process: it answers no requests, but its connections stay open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        # Until all of its threads are stopped.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@contextmanager
def process(directory: Path) -> Iterator[Process]:
    """A collector in a separate process."""
    collector = Process(directory)
    collector.start()
    try:
        yield collector
    finally:
        collector.kill()


def fetch(endpoint: str, **options: Any) -> Any:
    """Everything in a log, as a pyarrow.Table."""
    import pyarrow

    from zeroxide.pipeline import Client

    client = Client(endpoint)
    info = client.info()
    batches = list(client.fetch(info.earliest, info.latest, **options))
    table = pyarrow.Table.from_batches(batches) if batches else None
    if table is not None:
        assert table["offset"].to_pylist() == list(range(info.earliest, info.latest))
    return table


def values(endpoint: str) -> list[bytes]:
    """The values of everything in a log."""
    table = fetch(endpoint)
    return [] if table is None else table["value"].to_pylist()


def seqs(endpoint: str) -> list[int]:
    """The sequence numbers of everything in a log."""
    table = fetch(endpoint)
    return [] if table is None else table["seq"].to_pylist()


def crc32c(data: bytes) -> int:
    """The checksum of a log's files (RFC 3720, appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def durable_mark(offset: int) -> bytes:
    """The contents of the file `durable`."""
    digits = b"%020d" % offset
    return b"%s %08x\n" % (digits, crc32c(digits))
