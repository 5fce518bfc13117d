"""Contexts and sockets as decorators."""

import importlib

import pytest


@pytest.fixture
def decorators(zmq):
    return importlib.import_module(f"{zmq.__name__}.decorators")


def test_context(zmq, decorators):
    @decorators.context()
    def work(*args, **kwargs):
        """Does nothing."""
        return args, kwargs

    args, kwargs = work("first", other=1)
    assert args[0] == "first" and kwargs == {"other": 1}
    assert isinstance(args[1], zmq.Context) and args[1].closed
    assert work.__name__ == "work" and work.__doc__ == "Does nothing."


@pytest.mark.parametrize("by_name", [("ctx",), ()])
def test_names(zmq, decorators, by_name):
    keywords = {} if by_name else {"name": "ctx"}

    @decorators.context(*by_name, **keywords)
    def work(ctx):
        assert isinstance(ctx, zmq.Context)
        return ctx

    assert work() is not work()
    with pytest.raises(TypeError, match="multiple values"):
        work(ctx=1)


def test_arguments_of_the_context(decorators):
    @decorators.context("ctx", 3)
    @decorators.context("keyword", io_threads=2)
    def work(ctx, keyword):
        return ctx.io_threads, keyword.io_threads

    assert work() == (3, 2)


def test_sockets_of_the_context_passed(zmq, decorators):
    @decorators.context()
    @decorators.socket(zmq.PUSH)
    @decorators.socket("pull", zmq.PULL)
    def work(ctx, push, pull):
        assert push.context is ctx and pull.context is ctx
        push.bind("inproc://decorated")
        pull.connect("inproc://decorated")
        push.send(b"x")
        assert pull.recv() == b"x"
        return push, pull

    assert all(socket.closed for socket in work())


def test_context_by_keyword(zmq, decorators, context):
    @decorators.socket(zmq.PUSH)
    def work(push, context=None):
        assert push.context is context

    work(context=context)

    @decorators.socket(zmq.PUSH, context_name="mine", name="push")
    def other(mine, push):
        assert push.context is mine

    other(mine=context)


def test_the_shared_context_by_default(zmq, decorators):
    @decorators.socket(zmq.PAIR)
    def work(pair):
        assert pair.context is zmq.Context.instance()
        return pair

    assert work().closed
    zmq.Context.instance().term()


def test_methods(zmq, decorators):
    class Service:
        @decorators.context("ctx")
        @decorators.socket("push", zmq.PUSH, context_name="ctx")
        def run(self, ctx, push):
            assert isinstance(self, Service)
            assert push.context is ctx
            return push

    assert Service().run().closed


def test_closed_after_an_error(zmq, decorators, context):
    seen = []

    @decorators.socket(zmq.PUSH)
    def work(context, push):
        seen.append(push)
        raise KeyError

    with pytest.raises(KeyError):
        work(context)
    assert seen[0].closed
