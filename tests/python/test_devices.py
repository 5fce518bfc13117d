"""Devices: proxies in their own threads and processes."""

import importlib
import multiprocessing
import struct
from threading import Thread

import pytest


@pytest.fixture(autouse=True)
def devices(zmq):
    return importlib.import_module(f"{zmq.__name__}.devices")


@pytest.fixture
def shared(zmq, monkeypatch):
    """The context that thread devices share, without sockets of earlier tests."""
    monkeypatch.setattr(zmq.Context, "_instance", None)
    context = zmq.Context.instance()
    context.linger = 0
    context.rcvtimeo = context.sndtimeo = 20_000
    yield context
    context.destroy(linger=0)


def test_one_socket(zmq, devices, shared):
    device = devices.ThreadDevice(zmq.QUEUE, zmq.REP, -1)
    device.bind_in("inproc://echo")
    device.start()
    req = shared.socket(zmq.REQ)
    req.connect("inproc://echo")
    for part in (b"one", b"two"):
        req.send(part)
        assert req.recv() == part
    assert device.daemon
    req.close()
    shared.term()
    device.join(20)
    assert device.done


def test_two_sockets_at_random_ports(zmq, devices, shared):
    device = devices.ThreadDevice(zmq.QUEUE, zmq.PULL, zmq.PUSH)
    first = device.bind_in_to_random_port("tcp://127.0.0.1")
    second = device.bind_out_to_random_port("tcp://127.0.0.1", min_port=20000, max_port=60000)
    assert first != second and 20000 <= second < 60000
    device.setsockopt_in(zmq.RCVHWM, 3)
    device.setsockopt_out(zmq.LINGER, 0)
    device.start()
    push, pull = shared.socket(zmq.PUSH), shared.socket(zmq.PULL)
    push.connect(f"tcp://127.0.0.1:{first}")
    pull.connect(f"tcp://127.0.0.1:{second}")
    push.send_multipart([b"a", b"b"])
    assert pull.recv_multipart() == [b"a", b"b"]


def test_connecting_sides(zmq, devices, shared):
    push, pull = shared.socket(zmq.PUSH), shared.socket(zmq.PULL)
    push.bind("inproc://source")
    pull.bind("inproc://sink")
    device = devices.ThreadDevice(zmq.STREAMER, zmq.PULL, zmq.PUSH)
    device.connect_in("inproc://source")
    device.connect_out("inproc://sink")
    device.start()
    push.send(b"through")
    assert pull.recv() == b"through"


def test_types_are_required(zmq, devices):
    with pytest.raises(TypeError):
        devices.Device(zmq.QUEUE, out_type=zmq.PUSH)
    with pytest.raises(TypeError):
        devices.Device(zmq.QUEUE, zmq.PULL)


def test_a_context_of_its_own(zmq, devices, context):
    class Own(devices.ThreadDevice):
        context_factory = zmq.Context

    device = Own(zmq.QUEUE, zmq.PULL, zmq.PUSH)
    port = device.bind_in_to_random_port("tcp://127.0.0.1")
    out = device.bind_out_to_random_port("tcp://127.0.0.1")
    device.start()
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.connect(f"tcp://127.0.0.1:{port}")
    pull.connect(f"tcp://127.0.0.1:{out}")
    push.send(b"x")
    assert pull.recv() == b"x"
    device._context.term()
    device.join(20)
    assert device.done


def test_in_the_foreground(zmq, devices, shared):
    device = devices.Device(zmq.QUEUE, zmq.PULL, zmq.PUSH)
    device.bind_in("inproc://a")
    device.bind_out("inproc://b")
    thread = Thread(target=device.start, daemon=True)
    thread.start()
    device.join(0.01)
    assert not device.done
    shared.term()
    device.join(20)
    assert device.done
    thread.join(20)


def proxy_of(zmq, device, shared):
    """Starts a device and returns sockets on its three sides."""
    device.bind_in("inproc://in")
    device.bind_out("inproc://out")
    device.bind_mon("inproc://mon")
    monitor = shared.socket(zmq.PULL)
    device.start()
    push, pull = shared.socket(zmq.PUSH), shared.socket(zmq.PULL)
    for socket, endpoint in ((push, "in"), (pull, "out"), (monitor, "mon")):
        socket.connect(f"inproc://{endpoint}")
    return push, pull, monitor


def test_proxy(zmq, devices, shared):
    device = devices.ThreadProxy(zmq.PULL, zmq.PUSH, zmq.PUSH)
    device.setsockopt_mon(zmq.LINGER, 0)
    push, pull, monitor = proxy_of(zmq, device, shared)
    push.send_multipart([b"a", b"b"])
    assert pull.recv_multipart() == [b"a", b"b"]
    assert monitor.recv_multipart() == [b"a", b"b"]


def test_proxy_at_random_ports(zmq, devices, shared):
    device = devices.ThreadProxy(zmq.PULL, zmq.PUSH, zmq.PUSH)
    ports = [
        bind("tcp://127.0.0.1")
        for bind in (
            device.bind_in_to_random_port,
            device.bind_out_to_random_port,
            device.bind_mon_to_random_port,
        )
    ]
    assert len(set(ports)) == 3
    device.start()
    push, pull, monitor = (shared.socket(kind) for kind in (zmq.PUSH, zmq.PULL, zmq.PULL))
    for socket, port in zip((push, pull, monitor), ports, strict=True):
        socket.connect(f"tcp://127.0.0.1:{port}")
    push.send(b"seen")
    assert pull.recv() == b"seen"
    assert monitor.recv() == b"seen"


def test_monitored_queue(zmq, devices, shared):
    device = devices.ThreadMonitoredQueue(
        zmq.PAIR, zmq.PAIR, zmq.PUSH, in_prefix=b"there", out_prefix=b"back"
    )
    device.bind_in("inproc://in")
    device.bind_out("inproc://out")
    seen = shared.socket(zmq.PULL)
    seen.bind("inproc://mon")
    device.connect_mon("inproc://mon")
    device.start()
    one, two = shared.socket(zmq.PAIR), shared.socket(zmq.PAIR)
    one.connect("inproc://in")
    two.connect("inproc://out")
    one.send_multipart([b"question", b"1"])
    assert two.recv_multipart() == [b"question", b"1"]
    assert seen.recv_multipart() == [b"there", b"question", b"1"]
    two.send(b"answer")
    assert one.recv() == b"answer"
    assert seen.recv_multipart() == [b"back", b"answer"]


def test_monitored_queue_default_prefixes_and_pub(zmq, devices, shared):
    device = devices.ThreadMonitoredQueue(zmq.PULL, zmq.PUSH)
    push, pull, sub = (shared.socket(kind) for kind in (zmq.PUSH, zmq.PULL, zmq.SUB))
    device.bind_in("inproc://in")
    device.bind_out("inproc://out")
    device.bind_mon("inproc://mon")
    device.start()
    push.connect("inproc://in")
    pull.connect("inproc://out")
    sub.connect("inproc://mon")
    sub.subscribe(b"in")
    while not sub.poll(20):
        push.send(b"x")
        assert pull.recv() == b"x"
    assert sub.recv_multipart() == [b"in", b"x"]


def test_monitored_queue_between_routers(zmq, devices, shared):
    device = devices.ThreadMonitoredQueue(zmq.ROUTER, zmq.ROUTER, zmq.PUSH)
    device.bind_in("inproc://in")
    device.bind_out("inproc://out")
    seen = shared.socket(zmq.PULL)
    seen.bind("inproc://mon")
    device.connect_mon("inproc://mon")
    alice, bob = shared.socket(zmq.DEALER), shared.socket(zmq.DEALER)
    alice.routing_id = b"alice"
    bob.routing_id = b"bob"
    device.start()
    alice.connect("inproc://in")
    bob.connect("inproc://out")
    # A peer must be known before the other can write to it; earlier messages are refused.
    while not bob.poll(20):
        alice.send_multipart([b"bob", b"early"])
    while bob.recv_multipart() and bob.poll(50):
        pass
    while seen.poll(50):
        seen.recv_multipart()
    alice.send_multipart([b"bob", b"question"])
    assert bob.recv_multipart() == [b"alice", b"question"]
    assert seen.recv_multipart() == [b"in", b"bob", b"alice", b"question"]
    bob.send_multipart([b"alice", b"answer"])
    assert alice.recv_multipart() == [b"bob", b"answer"]
    assert seen.recv_multipart() == [b"out", b"alice", b"bob", b"answer"]


def test_steered_proxy(zmq, devices, shared):
    device = devices.ThreadProxySteerable(zmq.PULL, zmq.PUSH, zmq.PUSH, zmq.PAIR)
    device.bind_ctrl("inproc://ctrl")
    device.setsockopt_ctrl(zmq.LINGER, 0)
    push, pull, monitor = proxy_of(zmq, device, shared)
    control = shared.socket(zmq.PAIR)
    control.connect("inproc://ctrl")
    push.send(b"four")
    assert pull.recv() == b"four"
    assert monitor.recv() == b"four"
    control.send(b"STATISTICS")
    numbers = [struct.unpack("=Q", part)[0] for part in control.recv_multipart()]
    assert numbers == [1, 4, 0, 0, 0, 0, 1, 4]
    control.send(b"TERMINATE")
    device.join(20)
    assert device.done


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_in_a_process(zmq, devices, context, start, monkeypatch):
    monkeypatch.setattr(
        devices.ProcessProxy,
        "_launch_class",
        staticmethod(multiprocessing.get_context(start).Process),
    )
    device = devices.ProcessProxy(zmq.PULL, zmq.PUSH, zmq.PUSH)
    ports = [
        device.bind_in_to_random_port("tcp://127.0.0.1"),
        device.bind_out_to_random_port("tcp://127.0.0.1"),
        device.bind_mon_to_random_port("tcp://127.0.0.1"),
    ]
    push, pull, monitor = (context.socket(kind) for kind in (zmq.PUSH, zmq.PULL, zmq.PULL))
    for socket, port in zip((push, pull, monitor), ports, strict=True):
        socket.connect(f"tcp://127.0.0.1:{port}")
    if start == "fork":
        monkeypatch.undo()
    device.start()
    try:
        push.send(b"far")
        assert pull.recv() == b"far"
        assert monitor.recv() == b"far"
    finally:
        device.launcher.terminate()
        device.join(20)
