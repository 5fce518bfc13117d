"""Keeps a copy of a map that a server publishes. python examples/guide/clonecli1.py [ENDPOINT] [UPDATES]

Without UPDATES, it runs until Ctrl-C.
"""

import contextlib
import sys

from kvsimple import KeyValue

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5556", updates: str = "inf") -> None:
    values: dict[str, KeyValue] = {}
    received = 0
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        subscriber.subscribe("")
        subscriber.connect(endpoint)
        with contextlib.suppress(KeyboardInterrupt):
            while received < float(updates):
                update = KeyValue.receive(subscriber)
                values[update.key] = update
                received += 1
    print(f"{received} messages in, {len(values)} keys")


if __name__ == "__main__":
    main(*sys.argv[1:])
