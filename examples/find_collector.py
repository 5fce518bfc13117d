"""A producer that finds its collector, without an address.

Start one of each, in any order and on any machines of one network:

    python examples/find_collector.py collector readings
    python examples/find_collector.py producer thermometer
"""

import argparse
import random

from zeroxide.discovery import Node
from zeroxide.pipeline import Collector, Producer

SERVICE = "readings"


def collect(directory: str, bind: str, interface: str | None, port: int) -> None:
    """Serves a log, and offers it to the network."""
    # Without keys, every program of the network may write: see the page "Security".
    with (
        Collector(directory, bind=bind, open_to_network=True) as collector,
        Node("collector", services={SERVICE: collector.endpoint}, interface=interface, port=port),
    ):
        print("collecting until Enter", flush=True)
        input()


def produce(name: str, interface: str | None, port: int) -> None:
    """Sends ten readings to the first collector that it finds."""
    with Node(name, interface=interface, port=port) as node:
        while not (found := node.survey(SERVICE, count=1)):
            print("no collector yet", flush=True)
        with Producer(found[0].endpoint, name=name) as producer:
            for _ in range(10):
                producer.send(f"{random.gauss(20, 2):.1f}", topic="temperature")
            producer.flush(60)
            print("10 readings are on the collector's disk", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("role", choices=["collector", "producer"])
    parser.add_argument("name", help="the folder of the collector, or the name of the producer")
    parser.add_argument("--bind", default="tcp://*:5555", help="where the collector binds")
    parser.add_argument("--interface", help="the name or address of the network interface to use")
    parser.add_argument("--port", type=int, default=5670, help="the UDP port of the beacons")
    options = parser.parse_args()
    if options.role == "collector":
        collect(options.name, options.bind, options.interface, options.port)
    else:
        produce(options.name, options.interface, options.port)


if __name__ == "__main__":
    main()
