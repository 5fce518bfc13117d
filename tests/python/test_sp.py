"""The scalability protocols: SURVEYOR, RESPONDENT, BUS, and types of ZeroMQ with WIRE_PROTOCOL."""

import asyncio
import contextlib
import errno
import importlib
import os
import threading
import time

import pytest
from certificates import Authority
from support import PATIENCE, Background, eventually

pytestmark = pytest.mark.zeroxide_only

BODIES = [b"", b"x" * 65, b"y" * 66, b"z" * 100_000]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def pair(zmq, sockets, transport, authority):
    """Makes two sockets that speak SP, connected."""

    def make(bound, connected):
        one, other = (sockets.context.socket(kind) for kind in (bound, connected))
        for socket in (one, other):
            socket.wire_protocol = zmq.SP
            if socket.type == zmq.SUB:
                socket.subscribe("")
        if transport in ("tls+tcp", "wss"):
            identity = authority.issue("server", "IP:127.0.0.1")
            one.tls_certificate, one.tls_key = map(bytes, identity)
            other.tls_ca = bytes(authority.certificate)
        is_tcp = transport not in ("ipc", "inproc")
        one.bind(f"{transport}://127.0.0.1:*" if is_tcp else sockets.endpoint(transport))
        other.connect(one.last_endpoint.decode())
        for socket in (one, other):
            socket.wait_connected(timeout=PATIENCE * 1000)
        return one, other

    return make


def errno_of(zmq, call):
    with pytest.raises(zmq.ZMQError) as caught:
        call()
    return caught.value.errno


@pytest.mark.cell(transport="{transport}", types="{names}", peer="zeroxide", sp=True)
@pytest.mark.parametrize("transport", ["tcp", "ipc", "inproc", "ws", "tls+tcp", "wss"])
@pytest.mark.parametrize(
    "names",
    ["PAIR PAIR", "PUSH PULL", "PUB SUB", "REQ REP", "SURVEYOR RESPONDENT", "BUS BUS"],
)
def test_types_and_batches(zmq, pair, names):
    first, second = pair(*(getattr(zmq, name) for name in names.split()))
    for body in BODIES:
        first.send_multipart([body])
        [received] = second.recv_multipart(copy=False)
        assert received.bytes == body and not received.more
        if names not in ("PUSH PULL", "PUB SUB"):
            second.send(body)
            assert first.recv() == body
    for refused in (
        lambda: first.send_multipart([b"1", b"2"]),
        lambda: first.send(b"", zmq.SNDMORE),
    ):
        assert errno_of(zmq, refused) == errno.EINVAL
    if names.split()[0] in ("PAIR", "PUSH", "PUB", "BUS"):
        assert first.send_batch(BODIES) == len(BODIES)
        assert [second.recv() for _ in BODIES] == BODIES


@pytest.mark.parametrize("transport", ["tcp", "inproc"])
def test_the_end_of_a_survey(zmq, pair):
    surveyor, respondent = pair(zmq.SURVEYOR, zmq.RESPONDENT)
    assert errno_of(zmq, surveyor.recv) == zmq.EFSM
    assert errno_of(zmq, lambda: respondent.send(b"unasked")) == zmq.EFSM
    surveyor.survey_timeout = 20
    surveyor.send(b"?")
    assert respondent.recv() == b"?"
    poller = zmq.Poller()
    poller.register(surveyor, zmq.POLLIN)
    assert poller.poll(PATIENCE * 1000) == [(surveyor, zmq.POLLIN)]
    with pytest.raises(zmq.ZMQError, match="SURVEY_TIMEOUT is 20 ms") as caught:
        surveyor.recv()
    assert caught.value.errno == errno.ETIMEDOUT
    assert poller.poll(0) == []


@pytest.mark.parametrize("transport", ["tcp", "ws", "inproc"])
def test_late_answers_are_dropped_without_another_survey(zmq, pair):
    surveyor, respondent = pair(zmq.SURVEYOR, zmq.RESPONDENT)
    surveyor.survey_timeout = 20
    surveyor.send(b"who?")
    assert respondent.recv() == b"who?"
    assert errno_of(zmq, surveyor.recv) == errno.ETIMEDOUT
    respondent.send(b"late")
    eventually(lambda: surveyor.stats()["dropped"]["stale"] == 1)
    assert surveyor.stats()["queued_in"] == 0


@pytest.mark.parametrize("transport", ["tcp", "ws", "inproc"])
def test_answers_for_closed_contexts_are_dropped(zmq, pair):
    surveyor, respondent = pair(zmq.SURVEYOR, zmq.RESPONDENT)
    with surveyor.open_context() as context:
        context.send(b"who?")
        assert respondent.recv() == b"who?"
    respondent.send(b"unread")
    eventually(lambda: surveyor.stats()["dropped"]["stale"] == 1)
    assert surveyor.stats()["queued_in"] == 0


@pytest.mark.parametrize("transport", ["tcp"])
def test_surveys_of_asyncio(zmq, transport, sockets):
    module = importlib.import_module(f"{zmq.__name__}.asyncio")

    async def answer(respondent):
        while True:
            question = await respondent.recv()
            await respondent.send(question + b"!")

    async def main():
        with module.Context() as context:
            surveyor = context.socket(zmq.SURVEYOR)
            surveyor.survey_timeout = 1000
            surveyor.bind(sockets.endpoint(transport))
            tasks = []
            for _ in range(3):
                respondent = context.socket(zmq.RESPONDENT)
                respondent.connect(surveyor.last_endpoint.decode())
                tasks.append(asyncio.create_task(answer(respondent)))
            await surveyor.wait_connected(count=3)
            for question in (b"1", b"2"):
                await surveyor.send(question)
                assert [await surveyor.recv() for _ in tasks] == [question + b"!"] * 3
                with pytest.raises(zmq.ZMQError) as caught:
                    await asyncio.wait_for(surveyor.recv(), PATIENCE)
                assert caught.value.errno == errno.ETIMEDOUT
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            context.destroy(linger=0)

    asyncio.run(main())


def test_an_answer_that_arrives_in_time_while_the_loop_is_busy(zmq, sockets):
    module = importlib.import_module(f"{zmq.__name__}.asyncio")
    rep, req = (sockets.context.socket(kind) for kind in (zmq.REP, zmq.REQ))
    rep.wire_protocol = req.wire_protocol = zmq.SP
    rep.bind(sockets.endpoint("inproc"))
    req.connect(rep.last_endpoint.decode())

    async def main():
        with module.Socket(shadow=req).open_context() as context:
            req.rcvtimeo = 200
            await context.send(b"?")
            waiting = asyncio.ensure_future(context.recv())
            await asyncio.sleep(0)
            assert rep.recv() == b"?"
            rep.send(b"!")
            time.sleep(0.3)
            assert await waiting == b"!"

    asyncio.run(main())


def test_each_context_has_its_own_request(zmq, sockets):
    rep, req = (sockets.context.socket(kind) for kind in (zmq.REP, zmq.REQ))
    rep.wire_protocol = req.wire_protocol = zmq.SP
    rep.bind(sockets.endpoint("tcp"))
    req.connect(rep.last_endpoint.decode())
    contexts = [req.open_context() for _ in range(3)]
    for number, context in enumerate(contexts):
        context.send(b"%d" % number)
    questions = [rep.open_context() for _ in contexts]
    asked = [question.recv() for question in questions]
    assert asked == [b"0", b"1", b"2"]
    for question, body in reversed(list(zip(questions, asked, strict=True))):
        question.send(body + b"!")
    assert [context.recv() for context in contexts] == [b"0!", b"1!", b"2!"]
    assert errno_of(zmq, contexts[0].recv) == zmq.EFSM
    assert errno_of(zmq, req.recv) == zmq.EFSM
    with contexts[0] as context:
        assert not context.closed
        context.send(b"forgotten")
        with pytest.raises(zmq.Again):
            context.recv(zmq.NOBLOCK)
        assert errno_of(zmq, lambda: context.send(b"", zmq.SNDMORE)) == errno.EINVAL
    assert context.closed
    assert errno_of(zmq, context.recv) == errno.ENOTSOCK
    assert req.stats()["dropped"]["stale"] == 1
    req.rcvtimeo = 10
    contexts[1].send(b"unanswered")
    with pytest.raises(zmq.Again, match="no reply arrived within 10 ms"):
        contexts[1].recv()
    req.close()
    assert errno_of(zmq, contexts[1].recv) == errno.ENOTSOCK


@contextlib.contextmanager
def other_context(zmq, name):
    """A context of another event loop's module."""
    context = importlib.import_module(f"{zmq.__name__}.{name}").Context()
    yield context
    context.destroy(linger=0)


def asking(zmq, context):
    """A REP and a REQ over SP, connected."""
    rep, req = (context.socket(kind) for kind in (zmq.REP, zmq.REQ))
    rep.wire_protocol = req.wire_protocol = zmq.SP
    rep.bind("tcp://127.0.0.1:*")
    req.connect(rep.last_endpoint.decode())
    return rep, req


def test_closing_a_context_ends_a_call_of_another_thread(zmq, sockets):
    rep, req = asking(zmq, sockets.context)
    context = rep.open_context()
    begun = threading.Event()
    waiting = Background(lambda: begun.set() or errno_of(zmq, context.recv))
    assert begun.wait(PATIENCE)
    context.close()
    assert waiting.result() == errno.ENOTSOCK
    req.send(b"?")
    with rep.open_context() as other:
        assert other.recv() == b"?"


def test_closing_a_context_ends_a_call_of_another_task(zmq):
    async def main(made):
        rep, req = asking(zmq, made)
        context = rep.open_context()
        waiting = asyncio.create_task(context.recv())
        await asyncio.sleep(0)
        assert not waiting.done()
        context.close()
        with pytest.raises(zmq.ZMQError, match="this context of a socket is closed") as caught:
            await asyncio.wait_for(waiting, PATIENCE)
        assert caught.value.errno == errno.ENOTSOCK
        await req.send(b"?")
        with rep.open_context() as other:
            assert await asyncio.wait_for(other.recv(), PATIENCE) == b"?"

    with other_context(zmq, "asyncio") as made:
        asyncio.run(main(made))


def test_tasks_that_wait_in_contexts_share_a_descriptor(zmq):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    async def main(made):
        rep, req = asking(zmq, made)
        await req.wait_connected()
        contexts = [rep.open_context() for _ in range(50)]
        before = descriptors()
        waiting = [asyncio.create_task(context.recv()) for context in contexts]
        await asyncio.sleep(0)
        assert descriptors() <= before + 1
        for number in range(50):
            await req.send(b"%d" % number)
        bodies = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE)
        assert sorted(map(int, bodies)) == list(range(50))
        left = asyncio.create_task(contexts[0].recv())
        await asyncio.sleep(0)
        rep.close()
        with pytest.raises(zmq.ZMQError) as caught:
            await asyncio.wait_for(left, PATIENCE)
        assert caught.value.errno == errno.ENOTSOCK

    with other_context(zmq, "asyncio") as made:
        asyncio.run(main(made))


def test_other_types_have_no_contexts(zmq, context):
    for kind in (zmq.REQ, zmq.BUS, zmq.DEALER):
        with pytest.raises(zmq.ZMQError, match="has no contexts"):
            context.socket(kind).open_context()


def test_threads_with_contexts(zmq, sockets):
    rep, req = (sockets.context.socket(kind) for kind in (zmq.REP, zmq.REQ))
    rep.wire_protocol = req.wire_protocol = zmq.SP
    rep.bind(sockets.endpoint("tcp"))
    req.connect(rep.last_endpoint.decode())

    def answer():
        with rep.open_context() as context:
            while (question := context.recv()) != b"end":
                context.send(question + b"!")

    def ask(name):
        with req.open_context() as context:
            for number in range(100):
                context.send(b"%d %d" % (name, number))
                assert context.recv() == b"%d %d!" % (name, number)

    answering = [Background(answer) for _ in range(2)]
    asking = [Background(ask, name) for name in range(4)]
    for thread in asking:
        thread.result()
    for _ in answering:
        req.send(b"end")
    for thread in answering:
        thread.result()


def test_tasks_with_contexts(zmq, sockets):
    module = importlib.import_module(f"{zmq.__name__}.asyncio")

    async def answer(rep):
        with rep.open_context() as context:
            while True:
                await context.send(await context.recv() + b"!")

    async def ask(req, name):
        with req.open_context() as context:
            for number in range(20):
                await context.send(b"%d %d" % (name, number))
                assert await context.recv() == b"%d %d!" % (name, number)

    async def main():
        with module.Context() as context:
            rep, req = (context.socket(kind) for kind in (zmq.REP, zmq.REQ))
            rep.wire_protocol = req.wire_protocol = zmq.SP
            rep.bind(sockets.endpoint("tcp"))
            req.connect(rep.last_endpoint.decode())
            answering = [asyncio.create_task(answer(rep)) for _ in range(3)]
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*(ask(req, name) for name in range(5)))
            for task in answering:
                task.cancel()
            await asyncio.gather(*answering, return_exceptions=True)
            req.rcvtimeo = 10
            with req.open_context() as unanswered:
                await unanswered.send(b"?")
                with pytest.raises(zmq.Again, match="within 10 ms"):
                    await unanswered.recv()
                with pytest.raises(zmq.Again):
                    await unanswered.recv(zmq.NOBLOCK)
            assert unanswered.closed
            context.destroy(linger=0)

    asyncio.run(main())


@pytest.mark.parametrize("name", ["zeroxide", "asyncio", "green"])
def test_the_repr_of_a_context_describes_its_socket(zmq, name):
    if name == "green":
        pytest.importorskip("gevent")
    made = zmq.Context() if name == "zeroxide" else other_context(zmq, name)
    with made as sockets:
        socket = sockets.socket(zmq.RESPONDENT)
        socket.bind("inproc://described")
        context = socket.open_context()
        assert "SocketContext at 0x" in repr(context)
        assert "RESPONDENT" in repr(context) and "inproc://described" in repr(context)
        assert "closed" not in repr(context)
        context.close()
        assert ": closed, of <" in repr(context) and "inproc://described" in repr(context)
        socket.close()
        assert repr(context).endswith("closed>>")


def test_names_and_options(zmq, context):
    assert zmq.has("sp")
    assert (zmq.SURVEYOR, zmq.RESPONDENT, zmq.BUS) == (98, 99, 112)
    with context.socket(zmq.SURVEYOR) as surveyor:
        assert surveyor.type == zmq.SocketType.SURVEYOR
        assert surveyor.wire_protocol == zmq.WireProtocol.SP
        assert surveyor.survey_timeout == 1000
        assert "SURVEYOR" in repr(surveyor)
    with context.socket(zmq.REQ) as req:
        assert req.wire_protocol == zmq.ZMTP
        with pytest.raises(zmq.ZMQError, match="WIRE_PROTOCOL 1, set before it"):
            req.resend_ivl = 5
        req.wire_protocol = zmq.SP
        assert (req.type, req.wire_protocol, req.resend_ivl) == (zmq.REQ, zmq.SP, 60_000)
        req.resend_ivl = 5
    dealer = context.socket(zmq.DEALER)
    with pytest.raises(zmq.ZMQError, match="no DEALER socket"):
        dealer.wire_protocol = zmq.SP


def test_a_publisher_does_not_know_its_subscribers(zmq, context):
    with context.socket(zmq.PUB) as publisher:
        publisher.wire_protocol = zmq.SP
        with pytest.raises(zmq.ZMQError, match="does not learn of subscriptions"):
            publisher.wait_subscribed("", timeout=0)


def test_a_context_may_speak_sp(zmq, context):
    context.wire_protocol = zmq.SP
    with context.socket(zmq.REP) as rep, context.socket(zmq.DEALER) as dealer:
        assert (rep.wire_protocol, dealer.wire_protocol) == (zmq.SP, zmq.ZMTP)


def test_no_security_is_pretended(zmq, context):
    with context.socket(zmq.PULL) as pull:
        pull.wire_protocol = zmq.SP
        pull.plain_server = True
        with pytest.raises(
            zmq.ZMQError, match="no security mechanism over the scalability protocols"
        ):
            pull.bind("tcp://127.0.0.1:*")


def test_greenlets_with_contexts(zmq, sockets):
    gevent = pytest.importorskip("gevent")
    green = importlib.import_module(f"{zmq.__name__}.green")
    with green.Context() as context:
        rep, req = (context.socket(kind) for kind in (zmq.REP, zmq.REQ))
        rep.wire_protocol = req.wire_protocol = zmq.SP
        rep.bind(sockets.endpoint("tcp"))
        req.connect(rep.last_endpoint.decode())

        def answer():
            for _ in range(3):
                rep.send(rep.recv() + b"!")

        def ask(name):
            with req.open_context() as context:
                context.send(name)
                return context.recv()

        answering = gevent.spawn(answer)
        asking = [gevent.spawn(ask, name) for name in (b"a", b"b", b"c")]
        gevent.joinall([answering, *asking], timeout=PATIENCE)
        assert [task.value for task in asking] == [b"a!", b"b!", b"c!"]
        context.destroy(linger=0)


@pytest.fixture
def gevent():
    return pytest.importorskip("gevent")


def test_greenlets_wait_in_contexts_without_threads(zmq, gevent):
    with other_context(zmq, "green") as made:
        rep, req = asking(zmq, made)
        waiting = [gevent.spawn(rep.open_context().recv) for _ in range(30)]
        gevent.idle()
        assert len(gevent.get_hub().threadpool) == 0
        for number in range(30):
            req.send(b"%d" % number)
        gevent.joinall(waiting, timeout=PATIENCE, raise_error=True)
        assert sorted(int(task.value) for task in waiting) == list(range(30))


def test_a_killed_greenlet_takes_no_message_of_a_context(zmq, gevent):
    with other_context(zmq, "green") as made:
        rep, req = asking(zmq, made)
        context = rep.open_context()
        victim = gevent.spawn(context.recv)
        gevent.idle()
        victim.kill()
        req.send(b"?")
        rep.rcvtimeo = int(PATIENCE * 1000)
        assert context.recv() == b"?"


def test_closing_a_context_ends_a_call_of_another_greenlet(zmq, gevent):
    with other_context(zmq, "green") as made:
        rep, _ = asking(zmq, made)
        context = rep.open_context()
        waiting = gevent.spawn(context.recv)
        gevent.idle()
        context.close()
        with pytest.raises(zmq.ZMQError) as caught:
            waiting.get(timeout=PATIENCE)
        assert caught.value.errno == errno.ENOTSOCK
        rep.rcvtimeo = 10
        with rep.open_context() as other, pytest.raises(zmq.Again, match="within 10 ms"):
            other.recv()
