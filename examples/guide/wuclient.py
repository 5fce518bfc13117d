"""Averages a hundred updates for one postal code. python examples/guide/wuclient.py [ENDPOINT] [CODE] [UPDATES]

A subscription is a prefix of the message. With the space at its end, "10001 " does not match 100010.
"""

import sys

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5556", code: str = "10001", updates: str = "100") -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        subscriber.subscribe(f"{code} ")
        subscriber.connect(endpoint)
        total = 0
        for _ in range(int(updates)):
            seen, temperature, _humidity = subscriber.recv_string().split()
            assert seen == code, f"not subscribed to {seen}"
            total += int(temperature)
        print(f"{code}: {total / int(updates):.1f} degrees on average of {updates} updates")


if __name__ == "__main__":
    main(*sys.argv[1:])
