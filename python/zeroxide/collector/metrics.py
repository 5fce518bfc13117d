"""The counters of a collector in Prometheus' text format."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._lags import lag

__all__ = ["CONTENT_TYPE", "HTTP", "render"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_PREFIX = "zeroxide_collector_"

# Counters, which only grow.
_COUNTERS = {
    "rows": "Rows appended to the log",
    "bytes": "Encoded bytes of the rows appended to the log",
    "batches": "Batches of producers appended to the log",
    "duplicates": "Batches that were in the log already, acknowledged and dropped",
    "sync_crowds": "Times that too many batches and requests waited for the disk; further ones were turned back",
    "turned_back": "Batches dropped because nothing could be written; producers send them again",
    "plain_rows": "Rows of plain ZeroMQ peers",
    "plain_unframed": "Messages of plain peers that did not match the framing",
    "plain_lost": "Rows of plain peers that were received and not written",
    "plain_too_large": "Messages of plain peers larger than max_batch_bytes, not received",
    "too_large": "Connections ended by a message too large to be refused with an error",
    "rows_ahead": "Rows refused because a time in their batch was too far ahead",
    "local_rows": "Rows over HTTP and from the collector's own process",
    "hellos": "Producers that connected, each time they did",
    "dropped_producers": "Silent producers that were dropped to make room for others",
    "fetches": "Fetches answered",
    "fetched_frames": "Stored batches sent to readers",
    "fetched_bytes": "Bytes sent to readers",
    "fetch_waits": "Times that a reply had to wait until the reader took earlier ones",
    "staged_parts": "Parts that sinks staged",
    "staged_expired": "Staged batches that were not published in time",
    "staged_lost": "Staged parts that were damaged or could not be read at the start",
    "published": "Batches of sinks published",
    "published_rows": "Rows of published batches",
    "published_again": "Repeated batches of sinks, which were not published twice",
    "undelivered": "Replies whose client was gone, or had left too much unread",
    "malformed": "Messages that did not follow the protocol",
    "failures": "Failures of writing, syncing or reading",
    "recoveries": "Times that the log was reopened after a failure",
    "forgotten_producers": "Producers forgotten because there were too many",
}

#: Counters of HTTP, which only grow.
HTTP = {
    "http_requests": "HTTP requests",
    "http_refused": "HTTP requests that could not be served",
    "http_timeouts": "HTTP clients that were too slow",
    "http_evicted": "HTTP connections that were closed to make room for others",
}

# Gauges: values that go up and down, and positions.
_GAUGES = {
    "earliest": "First offset that can be fetched",
    "durable": "Offset after the last row on disk",
    "next": "Offset of the next row",
    "log_bytes": "Size of the log",
    "segments": "Files of the log",
    "connected_producers": "Connected producers",
    "known_producers": "Producers whose last sequence number is known",
    "waiting_for_sync": "Batches and requests that wait for a sync",
    "waiting_fetches": "Requests of readers that wait for a reply",
    "followers": "Requests of readers that wait for the next row",
    "unread_bytes": "Bytes that readers requested and have not taken",
    "unread_other_bytes": "Memory of other replies that clients have not taken, in bytes",
    "groups_unlisted": "Groups that are not listed, because 1,000 others are further behind",
    "clock_ahead_seconds": "Seconds by which the clock has jumped ahead since the start",
    "credit_rows": "Rows that each producer may have unacknowledged",
    "credit_bytes": "Bytes that each producer may have unacknowledged",
    "staged_bytes": "Bytes staged and not published",
    "staged_batches": "Batches staged and not published",
    "max_batch_bytes": "Maximum number of bytes of a batch",
    "uptime_seconds": "Seconds since the collector started",
}


def render(stats: Mapping[str, Any]) -> str:
    """The page for ``GET /metrics``."""
    return "\n".join(_lines(stats)) + "\n"


def _lines(stats: Mapping[str, Any]) -> Iterator[str]:
    for name, text in _COUNTERS.items():
        yield from _family(f"{name}_total", "counter", text, [({}, stats[name])])
    if "http_connections" in stats:
        for name, text in HTTP.items():
            yield from _family(f"{name}_total", "counter", text, [({}, stats[name])])
        text, count = "HTTP connections", stats["http_connections"]
        yield from _family("http_connections", "gauge", text, [({}, count)])
    for name, text in _GAUGES.items():
        yield from _family(name, "gauge", text, [({}, stats[name])])
    if "archived" in stats:
        text = "Offset after the last archived row"
        yield from _family("archived", "gauge", text, [({}, stats["archived"])])
        text, works = "Whether the last copy succeeded", int(not stats["archive_failure"])
        yield from _family("archive_works", "gauge", text, [({}, works)])
    is_fine = int(stats["state"] == "fine")
    yield from _family("writable", "gauge", "Whether rows can be written", [({}, is_fine)])
    labels = {"log_id": stats["log_id"], "endpoint": stats["advertise"] or stats["endpoint"]}
    yield from _family("info", "gauge", "Which log this is", [(labels, 1)])
    refused = [({"code": code}, count) for code, count in stats["refused"].items()]
    yield from _family("refused_total", "counter", "Requests refused, by reason", refused)
    away = [({"reason": reason}, count) for reason, count in stats["turned_away"].items()]
    yield from _family("turned_away_total", "counter", "Handshakes that failed, by reason", away)
    groups: dict[str, int] = stats["groups"]
    offsets = [({"group": group}, offset) for group, offset in groups.items()]
    yield from _family("group_offset", "gauge", "How far a group has read", offsets)
    bounds = stats["earliest"], stats["durable"]
    lags = [({"group": group}, lag(offset, *bounds)) for group, offset in groups.items()]
    left = [(labels, one.rows) for labels, one in lags]
    yield from _family("group_lag_rows", "gauge", "Rows that a group has not read", left)
    missed = [(labels, one.missed) for labels, one in lags]
    text = "Rows removed before a group had read them"
    yield from _family("group_missed_rows", "gauge", text, missed)
    yield from _sync_times(stats["sync_seconds"])


def _sync_times(times: Mapping[str, Any]) -> Iterator[str]:
    name = f"{_PREFIX}sync_seconds"
    yield f"# HELP {name} Duration of syncs to the disk"
    yield f"# TYPE {name} histogram"
    for end, count in times["buckets"].items():
        yield f"{name}_bucket{_labels({'le': str(float(end))})} {count}"
    yield f"{name}_bucket{_labels({'le': '+Inf'})} {times['count']}"
    yield f"{name}_sum {times['sum']}"
    yield f"{name}_count {times['count']}"


def _family(
    name: str, kind: str, text: str, samples: Iterable[tuple[Mapping[str, str], int]]
) -> Iterator[str]:
    yield f"# HELP {_PREFIX}{name} {text}"
    yield f"# TYPE {_PREFIX}{name} {kind}"
    for labels, value in samples:
        yield f"{_PREFIX}{name}{_labels(labels)} {value}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    escaped = {
        name: value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
        for name, value in labels.items()
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"
