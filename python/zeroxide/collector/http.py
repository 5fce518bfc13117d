"""A collector over HTTP: programs write rows with POST, and read its state with GET.

``POST /pub?topic=T&key=K``   the body is one message
``POST /mpub?topic=T&key=K``  the body is one message per line; with ``binary=true`` it is a
                              number of messages, then the length and the bytes of each, the
                              numbers in four bytes, big endian
``GET /``                     a page that shows the figures of /stats in a browser
``GET /metrics``              counters for Prometheus
``GET /stats``                the same and more, as JSON
``GET /rows?topic=T&rows=N``  the last rows of a topic, or of all: beginnings of their values
``GET /health``               200 while rows can be written, else 503
``GET /live``                 200 while the collector runs

The status 200 for a POST means that the rows are on disk, and the body names their offsets:
``{"first": 7, "end": 9}``. After any other status, the rows may not be there, and can be sent
again. A large body is written in pieces as it arrives, so rows of other writers may be in between.

All connections are served by one thread. The cost of a client is bounded: time by deadlines, memory
by `_BODIES`, `_SPLITTING` and `_ANSWERS`, connections by `_CONNECTIONS`. When there are
more, the one that has kept the server waiting longest is closed. A connection for /health is
therefore always available, however many clients are idle.
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
from .rows import last_rows

if TYPE_CHECKING:
    from ..pipeline import Collector

__all__ = ["HttpServer", "is_loopback"]

# The maximum time for rows to reach the disk, in seconds.
_APPEND = 30.0
# The maximum numbers of connections, of those whose rows wait for the disk, and of those that split
# a large body; of bytes in bodies (in addition to the largest body); and of bytes in answers that
# clients have not taken.
_CONNECTIONS = 256
_APPENDING = 128
_SPLITTING = 8
_BODIES = 64 << 20
_ANSWERS = 64 << 20
# The approximate memory of the rows that are appended at once, and the overhead of each row.
_PIECE = 8 << 20
_ROW = 64
# Requests for the last rows that may wait for the disk.
_READING = 16

# The content types of forms, which a page of another origin may send without a preflight request.
_FORMS = {"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"}

_METHODS = {
    "/": ("GET", "HEAD"),
    "/pub": ("POST",),
    "/mpub": ("POST",),
    "/metrics": ("GET", "HEAD"),
    "/stats": ("GET", "HEAD"),
    "/rows": ("GET", "HEAD"),
    "/health": ("GET", "HEAD"),
    "/live": ("GET", "HEAD"),
}
# These paths reveal the health of the process, and nothing about the log. The page shows only what
# its reader's token gives access to.
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

    With a `token`, all paths except /, /health and /live require it. Without one, the address must
    be on the loopback interface, unless `open_to_network` lets other machines write and read. `hosts`
    are the host names of the server, in addition to its addresses. Requests for other names are
    refused, because a browser may have been lured here by one.
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
        # The loop itself holds tasks weakly.
        self._tasks: set[asyncio.Task[None]] = set()
        self._appending = 0
        self._bodies = 0
        self._answers = 0
        self._counts = dict.fromkeys(metrics.HTTP, 0)
        self._reading = 0
        # Otherwise, a client needs a key, or access to a file, to read.
        self._is_readable = token is not None or (
            not collector._needs_key and collector.endpoint.startswith("tcp:")
        )
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
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="collector-http", daemon=True)

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Begins to serve.

        Raises:
            OSError: The system has no descriptors or no memory left.
        """
        self._thread.start()
        self._began.wait()
        if self._failure is not None:
            self.close()
            raise self._failure

    def close(self) -> None:
        """Stops serving. Clients that wait for an answer see the connection end."""
        if self._thread.is_alive() and self._loop is not None and self._over is not None:
            with suppress(RuntimeError):  # the connection has just ended
                self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()
        self._socket.close()

    # ---- connections -----------------------------------------------------------------------

    def _run(self) -> None:
        try:
            # A thread of its own, so that requests for counters do not wait for rows to be appended.
            with (
                ThreadPoolExecutor(_APPENDING) as self._writers,
                ThreadPoolExecutor(1) as self._askers,
                ThreadPoolExecutor(1) as self._readers,
                asyncio.Runner() as runner,
            ):
                runner.run(self._serve())
        except Exception as error:
            if self._began.is_set():
                raise
            self._failure = error
        finally:
            self._began.set()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._splitting = asyncio.Semaphore(_SPLITTING)
        server = await asyncio.start_server(self._accept, sock=self._socket, limit=CHUNK)
        self._began.set()
        await self._over.wait()
        server.close()
        for connection in list(self._connections):
            connection.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # If this was a coroutine, asyncio would print a traceback for each one that is cancelled at the end.
        task = asyncio.get_running_loop().create_task(self._serve_client(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
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
        """Closes the connection that waited longest, or the longest of those with bodies."""
        waiting = [one for one in self._connections if one.waits_since is not None]
        if holding:
            waiting = [one for one in waiting if one.held]
        if waiting:
            self._counts["http_evicted"] += 1
            oldest = min(waiting, key=lambda one: one.waits_since or 0.0)
            self._connections.discard(oldest)
            oldest.abort()

    # ---- access rights -------------------------------------------------------------------

    def check(self, request: Request) -> None:
        """Raises `Wrong` for a request that is not to be served."""
        if request.path not in _METHODS:
            text = f"no such path; the paths are {', '.join(_METHODS)}"
            raise Wrong(HTTPStatus.NOT_FOUND, text)
        allowed = _METHODS[request.path]
        if request.method not in ("GET", "HEAD", "POST"):
            text = f"the method {request.method} is not supported"
            raise Wrong(HTTPStatus.NOT_IMPLEMENTED, text)
        if request.method not in allowed:
            text = f"{request.path} takes {' and '.join(allowed)}, not {request.method}"
            raise Wrong(HTTPStatus.METHOD_NOT_ALLOWED, text, Allow=", ".join(allowed))
        if request.path in _FOR_ALL:
            return
        if self._token is not None:
            given = request.one("authorization").encode("latin-1")
            if not hmac.compare_digest(given, self._token):
                text = "this request needs the header Authorization: Bearer TOKEN"
                raise Wrong(HTTPStatus.UNAUTHORIZED, text, WWW_Authenticate="Bearer")
            return
        self._check_browser(request)
        if request.path == "/rows" and not self._is_readable:
            text = "reading rows over HTTP needs --http-token, because this collector's other readers need a key or access to its ipc file"
            raise Wrong(HTTPStatus.FORBIDDEN, text)

    def _check_browser(self, request: Request) -> None:
        """Refuses requests of other sites: without a token, a page in a local browser could do anything."""
        origin = request.one("origin") or request.one("sec-fetch-site").lower()
        if origin not in ("", "none", "same-origin"):
            text = "cross-origin requests are refused; see --http-token"
            raise Wrong(HTTPStatus.FORBIDDEN, text)
        host = request.host
        if host and host not in self._hosts and not _is_address(host):
            text = (
                f"this collector is not called {host}; if that is its name, add it with --http-host"
            )
            raise Wrong(HTTPStatus.MISDIRECTED_REQUEST, text)
        kind = request.one("content-type").partition(";")[0].strip().lower()
        if request.method == "POST" and kind in _FORMS:
            text = (
                f"Content-Type {kind} is refused, because a form on any web page can send it; use"
                " application/octet-stream"
            )
            raise Wrong(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text)

    # ---- rows ------------------------------------------------------------------------------

    async def append(self, values: list[bytes], extras: dict[str, str]) -> tuple[int, int]:
        """Appends rows. Returns the offset of the first and the offset after the last."""
        cost = _ROW + sum(len(extra) for extra in extras.values())
        most = max(1, _PIECE // cost)
        first, end = await self._append(values[:most], extras)
        for at in range(most, len(values), most):
            _, end = await self._append(values[at : at + most], extras)
        return first, end

    async def _append(self, values: list[bytes], extras: dict[str, str]) -> tuple[int, int]:
        if self._appending >= _APPENDING:
            text = "too many appends are in progress; try again"
            raise Wrong(HTTPStatus.SERVICE_UNAVAILABLE, text, "too-many")
        rows: Any = ({"value": value, **extras} for value in values) if extras else values
        self._appending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._writers, lambda: self.collector.append(rows, timeout_s=_APPEND)
            )
        finally:
            self._appending -= 1

    async def last_rows(self, topic: str | None, most: int) -> dict[str, Any]:
        """The last rows of a topic, or of all, as they are served."""
        if self._reading >= _READING:
            text = "too many requests for rows are in progress; try again"
            raise Wrong(HTTPStatus.SERVICE_UNAVAILABLE, text, "too-many")
        self._reading += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._readers, last_rows, self.collector, topic, most
            )
        finally:
            self._reading -= 1

    def splitting(self, size: int) -> Any:
        """Waits for a turn to split a body, whose messages need more memory than the body."""
        return self._splitting if size > CHUNK else nullcontext()

    def hold(self, size: int) -> None:
        """Adjusts the number of bytes in bodies."""
        if size > 0 and self._bodies + size > _BODIES + self.max_body_bytes:
            self._make_room(holding=True)
            text = "clients are sending too many bytes at once; try again"
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
            # That state may be older than this request.
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
            # Rows are still accepted, because segments are kept until they have been copied.
            state["archive_failure"] = stats["archive_failure"]
        return Snapshot(time.monotonic(), state, encoded(stats), page)

    @asynccontextmanager
    async def answering(self, size: int) -> AsyncIterator[None]:
        """Adjusts the number of bytes that wait to be sent."""
        if size > CHUNK and self._answers + size > _ANSWERS:
            text = "too many bytes of answers wait for clients to read them; try again"
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
    """Returns whether a host is an address; a third party could make a name lead here."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
