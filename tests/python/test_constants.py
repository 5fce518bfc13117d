"""The constants and their names."""

import enum
import errno

import pytest

ENUMS = {
    "Errno": "",
    "ContextOption": "",
    "SocketType": "",
    "SocketOption": "",
    "MessageOption": "",
    "Flag": "",
    "PollEvent": "",
    "RouterNotify": "NOTIFY_",
    "NormMode": "NORM_",
    "SecurityMechanism": "",
    "ReconnectStop": "RECONNECT_STOP_",
    "SlowSubscriber": "SLOW_",
    "Event": "EVENT_",
    "DeviceType": "",
}


@pytest.mark.parametrize("name", ENUMS)
def test_every_member_has_a_flat_name(zmq, name):
    for member, value in getattr(zmq, name).__members__.items():
        flat = member if member.startswith("PROTOCOL_ERROR_") else ENUMS[name] + member
        assert getattr(zmq, flat) is value
        assert flat in zmq.__all__


@pytest.mark.parametrize("name", ENUMS)
def test_enums_are_ints(zmq, name):
    kind = getattr(zmq, name)
    assert issubclass(kind, int) and issubclass(kind, enum.Enum)
    assert kind is getattr(zmq.constants, name)


def test_socket_types(zmq):
    names = "PAIR PUB SUB REQ REP DEALER ROUTER PULL PUSH XPUB XSUB STREAM"
    for number, name in enumerate(names.split()):
        assert getattr(zmq, name) == number
    assert zmq.XREQ is zmq.DEALER and zmq.XREP is zmq.ROUTER
    assert (zmq.SERVER, zmq.CHANNEL) == (12, 20)


def test_flags(zmq):
    assert (zmq.DONTWAIT, zmq.NOBLOCK, zmq.SNDMORE) == (1, 1, 2)
    assert (zmq.POLLIN, zmq.POLLOUT, zmq.POLLERR, zmq.POLLPRI) == (1, 2, 4, 8)
    assert zmq.POLLIN | zmq.POLLOUT == 3


def test_errors_of_the_system_and_of_zeromq(zmq):
    assert zmq.EAGAIN == errno.EAGAIN
    assert zmq.ENOTSOCK == errno.ENOTSOCK
    assert zmq.EFSM == 156384763
    assert (zmq.ENOCOMPATPROTO, zmq.ETERM, zmq.EMTHREAD) == (156384764, 156384765, 156384766)


def test_events(zmq):
    assert zmq.EVENT_CONNECTED == 1
    assert zmq.EVENT_HANDSHAKE_FAILED_AUTH == 0x4000
    assert zmq.EVENT_ALL == zmq.EVENT_ALL_V1 == 0xFFFF
    assert zmq.EVENT_ALL_V2 == 0x1FFFF
    assert zmq.Event(0x200) is zmq.EVENT_DISCONNECTED
    assert zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH == 0x11000002


def test_option_types(zmq):
    types = {
        "LINGER": "int",
        "AFFINITY": "int64",
        "MAXMSGSIZE": "int64",
        "ROUTING_ID": "bytes",
        "LAST_ENDPOINT": "bytes",
        "FD": "fd",
    }
    for name, kind in types.items():
        assert getattr(zmq, name)._opt_type.value == kind
    assert zmq.IDENTITY is zmq.ROUTING_ID


@pytest.mark.parametrize(
    ("name", "value"),
    {
        "HWM": 1,
        "AFFINITY": 4,
        "SUBSCRIBE": 6,
        "FD": 14,
        "LINGER": 17,
        "SNDHWM": 23,
        "RCVTIMEO": 27,
        "ROUTER_MANDATORY": 33,
        "IMMEDIATE": 39,
        "CURVE_SERVERKEY": 50,
        "CONNECT_ROUTING_ID": 61,
        "HEARTBEAT_IVL": 75,
        "BINDTODEVICE": 92,
        "RECONNECT_STOP": 109,
        "NORM_PUSH": 124,
        "IO_THREADS": 1,
        "MAX_SOCKETS": 2,
        "THREAD_NAME_PREFIX": 9,
        "MORE": 1,
        "SHARED": 3,
        "QUEUE": 3,
        "NOTIFY_DISCONNECT": 2,
        "RECONNECT_STOP_AFTER_DISCONNECT": 4,
        "NORM_CCE_ECNONLY": 4,
    }.items(),
)
def test_numbers(zmq, name, value):
    assert getattr(zmq, name) == value


@pytest.mark.zeroxide_only
def test_every_public_name_is_exported(zmq):
    """`__all__` is written out for type checkers and editors."""
    names = [name for name in vars(zmq.constants) if not name.startswith("_")]
    assert sorted(zmq.constants.__all__) == sorted(names)
    assert set(names) <= set(zmq.__all__)


@pytest.mark.zeroxide_only
def test_options_agree_with_the_core(zmq):
    """A row of the core's table that Python does not know could not be set by name."""
    from zeroxide import _native

    rows = _native.socket_options()
    assert rows
    for name, number, kind, *_ in rows:
        option = zmq.SocketOption[name]
        assert (option, option._opt_type.value) == (number, kind), name
    for name, number, *_ in _native.context_options():
        assert name in {"BLOCKY", "IPV6"} or zmq.ContextOption[name] == number
