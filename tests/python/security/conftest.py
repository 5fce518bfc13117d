"""Fixtures of the security tests."""

import importlib

import pytest
from peers import Middle, forget


@pytest.fixture(autouse=True)
def utilities(zmq):
    __import__(f"{zmq.__name__}.utils.monitor")
    __import__(f"{zmq.__name__}.utils.z85")
    yield
    forget()


@pytest.fixture
def middle():
    made = []

    def make(endpoint, spoil):
        made.append(Middle(endpoint, spoil))
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
