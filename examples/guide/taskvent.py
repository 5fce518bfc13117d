"""Distributes a hundred tasks of 1 to 100 ms. python examples/guide/taskvent.py

[ENDPOINT] [SINK] [TASKS] [LONGEST_MS] [WORKERS]

Start the sink and some workers, then press Enter here: the workers that are connected by then get a share. With the
number of workers as an argument, it starts automatically. Start it again for another batch: the workers reconnect.
"""

import random
import sys

import zeroxide as zmq


def main(
    endpoint: str = "tcp://127.0.0.1:5557",
    sink: str = "tcp://127.0.0.1:5558",
    tasks: str = "100",
    longest_ms: str = "100",
    workers_expected: str = "0",
) -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.PUSH) as workers,
        context.socket(zmq.PUSH) as start,
    ):
        workers.bind(endpoint)
        start.connect(sink)
        if int(workers_expected):
            # With pyzmq, the program cannot find out whether the workers are connected.
            start.wait_connected()
            workers.wait_connected(count=int(workers_expected))
        else:
            input("Press Enter when the workers are ready: ")
        start.send(b"0")
        work = [random.randint(1, int(longest_ms)) for _ in range(int(tasks))]
        for milliseconds in work:
            workers.send(b"%d" % milliseconds)
        print(f"{sum(work)} ms of work in {tasks} tasks")


if __name__ == "__main__":
    main(*sys.argv[1:])
