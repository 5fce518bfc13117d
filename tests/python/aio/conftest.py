"""Fixtures of sockets whose calls do not block. A module that tests other sockets than asyncio's defines its own `aio`
fixture."""

import pytest
from loops import LOOPS, run_in, subtree


@pytest.fixture(params=LOOPS)
def run(request):
    """Runs a coroutine."""
    return lambda main: run_in(request.param, main)


@pytest.fixture
def aio(zmq):
    """The module of the sockets."""
    return subtree(zmq, "asyncio")


@pytest.fixture
def context(aio):
    context = aio.Context()
    context.linger = 0
    yield context
    context.destroy(linger=0)


@pytest.fixture
def pipe(zmq, sockets):
    """A PULL and a PUSH socket."""
    return sockets.pair(zmq.PULL, zmq.PUSH)
