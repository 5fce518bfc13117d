"""Clone's models one to five, as programs of examples/guide. Model six is in test_guide.py."""

import re

import pytest
from programs import line, output, stop

KEY, SEQUENCE, UUID, PROPERTIES, BODY = range(5)


@pytest.fixture
def endpoints(directory):
    """The addresses of a server: snapshots, updates, changes."""
    return [f"ipc://{directory}/{name}" for name in ("snapshots", "updates", "changes")]


@pytest.fixture
def bound(context):
    def bind(kind, endpoint):
        socket = context.socket(kind)
        socket.bind(endpoint)
        return socket

    return bind


@pytest.fixture
def connected(context):
    def connect(kind, endpoint):
        socket = context.socket(kind)
        socket.connect(endpoint)
        return socket

    return connect


def number(sequence):
    return sequence.to_bytes(8, "big")


def snapshot(socket, *request):
    """Asks a server for its map. Returns the messages before the last one, and the last one."""
    socket.send_multipart([b"ICANHAZ?", *request])
    messages = iter(socket.recv_multipart, None)
    values = []
    while (message := next(messages))[KEY] != b"KTHXBAI":
        values.append(message)
    return values, message


# ---- model one ----------------------------------------------------------------------


def test_copy_of_a_map_from_its_start(zmq, bound, programs, endpoints):
    client = programs.start("guide/clonecli1.py", endpoints[1], 3)
    publisher = bound(zmq.XPUB, endpoints[1])
    assert publisher.recv() == b"\x01"
    for sequence, key in enumerate([b"one", b"two", b"one"], 1):
        publisher.send_multipart([key, number(sequence), b"value"])
    assert output(client) == "3 messages in, 2 keys\n"


def test_random_changes(programs, endpoints):
    client = programs.start("guide/clonecli1.py", endpoints[1], 100)
    server = programs.start("guide/clonesrv1.py", endpoints[1])
    assert re.fullmatch(r"100 messages in, \d+ keys\n", output(client))
    assert re.fullmatch(r"[1-9]\d* messages out\n", stop(server))


# ---- model two ----------------------------------------------------------------------


def test_old_changes_are_ignored_after_the_snapshot(zmq, bound, programs, endpoints):
    snapshots, publisher = bound(zmq.ROUTER, endpoints[0]), bound(zmq.XPUB, endpoints[1])
    client = programs.start("guide/clonecli2.py", *endpoints[:2], 2)
    assert publisher.recv() == b"\x01"
    name, request = snapshots.recv_multipart()
    assert request == b"ICANHAZ?"
    for sequence, key in enumerate([b"old", b"older", b"oldest", b"new", b"same"], 4):
        publisher.send_multipart([key, number(sequence), b"later"])
    snapshots.send_multipart([name, b"same", number(2), b"value"])
    snapshots.send_multipart([name, b"KTHXBAI", number(6), b""])
    assert output(client) == "received snapshot=6\n2 messages in, 2 keys\n"


def test_snapshot_of_a_map_that_changes(zmq, connected, programs, endpoints):
    server = programs.start("guide/clonesrv2.py", *endpoints[:2])
    values, (_, sequence, body) = snapshot(connected(zmq.DEALER, endpoints[0]))
    # Its last change is among the values, and each key is there once.
    sequences = [value[SEQUENCE] for value in values]
    assert max(sequences, default=number(0)) == sequence
    assert len({value[KEY] for value in values}) == len(values)
    assert body == b""
    said = programs.run("guide/clonecli2.py", *endpoints[:2], 100)
    assert re.fullmatch(r"received snapshot=\d+\n100 messages in, \d+ keys\n", said)
    assert re.fullmatch(r"(sent snapshot=\d+\n){2}\d+ messages out\n", stop(server))


# ---- models three and four ----------------------------------------------------------


@pytest.mark.parametrize("model", [3, 4, 5])
def test_changes_of_all_clients_reach_each(programs, endpoints, model):
    server = programs.start(f"guide/clonesrv{model}.py", *endpoints)
    clients = [programs.start(f"guide/clonecli{model}.py", *endpoints, 20, 20) for _ in range(2)]
    seen = []
    for client in clients:
        said = output(client).splitlines()
        assert re.fullmatch(r"received snapshot=\d+, \d+ keys", said[0])
        updates = [int(re.fullmatch(r"received update=(\d+)", each)[1]) for each in said[1:-1]]
        assert updates == sorted(set(updates))
        assert re.fullmatch(r"20 messages in, \d+ keys", said[-1])
        seen.append(updates[-1])
    # Neither client has sent as many changes as it has received, unless the other one had ended.
    numbers = [int(each) for each in re.findall(r"publishing update=(\d+)", stop(server))]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= max(seen)


@pytest.mark.parametrize(
    ("model", "request_of_all", "extra"), [(3, [], []), (4, [b""], []), (5, [b""], [b"", b""])]
)
def test_server_numbers_the_changes(
    zmq, connected, programs, endpoints, model, request_of_all, extra
):
    server = programs.start(f"guide/clonesrv{model}.py", *endpoints)
    changes, snapshots = connected(zmq.PUSH, endpoints[2]), connected(zmq.DEALER, endpoints[0])
    for key in (b"/a", b"/b", b"/a"):
        changes.send_multipart([key, number(99), *extra, b"value of " + key])
    assert [line(server) for _ in range(3)] == [f"publishing update={n}" for n in (1, 2, 3)]
    snapshots.send_multipart([b"what?"])  # ignored
    values, end = snapshot(snapshots, *request_of_all)
    assert sorted(values) == [
        [b"/a", number(3), *extra, b"value of /a"],
        [b"/b", number(2), *extra, b"value of /b"],
    ]
    assert end[SEQUENCE] == number(3)
    assert line(server) == "sending snapshot=3"


@pytest.mark.parametrize(("model", "extra"), [(4, []), (5, [b"", b""])])
def test_clients_have_their_part_of_the_map(zmq, connected, programs, endpoints, model, extra):
    server = programs.start(f"guide/clonesrv{model}.py", *endpoints)
    changes = connected(zmq.PUSH, endpoints[2])
    for key in (b"/client/1", b"/other/1"):
        changes.send_multipart([key, number(0), *extra, b"value"])
    assert line(server) == "publishing update=1"
    assert line(server) == "publishing update=2"
    client = programs.start(f"guide/clonecli{model}.py", *endpoints, 3, 20)
    assert line(client) == "received snapshot=2, 1 keys"
    assert "3 messages in, " in output(client)
    values, end = snapshot(connected(zmq.DEALER, endpoints[0]), b"/other/")
    assert [value[KEY] for value in values] == [b"/other/1"]
    assert end[-1] == b"/other/"


# ---- model five ---------------------------------------------------------------------


def test_values_have_an_end(zmq, connected, programs, endpoints):
    server = programs.start("guide/clonesrv5.py", *endpoints)
    changes, updates = connected(zmq.PUSH, endpoints[2]), connected(zmq.SUB, endpoints[1])
    snapshots = connected(zmq.DEALER, endpoints[0])
    updates.subscribe("/short")
    assert snapshot(snapshots, b"")[0] == []
    assert line(server) == "sending snapshot=0"
    changes.send_multipart([b"/long", number(0), b"", b"", b"value"])
    changes.send_multipart([b"/short", number(0), b"name", b"ttl=1\n", b"value"])
    said = [line(server) for _ in range(3)]
    assert said == ["publishing update=1", "publishing update=2", "publishing delete=3"]
    while (update := updates.recv_multipart())[SEQUENCE] != number(3):
        assert update == [b"/short", number(2), b"name", b"ttl=1\n", b"value"]
    assert (update[KEY], update[UUID], update[BODY]) == (b"/short", b"name", b"")
    assert [value[KEY] for value in snapshot(snapshots, b"")[0]] == [b"/long"]


def test_client_names_an_end_and_obeys_it(zmq, bound, programs, endpoints):
    snapshots, publisher, changes = (
        bound(kind, endpoint)
        for kind, endpoint in zip((zmq.ROUTER, zmq.XPUB, zmq.PULL), endpoints, strict=True)
    )
    client = programs.start("guide/clonecli5.py", *endpoints, 2, 20)
    assert publisher.recv() == b"\x01/client/"
    name, *request = snapshots.recv_multipart()
    assert request == [b"ICANHAZ?", b"/client/"]
    for key in (b"/client/1", b"/client/2"):
        snapshots.send_multipart([name, key, number(1), b"", b"", b"value"])
    snapshots.send_multipart([name, b"KTHXBAI", number(2), b"", b"", b"/client/"])
    assert line(client) == "received snapshot=2, 2 keys"
    change = changes.recv_multipart()
    assert re.fullmatch(rb"/client/\d+", change[KEY])
    assert re.fullmatch(rb"ttl=\d+\n", change[PROPERTIES])
    assert len(change[UUID]) == 16
    publisher.send_multipart([b"/client/1", number(3), b"", b"", b""])
    publisher.send_multipart([b"/client/3", number(4), b"", b"ttl=5\n", b"value"])
    said = "received update=3\nreceived update=4\n2 messages in, 2 keys\n"
    assert output(client) == said
