"""Publishes the changes of its clients, and deletes values whose time is over. python examples/guide/clonesrv5.py [SNAPSHOTS] [UPDATES] [CHANGES]

Each socket has its own task in one event loop, and a third task looks at the times of all values once a second. Ctrl-C ends the program.
"""

import asyncio
import contextlib
import sys
import time

from kvmsg import KeyValue

import zeroxide as zmq
from zeroxide.asyncio import Context, Socket


class Server:
    def __init__(self, publisher: Socket) -> None:
        self.publisher = publisher
        self.values: dict[str, KeyValue] = {}
        self.sequence = 0

    async def send_snapshots(self, snapshots: Socket) -> None:
        while True:
            client, request, *subtree = await snapshots.recv_multipart()
            if request != b"ICANHAZ?" or len(subtree) != 1:
                continue
            # A copy: the other tasks change the map while this one waits for room.
            sequence, values = self.sequence, list(self.values.values())
            for value in values:
                if value.key.startswith(subtree[0].decode()):
                    await snapshots.send_multipart([client, *value.parts()])
            end = KeyValue("KTHXBAI", sequence, subtree[0])
            await snapshots.send_multipart([client, *end.parts()])
            print(f"sending snapshot={sequence}", flush=True)

    async def collect(self, changes: Socket) -> None:
        while True:
            update = KeyValue.of_parts(await changes.recv_multipart())
            print(f"publishing update={self.sequence + 1}", flush=True)
            await self.publish(update)
            if ttl := int(update.properties.get("ttl", 0)):
                update.properties["ttl"] = f"{(time.time() + ttl) * 1000:.0f}"

    async def delete_old(self) -> None:
        while True:
            await asyncio.sleep(1)
            for value in list(self.values.values()):
                end = int(value.properties.get("ttl", 0))
                if end and time.time() * 1000 >= end:
                    print(f"publishing delete={self.sequence + 1}", flush=True)
                    value.body = b""
                    await self.publish(value)

    async def publish(self, update: KeyValue) -> None:
        self.sequence += 1
        update.sequence = self.sequence
        update.store(self.values)
        await self.publisher.send_multipart(update.parts())


async def serve(snapshots: str, updates: str, changes: str) -> None:
    with (
        Context() as context,
        context.socket(zmq.ROUTER) as snapshot,
        context.socket(zmq.PUB) as publisher,
        context.socket(zmq.PULL) as collector,
    ):
        # A ROUTER drops messages for a peer whose queue is full, and a snapshot must fit.
        snapshot.sndhwm = 0
        snapshot.bind(snapshots)
        publisher.bind(updates)
        collector.bind(changes)
        server = Server(publisher)
        await asyncio.gather(
            server.send_snapshots(snapshot), server.collect(collector), server.delete_old()
        )


def main(
    snapshots: str = "tcp://127.0.0.1:5556",
    updates: str = "tcp://127.0.0.1:5557",
    changes: str = "tcp://127.0.0.1:5558",
) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(snapshots, updates, changes))


if __name__ == "__main__":
    main(*sys.argv[1:])
