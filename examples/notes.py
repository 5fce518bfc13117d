"""Notes that all members of a group see, without a broker: BUS.

Each member connects to those that have started before it. Type notes in any of the terminals:

    python examples/notes.py tcp://127.0.0.1:5571
    python examples/notes.py tcp://127.0.0.1:5572 tcp://127.0.0.1:5571
    python examples/notes.py tcp://127.0.0.1:5573 tcp://127.0.0.1:5571 tcp://127.0.0.1:5572
"""

import contextlib
import sys
import threading

import zeroxide as zmq


def show(bus: zmq.Socket) -> None:
    """Prints the notes of the other members until the context is shut down."""
    with contextlib.suppress(zmq.ContextTerminated):
        while True:
            print(bus.recv_string(), flush=True)


def main(own: str, *others: str) -> None:
    """Sends each line that is typed."""
    with zmq.Context() as context:
        bus = context.socket(zmq.BUS)
        bus.bind(own)
        for other in others:
            bus.connect(other)
        bus.wait_connected(count=len(others))
        print(f"connected to {len(others)}", flush=True)
        shows = threading.Thread(target=show, args=[bus])
        shows.start()
        for line in sys.stdin:
            bus.send_string(line.rstrip("\n"))
        context.shutdown()
        shows.join()


main(*sys.argv[1:])
