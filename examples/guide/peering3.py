"""Brokers lend each other workers that are free. python examples/guide/peering3.py CLIENTS WORKERS ENDPOINT PEER...

Clients and workers are threads of their broker. Each broker publishes how many of its workers are free, at its endpoint with "-state" after
it. It sends a request to another broker only if no worker of its own is free. Start two or more, each with its own endpoint first:

    python examples/guide/peering3.py 10 5 ipc:///tmp/one ipc:///tmp/two
    python examples/guide/peering3.py 10 5 ipc:///tmp/two ipc:///tmp/one

Each line of the output is the number of a task that is done, or lost.
"""

import random
import sys
import threading
import time
from collections import deque

import zeroxide as zmq

CLIENTS, WORKERS, MONITOR = "inproc://clients", "inproc://workers", "inproc://monitor"


def ask(context: zmq.Context) -> None:
    """Sends bursts of up to 14 requests. Ends if a request has no reply after ten seconds."""
    with context.socket(zmq.REQ) as client, context.socket(zmq.PUSH) as monitor:
        client.connect(CLIENTS)
        monitor.connect(MONITOR)
        while True:
            for _ in range(random.randrange(15)):
                task = f"{random.randrange(0x10000):04X}"
                client.send_string(task)
                if not client.poll(10_000):
                    monitor.send_string(f"a client ends: task {task} is lost")
                    return
                monitor.send_string(client.recv_string())
            time.sleep(random.randrange(5))


def work(context: zmq.Context) -> None:
    with context.socket(zmq.REQ) as worker:
        worker.connect(WORKERS)
        worker.send(b"READY")
        while True:
            request = worker.recv_multipart()
            time.sleep(random.randrange(2))
            worker.send_multipart(request)


class Broker:
    """Each request has an envelope with the names of the sockets on its way back."""

    def __init__(self, context: zmq.Context, endpoint: str, peers: tuple[str, ...]) -> None:
        self.name = endpoint.encode()
        self.ready: deque[bytes] = deque()
        self.free = dict.fromkeys((peer.encode() for peer in peers), 0)
        self.clients, self.workers, self.cloud_clients, self.cloud_workers = (
            context.socket(zmq.ROUTER) for _ in range(4)
        )
        self.state, self.states, self.monitor = (
            context.socket(kind) for kind in (zmq.PUB, zmq.SUB, zmq.PULL)
        )
        self.clients.bind(CLIENTS)
        self.workers.bind(WORKERS)
        self.monitor.bind(MONITOR)
        # A broker is a client of its peers, and a worker for them: they call it by its endpoint.
        for cloud in (self.cloud_clients, self.cloud_workers):
            cloud.routing_id = self.name
        self.cloud_clients.bind(endpoint)
        self.state.bind(f"{endpoint}-state")
        self.states.subscribe("")
        for peer in peers:
            # With its name given, a peer can be sent requests before the connection is there.
            self.cloud_workers.connect_routing_id = peer.encode()
            self.cloud_workers.connect(peer)
            self.states.connect(f"{peer}-state")

    def run(self) -> None:
        always = (self.workers, self.cloud_workers, self.states, self.monitor)
        # Requests are read only while there are workers for them: for those of a peer, only the broker's own.
        all_busy = poller(*always)
        can_lend = poller(*always, self.clients)
        has_ready = poller(*always, self.clients, self.cloud_clients)
        published, next_state = -1, time.monotonic()
        while True:
            now = time.monotonic()
            # The state is also published every second, because a peer may have subscribed after the last change.
            if len(self.ready) != published or now >= next_state:
                published, next_state = len(self.ready), now + 1
                self.state.send_multipart([self.name, b"%d" % published])
            others = can_lend if any(self.free.values()) else all_busy
            sockets = (has_ready if self.ready else others).poll((next_state - now) * 1000)
            self.handle(dict(sockets))

    def handle(self, sockets: dict[zmq.Socket, int]) -> None:
        if self.monitor in sockets:
            print(self.monitor.recv_string(), flush=True)
        if self.states in sockets:
            peer, free = self.states.recv_multipart()
            self.free[peer] = int(free)
        if self.workers in sockets:
            worker, _, *reply = self.workers.recv_multipart()
            self.ready.append(worker)
            if reply != [b"READY"]:
                self.answer(reply)
        if self.cloud_workers in sockets:
            self.answer(self.cloud_workers.recv_multipart()[1:])
        if self.clients in sockets:
            self.assign_or_lend()
        if self.cloud_clients in sockets and self.ready:
            self.assign(self.cloud_clients.recv_multipart())

    def assign_or_lend(self) -> None:
        if self.ready:
            self.assign(self.clients.recv_multipart())
        elif peers := [peer for peer, free in self.free.items() if free]:
            peer = random.choice(peers)
            self.free[peer] -= 1
            self.cloud_workers.send_multipart([peer, *self.clients.recv_multipart()])

    def assign(self, request: list[bytes]) -> None:
        self.workers.send_multipart([self.ready.popleft(), b"", *request])

    def answer(self, reply: list[bytes]) -> None:
        """Sends a reply to a local client, or to the broker whose client asked."""
        (self.cloud_clients if reply[0] in self.free else self.clients).send_multipart(reply)


def poller(*sockets: zmq.Socket) -> zmq.Poller:
    result = zmq.Poller()
    for socket in sockets:
        result.register(socket, zmq.POLLIN)
    return result


def main(clients: str, workers: str, endpoint: str, *peers: str) -> None:
    context = zmq.Context()
    broker = Broker(context, endpoint, peers)
    for task, count in ((work, workers), (ask, clients)):
        for _ in range(int(count)):
            threading.Thread(target=task, args=(context,), daemon=True).start()
    broker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
