"""The broker of lbbroker.py with the classes of zeroxide. python examples/guide/lbbroker2.py [CLIENTS] [WORKERS]"""

import sys
import threading

import zeroxide as zmq
from zeroxide.patterns import SimplePirateQueue, SimplePirateWorker

FRONTEND, BACKEND = "inproc://clients", "inproc://workers"


def ask(context: zmq.Context, name: str) -> None:
    with context.socket(zmq.REQ) as client:
        client.connect(FRONTEND)
        client.send_string(f"Hello of {name}")
        print(f"{name}: {client.recv_string()}\n", end="", flush=True)


def main(clients: str = "10", workers: str = "3") -> None:
    context = zmq.Context()
    names = [f"client {number}" for number in range(1, int(clients) + 1)]
    queue = SimplePirateQueue(FRONTEND, BACKEND, context=context)
    servers = [SimplePirateWorker(BACKEND, context=context) for _ in range(int(workers))]
    running = [threading.Thread(target=queue.run)]
    running += [threading.Thread(target=server.run, args=(lambda _: b"OK",)) for server in servers]
    asking = [threading.Thread(target=ask, args=(context, name)) for name in names]
    for thread in running + asking:
        thread.start()
    for thread in asking:
        thread.join()
    for peer in (*servers, queue):
        peer.stop()
    for thread in running:
        thread.join()
    for peer in (*servers, queue):
        peer.close()
    context.term()


if __name__ == "__main__":
    main(*sys.argv[1:])
