"""Arguments of a wrong type or out of range: errors name the argument, what it takes and what was given.

The first part has a row per mistake. The second calls everything public with a value that no argument takes: no
error may be the interpreter's own about a conversion, nor come from inside the package.
"""

import asyncio
import inspect
import json
import math
import re

import pytest
from support import Background

pytestmark = pytest.mark.zeroxide_only

HUGE = 2**70

# Calls with `socket` (SUB), `zmq`, `context` and `poller`, each with the text of its error.
ROWS = {
    "poller.poll('x')": "timeout takes a number of milliseconds, or None, not 'x'",
    "poller.poll(math.nan)": "timeout takes a number of milliseconds, or None, not nan",
    "socket.poll('x')": "timeout takes a number of milliseconds, or None, not 'x'",
    "socket.poll(math.nan)": "timeout takes a number of milliseconds, or None, not nan",
    "socket.poll(0, 'POLLIN')": "flags takes zmq.POLLIN, zmq.POLLOUT or zmq.POLLIN | zmq.POLLOUT,"
    " not 'POLLIN'",
    "socket.recv_batch('x')": "max_messages takes a whole number of messages, 1 or more, not 'x'",
    "socket.recv_batch(multipart=1)": "multipart takes True or False, not 1",
    "socket.wait_connected(count=-1)": "count takes a whole number of peers, 0 or more, not -1",
    "socket.count_subscribed(5)": "topic takes bytes or text, not 5",
    "socket.monitor_events('x')": "events takes a sum of zmq.EVENT_ numbers, such as"
    " zmq.EVENT_ALL, not 'x'",
    "socket.password_server(5)": "users and passwords are a mapping: {user: password}, not 5",
    "socket.password_client(b'u', 'p')": "username takes text, not b'u'",
    "socket.secure_server(b'k' * 32, 5)": "a list of keys is expected, a dict {key: name}, a folder,"
    " or '*', not 5",
    "socket.bind_to_random_port('inproc://a')": "inproc://a has no ports that the system could"
    " choose; pass min_port and max_port for a name with a random number",
    "socket.bind_to_random_port('tcp://*', 70000, 80000)": "min_port must be below 65536, not 70000",
    "socket.bind_to_random_port('tcp://*', 5, 5)": "max_port must be at least 6, not 5",
    "socket.send_serialized(1, 'x')": "serialize takes a function that makes a list of parts,"
    " not 'x'",
    "socket.send_string('x', encoding=5)": "encoding takes the name of an encoding such as 'utf-8',"
    " not 5",
    "socket.set(zmq.LINGER, HUGE)": "Invalid argument: LINGER cannot hold 1180591620717411303424",
    "socket.set(zmq.MAXMSGSIZE, 1 << 63)": "Invalid argument: MAXMSGSIZE cannot hold 9223372036854775808",
    "socket.set(HUGE, 1)": "Invalid argument: an option is a number such as zmq.LINGER, not"
    " 1180591620717411303424",
    "poller.register('tcp://x:1')": "a poller takes a socket, a descriptor or an object with"
    " fileno(), not 'tcp://x:1'; connect a socket to it, and register that",
    "poller.register([])": "a poller takes a socket, a descriptor or an object with fileno(),"
    " not []",
    "poller.unregister('x')": "not registered with this poller: 'x'",
    "zmq.select(5, [], [])": "rlist takes a list of sockets, not 5",
    "zmq.select([], [], [], 'x')": "timeout takes a number of seconds, or None, not 'x'",
    "zmq.zmq_poll([5])": "sockets takes a list of pairs (socket, flags) such as (socket,"
    " zmq.POLLIN), not 5",
    "zmq.proxy(socket, 'x')": "backend takes a socket of this package, not 'x'",
    "zmq.proxy(socket, socket, 'x')": "capture takes a socket of this package, not 'x'",
    "zmq.Context('x')": "io_threads takes a number of threads such as 1, or a context to make"
    " another handle of, not 'x'",
    "zmq.Context(shadow=[1])": "shadow takes a context, or the `underlying` number of one, not [1]",
    "context.socket(HUGE)": "socket_type takes a zmq.SocketType such as zmq.PUSH, not"
    " 1180591620717411303424",
    "context.socket(zmq.PUSH, 'x')": "socket_class takes a class of sockets, not 'x'",
    "context.set('x', 1)": "a context's option is a number such as zmq.IO_THREADS, not 'x'",
    "context.set(zmq.MAX_SOCKETS, 'x')": "MAX_SOCKETS takes a whole number, not 'x'",
    "context.getsockopt(zmq.RCVHWM)": "this context has no default for the option RCVHWM",
    "zmq.Frame(b'x', copy=3)": "copy takes True, False or None, not 3",
    "zmq.has(5)": "capability takes a word such as 'curve' or 'ipc', not 5",
    "zmq.recv_monitor_message('x')": "expected the socket that get_monitor_socket returned, not 'x'",
}


@pytest.mark.parametrize("call", ROWS)
def test_a_mistake(zmq, context, call):
    known = {"zmq": zmq, "context": context, "poller": zmq.Poller(), "math": math, "HUGE": HUGE}
    with context.socket(zmq.SUB) as socket:
        expected = (TypeError, ValueError, KeyError, zmq.ZMQError)
        with pytest.raises(expected) as caught:
            eval(call, known, {"socket": socket})
        error = caught.value
        assert (error.args[0] if isinstance(error, KeyError) else str(error)) == ROWS[call]


# Calls with `device` (a ThreadMonitoredQueue), `devices` and `zmq`.
DEVICES = {
    "devices.Device()": "in_type must be specified: a zmq.SocketType such as zmq.PULL",
    "devices.Device(zmq.QUEUE, 'PULL', 8)": "in_type takes a zmq.SocketType such as zmq.PULL,"
    " not 'PULL'",
    "devices.ThreadDevice(zmq.QUEUE, 7, 250)": "out_type takes a zmq.SocketType such as zmq.PULL,"
    " not 250",
    "devices.ThreadProxy(zmq.PULL, zmq.PUSH, None)": "mon_type takes a zmq.SocketType such as"
    " zmq.PULL, not None",
    "devices.ThreadProxySteerable(7, 8, 1, 'x')": "ctrl_type takes a zmq.SocketType such as"
    " zmq.PULL, not 'x'",
    "devices.ThreadMonitoredQueue(7, 8, 1, 'in')": "in_prefix takes bytes, not 'in'",
    "device.bind_in(5555)": "an endpoint is text such as 'tcp://127.0.0.1:5555', not 5555",
    "device.connect_mon('tcp:/a:1')": "'tcp:/a:1' is not an endpoint: expected scheme://address,"
    " as in tcp://127.0.0.1:5555",
    "device.setsockopt_in('linger', 1)": "an option is a number such as zmq.LINGER, not 'linger'",
    "device.setsockopt_out(zmq.LINGER, 'x')": "LINGER takes whole milliseconds, not 'x'",
    "device.setsockopt_out(zmq.SUBSCRIBE, b'')": "Invalid argument: SUBSCRIBE is an option of SUB"
    " and XPUB, not of PUSH",
    "device.bind_in_to_random_port('tcp://*:5')": "No such device: bind_to_random_port takes a tcp address without"
    " a port such as 'tcp://127.0.0.1', not 'tcp://*:5'",
    "device.join()": "this device was not started; call start() first",
    "device.join('x')": "timeout takes a number of seconds, or None, not 'x'",
    "device.join(math.nan)": "timeout takes a number of seconds, or None, not nan",
}


@pytest.mark.parametrize("call", DEVICES)
def test_a_mistake_with_a_device(zmq, call):
    devices = pytest.importorskip(f"{zmq.__name__}.devices")
    device = devices.ThreadMonitoredQueue(zmq.PULL, zmq.PUSH)
    with pytest.raises((TypeError, ValueError, RuntimeError, zmq.ZMQError)) as caught:
        eval(call, {"zmq": zmq, "devices": devices, "device": device, "math": math})
    assert str(caught.value) == DEVICES[call]


def test_a_device_that_is_started_twice(zmq, context):
    devices = pytest.importorskip(f"{zmq.__name__}.devices")
    device = devices.ThreadDevice(zmq.QUEUE, zmq.PULL, zmq.PUSH)
    device.context_factory = lambda: context
    device.start()
    with pytest.raises(RuntimeError, match="runs already"):
        device.start()
    context.term()
    device.join(50)
    assert device.done


# Calls with `authenticator`, its class `kind` and `context`.
AUTHENTICATORS = {
    "kind('x')": "context takes a zmq.Context, or None for Context.instance(), not 'x'",
    "kind(context, encoding=5)": "encoding takes the name of an encoding such as 'utf-8', not 5",
    "kind(context, encoding='utf-99')": "unknown encoding: utf-99",
    "kind(context, log='x')": "log takes a logger such as logging.getLogger('auth'), not 'x'",
    "authenticator.allow(['127.0.0.1'])": "allow takes addresses, each a str such as '127.0.0.1',"
    " not ['127.0.0.1']; unpack a list: allow(*addresses)",
    "authenticator.allow('localhost')": "allow takes numeric IP addresses such as '127.0.0.1', not"
    " 'localhost': no peer has such an address",
    "authenticator.deny('10.0.0.0/8')": "deny takes numeric IP addresses such as '127.0.0.1', not"
    " '10.0.0.0/8': no peer has such an address",
    "authenticator.configure_plain({'u': 'p'})": "domain takes the domain of sockets, which is a"
    " str, not a dict; passwords is the second argument",
    "authenticator.configure_plain('*', ['u'])": "passwords takes a dict {user: password}, not a"
    " list",
    "authenticator.configure_plain('*', {b'u': b'p'})": "passwords takes users as str, not b'u'",
    "authenticator.configure_plain('*', {'u': b'p'})": "passwords takes passwords as str, and that"
    " of 'u' is of type bytes",
    "authenticator.configure_curve(5, '.')": "domain takes the domain of sockets, which is a str,"
    " not 5",
    "authenticator.configure_curve('*', None)": "location takes a path, which is a str or a Path,"
    " not None",
    "authenticator.configure_curve_callback('*', len)": "credentials_provider takes an object with"
    " a method callback(domain, key), not <built-in function len>",
    "[authenticator.start(), kind(context).start()]": "Address already in use: this context has an"
    " authenticator already; stop that one first",
}
KINDS = {
    "thread": "ThreadAuthenticator",
    "asyncio": "AsyncioAuthenticator",
    "ioloop": "IOLoopAuthenticator",
}
every_authenticator = pytest.mark.parametrize("module", KINDS)


def authenticators(zmq, module):
    return getattr(pytest.importorskip(f"{zmq.__name__}.auth.{module}"), KINDS[module])


@every_authenticator
@pytest.mark.parametrize("call", AUTHENTICATORS)
@pytest.mark.filterwarnings("ignore:use zeroxide.auth.asyncio:DeprecationWarning")
def test_a_mistake_with_an_authenticator(zmq, context, module, call):
    kind = authenticators(zmq, module)

    async def main():
        authenticator = kind(context)
        known = {"kind": kind, "context": context, "authenticator": authenticator}
        try:
            with pytest.raises((TypeError, ValueError, LookupError, zmq.ZMQError)) as caught:
                eval(call, known)
        finally:
            authenticator.stop()
        assert str(caught.value) == AUTHENTICATORS[call]

    asyncio.run(main())


def test_an_authenticator_without_a_loop(zmq, context):
    authenticator = authenticators(zmq, "asyncio")(context)
    with pytest.raises(RuntimeError, match="start needs an event loop: call it in a coroutine"):
        Background(authenticator.start).result()
    loop = asyncio.new_event_loop()
    loop.close()
    asyncio.set_event_loop(loop)
    try:
        with pytest.raises(RuntimeError, match="start needs an event loop: call it in a coroutine"):
            authenticator.start()
    finally:
        asyncio.set_event_loop(None)


def test_addresses_are_compared_in_one_form(zmq, context):
    authenticator = authenticators(zmq, "thread")(context)
    authenticator.allow("2001:DB8:0::1", ":1000:1000:77")
    assert authenticator._allowed == {"2001:db8::1", ":1000:1000:77"}


def test_a_message_that_is_not_json(zmq, context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.bind("inproc://json")
        push.connect("inproc://json")
        push.send(b"{'a': 1}")
        with pytest.raises(json.JSONDecodeError) as caught:
            pull.recv_json()
        assert "zmq.PULL" in str(caught.value) and "inproc://json" in str(caught.value)
        assert "a message of 8 bytes that is not JSON, b\"{'a': 1}\"" in str(caught.value)
        assert (caught.value.pos, caught.value.doc, caught.value.lineno) == (1, "{'a': 1}", 1)
        push.send(b"\xff\xff")
        with pytest.raises(UnicodeDecodeError, match="that is not JSON"):
            pull.recv_json()


# ---- everything public ---------------------------------------------------------------

# Texts of the interpreter and of PyO3 about a value that cannot be converted.
RAW = re.compile(
    "cannot be interpreted|argument '|can't convert|cannot convert|' object is not|has no attribute"
    "|must be real number|too (large|big) to|out of range integral|not supported between"
    "|unhashable|unsupported operand|not iterable|PathLike object, not|not an instance of|no len"
)

# Valid values of arguments without a default.
GIVEN = {
    "addr": "inproc://a",
    "address": 1,
    "backend": None,
    "buffer": bytearray(9),
    "client_public_key": b"k" * 32,
    "ctx": None,
    "data": b"x",
    "deserialize": list,
    "encoding": "utf-8",
    "frontend": None,
    "fn": None,
    "key": "k",
    "kind": int,
    "messages": [b"x"],
    "msg": b"x",
    "msg_parts": [b"x"],
    "obj": 1,
    "on_recv": None,
    "opt": 17,
    "option": 17,
    "optval": 1,
    "password": "p",
    "secret_key": b"s" * 40,
    "serialize": lambda message: [message],
    "server_key": b"s" * 40,
    "socket": 0,
    "socket_type": 1,
    "topic": "t",
    "u": "text",
    "username": "u",
    "value": 1,
    # of the pipeline
    "attempt": 0,
    "batch": 0,
    "end": 1,
    "group": "g",
    "headers": False,
    "offset": 0,
    "part": 0,
    "partition": 0,
    "parts": [],
    "query": "q",
    "rows": [b"x"],
    "size": 1,
    "start": 0,
    "timestamp": 0,
    "values": [b"x"],
}


def methods(kind):
    for name, member in inspect.getmembers(kind, callable):
        if not name.startswith("_") and name not in ("close", "term", "destroy"):
            yield name, member


def wrong_calls(kind, wrong):
    """The names of methods, each with arguments of which one is wrong."""
    for name, member in methods(kind):
        try:
            parameters = list(inspect.signature(member).parameters.values())
        except ValueError:
            continue
        parameters = [one for one in parameters if one.name not in ("self", "args", "kwargs")]
        for chosen in parameters:
            given = {}
            for one in parameters:
                if one is chosen:
                    given[one.name] = wrong
                elif one.name in ("timeout", "timeout_s"):
                    given[one.name] = 0.01
                elif one.default is one.empty and one.kind not in (
                    one.VAR_POSITIONAL,
                    one.VAR_KEYWORD,
                ):
                    given[one.name] = GIVEN[one.name]
            positional = [
                given.pop(one.name)
                for one in parameters
                if one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL) and one.name in given
            ]
            yield name, positional, given


async def outcome(call):
    result = call()
    if hasattr(result, "__anext__"):
        result = result.__anext__()
    if inspect.isawaitable(result):
        await asyncio.wait_for(result, 0.05)


def check(make, wrong):
    """Calls every method of the object that `make` returns; prints the calls with an unhelpful error."""
    bad = []
    for name, positional, given in wrong_calls(type(make()), wrong):
        if wrong == HUGE and wrong in (given.get("timeout"), given.get("timeout_s")):
            continue  # The test would wait for it.
        target = make()
        try:
            asyncio.run(outcome(lambda: getattr(target, name)(*positional, **given)))  # noqa: B023
        except Exception as error:
            if RAW.search(str(error)) or isinstance(error, (AttributeError, OverflowError)):
                bad.append(f"{name}({given}): {error!r}")
    assert not bad, "\n".join(bad)


# Values that no argument takes.
WRONG = {"an object": object(), "a list": [1], "a huge number": HUGE}
wrong_values = pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)


@wrong_values
@pytest.mark.parametrize("kind", ["Socket", "Context", "Poller"])
@pytest.mark.parametrize("module", ["", ".asyncio", ".green"])
def test_no_conversion_error_of_the_interpreter_gets_through(zmq, module, kind, wrong):
    module = pytest.importorskip(f"{zmq.__name__}{module}")
    with module.Context() as context:
        context.linger, context.rcvtimeo, context.sndtimeo = 0, 1, 1

        def make():
            return context.socket(zmq.SUB) if kind == "Socket" else getattr(module, kind)()

        check(make, wrong)
        context.destroy()


@wrong_values
@pytest.mark.parametrize(
    "kind", ["Device", "ThreadDevice", "ThreadProxySteerable", "ProcessMonitoredQueue"]
)
def test_nor_through_devices(zmq, kind, wrong):
    devices = pytest.importorskip(f"{zmq.__name__}.devices")
    check(lambda: getattr(devices, kind)(in_type=zmq.PULL, out_type=zmq.PUSH), wrong)


@wrong_values
@every_authenticator
@pytest.mark.filterwarnings("ignore:use zeroxide.auth.asyncio:DeprecationWarning")
def test_nor_through_authenticators(zmq, context, module, wrong):
    kind = authenticators(zmq, module)
    check(lambda: kind(context), wrong)
    for name in ("context", "encoding", "log"):
        with pytest.raises((TypeError, LookupError)) as caught:
            kind(**{name: wrong})
        assert str(caught.value).startswith(f"{name} takes ")


@wrong_values
@pytest.mark.parametrize("kind", ["Client", "AsyncClient", "Producer", "Collector"])
def test_nor_through_the_pipeline(directory, kind, wrong):
    pipeline = pytest.importorskip("zeroxide.pipeline")
    with pipeline.Collector(directory / "log") as collector:
        collector.append([b"x"])
        if kind == "Collector":
            check(lambda: collector, wrong)
            return
        made = getattr(pipeline, kind)(collector.endpoint)
        check(lambda: made, wrong)
        if kind != "AsyncClient":
            made.close()
