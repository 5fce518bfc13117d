"""One member of a cluster as a process, with its page: `python -m examples.zinc.member`.

It prints its address and the URL of its page, and a line with "host" if it becomes the host.
"""

import argparse
import sys
from contextlib import suppress

from .bridge import Bridge
from .document import Document
from .endpoint import Endpoint
from .timing import Timing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.zinc.member", description=__doc__)
    parser.add_argument("--name", default="", help="the name that others see")
    parser.add_argument(
        "--address",
        default="tcp://127.0.0.1:*",
        help="where to listen; with tcp, the next port is used, too (default: free ports)",
    )
    parser.add_argument(
        "--join", default="", help="address of any member (default: start a cluster)"
    )
    parser.add_argument("--breadth", type=int, default=2, help="children per member (default: 2)")
    parser.add_argument(
        "--patience",
        type=float,
        default=Timing().patience,
        help="seconds of silence after which a neighbour is dead (default: %(default)s)",
    )
    parser.add_argument(
        "--port", type=int, default=0, help="port of the page (default: a free one)"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="IP address of the page (default: %(default)s)"
    )
    arguments = parser.parse_args()
    document, bridge = Document(), Bridge(arguments.port, arguments.host)
    endpoint = Endpoint(
        arguments.address,
        join=arguments.join,
        name=arguments.name,
        web=bridge.url,
        replica=document,
        breadth=arguments.breadth,
        timing=Timing(beat=min(Timing().beat, arguments.patience / 5), patience=arguments.patience),
    )
    name = endpoint.name

    def count(text: bytes) -> bytes:
        return f"{len(text.decode().split())} words, counted by {name}".encode()

    epochs = []

    def report() -> None:
        if endpoint.is_host and endpoint.epoch not in epochs:
            epochs.append(endpoint.epoch)
            print("host", endpoint.epoch, flush=True)

    endpoint.offer("count", count)
    endpoint.watch(report)
    with endpoint:
        bridge.connect(endpoint, document)
        print(endpoint.address, bridge.url, flush=True)
        with suppress(KeyboardInterrupt):
            # The process ends with the one that has started it.
            sys.stdin.read()
        bridge.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
