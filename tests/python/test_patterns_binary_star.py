"""Binary Star survives what chapter 4 of the guide says it survives."""

import asyncio

import pytest
from pattern_peers import commands
from support import Background, eventually

from zeroxide import patterns
from zeroxide.patterns._binary_star import BinaryStarMachine
from zeroxide.patterns._binary_star_state import PairState, State
from zeroxide.patterns._retrying import RetryMachine

pytestmark = pytest.mark.zeroxide_only

FORMS = pytest.mark.parametrize("form", ["", "Async"], ids=["blocking", "asyncio"])

PRIMARY, BACKUP, ACTIVE, PASSIVE = (b"%d" % state for state in State)


def ask(form, endpoints, body):
    """Sends one request with a client."""
    options = {"timeout": 200, "settle": 50}
    if not form:
        with patterns.BinaryStarClient(endpoints, **options) as client:
            return client.request(body)

    async def request():
        async with patterns.AsyncBinaryStarClient(endpoints, **options) as client:
            return await client.request(body)

    return asyncio.run(request())


# ---- the state, with a clock of the test --------------------------------------------


def pair(*, is_primary=True, messages=(), now=0):
    state = PairState(is_primary, 1000, now)
    for message in messages:
        state.handle_peer(message, now)
    return state


def alive(state, since, until):
    """Lets a server say its state in time."""
    for now in range(since, until + 1, 1000):
        state.speak(now)


@pytest.mark.parametrize(
    ("is_primary", "messages", "state"),
    [
        (True, [], State.PRIMARY),
        (True, [BACKUP], State.ACTIVE),
        (True, [ACTIVE], State.PASSIVE),
        (True, [PASSIVE], State.PRIMARY),
        (True, [b"rubbish", b"9", b""], State.PRIMARY),
        (False, [], State.BACKUP),
        (False, [PRIMARY], State.BACKUP),
        (False, [ACTIVE], State.PASSIVE),
        (False, [ACTIVE, ACTIVE], State.PASSIVE),
        (False, [ACTIVE, PRIMARY], State.ACTIVE),
        (True, [BACKUP, PASSIVE], State.ACTIVE),
    ],
)
def test_the_peer_decides(is_primary, messages, state):
    assert pair(is_primary=is_primary, messages=messages).state is state


@pytest.mark.parametrize(
    ("messages", "text"),
    [([BACKUP, ACTIVE], "both servers of the pair are active"), ([ACTIVE, PASSIVE], "are passive")],
)
def test_split_brain_is_an_error(messages, text):
    with pytest.raises(patterns.SplitBrain, match=text):
        pair(messages=messages)


def test_a_passive_server_takes_over_when_its_peer_is_silent_and_a_client_asks():
    state = pair(is_primary=False, messages=[ACTIVE])
    alive(state, 0, 1000)
    assert not state.handle_client(1999)
    alive(state, 2000, 5000)
    assert state.state is State.PASSIVE
    assert state.handle_client(5001)
    assert state.state is State.ACTIVE


def test_a_passive_server_does_not_take_over_while_its_peer_lives():
    state = pair(is_primary=False, messages=[ACTIVE])
    for now in range(1000, 9000, 1000):
        state.speak(now)
        state.handle_peer(ACTIVE, now)
        assert not state.handle_client(now + 900)


def test_a_primary_alone_serves_but_a_backup_alone_does_not():
    for is_primary in (True, False):
        state = pair(is_primary=is_primary)
        alive(state, 0, 1000)
        assert not state.handle_client(1999)
        alive(state, 2000, 2000)
        assert state.handle_client(2000) is is_primary


def test_a_server_that_did_not_run_for_long_steps_down():
    state = pair(messages=[BACKUP])
    alive(state, 0, 1000)
    # Stopped for ten seconds. A client's request comes before the peer's state.
    assert not state.handle_client(11_000)
    assert state.state is State.PRIMARY
    state.handle_peer(PASSIVE, 11_000)
    state.handle_peer(ACTIVE, 11_000)
    assert state.state is State.PASSIVE


@pytest.mark.parametrize("is_primary", [True, False])
def test_a_server_that_stepped_down_serves_again_if_its_peer_is_dead(is_primary):
    state = pair(is_primary=is_primary, messages=[ACTIVE])
    alive(state, 0, 3000)
    assert state.handle_client(3000)
    assert not state.handle_client(11_000)
    alive(state, 11_000, 13_000)
    assert state.handle_client(13_000)


def test_a_passive_server_that_did_not_run_does_not_blame_its_peer():
    state = pair(is_primary=False, messages=[ACTIVE])
    assert not state.handle_client(11_000)
    assert state.state is State.PASSIVE


def test_a_change_is_published_at_once_and_reported():
    changes = []
    machine = BinaryStarMachine(pair(), changes.append)
    machine.handle_timeout(0)
    assert commands(machine) == [("state", [b"1"])]
    machine.handle_message("peer", [b"2"], 10)
    assert commands(machine) == [("state", [b"3"])]
    assert changes == [True]
    assert machine.poll_timeout() == 1010
    machine.handle_message("clients", [b"C", b"", b"a", b"b"], 20)
    request = machine.poll_request()
    machine.handle_reply(request, request, 21)
    assert commands(machine) == [("clients", [b"C", b"", b"a", b"b"])]
    machine.handle_timeout(9999)
    assert changes == [True, False]


def test_a_passive_server_ignores_requests():
    machine = BinaryStarMachine(pair(messages=[ACTIVE]), None)
    machine.handle_message("clients", [b"C", b"", b"a"], 20)
    assert machine.poll_request() is None


def test_a_server_that_steps_down_serves_no_request_that_waits():
    server = BinaryStarMachine(pair(messages=[BACKUP]), None)
    server.handle_timeout(0)
    for number in (b"1", b"2"):
        server.handle_message("clients", [b"C", b"", number], 0)
    assert server.poll_request() == [b"1"]
    # It did not run for so long that its peer may have taken over, and have served the clients.
    server.handle_timeout(2001)
    assert server.poll_request() is None


@pytest.mark.parametrize("parts", [[b"C"], [b"C", b""], [b"C", b"x", b"1"]])
def test_what_is_no_request_is_dropped(parts):
    server = BinaryStarMachine(pair(messages=[BACKUP]), None)
    server.handle_message("clients", parts, 0)
    assert server.poll_request() is None
    assert server.dropped == 1


def test_a_client_lets_the_servers_settle():
    client = RetryMachine(2, timeout=1000, attempts=None, settle=2000)
    client.begin([b"a"], 0)
    commands(client)
    client.handle_timeout(1000)
    assert commands(client) == []
    assert client.poll_timeout() == 3000
    client.handle_timeout(3000)
    assert commands(client) == [("reopen", "server"), ("server", [b"a"])]
    assert client.server == 1


# ---- peers that die -----------------------------------------------------------------


@pytest.fixture
def start(peers, directory):
    """Starts one server of a pair; the heartbeat leaves time for a busy machine."""

    def start(form, name, *, is_primary, **options):
        states = [f"ipc://{directory}/state-of-{who}" for who in ("primary", "backup")]
        local, remote = states if is_primary else reversed(states)
        return peers.start(
            f"{form}BinaryStarServer",
            name,
            endpoint=f"ipc://{directory}/{'primary' if is_primary else 'backup'}",
            is_primary=is_primary,
            local=local,
            remote=remote,
            heartbeat=250,
            **options,
        )

    return start


@pytest.fixture
def endpoints(directory):
    return [f"ipc://{directory}/{name}" for name in ("primary", "backup")]


@FORMS
def test_the_backup_takes_over_and_gives_back(start, endpoints, form):
    """The primary dies with a request. Later it is passive, until the backup dies."""
    primary = start(form, "primary", is_primary=True, hangs=True)
    backup = start(form, "backup", is_primary=False)
    request = Background(ask, form, endpoints, b"1")
    assert primary.line().startswith("got")
    primary.kill()
    assert request.result() == [b"backup", b"1"]
    start(form, "primary", is_primary=True)
    for number in range(3):
        assert ask(form, endpoints, b"%d" % number) == [b"backup", b"%d" % number]
    backup.kill()
    assert ask(form, endpoints, b"2") == [b"primary", b"2"]


def test_a_silent_server_steps_down_when_it_is_back(start, endpoints):
    primary = start("", "primary", is_primary=True)
    start("", "backup", is_primary=False)
    assert ask("", endpoints, b"1") == [b"primary", b"1"]
    primary.stop()
    assert ask("", endpoints, b"2") == [b"backup", b"2"]
    primary.resume()
    # Neither ends with SplitBrain, and the one that took over stays.
    for number in range(5):
        assert ask("", endpoints, b"%d" % number) == [b"backup", b"%d" % number]


def test_is_active(context, directory):
    changes = []
    options = {
        "is_primary": True,
        "local": f"ipc://{directory}/local",
        "remote": f"ipc://{directory}/remote",
        "heartbeat": 50,
        "on_change": changes.append,
        "context": context,
    }
    with patterns.BinaryStarServer("inproc://server", **options) as server:
        assert not server.is_active
        running = Background(server.run, lambda request: request)
        with patterns.BinaryStarClient(
            ["inproc://server"], timeout=200, settle=0, context=context
        ) as client:
            assert client.request(b"1") == [b"1"]
        assert changes[0]
        eventually(lambda: server.is_active)
        server.stop()
        running.result()
