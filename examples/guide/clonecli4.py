"""Keeps a copy of a part of a map, and changes it. python examples/guide/clonecli4.py [SNAPSHOTS] [UPDATES] [CHANGES] [COUNT] [EVERY_MS]

The part is the keys that begin with SUBTREE. The client sends a change every EVERY_MS milliseconds, and stores it when the server has
published it. It ends after COUNT changes of any client, or with Ctrl-C.
"""

import contextlib
import random
import sys
import time

from kvsimple import KeyValue

import zeroxide as zmq

SUBTREE = "/client/"


def main(
    snapshots: str = "tcp://127.0.0.1:5556",
    updates: str = "tcp://127.0.0.1:5557",
    changes: str = "tcp://127.0.0.1:5558",
    count: str = "inf",
    every: str = "1000",
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
        while (value := KeyValue.receive(snapshot)).key != "KTHXBAI":
            values[value.key] = value
        sequence = value.sequence
        print(f"received snapshot={sequence}, {len(values)} keys", flush=True)
        next_change = time.monotonic()
        while received < float(count):
            if subscriber.poll(max(0, next_change - time.monotonic()) * 1000):
                update = KeyValue.receive(subscriber)
                if update.sequence > sequence:
                    sequence = update.sequence
                    values[update.key] = update
                    received += 1
                    print(f"received update={sequence}", flush=True)
            if time.monotonic() >= next_change:
                key, body = random.randrange(10_000), random.randrange(1_000_000)
                KeyValue(f"{SUBTREE}{key}", 0, b"%d" % body).send(publisher)
                next_change += int(every) / 1000
    print(f"{received} messages in, {len(values)} keys")


if __name__ == "__main__":
    main(*sys.argv[1:])
