"""The counters of the pipeline, as typed dicts."""

from typing import TypedDict

__all__ = [
    "CollectorStats",
    "ProducerAtCollector",
    "ProducerStats",
    "SyncTimes",
    "TargetStats",
    "TopicStats",
    "Unlisted",
]


class TargetStats(TypedDict):
    """The state of a producer at one collector."""

    #: Whether rows are being sent.
    connected: bool
    #: Why not, in words.
    reason: str | None
    #: The obstacle as a word for programs: ``full``, ``read-only``...
    obstacle: str | None
    #: The log that the collector writes; None until it has answered.
    log_id: str | None
    #: The number of this run of the producer.
    epoch: int
    #: The sequence number of the next row, which is the number of rows this name has sent. None
    #: until the collector has answered, unless a spool knows it.
    next_seq: int | None
    #: The sequence number of the first row that is not acknowledged.
    acknowledged_seq: int | None
    #: Rows that got new sequence numbers because another producer had used the name.
    renumbered: int
    #: Rows that were acknowledged but are not in the log any more.
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
    """The result of `Producer.stats`. With a spool, counting includes the rows left in it."""

    #: Rows that were accepted.
    rows: int
    #: Rows that are on a collector's disk.
    acknowledged: int
    #: Rows that are not acknowledged, and their bytes.
    unacknowledged: int
    unacknowledged_bytes: int
    #: Batches that were made, and the bytes in them.
    batches: int
    bytes: int
    #: Rows that were sent again, counted once per repetition.
    resent: int
    #: Connections that had to be made anew.
    reconnects: int
    #: The state at each collector, by endpoint.
    collectors: dict[str, TargetStats]


class SyncTimes(TypedDict):
    """How long syncs to the disk took."""

    #: The number of syncs that took at most the key's number of seconds.
    buckets: dict[str, int]
    #: The number of syncs.
    count: int
    #: Their total time, in seconds.
    sum: float


class ProducerAtCollector(TypedDict):
    """A producer, as a collector sees it."""

    name: str
    #: Whether the connection of its last message is up.
    connected: bool
    #: Whether it was told to stop, as rows cannot be written.
    stopped: bool
    #: The sequence number of its last row in the log; None if it has none.
    last_seq: int | None
    #: Seconds since its last message.
    silent_seconds: int


class TopicStats(TypedDict):
    """Rows that were appended under a topic."""

    #: The topic; empty for rows that have none.
    topic: str
    rows: int
    #: The bytes of their values.
    bytes: int


class Unlisted(TypedDict):
    """The topics that are not in the list."""

    #: How many of them have a count of their own: up to 924.
    topics: int
    #: All rows of topics that are not in the list, and the bytes of their values.
    rows: int
    bytes: int


class _Archived(TypedDict, total=False):
    #: With an archive, of `Collector.stats` only: the offset after the last archived row.
    archived: int
    #: Why the last copy failed; empty if it did not.
    archive_failure: str


class CollectorStats(_Archived):
    """The result of `Client.stats` and `Collector.stats`. Counters begin at 0 with each start."""

    #: The id of the log.
    log_id: str
    #: The address at which it listens, and the one it gives to clients.
    endpoint: str
    advertise: str
    #: The addresses for plain peers, separated by spaces.
    plain: str
    #: ``fine``, or the obstacle to writing: ``full``, ``read-only``, ``failed``.
    state: str
    #: The same in words.
    reason: str
    #: The first offset that can be fetched, the offset after the last row on disk, and the offset
    #: of the next row.
    earliest: int
    durable: int
    next: int
    #: The size of the log, and its number of files.
    log_bytes: int
    segments: int
    #: Producers that are connected; that were dropped to make room for others; whose sequence
    #: numbers are known; and whose sequence numbers were forgotten.
    connected_producers: int
    dropped_producers: int
    known_producers: int
    forgotten_producers: int
    #: Batches that wait for a sync, and requests of readers that wait for an answer.
    waiting_for_sync: int
    waiting_fetches: int
    #: Requests of readers that wait for the next row.
    followers: int
    #: Bytes that readers requested and have not taken.
    unread_bytes: int
    #: The rows and bytes that each producer may have unacknowledged.
    credit_rows: int
    credit_bytes: int
    uptime_seconds: int
    #: Connections that ended because of a message that was too large; the same for plain peers.
    too_large: int
    plain_too_large: int
    max_batch_bytes: int
    #: At most 100 producers: connected ones first, then those that were heard last.
    producers: list[ProducerAtCollector]
    #: How many more are served.
    producers_unlisted: int
    #: At most 100 topics, those with the most rows first, and all others together. The
    #: first 1,024 topics since the start are counted one by one, if they have at most 255
    #: bytes.
    topics: list[TopicStats]
    topics_unlisted: Unlisted
    #: The position of each group.
    groups: dict[str, int]
    #: Handshakes that failed, by reason, and the last one in words.
    turned_away: dict[str, int]
    turned_away_last: str
    #: Rows that were appended, their bytes, and the batches of producers.
    rows: int
    bytes: int
    batches: int
    #: Batches that were in the log already, and batches dropped because nothing could be written.
    duplicates: int
    turned_back: int
    #: Rows of plain peers; their messages that did not match the framing; and rows that were lost.
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
    #: Times that a reply had to wait until the reader took earlier ones.
    fetch_waits: int
    #: Parts that were staged; bytes and batches that are staged now, and expired ones.
    staged_parts: int
    staged_bytes: int
    staged_batches: int
    staged_expired: int
    #: Batches of sinks that were published, their rows, and repetitions, which were not published
    #: again.
    published: int
    published_rows: int
    published_again: int
    #: Replies whose client was gone, and messages that did not follow the protocol.
    undelivered: int
    malformed: int
    #: Syncs; failures of writing, syncing or reading; and recoveries after them.
    syncs: int
    failures: int
    recoveries: int
    #: Requests that were refused, by code.
    refused: dict[str, int]
    sync_seconds: SyncTimes
