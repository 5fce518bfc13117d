"""Collects results, then stops the workers. python examples/guide/tasksink2.py [ENDPOINT] [CONTROL] [TASKS]

The sink is who knows that the batch is done, so it publishes KILL to however many workers there are.
"""

import sys
import time

import zeroxide as zmq


def main(
    endpoint: str = "tcp://127.0.0.1:5558",
    control: str = "tcp://127.0.0.1:5559",
    tasks: str = "100",
) -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.PUB) as commands,
        context.socket(zmq.PULL) as results,
    ):
        commands.bind(control)
        results.bind(endpoint)
        results.recv()  # the ventilator's "0", or a result that overtook it
        start = time.monotonic()
        for _ in range(int(tasks)):
            results.recv()
        print(f"{tasks} results in {(time.monotonic() - start) * 1000:.0f} ms")
        commands.send(b"KILL")
    # Nothing to sleep for: the context ends when KILL is out.


if __name__ == "__main__":
    main(*sys.argv[1:])
