"""Brokers lend each other their workers. python examples/guide/peering2.py CLIENTS WORKERS ENDPOINT PEER...

Clients and workers are threads of their broker. One request in five goes to the workers of another broker. Start two or more, each
with its own endpoint first:

    python examples/guide/peering2.py 3 3 ipc:///tmp/one ipc:///tmp/two
    python examples/guide/peering2.py 3 3 ipc:///tmp/two ipc:///tmp/one
"""

import random
import sys
import threading
from collections import deque

import zeroxide as zmq

CLIENTS, WORKERS = "inproc://clients", "inproc://workers"


def ask(context: zmq.Context, name: str) -> None:
    with context.socket(zmq.REQ) as client:
        client.connect(CLIENTS)
        while True:
            client.send(b"Hello")
            print(f"{name} served by {client.recv_string()}\n", end="", flush=True)


def work(context: zmq.Context, broker: str) -> None:
    with context.socket(zmq.REQ) as worker:
        worker.connect(WORKERS)
        worker.send(b"READY")
        while True:
            envelope = worker.recv_multipart()[:-1]
            worker.send_multipart([*envelope, broker.encode()])


class Broker:
    """Each request has an envelope with the names of the sockets on its way back."""

    def __init__(self, context: zmq.Context, endpoint: str, peers: tuple[str, ...]) -> None:
        self.peers = peers
        self.ready: deque[bytes] = deque()
        self.clients, self.workers, self.cloud_clients, self.cloud_workers = (
            context.socket(zmq.ROUTER) for _ in range(4)
        )
        self.clients.bind(CLIENTS)
        self.workers.bind(WORKERS)
        # A broker is a client of its peers, and a worker for them: they call it by its endpoint.
        for cloud in (self.cloud_clients, self.cloud_workers):
            cloud.routing_id = endpoint.encode()
        self.cloud_workers.router_mandatory = True
        self.cloud_clients.bind(endpoint)
        for peer in peers:
            self.cloud_workers.connect(peer)

    def run(self) -> None:
        replies, everything = zmq.Poller(), zmq.Poller()
        for poller in (replies, everything):
            poller.register(self.workers, zmq.POLLIN)
            poller.register(self.cloud_workers, zmq.POLLIN)
        everything.register(self.clients, zmq.POLLIN)
        everything.register(self.cloud_clients, zmq.POLLIN)
        while True:
            sockets = dict((everything if self.ready else replies).poll())
            if self.workers in sockets:
                worker, _, *reply = self.workers.recv_multipart()
                self.ready.append(worker)
                if reply != [b"READY"]:
                    self.answer(reply)
            if self.cloud_workers in sockets:
                self.answer(self.cloud_workers.recv_multipart()[1:])
            if self.ready and self.cloud_clients in sockets:
                self.assign(self.cloud_clients.recv_multipart())
            elif self.ready and self.clients in sockets:
                request = self.clients.recv_multipart()
                if random.randrange(5) or not self.lend(request):
                    self.assign(request)

    def assign(self, request: list[bytes]) -> None:
        self.workers.send_multipart([self.ready.popleft(), b"", *request])

    def lend(self, request: list[bytes]) -> bool:
        """Sends a request to another broker, if there is a connection to it."""
        try:
            self.cloud_workers.send_multipart([random.choice(self.peers).encode(), *request])
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            return False
        return True

    def answer(self, reply: list[bytes]) -> None:
        """Sends a reply to a local client, or to the broker whose client asked."""
        is_of_a_peer = reply[0].decode("utf-8", "replace") in self.peers
        (self.cloud_clients if is_of_a_peer else self.clients).send_multipart(reply)


def main(clients: str, workers: str, endpoint: str, *peers: str) -> None:
    context = zmq.Context()
    broker = Broker(context, endpoint, peers)
    for _ in range(int(workers)):
        threading.Thread(target=work, args=(context, endpoint), daemon=True).start()
    for number in range(1, int(clients) + 1):
        threading.Thread(target=ask, args=(context, f"client {number}"), daemon=True).start()
    broker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
