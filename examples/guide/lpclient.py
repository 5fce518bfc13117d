"""Sends numbers to a server that may die, and gives up after three attempts. python examples/guide/lpclient.py [ENDPOINT] [REQUESTS]"""

import sys

from zeroxide.patterns import LazyPirateClient


def main(endpoint: str = "tcp://127.0.0.1:5555", requests: str = "10") -> None:
    with LazyPirateClient(endpoint) as client:
        for number in range(1, int(requests) + 1):
            [reply] = client.request(b"%d" % number)
            print(f"reply {reply.decode()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
