"""Publishes messages in envelopes. python examples/guide/psenvpub.py [ENDPOINT] [INTERVAL_MS]

The envelope is a separate part in front of the body. Subscriptions are compared only with the envelope, so they cannot
match the body by accident.
"""

import sys
import time

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5563", interval_ms: str = "1000") -> None:
    with zmq.Context() as context, context.socket(zmq.PUB) as publisher:
        publisher.bind(endpoint)
        while True:
            publisher.send_multipart([b"A", b"B is not what this is about"])
            publisher.send_multipart([b"B", b"this one was asked for"])
            time.sleep(int(interval_ms) / 1000)


if __name__ == "__main__":
    main(*sys.argv[1:])
