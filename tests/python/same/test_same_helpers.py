"""Decorators, devices, monitors, logging, and the small modules."""

import json
import logging
import subprocess
import sys
import types

import pytest
from support import Background

# ---- decorators ---------------------------------------------------------------------


@pytest.fixture
def decorators(part):
    return part("decorators")


def test_context_decorator(zmq, decorators):
    @decorators.context()
    def work(context):
        assert isinstance(context, zmq.Context)
        assert not context.closed
        return context

    assert work().closed


def test_context_by_name(zmq, decorators):
    @decorators.context("ctx")
    def work(ctx):
        return ctx

    @decorators.context(name="ctx")
    def other(*, ctx):
        return ctx

    assert work().closed
    assert other().closed


def test_context_arguments(decorators):
    @decorators.context(io_threads=2)
    def work(context):
        return context.io_threads

    assert work() == 2


def test_socket_decorator(zmq, decorators, context):
    @decorators.socket(zmq.PUSH)
    def work(socket):
        assert socket.context is zmq.Context.instance()
        return socket

    socket = work()
    assert socket.closed
    assert socket.type == zmq.PUSH


def test_socket_of_a_context(zmq, decorators):
    @decorators.context("context")
    @decorators.socket("one", zmq.PUSH)
    @decorators.socket("other", zmq.PULL)
    def work(context, one, other):
        assert one.context is other.context is context
        return one.type, other.type

    assert work() == (zmq.PUSH, zmq.PULL)


def test_socket_of_another_context_by_name(zmq, decorators):
    @decorators.context("first")
    @decorators.context("second")
    @decorators.socket("sock", zmq.PUSH, context_name="second")
    def work(first, second, sock):
        return sock.context is second

    assert work()


def test_decorated_function_keeps_its_name(zmq, decorators):
    @decorators.socket(zmq.PUSH)
    def work(socket):
        """Does nothing."""

    assert (work.__name__, work.__doc__) == ("work", "Does nothing.")


def test_socket_decorator_requires_a_type(decorators):
    with pytest.raises(TypeError):

        @decorators.socket()
        def work(socket):
            pass

        work()


# ---- devices ------------------------------------------------------------------------


def test_proxy_device(zmq, part, context):
    devices = part("devices")
    device = devices.ThreadProxy(zmq.PULL, zmq.PUSH)
    device.daemon = True
    device.context_factory = lambda: context
    into = device.bind_in_to_random_port("tcp://127.0.0.1")
    out = device.bind_out_to_random_port("tcp://127.0.0.1")
    device.start()
    with context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        push.connect(f"tcp://127.0.0.1:{into}")
        pull.connect(f"tcp://127.0.0.1:{out}")
        push.send_multipart([b"a", b"b"])
        assert pull.recv_multipart() == [b"a", b"b"]
    context.term()
    device.join(10)


@pytest.mark.parametrize(
    "name",
    [
        *("Device", "ThreadDevice", "ProcessDevice", "Proxy", "ThreadProxy", "ProcessProxy"),
        *("MonitoredQueue", "ThreadMonitoredQueue", "ProcessMonitoredQueue"),
        *("ProxySteerable", "ThreadProxySteerable", "ProcessProxySteerable"),
    ],
)
def test_devices_are_made(zmq, part, name):
    kinds = (zmq.QUEUE, zmq.ROUTER, zmq.DEALER)
    if not name.endswith("Device"):
        kinds = kinds[1:]
    device = getattr(part("devices"), name)(*kinds)
    assert (device.in_type, device.out_type, device.daemon) == (zmq.ROUTER, zmq.DEALER, True)
    for method in ("bind_in", "connect_in", "setsockopt_in", "bind_out", "connect_out"):
        assert callable(getattr(device, method))


def test_monitored_queue(zmq, part, context, sockets):
    monitored_queue = part("devices").monitored_queue
    one, other = sockets.bound(zmq.DEALER, "inproc"), sockets.bound(zmq.DEALER, "inproc")
    watch = sockets.bound(zmq.PUB, "inproc")
    left, right = sockets.connected(zmq.DEALER, one), sockets.connected(zmq.DEALER, other)
    seen = sockets.connected(zmq.SUB, watch, subscribe=b"")
    queue = Background(monitored_queue, one, other, watch, b"there", b"back")
    left.send(b"ask")
    assert right.recv() == b"ask"
    right.send(b"answer")
    assert left.recv() == b"answer"
    assert seen.recv_multipart() == [b"there", b"ask"]
    assert seen.recv_multipart() == [b"back", b"answer"]
    for socket in (left, right, seen):
        socket.close()
    end = Background(context.term)
    with pytest.raises(zmq.ContextTerminated):
        queue.result()
    for socket in (one, other, watch):
        socket.close()
    end.result()  # pyzmq does not support two threads in term()


def test_proxy_ends_with_its_context(zmq):
    context = zmq.Context()
    one, other = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    proxy = Background(zmq.proxy, one, other)
    end = Background(context.term)
    with pytest.raises(zmq.ContextTerminated):
        proxy.result()
    one.close()
    other.close()
    end.result()


@pytest.mark.parametrize("things", [(None, None), ("a", "b")])
def test_proxy_of_nothing(zmq, things):
    with pytest.raises(TypeError):
        zmq.proxy(*things)


# ---- monitors -----------------------------------------------------------------------


def test_life_of_a_connection(zmq, part, context):
    receive = part("utils.monitor").recv_monitor_message
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.linger = push.linger = 0
        monitor = pull.get_monitor_socket()
        pull.bind("tcp://127.0.0.1:*")
        endpoint = pull.last_endpoint
        push.connect(endpoint)
        events = [receive(monitor) for _ in range(3)]
        assert [event["event"] for event in events] == [
            zmq.EVENT_LISTENING,
            zmq.EVENT_ACCEPTED,
            zmq.EVENT_HANDSHAKE_SUCCEEDED,
        ]
        assert events[0]["endpoint"] == endpoint
        assert all(isinstance(event["value"], int) for event in events)
        push.close()
        assert receive(monitor)["event"] == zmq.EVENT_DISCONNECTED
        pull.disable_monitor()
        assert receive(monitor)["event"] == zmq.EVENT_MONITOR_STOPPED
        monitor.close()


def test_chosen_events(zmq, part, context):
    receive = part("utils.monitor").recv_monitor_message
    with context.socket(zmq.PULL) as pull:
        monitor = pull.get_monitor_socket(events=zmq.EVENT_CLOSED)
        pull.bind("tcp://127.0.0.1:*")
        pull.unbind(pull.last_endpoint)
        assert receive(monitor)["event"] == zmq.EVENT_CLOSED
        pull.disable_monitor()
        monitor.close()


def test_same_monitor_again(zmq, context):
    with context.socket(zmq.PULL) as pull:
        monitor = pull.get_monitor_socket()
        assert monitor.type == zmq.PAIR
        assert pull.get_monitor_socket() is monitor
        pull.disable_monitor()
        monitor.close()


def test_monitor_at_an_address(zmq, part, context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PAIR) as watch:
        pull.monitor("inproc://watch", zmq.EVENT_ALL)
        watch.connect("inproc://watch")
        pull.bind("tcp://127.0.0.1:*")
        head, endpoint = watch.recv_multipart()
        assert len(head) == 6
        assert endpoint == pull.last_endpoint
        parsed = part("utils.monitor").parse_monitor_message([head, endpoint])
        assert parsed == {
            "event": zmq.EVENT_LISTENING,
            "value": parsed["value"],
            "endpoint": endpoint,
        }
        pull.disable_monitor()


@pytest.mark.parametrize("parts", [[b"short", b"x"], [b"123456"], [b"123456", b"x", b"y"], []])
def test_not_a_monitor_message(part, parts):
    with pytest.raises(RuntimeError):
        part("utils.monitor").parse_monitor_message(parts)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:*", "nonsense"])
def test_monitors_are_inproc(zmq, context, address):
    with context.socket(zmq.PULL) as pull, pytest.raises(zmq.ZMQError):
        pull.monitor(address, zmq.EVENT_ALL)


# ---- logging ------------------------------------------------------------------------


@pytest.fixture
def logged(zmq, part, sockets):
    """A logger, its handler, and a subscriber to it."""
    handlers = part("log.handlers")
    publisher = sockets.bound(zmq.PUB, "inproc")
    subscriber = sockets.connected(zmq.SUB, publisher, subscribe=b"")
    handler = handlers.PUBHandler(publisher)
    logger = logging.Logger("same", logging.DEBUG)
    logger.addHandler(handler)
    return logger, handler, subscriber


def test_log(logged):
    logger, handler, subscriber = logged
    logger.info("what happened")
    assert subscriber.recv_multipart() == [b"INFO", b"what happened\n"]
    handler.root_topic = "root"
    logger.warning("more %d", 5)
    topic, text = subscriber.recv_multipart()
    assert (topic, text[-9:]) == (b"root.WARNING", b"- more 5\n")


def test_log_details(logged):
    logger, _handler, subscriber = logged
    logger.debug("details")
    topic, text = subscriber.recv_multipart()
    assert topic == b"DEBUG"
    assert text.startswith(b"DEBUG test_same_helpers.py:")
    assert text.endswith(b"- details\n")


def test_log_subtopics(logged, part):
    logger, handler, subscriber = logged
    handler.setRootTopic("root")
    logger.info("sub" + part("log.handlers").TOPIC_DELIM + "text")
    assert subscriber.recv_multipart() == [b"root.INFO.sub", b"text\n"]


def test_log_formatters(logged):
    logger, handler, subscriber = logged
    handler.setFormatter(logging.Formatter("<%(message)s>"), logging.INFO)
    logger.info("one")
    assert subscriber.recv_multipart()[1] == b"<one>"
    handler.setFormatter(logging.Formatter("[%(message)s]"))
    logger.info("all")
    logger.error("levels")
    assert subscriber.recv_multipart()[1] == b"[all]"
    assert subscriber.recv_multipart()[1] == b"[levels]"
    assert set(handler.formatters) >= {logging.DEBUG, logging.INFO, logging.ERROR}


def test_topic_logger(zmq, part, logged):
    _logger, handler, subscriber = logged
    logger = part("log.handlers").TopicLogger("topical", logging.DEBUG)
    logger.addHandler(handler)
    logger.log(logging.INFO, "topic", "text")
    assert subscriber.recv_multipart() == [b"INFO.topic", b"text\n"]


def test_handler_of_an_address(zmq, part, context):
    handler = part("log.handlers").PUBHandler("inproc://log", context)
    assert handler.socket.type == zmq.PUB
    assert handler.ctx is context
    handler.socket.close()


# ---- small modules ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"", b""), (b"\x86\x4f\xd2\x6f\xb5\x59\xf7\x5b", b"HelloWorld"), (b"\0\0\0\0", b"00000")],
)
def test_z85(part, data, text):
    z85 = part("utils.z85")
    assert z85.encode(data) == text
    assert z85.decode(text) == data
    assert z85.decode(text.decode()) == data


@pytest.mark.parametrize("data", [b"123", b"12345"])
def test_z85_of_odd_sizes(part, data):
    with pytest.raises(ValueError):
        part("utils.z85").encode(data)


@pytest.mark.parametrize("text", [b"1234", b"123456"])
def test_z85_of_broken_text(part, text):
    with pytest.raises(ValueError):
        part("utils.z85").decode(text)


def test_json(part):
    jsonapi = part("utils.jsonapi")
    assert json.loads(jsonapi.dumps({"ü": [1]})) == {"ü": [1]}
    assert type(jsonapi.dumps(1)) is bytes
    assert jsonapi.loads(b'{"a": 1}') == jsonapi.loads('{"a": 1}') == {"a": 1}
    assert jsonapi.dumps({"b": 1, "a": 2}, sort_keys=True).find(b"a") < 4


def test_json_while_another_thread_imports_its_functions(zmq, sockets, part, monkeypatch):
    """The module is there before its functions are."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    name = part("utils.jsonapi").__name__
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    push.send_json([1])
    assert pull.recv_json() == [1]


def test_json_by_functions_of_the_program(zmq, sockets, part, monkeypatch):
    """Programs replace them with those of faster libraries."""
    jsonapi = part("utils.jsonapi")
    monkeypatch.setattr(jsonapi, "dumps", lambda o, **kwargs: f"mine {o} {kwargs}".encode())
    monkeypatch.setattr(jsonapi, "loads", lambda s, **kwargs: (bytes(s), kwargs))
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_json(1, indent=2)
    assert pull.recv_json(parse_int=int) == (b"mine 1 {'indent': 2}", {"parse_int": int})


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        ("cast_bytes", "ü", "ü".encode()),
        ("cast_bytes", b"x", b"x"),
        ("cast_unicode", "ü".encode(), "ü"),
        ("cast_unicode", "x", "x"),
        ("b", "x", b"x"),
        ("u", b"x", "x"),
        ("asbytes", "x", b"x"),
    ],
)
def test_strings(part, function, given, expected):
    assert getattr(part("utils.strtypes"), function)(given) == expected


@pytest.mark.parametrize("function", ["cast_bytes", "cast_unicode"])
def test_no_strings(part, function):
    with pytest.raises(TypeError):
        getattr(part("utils.strtypes"), function)(5)


def test_addresses(part):
    cast = part("utils.interop").cast_int_addr
    assert cast(5) == 5
    with pytest.raises(ValueError):
        cast("nonsense")


def test_interrupt_block(part):
    with part("utils.win32").allow_interrupt(lambda: None):
        pass


def test_stopwatch(part):
    watch = part("sugar.stopwatch").Stopwatch()
    watch.start()
    assert watch.stop() >= 0


def test_garbage(part):
    gc = part("utils.garbage").gc
    assert len(gc.refs) >= 0
    gc.stop()


@pytest.mark.parametrize("count", [1, 3])
def test_random_ports(part, count):
    ports = part("ssh.tunnel").select_random_ports(count)
    assert len(set(ports)) == count
    assert all(isinstance(port, int) for port in ports)


@pytest.mark.parametrize("arguments", [["-h"], [], ["--json"]])
def test_key_generator(zmq, arguments):
    command = [sys.executable, "-m", f"{zmq.__name__}.curve_keygen", *arguments]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if arguments == ["-h"]:
        assert f"python3 -m {zmq.__name__}.curve_keygen" in output
    elif arguments:
        keys = json.loads(output)
        assert zmq.curve_public(keys["secret"].encode()).decode() == keys["public"]
    else:
        assert "public" in output.lower()


@pytest.mark.parametrize("helper", ["utils.monitor", "auth.thread"])
def test_helpers_that_load_asyncio(zmq, helper):
    """Programs that import one of these use ``zmq.asyncio`` without importing it."""
    name = zmq.__name__
    program = f"import {name} as zmq, {name}.{helper}; print(zmq.asyncio.Context.__module__)"
    said = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert said.strip() == f"{name}.asyncio"
