"""Waits for ten subscribers, then publishes a million updates. python examples/guide/syncpub.py

[ENDPOINT] [READINESS] [SUBSCRIBERS] [UPDATES]

A publisher drops messages that have no subscriber yet, so the subscribers first report over sockets of another type.
After that, no update is lost, because the queue to each subscriber has room for all of them.
"""

import sys

import zeroxide as zmq


def main(
    endpoint: str = "tcp://127.0.0.1:5561",
    readiness: str = "tcp://127.0.0.1:5562",
    subscribers: str = "10",
    updates: str = "1000000",
) -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.PUB) as publisher,
        context.socket(zmq.REP) as ready,
    ):
        publisher.sndhwm = 1_100_000
        publisher.bind(endpoint)
        ready.bind(readiness)

        print(f"waiting for {subscribers} subscribers", flush=True)
        for _ in range(int(subscribers)):
            ready.recv()
            ready.send(b"")
        # A report arrives on one connection and the subscription on another, and either may be first. A PUB of pyzmq
        # cannot wait for subscriptions, so its subscribers have to sleep; hellopub.py uses only messages.
        publisher.wait_subscribed(b"", int(subscribers))

        for _ in range(int(updates)):
            publisher.send(b"Rhubarb")
        publisher.send(b"END")
        print(f"published {updates} updates")
    # The context waits until every message is sent.


if __name__ == "__main__":
    main(*sys.argv[1:])
