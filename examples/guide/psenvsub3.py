"""Replies to the sender of each update. python examples/guide/psenvsub3.py [PUBLISHER]...

Subscribes to any number of publishers with one socket, and distinguishes them by the address in the envelope.
"""

import sys

import zeroxide as zmq


def main(*publishers: str) -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        subscriber.subscribe("price")
        for publisher in publishers or ["tcp://127.0.0.1:5563"]:
            subscriber.connect(publisher)
        while True:
            _topic, sender, body = subscriber.recv_multipart()
            print(f"{body.decode()} from {sender.decode()}", flush=True)
            # Closing does not discard the reply: it is sent in the background.
            with context.socket(zmq.PUSH) as answer:
                answer.connect(sender.decode())
                answer.send(b"thanks for " + body)


if __name__ == "__main__":
    main(*sys.argv[1:])
