"""RADIO, DISH and DGRAM over udp, also on a path that loses and reorders datagrams."""

import asyncio
import errno
import os
import random
import select
import shutil
import socket as plain
import subprocess
import sys
import textwrap
import threading

import pytest
from support import PATIENCE, eventually

pytestmark = pytest.mark.zeroxide_only


@pytest.fixture
def pair(zmq, sockets):
    """A RADIO and a DISH that is in the group "g"."""
    dish = sockets.context.socket(zmq.DISH)
    dish.bind("udp://127.0.0.1:*")
    dish.join("g")
    return sockets.connected(zmq.RADIO, dish), dish


def test_udp_is_built_in(zmq):
    assert zmq.has("udp") and zmq.DRAFT_API


@pytest.mark.cell(transport="udp", types="DGRAM", peer="zeroxide")
def test_datagrams(zmq, sockets):
    one, other = sockets.context.socket(zmq.DGRAM), sockets.context.socket(zmq.DGRAM)
    for socket in (one, other):
        socket.bind("udp://127.0.0.1:*")
    address = other.last_endpoint.decode().removeprefix("udp://").encode()
    for body in (b"", b"x", b"y" * 8000):
        one.send_multipart([address, body])
        sender, heard = other.recv_multipart()
        assert heard == body
        other.send_multipart([sender, body + b"!"])
        assert one.recv_multipart() == [address, body + b"!"]


@pytest.mark.cell(transport="udp", types="RADIO DISH", peer="zeroxide")
def test_groups(pair):
    radio, dish = pair
    for body in (b"", b"x" * 69, b"y" * 70, b"z" * 8000):
        radio.send(b"another", group="h")
        radio.send(body, group="g")
        frame = dish.recv(copy=False)
        assert (frame.bytes, frame.group) == (body, "g")
    assert dish.stats()["dropped"]["filtered"] == 4
    [peer] = radio.stats()["peers"]
    assert peer["connected"] and peer["queued_out"] == 0


def test_batches(pair):
    radio, dish = pair
    radio.send(b"one", group="g")
    frame = dish.recv(copy=False)
    assert radio.send_batch([frame] * 100) == 100
    heard = []
    while len(heard) < 100:
        heard += dish.recv_batch()
    assert heard == [b"one"] * 100


def test_a_message_that_is_too_long(zmq, pair):
    radio, _ = pair
    with pytest.raises(
        zmq.ZMQError, match="at most 8192 bytes, and this message needs 8193"
    ) as caught:
        radio.send(bytes(8191), group="g")
    assert caught.value.errno == errno.EMSGSIZE


def test_polling(zmq, pair):
    radio, dish = pair
    poller = zmq.Poller()
    poller.register(radio)
    poller.register(dish)
    assert poller.poll(0) == [(radio, zmq.POLLOUT)]
    radio.send(b"x", group="g")
    eventually(lambda: dict(poller.poll(100)).get(dish) == zmq.POLLIN)
    assert select.select([dish.fileno()], [], [], PATIENCE)[0]
    assert dish.recv() == b"x"


def test_asyncio(zmq):
    import zeroxide.asyncio

    async def work():
        with zeroxide.asyncio.Context() as context:
            one, other = context.socket(zmq.DGRAM), context.socket(zmq.DGRAM)
            one.bind("udp://127.0.0.1:*")
            other.bind("udp://127.0.0.1:*")
            address = other.last_endpoint.removeprefix(b"udp://")
            answer = asyncio.ensure_future(other.recv_multipart())
            await one.send_multipart([address, b"question"])
            sender, body = await answer
            await other.send_multipart([sender, body + b"?"])
            assert await one.recv_multipart() == [address, b"question?"]
            context.destroy(linger=0)

    asyncio.run(work())


def test_a_blocked_receiver_is_interrupted(zmq, sockets):
    dish = sockets.context.socket(zmq.DISH)
    dish.bind("udp://127.0.0.1:*")
    threading.Timer(0.05, dish.close).start()
    with pytest.raises(zmq.ZMQError) as caught:
        dish.recv()
    assert caught.value.errno == zmq.ENOTSOCK


def test_a_forked_child_leaves_the_address_to_its_parent(pair):
    radio, dish = pair
    child = os.fork()
    if not child:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    radio.send(b"still here", group="g")
    assert dish.recv() == b"still here"


class Path(threading.Thread):
    """A path that loses datagrams, and lets some overtake the one before."""

    def __init__(self, target, loss, reordering):
        super().__init__(daemon=True)
        self.inlet = plain.socket(plain.AF_INET, plain.SOCK_DGRAM)
        self.inlet.bind(("127.0.0.1", 0))
        self.target = target
        self.loss, self.reordering = loss, reordering
        self.dice = random.Random(7)
        self.seen = self.lost = 0

    def run(self):
        outlet = plain.socket(plain.AF_INET, plain.SOCK_DGRAM)
        outlet.connect(self.target)
        late = None
        with self.inlet, outlet:
            while datagram := self.inlet.recv(10_000):
                if self.dice.random() < self.loss:
                    self.lost += 1
                elif late is None and self.dice.random() < self.reordering:
                    late = datagram
                else:
                    outlet.send(datagram)
                    if late is not None:
                        outlet.send(late)
                        late = None
                self.seen += 1
            if late is not None:
                outlet.send(late)

    def end(self):
        with plain.socket(plain.AF_INET, plain.SOCK_DGRAM) as last:
            last.sendto(b"", self.inlet.getsockname())
        self.join()


@pytest.mark.parametrize(("loss", "reordering"), [(0.01, 0), (0.05, 0), (0, 0.2), (0.05, 0.2)])
def test_a_path_with_losses(zmq, sockets, loss, reordering):
    dish = sockets.context.socket(zmq.DISH)
    dish.rcvhwm = 0
    dish.bind("udp://127.0.0.1:*")
    dish.join("g")
    host, _, port = dish.last_endpoint.decode().removeprefix("udp://").rpartition(":")
    path = Path((host, int(port)), loss, reordering)
    path.start()
    radio = sockets.context.socket(zmq.RADIO)
    radio.connect("udp://{}:{}".format(*path.inlet.getsockname()))
    total = 2000
    for number in range(total):
        radio.send(b"%d" % number, group="g")
        if number % 50 == 49:
            # No buffer on the way becomes full.
            eventually(lambda number=number: path.seen == number + 1)
    path.end()
    heard = [int(dish.recv()) for _ in range(total - path.lost)]
    assert not dish.poll(50)
    assert len(set(heard)) == len(heard)
    assert (path.lost > 0) == (loss > 0)
    assert (heard != sorted(heard)) == (reordering > 0)
    dropped = dish.stats()["dropped"]
    assert not any(dropped.values()), dropped


PROGRAM = """
    import zeroxide as zmq

    with zmq.Context() as context:
        dish, radio = context.socket(zmq.DISH), context.socket(zmq.RADIO)
        dish.rcvhwm = 0
        dish.bind("udp://127.0.0.1:*")
        dish.join("g")
        radio.connect(dish.last_endpoint)
        heard = set()
        for number in range(2000):
            radio.send(b"%d" % number, group="g")
            while dish.poll(0 if number % 50 else 2):
                heard.add(int(dish.recv()))
        while dish.poll(500):
            heard.add(int(dish.recv()))
        assert not any(dish.stats()["dropped"].values())
        print(2000 - len(heard))
        context.destroy(linger=0)
"""


def in_own_network(commands: str) -> list[str]:
    """The command that runs a program in a network of its own, after these commands."""
    return ["unshare", "--net", "sh", "-c", f'ip link set lo up && {commands} && exec "$@"', "sh"]


def works(commands: str) -> bool:
    """Whether a program can be run there."""
    if not all(map(shutil.which, ("unshare", "ip"))):
        return False
    return subprocess.run([*in_own_network(commands), "true"], capture_output=True).returncode == 0


def run_in(commands: str, program: str) -> str:
    words = [*in_own_network(commands), sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def netem(settings: str) -> str:
    return f"tc qdisc add dev lo root netem {settings}"


@pytest.mark.skipif(
    not works(netem("loss 1%")),
    reason="no network namespace with netem (root, iproute2, sch_netem)",
)
@pytest.mark.parametrize("settings", ["loss 1%", "loss 5%", "delay 2ms reorder 25%"])
def test_a_network_with_losses(settings):
    lost = int(run_in(netem(settings), PROGRAM))
    assert lost == 0 if "reorder" in settings else 0 < lost < 400


INTERFACES = " && ".join(
    [
        "ip link add out0 type veth peer name out1",
        "ip link set out0 up",
        "ip link set out1 up",
        "ip addr add 192.0.2.1/24 dev out0",
        "ip addr add fe80::1/64 dev out0 nodad",
    ]
)

MULTICAST = """
    import zeroxide as zmq

    def members(radio, dish, endpoint):
        radio.ipv6 = dish.ipv6 = 1
        dish.bind(endpoint)
        dish.join("g")
        radio.connect(dish.last_endpoint)

    with zmq.Context() as context:
        context.rcvtimeo = 50_000
        for endpoint in (
            "udp://out0;239.255.77.4:*",
            "udp://192.0.2.1;239.255.77.5:*",
            "udp://out0;[ff02::7:7]:*",
            "udp://[ff02::7:8%out0]:*",
            "udp://fe80::1;[ff02::7:9]:*",
        ):
            silent, radio, dish = map(context.socket, (zmq.RADIO, zmq.RADIO, zmq.DISH))
            members(radio, dish, endpoint)
            silent.ipv6, silent.multicast_loop = 1, 0
            silent.connect(dish.last_endpoint)
            silent.send(b"not here", group="g")
            silent.flush()
            radio.send(b"here", group="g")
            assert dish.recv() == b"here"
            print(endpoint)
        context.destroy(linger=0)
"""


@pytest.mark.skipif(
    not works(INTERFACES), reason="no network namespace with an interface (root, iproute2, veth)"
)
def test_multicast_on_an_interface():
    assert len(run_in(INTERFACES, MULTICAST).splitlines()) == 5


OTHER_INTERFACE = """
    import subprocess
    import zeroxide as zmq

    with zmq.Context() as context:
        context.ipv6, context.rcvtimeo = 1, 200
        pairs = []
        for endpoint in (
            "udp://out0;239.255.77.4:*",
            "udp://239.255.77.5:*",
            "udp://out0;[ff02::7:7]:*",
            "udp://[ff02::7:8%out0]:*",
            "udp://[ff02::7:9]:*",
        ):
            radio, dish = context.socket(zmq.RADIO), context.socket(zmq.DISH)
            dish.bind(endpoint)
            dish.join("g")
            radio.connect(dish.last_endpoint)
            pairs.append((radio, dish))
        for turn in (b"before", b"after"):
            for radio, dish in pairs:
                said = None
                while said != turn:
                    radio.send(turn, group="g")
                    try:
                        said = dish.recv()
                    except zmq.Again:
                        pass
                print(turn)
            if turn == b"before":
                subprocess.run(["ip", "link", "del", "out0"], check=True)
                subprocess.run(AGAIN, shell=True, check=True)
        context.destroy(linger=0)
"""
ROUTED = f"{INTERFACES} && ip route add 239.0.0.0/8 dev out0"
# So that the new interface can be used at once, its addresses are not checked for duplicates.
ROUTED = f"echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad && {ROUTED}"


@pytest.mark.skipif(
    not works(ROUTED), reason="no network namespace with an interface (root, iproute2, veth)"
)
def test_a_group_is_joined_again_on_the_interface_that_replaces_another():
    """The kernel forgets the members of an interface that is removed, and reports nothing."""
    program = OTHER_INTERFACE.replace("AGAIN", repr(ROUTED))
    assert len(run_in(ROUTED, program).splitlines()) == 10


DEFAULT_INTERFACE = """
    import zeroxide as zmq

    with zmq.Context() as context:
        context.ipv6, context.rcvtimeo = 1, 50_000
        for group in ("ff02::7:7", "ff01::7:7", "ff05::7:7"):
            radio, dish = context.socket(zmq.RADIO), context.socket(zmq.DISH)
            dish.bind(f"udp://[{group}]:*")
            dish.join("g")
            radio.connect(dish.last_endpoint)
            radio.send(b"here", group="g")
            print(group, dish.recv())
        context.destroy(linger=0)
"""
# The system chooses either interface, and so that it can do so at once, their addresses are not checked for duplicates.
AT_ONCE = f"echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad && {INTERFACES}"

NO_INTERFACE = """
    import errno
    import zeroxide as zmq

    with zmq.Context() as context, context.socket(zmq.RADIO) as radio:
        radio.ipv6 = 1
        try:
            radio.connect("udp://[ff02::7:7]:5555")
        except zmq.ZMQError as error:
            print(error.errno == errno.ENODEV, error)
"""


@pytest.mark.skipif(
    not works(AT_ONCE), reason="no network namespace with an interface (root, iproute2, veth)"
)
def test_a_group_of_a_link_is_reached_on_the_default_interface():
    assert len(run_in(AT_ONCE, DEFAULT_INTERFACE).splitlines()) == 3


@pytest.mark.skipif(not works("true"), reason="no network namespace (root)")
def test_without_a_default_interface_a_group_of_a_link_needs_one():
    assert "True No such device" in (printed := run_in("true", NO_INTERFACE))
    assert "udp://eth0;[ff02::7:7]:5555" in printed


OTHER_ADDRESS = """
    import subprocess
    import zeroxide as zmq

    def address(verb, host):
        command = f"ip addr {verb} 192.0.2.{host}/24 dev out0"
        subprocess.run(command.split(), check=True)

    with zmq.Context() as context:
        radio, dish = context.socket(zmq.RADIO), context.socket(zmq.DISH)
        dish.bind("udp://out0;239.255.77.4:*")
        dish.join("g")
        radio.connect(dish.last_endpoint)
        for number in range(1, 5):
            radio.send(b"%d" % number, group="g")
            print(dish.recv())
            address("del", number)
            if number == 2:
                radio.send(b"lost", group="g")
                radio.flush()
            address("add", number + 1)
        context.destroy(linger=0)
"""

NO_ROUTE = """
    import errno
    import subprocess
    import zeroxide as zmq

    with zmq.Context() as context:
        radio, dish = context.socket(zmq.RADIO), context.socket(zmq.DISH)
        dish.bind("udp://*:5555")
        dish.join("g")
        events = radio.monitor_events(zmq.EVENT_CONNECT_RETRIED)
        radio.connect("udp://198.51.100.7:5555")
        radio.send(b"early", group="g")
        next(events)
        subprocess.run(["ip", "addr", "add", "198.51.100.7/32", "dev", "lo"], check=True)
        print(dish.recv())
        once = context.socket(zmq.RADIO)
        once.reconnect_ivl = -1
        try:
            once.connect("udp://203.0.113.7:5555")
        except zmq.ZMQError as error:
            print(error.errno == errno.ENETUNREACH)
        context.destroy(linger=0)
"""


@pytest.mark.skipif(
    not works(INTERFACES), reason="no network namespace with an interface (root, iproute2, veth)"
)
def test_a_machine_that_gets_another_address_sends_on():
    assert run_in(INTERFACES, OTHER_ADDRESS).split() == ["b'1'", "b'2'", "b'3'", "b'4'"]


@pytest.mark.skipif(not works("true"), reason="no network namespace (root)")
def test_messages_wait_for_a_route():
    assert run_in("true", NO_ROUTE).split() == ["b'early'", "True"]
