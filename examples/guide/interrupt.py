"""Ends cleanly on Ctrl-C and on SIGTERM, with a file descriptor and a socket in one poller.

python examples/guide/interrupt.py [ENDPOINT]

A signal writes a byte to a pipe, and the poller watches the pipe and the socket. A signal is therefore one more event,
handled between two requests and never in the middle of one.
"""

import os
import signal
import sys

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5555") -> None:
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # only the byte in the pipe matters

    with zmq.Context() as context, context.socket(zmq.REP) as server:
        server.bind(endpoint)
        poller = zmq.Poller()
        poller.register(told, zmq.POLLIN)
        poller.register(server, zmq.POLLIN)
        print("ready", flush=True)
        while told not in (ready := dict(poller.poll())):
            if server in ready:
                server.send(server.recv())
        name = signal.Signals(os.read(told, 1)[0]).name
    print(f"{name}: closed the socket and went")


if __name__ == "__main__":
    main(*sys.argv[1:])
