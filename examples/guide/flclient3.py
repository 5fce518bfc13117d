"""Asks several equal servers, one that lives. python examples/guide/flclient3.py [ENDPOINT...]"""

import sys

from zeroxide.patterns import FreelanceClient


def main(*endpoints: str) -> None:
    with FreelanceClient(endpoints or ["tcp://127.0.0.1:5555"]) as client:
        for number in range(1, 11):
            [reply] = client.request(b"%d" % number)
            print(f"reply {reply.decode()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
