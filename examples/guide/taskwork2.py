"""A worker that stops on a message. python examples/guide/taskwork2.py [VENTILATOR] [SINK] [CONTROL]

Tasks arrive on one socket and KILL on another: a new kind of message gets its own socket, and a poller watches both.
tasksink2.py sends the KILL.
"""

import sys
import time

import zeroxide as zmq


def main(
    ventilator: str = "tcp://127.0.0.1:5557",
    sink: str = "tcp://127.0.0.1:5558",
    control: str = "tcp://127.0.0.1:5559",
) -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.SUB) as commands,
        context.socket(zmq.PUSH) as results,
        context.socket(zmq.PULL) as tasks,
    ):
        commands.subscribe("KILL")
        commands.connect(control)
        commands.wait_connected()  # only in zeroxide: a worker that connects too late would never get the KILL
        results.connect(sink)
        tasks.connect(ventilator)

        print("ready", flush=True)

        poller = zmq.Poller()
        poller.register(tasks, zmq.POLLIN)
        poller.register(commands, zmq.POLLIN)
        done = 0
        while commands not in (ready := dict(poller.poll())):
            if tasks in ready:
                time.sleep(int(tasks.recv()) / 1000)
                results.send(b"")
                done += 1
        print(f"{commands.recv_string()} after {done} tasks")


if __name__ == "__main__":
    main(*sys.argv[1:])
