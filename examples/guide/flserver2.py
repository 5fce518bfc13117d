"""One of several equal servers, model 2. python examples/guide/flserver2.py [ENDPOINT]"""

import sys

from zeroxide.patterns import ShotgunServer


def main(endpoint: str = "tcp://127.0.0.1:5555") -> None:
    with ShotgunServer(endpoint) as server:
        server.run(lambda request: request)


if __name__ == "__main__":
    main(*sys.argv[1:])
