"""Sockets: lifetime, endpoints, repr, subclasses, copies."""

import copy
import errno
import gc
import math
import pickle
import threading
import warnings
from decimal import Decimal
from fractions import Fraction
from unittest import mock

import pytest


def test_created_from_its_context(zmq, context):
    with zmq.Socket(context, zmq.PUSH) as socket:
        assert socket.context is context
        assert socket.type is zmq.PUSH
        assert not socket.closed


@pytest.mark.parametrize("arguments", [(), (None,), (None, 8)])
def test_created_without_a_context(zmq, arguments):
    with pytest.raises(TypeError):
        zmq.Socket(*arguments)


def test_close_again(zmq, context):
    socket = context.socket(zmq.PUSH)
    socket.close()
    socket.close()
    socket.close(linger=0)
    assert socket.closed
    assert socket.underlying is not None


def test_close_sets_linger(zmq, context):
    socket = context.socket(zmq.PUSH)
    socket.connect("tcp://127.0.0.1:1")
    socket.send(b"x")
    socket.close(linger=0)
    assert socket.closed


@pytest.mark.parametrize("linger", [0.5, 2.0, Fraction(1, 2), Decimal(3), 10.0**9])
def test_close_with_a_fraction(zmq, context, linger):
    socket = context.socket(zmq.PUSH)
    socket.close(linger=linger)
    assert socket.closed


@pytest.mark.parametrize("linger", ["1", math.nan, math.inf, -math.inf, 1e20, [1]])
def test_close_with_no_time(zmq, context, linger):
    socket = context.socket(zmq.PUSH)
    with pytest.raises((TypeError, ValueError, OverflowError)):
        socket.close(linger=linger)
    assert not socket.closed
    # pyzmq's contexts have forgotten it by now.
    socket.close()


def test_with_block(zmq, context):
    with context.socket(zmq.PUSH) as socket:
        assert not socket.closed
    assert socket.closed


def test_with_block_and_error(zmq, context):
    with pytest.raises(ZeroDivisionError), context.socket(zmq.PUSH) as socket:
        raise ZeroDivisionError
    assert socket.closed


def test_not_closed(zmq, context):
    with pytest.warns(ResourceWarning, match="Unclosed socket"):
        context.socket(zmq.PUSH)
        gc.collect()


def test_closed_sockets_are_collected_without_a_warning(zmq, context):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        context.socket(zmq.PUSH).close()
        gc.collect()


# ---- endpoints ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, str.encode], ids=["str", "bytes"])
def test_addresses_as(zmq, context, kind):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.bind(kind("inproc://address"))
        push.connect(kind("inproc://address"))
        push.send(b"x")
        assert pull.recv() == b"x"
        push.disconnect(kind("inproc://address"))
        pull.unbind(kind("inproc://address"))


@pytest.mark.parametrize("address", [5, None, ["inproc://x"]])
@pytest.mark.parametrize("method", ["bind", "connect", "unbind", "disconnect"])
def test_objects_that_are_not_addresses(zmq, context, method, address):
    with context.socket(zmq.PULL) as socket, pytest.raises(TypeError):
        getattr(socket, method)(address)


@pytest.mark.parametrize(
    ("address", "number"),
    [
        ("", "EINVAL"),
        ("nonsense", "EINVAL"),
        ("tcp://", "EINVAL"),
        ("tcp://127.0.0.1", "EINVAL"),
        ("tcp://127.0.0.1:port", "EINVAL"),
        ("http://127.0.0.1:80", "EPROTONOSUPPORT"),
    ],
)
def test_bad_addresses(zmq, context, address, number):
    with context.socket(zmq.PULL) as socket:
        for method in (socket.bind, socket.connect):
            with pytest.raises(zmq.ZMQError) as caught:
                method(address)
            assert caught.value.errno in (getattr(errno, number), errno.ENODEV)


@pytest.mark.differs("an address without a meaning is refused, not joined silently")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:70000", "tcp://:5555"])
def test_meaningless_addresses(zmq, context, address):
    with context.socket(zmq.PUSH) as socket, pytest.raises(zmq.ZMQError):
        socket.connect(address)


def test_address_is_named_in_the_error(zmq, context):
    with context.socket(zmq.PULL) as socket:
        with pytest.raises(zmq.ZMQError, match=r"tcp://127\.0\.0\.1:nonsense"):
            socket.bind("tcp://127.0.0.1:nonsense")
        with pytest.raises(zmq.ZMQError, match=r"tcp://127\.0\.0\.1:nonsense"):
            socket.connect("tcp://127.0.0.1:nonsense")


def test_in_use(zmq, context, sockets):
    pull = sockets.bound(zmq.PULL)
    with context.socket(zmq.PULL) as other, pytest.raises(zmq.ZMQError) as caught:
        other.bind(pull.last_endpoint)
    assert caught.value.errno == zmq.EADDRINUSE
    assert "Address already in use" in str(caught.value)


def test_inproc_in_use(zmq, context):
    with context.socket(zmq.PULL) as one, context.socket(zmq.PULL) as other:
        one.bind("inproc://twice")
        with pytest.raises(zmq.ZMQError) as caught:
            other.bind("inproc://twice")
        assert caught.value.errno == zmq.EADDRINUSE


def test_path_too_long(zmq, context):
    path = "ipc:///" + "x" * 200
    with context.socket(zmq.PULL) as socket, pytest.raises(zmq.ZMQError) as caught:
        socket.bind(path)
    assert caught.value.errno == errno.ENAMETOOLONG
    assert str(zmq.IPC_PATH_MAX_LEN) in str(caught.value)


@pytest.mark.parametrize("method", ["unbind", "disconnect"])
def test_unbind_and_disconnect_of_other_endpoints(zmq, context, method):
    with context.socket(zmq.PULL) as socket, pytest.raises(zmq.ZMQError) as caught:
        getattr(socket, method)("tcp://127.0.0.1:12345")
    assert caught.value.errno == errno.ENOENT


def test_bind_as_a_block(zmq, context):
    with context.socket(zmq.PULL) as pull:
        with pull.bind("tcp://127.0.0.1:*") as bound:
            assert bound is pull
            endpoint = pull.last_endpoint
        assert not pull.closed
        with pytest.raises(zmq.ZMQError):
            pull.unbind(endpoint)


def test_connect_as_a_block(zmq, context, sockets):
    pull = sockets.bound(zmq.PULL, "inproc")
    with context.socket(zmq.PUSH) as push:
        with push.connect(pull.last_endpoint) as connected:
            assert connected is push
            push.send(b"x")
            assert pull.recv() == b"x"
        with pytest.raises(zmq.ZMQError):
            push.disconnect(pull.last_endpoint)


def test_block_of_a_socket_closed_within(zmq, context):
    socket = context.socket(zmq.PULL)
    with socket.bind("inproc://closed-within"):
        socket.close()


def test_result_of_bind(zmq, context):
    with context.socket(zmq.PULL) as socket:
        bound = socket.bind("inproc://result")
        assert bound.socket is socket
        assert bound.kind == "bind"
        assert bound.addr == "inproc://result"
        assert "bind" in repr(bound)
        connected = socket.connect("inproc://result-2")
        assert (connected.kind, connected.addr) == ("connect", "inproc://result-2")


def test_random_port(zmq, context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        assert 1024 <= port < 65536
        push.connect(f"tcp://127.0.0.1:{port}")
        push.send(b"x")
        assert pull.recv() == b"x"


def test_random_port_in_a_range(zmq, context):
    with context.socket(zmq.PULL) as pull:
        port = pull.bind_to_random_port(
            "tcp://127.0.0.1", min_port=20000, max_port=30000, max_tries=50
        )
        assert 20000 <= port < 30000
        assert pull.last_endpoint == f"tcp://127.0.0.1:{port}".encode()


def test_no_random_port_left(zmq, context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PULL) as other:
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        with pytest.raises(zmq.ZMQBindError):
            other.bind_to_random_port("tcp://127.0.0.1", port, port + 1, 3)


def test_random_port_without_an_address(zmq, context):
    with context.socket(zmq.PULL) as pull, pytest.raises(zmq.ZMQError):
        pull.bind_to_random_port("tcp://nonsense.invalid")


@pytest.mark.parametrize(
    "addr", ["tcp://127.0.0.1:5555", "rand://*", "tcp://*:5", "", "tcp://nonsense.invalid"]
)
@pytest.mark.parametrize("ports", [(), (20000, 30000)], ids=["default", "range"])
def test_random_port_of_a_bad_address(zmq, context, addr, ports):
    with context.socket(zmq.PULL) as pull, pytest.raises(zmq.ZMQError):
        pull.bind_to_random_port(addr, *ports)


@pytest.mark.parametrize("transport", ["inproc", "ipc"])
def test_names_with_a_random_number(zmq, context, directory, transport):
    addr = "inproc://name" if transport == "inproc" else f"ipc://{directory}/name"
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        port = pull.bind_to_random_port(addr, min_port=12345)
        assert 12345 <= port < 65536
        push.connect(f"{addr}:{port}")
        push.send(b"x")
        assert pull.recv() == b"x"


def test_names_have_no_ports_that_the_system_chooses(zmq, context):
    with context.socket(zmq.PULL) as pull, pytest.raises(ValueError):
        pull.bind_to_random_port("inproc://name")


def test_random_port_in_a_range_that_is_too_long(zmq, context):
    with context.socket(zmq.PULL) as pull:
        port = pull.bind_to_random_port("tcp://127.0.0.1", 60000, 65540)
        assert 60000 <= port < 65540


def test_the_class_has_what_sockets_have(zmq):
    """Test doubles are made from the class."""
    assert mock.Mock(spec=zmq.Socket).context
    assert mock.create_autospec(zmq.Socket)().context.socket
    with mock.patch.object(zmq.Socket, "context"):
        pass


def test_same_endpoint_again(zmq, context, sockets):
    """Two connections to one peer count twice."""
    pull = sockets.bound(zmq.PULL)
    with context.socket(zmq.PUSH) as push:
        push.connect(pull.last_endpoint)
        push.connect(pull.last_endpoint)
        for number in range(4):
            push.send(b"%d" % number)
        assert sorted(pull.recv() for _ in range(4)) == [b"0", b"1", b"2", b"3"]


def test_ephemeral_ports_differ(zmq, context):
    with context.socket(zmq.PULL) as socket:
        ends = set()
        for _ in range(3):
            socket.bind("tcp://127.0.0.1:0")
            ends.add(socket.last_endpoint)
        assert len(ends) == 3


# ---- other handles ------------------------------------------------------------------


@pytest.mark.parametrize("way", ["shadow", "address", "positional", "copy"])
def test_handles(zmq, context, way):
    with context.socket(zmq.PUSH) as socket:
        other = {
            "shadow": lambda: zmq.Socket(shadow=socket),
            "address": lambda: zmq.Socket.shadow(socket.underlying),
            "positional": lambda: zmq.Socket(socket),
            "copy": lambda: copy.copy(socket),
        }[way]()
        assert other is not socket
        assert other.underlying == socket.underlying
        assert other.type == socket.type
        other.linger = 12
        assert socket.linger == 12
        del other
        gc.collect()
        assert not socket.closed


def test_deep_copy(zmq, context):
    with context.socket(zmq.PUSH) as socket:
        assert copy.deepcopy(socket).underlying == socket.underlying


@pytest.mark.parametrize("what", ["socket", "context", "poller"])
def test_no_pickles(zmq, context, what):
    thing = {"socket": lambda: context.socket(zmq.PUSH), "context": lambda: context}.get(
        what, zmq.Poller
    )()
    if what == "poller":
        pickle.dumps(thing)
        return
    with pytest.raises(TypeError):
        pickle.dumps(thing)
    if what == "socket":
        thing.close()


def test_used_as_a_key(zmq, context):
    with context.socket(zmq.PUSH) as one, context.socket(zmq.PUSH) as other:
        assert one == one
        assert one != other
        assert {one: 1, other: 2}[one] == 1


# ---- looks --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PUSH", "SUB", "STREAM"])
def test_repr(zmq, context, kind):
    socket = context.socket(getattr(zmq, kind))
    assert repr(socket) == f"<zmq.Socket(zmq.{kind}) at {id(socket):#x}>"
    socket.close()
    assert repr(socket) == f"<zmq.Socket(zmq.{kind}) at {id(socket):#x} closed>"


def test_repr_of_a_subclass(zmq, context):
    class Own(zmq.Socket):
        pass

    class Named(zmq.Socket):
        _repr_cls = "my.Socket"

    with context.socket(zmq.PUSH, Own) as socket:
        assert repr(socket).startswith(f"<{__name__}.Own(zmq.PUSH)")
    with context.socket(zmq.PUSH, Named) as socket:
        assert repr(socket).startswith("<my.Socket(zmq.PUSH) at ")


# ---- subclasses ---------------------------------------------------------------------


def test_own_attributes_must_be_declared(zmq, context):
    class Own(zmq.Socket):
        declared = None
        annotated: int

    with context.socket(zmq.PUSH, Own) as socket:
        socket.declared = 1
        socket.annotated = 2
        assert (socket.declared, socket.annotated) == (1, 2)
        with pytest.raises(AttributeError):
            socket.undeclared = 3


def test_properties_of_a_subclass(zmq, context):
    class Own(zmq.Socket):
        _value = 0

        @property
        def value(self):
            return self._value

        @value.setter
        def value(self, value):
            self._value = value

    with context.socket(zmq.PUSH, Own) as socket:
        socket.value = 5
        assert socket.value == 5


def test_overridden_send_is_used(zmq, context, sockets):
    sent = []

    class Own(zmq.Socket):
        def send(self, data, *args, **kwargs):
            sent.append(bytes(data))
            return super().send(data, *args, **kwargs)

        def send_multipart(self, parts, *args, **kwargs):
            sent.append(list(parts))
            return super().send_multipart(parts, *args, **kwargs)

    pull = sockets.bound(zmq.PULL)
    with context.socket(zmq.PUSH, Own) as push:
        push.connect(pull.last_endpoint)
        push.send_string("text")
        push.send_json(1)
        push.send_pyobj(None)
        assert len(sent) == 3
        push.send_serialized(b"x", lambda body: [body])
        assert sent[3] == [b"x"]


def test_overridden_recv_is_used(zmq, context, sockets):
    class Own(zmq.Socket):
        def recv(self, *args, **kwargs):
            return super().recv(*args, **kwargs).upper()

    with context.socket(zmq.PULL, Own) as pull:
        pull.bind("tcp://127.0.0.1:*")
        push = sockets.connected(zmq.PUSH, pull)
        push.send(b"text")
        push.send(b'"json"')
        assert pull.recv_string() == "TEXT"
        assert pull.recv_json() == "JSON"


def test_deserializing_hook(zmq, context, sockets):
    class Own(zmq.Socket):
        def _deserialize(self, recvd, load):
            return ("hook", load(recvd))

    with context.socket(zmq.PULL, Own) as pull:
        pull.bind("tcp://127.0.0.1:*")
        push = sockets.connected(zmq.PUSH, pull)
        for _ in range(3):
            push.send(b"1")
        assert pull.recv_string() == ("hook", "1")
        assert pull.recv_json() == ("hook", 1)
        assert pull.recv_serialized(len) == ("hook", 1)


def test_overridden_close_is_used(zmq, context):
    closed = []

    class Own(zmq.Socket):
        def close(self, linger=None):
            closed.append(linger)
            super().close(linger)

    with context.socket(zmq.PUSH, Own):
        pass
    assert closed == [None]


def test_generic(zmq):
    assert zmq.Socket[bytes] is not None
    assert zmq.Context[zmq.Socket] is not None


def test_polling_a_socket(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    assert pull.poll(0) == 0
    assert pull.poll(timeout=1, flags=zmq.POLLIN) == 0
    push.send(b"x")
    assert pull.poll() == zmq.POLLIN
    assert pull.poll(1.5) == zmq.POLLIN
    assert push.poll(100, zmq.POLLOUT) == zmq.POLLOUT
    assert push.poll(0, zmq.POLLIN | zmq.POLLOUT) == zmq.POLLOUT


def test_other_threads(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    thread = threading.Thread(target=push.send, args=(b"from a thread",))
    thread.start()
    thread.join()
    assert pull.recv() == b"from a thread"


@pytest.mark.differs("pyzmq's wheels have no drafts")
def test_groups(zmq, context):
    with context.socket(zmq.DISH) as socket:
        socket.join("group")


def test_socket_type_is_an_old_name(zmq, context):
    with context.socket(zmq.PUSH) as socket, pytest.warns(DeprecationWarning):
        assert socket.socket_type == zmq.PUSH


def test_descriptor(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    assert pull.fileno() == pull.FD == pull.getsockopt(zmq.FD)
    assert pull.fileno() != push.fileno()


def test_native_base_is_hidden(zmq):
    names = [base.__name__ for base in zmq.Socket.__mro__]
    assert names[0] == "Socket"
    assert isinstance(zmq.Socket.__doc__, str)


def test_messages_sent_before_an_incompatible_type_binds_the_name(zmq, context):
    push, publisher = context.socket(zmq.PUSH), context.socket(zmq.PUB)
    push.connect("inproc://name")
    push.send(b"before", zmq.DONTWAIT)
    publisher.bind("inproc://name")
    push.send(b"behind", zmq.DONTWAIT)
    assert push.poll(0, zmq.POLLOUT)


# ---- subclasses that override send or recv -------------------------------------------


@pytest.fixture
def reversing(zmq):
    """A class whose messages are reversed on their way, as others are encrypted."""

    class Reversing(zmq.Socket):
        def send(self, data, *args, **kwargs):
            return super().send(bytes(data)[::-1], *args, **kwargs)

        def mixed_in(self, data, *args, **kwargs):
            return zmq.Socket.send(self, bytes(data)[::-1], *args, **kwargs)

        def recv(self, *args, **kwargs):
            body = super().recv(*args, **kwargs)
            return body[::-1] if isinstance(body, bytes) else type(body)(body.bytes[::-1])

    return Reversing


SENDING = {
    "send": (b"ab", [b"ba"]),
    "send_multipart": ([b"ab", b"cd"], [b"ba", b"dc"]),
    "send_string": ("ab", [b"ba"]),
    "send_json": (12, [b"21"]),
}


@pytest.mark.parametrize("call", SENDING)
@pytest.mark.parametrize("derived", ["class", "subclass", "mixin"])
def test_calls_go_through_an_overridden_send(zmq, sockets, reversing, call, derived):
    kind = reversing
    if derived == "subclass":
        kind = type("Derived", (reversing,), {"other": 5})
    elif derived == "mixin":
        mixin = type("Mixin", (), {"send": reversing.__dict__["mixed_in"]})
        kind = type("Derived", (mixin, zmq.Socket), {})
    pull = sockets.bound(zmq.PULL, "inproc")
    given, arrives = SENDING[call]
    with kind(sockets.context, zmq.PUSH) as push:
        push.connect(pull.last_endpoint.decode())
        getattr(push, call)(given)
        assert pull.recv_multipart() == arrives
        push.send_serialized([b"ab", b"cd"], list)
        assert pull.recv_multipart() == [b"ba", b"dc"]


def test_calls_go_through_an_overridden_recv(zmq, sockets, reversing):
    push = sockets.bound(zmq.PUSH, "inproc")
    with reversing(sockets.context, zmq.PULL) as pull:
        pull.rcvtimeo = 20_000
        pull.connect(push.last_endpoint.decode())
        for body in (b"ab", b"ab", b"21"):
            push.send(body)
        assert pull.recv() == b"ba"
        assert pull.recv_string() == "ba"
        assert pull.recv_json() == 12
        for _ in range(3):
            push.send_multipart([b"ab", b"cd"])
        assert pull.recv_multipart() == [b"ba", b"dc"]
        assert [frame.bytes for frame in pull.recv_multipart(copy=False)] == [b"ba", b"dc"]
        assert pull.recv_serialized(list) == [b"ba", b"dc"]
        with pytest.raises(zmq.Again):
            pull.recv_multipart(zmq.NOBLOCK)


def test_an_overridden_multipart_call_stays(zmq, sockets, reversing):
    class Counting(reversing):
        count = 0

        def recv_multipart(self, *args, **kwargs):
            self.__dict__["count"] = self.count + 1
            return super().recv_multipart(*args, **kwargs)

    class Derived(Counting):
        def recv(self, *args, **kwargs):
            return super().recv(*args, **kwargs)

    push = sockets.bound(zmq.PUSH, "inproc")
    with Derived(sockets.context, zmq.PULL) as pull:
        pull.connect(push.last_endpoint.decode())
        push.send_multipart([b"ab", b"cd"])
        assert pull.recv_multipart() == [b"ba", b"dc"]
        assert pull.count == 1


def test_calls_go_through_a_replaced_send(zmq, sockets):
    push = sockets.bound(zmq.PUSH, "inproc")
    with mock.patch.object(push, "send") as send:
        push.send_string("a")
        push.send_multipart([b"b", b"c"])
        assert [call.args[0] for call in send.call_args_list] == [b"a", b"b", b"c"]
    pull = sockets.connected(zmq.PULL, push)
    push.send_multipart([b"d"])
    assert pull.recv() == b"d"


def test_calls_go_through_a_replaced_recv(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, "inproc")
    with mock.patch.object(pull, "recv", return_value=b"1"):
        assert (pull.recv_string(), pull.recv_json()) == ("1", 1)
        assert pull.recv_multipart() == [b"1"]
    push.send_multipart([b"d"])
    assert pull.recv_multipart() == [b"d"]


@pytest.mark.parametrize("transport", ["inproc", "ipc"])
def test_pickles_go_through_an_overridden_recv(zmq, sockets, reversing, transport):
    """Without `copy`, and without frames, which have `bytes`."""

    class Short(reversing):
        def recv(self, flags=0):
            return zmq.Socket.recv(self, flags)[::-1]

    for kind in (reversing, Short):
        push = sockets.bound(zmq.PUSH, transport)
        with kind(sockets.context, zmq.PULL) as pull:
            pull.rcvtimeo = 20_000
            pull.connect(push.last_endpoint.decode())
            push.send(pickle.dumps({"a": [1]})[::-1])
            assert pull.recv_pyobj() == {"a": [1]}


def test_pickles_go_through_a_replaced_recv(zmq, context):
    body = pickle.dumps(1)
    with mock.patch.object(zmq.Socket, "recv", return_value=body) as recv:
        assert context.socket(zmq.PULL).recv_pyobj(zmq.NOBLOCK) == 1
        recv.assert_called_once_with(zmq.NOBLOCK)
    pull = context.socket(zmq.PULL)
    pull.recv = mock.Mock(return_value=body)
    assert pull.recv_pyobj() == 1
    pull.recv.return_value = b"no pickle"
    with pytest.raises(pickle.UnpicklingError):
        pull.recv_pyobj()


def test_calls_pass_the_arguments_that_a_replaced_call_may_expect(zmq, context):
    pair = context.socket(zmq.PAIR)
    pair.send = mock.Mock()
    for call, body in ((pair.send_json, b"{}"), (pair.send_pyobj, pickle.dumps({}))):
        call({})
        pair.send.assert_called_with(body, flags=0)
    pair.send_string("a")
    pair.send.assert_called_with(b"a", flags=0, copy=True)
    pair.send_multipart = mock.Mock()
    pair.send_serialized("a", list)
    pair.send_multipart.assert_called_once_with(["a"], flags=0, copy=True)
    pair.recv = mock.Mock(return_value=b"1")
    pair.recv_multipart = mock.Mock(return_value=[b"1"])
    pair.recv_string()
    pair.recv.assert_called_with(flags=0)
    pair.recv_json()
    pair.recv.assert_called_with(0)
    pair.recv_serialized(list)
    pair.recv_multipart.assert_called_once_with(flags=0, copy=True)


def test_json_through_a_send_without_routing_ids(zmq, sockets):
    class Classic(zmq.Socket):
        def send(self, data, flags=0, copy=True, track=False):
            return super().send(data, flags, copy, track)

    pull = sockets.bound(zmq.PULL, "inproc")
    with Classic(sockets.context, zmq.PUSH) as push:
        push.connect(pull.last_endpoint.decode())
        push.send_json([1])
        assert pull.recv() == b"[1]"


@pytest.mark.parametrize("derived", [False, True])
def test_calls_go_through_what_replaces_them_in_a_class(zmq, context, sockets, derived):
    kind = type("Derived", (zmq.Socket,), {}) if derived else zmq.Socket
    with (
        mock.patch.object(zmq.Socket, "send") as send,
        mock.patch.object(zmq.Socket, "recv", return_value=b"1"),
    ):
        pair = context.socket(zmq.PAIR, kind)
        pair.send(b"a")
        pair.send_string("b")
        pair.send_multipart([b"c", b"d"])
        assert [call.args[0] for call in send.call_args_list] == [b"a", b"b", b"c", b"d"]
        assert (pair.recv(), pair.recv_string(), pair.recv_multipart()) == (b"1", "1", [b"1"])
    pair.bind("inproc://replaced")
    other = context.socket(zmq.PAIR, kind)
    other.connect("inproc://replaced")
    pair.send_multipart([b"e", b"f"])
    assert other.recv_multipart() == [b"e", b"f"]


def test_a_replaced_multipart_call_goes_before_a_replaced_send(zmq, context):
    with (
        mock.patch.object(zmq.Socket, "send") as send,
        mock.patch.object(zmq.Socket, "send_multipart") as send_multipart,
    ):
        context.socket(zmq.PUSH).send_multipart([b"a"])
        send_multipart.assert_called_once_with([b"a"])
        send.assert_not_called()


def test_nothing_is_sent_of_a_message_with_a_wrong_part(zmq, sockets, reversing):
    pull = sockets.bound(zmq.PULL, "inproc")
    with reversing(sockets.context, zmq.PUSH) as push:
        push.connect(pull.last_endpoint.decode())
        with pytest.raises(TypeError, match="Frame 1"):
            push.send_multipart([b"ab", "text"])
        with pytest.raises(IndexError):
            push.send_multipart([])
        push.send_multipart([b"ef"])
        assert pull.recv_multipart() == [b"fe"]
