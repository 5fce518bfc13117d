"""Replies to requests that a broker forwards. python examples/guide/rrworker.py [BROKER] [WORK_MS]

The server connects instead of binding, so there can be many servers, which start and stop at any time.
"""

import sys
import time

import zeroxide as zmq


def main(broker: str = "tcp://127.0.0.1:5560", work_ms: str = "1000") -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as worker:
        worker.connect(broker)
        while True:
            print(f"received {worker.recv_string()}", flush=True)
            time.sleep(int(work_ms) / 1000)
            worker.send_string("World")


if __name__ == "__main__":
    main(*sys.argv[1:])
