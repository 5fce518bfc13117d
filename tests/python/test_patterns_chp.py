"""Clone follows RFC 12, and its machines lose no update."""

import pytest
from pattern_peers import commands

from zeroxide import patterns
from zeroxide.patterns._binary_star_state import PairState
from zeroxide.patterns._chp import Entry, check_subtree, hugz, kthxbai, three_endpoints
from zeroxide.patterns._clone_client import CloneClientMachine
from zeroxide.patterns._clone_server import CloneServerMachine

pytestmark = pytest.mark.zeroxide_only

ACTIVE = b"3"


def number(value):
    return value.to_bytes(8, "big")


# ---- the frames of the RFC ----------------------------------------------------------


def test_frames_are_those_of_the_rfc():
    assert hugz() == [b"HUGZ", bytes(8), b"", b"", b""]
    assert kthxbai(258, b"/a/") == [b"KTHXBAI", b"\0\0\0\0\0\0\1\2", b"", b"", b"/a/"]
    entry = Entry(b"key", 1, b"u" * 16, b"ttl=5\n", b"value")
    assert entry.frames() == [b"key", number(1), b"u" * 16, b"ttl=5\n", b"value"]
    assert entry.synced().frames() == [b"key", number(1), b"", b"", b"value"]
    assert Entry.read(entry.frames()) == entry


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b"k"],
        [b"k", b"short", b"", b"", b"v"],
        [b"k", bytes(8), b"short", b"", b"v"],
        [b"k", bytes(8), bytes(1_000_000), b"", b"v"],
        [b"k"] * 6,
    ],
)
def test_other_frames_are_no_entry(frames):
    assert Entry.read(frames) is None


@pytest.mark.parametrize(
    ("properties", "ttl"),
    [
        (b"", None),
        (b"ttl=5\n", 5),
        (b"a=b\nttl=0.5\n", 0.5),
        (b"ttl=x\n", None),
        (b"ttl=-1\n", None),
        (b"ttl=nan\n", None),
        (b"ttl=inf\n", None),
        (b"attl=5\n", None),
    ],
)
def test_time_to_live(properties, ttl):
    assert Entry(b"k", 0, b"", properties, b"v").ttl == ttl


@pytest.mark.parametrize(
    ("endpoint", "others"),
    [
        ("tcp://*:5556", ("tcp://*:5557", "tcp://*:5558")),
        ("tcp://[::1]:80", ("tcp://[::1]:81", "tcp://[::1]:82")),
        ("ipc:///tmp/a", ("ipc:///tmp/a+1", "ipc:///tmp/a+2")),
    ],
)
def test_a_server_has_three_endpoints(endpoint, others):
    assert three_endpoints(endpoint) == (endpoint, *others)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="needs a port"):
        three_endpoints("tcp://*:*")
    for subtree in ("config", "/", "/config", "config/", "//", 5):
        with pytest.raises(ValueError, match='subtree is "" or a path such as "/config/"'):
            check_subtree(subtree)
    assert check_subtree("/a/b/") == b"/a/b/"
    with pytest.raises(ValueError, match="a server of a pair needs peer, local and remote"):
        patterns.CloneServer("inproc://server", peer="inproc://peer")


# ---- the server, with a clock of the test -------------------------------------------


def server(*, pair=None, max_keys=100, max_bytes=1 << 20):
    return CloneServerMachine(pair, 1000, max_keys, 0, max_bytes)


def update(machine, key, value, uuid=b"", properties=b"", now=0):
    entry = Entry(key, 0, uuid, properties, value)
    machine.handle_message("collector", entry.frames(), now)


def published(machine):
    found = [Entry.read(parts) for link, parts in commands(machine) if link == "publisher"]
    return [(entry.key, entry.sequence, entry.value) for entry in found]


def snapshot(machine, subtree=b"", now=0):
    commands(machine)
    machine.handle_message("snapshots", [b"C", b"ICANHAZ?", subtree], now)
    return [parts for link, parts in commands(machine) if link == "snapshots"]


def test_updates_are_numbered_and_published():
    machine = server()
    update(machine, b"/a/1", b"one", b"u" * 16, b"name=x\n")
    [(_, parts)] = commands(machine)
    assert parts == [b"/a/1", number(1), b"u" * 16, b"name=x\n", b"one"]
    update(machine, b"/a/1", b"two")
    update(machine, b"/a/1", b"")
    assert published(machine) == [(b"/a/1", 2, b"two"), (b"/a/1", 3, b"")]


def test_a_snapshot_has_a_subtree_and_the_highest_number():
    machine = server()
    for key in (b"/a/1", b"/b/1", b"/a/2", b"/b/2"):
        update(machine, key, b"value", properties=b"name=x\n")
    assert snapshot(machine, b"/a/") == [
        [b"C", b"/a/1", number(1), b"", b"", b"value"],
        [b"C", b"/a/2", number(3), b"", b"", b"value"],
        [b"C", b"KTHXBAI", number(3), b"", b"", b"/a/"],
    ]
    assert snapshot(machine, b"/c/") == [[b"C", b"KTHXBAI", number(0), b"", b"", b"/c/"]]


def filled(keys):
    machine = server(max_keys=keys)
    for key in range(keys):
        update(machine, b"/k/%05d" % key, b"value")
    commands(machine)
    return machine


def slices(machine):
    """The messages of snapshots, by the turns in which they were sent."""
    found = [[parts for link, parts in commands(machine) if link == "snapshots"]]
    while machine.poll_timeout() == 0:
        machine.handle_timeout(0)
        found.append([parts for link, parts in commands(machine) if link == "snapshots"])
    return found


def test_a_large_snapshot_is_sent_between_other_work():
    machine = filled(1000)
    machine.handle_message("snapshots", [b"C", b"ICANHAZ?", b""], 0)
    [(_, first), *_] = commands(machine)
    assert first[1] == b"/k/00000"
    # Updates are published at once, and the snapshot is that of its beginning.
    for key, value in ((b"/k/00999", b"new"), (b"/k/00998", b""), (b"/l", b"more")):
        update(machine, key, value)
        assert [value for _, _, value in published(machine)] == [value]
    rest = slices(machine)
    assert all(len(parts) <= 201 for parts in rest)
    *entries, last = [parts for turn in rest for parts in turn]
    assert [parts[1] for parts in entries] == [b"/k/%05d" % key for key in range(200, 1000)]
    assert entries[-1][2:] == [number(1000), b"", b"", b"value"]
    assert last == [b"C", b"KTHXBAI", number(1000), b"", b"", b""]


def test_requests_of_one_client_for_snapshots_replace_each_other():
    machine = filled(1000)
    for _ in range(50):
        machine.handle_message("snapshots", [b"C", b"ICANHAZ?", b""], 0)
    machine.handle_message("snapshots", [b"D", b"ICANHAZ?", b"/k/00001"], 0)
    machine.handle_message("snapshots", [b"C", b"ICANHAZ?", b"/k/00002"], 0)
    ends = [parts for turn in slices(machine) for parts in turn if parts[1] == b"KTHXBAI"]
    assert [(parts[0], parts[5]) for parts in ends] == [
        (b"C", b""),
        (b"C", b"/k/00002"),
        (b"D", b"/k/00001"),
    ]


def test_clients_that_wait_for_a_snapshot_have_a_bound():
    machine = filled(1000)
    for client in range(10_005):
        machine.handle_message("snapshots", [b"%d" % client, b"ICANHAZ?", b""], 0)
    assert machine.dropped == 4  # one is served
    machine.handle_message("snapshots", [b"1", b"ICANHAZ?", b"/" * 5000], 0)
    assert machine.dropped == 5


def test_values_are_limited_in_bytes():
    machine = server(max_bytes=1000)
    for key in range(12):
        update(machine, b"%02d" % key, bytes(98))
    assert machine.dropped == 2
    update(machine, b"00", bytes(99))
    assert machine.dropped == 3
    update(machine, b"00", b"small")
    update(machine, b"01", b"")
    update(machine, b"20", bytes(150))
    assert machine.dropped == 3
    assert machine._bytes == sum(entry.size for entry in machine._map.values()) <= 1000


def test_updates_that_are_not_published_yet_are_limited_in_bytes():
    machine = server(pair=PairState(False, 1000, 0), max_bytes=1000)
    machine.handle_message("peer", [ACTIVE], 0)
    for key in range(12):
        update(machine, b"%02d" % key, bytes(98), uuid=b"%016d" % key)
        update(machine, b"%02d" % key, bytes(98), uuid=b"%016d" % key)
    assert machine.dropped == 2
    assert len(machine._pending) == 10


def test_a_value_with_a_time_to_live_ends():
    machine = server()
    update(machine, b"short", b"value", properties=b"ttl=2\n")
    update(machine, b"renewed", b"value", properties=b"ttl=2\n")
    update(machine, b"renewed", b"value", properties=b"ttl=5\n", now=1000)
    commands(machine)
    machine.handle_timeout(2000)
    assert published(machine) == [(b"short", 4, b"")]
    machine.handle_timeout(6000)
    assert published(machine)[0] == (b"renewed", 5, b"")
    assert machine._map == {}


def test_what_the_server_cannot_use_is_counted():
    machine = server(max_keys=1)
    machine.handle_message("collector", [b"rubbish"], 0)
    machine.handle_message("snapshots", [b"C", b"ICANHAZ?"], 0)
    machine.handle_message("snapshots", [b"C"], 0)
    assert machine.dropped == 3
    update(machine, b"one", b"1")
    update(machine, b"two", b"2")
    assert machine.dropped == 4
    assert published(machine) == [(b"one", 1, b"1")]


def test_ends_of_values_do_not_pile_up():
    machine = server()
    for count in range(1000):
        update(machine, b"key", b"%d" % count, properties=b"ttl=60\n")
    assert len(machine._ends) <= 102


def test_hugz_is_sent_while_there_are_no_updates():
    machine = server()
    update(machine, b"key", b"value", now=500)
    commands(machine)
    machine.handle_timeout(1000)
    assert commands(machine) == []
    machine.handle_timeout(1500)
    assert commands(machine) == [("publisher", hugz())]


def test_an_update_that_arrives_again_is_dropped():
    machine = server()
    for _ in range(2):
        update(machine, b"key", b"value", b"u" * 16)
    assert published(machine) == [(b"key", 1, b"value")]


def test_reserved_keys_and_too_many_keys_are_dropped():
    machine = server(max_keys=2)
    for key in (b"HUGZ", b"KTHXBAI", b"a", b"b", b"c", b"a"):
        update(machine, key, b"value")
    assert published(machine) == [(b"a", 1, b"value"), (b"b", 2, b"value"), (b"a", 3, b"value")]


# ---- a pair, with a clock of the test -----------------------------------------------


def passive(entries=(), sequence=7):
    """A passive server that has the map of its peer."""
    machine = server(pair=PairState(False, 1000, 0))
    machine.handle_message("peer", [ACTIVE], 0)
    assert ("mirror", [b"ICANHAZ!"]) in commands(machine)
    for entry in entries:
        machine.handle_message("mirror", entry.frames(), 0)
    machine.handle_message("mirror", kthxbai(sequence, b""), 0)
    commands(machine)
    return machine


def alive(machine, until):
    for now in range(0, until + 1, 500):
        machine.handle_timeout(now)
    commands(machine)


def takes_over(machine, now=5000):
    """Returns what a client finds after the peer has died, and what is published."""
    alive(machine, now)
    machine.handle_message("snapshots", [b"C", b"ICANHAZ?", b""], now)
    sent = commands(machine)
    found = [Entry.read(parts[1:]) for link, parts in sent if link == "snapshots"]
    updates = [Entry.read(parts) for link, parts in sent if link == "publisher"]
    return (
        {entry.key: entry.value for entry in found[:-1]},
        [(entry.key, entry.sequence) for entry in updates],
    )


def test_an_active_server_gives_its_map_with_everything_to_its_peer():
    machine = server()
    update(machine, b"key", b"value", b"u" * 16, b"ttl=9\n")
    update(machine, b"gone", b"value")
    update(machine, b"gone", b"")
    commands(machine)
    machine.handle_message("snapshots", [b"peer", b"ICANHAZ!"], 0)
    assert commands(machine) == [
        ("snapshots", [b"peer", b"key", number(1), b"u" * 16, b"ttl=9\n", b"value"]),
        ("snapshots", [b"peer", *kthxbai(3, b"")]),
    ]


def test_a_passive_server_has_the_map_and_the_updates_when_it_takes_over():
    machine = passive([Entry(b"old", 3, b"", b"", b"1"), Entry(b"gone", 4, b"", b"", b"1")])
    machine.handle_message("published", Entry(b"new", 8, b"", b"", b"2").frames(), 0)
    machine.handle_message("published", Entry(b"gone", 9, b"", b"", b"").frames(), 0)
    assert takes_over(machine) == ({b"old": b"1", b"new": b"2"}, [])
    update(machine, b"next", b"3", now=5001)
    assert published(machine) == [(b"next", 10, b"3")]


def test_updates_that_the_peer_did_not_publish_are_not_lost():
    machine = passive()
    for uuid in (b"a" * 16, b"b" * 16, b"c" * 16):
        update(machine, uuid[:1], b"value", uuid)
    # One of them is published before it arrives, one after.
    machine.handle_message("published", Entry(b"a", 8, b"a" * 16, b"", b"value").frames(), 0)
    machine.handle_message("published", Entry(b"d", 9, b"d" * 16, b"", b"value").frames(), 0)
    update(machine, b"d", b"value", b"d" * 16)
    values, updates = takes_over(machine)
    assert sorted(values) == [b"a", b"b", b"c", b"d"]
    assert updates == [(b"b", 10), (b"c", 11)]


def test_updates_that_a_living_peer_refused_are_forgotten():
    machine = passive()
    update(machine, b"refused", b"value", b"a" * 16)
    machine.handle_message("published", hugz(), 5001)
    update(machine, b"kept", b"value", b"b" * 16, now=5001)
    assert sorted(takes_over(machine, 9000)[0]) == [b"kept"]


def test_updates_during_the_transfer_of_the_map_are_applied_after_it():
    machine = server(pair=PairState(False, 1000, 0))
    machine.handle_message("peer", [ACTIVE], 0)
    for sequence in (6, 7, 8):
        entry = Entry(b"%d" % sequence, sequence, b"", b"", b"update")
        machine.handle_message("published", entry.frames(), 0)
    machine.handle_message("mirror", Entry(b"7", 7, b"", b"", b"map").frames(), 0)
    machine.handle_message("mirror", kthxbai(7, b""), 0)
    assert takes_over(machine)[0] == {b"7": b"map", b"8": b"update"}


def test_a_passive_server_that_missed_updates_asks_for_the_map():
    machine = passive()
    machine.handle_message("published", Entry(b"key", 9, b"", b"", b"1").frames(), 0)
    assert commands(machine) == [("reopen", "mirror"), ("mirror", [b"ICANHAZ!"])]
    machine.handle_message("published", Entry(b"key", 8, b"", b"", b"old").frames(), 0)
    assert machine._map == {}


def test_a_passive_server_asks_until_there_is_an_active_one():
    machine = server(pair=PairState(True, 1000, 0))
    machine.handle_timeout(0)
    asked = [("reopen", "mirror"), ("mirror", [b"ICANHAZ!"])]
    assert commands(machine)[-2:] == asked
    machine.handle_timeout(1000)
    assert commands(machine)[-2:] == asked
    machine.handle_message("snapshots", [b"C", b"ICANHAZ?", b""], 1001)
    machine.handle_message("snapshots", [b"peer", b"ICANHAZ!"], 1001)
    assert [link for link, _ in commands(machine)] == []


# ---- the client, with a clock of the test -------------------------------------------


ASKED_AGAIN = [("reopen", "snapshots"), ("snapshots", [b"ICANHAZ?", b""])]


def client(subtree=b""):
    machine = CloneClientMachine(2, subtree, 5000, 1000, 0)
    assert commands(machine) == [("snapshots", [b"ICANHAZ?", subtree])]
    return machine


def synced(subtree=b"", sequence=7, **values):
    machine = client(subtree)
    for key, value in values.items():
        frames = Entry(key.encode(), sequence, b"", b"", value).frames()
        machine.handle_message("snapshots", frames, 0)
    machine.handle_message("snapshots", kthxbai(sequence, subtree), 0)
    assert machine.is_synced
    # An update that was published before the map was sent: the client's subscription was there in time.
    follow(machine, sequence, b"earlier", b"1")
    commands(machine)
    return machine


def follow(machine, sequence, key, value, uuid=b"", now=0):
    machine.handle_message("updates", Entry(key, sequence, uuid, b"", value).frames(), now)


def test_a_client_has_the_map_and_follows_its_updates():
    machine = synced(a=b"1", b=b"1")
    follow(machine, 8, b"b", b"2")
    follow(machine, 9, b"c", b"3")
    follow(machine, 10, b"a", b"")
    assert machine.values == {"b": b"2", "c": b"3"}
    assert machine.changes == 4


def test_a_client_reads_updates_only_when_it_has_the_map():
    machine = client()
    assert not machine.wants("updates")
    machine.handle_message("snapshots", kthxbai(0, b""), 0)
    assert machine.wants("updates")


def test_a_client_goes_to_the_next_server():
    machine = synced(a=b"1")
    machine.handle_message("updates", hugz(), 4000)
    machine.handle_timeout(8999)
    assert machine.server == 0
    machine.handle_timeout(9000)
    assert machine.server == 1
    assert commands(machine) == [
        ("reopen", "snapshots"),
        ("reopen", "updates"),
        ("snapshots", [b"ICANHAZ?", b""]),
    ]
    # Its values are there until the other server has answered.
    assert machine.values == {"a": b"1"}
    machine.handle_message("snapshots", Entry(b"b", 2, b"", b"", b"2").frames(), 9000)
    machine.handle_message("snapshots", kthxbai(2, b""), 9000)
    assert machine.values == {"b": b"2"}


def test_a_client_asks_twice_before_it_goes_to_the_next_server():
    machine = client()
    machine.handle_timeout(2500)
    assert commands(machine) == ASKED_AGAIN
    machine.handle_timeout(5000)
    assert machine.server == 1


def test_a_map_that_takes_long_to_arrive_is_complete():
    machine = client()
    for now in (2000, 4000, 6000):
        machine.handle_message("snapshots", Entry(b"%d" % now, 1, b"", b"", b"1").frames(), now)
        machine.handle_timeout(now + 1999)
        assert commands(machine) == []
    # The rest does not arrive in time. It would not be taken for the next answer.
    machine.handle_timeout(8500)
    assert commands(machine) == ASKED_AGAIN
    machine.handle_message("snapshots", Entry(b"whole", 1, b"", b"", b"1").frames(), 8600)
    machine.handle_message("snapshots", kthxbai(1, b""), 8600)
    assert machine.values == {"whole": b"1"}


@pytest.mark.parametrize(
    "first", [hugz(), Entry(b"a", 9, b"", b"", b"9").frames()], ids=["hugz", "update"]
)
def test_a_map_that_is_older_than_the_subscription_is_fetched_again(first):
    machine = client()
    machine.handle_message("snapshots", kthxbai(7, b""), 0)
    # Number 8 may have been published after the map was sent, and before the subscription arrived.
    machine.handle_message("updates", first, 1)
    assert commands(machine) == ASKED_AGAIN
    assert machine.is_synced
    assert not machine.wants("updates")
    machine.handle_message("snapshots", Entry(b"b", 8, b"", b"", b"8").frames(), 2)
    machine.handle_message("snapshots", Entry(b"a", 9, b"", b"", b"9").frames(), 2)
    machine.handle_message("snapshots", kthxbai(9, b""), 2)
    assert machine.values == {"a": b"9", "b": b"8"}
    follow(machine, 11, b"a", b"11")
    machine.handle_message("updates", hugz(), 3)
    assert commands(machine) == []


@pytest.mark.parametrize("subtree", [b"", b"/a/"])
def test_numbers_that_begin_anew_are_those_of_a_server_that_has_restarted(subtree):
    machine = synced(subtree)
    follow(machine, 8, b"/a/1", b"1")
    follow(machine, 1, b"/a/1", b"new")
    assert not machine.is_synced
    assert machine.server == 0
    assert commands(machine)[-1] == ("snapshots", [b"ICANHAZ?", subtree])


def test_a_subtree_has_no_other_keys():
    machine = synced(b"/a/")
    # The subscription to HUGZ brings all keys that begin with it.
    follow(machine, 9, b"HUGZ/1", b"1")
    assert machine.values == {}


def test_a_client_that_missed_updates_fetches_the_map_again():
    machine = synced()
    follow(machine, 9, b"a", b"1")  # the number of the map may be lower
    follow(machine, 10, b"a", b"2")
    assert machine.is_synced
    follow(machine, 12, b"a", b"3")
    assert not machine.is_synced
    assert machine.server == 0
    # In a subtree, numbers are missing all the time.
    machine = synced(b"/a/")
    for sequence in (10, 20):
        follow(machine, sequence, b"/a/b", b"1")
    assert machine.is_synced


def test_an_own_update_is_sent_until_it_is_published():
    machine = synced()
    machine.set(b"a", b"1", 5, 0)
    machine.set(b"a", b"2", None, 1)
    (_, first), (_, second) = commands(machine)
    assert (first[3], second[3]) == (b"ttl=5\n", b"")
    machine.handle_timeout(1001)
    assert commands(machine) == [("publisher", second)]  # the newest value only
    follow(machine, 8, b"a", b"1", first[2], 1002)
    machine.handle_timeout(2001)
    assert commands(machine) == [("publisher", second)]
    follow(machine, 9, b"a", b"2", second[2], 2002)
    machine.handle_timeout(3001)
    assert commands(machine) == []


@pytest.mark.parametrize(
    ("ttl", "sent"), [(60, b"60"), (0.25, b"0.25"), (0.001, b"0.001"), (1_234_567, b"1234567")]
)
def test_a_time_to_live_is_sent_in_full(ttl, sent):
    machine = client()
    machine.set(b"key", b"value", ttl, 0)
    [(link, frames)] = commands(machine)
    assert (link, frames[3]) == ("publisher", b"ttl=%s\n" % sent)


def test_an_own_update_that_is_in_the_map_is_not_sent_again():
    machine = client()
    machine.set(b"a", b"1", None, 0)
    machine.set(b"b", b"", None, 0)
    machine.set(b"c", b"3", None, 0)
    machine.handle_message("snapshots", Entry(b"a", 1, b"", b"", b"1").frames(), 0)
    machine.handle_message("snapshots", kthxbai(1, b""), 0)
    commands(machine)
    machine.handle_timeout(1000)
    assert [parts[0] for _, parts in commands(machine)] == [b"c"]


def test_an_own_update_that_is_never_published_is_given_up():
    machine = synced()
    machine.set(b"refused", b"1", None, 0)
    sent = 0
    for now in range(0, 20_000, 500):
        machine.handle_message("updates", hugz(), now)
        machine.handle_timeout(now)
        sent += len(commands(machine))
    assert sent == 6
    assert machine._unconfirmed == {}


def test_a_limited_number_of_updates_waits_for_a_server():
    machine = synced()
    for count in range(10_000):
        machine.set(b"%d" % count, b"1", None, 0)
    machine.set(b"0", b"2", None, 0)
    with pytest.raises(BufferError):
        machine.set(b"more", b"1", None, 0)
