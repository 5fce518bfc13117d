"""Addresses of vsock, tipc and sctp. What needs a kernel with these protocols is in the folder `kernel`."""

import socket

import pytest

pytestmark = pytest.mark.zeroxide_only


@pytest.mark.parametrize(
    ("call", "endpoint", "name", "family"),
    [
        ("bind", "vsock://*:*", "vsock", (socket.AF_VSOCK, socket.SOCK_STREAM)),
        ("bind", "tipc://{20000,0,0}", "TIPC", (socket.AF_TIPC, socket.SOCK_STREAM)),
        ("bind", "sctp://127.0.0.1:*", "SCTP", (socket.AF_INET, socket.SOCK_STREAM, 132)),
        ("connect", "vsock://2:5999", "vsock", (socket.AF_VSOCK, socket.SOCK_STREAM)),
        ("connect", "tipc://{20000,0}", "TIPC", (socket.AF_TIPC, socket.SOCK_STREAM)),
        ("connect", "sctp://127.0.0.1:5999", "SCTP", (socket.AF_INET, socket.SOCK_STREAM, 132)),
    ],
)
def test_a_kernel_without_the_protocol_is_named(zmq, context, call, endpoint, name, family):
    pull = context.socket(zmq.PULL)
    try:
        socket.socket(*family).close()
    except OSError:
        with pytest.raises(zmq.ZMQError, match=f"the kernel has no {name}; load") as caught:
            getattr(pull, call)(endpoint)
        assert caught.value.errno == zmq.EPROTONOSUPPORT
        assert endpoint in str(caught.value)
    else:
        getattr(pull, call)(endpoint)


@pytest.mark.parametrize(
    ("bind", "endpoint", "words"),
    [
        (True, "vsock://5555", "write machine:port"),
        (False, "vsock://*:5555", "2 is the host"),
        (False, "vsock://2:0", "a port is a number"),
        (True, "tipc://{1,2}", "{type,lower,upper}"),
        (False, "tipc://{1,2,3}", "{type,instance}"),
        (True, "sctp://127.0.0.1", "the port is missing"),
    ],
)
def test_a_wrong_address_is_refused_at_once(zmq, context, bind, endpoint, words):
    pull = context.socket(zmq.PULL)
    with pytest.raises(zmq.ZMQError) as caught:
        (pull.bind if bind else pull.connect)(endpoint)
    assert caught.value.errno == zmq.EINVAL
    assert words in str(caught.value) and endpoint in str(caught.value)


@pytest.mark.parametrize(
    ("scheme", "family"),
    [
        ("vsock", (socket.AF_VSOCK, socket.SOCK_STREAM)),
        ("tipc", (socket.AF_TIPC, socket.SOCK_STREAM)),
        ("sctp", (socket.AF_INET, socket.SOCK_STREAM, 132)),
    ],
)
def test_they_are_capabilities_if_the_kernel_has_them(zmq, scheme, family):
    try:
        socket.socket(*family).close()
    except OSError:
        assert not zmq.has(scheme)
    else:
        assert zmq.has(scheme)
