"""The tables of programs and collectors."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .tables import Column, Row, Table, bytes_, number

__all__ = ["ORDERS", "Choice", "tables"]

_SOCKETS = (
    Column("socket", 2),
    Column("type", 0, is_text=True),
    Column("endpoint", 1, is_text=True),
    Column("peers", 6),
    Column("in/s", 0),
    Column("out/s", 0),
    Column("in B/s", 7),
    Column("out B/s", 7),
    Column("q.in", 3),
    Column("q.out", 3),
    Column("at mark", 5),
    Column("reconn", 5),
    Column("dropped", 4, is_text=True),
)

_TOPICS = (
    Column("topic", 0, is_text=True),
    Column("rows", 1),
    Column("rows/s", 0),
    Column("bytes", 2),
    Column("bytes/s", 3),
)

_GROUPS = (
    Column("group", 0, is_text=True),
    Column("offset", 2),
    Column("rows/s", 1),
    Column("lag", 0),
)


_NOTHING = Table("no program is observable: start one with ZEROXIDE_OBSERVE=1", (), ())


class Choice(NamedTuple):
    """What is shown, and in which order."""

    order: str = "socket"
    text: str = ""
    """Only sockets, topics and groups with this text in one of their cells."""
    peers: bool = True


def _traffic(socket: Mapping[str, Any]) -> float:
    rates = socket["rates"] or {}
    return -float(rates.get("sent", 0) + rates.get("received", 0))


# How sockets are sorted, by name.
ORDERS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "socket": lambda socket: (socket["context"], socket["id"]),
    "rate": _traffic,
    "queued": lambda socket: -(socket["queued_in"] + socket["queued_out"]),
    "dropped": lambda socket: -sum(socket["dropped"].values()),
    "type": lambda socket: socket["type"],
}


def tables(report: Mapping[str, Any], choice: Choice) -> list[Table]:
    """All tables of a report."""
    found = [_program(program, choice) for program in report["programs"]]
    found += [Table(f"{pid}  {problem}", (), ()) for pid, problem in report["problems"].items()]
    for collector in report["collectors"]:
        found.extend(_collector(collector, choice))
    return found or [_NOTHING]


def _program(program: Mapping[str, Any], choice: Choice) -> Table:
    sockets = sorted(program["sockets"], key=ORDERS[choice.order])
    rows: list[Row] = []
    for socket in sockets:
        lines = [_socket(socket)]
        if choice.peers and _has_more_to_say(socket):
            lines += [_peer(peer) for peer in socket["peers"]]
            if socket["peers_unlisted"]:
                more = f"  and {socket['peers_unlisted']} more"
                lines.append(Row(["", "", more, *[""] * (len(_SOCKETS) - 3)], "dim"))
        if any(_matches(line, choice.text) for line in lines):
            rows += lines
    count = len(sockets)
    command = " ".join(program["command"].split())
    heading = f"{program['pid']}  {command}  ({count} socket{'s' * (count != 1)})"
    return Table(heading, _SOCKETS, rows)


def _has_more_to_say(socket: Mapping[str, Any]) -> bool:
    """Whether peers have lines. That of a single connected one would repeat its socket's."""
    peers = socket["peers"]
    return (
        len(peers) > 1 or socket["peers_unlisted"] or any(not peer["connected"] for peer in peers)
    )


def _matches(row: Row, text: str) -> bool:
    return any(text.lower() in cell.lower() for cell in row.cells)


def _socket(socket: Mapping[str, Any]) -> Row:
    where = [*socket["bound"], *socket["connected"]]
    more = f" +{len(where) - 1}" if len(where) > 1 else ""
    return Row(
        [
            f"{socket['context']}.{socket['id']}",
            socket["type"],
            f"{where[0]}{more}" if where else "-",
            number(socket["peers_connected"]),
            *_counters(socket),
        ],
        "",
        _warnings(socket),
    )


def _peer(peer: Mapping[str, Any]) -> Row:
    who = peer["routing_id"] or peer["address"] or peer["endpoint"]
    state = "" if peer["connected"] else " (not connected)"
    state = " (waits for its name)" if peer["waiting"] else state
    return Row(["", "", f"  {who}{state}", "", *_counters(peer)], "dim", _warnings(peer))


def _counters(thing: Mapping[str, Any]) -> list[str]:
    rates = thing["rates"] or {}
    return [
        number(rates.get("received")),
        number(rates.get("sent")),
        bytes_(rates.get("received_bytes")),
        bytes_(rates.get("sent_bytes")),
        number(thing["queued_in"]),
        number(thing["queued_out"]),
        number(thing["full_in"] + thing["full_out"]),
        number(thing["reconnects"]),
        _dropped(thing["dropped"]),
    ]


def _dropped(dropped: Mapping[str, int]) -> str:
    """The reasons, those of most messages first."""
    parts = sorted(dropped.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{number(count)} {reason}" for reason, count in parts) or "-"


def _missed(group: Mapping[str, Any]) -> str:
    """Rows that retention removed before the group had read them, which is rare."""
    return f" (missed {number(group['missed'])})" if group["missed"] else ""


def _warnings(thing: Mapping[str, Any]) -> frozenset[int]:
    """The cells with something to look at: a mark that was reached, a reconnect, a loss."""
    found = {10: thing["full_in"] + thing["full_out"], 11: thing["reconnects"]}
    found[12] = (thing["rates"] or {}).get("dropped", 0)
    return frozenset(index for index, count in found.items() if count)


def _collector(collector: Mapping[str, Any], choice: Choice) -> list[Table]:
    if "durable" not in collector:
        return [Table(f"{collector['endpoint']}  NOT ANSWERING: {collector['problem']}", (), ())]
    rates = collector["rates"] or {}
    state = "" if collector["state"] == "fine" else f"  {collector['reason'] or collector['state']}"
    if collector["problem"]:
        state = f"  NOT ANSWERING: {collector['problem']}"
    heading = (
        f"{collector['endpoint']}  {number(rates.get('rows'))} rows/s, depth"
        f" {number(collector['depth'])}, disk {bytes_(collector['log_bytes'])},"
        f" {collector['connected_producers']} producers{state}"
    )
    topics = [
        Row(
            [
                topic["topic"] or "(none)",
                number(topic["rows"]),
                number((topic["rates"] or {}).get("rows")),
                bytes_(topic["bytes"]),
                bytes_((topic["rates"] or {}).get("bytes")),
            ]
        )
        for topic in collector["topics"]
    ]
    groups = [
        Row(
            [
                name,
                number(group["offset"]),
                number((group["rates"] or {}).get("offset")),
                number(group["lag"]) + _missed(group),
            ],
            "",
            frozenset({3}) if group["missed"] else frozenset(),
        )
        for name, group in collector["groups"].items()
    ]
    shown = [Table(heading, _TOPICS, [row for row in topics if _matches(row, choice.text)])]
    if groups:
        lags = [row for row in groups if _matches(row, choice.text)]
        shown.append(Table("groups", _GROUPS, lags))
    return shown
