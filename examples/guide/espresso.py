"""Shows what passes through a proxy. python examples/guide/espresso.py [MESSAGES]

A proxy gives a copy of each message to a third socket: publications on their way to the subscriber, and the subscriber's
subscriptions on their way to the publisher.
"""

import contextlib
import random
import string
import sys
import threading

import zeroxide as zmq

PUBLISHERS, SUBSCRIBERS, CAPTURE = "inproc://publishers", "inproc://subscribers", "inproc://capture"


def publish(context: zmq.Context) -> None:
    with context.socket(zmq.PUB) as publisher:
        publisher.connect(PUBLISHERS)
        with contextlib.suppress(zmq.ContextTerminated):
            while publisher.poll(1, zmq.POLLOUT):
                publisher.send_string(random.choice(string.ascii_uppercase[:5]))


def pass_on(context: zmq.Context) -> None:
    with (
        context.socket(zmq.XSUB) as publishers,
        context.socket(zmq.XPUB) as subscribers,
        context.socket(zmq.PAIR) as capture,
    ):
        publishers.bind(PUBLISHERS)
        subscribers.bind(SUBSCRIBERS)
        capture.connect(CAPTURE)
        with contextlib.suppress(zmq.ContextTerminated):
            zmq.proxy(publishers, subscribers, capture)


def main(messages: str = "20") -> None:
    context = zmq.Context()
    with context.socket(zmq.PAIR) as capture, context.socket(zmq.SUB) as subscriber:
        capture.bind(CAPTURE)
        threads = [threading.Thread(target=run, args=(context,)) for run in (pass_on, publish)]
        for thread in threads:
            thread.start()
        for topic in ("A", "B"):
            subscriber.subscribe(topic)
        subscriber.connect(SUBSCRIBERS)
        for _ in range(int(messages)):
            message = capture.recv()
            subscribed = message[:1] == b"\x01"
            print(f"{'subscription' if subscribed else 'update'} {message[subscribed:].decode()}")
    context.term()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
