"""One of several equal servers, model 1: any REP. python examples/guide/flserver1.py [ENDPOINT]"""

import sys

import zeroxide as zmq


def main(endpoint: str = "tcp://127.0.0.1:5555") -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as server:
        server.bind(endpoint)
        while True:
            server.send_multipart(server.recv_multipart())


if __name__ == "__main__":
    main(*sys.argv[1:])
