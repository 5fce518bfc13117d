"""Producers, as programs use them."""

import asyncio
from typing import assert_type

import zeroxide
import zeroxide.asyncio


def told(delivery: object) -> None:
    print(delivery)


def produce() -> None:
    with zeroxide.Producer(
        ["tcp://a:5555", "tcp://b:5555"], name="p", linger_ms=3, on_delivery=told
    ) as producer:
        assert_type(producer, zeroxide.Producer)
        producer.send(b"value", key="key", topic="topic", headers={"a": b"b"})
        assert_type(producer.send_batch(["a", {"value": b"b"}]), int)
        producer.flush(10)
        assert_type(producer.closed, bool)


async def produce_async() -> None:
    async with zeroxide.asyncio.Producer("tcp://a:5555", linger_ms=3) as producer:
        delivery = await producer.send(b"value")
        receipt = await delivery
        assert_type(receipt.offset, int | None)
        assert_type((await producer.send_and_wait(b"value")).offset, int | None)
        assert_type(producer.stats()["collectors"]["tcp://a:5555"]["connected"], bool)
        await producer.flush()


if __name__ == "__main__":
    produce()
    asyncio.run(produce_async())
