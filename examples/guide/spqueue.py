"""Gives requests to workers that are ready, without heartbeats. python examples/guide/spqueue.py [CLIENTS] [WORKERS]

Run spworker.py more than once, and lpclient.py.
"""

import sys

from zeroxide.patterns import SimplePirateQueue


def main(clients: str = "tcp://127.0.0.1:5555", workers: str = "tcp://127.0.0.1:5556") -> None:
    with SimplePirateQueue(clients, workers) as queue:
        queue.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
