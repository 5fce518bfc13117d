"""Gives requests to workers that are ready, with heartbeats. python examples/guide/ppqueue.py [CLIENTS] [WORKERS]

Run ppworker.py more than once, and lpclient.py.
"""

import sys

from zeroxide.patterns import ParanoidPirateQueue


def main(clients: str = "tcp://127.0.0.1:5555", workers: str = "tcp://127.0.0.1:5556") -> None:
    with ParanoidPirateQueue(clients, workers) as queue:
        queue.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
