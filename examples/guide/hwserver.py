"""Replies World to every Hello. python examples/guide/hwserver.py [ENDPOINT] [WORK_MS]

Start it before or after its clients, and stop and restart it at any time: a client that has no request in progress
reconnects automatically.
"""

import sys
import time

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5555", work_ms: str = "1000") -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as server:
        server.bind(endpoint)
        while True:
            print(f"received {server.recv_string()}", flush=True)
            time.sleep(int(work_ms) / 1000)
            server.send_string("World")


if __name__ == "__main__":
    main(*sys.argv[1:])
