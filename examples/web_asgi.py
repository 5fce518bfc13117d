"""A web service that publishes what is POSTed to it. uvicorn --app-dir examples web_asgi:app

It is an ASGI application without a framework; web_fastapi.py is the same with FastAPI. A client gets its answer
when the reading is on the collector's disk: curl -d 21.5 http://127.0.0.1:8000/temperature

The variable COLLECTOR holds the collector's endpoint.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any

from zeroxide.pipeline import AsyncProducer, CollectorError

ENDPOINT = os.environ.get("COLLECTOR", "tcp://127.0.0.1:5555")

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class App:
    """One producer for all requests; it exists while the server runs."""

    producer: AsyncProducer

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Creates the producer in the server's event loop, and flushes it at the end."""
        await receive()
        async with AsyncProducer(ENDPOINT, name="web") as self.producer:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body, more = b"", scope["method"] == "POST"
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), part.get("more_body", False)
        if scope["method"] != "POST":
            status, text = 405, "POST a reading"
        else:
            try:
                done = await self.producer.send_and_wait(body, topic=scope["path"].strip("/"))
                status, text = 200, f"offset {done.offset}"
            except CollectorError as error:
                status, text = 503, str(error)
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})


app = App()
