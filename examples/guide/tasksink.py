"""Collects results and prints how long the batch took. python examples/guide/tasksink.py [ENDPOINT] [TASKS]"""

import sys
import time

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5558", tasks: str = "100") -> None:
    with zmq.Context() as context, context.socket(zmq.PULL) as results:
        results.bind(endpoint)
        results.recv()  # the ventilator's "0"; a quick result may overtake it, which does not change the count
        start = time.monotonic()
        for _ in range(int(tasks)):
            results.recv()
        print(f"{tasks} results in {(time.monotonic() - start) * 1000:.0f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
