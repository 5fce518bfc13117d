"""The broker of lbbroker.py in an event loop. python examples/guide/lbbroker3.py [CLIENTS] [WORKERS]"""

import asyncio
import sys

from zeroxide.asyncio import Context
from zeroxide.constants import REQ
from zeroxide.patterns import AsyncSimplePirateQueue, AsyncSimplePirateWorker

FRONTEND, BACKEND = "inproc://clients", "inproc://workers"


async def ask(context: Context, name: str) -> None:
    with context.socket(REQ) as client:
        client.connect(FRONTEND)
        await client.send_string(f"Hello of {name}")
        print(f"{name}: {await client.recv_string()}", flush=True)


async def work(context: Context) -> None:
    async def answer(request: list[bytes]) -> bytes:
        return b"OK"

    async with AsyncSimplePirateWorker(BACKEND, context=context) as worker:
        await worker.run(answer)


async def serve(clients: int, workers: int) -> None:
    async with (
        Context() as context,
        AsyncSimplePirateQueue(FRONTEND, BACKEND, context=context) as queue,
    ):
        running = [asyncio.create_task(queue.run())]
        running += [asyncio.create_task(work(context)) for _ in range(workers)]
        await asyncio.gather(*(ask(context, f"client {n}") for n in range(1, clients + 1)))
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def main(clients: str = "10", workers: str = "3") -> None:
    asyncio.run(serve(int(clients), int(workers)))


if __name__ == "__main__":
    main(*sys.argv[1:])
