"""Socket options: types, defaults, limits, and the ways to set them."""

import pytest

# name, default, another value
NUMBERS = [
    ("AFFINITY", 0, 1),
    ("RATE", 100, 200),
    ("RECOVERY_IVL", 10000, 5000),
    ("SNDBUF", -1, 4096),
    ("RCVBUF", -1, 4096),
    ("LINGER", -1, 100),
    ("RECONNECT_IVL", 100, 50),
    ("BACKLOG", 100, 10),
    ("RECONNECT_IVL_MAX", 0, 1000),
    ("MAXMSGSIZE", -1, 1 << 40),
    ("SNDHWM", 1000, 5),
    ("RCVHWM", 1000, 5),
    ("MULTICAST_HOPS", 1, 4),
    ("RCVTIMEO", -1, 100),
    ("SNDTIMEO", -1, 100),
    ("TCP_KEEPALIVE", -1, 1),
    ("TCP_KEEPALIVE_CNT", -1, 3),
    ("TCP_KEEPALIVE_IDLE", -1, 60),
    ("TCP_KEEPALIVE_INTVL", -1, 10),
    ("IMMEDIATE", 0, 1),
    ("IPV6", 0, 1),
    ("CONFLATE", 0, 1),
    ("TOS", 0, 0x28),
    ("HANDSHAKE_IVL", 30000, 1000),
    ("HEARTBEAT_IVL", 0, 1000),
    ("HEARTBEAT_TTL", 0, 2000),
    ("HEARTBEAT_TIMEOUT", -1, 3000),
    ("CONNECT_TIMEOUT", 0, 1000),
    ("TCP_MAXRT", 0, 1000),
    ("MULTICAST_MAXTPDU", 1500, 9000),
    ("USE_FD", -1, 1000),
]


@pytest.fixture
def dealer(zmq):
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        yield socket


@pytest.mark.parametrize(("name", "default", "other"), NUMBERS)
def test_numbers(zmq, name, default, other):
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        option = getattr(zmq, name)
        assert socket.get(option) == default
        socket.set(option, other)
        assert socket.get(option) == other
        assert getattr(socket, name.lower()) == getattr(socket, name) == other
        if name != "HEARTBEAT_TIMEOUT":  # options whose default cannot be set
            setattr(socket, name.lower(), default)
            assert socket.getsockopt(option) == default
        socket.setsockopt(option, other)
        setattr(socket, name, other)
        assert getattr(socket, name.lower()) == other
        socket.linger = 0


@pytest.mark.zeroxide_only
@pytest.mark.parametrize(
    ("name", "default", "other"),
    [
        ("VMCI_BUFFER_SIZE", 0, 65536),
        ("VMCI_BUFFER_MIN_SIZE", 0, 128),
        ("VMCI_BUFFER_MAX_SIZE", 0, 262144),
        ("VMCI_CONNECT_TIMEOUT", -1, 100),
    ],
)
def test_options_of_absent_transports_are_kept(zmq, context, name, default, other):
    with context.socket(zmq.DEALER) as socket:
        option = getattr(zmq, name)
        assert socket.get(option) == default
        socket.set(option, other)
        assert socket.get(option) == other


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("name", ["SUB", "XSUB"])
def test_subscribers_do_not_linger(zmq, name):
    with zmq.Context() as context, context.socket(getattr(zmq, name)) as socket:
        assert socket.linger == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LINGER", -2),
        ("SNDHWM", -1),
        ("RCVTIMEO", -2),
        ("IMMEDIATE", 2),
        ("TCP_KEEPALIVE", 2),
        ("RATE", 0),
        ("HEARTBEAT_TTL", 6553600),
        ("ROUTING_ID", b""),
        ("ROUTING_ID", b"x" * 256),
    ],
)
def test_out_of_range(zmq, dealer, name, value):
    before = dealer.get(getattr(zmq, name))
    with pytest.raises(zmq.ZMQError) as caught:
        dealer.set(getattr(zmq, name), value)
    assert caught.value.errno == zmq.EINVAL
    assert dealer.get(getattr(zmq, name)) == before


KINDS = [
    "PAIR",
    "PUB",
    "SUB",
    "REQ",
    "REP",
    "DEALER",
    "ROUTER",
    "PULL",
    "PUSH",
    "XPUB",
    "XSUB",
    "STREAM",
]


@pytest.mark.parametrize("kind", KINDS)
def test_refused_values_change_nothing(zmq, context, kind):
    """Every option, of this socket type or not, with valid and invalid values."""

    def read(socket, option):
        try:
            return socket.get(option)
        except zmq.ZMQError:
            return None

    with context.socket(getattr(zmq, kind)) as socket:
        for option in set(zmq.SocketOption) - {zmq.EVENTS}:
            for value in (-2, 1, 1 << 30, b"", b"1", b"x" * 300):
                before = read(socket, option)
                try:
                    socket.set(option, value)
                except (zmq.ZMQError, TypeError, OverflowError):
                    assert read(socket, option) == before, option


def test_types(zmq, dealer):
    for option, value in [
        (zmq.LINGER, "1"),
        (zmq.LINGER, b"1"),
        (zmq.LINGER, None),
        (zmq.LINGER, 1.5),
        (zmq.ROUTING_ID, "text"),
        (zmq.ROUTING_ID, 1),
    ]:
        with pytest.raises(TypeError):
            dealer.set(option, value)
    dealer.immediate = True
    assert dealer.immediate == 1


def test_unknown(zmq, dealer):
    for call in (lambda: dealer.set(9999, 1), lambda: dealer.get(9999)):
        with pytest.raises(zmq.ZMQError) as caught:
            call()
        assert caught.value.errno == zmq.EINVAL


def test_misspelt_attributes(dealer):
    with pytest.raises(AttributeError):
        dealer.linget = 5
    with pytest.raises(AttributeError):
        _ = dealer.linget
    assert not hasattr(dealer, "no_such_option")


def test_write_only_attributes(zmq, context):
    with context.socket(zmq.ROUTER) as router:
        router.router_mandatory = 1
        router.router_handover = True
        assert not hasattr(router, "router_mandatory")
        with pytest.raises(AttributeError):
            _ = router.probe_router


def test_read_only(zmq, dealer):
    for name in ("RCVMORE", "FD", "EVENTS", "TYPE", "LAST_ENDPOINT", "MECHANISM", "THREAD_SAFE"):
        option = getattr(zmq, name)
        dealer.get(option)
        with pytest.raises(zmq.ZMQError) as caught:
            dealer.set(option, b"1" if name == "LAST_ENDPOINT" else 1)
        assert caught.value.errno == zmq.EINVAL


def test_types_that_libzmq_calls_thread_safe(zmq, context):
    drafts = {"SERVER", "CLIENT", "RADIO", "DISH", "GATHER", "SCATTER", "PEER", "CHANNEL"}
    own = {"SURVEYOR", "RESPONDENT", "BUS"}
    for kind in zmq.SocketType:
        with context.socket(kind) as socket:
            assert socket.get(zmq.THREAD_SAFE) == (kind.name in drafts | own), kind


def test_initial_state(zmq, dealer):
    assert dealer.rcvmore == 0
    assert dealer.fd == dealer.fileno() > 0
    assert dealer.events == 0
    assert dealer.last_endpoint == b""
    assert dealer.mechanism == zmq.NULL
    assert dealer.thread_safe == 0
    assert dealer.routing_id == dealer.identity == b""


def test_routing_id(zmq, dealer):
    dealer.routing_id = b"\x01binary\x00"
    assert dealer.get(zmq.IDENTITY) == b"\x01binary\x00"
    dealer.set_string(zmq.ROUTING_ID, "text")
    assert dealer.identity == b"text"
    assert dealer.get_string(zmq.ROUTING_ID) == dealer.getsockopt_string(zmq.IDENTITY) == "text"
    dealer.setsockopt_string(zmq.ROUTING_ID, "ü", encoding="latin-1")
    assert dealer.getsockopt_unicode(zmq.ROUTING_ID, encoding="latin-1") == "ü"


def test_strings_of_the_wrong_kind(zmq, dealer):
    with pytest.raises(TypeError):
        dealer.set_string(zmq.ROUTING_ID, b"bytes")
    with pytest.raises(TypeError):
        dealer.get_string(zmq.LINGER)


def test_last_endpoint(zmq, context, directory):
    with context.socket(zmq.DEALER) as socket:
        socket.bind("tcp://127.0.0.1:*")
        assert socket.last_endpoint.startswith(b"tcp://127.0.0.1:")
        assert socket.get_string(zmq.LAST_ENDPOINT).rpartition(":")[2].isdigit()
        socket.bind(f"ipc://{directory}/a")
        assert socket.last_endpoint == f"ipc://{directory}/a".encode()
        socket.bind("inproc://last")
        assert socket.last_endpoint == b"inproc://last"
        socket.connect("tcp://127.0.0.1:5555")
        assert socket.last_endpoint == b"tcp://127.0.0.1:5555"
        socket.bind("ipc://*")
        assert len(socket.last_endpoint) > len("ipc://*")


@pytest.mark.parametrize("kind", ["SUB", "XPUB", "XSUB", "PAIR", "DEALER", "STREAM"])
def test_invert_matching_is_kept_by_all_types(zmq, context, kind):
    with context.socket(getattr(zmq, kind)) as socket:
        assert socket.invert_matching == 0
        socket.invert_matching = 1
        assert socket.invert_matching == 1


def test_a_publisher_accepts_the_options_of_an_xpub_for_notices(zmq, context):
    with context.socket(zmq.PUB) as pub:
        pub.set(zmq.XPUB_VERBOSE, 1)
        pub.set(zmq.XPUB_VERBOSER, 1)


def test_keepalive_values_read_as_written(zmq, dealer):
    for option in [zmq.TCP_KEEPALIVE_CNT, zmq.TCP_KEEPALIVE_IDLE, zmq.TCP_KEEPALIVE_INTVL]:
        for value in [0, 60, -1]:
            dealer.set(option, value)
            assert dealer.get(option) == value


def test_hwm(zmq, dealer):
    assert dealer.hwm == dealer.get_hwm() == 1000
    dealer.hwm = 7
    assert (dealer.sndhwm, dealer.rcvhwm, dealer.hwm) == (7, 7, 7)
    dealer.set_hwm(8)
    assert dealer.hwm == 8


def test_subscribe(zmq, context):
    with context.socket(zmq.SUB) as sub:
        sub.subscribe("text")
        sub.subscribe(b"bytes")
        sub.subscribe = b"attribute"
        sub.subscribe = "text attribute"
        sub.set(zmq.SUBSCRIBE, b"")
        sub.set_string(zmq.SUBSCRIBE, "text")
        sub.unsubscribe("text")
        sub.unsubscribe = b"bytes"
        sub.set(zmq.UNSUBSCRIBE, b"never subscribed")
    with context.socket(zmq.PUSH) as push, pytest.raises(zmq.ZMQError) as caught:
        push.subscribe(b"")
    assert caught.value.errno == zmq.EINVAL


def test_events(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.poll(flags=zmq.POLLOUT)
    assert push.events == zmq.POLLOUT
    assert pull.events == 0
    push.send(b"")
    pull.poll()
    assert pull.get(zmq.EVENTS) == zmq.POLLIN


def test_options_that_are_missing_or_of_other_types_are_refused(zmq, dealer):
    for option, value in [(zmq.ROUTER_NOTIFY, 3), (zmq.PRIORITY, 1)]:
        with pytest.raises(zmq.ZMQError) as caught:
            dealer.set(option, value)
        assert caught.value.errno == zmq.EINVAL


def test_zap_domain_is_kept(zmq, dealer):
    assert dealer.zap_domain == b""
    dealer.zap_domain = b"global"
    assert dealer.zap_domain == b"global"


def test_options_of_a_socks_proxy_are_kept(zmq, dealer):
    for option, value in [
        (zmq.SOCKS_PROXY, b"127.0.0.1:1080"),
        (zmq.SOCKS_USERNAME, b"mole"),
        (zmq.SOCKS_PASSWORD, b"secret"),
    ]:
        assert dealer.get(option) == b""
        dealer.set(option, value)
        assert dealer.get(option) == value


@pytest.mark.zeroxide_only
def test_options_of_tls_are_kept(zmq, dealer):
    for name in ["TLS_CERTIFICATE", "TLS_KEY", "TLS_CA", "TLS_HOSTNAME", "TLS_ALPN"]:
        assert getattr(dealer, name.lower()) == b""
        dealer.set(getattr(zmq, name), b"value")
        assert dealer.get(getattr(zmq, name)) == b"value"
    # libzmq's names stand for the same settings.
    for name in ["WSS_KEY_PEM", "WSS_CERT_PEM", "WSS_TRUST_PEM", "WSS_HOSTNAME"]:
        assert dealer.get(getattr(zmq, name)) == b"value"
    dealer.wss_trust_system = 1
    assert dealer.tls_trust_system == 1
    dealer.tls_trust_system = -1
    for name, default, highest in [
        ("TLS_TRUST_SYSTEM", -1, 1),
        ("TLS_VERIFY", 1, 1),
        ("TLS_CLIENT_AUTH", -1, 2),
    ]:
        assert getattr(dealer, name.lower()) == default
        dealer.set(getattr(zmq, name), highest)
        assert dealer.get(getattr(zmq, name)) == highest
        with pytest.raises(zmq.ZMQError):
            dealer.set(getattr(zmq, name), highest + 1)


def test_not_blocky_means_no_linger(zmq):
    with zmq.Context() as context:
        context.set(zmq.BLOCKY, 0)
        with context.socket(zmq.PUSH) as socket:
            assert socket.linger == 0


def test_ipv6_of_the_context(zmq):
    with zmq.Context() as context:
        context.set(zmq.IPV6, 1)
        with context.socket(zmq.PUSH) as socket:
            assert socket.ipv6 == 1


def test_copy_threshold(zmq, context, monkeypatch):
    with context.socket(zmq.PUSH) as socket:
        assert socket.copy_threshold == zmq.COPY_THRESHOLD == 65536
        socket.copy_threshold = 10
        assert socket.copy_threshold == 10
    with zmq.Socket(context, zmq.PUSH, copy_threshold=5) as socket:
        assert socket.copy_threshold == 5
    monkeypatch.setattr(zmq, "COPY_THRESHOLD", 0)
    with context.socket(zmq.PUSH) as socket:
        assert socket.copy_threshold == 0


@pytest.mark.zeroxide_only
def test_options_that_only_zeroxide_has(zmq, context):
    with context.socket(zmq.PUB) as socket:
        for name, default, value in [
            ("MAX_SUBSCRIPTIONS", 1 << 22, 10),
            ("SNDHWM_BYTES", 0, 1 << 40),
            ("RCVHWM_BYTES", 0, 1 << 40),
            ("STALL_IVL", 60_000, 0),
            ("SNDPRIO", 8, 1),
            ("SPILL_BYTES", 1 << 30, 1 << 40),
            ("SPILL_KEEP", 0, 1),
            ("RCVPRIO", 8, 16),
            ("MAX_SUBSCRIPTION_BYTES", 64 << 20, 1 << 40),
        ]:
            option = getattr(zmq, name)
            assert socket.get(option) == getattr(socket, name.lower()) == default
            socket.set(option, value)
            assert socket.get(option) == value
            with pytest.raises(zmq.ZMQError):
                socket.set(option, -1)
