"""A collector over HTTP: whatever can POST is a producer, and whatever can GET can watch.

``POST /pub?topic=T&key=K``   the body is one message
``POST /mpub?topic=T&key=K``  the body is one message per line; with ``binary=true`` it is a
                              number of messages, then the length and the bytes of each, the
                              numbers in four bytes, big endian
``GET /``                     a page that shows the figures of /stats in a browser
``GET /metrics``              counters for Prometheus
``GET /stats``                the same and more, as JSON
``GET /health``               200 while rows can be written, else 503
``GET /live``                 200 while the collector runs

An answer to a POST says 200 when the rows are on disk, and where: ``{"first": 7, "end": 9}``.
Anything else means that they may not be there, and can be sent again. Of a large body the
messages are written in pieces, as they come in: rows of others may come in between.

All connections are served by one thread. What a client may cost is bounded: time by
deadlines, memory by `_BODIES`, `_SPLITTING` and `_ANSWERS`, connections by `_CONNECTIONS`; when there are
more, the one that has kept us waiting for longest has to go. So there is always one to be had
for /health, however many do nothing with theirs.
"""

import asyncio
import hmac
import ipaddress
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from ..pipeline import CollectorError
from . import metrics
from .connection import CHUNK, Connection, encoded
from .request import Request, Wrong

if TYPE_CHECKING:
    from ..pipeline import Collector

__all__ = ["HttpServer", "is_loopback"]

# For how long rows may take to the disk.
_APPEND = 30.0
# Connections; those whose rows are on their way to the disk; those of them that have many;
# bytes of bodies, beside the largest one that may come, and bytes of answers that are not
# taken yet.
_CONNECTIONS = 256
_APPENDING = 128
_SPLITTING = 8
_BODIES = 64 << 20
_ANSWERS = 64 << 20
# About so much memory is taken by the rows that are appended at once, with what a row costs
# beside its bytes.
_PIECE = 8 << 20
_ROW = 64

# What a page of another origin may send without asking: a form.
_FORMS = {"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"}

_METHODS = {
    "/": ("GET", "HEAD"),
    "/pub": ("POST",),
    "/mpub": ("POST",),
    "/metrics": ("GET", "HEAD"),
    "/stats": ("GET", "HEAD"),
    "/health": ("GET", "HEAD"),
    "/live": ("GET", "HEAD"),
}
# They tell whether the process is well, and nothing that is in the log. The page shows no more
# than its reader's token opens.
_FOR_ALL = {"/", "/health", "/live"}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


class HttpServer:
    """Serves a collector over HTTP, on a thread of its own, until it is closed.

    With a `token` all but /, /health and /live ask for it. Without one the address has to be on
    the loopback, unless `open_to_network` says that others may write and read. `hosts` are
    names by which it is called, beside its addresses: a browser that was lured here calls it
    by another one.
    """

    def __init__(
        self,
        collector: "Collector",
        address: tuple[str, int],
        *,
        max_body_bytes: int = 16 << 20,
        token: str | None = None,
        hosts: Iterable[str] = (),
        open_to_network: bool = False,
    ) -> None:
        where = ":".join(map(str, address))
        if token is None and not open_to_network and not is_loopback(address[0]):
            raise CollectorError(
                f"HTTP at {where} is reachable from other machines, and without a token every"
                " client can write and read: give it a token (--http-token FILE), or"
                " permit this with --open-to-network"
            )
        self.collector = collector
        self.max_body_bytes = max_body_bytes
        self._token = None if token is None else b"Bearer " + token.encode()
        self._hosts = {"localhost", address[0].lower(), *(host.lower() for host in hosts)}
        self._connections: set[Connection] = set()
        self._appending = 0
        self._bodies = 0
        self._answers = 0
        self._counts = dict.fromkeys(metrics.HTTP, 0)
        self._asking: asyncio.Future[Snapshot] | None = None
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        try:
            self._socket = socket.create_server(address, family=family, backlog=128)
        except OSError as error:
            text = f"cannot listen for HTTP at {where}: {error.strerror or error}"
            raise OSError(error.errno, text) from error
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector-http", daemon=True)

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Begins to serve."""
        self._thread.start()
        self._began.wait()

    def close(self) -> None:
        """Stops serving; who waits for an answer sees the connection end."""
        if self._thread.is_alive() and self._loop is not None and self._over is not None:
            with suppress(RuntimeError):  # it has just ended by itself
                self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()
        self._socket.close()

    # ---- connections -----------------------------------------------------------------------

    def _run(self) -> None:
        # Asking for counters does not wait behind rows.
        with ThreadPoolExecutor(_APPENDING) as self._writers, ThreadPoolExecutor(1) as self._askers:
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._splitting = asyncio.Semaphore(_SPLITTING)
        server = await asyncio.start_server(self._accept, sock=self._socket, limit=CHUNK)
        self._began.set()
        await self._over.wait()
        server.close()
        for connection in list(self._connections):
            connection.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(self, reader, writer)
        if len(self._connections) >= _CONNECTIONS:
            self._make_room()
        self._connections.add(connection)
        try:
            await connection.serve()
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass  # a connection that breaks off does not affect others
        finally:
            self._connections.discard(connection)
            connection.abort()

    def _make_room(self, *, holding: bool = False) -> None:
        """Ends the connection that has kept us waiting for longest, or that of those with bodies."""
        waiting = [one for one in self._connections if one.waits_since is not None]
        if holding:
            waiting = [one for one in waiting if one.held]
        if waiting:
            self._counts["http_evicted"] += 1
            oldest = min(waiting, key=lambda one: one.waits_since or 0.0)
            self._connections.discard(oldest)
            oldest.abort()

    # ---- who may do what -------------------------------------------------------------------

    def check(self, request: Request) -> None:
        """Raises `Wrong` for a request that is not to be served."""
        if request.path not in _METHODS:
            text = f"there is {', '.join(_METHODS)}"
            raise Wrong(HTTPStatus.NOT_FOUND, text)
        allowed = _METHODS[request.path]
        if request.method not in ("GET", "HEAD", "POST"):
            raise Wrong(HTTPStatus.NOT_IMPLEMENTED, f"there is no {request.method} here")
        if request.method not in allowed:
            text = f"{request.path} is not for {request.method}"
            raise Wrong(HTTPStatus.METHOD_NOT_ALLOWED, text, Allow=", ".join(allowed))
        if request.path in _FOR_ALL:
            return
        if self._token is not None:
            given = request.one("authorization").encode("latin-1")
            if not hmac.compare_digest(given, self._token):
                text = "Authorization: Bearer TOKEN is asked for"
                raise Wrong(HTTPStatus.UNAUTHORIZED, text, WWW_Authenticate="Bearer")
            return
        self._check_browser(request)

    def _check_browser(self, request: Request) -> None:
        """Refuses requests of other sites: without a token, a page in a local browser could do anything."""
        origin = request.one("origin") or request.one("sec-fetch-site").lower()
        if origin not in ("", "none", "same-origin"):
            text = "pages of other origins may not do this: there is --http-token"
            raise Wrong(HTTPStatus.FORBIDDEN, text)
        host = request.host
        if host and host not in self._hosts and not _is_address(host):
            text = (
                f"this collector is not called {host}: if that is its name, add it with --http-host"
            )
            raise Wrong(HTTPStatus.MISDIRECTED_REQUEST, text)
        kind = request.one("content-type").partition(";")[0].strip().lower()
        if request.method == "POST" and kind in _FORMS:
            text = f"{kind} is what forms send: say Content-Type: application/octet-stream"
            raise Wrong(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text)

    # ---- rows ------------------------------------------------------------------------------

    async def append(self, values: list[bytes], extras: dict[str, str]) -> tuple[int, int]:
        """Appends rows; gives the offset of the first and the one behind the last."""
        cost = _ROW + sum(len(extra) for extra in extras.values())
        most = max(1, _PIECE // cost)
        first, end = await self._append(values[:most], extras)
        for at in range(most, len(values), most):
            _, end = await self._append(values[at : at + most], extras)
        return first, end

    async def _append(self, values: list[bytes], extras: dict[str, str]) -> tuple[int, int]:
        if self._appending >= _APPENDING:
            text = "too many rows are on their way: ask again"
            raise Wrong(HTTPStatus.SERVICE_UNAVAILABLE, text, "too-many")
        rows: Any = ({"value": value, **extras} for value in values) if extras else values
        self._appending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._writers, lambda: self.collector.append(rows, timeout_s=_APPEND)
            )
        finally:
            self._appending -= 1

    def splitting(self, size: int) -> Any:
        """A turn to take so many bytes apart: their messages need more memory than they do."""
        return self._splitting if size > CHUNK else nullcontext()

    def hold(self, size: int) -> None:
        """So many bytes of bodies more, or fewer, are here."""
        if size > 0 and self._bodies + size > _BODIES + self.max_body_bytes:
            self._make_room(holding=True)
            text = "too much is being sent at the same time: ask again"
            raise Wrong(HTTPStatus.SERVICE_UNAVAILABLE, text, "too-many", is_over=True)
        self._bodies += size

    # ---- counters --------------------------------------------------------------------------

    def count(self, name: str) -> None:
        self._counts[name] += 1

    async def snapshot(self, age: float = 0.0) -> "Snapshot":
        """The counters as they are now, or were at most `age` seconds ago. Concurrent calls share one request."""
        before = self._asking
        if before is not None and before.done() and not before.exception():
            last = before.result()
            if time.monotonic() - last.taken < age:
                return last
        if before is not None and not before.done():
            # It may be from before our request came.
            with suppress(CollectorError):
                await asyncio.shield(before)
        if self._asking is before:
            loop = asyncio.get_running_loop()
            self._asking = loop.run_in_executor(self._askers, self._take_snapshot)
        assert self._asking is not None
        return await asyncio.shield(self._asking)

    def _take_snapshot(self) -> "Snapshot":
        stats: dict[str, Any] = {**self.collector.stats(), **self._counts}
        stats["http_connections"] = len(self._connections)
        page = metrics.render(stats).encode()
        state = {"state": stats["state"], "reason": stats["reason"]}
        if stats.get("archive_failure"):
            # Rows are taken all the same: their originals stay until there is a copy.
            state["archive_failure"] = stats["archive_failure"]
        return Snapshot(time.monotonic(), state, encoded(stats), page)

    @asynccontextmanager
    async def answering(self, size: int) -> AsyncIterator[None]:
        """So many bytes are to be sent."""
        if size > CHUNK and self._answers + size > _ANSWERS:
            text = "too many answers are not taken: ask again"
            raise Wrong(HTTPStatus.SERVICE_UNAVAILABLE, text, "too-many")
        self._answers += size
        try:
            yield
        finally:
            self._answers -= size


@dataclass(frozen=True)
class Snapshot:
    """Counters in the forms in which they are served."""

    taken: float
    state: dict[str, str]
    json: bytes
    metrics: bytes


def _is_address(host: str) -> bool:
    """Whether a host is named by its address: no name that somebody else may point here."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
