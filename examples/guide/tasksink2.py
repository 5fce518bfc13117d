"""Collects results, then stops the workers. python examples/guide/tasksink2.py [ENDPOINT] [CONTROL] [TASKS]

Only the sink knows when the batch is done, so it publishes KILL to all workers.
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
    # No need to sleep: the context waits until KILL is sent.


if __name__ == "__main__":
    main(*sys.argv[1:])
