"""Answers in the order in which they are ready: CLIENT and SERVER. python examples/jobs.py [JOBS]

The client sends all jobs at once. The server's threads share one socket, and each answers when its job is done. With REQ and
REP, each job would wait for the answer to the one before it.
"""

import contextlib
import sys
import threading
import time

import zeroxide as zmq

THREADS = 4


def work(server: zmq.Socket) -> None:
    """Does jobs until the context is shut down."""
    with contextlib.suppress(zmq.ContextTerminated):
        while True:
            job = server.recv(copy=False)
            number = int(job.bytes)
            time.sleep(0.1 if number % 2 else 0.3)  # odd jobs are quick
            # The routing id names the client that the answer is for.
            server.send(b"job %d is done" % number, routing_id=job.routing_id)


def main(jobs: int) -> None:
    """Prints the answers as they arrive."""
    with zmq.Context() as context:
        server, client = context.socket(zmq.SERVER), context.socket(zmq.CLIENT)
        server.bind("tcp://127.0.0.1:*")
        client.connect(server.last_endpoint)
        threads = [threading.Thread(target=work, args=[server]) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for number in range(jobs):
            client.send(b"%d" % number)
        for _ in range(jobs):
            print(client.recv_string(), flush=True)
        context.shutdown()
        for thread in threads:
            thread.join()


main(int(sys.argv[1]) if sys.argv[1:] else 8)
