"""Subscribes to one of a thousand topics, and prints the first message. python examples/guide/pathosub.py [ENDPOINT]"""

import random
import sys

import zeroxide as zmq

TOPICS = 1000


def main(endpoint: str = "tcp://127.0.0.1:5558") -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        topic = b"%03d" % random.randrange(TOPICS)
        subscriber.subscribe(topic)
        subscriber.connect(endpoint)
        received, text = subscriber.recv_multipart()
        assert received == topic
        print(text.decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
