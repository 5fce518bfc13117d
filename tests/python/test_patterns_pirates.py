"""Lazy, Simple and Paranoid Pirate survive what chapter 4 of the guide says they survive."""

import asyncio
import itertools

import pytest
from pattern_peers import commands
from support import Background, eventually

from zeroxide import ZMQError, patterns
from zeroxide.patterns._binary_star import BinaryStarMachine
from zeroxide.patterns._binary_star_state import PairState
from zeroxide.patterns._freelance import FreelanceServerMachine
from zeroxide.patterns._heartbeat import Backoff
from zeroxide.patterns._paranoid_pirate import ParanoidQueueMachine, ParanoidWorkerMachine
from zeroxide.patterns._retrying import LINK, RetryMachine
from zeroxide.patterns._shotgun import ShotgunServerMachine
from zeroxide.patterns._simple_pirate import SimpleQueueMachine, SimpleWorkerMachine
from zeroxide.patterns._waiting import MAX_REQUEST_BYTES, MAX_REQUESTS

pytestmark = pytest.mark.zeroxide_only

FORMS = pytest.mark.parametrize("form", ["", "Async"], ids=["blocking", "asyncio"])

# Short times, so that the tests are quick. A slow machine makes peers look dead, which they survive.
BEATS = {"heartbeat": 100, "liveness": 3}


def ask(form: str, endpoint: str, body: bytes, attempts: int | None = None) -> list[bytes]:
    """Sends one request with a Lazy Pirate client."""
    options = {"timeout": 400, "attempts": attempts}
    if not form:
        with patterns.LazyPirateClient(endpoint, **options) as client:
            return client.request(body)

    async def request() -> list[bytes]:
        async with patterns.AsyncLazyPirateClient(endpoint, **options) as client:
            return await client.request(body)

    return asyncio.run(request())


def paranoid_worker():
    return ParanoidWorkerMachine(1000, 3, Backoff(1000, 32_000), 0)


# ---- the machines, with a clock of the test -----------------------------------------


def test_a_request_is_repeated_on_a_new_socket_and_given_up():
    client = RetryMachine(1, timeout=2500, attempts=3)
    client.begin([b"one"], 0)
    assert commands(client) == [(LINK, [b"one"])]
    for attempt in (1, 2):
        assert client.poll_timeout() == 2500 * attempt
        client.handle_timeout(2500 * attempt - 1)
        assert commands(client) == []
        client.handle_timeout(2500 * attempt)
        assert commands(client) == [("reopen", LINK), (LINK, [b"one"])]
    client.handle_timeout(7500)
    with pytest.raises(patterns.NoReply, match="no reply in 3 attempts of 2500 ms each"):
        client.poll_reply()
    assert client.poll_timeout() is None


def test_a_request_after_one_without_reply_has_a_new_socket():
    client = RetryMachine(1, timeout=10, attempts=1)
    client.begin([b"one"], 0)
    client.handle_timeout(10)
    commands(client)
    client.begin([b"two"], 20)
    assert commands(client) == [("reopen", LINK), (LINK, [b"two"])]
    client.handle_message(LINK, [b"reply"], 21)
    assert client.poll_reply() == [b"reply"]
    assert client.poll_reply() is None
    client.begin([b"three"], 30)
    assert commands(client) == [(LINK, [b"three"])]


def test_simple_queue_uses_the_worker_that_is_idle_for_the_longest_time():
    queue = SimpleQueueMachine()
    assert not queue.wants("frontend")
    for worker in (b"A", b"B"):
        queue.handle_message("backend", [worker, b"", b"\x01"], 0)
    for number in (b"1", b"2"):
        assert queue.wants("frontend")
        queue.handle_message("frontend", [b"client", b"", number, b"more"], 0)
    assert not queue.wants("frontend")
    assert commands(queue) == [
        ("backend", [b"A", b"", b"client", b"", b"1", b"more"]),
        ("backend", [b"B", b"", b"client", b"", b"2", b"more"]),
    ]
    queue.handle_message("backend", [b"B", b"", b"client", b"", b"done"], 0)
    assert commands(queue) == [("frontend", [b"client", b"", b"done"])]
    queue.handle_message("frontend", [b"client", b"", b"3"], 0)
    assert commands(queue) == [("backend", [b"B", b"", b"client", b"", b"3"])]


def test_simple_queue_passes_the_request_of_a_worker_that_has_gone_to_the_next():
    queue = SimpleQueueMachine()
    for worker in (b"A", b"B"):
        queue.handle_message("backend", [worker, b"", b"\x01"], 0)
    queue.handle_message("frontend", [b"client", b"", b"1"], 0)
    [(link, parts)] = commands(queue)
    queue.handle_unroutable(link, parts, 0)
    assert commands(queue) == [("backend", [b"B", b"", b"client", b"", b"1"])]


@pytest.mark.parametrize(
    "parts",
    [[b"client"], [b"client", b""], [b"client", b"x"], [b"client", b"x", b"1"], [b"", b""]],
)
def test_a_message_that_is_no_request_costs_no_worker(parts):
    for queue in (SimpleQueueMachine(), ParanoidQueueMachine(1000, 3)):
        ready = [b""] if isinstance(queue, SimpleQueueMachine) else []
        queue.handle_message("backend", [b"A", *ready, b"\x01"], 0)
        queue.handle_message("frontend", parts, 0)
        assert commands(queue) == []
        assert queue.dropped == 1
        assert queue.wants("frontend")


@pytest.mark.parametrize("parts", [[b"client"], [b"client", b""], [b"client", b"x", b"1"]])
def test_a_handler_gets_no_request_without_parts(parts):
    for worker in (SimpleWorkerMachine(), paranoid_worker()):
        worker.handle_message("queue", parts, 0)
        assert worker.poll_request() is None
        assert worker.dropped == 1


def test_simple_queue_remembers_a_limited_number_of_workers(monkeypatch):
    monkeypatch.setattr("zeroxide.patterns._simple_pirate.MAX_READY", 2)
    queue = SimpleQueueMachine()
    for worker in (b"A", b"B", b"C"):
        queue.handle_message("backend", [worker, b"", b"\x01"], 0)
    assert list(queue._ready) == [b"A", b"B"]
    assert queue.dropped == 1


def test_simple_worker_answers_to_the_client_of_the_request():
    worker = SimpleWorkerMachine()
    assert commands(worker) == [("queue", [b"\x01"])]
    worker.handle_message("queue", [b"client", b"", b"1", b"2"], 0)
    request = worker.poll_request()
    assert request == [b"1", b"2"]
    worker.handle_reply(request, [b"3"], 0)
    assert commands(worker) == [("queue", [b"client", b"", b"3"])]


def test_paranoid_queue_forgets_a_silent_worker():
    queue = ParanoidQueueMachine(1000, 3)
    queue.handle_message("backend", [b"A", b"\x01"], 0)
    queue.handle_message("backend", [b"B", b"\x01"], 0)
    for now in (1000, 2000):
        queue.handle_message("backend", [b"B", b"\x02"], now)
        assert queue.poll_timeout() == now
        queue.handle_timeout(now)
        assert commands(queue) == [("backend", [b"A", b"\x02"]), ("backend", [b"B", b"\x02"])]
    queue.handle_timeout(3000)
    queue.handle_message("frontend", [b"client", b"", b"1"], 3000)
    assert commands(queue) == [
        ("backend", [b"B", b"\x02"]),
        ("backend", [b"B", b"client", b"", b"1"]),
    ]
    assert not queue.wants("frontend")


def test_a_heartbeat_makes_an_unknown_worker_ready_but_not_a_busy_one():
    queue = ParanoidQueueMachine(1000, 3)
    queue.handle_message("backend", [b"A", b"\x02"], 0)
    assert queue.wants("frontend")
    queue.handle_message("frontend", [b"client", b"", b"1"], 0)
    queue.handle_message("backend", [b"A", b"\x02"], 1)
    assert not queue.wants("frontend")
    queue.handle_message("backend", [b"A", b"client", b"", b"done"], 2)
    assert queue.wants("frontend")
    assert commands(queue)[-1] == ("frontend", [b"client", b"", b"done"])


def test_paranoid_queue_passes_the_request_of_a_worker_that_has_gone_to_the_next():
    queue = ParanoidQueueMachine(1000, 3)
    for worker in (b"A", b"B"):
        queue.handle_message("backend", [worker, b"\x01"], 0)
    queue.handle_message("frontend", [b"client", b"", b"1"], 0)
    [(link, parts)] = commands(queue)
    queue.handle_unroutable(link, parts, 0)
    assert commands(queue) == [("backend", [b"B", b"client", b"", b"1"])]


def test_paranoid_worker_waits_longer_before_each_new_connection():
    worker = ParanoidWorkerMachine(1000, 3, Backoff(1000, 4000), 0)
    assert commands(worker) == [("queue", [b"\x01"])]
    now = 0.0
    for wait in (1000, 2000, 4000, 4000):
        for _ in range(2):
            now += 1000
            worker.handle_timeout(now)
            assert commands(worker) == [("queue", [b"\x02"])]
        now += 1000
        worker.handle_timeout(now)
        assert commands(worker) == []
        assert worker.poll_timeout() == now + wait
        now += wait
        worker.handle_timeout(now)
        assert commands(worker) == [("reopen", "queue"), ("queue", [b"\x01"])]
    # A heartbeat of the queue ends this.
    worker.handle_message("queue", [b"\x02"], now)
    worker.handle_timeout(now + 3000)
    assert worker.poll_timeout() == now + 3000 + 1000


def test_a_limited_number_of_requests_waits_for_a_handler():
    worker = ParanoidWorkerMachine(1000, 3, Backoff(1000, 4000), 0)
    for number in range(MAX_REQUESTS + 5):
        worker.handle_message("queue", [b"client", b"", b"%d" % number], 0)
    assert worker.dropped == 5
    taken = 0
    while (found := worker.poll_request()) is not None:
        worker.handle_reply(found, [b"reply"], 0)
        taken += 1
    assert taken == MAX_REQUESTS


def taken_by(machine, link, request):
    """How many requests a machine takes, each of which has 1 MiB, until it drops one or stops receiving."""
    for count in range(MAX_REQUESTS):
        if not machine.wants(link):
            return count
        machine.handle_message(link, [*request, bytes(1 << 20)], 0)
        if machine.dropped:
            return count
    return MAX_REQUESTS


@pytest.mark.parametrize(
    ("machine", "link", "request_"),
    [
        (ParanoidWorkerMachine(1000, 3, Backoff(1000, 4000), 0), "queue", [b"client", b""]),
        (FreelanceServerMachine(), "clients", [b"client", b"1"]),
        (ShotgunServerMachine(), "clients", [b"client", b"", b"1"]),
        (BinaryStarMachine(PairState(True, 1000, 0), None), "clients", [b"client", b""]),
    ],
    ids=["paranoid", "freelance", "shotgun", "binary star"],
)
def test_large_requests_that_wait_for_a_handler_are_limited_in_bytes(machine, link, request_):
    if isinstance(machine, BinaryStarMachine):
        machine.handle_message("peer", [b"2"], 0)  # the peer is a backup, so this server is active
    most = MAX_REQUEST_BYTES >> 20
    assert most - 1 <= taken_by(machine, link, request_) <= most
    assert machine.poll_request() is not None
    dropped = machine.dropped
    machine.handle_message(link, [*request_, b"there is room again"], 0)
    assert machine.dropped == dropped


def test_paranoid_worker_has_no_reply_for_a_queue_that_died():
    worker = ParanoidWorkerMachine(1000, 3, Backoff(1000, 4000), 0)
    worker.handle_message("queue", [b"client", b"", b"1"], 0)
    request = worker.poll_request()
    worker.handle_timeout(3000)
    worker.handle_timeout(4000)
    commands(worker)
    worker.handle_reply(request, [b"late"], 4001)
    assert commands(worker) == []


@pytest.mark.parametrize(
    "parts", [[], [b"A"], [b"A", b""], [b"A", b"\x03"], [b"A", b"b", b"c"], [b"A", b"", b"\x02"]]
)
def test_queues_ignore_what_no_worker_sends(parts):
    for queue in (SimpleQueueMachine(), ParanoidQueueMachine(1000, 3)):
        queue.handle_message("backend", parts, 0)
        assert not queue.wants("frontend")
        assert commands(queue) == []


def test_backoff_doubles_up_to_its_limit():
    backoff = Backoff(1000, 32_000)
    waits = [backoff.wait() for _ in range(8)]
    assert waits == [1000, 2000, 4000, 8000, 16_000, 32_000, 32_000, 32_000]
    backoff.reset()
    assert backoff.wait() == 1000


# ---- the sockets --------------------------------------------------------------------


def test_a_queue_stops_in_another_thread(context):
    with patterns.ParanoidPirateQueue("inproc://a", "inproc://b", context=context) as queue:
        running = Background(queue.run)
        queue.stop()
        running.result()


def test_a_closed_client_opens_no_socket(context):
    client = patterns.LazyPirateClient("inproc://nobody", timeout=1, attempts=1, context=context)
    with pytest.raises(patterns.NoReply):
        client.request(b"one")
    client.close()
    # An attempt without a reply would have another socket, and the end of the context would wait for it.
    with pytest.raises(ZMQError, match="this object is closed"):
        client.request(b"two")
    client.close()
    context.term()


def test_an_error_while_closing_leaves_no_socket(context, monkeypatch):
    client = patterns.LazyPirateClient("inproc://nobody", context=context)
    monkeypatch.setattr(client._machine, "handle_close", lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        client.close()
    context.term()


def test_a_closed_server_does_not_run(context):
    queue = patterns.ParanoidPirateQueue("inproc://clients", "inproc://workers", context=context)
    queue.close()
    with pytest.raises(ZMQError, match="this object is closed"):
        queue.run()
    assert queue._driver._wake is None


@pytest.mark.parametrize("kind", ["queue", "client"])
def test_a_task_that_waits_for_a_closed_object_gets_an_error(context, kind):
    async def wait():
        if kind == "queue":
            peer = patterns.AsyncParanoidPirateQueue("inproc://a", "inproc://b", context=context)
            task = asyncio.ensure_future(peer.run())
        else:
            peer = patterns.AsyncLazyPirateClient("inproc://a", attempts=None, context=context)
            task = asyncio.ensure_future(peer.request(b"one"))
        while peer._driver._waiting is None:
            await asyncio.sleep(0)
        peer.close()
        # The task itself was not cancelled, so it does not look cancelled.
        with pytest.raises(ZMQError, match="this object is closed"):
            await task

    asyncio.run(wait())


def test_what_cannot_be_used_is_counted(context, zmq):
    with patterns.ParanoidPirateQueue("inproc://c", "inproc://w", context=context) as queue:
        assert queue.dropped == 0
        running = Background(queue.run)
        with context.socket(zmq.DEALER) as worker:
            worker.connect("inproc://w")
            worker.send_multipart([b"rubbish"] * 5)
            eventually(lambda: queue.dropped == 1)
        queue.stop()
        running.result()


def test_an_error_of_the_handler_ends_the_worker(context):
    with patterns.ParanoidPirateQueue("inproc://a", "inproc://b", context=context) as queue:
        running = Background(queue.run)
        client = patterns.LazyPirateClient(
            "inproc://a", timeout=200, attempts=None, context=context
        )
        worker = patterns.ParanoidPirateWorker("inproc://b", context=context)
        with client, worker:
            request = Background(client.request, b"0")
            with pytest.raises(ZeroDivisionError):
                worker.run(lambda parts: b"%d" % (1 // int(parts[0])))
            with patterns.ParanoidPirateWorker("inproc://b", context=context) as another:
                answering = Background(another.run, lambda parts: b"infinity")
                assert request.result() == [b"infinity"]
                another.stop()
                answering.result()
        queue.stop()
        running.result()


def test_an_error_of_a_coroutine_ends_the_worker(context):
    async def fail(parts):
        raise ZeroDivisionError

    async def main():
        queue = patterns.AsyncParanoidPirateQueue("inproc://a", "inproc://b", context=context)
        client = patterns.AsyncLazyPirateClient("inproc://a", context=context)
        worker = patterns.AsyncParanoidPirateWorker("inproc://b", context=context)
        async with queue, client, worker:
            tasks = [asyncio.ensure_future(queue.run())]
            tasks.append(asyncio.ensure_future(client.request(b"0")))
            with pytest.raises(ZeroDivisionError):
                await worker.run(fail)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_options_are_set_before_a_socket_binds(context):
    def configure(socket):
        assert not socket.last_endpoint
        socket.maxmsgsize = 1

    options = {"context": context, "configure": configure}
    with patterns.SimplePirateQueue("tcp://127.0.0.1:*", "tcp://127.0.0.1:*", **options) as queue:
        assert queue.frontend.startswith("tcp://127.0.0.1:")
        assert queue.backend != queue.frontend


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"endpoint": "server"}, ValueError, "is not an endpoint"),
        ({"timeout": -1}, ValueError, "timeout must be at least 0"),
        ({"attempts": 0}, ValueError, "attempts must be at least 1"),
        ({"configure": 3}, TypeError, "configure takes a function of a socket, not 3"),
    ],
)
def test_mistakes_name_the_argument(wrong, error, text):
    with pytest.raises(error, match=text):
        patterns.LazyPirateClient(**{"endpoint": "tcp://127.0.0.1:1"} | wrong)


@pytest.mark.parametrize("body", ["text", 5, [b"a", "b"]])
def test_a_body_is_bytes(context, body):
    with (
        patterns.LazyPirateClient("inproc://a", context=context) as client,
        pytest.raises(TypeError, match="message is bytes"),
    ):
        client.request(body)


# ---- peers that die -----------------------------------------------------------------


@FORMS
def test_lazy_pirate_survives_a_killed_server(peers, directory, form):
    """The server dies with the request, so no socket would repeat it."""
    front, back = f"ipc://{directory}/front", f"ipc://{directory}/back"
    queue = peers.start("SimplePirateQueue", frontend=front, backend=back)
    worker = peers.start("SimplePirateWorker", "first", hangs=True, endpoint=back)
    request = Background(ask, form, front, b"1")
    assert worker.line().startswith("got")
    worker.kill()
    queue.kill()
    peers.start("SimplePirateQueue", frontend=front, backend=back)
    peers.start("SimplePirateWorker", "second", endpoint=back)
    assert request.result() == [b"second", b"1"]


@FORMS
def test_lazy_pirate_gives_up_on_a_silent_server_and_takes_no_late_reply(peers, directory, form):
    front, back = f"ipc://{directory}/front", f"ipc://{directory}/back"
    queue = peers.start("SimplePirateQueue", frontend=front, backend=back)
    peers.start("SimplePirateWorker", "worker", endpoint=back)
    with patterns.LazyPirateClient(front, timeout=200, attempts=2) as client:
        queue.stop()
        with pytest.raises(patterns.NoReply):
            client.request(b"1")
        queue.resume()
        for number in range(2, 5):
            assert ask(form, front, b"%d" % number) == [b"worker", b"%d" % number]
    assert ask(form, front, b"5") == [b"worker", b"5"]


@FORMS
def test_simple_pirate_survives_a_killed_worker(peers, directory, form):
    front, back = f"ipc://{directory}/front", f"ipc://{directory}/back"
    peers.start(f"{form}SimplePirateQueue", frontend=front, backend=back)
    first = peers.start(f"{form}SimplePirateWorker", "first", hangs=True, endpoint=back)
    request = Background(ask, form, front, b"1")
    assert first.line().startswith("got")
    first.kill()
    peers.start(f"{form}SimplePirateWorker", "second", endpoint=back)
    assert request.result() == [b"second", b"1"]
    for number in range(2, 5):
        assert ask(form, front, b"%d" % number) == [b"second", b"%d" % number]


@FORMS
def test_simple_pirate_survives_a_silent_worker(peers, directory, form):
    front, back = f"ipc://{directory}/front", f"ipc://{directory}/back"
    peers.start(f"{form}SimplePirateQueue", frontend=front, backend=back)
    first = peers.start(f"{form}SimplePirateWorker", "first", endpoint=back)
    assert ask(form, front, b"1") == [b"first", b"1"]
    first.stop()
    request = Background(ask, form, front, b"2")
    peers.start(f"{form}SimplePirateWorker", "second", endpoint=back)
    assert request.result() == [b"second", b"2"]
    # The queue does not notice that the worker was silent, and uses it again when it has replied.
    first.resume()
    numbers = itertools.count(3)
    eventually(lambda: ask(form, front, b"%d" % next(numbers))[0] == b"first")


@FORMS
def test_paranoid_pirate_survives_killed_and_silent_workers(peers, directory, form):
    front, back = f"ipc://{directory}/front", f"ipc://{directory}/back"
    peers.start(f"{form}ParanoidPirateQueue", frontend=front, backend=back, **BEATS)
    workers = [
        peers.start(f"{form}ParanoidPirateWorker", name, endpoint=back, **BEATS)
        for name in ("first", "second", "third")
    ]
    served = {ask(form, front, b"%d" % number)[0] for number in range(3)}
    eventually(lambda: served.add(ask(form, front, b"again")[0]) or len(served) == 3)
    workers[0].stop()
    workers[1].kill()
    for number in range(4):
        assert ask(form, front, b"%d" % number) == [b"third", b"%d" % number]
    workers[0].resume()
    # The queue takes it back with its next heartbeat.
    numbers = itertools.count()
    eventually(lambda: ask(form, front, b"%d" % next(numbers))[0] == b"first")


@FORMS
def test_paranoid_pirate_survives_a_killed_and_a_silent_queue(peers, directory, form):
    front, back = f"ipc://{directory}/front", f"ipc://{directory}/back"
    queue = peers.start(f"{form}ParanoidPirateQueue", frontend=front, backend=back, **BEATS)
    peers.start(f"{form}ParanoidPirateWorker", "worker", endpoint=back, reconnect=100, **BEATS)
    assert ask(form, front, b"1") == [b"worker", b"1"]
    queue.kill()
    queue = peers.start(f"{form}ParanoidPirateQueue", frontend=front, backend=back, **BEATS)
    assert ask(form, front, b"2") == [b"worker", b"2"]
    queue.stop()
    with pytest.raises(patterns.NoReply):
        ask(form, front, b"3", attempts=2)
    queue.resume()
    assert ask(form, front, b"4") == [b"worker", b"4"]


def test_paranoid_worker_of_asyncio_lives_while_its_handler_waits(peers, directory):
    """Its heartbeats continue: after many times the limit it still has the request, and no other."""
    front, back = f"ipc://{directory}/front", f"ipc://{directory}/back"
    peers.start("ParanoidPirateQueue", frontend=front, backend=back, **BEATS)

    async def main():
        requests, release = asyncio.Queue(), asyncio.Event()

        async def answer(parts):
            await requests.put(parts)
            await release.wait()
            return parts

        async with patterns.AsyncParanoidPirateWorker(back, **BEATS) as worker:
            running = asyncio.ensure_future(worker.run(answer))
            client = patterns.AsyncLazyPirateClient(front, timeout=20_000)
            async with client:
                reply = asyncio.ensure_future(client.request(b"1"))
                assert await requests.get() == [b"1"]
                beats, beating = [], asyncio.Event()
                send = worker._machine._send

                def count(link, *parts):
                    beats.append(parts)
                    send(link, *parts)
                    if len(beats) == 8:
                        beating.set()

                worker._machine._send = count
                await beating.wait()
                assert set(beats) == {(b"\x02",)}
                release.set()
                assert await reply == [b"1"]
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())
