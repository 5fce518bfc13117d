"""Errors."""

import copy
import errno
import pickle
import threading

import pytest


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("ZMQBaseError", Exception),
        ("ZMQError", "ZMQBaseError"),
        ("ZMQBindError", "ZMQBaseError"),
        ("NotDone", "ZMQBaseError"),
        ("Again", "ZMQError"),
        ("ContextTerminated", "ZMQError"),
        ("InterruptedSystemCall", "ZMQError"),
        ("InterruptedSystemCall", InterruptedError),
        ("ZMQVersionError", NotImplementedError),
        ("DraftFDWarning", RuntimeWarning),
    ],
)
def test_bases(zmq, name, base):
    base = getattr(zmq, base) if isinstance(base, str) else base
    assert issubclass(getattr(zmq, name), base)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.EAGAIN, "Resource temporarily unavailable"),
        (errno.EINVAL, "Invalid argument"),
        (156384763, "Operation cannot be accomplished in current state"),
    ],
)
def test_of_a_number(zmq, number, text):
    error = zmq.ZMQError(number)
    assert error.errno == number
    assert error.strerror == str(error) == text
    assert repr(error) == f"ZMQError('{text}')"


def test_of_a_number_and_text(zmq):
    error = zmq.ZMQError(5, "five")
    assert (error.errno, error.strerror, str(error)) == (5, "five", "five")
    assert zmq.ZMQError(errno=5, msg="five").errno == 5


def test_of_text(zmq):
    assert str(zmq.ZMQError("just text")) == "just text"


def test_number_is_a_member(zmq, sockets):
    pull, _push = sockets.pair(zmq.PULL, zmq.PUSH)
    with pytest.raises(zmq.ZMQError) as caught:
        pull.recv(zmq.DONTWAIT)
    assert caught.value.errno is zmq.Errno.EAGAIN
    assert type(caught.value) is zmq.Again
    assert pickle.loads(pickle.dumps(caught.value)).errno is zmq.Errno.EAGAIN
    pull.rcvtimeo = 1
    with pytest.raises(zmq.Again) as caught:
        pull.recv()
    assert caught.value.errno.name == "EAGAIN"


@pytest.mark.parametrize(
    ("name", "number"),
    [("Again", "EAGAIN"), ("ContextTerminated", "ETERM")],
)
def test_numbered_classes(zmq, name, number):
    error = getattr(zmq, name)()
    assert error.errno is zmq.Errno[number]
    assert str(error) == zmq.strerror(getattr(zmq, number))


@pytest.mark.parametrize("name", ["ZMQBindError", "NotDone", "ZMQBaseError"])
def test_plain_classes(zmq, name):
    assert str(getattr(zmq, name)("what happened")) == "what happened"


def test_version_error(zmq):
    error = zmq.ZMQVersionError("5.0", "Teleport")
    assert "Teleport requires" in str(error)
    assert "5.0" in str(error)


def test_check_version(zmq, part):
    check = part("error")._check_version
    check((4, 0), "Old")
    with pytest.raises(zmq.ZMQVersionError, match="Teleport"):
        check((99, 0), "Teleport")


def test_copied(zmq):
    error = copy.copy(zmq.ZMQError(5, "five"))
    assert (error.errno, error.strerror) == (5, "five")


def test_pickled(zmq):
    error = pickle.loads(pickle.dumps(zmq.ZMQError(5, "five")))
    assert (error.errno, error.strerror) == (5, "five")


def test_errno_of_the_last_error(zmq, sockets):
    pull, _push = sockets.pair(zmq.PULL, zmq.PUSH)
    with pytest.raises(zmq.Again):
        pull.recv(zmq.DONTWAIT)
    assert zmq.zmq_errno() == zmq.EAGAIN


# ---- which error when ---------------------------------------------------------------


def test_out_of_turn(zmq, sockets):
    rep, req = sockets.pair(zmq.REP, zmq.REQ)
    for call in (rep.send, lambda body: req.recv()):
        with pytest.raises(zmq.ZMQError) as caught:
            call(b"x")
        assert caught.value.errno == zmq.EFSM
        # After this text, zeroxide adds which call comes first.
        assert str(caught.value).startswith("Operation cannot be accomplished in current state")
    req.send(b"x")
    with pytest.raises(zmq.ZMQError) as caught:
        req.send(b"again")
    assert caught.value.errno == zmq.EFSM


def test_no_peer_of_that_name(zmq, context):
    with context.socket(zmq.ROUTER) as router:
        router.router_mandatory = 1
        with pytest.raises(zmq.ZMQError) as caught:
            router.send_multipart([b"nobody", b"x"])
        assert caught.value.errno == zmq.EHOSTUNREACH


def test_an_unknown_name_is_ignored_by_default(zmq, context):
    with context.socket(zmq.ROUTER) as router:
        router.send_multipart([b"nobody", b"x"])


def test_terminated(zmq):
    context = zmq.Context()
    socket = context.socket(zmq.PULL)
    thread = threading.Thread(target=context.term)
    thread.start()
    with pytest.raises(zmq.ContextTerminated) as caught:
        socket.recv()
    assert caught.value.errno is zmq.Errno.ETERM
    with pytest.raises(zmq.ContextTerminated):
        socket.poll()
    socket.close()
    thread.join()


@pytest.mark.parametrize("protocol", ["udp", "pgm", "norm", "vmci", "nonsense"])
def test_missing_protocols(zmq, context, protocol):
    with context.socket(zmq.PULL) as socket, pytest.raises(zmq.ZMQError) as caught:
        socket.connect(f"{protocol}://127.0.0.1:5555")
    expected = (zmq.EPROTONOSUPPORT, zmq.ENOCOMPATPROTO, zmq.EINVAL)
    assert caught.value.errno in expected


def test_curve_public_of_an_invalid_key(zmq):
    with pytest.raises((ValueError, zmq.ZMQError)):
        zmq.curve_public(b"short")


@pytest.mark.parametrize("key", [5, None])
def test_curve_public_of_a_value_that_is_not_a_key(zmq, key):
    with pytest.raises(TypeError):
        zmq.curve_public(key)


def test_curve_keys(zmq):
    public, secret = zmq.curve_keypair()
    assert (len(public), len(secret), type(public)) == (40, 40, bytes)
    assert zmq.curve_public(secret) == public
    assert zmq.curve_public(secret.decode()) == public
    assert zmq.curve_keypair() != (public, secret)


def test_strerror_of_an_unknown_number(zmq):
    assert "9999" in zmq.strerror(9999)
