"""Sends requests to the active one of two servers. python examples/guide/bstarcli.py [PRIMARY] [BACKUP] [REQUESTS]"""

import sys

from zeroxide.patterns import BinaryStarClient


def main(
    primary: str = "tcp://127.0.0.1:5001",
    backup: str = "tcp://127.0.0.1:5002",
    requests: str = "10",
) -> None:
    with BinaryStarClient([primary, backup]) as client:
        for number in range(1, int(requests) + 1):
            server, reply = client.request(b"%d" % number)
            print(f"reply {reply.decode()} of the {server.decode()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
