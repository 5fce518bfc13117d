"""A collector in this process."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from .. import _native
from .._closing import Closing
from .._typing import ArrowData

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._archive import Archiver

__all__ = ["Collector", "Recovery"]


@dataclass(frozen=True)
class Recovery:
    """What was found when the log was opened."""

    #: Bytes at its end that were never acknowledged: a crash came while they were written.
    dropped_bytes: int
    #: Offsets, first and behind the last, of rows that are damaged: fetching them is an error.
    damaged: tuple[tuple[int, int], ...]
    #: What else was odd.
    notes: tuple[str, ...]


class Collector(_native.Collector, Closing):
    """A durable log that producers write to and readers read from, by native threads.

    It listens at `bind` for `zeroxide.Producer`, `Client`, and Spark, and keeps its log in
    `directory`, which belongs to one collector at a time. `close` it, or use it as a
    context manager; without either, the next start finds out what the last one left.

    `pull`, `subscribe` and `dealer` are addresses for peers that know nothing but ZeroMQ:
    PUSH, PUB and DEALER. They are bound, those of `subscribe` connected to; ``connect:`` or
    ``bind:`` in front of an address says otherwise. What follows an address of `subscribe`
    after a space are topics. `framing` says what their messages look like: ``single``,
    ``topic-first``, or ``envelope`` (topic, key, value, then a name and a value per header).
    With `keep_frames` all of their frames are kept as well.

    Rows are synced to the disk `flush_ms` after the first of them came, or when `flush_rows`
    of them wait, and acknowledged after that. Whole segments are deleted when there are more
    than `retention_bytes`, or when they are older than `retention_hours`; with
    `retention_groups` also when every group of consumers has read them. With `archive`, a folder or a URL such as ``s3://bucket/ticks``,
    segments are copied there once they are full, and all of them in the end.

    A file of the log has `segment_bytes`, a batch at most `max_batch_bytes`. All producers
    together, at most `max_producers`, may have `credit_rows` and `credit_bytes` unacknowledged.
    What sinks stage may take `max_staged_bytes`, and is forgotten after `staged_hours` without
    a word. `advertise` is the address that clients are told, where that is not `bind`.

    With a `secret_key` everything that is bound is encrypted by CURVE, and lets those in
    whose public keys are in `allow`: see `zeroxide.Socket.secure_server`. Without one it binds
    to what only this machine reaches, unless `open_to_network` says that whoever comes may
    write and read.

    With a `secret_key` the name of a producer belongs to the key that took it first. `roles`
    says what the owner of a key may do, by the name of its certificate or by its public key,
    ``*`` for all others: some of ``produce``, ``fetch``, ``commit``, ``publish`` and ``admin``,
    or a mapping with ``roles`` and ``names``, the names under which it alone may produce,
    each of which may end in ``*``. Without `roles` every key may do everything. Up to
    `max_names_per_connection` producers may share a connection.

    Raises `Refused` (``locked``) while another collector has the folder, another
    `CollectorError` for a folder that cannot be used, or an address that is open to others, `zeroxide.ZMQError` for an address that
    cannot be bound to, and `ValueError` for what cannot be meant.
    """

    _archiver: "Archiver | None" = None

    def __init__(
        self,
        directory: str | os.PathLike[str],
        bind: str = "tcp://127.0.0.1:*",
        *,
        pull: Iterable[str] = (),
        subscribe: Iterable[str | tuple[str, Iterable[str]]] = (),
        dealer: Iterable[str] = (),
        framing: str = "single",
        keep_frames: bool = False,
        retention_bytes: int | None = None,
        retention_hours: float | None = None,
        retention_groups: bool = False,
        flush_ms: float = 10,
        flush_rows: int = 20_000,
        segment_bytes: int = 128 << 20,
        max_batch_bytes: int = 16 << 20,
        max_producers: int = 100_000,
        max_staged_bytes: int = 16 << 30,
        staged_hours: float = 1.0,
        credit_rows: int = 8 << 20,
        credit_bytes: int = 256 << 20,
        advertise: str | None = None,
        secret_key: bytes | str | None = None,
        allow: Any = None,
        archive: str | os.PathLike[str] | None = None,
        open_to_network: bool = False,
        roles: Mapping[str, Any] | None = None,
        max_names_per_connection: int = 64,
    ) -> None:
        if archive is not None:
            self._hold(0)  # retention waits for the archive
        self._open(
            directory,
            bind,
            pull=_listed("pull", pull),
            subscribe=[_subscription(one) for one in _listed("subscribe", subscribe)],
            dealer=_listed("dealer", dealer),
            framing=framing,
            keep_frames=keep_frames,
            retention_bytes=retention_bytes,
            retention_seconds=None if retention_hours is None else retention_hours * 3600,
            retention_groups=retention_groups,
            flush_seconds=flush_ms / 1000,
            flush_rows=flush_rows,
            segment_bytes=segment_bytes,
            max_batch_bytes=max_batch_bytes,
            max_producers=max_producers,
            max_staged_bytes=max_staged_bytes,
            staged_seconds=staged_hours * 3600,
            credit_rows=credit_rows,
            credit_bytes=credit_bytes,
            advertise=advertise,
            secret_key=secret_key,
            allow=allow,
            open_to_network=open_to_network,
            roles=None if roles is None else _granted(roles),
            max_names_per_connection=max_names_per_connection,
        )
        if archive is not None:
            from ._archive import Archiver

            try:
                self._archiver = Archiver(directory, os.fspath(archive), on_progress=self._hold)
            except BaseException:
                self.close()
                raise

    def append(
        self,
        rows: "Iterable[Buffer | str | Mapping[str, Any]] | ArrowData",
        *,
        timeout: float | None = 30.0,
    ) -> tuple[int, int]:
        """Appends rows and waits until they are on disk.

        A row is a value, or a mapping with ``value`` and any of ``key``, ``topic``,
        ``headers`` and ``timestamp``; or `rows` is something with Arrow columns of these
        names. Returns the offset of the first one and that behind the last; nothing comes
        in between.

        Raises `Refused` when they cannot be written: some may be in the log then.
        """
        if hasattr(rows, "__arrow_c_array__") or hasattr(rows, "__arrow_c_stream__"):
            return self._append_arrow(cast(ArrowData, rows), timeout)
        if isinstance(rows, (bytes, bytearray, memoryview, str, Mapping)):
            raise TypeError("append takes many rows; for one: append([row])")
        return self._append(cast("Iterable[Buffer]", rows), timeout)

    def stats(self) -> dict[str, Any]:
        """The counters, and where the log and its groups are.

        Raises `CollectorError` when it is closed, or has failed.
        """
        stats: dict[str, Any] = json.loads(self._stats())
        if self._archiver is not None:
            stats["archived"] = self._archiver.archived
            failure = self._archiver.failure
            stats["archive_failure"] = "" if failure is None else str(failure) or repr(failure)
        return stats

    def groups(self) -> dict[str, int]:
        """The groups of consumers, and the offset below which each needs nothing any more.

        `drop_group` forgets one that reads no longer.
        """
        groups: dict[str, int] = self.stats()["groups"]
        return groups

    def close(self) -> None:
        """Takes what is on its way, brings it to the disk, answers, and ends.

        Then what is not in the `archive` yet is copied there. What went wrong is raised;
        closing again does nothing.
        """
        try:
            super().close()
        finally:
            archiver, self._archiver = self._archiver, None
            if archiver is not None:
                archiver.close()

    @property
    def recovery(self) -> Recovery:
        """What was found when the log was opened."""
        dropped_bytes, damaged, notes = self._recovery
        return Recovery(dropped_bytes, tuple(damaged), tuple(notes))

    def __repr__(self) -> str:
        where = self.endpoint if self.running else "closed"
        return f"<{type(self).__module__}.{type(self).__qualname__} {where}>"


def _listed(name: str, values: Iterable[Any]) -> list[Any]:
    """The values; one alone is a mistake that would be taken apart into characters."""
    if isinstance(values, str):
        raise TypeError(f"{name} is a list of addresses, not one: [{values!r}]")
    return list(values)


def _granted(roles: Mapping[str, Any]) -> list[tuple[str, list[str], list[str]]]:
    """Who may do what, and under which names."""
    granted = []
    for who, grant in roles.items():
        given = grant if isinstance(grant, Mapping) else {"roles": grant}
        unknown = sorted(set(given) - {"roles", "names"})
        if unknown:
            raise ValueError(f"roles[{who!r}] has roles and names, not {', '.join(unknown)}")
        kinds, names = given.get("roles", ()), given.get("names", ())
        if isinstance(kinds, str) or isinstance(names, str):
            raise TypeError(f"roles[{who!r}] has lists of roles and names, not a text")
        granted.append((who, list(kinds), list(names)))
    return granted


def _subscription(one: str | tuple[str, Iterable[str]]) -> tuple[str, list[str]]:
    """An address and topics, from both or from a text with spaces in between."""
    if isinstance(one, str):
        address, *topics = one.split() or [""]
        return address, topics
    address, given = one
    return address, _listed("topics", given)
