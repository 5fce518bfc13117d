"""A collector in this process."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast

from .. import _checks, _native, _observing
from .._closing import Closing
from .._hints import hinting
from .._typing import ArrowData
from ._renamed import renamed

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from .._native import _Allow
    from ._archive import Archiver
    from ._stats import CollectorStats

__all__ = ["Collector", "Grant", "NamedGrant", "Recovery", "Role"]

Role: TypeAlias = Literal["produce", "fetch", "commit", "publish", "admin"]


class NamedGrant(TypedDict, total=False):
    """The roles of a key's owner, and the producer names reserved for it."""

    roles: Iterable[Role]
    """What the owner of the key may do."""
    names: Iterable[str]
    """Names that only producers with this key may use."""


# The roles of a key's owner.
Grant: TypeAlias = Iterable[Role] | NamedGrant


@dataclass(frozen=True)
class Recovery:
    """What was found when the log was opened."""

    dropped_bytes: int
    """Bytes at its end that were never acknowledged, since a crash interrupted their writing."""
    damaged: tuple[tuple[int, int], ...]
    """First and end offsets of damaged rows, which cannot be fetched."""
    notes: tuple[str, ...]
    """Anything else that was unusual, in words."""


class Collector(_native.Collector, Closing):
    """A durable log that producers write to and readers read from, served by native threads.

    It serves `Producer`, `Client` and Spark at `bind`, and keeps its log in `directory`,
    which belongs to one collector at a time. `close` it, or use it as a context manager.
    Without either, the next start recovers what was left.

    Rows are synced to the disk together, and acknowledged after that. Whole segments are
    deleted beyond the limits of retention; without these, everything is kept.

    With a `secret_key`, everything that is bound is encrypted by CURVE, and the name of a
    producer belongs to the key that used it first. Without one, the collector binds only to
    addresses that other machines cannot reach, unless `open_to_network` is set.

    Args:
        directory: The folder of the log. It is created if it does not exist.
        bind: The address for producers, readers and sinks.
        pull: Addresses for plain PUSH peers. An address is bound
            unless ``connect:`` precedes it.
        subscribe: Addresses of PUB peers, with topics: ``"tcp://ticker:5557 EUR USD"``, or
            an address and a list. An address is connected to unless ``bind:`` precedes it.
        dealer: Addresses for DEALER peers.
        framing: The meaning of the frames of these peers' messages: ``single`` (a value),
            ``topic-first``, or ``envelope`` (topic, key, value, then a name and a value per
            header).
        keep_frames: Keeps all frames of their messages as well.
        retention_bytes: Deletes the oldest segments beyond this size of the log. This and other
            sizes are numbers of bytes, or text such as ``"100G"``.
        retention_hours: Deletes segments whose rows are older.
        retention_groups: Deletes segments that every group of consumers has read.
        flush_ms: Milliseconds that a row waits for others before they are synced together.
        flush_rows: Rows that are synced without waiting any longer.
        segment_bytes: Size of a file of the log.
        max_batch_bytes: The maximum number of bytes of a batch.
        max_producers: The maximum number of connected producers.
        max_staged_bytes: The maximum number of bytes that sinks may stage before they publish.
        staged_hours: Hours after which a staged batch is discarded if nothing was added to it.
        max_ahead_hours: Hours by which a row's own timestamp may be ahead of the collector's clock.
            Rows with later ones are refused.
        credit_rows: Rows that all producers together may have unacknowledged.
        credit_bytes: Bytes that all producers together may have unacknowledged.
        advertise: The address that clients are given, if it is not `bind`.
        secret_key: The collector's secret CURVE key.
        allow: The public keys of those who may connect: a folder of certificates, keys, a
            mapping of keys to names, or an `AllowList`; see `zeroxide.Socket.secure_server`.
        archive: A folder or URL such as ``s3://bucket/ticks``, to which segments are copied
            once they are full, and all of them at the end. Not `directory` itself.
        open_to_network: Lets every client that reaches the address write and read.
        roles: The roles of each key, by the name of its certificate or by the public key; ``*``
            stands for all others: some of ``produce``, ``fetch``, ``commit``,
            ``publish`` and ``admin``, or a mapping with ``roles`` and ``names``, the names
            under which it alone may produce, each of which may end in ``*``. Default: every
            key may do everything.
        max_names_per_connection: The maximum number of producers on one connection.

    Raises:
        Refused: With the code ``locked`` while another collector uses the folder.
        CollectorError: If the folder cannot be used, or an address is open to others.
        ZMQError: If an address cannot be bound.
        ValueError: If an option has an impossible value.

    Example:
        ```python
        with Collector("/var/lib/ticks", "tcp://127.0.0.1:5555", retention_hours=48) as collector:
            collector.append([b"21.5", {"value": b"19.0", "topic": "cellar"}])
        ```
    """

    _archiver: "Archiver | None" = None

    @hinting
    def __init__(
        self,
        directory: str | os.PathLike[str],
        bind: str = "tcp://127.0.0.1:*",
        *,
        pull: Iterable[str] = (),
        subscribe: Iterable[str | tuple[str, Iterable[str]]] = (),
        dealer: Iterable[str] = (),
        framing: Literal["single", "topic-first", "envelope"] = "single",
        keep_frames: bool = False,
        retention_bytes: int | str | None = None,
        retention_hours: float | None = None,
        retention_groups: bool = False,
        flush_ms: float = 10,
        flush_rows: int = 20_000,
        segment_bytes: int | str = 128 << 20,
        max_batch_bytes: int | str = 16 << 20,
        max_producers: int = 100_000,
        max_staged_bytes: int | str = 16 << 30,
        staged_hours: float = 1.0,
        max_ahead_hours: float = 24.0,
        credit_rows: int = 8 << 20,
        credit_bytes: int | str = 256 << 20,
        advertise: str | None = None,
        secret_key: bytes | str | None = None,
        allow: "_Allow | None" = None,
        archive: str | os.PathLike[str] | None = None,
        open_to_network: bool = False,
        roles: Mapping[str, Grant] | None = None,
        max_names_per_connection: int = 64,
    ) -> None:
        # Whether a key decides who may read.
        self._needs_key = secret_key is not None
        if archive is not None:
            self._hold(0)  # retention waits for the archive
        self._open(
            _checks.path("directory", directory),
            _checks.name("bind", bind, "an address"),
            pull=_listed("pull", pull),
            subscribe=[_subscription(one) for one in _listed("subscribe", subscribe, None)],
            dealer=_listed("dealer", dealer),
            framing=_checks.name("framing", framing, "'single', 'topic-first' or 'envelope'"),
            keep_frames=_checks.flag("keep_frames", keep_frames),
            retention_bytes=None
            if retention_bytes is None
            else _checks.size("retention_bytes", retention_bytes),
            retention_seconds=None
            if retention_hours is None
            else _checks.number("retention_hours", retention_hours) * 3600,
            retention_groups=_checks.flag("retention_groups", retention_groups),
            flush_seconds=_checks.number("flush_ms", flush_ms) / 1000,
            flush_rows=_checks.whole("flush_rows", flush_rows),
            segment_bytes=_checks.size("segment_bytes", segment_bytes),
            max_batch_bytes=_checks.size("max_batch_bytes", max_batch_bytes),
            max_producers=_checks.whole("max_producers", max_producers),
            max_staged_bytes=_checks.size("max_staged_bytes", max_staged_bytes),
            staged_seconds=_checks.number("staged_hours", staged_hours) * 3600,
            ahead_seconds=_checks.number("max_ahead_hours", max_ahead_hours) * 3600,
            credit_rows=_checks.whole("credit_rows", credit_rows),
            credit_bytes=_checks.size("credit_bytes", credit_bytes),
            advertise=None
            if advertise is None
            else _checks.name("advertise", advertise, "an address"),
            secret_key=secret_key,
            allow=allow,
            open_to_network=_checks.flag("open_to_network", open_to_network),
            roles=None if roles is None else _granted(roles),
            max_names_per_connection=_checks.whole(
                "max_names_per_connection", max_names_per_connection
            ),
        )
        _observing.note_start()
        if archive is not None:
            from ._archive import Archiver

            try:
                self._archiver = Archiver(directory, os.fspath(archive), on_progress=self._hold)
            except BaseException:
                self.close()
                raise

    @renamed(timeout="timeout_s")
    def append(
        self,
        rows: "Iterable[Buffer | str | Mapping[str, Any]] | ArrowData",
        *,
        timeout_s: float | None = 30.0,
    ) -> tuple[int, int]:
        """Appends rows and waits until they are on disk.

        Args:
            rows: Values, or mappings with `value` and optionally `key`, `topic`, `headers`
                and `timestamp`; or an Arrow table or batch with columns of these names.
            timeout_s: Seconds to wait for the disk; None means no limit.

        Returns:
            The offset of the first row and the offset after the last one. No other rows are in
            between.

        Raises:
            Refused: If they cannot be written. Some of them may be in the log then.
            TypeError: If `rows` is a single row.
            ValueError: If a mapping has no `value`, or a field that no row has.
        """
        if timeout_s is not None:
            _checks.number("timeout_s", timeout_s)
        if hasattr(rows, "__arrow_c_array__") or hasattr(rows, "__arrow_c_stream__"):
            return self._append_arrow(cast(ArrowData, rows), timeout_s)
        if isinstance(rows, (bytes, bytearray, memoryview, str, Mapping)):
            raise TypeError("append takes many rows; for one: append([row])")
        return self._append(cast("Iterable[Buffer]", rows), timeout_s)

    def stats(self) -> "CollectorStats":
        """The collector's counters, the bounds of its log, and the positions of groups.

        Returns:
            A dict with all of them, see `CollectorStats`.

        Raises:
            CollectorError: If it is closed, or has failed.
        """
        stats: CollectorStats = json.loads(self._stats())
        if self._archiver is not None:
            stats["archived"] = self._archiver.archived
            failure = self._archiver.failure
            stats["archive_failure"] = "" if failure is None else str(failure) or repr(failure)
        return stats

    def groups(self) -> dict[str, int]:
        """The positions of the groups of consumers.

        Returns:
            For each group the offset below which it needs nothing any more, for at most 1,000
            groups, those that are furthest behind. `drop_group` forgets a group that does not
            read any more.
        """
        return self.stats()["groups"]

    def close(self) -> None:
        """Accepts the rows in transit, syncs and acknowledges them, and ends.

        Segments that are not in the `archive` yet are copied there. Closing again does nothing.

        Raises:
            CollectorError: If the log could not be written.
        """
        try:
            super().close()
        finally:
            archiver, self._archiver = self._archiver, None
            if archiver is not None:
                archiver.close()

    @property
    def recovery(self) -> Recovery:
        """What was found when the log was opened, also after a crash."""
        dropped_bytes, damaged, notes = self._recovery
        return Recovery(dropped_bytes, tuple(damaged), tuple(notes))

    def __repr__(self) -> str:
        where = self.endpoint if self.running else "closed"
        return f"<{type(self).__module__}.{type(self).__qualname__} {where}>"


def _listed(name: str, values: Iterable[Any], kind: type | None = str) -> list[Any]:
    """The values. A single text is a mistake, because it would be split into characters."""
    if isinstance(values, str):
        raise TypeError(f"{name} is a list of addresses, not one: [{values!r}]")
    listed = _checks.items(name, values, "a list of addresses")
    if kind is not None and not all(isinstance(value, kind) for value in listed):
        raise TypeError(f"{name} takes a list of addresses, not {_checks.shown(values)}")
    return listed


def _granted(roles: Mapping[str, Grant]) -> list[tuple[str, list[str], list[str]]]:
    """The roles of each key, and its producer names."""
    if not isinstance(roles, Mapping):
        raise TypeError(
            f"roles takes a dict such as {{'sensor-*': ['produce']}}, not {_checks.shown(roles)}"
        )
    granted = []
    for who, grant in roles.items():
        given = grant if isinstance(grant, Mapping) else {"roles": grant}
        unknown = sorted(set(given) - {"roles", "names"})
        if unknown:
            raise ValueError(f"roles[{who!r}] has roles and names, not {', '.join(unknown)}")
        kinds, names = given.get("roles", ()), given.get("names", ())
        if isinstance(kinds, str) or isinstance(names, str):
            raise TypeError(f"roles[{who!r}] has lists of roles and names, not a text")
        granted.append(
            (
                _checks.name("roles: a key of the dict", who, "the name of a certificate or '*'"),
                _texts(f"roles[{who!r}]", kinds, "a list of roles"),
                _texts(f"roles[{who!r}]: names", names, "a list of names"),
            )
        )
    return granted


def _texts(argument: str, given: Any, what: str) -> list[str]:
    texts = _checks.items(argument, given, what)
    return [_checks.name(argument, text, what) for text in texts]


def _subscription(one: str | tuple[str, Iterable[str]]) -> tuple[str, list[str]]:
    """An address and topics, from both or from a text with spaces in between."""
    if isinstance(one, str):
        address, *topics = one.split() or [""]
        return address, topics
    if not isinstance(one, tuple) or len(one) != 2 or not isinstance(one[0], str):
        raise TypeError(
            "subscribe takes addresses, each alone or with its topics:"
            f" ('tcp://host:5556', ['temperature']), not {_checks.shown(one)}"
        )
    return one[0], _checks.topics("subscribe: the topics", one[1])
