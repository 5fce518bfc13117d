"""REQ and REP: the alternation of requests and replies."""

import pytest


def raises_state(zmq, call, *arguments):
    with pytest.raises(zmq.ZMQError) as caught:
        call(*arguments)
    assert caught.value.errno == zmq.EFSM


def test_turns(zmq, sockets, transport):
    rep, req = sockets.pair(zmq.REP, zmq.REQ, transport)
    raises_state(zmq, req.recv)
    raises_state(zmq, rep.send, b"")
    req.send(b"question")
    raises_state(zmq, req.send, b"again")
    assert rep.recv() == b"question"
    raises_state(zmq, rep.recv)
    rep.send(b"answer")
    raises_state(zmq, rep.send, b"again")
    assert req.recv() == b"answer"
    req.send(b"next")
    assert rep.recv() == b"next"


def test_parts_of_a_turn(zmq, sockets):
    rep, req = sockets.pair(zmq.REP, zmq.REQ)
    req.send(b"a", zmq.SNDMORE)
    raises_state(zmq, req.recv)
    req.send(b"b")
    assert rep.recv() == b"a"
    raises_state(zmq, rep.send, b"too early")
    assert rep.recv() == b"b"
    rep.send_multipart([b"c", b"", b"d"])
    assert req.recv_multipart() == [b"c", b"", b"d"]


def test_polling(zmq, sockets):
    rep, req = sockets.pair(zmq.REP, zmq.REQ)
    both = zmq.POLLIN | zmq.POLLOUT
    assert req.poll(None, both) == zmq.POLLOUT
    assert rep.poll(0, both) == 0
    req.send(b"")
    assert req.poll(0, both) == 0
    assert rep.poll(None, both) == zmq.POLLIN
    rep.recv()
    assert rep.poll(None, both) == zmq.POLLOUT
    rep.send(b"")
    assert req.poll(None, zmq.POLLIN) == zmq.POLLIN


def test_work_is_shared(zmq, context, sockets):
    """The servers get requests in turn; each reply comes from the server that got the request."""
    servers = [sockets.bound(zmq.REP) for _ in range(3)]
    req = context.socket(zmq.REQ)
    for server in servers:
        req.connect(server.last_endpoint.decode())
    asked = set()
    for number in range(9):
        req.send(b"%d" % number)
        [(server, _)] = _ready(zmq, servers)
        asked.add(server)
        assert server.recv() == b"%d" % number
        server.send(b"%d" % number)
        assert req.recv() == b"%d" % number
    assert asked == set(servers)


def _ready(zmq, sockets):
    poller = zmq.Poller()
    for socket in sockets:
        poller.register(socket, zmq.POLLIN)
    return poller.poll()


def test_many_clients(zmq, sockets):
    rep = sockets.bound(zmq.REP)
    clients = [sockets.connected(zmq.REQ, rep) for _ in range(10)]
    for number, client in enumerate(clients):
        client.send(b"%d" % number)
    for _ in clients:
        rep.send(rep.recv())
    for number, client in enumerate(clients):
        assert client.recv() == b"%d" % number


def test_relaxed_and_correlated(zmq, sockets):
    router = sockets.bound(zmq.ROUTER)
    req = sockets.connected(zmq.REQ, router, req_relaxed=1, req_correlate=1)
    req.send(b"first")
    identity, first_id, delimiter, body = router.recv_multipart()
    assert (delimiter, body) == (b"", b"first")
    req.send(b"second")
    identity, second_id, delimiter, body = router.recv_multipart()
    assert (delimiter, body) == (b"", b"second")
    assert first_id != second_id
    router.send_multipart([identity, first_id, b"", b"late"])
    router.send_multipart([identity, second_id, b"", b"in time"])
    assert req.recv() == b"in time"


def test_request_without_delimiter_is_dropped(zmq, sockets):
    rep, dealer = sockets.pair(zmq.REP, zmq.DEALER)
    dealer.send(b"no delimiter")
    dealer.send_multipart([b"", b"good"])
    assert rep.recv_multipart() == [b"good"]


def test_envelope(zmq, sockets):
    """All parts up to the delimiter are returned in front of the reply."""
    rep, dealer = sockets.pair(zmq.REP, zmq.DEALER)
    dealer.send_multipart([b"hop 1", b"hop 2", b"", b"body", b"", b"more"])
    assert rep.recv_multipart() == [b"body", b"", b"more"]
    rep.send_multipart([b"reply"])
    assert dealer.recv_multipart() == [b"hop 1", b"hop 2", b"", b"reply"]


def test_reply_to_a_lost_peer(zmq, sockets):
    rep, req = sockets.pair(zmq.REP, zmq.REQ)
    req.send(b"and gone")
    rep.recv()
    req.close()
    rep.send(b"to nobody")
    other = sockets.connected(zmq.REQ, rep)
    other.send(b"next")
    assert rep.recv() == b"next"
