"""Reads from two sockets by trying one after the other. python examples/guide/msreader.py [TASKS] [WEATHER]

This is how not to do it: it sleeps when there is no message, so each first message waits up to a millisecond, and an
idle program wakes up a thousand times per second. mspoller.py does the same properly.
"""

import sys
import time

import zeroxide as zmq


def main(ventilator: str = "tcp://127.0.0.1:5557", weather: str = "tcp://127.0.0.1:5556") -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.PULL) as tasks,
        context.socket(zmq.SUB) as updates,
    ):
        tasks.connect(ventilator)
        updates.subscribe("10001 ")
        updates.connect(weather)
        while True:
            if drain(tasks, "task") + drain(updates, "update") == 0:
                time.sleep(0.001)


def drain(socket: zmq.Socket, what: str) -> int:
    """Receives all waiting messages and returns their number."""
    count = 0
    while True:
        try:
            message = socket.recv_string(zmq.NOBLOCK)
        except zmq.Again:
            return count
        print(f"{what} {message}", flush=True)
        count += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
