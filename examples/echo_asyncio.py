"""A server and clients as tasks of one event loop. python examples/echo_asyncio.py [CLIENTS]"""

import asyncio
import sys

import zeroxide as zmq
import zeroxide.asyncio as zaio


async def serve(server: zaio.Socket) -> None:
    """Answers every request; a ROUTER serves all clients at the same time."""
    while True:
        client, request = await server.recv_multipart()
        await server.send_multipart([client, request.upper()])


async def ask(context: zaio.Context, endpoint: str, number: int) -> None:
    """Sends one request and prints the answer."""
    with context.socket(zmq.DEALER) as socket:
        socket.connect(endpoint)
        await socket.send_string(f"request {number}")
        print(await socket.recv_string())


async def main(clients: int) -> None:
    """Runs the server until all clients have their answers."""
    with zaio.Context() as context, context.socket(zmq.ROUTER) as server:
        server.bind("tcp://127.0.0.1:*")
        serving = asyncio.create_task(serve(server))
        asked = (ask(context, server.last_endpoint.decode(), n) for n in range(clients))
        await asyncio.wait_for(asyncio.gather(*asked), timeout=30)
        serving.cancel()


asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 3))
