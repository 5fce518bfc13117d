"""A client of a collector over HTTP: a request, its answer, and the next one.

Every step of a client has a deadline; `http` bounds everything else.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Any

from ..pipeline import CollectorError, Refused
from . import metrics
from .pieces import Counted, Lines, Whole
from .request import HEAD_MAX, Request, Wrong, parse
from .rows import ROWS, ROWS_MAX

if TYPE_CHECKING:
    from .http import HttpServer

__all__ = ["CHUNK", "Connection", "encoded"]

#: How much is read and written at once.
CHUNK = 64 << 10

# How long a client may take for the head of a request, or leave a connection idle.
_PATIENCE = 30.0
# Bodies and answers get this many seconds, and one more for each `_SLOWEST` bytes.
_GRACE = 10.0
_SLOWEST = 32 << 10
# How much of a refused body is read so that its sender gets the answer.
_LEFTOVER = 32 << 20
# A state that is not older than this is not requested again.
_FRESH = 0.5

# The page is one file: it loads nothing else, and no other page may frame it.
_PAGE = {
    "Content_Security_Policy": "default-src 'none'; connect-src 'self'; img-src data:;"
    " style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'",
    "X_Content_Type_Options": "nosniff",
}

_STATUS = {
    "too-big": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "malformed": HTTPStatus.BAD_REQUEST,
    "invalid": HTTPStatus.BAD_REQUEST,
}


class Connection:
    """The connection of one client."""

    def __init__(
        self, server: "HttpServer", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        # drain() waits until the kernel has everything, because `abort` discards the rest, and the kernel does not.
        writer.transport.set_write_buffer_limits(0)
        self._request: Request | None = None
        # The number of bytes of the request's body that have not been read.
        self._left = 0
        #: The time since which the server has waited for the client.
        self.waits_since: float | None = None
        #: The number of bytes of a body that have arrived.
        self.held: int = 0

    def abort(self) -> None:
        self._writer.transport.abort()

    async def serve(self) -> None:
        is_kept = True
        while is_kept:
            self._request, self._left = None, 0
            try:
                self._request = await self._head()
                if self._request is None:
                    return
                is_kept = self._request.is_kept
                self._left = self._request.length
                self._server.count("http_requests")
                self._server.check(self._request)
                await self._answer(self._request)
            except Wrong as wrong:
                self._server.count("http_refused")
                is_kept = is_kept and not wrong.is_over
                await self._say_wrong(wrong, is_kept and self._left == 0)
            except Refused as refused:
                status = _STATUS.get(refused.code, HTTPStatus.SERVICE_UNAVAILABLE)
                await self._say_wrong(Wrong(status, str(refused), refused.code), self._left == 0)
            except CollectorError as error:
                status = HTTPStatus.SERVICE_UNAVAILABLE
                await self._say_wrong(Wrong(status, str(error), "gone"), self._left == 0)
            if self._left or not is_kept:
                await self._let_go()
                return

    @asynccontextmanager
    async def _waiting(self, size: int, patience: float = _GRACE) -> AsyncIterator[None]:
        """Sets a deadline for a transfer; meanwhile the connection may be closed to make room."""
        self.waits_since = time.monotonic()
        try:
            async with asyncio.timeout(patience + size / _SLOWEST):
                yield
        except TimeoutError:
            self._server.count("http_timeouts")
            raise
        finally:
            self.waits_since = None

    async def _head(self) -> Request | None:
        """Returns the next request; None if there are no more."""
        try:
            async with self._waiting(0, _PATIENCE):
                head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if not error.partial:
                return None
            raise
        except TimeoutError:
            raise _too_slow("a request") from None
        except asyncio.LimitOverrunError:
            head = bytes(HEAD_MAX + 1)
        if len(head) > HEAD_MAX:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise Wrong(status, f"a head has at most {HEAD_MAX} bytes", is_over=True)
        return parse(head[:-4])

    async def _answer(self, request: Request) -> None:
        if request.method == "POST":
            await self._take(request)
            return
        if request.length:
            # The body has no meaning here, but it belongs to this request and must be read.
            async for _ in self._chunks(request):
                pass
        if request.path == "/":
            page = resources.files(__package__).joinpath("page.html").read_bytes()
            await self._say(HTTPStatus.OK, "text/html; charset=utf-8", page, _PAGE)
            return
        if request.path == "/rows":
            await self._say_json(HTTPStatus.OK, await self._rows(request))
            return
        routes: dict[str, Callable[[], Awaitable[tuple[HTTPStatus, str, bytes]]]] = {
            "/metrics": self._metrics,
            "/stats": self._stats,
            "/health": self._health,
            "/live": self._live,
        }
        await self._say(*await routes[request.path]())

    # ---- in --------------------------------------------------------------------------------

    async def _take(self, request: Request) -> None:
        """Appends the contents of a body."""
        is_many = request.path == "/mpub"
        extras = request.parameters("topic", "key", *(["binary"] if is_many else []))
        if request.one("content-encoding").lower() not in ("", "identity"):
            status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
            raise Wrong(status, "a body is taken as it is: send it without Content-Encoding")
        taken: Whole | Lines | Counted = Whole()
        if is_many:
            taken = Counted() if _is_on("binary", extras.pop("binary", "false")) else Lines()
        if not request.has_length:
            raise Wrong(HTTPStatus.LENGTH_REQUIRED, "a Content-Length is needed", is_over=True)
        ranges: list[tuple[int, int]] = []
        try:
            async for chunk in self._chunks(request):
                self._hold(len(chunk))
                taken.add(chunk)
                if taken.is_ripe:
                    await self._write(taken, extras, ranges)
            await self._write(taken, extras, ranges, is_end=True)
        finally:
            self._hold(-self.held)
        if not ranges:
            ranges = [await self._server.append([], extras)]
        await self._say_json(HTTPStatus.OK, {"first": ranges[0][0], "end": ranges[-1][1]})

    async def _write(
        self,
        taken: Whole | Lines | Counted,
        extras: dict[str, str],
        ranges: list[tuple[int, int]],
        *,
        is_end: bool = False,
    ) -> None:
        """Appends the messages that have arrived completely."""
        async with self._server.splitting(taken.size):
            values = taken.finish() if is_end else taken.take()
            if values:
                written = await self._server.append(values, extras)
                ranges[1:] = [written]
        self._hold(taken.size - self.held)

    def _hold(self, size: int) -> None:
        self._server.hold(size)
        self.held += size

    async def _chunks(self, request: Request) -> AsyncIterator[bytes]:
        """Yields the body in pieces, as it arrives."""
        most = self._server.max_body_bytes
        if self._left > most:
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            raise Wrong(status, f"a body has at most {most} bytes", "too-big", is_over=True)
        if request.waits:
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        spent, allowed = 0.0, _GRACE + self._left / _SLOWEST
        while self._left:
            before = time.monotonic()
            try:
                async with self._waiting(0, max(allowed - spent, 0.0)):
                    chunk = await self._reader.read(min(CHUNK, self._left))
            except TimeoutError:
                raise _too_slow("the body") from None
            # Only the client's own time counts, not that of the disk.
            spent += time.monotonic() - before
            if not chunk:
                raise ConnectionError("the body ended early")
            self._left -= len(chunk)
            yield chunk

    async def _let_go(self) -> None:
        """Makes sure that a client that is still sending sees the answer."""
        with suppress(TimeoutError):
            async with self._waiting(0, 1.0):
                self._writer.write_eof()
                for _ in range(_LEFTOVER // CHUNK):
                    if not await self._reader.read(CHUNK):
                        break

    # ---- out -------------------------------------------------------------------------------

    async def _metrics(self) -> tuple[HTTPStatus, str, bytes]:
        return HTTPStatus.OK, metrics.CONTENT_TYPE, (await self._server.snapshot()).metrics

    async def _stats(self) -> tuple[HTTPStatus, str, bytes]:
        return HTTPStatus.OK, "application/json", (await self._server.snapshot()).json

    async def _rows(self, request: Request) -> dict[str, Any]:
        query = request.parameters("topic", "rows")
        wanted = query.get("rows", str(ROWS))
        if not (wanted.isascii() and wanted.isdigit() and len(wanted) < 9):
            raise Wrong(HTTPStatus.BAD_REQUEST, f"rows is a number up to {ROWS_MAX}", "invalid")
        return await self._server.last_rows(query.get("topic"), min(int(wanted), ROWS_MAX))

    async def _health(self) -> tuple[HTTPStatus, str, bytes]:
        state = (await self._server.snapshot(_FRESH)).state
        is_fine = state["state"] == "fine"
        status = HTTPStatus.OK if is_fine else HTTPStatus.SERVICE_UNAVAILABLE
        return status, "application/json", encoded(state)

    async def _live(self) -> tuple[HTTPStatus, str, bytes]:
        is_alive = self._server.collector.running
        status = HTTPStatus.OK if is_alive else HTTPStatus.SERVICE_UNAVAILABLE
        return status, "application/json", encoded({"running": is_alive})

    async def _say_wrong(self, wrong: Wrong, is_kept: bool) -> None:
        if self._request is not None:
            self._request.is_kept = self._request.is_kept and is_kept
        answer = {"error": str(wrong), "code": wrong.code}
        await self._say(wrong.status, "application/json", encoded(answer), wrong.fields)

    async def _say_json(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        await self._say(status, "application/json", encoded(answer))

    async def _say(
        self, status: HTTPStatus, kind: str, body: bytes, fields: dict[str, str] | None = None
    ) -> None:
        lines = [f"HTTP/1.1 {status.value} {status.phrase}", "Server: zeroxide"]
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            fields = {"Retry_After": "1"} | (fields or {})
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in (fields or {}).items()]
        if self._request is None or not self._request.is_kept:
            lines.append("Connection: close")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
        if self._request is not None and self._request.method == "HEAD":
            body = b""
        async with self._server.answering(len(body)), self._waiting(len(body)):
            self._writer.write(head + body[:CHUNK])
            await self._writer.drain()
            for at in range(CHUNK, len(body), CHUNK):
                self._writer.write(body[at : at + CHUNK])
                await self._writer.drain()


def _is_on(name: str, value: str) -> bool:
    if value.lower() in ("true", "1", ""):
        return True
    if value.lower() in ("false", "0"):
        return False
    raise Wrong(HTTPStatus.BAD_REQUEST, f"{name} is true or false, not {value!r}", "invalid")


def _too_slow(what: str) -> Wrong:
    return Wrong(HTTPStatus.REQUEST_TIMEOUT, f"{what} did not come in time", is_over=True)


def encoded(answer: dict[str, Any]) -> bytes:
    """Makes an answer in JSON."""
    return json.dumps(answer).encode() + b"\n"
