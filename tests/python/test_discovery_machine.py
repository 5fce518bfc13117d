"""The machine of a ZRE node: with a clock of its own, and a network that loses, stops and lies."""

import random
import struct
import uuid

import pytest
from zre_network import Network, Station
from zre_vectors import Line, lines

from zeroxide import discovery
from zeroxide.discovery import (
    Enter,
    Evasive,
    Event,
    Exit,
    Join,
    Leader,
    Leave,
    Shout,
    Silent,
    Whisper,
)
from zeroxide.discovery._node_machine import NodeMachine, Timing
from zeroxide.discovery._zre import (
    MAX_GROUPS,
    MAX_HEADERS,
    Kind,
    Message,
    identity,
    read_beacon,
    write_beacon,
)

pytestmark = pytest.mark.zeroxide_only

GROUP = "chat"


def pair(network: Network) -> tuple[Station, Station]:
    one, other = network.add(headers={"room": "1"}), network.add()
    network.run(1000)
    return one, other


def reasons(events: list[Event]) -> list[str]:
    return [event.reason for event in events if isinstance(event, Exit)]


def test_nodes_find_each_other_and_talk() -> None:
    network = Network()
    one, other = pair(network)
    assert other.take() == [Enter(one.machine.uuid, "n1", one.endpoint, {"room": "1"})]
    other.machine.join(GROUP)
    network.settle()
    assert one.take()[1:] == [Join(other.machine.uuid, "n2", GROUP)]
    assert one.machine.shout(GROUP, [b"all", b""]) == 1
    assert one.machine.shout("unknown", [b"nobody"]) == 0
    assert other.machine.whisper(one.machine.uuid, [b"you"])
    assert not other.machine.whisper(uuid.UUID(int=99), [b"nobody"])
    network.settle()
    assert other.take() == [Shout(one.machine.uuid, "n1", GROUP, [b"all", b""])]
    assert one.take() == [Whisper(other.machine.uuid, "n2", [b"you"])]
    other.machine.leave(GROUP)
    network.settle()
    assert one.take() == [Leave(other.machine.uuid, "n2", GROUP)]


def test_a_late_node_learns_the_groups_and_headers() -> None:
    network = Network()
    one = network.add(headers={"a": "b"})
    one.machine.join(GROUP)
    network.run(5000)
    other = network.add()
    network.run(1000)
    [peer] = other.machine.peers()
    assert (peer.name, peer.headers, peer.groups) == ("n1", {"a": "b"}, frozenset({GROUP}))
    assert [type(event) for event in other.take()] == [Enter, Join]


def test_a_quiet_peer_is_pinged_and_stays() -> None:
    network = Network()
    one, other = pair(network)
    one.take()
    network.run(120_000)
    assert one.take() == []
    assert other.names() == {"n1"}


def test_a_killed_peer_is_evasive_silent_and_gone() -> None:
    network = Network()
    one, other = pair(network)
    one.take()
    # Measured from the last sign of life.
    heard = one.machine._peers[other.machine.uuid].heard
    network.kill(other)
    found = []
    while len(found) < 3:
        network.run(100)
        found += [(type(event), network.now - heard) for event in one.take()]
    kinds, times = zip(*found, strict=True)
    assert kinds == (Evasive, Silent, Exit)
    assert 5000 <= times[0] <= 6000
    assert 6000 <= times[1] <= 7000
    assert 30_000 <= times[2] <= 31_000
    assert one.machine.peers() == []


def test_a_peer_that_says_goodbye_is_gone_at_once() -> None:
    network = Network()
    one, other = pair(network)
    one.take()
    network.close(other)
    assert reasons(one.take()) == ["goodbye"]


@pytest.mark.parametrize("beacons", [True, False])
def test_a_stopped_peer_returns(beacons: bool) -> None:
    network = Network(beacons=beacons)
    one, other = network.add(), network.add()
    for node, peer in ((one, other), (other, one)):
        node.machine.handle_announcement(peer.machine.uuid.hex, peer.endpoint, network.now)
    network.run(1000)
    one.take(), other.take()
    other.does_run = False
    network.run(40_000)
    assert reasons(one.take()) == ["expired"]
    other.does_run = True
    network.run(5000)
    assert one.names() == {"n2"}
    assert other.names() == {"n1"}
    # It did not run, so the silence of the others says nothing.
    assert "expired" not in reasons(other.take())
    other.machine.join(GROUP)
    network.settle()
    assert Join(other.machine.uuid, "n2", GROUP) in one.take()


@pytest.mark.parametrize("beacons", [True, False])
def test_both_sides_of_a_cut_find_each_other_when_it_is_mended(beacons: bool) -> None:
    network = Network(beacons=beacons)
    one, other = network.add(), network.add()
    for node, peer in ((one, other), (other, one)):
        node.machine.handle_announcement(peer.machine.uuid.hex, peer.endpoint, network.now)
    network.run(1000)
    network.cut(one, other)
    network.run(60_000)
    assert one.names() == other.names() == set()
    network.mend()
    network.run(5000)
    assert one.names() == {"n2"}
    assert other.names() == {"n1"}


def test_a_dead_node_from_gossip_is_given_up() -> None:
    network = Network(beacons=False)
    one = network.add()
    dead = uuid.UUID(int=99)
    one.machine.handle_announcement(dead.hex, "tcp://10.0.0.99:1", network.now)
    network.run(30_000)
    assert list(one.machine._peers) == [dead]
    network.run(400_000)
    assert network.forgotten == [dead]
    assert one.machine._peers == {}
    assert one.take() == []


def test_a_restarted_node_replaces_the_one_at_its_endpoint() -> None:
    network = Network()
    one, other = pair(network)
    one.take()
    network.kill(other)
    again = network.add()
    again.host = other.host
    again.machine._endpoint_for = lambda endpoint: other.endpoint
    network.run(1000)
    assert reasons(one.take()) == ["restarted"]
    assert one.names() == {"n3"}


def test_a_gap_in_the_numbers_ends_the_peer_and_beacons_bring_it_back() -> None:
    network = Network()
    one, other = pair(network)
    one.take()
    other.machine.whisper(one.machine.uuid, [b"lost"])
    other.machine.poll_command()
    other.machine.whisper(one.machine.uuid, [b"late"])
    network.settle()
    assert one.take() == [Exit(other.machine.uuid, "n2", "messages lost")]
    network.run(2000)
    assert [type(event) for event in one.take()] == [Enter]
    other.machine.whisper(one.machine.uuid, [b"again"])
    network.settle()
    assert one.take() == [Whisper(other.machine.uuid, "n2", [b"again"])]


def test_numbers_begin_again_after_65535() -> None:
    network = Network()
    one, other = pair(network)
    one.take()
    for number in range(70_000):
        other.machine.whisper(one.machine.uuid, [b"%d" % number])
    network.settle()
    assert [event.content for event in one.take()] == [[b"%d" % n] for n in range(70_000)]


def test_a_peer_that_does_not_read_is_gone() -> None:
    network = Network()
    one, other = pair(network)
    one.take()
    one.machine.handle_full(other.machine.uuid)
    network.settle()
    assert reasons(one.take()) == ["not reading"]
    assert one.machine.dropped == 1
    network.run(2000)
    assert one.names() == {"n2"}


def test_without_beacons_a_sign_of_life_brings_a_peer_back() -> None:
    network = Network(beacons=False)
    one, other = network.add(), network.add()
    one.machine.handle_announcement(other.machine.uuid.hex, other.endpoint, network.now)
    network.run(1000)
    one.machine.handle_full(other.machine.uuid)
    network.run(10_000)
    assert one.names() == {"n2"}
    assert [type(event) for event in one.take()] == [Enter, Exit, Enter]


def test_silence_does_not_count_while_the_program_does_not_read() -> None:
    network = Network()
    one, other = pair(network)
    one.take()
    network.kill(other)
    for _ in range(100):
        network.now += 1000
        one.machine.handle_timeout(network.now, has_read=False)
    network.settle()
    assert one.take() == []


# Elections.


def test_the_lowest_contestant_leads() -> None:
    network = Network()
    stations = [network.add(number) for number in (7, 3, 5, 9)]
    for station in stations:
        station.machine.join(GROUP)
    network.run(2000)
    for station in stations[:3]:
        station.machine.contest(GROUP)
        network.settle()
    for station in stations:
        leaders = [event.peer.int for event in station.take() if isinstance(event, Leader)]
        assert leaders[-1] == 3
    network.kill(stations[1])
    network.run(40_000)
    for station in (stations[0], *stations[2:]):
        leaders = [event.peer.int for event in station.take() if isinstance(event, Leader)]
        assert leaders[-1:] == [5]
    network.close(stations[2])
    network.run(1000)
    stations[3].machine.leave(GROUP)
    network.run(1000)
    assert [event.peer.int for event in stations[0].take() if isinstance(event, Leader)][-1] == 7


# Random networks.


@pytest.mark.parametrize("seed", range(12))
def test_any_network_settles(seed: int) -> None:
    """After any accidents, all nodes know each other and their groups, and each had a proper sequence of events."""
    dice = random.Random(seed)
    network = Network(Timing(1000, 2000, 5000))
    for _ in range(dice.randint(2, 5)):
        network.add()
    history: dict[str, list[Event]] = {}
    numbers = iter(range(1000, 2000))
    for _ in range(60):
        station = dice.choice(network.stations)
        match dice.randrange(9):
            case 0:
                station.machine.join(dice.choice("abc"))
            case 1:
                station.machine.leave(dice.choice("abc"))
            case 2:
                station.machine.shout(dice.choice("abc"), [b"x"])
            case 3:
                network.cut(station, dice.choice(network.stations))
            case 4:
                network.mend()
            case 5:
                station.does_run = not station.does_run
            case 6 if len(network.stations) > 2:
                network.close(station) if station.does_run else network.kill(station)
            case 7 if len(network.stations) < 6:
                network.add(next(numbers))
            case 8:
                # A message is lost where a connection breaks.
                for _, queue in station.mailboxes.values():
                    if queue:
                        queue.popleft()
        network.run(dice.choice([0, 100, 3000, 8000]))
        for station in network.stations:
            history.setdefault(station.machine.name, []).extend(station.take())
    network.mend()
    for station in network.stations:
        station.does_run = True
    network.run(30_000)
    everyone = {station.machine.name: station for station in network.stations}
    for name, station in everyone.items():
        assert station.names() == everyone.keys() - {name}
        for peer in station.machine.peers():
            assert peer.groups == set(everyone[peer.name].machine.own_groups)
        check_sequence(history.get(name, []) + station.take(), everyone.keys() - {name})


def check_sequence(events: list[Event], left: set[str]) -> None:
    """Checks that each peer enters before anything else, exits after it, and joins before it leaves."""
    groups: dict[uuid.UUID, set[str]] = {}
    names = {}
    for event in events:
        names[event.peer] = event.name
        match event:
            case Enter():
                assert event.peer not in groups
                groups[event.peer] = set()
            case Exit():
                del groups[event.peer]
            case Join():
                assert event.group not in groups[event.peer]
                groups[event.peer].add(event.group)
            case Leave():
                groups[event.peer].remove(event.group)
            case _:
                assert event.peer in groups
    assert {names[peer] for peer in groups} == left


# Bytes, as RFC 36 has them and Zyre 2.0.1 sends them.


def message(line: Line) -> Message:
    headers = [header.split(":") for header in line.text("headers").split(",") if header]
    return Message(
        Kind[line.text("kind")],
        line.number("sequence"),
        endpoint=line.text("endpoint"),
        groups=[group for group in line.text("groups").split(",") if group] or (),
        status=line.number("status"),
        name=line.text("name"),
        headers=dict(headers),
        group=line.text("group"),
        member=line.text("member"),
        content=line.frames[1:] if line.text("kind") in ("WHISPER", "SHOUT") else (),
    )


@pytest.mark.parametrize("line", lines("zre"), ids=lambda line: line.text("kind"))
def test_bytes_are_those_of_zyre(line: Line) -> None:
    assert message(line).write() == line.frames
    assert Message.read(line.frames) == message(line)


@pytest.mark.parametrize("line", lines("not-zre"), ids=lambda line: line.frames[0][:12].hex())
def test_other_bytes_are_refused(line: Line) -> None:
    assert Message.read(line.frames) is None


def test_beacons_are_those_of_zyre() -> None:
    for line in lines("beacon"):
        node, port = uuid.UUID(line.text("node")), line.number("port")
        assert write_beacon(node, port) == line.frames[0]
        assert read_beacon(line.frames[0]) == (node, port)
    for line in lines("not-beacon"):
        assert read_beacon(line.frames[0]) is None


# Peers that lie.


def lonely(**options: int) -> tuple[Network, Station]:
    network = Network()
    return network, network.add(**options)


def hello(**changes: object) -> list[bytes]:
    fields: dict[str, object] = {"endpoint": "tcp://10.0.0.77:1", "name": "liar"}
    return Message(Kind.HELLO, 1, **(fields | changes)).write()


LIAR = identity(uuid.UUID(int=77))


@pytest.mark.parametrize("seed", range(10))
def test_no_bytes_harm_a_node(seed: int) -> None:
    dice = random.Random(seed)
    network, station = lonely()
    station.machine.contest(GROUP)
    whole = [line.frames for line in lines("zre")] + [hello(groups=[GROUP])]
    known = uuid.UUID(int=99).hex
    for _ in range(2000):
        parts = list(dice.choice(whole))
        frame = bytearray(parts[0])
        for _ in range(dice.randrange(4)):
            frame[dice.randrange(len(frame))] = dice.choice([0, 1, 2, 255, dice.randrange(256)])
        parts[0] = bytes(frame[: dice.choice([len(frame), dice.randrange(len(frame) + 1)])])
        sender = dice.choice([LIAR, identity(uuid.UUID(int=dice.randrange(9))), b"", b"\x01abc"])
        station.machine.handle_message([sender, *parts], network.now)
        station.machine.handle_beacon(dice.randbytes(dice.choice([22, 22, 5])), "h", network.now)
        beacon = b"ZRE\x01" + dice.randbytes(18)
        station.machine.handle_beacon(beacon, "10.0.0.66", network.now)
        station.machine.handle_announcement(dice.choice([known, "key"]), "tcp://a:1|k", network.now)
        network.settle()
    network.run(40_000)
    assert len(station.mailboxes) <= 100
    assert station.machine.dropped > 0


def test_forged_beacons_do_not_keep_real_peers_out() -> None:
    network, station = lonely(max_peers=10)
    for number in range(1000):
        beacon = write_beacon(uuid.UUID(int=1000 + number), 1 + number)
        station.machine.handle_beacon(beacon, "10.0.0.66", network.now)
    network.settle()
    assert len(station.mailboxes) == 10
    network.add()
    network.run(1000)
    assert station.names() == {"n2"}


def test_forged_beacons_open_a_limited_number_of_sockets() -> None:
    network, station = lonely(max_peers=10_000)
    opened = set()
    for number in range(20_000):
        beacon = write_beacon(uuid.UUID(int=1000 + number), 1 + number)
        station.machine.handle_beacon(beacon, "10.0.0.66", network.now)
        if number % 2000 == 0:
            network.settle()
            assert len(station.mailboxes) <= 100
            opened.update(station.mailboxes)
            network.run(1000)
    assert len(opened) <= 1100
    assert station.machine.dropped > 18_000
    # Real nodes that hear this one say hello. Those that gossip announces have a place, too.
    network.add()
    network.run(1000)
    assert station.names() == {"n2"}
    announced = uuid.UUID(int=7)
    station.machine.handle_announcement(announced.hex.upper(), "tcp://10.0.0.7:1", network.now)
    network.settle()
    assert announced in station.mailboxes


def flood(station: Station, count: int, now: float) -> None:
    """Announces nodes that do not exist."""
    for number in range(1, count + 1):
        forged = uuid.UUID(int=10_000 + number)
        station.machine.handle_announcement(forged.hex, f"tcp://10.1.0.1:{number}", now)


@pytest.mark.parametrize("count", [3000, 12_000])
def test_forged_gossip_opens_a_limited_number_of_sockets_and_keeps_no_node_out(count: int) -> None:
    network = Network(beacons=False)
    one, other = network.add(max_peers=1000), network.add()
    one.machine.handle_announcement(other.machine.uuid.hex, other.endpoint, network.now)
    network.settle()
    flood(one, count, network.now)
    network.settle()
    assert len(one.mailboxes) == 101
    assert len(one.machine._announced) <= 10_000
    third = network.add()
    one.machine.handle_announcement(third.machine.uuid.hex, third.endpoint, network.now)
    network.run(2000)
    assert one.names() == {"n2", "n3"}
    # A node that was not announced here says hello.
    fourth = network.add()
    fourth.machine.handle_announcement(one.machine.uuid.hex, one.endpoint, network.now)
    network.settle()
    assert one.names() == {"n2", "n3", "n4"}
    assert not any(isinstance(event, Exit) for event in one.take())


def test_nodes_that_gossip_announced_before_a_flood_are_found_in_the_end() -> None:
    network = Network(beacons=False)
    one, other = network.add(), network.add()
    flood(one, 100, network.now)
    one.machine.handle_announcement(other.machine.uuid.hex, other.endpoint, network.now)
    flood(one, 1000, network.now)
    network.run(20_000)
    assert one.names() == {"n2"}
    # Nodes that do not exist are given up.
    network.run(1_000_000)
    assert one.names() == {"n2"}
    assert len(one.machine._announced) == len(one.mailboxes) == 1


def test_more_announced_nodes_than_may_be_strangers_are_all_found_at_once() -> None:
    network = Network(beacons=False)
    one, *others = [network.add(max_peers=1000) for _ in range(250)]
    for other in others:
        one.machine.handle_announcement(other.machine.uuid.hex, other.endpoint, network.now)
    network.settle()
    assert len(one.names()) == len(others)


def test_peers_that_said_hello_are_not_forgotten_for_others() -> None:
    network, station = lonely(max_peers=2)
    for _ in range(4):
        network.add()
    network.run(5000)
    assert len(station.names()) == 2
    assert [event for event in station.take() if isinstance(event, Exit)] == []


@pytest.mark.parametrize(
    "frame",
    [
        hello()[0][:-4] + struct.pack(">I", MAX_HEADERS + 1),
        hello()[0][:-4] + struct.pack(">I", 2**32 - 1),
        hello(groups=[str(number) for number in range(MAX_GROUPS + 1)])[0],
        hello(groups=["x" * 256])[0],
        hello(headers={"x": "y" * 70_000})[0],
        hello(endpoint="ipc:///tmp/x")[0],
        hello(endpoint="inproc://x")[0],
        hello(endpoint="")[0],
    ],
    ids=["headers", "many", "groups", "group", "size", "ipc", "inproc", "empty"],
)
def test_a_hello_that_asks_too_much_is_ignored(frame: bytes) -> None:
    network, station = lonely()
    station.machine.handle_message([LIAR, frame], network.now)
    network.settle()
    assert station.mailboxes == {}
    assert station.take() == []
    assert station.machine.dropped == 1


def test_each_message_without_room_is_counted_once() -> None:
    network, station = lonely(max_peers=1)
    machine, other = station.machine, uuid.UUID(int=78)
    machine.handle_message([LIAR, *hello()], network.now)
    endpoint = "tcp://10.0.0.78:1"
    machine.handle_message([identity(other), *hello(endpoint=endpoint)], network.now)
    assert machine.dropped == 1
    machine.handle_beacon(write_beacon(other, 1), "h", network.now)
    assert machine.dropped == 2
    # The node is known from gossip now, and waits for a place.
    machine.handle_announcement(other.hex, endpoint, network.now)
    assert machine.dropped == 2
    machine.handle_message([identity(other), *Message(Kind.PING, 2).write()], network.now)
    assert machine.dropped == 3
    network.settle()
    assert [type(event) for event in station.take()] == [Enter]
    machine.handle_message([LIAR, *Message(Kind.GOODBYE, 2).write()], network.now)
    network.run(1000)
    assert list(station.mailboxes) == [other]


def test_a_peer_joins_no_more_groups_than_it_may() -> None:
    network, station = lonely()
    station.machine.handle_message([LIAR, *hello()], network.now)
    for number in range(MAX_GROUPS + 10):
        join = Message(Kind.JOIN, number + 2, group=f"g{number}", status=number % 256)
        station.machine.handle_message([LIAR, *join.write()], network.now)
    network.settle()
    [peer] = station.machine.peers()
    assert len(peer.groups) == MAX_GROUPS
    assert station.machine.dropped == 10


def test_peers_cannot_elect_a_stranger() -> None:
    network, station = lonely()
    station.machine.join(GROUP)
    station.machine.handle_message([LIAR, *hello(groups=[GROUP])], network.now)
    stranger = uuid.UUID(int=1234).hex
    for number, kind in enumerate((Kind.ELECT, Kind.LEADER)):
        lie = Message(kind, number + 2, group=GROUP, member=stranger)
        station.machine.handle_message([LIAR, *lie.write()], network.now)
    network.settle()
    assert [event for event in station.take() if isinstance(event, Leader)] == []


def test_leftovers_of_an_earlier_connection_are_ignored() -> None:
    network, station = lonely()
    whispers = [Message(Kind.WHISPER, n, content=[b"%d" % n]).write() for n in range(9)]
    for parts in (hello(), whispers[2], hello(), whispers[3], whispers[4], whispers[2]):
        station.machine.handle_message([LIAR, *parts], network.now)
    network.settle()
    assert [type(event) for event in station.take()] == [Enter, Whisper, Exit, Enter, Whisper]
    assert station.machine.dropped == 2
    # Any other number is a gap, and others may follow it on its connection.
    for parts in (whispers[6], whispers[7], hello(), whispers[8], whispers[2]):
        station.machine.handle_message([LIAR, *parts], network.now)
    network.settle()
    assert [type(event) for event in station.take()] == [Exit, Enter, Whisper]


def test_leftovers_of_an_expired_peer_are_ignored() -> None:
    network, station = lonely()
    ping_oks = [Message(Kind.PING_OK, n).write() for n in range(4)]
    station.machine.handle_message([LIAR, *hello()], network.now)
    network.run(40_000)
    for parts in (ping_oks[2], hello(), ping_oks[3], ping_oks[2]):
        station.machine.handle_message([LIAR, *parts], network.now)
    network.settle()
    kinds = [type(event) for event in station.take()]
    assert kinds == [Enter, Evasive, Silent, Exit, Enter]
    assert len(station.machine.peers()) == 1


def test_numbers_of_peers_that_are_gone_have_a_bound() -> None:
    network, station = lonely(max_peers=10)
    for number in range(100):
        liar = identity(uuid.UUID(int=100 + number))
        for message in (hello(), Message(Kind.GOODBYE, 2).write()):
            station.machine.handle_message([liar, *message], network.now)
    assert len(station.machine._leftovers) == 10


def test_messages_before_hello_are_ignored() -> None:
    network, station = lonely()
    station.machine.handle_message([LIAR, *Message(Kind.WHISPER, 1).write()], network.now)
    network.settle()
    assert station.take() == []
    assert station.mailboxes == {}


def test_the_public_names_belong_to_the_package() -> None:
    for name in discovery.__all__:
        assert getattr(discovery, name).__module__ == "zeroxide.discovery"
    assert NodeMachine.__module__.endswith("_node_machine")
