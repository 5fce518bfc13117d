"""Carries the weather into another network. python examples/guide/wuproxy.py [PUBLISHER] [SUBSCRIBERS]

Connects to the publisher on one side, and binds for subscribers on the other. Subscriptions travel through it to
the publisher, so that only messages with a subscriber pass through it.
"""

import sys

import zeroxide as zmq


def main(
    publisher: str = "tcp://127.0.0.1:5556", subscribers: str = "tcp://127.0.0.1:8100"
) -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.XSUB) as inside,
        context.socket(zmq.XPUB) as outside,
    ):
        inside.connect(publisher)
        outside.bind(subscribers)
        zmq.proxy(inside, outside)


if __name__ == "__main__":
    main(*sys.argv[1:])
