"""Majordomo survives what chapter 4 of the guide says it survives."""

import asyncio

import pytest
from pattern_peers import commands
from support import Background, eventually

import zeroxide as zmq
from zeroxide import patterns
from zeroxide.patterns._heartbeat import Backoff
from zeroxide.patterns._majordomo_client import MajordomoClientMachine
from zeroxide.patterns._majordomo_worker import MajordomoWorkerMachine
from zeroxide.patterns._mdp import MDP_0_1, MDP_0_2

pytestmark = pytest.mark.zeroxide_only

FORMS = pytest.mark.parametrize(
    ("form", "version"), [("", "0.1"), ("Async", "0.2")], ids=["blocking-0.1", "asyncio-0.2"]
)

# Short times, so that the tests are quick. A slow machine makes peers look dead, which they survive.
BEATS = {"heartbeat": 100, "liveness": 3}


def ask(form, endpoint, version, body, service="echo", attempts=None):
    """Sends one request with a client."""
    options = {"timeout": 500, "attempts": attempts, "version": version}
    if not form:
        with patterns.MajordomoClient(endpoint, **options) as client:
            return client.request(service, body)

    async def request():
        async with patterns.AsyncMajordomoClient(endpoint, **options) as client:
            return await client.request(service, body)

    return asyncio.run(request())


# ---- the worker and the client, with a clock of the test ----------------------------


def test_a_worker_that_is_not_known_any_more_registers_at_once():
    worker = MajordomoWorkerMachine(MDP_0_1, "echo", 2500, 3, Backoff(2500, 2500), 0)
    hello = ("queue", MDP_0_1.write_ready(b"echo"))
    assert commands(worker) == [hello]
    worker.handle_message("queue", MDP_0_1.write_heartbeat(), 10)
    worker.handle_message("queue", MDP_0_1.write_disconnect(), 20)
    assert commands(worker) == [("reopen", "queue"), hello]
    # Refused without anything else: not at once again.
    worker.handle_message("queue", MDP_0_1.write_disconnect(), 30)
    assert commands(worker) == []
    assert worker.poll_timeout() == 2530
    worker.handle_timeout(2530)
    assert commands(worker) == [("reopen", "queue"), hello]


def test_a_stream_is_not_repeated():
    client = MajordomoClientMachine(MDP_0_2, 2500, 3)
    client.begin_service(b"echo", [b"1"], 0)
    partial = MDP_0_2.write_reply(b"echo", [b"half"], is_final=False)
    client.handle_message("server", partial, 2000)
    assert client.poll_reply() == [b"half"]
    assert client.is_waiting
    commands(client)
    client.handle_timeout(4500)
    assert commands(client) == []
    with pytest.raises(patterns.NoReply, match="ended after a part"):
        client.poll_reply()


def test_replies_of_other_services_are_dropped():
    client = MajordomoClientMachine(MDP_0_1, 2500, 3)
    client.begin_service(b"echo", [b"1"], 0)
    client.handle_message("server", MDP_0_1.write_reply(b"other", [b"x"], is_final=True), 1)
    client.handle_message("server", [b"x"], 1)
    assert client.poll_reply() is None
    client.handle_message("server", MDP_0_1.write_reply(b"echo", [b"x"], is_final=True), 1)
    assert client.poll_reply() == [b"x"]


# ---- the sockets --------------------------------------------------------------------


def test_bytes_on_the_sockets_are_those_of_the_rfc(sockets, zmq):
    """A REQ and a DEALER that know nothing of the module are client and worker of 0.1."""
    with patterns.MajordomoBroker("inproc://broker", context=sockets.context) as broker:
        running = Background(broker.run)
        worker = sockets.context.socket(zmq.DEALER)
        worker.connect("inproc://broker")
        worker.send_multipart([b"", b"MDPW01", b"\x01", b"echo"])
        client = sockets.context.socket(zmq.REQ)
        client.connect("inproc://broker")
        client.send_multipart([b"MDPC01", b"echo", b"Hello"])
        [*front, address, empty, body] = worker.recv_multipart()
        assert (front, empty, body) == ([b"", b"MDPW01", b"\x02"], b"", b"Hello")
        worker.send_multipart([b"", b"MDPW01", b"\x03", address, b"", b"World"])
        assert client.recv_multipart() == [b"MDPC01", b"echo", b"World"]
        broker.stop()
        running.result()
    assert worker.recv_multipart() == [b"", b"MDPW01", b"\x05"]


def test_partial_replies_arrive_while_the_handler_runs(context):
    endpoint = "inproc://broker"

    async def main():
        release = asyncio.Event()

        async def count(request):
            assert request.service == "count"
            for number in range(int(request.parts[0])):
                request.send_partial(b"%d" % number)
            await release.wait()
            return b"end"

        options = {"version": "0.2", "context": context}
        broker = patterns.AsyncMajordomoBroker(endpoint, context=context)
        worker = patterns.AsyncMajordomoWorker(endpoint, "count", **options)
        client = patterns.AsyncMajordomoClient(endpoint, **options)
        async with broker, worker, client:
            tasks = [asyncio.ensure_future(broker.run()), asyncio.ensure_future(worker.run(count))]
            replies = []
            async for reply in client.stream("count", b"3"):
                replies.append(reply)
                if reply == [b"2"]:
                    release.set()
            assert replies == [[b"0"], [b"1"], [b"2"], [b"end"]]
            # The rest of a stream that was left is not taken for another reply.
            async for _ in client.stream("count", b"3"):
                break
            assert await client.request("count", b"1") == [b"end"]
            assert await client.has_service("count")
            assert not await client.has_service("other")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_an_iteration_ends_when_another_request_is_sent(context):
    def answer(request):
        request.send_partial(b"part of " + request.parts[0])
        return b"end of " + request.parts[0]

    options = {"version": "0.2", "context": context}
    with patterns.MajordomoBroker("inproc://broker", context=context) as broker:
        serving = Background(broker.run)
        with (
            patterns.MajordomoWorker("inproc://broker", "echo", **options) as worker,
            patterns.MajordomoClient("inproc://broker", attempts=None, **options) as client,
        ):
            working = Background(lambda: worker.run(answer))
            one = client.stream("echo", b"one")
            assert next(one) == [b"part of one"]
            assert list(client.stream("echo", b"two")) == [[b"part of two"], [b"end of two"]]
            with pytest.raises(RuntimeError, match="another request has ended this iteration"):
                next(one)
            worker.stop()
            working.result()
        broker.stop()
        serving.result()


def test_version_0_1_has_no_partial_replies(context):
    with (
        patterns.MajordomoBroker("inproc://broker", context=context) as broker,
        patterns.MajordomoWorker("inproc://broker", "echo", context=context) as worker,
    ):
        running = Background(broker.run)
        client = patterns.MajordomoClient("inproc://broker", timeout=300, context=context)
        with client:
            asking = Background(client.request, "echo", b"1")
            with pytest.raises(ValueError, match=r'partial replies need version="0\.2"'):
                worker.run(lambda request: request.send_partial(b"half"))
            broker.stop()
            running.result()
            with pytest.raises(patterns.NoReply):
                asking.result()


def test_two_requests_of_one_asyncio_client_wait_for_each_other(context):
    async def main():
        async def echo(request):
            return request.parts

        broker = patterns.AsyncMajordomoBroker("inproc://broker", context=context)
        worker = patterns.AsyncMajordomoWorker("inproc://broker", "echo", context=context)
        client = patterns.AsyncMajordomoClient("inproc://broker", context=context)
        async with broker, worker, client:
            tasks = [asyncio.ensure_future(broker.run()), asyncio.ensure_future(worker.run(echo))]
            numbers = [[b"%d" % number] for number in range(20)]
            asked = [client.request("echo", number) for number in numbers]
            assert await asyncio.gather(*asked) == numbers
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_a_wrong_version_is_an_error():
    for kind in (patterns.MajordomoClient, patterns.MajordomoWorker):
        arguments = ["tcp://127.0.0.1:1", "echo"][: 1 + (kind is patterns.MajordomoWorker)]
        with pytest.raises(ValueError, match=r'version is "0\.1" or "0\.2", not \'2\''):
            kind(*arguments, version="2")


def test_the_end_of_the_context_ends_a_broker():
    context = zmq.Context()
    broker = patterns.MajordomoBroker("inproc://broker", context=context)
    running = Background(broker.run)
    context.shutdown()
    with pytest.raises(zmq.ContextTerminated):
        running.result()
    broker.close()
    context.term()


# ---- peers that die -----------------------------------------------------------------


@FORMS
def test_majordomo_survives_killed_and_silent_workers(peers, directory, form, version):
    """Two workers die with the request; the client does not ask again, since the broker passes it on."""
    endpoint = f"ipc://{directory}/broker"
    peers.start(f"{form}MajordomoBroker", endpoint=endpoint, **BEATS)
    worker = {"endpoint": endpoint, "service": "echo", "version": version, **BEATS}
    silent = peers.start(f"{form}MajordomoWorker", "silent", hangs=True, **worker)
    options = {"timeout": 40_000, "attempts": 1, "version": version}
    with patterns.MajordomoClient(endpoint, **options) as client:
        request = Background(client.request, "echo", b"1")
        assert silent.line().startswith("got")
        silent.stop()
        killed = peers.start(f"{form}MajordomoWorker", "killed", hangs=True, **worker)
        assert killed.line().startswith("got")
        killed.kill()
        peers.start(f"{form}MajordomoWorker", "last", **worker)
        assert request.result() == [b"last", b"1"]


@FORMS
def test_majordomo_survives_a_killed_and_a_silent_broker(peers, directory, form, version):
    endpoint = f"ipc://{directory}/broker"
    broker = peers.start(f"{form}MajordomoBroker", endpoint=endpoint, **BEATS)
    worker = {"service": "echo", "version": version, "reconnect": 100, **BEATS}
    peers.start(f"{form}MajordomoWorker", "worker", endpoint=endpoint, **worker)
    assert ask(form, endpoint, version, b"1") == [b"worker", b"1"]
    broker.kill()
    broker = peers.start(f"{form}MajordomoBroker", endpoint=endpoint, **BEATS)
    assert ask(form, endpoint, version, b"2") == [b"worker", b"2"]
    broker.stop()
    with pytest.raises(patterns.NoReply):
        ask(form, endpoint, version, b"3", attempts=2)
    broker.resume()
    assert ask(form, endpoint, version, b"4") == [b"worker", b"4"]


def test_a_request_that_kills_three_workers_is_dropped(sockets, zmq):
    options = {"heartbeat": 20, "liveness": 1000, "context": sockets.context}
    with patterns.MajordomoBroker("inproc://broker", **options) as broker:
        running = Background(broker.run)
        client = sockets.context.socket(zmq.REQ)
        client.connect("inproc://broker")
        client.send_multipart([b"MDPC01", b"echo", b"poison"])
        for _ in range(3):
            worker = sockets.context.socket(zmq.DEALER)
            worker.connect("inproc://broker")
            worker.send_multipart([b"", b"MDPW01", b"\x01", b"echo"])
            while worker.recv_multipart()[-1] != b"poison":
                pass  # a heartbeat
            worker.close()
        eventually(lambda: broker.dropped == 1)
        broker.stop()
        running.result()


def test_majordomo_forgets_a_killed_worker(peers, directory):
    endpoint = f"ipc://{directory}/broker"
    peers.start("MajordomoBroker", endpoint=endpoint, **BEATS)
    worker = peers.start("MajordomoWorker", "worker", endpoint=endpoint, service="echo", **BEATS)
    with patterns.MajordomoClient(endpoint, attempts=None) as client:
        eventually(lambda: client.has_service("echo"))
        worker.kill()
        eventually(lambda: not client.has_service("echo"))
