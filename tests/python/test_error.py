"""Exceptions: their classes, numbers and texts."""

import copy
import importlib
import pickle

import pytest


def test_classes(zmq):
    error = zmq.error
    assert issubclass(zmq.ZMQError, error.ZMQBaseError)
    assert issubclass(zmq.ZMQBindError, error.ZMQBaseError)
    assert issubclass(zmq.NotDone, error.ZMQBaseError)
    for kind in (zmq.Again, zmq.ContextTerminated, zmq.InterruptedSystemCall):
        assert issubclass(kind, zmq.ZMQError)
    assert issubclass(zmq.InterruptedSystemCall, InterruptedError)
    assert issubclass(zmq.ZMQVersionError, NotImplementedError)
    assert issubclass(zmq.DraftFDWarning, RuntimeWarning)


def test_error_from_a_number(zmq):
    error = zmq.ZMQError(zmq.EINVAL)
    assert error.errno == zmq.EINVAL
    assert str(error) == error.strerror == zmq.strerror(zmq.EINVAL)
    assert error.strerror in repr(error)


def test_error_with_a_message(zmq):
    error = zmq.ZMQError(zmq.EFSM, "out of turn")
    assert (error.errno, str(error)) == (zmq.EFSM, "out of turn")
    assert str(zmq.ZMQError(msg="as given")) == "as given"


def test_numbered_classes(zmq):
    assert zmq.Again().errno == zmq.EAGAIN
    assert zmq.Again("ignored").errno == zmq.EAGAIN
    assert zmq.ContextTerminated().errno == zmq.ETERM


def test_strerror_knows_zeromqs_numbers(zmq):
    texts = {zmq.strerror(n) for n in (zmq.EFSM, zmq.ENOCOMPATPROTO, zmq.ETERM, zmq.EMTHREAD)}
    assert len(texts) == 4 and all(texts)
    assert zmq.strerror(zmq.EINVAL) == "Invalid argument"


def test_calls_raise_the_class_of_the_number(zmq, sockets):
    pull = sockets.bound(zmq.PULL)
    with pytest.raises(zmq.Again) as caught:
        pull.recv(zmq.DONTWAIT)
    assert caught.value.errno == zmq.EAGAIN
    with pytest.raises(zmq.ZMQError) as caught:
        pull.send(b"the wrong way")
    assert type(caught.value) is zmq.ZMQError
    assert caught.value.errno == zmq.ENOTSUP
    assert str(caught.value)


def test_error_is_pickled_whole(zmq):
    error = pickle.loads(pickle.dumps(zmq.ZMQError(zmq.EFSM, "out of turn")))
    assert (type(error), error.errno, str(error)) == (zmq.ZMQError, zmq.EFSM, "out of turn")
    assert pickle.loads(pickle.dumps(zmq.Again())).errno == zmq.EAGAIN


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("duplicate", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_copy_has_the_attributes_of_the_original(zmq, sockets, duplicate):
    errors = [zmq.Again(), zmq.ZMQError(zmq.EFSM, "out of turn"), zmq.error.InterruptedSystemCall()]
    with pytest.raises(zmq.Again) as caught:
        sockets.bound(zmq.PULL).recv(zmq.DONTWAIT)
    with pytest.raises(zmq.ZMQError) as other:
        sockets.bound(zmq.PULL).send(b"the wrong way")
    other.value.add_note("a note")
    for error in (caught.value, other.value, *errors):
        same = duplicate(error)
        assert type(same) is type(error)
        assert (same.args, same.errno, str(same)) == (error.args, error.errno, str(error))
        assert same.__dict__ == error.__dict__


# The arguments of errors that are not made from a text alone.
ARGUMENTS = {
    "InvalidMessage": ("not a message of type int", b"body"),
    "NotFlushed": ({"tcp://127.0.0.1:5555": 3},),
    "UntrustedPickle": ("192.0.2.1", "refused"),
    "ZMQError": (11, "again"),
}


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("module", ["error", "patterns", "pipeline", "ssh.tunnel"])
def test_every_public_error_can_be_pickled(module):
    found = importlib.import_module(f"zeroxide.{module}")
    kinds = [kind for name in dir(found) if isinstance(kind := getattr(found, name), type)]
    errors = [kind for kind in kinds if issubclass(kind, Exception)]
    assert errors
    for kind in errors:
        error = kind(*ARGUMENTS.get(kind.__name__, ("text",)))
        same = pickle.loads(pickle.dumps(error))
        assert (type(same), str(same), same.args) == (kind, str(error), error.args)
        assert same.__dict__ == error.__dict__


@pytest.mark.zeroxide_only
def test_errno_of_the_last_error(zmq, sockets):
    with pytest.raises(zmq.Again):
        sockets.bound(zmq.PULL).recv(zmq.DONTWAIT)
    assert zmq.zmq_errno() == zmq.EAGAIN


@pytest.mark.zeroxide_only
def test_not_flushed_names_the_remaining_messages(zmq):
    error = zmq.NotFlushed({"tcp://127.0.0.1:5555": 3})
    assert error.errno == zmq.EAGAIN
    assert error.remaining == {"tcp://127.0.0.1:5555": 3}
    assert "3 to tcp://127.0.0.1:5555" in str(error)


@pytest.mark.zeroxide_only
@pytest.mark.parametrize(
    ("call", "name", "reason"),
    [
        (lambda zmq, c: c.socket(zmq.PUSH), "ENOTSUP", "the context is closed"),
        (lambda zmq, c: zmq.Context(shadow=c).socket(zmq.PUSH), "EFAULT", "the context is closed"),
        (lambda zmq, c: zmq.Context.shadow(5), "EFAULT", "there is no context number 5"),
        (lambda zmq, c: zmq.Context.shadow_pyczmq(5), "ENOTSUP", "5 belongs to another"),
        (lambda zmq, c: zmq.Socket.shadow(5), "ENOTSOCK", "there is no socket number 5"),
        (lambda zmq, c: _raise(zmq.NotFlushed({"tcp://a:1": 3})), "EAGAIN", "messages not yet"),
    ],
)
def test_a_text_begins_with_that_of_the_number(zmq, call, name, reason):
    context = zmq.Context()
    context.term()
    with pytest.raises(zmq.ZMQError) as caught:
        call(zmq, context)
    number = zmq.Errno[name]
    assert caught.value.errno is number
    assert str(caught.value).startswith(f"{zmq.strerror(number)}: {reason}")


def _raise(error):
    raise error


def test_checks_for_callers_of_c(zmq):
    error = zmq.error
    assert error._check_rc(0) is None
    assert error._check_rc(-1, 0, False) is None
    with pytest.raises(zmq.Again):
        error._check_rc(-1, zmq.EAGAIN)
    with pytest.raises(zmq.ZMQError) as caught:
        error._check_rc(-1, zmq.EINVAL)
    assert caught.value.errno == zmq.EINVAL
    assert error._check_version((4, 0)) is None
    with pytest.raises(zmq.ZMQVersionError, match=r"It.*9"):
        error._check_version((9,), "It")


def test_a_type_that_is_missing_is_named(zmq, context):
    with pytest.raises(zmq.ZMQError, match="there is no socket type 21"):
        context.socket(21)
