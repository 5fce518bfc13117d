"""Answers requests of spqueue.py. python examples/guide/spworker.py [ENDPOINT]"""

import sys

from zeroxide.patterns import SimplePirateWorker


def answer(request: list[bytes]) -> list[bytes]:
    print("received", b" ".join(request).decode(), flush=True)
    return request


def main(endpoint: str = "tcp://127.0.0.1:5556") -> None:
    with SimplePirateWorker(endpoint) as worker:
        worker.run(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
