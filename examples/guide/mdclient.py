"""Sends requests to the service echo, one after the other. python examples/guide/mdclient.py [ENDPOINT] [REQUESTS]"""

import sys

from zeroxide.patterns import MajordomoClient


def main(endpoint: str = "tcp://127.0.0.1:5555", requests: str = "1000") -> None:
    with MajordomoClient(endpoint) as client:
        for number in range(int(requests)):
            assert client.request("echo", b"%d" % number) == [b"%d" % number]
    print(f"{requests} replies")


if __name__ == "__main__":
    main(*sys.argv[1:])
