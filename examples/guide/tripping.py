"""Compares requests one after the other with requests all at once. python examples/guide/tripping.py [REQUESTS]

The client sends through a broker to a worker. Waiting for each reply costs a round trip per request.
"""

import contextlib
import sys
import threading
import time

import zeroxide as zmq

CLIENTS, WORKERS = "inproc://clients", "inproc://workers"


def pass_on(context: zmq.Context) -> None:
    with context.socket(zmq.ROUTER) as clients, context.socket(zmq.DEALER) as workers:
        clients.bind(CLIENTS)
        workers.bind(WORKERS)
        with contextlib.suppress(zmq.ContextTerminated):
            zmq.proxy(clients, workers)


def work(context: zmq.Context) -> None:
    with context.socket(zmq.DEALER) as worker:
        worker.connect(WORKERS)
        with contextlib.suppress(zmq.ContextTerminated):
            while True:
                worker.send_multipart(worker.recv_multipart())


def main(requests: str = "10000") -> None:
    count = int(requests)
    context = zmq.Context()
    threads = [threading.Thread(target=run, args=(context,)) for run in (pass_on, work)]
    for thread in threads:
        thread.start()
    with context.socket(zmq.DEALER) as client:
        client.sndhwm = client.rcvhwm = 0
        client.connect(CLIENTS)
        started = time.monotonic()
        for _ in range(count):
            client.send(b"hello")
            client.recv()
        print(f"one after the other: {count / (time.monotonic() - started):.0f} requests/s")
        started = time.monotonic()
        for _ in range(count):
            client.send(b"hello")
        for _ in range(count):
            client.recv()
        print(f"all at once: {count / (time.monotonic() - started):.0f} requests/s")
    context.term()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
