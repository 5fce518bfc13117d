"""Publishes random changes of a map, and sends the map to those who ask. python examples/guide/clonesrv2.py [SNAPSHOTS] [UPDATES]

The main thread publishes as fast as it can. A second thread keeps the map, and receives each change over PAIR sockets. Ctrl-C ends the program.
"""

import contextlib
import random
import sys
import threading

from kvsimple import KeyValue

import zeroxide as zmq

PIPE = "inproc://changes"


def keep_map(context: zmq.Context, endpoint: str) -> None:
    values: dict[str, KeyValue] = {}
    sequence = 0
    with context.socket(zmq.PAIR) as changes, context.socket(zmq.ROUTER) as snapshots:
        changes.connect(PIPE)
        # A ROUTER drops messages for a peer whose queue is full, and a snapshot must fit.
        snapshots.sndhwm = 0
        snapshots.bind(endpoint)
        poller = zmq.Poller()
        poller.register(changes, zmq.POLLIN)
        poller.register(snapshots, zmq.POLLIN)
        changes.send(b"READY")
        with contextlib.suppress(zmq.ContextTerminated):
            while True:
                ready = dict(poller.poll())
                if changes in ready:
                    change = KeyValue.receive(changes)
                    sequence = change.sequence
                    values[change.key] = change
                if snapshots in ready:
                    client, request = snapshots.recv_multipart()
                    if request != b"ICANHAZ?":
                        continue
                    for value in values.values():
                        value.send(snapshots, client)
                    KeyValue("KTHXBAI", sequence, b"").send(snapshots, client)
                    print(f"sent snapshot={sequence}", flush=True)


def main(snapshots: str = "tcp://127.0.0.1:5556", updates: str = "tcp://127.0.0.1:5557") -> None:
    sequence = 0
    context = zmq.Context()
    with context.socket(zmq.PUB) as publisher, context.socket(zmq.PAIR) as changes:
        changes.bind(PIPE)
        publisher.bind(updates)
        keeper = threading.Thread(target=keep_map, args=(context, snapshots))
        keeper.start()
        changes.recv()
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                key, body = random.randrange(10_000), random.randrange(1_000_000)
                update = KeyValue(f"{key}", sequence + 1, b"%d" % body)
                update.send(publisher)
                update.send(changes)
                sequence += 1
    context.term()
    keeper.join()
    print(f"{sequence} messages out")


if __name__ == "__main__":
    main(*sys.argv[1:])
