"""A chat without a server: programs on one network find each other.

Start it on several machines or in several terminals, and type:

    python examples/chat.py Ann
    python examples/chat.py Bob
"""

import argparse
import sys
import threading

from zeroxide.discovery import Enter, Evasive, Exit, Node, Shout

ROOM = "chat"


def show(node: Node) -> None:
    """Prints what happens."""
    for event in node:
        match event:
            case Enter(name=name):
                print(f"* {name} is here", flush=True)
            case Exit(name=name, reason=reason):
                print(f"* {name} has left: {reason}", flush=True)
            case Evasive(name=name):
                print(f"* {name} does not answer", flush=True)
            case Shout(name=name, content=[text]):
                print(f"{name}: {text.decode()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", help="your name")
    parser.add_argument("--interface", help="the name or address of the network interface to use")
    parser.add_argument("--port", type=int, default=5670, help="the UDP port of the beacons")
    options = parser.parse_args()
    with Node(options.name, interface=options.interface, port=options.port) as node:
        node.join(ROOM)
        threading.Thread(target=show, args=[node], daemon=True).start()
        for line in sys.stdin:
            node.shout(ROOM, line.rstrip("\n").encode())


if __name__ == "__main__":
    main()
