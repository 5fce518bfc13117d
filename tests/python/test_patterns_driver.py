"""What runs the patterns: the ends of its blocking form."""

import asyncio
import contextlib
import gc
import os
import threading
import weakref

import pytest
from support import PATIENCE, Background, run_script

from zeroxide import ROUTER, ZMQError, patterns

pytestmark = pytest.mark.zeroxide_only


@pytest.fixture
def cache(context):
    with patterns.LastValueCache("inproc://in", "inproc://out", context=context) as cache:
        # What `run` does first.
        cache._driver.prepare_stop()
        yield cache


def test_stop_never_waits(cache):
    """A pipe has room for 65,536 bytes."""

    def stop():
        for _ in range(70_000):
            cache.stop()

    Background(stop).result()
    cache.run()


def test_stop_does_not_use_what_close_has_closed(cache, monkeypatch):
    """The descriptor may belong to another file by then."""
    closed = []

    def close(descriptor, real=os.close):
        real(descriptor)
        closed.append(descriptor)
        cache.stop()

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", close)
        cache.close()
    assert len(closed) == 2
    cache.stop()


def test_stop_in_a_forked_child_does_not_affect_the_parent(zmq):
    """A handler of SIGTERM that calls `stop` is inherited, and another thread may hold the lock at the fork."""
    output, _ = run_script(
        zmq.__name__,
        """
        import os, signal, threading
        from zeroxide import patterns

        context = zmq.Context()
        with patterns.LastValueCache("inproc://in", "inproc://out", context=context) as cache:
            driver = cache._driver
            driver.prepare_stop()
            held, done = threading.Event(), threading.Event()

            def hold():
                with driver._wake_lock:
                    held.set()
                    done.wait()

            holder = threading.Thread(target=hold)
            holder.start()
            held.wait()
            pid = os.fork()
            if not pid:
                signal.alarm(20)  # ends a child that hangs
                cache.stop()
                os._exit(0)
            done.set()
            holder.join()
            print(os.waitpid(pid, 0)[1], driver.is_stopped)
            try:
                print(os.read(driver._wake[0], 1))
            except BlockingIOError:
                print("the pipe is empty")
        """,
    )
    assert output == "0 False\nthe pipe is empty\n"


def test_a_step_empties_the_pipe_of_stop(cache):
    """Otherwise each of the following steps would return at once."""
    cache.stop()
    cache._driver.step(0)
    with pytest.raises(BlockingIOError):
        os.read(cache._driver._wake[0], 1)


SERVERS = pytest.mark.parametrize(
    ("open_server", "arguments"),
    [
        (lambda c: patterns.LastValueCache("inproc://in", "inproc://out", context=c), []),
        (lambda c: patterns.ShotgunServer("inproc://server", context=c), [lambda request: b""]),
    ],
    ids=["proxy", "worker"],
)


@SERVERS
def test_a_server_runs_again_after_stop(context, open_server, arguments):
    with open_server(context) as server:
        for _ in range(2):
            polled = threading.Event()
            server._driver._machine.poll_timeout = polled.set  # it returns None: nothing is due
            running = Background(server.run, *arguments)
            assert polled.wait(PATIENCE)
            server.stop()
            running.result()


@SERVERS
def test_stop_before_run_ends_one_run_only(context, open_server, arguments):
    with open_server(context) as server:
        server.stop()
        server.stop()
        assert server._driver.is_stopped
        Background(server.run, *arguments).result()
        assert not server._driver.is_stopped


@SERVERS
def test_a_stop_before_an_exception_ends_the_next_run(context, open_server, arguments, monkeypatch):
    with open_server(context) as server:

        def step(*_: object) -> None:
            server.stop()
            raise ValueError

        with monkeypatch.context() as patch, pytest.raises(ValueError):
            patch.setattr(server._driver, "step", step)
            server.run(*arguments)
        Background(server.run, *arguments).result()


# ---- the asyncio forms of the clients -----------------------------------------------

ASYNC_CLIENTS = pytest.mark.parametrize(
    ("open_client", "ask"),
    [
        (patterns.AsyncLazyPirateClient, lambda client, body: client.request(body)),
        (lambda e, **o: patterns.AsyncFailoverClient([e], **o), lambda c, body: c.request(body)),
        (lambda e, **o: patterns.AsyncBinaryStarClient([e], **o), lambda c, body: c.request(body)),
        (lambda e, **o: patterns.AsyncShotgunClient([e], **o), lambda c, body: c.request(body)),
        (patterns.AsyncMajordomoClient, lambda client, body: client.request("service", body)),
    ],
    ids=["lazy pirate", "failover", "binary star", "shotgun", "majordomo"],
)


@pytest.fixture
def echo(context):
    """A server for all of these clients, which returns their messages with `re:` before the last part."""
    server = context.socket(ROUTER)
    server.bind("inproc://echo")

    def serve():
        with contextlib.suppress(ZMQError):
            while True:
                *envelope, body = server.recv_multipart()
                server.send_multipart([*envelope, b"re:" + body])

    serving = Background(serve)
    yield "inproc://echo"
    context.destroy(linger=0)
    serving.result()


@ASYNC_CLIENTS
def test_tasks_of_several_loops_one_after_the_other_use_a_client(context, echo, open_client, ask):
    client = open_client(echo, context=context)
    loops = weakref.WeakSet()

    async def use():
        loops.add(asyncio.get_running_loop())
        return await asyncio.gather(*(ask(client, b"%d" % number) for number in range(3)))

    for _ in range(2):
        assert asyncio.run(use()) == [[b"re:0"], [b"re:1"], [b"re:2"]]
    client.close()
    gc.collect()
    assert not loops, "the client keeps no loop alive"
