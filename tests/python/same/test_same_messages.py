"""Sending and receiving in every form."""

import array
import collections
import enum
import json
import mmap
import pickle

import pytest


class Number(enum.IntEnum):
    MORE = 2


@pytest.fixture
def pair(zmq, sockets):
    return sockets.pair(zmq.PAIR, zmq.PAIR, "inproc")


@pytest.fixture
def pipe(zmq, sockets):
    """Sender and receiver."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    return push, pull


# ---- what goes out ------------------------------------------------------------------


def test_send_returns_nothing(pipe):
    push, _pull = pipe
    assert push.send(b"") is None
    assert push.send(b"x", copy=True, track=False) is None
    assert push.send_multipart([b"a", b"b"]) is None
    assert push.send_string("text") is None
    assert push.send_json([1]) is None
    assert push.send_pyobj(None) is None
    assert push.send_serialized("x", lambda text: [text.encode()]) is None


def test_send_takes_its_arguments_by_name(zmq, pipe):
    push, pull = pipe
    push.send(data=b"a", flags=zmq.SNDMORE, copy=True, track=False)
    push.send(data=b"b", flags=0, copy=False)
    assert pull.recv_multipart(flags=0, copy=True, track=False) == [b"a", b"b"]


def test_send_takes_positional_arguments(zmq, pipe):
    push, pull = pipe
    push.send(b"a", zmq.SNDMORE, True, False)
    push.send(b"b", 0, False, False)
    assert pull.recv(0, True, False) == b"a"
    assert pull.recv(0, False, False).bytes == b"b"


def test_multipart_by_name(zmq, pipe):
    push, pull = pipe
    push.send_multipart(msg_parts=[b"a"], flags=zmq.DONTWAIT, copy=False, track=False)
    assert pull.recv_multipart(0, True, False) == [b"a"]


@pytest.mark.parametrize("kind", [int, Number])
def test_flags_may_be_any_integer(zmq, pipe, kind):
    push, pull = pipe
    push.send(b"a", kind(zmq.SNDMORE))
    push.send(b"b")
    assert pull.recv_multipart() == [b"a", b"b"]


@pytest.mark.parametrize("flags", [None, "1"])
def test_flags_that_are_not_integers(pipe, flags):
    with pytest.raises(TypeError):
        pipe[0].send(b"x", flags)


@pytest.mark.parametrize(
    "body",
    [
        b"bytes",
        bytearray(b"bytearray"),
        memoryview(b"memoryview"),
        memoryview(b"a part of it")[2:6],
        array.array("B", b"array"),
        array.array("i", [1, 2, 3]),
        memoryview(array.array("d", [0.5, 1.5])),
        memoryview(bytes(12)).cast("B", (3, 4)),
    ],
    ids=lambda body: type(body).__name__,
)
@pytest.mark.parametrize("copy", [True, False])
def test_bodies(pipe, body, copy):
    push, pull = pipe
    push.send(body, copy=copy)
    assert pull.recv() == bytes(memoryview(body).cast("B") if memoryview(body).ndim == 1 else body)


def test_mapped_memory(pipe):
    push, pull = pipe
    with mmap.mmap(-1, 100) as memory:
        memory[:5] = b"12345"
        push.send(memory)
        assert pull.recv()[:6] == b"12345\0"


@pytest.mark.parametrize("body", ["text", 5, None, 1.5, object(), [b"list"], {}], ids=repr)
@pytest.mark.parametrize("copy", [True, False])
def test_objects_that_are_not_buffers(pipe, body, copy):
    push, pull = pipe
    with pytest.raises(TypeError):
        push.send(body, copy=copy)
    push.send(b"goes on")
    assert pull.recv() == b"goes on"


def test_text_raises_an_error_that_names_send_string(pipe):
    with pytest.raises(TypeError, match="send_string"):
        pipe[0].send("text")


def test_scattered_memory(pipe):
    with pytest.raises(BufferError):
        pipe[0].send(memoryview(b"0123456789")[::2])


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("size", [2, 500], ids=["small", "large"])
def test_columns_before_rows(zmq, pipe, size, copy):
    """Arrays whose columns are stored one after the other, as in Fortran, are sent as they are stored."""
    numpy = pytest.importorskip("numpy")
    push, pull = pipe
    stored = numpy.arange(size * 300, dtype="u2").reshape(size, 300)
    push.send(stored.T, copy=copy)
    push.send_multipart([stored.T, memoryview(stored.T)], copy=copy)
    push.send(zmq.Frame(stored.T, copy=copy))
    for _ in range(4):
        assert pull.recv() == stored.tobytes()


def test_into_columns_before_rows(pipe):
    numpy = pytest.importorskip("numpy")
    push, pull = pipe
    stored = numpy.zeros((2, 3), dtype="u1")
    push.send(b"abcdef")
    assert pull.recv_into(stored.T) == 6
    assert stored.tobytes() == b"abcdef"


@pytest.mark.parametrize("copy", [True, False])
def test_scattered_arrays(zmq, pipe, copy):
    numpy = pytest.importorskip("numpy")
    scattered = numpy.zeros((4, 6), dtype="u1")[:, ::2]
    for call in (pipe[0].send, zmq.Frame):
        with pytest.raises((ValueError, BufferError)):
            call(scattered, copy=copy)
    with pytest.raises(ValueError):
        zmq.Frame(scattered)


@pytest.mark.parametrize("kind", [list, tuple])
def test_parts_in_a_sequence(pipe, kind):
    push, pull = pipe
    push.send_multipart(kind([b"a", bytearray(b"b"), memoryview(b"c")]))
    assert pull.recv_multipart() == [b"a", b"b", b"c"]


@pytest.mark.differs("any iterable of parts will do")
def test_parts_in_a_deque(pipe):
    push, pull = pipe
    push.send_multipart(collections.deque([b"a", b"b"]))
    assert pull.recv_multipart() == [b"a", b"b"]


def test_frames_among_the_parts(zmq, pipe):
    push, pull = pipe
    push.send_multipart([zmq.Frame(b"a"), b"b", zmq.Frame(b"c" * 100_000)])
    assert [len(part) for part in pull.recv_multipart()] == [1, 1, 100_000]


def test_a_bad_part_stops_the_message(pipe):
    push, pull = pipe
    with pytest.raises(TypeError, match=r"Frame 1 .* does not support the buffer interface"):
        push.send_multipart([b"a", "b", b"c"])
    push.send(b"nothing of it was sent")
    assert pull.recv_multipart() == [b"nothing of it was sent"]


def test_a_bad_part_is_shortened_in_the_error(pipe):
    with pytest.raises(TypeError) as caught:
        pipe[0].send_multipart([["x" * 1000]])
    assert len(str(caught.value)) < 120


def test_multipart_of_one_is_a_message_of_one(pipe):
    push, pull = pipe
    push.send_multipart([b"alone"])
    assert pull.recv() == b"alone"
    assert not pull.rcvmore


def test_multipart_may_be_continued(zmq, pipe):
    push, pull = pipe
    push.send_multipart([b"a", b"b"], zmq.SNDMORE)
    push.send(b"c")
    assert pull.recv_multipart() == [b"a", b"b", b"c"]


def test_parts_one_by_one(zmq, pipe):
    push, pull = pipe
    for part in (b"a", b"", b"c"):
        push.send(part, zmq.SNDMORE)
    push.send(b"")
    parts = []
    while True:
        parts.append(pull.recv())
        if not pull.rcvmore:
            break
    assert parts == [b"a", b"", b"c", b""]


def test_unfinished_message_is_not_seen(zmq, pipe):
    push, pull = pipe
    push.send(b"a", zmq.SNDMORE)
    assert not pull.poll(20)
    push.send(b"b")
    assert pull.recv_multipart() == [b"a", b"b"]


def test_more_of_a_message(zmq, pipe):
    push, pull = pipe
    push.send_multipart([b"a", b"b"])
    assert pull.recv() == b"a"
    assert pull.get(zmq.RCVMORE) == 1
    assert pull.getsockopt(zmq.RCVMORE) == 1
    assert pull.recv() == b"b"
    assert pull.get(zmq.RCVMORE) == 0


def test_remaining_parts_as_multipart(pipe):
    push, pull = pipe
    push.send_multipart([b"a", b"b", b"c"])
    assert pull.recv() == b"a"
    assert pull.recv_multipart() == [b"b", b"c"]


def test_many_parts(pipe):
    push, pull = pipe
    parts = [b"%d" % n for n in range(1000)]
    push.send_multipart(parts)
    assert pull.recv_multipart() == parts


@pytest.mark.parametrize("size", [0, 1, 69, 70, 255, 256, 8191, 65535, 65536, 1 << 20])
@pytest.mark.parametrize("copy", [True, False])
def test_sizes(pipe, size, copy):
    push, pull = pipe
    body = bytes(range(256)) * (size // 256 + 1)
    push.send(body[:size], copy=copy)
    assert pull.recv(copy=copy if size % 2 else True) is not None
    push.send_multipart([body[:size], b"end"], copy=copy)
    received = pull.recv_multipart(copy=copy)
    assert [bytes(part) for part in received] == [body[:size], b"end"]


# ---- what comes in ------------------------------------------------------------------


def test_received_bytes_are_bytes(pipe):
    push, pull = pipe
    push.send(bytearray(b"x"))
    assert type(pull.recv()) is bytes
    push.send(b"x")
    assert type(pull.recv_multipart()) is list


def test_received_frames(zmq, pipe):
    push, pull = pipe
    push.send_multipart([b"a", b"b" * 1000])
    first, second = pull.recv_multipart(copy=False)
    assert type(first) is zmq.Frame
    assert (first.bytes, first.more) == (b"a", True)
    assert (second.bytes, second.more) == (b"b" * 1000, False)
    assert first.tracker is None


def test_received_frame_with_tracker(zmq, pipe):
    push, pull = pipe
    push.send(b"a")
    frame = pull.recv(copy=False, track=True)
    assert isinstance(frame.tracker, zmq.MessageTracker)


@pytest.mark.parametrize("method", ["recv", "recv_multipart", "recv_string", "recv_json"])
def test_no_message(zmq, pipe, method):
    with pytest.raises(zmq.Again) as caught:
        getattr(pipe[1], method)(zmq.DONTWAIT)
    assert caught.value.errno == zmq.EAGAIN
    assert str(caught.value).startswith("Resource temporarily unavailable")


@pytest.mark.parametrize("method", ["recv", "recv_multipart", "recv_pyobj", "recv_string"])
def test_receive_timeout(zmq, pipe, method):
    pipe[1].rcvtimeo = 5
    with pytest.raises(zmq.Again):
        getattr(pipe[1], method)()


def test_send_timeout(zmq, context):
    push = context.socket(zmq.PUSH)
    push.sndtimeo = 5
    with pytest.raises(zmq.Again):
        push.send(b"to nobody")
    push.sndtimeo = 0
    with pytest.raises(zmq.Again):
        push.send_multipart([b"to", b"nobody"])


@pytest.mark.parametrize("method", ["recv", "recv_multipart"])
@pytest.mark.parametrize("kind", ["PUSH", "PUB"])
def test_senders_do_not_receive(zmq, context, method, kind):
    with pytest.raises(zmq.ZMQError) as caught:
        getattr(context.socket(getattr(zmq, kind)), method)(zmq.DONTWAIT)
    assert caught.value.errno == zmq.ENOTSUP


@pytest.mark.parametrize("kind", ["PULL", "SUB"])
def test_receivers_do_not_send(zmq, context, kind):
    with pytest.raises(zmq.ZMQError) as caught:
        context.socket(getattr(zmq, kind)).send(b"x", zmq.DONTWAIT)
    assert caught.value.errno == zmq.ENOTSUP


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.recv(),
        lambda s: s.send(b"x"),
        lambda s: s.send_multipart([b"x"]),
        lambda s: s.recv_multipart(),
        lambda s: s.recv_into(bytearray(5)),
        lambda s: s.send_string("x"),
        lambda s: s.recv_json(),
        lambda s: s.bind("inproc://x"),
        lambda s: s.connect("inproc://x"),
        lambda s: s.unbind("inproc://x"),
        lambda s: s.disconnect("inproc://x"),
        lambda s: s.get(17),
        lambda s: s.set(17, 0),
        lambda s: s.poll(0),
        lambda s: s.linger,
        lambda s: setattr(s, "linger", 0),
        lambda s: s.fileno(),
        lambda s: s.subscribe("x"),
        lambda s: s.monitor("inproc://m", 1),
    ],
    ids=lambda call: ".".join(call.__code__.co_names),
)
def test_closed(zmq, context, call):
    socket = context.socket(zmq.PAIR)
    socket.close()
    with pytest.raises(zmq.ZMQError) as caught:
        call(socket)
    assert caught.value.errno in (zmq.ENOTSOCK, zmq.ENOTSUP)


# ---- recv_into ----------------------------------------------------------------------


def test_into(pipe):
    push, pull = pipe
    target = bytearray(b"." * 8)
    push.send(b"abc")
    assert pull.recv_into(target) == 3
    assert target == b"abc....."


def test_into_a_smaller_length(pipe):
    push, pull = pipe
    target = bytearray(b"." * 8)
    push.send(b"abcdef")
    # The size of the message, not the number of bytes written.
    assert pull.recv_into(target, nbytes=2) == 6
    assert target == b"ab......"


def test_into_too_small(pipe):
    push, pull = pipe
    target = bytearray(2)
    push.send(b"abcdef")
    assert pull.recv_into(target) == 6
    assert target == b"ab"


def test_into_a_view(pipe):
    push, pull = pipe
    target = bytearray(b"." * 8)
    push.send(b"abc")
    pull.recv_into(memoryview(target)[4:])
    assert target == b"....abc."


def test_into_an_array(pipe):
    push, pull = pipe
    target = array.array("i", [0, 0])
    push.send(array.array("i", [1, 2]))
    assert pull.recv_into(target) == 8
    assert target.tolist() == [1, 2]


def test_into_an_empty_buffer(pipe):
    push, pull = pipe
    push.send(b"abc")
    assert pull.recv_into(bytearray()) == 3


def test_into_part_by_part(pipe):
    push, pull = pipe
    push.send_multipart([b"abc", b"de"])
    target = bytearray(3)
    assert pull.recv_into(target) == 3
    assert pull.rcvmore
    assert pull.recv_into(target) == 2
    assert target == b"dec"


def test_into_read_only(pipe):
    push, pull = pipe
    push.send(b"abc")
    with pytest.raises(BufferError):
        pull.recv_into(b"read-only")
    assert pull.recv() == b"abc"


@pytest.mark.parametrize("nbytes", [9, -1])
def test_into_wrong_sizes(pipe, nbytes):
    with pytest.raises(ValueError):
        pipe[1].recv_into(bytearray(8), nbytes=nbytes)


@pytest.mark.parametrize("target", [None, "text", 5])
def test_into_an_object_that_is_not_a_buffer(pipe, target):
    with pytest.raises(TypeError):
        pipe[1].recv_into(target)


def test_into_without_waiting(zmq, pipe):
    with pytest.raises(zmq.Again):
        pipe[1].recv_into(bytearray(1), flags=zmq.DONTWAIT)


def test_into_takes_keyword_arguments_only(pipe):
    with pytest.raises(TypeError):
        pipe[1].recv_into(bytearray(1), 1)


# ---- text, JSON, pickles, and one's own ---------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_text(pipe, encoding):
    push, pull = pipe
    push.send_string("grüße", encoding=encoding)
    assert pull.recv_string(encoding=encoding) == "grüße"


def test_old_names_of_text(pipe):
    push, pull = pipe
    push.send_unicode("x")
    assert pull.recv_unicode() == "x"


def test_text_in_parts(zmq, pipe):
    push, pull = pipe
    push.send_string("a", zmq.SNDMORE)
    push.send_string("b", flags=0, copy=False)
    assert (pull.recv_string(), pull.recv_string()) == ("a", "b")


def test_text_must_be_text(pipe):
    with pytest.raises(TypeError):
        pipe[0].send_string(b"bytes")


def test_bytes_that_are_not_text(pipe):
    push, pull = pipe
    push.send(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        pull.recv_string()


@pytest.mark.parametrize("obj", [None, 1, 1.5, "grüße", [1, [2]], {"a": {"b": None}}, True])
def test_json(pipe, obj):
    push, pull = pipe
    push.send_json(obj)
    assert pull.recv_json() == obj


def test_json_on_the_wire(pipe):
    push, pull = pipe
    push.send_json({"ü": [1, 2]})
    body = pull.recv()
    assert json.loads(body.decode("utf8")) == {"ü": [1, 2]}


def test_json_options_of_the_sender(pipe):
    push, pull = pipe
    push.send_json({"b": 1, "a": 2}, sort_keys=True, separators=(",", ":"))
    assert pull.recv() == b'{"a":2,"b":1}'


def test_json_options_of_the_receiver(pipe):
    push, pull = pipe
    push.send(b'{"a": 1}')
    assert pull.recv_json(object_pairs_hook=list) == [("a", 1)]
    push.send(b"1.5")
    assert pull.recv_json(0, parse_float=str) == "1.5"


def test_json_flags(zmq, pipe):
    push, pull = pipe
    push.send_json(1, zmq.SNDMORE)
    push.send_json(2, flags=0)
    assert (pull.recv_json(flags=0), pull.recv_json()) == (1, 2)


def test_bytes_that_are_not_json(pipe):
    push, pull = pipe
    with pytest.raises(TypeError):
        push.send_json(object())
    push.send(b"{")
    with pytest.raises(json.JSONDecodeError):
        pull.recv_json()


@pytest.mark.parametrize("protocol", [0, 2, -1, pickle.DEFAULT_PROTOCOL])
def test_pyobj(pair, protocol):
    one, other = pair
    obj = {"a": [1, (2, 3)], "b": {4.5}}
    one.send_pyobj(obj, protocol=protocol)
    assert other.recv_pyobj() == obj
    one.send_pyobj(obj, 0, protocol)
    assert pickle.loads(other.recv()) == obj


def test_bytes_that_are_not_a_pickle(pair):
    one, other = pair
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        one.send_pyobj(lambda: None)
    one.send(b"no pickle")
    with pytest.raises(pickle.UnpicklingError):
        other.recv_pyobj()


def test_serialized(pipe):
    push, pull = pipe
    push.send_serialized({"a": 1}, lambda d: [k.encode() + b"%d" % v for k, v in d.items()])
    assert pull.recv_serialized(lambda parts: parts) == [b"a1"]


def test_serialized_frames(zmq, pipe):
    push, pull = pipe
    push.send_serialized(b"x", serialize=lambda body: [body, body], copy=False)
    found = pull.recv_serialized(deserialize=lambda parts: parts, copy=False)
    assert [type(part) for part in found] == [zmq.Frame] * 2


def test_serializers_that_fail(pipe):
    push, pull = pipe
    with pytest.raises(ZeroDivisionError):
        push.send_serialized(b"x", lambda body: 1 / 0)
    push.send(b"x")
    with pytest.raises(ZeroDivisionError):
        pull.recv_serialized(lambda parts: 1 / 0)
    push.send(b"the message was taken")
    assert pull.recv() == b"the message was taken"


@pytest.mark.differs("pyzmq's wheels have no drafts")
@pytest.mark.parametrize("what", ["routing_id", "group"])
def test_drafts_of_other_types(zmq, pipe, what):
    value = {"routing_id": 5, "group": "g"}[what]
    with pytest.raises(zmq.ZMQError):
        pipe[0].send(b"x", **{what: value})


@pytest.mark.parametrize("method", ["send", "send_multipart", "recv", "recv_multipart"])
def test_unknown_arguments(pipe, method):
    with pytest.raises(TypeError):
        getattr(pipe[0], method)(nonsense=1)


def test_missing_room_is_reported_at_the_first_part(zmq, context):
    """After `Again`, the program starts the message again, so no part of the first attempt may remain."""
    with context.socket(zmq.DEALER) as dealer, context.socket(zmq.DEALER) as peer:
        for _ in range(3):
            with pytest.raises(zmq.Again):
                dealer.send(b"a", zmq.SNDMORE | zmq.DONTWAIT)
        dealer.sndtimeo = 5
        with pytest.raises(zmq.Again):
            dealer.send_multipart([b"a", b"b"], zmq.SNDMORE)
        dealer.bind("inproc://room")
        peer.connect("inproc://room")
        dealer.send(b"a", zmq.SNDMORE | zmq.DONTWAIT)
        dealer.send(b"b", zmq.DONTWAIT)
        assert peer.recv_multipart() == [b"a", b"b"]


def errno_of_first_part(zmq, socket, part=b"x"):
    with pytest.raises(zmq.ZMQError) as caught:
        socket.send(part, zmq.SNDMORE | zmq.DONTWAIT)
    return caught.value.errno


@pytest.mark.parametrize("kind", ["REQ", "DEALER", "PUSH", "PAIR"])
def test_the_first_part_needs_room(zmq, context, kind):
    assert errno_of_first_part(zmq, context.socket(getattr(zmq, kind))) == zmq.EAGAIN


def test_the_first_part_is_out_of_turn(zmq, sockets, context):
    assert errno_of_first_part(zmq, context.socket(zmq.REP)) == zmq.EFSM
    req, _ = sockets.pair(zmq.REQ, zmq.REP)
    req.send(b"1", zmq.SNDMORE)
    req.send(b"2")
    assert errno_of_first_part(zmq, req) == zmq.EFSM


def test_the_first_part_names_no_peer(zmq, context):
    router = context.socket(zmq.ROUTER)
    router.router_mandatory = 1
    assert errno_of_first_part(zmq, router, b"nobody") == zmq.EHOSTUNREACH
    stream = context.socket(zmq.STREAM)
    assert errno_of_first_part(zmq, stream, b"nobody") == zmq.EHOSTUNREACH


@pytest.mark.parametrize("kind", ["SUB", "PULL"])
def test_the_first_part_of_a_message_that_cannot_be_sent(zmq, context, kind):
    assert errno_of_first_part(zmq, context.socket(getattr(zmq, kind))) == zmq.ENOTSUP
