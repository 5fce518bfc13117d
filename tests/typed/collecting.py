"""A collector and a client, as programs use them."""

from datetime import datetime
from pathlib import Path
from typing import assert_type

import zeroxide.asyncio
from zeroxide.pipeline import Client, Collector, CollectorGone, DataLoss


def collect(folder: Path) -> None:
    with Collector(folder, "tcp://127.0.0.1:*", retention_bytes=1 << 30) as collector:
        assert_type(collector.append([b"row", {"value": "row", "key": b"k"}]), tuple[int, int])
        assert_type(collector.endpoint, str)
        assert_type(collector.recovery.dropped_bytes, int)
        with Client(collector.endpoint, timeout_s=5) as client:
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
            assert_type(client.commit("group", info.latest), int)
            assert_type(client.groups(), dict[str, int])


def follow(client: Client) -> None:
    with client.follow("topic", group="group", start="earliest", timeout_s=1) as rows:
        for row in rows:
            assert_type(row.value, bytes)
            assert_type(row.topic, str | None)
            assert_type(rows.commit(), int)
        for table in rows.tables():
            assert_type(table.num_rows, int)
    assert_type(client.committed("group"), int | None)
    assert_type(client.stats()["durable"], int)
    assert_type(client.stats()["groups"], dict[str, int])


async def follow_in_asyncio(endpoint: str) -> None:
    async with zeroxide.asyncio.Client(endpoint) as client:
        async with client.follow(["a", "b"], start=datetime.now()) as rows:
            async for row in rows:
                assert_type(row.offset, int)
                assert_type(await rows.commit(), int)
        assert_type((await client.info()).latest, int)


def secure(folder: Path) -> None:
    with Collector(
        folder,
        secret_key=b"x" * 40,
        allow=folder / "keys",
        framing="envelope",
        roles={"alice": ["produce"], "bob": {"roles": ["fetch"], "names": ["b-*"]}},
    ) as collector:
        assert_type(collector.stats()["state"], str)
