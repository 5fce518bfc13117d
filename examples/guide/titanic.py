"""Stores requests on the disk until their service replies. python examples/guide/titanic.py [ENDPOINT] [FOLDER]

Run mdbroker.py, this program, mdworker.py and ticlient.py, and kill all but the last one at any time.
"""

import sys

from zeroxide.patterns import TitanicServer


def main(endpoint: str = "tcp://127.0.0.1:5555", folder: str = ".titanic") -> None:
    with TitanicServer(endpoint, folder) as server:
        server.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
