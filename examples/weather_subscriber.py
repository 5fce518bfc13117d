"""Averages the temperature of one postal code. python examples/weather_subscriber.py [ENDPOINT] [CODE] [UPDATES]

The subscription is a prefix of the message, and the publisher filters: other codes never cross the network.
"""

import sys

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5556", code: str = "10001", updates: str = "20") -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        subscriber.connect(endpoint)
        subscriber.subscribe(f"{code} ")
        temperatures = [int(subscriber.recv_string().split()[1]) for _ in range(int(updates))]
        average = sum(temperatures) / len(temperatures)
        print(f"{code}: {average:.1f} degrees on average of {len(temperatures)} updates")


if __name__ == "__main__":
    main(*sys.argv[1:])
