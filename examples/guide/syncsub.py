"""Reports to the publisher, then counts its updates. python examples/guide/syncsub.py [ENDPOINT] [READINESS]

for i in 1 2 3 4 5 6 7 8 9 10; do python examples/guide/syncsub.py & done; python examples/guide/syncpub.py; wait
"""

import sys

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5561", readiness: str = "tcp://127.0.0.1:5562") -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.SUB) as subscriber,
        context.socket(zmq.REQ) as ready,
    ):
        subscriber.subscribe(b"")
        subscriber.connect(endpoint)
        ready.connect(readiness)
        ready.send(b"")
        ready.recv()

        count = 0
        while subscriber.recv() != b"END":
            count += 1
        print(f"received {count} updates")


if __name__ == "__main__":
    main(*sys.argv[1:])
