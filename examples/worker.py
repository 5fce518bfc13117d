"""Does the ventilator's tasks and reports to the sink. python examples/worker.py [VENTILATOR] [SINK]

Start any number of workers; stop one with Ctrl-C.
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
        tasks.connect(ventilator)
        results.connect(sink)
        print("ready", flush=True)
        while True:
            milliseconds = tasks.recv_string()
            time.sleep(int(milliseconds) / 1000)
            results.send_multipart([b"done", milliseconds.encode()])


if __name__ == "__main__":
    main(*sys.argv[1:])
