"""Brokers tell each other how many of their workers are free. python examples/guide/peering1.py ENDPOINT PEER...

Each broker publishes its state, and subscribes to the states of its peers. Start two or more, each with its own endpoint first:

    python examples/guide/peering1.py ipc:///tmp/one ipc:///tmp/two
    python examples/guide/peering1.py ipc:///tmp/two ipc:///tmp/one
"""

import random
import sys

import zeroxide as zmq


def main(endpoint: str, *peers: str) -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.PUB) as states,
        context.socket(zmq.SUB) as others,
    ):
        states.bind(endpoint)
        others.subscribe("")
        for peer in peers:
            others.connect(peer)
        while True:
            if others.poll(1000):
                name, free = others.recv_multipart()
                print(f"{name.decode()} has {int(free)} free workers", flush=True)
            else:
                # Nothing arrived for a second: a real broker would publish each change instead.
                states.send_multipart([endpoint.encode(), b"%d" % random.randint(0, 9)])


if __name__ == "__main__":
    main(*sys.argv[1:])
