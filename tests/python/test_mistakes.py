"""Mistakes that users make, and the text of the error for each.

One row per mistake: the code and the text. Sockets of every kind make the mistakes that are
possible with them.
"""

import asyncio
import errno
import pickle
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from support import eventually
from test_lent import Peer

pytestmark = pytest.mark.zeroxide_only

# The timeout of calls that nothing completes, in ms.
SHORT = 20


class Blocking:
    """Makes a mistake with sockets that block the thread."""

    name = "blocking"

    def __init__(self, zmq: Any) -> None:
        self.zmq = zmq
        self.context = zmq.Context()

    def socket(self, kind: int, **options: int) -> Any:
        socket = self.context.socket(kind)
        socket.linger = 0
        for name, value in options.items():
            setattr(socket, name, value)
        return socket

    def run(self, mistake: Callable[[], Any]) -> Any:
        return mistake()

    def close(self) -> None:
        self.context.destroy(linger=0)


class Asyncio(Blocking):
    """The same with sockets of asyncio."""

    name = "asyncio"

    def __init__(self, zmq: Any) -> None:
        self.zmq = zmq
        self.context = __import__("zeroxide.asyncio").asyncio.Context()

    def run(self, mistake: Callable[[], Any]) -> Any:
        async def main() -> Any:
            return await mistake()

        return asyncio.run(main())


class Tornado(Asyncio):
    """The same with sockets of tornado."""

    name = "tornado"

    def __init__(self, zmq: Any) -> None:
        self.zmq = zmq
        future = pytest.importorskip("zeroxide.eventloop.future")
        self.context = future.Context()


class Green(Blocking):
    """The same with sockets of gevent."""

    name = "green"

    def __init__(self, zmq: Any) -> None:
        self.zmq = zmq
        self.context = pytest.importorskip("zeroxide.green").Context()


@pytest.fixture(params=[Blocking, Asyncio, Tornado, Green], ids=lambda kind: kind.name)
def any_kind(request, zmq):
    kind = request.param(zmq)
    yield kind
    kind.close()


@pytest.fixture
def blocking(zmq):
    kind = Blocking(zmq)
    yield kind
    kind.close()


def text_of(kind: Blocking, error_type: type[BaseException], mistake: Callable[[], Any]) -> str:
    with pytest.raises(error_type) as caught:
        kind.run(mistake)
    return str(caught.value)


# ---- out of turn ---------------------------------------------------------------------

BEFORE = "Operation cannot be accomplished in current state: "


def out_of_turn(kind: Blocking, error: str, mistake: Callable[[], Any]) -> None:
    with pytest.raises(kind.zmq.ZMQError) as caught:
        kind.run(mistake)
    assert caught.value.errno == kind.zmq.EFSM
    assert str(caught.value) == caught.value.strerror == BEFORE + error


SENDS = {
    "send": lambda socket: socket.send(b"x"),
    "send, without a copy": lambda socket: socket.send(b"x" * 100_000, copy=False),
    "send with SNDMORE": lambda socket: socket.send(b"x", 2),
    "send_multipart": lambda socket: socket.send_multipart([b"x", b"y"]),
    "send_string": lambda socket: socket.send_string("x"),
    "send_json": lambda socket: socket.send_json({}),
    "send_typed": lambda socket: socket.send_typed(1),
    "send_batch": lambda socket: socket.send_batch([b"x"]),
    "send_batch of an iterable": lambda socket: socket.send_batch(iter([b"x"])),
}
RECEIVES = {
    "recv": lambda socket: socket.recv(),
    "recv, without a copy": lambda socket: socket.recv(copy=False),
    "recv_multipart": lambda socket: socket.recv_multipart(),
    "recv_string": lambda socket: socket.recv_string(),
    "recv_json": lambda socket: socket.recv_json(),
    "recv_typed": lambda socket: socket.recv_typed(int),
    "recv_batch": lambda socket: socket.recv_batch(),
    "recv_into": lambda socket: socket.recv_into(bytearray(9)),
    "recv_batch_arrow": lambda socket: socket.recv_batch_arrow(),
}
any_send = pytest.mark.parametrize("call", SENDS.values(), ids=SENDS)
any_receive = pytest.mark.parametrize("call", RECEIVES.values(), ids=RECEIVES)


@any_send
def test_a_req_that_sends_twice(any_kind, call):
    zmq = any_kind.zmq
    req = any_kind.socket(zmq.REQ)
    req.connect("inproc://nowhere")
    any_kind.run(lambda: req.send(b"x"))
    out_of_turn(
        any_kind,
        "this REQ socket has sent a request and must receive the reply first;"
        " set REQ_RELAXED to 1, or use a DEALER socket, to send again without it",
        lambda: call(req),
    )


@any_receive
def test_a_req_that_receives_first(blocking, call):
    req = blocking.socket(blocking.zmq.REQ)
    expected = "a REQ socket must send a request before it can receive a reply"
    out_of_turn(blocking, expected, lambda: call(req))


@any_send
def test_a_rep_that_sends_first(any_kind, call):
    rep = any_kind.socket(any_kind.zmq.REP)
    expected = "a REP socket must receive a request before it can send a reply"
    out_of_turn(any_kind, expected, lambda: call(rep))


def test_a_rep_that_receives_twice(blocking):
    zmq = blocking.zmq
    rep, req = blocking.socket(zmq.REP), blocking.socket(zmq.REQ)
    rep.bind("inproc://rep")
    req.connect("inproc://rep")
    req.send(b"x")
    rep.recv()
    out_of_turn(
        blocking,
        "this REP socket has received a request and must send the reply first;"
        " a ROUTER socket can receive several before it replies",
        rep.recv,
    )


def test_a_reply_before_the_last_part_of_the_request(blocking):
    zmq = blocking.zmq
    rep, req = blocking.socket(zmq.REP), blocking.socket(zmq.REQ)
    rep.bind("inproc://rep")
    req.connect("inproc://rep")
    req.send_multipart([b"x", b"y"])
    rep.recv()
    out_of_turn(
        blocking,
        "the rest of the last message must be received first; recv_multipart takes all of its parts",
        lambda: rep.send(b"reply"),
    )


# ---- the wrong direction -------------------------------------------------------------


@pytest.mark.parametrize(("kind", "peer"), [("PUSH", "PULL"), ("PUB", "SUB")])
@any_receive
def test_receiving_on_a_socket_that_only_sends(any_kind, kind, peer, call):
    zmq = any_kind.zmq
    socket = any_kind.socket(zmq.SocketType[kind])
    with pytest.raises(zmq.ZMQError) as caught:
        any_kind.run(lambda: call(socket))
    assert caught.value.errno == zmq.ENOTSUP
    assert str(caught.value) == (
        f"Operation not supported: a {kind} socket only sends; use {peer} to receive from it"
    )


@pytest.mark.parametrize(("kind", "peer"), [("PULL", "PUSH"), ("SUB", "PUB")])
@any_send
def test_sending_on_a_socket_that_only_receives(any_kind, kind, peer, call):
    zmq = any_kind.zmq
    socket = any_kind.socket(zmq.SocketType[kind])
    with pytest.raises(zmq.ZMQError) as caught:
        any_kind.run(lambda: call(socket))
    assert caught.value.errno == zmq.ENOTSUP
    assert str(caught.value) == (
        f"Operation not supported: a {kind} socket only receives; use {peer} to send to it"
    )


# ---- waiting for nothing -----------------------------------------------------------------

AGAIN = "Resource temporarily unavailable: "


# At an address where nothing listens. The first attempt may not have failed yet.
CONNECTING = "tcp://127.0.0.1:1 (connecting)"
REFUSED = "tcp://127.0.0.1:1 (connecting; the last attempt failed: Connection refused)"


def waits_in_vain(kind: Blocking, expected: str, mistake: Callable[[], Any]) -> None:
    with pytest.raises(kind.zmq.Again) as caught:
        kind.run(mistake)
    error = caught.value
    assert type(error) is kind.zmq.Again
    assert error.errno == errno.EAGAIN
    assert str(error).replace(REFUSED, CONNECTING) == AGAIN + expected
    assert str(error) == error.strerror
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@any_receive
def test_nothing_arrives_at_a_bound_socket(any_kind, call):
    pull = any_kind.socket(any_kind.zmq.PULL, rcvtimeo=SHORT)
    pull.bind("tcp://127.0.0.1:*")
    endpoint = pull.last_endpoint.decode()
    expected = f"nothing arrived within {SHORT} ms at {endpoint} (0 peers connected)"
    waits_in_vain(any_kind, expected, lambda: call(pull))


def test_nothing_arrives_from_peers_that_are_connected(any_kind):
    zmq = any_kind.zmq
    pull, push = any_kind.socket(zmq.PULL, rcvtimeo=SHORT), any_kind.socket(zmq.PUSH)
    pull.bind("tcp://127.0.0.1:*")
    endpoint = pull.last_endpoint.decode()
    push.connect(endpoint)
    any_kind.run(lambda: pull.wait_connected(timeout=50_000))
    expected = f"nothing arrived within {SHORT} ms at {endpoint} (1 peer connected)"
    waits_in_vain(any_kind, expected, pull.recv)


def test_nothing_arrives_at_several_endpoints(any_kind):
    zmq = any_kind.zmq
    pull, push = any_kind.socket(zmq.PULL, rcvtimeo=SHORT), any_kind.socket(zmq.PUSH)
    push.bind("inproc://there")
    for name in ("there", "b", "c", "d", "e"):
        pull.connect(f"inproc://{name}")
    expected = (
        f"nothing arrived within {SHORT} ms at inproc://there (connected),"
        " inproc://b (nothing is bound there yet), inproc://c (nothing is bound there yet)"
        " and 2 more"
    )
    waits_in_vain(any_kind, expected, pull.recv)


def test_the_last_attempt_that_failed(any_kind):
    zmq = any_kind.zmq
    server, client = any_kind.socket(zmq.REP), any_kind.socket(zmq.REQ)
    server.plain_server = True
    server.bind("tcp://127.0.0.1:*")
    endpoint = server.last_endpoint.decode()
    client.connect(endpoint)

    def said(socket, part):
        socket.rcvtimeo = SHORT
        with pytest.raises(zmq.Again) as caught:
            any_kind.run(socket.recv)
        return part in str(caught.value)

    any_kind.run(lambda: client.send(b"x"))
    eventually(lambda: said(client, 'failed: expected mechanism NULL, the peer uses "PLAIN")'))
    eventually(
        lambda: said(server, "0 peers connected; the last attempt failed: expected mechanism")
    )


def test_the_last_attempt_that_its_tls_layer_refused(any_kind):
    zmq = any_kind.zmq
    listener = socket.create_server(("127.0.0.1", 0))
    pull = any_kind.socket(zmq.PULL)
    pull.tls_verify = False
    pull.connect(f"tls+tcp://127.0.0.1:{listener.getsockname()[1]}")
    peer, _ = listener.accept()
    peer.sendall(b"This is not TLS.")
    eventually(lambda: "does not speak TLS" in text_of_vain_wait(any_kind, pull))
    peer.close()
    listener.close()


def test_the_last_attempt_that_its_proxy_refused(any_kind):
    zmq = any_kind.zmq
    listener = socket.create_server(("127.0.0.1", 0))
    pull = any_kind.socket(zmq.PULL)
    pull.socks_proxy = b"127.0.0.1:%d" % listener.getsockname()[1]
    pull.connect("tcp://127.0.0.1:1")
    peer, _ = listener.accept()
    peer.recv(3)
    peer.sendall(b"\x05\xff")
    eventually(lambda: "failed: Permission denied: the proxy" in text_of_vain_wait(any_kind, pull))
    peer.close()
    listener.close()


def test_the_last_connection_that_ended_by_a_fault(any_kind):
    zmq = any_kind.zmq
    pull = any_kind.socket(zmq.PULL)
    pull.bind("tcp://127.0.0.1:*")
    port = int(pull.last_endpoint.decode().rpartition(":")[2])
    peer = socket.create_connection(("127.0.0.1", port))
    ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH"
    peer.sendall(Peer.GREETING + Peer.frame(4, ready) + b"\xff\xff")
    eventually(lambda: "the last connection ended: " in text_of_vain_wait(any_kind, pull))
    peer.close()


def text_of_vain_wait(kind: Blocking, pull: Any) -> str:
    pull.rcvtimeo = SHORT
    with pytest.raises(kind.zmq.Again) as caught:
        kind.run(pull.recv)
    return str(caught.value)


def test_an_attempt_that_failed_is_the_past_once_a_connection_is_up(any_kind):
    zmq = any_kind.zmq
    pull, push = any_kind.socket(zmq.PULL), any_kind.socket(zmq.PUSH)
    pull.bind("tcp://127.0.0.1:*")
    endpoint = pull.last_endpoint.decode()
    host, port = endpoint.removeprefix("tcp://").split(":")
    socket.create_connection((host, int(port))).close()
    eventually(lambda: "the last attempt failed" in text_of_vain_wait(any_kind, pull))
    push.connect(endpoint)
    any_kind.run(lambda: push.send(b"x"))
    pull.rcvtimeo = 10_000
    any_kind.run(pull.recv)
    push.close()
    eventually(lambda: f"{endpoint} (0 peers connected)" in text_of_vain_wait(any_kind, pull))


def test_a_refused_connection_is_named(any_kind):
    pull = any_kind.socket(any_kind.zmq.PULL)
    pull.connect("tcp://127.0.0.1:1")
    eventually(lambda: REFUSED in text_of_vain_wait(any_kind, pull))
    assert REFUSED in repr(pull)


def test_nothing_arrives_without_an_endpoint(any_kind):
    pull = any_kind.socket(any_kind.zmq.PULL, rcvtimeo=SHORT)
    expected = f"nothing arrived within {SHORT} ms: this socket is neither bound nor connected"
    waits_in_vain(any_kind, expected, pull.recv)


def test_no_reply_arrives(any_kind):
    req = any_kind.socket(any_kind.zmq.REQ, rcvtimeo=SHORT)
    req.connect("tcp://127.0.0.1:1")
    any_kind.run(lambda: req.send(b"x"))
    expected = f"no reply arrived within {SHORT} ms at {CONNECTING}"
    waits_in_vain(any_kind, expected, req.recv)


def test_a_sub_without_a_subscription(any_kind):
    sub = any_kind.socket(any_kind.zmq.SUB, rcvtimeo=SHORT)
    sub.connect("tcp://127.0.0.1:1")
    expected = (
        f"nothing arrived within {SHORT} ms at {CONNECTING};"
        ' this SUB socket has no subscription, and subscribe("") receives everything'
    )
    waits_in_vain(any_kind, expected, sub.recv)


@any_send
def test_sending_without_a_peer(any_kind, call):
    push = any_kind.socket(any_kind.zmq.PUSH, sndtimeo=SHORT)
    push.bind("tcp://127.0.0.1:*")
    endpoint = push.last_endpoint.decode()
    expected = f"no peer within {SHORT} ms at {endpoint} (0 peers connected)"
    waits_in_vain(any_kind, expected, lambda: call(push))


def test_sending_to_a_peer_that_is_not_there(any_kind):
    push = any_kind.socket(any_kind.zmq.PUSH, sndtimeo=SHORT, immediate=1)
    push.connect("tcp://127.0.0.1:1")
    expected = f"no peer within {SHORT} ms at {CONNECTING}"
    waits_in_vain(any_kind, expected, lambda: push.send(b"x"))


def test_sending_more_than_the_queue_holds(any_kind):
    push = any_kind.socket(any_kind.zmq.PUSH, sndtimeo=SHORT, sndhwm=1)
    push.connect("tcp://127.0.0.1:1")
    any_kind.run(lambda: push.send(b"x"))
    expected = f"no peer within {SHORT} ms at {CONNECTING}; the queue is full (SNDHWM is 1)"
    waits_in_vain(any_kind, expected, lambda: push.send(b"x"))


def test_sending_to_a_peer_that_does_not_receive(any_kind):
    zmq = any_kind.zmq
    push = any_kind.socket(zmq.PUSH, sndtimeo=SHORT, sndhwm=1)
    pull = any_kind.socket(zmq.PULL, rcvhwm=1)
    pull.bind("inproc://slow")
    push.connect("inproc://slow")
    any_kind.run(lambda: push.send_batch([b"x", b"y"]))
    expected = (
        f"no room in the queue of any peer within {SHORT} ms at inproc://slow (connected);"
        " SNDHWM is 1"
    )
    waits_in_vain(any_kind, expected, lambda: push.send(b"x"))
    push.sndhwm_bytes = 500
    waits_in_vain(any_kind, f"{expected}, SNDHWM_BYTES 500", lambda: push.send(b"x"))


def test_waiting_for_peers_that_do_not_come(any_kind):
    zmq = any_kind.zmq
    push, pub = any_kind.socket(zmq.PUSH), any_kind.socket(zmq.PUB)
    push.connect("tcp://127.0.0.1:1")
    expected = f"0 of 1 peers are connected at {CONNECTING}"
    waits_in_vain(any_kind, expected, lambda: push.wait_connected(timeout=SHORT))
    pull = any_kind.socket(zmq.PULL)
    pull.bind("tcp://127.0.0.1:*")
    # The count is not repeated for the only endpoint.
    expected = f"0 of 1 peers are connected at {pull.last_endpoint.decode()}"
    waits_in_vain(any_kind, expected, lambda: pull.wait_connected(timeout=SHORT))
    expected = "0 of 2 peers are subscribed: this socket is neither bound nor connected"
    waits_in_vain(any_kind, expected, lambda: pub.wait_subscribed("", 2, SHORT))


@pytest.mark.parametrize("option", ["NOBLOCK", "a timeout of 0"])
def test_a_call_that_may_not_wait(any_kind, option):
    zmq = any_kind.zmq
    flags = zmq.NOBLOCK if option == "NOBLOCK" else 0
    pull = any_kind.socket(zmq.PULL, rcvtimeo=0)
    push = any_kind.socket(zmq.PUSH, sndtimeo=0)
    for call in (pull.recv, pull.recv_multipart, pull.recv_string, pull.recv_json):
        waits_in_vain(any_kind, "no message to receive now", lambda: call(flags))  # noqa: B023
    waits_in_vain(any_kind, "no message to receive now", lambda: pull.recv(flags, copy=False))
    expected = "a message cannot be sent now: no peer is connected, or every queue is full"
    waits_in_vain(any_kind, expected, lambda: push.send(b"x", flags))
    waits_in_vain(any_kind, expected, lambda: push.send_multipart([b"x"], flags))
    waits_in_vain(any_kind, expected, lambda: push.send_batch([b"x"], flags))


def test_an_error_does_not_keep_its_socket(any_kind):
    import gc
    import weakref

    pull = any_kind.socket(any_kind.zmq.PULL, rcvtimeo=SHORT)
    pull.bind("inproc://gone")
    with pytest.raises(any_kind.zmq.Again) as caught:
        any_kind.run(pull.recv)
    error = caught.value.with_traceback(None)
    caught = None
    pull.close()
    socket, pull = weakref.ref(pull), None
    gc.collect()
    assert socket() is None
    # The state when the error was raised.
    expected = f"nothing arrived within {SHORT} ms at inproc://gone (0 peers connected)"
    assert str(error) == AGAIN + expected


# ---- closed sockets ------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        *SENDS.values(),
        *RECEIVES.values(),
        lambda socket: socket.bind("tcp://127.0.0.1:*"),
        lambda socket: socket.connect("tcp://127.0.0.1:1"),
        lambda socket: socket.linger,
        lambda socket: socket.set(17, 0),
        lambda socket: socket.poll(0),
        lambda socket: socket.poll(5),
    ],
)
def test_a_closed_socket(any_kind, call):
    socket = any_kind.socket(any_kind.zmq.PAIR)
    socket.close()
    assert text_of(any_kind, any_kind.zmq.ZMQError, lambda: call(socket)).endswith(
        ": this socket is closed"
    )


# ---- things of the wrong type --------------------------------------------------------

NOT_BYTES = [
    ("hello", "a message is bytes, not str: send_string('hello') encodes text"),
    ("x" * 99, "a message is bytes, not str: send_string('xxx"),
    ({"a": 1}, "a message is bytes, not dict: send_json, send_typed and send_pyobj take objects"),
    (5, "a message is bytes, not int: send_json, send_typed and send_pyobj take objects"),
    (None, "a message is bytes, not NoneType: send_json"),
    ([b"a"], "a message is bytes, not list: send_multipart takes a list of parts"),
    ((b"a",), "a message is bytes, not tuple: send_multipart takes a list of parts"),
]


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize(("body", "expected"), NOT_BYTES)
def test_a_message_that_is_not_bytes(any_kind, body, expected, copy):
    socket = any_kind.socket(any_kind.zmq.PAIR)
    text = text_of(any_kind, TypeError, lambda: socket.send(body, copy=copy))
    assert text.startswith(expected)


MANY = [
    ("send_multipart", b"hello", "takes a list of parts; send takes one part by itself"),
    ("send_multipart", b"", "takes a list of parts; send takes one part by itself"),
    ("send_multipart", "hello", "takes a list of parts; send takes one part by itself"),
    ("send_multipart", bytearray(3), "takes a list of parts; send takes one part by itself"),
    ("send_multipart", 5, "takes a list of parts, not 5"),
    ("send_multipart", None, "takes a list of parts, not None"),
    ("send_batch", b"hello", "takes a list of messages; send takes one message by itself"),
    ("send_batch", "hello", "takes a list of messages; send takes one message by itself"),
    ("send_batch", 5, "takes a list of messages, not 5"),
]


@pytest.mark.parametrize(("method", "argument", "expected"), MANY)
def test_one_where_a_list_is_expected(any_kind, method, argument, expected):
    socket = any_kind.socket(any_kind.zmq.PAIR)
    text = text_of(any_kind, TypeError, lambda: getattr(socket, method)(argument))
    assert text == f"{method} {expected}"


def test_a_part_that_is_not_bytes(any_kind):
    socket = any_kind.socket(any_kind.zmq.PAIR)
    text = text_of(any_kind, TypeError, lambda: socket.send_multipart([b"a", "b"]))
    assert text == (
        "Frame 1 ('b'...) does not support the buffer interface: a part is bytes, not str"
    )


@pytest.mark.parametrize("flags", [1000, 4, -1, 0x7FFFFFFF])
def test_a_timeout_where_flags_are_expected(any_kind, flags):
    zmq = any_kind.zmq
    socket = any_kind.socket(zmq.PAIR)
    for call in RECEIVES.values():
        method = call.__code__.co_names[0]
        first = {"recv_typed": (int,), "recv_into": (bytearray(9),)}.get(method, ())
        keyword = {"copy": False} if "copy" in call.__code__.co_consts else {}
        with pytest.raises(zmq.ZMQError) as caught:
            any_kind.run(lambda: getattr(socket, method)(*first, flags=flags, **keyword))  # noqa: B023
        assert caught.value.errno == zmq.EINVAL
        assert str(caught.value) == (
            f"Invalid argument: flags are NOBLOCK and SNDMORE, not {flags};"
            " a timeout in ms is set with RCVTIMEO, or passed to poll"
        )
    for method, argument in (("send", b"x"), ("send_multipart", [b"x"]), ("send_batch", [b"x"])):
        with pytest.raises(zmq.ZMQError) as caught:
            any_kind.run(lambda: getattr(socket, method)(argument, flags))  # noqa: B023
        assert f"not {flags}; a timeout in ms is set with SNDTIMEO" in str(caught.value)


@pytest.mark.parametrize("flags", [0.5, None, "NOBLOCK"])
def test_flags_that_are_not_numbers(any_kind, flags):
    socket = any_kind.socket(any_kind.zmq.PAIR)
    for call in (socket.recv, socket.recv_multipart, lambda flags: socket.send(b"x", flags)):
        text = text_of(any_kind, TypeError, lambda: call(flags))  # noqa: B023
        assert f"flags are NOBLOCK and SNDMORE, not {flags!r}; a timeout in ms is set with" in text


def test_recv_accepts_sndmore(any_kind):
    zmq = any_kind.zmq
    one, other = any_kind.socket(zmq.PAIR), any_kind.socket(zmq.PAIR)
    one.bind("inproc://flags")
    other.connect("inproc://flags")
    any_kind.run(lambda: one.send(b"x"))
    assert any_kind.run(lambda: other.recv(zmq.SNDMORE | zmq.NOBLOCK)) == b"x"


# The mistake, the class of the error, and its text.
ROWS: list[tuple[Callable[[Any, Any], Any], type[BaseException] | str, str]] = [
    (
        lambda zmq, c: c.socket("PUSH"),
        TypeError,
        "socket_type is a zmq.SocketType such as zmq.PUSH, not 'PUSH'",
    ),
    (
        lambda zmq, c: c.socket("req"),
        TypeError,
        "socket_type is a zmq.SocketType such as zmq.REQ, not 'req'",
    ),
    (
        lambda zmq, c: c.socket(None),
        TypeError,
        "socket_type is a zmq.SocketType such as zmq.PUSH, not None",
    ),
    (
        lambda zmq, c: zmq.Socket(zmq.SUB),
        TypeError,
        "the first argument is a Context, not <SocketType.SUB: 2>; use context.socket(zmq.SUB)",
    ),
    (
        lambda zmq, c: zmq.Socket(),
        TypeError,
        "the first argument is a Context, not nothing; use context.socket(zmq.PUSH)",
    ),
    (
        lambda zmq, c: zmq.Socket(c),
        TypeError,
        "socket_type is missing; use context.socket(zmq.PUSH)",
    ),
    (
        lambda zmq, c: c.socket(zmq.DGRAM).connect("udp://127.0.0.1:5555"),
        "ZMQError",
        "The protocol is not compatible with the socket type: udp://127.0.0.1:5555: over udp, RADIO connects, and DISH and DGRAM bind; a DGRAM"
        " socket cannot connect",
    ),
    (
        lambda zmq, c: c.socket(zmq.PUSH).send(b"x", routing_id=1),
        "ZMQError",
        "Invalid argument: routing_id is for SERVER and PEER sockets; this one is a PUSH",
    ),
    (
        lambda zmq, c: c.socket(zmq.PUSH).join("group"),
        "ZMQError",
        "Operation not supported: only DISH joins groups, not PUSH",
    ),
    (lambda zmq, c: c.socket(90), "ZMQError", "Invalid argument: there is no socket type 90"),
    (
        lambda zmq, c: c.socket(zmq.PUSH).send_string(b"x"),
        TypeError,
        "send_string takes str, not bytes: send takes bytes",
    ),
    (
        lambda zmq, c: c.socket(zmq.PULL).recv_into("x"),
        TypeError,
        "recv_into takes a writable buffer such as a bytearray, not str",
    ),
    (
        lambda zmq, c: c.socket(zmq.PUSH).bind(5555),
        TypeError,
        "an endpoint is text such as 'tcp://127.0.0.1:5555', not 5555",
    ),
    (lambda zmq, c: zmq.Frame("x"), TypeError, "a frame is bytes, not str: encode the text first"),
    (
        lambda zmq, c: setattr(c.socket(zmq.PUSH), "linger", "x"),
        TypeError,
        "LINGER takes whole milliseconds, not 'x'",
    ),
    (
        lambda zmq, c: setattr(c.socket(zmq.PUSH), "rcvtimeo", 0.5),
        TypeError,
        "RCVTIMEO takes whole milliseconds, not 0.5; did you mean 500?",
    ),
    (
        lambda zmq, c: setattr(c.socket(zmq.PUSH), "sndtimeo", 2.0),
        TypeError,
        "SNDTIMEO takes whole milliseconds, not 2.0; did you mean 2?",
    ),
    (
        lambda zmq, c: setattr(c.socket(zmq.PUSH), "tcp_keepalive_idle", 2.5),
        TypeError,
        "TCP_KEEPALIVE_IDLE takes whole seconds, not 2.5",
    ),
    (
        lambda zmq, c: setattr(c.socket(zmq.PUSH), "sndhwm", None),
        TypeError,
        "SNDHWM takes a whole number, not None",
    ),
    (
        lambda zmq, c: setattr(c.socket(zmq.PUSH), "immediate", "yes"),
        TypeError,
        "IMMEDIATE takes 0 or 1, not 'yes'",
    ),
    (
        lambda zmq, c: c.socket(zmq.SUB).set(zmq.SUBSCRIBE, "topic"),
        TypeError,
        "SUBSCRIBE takes bytes, not 'topic'; set_string(zmq.SUBSCRIBE, ...) encodes text",
    ),
    (
        lambda zmq, c: c.socket(zmq.SUB).subscribe(5),
        TypeError,
        "SUBSCRIBE takes bytes, not 5",
    ),
    (
        lambda zmq, c: c.socket(zmq.PUSH).set("linger", 5),
        TypeError,
        "an option is a number such as zmq.LINGER, not 'linger'",
    ),
    (
        lambda zmq, c: c.socket(zmq.PUSH).get("linger"),
        TypeError,
        "an option is a number such as zmq.LINGER, not 'linger'",
    ),
    (
        lambda zmq, c: c.socket(zmq.PUSH).get_string(zmq.LINGER),
        TypeError,
        "LINGER is a number, not text: use get(zmq.LINGER)",
    ),
    (
        lambda zmq, c: zmq.Poller().register(c.socket(zmq.PUSH), "POLLIN"),
        TypeError,
        "flags are zmq.POLLIN, zmq.POLLOUT or both, not 'POLLIN'",
    ),
    (
        lambda zmq, c: setattr(c.socket(zmq.PUSH), "lingr", 1),
        AttributeError,
        "'Socket' has no option or attribute 'lingr'; did you mean 'linger'?",
    ),
    (
        lambda zmq, c: setattr(c.socket(zmq.PUSH), "RCVHMW", 1),
        AttributeError,
        "'Socket' has no option or attribute 'RCVHMW'; did you mean 'rcvhwm'?",
    ),
    (
        lambda zmq, c: setattr(c, "io_thread", 1),
        AttributeError,
        "'Context' has no option or attribute 'io_thread'; did you mean 'io_threads'?",
    ),
    (
        lambda zmq, c: c.lingr,
        AttributeError,
        "'Context' has no option or attribute 'lingr'; did you mean 'linger'?",
    ),
    (
        lambda zmq, c: zmq.Context().linger,
        AttributeError,
        "this context has no default for the option 'linger'; sockets have their own",
    ),
    (
        lambda zmq, c: zmq.Context().IDENTITY,
        AttributeError,
        "this context has no default for the option 'IDENTITY'; sockets have their own",
    ),
    (
        lambda zmq, c: zmq.Context().rcvmore,
        AttributeError,
        "'Context' has no 'rcvmore', which sockets have",
    ),
    (
        lambda zmq, c: setattr(c.socket(zmq.PUSH), "qqqqqq", 1),
        AttributeError,
        "'Socket' has no option or attribute 'qqqqqq'",
    ),
]


@pytest.mark.parametrize(
    ("mistake", "error_type", "expected"), ROWS, ids=[expected[:50] for *_, expected in ROWS]
)
def test_a_mistake(zmq, mistake, error_type, expected):
    kind = getattr(zmq, error_type) if isinstance(error_type, str) else error_type
    with zmq.Context() as context:
        context.linger = 0
        try:
            with pytest.raises(kind) as caught:
                mistake(zmq, context)
            assert str(caught.value) == expected
        finally:
            caught = None
            context.destroy()


def test_a_misspelled_option_is_named_once(zmq, context):
    with context.socket(zmq.PUSH) as socket:
        with pytest.raises(AttributeError) as caught:
            socket.lingr = 1
        assert caught.value.name == "lingr"
        shown = "".join(traceback.format_exception(caught.value))
        assert shown.lower().count("did you mean") == 1
        # When a misspelled name is read, the interpreter suggests the right one.
        with pytest.raises(AttributeError) as caught:
            _ = socket.rcvhmw
        assert (caught.value.name, caught.value.obj) == ("rcvhmw", socket)
        if sys.version_info >= (3, 12):
            shown = "".join(traceback.format_exception(caught.value))
            assert shown.strip().endswith("Did you mean: 'rcvhwm'?")


# ---- endpoints -----------------------------------------------------------------------


def test_a_port_that_is_in_use(zmq, context):
    with context.socket(zmq.PULL) as first, context.socket(zmq.PULL) as second:
        first.bind("tcp://127.0.0.1:*")
        endpoint = first.last_endpoint.decode()
        with pytest.raises(zmq.ZMQError) as caught:
            second.bind(endpoint)
        assert caught.value.errno == zmq.EADDRINUSE
        assert str(caught.value) == (
            f"Address already in use: another socket is bound to {endpoint}"
        )
        # For another name, the error has both endpoints.
        named = endpoint.replace("127.0.0.1", "localhost")
        with pytest.raises(zmq.ZMQError) as caught:
            second.bind(named)
        assert str(caught.value) == (
            f"Address already in use: {named}: another socket is bound to {endpoint}"
        )


def test_an_address_of_another_machine(zmq, context):
    with context.socket(zmq.PULL) as pull:
        with pytest.raises(zmq.ZMQError) as caught:
            pull.bind("tcp://192.0.2.99:5555")
        assert str(caught.value) == (
            "Cannot assign requested address: tcp://192.0.2.99:5555 is not an address of this"
            " machine; tcp://* binds to all of its addresses"
        )


def test_a_path_that_is_too_long(zmq, context, directory):
    path = f"{directory}/{'x' * 200}"
    with context.socket(zmq.PULL) as pull:
        with pytest.raises(zmq.ZMQError) as caught:
            pull.bind(f"ipc://{path}")
        assert str(caught.value) == (
            f"File name too long: ipc://{path}: the path has {len(path)} bytes, and the limit is"
            " 107; use a shorter path, a relative one, or @name"
        )


def test_a_tunnel_without_paramiko(zmq, monkeypatch):
    tunnel = pytest.importorskip("zeroxide.ssh.tunnel")
    monkeypatch.setitem(sys.modules, "paramiko", None)
    with pytest.raises(ImportError) as caught:
        tunnel.paramiko_tunnel(1, 2, "server", password="x")
    assert str(caught.value) == (
        "paramiko is not installed (pip install paramiko); tunnels through OpenSSH do not need it"
    )
