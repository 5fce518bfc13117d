"""A collector over HTTP: whatever can POST is a producer, and whatever can GET can watch.

``POST /pub?topic=T&key=K``   the body is one message
``POST /mpub?topic=T&key=K``  the body is one message per line; with ``binary=true`` it is a
                              number of messages, then the length and the bytes of each, the
                              numbers in four bytes, big endian
``GET /metrics``              counters for Prometheus
``GET /stats``                the same and more, as JSON
``GET /health``               200 while rows can be written, else 503

An answer to a POST says 200 when the rows are on disk, and where: ``{"first": 7, "end": 9}``.
Anything else means that they may not be there, and can be sent again.
"""

import contextlib
import hmac
import json
import socket
import struct
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from . import metrics
from .errors import CollectorError, Refused

if TYPE_CHECKING:
    from .service import Collector

__all__ = ["HttpServer"]

# For how long a client may take with its request, or its next one.
_PATIENCE = 30.0
# For how long rows may take to the disk.
_APPEND = 30.0
_CONNECTIONS = 128
# How much of a body that nobody wants is taken so that its sender hears of it.
_LEFTOVER = 32 << 20

_STATUS = {
    "too-big": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "malformed": HTTPStatus.BAD_REQUEST,
    "invalid": HTTPStatus.BAD_REQUEST,
}


class HttpServer(ThreadingHTTPServer):
    """Serves a collector over HTTP, on threads of its own, until it is closed."""

    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(
        self,
        collector: "Collector",
        address: tuple[str, int],
        *,
        max_body_bytes: int = 16 << 20,
        token: str | None = None,
    ) -> None:
        self.collector = collector
        self.max_body_bytes = max_body_bytes
        self.token = token
        self._room = threading.BoundedSemaphore(_CONNECTIONS)
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        try:
            super().__init__(address, _Handler)
        except OSError as error:
            where = ":".join(map(str, address))
            text = f"cannot listen for HTTP at {where}: {error.strerror or error}"
            raise OSError(error.errno, text) from error
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.1}, name="collector-http"
        )
        self._thread.daemon = True

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        host, port = self.socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Begins to serve."""
        self._thread.start()

    def close(self) -> None:
        """Stops serving; requests that are being answered may end with the process."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for the connection, unless there are too many."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks off concerns nobody else."""


class _Wrong(Exception):
    """What to answer to a request that cannot be served."""

    def __init__(self, status: HTTPStatus, text: str, code: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.code = code


class _Handler(BaseHTTPRequestHandler):
    server: HttpServer
    protocol_version = "HTTP/1.1"
    server_version = "zeroxide"
    sys_version = ""
    timeout = _PATIENCE
    # An answer is written at once, head and body.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        routes: dict[str, Callable[[], None]] = {
            "/metrics": self._metrics,
            "/stats": self._stats,
            "/health": self._health,
        }
        self._answer(routes, {"/pub", "/mpub"})

    do_HEAD = do_GET

    def do_POST(self) -> None:
        routes: dict[str, Callable[[], None]] = {"/pub": self._pub, "/mpub": self._mpub}
        self._answer(routes, {"/metrics", "/stats", "/health"})

    def _answer(self, routes: dict[str, Callable[[], None]], others: set[str]) -> None:
        path = urlsplit(self.path).path
        try:
            if path in routes:
                routes[path]()
            elif path in others:
                raise _Wrong(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} is not for {self.command}")
            else:
                raise _Wrong(
                    HTTPStatus.NOT_FOUND, "there is /pub, /mpub, /metrics, /stats and /health"
                )
        except _Wrong as wrong:
            if self.command == "POST":
                # What is left of the body would be taken for the next request; closing on
                # top of it would take the answer away.
                self.close_connection = True
                self._say_json(wrong.status, {"error": str(wrong), "code": wrong.code})
                self._let_go()
            else:
                self._say_json(wrong.status, {"error": str(wrong), "code": wrong.code})
        except Refused as refused:
            status = _STATUS.get(refused.code, HTTPStatus.SERVICE_UNAVAILABLE)
            self._say_json(status, {"error": str(refused), "code": refused.code})
        except CollectorError as error:
            self._say_json(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error), "code": "gone"})

    # ---- in --------------------------------------------------------------------------------

    def _pub(self) -> None:
        extras = self._extras()
        self._append([{"value": self._body(), **extras}])

    def _mpub(self) -> None:
        extras = self._extras()
        is_binary = self._query().get("binary", ["false"])[-1].lower() in ("true", "1", "")
        body = self._body()
        values = _counted(body) if is_binary else [line for line in body.split(b"\n") if line]
        self._append([{"value": value, **extras} for value in values] if extras else values)

    def _append(self, rows: list[Any]) -> None:
        first, end = self.server.collector.append(rows, timeout=_APPEND)
        self._say_json(HTTPStatus.OK, {"first": first, "end": end})

    def _query(self) -> dict[str, list[str]]:
        try:
            return parse_qs(
                urlsplit(self.path).query,
                keep_blank_values=True,
                errors="strict",
                max_num_fields=16,
            )
        except ValueError as error:
            raise _Wrong(HTTPStatus.BAD_REQUEST, f"the query cannot be read: {error}") from None

    def _extras(self) -> dict[str, str]:
        query = self._query()
        return {name: query[name][-1] for name in ("topic", "key") if name in query}

    def _body(self) -> bytes:
        token = self.server.token
        if token is not None:
            given = self.headers.get("Authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
                raise _Wrong(HTTPStatus.UNAUTHORIZED, "Authorization: Bearer TOKEN is asked for")
        if "Transfer-Encoding" in self.headers:
            raise _Wrong(HTTPStatus.LENGTH_REQUIRED, "send the body with a Content-Length")
        try:
            length = int(self.headers["Content-Length"])
        except (TypeError, ValueError):
            raise _Wrong(HTTPStatus.LENGTH_REQUIRED, "a Content-Length is needed") from None
        most = self.server.max_body_bytes
        if not 0 <= length <= most:
            raise _Wrong(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {most} bytes", "too-big"
            )
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError("the body ended early")
        return body

    def _let_go(self) -> None:
        """Lets the client see the answer although it is still sending."""
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(1.0)
            for _ in range(_LEFTOVER // 65536):
                if not self.connection.recv(65536):
                    break

    # ---- out -------------------------------------------------------------------------------

    def _metrics(self) -> None:
        page = metrics.render(self.server.collector.stats())
        self._say(HTTPStatus.OK, metrics.CONTENT_TYPE, page.encode())

    def _stats(self) -> None:
        self._say_json(HTTPStatus.OK, self.server.collector.stats())

    def _health(self) -> None:
        stats = self.server.collector.stats()
        is_fine = stats["state"] == "fine"
        status = HTTPStatus.OK if is_fine else HTTPStatus.SERVICE_UNAVAILABLE
        self._say_json(status, {"state": stats["state"], "reason": stats["reason"]})

    def _say_json(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        self._say(status, "application/json", json.dumps(answer).encode() + b"\n")

    def _say(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are counted, not logged."""


def _counted(body: bytes) -> list[bytes]:
    """A number of messages, then each with its length."""
    wrong = _Wrong(HTTPStatus.BAD_REQUEST, "the lengths in the body do not fit it", "malformed")
    if len(body) < 4:
        raise wrong
    (count,) = struct.unpack_from(">I", body)
    values: list[bytes] = []
    at = 4
    # The body is here already, and each message takes four bytes at least.
    for _ in range(min(count, len(body))):
        if at + 4 > len(body):
            raise wrong
        (length,) = struct.unpack_from(">I", body, at)
        at += 4 + length
        values.append(body[at - length : at])
        if at > len(body):
            raise wrong
    if len(values) != count or at != len(body):
        raise wrong
    return values
