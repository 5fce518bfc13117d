"""Answers requests to the service echo. python examples/guide/mdworker.py [ENDPOINT]"""

import sys

from zeroxide.patterns import MajordomoRequest, MajordomoWorker


def answer(request: MajordomoRequest) -> list[bytes]:
    return request.parts


def main(endpoint: str = "tcp://127.0.0.1:5555") -> None:
    with MajordomoWorker(endpoint, "echo") as worker:
        worker.run(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
