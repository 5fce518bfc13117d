"""Nodes of `zeroxide.discovery` over UDP and TCP: they find each other, talk, die and return."""

import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faults.machines import Machines
from support import PATIENCE, Background, eventually, free_udp_port, run_script

import zeroxide as zmq
from zeroxide.discovery import (
    AsyncNode,
    Enter,
    Evasive,
    Event,
    Exit,
    Join,
    Leader,
    Node,
    Shout,
    Whisper,
)
from zeroxide.discovery import _driver as driver
from zeroxide.discovery._zre import Kind, Message, identity

pytestmark = pytest.mark.zeroxide_only

LONG = PATIENCE * 1000

# Times for tests in which peers die.
HASTY = {"interval": 50, "evasive": 500, "expired": 1500}

# Prints its events until it is killed.
PROGRAM = """
import json, sys
from zeroxide.discovery import Node
with Node(**json.loads(sys.argv[1])) as node:
    node.join("chat")
    print("up", node.uuid, flush=True)
    for event in node:
        print(type(event).__name__, event.name, getattr(event, "reason", ""), flush=True)
"""


@pytest.fixture
def port() -> int:
    """A UDP port that no other test uses."""
    return free_udp_port()


@pytest.fixture
def node(port: int) -> Iterator[Callable[..., Node]]:
    """Makes nodes that see each other, and only each other."""
    nodes: list[Node] = []

    def make(name: str, **options: Any) -> Node:
        if not options.keys() & {"gossip", "gossip_bind"}:
            options["port"] = port
        nodes.append(Node(name, **{"interface": "lo", "interval": 50, **options}))
        return nodes[-1]

    yield make
    for each in nodes:
        each.close()


def expect(node: Node, *kinds: type[Event]) -> list[Any]:
    """Returns the next events, which are of these kinds."""
    events = [node.recv(LONG) for _ in kinds]
    assert [type(event) for event in events] == list(kinds)
    return events


def find(node: Node, kind: type[Event]) -> Any:
    """Returns the next event of a kind; others are ignored."""
    while not isinstance(event := node.recv(LONG), kind):
        assert event is not None
    return event


def until_joined(node: Node, name: str) -> None:
    """Waits until the peer of this name has joined a group."""
    while find(node, Join).name != name:
        pass


@pytest.fixture
def program() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts a node in a process of its own, and waits until it is up."""
    processes: list[subprocess.Popen[str]] = []

    def start(**options: Any) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", PROGRAM, json.dumps({"interface": "lo", **options})]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert processes[-1].stdout.readline().startswith("up")
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_nodes_find_each_other_and_talk(node: Callable[..., Node]) -> None:
    one, other = node("one", headers={"room": "1"}), node("other")
    [enter] = expect(other, Enter)
    assert enter == Enter(one.uuid, "one", one.endpoint, {"room": "1"})
    expect(one, Enter)
    one.join("chat")
    assert expect(other, Join) == [Join(one.uuid, "one", "chat")]
    assert one.groups == ["chat"]
    [peer] = other.peers
    assert (peer.name, peer.groups, peer.is_evasive) == ("one", frozenset({"chat"}), False)
    assert other.peer(one.uuid) == peer
    assert other.shout("chat", b"all") == 1
    assert other.whisper(one.uuid, [b"only", b"you"])
    assert expect(one, Shout, Whisper) == [
        Shout(other.uuid, "other", "chat", [b"all"]),
        Whisper(other.uuid, "other", [b"only", b"you"]),
    ]
    other.close()
    assert expect(one, Exit)[0].reason == "goodbye"
    assert one.peers == []


def test_a_node_elects_a_leader(node: Callable[..., Node]) -> None:
    one, other = node("one"), node("other")
    expect(one, Enter), expect(other, Enter)
    one.join("chat")
    expect(other, Join)
    other.contest("chat")
    assert find(one, Leader).peer == find(other, Leader).peer == other.uuid


def test_thirty_thousand_messages_arrive(node: Callable[..., Node]) -> None:
    one, other = node("one"), node("other")
    expect(one, Enter), expect(other, Enter)
    receiver = Background(lambda: [other.recv(LONG).content for _ in range(30_000)])
    sent = 0
    while sent < 30_000:
        # No more than the mailbox and the sockets hold: the sender is not made to wait.
        eventually(lambda: len(other._driver._events) < 1000)
        for _ in range(1000):
            one.whisper(other.uuid, b"%d" % sent)
            sent += 1
    assert receiver.result() == [[b"%d" % number] for number in range(30_000)]


def test_asyncio(port: int) -> None:
    async def main() -> None:
        options = {"interface": "lo", "port": port, "interval": 50}
        async with AsyncNode("one", **options) as one, AsyncNode("other", **options) as other:
            enter = await other.recv(LONG)
            assert isinstance(enter, Enter)
            assert isinstance(await one.recv(LONG), Enter)
            assert await one.recv(0) is None
            assert await one.recv(10) is None
            waiting = [asyncio.create_task(one.recv()) for _ in range(3)]
            await asyncio.sleep(0)
            waiting.pop().cancel()
            for text in (b"1", b"2"):
                other.whisper(one.uuid, text)
            contents = {(await task).content[0] for task in waiting}
            assert contents == {b"1", b"2"}
            await leave(one, other)

    async def leave(one: AsyncNode, other: AsyncNode) -> None:
        other.close()
        events = [event async for event in closing(one)]
        assert [type(event) for event in events] == [Exit]
        with pytest.raises(zmq.ZMQError, match="closed"):
            await one.recv()

    async def closing(node: AsyncNode) -> Any:
        async for event in node:
            yield event
            node.close()

    asyncio.run(main())


def test_a_busy_loop_does_not_stop_a_node(port: int, node: Callable[..., Node]) -> None:
    one = node("one")

    async def main() -> None:
        options = {"interface": "lo", "port": port, "interval": 50}
        async with AsyncNode("busy", **options) as busy:
            expect(one, Enter)
            # This blocks the loop. The node's own thread, which also sends beacons and answers, goes on.
            for number in range(1, 20):
                assert one.whisper(busy.uuid, b"still there?")
                eventually(lambda number=number: len(busy._driver._events) > number)

    asyncio.run(main())


def test_an_event_that_arrives_in_time_while_the_loop_is_busy(
    port: int, node: Callable[..., Node]
) -> None:
    one = node("one")

    async def main() -> None:
        options = {"interface": "lo", "port": port, "interval": 50}
        async with AsyncNode("busy", **options) as busy:
            assert isinstance(await busy.recv(LONG), Enter)
            expect(one, Enter)
            waiting = asyncio.create_task(busy.recv(200))
            await asyncio.sleep(0)
            one.whisper(busy.uuid, b"hello")
            eventually(lambda: busy._driver._events)
            time.sleep(0.3)
            event = await waiting
            assert isinstance(event, Whisper)

    asyncio.run(main())


def test_a_killed_peer_is_evasive_and_then_gone(
    port: int, node: Callable[..., Node], program: Callable[..., "subprocess.Popen[str]"]
) -> None:
    one, other = node("one", **HASTY), node("other", **{**HASTY, "expired": LONG})
    peer = program(name="peer", port=port, **HASTY)
    for each in (one, other):
        until_joined(each, "peer")
    peer.send_signal(signal.SIGKILL)
    # A busy machine may have made it evasive before.
    eventually(lambda: [each.is_evasive for each in other.peers if each.name == "peer"] == [True])
    assert find(other, Evasive)
    assert find(one, Exit).reason == "expired"


def test_a_stopped_peer_is_gone_and_returns(
    port: int, node: Callable[..., Node], program: Callable[..., "subprocess.Popen[str]"]
) -> None:
    one = node("one", **HASTY)
    peer = program(name="peer", port=port, **HASTY)
    find(one, Join)
    peer.send_signal(signal.SIGSTOP)
    assert find(one, Exit).reason == "expired"
    peer.send_signal(signal.SIGCONT)
    assert find(one, Join).group == "chat"
    heard = Background(lambda: any("Whisper one" in line for line in peer.stdout))

    def is_heard() -> bool:
        # Until the peer knows that this node is still there, it may drop a message.
        for found in one.peers:
            one.whisper(found.uuid, b"still there?")
        return not heard.is_alive()

    eventually(is_heard)
    assert heard.result()


def test_a_killed_peer_of_the_gossip_network_is_gone(
    node: Callable[..., Node], program: Callable[..., "subprocess.Popen[str]"]
) -> None:
    hub = node("hub", gossip_bind="tcp://127.0.0.1:*", **HASTY)
    one = node("one", gossip=hub.gossip_endpoint, **HASTY)
    peer = program(name="peer", gossip=hub.gossip_endpoint, **HASTY)
    while find(one, Join).name != "peer":
        pass
    peer.send_signal(signal.SIGKILL)
    assert find(one, Exit).reason == "expired"


def test_gossip_reaches_nodes_that_are_not_connected(node: Callable[..., Node]) -> None:
    first = node("first", gossip_bind="tcp://127.0.0.1:*")
    second = node("second", gossip=first.gossip_endpoint, gossip_bind="tcp://127.0.0.1:*")
    third = node("third", gossip=[second.gossip_endpoint])
    assert {each.name for each in expect(first, Enter, Enter)} == {"second", "third"}
    assert {each.name for each in expect(third, Enter, Enter)} == {"first", "second"}
    first.close()
    assert find(third, Exit).reason == "goodbye"


def test_more_tuples_than_fit_into_a_connection_reach_a_new_node(
    node: Callable[..., Node],
) -> None:
    hub = node("hub", gossip_bind="tcp://127.0.0.1:*")
    gossip = hub._driver._gossip
    assert gossip is not None
    with hub._driver._lock:
        for number in range(3000):
            gossip.publish(f"{number}", "v" * 2000, driver.clock())
    late = node("late", gossip=hub.gossip_endpoint)
    learned = late._driver._gossip
    assert learned is not None
    eventually(lambda: len(learned._tuples) == 3002)
    assert hub.dropped == late.dropped == 0


def test_a_hub_of_the_gossip_network_may_start_last_and_again(node: Callable[..., Node]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    one, other = node("one", gossip=place), node("other", gossip=place)
    hub = node("hub", gossip_bind=place)
    expect(one, Enter, Enter), expect(other, Enter, Enter), expect(hub, Enter, Enter)
    hub.close()
    find(one, Exit), find(other, Exit)
    again = eventually(lambda: bound(node, place))
    assert find(one, Enter).name == find(other, Enter).name == "again"
    assert {each.name for each in expect(again, Enter, Enter)} == {"one", "other"}


def bound(node: Callable[..., Node], place: str) -> Node | None:
    try:
        return node("again", gossip_bind=place)
    except zmq.ZMQError:
        return None


@pytest.mark.parametrize("by_gossip", [False, True], ids=["beacons", "gossip"])
def test_a_cut_link_ends_peers_and_brings_them_back(machines: Machines, by_gossip: bool) -> None:
    machines.cable()
    machines.plug_in()
    options: dict[str, Any] = {"name": "far", **HASTY}
    if by_gossip:
        options["gossip_bind"] = "tcp://*:5670"
    far = machines.start(machines.place, "zeroxide", PROGRAM, json.dumps(options))
    assert far.stdout.readline().startswith("up")
    options = {"name": "near", **HASTY}
    if by_gossip:
        options["gossip"] = "tcp://10.77.0.1:5670"
    near = machines.start(machines.home, "zeroxide", PROGRAM, json.dumps(options))
    for program, peer in ((near, "far"), (far, "near")):
        reads(program, f"Join {peer}")
    machines.cut()
    for program, peer in ((near, "far"), (far, "near")):
        reads(program, f"Exit {peer} expired")
    machines.plug_in()
    for program, peer in ((near, "far"), (far, "near")):
        reads(program, f"Join {peer}")


def reads(program: Any, text: str) -> None:
    """Waits until a program prints a line."""
    while (line := program.stdout.readline().strip()) != text:
        assert line, f"no {text}"


def test_what_is_not_read_is_bounded(
    node: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_MAX_EVENTS", 10)
    one, other = node("one"), node("other")
    eventually(lambda: one.peers and other.peers)
    for number in range(20):
        one.whisper(other.uuid, b"%d" % number)
    eventually(lambda: other.dropped == 11)
    expect(other, Enter)
    contents = [find(other, Whisper).content for _ in range(9)]
    assert contents == [[b"%d" % number] for number in range(9)]
    # From the first call on, what finds no room waits in the sockets.
    for number in range(20):
        one.whisper(other.uuid, b"%d" % number)
    eventually(lambda: len(other._driver._events) == 10)
    contents = [find(other, Whisper).content for _ in range(20)]
    assert contents == [[b"%d" % number] for number in range(20)]
    assert other.dropped == 11


def test_calls_of_a_closed_node_raise(node: Callable[..., Node]) -> None:
    one = node("one")
    waiting = Background(lambda: list(one))
    eventually(lambda: one._driver._is_read)
    one.close()
    assert waiting.result() == []
    one.close()
    for call in (
        lambda: one.recv(0),
        lambda: one.join("chat"),
        lambda: one.shout("chat", b""),
        lambda: one.whisper(uuid.uuid4(), b""),
    ):
        with pytest.raises(zmq.ZMQError, match="this node is closed"):
            call()
    assert one.peers == []


def test_a_forgotten_node_says_goodbye(node: Callable[..., Node], port: int) -> None:
    one = node("one")
    forgotten = Node("forgotten", interface="lo", port=port, interval=50)
    expect(one, Enter)
    del forgotten
    gc.collect()
    assert expect(one, Exit)[0].reason == "goodbye"


def test_a_terminated_context_ends_a_node(port: int) -> None:
    context = zmq.Context()
    one = Node("one", interface="lo", port=port, context=context)
    waiting = Background(lambda: list(one))
    context.term()
    assert waiting.result() == []


def test_a_node_has_a_context_of_its_own_for_all_its_peers(port: int) -> None:
    shared = zmq.Context.instance()
    used = len(shared._open_sockets())
    one = Node("one", interface="lo", port=port, interval=50, max_peers=2000)
    own = one._driver._context
    with Node("two", interface="lo", port=port, interval=50):
        expect(one, Enter)
        assert own is not None
        assert own.max_sockets == 4000
        assert len(shared._open_sockets()) == used
    one.close()
    assert own.closed


@pytest.mark.parametrize("host", ["127.0.0.1", "\udcff", "x" * 200])
def test_a_peer_may_name_any_endpoint(port: int, host: str) -> None:
    context = zmq.Context()
    one = Node("one", interface="lo", port=port, interval=50, context=context)
    hello = Message(Kind.HELLO, 1, endpoint=f"tcp://{host}:1", name="stranger").write()
    with zmq.Context() as other, other.socket(zmq.DEALER) as dealer:
        dealer.routing_id = identity(uuid.uuid4())
        dealer.connect(one.endpoint)
        dealer.send_multipart(hello)
        with Node("two", interface="lo", port=port, interval=50) as two:
            while find(one, Enter).name != "two":
                pass
            assert find(two, Enter).name == "one"
    # A peer that cannot be reached does not keep the context.
    Background(context.term).result()


def test_a_program_that_ends_says_goodbye(node: Callable[..., Node], port: int) -> None:
    one = node("one")
    script = f"""
        from zeroxide.discovery import Node
        node = Node("short", interface="lo", port={port}, interval=50)
        print(node.recv())
    """
    output, errors = run_script("zeroxide", script)
    assert output.startswith("Enter")
    assert errors == ""
    assert [type(event) for event in expect(one, Enter, Exit)] == [Enter, Exit]


def test_a_node_leaves_descriptors_to_the_program() -> None:
    script = """
        import resource, socket, uuid
        import zeroxide as zmq
        from zeroxide.discovery import Node, _driver

        listener = socket.create_server(("", 0), backlog=1000)  # the kernel answers for it
        port = listener.getsockname()[1]
        mailboxes = []
        def watch(made):
            if made.type == zmq.DEALER:
                mailboxes.append(made.monitor_events(zmq.Event.CLOSED))
        with Node("one", interface="lo", gossip_bind="tcp://127.0.0.1:*", configure=watch) as node:
            most = 100
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
            for number in range(most):
                key, endpoint = uuid.uuid4().hex, f"tcp://127.0.0.{1 + number}:{port}"
                node._driver.call(
                    lambda machine: machine.handle_announcement(key, endpoint, _driver.clock())
                )
            print(mailboxes[-1].recv().reason)
            opened = [open("/dev/null") for _ in range(most // 8)]
    """
    output, errors = run_script("zeroxide", script)
    assert errors == ""
    assert output.strip().endswith("the last descriptors of this process are kept for the program")


def test_a_child_process_cannot_use_a_node(node: Callable[..., Node]) -> None:
    one = node("one")
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        try:
            one.recv(0)
        except zmq.ZMQError as error:
            os.write(write_end, str(error).encode())
        one.close()
        os._exit(0)
    os.wait()
    assert b"belongs to process" in os.read(read_end, 200)
    os.close(read_end), os.close(write_end)
    assert one.recv(0) is None


def test_curve(node: Callable[..., Node]) -> None:
    public, secret = zmq.curve_keypair()

    def secure(socket: zmq.Socket[Any]) -> None:
        socket.curve_publickey, socket.curve_secretkey = public, secret
        if socket.type == zmq.ROUTER:
            socket.curve_server = True
        else:
            socket.curve_serverkey = public

    one, other = node("one", configure=secure), node("other", configure=secure)
    stranger = node("stranger")
    assert expect(one, Enter)[0].name == "other"
    assert expect(other, Enter)[0].name == "one"
    assert stranger.recv(100) is None


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"name": 1}, TypeError, "name takes a name, which is a str, not 1"),
        ({"name": "x" * 256}, ValueError, "name takes up to 255 bytes"),
        ({"headers": ["a"]}, TypeError, "headers takes a mapping"),
        ({"headers": {"a": 1}}, TypeError, "the value of a header takes text"),
        ({"headers": {str(n): "" for n in range(300)}}, ValueError, "up to 256 of them"),
        ({"headers": {"a": "b" * 50_000}}, ValueError, "up to 32768 bytes"),
        ({"interface": "none"}, ValueError, "no interface that broadcasts has the name"),
        ({"port": 0}, ValueError, "port must be at least 1"),
        ({"gossip": 5}, TypeError, "gossip takes endpoints"),
        ({"endpoint": "ipc:///tmp/unused"}, ValueError, "beacons announce a tcp port"),
        ({"interval": 0}, ValueError, "interval must be at least 1"),
        ({"configure": 1}, TypeError, "configure takes a function of a socket"),
    ],
    ids=str,
)
def test_mistakes_are_reported(options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        Node(**{"interface": "lo", **options})


def test_mistakes_of_calls_are_reported(node: Callable[..., Node]) -> None:
    one = node("one")
    with pytest.raises(TypeError, match="peer takes a UUID, not 'x'"):
        one.whisper("x", b"")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="body takes bytes or a list of bytes, not 'text'"):
        one.shout("chat", "text")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a part of a message is bytes, not 1"):
        one.shout("chat", [1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="group takes up to 255 bytes"):
        one.join("x" * 256)
    for number in range(256):
        one.join(str(number))
    with pytest.raises(ValueError, match="256 groups at most"):
        one.join("another")
