"""What completion offers: names that programs use, each once, and nothing that only the package needs."""

import importlib
import keyword
import subprocess
import sys

import pytest

pytestmark = pytest.mark.zeroxide_only

# Of transports, mechanisms and drafts that are not built in.
ABSENT = (
    "norm_",
    "vmci_",
    "wss_",
    "gssapi_",
    "multicast_",
    "hello_msg",
    "busy_poll",
    "recovery_ivl",
)

MODULES = ["zeroxide", "zeroxide.asyncio", "zeroxide.green"]


def public(names):
    return [name for name in names if not name.startswith("_")]


@pytest.fixture
def socket(zmq, context):
    with context.socket(zmq.DEALER) as socket:
        yield socket


def test_a_socket_offers_each_option_once_and_in_lower_case(socket):
    names = public(dir(socket))
    assert {"linger", "rcvtimeo", "identity", "events", "hwm", "send", "stats"} <= set(names)
    assert len(names) == len(set(names))
    assert [name for name in names if not name.islower()] == []


def test_a_socket_offers_no_option_that_is_not_built_in(socket):
    assert [name for name in dir(socket) if name.startswith(ABSENT)] == []


def test_a_socket_offers_every_option_that_can_be_used(zmq, socket):
    from zeroxide import _native

    for name, _, _, readable, writable in _native.socket_options():
        low = name.lower()
        if (readable or writable) and not low.startswith((*ABSENT, "rate", "loopback_")):
            assert low in dir(socket), name


def test_what_is_not_offered_works_all_the_same(socket):
    socket.LINGER = 5
    assert socket.linger == socket.LINGER == 5
    socket.HWM = 7
    assert socket.hwm == socket.HWM == 7


def test_a_context_offers_its_options_in_lower_case(context):
    names = public(dir(context))
    assert {"io_threads", "max_sockets", "memory_budget", "socket", "term"} <= set(names)
    assert [name for name in names if not name.islower()] == []


@pytest.mark.parametrize("name", MODULES)
def test_a_module_offers_what_it_exports_and_its_parts(name):
    if name.endswith("green"):
        pytest.importorskip("gevent")
    module = importlib.import_module(name)
    offered = public(dir(module))
    assert len(offered) == len(set(offered))
    assert set(public(module.__all__)) <= set(offered)
    for extra in set(offered) - set(module.__all__):
        # A part of the package, or a class of it that is imported when it is used.
        part = getattr(module, extra)
        assert getattr(part, "__module__", part.__name__).startswith("zeroxide"), extra
    assert not any(keyword.iskeyword(name) for name in offered)


def test_producers_are_offered_before_their_first_use():
    code = (
        "import zeroxide, zeroxide.asyncio, sys\n"
        "print('Producer' in dir(zeroxide) and 'Producer' in dir(zeroxide.asyncio))\n"
        "print('zeroxide.producer' in sys.modules, zeroxide.Producer.__name__)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout == "True\nFalse Producer\n"


def test_parts_of_the_package_are_there_without_an_import():
    code = (
        "import zeroxide as zmq\n"
        "print(zmq.asyncio.Context.__name__, zmq.auth.__name__, zmq.utils.jsonapi.loads('1'))\n"
        "print(zmq.backend.has('curve'), zmq.sugar.Socket is zmq.Socket)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert output.stdout == "Context zeroxide.auth 1\nTrue True\n", output.stderr


def test_a_misspelled_name_gets_a_suggestion():
    code = "import zeroxide as zmq; zmq.PUSHH"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "has no attribute 'PUSHH'. Did you mean: 'PUSH'?" in output.stderr
