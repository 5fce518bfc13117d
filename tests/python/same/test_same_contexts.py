"""Contexts: creation, sharing, options, termination."""

import copy
import errno
import gc
import threading
import warnings
import weakref

import pytest


def test_equivalent_ways_to_create_a_context(zmq):
    for context in (zmq.Context(), zmq.Context(1), zmq.Context(io_threads=2)):
        assert not context.closed
        context.term()
        assert context.closed


def test_io_threads(zmq):
    with zmq.Context(io_threads=3) as context:
        assert context.io_threads == context.IO_THREADS == 3
        assert context.get(zmq.IO_THREADS) == 3


@pytest.mark.parametrize("argument", ["1", None])
def test_io_threads_must_be_a_number(zmq, argument):
    with pytest.raises(TypeError):
        zmq.Context(io_threads=argument).term()


def test_term_again(zmq):
    context = zmq.Context()
    context.term()
    context.term()
    context.destroy()
    assert context.closed


def test_with_block_terminates(zmq):
    with zmq.Context() as context:
        assert not context.closed
    assert context.closed


def test_socket_after_term(zmq):
    context = zmq.Context()
    context.term()
    with pytest.raises(zmq.ZMQError) as caught:
        context.socket(zmq.PAIR)
    assert caught.value.errno == zmq.ENOTSUP


@pytest.mark.parametrize(
    "call", [lambda c: c.get(1), lambda c: c.set(1, 1), lambda c: c.io_threads]
)
def test_options_after_term(zmq, call):
    context = zmq.Context()
    context.term()
    with pytest.raises(RuntimeError):
        call(context)


@pytest.mark.parametrize("kind", [250, -1, "PUSH", None])
def test_no_such_socket_type(zmq, context, kind):
    with pytest.raises((zmq.ZMQError, TypeError)):
        context.socket(kind)


def test_socket_type_by_number(zmq, context):
    socket = context.socket(8)
    assert socket.type is zmq.PUSH


def test_destroy_closes(zmq):
    context = zmq.Context()
    sockets = [context.socket(zmq.PUSH) for _ in range(3)]
    context.destroy()
    assert all(socket.closed for socket in sockets)


def test_destroy_with_linger(zmq):
    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    socket.connect("tcp://127.0.0.1:1")
    socket.send(b"goes nowhere")
    context.destroy(linger=0)
    assert socket.closed


def test_shutdown_is_seen_by_others(zmq):
    context = zmq.Context()
    socket = context.socket(zmq.PULL)
    socket.rcvtimeo = 10_000
    threading.Thread(target=context.term, daemon=True).start()
    with pytest.raises(zmq.ContextTerminated):
        socket.recv()
    socket.close()


# ---- further handles ----------------------------------------------------------------


def test_instance_is_one(zmq):
    context = zmq.Context.instance()
    assert zmq.Context.instance() is context
    assert zmq.Context.instance(io_threads=5) is context
    context.term()
    new = zmq.Context.instance()
    assert new is not context
    new.term()


def test_instance_of_a_subclass(zmq):
    class Own(zmq.Context):
        _instance = None

    own = Own.instance()
    assert type(own) is Own
    assert own is not zmq.Context.instance()
    own.term()
    zmq.Context.instance().term()


def test_shadow(zmq, context):
    shadow = zmq.Context.shadow(context.underlying)
    assert shadow.underlying == context.underlying
    del shadow
    gc.collect()
    assert not context.closed
    context.socket(zmq.PAIR).close()


class Wrapper:
    """Passes the attributes of another object on."""

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def __getattr__(self, name):
        return getattr(self._wrapped, name)


def test_shadow_of_a_wrapper(zmq, context):
    wrapper = Wrapper(context)
    for shadow in (zmq.Context(shadow=wrapper), zmq.Context.shadow(wrapper)):
        assert shadow.underlying == context.underlying
    with context.socket(zmq.PUSH) as socket:
        handle = zmq.Socket.shadow(Wrapper(socket))
        assert handle.underlying == socket.underlying
        assert handle.type == zmq.PUSH


@pytest.mark.parametrize("way", ["positional", "keyword", "copy", "deepcopy"])
def test_ways_to_shadow(zmq, context, way):
    shadow = {
        "positional": lambda: zmq.Context(context),
        "keyword": lambda: zmq.Context(shadow=context),
        "copy": lambda: copy.copy(context),
        "deepcopy": lambda: copy.deepcopy(context),
    }[way]()
    assert shadow is not context
    assert shadow.underlying == context.underlying
    with shadow.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as other:
        one.bind("inproc://shadow")
        other.connect("inproc://shadow")
        one.send(b"x")
        assert other.recv() == b"x"


def test_underlying_is_a_number(zmq, context):
    assert isinstance(context.underlying, int)
    with context.socket(zmq.PAIR) as socket:
        assert isinstance(socket.underlying, int)


# ---- options ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "default", "other"),
    [
        ("max_sockets", 1023, 10),
        ("max_msgsz", 2147483647, 1000),
    ],
)
def test_numbers(zmq, name, default, other):
    with zmq.Context() as context:
        assert getattr(context, name) == default
        setattr(context, name, other)
        assert getattr(context, name) == other
        assert context.get(zmq.ContextOption[name.upper()]) == other


def test_too_many_sockets(zmq):
    with zmq.Context() as context:
        context.max_sockets = 2
        sockets = []
        with pytest.raises(zmq.ZMQError) as caught:
            for _ in range(4):
                sockets.append(context.socket(zmq.PAIR))
        assert caught.value.errno == errno.EMFILE
        for socket in sockets:
            socket.close()


@pytest.mark.parametrize(("option", "value"), [(9999, 1), (1, -5), (2, -1)])
def test_refused_options(zmq, context, option, value):
    with pytest.raises(zmq.ZMQError) as caught:
        context.set(option, value)
    assert caught.value.errno == zmq.EINVAL


def test_unknown_attributes(context):
    with pytest.raises(AttributeError):
        context.nonsense  # noqa: B018
    with pytest.raises(AttributeError):
        context.nonsense = 5
    assert not hasattr(context, "nonsense")


def test_defaults_of_sockets(zmq):
    with zmq.Context() as context:
        context.linger = 5
        context.setsockopt(zmq.RCVTIMEO, 6)
        context.SNDHWM = 7
        assert context.linger == context.getsockopt(zmq.LINGER) == 5
        with context.socket(zmq.PUSH) as socket:
            assert (socket.linger, socket.rcvtimeo, socket.sndhwm) == (5, 6, 7)
        assert context.sockopts == {zmq.LINGER: 5, zmq.RCVTIMEO: 6, zmq.SNDHWM: 7}


def test_defaults_change_no_existing_socket(zmq, context):
    with context.socket(zmq.PUSH) as socket:
        before = socket.sndhwm
        context.sndhwm = before + 1
        assert socket.sndhwm == before


def test_defaults_of_other_socket_types_are_skipped(zmq, context):
    context.subscribe = b"topic"
    context.router_mandatory = 1
    context.socket(zmq.PUSH).close()
    context.socket(zmq.SUB).close()
    context.socket(zmq.ROUTER).close()


def test_defaults_can_be_deleted(zmq):
    with zmq.Context() as context:
        context.linger = 5
        del context.linger
        with pytest.raises(AttributeError):
            context.linger  # noqa: B018
        with pytest.raises(AttributeError):
            del context.linger
        with context.socket(zmq.PUSH) as socket:
            assert socket.linger == -1


def test_unknown_default(zmq, context):
    with pytest.raises(KeyError):
        context.getsockopt(zmq.MAXMSGSIZE)


def test_shadows_have_their_own_defaults(zmq, context):
    context.sndhwm = 9
    shadow = zmq.Context(shadow=context)
    with pytest.raises(AttributeError):
        shadow.sndhwm  # noqa: B018


# ---- classes of sockets -------------------------------------------------------------


def test_class_of_one_socket(zmq, context):
    class Own(zmq.Socket):
        pass

    with context.socket(zmq.PUSH, socket_class=Own) as socket:
        assert type(socket) is Own
    with context.socket(zmq.PUSH, Own) as socket:
        assert type(socket) is Own


def test_class_of_all_sockets(zmq):
    class Own(zmq.Socket):
        pass

    class Context(zmq.Context):
        _socket_class = Own

    with Context() as context, context.socket(zmq.PUSH) as socket:
        assert type(socket) is Own
        assert socket.context is context


def test_arguments_for_the_class(zmq, context):
    class Own(zmq.Socket):
        def __init__(self, *args, name="", **kwargs):
            super().__init__(*args, **kwargs)
            self.__dict__["name"] = name

    with context.socket(zmq.PUSH, socket_class=Own, name="me") as socket:
        assert socket.name == "me"


def test_factory_of_sockets(zmq, context):
    made = []

    def factory(*arguments):
        made.append(arguments)
        return zmq.Socket(*arguments)

    context.socket(zmq.PUSH, socket_class=factory).close()
    assert made == [(context, zmq.PUSH)]


# ---- how it looks, and how it is forgotten ------------------------------------------


def test_repr(zmq):
    context = zmq.Context()
    assert repr(context) == f"<zmq.Context() at {id(context):#x}>"
    one = context.socket(zmq.PUSH)
    assert repr(context) == f"<zmq.Context(1 socket) at {id(context):#x}>"
    with context.socket(zmq.PUSH):
        assert repr(context) == f"<zmq.Context(2 sockets) at {id(context):#x}>"
    one.close()
    context.term()
    assert repr(context) == f"<zmq.Context() at {id(context):#x} closed>"


def test_repr_of_a_subclass(zmq):
    class Own(zmq.Context):
        pass

    with Own() as context:
        assert repr(context).startswith(f"<{__name__}.Own(")


def test_not_terminated(zmq):
    with pytest.warns(ResourceWarning, match="Unclosed context"):
        zmq.Context()
        gc.collect()


def test_left_with_open_sockets(zmq):
    with pytest.warns(ResourceWarning, match="unclosed socket"), zmq.Context() as context:
        socket = context.socket(zmq.PUSH)
    assert socket.closed


def test_terminated_contexts_are_collected_without_a_warning(zmq):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        context = zmq.Context()
        context.socket(zmq.PUSH).close()
        context.term()
        del context
        gc.collect()


def test_does_not_keep_sockets(zmq, context):
    socket = context.socket(zmq.PUSH)
    gone = weakref.ref(socket)
    socket.close()
    del socket
    gc.collect()
    assert gone() is None


def test_socket_keeps_the_context(zmq):
    socket = zmq.Context().socket(zmq.PUSH)
    gc.collect()
    assert not socket.closed
    assert not socket.context.closed
    context = socket.context
    socket.close()
    del socket
    context.term()


def test_dir(context):
    assert {"socket", "term", "destroy", "closed"} <= set(dir(context))


def test_subclass_with_attributes(zmq):
    class Own(zmq.Context):
        name = "class"
        other: int

    with Own() as context:
        context.name = "own"
        context.other = 5
        assert (context.name, context.other, Own.name) == ("own", 5, "class")


@pytest.mark.parametrize("name", ["THREAD_PRIORITY", "THREAD_SCHED_POLICY", "SOCKET_LIMIT"])
@pytest.mark.parametrize("value", [-1, -2])
def test_a_negative_number_of_threads_is_refused(zmq, name, value):
    context = zmq.Context()
    with pytest.raises(zmq.ZMQError) as caught:
        context.set(getattr(zmq, name), value)
    assert caught.value.errno == zmq.EINVAL
    context.term()


@pytest.mark.parametrize("name", ["THREAD_AFFINITY_CPU_ADD", "THREAD_AFFINITY_CPU_REMOVE"])
def test_no_cpu_has_a_number_below_zero(zmq, name):
    context = zmq.Context()
    with pytest.raises(zmq.ZMQError) as caught:
        context.set(getattr(zmq, name), -1)
    assert caught.value.errno == zmq.EINVAL
    context.term()


@pytest.mark.parametrize("value", [-2, -1, 0, 1, 2**31 - 1])
def test_any_number_is_a_prefix_of_thread_names(zmq, value):
    context = zmq.Context()
    context.set(zmq.THREAD_NAME_PREFIX, value)
    assert context.get(zmq.THREAD_NAME_PREFIX) == value
    context.term()
