"""The extension module, which rust/py provides.

Times are in milliseconds, as in the rest of the API, except for `Release.wait`. A blocking
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
from ._typing import ArrowData, Batch, Future, HasFileno, OptionValue, Part
from .error import NotFlushed, ZMQError

__version__: str

class Dropped(TypedDict):
    """Messages that were not delivered, by reason; every value counts messages.

    The page "Messages that go missing" explains each reason and what to do about it.
    """

    high_water: int
    """The queue to the peer was full (PUB, XPUB, XSUB, ROUTER, REP)."""
    no_peer: int
    """An XSUB sent it, but had no publisher to send it to."""
    unroutable: int
    """No peer has the routing id."""
    conflated: int
    """A newer message took its place (``CONFLATE``)."""
    filtered: int
    """It arrived although nothing here subscribes to it."""
    malformed: int
    """It lacked parts that the pattern requires."""
    torn: int
    """The connection ended in the middle of it."""
    peer_gone: int
    """The connection was lost before the message had been sent, or before the peer's machine had it."""
    lingered: int
    """Its endpoint was disconnected, and ``LINGER`` expired before it was sent."""
    stale: int
    """A newer request took its place, or the reply is no longer expected."""
    refused: int
    """The pattern had refused its sender, or it was not received before a disconnect."""
    excess: int
    """A subscription above ``MAX_SUBSCRIPTIONS`` or ``MAX_SUBSCRIPTION_BYTES``, or one for which ``MEMORY_BUDGET`` had
    no room. It was ignored."""
    unfinished: int
    """It was sent or received part by part, and its last parts never followed."""
    no_memory: int
    """There was no memory for it, or ``MEMORY_BUDGET`` was used up. Its connection was closed."""
    too_large: int
    """It was larger than ``MAXMSGSIZE``. Its connection was closed. Or it was a datagram that was larger than that, or
    than 8192 bytes and for a DISH."""
    overrun: int
    """It was a datagram for which the kernel had no room."""
    hops: int
    """It had passed more sockets than ``MAX_TTL`` allows."""
    too_slow: int
    """Its subscriber was too slow (``SLOW_SUBSCRIBER``, ``MAX_LAG``)."""
    gap: int
    """It was in packets of epgm or pgm that got lost and could not be repaired; this is the number of the packets."""
    disk: int
    """It could not be written to ``SPILL_DIR``, or not be read from there."""

class PeerStats(TypedDict):
    """Counters of one connection, as in `Socket.stats()["peers"]`."""

    endpoint: str
    """The endpoint that was bound or connected to."""
    address: str
    """The peer's address."""
    routing_id: bytes
    """The peer's routing id."""
    connected: bool
    """Whether the connection is open."""
    waiting: bool
    """Whether another peer has the same routing id. Nothing is read until that id is free."""
    sent: int
    """Messages that were sent."""
    sent_bytes: int
    """Bytes of the messages that were sent."""
    received: int
    """Messages that were received."""
    received_bytes: int
    """Bytes of the messages that were received."""
    queued_out: int
    """Messages that wait to be sent."""
    queued_in: int
    """Messages that wait to be received by the program."""
    spilled: int
    """Messages that wait in ``SPILL_DIR`` for this peer alone."""
    spilled_bytes: int
    """Bytes of these messages on disk."""
    reconnects: int
    """Connections that replaced a lost one."""
    full_out: int
    """How often the queue to the peer reached its high-water mark."""
    full_in: int
    """How often the queue from the peer reached its high-water mark."""
    dropped: Dropped
    """Messages that were not delivered, by reason."""

class SocketStats(TypedDict):
    """Counters of a socket, as returned by `Socket.stats`.

    A message of several parts counts once.
    """

    sent: int
    """Messages that were sent."""
    sent_bytes: int
    """Bytes of the messages that were sent."""
    received: int
    """Messages that were received."""
    received_bytes: int
    """Bytes of the messages that were received."""
    queued_out: int
    """Messages that wait to be sent."""
    queued_in: int
    """Messages that wait to be received by the program."""
    lingering: int
    """Messages that `disconnect`, `unbind` or a STREAM left to deliver. They wait for ``LINGER``, and ``queued_out`` does not count them."""
    spilled: int
    """Messages that wait in ``SPILL_DIR``. ``queued_out`` does not count them."""
    spilled_bytes: int
    """Bytes of these messages on disk."""
    connections: int
    """Connections that were made, with peers that have left, too."""
    reconnects: int
    """How many of them replaced a lost connection of an endpoint that this socket connected to."""
    full_out: int
    """How often a queue to a peer reached its high-water mark."""
    full_in: int
    """How often a queue from a peer reached its high-water mark."""
    dropped: Dropped
    """Messages that were not delivered, by reason."""
    no_subscriber: int
    """Published messages that no peer subscribes to."""
    missed_events: int
    """Events that monitors did not get, because thousands of earlier events had not been read."""
    peers: list[PeerStats]
    """The counters of each connection."""

class _Tracked(Protocol):
    def __call__(self, release: Release, /) -> MessageTracker: ...

class Context:
    """The native half of `zeroxide.Context`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def _open(self, io_threads: int) -> None: ...
    def _share(self, other: Context) -> None: ...
    def _term_idle(self, idle_ms: int) -> list[tuple[str, str, bytes, int, int]]: ...
    def _term_within(self, timeout: float | None) -> list[tuple[str, str, bytes, int, int]]: ...
    def set(self, option: int, optval: int | str | bytes) -> None: ...
    def get(self, option: int) -> int: ...
    def term(self) -> None:
        """Waits until every socket is closed and its messages are sent, then ends the context.

        Messages that cannot be sent are given up after the ``LINGER`` time of their socket.
        Calls that wait on sockets of this context raise `ContextTerminated`. A signal handler
        that raises interrupts the wait; calling `term` again continues it.

        Raises:
            ContextTerminated: Never by this call, but by calls that wait on the context's
                sockets in other threads.

        Source:
            zmq_ctx_term(3); pyzmq's ``Context.term``
        """

    def shutdown(self) -> None:
        """Makes every current and later call on the context's sockets raise `ContextTerminated`.

        The sockets stay open: close them, then call `term`.

        Source:
            zmq_ctx_shutdown(3)
        """

    @property
    def closed(self) -> bool:
        """Whether the context cannot be used: terminated, or inherited through a fork."""

    @property
    def underlying(self) -> int:
        """A number that identifies the context in this process; all its handles share it."""

class Producer:
    """Sends rows to collectors' logs; see `zeroxide.Producer`."""

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
            values: Values, or mappings with `value` and optionally `key`, `topic`, `headers` and
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
            TypeError: If `values` is a single value or row.
            ValueError: If a mapping has no `value`, or a field that no row has.
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
            CollectorGone: As `send`. The error's `sent` is the number of rows that were accepted.
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
        """Forgets a group of consumers, so that it no longer holds rows back.

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
        end: int | None,
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
    """The native half of `zeroxide.Socket`."""

    copy_threshold: int
    """Bodies smaller than this many bytes are copied even with ``copy=False``.

    Copying a small body is faster than sharing it. The default is `zeroxide.COPY_THRESHOLD`.
    """

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
        """Sends one part of a message.

        With ``SNDMORE`` the part is kept until a later call without it completes the message,
        which is then sent as a whole.

        Args:
            data: The part: `bytes`, a `Frame`, or any object with the buffer protocol
                (`bytearray`, `memoryview`, a NumPy array). Text is sent with `send_string`.
            flags: 0, or a sum of ``DONTWAIT`` (raise `Again` instead of waiting) and
                ``SNDMORE`` (more parts follow).
            copy: False sends the memory of `data` itself, if it has at least `copy_threshold`
                bytes. Do not change it until the tracker is done.
            track: Whether to return a tracker; for ``copy=False``.
            routing_id: The peer that gets the message, for SERVER and PEER: the routing id of a
                frame that was received from it, or what `connect_peer` returned. None stands for
                that of `data` if it is a `Frame`.
            group: The group that gets the message, for RADIO; at most 255 bytes. None stands for
                that of `data` if it is a `Frame`, otherwise for the group ``""``.

        Returns:
            A `MessageTracker` that is done when the memory of `data` is free again if `track`
            is set, otherwise None.

        Raises:
            Again: No peer has room: at once with ``DONTWAIT``, otherwise after ``SNDTIMEO`` ms.
            ContextTerminated: The context ended.
            TypeError: `data` is text, or has no buffer.
            ValueError: `track` is set for a `Frame` that was made without a tracker.
            ZMQError: ``EFSM`` if it is not this socket's turn to send (REQ, REP), ``ENOTSUP``
                if its type only receives, ``EHOSTUNREACH`` if no peer has the routing id
                (ROUTER with ``ROUTER_MANDATORY``, SERVER, PEER), ``EINVAL`` for ``SNDMORE`` on a
                type whose messages have one part, and for `routing_id` and `group` on a type
                that does not have them, ``ENOTSOCK`` if it is closed.

        Example:
            >>> push.send(b"one part")
            >>> push.send(b"head", zmq.SNDMORE)
            >>> push.send(b"body")
            >>> pull.recv(), pull.recv_multipart()
            (b'one part', [b'head', b'body'])

        Source:
            zmq_msg_send(3); pyzmq's ``Socket.send``
        """

    @overload
    def recv(self, flags: int = 0, copy: Literal[True] = True, track: bool = False) -> bytes: ...
    @overload
    def recv(self, flags: int = 0, *, copy: Literal[False], track: bool = False) -> Frame: ...
    @overload
    def recv(self, flags: int, copy: Literal[False], track: bool = False) -> Frame: ...
    @overload
    def recv(self, flags: int = 0, copy: bool = True, track: bool = False) -> bytes | Frame:
        """Receives one part of a message.

        Waits for a message, or returns the next part of the one that this thread is reading.
        ``socket.rcvmore`` tells whether further parts follow; `recv_multipart` returns all of
        them at once.

        Args:
            flags: 0, or ``DONTWAIT`` to raise `Again` instead of waiting. A limit in ms is the
                option ``RCVTIMEO``, or `poll`.
            copy: False returns a `Frame`, which shares the memory of a large part instead of
                copying it, and knows the peer.
            track: Whether the frame has a tracker. It is done from the start.

        Returns:
            The part as `bytes`, or as a `Frame` with ``copy=False``.

        Raises:
            Again: Nothing arrived: at once with ``DONTWAIT``, otherwise after ``RCVTIMEO`` ms.
            ContextTerminated: The context ended.
            ZMQError: ``EFSM`` if it is not this socket's turn to receive (REQ, REP),
                ``ENOTSUP`` if its type only sends, ``ENOTSOCK`` if it is closed.

        Example:
            >>> push.send(b"job")
            >>> pull.recv()
            b'job'
            >>> pull.rcvtimeo = 10  # ms
            >>> pull.recv()
            Traceback (most recent call last):
            zeroxide.error.Again: ...

        Source:
            zmq_msg_recv(3); pyzmq's ``Socket.recv``
        """

    def send_multipart(
        self,
        msg_parts: Sequence[Part],
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
    ) -> MessageTracker | None:
        """Sends a message of several parts as a whole.

        Args:
            msg_parts: At least one part, each as in `send`.
            flags: 0, or a sum of ``DONTWAIT`` and ``SNDMORE``, as in `send`.
            copy: False sends the memory of parts of at least `copy_threshold` bytes itself.
            track: Whether to return a tracker; for ``copy=False``.

        Returns:
            A `MessageTracker` that is done when the memory of all parts is free again if
            `track` is set, otherwise None.

        Raises:
            Again: No peer has room: at once with ``DONTWAIT``, otherwise after ``SNDTIMEO`` ms.
            ContextTerminated: The context ended.
            IndexError: There is no part.
            TypeError: A part is text, or has no buffer. Nothing was sent.
            ZMQError: As in `send`.

        Example:
            >>> push.send_multipart([b"topic", b"body"])
            >>> pull.recv_multipart()
            [b'topic', b'body']

        Source:
            37/ZMTP, section "Messages"; pyzmq's ``Socket.send_multipart``
        """

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
        """Receives all parts of a message.

        In the middle of a message (after `recv`), it returns the parts that are left.

        Args:
            flags: 0, or ``DONTWAIT`` to raise `Again` instead of waiting.
            copy: False returns frames, which share the memory of large parts.
            track: Whether the frames have trackers. They are done from the start.

        Returns:
            A list of `bytes`, or of `Frame` with ``copy=False``; never empty.

        Raises:
            Again: Nothing arrived: at once with ``DONTWAIT``, otherwise after ``RCVTIMEO`` ms.
            ContextTerminated: The context ended.
            ZMQError: As in `recv`.

        Example:
            >>> dealer.send(b"hello")
            >>> identity, body = router.recv_multipart()
            >>> body
            b'hello'

        Source:
            pyzmq's ``Socket.recv_multipart``
        """

    def send_batch(self, messages: Batch, flags: int = 0) -> int:
        """Sends many messages in one call.

        A list or tuple is sent at once. The items of any other iterable are sent one by one:
        each is sent before the next is requested, and none is requested while there is no room.
        If the iterable or an item raises, the error has the number of messages sent before it as
        ``error.sent``, and an item that was taken but not sent as ``error.unsent``.

        Args:
            messages: The messages. Each is a single part as in `send`, or a list or tuple of
                parts.
            flags: 0, or ``DONTWAIT`` to stop instead of waiting for room.

        Returns:
            How many messages were sent. Fewer than given means that there was no room for the
            next one within ``SNDTIMEO`` ms (or at once, with ``DONTWAIT``).

        Raises:
            Again: There was no room for even the first message.
            ContextTerminated: The context ended.
            TypeError: A message is text, or has no buffer.
            ValueError: A message has no parts.
            ZMQError: As in `send`.

        Example:
            >>> push.send_batch([b"one", b"two", [b"three", b"parts"]])
            3
            >>> pull.recv_batch()
            [b'one', b'two', [b'three', b'parts']]

        Source:
            zeroxide only
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
        copy: Literal[True] = True,
    ) -> list[bytes | list[bytes]]: ...
    @overload
    def recv_batch(
        self,
        max_messages: int = 1024,
        timeout: float | None = None,
        flags: int = 0,
        *,
        multipart: Literal[True],
        copy: Literal[True] = True,
    ) -> list[list[bytes]]: ...
    @overload
    def recv_batch(
        self,
        max_messages: int = 1024,
        timeout: float | None = None,
        flags: int = 0,
        *,
        multipart: Literal[False] = False,
        copy: Literal[False],
    ) -> list[Frame | list[Frame]]: ...
    @overload
    def recv_batch(
        self,
        max_messages: int = 1024,
        timeout: float | None = None,
        flags: int = 0,
        *,
        multipart: Literal[True],
        copy: Literal[False],
    ) -> list[list[Frame]]:
        """Receives the messages that have arrived: at least one, at most `max_messages`.

        Waits for the first message only, and then takes what is there.

        Args:
            max_messages: How many messages to return at most; 1 or more.
            timeout: How long to wait for the first message, in ms. None waits as `recv` does,
                for ``RCVTIMEO`` ms.
            flags: 0, or ``DONTWAIT`` to raise `Again` instead of waiting.
            multipart: Whether every message is returned as a list of parts.
            copy: False returns a `Frame` for each part instead of `bytes`. A frame has the
                routing id (SERVER, PEER) and the group (DISH); it does not name the peer.

        Returns:
            A list of messages: `bytes` for a message of one part, otherwise a list of `bytes`.

        Raises:
            Again: Nothing arrived in time.
            ContextTerminated: The context ended.
            ValueError: `max_messages` is below 1.
            ZMQError: As in `recv`.

        Example:
            >>> push.send_batch([b"one", b"two"])
            2
            >>> pull.recv_batch(100, timeout=1000)
            [b'one', b'two']

        Source:
            zeroxide only
        """

    def recv_into(self, buffer: Buffer, /, *, nbytes: int = 0, flags: int = 0) -> int:
        """Receives one part into a buffer.

        A part that is larger than the buffer is cut: the return value is its full size.

        Args:
            buffer: A writable, contiguous object with the buffer protocol, such as a
                `bytearray`.
            nbytes: How many bytes of `buffer` to use; 0 means all of them.
            flags: 0, or ``DONTWAIT`` to raise `Again` instead of waiting.

        Returns:
            The size of the part in bytes, even if not all of it fits.

        Raises:
            Again: Nothing arrived: at once with ``DONTWAIT``, otherwise after ``RCVTIMEO`` ms.
            BufferError: `buffer` cannot be written to.
            ContextTerminated: The context ended.
            ValueError: `nbytes` is negative, or more than `buffer` has.
            ZMQError: As in `recv`.

        Example:
            >>> buffer = bytearray(8)
            >>> push.send(b"abc")
            >>> pull.recv_into(buffer)
            3
            >>> bytes(buffer[:3])
            b'abc'

        Source:
            pyzmq's ``Socket.recv_into``
        """

    def poll(self, timeout: float | None = None, flags: int = 1) -> int:
        """Waits until the socket is ready.

        Args:
            timeout: How long to wait, in ms. None or a negative number waits without limit,
                0 only looks.
            flags: The events to wait for: ``POLLIN`` (a message can be received), ``POLLOUT`` (a
                message can be sent), or their sum.

        Returns:
            The flags that the socket is ready for; 0 if the time is up.

        Raises:
            ContextTerminated: The context ended.
            ZMQError: ``ENOTSUP`` if the socket is closed.

        Example:
            >>> pull.poll(10)
            0
            >>> push.send(b"job")
            >>> pull.poll(1000) == zmq.POLLIN
            True

        Source:
            zmq_poll(3); pyzmq's ``Socket.poll``
        """

    def bind(self, addr: str | bytes) -> str:
        """Listens at an address.

        Args:
            addr: The address, as in `zeroxide.Socket.bind`.

        Returns:
            The address that was bound, with wildcards filled in.
        """

    def connect(self, addr: str | bytes) -> str:
        """Connects to an address.

        Args:
            addr: The address, as in `zeroxide.Socket.connect`.

        Returns:
            The address.
        """

    def connect_peer(self, addr: str | bytes) -> int:
        """Connects a PEER, or a SERVER, and returns the routing id of its new peer.

        Messages can be sent to the peer at once. They wait until it is connected.

        Args:
            addr: The address, as in `zeroxide.Socket.connect`.

        Returns:
            The routing id, for ``send(data, routing_id=...)`` and `disconnect_peer`.

        Raises:
            ZMQError: As in `zeroxide.Socket.connect`; ``ENOTSUP`` for other types, ``EFAULT`` if
                the option ``IMMEDIATE`` is set, because there is no peer then before the
                connection is made.

        Example:
            >>> one, other = context.socket(zmq.PEER), context.socket(zmq.PEER)
            >>> _ = other.bind("inproc://peers")
            >>> routing_id = one.connect_peer("inproc://peers")
            >>> one.send(b"hello", routing_id=routing_id)
            >>> other.recv()
            b'hello'

        Source:
            zmq_connect_peer(3)
        """

    def disconnect_peer(self, routing_id: int) -> None:
        """Ends the connection to one peer of a PEER or SERVER.

        If this socket has connected to the peer, it does not connect again. A peer that has
        connected to this socket may do so, and gets another routing id.

        Args:
            routing_id: The routing id of the peer.

        Raises:
            ZMQError: ``EHOSTUNREACH`` if no peer has this routing id, ``ENOTSUP`` for other types.

        Source:
            zmq_disconnect_peer(3)
        """

    def set_priority(
        self, addr: str | bytes, *, send: int | None = None, recv: int | None = None
    ) -> None:
        """Changes the priorities of the peers of an endpoint that is bound or connected.

        Peers with the lowest number go first: they get all messages as long as one of them has
        room, and their messages are received before all others. Peers with the same number take
        turns. ``SNDPRIO`` and ``RCVPRIO`` are the priorities of later binds and connects; the
        default is 8. PUB and other types that do not choose a peer ignore priorities.

        Args:
            addr: The endpoint, as it was given or as `bind` returned it.
            send: The priority for what is sent, 1 (first) to 16 (last). None leaves it as it is.
            recv: The priority for what is received, likewise.

        Raises:
            ZMQError: ``EINVAL`` if a priority is not 1 to 16, ``ENOENT`` if the socket is neither
                bound nor connected to the endpoint.

        Example:
            >>> main, spare = context.socket(zmq.PULL), context.socket(zmq.PULL)
            >>> _ = main.bind("inproc://main"), spare.bind("inproc://spare")
            >>> with context.socket(zmq.PUSH) as dealt:
            ...     _ = dealt.connect("inproc://main"), dealt.connect("inproc://spare")
            ...     dealt.set_priority("inproc://spare", send=9)
            ...     dealt.send_batch([b"1", b"2"])
            2
            >>> main.recv(), main.recv()
            (b'1', b'2')

        Source:
            nn_setsockopt(3), ``NN_SNDPRIO`` and ``NN_RCVPRIO``; zeroxide only
        """

    def join(self, group: str | bytes) -> None:
        """Joins a group: this DISH then also receives what is sent to the group.

        Groups match exactly, unlike the topics of SUB.

        Args:
            group: The group, of at most 255 bytes, none of which is zero. Text is encoded as UTF-8.

        Raises:
            ZMQError: ``EINVAL`` if the group is joined already or has no valid name, ``ENOTSUP``
                if the socket is not a DISH.

        Example:
            >>> radio, dish = context.socket(zmq.RADIO), context.socket(zmq.DISH)
            >>> dish.join("weather")
            >>> _ = radio.bind("inproc://radio"), dish.connect("inproc://radio")
            >>> radio.wait_subscribed("weather")
            1
            >>> radio.send(b"4.5", group="weather")
            >>> dish.recv(copy=False).group
            'weather'

        Source:
            zmq_join(3); pyzmq's ``Socket.join``; 48/RADIO-DISH
        """

    def leave(self, group: str | bytes) -> None:
        """Leaves a group that `join` has joined.

        Args:
            group: The group, as passed to `join`.

        Raises:
            ZMQError: ``EINVAL`` if the group is not joined, ``ENOTSUP`` if the socket is not a
                DISH.

        Source:
            zmq_leave(3); pyzmq's ``Socket.leave``
        """

    def unbind(self, addr: str | bytes) -> None:
        """Stops listening at an address.

        Connections that were accepted there are closed. Messages queued for the peers are
        still sent, for up to ``LINGER`` ms. Messages that have arrived can still be received.

        Args:
            addr: The address, as passed to `bind` or as in ``last_endpoint``.

        Raises:
            ZMQError: ``ENOENT`` if the socket is not bound to `addr`.

        Example:
            >>> endpoint = "inproc://to-unbind"
            >>> _ = pull.bind(endpoint)
            >>> pull.unbind(endpoint)

        Source:
            zmq_unbind(3)
        """

    def disconnect(self, addr: str | bytes) -> None:
        """Disconnects from an address.

        Messages queued for the peer are still sent, for up to ``LINGER`` ms. Messages from
        the peer that were not received yet are discarded.

        Args:
            addr: The address, as passed to `connect`.

        Raises:
            ZMQError: ``ENOENT`` if the socket is not connected to `addr`.

        Example:
            >>> endpoint = "tcp://127.0.0.1:5555"
            >>> _ = push.connect(endpoint)
            >>> push.disconnect(endpoint)

        Source:
            zmq_disconnect(3)
        """

    def set(self, option: int, optval: OptionValue) -> None:
        """Sets an option.

        Options are attributes as well: ``socket.linger = 0`` is ``socket.set(zmq.LINGER, 0)``.

        Args:
            option: The number of the option: a `SocketOption` such as ``zmq.LINGER``.
            optval: The value: an int, or `bytes` for options of text and keys. The page
                "Options" lists what each option takes, its unit and its default.

        Raises:
            TypeError: The option takes another type of value.
            ZMQError: ``EINVAL`` if there is no such option, it cannot be set, it belongs to
                another type of socket, or the value is out of range.

        Example:
            >>> push.set(zmq.LINGER, 500)  # ms
            >>> push.linger
            500

        Source:
            zmq_setsockopt(3); pyzmq's ``Socket.set``
        """

    def get(self, option: int) -> Any:
        """Reads an option.

        Options are attributes as well: ``socket.linger`` is ``socket.get(zmq.LINGER)``.

        Args:
            option: The number of the option: a `SocketOption` such as ``zmq.LINGER``.

        Returns:
            The value: an int, or `bytes` for options of text and keys.

        Raises:
            ZMQError: ``EINVAL`` if there is no such option, or it cannot be read.

        Example:
            >>> push.get(zmq.SNDHWM)  # messages
            1000

        Source:
            zmq_getsockopt(3); pyzmq's ``Socket.get``
        """

    def close(self, linger: int | None = None) -> None:
        """Closes the socket and all its handles.

        Args:
            linger: How long to keep sending queued messages, in ms. -1 means no limit, and None
                the value of the option ``LINGER``.
        """

    def _close_within(
        self, timeout: float | None, begin: bool = False
    ) -> list[tuple[str, str, bytes, int, int]]: ...
    @property
    def closed(self) -> bool:
        """Whether the socket cannot be used: closed, or inherited through a fork."""

    def fileno(self) -> int:
        """Returns a file descriptor for use with other event loops.

        It is readable as long as the socket may have work to do: ``socket.events`` says which.
        It is level-triggered, so it stays readable until no work is left. libzmq's is
        edge-triggered.

        Returns:
            The descriptor. Do not read from it, and do not close it.

        Raises:
            ZMQError: ``ENOTSOCK`` if the socket is closed.

        Source:
            ``ZMQ_FD`` of zmq_getsockopt(3)
        """

    def stats(self) -> SocketStats:
        """Returns counters of what was sent, received, queued and dropped.

        Returns:
            A dict with the totals of the socket and, under ``peers``, those of each connection:
            see `SocketStats`. Counters are messages, or bytes where the name ends in
            ``_bytes``. ``dropped`` has the reasons for which messages were not delivered.

        Raises:
            ZMQError: ``ENOTSOCK`` if the socket is closed.

        Example:
            >>> push.send(b"12345")
            >>> stats = push.stats()
            >>> stats["sent"], stats["sent_bytes"], len(stats["peers"])
            (1, 5, 1)

        Source:
            zeroxide only
        """

    def flush(self, timeout: float | None = None) -> None:
        """Waits until all messages sent so far were handed to the kernel, for every peer.

        Args:
            timeout: How long to wait, in ms; None waits without limit.

        Raises:
            ContextTerminated: The context ended.
            NotFlushed: The time is up. ``remaining`` has the number of messages left, by
                endpoint.

        Example:
            >>> push.send(b"important")
            >>> push.flush(1000)

        Source:
            zeroxide only
        """

    def secure_server(self, secret_key: bytes | str, allow: _Allow | None = None) -> AllowList:
        """Makes this socket a CURVE server, which encrypts and accepts only known clients.

        Call it before `bind` or `connect`.

        Args:
            secret_key: The server's secret key: 40 characters of Z85, or 32 bytes.
            allow: The clients that may connect: an `AllowList`, public keys, a mapping from public
                keys to
                names, a folder of certificates, or ``"*"`` for every client that knows the
                server's public key. None accepts no client.

        Returns:
            The list. It can be changed while the server runs: changes apply to the next
            client. The name of a key, or the key itself if it has none, is the ``User-Id`` of
            the client's messages.

        Raises:
            TypeError: A key is neither `bytes` nor `str`, or `allow` is a single key.
            ZMQError: ``EINVAL`` if a key has another length or the socket is bound or connected
                already.

        Example:
            >>> server_public, server_secret = zmq.curve_keypair()
            >>> client_public, client_secret = zmq.curve_keypair()
            >>> with context.socket(zmq.REP) as rep, context.socket(zmq.REQ) as req:
            ...     allowed = rep.secure_server(server_secret, {client_public: "alice"})
            ...     port = rep.bind_to_random_port("tcp://127.0.0.1")
            ...     req.secure_client(server_public, client_secret)
            ...     _ = req.connect(f"tcp://127.0.0.1:{port}")
            ...     req.send(b"hello")
            ...     rep.recv(copy=False)["User-Id"]
            'alice'

        Source:
            26/CURVEZMQ, section "CurveZMQ Commands"; 25/ZMTP-CURVE
        """

    def secure_client(self, server_key: bytes | str, secret_key: bytes | str | None = None) -> None:
        """Makes this socket a CURVE client, which encrypts and verifies the server.

        Call it before `connect` or `bind`.

        Args:
            server_key: The server's public key: 40 characters of Z85, or 32 bytes.
            secret_key: The client's own secret key. None generates a new one, which is accepted
                only by servers that accept every client.

        Raises:
            TypeError: A key is neither `bytes` nor `str`.
            ZMQError: ``EINVAL`` if a key has another length or the socket is bound or connected
                already.

        Source:
            26/CURVEZMQ, section "CurveZMQ Commands"; 25/ZMTP-CURVE
        """

    def password_server(self, users: _Users | None = None) -> Passwords:
        """Makes this socket a PLAIN server, which asks clients for a user name and a password.

        PLAIN does not encrypt anything: use it over ipc, loopback or a tunnel. Call it before
        `bind` or `connect`.

        Args:
            users: A `Passwords` table, or a mapping from user names to passwords. None
                accepts no user.

        Returns:
            The table. It can be changed while the server runs: changes apply to the next
            client. The user name is the ``User-Id`` of the client's messages.

        Raises:
            TypeError: `users` is not a mapping, or a password is neither `bytes` nor `str`.
            ZMQError: ``EINVAL`` if the socket is bound or connected already.

        Source:
            24/ZMTP-PLAIN, section "Implementation"
        """

    def password_client(self, username: str, password: bytes | str) -> None:
        """Makes this socket a PLAIN client, which sends a user name and a password.

        PLAIN does not encrypt anything: use it over ipc, loopback or a tunnel. Call it before
        `connect` or `bind`.

        Args:
            username: The user name, up to 255 bytes of UTF-8.
            password: The password, up to 255 bytes; text is sent as UTF-8.

        Raises:
            TypeError: `password` is neither `bytes` nor `str`.
            ZMQError: ``EINVAL`` if either is too long, or the socket is bound or connected
                already.

        Source:
            24/ZMTP-PLAIN, section "Implementation"
        """

    def monitor(self, addr: str | bytes | None, events: int = 0xFFFF) -> None:
        """Publishes the socket's events at an inproc address, in libzmq's format.

        `monitor_events` returns the same events as objects, and needs no address.

        Args:
            addr: An ``inproc://`` address, where PAIR sockets connect to read the events. None
                stops publishing.
            events: The events to publish: a sum of ``EVENT_...`` numbers.

        Raises:
            ZMQError: ``EPROTONOSUPPORT`` if `addr` is not inproc, ``EADDRINUSE`` if it is
                taken.

        Source:
            zmq_socket_monitor(3)
        """

    def _event_stream(self, events: int) -> EventStream: ...
    def _leave_descriptors(self) -> None: ...
    def _overview(self) -> str | None: ...
    def count_connected(self) -> int:
        """Returns how many peers are connected now.

        Returns:
            The number of connections whose handshake is complete.

        Raises:
            ZMQError: ``ENOTSOCK`` if the socket is closed.

        Source:
            zeroxide only
        """

    def wait_connected(self, *, count: int = 1, timeout: float | None = None) -> int:
        """Waits until enough peers are connected.

        Args:
            count: How many peers to wait for.
            timeout: How long to wait, in ms; None waits without limit.

        Returns:
            How many peers are connected, at least `count`.

        Raises:
            Again: The time is up; the text has the number of connected peers.
            ContextTerminated: The context ended.

        Example:
            >>> push.wait_connected(timeout=1000)
            1

        Source:
            zeroxide only
        """

    def count_subscribed(self, topic: bytes | str | None = None) -> int:
        """Returns how many peers receive messages with a topic now (PUB and XPUB).

        Args:
            topic: The beginning of the messages. None stands for the empty topic: only peers
                that subscribed to everything.

        Returns:
            The number of peers that subscribed to `topic` or to a prefix of it.

        Raises:
            ZMQError: ``ENOTSUP`` if the socket is not PUB or XPUB.

        Source:
            zeroxide only
        """

    def wait_subscribed(
        self, topic: bytes | str | None = None, count: int = 1, timeout: float | None = None
    ) -> int:
        """Waits until enough peers receive messages with a topic (PUB and XPUB).

        Args:
            topic: The beginning of the messages. None stands for the empty topic.
            count: How many peers to wait for.
            timeout: How long to wait, in ms; None waits without limit.

        Returns:
            How many peers subscribed to `topic` or to a prefix of it, at least `count`.

        Raises:
            Again: The time is up; the text has the number of subscribed peers.
            ContextTerminated: The context ended.
            ZMQError: ``ENOTSUP`` if the socket is not PUB or XPUB.

        Example:
            >>> sub.subscribe("weather")
            >>> pub.wait_subscribed("weather", timeout=1000)
            1
            >>> pub.send_multipart([b"weather", b"sunny"])
            >>> sub.recv_multipart()
            [b'weather', b'sunny']

        Source:
            zeroxide only
        """

    @property
    def underlying(self) -> int:
        """A number that identifies the socket in this process; all its handles share it."""

@final
class EventStream:
    """The events of a socket's connections; see `zeroxide.SocketEvents`."""

    def recv(
        self, timeout: float | None = None
    ) -> tuple[int, int, str, str, bytes, str, str, str, float, int] | None: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...

class AsyncSocket(Socket):
    """The native half of `zeroxide.asyncio.Socket`."""

    @property
    def _recv_futures(self) -> list[asyncio.Future[Any]]: ...
    @property
    def _send_futures(self) -> list[asyncio.Future[Any]]: ...
    @overload  # type: ignore[override]
    def recv(
        self, flags: int = 0, copy: Literal[True] = True, track: bool = False
    ) -> Future[bytes]: ...
    @overload
    def recv(
        self, flags: int = 0, *, copy: Literal[False], track: bool = False
    ) -> Future[Frame]: ...
    @overload
    def recv(self, flags: int, copy: Literal[False], track: bool = False) -> Future[Frame]: ...
    @overload
    def recv(
        self, flags: int = 0, copy: bool = True, track: bool = False
    ) -> Future[bytes] | Future[Frame]:
        """Receives one part of a message; returns a future.

        Cancelling the future, dropping it, or cancelling its task loses no message.

        Args:
            flags: 0, or ``DONTWAIT`` for a future that fails with `Again` instead of waiting.
            copy: False gives a `Frame`, which shares the memory of a large part.
            track: Whether the frame has a tracker. It is done from the start.

        Returns:
            A future of the part: `bytes`, or a `Frame` with ``copy=False``.

        Raises:
            Again: By the future: nothing arrived within ``RCVTIMEO`` ms.
            ContextTerminated: By the future: the context ended.
            ZMQError: By the future, as in `zeroxide.Socket.recv`.

        Example:
            async def work(pull):
                return await pull.recv()

        Source:
            pyzmq's ``zmq.asyncio.Socket.recv``
        """

    @overload  # type: ignore[override]
    def recv_multipart(
        self, flags: int = 0, copy: Literal[True] = True, track: bool = False
    ) -> Future[list[bytes]]: ...
    @overload
    def recv_multipart(
        self, flags: int = 0, *, copy: Literal[False], track: bool = False
    ) -> Future[list[Frame]]: ...
    @overload
    def recv_multipart(
        self, flags: int, copy: Literal[False], track: bool = False
    ) -> Future[list[Frame]]: ...
    @overload
    def recv_multipart(
        self, flags: int = 0, copy: bool = True, track: bool = False
    ) -> Future[list[bytes]] | Future[list[Frame]]:
        """Receives all parts of a message; returns a future.

        Cancelling the future, dropping it, or cancelling its task loses no message.

        Args:
            flags: 0, or ``DONTWAIT`` for a future that fails with `Again` instead of waiting.
            copy: False gives frames, which share the memory of large parts.
            track: Whether the frames have trackers. They are done from the start.

        Returns:
            A future of a list of `bytes`, or of `Frame` with ``copy=False``.

        Raises:
            Again: By the future: nothing arrived within ``RCVTIMEO`` ms.
            ContextTerminated: By the future: the context ended.
            ZMQError: By the future, as in `zeroxide.Socket.recv`.

        Source:
            pyzmq's ``zmq.asyncio.Socket.recv_multipart``
        """

    def recv_into(  # type: ignore[override]
        self, buffer: Buffer, /, *, nbytes: int = 0, flags: int = 0
    ) -> Future[int]:
        """Receives one part into a buffer; returns a future.

        A part that is larger than the buffer is cut: the result is its full size.

        Args:
            buffer: A writable, contiguous object with the buffer protocol. Leave it alone until
                the future is done.
            nbytes: How many bytes of `buffer` to use; 0 means all of them.
            flags: 0, or ``DONTWAIT`` for a future that fails with `Again` instead of waiting.

        Returns:
            A future of the size of the part in bytes.

        Raises:
            Again: By the future: nothing arrived within ``RCVTIMEO`` ms.
            BufferError: By the future: `buffer` cannot be written to.
            ValueError: By the future: `nbytes` is negative, or more than `buffer` has.
            ZMQError: By the future, as in `zeroxide.Socket.recv`.

        Source:
            pyzmq's ``Socket.recv_into``
        """

    @overload  # type: ignore[override]
    def recv_batch(
        self,
        max_messages: int = 1024,
        timeout: float | None = None,
        flags: int = 0,
        *,
        multipart: Literal[False] = False,
        copy: Literal[True] = True,
    ) -> Future[list[bytes | list[bytes]]]: ...
    @overload
    def recv_batch(
        self,
        max_messages: int = 1024,
        timeout: float | None = None,
        flags: int = 0,
        *,
        multipart: Literal[True],
        copy: Literal[True] = True,
    ) -> Future[list[list[bytes]]]: ...
    @overload
    def recv_batch(
        self,
        max_messages: int = 1024,
        timeout: float | None = None,
        flags: int = 0,
        *,
        multipart: Literal[False] = False,
        copy: Literal[False],
    ) -> Future[list[Frame | list[Frame]]]: ...
    @overload
    def recv_batch(
        self,
        max_messages: int = 1024,
        timeout: float | None = None,
        flags: int = 0,
        *,
        multipart: Literal[True],
        copy: Literal[False],
    ) -> Future[list[list[Frame]]]:
        """Receives the messages that have arrived, at least one; returns a future.

        Waits for the first message only, and then takes what is there.

        Args:
            max_messages: How many messages to return at most; 1 or more.
            timeout: How long to wait for the first message, in ms. None waits for ``RCVTIMEO``
                ms.
            flags: 0, or ``DONTWAIT`` for a future that fails with `Again` instead of waiting.
            multipart: Whether every message is returned as a list of parts.
            copy: False returns a `Frame` for each part, as in `zeroxide.Socket.recv_batch`.

        Returns:
            A future of a list of messages: `bytes` for a message of one part, otherwise a list
            of `bytes`.

        Raises:
            Again: By the future: nothing arrived in time.
            ContextTerminated: By the future: the context ended.
            ValueError: `max_messages` is below 1.
            ZMQError: By the future, as in `zeroxide.Socket.recv`.

        Source:
            zeroxide only
        """

    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Future[bytes | list[bytes]]:
        """Receives a message: its bytes if it has one part, otherwise a list of them.

        The iteration ends when the socket is closed.
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
    ) -> Future[None]: ...
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
    ) -> Future[MessageTracker]: ...
    @overload
    def send(
        self,
        data: Frame | Buffer,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        routing_id: int | None = None,
        group: str | None = None,
    ) -> Future[MessageTracker | None]:
        """Sends one part of a message; returns a future.

        Args:
            data: The part, as in `zeroxide.Socket.send`.
            flags: 0, or a sum of ``DONTWAIT`` (fail with `Again` instead of waiting) and
                ``SNDMORE`` (more parts follow).
            copy: False sends the memory of `data` itself, if it has at least `copy_threshold`
                bytes. Do not change it until the tracker is done.
            track: Whether the result is a tracker; for ``copy=False``.
            routing_id: The peer that gets the message, for SERVER and PEER: the routing id of a
                frame that was received from it, or what `connect_peer` returned. None stands for
                that of `data` if it is a `Frame`.
            group: The group that gets the message, for RADIO; at most 255 bytes. None stands for
                that of `data` if it is a `Frame`, otherwise for the group ``""``.

        Returns:
            A future that is done when the part is queued. Its result is a `MessageTracker` if
            `track` is set, otherwise None.

        Raises:
            Again: By the future: no peer had room within ``SNDTIMEO`` ms.
            ContextTerminated: By the future: the context ended.
            TypeError: By the future: `data` is text, or has no buffer.
            ZMQError: By the future, as in `zeroxide.Socket.send`.

        Example:
            async def work(push):
                await push.send(b"job")

        Source:
            pyzmq's ``zmq.asyncio.Socket.send``
        """

    def send_multipart(  # type: ignore[override]
        self,
        msg_parts: Sequence[Part],
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
    ) -> Future[MessageTracker | None]:
        """Sends a message of several parts as a whole; returns a future.

        Args:
            msg_parts: At least one part, each as in `zeroxide.Socket.send`.
            flags: 0, or a sum of ``DONTWAIT`` and ``SNDMORE``, as in `send`.
            copy: False sends the memory of parts of at least `copy_threshold` bytes itself.
            track: Whether the result is a tracker; for ``copy=False``.

        Returns:
            A future that is done when the message is queued. Its result is a `MessageTracker`
            if `track` is set, otherwise None.

        Raises:
            Again: By the future: no peer had room within ``SNDTIMEO`` ms.
            ContextTerminated: By the future: the context ended.
            IndexError: By the future: there is no part.
            TypeError: By the future: a part is text, or has no buffer. Nothing was sent.
            ZMQError: By the future, as in `zeroxide.Socket.send`.

        Source:
            pyzmq's ``zmq.asyncio.Socket.send_multipart``
        """

    def send_batch(  # type: ignore[override]
        self, messages: Batch, flags: int = 0
    ) -> Future[int]:
        """Sends many messages in one call; returns a future.

        Args:
            messages: The messages. Each is a single part, or a list or tuple of parts. Other
                iterables than lists and tuples are asked for an item only when there is room.
            flags: 0, or ``DONTWAIT`` to stop instead of waiting for room.

        Returns:
            A future of the number of messages that were sent.

        Raises:
            Again: By the future: there was no room for even the first message.
            ContextTerminated: By the future: the context ended.
            TypeError: By the future: a message is text, or has no buffer.
            ValueError: By the future: a message has no parts.
            ZMQError: By the future, as in `zeroxide.Socket.send`.

        Source:
            zeroxide only
        """

    def poll(  # type: ignore[override]
        self, timeout: float | None = None, flags: int = 1
    ) -> Future[int]:
        """Waits until the socket is ready; returns a future.

        Args:
            timeout: How long to wait, in ms. None or a negative number waits without limit,
                0 only looks.
            flags: The events to wait for: ``POLLIN``, ``POLLOUT``, or their sum.

        Returns:
            A future of the flags that the socket is ready for; 0 if the time is up.

        Raises:
            ContextTerminated: By the future: the context ended.
            ZMQError: ``ENOTSUP`` if the socket is closed.

        Source:
            pyzmq's ``zmq.asyncio.Socket.poll``
        """

    def _deserialize(self, recvd: Any, load: Callable[[Any], Any]) -> Any: ...
    def _be_quick(self, quick: bool) -> None: ...
    def _abandon(self) -> None: ...

@final
class Ready:
    # A future that is done, in place of an `asyncio.Future`. `zeroxide._futures` adds what futures have
    # beside being awaited.

    _result: Any
    _thread: int
    _made_in: Any

    def __new__(cls, value: object) -> Self: ...
    def __await__(self) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def result(self) -> Any: ...
    def _give_back(self) -> bool: ...

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
    """Takes back what a future received, at the latest when it is dropped, unless that is kept."""

    def give_back(self) -> None: ...
    def keep(self) -> None: ...

@final
class Interruption:
    """Ends a call of a producer or a client that waits in another thread."""

    def __new__(cls) -> Self: ...
    def run(self, call: Callable[[], _R]) -> _R: ...
    def interrupt(self) -> None: ...

@final
class Sending:
    """Sends the items of an iterable, for callers with their own way to wait."""

    def __new__(cls, socket: Socket, messages: Batch) -> Self: ...
    sent: int
    def send(self, limit: float | None = None) -> bool: ...
    def so_far(self) -> int: ...

@final
class SocketContext:
    """One of several conversations of a socket, made by `Socket.open_context`.

    It has a request or a survey of its own, whose replies come to it alone. Contexts share the
    connections and the options of their socket, and each thread can use one of its own. A
    context is closed by `close`, or at the end of a ``with`` block.

    Args:
        socket: The socket.

    Raises:
        ZMQError: ``ENOTSUP``: the socket's type has no contexts.

    Example:
        >>> rep, req = context.socket(zmq.REP), context.socket(zmq.REQ)
        >>> rep.wire_protocol = req.wire_protocol = zmq.SP
        >>> _ = rep.bind("inproc://contexts"), req.connect("inproc://contexts")
        >>> with req.open_context() as one, req.open_context() as other:
        ...     one.send(b"1")
        ...     other.send(b"2")
        ...     for _ in range(2):
        ...         _ = rep.send(rep.recv())
        ...     other.recv(), one.recv()
        (b'2', b'1')

    Source:
        nng's ``nng_ctx``
    """

    def __new__(cls, socket: Socket) -> Self: ...
    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def send(self, data: Part, flags: int = 0) -> None:
        """Sends a request or a survey, which replaces the last one, or an answer.

        An answer goes to the peer whose question was received last.

        Args:
            data: The message: `bytes` or any object with the buffer protocol.
            flags: ``NOBLOCK`` raises `Again` instead of waiting.

        Raises:
            Again: No peer had room in time.
            ZMQError: ``EFSM`` if there is nothing to answer; ``ENOTSOCK`` if the context or the
                socket is closed.

        Source:
            nng's ``nng_ctx_send``
        """

    def recv(self, flags: int = 0) -> builtins.bytes:
        """Receives the reply to the request, an answer to the survey, or the next question.

        Args:
            flags: ``NOBLOCK`` raises `Again` instead of waiting.

        Returns:
            The message.

        Raises:
            Again: No message came in time.
            ZMQError: ``EFSM`` without a request or a survey; ``ETIMEDOUT`` when the survey is over;
                ``ENOTSOCK`` if the context or the socket is closed.

        Source:
            nng's ``nng_ctx_recv``
        """

    def close(self) -> None:
        """Ends the conversation. Its request or survey is forgotten.

        A call that waits in this context, in another thread, raises `ZMQError` with
        ``ENOTSOCK``.

        Source:
            nng's ``nng_ctx_close``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *_args: object) -> None: ...

@final
class Watcher:
    """A descriptor that becomes readable when something happens to a socket.

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

    ``recv(copy=False)`` returns frames. A received frame also has properties of the peer
    that sent it, by name: ``frame["Peer-Address"]``, ``frame["User-Id"]``,
    ``frame["Socket-Type"]``, and what the peer announced with the option ``METADATA``.

    A frame has the buffer protocol: ``memoryview(frame)``, ``numpy.frombuffer(frame)``.

    Args:
        data: The body: `bytes` or any object with the buffer protocol. None makes an empty
            frame.
        track: Whether the frame has a tracker, which tells when the memory of `data` is
            free again.
        copy: True copies `data`, False never does, None copies bodies below
            `copy_threshold` bytes.
        copy_threshold: That many bytes; None stands for `zeroxide.COPY_THRESHOLD`.

    Raises:
        TypeError: `data` is text, or has no buffer.

    Example:
        >>> push.send(b"job")
        >>> frame = pull.recv(copy=False)
        >>> frame.bytes, len(frame), frame.more
        (b'job', 3, False)

    Source:
        pyzmq's ``Frame``; zmq_msg_init(3)
    """

    more: bool
    """Whether more parts of the message follow."""
    @property
    def routing_id(self) -> int:
        """The number of the peer that sent it, if SERVER or PEER received it, or that must get it.

        Reading it raises `ZMQError` (``EINVAL``) if there is none. Sending the frame on a SERVER or
        PEER sends it to this peer.
        """

    @routing_id.setter
    def routing_id(self, routing_id: int) -> None: ...
    @property
    def group(self) -> str:
        """The group that it is for (RADIO), or that it was sent to (DISH); empty if it has none.

        It can be set to text or `bytes` of at most 255 bytes, none of which is zero.
        """

    @group.setter
    def group(self, group: str | builtins.bytes) -> None: ...
    __hash__: ClassVar[Any]

    def __new__(
        cls,
        data: Buffer | None = None,
        track: bool = False,
        copy: bool | None = None,
        copy_threshold: int | None = None,
    ) -> Self: ...
    @property
    def bytes(self) -> builtins.bytes:
        """The body as `bytes`: the same object each time."""

    @property
    def buffer(self) -> memoryview:
        """The body as a `memoryview`, without a copy."""

    @property
    def tracker(self) -> MessageTracker | None:
        """The `MessageTracker` of the frame's memory, or None."""

    @property
    def MORE(self) -> int:
        """`more` as 0 or 1."""

    @property
    def SHARED(self) -> int:
        """1 if the body is in memory that other frames may share, 0 if it is in the frame itself."""

    @property
    def SRCFD(self) -> int:
        """The file descriptor of the connection that the frame came from.

        Raises `AttributeError` if there is none, as over inproc.
        """

    def __len__(self) -> int: ...
    def __bytes__(self) -> builtins.bytes: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    @overload
    def get(self, option: int) -> int: ...
    @overload
    def get(self, option: str | builtins.bytes) -> str:
        """Returns a property of the frame, or of the peer that sent it.

        ``frame[option]`` is the same.

        Args:
            option: A `MessageOption` such as ``zmq.MORE``, or the name of a property of the
                peer: ``"Peer-Address"``, ``"Socket-Type"``, ``"Routing-Id"``, ``"User-Id"``,
                ``"X-..."``.

        Returns:
            An int for a number, text for a name.

        Raises:
            TypeError: `option` is neither a number nor a name.
            ZMQError: ``EINVAL`` if there is no such property.

        Example:
            >>> push.send(b"job")
            >>> pull.recv(copy=False).get("Socket-Type")
            'PUSH'

        Source:
            zmq_msg_get(3), zmq_msg_gets(3); 37/ZMTP, section "Connection Metadata"
        """

    @overload
    def __getitem__(self, option: int) -> int: ...
    @overload
    def __getitem__(self, option: str | builtins.bytes) -> str: ...
    def set(self, option: int | str, value: Any) -> None:
        """Raises `ZMQError`: no property of a frame can be set.

        Args:
            option: The property.
            value: Its value.

        Raises:
            ZMQError: ``EINVAL``, always.

        Source:
            zmq_msg_set(3)
        """

    def fast_copy(self) -> Self:
        """Returns a second frame over the same memory.

        Returns:
            The new frame.

        Source:
            zmq_msg_copy(3)
        """

    def __copy__(self) -> Self: ...

@final
class LastPart:
    """A message that lacked its last part only; `attempt` sends it as soon as there is room."""

    def attempt(self) -> MessageTracker | None: ...
    def give_up(self) -> None: ...

@final
class Release:
    """Reports when the core no longer refers to a buffer."""

    @property
    def done(self) -> bool:
        """Whether nothing refers to the memory any more."""

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the memory is free.

        Args:
            timeout: How long to wait, in seconds; None waits without limit.

        Returns:
            Whether it is free.
        """

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
        ahead_seconds: float,
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
    def _tail(
        self, topic: str | None, most: int, cut: int
    ) -> tuple[
        list[tuple[int, int, str | None, bytes | None, str, int | None, bytes, int, int]], int, int
    ]: ...
    def drop_group(self, group: str) -> bool:
        """Forgets a group of consumers, so that it no longer holds rows back.

        Args:
            group: Its name.

        Returns:
            Whether there was such a group.
        """

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
        """The log's id, 32 hexadecimal digits: the same for as long as its files exist."""

    @property
    def running(self) -> bool:
        """Whether the collector is running."""

    def close(self) -> None:
        """Accepts the rows in transit, syncs them to disk, replies, and ends.

        An earlier failure is raised. Closing again does nothing.
        """

@final
class ArrowTable:
    """Rows in Arrow's format, for any library that understands it.

    ``pyarrow.table(rows)``, ``polars.from_arrow(rows)`` and others take it without a copy,
    through Arrow's PyCapsule interface. Made by `Socket.recv_arrow`,
    `Socket.recv_batch_arrow` and `Client.fetch`.

    Example:
        >>> push.send_batch([b"one", b"two"])
        2
        >>> rows = pull.recv_batch_arrow()
        >>> rows.num_rows, rows.column_names
        (2, ['value'])

    Source:
        Arrow PyCapsule interface
    """

    @staticmethod
    def _of(data: ArrowData) -> ArrowTable: ...
    @property
    def num_rows(self) -> int:
        """The number of rows."""

    @property
    def num_batches(self) -> int:
        """The number of batches that hold the rows."""

    @property
    def nbytes(self) -> int:
        """The size of the columns in bytes."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""

    def batches(self) -> list[ArrowTable]:
        """Returns the batches, each as a table.

        Returns:
            A list of `num_batches` tables, which share the memory of this one.
        """

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Observer:
    """Answers ``zeroxide top`` of the same user until it is closed; see `observe`.

    As a ``with`` block, it closes at the end.

    Args:
        folder: The folder of the endpoint; None for the default one.

    Raises:
        OSError: The folder cannot be created.
        ZMQError: ``EACCES`` if another user could open or replace the folder.

    Example:
        >>> with zmq.observe() as observer:
        ...     observer.endpoint.startswith("ipc://")
        True

    Source:
        zeroxide only
    """

    def __new__(cls, folder: str | PathLike[str] | None = None) -> Self: ...
    @property
    def endpoint(self) -> str:
        """The endpoint, as in ``ipc:///run/user/1000/zeroxide/4711.sock``."""

    @property
    def closed(self) -> bool:
        """Whether it was closed, or belongs to the parent of this process."""

    def close(self) -> None:
        """Closes the endpoint and removes its file. Closing again does nothing."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_details: object) -> None: ...

def snapshot(peers: int) -> str:
    """The answer of an observer, with at most this many peers of each socket."""

def observer_folder() -> str:
    """The folder of this user's observers."""

def log_segment(data: Buffer) -> tuple[str, int, int]:
    """What a log's file begins with: the log's id, the first offset, the place of the first frame."""

def log_peek(data: Buffer, position: int) -> tuple[int, int, int, int] | None:
    """The length, first offset, end and time of receipt of a frame; None if its header is not complete."""

def log_next(
    read: Callable[[int, int], Buffer], position: int, offset: int, size: int, end: int
) -> tuple[int, int] | None:
    """The position and first offset of the frame here, or after damage; `read` gets a position and a size."""

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
    """The rows of frames; the position and offset of the first unreadable frame; and its fault."""

def arrow_encode(data: ArrowData) -> bytes:
    """Encodes a table as one message, in Arrow's IPC stream format."""

def arrow_messages(data: ArrowData) -> list[list[bytes]]:
    """The messages of a table's rows, each a list of parts."""

def arrow_rows(socket: Socket, messages: list[list[bytes]], frames: bool) -> ArrowTable:
    """Messages that were received as lists of parts, as rows."""

def arrow_decode(message: Buffer | Frame) -> ArrowTable:
    """Decodes a message that holds a table; raises `ValueError` for anything else."""

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
    """Returns the text of an error number.

    Args:
        errno: A number of the system or of ZeroMQ (``zmq.EFSM``).

    Returns:
        The text.

    Example:
        >>> zmq.strerror(zmq.ETERM)
        'Context was terminated'

    Source:
        zmq_strerror(3)
    """

def zmq_errno() -> int:
    """Returns the number of the last error in the calling thread.

    Returns:
        The number, 0 if there was no error.

    Source:
        zmq_errno(3)
    """

def lent_buffers() -> int:
    """How many buffers of the program were sent, or made a frame, without a copy and are not free yet."""

@final
class Trouble:
    """A descriptor that is readable once another one has an error or has hung up."""

    def fileno(self) -> int:
        """Returns the number of the descriptor.

        Raises:
            ValueError: It is closed.
        """

    def close(self) -> None:
        """Closes the descriptor."""

def trouble_of(fd: int, with_urgent: bool) -> Trouble | None:
    """Watches a descriptor for errors and hang-ups, and for urgent data if asked; None if it can have no error.

    Raises:
        OSError: The system refuses it; ``EBADF`` if it is not open.
        ValueError: `fd` is negative.
    """

def own_addresses() -> list[str]:
    """The addresses of this machine's network interfaces."""

def turn_is_over() -> bool:
    """Whether what is there should cost the running loop a turn, since others have waited for long."""

def has(capability: str) -> bool:
    """Tells whether a transport or a security mechanism can be used.

    Args:
        capability: Its name: ``"tcp"``, ``"ipc"``, ``"tls"``, ``"curve"``, ``"plain"``,
            ``"gssapi"``, ``"draft"``, ``"sp"``, ...

    Returns:
        Whether it is built in. For ``vsock``, ``tipc`` and ``sctp``, the kernel must also make
        sockets of the protocol for this process now.

    Example:
        >>> zmq.has("curve"), zmq.has("gssapi")
        (True, False)

    Source:
        zmq_has(3)
    """

_Key: TypeAlias = bytes | str
# With names, or without.
_Keys: TypeAlias = Iterable[_Key] | Mapping[Any, str]
_Allow: TypeAlias = AllowList | _Keys | str | PathLike[str]
_Users: TypeAlias = Passwords | Mapping[str, Any]

@final
class AllowList:
    """The public keys that may connect to a CURVE server.

    The list may be shared by several servers, and changed while they run. Changes apply to
    the next client; with ``disconnect=True`` also to those that are connected.

    Args:
        allow: Public keys, a mapping from public keys to names, a folder of certificates,
            ``"*"`` for every client, or another list, whose keys are then shared. None makes
            an empty list, which accepts no client.

    Raises:
        TypeError: `allow` is a single key, or a key is neither `bytes` nor `str`.
        ZMQError: ``EINVAL`` if a key has another length; the system's error if the folder
            cannot be read.

    Example:
        >>> public, secret = zmq.curve_keypair()
        >>> allowed = AllowList({public: "alice"})
        >>> public in allowed, len(allowed)
        (True, 1)

    Source:
        26/CURVEZMQ, section "The INITIATE Command"; zeroxide only
    """

    def __new__(cls, allow: _Allow | None = None, /) -> Self: ...
    @property
    def anybody(self) -> bool:
        """Whether every client that knows the server's public key may connect."""

    def add(self, public_key: _Key, name: str = "") -> None:
        """Accepts the owner of a key.

        Args:
            public_key: The key: 40 characters of Z85, or 32 bytes.
            name: The ``User-Id`` of the client's messages; empty for the key itself.

        Raises:
            TypeError: The key is neither `bytes` nor `str`.
            ZMQError: ``EINVAL`` if the key has another length.
        """

    def remove(self, public_key: _Key, *, disconnect: bool = False) -> bool:
        """Removes a key.

        Args:
            public_key: The key: 40 characters of Z85, or 32 bytes.
            disconnect: Whether to end the connections of its owner.

        Returns:
            Whether it was on the list.

        Raises:
            TypeError: The key is neither `bytes` nor `str`.
            ZMQError: ``EINVAL`` if the key has another length.
        """

    def replace(self, keys: _Keys, *, disconnect: bool = False) -> None:
        """Replaces all keys in one step.

        Args:
            keys: Public keys, or a mapping from public keys to names.
            disconnect: Whether to end the connections of clients that are no longer on the list.

        Raises:
            TypeError: A key is neither `bytes` nor `str`.
            ZMQError: ``EINVAL`` if a key has another length. The list stays as it was.
        """

    def reload(self, *, disconnect: bool = False) -> int:
        """Reads the folder that the list was made from again.

        Args:
            disconnect: Whether to end the connections of clients that are no longer on the list.

        Returns:
            The number of keys.

        Raises:
            ZMQError: The list was not made from a folder, or the folder cannot be read. The
                list stays as it was.
        """

    def disconnect_strangers(self) -> int:
        """Ends the connections of clients that are no longer on the list.

        Returns:
            How many connections were ended.
        """

    def names(self) -> dict[bytes, str]:
        """Returns the names by key.

        Returns:
            A dict from public keys (Z85, as `bytes`) to names, empty where there is none.
        """

    def __contains__(self, public_key: _Key, /) -> bool: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class Passwords:
    """The users that may connect to a PLAIN server, and their passwords.

    The table may be shared by several servers, and changed while they run. Changes apply to
    the next client; with ``disconnect=True`` also to those that are connected.

    Args:
        users: A mapping from user names to passwords (`bytes` or `str`), or another table,
            whose users are then shared. None makes an empty table, which accepts no user.

    Raises:
        TypeError: `users` is not a mapping, or a password is neither `bytes` nor `str`.

    Example:
        >>> users = Passwords({"alice": "secret"})
        >>> "alice" in users, "bob" in users
        (True, False)

    Source:
        24/ZMTP-PLAIN, section "Implementation"; zeroxide only
    """

    def __new__(cls, users: _Users | None = None, /) -> Self: ...
    def add(self, user: str, password: bytes | str) -> None:
        """Adds a user, or changes a user's password.

        Args:
            user: The user name.
            password: The password, `bytes` or `str`.

        Raises:
            TypeError: The password is neither `bytes` nor `str`.
        """

    def remove(self, user: str, *, disconnect: bool = False) -> bool:
        """Removes a user.

        Args:
            user: The user name.
            disconnect: Whether to end the user's connections.

        Returns:
            Whether there was such a user.
        """

    def replace(self, users: Mapping[str, Any], *, disconnect: bool = False) -> None:
        """Replaces all users in one step.

        Args:
            users: A mapping from user names to passwords.
            disconnect: Whether to end the connections of users that are no longer in the table.

        Raises:
            TypeError: `users` is not a mapping, or a password is neither `bytes` nor `str`.
        """

    def disconnect_strangers(self) -> int:
        """Ends the connections of users that are no longer in the table.

        Returns:
            How many connections were ended.
        """

    def __contains__(self, user: str, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

def curve_keypair() -> tuple[bytes, bytes]:
    """Generates a CURVE key pair.

    Returns:
        The public key and the secret key, each 40 characters of Z85 as `bytes`.

    Raises:
        ZMQError: The system has no random numbers.

    Example:
        >>> public, secret = zmq.curve_keypair()
        >>> len(public), zmq.curve_public(secret) == public
        (40, True)

    Source:
        zmq_curve_keypair(3); 32/Z85, section "Formal Specification"
    """

def curve_public(secret_key: bytes | str) -> bytes:
    """Returns the public key that belongs to a secret key.

    Args:
        secret_key: 40 characters of Z85, as `bytes` or `str`.

    Returns:
        The public key, 40 characters of Z85 as `bytes`.

    Raises:
        TypeError: The key is neither `bytes` nor `str`.
        ValueError: The key is not 40 characters of Z85.

    Source:
        zmq_curve_public(3); 32/Z85, section "Formal Specification"
    """

# A socket, a descriptor, or what has a `fileno()`.
_P = TypeVar("_P", bound=int | HasFileno)
_R = TypeVar("_R")

def zmq_poll(sockets: Sequence[tuple[_P, int]], timeout: int = -1) -> list[tuple[_P, int]]:
    """Waits until one of several sockets or file descriptors is ready.

    `Poller` remembers what to wait for between calls.

    Args:
        sockets: Pairs of a socket, a descriptor or an object with ``fileno()``, and the
            events to wait for: ``POLLIN``, ``POLLOUT``, ``POLLERR``, ``POLLPRI`` or a sum.
        timeout: How long to wait, in ms. A negative number waits without limit, 0 only
            looks.

    Returns:
        Pairs of a socket (or descriptor) and the events it is ready for; empty if the time
        is up. A closed socket is never ready, and neither is a negative descriptor, which a
        closed socket of Python has. Instead of a file object, they have its descriptor, an
        `int`, as in pyzmq.

    Raises:
        ContextTerminated: The context of a socket ended.
        TypeError: An item is none of these.
        ValueError: ``fileno()`` returned no descriptor.
        ZMQError: ``ENOTSOCK`` if everything is closed and there is no time limit.

    Example:
        >>> push.send(b"job")
        >>> zmq.zmq_poll([(pull, zmq.POLLIN)], 1000) == [(pull, zmq.POLLIN)]
        True

    Source:
        zmq_poll(3)
    """

def proxy(frontend: Socket, backend: Socket, capture: Socket | None = None) -> int:
    """Forwards messages between two sockets, in both directions, until their context ends.

    Runs in the calling thread; `zeroxide.devices` runs proxies in threads and processes.

    Args:
        frontend: A bound or connected socket.
        backend: Another one.
        capture: A PUB, DEALER, PUSH or PAIR socket that gets a copy of every message. The
            proxy waits while it has no room; a PUB always has.

    Returns:
        Never, in practice: the end of the context raises.

    Raises:
        ContextTerminated: The context of a socket ended.
        ZMQError: A socket was closed, or cannot do its part.

    Source:
        zmq_proxy(3)
    """

def proxy_steerable(
    frontend: Socket,
    backend: Socket,
    capture: Socket | None = None,
    control: Socket | None = None,
) -> int:
    """Does what `proxy` does, and obeys commands from a control socket.

    ``PAUSE`` stops forwarding messages, ``RESUME`` resumes it, and ``TERMINATE`` ends the proxy.
    ``STATISTICS`` is answered with eight parts, 64-bit numbers in the machine's byte order:
    messages and bytes received from the front end, messages and bytes sent to it, and the
    same for the back end. A REP socket answers the other commands with an empty message.

    Args:
        frontend: A bound or connected socket.
        backend: Another one.
        capture: As in `proxy`.
        control: A PAIR, PULL, SUB or REP socket that receives the commands.

    Returns:
        0 after ``TERMINATE``.

    Raises:
        ContextTerminated: The context of a socket ended.
        ZMQError: A socket was closed, or cannot do its part.

    Source:
        zmq_proxy_steerable(3)
    """

def monitored_queue(
    in_socket: Socket,
    out_socket: Socket,
    mon_socket: Socket,
    in_prefix: bytes | None = None,
    out_prefix: bytes | None = None,
) -> int:
    """Does what `proxy` does, and sends a copy of every message to a monitor socket.

    The copies begin with a part that names the origin of the message. Between two ROUTER
    sockets, the first two parts are swapped: a peer of one names a peer of the other, which
    gets the sender's routing id in return.

    Args:
        in_socket: A bound or connected socket.
        out_socket: Another one.
        mon_socket: The monitor, usually PUB.
        in_prefix: The first part of copies from `in_socket`; ``b"in"`` by default.
        out_prefix: The first part of copies from `out_socket`; ``b"out"`` by default.

    Returns:
        Never, in practice: the end of the context raises.

    Raises:
        ContextTerminated: The context of a socket ended.
        ZMQError: A socket was closed, or cannot do its part.

    Source:
        pyzmq's ``zmq.devices.monitored_queue``
    """

def socket_options() -> list[tuple[str, int, str, bool, bool]]: ...
def context_options() -> list[tuple[str, int, str, bool, bool]]: ...
def socket_option_texts() -> list[tuple[str, str, list[str], str]]: ...
def context_option_texts() -> list[tuple[str, str, list[str], str]]: ...
