"""Keeps a copy of a part of a map, and adds values to it that have an end. python examples/guide/clonecli5.py [SNAPSHOTS] [UPDATES] [CHANGES] [COUNT] [EVERY_MS] [MAX_TTL]

The part is the keys that begin with SUBTREE. The client sends a change every EVERY_MS milliseconds, and stores it when the server has
published it. The server deletes the value after 0 to MAX_TTL - 1 seconds; 0 is never. The client ends after COUNT changes of any client, or with Ctrl-C.
"""

import contextlib
import random
import sys
import time

from kvmsg import KeyValue

import zeroxide as zmq

SUBTREE = "/client/"


def main(
    snapshots: str = "tcp://127.0.0.1:5556",
    updates: str = "tcp://127.0.0.1:5557",
    changes: str = "tcp://127.0.0.1:5558",
    count: str = "inf",
    every: str = "1000",
    max_ttl: str = "30",
) -> None:
    values: dict[str, KeyValue] = {}
    received = 0
    with (
        zmq.Context() as context,
        context.socket(zmq.SUB) as subscriber,
        context.socket(zmq.DEALER) as snapshot,
        context.socket(zmq.PUSH) as publisher,
        contextlib.suppress(KeyboardInterrupt),
    ):
        snapshot.linger = publisher.linger = 0
        subscriber.subscribe(SUBTREE)
        subscriber.connect(updates)
        publisher.connect(changes)
        snapshot.connect(snapshots)
        snapshot.send_multipart([b"ICANHAZ?", SUBTREE.encode()])
        while (value := KeyValue.of_parts(snapshot.recv_multipart())).key != "KTHXBAI":
            value.store(values)
        sequence = value.sequence
        print(f"received snapshot={sequence}, {len(values)} keys", flush=True)
        next_change = time.monotonic()
        while received < float(count):
            if subscriber.poll(max(0, next_change - time.monotonic()) * 1000):
                update = KeyValue.of_parts(subscriber.recv_multipart())
                if update.sequence > sequence:
                    sequence = update.sequence
                    update.store(values)
                    received += 1
                    print(f"received update={sequence}", flush=True)
            if time.monotonic() >= next_change:
                key, body = random.randrange(10_000), random.randrange(1_000_000)
                ttl = {"ttl": f"{random.randrange(int(max_ttl))}"}
                change = KeyValue(f"{SUBTREE}{key}", 0, b"%d" % body, ttl)
                publisher.send_multipart(change.parts())
                next_change += int(every) / 1000
    print(f"{received} messages in, {len(values)} keys")


if __name__ == "__main__":
    main(*sys.argv[1:])
