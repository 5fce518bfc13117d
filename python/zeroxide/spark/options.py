"""The options of the format ``zeromq``, read once into a dataclass.

Names are matched without regard to case, because Spark lower-cases some of them. A name
that is not known is an error: a mistyped option would otherwise do nothing, silently.
A comma-separated list may also be a list of Python or JSON, ``["a", "b"]``; its texts may have commas.

Both ways
    ``endpoint``        required; where to connect or bind, a comma-separated list
    ``attach``          ``connect`` or ``bind``
    ``mode``            ``live``: sockets live in the tasks, nothing can be replayed. Reading
                        has ``log`` unless this is said; `zeroxide.spark.log_options` has its
                        options
    ``framing``         which frame of a message is what:

                        * ``single``: the message is the value
                        * ``topic-first``: topic, value
                        * ``envelope``: topic, key, value, then a name and a value per header

    ``zmq.*``           any socket option, as in ``zmq.rcvhwm``. ``env:NAME`` and
                        ``file:PATH`` as a value are looked up where the task runs

Reading: one endpoint is one partition, which ends at whichever limit it reaches first
    ``socket``          ``pull``, or ``sub``
    ``subscribe``       for ``sub``: prefixes, a comma-separated list; everything
    ``maxRows``         messages per partition
    ``maxBytes``        bytes per partition; rows that arrive with the last one are kept
    ``timeoutMs``       10000; time per partition
    ``endOfStream``     a body that ends the partition and is not part of it
    ``framing``         ``topic-first`` for ``sub``, else ``single``
    ``includeHeaders``  adds the column ``headers`` (``envelope`` only)
    ``includeFrames``   adds the column ``frames``; messages may then have any number of
                        them, and the value is the last

Writing: a row is a message; ``write`` ends when all have left for their peers
    ``socket``          ``push``, ``dealer``, ``pub``, or ``log``, which has options of its own
    ``topic``           the topic of all rows, in place of a column ``topic``
    ``frame``           ``message``, or ``arrow``: one message per batch of rows, an Arrow
                        IPC stream of all columns
    ``waitPeers``       1; peers (for ``pub``: subscribers) to wait for before sending
    ``flushTimeoutMs``  30000; how long to wait for peers, for room, and for the flush
    ``includeHeaders``  puts a header ``spark`` into each message, with the text
                        ``query,batch,partition,attempt,row``: what a retry sends again
                        differs from the first in nothing but the attempt. With
                        ``frame=arrow`` it is in the stream's metadata, for its first row
    ``queryName``       the query in that header, in place of Spark's id
    ``batchId``         the batch in that header, in place of Spark's number
    ``framing``         the least that holds the columns: ``envelope`` with ``key`` or
                        ``headers``, ``topic-first`` with ``topic``, else ``single``

Writing to a collector's log, with ``socket=log`` or ``delivery=exactly-once``: tasks stage
their rows there, and the driver's commit makes them readable, all at once and only once
    ``endpoint``        the collector's; one
    ``topic``           the topic of all rows, in place of a column ``topic``
    ``frame``           ``message``, or ``arrow``, as above
    ``ackTimeoutMs``    30000; how long the collector may take to confirm
    ``batchId``         makes a batch write repeatable, together with ``queryName``: the
                        log takes each number of a name once, and none below the last.
                        Each of several writes of a batch needs its own ``queryName``:
                        the second one with the same name and number writes nothing
    ``queryName``       the name; in a stream, what stands for its id where Spark has none
    ``zmq.curve_*``     ``serverkey``, ``publickey`` and ``secretkey``
"""

import json
from ast import literal_eval
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar, cast, overload

from .._exports import exports_only
from .._hints import did_you_mean
from ..constants import SocketOption

__all__ = [
    "ENVELOPE",
    "SINGLE",
    "TOPIC_FIRST",
    "Attachment",
    "LogWriteOptions",
    "ReadOptions",
    "WriteOptions",
    "included_columns",
    "is_for_log",
]


def __dir__() -> list[str]:
    return exports_only(globals())


Framing = Literal["single", "topic-first", "envelope"]
SINGLE: Framing = "single"
TOPIC_FIRST: Framing = "topic-first"
ENVELOPE: Framing = "envelope"
FRAMINGS = (SINGLE, TOPIC_FIRST, ENVELOPE)

# Options that Spark itself adds to those of a source or sink.
FOREIGN = frozenset({"path", "checkpointlocation", "serialization.format"})

# Options of the replayable source, which reads a collector's log.
LOG_ONLY = frozenset(
    name.lower()
    for name in (
        "startingOffsets",
        "endingOffsets",
        "startingTimestamp",
        "endingTimestamp",
        "maxOffsetsPerTrigger",
        "maxBytesPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
        "minPartitions",
        "maxRecordsPerPartition",
        "failOnDataLoss",
        "consumerGroup",
        "fetch",
        "fetch.timeoutMs",
        "fetch.retries",
        "collector.graceMs",
    )
)

# Socket options that other options of the format set.
SPOKEN_FOR = {
    "linger": "flushTimeoutMs",
    "sndtimeo": "flushTimeoutMs",
    "rcvtimeo": "timeoutMs",
    "subscribe": "subscribe",
    "unsubscribe": "subscribe",
}

# Their values would be readable in every query plan.
SECRETS = frozenset({"curve_secretkey", "plain_password"})

# Socket options that a collector's client has.
CURVE_KEYS = ("curve_serverkey", "curve_publickey", "curve_secretkey")

# The transports between processes.
SCHEMES = ("tcp", "ipc")

# The targets of a write.
WRITERS = ("push", "dealer", "pub", "log")

AT_LEAST_ONCE = "at-least-once"
EXACTLY_ONCE = "exactly-once"
DELIVERIES = (AT_LEAST_ONCE, EXACTLY_ONCE)

T = TypeVar("T")


@dataclass(frozen=True)
class Attachment:
    """How a socket gets its peers."""

    endpoints: tuple[str, ...]
    bind: bool
    socket_options: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ReadOptions:
    """The options of ``spark.read.format("zeromq")``."""

    attachment: Attachment
    socket: Literal["pull", "sub"]
    subscribe: tuple[str, ...]
    framing: Framing
    include_headers: bool
    include_frames: bool
    max_rows: int | None
    max_bytes: int | None
    timeout_ms: int
    end_of_stream: bytes | None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "ReadOptions":
        """Reads and checks the options of a batch read.

        Args:
            options: The options by their names, in any case.

        Returns:
            The options with their defaults.

        Raises:
            ValueError: An option is unknown, invalid, or contradicts another.
        """
        given = _Given(options, "reading")
        given.choice("mode", ("live",), "live")
        socket = given.choice("socket", ("pull", "sub"), "pull")
        framing = given.choice("framing", FRAMINGS, TOPIC_FIRST if socket == "sub" else SINGLE)
        subscribe = given.names("subscribe") + given.names("topics")
        if subscribe and socket != "sub":
            raise ValueError("option 'subscribe' needs socket=sub: a PULL socket gets everything")
        end_of_stream = given.text("endOfStream")
        read = cls(
            attachment=given.attachment(),
            socket=cast(Literal["pull", "sub"], socket),
            subscribe=subscribe or ("",),
            framing=cast(Framing, framing),
            include_headers=given.flag("includeHeaders"),
            include_frames=given.flag("includeFrames"),
            max_rows=given.number("maxRows", None, least=1),
            max_bytes=given.number("maxBytes", None, least=1),
            timeout_ms=given.number("timeoutMs", 10_000, least=1),
            end_of_stream=None if end_of_stream is None else end_of_stream.encode(),
        )
        given.finish()
        if read.include_headers and framing != ENVELOPE:
            raise ValueError("option 'includeHeaders' needs framing=envelope to read them from")
        return read


@dataclass(frozen=True)
class WriteOptions:
    """The options of ``df.write.format("zeromq")`` or ``df.writeStream``."""

    attachment: Attachment
    socket: Literal["push", "dealer", "pub", "log"]
    framing: Framing | None  # None: the simplest that the columns need
    frame: Literal["message", "arrow"]
    topic: bytes | None
    include_headers: bool
    query_name: str | None
    batch_id: int | None
    wait_peers: int
    flush_timeout_ms: int

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "WriteOptions":
        """Reads and checks the options of a batch or streaming write to sockets.

        Args:
            options: The options by their names, in any case.

        Returns:
            The options with their defaults.

        Raises:
            ValueError: An option is unknown, invalid, or contradicts another.
        """
        given = _Given(options, "writing")
        given.mode("live")
        if given.choice("delivery", DELIVERIES, AT_LEAST_ONCE) != AT_LEAST_ONCE:
            raise ValueError(
                f"option 'delivery' is {EXACTLY_ONCE!r}, which needs socket=log: a message that"
                " went out over another socket cannot be taken back"
            )
        framing = given.choice("framing", (*FRAMINGS, ""), "")
        topic = given.text("topic")
        write = cls(
            attachment=given.attachment(),
            socket=cast(
                Literal["push", "dealer", "pub", "log"],
                given.choice("socket", WRITERS, "push"),
            ),
            framing=cast(Framing, framing) if framing else None,
            frame=cast(
                Literal["message", "arrow"],
                given.choice("frame", ("message", "arrow"), "message"),
            ),
            topic=None if topic is None else topic.encode(),
            include_headers=given.flag("includeHeaders"),
            query_name=given.text("queryName"),
            batch_id=given.number("batchId", None, least=0),
            wait_peers=given.number("waitPeers", 1, least=0),
            flush_timeout_ms=given.number("flushTimeoutMs", 30_000, least=1),
        )
        given.finish()
        if write.frame == "arrow" and write.framing is not None:
            raise ValueError(
                "option 'framing' is for frame=message: with frame=arrow a message is the topic, if"
                " option 'topic' gives one, and the table"
            )
        if write.include_headers and framing not in ("", ENVELOPE):
            raise ValueError("option 'includeHeaders' needs framing=envelope to put them into")
        return write


@dataclass(frozen=True)
class LogWriteOptions:
    """The options of a write to a collector's log."""

    endpoint: str
    socket_options: tuple[tuple[str, str], ...]
    frame: Literal["message", "arrow"]
    topic: str | None
    query_name: str | None
    batch_id: int | None
    checkpoint: str | None
    ack_timeout_ms: int

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "LogWriteOptions":
        """Reads and checks the options of a batch or streaming write to a log.

        Args:
            options: The options by their names, in any case.

        Returns:
            The options with their defaults.

        Raises:
            ValueError: An option is unknown, invalid, or contradicts another.
        """
        given = _Given(options, "writing", " with socket=log")
        given.mode("log")
        given.choice("socket", WRITERS, "log")
        # Exactly-once delivery is also at least once.
        given.choice("delivery", DELIVERIES, EXACTLY_ONCE)
        attachment = given.attachment()
        if attachment.bind:
            raise ValueError("option 'attach' is 'bind', but it is the collector that binds")
        if len(attachment.endpoints) > 1:
            raise ValueError(
                f"option 'endpoint' has {len(attachment.endpoints)} collectors, but a batch"
                " can be committed as a whole in one log only"
            )
        for name, _ in attachment.socket_options:
            if name not in CURVE_KEYS:
                raise ValueError(
                    f"option 'zmq.{name}' is not one of socket=log, which takes"
                    f" {', '.join(f'zmq.{key}' for key in CURVE_KEYS)}"
                )
        write = cls(
            endpoint=attachment.endpoints[0],
            socket_options=attachment.socket_options,
            frame=cast(
                Literal["message", "arrow"],
                given.choice("frame", ("message", "arrow"), "message"),
            ),
            topic=given.text("topic"),
            query_name=given.text("queryName"),
            batch_id=given.number("batchId", None, least=0),
            checkpoint=given.peek("checkpointLocation"),
            ack_timeout_ms=given.number("ackTimeoutMs", 30_000, least=1),
        )
        given.finish()
        if write.batch_id is not None and write.query_name is None:
            raise ValueError(
                "option 'batchId' needs 'queryName': the name that the number belongs to"
            )
        return write


def is_for_log(options: Mapping[str, str]) -> bool:
    """Returns whether a write with these options goes to a collector's log.

    Args:
        options: The options by their names, in any case.

    Returns:
        False for a write to sockets.
    """
    given = _Given(options, "writing")
    socket = (given.peek("socket") or "").lower()
    if socket:
        return socket == "log"
    delivery, mode = given.peek("delivery") or "", given.peek("mode") or ""
    return delivery.lower() == EXACTLY_ONCE or mode.lower() == "log"


def included_columns(options: Mapping[str, str]) -> list[str]:
    """Returns the columns that a read from sockets has with these options, checking nothing else.

    Spark asks every source for its schema, also one that it is about to write to.

    Args:
        options: The options by their names, in any case.

    Returns:
        The names of the columns.
    """
    given = _Given(options, "reading")
    columns = ["value", "topic", "timestamp"]
    if (given.peek("framing") or "").lower() == ENVELOPE:
        columns.insert(0, "key")
    if given.flag("includeHeaders"):
        columns.append("headers")
    if given.flag("includeFrames"):
        columns.append("frames")
    return columns


class _Given:
    """The raw options, which are taken one after the other."""

    def __init__(self, options: Mapping[str, str], doing: str, how: str = "") -> None:
        self._values = {name.lower(): value for name, value in options.items()}
        self._left = {name.lower(): name for name in options}
        self._known: list[str] = []
        self._doing = doing
        self._how = how

    def peek(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def text(self, name: str) -> str | None:
        self._known.append(name)
        self._left.pop(name.lower(), None)
        return self.peek(name)

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        value = (self.text(name) or default).lower()
        if value not in allowed:
            shown = ", ".join(choice for choice in allowed if choice)
            raise ValueError(f"option {name!r} is {value!r} but {self._doing} has: {shown}")
        return value

    def mode(self, expected: Literal["live", "log"]) -> None:
        """Raises if option 'mode' contradicts the options that decided."""
        value = self.choice("mode", ("live", "log"), expected)
        if value != expected:
            raise ValueError(
                f"option 'mode' is {value!r}, but {self._doing} goes"
                f" {'to a log' if expected == 'log' else 'over a socket'}, as options 'socket' and"
                " 'delivery' say: leave one of them out"
            )

    def flag(self, name: str, *, default: bool = False) -> bool:
        return self._read(name, "true or false", _truth, default=default)

    @overload
    def number(self, name: str, default: int, *, least: int) -> int: ...
    @overload
    def number(self, name: str, default: None, *, least: int) -> int | None: ...
    def number(self, name: str, default: int | None, *, least: int) -> int | None:
        def read(text: str) -> int | None:
            number = int(text)
            if number < least:
                raise ValueError
            return number

        return self._read(name, f"a whole number of at least {least}", read, default=default)

    def names(self, name: str) -> tuple[str, ...]:
        text = (self.text(name) or "").strip()
        listed = _listed(text)
        if listed is None:
            # Spark makes text of everything, so these may be brackets around values of another kind.
            if text and (text[0] + text[-1]) in ("[]", "()", "{}"):
                raise ValueError(
                    f"option {name!r} is {text!r}; it should be 'a,b' or a list of texts, ['a', 'b']"
                )
            listed = [part for part in map(str.strip, text.split(",")) if part]
        elif not listed:
            raise ValueError(f"option {name!r} is an empty list; to have the default, leave it out")
        # In a list, an empty text is meant, such as the prefix of all topics.
        return tuple(listed)

    def attachment(self) -> Attachment:
        endpoints = self.addresses()
        bind = self.choice("attach", ("connect", "bind"), "connect") == "bind"
        return Attachment(endpoints, bind, self._socket_options())

    def addresses(self) -> tuple[str, ...]:
        endpoints = self.names("endpoint")
        if not endpoints:
            raise ValueError("option 'endpoint' is missing, for example tcp://127.0.0.1:5555")
        for endpoint in endpoints:
            scheme, separator, address = endpoint.partition("://")
            if not (scheme and separator and address):
                raise ValueError(
                    f"option 'endpoint' has {endpoint!r}; it should look like tcp://host:port"
                )
            if scheme == "inproc":
                raise ValueError(
                    f"option 'endpoint' has {endpoint!r}, which reaches only its own process;"
                    " Spark's tasks run in others"
                )
            if scheme not in SCHEMES:
                raise ValueError(
                    f"option 'endpoint' has {endpoint!r}: Spark's tasks use"
                    f" {' or '.join(SCHEMES)}, not {scheme!r}"
                )
        return endpoints

    def finish(self) -> None:
        """Raises for options that were not read."""
        for lowered, name in self._left.items():
            if lowered in FOREIGN:
                continue
            if lowered in LOG_ONLY:
                raise ValueError(f"option {name!r} is for reading with mode=log")
            hint = did_you_mean(lowered, self._known)
            raise ValueError(f"{self._doing} zeromq{self._how} has no option {name!r}{hint}")

    def _read(self, name: str, expected: str, read: Callable[[str], T], default: T) -> T:
        text = self.text(name)
        if text is None:
            return default
        try:
            return read(text.strip())
        except ValueError:
            raise ValueError(f"option {name!r} is {text!r}; it should be {expected}") from None

    def _socket_options(self) -> tuple[tuple[str, str], ...]:
        found = []
        for lowered in [name for name in self._left if name.startswith("zmq.")]:
            name = lowered.removeprefix("zmq.")
            if name.upper() not in SocketOption.__members__:
                known = (f"zmq.{option.lower()}" for option in SocketOption.__members__)
                hint = did_you_mean(lowered, known)
                raise ValueError(f"option {lowered!r}: there is no such socket option{hint}")
            if name in SPOKEN_FOR:
                raise ValueError(f"option {lowered!r} is set by option {SPOKEN_FOR[name]!r}")
            value = self._values[lowered]
            if name in SECRETS and not value.startswith(("env:", "file:")):
                raise ValueError(
                    f"option {lowered!r} would show its value in query plans:"
                    " give env:NAME or file:PATH"
                )
            _check_number(lowered, SocketOption[name.upper()], value)
            self._left.pop(lowered)
            found.append((name, value))
        return tuple(found)


def _check_number(name: str, option: SocketOption, text: str) -> None:
    """Raises for a value that must be a number and is not, if the value is known already."""
    if option._opt_type.name not in ("int", "int64") or text.startswith(("env:", "file:")):
        return
    try:
        int(text)
    except ValueError:
        raise ValueError(f"option {name!r} is {text!r}; it should be a whole number") from None


def _listed(text: str) -> list[str] | None:
    """The texts of a list in JSON, or of one that pyspark has turned into text; None for other text."""
    if not text.startswith(("[", "(")):
        return None
    for read in (json.loads, literal_eval):
        # Deep nesting has errors of its own.
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            values = read(text)
            if isinstance(values, (list, tuple)) and all(isinstance(one, str) for one in values):
                return list(values)
    return None


def _truth(text: str) -> bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError
