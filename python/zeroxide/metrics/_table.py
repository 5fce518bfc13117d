"""The metrics, each with its name, unit, type and help. The exporters read this table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from .._lags import lag
from ._snapshot import PeerSnapshot, Snapshot, SocketSnapshot

__all__ = ["METRICS", "Family", "Metric", "families"]


class Metric(NamedTuple):
    """A metric: where its values come from, and how exporters describe it.

    Source:
        OpenMetrics 1.0.0
    """

    name: str
    """The name, as in OpenMetrics; samples of counters add ``_total``."""
    kind: Literal["counter", "gauge", "info"]
    """The type: a counter only grows."""
    unit: str
    """The unit, with which the name ends; empty for numbers of times."""
    help: str
    """What is counted."""
    of: Literal["program", "socket", "peer", "collector", "topic", "group"]
    """What has the metric: there is a sample for each, and one for each reason of ``dropped``."""
    field: str
    """The name of the value in a snapshot, or in a collector's ``stats()``."""


def _of_sockets(of: Literal["socket", "peer"], prefix: str) -> Iterator[Metric]:
    """The metrics that sockets and peers have."""
    for name, kind, unit, help, field in (
        ("sent_messages", "counter", "messages", "Messages that were sent", "sent"),
        ("sent_bytes", "counter", "bytes", "Bytes of messages that were sent", "sent_bytes"),
        ("received_messages", "counter", "messages", "Messages that were received", "received"),
        (
            "received_bytes",
            "counter",
            "bytes",
            "Bytes of messages that were received",
            "received_bytes",
        ),
        ("queued_out_messages", "gauge", "messages", "Messages that wait to be sent", "queued_out"),
        (
            "queued_in_messages",
            "gauge",
            "messages",
            "Messages that wait to be received by the program",
            "queued_in",
        ),
        (
            "spilled_messages",
            "gauge",
            "messages",
            "Messages that wait on disk, in SPILL_DIR",
            "spilled",
        ),
        (
            "spilled_bytes",
            "gauge",
            "bytes",
            "Bytes of messages that wait on disk, in SPILL_DIR",
            "spilled_bytes",
        ),
        (
            "dropped_messages",
            "counter",
            "messages",
            "Messages that were not delivered, by reason",
            "dropped",
        ),
        ("reconnects", "counter", "", "Connections that replaced a lost one", "reconnects"),
        (
            "high_water_out",
            "counter",
            "",
            "Times that a queue to a peer reached its high-water mark",
            "full_out",
        ),
        (
            "high_water_in",
            "counter",
            "",
            "Times that a queue from a peer reached its high-water mark",
            "full_in",
        ),
    ):
        yield Metric(f"{prefix}{name}", kind, unit, help, of, field)  # type: ignore[arg-type]


METRICS: tuple[Metric, ...] = (
    Metric("zeroxide_program", "info", "", "An observed program", "program", ""),
    *_of_sockets("socket", "zeroxide_"),
    Metric(
        "zeroxide_lingering_messages",
        "gauge",
        "messages",
        "Messages that disconnect and unbind left to deliver",
        "socket",
        "lingering",
    ),
    Metric(
        "zeroxide_no_subscriber_messages",
        "counter",
        "messages",
        "Published messages that no peer subscribes to",
        "socket",
        "no_subscriber",
    ),
    Metric(
        "zeroxide_connections",
        "counter",
        "connections",
        "Connections that were made",
        "socket",
        "connections",
    ),
    Metric(
        "zeroxide_connected_peers",
        "gauge",
        "peers",
        "Peers that are connected",
        "socket",
        "peers_connected",
    ),
    Metric(
        "zeroxide_missed_events",
        "counter",
        "events",
        "Events that monitors did not get, because earlier ones had not been read",
        "socket",
        "missed_events",
    ),
    *_of_sockets("peer", "zeroxide_peer_"),
    Metric(
        "zeroxide_collector_rows",
        "counter",
        "rows",
        "Rows appended to the log",
        "collector",
        "rows",
    ),
    Metric(
        "zeroxide_collector_bytes",
        "counter",
        "bytes",
        "Encoded bytes of the rows appended to the log",
        "collector",
        "bytes",
    ),
    Metric(
        "zeroxide_collector_log_bytes",
        "gauge",
        "bytes",
        "Size of the log on disk",
        "collector",
        "log_bytes",
    ),
    Metric(
        "zeroxide_collector_earliest",
        "gauge",
        "",
        "First offset that can be fetched",
        "collector",
        "earliest",
    ),
    Metric(
        "zeroxide_collector_durable",
        "gauge",
        "",
        "Offset after the last row on disk",
        "collector",
        "durable",
    ),
    Metric(
        "zeroxide_collector_connected_producers",
        "gauge",
        "producers",
        "Connected producers",
        "collector",
        "connected_producers",
    ),
    Metric(
        "zeroxide_collector_topic_rows",
        "counter",
        "rows",
        "Rows appended under a topic",
        "topic",
        "rows",
    ),
    Metric(
        "zeroxide_collector_topic_bytes",
        "counter",
        "bytes",
        "Bytes of the values appended under a topic",
        "topic",
        "bytes",
    ),
    Metric(
        "zeroxide_collector_group_offset",
        "gauge",
        "",
        "How far a group has read",
        "group",
        "offset",
    ),
    Metric(
        "zeroxide_collector_group_lag_rows",
        "gauge",
        "rows",
        "Rows that a group has not read",
        "group",
        "lag",
    ),
    Metric(
        "zeroxide_collector_group_missed_rows",
        "gauge",
        "rows",
        "Rows removed before a group had read them",
        "group",
        "missed",
    ),
)
"""Every metric of the exporters."""

_Labels = dict[str, str]


class Family(NamedTuple):
    """The samples of a metric."""

    metric: Metric
    samples: list[tuple[_Labels, int]]


def families(
    snapshots: Sequence[Snapshot],
    collectors: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[Family]:
    """The metrics of observed processes, and of collectors by endpoint."""
    things = _things(snapshots, collectors or {})
    for metric in METRICS:
        samples: list[tuple[_Labels, int]] = []
        for labels, thing in things[metric.of]:
            value = thing[metric.field] if metric.field else 1
            if isinstance(value, dict):
                samples.extend(({**labels, "reason": key}, count) for key, count in value.items())
            else:
                samples.append((labels, value))
        yield Family(metric, samples)


def _things(
    snapshots: Iterable[Snapshot], collectors: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[tuple[_Labels, Mapping[str, Any]]]]:
    """What has metrics, by kind, each with its labels."""
    things: dict[str, list[tuple[_Labels, Mapping[str, Any]]]] = {
        kind: [] for kind in ("program", "socket", "peer", "collector", "topic", "group")
    }
    for snapshot in snapshots:
        pid = {"pid": str(snapshot["pid"])}
        about = {**pid, "command": snapshot["command"], "version": snapshot["zeroxide"]}
        things["program"].append((about, snapshot))
        for context in snapshot["contexts"]:
            for socket in context["sockets"]:
                labels = {**pid, "context": str(context["id"]), **_socket_labels(socket)}
                things["socket"].append((labels, socket))
                for peer in socket["peers"]:
                    things["peer"].append(({**labels, **_peer_labels(peer)}, peer))
    for endpoint, stats in collectors.items():
        at = {"endpoint": endpoint}
        things["collector"].append((at, stats))
        for topic in stats["topics"]:
            things["topic"].append(({**at, "topic": topic["topic"]}, topic))
        for group, offset in stats["groups"].items():
            one = lag(offset, stats["earliest"], stats["durable"])
            position = {"offset": offset, "lag": one.rows, "missed": one.missed}
            things["group"].append(({**at, "group": group}, position))
    return things


def _socket_labels(socket: SocketSnapshot) -> _Labels:
    endpoints = ",".join([*socket["bound"], *socket["connected"]])
    return {"socket": str(socket["id"]), "type": socket["type"], "endpoint": endpoints}


def _peer_labels(peer: PeerSnapshot) -> _Labels:
    return {
        "peer": str(peer["id"]),
        "peer_endpoint": peer["endpoint"],
        "address": peer["address"],
        "routing_id": peer["routing_id"],
    }
