"""Combinations of transports and socket types that make no sense fail at the call, with a sentence that explains it."""

import os
import re
import socket

import pytest
from support import PATIENCE

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
    "epgm": "epgm://lo;239.255.0.9:5555",
}
MACHINES = {
    "vsock": (socket.AF_VSOCK, 0, "vsock://2:5555"),
    "tipc": (socket.AF_TIPC, 0, "tipc://{20000,0}"),
    "sctp": (socket.AF_INET, 132, "sctp://127.0.0.1:5555"),
}
ZMTP = "PAIR REQ REP DEALER ROUTER PUB SUB XPUB XSUB PUSH PULL STREAM SERVER CLIENT SCATTER GATHER PEER CHANNEL"
SP = "PAIR REQ REP PUB SUB PUSH PULL SURVEYOR RESPONDENT BUS"
UDP = "over udp, RADIO connects, and DISH and DGRAM bind; a {kind} socket cannot"

EPGM = "epgm carries messages from PUB and XPUB to SUB and XSUB; a {kind} socket cannot use it"


def refuses(zmq, refused, transport, sentence):
    for call in (refused.bind, refused.connect):
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
    speaking = context.socket(getattr(zmq, kind))
    speaking.wire_protocol = zmq.SP
    refuses(zmq, speaking, "udp", UDP.format(kind=kind))


@pytest.mark.cell(transport="epgm", types="{kind}", peer="refused")
@pytest.mark.parametrize("kind", [kind for kind in ZMTP.split() if "UB" not in kind])
def test_epgm_is_for_publishers_and_subscribers(zmq, context, kind):
    refuses(zmq, context.socket(getattr(zmq, kind)), "epgm", EPGM.format(kind=kind))


@pytest.mark.cell(transport="epgm", types="{kind}", peer="refused", sp=True)
@pytest.mark.parametrize("kind", SP.split())
def test_epgm_does_not_carry_sp(zmq, context, kind):
    speaking = context.socket(getattr(zmq, kind))
    speaking.wire_protocol = zmq.SP
    sentence = EPGM.format(kind=kind)
    if kind in ("PUB", "SUB"):
        sentence = (
            f"epgm carries ZMTP only, and this {kind} socket speaks the scalability protocols "
            "\\(WIRE_PROTOCOL 1\\): use one with WIRE_PROTOCOL 0"
        )
    refuses(zmq, speaking, "epgm", sentence)


@pytest.mark.cell(transport="{transport}", types="DGRAM", peer="refused")
@pytest.mark.parametrize("transport", [name for name in ADDRESSES if name not in ("udp", "epgm")])
def test_datagrams_need_udp(zmq, context, transport):
    sentence = "a DGRAM socket sends and receives datagrams, so it needs udp"
    refuses(zmq, context.socket(zmq.DGRAM), transport, sentence)


@pytest.mark.cell(transport="{transport}", types="STREAM", peer="refused")
@pytest.mark.parametrize(
    ("transport", "sentence"),
    [
        (
            transport,
            f"STREAM carries plain bytes, which {transport} does not: "
            "use tcp, ipc, tls\\+tcp, vsock, tipc or sctp",
        )
        for transport in ("inproc", "ws", "wss")
    ],
)
def test_plain_bytes_need_a_stream(zmq, context, transport, sentence):
    refuses(zmq, context.socket(zmq.STREAM), transport, sentence)


DATAGRAMS = [
    ("udp", "RADIO", "connect"),
    ("udp", "DISH", "bind"),
    ("udp", "DGRAM", "bind"),
    *(
        ("epgm", kind, call)
        for kind in ["PUB", "XPUB", "SUB", "XSUB"]
        for call in ("bind", "connect")
    ),
]
PROTECTIONS = {
    "an allow-list": ("CURVE", lambda zmq, secured: secured.secure_server(zmq.curve_keypair()[1])),
    "the key of a server": (
        "CURVE",
        lambda zmq, secured: secured.secure_client(zmq.curve_keypair()[0]),
    ),
    "a list of users": ("PLAIN", lambda zmq, secured: secured.password_server({"ann": "secret"})),
    "a password": ("PLAIN", lambda zmq, secured: secured.password_client("ann", "secret")),
    "a domain": ("ZAP_DOMAIN", lambda zmq, secured: secured.set(zmq.ZAP_DOMAIN, b"home")),
    "the need for a domain": (
        "ZAP_DOMAIN",
        lambda zmq, secured: secured.set(zmq.ZAP_ENFORCE_DOMAIN, 1),
    ),
}


@pytest.mark.parametrize(("transport", "kind", "call"), DATAGRAMS)
@pytest.mark.parametrize("protection", PROTECTIONS)
def test_datagrams_are_refused_where_security_is_expected(
    zmq, context, transport, kind, call, protection
):
    secured = context.socket(getattr(zmq, kind))
    setting, protect = PROTECTIONS[protection]
    protect(zmq, secured)
    sentence = (
        f"no security mechanism over {transport}, but this socket has {setting}: leave it out"
    )
    with pytest.raises(zmq.ZMQError, match=sentence) as caught:
        getattr(secured, call)(ADDRESSES[transport])
    assert caught.value.errno == zmq.EINVAL
    assert ADDRESSES[transport] in str(caught.value)


@pytest.mark.parametrize(("transport", "kind", "call"), DATAGRAMS)
def test_a_filter_of_networks_does_not_bind_datagrams(zmq, context, transport, kind, call):
    filtered = context.socket(getattr(zmq, kind))
    filtered.set(zmq.TCP_ACCEPT_FILTER, b"192.0.2.0/24")
    if call == "connect":
        filtered.connect(ADDRESSES[transport])
        return
    with pytest.raises(zmq.ZMQError, match="TCP_ACCEPT_FILTER admits connections") as caught:
        filtered.bind(ADDRESSES[transport])
    assert caught.value.errno == zmq.EINVAL


@pytest.mark.parametrize(
    ("scheme", "endpoint"), [("vsock", "vsock://*:*"), ("tipc", "tipc://{20001,0,0}")]
)
def test_a_filter_of_networks_does_not_bind_what_has_none(zmq, context, scheme, endpoint):
    filtered = context.socket(zmq.PULL)
    filtered.set(zmq.TCP_ACCEPT_FILTER, b"192.0.2.0/24")
    sentence = f"TCP_ACCEPT_FILTER admits connections by IP address, and {scheme} has no"
    with pytest.raises(zmq.ZMQError, match=sentence) as caught:
        filtered.bind(endpoint)
    assert caught.value.errno == zmq.EINVAL
    assert endpoint in str(caught.value)


@pytest.mark.parametrize("endpoint", ["tcp://127.0.0.1:*", "ipc://*", "inproc://filtered"])
def test_a_program_may_set_a_filter_of_networks_for_all_its_sockets(zmq, context, endpoint):
    filtered = context.socket(zmq.PULL)
    filtered.set(zmq.TCP_ACCEPT_FILTER, b"192.0.2.0/24")
    filtered.bind(endpoint)


def test_a_refused_bind_leaves_the_socket_as_it_was(zmq, context):
    dish = context.socket(zmq.DISH)
    dish.set(zmq.ZAP_DOMAIN, b"home")
    with pytest.raises(zmq.ZMQError, match="ZAP_DOMAIN"):
        dish.bind("udp://127.0.0.1:*")
    dish.set(zmq.ZAP_DOMAIN, b"")
    dish.join("news")
    dish.bind("udp://127.0.0.1:*")
    radio = context.socket(zmq.RADIO)
    radio.connect(dish.last_endpoint)
    radio.send(b"hello", group="news")
    assert dish.recv() == b"hello"


@pytest.mark.parametrize(("transport", "kind", "call"), DATAGRAMS)
def test_datagrams_do_not_bypass_a_proxy(zmq, context, transport, kind, call):
    sender = context.socket(getattr(zmq, kind))
    sender.socks_proxy = b"127.0.0.1:1080"
    sentence = f"a proxy carries TCP only, and {transport} would bypass it: unset SOCKS_PROXY"
    with pytest.raises(zmq.ZMQError, match=sentence) as caught:
        getattr(sender, call)(ADDRESSES[transport])
    assert caught.value.errno == zmq.EINVAL


@pytest.mark.parametrize("transport", MACHINES)
def test_streams_do_not_bypass_a_proxy(zmq, context, transport):
    family, protocol, endpoint = MACHINES[transport]
    push = context.socket(zmq.PUSH)
    push.socks_proxy = b"127.0.0.1:1080"
    try:
        socket.socket(family, socket.SOCK_STREAM, protocol).close()
        sentence = f"a proxy carries TCP only, and {transport} would bypass it: unset SOCKS_PROXY"
    except OSError:
        sentence = f"a proxy carries TCP only, and {transport}|the kernel has no"
    with pytest.raises(zmq.ZMQError, match=sentence):
        push.connect(endpoint)


@pytest.mark.parametrize("transport", ["ipc", "inproc"])
def test_what_stays_on_the_machine_ignores_a_proxy(zmq, context, transport):
    push = context.socket(zmq.PUSH)
    push.socks_proxy = b"127.0.0.1:1080"
    push.connect(ADDRESSES[transport])


@pytest.mark.parametrize("call", ["bind", "connect"])
def test_a_group_needs_a_port_in_both_calls(zmq, context, call):
    sentence = "a group needs a port from 1 to 65535, the same in all programs"
    with pytest.raises(zmq.ZMQError, match=sentence) as caught:
        getattr(context.socket(zmq.PUB), call)("epgm://lo;239.255.0.9:*")
    assert caught.value.errno == zmq.EINVAL


@pytest.mark.parametrize(("transport", "kind"), [("udp", "DISH"), ("epgm", "PUB"), ("epgm", "SUB")])
def test_a_descriptor_is_for_all_streams(zmq, context, transport, kind):
    adopting = context.socket(getattr(zmq, kind))
    adopting.use_fd = 0
    streams = "tcp, ipc, tls\\+tcp, ws, wss, vsock, tipc and sctp"
    sentence = f"USE_FD is for {streams}; {transport} makes its own descriptor"
    with pytest.raises(zmq.ZMQError, match=sentence):
        adopting.bind(ADDRESSES[transport])


@pytest.mark.parametrize(
    ("scheme", "meant"), [("tls", "tls\\+tcp"), ("TLS", "tls\\+tcp"), ("TCP", "tcp")]
)
def test_the_name_of_a_capability_leads_to_its_scheme(zmq, context, scheme, meant):
    with pytest.raises(zmq.ZMQError, match=f"did you mean '{meant}'\\?"):
        context.socket(zmq.PUSH).connect(f"{scheme}://127.0.0.1:5555")


@pytest.mark.parametrize("order", ["bound first", "connected first"])
def test_two_wire_protocols_over_inproc_are_named(zmq, context, order):
    bound, other = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    bound.wire_protocol = zmq.SP
    sentence = (
        r"this PAIR socket speaks ZMTP \(WIRE_PROTOCOL 0\), and the PAIR socket there speaks "
        r"the scalability protocols \(WIRE_PROTOCOL 1\): set both to the same"
    )
    if order == "bound first":
        bound.bind(ADDRESSES["inproc"])
        with pytest.raises(zmq.ZMQError, match=sentence) as caught:
            other.connect(ADDRESSES["inproc"])
        assert caught.value.errno == zmq.ENOCOMPATPROTO
        return
    events = other.monitor_events(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, timeout=PATIENCE * 1000)
    other.connect(ADDRESSES["inproc"])
    bound.bind(ADDRESSES["inproc"])
    assert re.search(sentence, next(events).reason)


@pytest.mark.parametrize("kind", SP.split())
@pytest.mark.parametrize(
    ("option", "value"),
    [("METADATA", b"X-name:value"), ("ROUTING_ID", b"name"), ("INVERT_MATCHING", 1)],
)
def test_sp_refuses_what_only_zmtp_carries(zmq, context, kind, option, value):
    speaking = context.socket(getattr(zmq, kind))
    speaking.wire_protocol = zmq.SP
    if (kind, option) == ("SUB", "INVERT_MATCHING"):
        speaking.set(zmq.INVERT_MATCHING, 1)
        return
    sentence = f"{option} has no effect on a {kind} socket over the scalability protocols"
    with pytest.raises(zmq.ZMQError, match=sentence) as caught:
        speaking.set(getattr(zmq, option), value)
    assert caught.value.errno == zmq.EINVAL


@pytest.mark.parametrize("kind", ["SURVEYOR", "RESPONDENT", "BUS"])
def test_types_that_libzmq_lacks_refuse_conflate(zmq, context, kind):
    with pytest.raises(zmq.ZMQError, match=f"CONFLATE has no effect on a {kind} socket") as caught:
        context.socket(getattr(zmq, kind)).set(zmq.CONFLATE, 1)
    assert caught.value.errno == zmq.EINVAL


@pytest.mark.parametrize("kind", ZMTP.split())
def test_the_types_of_libzmq_take_conflate(zmq, context, kind):
    conflating = context.socket(getattr(zmq, kind))
    conflating.set(zmq.CONFLATE, 1)
    assert conflating.get(zmq.CONFLATE) == 1


@pytest.mark.parametrize("hops", [0, 256, 100_000])
def test_packets_cross_at_most_as_many_networks_as_ip_allows(zmq, context, hops):
    radio = context.socket(zmq.RADIO)
    with pytest.raises(zmq.ZMQError, match=f"MULTICAST_HOPS takes 1 to 255, not {hops}") as caught:
        radio.multicast_hops = hops
    assert caught.value.errno == zmq.EINVAL
    radio.multicast_hops = 255
    radio.connect("udp://lo;239.255.0.1:5555")


def descriptors():
    """Sockets that no tcp endpoint can take over, and a pipe."""
    plain = socket.socket()
    plain.bind(("127.0.0.1", 0))
    unix = socket.socket(socket.AF_UNIX)
    unix.bind("")
    unix.listen()
    datagrams = socket.socket(type=socket.SOCK_DGRAM)
    read, write = os.pipe()
    os.close(write)
    return {
        "not listening": plain.detach(),
        "unix": unix.detach(),
        "datagrams": datagrams.detach(),
        "pipe": read,
    }


def test_a_refused_descriptor_stays_the_callers(zmq, context):
    for name, descriptor in descriptors().items():
        pull = context.socket(zmq.PULL)
        pull.use_fd = descriptor
        with pytest.raises(zmq.ZMQError, match="is no listening TCP socket") as caught:
            pull.bind("tcp://127.0.0.1:*")
        assert caught.value.errno == zmq.EINVAL, name
        assert pull.use_fd == -1, name
        # Neither closed nor changed.
        assert os.get_blocking(descriptor), name
        os.close(descriptor)


def test_a_descriptor_that_one_transport_refuses_can_be_given_to_another(zmq, context):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    port = listener.getsockname()[1]
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    for refusing, sentence in (
        ("ipc:///tmp/refused", "is no listening Unix socket"),
        ("tls+tcp://127.0.0.1:*", "TLS_CERTIFICATE"),
    ):
        pull.use_fd = listener.fileno()
        with pytest.raises(zmq.ZMQError, match=sentence):
            pull.bind(refusing)
        assert listener.getsockname()[1] == port
    pull.use_fd = listener.detach()
    pull.bind("tcp://127.0.0.1:*")
    assert pull.last_endpoint.endswith(f":{port}".encode())
    push.connect(pull.last_endpoint)
    push.send(b"hello")
    assert pull.recv() == b"hello"
