"""Sends requests to the service echo, ten at a time. python examples/guide/mdclient2.py [ENDPOINT] [REQUESTS]

A client has one request at a time, so there are ten of them.
"""

import asyncio
import sys

from zeroxide.patterns import AsyncMajordomoClient

CLIENTS = 10


async def ask(endpoint: str, numbers: range) -> int:
    async with AsyncMajordomoClient(endpoint) as client:
        for number in numbers:
            assert await client.request("echo", b"%d" % number) == [b"%d" % number]
    return len(numbers)


async def ask_all(endpoint: str, requests: int) -> int:
    shares = [range(start, requests, CLIENTS) for start in range(CLIENTS)]
    return sum(await asyncio.gather(*(ask(endpoint, share) for share in shares)))


def main(endpoint: str = "tcp://127.0.0.1:5555", requests: str = "1000") -> None:
    print(f"{asyncio.run(ask_all(endpoint, int(requests)))} replies")


if __name__ == "__main__":
    main(*sys.argv[1:])
