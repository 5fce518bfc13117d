"""Combinations of transports and socket types that make no sense fail at the call, with a sentence that explains it."""

import pytest

pytestmark = pytest.mark.zeroxide_only

ADDRESSES = {
    "tcp": "tcp://127.0.0.1:5555",
    "ipc": "ipc:///tmp/refused",
    "inproc": "inproc://refused",
    "ws": "ws://127.0.0.1:5555",
    "wss": "wss://127.0.0.1:5555",
    "tls+tcp": "tls+tcp://127.0.0.1:5555",
    "udp": "udp://127.0.0.1:5555",
    "vsock": "vsock://1:5555",
    "tipc": "tipc://{5555,0,0}",
    "sctp": "sctp://127.0.0.1:5555",
}
ZMTP = "PAIR REQ REP DEALER ROUTER PUB SUB XPUB XSUB PUSH PULL STREAM SERVER CLIENT SCATTER GATHER PEER CHANNEL"
SP = "PAIR REQ REP PUB SUB PUSH PULL SURVEYOR RESPONDENT BUS"
UDP = "over udp, RADIO connects, and DISH and DGRAM bind; a {kind} socket cannot"


def refuses(zmq, socket, transport, sentence):
    for call in (socket.bind, socket.connect):
        with pytest.raises(zmq.ZMQError, match=sentence) as caught:
            call(ADDRESSES[transport])
        assert caught.value.errno == zmq.ENOCOMPATPROTO


@pytest.mark.cell(transport="udp", types="{kind}", peer="refused")
@pytest.mark.parametrize("kind", ZMTP.split())
def test_udp_carries_datagrams_only(zmq, context, kind):
    refuses(zmq, context.socket(getattr(zmq, kind)), "udp", UDP.format(kind=kind))


@pytest.mark.cell(transport="udp", types="{kind}", peer="refused", sp=True)
@pytest.mark.parametrize("kind", SP.split())
def test_udp_does_not_carry_sp(zmq, context, kind):
    socket = context.socket(getattr(zmq, kind))
    socket.wire_protocol = zmq.SP
    refuses(zmq, socket, "udp", UDP.format(kind=kind))


@pytest.mark.cell(transport="{transport}", types="DGRAM", peer="refused")
@pytest.mark.parametrize("transport", [name for name in ADDRESSES if name != "udp"])
def test_datagrams_need_udp(zmq, context, transport):
    sentence = "a DGRAM socket sends and receives datagrams, so it needs udp"
    refuses(zmq, context.socket(zmq.DGRAM), transport, sentence)


@pytest.mark.cell(transport="{transport}", types="STREAM", peer="refused")
@pytest.mark.parametrize(
    ("transport", "sentence"),
    [
        ("inproc", "STREAM speaks raw tcp and ipc only"),
        ("ws", "STREAM carries plain bytes, which WebSocket does not: use tcp or tls\\+tcp"),
        ("wss", "STREAM carries plain bytes, which WebSocket does not: use tcp or tls\\+tcp"),
    ],
)
def test_plain_bytes_need_a_stream(zmq, context, transport, sentence):
    refuses(zmq, context.socket(zmq.STREAM), transport, sentence)
