"""Finds the programs of a network that run this, too. python examples/neighbours.py NAME [ENDPOINT]

Each announces its name to a multicast group once a second, and prints the names that it has not heard before. There
is no server, and no program needs the address of another one. An announcement may get lost, so it is repeated.
"""

import sys
import time

import zeroxide as zmq

EVERY_S = 1


def main(name: str, endpoint: str = "udp://239.255.77.1:5557") -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.RADIO) as radio,
        context.socket(zmq.DISH) as dish,
    ):
        dish.bind(endpoint)
        dish.join("names")
        radio.connect(endpoint)
        known = {name}
        due = time.monotonic()
        while True:
            if time.monotonic() >= due:
                radio.send_string(name, group="names")
                due += EVERY_S
            if dish.poll(max(0, due - time.monotonic()) * 1000):
                heard = dish.recv_string()
                if heard not in known:
                    known.add(heard)
                    print(heard, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
