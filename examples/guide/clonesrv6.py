"""One server of a pair that keeps a map. python examples/guide/clonesrv6.py primary|backup [ENDPOINT] [PEER] [LOCAL] [REMOTE]

Each server also uses the two ports after its own.
"""

import sys

from zeroxide.patterns import CloneServer

ENDPOINTS = {
    "primary": tuple(f"tcp://127.0.0.1:{port}" for port in (5556, 5566, 5003, 5004)),
    "backup": tuple(f"tcp://127.0.0.1:{port}" for port in (5566, 5556, 5004, 5003)),
}


def main(role: str, *endpoints: str) -> None:
    endpoint, peer, local, remote = endpoints or ENDPOINTS[role]
    is_primary = role == "primary"
    with CloneServer(
        endpoint, peer=peer, is_primary=is_primary, local=local, remote=remote
    ) as server:
        server.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
