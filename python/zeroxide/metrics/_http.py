"""An HTTP endpoint for Prometheus."""

import contextlib
import io
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

from .. import _checks
from .._arguments import address as parse_address
from ._snapshot import Snapshot, snapshot
from ._text import OPENMETRICS, PROMETHEUS, render

__all__ = ["MetricsServer", "Source", "serve"]

# Where the numbers come from: processes, and collectors by endpoint.
Source = Callable[[], tuple[Sequence[Snapshot], Mapping[str, Mapping[str, Any]]]]

# How long a client may take for its request and for the answer, in seconds.
_PATIENCE = 10

# Clients at a time. Each has a thread. A further one takes the place of the one that came first.
_MOST_CLIENTS = 16

# How long to wait after a client could not be accepted, in seconds: it stays in the queue of the kernel.
_PAUSE = 0.1

# The longest request, in bytes.
_LONGEST_REQUEST = 16 * 1024


class MetricsServer:
    """A running HTTP server, as `serve` returns it. As a ``with`` block, it closes at the end.

    Args:
        host: The host to listen at.
        port: The port; 0 for a free one.
        source: Returns the processes and, by endpoint, the collectors of each answer.

    Source:
        zeroxide only
    """

    def __init__(self, host: str, port: int, source: Source) -> None:
        handler = type("Handler", (_Handler,), {"source": staticmethod(source)})
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        server = type("Server", (_Server,), {"address_family": family})
        self._server: _Server = server((host, port), handler)
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="zeroxide/metrics", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Unlike `serve_forever`, this does not wake up while nothing happens.
        while not self._is_closing:
            self._server.handle_request()

    @property
    def url(self) -> str:
        """The address of the metrics, as in ``http://127.0.0.1:9100/metrics``."""
        host, port = self._server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{shown}:{port}/metrics"

    @property
    def dropped(self) -> int:
        """The number of clients that were disconnected because 16 others came after them before they were done."""
        return self._server.dropped

    def close(self) -> None:
        """Ends the server. Closing again does nothing."""
        if not self._is_closing:
            self._is_closing = True
            # This wakes up the thread.
            self._server.socket.shutdown(socket.SHUT_RDWR)
            self._thread.join()
            self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self.dropped = 0
        # In the order in which they came.
        self._clients: dict[Any, None] = {}
        self._has_room = threading.Condition()
        super().__init__(*arguments)

    def get_request(self) -> Any:
        try:
            return super().get_request()
        except OSError:
            # Without descriptors, the client is asked for again at once, and again.
            time.sleep(_PAUSE)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._has_room:
            if len(self._clients) >= _MOST_CLIENTS:
                self.dropped += 1
                with contextlib.suppress(OSError):
                    next(iter(self._clients)).shutdown(socket.SHUT_RDWR)
                # Its thread ends, at the latest when it has rendered an answer.
                self._has_room.wait_for(lambda: len(self._clients) < _MOST_CLIENTS)
            self._clients[request] = None
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        super().close_request(request)
        with self._has_room:
            self._clients.pop(request, None)
            self._has_room.notify()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores it: clients may hang up."""


class _Request(io.RawIOBase):
    """The bytes of a request, which has to be complete in time, however slowly it arrives."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline
        self._left = _LONGEST_REQUEST

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left <= 0:
            raise ConnectionError("the request is too long")
        _limit(self._connection, self._deadline)
        count = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= count
        return count


def _limit(connection: socket.socket, deadline: float) -> None:
    """Limits the next call of a connection."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    connection.settimeout(left)


class _Handler(BaseHTTPRequestHandler):
    source: ClassVar[Source]

    def setup(self) -> None:
        super().setup()
        self._deadline = time.monotonic() + _PATIENCE
        self.rfile.close()
        self.rfile = io.BufferedReader(_Request(self.connection, self._deadline))

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/":
            self._reply(200, "text/plain; charset=utf-8", "the metrics are at /metrics\n")
        elif path != "/metrics":
            self._reply(
                404, "text/plain; charset=utf-8", "no such path; the metrics are at /metrics\n"
            )
        else:
            is_open = "application/openmetrics-text" in self.headers.get("Accept", "")
            snapshots, collectors = type(self).source()
            text = render(snapshots, collectors, is_open=is_open)
            self._reply(200, OPENMETRICS if is_open else PROMETHEUS, text)

    def _reply(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        _limit(self.connection, self._deadline)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        _limit(self.connection, self._deadline)
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


def serve(address: str = "127.0.0.1:9100", *, peers: int = 0) -> MetricsServer:
    """Serves the metrics of this process to Prometheus, at ``/metrics``.

    It uses a thread, which sleeps between requests. Any program that can connect may read the
    metrics, which name endpoints and addresses.

    Args:
        address: The host and port: ``127.0.0.1:9100``, ``0.0.0.0:9100`` for every interface,
            ``127.0.0.1:*`` for a free port.
        peers: The number of peers of each socket that get metrics of their own. Each peer is a
            new time series, so this is not for peers that come and go.

    Returns:
        The server.

    Raises:
        OSError: The address cannot be used.
        ValueError: `address` is not a host and port.

    Example:
        >>> with zmq.metrics.serve("127.0.0.1:*") as server:
        ...     server.url.endswith("/metrics")
        True

    Source:
        OpenMetrics 1.0.0, and Prometheus' text format 0.0.4
    """
    _checks.whole("peers", peers)
    try:
        host, port = parse_address(address)
    except Exception as error:
        raise ValueError(f"address: {error}") from None
    return MetricsServer(host, port, lambda: ([snapshot(peers)], {}))
