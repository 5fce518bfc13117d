"""Serves the numbers of what is watched to Prometheus."""

import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ...metrics import MetricsServer, Snapshot
from .targets import Watch

__all__ = ["export"]


def export(watch: Watch, address: tuple[str, int]) -> int:
    """Serves until a signal ends the command."""
    # Sockets answer one request at a time.
    lock = threading.Lock()

    def look() -> tuple[Sequence[Snapshot], Mapping[str, Mapping[str, Any]]]:
        with lock:
            watch.look()
            snapshots = [
                program.snapshot
                for program in watch.programs
                if program.snapshot is not None and not program.is_asked
            ]
            stats = {
                collector.endpoint: collector.stats
                for collector in watch.collectors
                if collector.stats is not None and collector.problem is None
            }
        return snapshots, stats

    with MetricsServer(*address, look) as server:
        print(f"metrics at {server.url}", file=sys.stderr, flush=True)
        threading.Event().wait()
    return 0
