"""Addresses of vsock, tipc and sctp. What needs a kernel with these protocols is in the folder `kernel`."""

import platform
import socket
import subprocess
import sys

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


# A sandbox like those of containers: the system refuses sockets of vsock, as if they were not allowed to this process.
SANDBOX = """
import ctypes, errno, platform, socket, struct, sys
number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
refused = 0x50000 | errno.EPERM
program = b"".join(
    struct.pack("HBBI", *step)
    for step in [
        (0x20, 0, 0, 0), (0x15, 0, 3, number),
        (0x20, 0, 0, 16), (0x15, 0, 1, socket.AF_VSOCK),
        (6, 0, 0, refused), (6, 0, 0, 0x7FFF0000),
    ]
)
steps = ctypes.create_string_buffer(program)
filter = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(steps))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0, "no new privileges"
assert libc.prctl(22, 2, ctypes.c_char_p(filter), 0, 0) == 0, "the filter"
import zeroxide as zmq
with zmq.Context() as context, context.socket(zmq.PUSH) as push:
    try:
        push.connect("vsock://2:5999")
    except zmq.ZMQError as error:
        print(zmq.has("vsock"), errno.errorcode[error.errno], error)
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="numbers of calls")
def test_a_sandbox_without_the_protocol_is_named():
    run = subprocess.run(
        [sys.executable, "-c", SANDBOX], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("False EPERM Operation not permitted: vsock://2:5999"), run


# The limit leaves no descriptor for a socket.
FULL = """
import os, resource, sys
import zeroxide as zmq
scheme = sys.argv[1]
free = os.open("/dev/null", os.O_RDONLY)
os.close(free)
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
full = zmq.has(scheme)
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
print(full == zmq.has(scheme))
"""


@pytest.mark.parametrize("scheme", ["vsock", "tipc", "sctp"])
def test_the_kernel_can_be_asked_without_a_free_descriptor(scheme):
    arguments = [sys.executable, "-c", FULL, scheme]
    run = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert run.stdout == "True\n", run
