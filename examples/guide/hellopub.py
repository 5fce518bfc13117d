"""Sends HELLO until every subscriber has confirmed, then publishes. python examples/guide/hellopub.py

[ENDPOINT] [CONFIRMATIONS] [SUBSCRIBERS] [UPDATES]

A more robust start than that of syncpub.py, which uses only messages: a subscriber that confirms a HELLO has received
one, so its subscription is in place. hellosub.py is the other half.
"""

import sys

import zeroxide as zmq


def main(
    endpoint: str = "tcp://127.0.0.1:5561",
    confirmations: str = "tcp://127.0.0.1:5562",
    subscribers: str = "10",
    updates: str = "500",
) -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.PUB) as publisher,
        context.socket(zmq.REP) as confirm,
    ):
        publisher.sndhwm = (
            int(updates) + 1000
        )  # no update may be dropped, even for a slow subscriber
        publisher.bind(endpoint)
        confirm.bind(confirmations)
        confirmed: set[bytes] = set()
        while len(confirmed) < int(subscribers):
            publisher.send(b"HELLO")
            if confirm.poll(10):
                confirmed.add(confirm.recv())
                confirm.send(b"")
        for number in range(int(updates)):
            publisher.send(b"%d" % number)
        publisher.send(b"END")
        print(f"{len(confirmed)} subscribers confirmed, {updates} updates published")


if __name__ == "__main__":
    main(*sys.argv[1:])
