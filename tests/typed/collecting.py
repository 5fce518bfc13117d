"""A collector and a client, as programs use them."""

from datetime import datetime
from pathlib import Path
from typing import assert_type

from zeroxide.pipeline import Client, Collector, CollectorGone, DataLoss


def collect(folder: Path) -> None:
    with Collector(folder, "tcp://127.0.0.1:*", retention_bytes=1 << 30) as collector:
        assert_type(collector.append([b"row", {"value": "row", "key": b"k"}]), tuple[int, int])
        assert_type(collector.endpoint, str)
        assert_type(collector.recovery.dropped_bytes, int)
        with Client(collector.endpoint, timeout=5) as client:
            info = client.info()
            assert_type(info.earliest, int)
            assert_type(info.last_received, datetime | None)
            try:
                for table in client.fetch_tables(info.earliest, info.latest, topics=["a"]):
                    assert_type(table.num_rows, int)
            except (DataLoss, CollectorGone) as error:
                print(error)
            for batch in client.fetch(info.earliest, info.latest):
                print(batch.num_rows)
            client.commit("group", info.latest)
            assert_type(client.groups(), dict[str, int])
