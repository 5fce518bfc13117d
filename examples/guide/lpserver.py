"""Replies to requests, until it is killed. python examples/guide/lpserver.py [ENDPOINT]

Kill it and start it again while lpclient.py runs: the client repeats the request that had no reply.
"""

import sys

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5555") -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as server:
        server.bind(endpoint)
        while True:
            request = server.recv()
            print(f"received {request.decode()}", flush=True)
            server.send(request)


if __name__ == "__main__":
    main(*sys.argv[1:])
