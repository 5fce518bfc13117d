"""Collects the workers' results. python examples/sink.py [ENDPOINT]"""

import sys
import time

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5558") -> None:
    with zmq.Context() as context, context.socket(zmq.PULL) as results:
        results.bind(endpoint)
        expected, done, work_ms = None, 0, 0
        start = None
        while expected is None or done < expected:
            kind, number = results.recv_multipart()
            start = start or time.monotonic()
            if kind == b"expect":
                expected = int(number)
            else:
                done, work_ms = done + 1, work_ms + int(number)
        elapsed_ms = (time.monotonic() - start) * 1000
        print(f"{done} results, {work_ms} ms of work in {elapsed_ms:.0f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
