"""Stands between clients and workers, by hand. python examples/guide/rrbroker.py [CLIENTS] [WORKERS]

ROUTER puts an envelope in front of each request that says whose it is, DEALER gives it to the next worker in turn, and
the worker's REP puts the envelope in front of the reply. The broker only has to pass every part on as it came.
msgqueue.py lets the built-in proxy do it.
"""

import sys

import zeroxide as zmq


def main(clients: str = "tcp://127.0.0.1:5559", workers: str = "tcp://127.0.0.1:5560") -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.ROUTER) as frontend,
        context.socket(zmq.DEALER) as backend,
    ):
        frontend.bind(clients)
        backend.bind(workers)
        poller = zmq.Poller()
        poller.register(frontend, zmq.POLLIN)
        poller.register(backend, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if frontend in ready:
                pass_on(frontend, backend)
            if backend in ready:
                pass_on(backend, frontend)


def pass_on(source: zmq.Socket, target: zmq.Socket) -> None:
    """Moves one message, part by part. target.send_multipart(source.recv_multipart()) would do the same."""
    more = True
    while more:
        part = source.recv()
        more = source.get(zmq.RCVMORE)
        target.send(part, zmq.SNDMORE if more else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
