"""The gossip that nodes find each other by where UDP is closed: its machine, with a clock of its own."""

import random
from collections import deque

import pytest
from zre_vectors import Line, lines

from zeroxide.discovery._gossip_machine import (
    _CATCH_UP,
    MAX_BYTES,
    MAX_CLIENTS,
    MAX_TUPLES,
    GossipMachine,
    ToClient,
)
from zeroxide.discovery._zgossip import MAX_FRAME, GossipKind, GossipMessage

pytestmark = pytest.mark.zeroxide_only

HELLO = GossipMessage(GossipKind.HELLO).write()


def published(key: str, value: str) -> bytes:
    return GossipMessage(GossipKind.PUBLISH, key, value).write()


class Gossips:
    """Machines, each connected to some of those before it. A connection that is cut loses what is in transit."""

    def __init__(self, remotes: list[list[int]]) -> None:
        self.now = 0.0
        self.remotes = remotes
        self.machines = [GossipMachine(len(each), 0.0) for each in remotes]
        self.news: list[dict[str, str]] = [{} for _ in remotes]
        self.messages = 0
        # The number of each connection, which is its routing ID: a new one does not know the old one's.
        self.connections = {(a, b): f"{a} {b}" for a, each in enumerate(remotes) for b in each}

    def reconnect(self, one: int, other: int) -> None:
        self.machines[other].handle_gone(self.connections[one, other].encode())
        self.connections[one, other] += "'"

    def run(self, duration: float) -> None:
        end = self.now + duration
        while self.now < end:
            self.now += 100
            for machine in self.machines:
                machine.handle_timeout(self.now)
            self.settle()

    def settle(self, most: int | None = None) -> bool:
        """Delivers what is in transit, `most` messages at most. Returns whether that was all."""
        queue: deque[tuple[int, object]] = deque()
        while True:
            for number, machine in enumerate(self.machines):
                while (command := machine.poll_command()) is not None:
                    queue.append((number, command))
                while (news := machine.poll_news()) is not None:
                    self.news[number][news[0]] = news[1]
            if not queue:
                return True
            if most is not None and self.messages >= most:
                return False
            self.messages += 1
            self._deliver(*queue.popleft())

    def _deliver(self, number: int, command: object) -> None:
        if isinstance(command, ToClient):
            one = int(command.client.split()[0])
            if self.connections[one, number].encode() != command.client:
                self.machines[number].handle_gone(command.client)
                return
            place = self.remotes[one].index(number)
            self.machines[one].handle_remote(place, [command.frame], self.now)
        else:
            other = self.remotes[number][command.remote]
            client = self.connections[number, other].encode()
            self.machines[other].handle_client(client, [command.frame], self.now)


def test_a_tuple_reaches_all_in_both_directions() -> None:
    gossips = Gossips([[], [0], [1], [0, 2]])
    for number, machine in enumerate(gossips.machines):
        machine.publish(f"k{number}", f"v{number}", 0.0)
    gossips.settle()
    for number, news in enumerate(gossips.news):
        assert news == {f"k{other}": f"v{other}" for other in range(4) if other != number}


def test_a_late_node_learns_what_was_published() -> None:
    gossips = Gossips([[], [0]])
    gossips.machines[0].publish("k", "v", 0.0)
    gossips.settle()
    assert gossips.news[1] == {"k": "v"}


def test_a_node_that_is_forgotten_introduces_itself_again() -> None:
    gossips = Gossips([[], [0]])
    gossips.machines[1].publish("mine", "v", 0.0)
    gossips.settle()
    gossips.reconnect(1, 0)
    gossips.machines[0].publish("late", "v", gossips.now)
    gossips.settle()
    assert "late" not in gossips.news[1]
    gossips.run(1000)
    assert gossips.news[1] == {"late": "v"}


def test_a_node_without_tuples_sends_pings() -> None:
    gossips = Gossips([[], [0]])
    gossips.settle()
    before = gossips.messages
    gossips.run(1000)
    assert gossips.messages > before


@pytest.mark.parametrize("seed", range(10))
def test_any_network_agrees_in_the_end(seed: int) -> None:
    dice = random.Random(seed)
    size = dice.randint(2, 6)
    links = [dice.sample(range(n), dice.randint(1, n)) if n else [] for n in range(size)]
    gossips = Gossips(links)
    for step in range(40):
        number = dice.randrange(size)
        if dice.random() < 0.5:
            gossips.machines[number].publish(f"{number} {step}", "v", gossips.now)
        elif links[number]:
            gossips.reconnect(number, dice.choice(links[number]))
        gossips.run(dice.choice([0, 100, 1500]))
    gossips.run(5000)
    final = [
        {key: found.value for key, found in machine._tuples.items()} for machine in gossips.machines
    ]
    assert all(tuples == final[0] for tuples in final)


def test_nodes_that_disagree_do_not_argue_forever() -> None:
    gossips = Gossips([[], [0], [0, 1]])
    for number, machine in enumerate(gossips.machines):
        machine.publish("same", f"{number}", 0.0)
    gossips.settle()
    assert gossips.messages < 100


def test_two_values_of_a_key_are_not_passed_round_forever() -> None:
    gossips = Gossips([[], [0], [0, 1]])
    gossips.settle()
    for number in (0, 1):
        value = published("same", f"{number}")
        gossips.machines[number].handle_remote(9, [value], gossips.now)
    assert gossips.settle(most=1000), "they still talk"


# Bytes, as czmq has them.


@pytest.mark.parametrize("line", lines("gossip"), ids=lambda line: line.text("kind"))
def test_bytes_are_those_of_czmq(line: Line) -> None:
    message = GossipMessage(GossipKind[line.text("kind")], line.text("key"), line.text("value"))
    assert message.write() == line.frames[0]
    assert GossipMessage.read(line.frames) == message


@pytest.mark.parametrize(
    "frames",
    [[], [HELLO, b""], [published("k", "v" * MAX_FRAME)]]
    + [line.frames for line in lines("not-gossip")],
)
def test_other_bytes_are_ignored(frames: list[bytes]) -> None:
    machine = GossipMachine(1, 0.0)
    machine.handle_client(b"client", frames, 0.0)
    machine.handle_remote(0, frames, 0.0)
    assert machine.dropped == 2


# Nodes that lie.


def test_a_flood_of_tuples_has_a_bound_and_keeps_the_own_ones() -> None:
    machine = GossipMachine(0, 0.0)
    machine.publish("mine", "v", 0.0)
    machine.handle_client(b"client", [HELLO], 0.0)
    for number in range(MAX_TUPLES + 100):
        machine.handle_client(b"client", [published(f"{number}", "v")], 0.0)
    assert len(machine._tuples) == MAX_TUPLES
    assert machine.dropped == 101
    for number in range(200):
        frame = published(f"large {number}", "v" * (MAX_FRAME - 100))
        machine.handle_client(b"client", [frame], 0.0)
    assert machine._size <= MAX_BYTES
    assert machine._size == sum(len(key) + len(of.value) for key, of in machine._tuples.items())
    machine.handle_client(b"client", [published("mine", "stolen")], 5000.0)
    assert machine._tuples["mine"].value == "v"


def test_clients_have_a_bound() -> None:
    machine = GossipMachine(0, 0.0)
    for number in range(MAX_CLIENTS + 100):
        machine.handle_client(b"%d" % number, [HELLO], 0.0)
    assert len(machine._clients) == MAX_CLIENTS
    assert machine.dropped == 100


def test_a_client_that_did_not_say_hello_gets_invalid() -> None:
    machine = GossipMachine(0, 0.0)
    machine.handle_client(b"client", [published("k", "v")], 0.0)
    assert machine.poll_command() == ToClient(b"client", GossipMessage(GossipKind.INVALID).write())
    assert machine.poll_news() is None


# Connections with little room.


def catch_up(machine: GossipMachine, room: int, now: float) -> tuple[list[str], float]:
    """Lets a connection take `room` messages at a time, until nothing is left. Returns the keys that it took."""
    taken: list[str] = []
    while True:
        machine.handle_timeout(now)
        left = room
        while (command := machine.poll_command()) is not None:
            if left == 0:
                machine.handle_full(command, now)
                continue
            left -= 1
            message = GossipMessage.read([command.frame])
            assert message is not None
            if message.kind == GossipKind.PUBLISH:
                taken.append(message.key)
        if left == room:
            return taken, now
        now += 50


@pytest.mark.parametrize("room", [1000, 7])
def test_a_client_with_little_room_gets_every_tuple(room: int) -> None:
    machine = GossipMachine(0, 0.0)
    count = 5000 if room > 100 else 100
    for number in range(count):
        machine.publish(f"{number}", "v", 0.0)
    machine.handle_client(b"client", [HELLO], 0.0)
    taken, now = catch_up(machine, room, 0.0)
    assert taken == [f"{number}" for number in range(count)]
    machine.publish("next", "v", now)
    assert catch_up(machine, room, now)[0] == ["next"]


def test_a_client_that_catches_up_gets_changes_once() -> None:
    machine = GossipMachine(0, 0.0)
    for number in range(20):
        machine.publish(f"{number}", "v", 0.0)
    machine.handle_client(b"client", [HELLO], 0.0)
    machine.publish("3", "changed", 0.0)
    taken, _ = catch_up(machine, 5, 0.0)
    assert sorted(taken) == sorted(f"{number}" for number in range(20))
    assert taken[-1] == "3"


def test_a_remote_node_with_little_room_gets_every_tuple() -> None:
    machine = GossipMachine(1, 0.0)
    for number in range(300):
        machine.publish(f"{number}", "v", 0.0)
    taken, _ = catch_up(machine, 20, 0.0)
    # The sign of life may repeat the first one.
    assert list(dict.fromkeys(taken)) == [f"{number}" for number in range(300)]


def test_a_client_that_takes_nothing_is_forgotten() -> None:
    machine = GossipMachine(0, 0.0)
    machine.publish("k", "v", 0.0)
    machine.handle_client(b"client", [HELLO], 0.0)
    now = 0.0
    while machine._clients:
        machine.handle_timeout(now)
        while (command := machine.poll_command()) is not None:
            machine.handle_full(command, now)
        now += 100
        assert now < 60_000
    assert not (machine._behind or machine._full or machine._paused)


def test_greetings_without_end_do_not_repeat_all_tuples_each_time() -> None:
    machine = GossipMachine(0, 0.0)
    for number in range(MAX_TUPLES):
        machine.publish(f"{number}", "v", 0.0)
    for number in range(100):
        machine.handle_client(b"%d" % number, [HELLO], 0.0)
    count = 0
    while machine.poll_command() is not None:
        count += 1
    assert count == _CATCH_UP
