"""Answers requests of ppqueue.py. python examples/guide/ppworker.py [ENDPOINT]"""

import sys

from zeroxide.patterns import ParanoidPirateWorker


def answer(request: list[bytes]) -> list[bytes]:
    print("received", b" ".join(request).decode(), flush=True)
    return request


def main(endpoint: str = "tcp://127.0.0.1:5556") -> None:
    with ParanoidPirateWorker(endpoint) as worker:
        worker.run(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
