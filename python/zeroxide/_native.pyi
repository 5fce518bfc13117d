"""The extension module: what rust/py provides.

Times are milliseconds as in the rest of the API, but for `Release.wait`. A blocking
call releases the GIL, and a Python signal handler may end it by raising.
"""

import asyncio
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from types import ModuleType
from typing import (
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
    overload,
)

from typing_extensions import Buffer

from ._tracker import MessageTracker
from ._typing import ArrowData, Batch, HasFileno, OptionValue, Part, Pending
from .error import NotFlushed, ZMQError

__version__: str

class Dropped(TypedDict):
    """Messages that were not delivered, by reason."""

    # No room at the peer (PUB, ROUTER).
    high_water: int
    no_peer: int
    # Nobody has the routing id.
    unroutable: int
    # A newer message took its place (CONFLATE).
    conflated: int
    # It arrived although nothing here subscribes to it.
    filtered: int
    # It lacked parts that the pattern requires.
    malformed: int
    # The connection ended in the middle of it.
    torn: int
    # The connection was lost before it had left, or before the peer's machine had it.
    peer_gone: int
    # The socket was closed, and its linger time was over.
    lingered: int
    # A newer request took its place, or a reply nobody waits for any more.
    stale: int
    # From a peer that the pattern had turned away, or not received before a disconnect.
    refused: int
    # A subscription above MAX_SUBSCRIPTIONS or MAX_SUBSCRIPTION_BYTES, which was ignored.
    excess: int
    unfinished: int
    # There was no memory for it, or none left in MEMORY_BUDGET; the connection of its sender was ended.
    no_memory: int
    # Larger than MAXMSGSIZE, which ended the connection.
    too_large: int

class PeerStats(TypedDict):
    """Counters of one connection."""

    # What was bound or connected to, and where the peer is.
    endpoint: str
    address: str
    routing_id: bytes
    connected: bool
    # Somebody else has its routing id: it is not read from until that is free.
    waiting: bool
    sent: int
    sent_bytes: int
    received: int
    received_bytes: int
    queued_out: int
    queued_in: int
    dropped: Dropped

class SocketStats(TypedDict):
    """What `Socket.stats` returns; messages count as wholes."""

    sent: int
    sent_bytes: int
    received: int
    received_bytes: int
    queued_out: int
    queued_in: int
    dropped: Dropped
    no_subscriber: int
    peers: list[PeerStats]

class _Tracked(Protocol):
    def __call__(self, release: Release, /) -> MessageTracker: ...

class Context:
    """A set of I/O threads and the sockets on them."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def _open(self, io_threads: int) -> None: ...
    def _share(self, other: Context) -> None: ...
    def _term_idle(self, idle_ms: int) -> dict[str, int]: ...
    def set(self, option: int, optval: int | str | bytes) -> None: ...
    def get(self, option: int) -> int: ...
    def term(self) -> None:
        """Waits until every socket is closed and its messages are out, then ends.

        Calls that wait on sockets of the context raise `ContextTerminated`. When a
        signal handler raises, so does this, and calling it again goes on.
        """

    def shutdown(self) -> None:
        """Makes every call on the context's sockets raise `ContextTerminated`."""

    @property
    def closed(self) -> bool: ...
    @property
    def underlying(self) -> int: ...

class Producer:
    """Rows into collectors' logs; see `zeroxide.Producer`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def _open(
        self,
        endpoints: list[str],
        *,
        name: str | None,
        spool: str | PathLike[str] | None,
        spool_bytes: int,
        spool_sync: bool,
        max_unacked_rows: int,
        max_unacked_bytes: int,
        linger_ms: float,
        batch_rows: int,
        batch_bytes: int,
        timeout: float | None,
        server_key: str | bytes | None,
        public_key: str | bytes | None,
        secret_key: str | bytes | None,
        notices: bool,
    ) -> None: ...
    def send(
        self,
        value: str | Buffer,
        key: str | Buffer | None = None,
        topic: str | Buffer | None = None,
        headers: Mapping[str, str | Buffer] | Iterable[tuple[str, str | Buffer]] | None = None,
        timestamp: datetime | float | None = None,
    ) -> None:
        """Accepts a row, waiting while there is no room for it.

        Any thread may send. A signal handler that raises ends the wait.

        Args:
            value: The row's value: bytes, text (encoded as UTF-8), or any buffer.
            key: Rows with the same key go to the same collector.
            topic: The row's topic, in UTF-8.
            headers: A dict, or pairs of a name and a value.
            timestamp: When it happened: a datetime (without a zone, in local time), a float of
                seconds, or an int of microseconds since 1970. Default: the time of receipt.

        Raises:
            CollectorGone: If there was no room, and the collector was gone, for longer than the
                producer's timeout.
            Refused: If the collector took nothing for that long.
            Fenced: If another producer has taken over the name.
        """

    def _try_send(
        self,
        value: str | Buffer,
        key: str | Buffer | None = None,
        topic: str | Buffer | None = None,
        headers: Mapping[str, str | Buffer] | Iterable[tuple[str, str | Buffer]] | None = None,
        timestamp: datetime | float | None = None,
    ) -> tuple[int, int] | None: ...
    def _try_take(
        self,
        row: str | Buffer | Mapping[str, Any],
        key: str | Buffer | None = None,
        topic: str | Buffer | None = None,
        headers: Mapping[str, str | Buffer] | Iterable[tuple[str, str | Buffer]] | None = None,
        timestamp: datetime | float | None = None,
    ) -> bool: ...
    def send_batch(
        self,
        values: Iterable[str | Buffer | Mapping[str, Any]],
        key: str | Buffer | None = None,
        topic: str | Buffer | None = None,
        headers: Mapping[str, str | Buffer] | Iterable[tuple[str, str | Buffer]] | None = None,
        timestamp: datetime | float | None = None,
    ) -> int:
        """Accepts many rows, waiting while there is no room for them.

        A list or tuple is accepted batch by batch. Any other iterable, which may be endless, is
        read row by row.

        Args:
            values: Values, or dicts with `value` and optionally `key`, `topic`, `headers` and
                `timestamp`.
            key: For rows without their own, as are the following arguments; see `send`.
            topic: See `send`.
            headers: See `send`.
            timestamp: See `send`.

        Returns:
            The number of rows.

        Raises:
            CollectorGone: As `send`. The error's `sent` is the number of rows that were accepted,
                and `unsent` a row that was read from the iterable and was not.
        """

    def send_arrow(self, data: ArrowData) -> int:
        """Accepts the rows of a table, waiting while there is no room for them.

        Args:
            data: A table or batch of an Arrow library (pyarrow, polars, pandas from 2.2 on) with a
                column `value` of bytes or text, and optionally `key`, `topic`, `timestamp` and
                `headers`. An array that is not of structs is the column `value`.

        Returns:
            The number of rows.

        Raises:
            CollectorGone: As `send`.
            ValueError: If a column has the wrong type.
        """

    def _flush(self, timeout: float | None = None) -> dict[str, int]: ...
    def _mark(self) -> list[int]: ...
    def _check(self) -> None: ...
    def _check_pending(self) -> None: ...
    def _shut(self) -> None: ...
    def _end(self) -> None: ...
    def _unspooled(self) -> dict[str, int]: ...
    def _await_notices(self, timeout: float) -> bool | None: ...
    def _take_notices(
        self,
    ) -> list[tuple[int, int, int, int | None, int | None, str | None]]: ...
    def _check_setback(self) -> None: ...
    def _take_reports(self) -> list[str]: ...
    def _notices_fd(self) -> int: ...
    def _stats(self) -> Any: ...
    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    @property
    def name(self) -> str:
        """The name under which the collector knows its rows."""

class Client:
    """Requests to a collector; see `zeroxide.pipeline.Client`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def _open(
        self,
        endpoint: str,
        *,
        timeout: float,
        retries: int,
        server_key: str | bytes | None,
        public_key: str | bytes | None,
        secret_key: str | bytes | None,
    ) -> None: ...
    def _info(
        self,
    ) -> tuple[str, int, int, tuple[int, int] | None, int, str, list[tuple[int, str]]]: ...
    def _offset_at(self, timestamp: int) -> int: ...
    def _offset_after(self, start: int, size: int) -> int: ...
    def _commit(self, group: str, offset: int, generation: str | None) -> None: ...
    def drop_group(self, group: str) -> bool:
        """Forgets a group of consumers, so that it holds no rows back any more.

        Args:
            group: Its name.

        Returns:
            Whether there was such a group.

        Raises:
            CollectorGone: If the collector does not answer.
            Refused: If the client's key may not do this.
        """

    def close(self) -> None:
        """Ends its connections. A later call makes new ones."""

    def _fetch(
        self,
        start: int,
        end: int,
        *,
        topics: list[str],
        max_bytes: int,
        log_id: str | None,
        generation: str | None,
        partition: int,
        headers: bool,
        frames: bool,
    ) -> Fetch: ...
    def _follow(
        self,
        start: int,
        *,
        topics: list[str],
        max_bytes: int,
        log_id: str | None,
        generation: str | None,
        partition: int,
        headers: bool,
        frames: bool,
    ) -> Follow: ...
    def _position(self, group: str) -> int | None: ...
    def _stage(
        self, query: str, batch: int, attempt: tuple[int, int], part: int, rows: ArrowData
    ) -> int: ...
    def _publish(
        self, query: str, batch: int, won: list[tuple[int, int, int]]
    ) -> tuple[int, int, bool]: ...
    def _abort(self, query: str, batch: int, attempts: list[tuple[int, int]]) -> None: ...
    def _stats(self) -> bytes: ...

@final
class Fetch:
    """A fetch under way: iterates over tables."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> ArrowTable: ...

@final
class Follow:
    """A log that is followed; see `zeroxide.pipeline.Follower`."""

    def _next_table(self, timeout: float | None, resume: bool) -> tuple[ArrowTable, int] | None: ...
    def _next_rows(
        self, timeout: float | None, resume: bool
    ) -> tuple[list[tuple[Any, ...]], int] | None: ...
    def _position(self) -> tuple[int, str | None] | None: ...
    def _fds(self) -> list[int]: ...
    def _stop(self) -> None: ...
    @property
    def _stopped(self) -> bool: ...

class Socket:
    """One end of a messaging pattern; see `zeroxide.Socket`."""

    copy_threshold: int

    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def _open(
        self, context: Context, socket_type: int, copy_threshold: int | None = None
    ) -> None: ...
    def _share(self, other: Socket) -> None: ...
    @overload
    def send(
        self,
        data: Buffer,
        flags: int = 0,
        copy: Literal[True] = True,
        track: bool = False,
        routing_id: int | None = None,
        group: str | None = None,
    ) -> None: ...
    @overload
    def send(
        self,
        data: Frame | Buffer,
        flags: int = 0,
        *,
        copy: Literal[False],
        track: Literal[True],
        routing_id: int | None = None,
        group: str | None = None,
    ) -> MessageTracker: ...
    @overload
    def send(
        self,
        data: Frame | Buffer,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        routing_id: int | None = None,
        group: str | None = None,
    ) -> MessageTracker | None:
        """Sends one part of a message; with ``SNDMORE`` more parts follow."""

    @overload
    def recv(self, flags: int = 0, copy: Literal[True] = True, track: bool = False) -> bytes: ...
    @overload
    def recv(self, flags: int = 0, *, copy: Literal[False], track: bool = False) -> Frame: ...
    @overload
    def recv(self, flags: int, copy: Literal[False], track: bool = False) -> Frame: ...
    @overload
    def recv(self, flags: int = 0, copy: bool = True, track: bool = False) -> bytes | Frame:
        """Receives one part of a message; ``rcvmore`` tells whether more follow."""

    def send_multipart(
        self,
        msg_parts: Sequence[Part],
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
    ) -> MessageTracker | None:
        """Sends a message of several parts, as a whole."""

    def _waited_in_vain(self, sending: bool, millis: int) -> BaseException: ...
    def _too_few(self, found: int, wanted: int, what: str) -> BaseException: ...
    def _check_flags(self, flags: object, sending: bool) -> None: ...
    def _last_part(self, msg_parts: Sequence[Part], copy: bool, track: bool) -> LastPart | None: ...
    @overload
    def recv_multipart(
        self, flags: int = 0, copy: Literal[True] = True, track: bool = False
    ) -> list[bytes]: ...
    @overload
    def recv_multipart(
        self, flags: int = 0, *, copy: Literal[False], track: bool = False
    ) -> list[Frame]: ...
    @overload
    def recv_multipart(
        self, flags: int, copy: Literal[False], track: bool = False
    ) -> list[Frame]: ...
    @overload
    def recv_multipart(
        self, flags: int = 0, copy: bool = True, track: bool = False
    ) -> list[bytes] | list[Frame]:
        """Receives all parts of a message, or those that are left of one."""

    def send_batch(self, messages: Batch, flags: int = 0) -> int:
        """Sends many messages; returns how many were taken.

        A message is a single part, or a list or tuple of parts. Blocks as `send`
        does; raises only if not even the first was taken.

        Of an iterable that is no list or tuple, each item is sent before the next is
        asked for, and none is while there is no room. If it raises, the exception has
        the number of messages that were sent as `sent`; an error that leaves over an
        item has that as `unsent`.
        """

    def _send_rows(self, data: ArrowData, flags: int = 0) -> int: ...
    def _recv_rows(
        self, max_rows: int, max_bytes: int, timeout: float | None, flags: int, frames: bool
    ) -> ArrowTable: ...
    @overload
    def recv_batch(
        self,
        max_messages: int = 1024,
        timeout: float | None = None,
        flags: int = 0,
        *,
        multipart: Literal[False] = False,
    ) -> list[bytes | list[bytes]]: ...
    @overload
    def recv_batch(
        self,
        max_messages: int = 1024,
        timeout: float | None = None,
        flags: int = 0,
        *,
        multipart: Literal[True],
    ) -> list[list[bytes]]:
        """Receives what is there, at least one and at most `max_messages`.

        Waits for the first as `recv` does, for `timeout` ms if given, and for no
        other. A message of one part is its bytes, of several a list of bytes; with
        `multipart` every message is a list.
        """

    def recv_into(self, buffer: Buffer, /, *, nbytes: int = 0, flags: int = 0) -> int:
        """Receives one part into `buffer` and returns its size.

        A part that is larger is cut, and the size returned tells so.
        """

    def poll(self, timeout: float | None = None, flags: int = 1) -> int:
        """Waits up to `timeout` ms for events; returns them, or 0."""

    def bind(self, addr: str | bytes) -> str: ...
    def connect(self, addr: str | bytes) -> str: ...
    def unbind(self, addr: str | bytes) -> None:
        """Undoes `bind`."""

    def disconnect(self, addr: str | bytes) -> None:
        """Undoes `connect`."""

    def set(self, option: int, optval: OptionValue) -> None:
        """Sets an option."""

    def get(self, option: int) -> Any:
        """Reads an option: an int, or bytes."""

    def close(self, linger: int | None = None) -> None: ...
    @property
    def closed(self) -> bool: ...
    def fileno(self) -> int:
        """A descriptor that is readable while the socket may have something to do."""

    def stats(self) -> SocketStats:
        """Counters of what was sent, received, queued and dropped."""

    def flush(self, timeout: float | None = None) -> None:
        """Waits until every message sent has left for its peer's kernel.

        Raises `NotFlushed` after `timeout` ms.
        """

    def secure_server(self, secret_key: bytes | str, allow: _Allow | None = None) -> AllowList:
        """Makes this a CURVE server that lets the owners of some keys in.

        `allow` is an `AllowList`, public keys (with names, if it is a mapping), a folder
        of certificates, or ``"*"`` for everybody; without it nobody comes in. Returns the
        list: what changes in it counts for the next peer. The name of a key, or else the
        key itself, is the ``User-Id`` of its messages. Raises if the socket is bound or
        connected already. Keys are 32 bytes or 40 characters of Z85.
        """

    def secure_client(self, server_key: bytes | str, secret_key: bytes | str | None = None) -> None:
        """Makes this a CURVE client of the server with that public key.

        Without a secret key of its own it gets a fresh one, which only a server that lets
        everybody in will do with.
        """

    def password_server(self, users: _Users | None = None) -> Passwords:
        """Makes this a PLAIN server that lets some users in, whose names are the
        ``User-Id`` of their messages.

        PLAIN protects nothing on its way: it is for networks that do. Returns the table:
        what changes in it counts for the next peer.
        """

    def password_client(self, username: str, password: bytes | str) -> None:
        """Makes this a PLAIN client."""

    def monitor(self, addr: str | bytes | None, events: int = 0xFFFF) -> None:
        """Sends events to PAIR sockets at the ``inproc://`` endpoint; None stops."""

    def _event_stream(self, events: int) -> EventStream: ...
    def _overview(self) -> str | None: ...
    def count_connected(self) -> int:
        """How many peers are connected now, with their handshakes done."""

    def wait_connected(self, *, count: int = 1, timeout: float | None = None) -> int:
        """Waits up to `timeout` ms until `count` peers are connected; returns how many are.

        Raises `Again`, which says how many there are, when the time is up.
        """

    def count_subscribed(self, topic: bytes | str | None = None) -> int:
        """How many peers get a message that begins with `topic`.

        Those are subscribed to it, or to a prefix of it. For PUB and XPUB; other types
        raise `ZMQError` (``ENOTSUP``).
        """

    def wait_subscribed(
        self, topic: bytes | str | None = None, count: int = 1, timeout: float | None = None
    ) -> int:
        """Waits up to `timeout` ms until `count` peers get what begins with `topic`.

        Returns how many do. Raises `Again`, which says how many there are, when the time
        is up.
        """

    @property
    def underlying(self) -> int: ...

@final
class EventStream:
    """What happens to a socket; see `zeroxide.SocketEvents`."""

    def recv(
        self, timeout: float | None = None
    ) -> tuple[int, int, str, str, bytes, str, str, str, float, int] | None: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...

class AsyncSocket(Socket):
    """A socket whose calls return futures; see `zeroxide.asyncio.Socket`.

    A call that need not wait returns a `Ready`. One that has to joins the calls that wait
    in the same loop: subclasses say which loop (`_event_loop`), and what kind of futures
    (`_Receiving` and `_Future`).
    """

    @property
    def _recv_futures(self) -> list[asyncio.Future[Any]]: ...
    @property
    def _send_futures(self) -> list[asyncio.Future[Any]]: ...
    @overload  # type: ignore[override]
    def recv(
        self, flags: int = 0, copy: Literal[True] = True, track: bool = False
    ) -> Pending[bytes]: ...
    @overload
    def recv(
        self, flags: int = 0, *, copy: Literal[False], track: bool = False
    ) -> Pending[Frame]: ...
    @overload
    def recv(self, flags: int, copy: Literal[False], track: bool = False) -> Pending[Frame]: ...
    @overload
    def recv(
        self, flags: int = 0, copy: bool = True, track: bool = False
    ) -> Pending[bytes] | Pending[Frame]:
        """Receives one part of a message; ``rcvmore`` tells whether more follow."""

    @overload  # type: ignore[override]
    def recv_multipart(
        self, flags: int = 0, copy: Literal[True] = True, track: bool = False
    ) -> Pending[list[bytes]]: ...
    @overload
    def recv_multipart(
        self, flags: int = 0, *, copy: Literal[False], track: bool = False
    ) -> Pending[list[Frame]]: ...
    @overload
    def recv_multipart(
        self, flags: int, copy: Literal[False], track: bool = False
    ) -> Pending[list[Frame]]: ...
    @overload
    def recv_multipart(
        self, flags: int = 0, copy: bool = True, track: bool = False
    ) -> Pending[list[bytes]] | Pending[list[Frame]]:
        """Receives all parts of a message, or those that are left of one."""

    def recv_into(  # type: ignore[override]
        self, buffer: Buffer, /, *, nbytes: int = 0, flags: int = 0
    ) -> Pending[int]:
        """Receives one part into `buffer`; the result is its size."""

    @overload  # type: ignore[override]
    def recv_batch(
        self,
        max_messages: int = 1024,
        timeout: float | None = None,
        flags: int = 0,
        *,
        multipart: Literal[False] = False,
    ) -> Pending[list[bytes | list[bytes]]]: ...
    @overload
    def recv_batch(
        self,
        max_messages: int = 1024,
        timeout: float | None = None,
        flags: int = 0,
        *,
        multipart: Literal[True],
    ) -> Pending[list[list[bytes]]]:
        """Waits for a message; the result is a list of it and those that are there.

        At most `max_messages`; `timeout` ms take the place of ``RCVTIMEO``. A message of
        one part is its bytes, of several a list of bytes; with `multipart` every message
        is a list.
        """

    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Pending[bytes | list[bytes]]:
        """Receives a message: its bytes if it has one part, else a list of them.

        Once the socket is closed there is no next one.
        """

    @overload  # type: ignore[override]
    def send(
        self,
        data: Buffer,
        flags: int = 0,
        copy: Literal[True] = True,
        track: bool = False,
        routing_id: int | None = None,
        group: str | None = None,
    ) -> Pending[None]: ...
    @overload
    def send(
        self,
        data: Frame | Buffer,
        flags: int = 0,
        *,
        copy: Literal[False],
        track: Literal[True],
        routing_id: int | None = None,
        group: str | None = None,
    ) -> Pending[MessageTracker]: ...
    @overload
    def send(
        self,
        data: Frame | Buffer,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        routing_id: int | None = None,
        group: str | None = None,
    ) -> Pending[MessageTracker | None]:
        """Sends one part of a message; with ``SNDMORE`` more parts follow."""

    def send_multipart(  # type: ignore[override]
        self,
        msg_parts: Sequence[Part],
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
    ) -> Pending[MessageTracker | None]:
        """Sends a message of several parts, as a whole."""

    def send_batch(  # type: ignore[override]
        self, messages: Batch, flags: int = 0
    ) -> Pending[int]:
        """Sends many messages; the result is how many were taken.

        A message is a single part, or a list or tuple of parts.
        """

    def poll(  # type: ignore[override]
        self, timeout: float | None = None, flags: int = 1
    ) -> Pending[int]:
        """Waits up to `timeout` ms for events; the result is those, or 0."""

    def _deserialize(self, recvd: Any, load: Callable[[Any], Any]) -> Any: ...
    def _be_quick(self, quick: bool) -> None: ...
    def _abandon(self) -> None: ...

@final
class Ready:
    """A future that is done; takes the place of an `asyncio.Future`.

    `zeroxide._future` adds what futures have beside being awaited.
    """

    _result: Any
    _thread: int
    _made_in: Any

    def __new__(cls, value: object) -> Self: ...
    def __await__(self) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

@final
class Lane:
    """The calls on one socket that wait in one loop."""

    def _on_ready(self) -> None: ...
    def _on_turn(self) -> None: ...
    def _on_timer(self) -> None: ...
    def _on_cancel(self) -> None: ...
    def _forsake(self) -> None: ...

@final
class Undo:
    """Takes back what a future received."""

    def give_back(self) -> None: ...

@final
class Sending:
    """Sends what an iterable gives, for who waits by other means than this module's."""

    def __new__(cls, socket: Socket, messages: Batch) -> Self: ...
    sent: int
    def send(self, limit: float | None = None) -> bool: ...
    def so_far(self) -> int: ...

@final
class Watcher:
    """A descriptor that tells that something happened to a socket.

    Between `watch` and `rest`, everything that happens makes it readable: `clear` it, then
    look what there is. Look also after `watch`.
    """

    def __new__(cls, socket: Socket) -> Self: ...
    def fileno(self) -> int: ...
    def watch(self) -> None: ...
    def rest(self) -> None: ...
    def clear(self) -> None: ...

class Frame:
    """One part of a message, whose memory is shared instead of copied.

    Frames are what ``recv(copy=False)`` returns; they also carry what is known about
    the peer: ``frame["Peer-Address"]``.
    """

    more: bool
    routing_id: int
    group: str
    __hash__: ClassVar[Any]

    def __new__(
        cls,
        data: Buffer | None = None,
        track: bool = False,
        copy: bool | None = None,
        copy_threshold: int | None = None,
    ) -> Self: ...
    @property
    def bytes(self) -> builtins.bytes: ...
    @property
    def buffer(self) -> memoryview: ...
    @property
    def tracker(self) -> MessageTracker | None: ...
    @property
    def MORE(self) -> int: ...
    @property
    def SHARED(self) -> int: ...
    @property
    def SRCFD(self) -> int: ...
    def __len__(self) -> int: ...
    def __bytes__(self) -> builtins.bytes: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    @overload
    def get(self, option: int) -> int: ...
    @overload
    def get(self, option: str | builtins.bytes) -> str:
        """A property of the message, or of the peer it came from."""

    @overload
    def __getitem__(self, option: int) -> int: ...
    @overload
    def __getitem__(self, option: str | builtins.bytes) -> str: ...
    def set(self, option: int | str, value: Any) -> None: ...
    def fast_copy(self) -> Self:
        """A second frame over the same memory."""

    def __copy__(self) -> Self: ...

@final
class LastPart:
    """A message that lacked its last part only; `attempt` sends it as soon as there is room."""

    def attempt(self) -> MessageTracker | None: ...
    def give_up(self) -> None: ...

@final
class Release:
    """Tells when the core has let go of a buffer."""

    @property
    def done(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool:
        """Waits up to `timeout` seconds; returns `done`."""

class Collector:
    """A durable log that serves producers and readers; see `zeroxide.pipeline.Collector`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def _open(
        self,
        directory: str | PathLike[str],
        bind: str,
        *,
        pull: list[str],
        subscribe: list[tuple[str, list[str]]],
        dealer: list[str],
        framing: str,
        keep_frames: bool,
        retention_bytes: int | None,
        retention_seconds: float | None,
        retention_groups: bool,
        flush_seconds: float,
        flush_rows: int,
        segment_bytes: int,
        max_batch_bytes: int,
        max_producers: int,
        max_staged_bytes: int,
        staged_seconds: float,
        credit_rows: int,
        credit_bytes: int,
        advertise: str | None,
        secret_key: bytes | str | None,
        allow: Any,
        open_to_network: bool,
        roles: list[tuple[str, list[str], list[str]]] | None,
        max_names_per_connection: int,
    ) -> None: ...
    def _append(
        self, rows: Iterable[Buffer | str | Mapping[str, Any]], timeout: float | None
    ) -> tuple[int, int]: ...
    def _append_arrow(self, data: ArrowData, timeout: float | None) -> tuple[int, int]: ...
    def _hold(self, offset: int) -> None: ...
    def _stats(self) -> str: ...
    def drop_group(self, group: str) -> bool:
        """Forgets a group of consumers. False: there was none."""

    @property
    def _recovery(self) -> tuple[int, list[tuple[int, int]], list[str]]: ...
    @property
    def endpoint(self) -> str:
        """The address that was bound."""

    @property
    def plain_endpoints(self) -> list[str]:
        """The addresses of plain peers' sockets: `pull`, `subscribe`, then `dealer`."""

    @property
    def log_id(self) -> str:
        """The log's id, 32 hexadecimal digits: the same for as long as its files live."""

    @property
    def running(self) -> bool:
        """Whether it serves."""

    def close(self) -> None:
        """Takes what is on its way, brings it to the disk, answers, and ends.

        What went wrong before is raised. Closing again does nothing.
        """

@final
class ArrowTable:
    """Rows that `pyarrow.table()`, `polars.from_arrow()` and others take, by the Arrow PyCapsule interface."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""

    @property
    def num_batches(self) -> int:
        """How many batches the rows come in."""

    @property
    def nbytes(self) -> int:
        """The bytes that the columns refer to."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""

    def batches(self) -> list[ArrowTable]:
        """The batches, each as a table of its own."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def log_segment(data: Buffer) -> tuple[str, int, int]:
    """What a log's file begins with: the log's id, the first offset, the place of the first frame."""

def log_peek(data: Buffer, position: int) -> tuple[int, int, int, int] | None:
    """The length, first offset, end and time of receipt of a frame; None if its header is not complete."""

def log_rows(
    data: Buffer,
    position: int,
    expected: int,
    start: int,
    end: int,
    topics: Sequence[str] | None,
    partition: int,
    headers: bool,
    frames: bool,
) -> tuple[ArrowTable, int, int, str | None]:
    """The rows of frames; the place and offset of the first that was not read; what is wrong with it."""

def arrow_encode(data: ArrowData) -> bytes:
    """A table as one message, in Arrow's IPC stream format."""

def arrow_messages(data: ArrowData) -> list[list[bytes]]:
    """The messages of a table's rows, each a list of parts."""

def arrow_rows(socket: Socket, messages: list[list[bytes]], frames: bool) -> ArrowTable:
    """Messages that were received as lists of parts, as rows."""

def arrow_decode(message: Buffer | Frame) -> ArrowTable:
    """The table of such a message. Raises ValueError for anything else, whoever sent it."""

def install(
    *,
    package: ModuleType,
    zmq_error: type[ZMQError],
    errors: dict[int, type[ZMQError]],
    not_flushed: type[NotFlushed],
    tracker: _Tracked,
    finished_tracker: MessageTracker,
) -> None: ...
def strerror(errno: int) -> str:
    """The text of an error number."""

def zmq_errno() -> int:
    """The number of the last error in the calling thread."""

def lent_buffers() -> int:
    """How many buffers of the program were sent, or made a frame, without a copy and are not free yet."""

def own_addresses() -> list[str]:
    """The addresses of this machine's network interfaces."""

def turn_is_over() -> bool:
    """Whether what is there should cost the running loop a turn, since others have waited for long."""

def has(capability: str) -> bool:
    """Whether a transport or mechanism is built in: ``has("ipc")``."""

_Key: TypeAlias = bytes | str
# With names, or without.
_Keys: TypeAlias = Iterable[_Key] | Mapping[Any, str]
_Allow: TypeAlias = AllowList | _Keys | str | PathLike[str]
_Users: TypeAlias = Passwords | Mapping[str, Any]

@final
class AllowList:
    """The public keys that may connect to a CURVE server.

    Made of keys, of a mapping from keys to names, of a folder of certificates, or of
    ``"*"`` for everybody. A server and whoever holds the list share it: what changes
    counts for the next peer, and with ``disconnect=True`` for those that are connected.
    """

    def __new__(cls, allow: _Allow | None = None, /) -> Self: ...
    @property
    def anybody(self) -> bool:
        """Whether everybody may come in who knows the server's public key."""

    def add(self, public_key: _Key, name: str = "") -> None:
        """Lets the owner of a key in, under a name."""

    def remove(self, public_key: _Key, *, disconnect: bool = False) -> bool:
        """Takes a key off; returns whether it was there."""

    def replace(self, keys: _Keys, *, disconnect: bool = False) -> None:
        """Only these keys from now on, in one step."""

    def reload(self, *, disconnect: bool = False) -> int:
        """Reads the folder again that the list was made of; returns how many keys there are."""

    def disconnect_strangers(self) -> int:
        """Ends the connections of those who are not on the list any more; returns how many."""

    def names(self) -> dict[bytes, str]:
        """The names by key."""

    def __contains__(self, public_key: _Key, /) -> bool: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class Passwords:
    """The users that may connect to a PLAIN server, and their passwords.

    A server and whoever holds the table share it: what changes counts for the next peer,
    and with ``disconnect=True`` for those that are connected.
    """

    def __new__(cls, users: _Users | None = None, /) -> Self: ...
    def add(self, user: str, password: bytes | str) -> None:
        """Lets a user in; an earlier password does not count any more."""

    def remove(self, user: str, *, disconnect: bool = False) -> bool:
        """Takes a user off; returns whether it was there."""

    def replace(self, users: Mapping[str, Any], *, disconnect: bool = False) -> None:
        """Only these users from now on, in one step."""

    def disconnect_strangers(self) -> int:
        """Ends the connections of users who are not there any more; returns how many."""

    def __contains__(self, user: str, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

def curve_keypair() -> tuple[bytes, bytes]:
    """A new pair of keys, public and secret, in Z85."""

def curve_public(secret_key: bytes | str) -> bytes:
    """The public key that belongs to a secret one, in Z85."""

# A socket, a descriptor, or what has a `fileno()`.
_P = TypeVar("_P", bound=int | HasFileno)

def zmq_poll(sockets: Sequence[tuple[_P, int]], timeout: int = -1) -> list[tuple[_P, int]]:
    """Waits up to `timeout` ms for events of sockets and file descriptors."""

def proxy(frontend: Socket, backend: Socket, capture: Socket | None = None) -> int:
    """Passes messages between two sockets until their context is terminated.

    `capture` gets a copy of everything. If it cannot send, having no peer or a slow one,
    the proxy waits for it; a PUB never has to.
    """

def proxy_steerable(
    frontend: Socket,
    backend: Socket,
    capture: Socket | None = None,
    control: Socket | None = None,
) -> int:
    """`proxy` that obeys PAUSE, RESUME, TERMINATE and STATISTICS from `control`.

    STATISTICS is answered with eight parts, numbers of 64 bits in the machine's byte
    order: messages and bytes received from the front end, messages and bytes sent to it,
    then the same for the back end. A REP socket answers the others with an empty message.
    Returns after TERMINATE.
    """

def monitored_queue(
    in_socket: Socket,
    out_socket: Socket,
    mon_socket: Socket,
    in_prefix: bytes | None = None,
    out_prefix: bytes | None = None,
) -> int:
    """`proxy` whose monitor gets every message behind a prefix that tells where it came from.

    Between two ROUTER sockets the first two parts change places: a peer of one names a
    peer of the other, who gets the sender's routing id in return.
    """

def socket_options() -> list[tuple[str, int, str, bool, bool]]: ...
def context_options() -> list[tuple[str, int, str, bool, bool]]: ...
