"""Subscribes to envelopes with the topic B. python examples/guide/psenvsub.py [ENDPOINT]

A message is delivered with all its parts or not at all; the envelope decides.
"""

import sys

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5563") -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        subscriber.subscribe("B")
        subscriber.connect(endpoint)
        while True:
            envelope, body = subscriber.recv_multipart()
            print(f"[{envelope.decode()}] {body.decode()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
