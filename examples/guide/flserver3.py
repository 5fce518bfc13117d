"""One of several equal servers, model 3. python examples/guide/flserver3.py [ENDPOINT]"""

import sys

from zeroxide.patterns import FreelanceServer


def main(endpoint: str = "tcp://127.0.0.1:5555") -> None:
    with FreelanceServer(endpoint) as server:
        server.run(lambda request: request)


if __name__ == "__main__":
    main(*sys.argv[1:])
