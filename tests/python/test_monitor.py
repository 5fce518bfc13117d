"""Monitor events."""

import socket as tcp

import pytest
from support import lasting_endpoint


def events_until(zmq, monitor, last):
    """The events up to and including `last`."""
    seen = []
    while not seen or seen[-1]["event"] != last:
        assert monitor.poll(20_000), f"{last!r} does not come after {seen}"
        seen.append(zmq.utils.monitor.recv_monitor_message(monitor))
    return seen


@pytest.fixture(autouse=True)
def utilities(zmq):
    __import__(f"{zmq.__name__}.utils.monitor")


def test_life_of_a_connection(zmq, context, sockets):
    pull = context.socket(zmq.PULL)
    server = pull.get_monitor_socket()
    pull.bind("tcp://127.0.0.1:*")
    endpoint = pull.last_endpoint
    push = context.socket(zmq.PUSH)
    client = push.get_monitor_socket()
    push.connect(endpoint.decode())

    [listening, accepted, *rest] = events_until(zmq, server, zmq.EVENT_HANDSHAKE_SUCCEEDED)
    assert listening["event"] == zmq.EVENT_LISTENING
    assert listening["endpoint"] == endpoint
    assert listening["value"] >= 0
    assert accepted["event"] == zmq.EVENT_ACCEPTED
    assert len(rest) == 1

    names = [event["event"] for event in events_until(zmq, client, zmq.EVENT_HANDSHAKE_SUCCEEDED)]
    assert names[-2:] == [zmq.EVENT_CONNECTED, zmq.EVENT_HANDSHAKE_SUCCEEDED]
    assert set(names[:-2]) <= {zmq.EVENT_CONNECT_DELAYED}

    push.close()
    [disconnected] = events_until(zmq, server, zmq.EVENT_DISCONNECTED)
    assert disconnected["value"] >= 0
    pull.close()
    ended = [event["event"] for event in events_until(zmq, server, zmq.EVENT_MONITOR_STOPPED)]
    assert zmq.EVENT_CLOSED in ended


def test_the_same_socket_each_time(zmq, context):
    with context.socket(zmq.PUSH) as push:
        monitor = push.get_monitor_socket()
        assert push.get_monitor_socket() is monitor
        assert monitor.type == zmq.PAIR


@pytest.mark.zeroxide_only
def test_a_closed_monitor_is_replaced(zmq, context):
    with context.socket(zmq.PULL) as pull:
        monitor = pull.get_monitor_socket()
        monitor.close()
        other = pull.get_monitor_socket()
        assert other is not monitor
        pull.bind("tcp://127.0.0.1:*")
        assert events_until(zmq, other, zmq.EVENT_LISTENING)


def test_selected_events(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    monitor = pull.get_monitor_socket(zmq.EVENT_DISCONNECTED, "inproc://selected")
    push.send(b"")
    pull.recv()
    push.close()
    assert len(events_until(zmq, monitor, zmq.EVENT_DISCONNECTED)) == 1


def test_stop(zmq, context):
    with context.socket(zmq.PUSH) as push:
        monitor = push.get_monitor_socket()
        push.disable_monitor()
        assert events_until(zmq, monitor, zmq.EVENT_MONITOR_STOPPED)
        if zmq.__name__ != "zmq":  # the endpoint becomes free a moment later
            assert push.get_monitor_socket() is not monitor


def test_by_hand(zmq, context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PAIR) as pair:
        pull.monitor("inproc://by-hand", zmq.EVENT_ALL)
        pair.connect("inproc://by-hand")
        pull.bind("tcp://127.0.0.1:*")
        parts = pair.recv_multipart()
        assert len(parts) == 2 and len(parts[0]) == 6
        event = zmq.utils.monitor.parse_monitor_message(parts)
        assert event["event"] is zmq.Event.LISTENING
        pull.monitor(None, 0)


def test_only_within_the_process(zmq, context):
    with context.socket(zmq.PULL) as pull:
        with pytest.raises(zmq.ZMQError) as caught:
            pull.monitor("tcp://127.0.0.1:5555", zmq.EVENT_ALL)
        assert caught.value.errno == zmq.EPROTONOSUPPORT


def test_refused_connections_are_retried(zmq, context):
    endpoint = lasting_endpoint()
    with context.socket(zmq.PUSH) as push:
        push.reconnect_ivl = 1
        monitor = push.get_monitor_socket()
        push.connect(endpoint)
        for _ in range(3):
            retried = events_until(zmq, monitor, zmq.EVENT_CONNECT_RETRIED)[-1]
            assert retried["value"] >= 0
            assert retried["endpoint"].decode() == endpoint


def test_failed_bind(zmq, sockets, context):
    owner = sockets.bound(zmq.PULL)
    with context.socket(zmq.PULL) as pull:
        monitor = pull.get_monitor_socket()
        with pytest.raises(zmq.ZMQError):
            pull.bind(owner.last_endpoint.decode())
        failed = events_until(zmq, monitor, zmq.EVENT_BIND_FAILED)[-1]
        assert failed["value"] == zmq.EADDRINUSE


def raw_peer(socket):
    """A TCP connection to a bound socket, to speak ZMTP by hand."""
    return tcp.create_connection(("127.0.0.1", int(socket.last_endpoint.rpartition(b":")[2])))


@pytest.mark.zeroxide_only
def test_wrong_peer(zmq, sockets):
    pull = sockets.bound(zmq.PULL)
    monitor = pull.get_monitor_socket()
    with raw_peer(pull) as peer:
        peer.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48))
        peer.sendall(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB")
        seen = events_until(zmq, monitor, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
        assert seen[-1]["value"] == zmq.PROTOCOL_ERROR_ZMTP_INVALID_METADATA


def test_garbage(zmq, sockets):
    pull = sockets.bound(zmq.PULL)
    monitor = pull.get_monitor_socket()
    with raw_peer(pull) as peer:
        peer.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00GARBAGE" + bytes(45))
        seen = events_until(zmq, monitor, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
        assert seen[-1]["value"] == zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH


def test_malformed_messages(zmq):
    for parts in ([b""], [b"12345", b""], [b"123456"]):
        with pytest.raises(RuntimeError):
            zmq.utils.monitor.parse_monitor_message(parts)


@pytest.mark.zeroxide_only
def test_short_names(zmq):
    assert zmq.recv_monitor_message is zmq.utils.monitor.recv_monitor_message
