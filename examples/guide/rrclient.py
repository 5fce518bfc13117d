"""Sends Hello ten times to the workers behind the broker. python examples/guide/rrclient.py [BROKER] [REQUESTS]

The same program as hwclient.py with another address: a client cannot tell a broker from a server.
"""

import sys

import zeroxide as zmq


def main(broker: str = "tcp://127.0.0.1:5559", requests: str = "10") -> None:
    with zmq.Context() as context, context.socket(zmq.REQ) as client:
        client.connect(broker)
        for number in range(1, int(requests) + 1):
            client.send_string("Hello")
            print(f"reply {number}: {client.recv_string()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
