"""The server of bstarsrv.py in an event loop. python examples/guide/bstarsrv2.py primary|backup [FRONT] [LOCAL] [REMOTE]"""

import asyncio
import sys

from zeroxide.patterns import AsyncBinaryStarServer

ENDPOINTS = {
    "primary": ("tcp://127.0.0.1:5001", "tcp://127.0.0.1:5003", "tcp://127.0.0.1:5004"),
    "backup": ("tcp://127.0.0.1:5002", "tcp://127.0.0.1:5004", "tcp://127.0.0.1:5003"),
}


async def serve(role: str, front: str, local: str, remote: str) -> None:
    async def answer(request: list[bytes]) -> list[bytes]:
        return [role.encode(), *request]

    async with AsyncBinaryStarServer(
        front,
        is_primary=role == "primary",
        local=local,
        remote=remote,
        on_change=lambda is_active: print("active" if is_active else "passive", flush=True),
    ) as server:
        await server.run(answer)


def main(role: str, *endpoints: str) -> None:
    front, local, remote = endpoints or ENDPOINTS[role]
    asyncio.run(serve(role, front, local, remote))


if __name__ == "__main__":
    main(*sys.argv[1:])
