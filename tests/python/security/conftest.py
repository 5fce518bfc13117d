"""Fixtures of the security tests."""

import functools
import importlib

import pytest
from faults.proxy import Path, Proxy
from peers import forget


@pytest.fixture(autouse=True)
def utilities(zmq):
    __import__(f"{zmq.__name__}.utils.monitor")
    __import__(f"{zmq.__name__}.utils.z85")
    yield
    forget()


@pytest.fixture
def middle():
    """Makes a man in the middle of a connection, who changes its bytes with `spoil`.

    `spoil` gets the direction ("up" to the server, "down" from it), how many bytes have
    gone that way, and the next ones; it returns those to be sent instead.
    """
    made = []

    def make(endpoint, spoil):
        up, down = (Path(rewrite=functools.partial(spoil, way)) for way in ("up", "down"))
        made.append(Proxy(endpoint.decode(), up, down))
        return made[-1].endpoint

    yield make
    for each in made:
        each.close()


@pytest.fixture
def curve(zmq):
    """The options of a CURVE server and of its client."""
    public, secret = zmq.curve_keypair()
    mine, my_secret = zmq.curve_keypair()
    return (
        {"curve_server": 1, "curve_secretkey": secret},
        {"curve_serverkey": public, "curve_publickey": mine, "curve_secretkey": my_secret},
    )


@pytest.fixture
def auth(zmq):
    if zmq.__name__ == "zmq":
        pytest.skip("pyzmq has nothing like it")
    return importlib.import_module(f"{zmq.__name__}.auth")
