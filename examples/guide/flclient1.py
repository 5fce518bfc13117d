"""Asks several equal servers, one after the other. python examples/guide/flclient1.py [ENDPOINT...]"""

import sys

from zeroxide.patterns import FailoverClient


def main(*endpoints: str) -> None:
    with FailoverClient(endpoints or ["tcp://127.0.0.1:5555"]) as client:
        for number in range(1, 11):
            [reply] = client.request(b"%d" % number)
            print(f"reply {reply.decode()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
