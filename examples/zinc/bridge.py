"""Serves the page, and lets it edit the document of one endpoint over a WebSocket."""

import asyncio
import json
import threading
from concurrent.futures import Future
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from .document import Document
from .endpoint import Endpoint
from .session import Event, Session

PAGE = Path(__file__).with_name("page.html")

# The largest event of a page, in bytes.
MAX_EVENT = 4 * 1024 * 1024

# How often a page hears that its endpoint lives, in seconds.
BEAT = 1.0

# The close code for a page that has sent something malformed.
POLICY_VIOLATION = 1008


class Bridge:
    """A web server on a thread of its own. `connect` is called when the endpoint is there, whose member has its URL."""

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="web", daemon=True)
        self._thread.start()
        self._ready = asyncio.Event()
        self._server: Server = self._wait(self._serve(host, port))
        bound = self._server.sockets[0].getsockname()[1]
        self.url = f"http://{host}:{bound}"
        self._origins = {self.url}
        self._wakers: set[asyncio.Event] = set()

    def connect(self, endpoint: Endpoint, document: Document) -> None:
        """Begins to answer."""
        self._endpoint, self._document = endpoint, document
        endpoint.watch(self._wake)
        self._loop.call_soon_threadsafe(self._ready.set)

    def close(self) -> None:
        self._server.close()
        self._wait(self._server.wait_closed())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, work: Any) -> Any:
        future: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result()

    def _wake(self) -> None:
        """Lets every session look for news. Any thread may call it."""
        self._loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        # Pages of members that are gone may come, too.
        self._origins |= {member.web for member in self._endpoint.members if member.web}
        for waker in self._wakers:
            waker.set()

    async def _serve(self, host: str, port: int) -> Server:
        return await serve(
            self._handle, host, port, process_request=self._answer, max_size=MAX_EVENT
        )

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answers requests that are no WebSocket, and refuses those of other sites."""
        # A name of an attacker may resolve to this address.
        if f"http://{request.headers.get('Host')}" != self.url:
            response = connection.respond(HTTPStatus.FOUND, "")
            response.headers["Location"] = self.url
            return response
        if request.path == "/edit":
            if request.headers.get("Origin") in self._origins:
                return None
            return connection.respond(HTTPStatus.FORBIDDEN, "only pages of this cluster\n")
        if urlsplit(request.path).path != "/":
            return connection.respond(HTTPStatus.NOT_FOUND, "there is one page: /\n")
        body = PAGE.read_bytes()
        headers = Headers(
            [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))]
        )
        return Response(HTTPStatus.OK, "OK", headers, body)

    async def _handle(self, connection: ServerConnection) -> None:
        waker = asyncio.Event()
        self._wakers.add(waker)
        try:
            await self._ready.wait()
            await self._converse(connection, waker)
        except* ConnectionClosed:
            pass
        except* (LookupError, TypeError, ValueError) as errors:
            await connection.close(POLICY_VIOLATION, repr(errors.exceptions[0])[:100])
        finally:
            self._wakers.discard(waker)

    async def _converse(self, connection: ServerConnection, waker: asyncio.Event) -> None:
        opening = json.loads(await connection.recv())
        session = Session(self._document, self._endpoint.share, self._wake, opening)
        await connection.send(json.dumps(session.opening()))
        waker.set()
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._tell(connection, session, waker))
            async for text in connection:
                event = json.loads(text)
                if event["type"] == "count":
                    tasks.create_task(self._count(connection))
                elif answer := session.handle(event):
                    await connection.send(json.dumps(answer))
            telling.cancel()

    async def _tell(
        self, connection: ServerConnection, session: Session, waker: asyncio.Event
    ) -> None:
        """Sends changes of the text and the members, and the numbers of the edits that the host has."""
        before: Event = {}
        while True:
            try:
                async with asyncio.timeout(BEAT):
                    await waker.wait()
            except TimeoutError:
                await connection.send(json.dumps({"type": "beat"}))
            waker.clear()
            if session.confirmed:
                numbers, session.confirmed = session.confirmed, []
                await connection.send(json.dumps({"type": "confirmed", "numbers": numbers}))
            if (status := self._status()) != before:
                await connection.send(json.dumps(status))
                before = status
            if news := session.news():
                await connection.send(json.dumps(news))

    def _status(self) -> Event:
        endpoint = self._endpoint
        return {
            "type": "status",
            "id": endpoint.id,
            "epoch": endpoint.epoch,
            "members": [member.header() for member in endpoint.members],
        }

    async def _count(self, connection: ServerConnection) -> None:
        """Has the words counted by the endpoint that has the least to do."""
        work = self._endpoint.submit("count", self._document.text.encode())
        result = (await asyncio.wrap_future(work)).decode()
        await connection.send(json.dumps({"type": "counted", "text": result}))
