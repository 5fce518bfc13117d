"""Publishes made-up weather for a hundred postal codes. python examples/weather_publisher.py [ENDPOINT]

A publisher needs no subscribers: it drops messages without one, and a subscriber that joins late gets later messages.
"""

import random
import sys
import time

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5556") -> None:
    with zmq.Context() as context, context.socket(zmq.PUB) as publisher:
        publisher.bind(endpoint)
        while True:
            code = random.randint(10001, 10100)
            temperature, humidity = random.randint(-20, 40), random.randint(10, 90)
            publisher.send_string(f"{code} {temperature} {humidity}")
            time.sleep(0.001)


if __name__ == "__main__":
    main(*sys.argv[1:])
