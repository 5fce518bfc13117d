"""Nodes of `zeroxide.discovery` and Zyre find each other and talk, each on a machine of its own."""

from pathlib import Path
from typing import Any

import pytest
from faults.machines import Machines
from zyre_library import CZMQ, ZYRE

pytestmark = pytest.mark.skipif(CZMQ is None, reason="czmq is not installed")

needs_zyre = pytest.mark.skipif(ZYRE is None, reason="Zyre is not installed: see zyre_library.py")

HERE = str(Path(__file__).parent)

# Greets each peer, shouts each whisper to the group, and leaves at the whisper `leave`.
ZYRE_NODE = f"""
import os
sys.path.insert(0, {HERE!r})
from zyre_library import Zyre

node = Zyre("zyre", "from C", *(argument or None for argument in sys.argv[1:]))
node.call("start")
node.call("join", "chat")
while True:
    kind, peer, name, *rest = node.receive()
    print(kind.decode(), name.decode(), *(part.decode(errors="replace") for part in rest[-1:]), flush=True)
    if kind == b"ENTER":
        node.call("whispers", peer.decode(), "welcome")
    elif kind == b"WHISPER" and rest == [b"leave"]:
        node.call("stop")
        os._exit(0)
    elif kind == b"WHISPER":
        node.call("shouts", "chat", rest[0].decode())
"""

OWN_NODE = """
import os
from zeroxide.discovery import Enter, Evasive, Exit, Join, Leader, Node, Shout, Whisper

def expect(kind):
    while not isinstance(event := node.recv(30_000), kind):
        assert event is not None, kind
        assert not isinstance(event, (Evasive, Exit)), event
    return event

gossip, gossip_bind = (argument or None for argument in sys.argv[1:])
hubs = [gossip] if gossip else []
node = Node("own", headers={"a": "b"}, gossip=hubs, gossip_bind=gossip_bind)
print("up", flush=True)
enter = expect(Enter)
assert (enter.name, dict(enter.headers)) == ("zyre", {"X-TEST": "from C"}), enter
assert expect(Join).group == "chat"
assert expect(Whisper).content == [b"welcome"]
assert node.recv(7000) is None  # it is quiet for longer than `evasive`, and answers
node.contest("chat")
expect(Leader)
assert node.shout("chat", b"to all") == 1
node.whisper(enter.peer, b"echo")
assert expect(Shout).content == [b"echo"]
node.leave("chat")
node.whisper(enter.peer, b"leave")
while not isinstance(event := node.recv(30_000), Exit):
    pass
assert event.reason == "goodbye", event
node.close()
print("done", flush=True)
"""

SAID = ["ENTER own", "JOIN own chat", "LEADER own chat", "SHOUT own to all", "WHISPER own echo"]


def converse(machines: Machines, zyre: list[str], own: list[str], *, same: bool) -> None:
    place = machines.home if same else machines.place
    first, second = (machines.home, OWN_NODE, own), (place, ZYRE_NODE, zyre)
    if zyre[1]:
        first, second = second, first
    programs = [
        machines.start(machine, "zeroxide", script, *arguments)
        for machine, script, arguments in (first, second)
    ]
    own_program, zyre_program = programs if first[1] == OWN_NODE else programs[::-1]
    assert reads(own_program) == ["up", "done"]
    said = [line.replace("  ", " ") for line in reads(zyre_program)]
    rest = iter(line for line in said if line.startswith(("ENTER", *SAID)))
    for expected in SAID:
        assert any(line.startswith(expected) for line in rest), f"no {expected} in {said}"
    assert "LEAVE own chat" in said
    assert said[-1] == "WHISPER own leave"


def reads(program: Any) -> list[str]:
    return [line.strip() for line in program.stdout]


@needs_zyre
def test_zyre_by_beacons(machines: Machines) -> None:
    machines.cable()
    machines.plug_in()
    converse(machines, ["", ""], ["", ""], same=False)


@needs_zyre
def test_zyre_by_gossip_of_an_own_node(machines: Machines) -> None:
    hub = "tcp://127.0.0.1:5670"
    converse(machines, [hub, ""], ["", hub], same=True)


@needs_zyre
def test_zyre_by_gossip_of_zyre(machines: Machines) -> None:
    hub = "tcp://127.0.0.1:5670"
    converse(machines, ["", hub], [hub, ""], same=True)


def test_beacons_of_czmq(machines: Machines) -> None:
    """A beacon of czmq's zbeacon makes a node connect, and the node's beacons reach zbeacon."""
    machines.cable()
    machines.plug_in()
    listener = machines.start(
        machines.place,
        "zeroxide",
        f"""
        import os, uuid
        sys.path.insert(0, {HERE!r})
        from zyre_library import Czmq
        from zeroxide.discovery._zre import Kind, Message

        own = uuid.uuid4()
        with zmq.Context() as context, context.socket(zmq.ROUTER) as inbox:
            inbox.bind("tcp://*:*")
            port = int(inbox.last_endpoint.rpartition(b":")[2])
            beacon = Czmq("zbeacon")
            beacon.send(b"CONFIGURE", b"5670")
            assert beacon.receive() == [b"10.77.0.1"]
            beacon.send(b"SUBSCRIBE", b"ZRE")
            beacon.send(b"PUBLISH", b"ZRE\\x01" + own.bytes + port.to_bytes(2, "big"), b"100")
            host, data = beacon.receive()
            assert (len(data), data[:4]) == (22, b"ZRE\\x01"), data
            node, port = data[4:20], int.from_bytes(data[20:], "big")
            routing_id, *frames = inbox.recv_multipart()
            hello = Message.read(frames)
            assert routing_id == b"\\x01" + node
            assert hello.endpoint == f"tcp://10.77.0.2:{{port}}", hello
            assert (host, hello.kind, hello.name) == (b"10.77.0.2", Kind.HELLO, "own")
        print("done", flush=True)
        os._exit(0)
        """,
    )
    machines.start(
        machines.home,
        "zeroxide",
        """
        from zeroxide.discovery import Node
        node = Node("own", interval=50)
        node.recv()
        """,
    )
    assert reads(listener) == ["done"]


def test_gossip_of_czmq(machines: Machines) -> None:
    """Nodes find each other through czmq's zgossip, which also learns from them when they are the hub."""
    program = machines.start(
        machines.home,
        "zeroxide",
        f"""
        import os
        sys.path.insert(0, {HERE!r})
        from zyre_library import Czmq
        from zeroxide.discovery import Enter, Node

        hub = Czmq("zgossip")
        hub.send(b"BIND", b"tcp://127.0.0.1:5670")
        one = Node("one", gossip="tcp://127.0.0.1:5670", gossip_bind="tcp://127.0.0.1:*")
        assert hub.receive() == [b"DELIVER", one.uuid.hex.upper().encode(), one.endpoint.encode()]
        # Longer than the second after which zgossip forgets a client that is silent.
        assert one.recv(2500) is None
        two = Node("two", gossip="tcp://127.0.0.1:5670")
        assert isinstance(one.recv(30_000), Enter)
        assert isinstance(two.recv(30_000), Enter)
        client = Czmq("zgossip")
        client.send(b"CONNECT", one.gossip_endpoint.encode())
        client.send(b"PUBLISH", b"key", b"value")
        keys = {{client.receive()[1] for _ in range(3)}}
        assert keys == {{b"key", *(node.uuid.hex.upper().encode() for node in (one, two))}}, keys
        hub.receive()
        assert hub.receive() == [b"DELIVER", b"key", b"value"]
        print("done", flush=True)
        os._exit(0)
        """,
    )
    assert reads(program) == ["done"]
