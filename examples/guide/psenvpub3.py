"""Publishes in envelopes with the sender's address. python examples/guide/psenvpub3.py [ENDPOINT] [ANSWERS] [INTERVAL_MS]

A message has three parts: the topic, the sender's address, and the body. Subscriptions are compared with the topic. A
subscriber can reply to the address over a socket of another type.
"""

import sys

import zeroxide as zmq


def main(
    endpoint: str = "tcp://127.0.0.1:5563",
    answers: str = "tcp://127.0.0.1:5564",
    interval_ms: str = "1000",
) -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.PUB) as publisher,
        context.socket(zmq.PULL) as mailbox,
    ):
        publisher.bind(endpoint)
        mailbox.bind(answers)
        number = 0
        while True:
            number += 1
            publisher.send_multipart([b"price", answers.encode(), b"%d" % number])
            if mailbox.poll(int(interval_ms)):
                print(f"answer: {mailbox.recv_string()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
