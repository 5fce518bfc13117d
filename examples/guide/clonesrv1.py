"""Publishes random changes of a map as fast as it can. python examples/guide/clonesrv1.py [ENDPOINT]

Ctrl-C ends it. Start clonecli1.py before: a client that joins later lacks what was published until then.
"""

import contextlib
import random
import sys

from kvsimple import KeyValue

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5556") -> None:
    values: dict[str, KeyValue] = {}
    sequence = 0
    with zmq.Context() as context, context.socket(zmq.PUB) as publisher:
        publisher.bind(endpoint)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                sequence += 1
                key, body = random.randrange(10_000), random.randrange(1_000_000)
                update = KeyValue(f"{key}", sequence, b"%d" % body)
                update.send(publisher)
                values[update.key] = update
    print(f"{sequence} messages out")


if __name__ == "__main__":
    main(*sys.argv[1:])
