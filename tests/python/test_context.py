"""Contexts: handles, defaults, options and termination."""

import copy
import errno
import gc
import pickle
import warnings
import weakref

import pytest
from support import Background, run_script


def test_one_more_handle(zmq):
    context = zmq.Context()
    shadows = [
        zmq.Context(context),
        zmq.Context(shadow=context),
        zmq.Context.shadow(context),
        zmq.Context.shadow(context.underlying),
        copy.copy(context),
        copy.deepcopy(context),
    ]
    for shadow in shadows:
        assert shadow.underlying == context.underlying
        assert not shadow.closed
        with shadow.socket(zmq.PAIR) as ours, context.socket(zmq.PAIR) as theirs:
            name = f"inproc://shadow-{id(shadow)}"
            theirs.bind(name)
            ours.connect(name)
            ours.send(b"")
            theirs.recv()
    del shadow, shadows
    gc.collect()
    assert not context.closed
    context.term()


def test_closing_a_handle_does_not_terminate_the_context(zmq):
    context = zmq.Context()
    zmq.Context(context)
    gc.collect()
    context.socket(zmq.PUSH).close()
    context.term()


def test_instance(zmq):
    first = zmq.Context.instance()
    assert zmq.Context.instance() is first
    first.term()
    second = zmq.Context.instance()
    assert second is not first and not second.closed
    second.term()


def test_instance_is_one_for_all_threads(zmq):
    threads = [Background(zmq.Context.instance) for _ in range(20)]
    assert len({id(thread.result()) for thread in threads}) == 1
    zmq.Context.instance().term()


def test_instance_of_a_subclass(zmq):
    class Sharing(zmq.Context):
        pass

    class Special(zmq.Context):
        _instance = None

    plain = zmq.Context.instance()
    special = Special.instance()
    assert type(plain) is zmq.Context
    assert Sharing.instance() is plain
    assert type(special) is Special
    plain.term()
    special.term()
    sharing = Sharing.instance()
    plain = zmq.Context.instance()
    assert type(sharing) is Sharing
    assert type(plain) is zmq.Context
    sharing.term()
    plain.term()


def test_sockets_of_a_class(zmq, context):
    class Special(zmq.Socket):
        def __init__(self, context, socket_type, extra=None, **kwargs):
            super().__init__(context, socket_type, **kwargs)
            self.__dict__["extra"] = extra

    with context.socket(zmq.PUSH, socket_class=Special, extra=3) as socket:
        assert type(socket) is Special
        assert (socket.extra, socket.type) == (3, zmq.PUSH)

    class Maker(zmq.Context):
        _socket_class = Special

    with Maker() as maker, maker.socket(zmq.PULL) as socket:
        assert type(socket) is Special

    context._socket_class = Special
    with context.socket(zmq.PULL) as socket:
        assert type(socket) is Special


def test_term_closes(zmq):
    context = zmq.Context()
    assert not context.closed
    shadow = zmq.Context(context)
    context.term()
    assert context.closed
    context.term()
    with pytest.raises(zmq.ZMQError) as caught:
        context.socket(zmq.PUSH)
    assert caught.value.errno == zmq.ENOTSUP
    with pytest.raises(zmq.ZMQError) as caught:
        shadow.socket(zmq.PUSH)
    assert caught.value.errno == zmq.EFAULT
    with pytest.raises(RuntimeError):
        context.get(zmq.IO_THREADS)
    with pytest.raises(RuntimeError):
        context.set(zmq.IO_THREADS, 2)


def test_destroy_closes_sockets(zmq):
    context = zmq.Context()
    sockets = [context.socket(kind) for kind in (zmq.PUSH, zmq.SUB, zmq.ROUTER)]
    sockets[0].connect("tcp://127.0.0.1:1")
    sockets[0].send(b"never to arrive")
    context.destroy(linger=0)
    assert context.closed
    assert all(socket.closed for socket in sockets)
    context.destroy()


def test_with_block(zmq):
    with zmq.Context() as context:
        socket = context.socket(zmq.PUSH)
        socket.close()
    assert context.closed


def test_with_block_warns_of_open_sockets(zmq):
    with pytest.warns(ResourceWarning, match="unclosed socket"), zmq.Context() as context:
        socket = context.socket(zmq.PUSH)
    assert socket.closed


def test_unclosed_context_warns(zmq):
    context = zmq.Context()
    with pytest.warns(ResourceWarning, match="Unclosed context"):
        del context
        gc.collect()


def test_closed_context_does_not_warn(zmq):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        context = zmq.Context()
        context.socket(zmq.PUSH).close()
        context.term()
        del context
        gc.collect()


def test_many_contexts(zmq):
    for _ in range(100):
        context = zmq.Context()
        context.socket(zmq.PUSH).close()
        context.term()


@pytest.mark.zeroxide_only
def test_garbage_with_sockets_in_it(zmq):
    """A context, a socket and a cycle between them: all three are collected."""

    class Owner:
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        owner = Owner()
        owner.me = owner
        owner.context = zmq.Context()
        owner.socket = owner.context.socket(zmq.PUSH)
        gone = weakref.ref(owner)
        del owner
        gc.collect()
    assert gone() is None


# ---- options ------------------------------------------------------------------------


def test_context_options(zmq):
    context = zmq.Context(io_threads=2)
    assert context.get(zmq.IO_THREADS) == context.io_threads == context.IO_THREADS == 2
    assert context.get(zmq.MAX_SOCKETS) == 1023
    context.max_sockets = 100
    assert context.max_sockets == 100
    context.set(zmq.IO_THREADS, 1)
    assert context.io_threads == 1
    assert context.get(zmq.SOCKET_LIMIT) >= 1023
    with pytest.raises(zmq.ZMQError) as caught:
        context.get(999)
    assert caught.value.errno == zmq.EINVAL
    with pytest.raises(TypeError):
        context.set(zmq.IO_THREADS, "2")
    context.term()


def test_without_io_threads(zmq, directory):
    """Enough for inproc, but not for other transports."""
    context = zmq.Context(io_threads=0)
    with context, context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.bind("inproc://without")
        push.connect("inproc://without")
        push.send(b"")
        pull.recv()
        for call in (pull.bind, push.connect):
            for endpoint in ("tcp://127.0.0.1:5555", f"ipc://{directory}/x"):
                with pytest.raises(zmq.ZMQError) as caught:
                    call(endpoint)
                assert caught.value.errno == zmq.EMTHREAD


def test_several_io_threads(zmq):
    with zmq.Context(io_threads=3) as context, context.socket(zmq.PULL) as pull:
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        pushes = []
        for number in range(9):
            push = context.socket(zmq.PUSH)
            push.affinity = 1 << number % 3
            push.connect(f"tcp://127.0.0.1:{port}")
            push.send(b"%d" % number)
            pushes.append(push)
        assert {int(pull.recv()) for _ in pushes} == set(range(9))
        for push in pushes:
            push.close()


def test_max_sockets(zmq):
    context = zmq.Context()
    context.max_sockets = 2
    sockets = [context.socket(zmq.PUSH)]
    with pytest.raises(zmq.ZMQError) as caught:
        for _ in range(2):
            sockets.append(context.socket(zmq.PUSH))
    assert caught.value.errno == errno.EMFILE
    context.destroy(linger=0)


def test_default_socket_options(zmq):
    with zmq.Context() as context:
        context.linger = 0
        context.setsockopt(zmq.RCVTIMEO, 12)
        assert context.linger == context.sockopts[zmq.LINGER] == 0
        assert context.getsockopt(zmq.RCVTIMEO) == context.rcvtimeo == 12
        with context.socket(zmq.PULL) as socket:
            assert (socket.linger, socket.rcvtimeo) == (0, 12)
        del context.rcvtimeo
        with pytest.raises(AttributeError):
            _ = context.rcvtimeo
        with context.socket(zmq.PULL) as socket:
            assert socket.rcvtimeo == -1
        # A default does not apply to sockets that do not have the option.
        context.subscribe = b"topic"
        for kind in (zmq.PUSH, zmq.SUB):
            context.socket(kind).close()


def test_unknown_attribute(zmq, context):
    with pytest.raises(AttributeError):
        _ = context.no_such_option
    with pytest.raises(AttributeError):
        context.no_such_option = 1
    with pytest.raises(AttributeError):
        del context.linger_
    # One that can only be set.
    assert not hasattr(context, "thread_affinity_cpu_add")


def test_repr(zmq):
    context = zmq.Context()
    assert repr(context).startswith("<zmq.Context() at 0x")
    socket = context.socket(zmq.PUSH)
    assert repr(context).startswith("<zmq.Context(1 socket) at 0x")
    other = context.socket(zmq.PUSH)
    assert repr(context).startswith("<zmq.Context(2 sockets) at 0x")
    socket.close()
    other.close()
    context.term()
    assert repr(context).endswith(" closed>")

    class Special(zmq.Context):
        pass

    with Special() as special:
        assert f"{__name__}." in repr(special) and "Special()" in repr(special)


@pytest.mark.zeroxide_only
def test_no_pickle(zmq, context):
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(context)


@pytest.mark.zeroxide_only
def test_unfinished_context(zmq):
    class Careless(zmq.Context):
        def __init__(self):
            pass

    context = Careless()
    assert context.closed
    with pytest.raises(zmq.ZMQError):
        context.socket(zmq.PUSH)
    context.term()


@pytest.mark.zeroxide_only
def test_shutdown_interrupts(zmq):
    context = zmq.Context()
    socket = context.socket(zmq.PULL)
    waiting = Background(socket.recv)
    context.shutdown()
    with pytest.raises(zmq.ContextTerminated):
        waiting.result()
    with pytest.raises(zmq.ContextTerminated):
        socket.recv()
    assert not socket.closed
    socket.close()
    context.term()


def test_warnings_as_errors_leave_nothing_open(zmq):
    _, errors = run_script(
        zmq.__name__,
        """
        import warnings
        warnings.simplefilter("error")
        context = zmq.Context()
        socket = context.socket(zmq.PUSH)
        socket.close()
        del socket
        context.term()
        print("done")
        """,
    )
    assert errors == ""
