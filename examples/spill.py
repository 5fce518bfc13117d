"""Readings that wait on disk while no collector is there.

python examples/spill.py FOLDER ENDPOINT [COUNT]
python examples/spill.py collect ENDPOINT

Each run of the first command adds readings. The second one prints them all, in their order.
"""

import sys

import zeroxide as zmq


def send(folder: str, endpoint: str, count: int) -> None:
    """Sends readings, and leaves on disk what is not collected within half a second."""
    with zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.immediate = True  # no queue in memory before there is a connection
        push.spill_dir = folder.encode()
        push.spill_keep = True
        push.connect(endpoint)
        before = push.stats()["spilled"]
        for number in range(before, before + count):
            push.send_string(f"reading {number}")
        try:
            push.flush(timeout=500)
        except zmq.Again:
            print(push.stats()["spilled"], "readings wait for a collector")


def collect(endpoint: str) -> None:
    """Prints readings until there are none for a second."""
    with zmq.Context() as context, context.socket(zmq.PULL) as pull:
        pull.bind(endpoint)
        while pull.poll(1000 if pull.stats()["received"] else 30_000):
            print(pull.recv_string())


if sys.argv[1] == "collect":
    collect(sys.argv[2])
else:
    send(sys.argv[1], sys.argv[2], int(sys.argv[3]) if sys.argv[3:] else 3)
