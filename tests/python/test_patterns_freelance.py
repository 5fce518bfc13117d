"""Freelance follows RFC 10, and its clients survive what chapter 4 of the guide says they survive."""

import asyncio

import pytest
from pattern_peers import commands
from support import Background, eventually

from zeroxide import patterns
from zeroxide.patterns._freelance import FreelanceClientMachine, FreelanceServerMachine
from zeroxide.patterns._retrying import RetryMachine
from zeroxide.patterns._shotgun import ShotgunClientMachine, ShotgunServerMachine

pytestmark = pytest.mark.zeroxide_only

FORMS = pytest.mark.parametrize("form", ["", "Async"], ids=["blocking", "asyncio"])

A, B = b"tcp://a:1", b"tcp://b:1"
SERVERS = "servers"


def ask(form, kind, endpoints, body, **options):
    """Sends one request with a client."""
    if not form:
        with getattr(patterns, kind)(endpoints, **options) as client:
            return client.request(body)

    async def request():
        async with getattr(patterns, f"Async{kind}")(endpoints, **options) as client:
            return await client.request(body)

    return asyncio.run(request())


# ---- the machines, with a clock of the test -----------------------------------------


def test_failover_goes_around_the_servers_and_stays_with_the_one_that_replied():
    client = RetryMachine(3, timeout=1000, attempts=3)
    client.begin([b"1"], 0)
    client.handle_timeout(1000)
    assert client.server == 1
    client.handle_message("server", [b"reply"], 1001)
    assert client.poll_reply() == [b"reply"]
    client.begin([b"2"], 1002)
    assert client.server == 1


def client(**options):
    return FreelanceClientMachine(
        [A, B], **{"ping": 2000, "ttl": 6000, "resend": 1000, "timeout": 3000} | options
    )


def pongs(machine, *servers, now=0.0):
    for server in servers:
        machine.handle_message(SERVERS, [server, b"PONG"], now)


def test_a_request_waits_for_the_first_server_that_lives():
    machine = client()
    machine.begin([b"body"], 0)
    assert commands(machine) == [(SERVERS, [A, b"PING"]), (SERVERS, [B, b"PING"])]
    pongs(machine, B, now=1)
    assert commands(machine) == [(SERVERS, [B, b"1", b"body"])]
    machine.handle_message(SERVERS, [B, b"1", b"reply"], 2)
    assert machine.poll_reply() == [b"reply"]
    # From now on it is the first in the list, since both live.
    pongs(machine, A, now=3)
    machine.begin([b"body"], 10)
    assert commands(machine) == [(SERVERS, [A, b"2", b"body"])]


def test_pings_to_a_dead_server_become_rarer_and_a_request_has_an_end():
    machine = client()
    machine.begin([b"body"], 0)
    pings = []
    while machine.poll_timeout() is not None:
        now = machine.poll_timeout()
        commands(machine)
        machine.handle_timeout(now)
        if (SERVERS, [A, b"PING"]) in commands(machine):
            pings.append(now)
    assert pings == [50, 150, 350, 750, 1550]
    assert now == 3000
    with pytest.raises(patterns.NoReply, match="no server replied in 3000 ms"):
        machine.poll_reply()


def test_a_server_that_does_not_reply_or_has_gone_is_replaced():
    machine = client()
    machine.begin([b"body"], 0)
    pongs(machine, A, B, now=1)
    commands(machine)
    machine.handle_timeout(1001)
    assert commands(machine)[-1] == (SERVERS, [B, b"1", b"body"])
    machine.handle_unroutable(SERVERS, [B, b"1", b"body"], 1002)
    assert commands(machine) == [(SERVERS, [A, b"1", b"body"])]
    # A reply that is late but in time counts.
    machine.handle_message(SERVERS, [B, b"1", b"reply"], 1003)
    assert machine.poll_reply() == [b"reply"]


def test_a_server_that_has_gone_is_not_asked_until_it_answers():
    machine = client()
    machine.begin([b"1"], 0)
    pongs(machine, A, now=1)
    machine.handle_message(SERVERS, [A, b"1", b"reply"], 2)
    machine.handle_unroutable(SERVERS, [A, b"PING"], 3)
    commands(machine)
    machine.begin([b"2"], 4)
    assert (SERVERS, [A, b"2", b"2"]) not in commands(machine)
    pongs(machine, A, now=5)
    assert (SERVERS, [A, b"2", b"2"]) in commands(machine)


def test_a_late_reply_is_dropped():
    machine = client(timeout=100)
    machine.begin([b"1"], 0)
    pongs(machine, A, now=1)
    machine.handle_timeout(100)
    machine.begin([b"2"], 200)
    machine.handle_message(SERVERS, [A, b"1", b"late"], 201)
    assert machine.poll_reply() is None


def test_an_idle_time_makes_servers_unknown():
    machine = client()
    machine.begin([b"1"], 0)
    pongs(machine, A, now=1)
    machine.handle_message(SERVERS, [A, b"1", b"reply"], 1)
    commands(machine)
    machine.begin([b"2"], 7000)
    assert commands(machine) == [(SERVERS, [A, b"PING"]), (SERVERS, [B, b"PING"])]


def test_a_server_answers_ping_and_returns_the_control_frame():
    server = FreelanceServerMachine()
    server.handle_message("clients", [b"C", b"PING"], 0)
    assert commands(server) == [("clients", [b"C", b"PONG"])]
    server.handle_message("clients", [b"C", b"control", b"a", b"b"], 0)
    server.handle_message("clients", [b"C", b"not a request"], 0)
    request = server.poll_request()
    assert request == [b"a", b"b"]
    server.handle_reply(request, [b"c"], 0)
    assert commands(server) == [("clients", [b"C", b"control", b"c"])]
    assert server.poll_request() is None


def test_a_body_that_is_ping_is_a_request():
    server = FreelanceServerMachine()
    server.handle_message("clients", [b"C", b"PING", b"body"], 0)
    assert server.poll_request() == [b"body"]


def test_shotgun_takes_the_first_reply_only():
    machine = ShotgunClientMachine(2, 2500)
    machine.begin([b"a"], 0)
    assert commands(machine) == [("0", [b"", b"1", b"a"]), ("1", [b"", b"1", b"a"])]
    machine.handle_message("1", [b"", b"1", b"first"], 1)
    assert machine.poll_reply() == [b"first"]
    machine.begin([b"b"], 2)
    machine.handle_message("0", [b"", b"1", b"late"], 3)
    assert machine.poll_reply() is None
    machine.handle_message("0", [b"", b"2", b"second"], 4)
    assert machine.poll_reply() == [b"second"]


def test_shotgun_discards_what_a_dead_server_did_not_get():
    machine = ShotgunClientMachine(2, 2500)
    for now in (0, 2000, 3000):
        machine.begin([b"a"], now)
        machine.handle_message("1", [b"", b"%d" % (now // 1000), b"reply"], now)
    reopened = [command for command in commands(machine) if command[0] == "reopen"]
    assert reopened == [("reopen", "0")]


def test_shotgun_server_returns_the_number():
    server = ShotgunServerMachine()
    server.handle_message("clients", [b"C", b"", b"7", b"a"], 0)
    server.handle_reply(server.poll_request(), [b"b"], 0)
    assert commands(server) == [("clients", [b"C", b"", b"7", b"b"])]


# ---- the sockets --------------------------------------------------------------------


def test_bytes_on_the_sockets_are_those_of_the_rfc(context, zmq):
    """A ROUTER that knows nothing of the module is a client."""
    with patterns.FreelanceServer("inproc://server", context=context) as server:
        running = Background(server.run, lambda request: [part.upper() for part in request])
        client = context.socket(zmq.ROUTER)
        client.connect("inproc://server")
        client.router_mandatory = True
        for sent, received in (
            ([b"PING"], [b"PONG"]),
            ([b"CCF", b"a", b"b"], [b"CCF", b"A", b"B"]),
        ):
            client.send_multipart([b"inproc://server", *sent])
            assert client.recv_multipart() == [b"inproc://server", *received]
        server.stop()
        running.result()


def test_the_identity_of_a_server_has_no_wildcard():
    with pytest.raises(ValueError, match="public takes the endpoint that clients connect to"):
        patterns.FreelanceServer("tcp://*:5555")


@pytest.mark.parametrize("kind", ["FailoverClient", "ShotgunClient", "FreelanceClient"])
def test_mistakes_in_the_list_of_servers(kind):
    make = getattr(patterns, kind)
    with pytest.raises(ValueError, match="endpoints takes at least one endpoint"):
        make([])
    with pytest.raises(TypeError, match="endpoints takes a list of endpoints, not 'tcp"):
        make("tcp://server:1")


# ---- peers that die -----------------------------------------------------------------


@FORMS
def test_failover_survives_killed_and_silent_servers(peers, directory, form):
    endpoints = [f"ipc://{directory}/{name}" for name in ("dead", "silent", "living")]
    backends = [f"{endpoint}-workers" for endpoint in endpoints]
    queues = [
        peers.start("SimplePirateQueue", frontend=front, backend=back)
        for front, back in zip(endpoints, backends, strict=True)
    ]
    for name, back in zip(("dead", "silent", "living"), backends, strict=True):
        peers.start("SimplePirateWorker", name, endpoint=back)
    options = {"timeout": 300, "attempts": 100}
    assert ask(form, "FailoverClient", endpoints, b"1", **options) == [b"dead", b"1"]
    queues[0].kill()
    queues[1].stop()
    assert ask(form, "FailoverClient", endpoints, b"2", **options) == [b"living", b"2"]


@FORMS
def test_shotgun_survives_killed_and_silent_servers(peers, directory, form):
    endpoints = [f"ipc://{directory}/{name}" for name in ("dead", "silent", "living")]
    dead, silent, _ = (
        peers.start(f"{form}ShotgunServer", endpoint.rpartition("/")[2], endpoint=endpoint)
        for endpoint in endpoints
    )
    dead.kill()
    silent.stop()
    options = {"timeout": 30_000}
    assert ask(form, "ShotgunClient", endpoints, b"1", **options) == [b"living", b"1"]


@FORMS
def test_freelance_survives_killed_and_silent_servers(peers, directory, form):
    """One server dies with the request, and the next one is silent."""
    endpoints = [f"ipc://{directory}/{name}" for name in ("dead", "silent", "living")]
    times = {"ping": 200, "ttl": 600, "resend": 200, "timeout": 40_000}
    dead = peers.start(f"{form}FreelanceServer", "dead", hangs=True, endpoint=endpoints[0])
    silent = peers.start(f"{form}FreelanceServer", "silent", hangs=True, endpoint=endpoints[1])
    request = Background(ask, form, "FreelanceClient", endpoints, b"1", **times)
    assert dead.line().startswith("got")
    dead.kill()
    assert silent.line().startswith("got")
    silent.stop()
    peers.start(f"{form}FreelanceServer", "living", endpoint=endpoints[2])
    assert request.result() == [b"living", b"1"]


def test_freelance_returns_to_the_preferred_server(peers, directory):
    endpoints = [f"ipc://{directory}/{name}" for name in ("first", "second")]
    times = {"ping": 100, "ttl": 500, "resend": 200, "timeout": 20_000}
    first = peers.start("FreelanceServer", "first", endpoint=endpoints[0])
    peers.start("FreelanceServer", "second", endpoint=endpoints[1])
    with patterns.FreelanceClient(endpoints, **times) as client:
        eventually(lambda: client.request(b"1") == [b"first", b"1"])
        first.kill()
        assert client.request(b"2") == [b"second", b"2"]
        peers.start("FreelanceServer", "first", endpoint=endpoints[0])
        eventually(lambda: client.request(b"3") == [b"first", b"3"])
