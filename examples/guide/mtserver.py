"""Replies to Hello in five threads. python examples/guide/mtserver.py [ENDPOINT] [THREADS] [WORK_MS]

A broker and its workers run in one process. They share a context, each thread has its own socket, and inproc carries
the messages between them.
"""

import sys
import threading
import time

import zeroxide as zmq

WORKERS = "inproc://workers"


def work(context: zmq.Context, work_ms: int) -> None:
    with context.socket(zmq.REP) as socket:
        socket.connect(WORKERS)
        try:
            while True:
                request = socket.recv_string()
                # Including the newline, so that no other thread's line gets in between.
                print(f"{threading.current_thread().name} received {request}\n", end="", flush=True)
                time.sleep(work_ms / 1000)
                socket.send_string("World")
        except zmq.ContextTerminated:
            pass  # the main thread is stopping


def main(endpoint: str = "tcp://127.0.0.1:5555", threads: str = "5", work_ms: str = "1000") -> None:
    context = zmq.Context()
    try:
        with context.socket(zmq.ROUTER) as clients, context.socket(zmq.DEALER) as workers:
            clients.bind(endpoint)
            workers.bind(WORKERS)
            for number in range(1, int(threads) + 1):
                threading.Thread(
                    target=work, args=(context, int(work_ms)), name=f"worker {number}"
                ).start()
            zmq.proxy(clients, workers)
    finally:
        # Makes the workers' calls raise, and waits until they have closed their sockets.
        context.term()


if __name__ == "__main__":
    main(*sys.argv[1:])
