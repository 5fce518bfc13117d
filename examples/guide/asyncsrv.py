"""Clients that send without waiting, and a server with threads. python examples/guide/asyncsrv.py [CLIENTS] [WORKERS] [REQUESTS]

A DEALER client sends all its requests and receives replies as they arrive. Each request has zero to four replies, and an END. The ROUTER
of the server puts the client's name in front of a request, and the workers keep it.
"""

import contextlib
import random
import sys
import threading

import zeroxide as zmq

FRONTEND, BACKEND = "inproc://server", "inproc://workers"


def ask(context: zmq.Context, name: str, requests: int) -> None:
    with context.socket(zmq.DEALER) as client:
        client.routing_id = name.encode()
        client.connect(FRONTEND)
        for number in range(requests):
            client.send(b"request %d" % number)
        ends = replies = 0
        while ends < requests:
            *_, word = client.recv_multipart()
            ends += word == b"END"
            replies += word != b"END"
        print(f"{name}: {requests} requests, {replies} replies\n", end="", flush=True)


def work(context: zmq.Context) -> None:
    with context.socket(zmq.DEALER) as worker:
        worker.connect(BACKEND)
        try:
            while True:
                client, request = worker.recv_multipart()
                for _ in range(random.randint(0, 4)):
                    worker.send_multipart([client, request, b"reply"])
                worker.send_multipart([client, request, b"END"])
        except zmq.ContextTerminated:
            pass  # the server is done


def main(clients: str = "3", workers: str = "5", requests: str = "100") -> None:
    context = zmq.Context()

    def serve() -> None:
        with context.socket(zmq.ROUTER) as frontend, context.socket(zmq.DEALER) as backend:
            frontend.bind(FRONTEND)
            backend.bind(BACKEND)
            with contextlib.suppress(zmq.ContextTerminated):  # all clients have their replies
                zmq.proxy(frontend, backend)

    serving = [threading.Thread(target=serve)]
    serving += [threading.Thread(target=work, args=(context,)) for _ in range(int(workers))]
    asking = [
        threading.Thread(target=ask, args=(context, f"client {number}", int(requests)))
        for number in range(1, int(clients) + 1)
    ]
    for thread in serving + asking:
        thread.start()
    for thread in asking:
        thread.join()
    context.term()
    for thread in serving:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
