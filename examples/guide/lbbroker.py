"""Gives requests to the worker that has been idle for the longest time. python examples/guide/lbbroker.py [CLIENTS] [WORKERS]

Clients and workers are threads with REQ sockets. A worker sends READY, and later its replies, each of which also asks for
the next request. The broker reads from clients only while a worker is ready.
"""

import sys
import threading
from collections import deque

import zeroxide as zmq

FRONTEND, BACKEND = "inproc://clients", "inproc://workers"


def ask(context: zmq.Context, name: str) -> None:
    with context.socket(zmq.REQ) as client:
        client.connect(FRONTEND)
        client.send_string(f"Hello of {name}")
        print(f"{name}: {client.recv_string()}\n", end="", flush=True)


def work(context: zmq.Context) -> None:
    with context.socket(zmq.REQ) as worker:
        worker.connect(BACKEND)
        try:
            worker.send(b"READY")
            while True:
                client, _, _ = worker.recv_multipart()
                worker.send_multipart([client, b"", b"OK"])
        except zmq.ContextTerminated:
            pass  # the broker is done


def serve(frontend: zmq.Socket, backend: zmq.Socket, requests: int) -> None:
    """Serves a number of requests."""
    ready: deque[bytes] = deque()
    both, workers_only = zmq.Poller(), zmq.Poller()
    for poller in (both, workers_only):
        poller.register(backend, zmq.POLLIN)
    both.register(frontend, zmq.POLLIN)
    while requests:
        sockets = dict((both if ready else workers_only).poll())
        if backend in sockets:
            worker, _, *rest = backend.recv_multipart()
            ready.append(worker)
            if rest != [b"READY"]:
                frontend.send_multipart(rest)
                requests -= 1
        if frontend in sockets:
            backend.send_multipart([ready.popleft(), b"", *frontend.recv_multipart()])


def main(clients: str = "10", workers: str = "3") -> None:
    context = zmq.Context()
    names = [f"client {number}" for number in range(1, int(clients) + 1)]
    asking = [threading.Thread(target=ask, args=(context, name)) for name in names]
    working = [threading.Thread(target=work, args=(context,)) for _ in range(int(workers))]
    with context.socket(zmq.ROUTER) as frontend, context.socket(zmq.ROUTER) as backend:
        frontend.bind(FRONTEND)
        backend.bind(BACKEND)
        for thread in asking + working:
            thread.start()
        serve(frontend, backend, len(names))
        for thread in asking:
            thread.join()
    context.term()


if __name__ == "__main__":
    main(*sys.argv[1:])
