"""Changes a map that all clients share, and prints its size. python examples/guide/clonecli6.py [PRIMARY] [BACKUP] [UPDATES]"""

import os
import sys

from zeroxide.patterns import CloneClient


def main(
    primary: str = "tcp://127.0.0.1:5556",
    backup: str = "tcp://127.0.0.1:5566",
    updates: str = "10",
) -> None:
    with CloneClient([primary, backup], subtree="/client/") as client:
        for number in range(int(updates)):
            key = f"/client/{os.getpid()}/{number}"
            client.set(key, b"%d" % number, ttl=60)
            while key not in client.values:
                client.wait()
        print(f"{len(client.values)} values", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
