"""Publishes weather updates as fast as it can. python examples/guide/wuserver.py [ENDPOINT] [FIRST_CODE] [CODES]

It does not need to know its subscribers: messages without a subscriber are dropped here, before they reach the network.
"""

import random
import sys

import zeroxide as zmq


def main(
    endpoint: str = "tcp://127.0.0.1:5556", first_code: str = "0", codes: str = "100000"
) -> None:
    with zmq.Context() as context, context.socket(zmq.PUB) as publisher:
        publisher.bind(endpoint)
        while True:
            code = int(first_code) + random.randrange(int(codes))
            temperature, humidity = random.randint(-30, 45), random.randint(10, 90)
            publisher.send_string(f"{code:05d} {temperature} {humidity}")


if __name__ == "__main__":
    main(*sys.argv[1:])
