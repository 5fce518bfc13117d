"""Fetches a map from a server, then applies its changes. python examples/guide/clonecli2.py [SNAPSHOTS] [UPDATES] [COUNT]

The client subscribes before it asks for the map. The map therefore has all changes that the subscription misses, and the client ignores
those that it gets twice. It ends after COUNT changes, or with Ctrl-C.
"""

import contextlib
import sys

from kvsimple import KeyValue

import zeroxide as zmq


def main(
    snapshots: str = "tcp://127.0.0.1:5556",
    updates: str = "tcp://127.0.0.1:5557",
    count: str = "inf",
) -> None:
    values: dict[str, KeyValue] = {}
    received = 0
    with (
        zmq.Context() as context,
        context.socket(zmq.SUB) as subscriber,
        context.socket(zmq.DEALER) as snapshot,
    ):
        snapshot.linger = 0
        subscriber.subscribe("")
        subscriber.connect(updates)
        snapshot.connect(snapshots)
        snapshot.send(b"ICANHAZ?")
        while (value := KeyValue.receive(snapshot)).key != "KTHXBAI":
            values[value.key] = value
        sequence = value.sequence
        print(f"received snapshot={sequence}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while received < float(count):
                update = KeyValue.receive(subscriber)
                if update.sequence > sequence:
                    sequence = update.sequence
                    values[update.key] = update
                    received += 1
    print(f"{received} messages in, {len(values)} keys")


if __name__ == "__main__":
    main(*sys.argv[1:])
