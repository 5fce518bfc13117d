"""Sends prices to any number of subscribers at once. python examples/ticker.py publish [ENDPOINT], then

    python examples/ticker.py follow ACME 5 [ENDPOINT]

prints five prices, and the number of packets that could not be repaired. Each price travels the network once, however many
subscribers there are. Start some on several machines, with the same ENDPOINT on the interface of their network:
epgm://eth0;239.192.0.1:5558
"""

import random
import sys
import time

import zeroxide as zmq

ENDPOINT = "epgm://lo;239.192.0.1:5558"
RATE_KBIT_S = 10_000


def publish(endpoint: str = ENDPOINT) -> None:
    prices = {"ACME": 100.0, "INIT": 50.0}
    with zmq.Context() as context, context.socket(zmq.PUB) as pub:
        pub.rate = RATE_KBIT_S
        pub.bind(endpoint)
        while True:
            for name in prices:
                prices[name] *= random.uniform(0.99, 1.01)
                pub.send_multipart([name.encode(), b"%.2f" % prices[name]])
            time.sleep(0.01)


def follow(name: str, count: str, endpoint: str = ENDPOINT) -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as sub:
        sub.rate = RATE_KBIT_S
        sub.subscribe(name)
        sub.connect(endpoint)
        for _ in range(int(count)):
            print(*(part.decode() for part in sub.recv_multipart()), flush=True)
        print(f"{sub.stats()['dropped']['gap']} packets lost")


if __name__ == "__main__":
    {"publish": publish, "follow": follow}[sys.argv[1]](*sys.argv[2:])
