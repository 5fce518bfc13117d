"""Reads from two sockets with a poller. python examples/guide/mspoller.py [TASKS] [WEATHER]

It sleeps until a message arrives, wakes up at once, and takes one message from each ready socket in turn, so that a
busy socket cannot starve the other.
"""

import sys

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

        poller = zmq.Poller()
        poller.register(tasks, zmq.POLLIN)
        poller.register(updates, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if tasks in ready:
                print(f"task {tasks.recv_string()}", flush=True)
            if updates in ready:
                print(f"update {updates.recv_string()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
