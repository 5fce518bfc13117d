"""The public interface: names, numbers, texts and versions."""

import errno
import inspect
import os
import re
import subprocess
import sys

import pytest

CLASSES = [
    *("Context", "Socket", "Frame", "Message", "Poller", "MessageTracker"),
    *("ZMQBaseError", "ZMQError", "ZMQBindError", "ZMQVersionError", "NotDone", "Again"),
    *("ContextTerminated", "InterruptedSystemCall", "DraftFDWarning"),
]


@pytest.mark.parametrize("name", CLASSES)
def test_classes(zmq, name):
    assert inspect.isclass(getattr(zmq, name))
    assert name in dir(zmq)


@pytest.mark.parametrize(
    ("name", "parameters"),
    {
        "proxy": ["frontend", "backend", "capture"],
        "proxy_steerable": ["frontend", "backend", "capture", "control"],
        "device": ["device_type", "frontend", "backend"],
        "select": ["rlist", "wlist", "xlist", "timeout"],
        "zmq_poll": ["sockets", "timeout"],
        "has": ["capability"],
        "curve_public": ["secret_key"],
        "strerror": ["errno"],
    }.items(),
)
def test_functions_take_these_arguments(zmq, name, parameters):
    assert list(inspect.signature(getattr(zmq, name)).parameters) == parameters


@pytest.mark.parametrize(
    ("method", "parameters"),
    {
        "send": ["self", "data", "flags", "copy", "track", "routing_id", "group"],
        "recv": ["self", "flags", "copy", "track"],
        "recv_into": ["self", "buffer", "nbytes", "flags"],
        "recv_multipart": ["self", "flags", "copy", "track"],
        "recv_string": ["self", "flags", "encoding"],
        "recv_pyobj": ["self", "flags"],
        "recv_json": ["self", "flags", "kwargs"],
        "recv_serialized": ["self", "deserialize", "flags", "copy"],
        "send_string": ["self", "u", "flags", "copy", "encoding", "kwargs"],
        "send_json": ["self", "obj", "flags", "kwargs"],
        "send_pyobj": ["self", "obj", "flags", "protocol", "kwargs"],
        "send_serialized": ["self", "msg", "serialize", "flags", "copy", "kwargs"],
        "bind": ["self", "addr"],
        "connect": ["self", "addr"],
        "unbind": ["self", "addr"],
        "disconnect": ["self", "addr"],
        "bind_to_random_port": ["self", "addr", "min_port", "max_port", "max_tries"],
        "close": ["self", "linger"],
        "poll": ["self", "timeout", "flags"],
        "set": ["self", "option", "optval"],
        "get": ["self", "option"],
        "set_string": ["self", "option", "optval", "encoding"],
        "get_string": ["self", "option", "encoding"],
        "subscribe": ["self", "topic"],
        "unsubscribe": ["self", "topic"],
        "set_hwm": ["self", "value"],
        "monitor": ["self", "addr", "events"],
        "get_monitor_socket": ["self", "events", "addr"],
        "join": ["self", "group"],
        "leave": ["self", "group"],
        "shadow": ["address"],
    }.items(),
)
def test_methods_of_a_socket_take_these_arguments(zmq, method, parameters):
    found = list(inspect.signature(getattr(zmq.Socket, method)).parameters)
    assert [name for name in parameters if name not in found] == []
    # Positional callers rely on the order.
    assert [name for name in found if name in parameters] == parameters


@pytest.mark.parametrize(
    ("method", "parameters"),
    {
        "instance": ["io_threads"],
        "shadow": ["address"],
        "socket": ["self", "socket_type", "socket_class", "kwargs"],
        "destroy": ["self", "linger"],
        "term": ["self"],
        "set": ["self", "option", "optval"],
        "get": ["self", "option"],
        "setsockopt": ["self", "opt", "value"],
        "getsockopt": ["self", "opt"],
    }.items(),
)
def test_methods_of_a_context_take_these_arguments(zmq, method, parameters):
    found = inspect.signature(getattr(zmq.Context, method)).parameters.values()
    # Further ones may follow that take keywords alone.
    assert [each.name for each in found if each.kind != each.KEYWORD_ONLY] == parameters


@pytest.mark.parametrize(
    ("method", "parameters"),
    {
        "register": ["self", "socket", "flags"],
        "modify": ["self", "socket", "flags"],
        "unregister": ["self", "socket"],
        "poll": ["self", "timeout"],
    }.items(),
)
def test_methods_of_a_poller_take_these_arguments(zmq, method, parameters):
    assert list(inspect.signature(getattr(zmq.Poller, method)).parameters) == parameters


def test_aliases(zmq):
    assert zmq.Message is zmq.Frame
    assert zmq.XREQ == zmq.DEALER
    assert zmq.XREP == zmq.ROUTER
    assert zmq.NOBLOCK == zmq.DONTWAIT
    assert zmq.IDENTITY == zmq.ROUTING_ID


@pytest.mark.parametrize(
    "enum",
    [
        *("Errno", "ContextOption", "SocketType", "SocketOption", "MessageOption", "Flag"),
        *("RouterNotify", "NormMode", "SecurityMechanism", "ReconnectStop", "Event"),
        *("PollEvent", "DeviceType"),
    ],
)
def test_members_are_shown_by_name(zmq, enum):
    members = getattr(zmq.constants, enum)
    for member in members:
        assert repr(member).startswith(f"<{enum}.")
        assert members(member.value) is member
        assert int(member) == member.value


def test_flags_combine(zmq):
    both = zmq.POLLIN | zmq.POLLOUT
    assert both == 3
    assert both & zmq.POLLIN
    assert isinstance(both, zmq.PollEvent)
    assert zmq.SNDMORE | zmq.DONTWAIT == 3
    assert isinstance(zmq.SNDMORE | zmq.DONTWAIT, zmq.Flag)
    assert zmq.EVENT_ALL & zmq.EVENT_CONNECTED


def test_device_types(zmq):
    assert (zmq.STREAMER, zmq.FORWARDER, zmq.QUEUE) == (1, 2, 3)


def test_mechanisms(zmq):
    assert (zmq.NULL, zmq.PLAIN, zmq.CURVE, zmq.GSSAPI) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    "name", ["EAGAIN", "EINVAL", "EADDRINUSE", "ENOTSUP", "ENOTSOCK", "EHOSTUNREACH", "EMSGSIZE"]
)
def test_numbers_of_the_system(zmq, name):
    assert getattr(zmq, name) == getattr(errno, name)
    assert getattr(zmq, name) is zmq.Errno[name]


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        ("EFSM", 156384763, "Operation cannot be accomplished in current state"),
        ("ENOCOMPATPROTO", 156384764, "The protocol is not compatible with the socket type"),
        ("ETERM", 156384765, "Context was terminated"),
        ("EMTHREAD", 156384766, "No thread available"),
    ],
)
def test_numbers_of_zeromq(zmq, name, number, text):
    assert getattr(zmq, name) == number
    assert zmq.strerror(number) == text
    assert zmq.ZMQError(number).strerror == text


@pytest.mark.parametrize("name", ["EAGAIN", "ENOENT", "EADDRINUSE", "ECONNREFUSED"])
def test_texts_of_the_system(zmq, name):
    number = getattr(errno, name)
    assert zmq.strerror(number) == os.strerror(number)


def test_versions(zmq):
    assert re.fullmatch(r"4\.3\.\d+", zmq.zmq_version())
    assert zmq.zmq_version_info() == tuple(map(int, zmq.zmq_version().split(".")))
    assert zmq.zmq_version_info() >= (4, 3)
    assert isinstance(zmq.__version__, str)
    assert zmq.pyzmq_version().startswith(".".join(map(str, zmq.pyzmq_version_info()[:2])))
    assert zmq.pyzmq_version_info() >= (27,)
    assert isinstance(zmq.__revision__, str)


def test_numbers_of_the_version(zmq, part):
    version = part("sugar.version")
    numbers = (version.VERSION_MAJOR, version.VERSION_MINOR, version.VERSION_PATCH)
    assert zmq.pyzmq_version_info()[:3] == numbers
    assert isinstance(version.VERSION_EXTRA, str)


@pytest.mark.parametrize("capability", ["ipc", "curve"])
def test_has(zmq, capability):
    assert zmq.has(capability) is True


@pytest.mark.parametrize("capability", ["nonsense", ""])
def test_has_not(zmq, capability):
    assert zmq.has(capability) is False


def test_has_requires_text(zmq):
    with pytest.raises((TypeError, AttributeError)):
        zmq.has(5)


@pytest.mark.differs("pyzmq's wheels have no drafts")
def test_drafts(zmq):
    assert zmq.DRAFT_API is True
    assert zmq.PYZMQ_DRAFT_API is True
    assert zmq.has("draft")


def test_limits(zmq):
    assert zmq.IPC_PATH_MAX_LEN == 107
    assert zmq.COPY_THRESHOLD == 65536


def test_includes_are_lists(zmq):
    assert isinstance(zmq.get_includes(), list)
    assert isinstance(zmq.get_library_dirs(), list)


@pytest.mark.parametrize("name", ["nonsense", "POLLNONSENSE", "zmq_ctx_new"])
def test_missing_names(zmq, name):
    with pytest.raises(AttributeError):
        getattr(zmq, name)


def test_star(zmq):
    names: dict = {}
    exec(f"from {zmq.__name__} import *", names)
    assert {"Context", "Socket", "PUB", "POLLIN", "EAGAIN", "ZMQError", "proxy"} <= names.keys()
    assert not {"constants", "sugar", "error"} & names.keys() - {"error"}


MODULES = [
    *("asyncio", "auth", "auth.thread", "auth.asyncio", "auth.certs", "backend", "constants"),
    *("decorators", "devices", "devices.basedevice", "devices.proxydevice", "error"),
    *("devices.monitoredqueue", "devices.monitoredqueuedevice", "devices.proxysteerabledevice"),
    *("eventloop", "eventloop.future", "eventloop.ioloop", "eventloop.zmqstream", "log"),
    *("log.handlers", "ssh", "ssh.tunnel", "ssh.forward", "sugar", "sugar.context"),
    *("sugar.frame", "sugar.poll", "sugar.socket", "sugar.tracker", "sugar.version"),
    *("sugar.stopwatch", "sugar.attrsettr", "utils", "utils.garbage", "utils.interop"),
    *("utils.jsonapi", "utils.monitor", "utils.strtypes", "utils.win32", "utils.z85"),
    *("_future", "_typing", "green", "green.core", "green.poll", "green.device"),
    *("green.eventloop", "green.eventloop.zmqstream", "green.eventloop.ioloop"),
]


@pytest.mark.parametrize("name", MODULES)
def test_modules(part, name):
    if name.startswith("green"):
        pytest.importorskip("gevent")
    if name.startswith("eventloop") and name != "eventloop":
        pytest.importorskip("tornado")
    assert inspect.ismodule(part(name))


@pytest.mark.parametrize(
    ("name", "wanted"),
    {
        "sugar": "Context Socket Frame Poller device select",
        "sugar.context": "Context",
        "sugar.socket": "Socket",
        "sugar.frame": "Frame Message",
        "sugar.poll": "Poller select",
        "sugar.tracker": "MessageTracker",
        "sugar.version": "zmq_version pyzmq_version zmq_version_info pyzmq_version_info",
        "sugar.stopwatch": "Stopwatch",
        "backend": "Context Socket Frame zmq_poll proxy curve_keypair strerror has zmq_errno",
        "error": "ZMQError Again ContextTerminated _check_version",
        "constants": "SocketType SocketOption Event Flag Errno PollEvent ContextOption",
        "utils.monitor": "parse_monitor_message recv_monitor_message",
        "utils.z85": "encode decode Z85CHARS Z85MAP",
        "utils.jsonapi": "dumps loads",
        "utils.strtypes": "b u unicode basestring cast_bytes cast_unicode",
        "utils.interop": "cast_int_addr",
        "utils.win32": "allow_interrupt",
        "utils.garbage": "gc GarbageCollector",
        "decorators": "context socket",
        "auth": "Authenticator CURVE_ALLOW_ANY create_certificates load_certificate load_certificates",
        "auth.thread": "ThreadAuthenticator AuthenticationThread",
        "auth.asyncio": "AsyncioAuthenticator",
        "devices": "Device ThreadDevice ProcessDevice Proxy ThreadProxy ProcessProxy proxy"
        " ProxySteerable ThreadProxySteerable ProcessProxySteerable MonitoredQueue"
        " ThreadMonitoredQueue ProcessMonitoredQueue monitored_queue",
        "log.handlers": "PUBHandler TopicLogger TOPIC_DELIM",
        "ssh": "tunnel_connection",
        "ssh.tunnel": "openssh_tunnel paramiko_tunnel try_passwordless_ssh ssh_tunnel"
        " MaxRetryExceeded tunnel_connection open_tunnel",
        # Except for _FutureEvent: pyzmq's sockets keep it in queues, which are native here.
        "_future": "_AsyncPoller _AsyncSocket _Async",
        "asyncio": "Context Socket Poller ZMQEventLoop install",
        "eventloop": "IOLoop",
        "eventloop.zmqstream": "ZMQStream",
        "eventloop.future": "Context Socket Poller",
        "green": "Context Socket Poller zmq_poll device proxy",
    }.items(),
)
def test_names_of_modules(part, name, wanted):
    if name == "green":
        pytest.importorskip("gevent")
    if name.startswith("eventloop"):
        pytest.importorskip("tornado")
    module = part(name)
    assert [missing for missing in wanted.split() if not hasattr(module, missing)] == []


@pytest.mark.parametrize("name", ["utils.monitor", "auth.thread"])
def test_modules_that_import_asyncio(zmq, name):
    program = f"import {zmq.__name__} as zmq, {zmq.__name__}.{name}; print(zmq.asyncio.__name__)"
    shown = subprocess.check_output([sys.executable, "-W", "ignore", "-c", program], text=True)
    assert shown == f"{zmq.__name__}.asyncio\n"


def test_the_version_of_the_names(zmq):
    assert zmq.pyzmq_version_info() == (27, 3, 0)
    assert zmq.pyzmq_version() == "27.3.0"


@pytest.mark.parametrize("name", ["utils.jsonapi", "utils.interop", "backend.select"])
def test_modules_that_need_no_import(zmq, name):
    program = f"import {zmq.__name__} as zmq; print(zmq.{name}.__name__)"
    shown = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert shown == f"{zmq.__name__}.{name}\n"
