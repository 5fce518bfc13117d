"""One server of a pair. python examples/guide/bstarsrv.py primary|backup [FRONT] [LOCAL] [REMOTE]

Start both, and bstarcli.py. Kill the primary: the backup takes over. Start the primary again, and kill the backup.
"""

import sys

from zeroxide.patterns import BinaryStarServer

ENDPOINTS = {
    "primary": ("tcp://127.0.0.1:5001", "tcp://127.0.0.1:5003", "tcp://127.0.0.1:5004"),
    "backup": ("tcp://127.0.0.1:5002", "tcp://127.0.0.1:5004", "tcp://127.0.0.1:5003"),
}


def main(role: str, *endpoints: str) -> None:
    front, local, remote = endpoints or ENDPOINTS[role]
    server = BinaryStarServer(
        front,
        is_primary=role == "primary",
        local=local,
        remote=remote,
        on_change=lambda is_active: print("active" if is_active else "passive", flush=True),
    )
    with server:
        server.run(lambda request: [role.encode(), *request])


if __name__ == "__main__":
    main(*sys.argv[1:])
