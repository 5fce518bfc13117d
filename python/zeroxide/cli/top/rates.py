"""What has changed between two looks: rates per second, for people and for scripts."""

from collections.abc import Mapping
from typing import Any

from ..._lags import lag
from .targets import Collector, Program, Watch

__all__ = ["Rates"]

_OF_SOCKETS = ("sent", "sent_bytes", "received", "received_bytes")
_OF_LOGS = ("rows", "bytes")


class Rates:
    """Remembers the counters of the last look."""

    def __init__(self) -> None:
        self._before: dict[tuple[object, ...], tuple[float, dict[str, int]]] = {}
        self._now: dict[tuple[object, ...], tuple[float, dict[str, int]]] = {}

    def report(self, watch: Watch) -> dict[str, Any]:
        """All facts about what is watched, with rates since the last call.

        Rates are None for all that the last call did not find.
        """
        report = {
            "programs": [self._program(program) for program in watch.programs if program.snapshot],
            "problems": {
                program.pid: program.problem or "it does not answer"
                for program in watch.programs
                if program.problem or program.is_asked
            },
            "collectors": [self._collector(collector) for collector in watch.collectors],
        }
        self._before, self._now = self._now, {}
        return report

    def _program(self, program: Program) -> dict[str, Any]:
        snapshot = program.snapshot
        assert snapshot is not None
        sockets = []
        for context in snapshot["contexts"]:
            for socket in context["sockets"]:
                key = (program.endpoint, context["id"], socket["id"])
                rates = self._rates(key, snapshot["time"], self._counts(socket))
                peers = [
                    {
                        **peer,
                        "rates": self._rates(
                            (*key, peer["id"]), snapshot["time"], self._counts(peer)
                        ),
                    }
                    for peer in socket["peers"]
                ]
                sockets.append({**socket, "context": context["id"], "rates": rates, "peers": peers})
        about = ("pid", "command", "zeroxide", "time")
        return {
            **{name: snapshot[name] for name in about},  # type: ignore[literal-required]
            "endpoint": program.endpoint,
            "contexts": len(snapshot["contexts"]),
            "sockets": sockets,
        }

    @staticmethod
    def _counts(thing: Mapping[str, Any]) -> dict[str, int]:
        counts = {name: thing[name] for name in _OF_SOCKETS}
        return {**counts, "dropped": sum(thing["dropped"].values())}

    def _collector(self, collector: Collector) -> dict[str, Any]:
        stats, at = collector.stats, collector.time
        if stats is None:
            return {"endpoint": collector.endpoint, "problem": collector.problem}
        key = (collector.endpoint,)
        topics = [
            {
                **topic,
                "rates": self._rates(
                    (*key, "topic", topic["topic"]), at, {name: topic[name] for name in _OF_LOGS}
                ),
            }
            for topic in stats["topics"]
        ]
        bounds = stats["earliest"], stats["durable"]
        lags = {name: lag(offset, *bounds) for name, offset in stats["groups"].items()}
        groups = {
            name: {
                "offset": offset,
                "lag": lags[name].rows,
                "missed": lags[name].missed,
                "rates": self._rates((*key, "group", name), at, {"offset": offset}),
            }
            for name, offset in stats["groups"].items()
        }
        names = ("log_id", "state", "reason", "earliest", "durable", "log_bytes", "segments")
        more = ("rows", "bytes", "connected_producers", "waiting_for_sync", "topics_unlisted")
        return {
            "endpoint": collector.endpoint,
            "problem": collector.problem,
            **{name: stats[name] for name in (*names, *more)},
            "depth": stats["durable"] - stats["earliest"],
            "rates": self._rates(key, at, {name: stats[name] for name in _OF_LOGS}),
            "topics": topics,
            "groups": groups,
        }

    def _rates(
        self, key: tuple[object, ...], at: float, counts: dict[str, int]
    ) -> dict[str, float] | None:
        self._now[key] = (at, counts)
        if key not in self._before:
            return None
        then, before = self._before[key]
        seconds = at - then
        if seconds <= 0:
            # There is no new answer, or the clock was set.
            return None
        # A counter that has fallen is that of a restarted collector.
        return {
            name: round(max(count - before[name], 0) / seconds, 1) for name, count in counts.items()
        }
