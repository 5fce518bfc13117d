"""What the counters of the pipeline are called."""

from typing import TypedDict

__all__ = ["CollectorStats", "ProducerStats", "SyncTimes", "TargetStats"]


class TargetStats(TypedDict):
    """How a producer stands with one collector."""

    #: Whether rows are being sent.
    connected: bool
    #: Why not, in words.
    reason: str | None
    #: What stands in the way, as a word for programs: ``full``, ``read-only``...
    obstacle: str | None
    #: The log that the collector writes; None until it has answered.
    log_id: str | None
    #: The number of this run of the producer.
    epoch: int
    #: The sequence number of the next row: how many rows this name has ever sent. None
    #: until the collector has answered, unless a spool knows it.
    next_seq: int | None
    #: The sequence number of the first row that is not acknowledged.
    acknowledged_seq: int | None
    #: Rows that got new sequence numbers, since another producer had used the name.
    renumbered: int
    #: Rows that were acknowledged, and are not in the log any more.
    lost: int
    #: Rows that will never be sent; they do not count as acknowledged.
    set_aside: int
    #: Rows and bytes that the collector accepts without acknowledging them.
    credit_rows: int
    credit_bytes: int
    #: Rows and bytes that were sent and are not acknowledged.
    flying_rows: int
    flying_bytes: int


class ProducerStats(TypedDict):
    """What `Producer.stats` returns. With a spool, it counts from what was left in it."""

    #: Rows that were accepted.
    rows: int
    #: Rows that are on a collector's disk.
    acknowledged: int
    #: Rows that are not, and the bytes that they take.
    unacknowledged: int
    unacknowledged_bytes: int
    #: Batches that were made, and the bytes in them.
    batches: int
    bytes: int
    #: Rows that were sent more than once, for each time.
    resent: int
    #: Connections that had to be made anew.
    reconnects: int
    #: How it stands with each collector, by endpoint.
    collectors: dict[str, TargetStats]


class SyncTimes(TypedDict):
    """How long syncs to the disk took."""

    #: How many syncs took at most so many seconds.
    buckets: dict[str, int]
    #: How many there were.
    count: int
    #: Seconds of all together.
    sum: float


class _Archived(TypedDict, total=False):
    #: With an archive, of `Collector.stats` only: the offset behind the last archived row.
    archived: int
    #: Why the last copy failed; empty if it did not.
    archive_failure: str


class CollectorStats(_Archived):
    """What `Client.stats` and `Collector.stats` return. Counters begin at each start."""

    #: Which log it is.
    log_id: str
    #: The address that it listens at, and the one that it tells its clients.
    endpoint: str
    advertise: str
    #: The addresses for plain peers, separated by spaces.
    plain: str
    #: ``fine``, or what stands in the way of writing: ``full``, ``read-only``, ``failed``.
    state: str
    #: The same in words.
    reason: str
    #: The first offset that can be fetched, that behind the last row on disk, and the next.
    earliest: int
    durable: int
    next: int
    #: The size of the log, and its number of files.
    log_bytes: int
    segments: int
    #: Producers that are served; that made room for others; whose numbers are known, and
    #: are not known any more.
    connected_producers: int
    dropped_producers: int
    known_producers: int
    forgotten_producers: int
    #: Batches that wait for a sync, and requests of readers that wait for an answer.
    waiting_for_sync: int
    waiting_fetches: int
    #: Requests of readers that wait for the next row.
    followers: int
    #: Bytes that readers asked for and have not taken.
    unread_bytes: int
    #: What each producer may have unacknowledged.
    credit_rows: int
    credit_bytes: int
    uptime_seconds: int
    #: Connections that ended at a message that was too large; the same of plain peers.
    too_large: int
    plain_too_large: int
    max_batch_bytes: int
    #: The position of each group.
    groups: dict[str, int]
    #: Handshakes that failed, by reason, and the last one in words.
    turned_away: dict[str, int]
    turned_away_last: str
    #: Rows that were appended, their bytes, and the batches of producers.
    rows: int
    bytes: int
    batches: int
    #: Batches that were in the log already, and those dropped as nothing could be written.
    duplicates: int
    turned_back: int
    #: Rows of plain peers; those framed otherwise than expected, and those lost.
    plain_rows: int
    plain_unframed: int
    plain_lost: int
    #: Rows over HTTP and from the collector's own process.
    local_rows: int
    #: Introductions of producers.
    hellos: int
    #: Fetches that were answered, with how many batches and bytes.
    fetches: int
    fetched_frames: int
    fetched_bytes: int
    #: Times that a reader did not take what it had asked for.
    fetch_waits: int
    #: Parts that were staged; bytes and batches that are staged now, and expired ones.
    staged_parts: int
    staged_bytes: int
    staged_batches: int
    staged_expired: int
    #: Batches of sinks that were published, their rows, and those that came again.
    published: int
    published_rows: int
    published_again: int
    #: Answers whose client was gone, and messages that were not of the protocol.
    undelivered: int
    malformed: int
    #: Syncs; failures of writing, syncing or reading, and recoveries after them.
    syncs: int
    failures: int
    recoveries: int
    #: Requests that were refused, by code.
    refused: dict[str, int]
    sync_seconds: SyncTimes
