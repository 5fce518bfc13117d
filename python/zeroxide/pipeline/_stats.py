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

    connected: bool
    """Whether rows are being sent."""
    reason: str | None
    """Why they are not being sent, in words."""
    obstacle: str | None
    """The same as a word for programs: ``full``, ``read-only``..."""
    log_id: str | None
    """The log that the collector writes; None until it has answered."""
    epoch: int
    """The number of this run of the producer."""
    next_seq: int | None
    """The sequence number of the next row, which is the number of rows this name has sent. None
    until the collector has answered, unless a spool knows it.
    """
    acknowledged_seq: int | None
    """The sequence number of the first row that is not acknowledged."""
    renumbered: int
    """Rows that got new sequence numbers because another producer had used the name."""
    lost: int
    """Rows that were acknowledged but are not in the log any more."""
    set_aside: int
    """Rows that will never be sent; they do not count as acknowledged."""
    credit_rows: int
    """Rows that the collector accepts before it has acknowledged them."""
    credit_bytes: int
    """Bytes that the collector accepts before it has acknowledged them."""
    flying_rows: int
    """Rows that were sent and are not acknowledged."""
    flying_bytes: int
    """Bytes that were sent and are not acknowledged."""


class ProducerStats(TypedDict):
    """The result of `Producer.stats`. With a spool, the counters include the rows left in it."""

    rows: int
    """Rows that were accepted."""
    acknowledged: int
    """Rows that are on a collector's disk."""
    unacknowledged: int
    """Rows that are not acknowledged."""
    unacknowledged_bytes: int
    """Bytes of the rows that are not acknowledged."""
    batches: int
    """Batches that were made."""
    bytes: int
    """Bytes in these batches."""
    resent: int
    """Rows that were sent again, counted once per repetition."""
    reconnects: int
    """Connections that had to be made anew."""
    collectors: dict[str, TargetStats]
    """The state at each collector, by endpoint."""


class SyncTimes(TypedDict):
    """How long syncs to the disk took."""

    buckets: dict[str, int]
    """The number of syncs that took at most the key's number of seconds."""
    count: int
    """The number of syncs."""
    sum: float
    """Their total time, in seconds."""


class ProducerAtCollector(TypedDict):
    """A producer, as a collector sees it."""

    name: str
    """The producer's name."""
    connected: bool
    """Whether the connection of its last message is open."""
    stopped: bool
    """Whether it was asked to stop because rows cannot be written."""
    last_seq: int | None
    """The sequence number of its last row in the log; None if it has none."""
    silent_seconds: int
    """Seconds since its last message."""


class TopicStats(TypedDict):
    """Rows that were appended under a topic."""

    topic: str
    """The topic; empty for rows that have none."""
    rows: int
    """The number of rows."""
    bytes: int
    """The bytes of their values."""


class Unlisted(TypedDict):
    """The topics that are not in the list."""

    topics: int
    """How many of them have a count of their own: up to 924."""
    rows: int
    """All rows of topics that are not in the list."""
    bytes: int
    """The bytes of the values of these rows."""


class _Archived(TypedDict, total=False):
    archived: int
    """The offset after the last archived row. Only in `Collector.stats`, with an archive."""
    archive_failure: str
    """Why the last copy to the archive failed; empty if it did not."""


class CollectorStats(_Archived):
    """The result of `Client.stats` and `Collector.stats`. Counters begin at 0 with each start."""

    log_id: str
    """The id of the log."""
    endpoint: str
    """The address at which the collector listens."""
    advertise: str
    """The address that the collector gives to clients."""
    plain: str
    """The addresses for plain peers, separated by spaces."""
    state: str
    """``fine``, or the obstacle to writing: ``full``, ``read-only``, ``failed``."""
    reason: str
    """The obstacle in words."""
    earliest: int
    """The first offset that can be fetched."""
    durable: int
    """The offset after the last row on disk."""
    next: int
    """The offset of the next row."""
    log_bytes: int
    """The size of the log, in bytes."""
    segments: int
    """The number of the log's files."""
    connected_producers: int
    """Producers that are connected."""
    dropped_producers: int
    """Producers that were disconnected to make room for others."""
    known_producers: int
    """Producers whose sequence numbers are known."""
    forgotten_producers: int
    """Producers whose sequence numbers were forgotten."""
    waiting_for_sync: int
    """Batches and requests that wait for a sync."""
    sync_crowds: int
    """How often so many waited for a sync that further ones were turned back until it ended."""
    waiting_fetches: int
    """Requests of readers that wait for a reply."""
    followers: int
    """Requests of readers that wait for the next row."""
    unread_bytes: int
    """Bytes that readers requested and have not received."""
    unread_other_bytes: int
    """Memory of other replies that clients have not received, in bytes."""
    credit_rows: int
    """Rows that each producer may have unacknowledged."""
    credit_bytes: int
    """Bytes that each producer may have unacknowledged."""
    uptime_seconds: int
    """Seconds since the start."""
    clock_ahead_seconds: int
    """How far the machine's clock has jumped ahead since the start. Retention does not follow it."""
    too_large: int
    """Connections that ended because of a message that was too large."""
    plain_too_large: int
    """The same for plain peers."""
    max_batch_bytes: int
    """The maximum size of a batch, in bytes."""
    producers: list[ProducerAtCollector]
    """At most 100 producers: connected ones first, then those with the most recent messages."""
    producers_unlisted: int
    """How many more producers are served."""
    topics: list[TopicStats]
    """At most 100 topics, those with the most rows first. The first 1,024 topics since the start
    are counted one by one, if they have at most 255 bytes.
    """
    topics_unlisted: Unlisted
    """All other topics together."""
    groups: dict[str, int]
    """The positions of at most 1,000 groups, those that are furthest behind."""
    groups_unlisted: int
    """How many more groups there are."""
    turned_away: dict[str, int]
    """Handshakes that failed, by reason."""
    turned_away_last: str
    """The last of these failures, in words."""
    rows: int
    """Rows that were appended."""
    bytes: int
    """Bytes of the rows that were appended."""
    batches: int
    """Batches of producers that were appended."""
    duplicates: int
    """Batches that were in the log already."""
    turned_back: int
    """Batches that were dropped because nothing could be written."""
    plain_rows: int
    """Rows of plain peers."""
    plain_unframed: int
    """Messages of plain peers that did not match the framing."""
    plain_lost: int
    """Rows of plain peers that were lost."""
    rows_ahead: int
    """Rows that were refused because a time in their batch was too far ahead."""
    local_rows: int
    """Rows over HTTP and from the collector's own process."""
    hellos: int
    """Introductions of producers."""
    fetches: int
    """Fetches that were answered."""
    fetched_frames: int
    """Batches in these answers."""
    fetched_bytes: int
    """Bytes in these answers."""
    fetch_waits: int
    """How often a reply had to wait until the reader had taken earlier ones."""
    staged_parts: int
    """Parts that were staged."""
    staged_bytes: int
    """Bytes that are staged now."""
    staged_batches: int
    """Batches that are staged now."""
    staged_expired: int
    """Staged batches that expired."""
    staged_lost: int
    """Staged parts that were damaged or could not be read at the start; `Recovery.notes` has more."""
    published: int
    """Batches of sinks that were published."""
    published_rows: int
    """Rows in these batches."""
    published_again: int
    """Requests to publish a batch that had been published before; it was not published again."""
    undelivered: int
    """Replies whose client was gone, or had left too much unread."""
    malformed: int
    """Messages that did not follow the protocol."""
    syncs: int
    """Syncs to the disk."""
    failures: int
    """Failures of writing, syncing or reading."""
    recoveries: int
    """Recoveries after such failures."""
    refused: dict[str, int]
    """Requests that were refused, by code."""
    sync_seconds: SyncTimes
    """How long the syncs took."""
