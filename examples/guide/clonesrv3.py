"""Publishes the changes of its clients, and sends the map to those who ask. python examples/guide/clonesrv3.py [SNAPSHOTS] [UPDATES] [CHANGES]

The server numbers the changes, so all clients see them in the same order. Ctrl-C ends the program.
"""

import contextlib
import sys

from kvsimple import KeyValue

import zeroxide as zmq


def main(
    snapshots: str = "tcp://127.0.0.1:5556",
    updates: str = "tcp://127.0.0.1:5557",
    changes: str = "tcp://127.0.0.1:5558",
) -> None:
    values: dict[str, KeyValue] = {}
    sequence = 0
    with (
        zmq.Context() as context,
        context.socket(zmq.ROUTER) as snapshot,
        context.socket(zmq.PUB) as publisher,
        context.socket(zmq.PULL) as collector,
        contextlib.suppress(KeyboardInterrupt),
    ):
        # A ROUTER drops messages for a peer whose queue is full, and a snapshot must fit.
        snapshot.sndhwm = 0
        snapshot.bind(snapshots)
        publisher.bind(updates)
        collector.bind(changes)
        poller = zmq.Poller()
        poller.register(collector, zmq.POLLIN)
        poller.register(snapshot, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if collector in ready:
                sequence += 1
                update = KeyValue.receive(collector)._replace(sequence=sequence)
                update.send(publisher)
                values[update.key] = update
                print(f"publishing update={sequence}", flush=True)
            if snapshot in ready:
                client, request = snapshot.recv_multipart()
                if request != b"ICANHAZ?":
                    continue
                for value in values.values():
                    value.send(snapshot, client)
                KeyValue("KTHXBAI", sequence, b"").send(snapshot, client)
                print(f"sending snapshot={sequence}", flush=True)
    print(f"{sequence} messages handled")


if __name__ == "__main__":
    main(*sys.argv[1:])
