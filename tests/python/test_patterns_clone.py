"""The map of Clone survives what chapter 5 of the guide says it survives."""

import asyncio
import contextlib
import time

import pytest
from support import PATIENCE, Background, bind_once_free, eventually, lasting_endpoint

from zeroxide import patterns

pytestmark = pytest.mark.zeroxide_only

FORMS = pytest.mark.parametrize("form", ["", "Async"], ids=["blocking", "asyncio"])


# ---- the sockets --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "ttl", "error"),
    [
        ("HUGZ", b"1", None, ValueError),
        ("KTHXBAI", b"1", None, ValueError),
        (b"key", b"1", None, TypeError),
        ("key", "1", None, TypeError),
        ("key", b"1", 0, ValueError),
    ],
)
def test_mistakes_in_an_update(context, key, value, ttl, error):
    with (
        patterns.CloneClient(["inproc://server"], context=context) as client,
        pytest.raises(error),
    ):
        client.set(key, value, ttl=ttl)


def test_subtrees_and_values_that_end(context):
    with patterns.CloneServer("inproc://server", heartbeat=100, context=context) as server:
        running = Background(server.run)
        options = {"resend": 100, "context": context}
        whole = patterns.CloneClient(["inproc://server"], **options)
        part = patterns.CloneClient(["inproc://server"], subtree="/a/", **options)
        with whole, part:
            whole.set("/a/1", b"one")
            whole.set("/b/1", b"two", ttl=0.3)
            until(whole, {"/a/1": b"one", "/b/1": b"two"})
            until(part, {"/a/1": b"one"})
            until(whole, {"/a/1": b"one"})
            part.delete("/a/1")
            until(whole, {})
            assert not whole.wait(0)
            assert whole.is_synced
        server.stop()
        running.result()


def test_three_ports_of_tcp(context):
    endpoint = lasting_endpoint()
    with patterns.CloneServer(endpoint, heartbeat=100, context=context) as server:
        running = Background(server.run)
        with patterns.CloneClient([endpoint], resend=100, context=context) as client:
            client.set("key", b"value")
            until(client, {"key": b"value"})
        server.stop()
        running.result()


def test_a_server_that_comes_back_gets_no_old_updates(context, zmq, directory):
    endpoint = f"ipc://{directory}/server"

    def collector():
        socket = context.socket(zmq.SUB)
        socket.subscribe(b"")
        bind_once_free(zmq, socket, f"{endpoint}+2")
        return socket

    with patterns.CloneClient([endpoint], context=context) as client:
        publisher = client._driver._sockets["publisher"]
        first = collector()
        publisher.wait_subscribed(b"")
        client.set("first", b"1")
        assert first.recv_multipart()[0] == b"first"
        first.close()
        eventually(lambda: not publisher.count_connected())
        client.set("old", b"1")
        second = collector()
        publisher.wait_subscribed(b"")
        client.set("new", b"1")
        assert second.recv_multipart()[0] == b"new"


def until(client, values):
    """Waits until a client has these values."""
    deadline = time.monotonic() + PATIENCE
    while dict(client.values) != values:
        assert time.monotonic() < deadline, dict(client.values)
        client.wait(1000)


# ---- peers that die -----------------------------------------------------------------


@pytest.fixture
def start(peers, directory):
    """Starts one server of a pair; the heartbeat leaves time for a busy machine."""

    def start(form, *, is_primary, here=False):
        names = ("primary", "backup") if is_primary else ("backup", "primary")
        endpoint, peer = (f"ipc://{directory}/{name}" for name in names)
        local, remote = (f"ipc://{directory}/state-of-{name}" for name in names)
        options = {"local": local, "remote": remote, "heartbeat": 250, "is_primary": is_primary}
        if here:
            return patterns.CloneServer(endpoint, peer=peer, **options)
        return peers.start(f"{form}CloneServer", endpoint=endpoint, peer=peer, **options)

    return start


class Following:
    """Calls of a client in either form."""

    def __init__(self, form, servers):
        self._loop = asyncio.new_event_loop()
        self.client = getattr(patterns, f"{form}CloneClient")(servers, ttl=800, resend=200)

    def wait_connected(self):
        """Waits until both servers get the client's updates."""
        self.client._driver._sockets["publisher"].wait_subscribed(b"", 2)

    def wait(self, timeout):
        changed = self.client.wait(timeout)
        return changed if isinstance(changed, bool) else self._loop.run_until_complete(changed)

    @property
    def values(self):
        return self.client.values

    def close(self):
        self.client.close()
        self._loop.close()


@FORMS
def test_the_map_survives_the_death_of_each_server(start, directory, form):
    servers = [f"ipc://{directory}/{name}" for name in ("primary", "backup")]
    primary, backup = start(form, is_primary=True), start(form, is_primary=False)
    assert (primary.line(), backup.line()) == ("has map", "has map")
    with contextlib.closing(Following(form, servers)) as one:
        one.wait_connected()
        one.client.set("before", b"1")
        until(one, {"before": b"1"})
        primary.kill()
        # No server is active now. The backup keeps the update.
        one.client.set("meanwhile", b"2")
        until(one, {"before": b"1", "meanwhile": b"2"})
        with start(form, is_primary=True, here=True) as primary:
            running = Background(primary.run)
            one.client.set("after", b"3")
            until(one, {"before": b"1", "meanwhile": b"2", "after": b"3"})
            eventually(lambda: primary.has_map)
            assert not primary.is_active
            backup.kill()
            one.client.set("before", b"")
            until(one, {"meanwhile": b"2", "after": b"3"})
            assert primary.is_active
            primary.stop()
            running.result()


def test_the_map_survives_a_silent_server(start, directory):
    servers = [f"ipc://{directory}/{name}" for name in ("primary", "backup")]
    primary, backup = start("", is_primary=True), start("", is_primary=False)
    assert (primary.line(), backup.line()) == ("has map", "has map")
    with contextlib.closing(Following("", servers)) as client:
        client.wait_connected()
        client.client.set("before", b"1")
        until(client, {"before": b"1"})
        primary.stop()
        client.client.set("meanwhile", b"2")
        until(client, {"before": b"1", "meanwhile": b"2"})
        primary.resume()
        client.client.set("after", b"3")
        until(client, {"before": b"1", "meanwhile": b"2", "after": b"3"})
