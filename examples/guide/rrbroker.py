"""Connects clients and workers with a handwritten broker. python examples/guide/rrbroker.py [CLIENTS] [WORKERS]

The ROUTER puts an envelope with the client's name in front of each request, the DEALER gives the request to the next
worker, and the worker's REP puts the envelope in front of the reply. The broker only has to forward every part
unchanged. msgqueue.py uses the built-in proxy instead.
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
