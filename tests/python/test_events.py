"""Monitor events as objects, and waiting for peers and their subscriptions."""

import asyncio
import os
import time

import pytest
from support import PATIENCE, Background, lasting_endpoint, run_script

pytestmark = pytest.mark.zeroxide_only


def until(events, kind):
    """Returns the first event of a kind."""
    for event in events:
        if event.kind == kind:
            return event
    raise AssertionError(f"no {kind!r}")


def test_the_life_of_a_connection(zmq, context):
    router, dealer = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    events = router.monitor_events(timeout=PATIENCE * 1000)
    began = time.time()
    router.bind("tcp://127.0.0.1:*")
    endpoint = router.last_endpoint.decode()
    dealer.routing_id = b"alice"
    dealer.connect(endpoint)
    listening = next(events)
    assert listening.kind is zmq.Event.LISTENING
    assert listening.endpoint == endpoint
    assert listening.address == "" and listening.missed == 0
    assert began - 1 <= listening.timestamp <= time.time() + 1
    accepted = next(events)
    assert accepted.kind is zmq.Event.ACCEPTED
    assert accepted.address.startswith("127.0.0.1:")
    ready = next(events)
    assert ready.kind is zmq.Event.HANDSHAKE_SUCCEEDED
    assert ready.address == accepted.address
    assert (ready.routing_id, ready.mechanism, ready.user_id) == (b"alice", "NULL", "")
    dealer.close()
    gone = until(events, zmq.Event.DISCONNECTED)
    assert gone.address == accepted.address and gone.routing_id == b"alice"
    assert gone.reason
    router.close()
    assert [event.kind for event in events][-1] is zmq.Event.MONITOR_STOPPED
    assert list(events) == []
    assert events.recv() is None


def test_over_ipc(zmq, sockets):
    pull = sockets.bound(zmq.PULL, "ipc")
    with pull.monitor_events(timeout=PATIENCE * 1000) as events:
        push = sockets.connected(zmq.PUSH, pull)
        ready = until(events, zmq.Event.HANDSHAKE_SUCCEEDED)
        assert ready.address == f":{os.getuid()}:{os.getgid()}:{os.getpid()}"
        assert ready.endpoint == pull.last_endpoint.decode()
        push.close()


def test_only_some_kinds(zmq, sockets):
    pull = sockets.bound(zmq.PULL)
    events = pull.monitor_events(zmq.EVENT_HANDSHAKE_SUCCEEDED, timeout=PATIENCE * 1000)
    push = sockets.connected(zmq.PUSH, pull)
    push.send(b"")
    pull.recv()
    assert next(events).kind is zmq.Event.HANDSHAKE_SUCCEEDED
    pull.close()
    assert list(events) == []


def test_a_loop_ends_when_nothing_happens(zmq, context):
    with context.socket(zmq.PULL) as pull:
        assert list(pull.monitor_events(timeout=1)) == []
        with pytest.raises(zmq.Again):
            pull.monitor_events().recv(0)


def test_several_readers_beside_a_monitor_socket(zmq, sockets, context):
    pull = context.socket(zmq.PULL)
    monitor = pull.get_monitor_socket()
    first, second = pull.monitor_events(timeout=20_000), pull.monitor_events(timeout=20_000)
    pull.bind("tcp://127.0.0.1:*")
    assert next(first).kind is next(second).kind is zmq.Event.LISTENING
    assert zmq.recv_monitor_message(monitor)["event"] == zmq.Event.LISTENING
    first.close()
    push = sockets.connected(zmq.PUSH, pull)
    assert next(second).kind is zmq.Event.ACCEPTED
    push.close()
    assert list(first) == []


def test_closing_wakes_waiting_readers(zmq, context):
    with context.socket(zmq.PULL) as pull:
        events = pull.monitor_events()
        reader = Background(list, events)
        events.close()
        assert reader.result() == []


def test_terminating_the_context_wakes_waiting_readers(zmq):
    context = zmq.Context()
    pull = context.socket(zmq.PULL)
    reader = Background(pull.monitor_events().recv)
    context.shutdown()
    with pytest.raises(zmq.ContextTerminated):
        reader.result()
    pull.close()
    context.term()


@pytest.mark.slow
def test_unread_events_are_counted(zmq, context):
    with context.socket(zmq.PULL) as pull:
        events = pull.monitor_events(zmq.EVENT_LISTENING)
        for _ in range(10_003):
            with pull.bind("tcp://127.0.0.1:*"):
                pass
        for _ in range(10_000):
            assert events.recv(0).missed == 0
        pull.bind("tcp://127.0.0.1:*")
        assert events.recv(0).missed == 3


def test_async_iteration(zmq):
    async def main():
        import zeroxide.asyncio

        context = zeroxide.asyncio.Context()
        pull = context.socket(zmq.PULL)
        push = context.socket(zmq.PUSH)
        kinds = []

        async def watch():
            async for event in pull.monitor_events():
                kinds.append(event.kind)

        watcher = asyncio.ensure_future(watch())
        await asyncio.sleep(0)
        pull.bind("tcp://127.0.0.1:*")
        push.connect(pull.last_endpoint.decode())
        assert await push.wait_connected(timeout=20_000) == 1
        assert await pull.wait_connected(timeout=20_000) == 1
        # A cancelled task leaves the loop unchanged.
        other = asyncio.ensure_future(anext(pull.monitor_events()))
        await asyncio.sleep(0)
        other.cancel()
        push.close()
        pull.close()
        await watcher
        assert kinds[:3] == [
            zmq.Event.LISTENING,
            zmq.Event.ACCEPTED,
            zmq.Event.HANDSHAKE_SUCCEEDED,
        ]
        context.term()

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_a_peer_that_connects_in_time_while_the_loop_is_busy(zmq, sockets):
    pull, push = (sockets.context.socket(kind) for kind in (zmq.PULL, zmq.PUSH))
    pull.bind("inproc://busy")

    async def main():
        from zeroxide.asyncio import Socket

        waiting = asyncio.ensure_future(Socket(shadow=pull).wait_connected(timeout=200))
        await asyncio.sleep(0)
        push.connect("inproc://busy")
        time.sleep(0.3)
        assert await waiting == 1

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_several_tasks_share_the_events(zmq, is_cancelled):
    async def main():
        import zeroxide.asyncio

        context = zeroxide.asyncio.Context()
        pull = context.socket(zmq.PULL)
        events = pull.monitor_events()
        kinds = []

        async def watch():
            async for event in events:
                kinds.append(event.kind)

        first, second = asyncio.ensure_future(watch()), asyncio.ensure_future(watch())
        await asyncio.sleep(0)
        if is_cancelled:
            second.cancel()
            await asyncio.wait([second])
        pull.bind("tcp://127.0.0.1:*")
        pull.close()
        await asyncio.wait([first, second])
        assert first.exception() is None
        assert kinds == [zmq.Event.LISTENING, zmq.Event.CLOSED, zmq.Event.MONITOR_STOPPED]
        context.term()

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


@pytest.mark.parametrize("transport", ["tcp", "ipc", "inproc"])
def test_wait_connected(zmq, sockets, transport):
    push = sockets.bound(zmq.PUSH, transport)
    assert push.count_connected() == 0
    with pytest.raises(zmq.Again, match="0 of 1 peers are connected"):
        push.wait_connected(timeout=1)
    assert push.wait_connected(count=0, timeout=0) == 0
    waiting = Background(push.wait_connected, count=2, timeout=20_000)
    pulls = [sockets.connected(zmq.PULL, push) for _ in range(2)]
    assert waiting.result() == 2
    for pull in pulls:
        assert pull.wait_connected() == 1
    with pytest.raises(zmq.Again, match="2 of 3"):
        push.wait_connected(count=3, timeout=1)
    pulls[0].close()
    events = push.monitor_events(zmq.EVENT_DISCONNECTED, timeout=100)
    while push.count_connected() == 2:
        next(events, None)
    assert push.count_connected() == 1


def test_wait_connected_without_a_peer(zmq, sockets, context):
    push = context.socket(zmq.PUSH)
    push.connect("inproc://later")
    assert push.count_connected() == 0
    waiting = Background(push.wait_connected, timeout=20_000)
    pull = context.socket(zmq.PULL)
    pull.bind("inproc://later")
    assert waiting.result() == 1


def test_wait_connected_until_the_peer_is_back(zmq, sockets, context):
    endpoint = lasting_endpoint()
    pull = context.socket(zmq.PULL)
    pull.bind(endpoint)
    push = sockets.connected(zmq.PUSH, pull, reconnect_ivl=1)
    push.wait_connected()
    events = push.monitor_events(zmq.EVENT_DISCONNECTED)
    pull.close()
    events.recv(20_000)
    assert push.count_connected() == 0
    again = context.socket(zmq.PULL)
    waiting = Background(push.wait_connected, timeout=20_000)
    again.bind(endpoint)
    assert waiting.result() == 1


def test_wait_connected_ends_with_the_socket(zmq, context):
    push = context.socket(zmq.PUSH)
    waiting = Background(push.wait_connected)
    push.close()
    with pytest.raises(zmq.ZMQError) as caught:
        waiting.result()
    assert caught.value.errno == zmq.ENOTSOCK


@pytest.mark.parametrize("kind", ["PUB", "XPUB"])
@pytest.mark.parametrize("transport", ["tcp", "inproc"])
def test_wait_subscribed(zmq, sockets, kind, transport):
    pub = sockets.bound(getattr(zmq, kind), transport)
    with pytest.raises(zmq.Again, match="0 of 1 peers are subscribed"):
        pub.wait_subscribed(b"a", timeout=1)
    waiting = Background(pub.wait_subscribed, b"weather.oslo", 2, 20_000)
    all_of_it, weather, oslo, news = (sockets.connected(zmq.SUB, pub) for _ in range(4))
    news.subscribe(b"news")
    weather.subscribe(b"weather")
    # More than one topic of a peer counts once.
    weather.subscribe(b"weather.oslo")
    oslo.subscribe(b"weather.oslo")
    assert waiting.result() == 2
    assert pub.count_subscribed("weather") == 1
    all_of_it.subscribe(b"")
    assert pub.wait_subscribed(b"weather.oslo", 3, 20_000) == 3
    assert pub.wait_subscribed("news", 2) == 2
    pub.send(b"weather.oslo")
    for sub in (all_of_it, weather, oslo):
        assert sub.recv() == b"weather.oslo"
    oslo.close()
    while pub.count_subscribed(b"weather.oslo") == 3:
        time.sleep(0.001)
    assert pub.count_subscribed(b"weather.oslo") == 2


def test_only_publishers_have_subscribers(zmq, context):
    with context.socket(zmq.PUSH) as push:
        with pytest.raises(zmq.ZMQError, match="PUSH") as caught:
            push.count_subscribed(b"")
        assert caught.value.errno == zmq.ENOTSUP


def test_no_slow_joiner(zmq, sockets):
    pub = sockets.bound(zmq.PUB)
    subs = [sockets.connected(zmq.SUB, pub) for _ in range(10)]
    for sub in subs:
        sub.subscribe(b"")
    assert pub.wait_subscribed(count=10) == 10
    pub.send(b"nobody misses this")
    assert [sub.recv() for sub in subs] == [b"nobody misses this"] * 10


def test_waiting_in_asyncio(zmq):
    async def main():
        import zeroxide.asyncio

        context = zeroxide.asyncio.Context()
        pub, sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
        pub.bind("tcp://127.0.0.1:*")
        with pytest.raises(zmq.Again, match="0 of 1 peers are subscribed"):
            await pub.wait_subscribed("a", timeout=1)
        waiting = asyncio.ensure_future(pub.wait_subscribed(b"a"))
        await asyncio.sleep(0)
        sub.connect(pub.last_endpoint.decode())
        sub.subscribe(b"a")
        assert await waiting == 1
        await pub.send(b"a")
        assert await sub.recv() == b"a"
        given_up = asyncio.ensure_future(pub.wait_connected(count=2))
        await asyncio.sleep(0)
        given_up.cancel()
        pub.close()
        sub.close()
        context.term()

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_events_name_the_peer(zmq, context):
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    server_key, server_secret = zmq.curve_keypair()
    alice_key, alice_secret = zmq.curve_keypair()
    pull.secure_server(server_secret, {alice_key: "alice"})
    pull.bind("tcp://127.0.0.1:*")
    events = pull.monitor_events(timeout=PATIENCE * 1000)
    push.secure_client(server_key, alice_secret)
    push.connect(pull.last_endpoint.decode())
    ready = until(events, zmq.Event.HANDSHAKE_SUCCEEDED)
    assert (ready.mechanism, ready.user_id) == ("CURVE", "alice")
    push.send_pyobj(1)
    assert pull.recv_pyobj() == 1
    stranger = context.socket(zmq.PUSH)
    stranger.secure_client(server_key)
    stranger.connect(pull.last_endpoint.decode())
    refused = until(events, zmq.Event.HANDSHAKE_FAILED_AUTH)
    assert refused.value == 400 and refused.reason
    assert refused.address.startswith("127.0.0.1:")
    assert pull.count_connected() == 1


def test_a_child_does_not_affect_its_parents_events():
    output, _ = run_script(
        "zeroxide",
        """
        import gc, os
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        events = pull.monitor_events()
        child = os.fork()
        if not child:
            status = 1
            try:
                events.recv(1000)
            except zmq.ZMQError as error:
                status = "parent process" not in str(error)
            events.close()
            del events
            gc.collect()
            os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        pull.bind("tcp://127.0.0.1:*")
        print(events.recv(1000).kind.name)
        pull.close()
        context.term()
        """,
    )
    assert output.splitlines() == ["LISTENING"]
