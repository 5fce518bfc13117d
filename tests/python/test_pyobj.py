"""Pickles from untrusted peers, and typed messages."""

import asyncio
import dataclasses
import socket as tcp
import subprocess
import sys

import pytest
from support import run_script


class Anything:
    """An object that only pickle can serialise."""

    def __eq__(self, other):
        return isinstance(other, Anything)

    __hash__ = None


def test_pickles_of_this_machine(zmq, sockets, transport):
    push, pull = sockets.pair(zmq.PUSH, zmq.PULL, transport)
    push.send_pyobj({"a": Anything(), "b": [1, 2]})
    assert pull.recv_pyobj() == {"a": Anything(), "b": [1, 2]}
    push.send_pyobj(None, zmq.SNDMORE)
    push.send_pyobj(3, protocol=2)
    assert pull.recv_pyobj() is None
    assert pull.recv_pyobj() == 3
    with pytest.raises(zmq.Again):
        pull.recv_pyobj(zmq.DONTWAIT)


class Stranger:
    """A frame with the given origin."""

    buffer = memoryview(b"\x80\x04K\x05.")

    def __init__(self, zmq, **properties):
        self._error = zmq.ZMQError(zmq.EINVAL)
        self._properties = properties

    def get(self, name):
        if name.replace("-", "_") in self._properties:
            return self._properties[name.replace("-", "_")]
        raise self._error


REFUSED = [
    {"Peer_Address": "203.0.113.5"},
    {"Peer_Address": "2001:db8::1", "Authenticated": "no"},
    {"Peer_Address": ""},
    {"Peer_Address": "who knows"},
    {"Peer_Address": "::x"},
    {"Peer_Address": "::2"},
    {"Peer_Address": "::ffff:203.0.113.5"},
    {"Peer_Address": ":1000:1000"},
]
OPENED = [
    {},
    {"Peer_Address": "127.0.0.1"},
    {"Peer_Address": "127.8.8.8"},
    {"Peer_Address": "::1"},
    {"Peer_Address": "::ffff:127.0.0.1"},
    {"Peer_Address": ":1000:1000:5"},
    {"Peer_Address": "203.0.113.5", "Authenticated": "yes"},
]


@pytest.fixture
def stranger_to(zmq, context):
    """Sockets that receive a pickle of 5 from a peer with given properties."""

    class Fake(zmq.Socket):
        properties: object = None

        def recv(self, flags=0, copy=True, track=False):
            return Stranger(zmq, **self.properties)

    def make(properties, **attributes):
        fake = Fake(context, zmq.PULL)
        fake.properties = properties
        for name, value in attributes.items():
            setattr(fake, name, value)
        return fake

    return make


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("properties", REFUSED)
def test_untrusted_peers_are_refused(zmq, stranger_to, properties):
    with stranger_to(properties) as fake, pytest.raises(zmq.UntrustedPickle) as caught:
        fake.recv_pyobj()
    text = str(caught.value)
    for word in ("send_typed", "recv_typed", "json", "CURVE", "trust_pickles"):
        assert word in text
    if properties["Peer_Address"]:
        assert properties["Peer_Address"] in text
        assert caught.value.peer == properties["Peer_Address"]
    assert isinstance(caught.value, zmq.ZMQError)


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("properties", OPENED)
def test_local_and_authenticated_peers_are_accepted(stranger_to, properties):
    with stranger_to(properties) as fake:
        assert fake.recv_pyobj() == 5


@pytest.mark.zeroxide_only
def test_opting_in(zmq, stranger_to, context):
    far = REFUSED[0]
    with stranger_to(far, trust_pickles=True) as fake:
        assert fake.recv_pyobj() == 5
    context.trust_pickles = True
    with stranger_to(far) as fake:
        assert fake.recv_pyobj() == 5
    with stranger_to(far, trust_pickles=False) as fake, pytest.raises(zmq.UntrustedPickle):
        fake.recv_pyobj()


@pytest.mark.zeroxide_only
@pytest.mark.parametrize(
    ("endpoints", "is_opened"),
    [
        ([], True),
        (["inproc://name", "tcp://127.0.0.1:*", "tcp://[::1]:*", "tcp://lo:*"], True),
        (["tcp://localhost:9"], True),
        (["tcp://*:*"], False),
        (["tcp://127.0.0.1;192.0.2.1:9"], False),
        (["udp://127.0.0.1:*"], False),
        (["tcp://127.0.0.1:*", "tcp://*:*"], False),
    ],
)
@pytest.mark.parametrize("binder", ["itself", "shadow"])
def test_pickles_of_an_overridden_recv_need_local_endpoints(
    zmq, context, endpoints, is_opened, binder
):
    class Own(zmq.Socket):
        def recv(self, flags=0):
            return b"\x80\x04K\x05."

    kind = zmq.DGRAM if "udp://127.0.0.1:*" in endpoints else zmq.PULL
    with Own(context, kind) as own:
        own.ipv6 = True
        other = own if binder == "itself" else zmq.Socket(shadow=own.underlying)
        for endpoint in endpoints:
            attach = other.connect if endpoint.endswith(":9") else other.bind
            attach(endpoint)
        for endpoint in endpoints:
            # A message that has arrived there may still wait.
            if endpoint.endswith(":9"):
                other.disconnect(endpoint)
        for setting, opens in ((None, is_opened), (True, True), ("nobody", False)):
            own.trust_pickles = setting
            if opens:
                assert own.recv_pyobj() == 5
                continue
            with pytest.raises(zmq.UntrustedPickle, match=r"recv_typed\(\)"):
                own.recv_pyobj()
        if not is_opened:
            context.trust_pickles = True
            own.trust_pickles = None
            assert own.recv_pyobj() == 5


@pytest.mark.zeroxide_only
def test_a_socks_server_of_the_past_makes_an_overridden_recv_unsafe(zmq, context):
    class Own(zmq.Socket):
        def recv(self, flags=0):
            return b"\x80\x04K\x05."

    with Own(context, zmq.PULL) as own:
        own.socks_proxy = b"127.0.0.1:9"
        own.connect("tcp://127.0.0.1:9")
        own.socks_proxy = b""
        with pytest.raises(zmq.UntrustedPickle):
            own.recv_pyobj()


@pytest.mark.zeroxide_only
def test_an_overridden_recv_may_tell_who_the_sender_is(zmq, context):
    class Passing(zmq.Socket):
        def recv(self, *args, **kwargs):
            return super().recv(*args, **kwargs)

    class Copying(zmq.Socket):
        def recv(self, flags=0, **kwargs):
            return zmq.Frame(super().recv(flags))

    with context.socket(zmq.PUSH) as push, Passing(context, zmq.PULL) as pull:
        push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://*')}")
        push.send_pyobj(5)
        assert pull.recv_pyobj() == 5
    for endpoint, is_opened in (("inproc://name", True), ("tcp://*:*", False)):
        with context.socket(zmq.PUSH) as push, Copying(context, zmq.PULL) as pull:
            pull.bind(endpoint)
            push.connect(pull.last_endpoint.decode().replace("0.0.0.0", "127.0.0.1"))
            push.send_pyobj(5)
            if is_opened:
                assert pull.recv_pyobj() == 5
                continue
            with pytest.raises(zmq.UntrustedPickle, match="own recv does not tell"):
                pull.recv_pyobj()


def own_address():
    """An address of this machine other than 127.0.0.1, if it has one."""
    with tcp.socket(tcp.AF_INET, tcp.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


@pytest.mark.zeroxide_only
def test_this_machine_by_its_own_address(zmq, context):
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but the loopback's")
    with context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        push.connect(f"tcp://{address}:{pull.bind_to_random_port('tcp://*')}")
        push.send_pyobj(5)
        assert pull.recv_pyobj() == 5


@pytest.mark.zeroxide_only
def test_programs_written_for_pyzmq_get_one_warning():
    code = """if True:
        import zmq, warnings
        from zmq import _pickles as pickles
        class Frame:
            buffer = b"\\x80\\x04K\\x05."
            def get(self, name):
                return "203.0.113.5" if name == "Peer-Address" else "no"
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            print([pickles.load(Frame(), trusted=False) for _ in range(3)])
        print(len(seen), seen[0].category.__name__, "trust_pickles" in str(seen[0].message))
        """
    output = subprocess.run(
        [sys.executable, "-m", "zeroxide.as_zmq", "-c", code], capture_output=True, text=True
    )
    assert output.stdout == "[5, 5, 5]\n1 RuntimeWarning True\n", output.stderr


# ---- typed messages --------------------------------------------------------------------


@dataclasses.dataclass
class Order:
    """The type that the tests of typed messages send."""

    item: str
    price: float
    tags: list[str] = dataclasses.field(default_factory=list)


@pytest.mark.zeroxide_only
class TestTyped:
    @pytest.fixture(autouse=True)
    def msgspec(self):
        return pytest.importorskip("msgspec")

    def test_round_trip(self, zmq, sockets, transport):
        push, pull = sockets.pair(zmq.PUSH, zmq.PULL, transport)
        push.send_typed(Order("tea", 2.5, ["hot"]))
        assert pull.recv_typed(Order) == Order("tea", 2.5, ["hot"])
        push.send_typed({"a": [1, 2]})
        assert pull.recv_typed(dict[str, list[int]]) == {"a": [1, 2]}
        push.send_typed("text", zmq.SNDMORE)
        push.send_typed(None)
        assert pull.recv_typed(int | str) == "text"
        assert pull.recv_typed(type(None)) is None
        with pytest.raises(zmq.Again):
            pull.recv_typed(Order, zmq.DONTWAIT)

    def test_mismatched_types_are_reported(self, zmq, sockets, msgspec):
        push, pull = sockets.pair(zmq.PUSH, zmq.PULL)
        push.send_typed({"item": "tea", "price": "cheap"})
        with pytest.raises(zmq.InvalidMessage, match=r"Order.*float.*\$\.price") as caught:
            pull.recv_typed(Order)
        assert isinstance(caught.value, ValueError)
        assert msgspec.msgpack.decode(caught.value.data)["price"] == "cheap"
        assert isinstance(caught.value.__cause__, msgspec.ValidationError)
        for garbage in (b"", b"\xc1", b"\x85", b"\x80\x04K\x05."):
            push.send(garbage)
            with pytest.raises(zmq.InvalidMessage) as caught:
                pull.recv_typed(Order)
            assert caught.value.data == garbage
        # The socket still works.
        push.send_typed(Order("milk", 1))
        assert pull.recv_typed(Order).item == "milk"

    def test_an_overridden_recv(self, zmq, sockets):
        class Reversing(zmq.Socket):
            def recv(self, flags=0):
                return super().recv(flags)[::-1]

        push = sockets.bound(zmq.PUSH, "inproc")
        with Reversing(sockets.context, zmq.PULL) as pull:
            pull.connect(push.last_endpoint.decode())
            push.send(b"\x02\x01\x92")
            push.send(b"garbage")
            assert pull.recv_typed(list[int]) == [1, 2]
            with pytest.raises(zmq.InvalidMessage) as caught:
                pull.recv_typed(list[int])
            assert caught.value.data == b"egabrag"

    def test_other_types_by_hooks(self, zmq, sockets):
        push, pull = sockets.pair(zmq.PUSH, zmq.PULL)
        push.send_typed([complex(1, 2)], enc_hook=lambda number: [number.real, number.imag])
        received = pull.recv_typed(list[complex], dec_hook=lambda _, pair: complex(*pair))
        assert received == [complex(1, 2)]
        with pytest.raises((TypeError, NotImplementedError)):
            push.send_typed(object())

    def test_in_asyncio(self, zmq):
        async def main():
            import zeroxide.asyncio

            context = zeroxide.asyncio.Context()
            push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
            pull.bind("inproc://typed")
            push.connect("inproc://typed")
            waiting = asyncio.ensure_future(pull.recv_typed(Order))
            await asyncio.sleep(0)
            await push.send_typed(Order("tea", 1))
            assert await waiting == Order("tea", 1)
            await push.send_pyobj(Order("tea", 2))
            assert await pull.recv_pyobj() == Order("tea", 2)
            await push.send_typed("no order")
            with pytest.raises(zmq.InvalidMessage):
                await pull.recv_typed(Order)
            push.close()
            pull.close()
            context.term()

        asyncio.run(main())


@pytest.mark.zeroxide_only
def test_without_msgspec_the_error_names_what_to_install():
    output, _ = run_script(
        "zeroxide",
        """
        import sys
        sys.modules["msgspec"] = None
        with zmq.Context() as context, context.socket(zmq.PUSH) as push:
            try:
                push.send_typed(1)
            except ModuleNotFoundError as error:
                print(error)
        """,
    )
    assert "needs msgspec: pip install 'zeroxide[typed]'" in output


# ---- what frames say about their senders -----------------------------------------------


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("name", [b"Authenticated", b"AUTHENTICATED"])
def test_a_peer_cannot_vouch_for_itself(zmq, sockets, name):
    pull = sockets.bound(zmq.PULL)
    properties = {b"Socket-Type": b"PUSH", name: b"yes", b"X-Mine": b"kept"}
    properties |= {b"Peer-Address": b"203.0.113.5"}
    ready = b"\x05READY" + b"".join(
        bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value
        for name, value in properties.items()
    )
    port = int(pull.last_endpoint.rpartition(b":")[2])
    with tcp.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48))
        peer.sendall(b"\x04" + bytes([len(ready)]) + ready + b"\x00\x01x")
        frame = pull.recv(copy=False)
    assert frame.get("Authenticated") == "no"
    assert frame.get("Peer-Address") == "127.0.0.1"
    assert frame.get("X-Mine") == "kept"


@pytest.mark.zeroxide_only
def test_keys_authenticate_both_sides(zmq, context):
    server_key, server_secret = zmq.curve_keypair()
    client_key, client_secret = zmq.curve_keypair()
    one, two, anybody = (context.socket(zmq.PAIR) for _ in range(3))
    one.secure_server(server_secret, [client_key])
    two.secure_client(server_key, client_secret)
    one.bind("tcp://127.0.0.1:*")
    two.connect(one.last_endpoint.decode())
    one.send(b"x")
    two.send(b"x")
    assert one.recv(copy=False).get("Authenticated") == "yes"
    assert two.recv(copy=False).get("Authenticated") == "yes"
    # Encrypted, but not authenticated.
    anybody.curve_server = 1
    anybody.curve_secretkey, anybody.curve_publickey = server_secret, server_key
    anybody.bind("tcp://127.0.0.1:*")
    client = context.socket(zmq.PAIR)
    client.secure_client(server_key)
    client.connect(anybody.last_endpoint.decode())
    client.send(b"x")
    assert anybody.recv(copy=False).get("Authenticated") == "no"
    anybody.send(b"x")
    assert client.recv(copy=False).get("Authenticated") == "yes"


@pytest.mark.zeroxide_only
def test_no_peer_is_trusted_if_the_setting_excludes_all(zmq, context, stranger_to, sockets):
    for properties in (*OPENED, *REFUSED):
        with (
            stranger_to(properties, trust_pickles="nobody") as fake,
            pytest.raises(zmq.UntrustedPickle, match="nobody"),
        ):
            fake.recv_pyobj()
    context.trust_pickles = "nobody"
    push, pull = sockets.pair(zmq.PUSH, zmq.PULL, "inproc")
    push.send_pyobj(5)
    with pytest.raises(zmq.UntrustedPickle):
        pull.recv_pyobj()
    pull.trust_pickles = False
    push.send_pyobj(5)
    assert pull.recv_pyobj() == 5


@pytest.mark.zeroxide_only
def test_an_address_that_can_be_bound_is_not_always_local():
    """With ip_nonlocal_bind, which can be set in a new network namespace."""
    script = """
import socket
from zeroxide import _pickles as pickles
open("/proc/sys/net/ipv4/ip_nonlocal_bind", "w").write("1")
open("/proc/sys/net/ipv6/ip_nonlocal_bind", "w").write("1")
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(("203.0.113.5", 0))
print(pickles._is_local("203.0.113.5"), pickles._is_local("2001:db8::1"), pickles._is_local("127.0.0.1"))
"""
    unshare = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", script]
    try:
        done = subprocess.run(unshare, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode:
        pytest.skip(f"no network namespace can be made here: {done.stderr[-200:]}")
    assert done.stdout.split() == ["False", "False", "True"]
