"""The compatible pairs of socket types, and an exchange of messages for each pair.

The two ends may be sockets of this process or proxies for sockets of another one.
They only need `type`, `set`, `get`, `poll`, `send`, `recv`, `send_multipart` and
`recv_multipart`.
"""

import itertools
from typing import Any

from support import attend, eventually, synchronise

# Socket types by name, each pair once.
PAIRS = [
    ("PAIR", "PAIR"),
    ("PUB", "SUB"),
    ("PUB", "XSUB"),
    ("XPUB", "SUB"),
    ("XPUB", "XSUB"),
    ("REQ", "REP"),
    ("REQ", "ROUTER"),
    ("DEALER", "REP"),
    ("DEALER", "DEALER"),
    ("DEALER", "ROUTER"),
    ("ROUTER", "ROUTER"),
    ("PUSH", "PULL"),
]

# In both orders, because the order matters if the ends have different types.
ORDERED_PAIRS = sorted({pair for a, b in PAIRS for pair in ((a, b), (b, a))})

# None begins with 0 or 1, because an XSUB socket would treat such a part as a subscription.
BODIES = [bytes((65 + i) % 251 for i in range(n)) for n in (0, 1, 255, 256, 8192, 1 << 20)]

MESSAGES = [
    *([body] for body in BODIES),
    [b"", b""],
    [b"head", *BODIES, b""],
    [b"many", *(b"%d" % i for i in range(300))],
]


def prepare(zmq: Any, one: Any, other: Any) -> None:
    """Sets the options that the pair needs before it is connected."""
    for socket, identity in ((one, b"one"), (other, b"other")):
        if socket.type == zmq.ROUTER:
            socket.set(zmq.ROUTING_ID, identity)
            socket.set(zmq.ROUTER_MANDATORY, 1)


def converse(zmq: Any, one: Any, other: Any) -> None:
    """Sends `MESSAGES` in each direction that the two types have."""
    conversation = _CONVERSATIONS.get((one.type, other.type))
    if conversation is None:
        one, other = other, one
        conversation = _CONVERSATIONS[one.type, other.type]
    conversation(zmq, one, other)


def subscribe(zmq: Any, publisher: Any, subscriber: Any, topic: bytes = b"") -> None:
    """Subscribes, and returns when the publisher knows."""
    if subscriber.type == zmq.XSUB:
        subscriber.send(b"\x01" + topic)
    else:
        subscriber.set(zmq.SUBSCRIBE, topic)
    if publisher.type == zmq.XPUB:
        while not publisher.poll(20):
            attend(zmq, subscriber)
        assert publisher.recv() == b"\x01" + topic
    else:
        synchronise(publisher, subscriber, topic)


def _one_way(zmq: Any, sender: Any, receiver: Any) -> None:
    for message in MESSAGES:
        sender.send_multipart(message)
        assert receiver.recv_multipart() == message
    for message in MESSAGES:
        sender.send_multipart(message)
    for message in MESSAGES:
        assert receiver.recv_multipart() == message


def _both_ways(zmq: Any, one: Any, other: Any) -> None:
    _one_way(zmq, one, other)
    _one_way(zmq, other, one)


def _publish(zmq: Any, publisher: Any, subscriber: Any) -> None:
    subscribe(zmq, publisher, subscriber)
    _one_way(zmq, publisher, subscriber)


def _publish_and_answer(zmq: Any, xpub: Any, xsub: Any) -> None:
    _publish(zmq, xpub, xsub)
    # A message that is not a subscription goes upstream unchanged.
    for message in MESSAGES:
        message = [b"user", *message]
        xsub.send_multipart(message)
        assert xpub.recv_multipart() == message


def _request_reply(zmq: Any, req: Any, rep: Any) -> None:
    for message in MESSAGES:
        req.send_multipart(message)
        assert rep.recv_multipart() == message
        rep.send_multipart([*message, b"reply"])
        assert req.recv_multipart() == [*message, b"reply"]


def _request_router(zmq: Any, req: Any, router: Any) -> None:
    for message in MESSAGES:
        req.send_multipart(message)
        identity, *rest = router.recv_multipart()
        assert rest == [b"", *message]
        router.send_multipart([identity, b"", *message, b"reply"])
        assert req.recv_multipart() == [*message, b"reply"]


def _dealer_reply(zmq: Any, dealer: Any, rep: Any) -> None:
    for message in MESSAGES:
        dealer.send_multipart([b"", *message])
        assert rep.recv_multipart() == message
        rep.send_multipart([*message, b"reply"])
        assert dealer.recv_multipart() == [b"", *message, b"reply"]


def _dealer_router(zmq: Any, dealer: Any, router: Any) -> None:
    for message in MESSAGES:
        dealer.send_multipart(message)
        identity, *rest = router.recv_multipart()
        assert rest == message
        router.send_multipart([identity, *message])
        assert dealer.recv_multipart() == message


def _router_router(zmq: Any, one: Any, other: Any) -> None:
    def reachable(sender: Any, identity: bytes) -> bool:
        try:
            sender.send_multipart([identity, b"are you there"])
        except Exception as error:
            assert getattr(error, "errno", None) == zmq.EHOSTUNREACH
            return False
        return True

    for sender, name, receiver, identity in (
        (one, b"one", other, b"other"),
        (other, b"other", one, b"one"),
    ):
        eventually(lambda sender=sender, identity=identity: reachable(sender, identity))
        assert receiver.recv_multipart() == [name, b"are you there"]
        for message in MESSAGES:
            sender.send_multipart([identity, *message])
            assert receiver.recv_multipart() == [name, *message]


_PAIR, _PUB, _SUB, _REQ, _REP, _DEALER, _ROUTER, _PULL, _PUSH, _XPUB, _XSUB = range(11)

_CONVERSATIONS = {
    (_PAIR, _PAIR): _both_ways,
    (_PUB, _SUB): _publish,
    (_PUB, _XSUB): _publish,
    (_XPUB, _SUB): _publish,
    (_XPUB, _XSUB): _publish_and_answer,
    (_REQ, _REP): _request_reply,
    (_REQ, _ROUTER): _request_router,
    (_DEALER, _REP): _dealer_reply,
    (_DEALER, _DEALER): _both_ways,
    (_DEALER, _ROUTER): _dealer_router,
    (_ROUTER, _ROUTER): _router_router,
    (_PUSH, _PULL): _one_way,
}

assert len(_CONVERSATIONS) == len(PAIRS) == len(set(itertools.chain(PAIRS)))
