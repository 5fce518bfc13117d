"""Connects clients with the workers of services. python examples/guide/mdbroker.py [ENDPOINT]

Run mdworker.py, once or more often, and mdclient.py.
"""

import sys

from zeroxide.patterns import MajordomoBroker


def main(endpoint: str = "tcp://127.0.0.1:5555") -> None:
    with MajordomoBroker(endpoint) as broker:
        broker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
