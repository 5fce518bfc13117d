"""Sockets: their lifetime, their endpoints and the forms of send and receive."""

import copy
import ctypes
import gc
import pickle
import selectors
import signal
import warnings
from array import array

import pytest
from support import PATIENCE, Background, bind_once_free, eventually, lasting_endpoint

# ---- life ---------------------------------------------------------------------------


def test_kind_and_context(zmq, context):
    with context.socket(zmq.PUSH) as socket:
        assert socket.type is zmq.SocketType.PUSH
        assert socket.get(zmq.TYPE) == zmq.PUSH
        assert socket.context is context
        assert not socket.closed
    assert socket.closed


def test_made_directly(zmq, context):
    with zmq.Socket(context, zmq.PULL) as socket:
        assert socket.type == zmq.PULL
    with pytest.raises(TypeError):
        zmq.Socket()


def test_unknown_kind(zmq, context):
    with pytest.raises(zmq.ZMQError) as caught:
        context.socket(255)
    assert caught.value.errno == zmq.EINVAL


def test_close_again(zmq, context):
    socket = context.socket(zmq.PUSH)
    socket.close(linger=0)
    socket.close()
    assert socket.closed
    with pytest.raises(zmq.ZMQError) as caught:
        socket.send(b"")
    assert caught.value.errno == zmq.ENOTSOCK
    for call in (socket.bind, socket.connect, socket.unbind, socket.disconnect):
        for endpoint in ("inproc://closed", ""):
            with pytest.raises(zmq.ZMQError) as caught:
                call(endpoint)
            assert caught.value.errno == zmq.ENOTSOCK
    with pytest.raises(zmq.ZMQError) as caught:
        socket.poll(0)
    assert caught.value.errno == zmq.ENOTSUP


def test_one_more_handle(zmq, context):
    original = context.socket(zmq.PULL)
    for shadow in (
        zmq.Socket(original),
        zmq.Socket(shadow=original),
        zmq.Socket.shadow(original),
        zmq.Socket.shadow(original.underlying),
        copy.copy(original),
    ):
        assert shadow.underlying == original.underlying
        assert shadow.type == zmq.PULL
        assert not shadow.closed
        del shadow
    gc.collect()
    assert not original.closed
    shadow = zmq.Socket(original)
    original.close()
    assert shadow.closed


def test_subclass(zmq, context):
    class Counting(zmq.Socket):
        count: int

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.count = 0

        def send(self, data, *args, **kwargs):
            self.count += 1
            return super().send(data, *args, **kwargs)

    with Counting(context, zmq.PUB) as socket:
        socket.send(b"")
        socket.send_string("")
        socket.send_json({})
        assert socket.count == 3
        assert f"{__name__}." in repr(socket) and "Counting(zmq.PUB)" in repr(socket)


def test_repr(zmq, context):
    socket = context.socket(zmq.PUSH)
    assert repr(socket).startswith("<zmq.Socket(zmq.PUSH) at 0x")
    socket.close()
    assert repr(socket).startswith("<zmq.Socket(zmq.PUSH) at 0x")
    assert repr(socket).endswith(" closed>")


def test_unclosed_socket_warns(zmq, context):
    socket = context.socket(zmq.PUSH)
    with pytest.warns(ResourceWarning, match="Unclosed socket"):
        del socket
        gc.collect()


def test_closed_socket_does_not_warn(zmq, context):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        socket = context.socket(zmq.PUSH)
        socket.close()
        del socket
        gc.collect()


def test_socket_type_is_deprecated(zmq, context):
    with context.socket(zmq.PUSH) as socket, pytest.warns(DeprecationWarning):
        assert socket.socket_type == zmq.PUSH


@pytest.mark.zeroxide_only
def test_no_pickle(zmq, context):
    with context.socket(zmq.PUSH) as socket, pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(socket)


@pytest.mark.zeroxide_only
def test_unfinished_socket(zmq):
    class Careless(zmq.Socket):
        def __init__(self):
            pass

    socket = Careless()
    assert socket.closed
    with pytest.raises(zmq.ZMQError):
        socket.send(b"")
    socket.close()
    repr(socket)


# ---- endpoints ----------------------------------------------------------------------


def test_bind_and_connect(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    push.send(b"hello")
    assert pull.recv() == b"hello"


def test_connect_before_bind(zmq, context, sockets, transport):
    endpoint = lasting_endpoint() if transport == "tcp" else sockets.endpoint(transport)
    push = context.socket(zmq.PUSH)
    push.connect(endpoint)
    push.send(b"early")
    pull = context.socket(zmq.PULL)
    pull.bind(endpoint)
    assert pull.recv() == b"early"


def test_bind_as_block(zmq, context):
    with context.socket(zmq.PULL) as socket:
        with socket.bind("tcp://127.0.0.1:*") as same:
            assert same is socket
            endpoint = socket.last_endpoint
            assert not endpoint.endswith(b"*")
        with pytest.raises(zmq.ZMQError) as caught:
            socket.unbind(endpoint.decode())
        assert caught.value.errno == 2  # ENOENT


def test_connect_as_block(zmq, context, sockets):
    pull = sockets.bound(zmq.PULL)
    endpoint = pull.last_endpoint.decode()
    with context.socket(zmq.PUSH) as socket:
        with socket.connect(endpoint) as same:
            assert same is socket
            socket.send(b"inside")
            assert pull.recv() == b"inside"
        with pytest.raises(zmq.ZMQError) as caught:
            socket.disconnect(endpoint)
        assert caught.value.errno == 2


def test_closed_inside_a_block(zmq, context):
    socket = context.socket(zmq.PULL)
    with socket.bind("inproc://closed-inside"):
        socket.close()


def test_unbind(zmq, sockets, transport):
    pull = sockets.bound(zmq.PULL, transport)
    endpoint = pull.last_endpoint.decode()
    pull.unbind(endpoint)
    other = sockets.context.socket(zmq.PULL)
    with other:
        bind_once_free(zmq, other, endpoint)


@pytest.mark.parametrize(
    ("endpoint", "number"),
    [
        ("", "EINVAL"),
        ("no scheme", "EINVAL"),
        ("tcp://", "EINVAL"),
        ("tcp://127.0.0.1", "EINVAL"),
        ("tcp://127.0.0.1:port", "EINVAL"),
        ("gopher://127.0.0.1:70", "EPROTONOSUPPORT"),
        ("tcp://127.0.0.1:99999", "EINVAL"),
        ("tcp://127.0.0.1:55x", "EINVAL"),
    ],
)
def test_bad_endpoints(zmq, context, endpoint, number):
    if zmq.__name__ == "zmq" and endpoint.endswith(("99999", "55x")):
        pytest.skip("libzmq takes these for other ports")
    with context.socket(zmq.PULL) as socket:
        for call in (socket.bind, socket.connect):
            with pytest.raises(zmq.ZMQError) as caught:
                call(endpoint)
            assert caught.value.errno == getattr(zmq, number), call
            assert endpoint in str(caught.value)
        if not endpoint.startswith("tcp://1"):  # a valid endpoint, but not one that this socket has
            for call in (socket.unbind, socket.disconnect):
                with pytest.raises(zmq.ZMQError) as caught:
                    call(endpoint)
                assert caught.value.errno == getattr(zmq, number), call


def test_endpoint_in_use(zmq, sockets, context, transport):
    if transport == "ipc" and zmq.__name__ == "zmq":
        pytest.skip("libzmq takes the path away from a live server")
    first = sockets.bound(zmq.PULL, transport)
    with context.socket(zmq.PULL) as second:
        with pytest.raises(zmq.ZMQError) as caught:
            second.bind(first.last_endpoint.decode())
        assert caught.value.errno == zmq.EADDRINUSE
        assert first.last_endpoint.decode() in str(caught.value)


def test_address_as_bytes(zmq, context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.bind(b"inproc://bytes")
        push.connect(b"inproc://bytes")
        push.send(b"")
        pull.recv()
        with pytest.raises(TypeError):
            pull.bind(5555)


def test_long_ipc_path(zmq, context):
    path = "ipc:///tmp/" + "x" * zmq.IPC_PATH_MAX_LEN
    with context.socket(zmq.PULL) as socket:
        with pytest.raises(zmq.ZMQError) as caught:
            socket.bind(path)
        assert str(zmq.IPC_PATH_MAX_LEN) in str(caught.value)


def test_random_port(zmq, context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        assert pull.last_endpoint == b"tcp://127.0.0.1:%d" % port
        push.connect(f"tcp://127.0.0.1:{port}")
        push.send(b"")
        pull.recv()
        chosen = pull.bind_to_random_port("tcp://127.0.0.1", min_port=20000, max_port=30000)
        assert 20000 <= chosen < 30000


def test_random_port_exhausted(zmq, context, sockets):
    owner = sockets.bound(zmq.PULL)
    taken = int(owner.last_endpoint.rpartition(b":")[2])
    with context.socket(zmq.PULL) as socket, pytest.raises(zmq.ZMQBindError):
        socket.bind_to_random_port(
            "tcp://127.0.0.1", min_port=taken, max_port=taken + 1, max_tries=3
        )


# ---- sending and receiving ----------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 30, 33, 34, 69, 70, 255, 256, 8192, 1 << 20])
def test_sizes(zmq, sockets, transport, size):
    body = bytes(i % 251 for i in range(size))
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    for _ in range(3):
        push.send(body)
        push.send(body, copy=False)
        push.send_multipart([b"head", body, b"", body])
    for _ in range(3):
        assert pull.recv() == body
        assert pull.recv(copy=False).bytes == body
        assert pull.recv_multipart() == [b"head", body, b"", body]


def test_parts(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    push.send(b"a", zmq.SNDMORE)
    push.send(b"b", flags=zmq.SNDMORE | zmq.DONTWAIT)
    push.send(b"c")
    assert pull.recv() == b"a"
    assert pull.rcvmore == pull.get(zmq.RCVMORE) == 1
    assert pull.recv_multipart() == [b"b", b"c"]
    assert pull.rcvmore == 0
    push.send_multipart([b"d", b"e"], flags=zmq.SNDMORE)
    push.send_multipart((b"f",))
    frames = pull.recv_multipart(copy=False)
    assert [frame.bytes for frame in frames] == [b"d", b"e", b"f"]
    assert [frame.more for frame in frames] == [True, True, False]


def test_parts_left_can_be_waited_for(zmq, sockets, transport):
    """Loops that receive one part at a time poll before each part."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    push.send_multipart([b"a", b"b", b"c"])
    for part in (b"a", b"b", b"c"):
        assert pull.poll(5000) == zmq.POLLIN
        assert pull.events & zmq.POLLIN
        assert zmq.zmq_poll([(pull, zmq.POLLIN)], 5000) == [(pull, zmq.POLLIN)]
        assert zmq.select([pull], [], [], 5) == ([pull], [], [])
        assert pull.recv(zmq.DONTWAIT) == part
    assert pull.poll(0) == 0


@pytest.mark.zeroxide_only
def test_parts_left_keep_the_descriptor_readable(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    push.send_multipart([b"a", b"b", b"c"])
    with selectors.DefaultSelector() as selector:
        selector.register(pull, selectors.EVENT_READ)
        for part in (b"a", b"b", b"c"):
            assert selector.select(5)
            assert pull.recv(zmq.DONTWAIT) == part
        assert not selector.select(0)


def test_objects_that_can_be_sent(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for body in (
        b"bytes",
        bytearray(b"bytearray"),
        memoryview(b"memoryview")[2:],
        array("d", [1.5, 2.5]),
        memoryview(bytes(24)).cast("i", (2, 3)),
        (ctypes.c_short * 5)(*range(5)),
    ):
        push.send(body)
        assert pull.recv() == bytes(body)
        push.send(body, copy=False)
        assert pull.recv(copy=False).bytes == bytes(body)
        assert push.send_multipart([body, zmq.Frame(body)]) is None
        assert pull.recv_multipart() == [bytes(body)] * 2


def test_objects_that_cannot_be_sent(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for body in ("text", 5, None, [b"list"]):
        with pytest.raises(TypeError):
            push.send(body)
        with pytest.raises(TypeError):
            push.send(body, copy=False)
    for scattered in (memoryview(b"abcdef")[::2], memoryview(bytes(16)).cast("B", (4, 4))[::2]):
        with pytest.raises((BufferError, ValueError)):
            push.send(scattered)
    with pytest.raises(TypeError, match="Frame 1"):
        push.send_multipart([b"good", 5, b"good"])
    with pytest.raises(IndexError):
        push.send_multipart([])
    push.send(b"nothing of that was sent")
    assert pull.recv_multipart() == [b"nothing of that was sent"]


def test_labels_of_other_types(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for label in ({"routing_id": 1}, {"group": "group"}):
        with pytest.raises(zmq.ZMQError) as caught:
            push.send(b"", **label)
        assert caught.value.errno == zmq.EINVAL
    # A frame can be passed on, whatever it came with.
    frame = zmq.Frame(b"x")
    frame.routing_id = 7
    push.send(frame)
    assert pull.recv(copy=False).group == ""


def test_would_block(zmq, context):
    with context.socket(zmq.DEALER) as socket:
        for call in (
            lambda: socket.recv(zmq.DONTWAIT),
            lambda: socket.recv(flags=zmq.NOBLOCK, copy=False),
            lambda: socket.recv_multipart(zmq.DONTWAIT),
            lambda: socket.recv_string(zmq.DONTWAIT),
            lambda: socket.recv_into(bytearray(1), flags=zmq.DONTWAIT),
            lambda: socket.send(b"", zmq.DONTWAIT),
            lambda: socket.send_multipart([b"", b""], zmq.DONTWAIT),
        ):
            with pytest.raises(zmq.Again):
                call()


def test_timeouts(zmq, context):
    with context.socket(zmq.DEALER) as socket:
        socket.rcvtimeo = socket.sndtimeo = 10
        for call in (socket.recv, socket.recv_multipart, lambda: socket.send(b"")):
            with pytest.raises(zmq.Again):
                call()


def test_string(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_string("grüße")
    assert pull.recv() == "grüße".encode()
    push.send_string("grüße", encoding="latin-1")
    assert pull.recv_string(encoding="latin-1") == "grüße"
    push.send_unicode("grüße", copy=False)
    assert pull.recv_unicode() == "grüße"
    push.send_string("head", zmq.SNDMORE)
    push.send_string("")
    assert pull.recv_multipart() == [b"head", b""]
    with pytest.raises(TypeError):
        push.send_string(b"bytes")
    push.send(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        pull.recv_string()


def test_json(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for value in ({"a": [1, 2.5, None]}, [], "text", 5):
        push.send_json(value)
        assert pull.recv_json() == value
    push.send_json({"b": 1, "a": 2}, sort_keys=True)
    assert pull.recv_json(object_pairs_hook=list) == [("a", 2), ("b", 1)]


def test_pyobj(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_pyobj({"a": (1, {2})})
    assert pull.recv_pyobj() == {"a": (1, {2})}
    push.send_pyobj([1], protocol=2)
    assert pull.recv()[:2] == b"\x80\x02"


def test_serialized(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_serialized({"a": b"1"}, lambda d: [k.encode() + v for k, v in d.items()])
    assert pull.recv_serialized(lambda parts: len(parts)) == 1
    push.send_serialized([b"x", b"y"], list, copy=False)
    assert pull.recv_serialized(lambda f: [bytes(p) for p in f], copy=False) == [b"x", b"y"]


def test_recv_into(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    buffer = bytearray(b"-" * 8)
    push.send_multipart([b"abc", b"0123456789", b"discarded", b"xy", b"z"])
    assert pull.recv_into(buffer) == 3
    assert buffer == b"abc-----"
    assert pull.rcvmore
    assert pull.recv_into(memoryview(buffer)[4:]) == 10
    assert buffer == b"abc-0123"
    assert pull.recv_into(bytearray()) == 9
    assert pull.recv_into(buffer, nbytes=1) == 2
    assert buffer == b"xbc-0123"
    assert pull.recv_into(buffer, flags=zmq.DONTWAIT) == 1
    assert not pull.rcvmore


def test_recv_into_what_it_cannot(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"still there")
    with pytest.raises((BufferError, ValueError)):
        pull.recv_into(b"read-only")
    with pytest.raises((BufferError, ValueError)):
        pull.recv_into(memoryview(bytearray(8))[::2])
    with pytest.raises(ValueError):
        pull.recv_into(bytearray(2), nbytes=3)
    assert pull.recv() == b"still there"


def test_a_buffer_keeps_its_size_while_recv_into_waits(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    pull.rcvtimeo = int(PATIENCE * 1000)
    buffer = bytearray(8)
    receiving = Background(pull.recv_into, buffer)

    def is_held():
        try:
            buffer.append(0)
        except BufferError:
            return True
        buffer.pop()
        return False

    eventually(is_held)
    push.send(b"abc")
    assert receiving.result() == 3
    assert buffer == b"abc" + bytes(5)
    buffer.append(0)


@pytest.mark.zeroxide_only
def test_a_view_that_a_handler_releases_costs_recv_into_no_message(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    pull.rcvtimeo = int(PATIENCE * 1000)
    view = memoryview(bytearray(8))
    refused = []

    def release(*_):
        try:
            view.release()
        except BufferError as error:
            refused.append(error)
        push.send(b"abc")

    before = signal.signal(signal.SIGALRM, release)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        assert pull.recv_into(view) == 3
    finally:
        signal.signal(signal.SIGALRM, before)
    assert refused and view[:3] == b"abc"


def test_poll(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    assert pull.poll(0) == 0
    assert pull.poll(timeout=1, flags=zmq.POLLOUT) == 0
    assert push.poll(flags=zmq.POLLOUT) == zmq.POLLOUT
    assert push.poll(None, zmq.POLLIN | zmq.POLLOUT) == zmq.POLLOUT
    push.send(b"")
    assert pull.poll() == zmq.POLLIN
    assert pull.poll(1.5) == zmq.POLLIN
    pull.recv()
    assert pull.poll(0) == 0


@pytest.mark.zeroxide_only
def test_native_methods_are_called_directly(zmq):
    """A Python frame, or an attribute hook, would cost more than the message itself."""
    from zeroxide import _native

    direct = ["send", "recv", "send_multipart", "recv_multipart", "send_batch", "recv_batch"]
    for name in [*direct, "recv_into", "poll", "get", "set"]:
        assert getattr(zmq.Socket, name) is getattr(_native.Socket, name)
    assert zmq.Socket.__getattribute__ is object.__getattribute__
    assert not hasattr(zmq.Socket, "__getattr__")
