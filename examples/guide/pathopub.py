"""Publishes on a thousand topics once, and then on one of them per second. python examples/guide/pathopub.py [ENDPOINT] [SECONDS]"""

import random
import sys
import time

import zeroxide as zmq

TOPICS = 1000


def main(endpoint: str = "tcp://127.0.0.1:5557", seconds: str = "1") -> None:
    with zmq.Context() as context, context.socket(zmq.PUB) as publisher:
        publisher.connect(endpoint)
        publisher.wait_subscribed(b"")
        for topic in range(TOPICS):
            publisher.send_multipart([b"%03d" % topic, b"Save Roger"])
        print(f"published on {TOPICS} topics", flush=True)
        while True:
            time.sleep(float(seconds))
            publisher.send_multipart([b"%03d" % random.randrange(TOPICS), b"Off with his head!"])


if __name__ == "__main__":
    main(*sys.argv[1:])
