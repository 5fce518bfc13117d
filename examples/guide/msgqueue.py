"""Connects clients and workers with the built-in proxy. python examples/guide/msgqueue.py [CLIENTS] [WORKERS]

Does the same as rrbroker.py, without Python code per message.
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
        zmq.proxy(frontend, backend)


if __name__ == "__main__":
    main(*sys.argv[1:])
