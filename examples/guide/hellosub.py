"""Confirms the first HELLO, then counts updates. python examples/guide/hellosub.py [ENDPOINT] [CONFIRMATIONS]"""

import os
import sys

import zeroxide as zmq


def main(
    endpoint: str = "tcp://127.0.0.1:5561", confirmations: str = "tcp://127.0.0.1:5562"
) -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.SUB) as subscriber,
        context.socket(zmq.REQ) as confirm,
    ):
        subscriber.subscribe(b"")
        subscriber.connect(endpoint)
        confirm.connect(confirmations)

        assert subscriber.recv() == b"HELLO"
        confirm.send(b"%d" % os.getpid())
        confirm.recv()

        update = b"HELLO"
        while update == b"HELLO":  # more may still arrive
            update = subscriber.recv()
        count = 0
        while update != b"END":
            assert int(update) == count, "an update is missing"
            count += 1
            update = subscriber.recv()
        print(f"received {count} updates")


if __name__ == "__main__":
    main(*sys.argv[1:])
