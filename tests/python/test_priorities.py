"""Priorities of endpoints: which peers go first."""

import pytest
from support import eventually

pytestmark = pytest.mark.zeroxide_only


def test_options(zmq, context):
    with context.socket(zmq.PUSH) as socket:
        assert (socket.sndprio, socket.rcvprio) == (8, 8)
        socket.sndprio, socket.rcvprio = 1, 16
        assert (socket.get(zmq.SNDPRIO), socket.get(zmq.RCVPRIO)) == (1, 16)
        for wrong in (0, 17):
            with pytest.raises(zmq.ZMQError, match=f"SNDPRIO takes 1 to 16, not {wrong}"):
                socket.sndprio = wrong


def test_the_best_peer_goes_first(zmq, context, sockets):
    main, spare = sockets.bound(zmq.PULL), sockets.bound(zmq.PULL)
    push = context.socket(zmq.PUSH)
    push.sndprio = 9
    push.connect(spare.last_endpoint)
    push.sndprio = 8
    push.connect(main.last_endpoint)
    push.wait_connected(count=2)
    assert push.send_batch([b"1", b"2"]) == 2
    assert [main.recv(), main.recv()] == [b"1", b"2"]
    push.set_priority(main.last_endpoint, send=10)
    push.send(b"3")
    assert spare.recv() == b"3"
    main.close()
    spare.close()
    push.close(linger=0)


def test_the_best_message_is_received_first(zmq, context, sockets):
    slow, quick = sockets.bound(zmq.PUSH, "inproc"), sockets.bound(zmq.PUSH, "inproc")
    with context.socket(zmq.PULL) as pull:
        pull.connect(slow.last_endpoint)
        pull.connect(quick.last_endpoint)
        slow.send(b"slow")
        quick.send(b"quick")
        pull.set_priority(quick.last_endpoint.decode(), recv=1)
        assert [pull.recv(), pull.recv()] == [b"quick", b"slow"]


SP = {"SURVEYOR": "RESPONDENT", "RESPONDENT": "SURVEYOR", "BUS": "BUS"}


@pytest.mark.parametrize("kind", SP)
def test_types_of_the_scalability_protocols(zmq, context, sockets, transport, kind):
    last, best, middle = (sockets.bound(getattr(zmq, SP[kind]), transport) for _ in range(3))
    socket = context.socket(getattr(zmq, kind))
    for priority, peer in ((16, last), (1, best)):
        socket.rcvprio = priority
        socket.connect(peer.last_endpoint)
    socket.connect(middle.last_endpoint)
    socket.set_priority(middle.last_endpoint.decode(), recv=2)
    for end, count in ((socket, 3), (last, 1), (best, 1), (middle, 1)):
        end.wait_connected(count=count)
    if kind == "SURVEYOR":
        socket.send(b"?")
        assert [peer.recv() for peer in (last, best, middle)] == [b"?"] * 3
    for name, peer in ((b"last", last), (b"middle", middle), (b"best", best)):
        peer.send(name)
    eventually(lambda: socket.stats()["queued_in"] == 3)
    assert [socket.recv() for _ in range(3)] == [b"best", b"middle", b"last"]


def test_mistakes(zmq, context):
    with context.socket(zmq.PUSH) as socket:
        socket.bind("inproc://priorities")
        for wrong in ({"send": 0}, {"recv": 17}, {"send": 1000}, {"recv": -1}):
            with pytest.raises(zmq.ZMQError, match="a priority is 1 to 16"):
                socket.set_priority("inproc://priorities", **wrong)
        with pytest.raises(TypeError, match="send takes a priority of 1 to 16, or None, not '1'"):
            socket.set_priority("inproc://priorities", send="1")
        with pytest.raises(zmq.ZMQError, match="neither bound nor connected to inproc://other"):
            socket.set_priority("inproc://other", send=1)
