"""Asks a broker whether it has workers for a service. python examples/guide/mmiecho.py [ENDPOINT] [SERVICE]"""

import sys

from zeroxide.patterns import MajordomoClient


def main(endpoint: str = "tcp://127.0.0.1:5555", service: str = "echo") -> None:
    with MajordomoClient(endpoint) as client:
        print(f"{service}: {'there are' if client.has_service(service) else 'no'} workers")


if __name__ == "__main__":
    main(*sys.argv[1:])
