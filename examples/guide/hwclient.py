"""Sends Hello ten times, and waits for each reply. python examples/guide/hwclient.py [ENDPOINT] [REQUESTS]"""

import sys

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5555", requests: str = "10") -> None:
    with zmq.Context() as context, context.socket(zmq.REQ) as client:
        client.connect(endpoint)
        for number in range(1, int(requests) + 1):
            client.send_string("Hello")
            print(f"reply {number}: {client.recv_string()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
