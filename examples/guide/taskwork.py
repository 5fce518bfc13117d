"""Does tasks as they arrive. python examples/guide/taskwork.py [VENTILATOR] [SINK]

Start any number of workers: more workers finish a batch sooner. One dot is one task. Ctrl-C ends a worker.
"""

import sys
import time

import zeroxide as zmq


def main(ventilator: str = "tcp://127.0.0.1:5557", sink: str = "tcp://127.0.0.1:5558") -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.PULL) as tasks,
        context.socket(zmq.PUSH) as results,
    ):
        results.connect(sink)
        tasks.connect(ventilator)
        while True:
            milliseconds = int(tasks.recv())
            time.sleep(milliseconds / 1000)
            results.send(b"")
            print(".", end="", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
