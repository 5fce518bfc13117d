"""Objects in a debugger show their endpoints, peers and state, without a wait and without an
error."""

import inspect
import threading

import pytest
from support import PATIENCE

pytestmark = pytest.mark.zeroxide_only


def test_a_socket_names_its_endpoints_and_peers(zmq, context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        assert repr(pull) == f"<zmq.Socket(zmq.PULL) at {id(pull):#x}>"
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        assert repr(pull).endswith(f": tcp://127.0.0.1:{port} (0 peers connected)>")
        push.connect(f"tcp://127.0.0.1:{port}")
        pull.wait_connected(timeout=PATIENCE * 1000)
        assert repr(pull).endswith(f": tcp://127.0.0.1:{port} (1 peer connected)>")
        push.wait_connected(timeout=PATIENCE * 1000)
        assert repr(push).endswith(f": tcp://127.0.0.1:{port} (connected)>")
    assert repr(push) == f"<zmq.Socket(zmq.PUSH) at {id(push):#x} closed>"


def test_a_socket_without_its_initialisation_has_a_representation(zmq):
    assert "UNKNOWN" in repr(zmq.Socket.__new__(zmq.Socket))
    assert "zmq.Context(" in repr(zmq.Context.__new__(zmq.Context))


def test_the_representation_does_not_wait_for_a_call_of_another_thread(zmq, context):
    with context.socket(zmq.PULL) as pull:
        pull.bind("inproc://busy")
        receiver = threading.Thread(target=pull.recv)
        receiver.start()
        for _ in range(100):
            assert repr(pull).startswith("<zmq.Socket(zmq.PULL)")
        with context.socket(zmq.PUSH) as push:
            push.connect("inproc://busy")
            push.send(b"x")
            receiver.join(PATIENCE)
    assert not receiver.is_alive()


def test_a_poller_names_what_it_waits_for(zmq, context):
    poller = zmq.Poller()
    assert repr(poller) == "<zmq.Poller()>"
    sockets = [context.socket(zmq.PULL) for _ in range(5)]
    poller.register(sockets[0], zmq.POLLIN)
    poller.register(0)
    assert repr(poller) == f"<zmq.Poller({sockets[0]!r} for POLLIN, 0 for POLLIN|POLLOUT)>"
    for socket in sockets:
        poller.register(socket, zmq.POLLIN)
    assert repr(poller).endswith(", 3 more)>")
    for socket in sockets:
        socket.close()
    assert "closed> for POLLIN" in repr(poller)


def test_a_tracker_says_whether_it_is_done(zmq, context):
    with context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        push.bind("inproc://tracked")
        pull.connect("inproc://tracked")
        tracker = push.send(bytes(100_000), copy=False, track=True)
        assert repr(tracker) == f"<zmq.MessageTracker at {id(tracker):#x} pending>"
        pull.recv()
        tracker.wait(PATIENCE)
        assert repr(tracker) == f"<zmq.MessageTracker at {id(tracker):#x} done>"


def test_socket_events_say_whether_they_are_closed(zmq, context):
    with context.socket(zmq.PUSH) as push:
        events = push.monitor_events(timeout=5)
        assert repr(events) == f"<zmq.SocketEvents(timeout=5) at {id(events):#x}>"
        events.close()
        assert repr(events) == f"<zmq.SocketEvents(timeout=5) at {id(events):#x} closed>"


@pytest.mark.parametrize("of", ["zeroxide", "zeroxide.asyncio"])
@pytest.mark.parametrize("method", ["send", "recv", "send_multipart", "recv_multipart"])
def test_signatures_at_run_time_have_the_defaults_of_the_stub(zmq, of, method):
    import importlib

    parameters = inspect.signature(getattr(importlib.import_module(of).Socket, method)).parameters
    assert parameters["copy"].default is True
    assert parameters["track"].default is False
    assert inspect.signature(zmq.zmq_poll).parameters["timeout"].default == -1
