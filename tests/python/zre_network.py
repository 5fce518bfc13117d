"""A network of `NodeMachine`s with a clock of its own, whose links can be cut, and whose nodes can be stopped and killed."""

import uuid
from collections import deque
from dataclasses import dataclass, field

from zeroxide.discovery import Event
from zeroxide.discovery._node_machine import (
    Announce,
    Connect,
    Disconnect,
    Forget,
    NodeMachine,
    Send,
    Timing,
)
from zeroxide.discovery._zre import identity

STEP = 100.0  # ms


@dataclass
class Station:
    """A node and its machine."""

    machine: NodeMachine
    host: str
    events: list[Event] = field(default_factory=list)
    # The messages of each mailbox that have not arrived.
    mailboxes: dict[uuid.UUID, tuple[str, deque[list[bytes]]]] = field(default_factory=dict)
    does_run: bool = True

    @property
    def endpoint(self) -> str:
        return f"tcp://{self.host}:49152"

    def names(self) -> set[str]:
        return {peer.name for peer in self.machine.peers()}

    def take(self) -> list[Event]:
        """Returns the events since the last call."""
        events, self.events = self.events, []
        return events


class Network:
    """The nodes, and what is between them."""

    def __init__(self, timing: Timing | None = None, *, beacons: bool = True) -> None:
        self.now = 1000.0
        self.stations: list[Station] = []
        self.forgotten: list[uuid.UUID] = []
        self._started = 0
        self._timing = timing or Timing()
        self._beacons = beacons
        self._cuts: set[frozenset[str]] = set()

    def add(self, number: int | None = None, **options: object) -> Station:
        """Starts a node."""
        self._started += 1
        place = self._started
        host = f"10.0.0.{place}"
        machine = NodeMachine(
            uuid.UUID(int=number or place),
            f"n{place}",
            49152 if self._beacons else None,
            lambda endpoint: f"tcp://{host}:49152",
            options.pop("headers", {}),
            self._timing,
            options.pop("max_peers", 100),
            self.now,
        )
        assert not options
        self.stations.append(Station(machine, host))
        return self.stations[-1]

    def cut(self, one: Station, other: Station) -> None:
        self._cuts.add(frozenset((one.host, other.host)))

    def mend(self) -> None:
        self._cuts.clear()

    def kill(self, station: Station) -> None:
        """Ends a node, as SIGKILL does: what its mailboxes hold is lost."""
        self.stations.remove(station)

    def close(self, station: Station) -> None:
        station.machine.handle_close()
        self._carry_out(station)
        self._deliver()
        self.stations.remove(station)

    def run(self, duration: float) -> None:
        """Lets the time pass."""
        end = self.now + duration
        while self.now < end:
            self.now += STEP
            for station in list(self.stations):
                if station.does_run:
                    station.machine.handle_timeout(self.now)
                    self._carry_out(station)
            self._deliver()

    def settle(self) -> None:
        """Delivers what is in transit, without any time passing."""
        for station in self.stations:
            self._carry_out(station)
        self._deliver()

    def _can_reach(self, one: Station, other: Station) -> bool:
        return other.does_run and frozenset((one.host, other.host)) not in self._cuts

    def _deliver(self) -> None:
        has_moved = True
        while has_moved:
            has_moved = False
            for sender in list(self.stations):
                for endpoint, queue in list(sender.mailboxes.values()):
                    for receiver in self.stations:
                        if receiver.endpoint == endpoint and self._can_reach(sender, receiver):
                            while queue:
                                parts = [identity(sender.machine.uuid), *queue.popleft()]
                                receiver.machine.handle_message(parts, self.now)
                                self._carry_out(receiver)
                                has_moved = True

    def _carry_out(self, station: Station) -> None:
        machine = station.machine
        while (command := machine.poll_command()) is not None:
            match command:
                case Connect(peer, endpoint):
                    assert peer not in station.mailboxes
                    station.mailboxes[peer] = (endpoint, deque())
                case Disconnect(peer, drains):
                    if not drains:
                        del station.mailboxes[peer]
                case Send(peer, parts):
                    station.mailboxes[peer][1].append(parts)
                case Announce(beacon):
                    for other in self.stations:
                        if self._can_reach(station, other):
                            other.machine.handle_beacon(beacon, station.host, self.now)
                            if other is not station:
                                self._carry_out(other)
                case Forget(peer):
                    self.forgotten.append(peer)
        while (event := machine.poll_event()) is not None:
            station.events.append(event)
