"""Sockets for gevent."""

import gc
import itertools
import os
import sys
import time

import pytest
from loops import subtree
from support import PATIENCE, Background, finish_script, start_script

gevent = pytest.importorskip("gevent")


@pytest.fixture
def green(zmq):
    return subtree(zmq, "green")


@pytest.fixture
def aio(green):
    return green


@pytest.fixture(autouse=True)
def patience():
    with gevent.Timeout(PATIENCE):
        yield


def test_names(zmq, green):
    assert issubclass(green.Context, zmq.Context)
    assert issubclass(green.Socket, zmq.Socket)
    assert issubclass(green.Poller, zmq.Poller)
    assert green.PUSH == zmq.PUSH and green.ZMQError is zmq.ZMQError
    assert set(green.__all__) >= set(zmq.__all__)
    core = subtree(zmq, "green.core")
    assert core._Socket is green.Socket and core._Context is green.Context
    assert subtree(zmq, "green.poll")._Poller is green.Poller
    with green.Context() as context:
        assert repr(context).startswith("<zmq.green.Context(")
        with context.socket(zmq.PUB) as socket:
            assert type(socket) is green.Socket
            assert repr(socket).startswith("<zmq.green.Socket(zmq.PUB)")


FORMS = {
    "recv": (lambda s: s.send(b"x"), lambda s: s.recv(), b"x"),
    "frame": (
        lambda s: s.send(b"x", copy=False),
        lambda s: s.recv(copy=False).bytes,
        b"x",
    ),
    "multipart": (
        lambda s: s.send_multipart([b"a", b"b"]),
        lambda s: s.recv_multipart(),
        [b"a", b"b"],
    ),
    "string": (lambda s: s.send_string("æ"), lambda s: s.recv_string(), "æ"),
    "json": (lambda s: s.send_json([1]), lambda s: s.recv_json(), [1]),
    "pyobj": (lambda s: s.send_pyobj({1}), lambda s: s.recv_pyobj(), {1}),
    "into": (lambda s: s.send(b"abc"), lambda s: s.recv_into(bytearray(3)), 3),
}


@pytest.mark.parametrize("form", FORMS)
def test_receiving_blocks_the_greenlet_only(pipe, form):
    pull, push = pipe
    send, receive, expected = FORMS[form]
    receiver = gevent.spawn(receive, pull)
    gevent.idle()
    assert not receiver.ready()
    send(push)
    assert receiver.get() == expected
    send(push)
    assert receive(pull) == expected


def test_parts(zmq, pipe):
    pull, push = pipe
    receiver = gevent.spawn(lambda: (pull.recv(), pull.rcvmore, pull.recv(), pull.rcvmore))
    push.send(b"a", zmq.SNDMORE)
    push.send(b"b")
    assert receiver.get() == (b"a", 1, b"b", 0)


def test_sending_blocks_the_greenlet_only(zmq, sockets, context):
    push = context.socket(zmq.PUSH)
    sender = gevent.spawn(push.send, b"x")
    gevent.idle()
    assert not sender.ready()
    pull = sockets.bound(zmq.PULL)
    push.connect(pull.last_endpoint.decode())
    sender.get()
    assert pull.recv() == b"x"


def test_request_and_reply(zmq, sockets):
    rep, req = sockets.pair(zmq.REP, zmq.REQ)

    def serve():
        for _ in range(50):
            rep.send(rep.recv().upper())

    def ask():
        for number in range(50):
            req.send(b"n%d" % number)
            assert req.recv() == b"N%d" % number

    gevent.joinall([gevent.spawn(serve), gevent.spawn(ask)], raise_error=True)


def test_nonblocking(zmq, pipe, context):
    pull, push = pipe
    with pytest.raises(zmq.Again):
        pull.recv(zmq.NOBLOCK)
    with pytest.raises(zmq.Again):
        pull.recv_multipart(zmq.NOBLOCK)
    with pytest.raises(zmq.Again):
        context.socket(zmq.PUSH).send(b"x", zmq.NOBLOCK)
    push.send(b"x", zmq.NOBLOCK)
    assert pull.recv() == b"x"


def test_poll(zmq, pipe):
    pull, push = pipe
    assert pull.poll(0) == 0
    assert pull.poll(5) == 0
    waiter = gevent.spawn(pull.poll)
    gevent.idle()
    assert not waiter.ready()
    push.send(b"x")
    assert waiter.get() == zmq.POLLIN
    assert push.poll(None, zmq.POLLOUT) == zmq.POLLOUT


def test_poller(zmq, green, sockets, pipe):
    pull, push = pipe
    reader, writer = os.pipe()
    poller = green.Poller()
    poller.register(pull, zmq.POLLIN)
    poller.register(reader, zmq.POLLIN)
    assert poller.poll(0) == []
    assert poller.poll(5) == []
    waiter = gevent.spawn(poller.poll)
    gevent.idle()
    push.send(b"x")
    assert waiter.get() == [(pull, zmq.POLLIN)]
    pull.recv()
    waiter = gevent.spawn(poller.poll, PATIENCE * 1000)
    gevent.idle()
    os.write(writer, b"x")
    assert waiter.get() == [(reader, zmq.POLLIN)]
    poller.unregister(reader)
    os.close(reader)
    os.close(writer)
    with pytest.raises(TypeError):
        poller.register(object(), zmq.POLLIN)
        poller.poll(5)


@pytest.mark.parametrize("wanted", ["POLLIN", "POLLOUT", "POLLERR", "POLLPRI"])
def test_poller_hears_that_the_other_end_closes(zmq, green, wanted):
    reader, writer = os.pipe()
    poller = green.Poller()
    poller.register(reader, getattr(zmq, wanted))
    waiter = gevent.spawn(poller.poll, PATIENCE * 1000)
    gevent.idle()
    assert not waiter.ready()
    os.close(writer)
    assert waiter.get() == [(reader, zmq.POLLERR)]
    os.close(reader)


def test_device(zmq, green, sockets):
    router, dealer = sockets.bound(zmq.ROUTER), sockets.bound(zmq.DEALER)
    req = sockets.connected(zmq.REQ, router)
    rep = sockets.connected(zmq.REP, dealer)
    running = gevent.spawn(green.device, zmq.QUEUE, router, dealer)
    answering = gevent.spawn(lambda: rep.send(rep.recv().upper()))
    req.send(b"x")
    assert req.recv() == b"X"
    answering.get()
    running.kill()


@pytest.mark.zeroxide_only
def test_a_proxy_lets_other_greenlets_run(zmq, green, sockets):
    front, back = sockets.bound(zmq.PULL), sockets.bound(zmq.PUSH)
    seen = sockets.bound(zmq.PULL)
    capture = sockets.connected(zmq.PUSH, seen)
    push, pull = sockets.connected(zmq.PUSH, front), sockets.connected(zmq.PULL, back)
    running = gevent.spawn(green.proxy, front, back, capture)
    for number in range(100):
        push.send(b"%d" % number)
        assert pull.recv() == seen.recv() == b"%d" % number
    running.kill()
    push.send(b"after")
    assert front.recv() == b"after"


@pytest.mark.zeroxide_only
def test_a_proxy_is_steered_by_another_greenlet(zmq, green, sockets):
    front, back, control = (sockets.bound(kind) for kind in (zmq.PULL, zmq.PUSH, zmq.REP))
    push, pull = sockets.connected(zmq.PUSH, front), sockets.connected(zmq.PULL, back)
    steer = sockets.connected(zmq.REQ, control)
    running = gevent.spawn(green.proxy_steerable, front, back, None, control)
    push.send(b"x")
    assert pull.recv() == b"x"
    steer.send(b"STATISTICS")
    assert int.from_bytes(steer.recv_multipart()[0], sys.byteorder) == 1
    steer.send(b"TERMINATE")
    assert steer.recv() == b""
    assert running.get() == 0


@pytest.mark.zeroxide_only
def test_a_proxy_ends_with_its_context_or_socket(zmq, green):
    context = green.Context()
    front, back = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    running = gevent.spawn(green.proxy, front, back)
    gevent.idle()
    back.close()
    with pytest.raises(zmq.ZMQError) as error:
        running.get()
    assert error.value.errno == zmq.ENOTSOCK
    running = gevent.spawn(green.proxy, front, front)
    gevent.idle()
    front.close(linger=0)
    context.term()
    with pytest.raises(zmq.ZMQError):
        running.get()


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("name", ["device", "proxy"])
def test_a_killed_proxy_keeps_a_message_without_a_receiver(zmq, green, sockets, name):
    front, back = sockets.bound(zmq.PULL), sockets.bound(zmq.PUSH)
    push = sockets.connected(zmq.PUSH, front)
    arguments = (zmq.QUEUE, front, back) if name == "device" else (front, back)
    push.send(b"x")
    assert front.poll()
    running = gevent.spawn(getattr(green, name), *arguments)
    for _ in range(20):
        gevent.idle()
    running.kill()
    assert front.recv() == b"x"


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("name", ["device", "proxy"])
def test_a_killed_proxy_loses_no_message(zmq, green, sockets, name):
    """Killed again and again, with queues so short that a message often waits for room."""
    front, back = sockets.bound(zmq.PULL, rcvhwm=2), sockets.bound(zmq.PUSH, sndhwm=2)
    push = sockets.connected(zmq.PUSH, front, sndhwm=2)
    pull = sockets.connected(zmq.PULL, back, rcvhwm=2)
    call = getattr(green, name)
    arguments = (zmq.QUEUE, front, back) if name == "device" else (front, back)
    total, got = 1000, []

    def send():
        for number in range(total):
            push.send(b"%d" % number)

    def receive():
        while len(got) < total:
            got.append(int(pull.recv()))
            if len(got) % 5 == 0:
                gevent.idle()

    sender, receiver = gevent.spawn(send), gevent.spawn(receive)
    for _ in range(15):
        running = gevent.spawn(call, *arguments)
        before = len(got)
        while len(got) < min(before + 20, total):
            gevent.idle()
        running.kill()
    running = gevent.spawn(call, *arguments)
    gevent.joinall([sender, receiver], raise_error=True)
    running.kill()
    assert got == list(range(total))


@pytest.mark.zeroxide_only
def test_a_poll_of_a_socket_that_is_closed_meanwhile(zmq, green, pipe):
    """It raises what `recv` raises, also if it waits for more than this socket."""
    pull, push = pipe
    poller = green.Poller()
    poller.register(pull, zmq.POLLIN)
    poller.register(push, zmq.POLLERR)
    calls = [
        gevent.spawn(pull.recv),
        gevent.spawn(pull.poll),
        gevent.spawn(poller.poll),
        gevent.spawn(poller.poll, 1000 * PATIENCE),
        gevent.spawn(green.select, [pull], [], []),
    ]
    gevent.idle()
    pull.close()
    for call in calls:
        with pytest.raises(zmq.ZMQError) as error:
            call.get()
        assert error.value.errno == zmq.ENOTSOCK
    with pytest.raises(zmq.ZMQError) as error:
        pull.poll(0)
    assert error.value.errno == zmq.ENOTSUP


def test_a_killed_greenlet_takes_no_message(zmq, pipe):
    pull, push = pipe
    victim = gevent.spawn(pull.recv)
    gevent.idle()
    victim.kill()
    push.send(b"x")
    assert pull.recv() == b"x"


def test_gevents_own_timeouts(zmq, pipe):
    pull, push = pipe
    with gevent.Timeout(0.01, False):
        pull.recv()
        raise AssertionError
    push.send(b"x")
    assert pull.recv() == b"x"


# ---- what is better -----------------------------------------------------------------


@pytest.mark.zeroxide_only
def test_timeouts_work(zmq, pipe, context):
    pull, _ = pipe
    pull.rcvtimeo = 5
    for call in (pull.recv, pull.recv_multipart, lambda: pull.recv_into(bytearray(1))):
        with pytest.raises(zmq.Again):
            call()
    lonely = context.socket(zmq.PUSH)
    lonely.sndtimeo = 5
    for call in (lonely.send, lambda body: lonely.send_multipart([body])):
        with pytest.raises(zmq.Again):
            call(b"x")


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("call", ["poller", "poll", "recv", "context"])
def test_a_message_that_arrives_in_time_while_the_hub_is_busy(zmq, green, sockets, call):
    rep, req = (sockets.context.socket(kind) for kind in (zmq.REP, zmq.REQ))
    rep.wire_protocol = req.wire_protocol = zmq.SP
    rep.rcvtimeo = 200
    rep.bind("inproc://busy")
    req.connect("inproc://busy")
    poller = green.Poller()
    poller.register(rep, zmq.POLLIN)
    calls = {
        "poller": (lambda: poller.poll(200), [(rep, zmq.POLLIN)]),
        "poll": (lambda: rep.poll(200), zmq.POLLIN),
        "recv": (rep.recv, b"x"),
        "context": (rep.open_context().recv, b"x"),
    }
    begin, result = calls[call]
    waiting = gevent.spawn(begin)
    gevent.sleep(0)
    req.send(b"x")
    time.sleep(0.3)
    assert waiting.get() == result


@pytest.mark.zeroxide_only
def test_many_greenlets_wait_in_line(zmq, pipe):
    pull, push = pipe
    order = []

    def receive(number):
        order.append((number, pull.recv()))

    receivers = [gevent.spawn(receive, number) for number in range(20)]
    gevent.idle()
    receivers[3].kill()
    for number in range(19):
        push.send(b"%d" % number)
    gevent.joinall(receivers, raise_error=True)
    served = [number for number in range(20) if number != 3]
    assert order == [(number, b"%d" % turn) for turn, number in enumerate(served)]


@pytest.mark.zeroxide_only
def test_closing_wakes(zmq, pipe, context):
    pull, _ = pipe
    lonely = context.socket(zmq.PUSH)
    waiting = [
        gevent.spawn(call, *arguments)
        for call, *arguments in ((pull.recv,), (pull.recv,), (pull.poll,), (lonely.send, b"x"))
    ]
    gevent.idle()
    pull.close()
    lonely.close()
    gevent.joinall(waiting)
    for greenlet in waiting:
        assert isinstance(greenlet.exception, zmq.ZMQError), greenlet.exception


@pytest.mark.zeroxide_only
def test_threads_that_waited_and_destroyed_their_hubs(zmq, pipe):
    pull, push = pipe

    def wait():
        assert pull.poll(1) == 0
        gevent.get_hub().destroy(destroy_loop=True)

    def descriptors():
        Background(wait).result()
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    # A connection that is not yet established would have its own descriptors.
    push.send(b"connected")
    assert pull.recv() == b"connected"
    before = descriptors()
    assert [descriptors() for _ in range(5)] == [before] * 5
    push.send(b"x")
    assert pull.recv() == b"x"
    pull.close()


@pytest.mark.zeroxide_only
def test_closing_in_another_thread_wakes(zmq, pipe):
    pull, _ = pipe
    waiting = [gevent.spawn(pull.recv), gevent.spawn(pull.poll)]
    gevent.idle()
    Background(pull.close).result()
    gevent.joinall(waiting)
    for greenlet in waiting:
        assert isinstance(greenlet.exception, zmq.ZMQError), greenlet.exception


@pytest.mark.zeroxide_only
def test_terminating_waits_in_the_greenlet(zmq, green):
    context = green.Context()
    pull = context.socket(zmq.PULL)
    pull.bind("tcp://127.0.0.1:*")
    receiver = gevent.spawn(pull.recv)
    gevent.idle()
    ending = gevent.spawn(context.term)
    receiver.join()
    assert isinstance(receiver.exception, zmq.ContextTerminated)
    assert not ending.ready()
    pull.close()
    ending.get()
    assert context.closed


@pytest.mark.zeroxide_only
def test_select(zmq, green, pipe):
    pull, push = pipe
    assert green.select([pull], [push], [], 0) == ([], [push], [])
    assert green.select([pull], [], [], 0.005) == ([], [], [])
    waiter = gevent.spawn(green.select, [pull], [], [])
    gevent.idle()
    push.send(b"x")
    assert waiter.get() == ([pull], [], [])
    assert green.zmq_poll([(pull, zmq.POLLIN)], 0) == [(pull, zmq.POLLIN)]


@pytest.mark.zeroxide_only
def test_batches(zmq, pipe):
    pull, push = pipe
    receiver = gevent.spawn(pull.recv_batch)
    gevent.idle()
    assert push.send_batch([b"a"]) == 1
    assert receiver.get() == [b"a"]
    count = gevent.spawn(push.send_batch, [b"%d" % number for number in range(5000)])
    received = []
    while len(received) < 5000:
        received += pull.recv_batch(timeout=PATIENCE * 1000)
    assert received == [b"%d" % number for number in range(5000)]
    assert count.get() == 5000
    push.flush(PATIENCE * 1000)


PATCH = "from gevent import monkey; monkey.patch_all()"


@pytest.mark.parametrize("first, then", [("", PATCH), (PATCH, "")], ids=["after", "before"])
def test_in_a_program_that_is_patched_after_or_before_the_import(zmq, first, then):
    """A server and its clients as greenlets of one thread."""
    program = start_script(
        zmq.__name__,
        f"""
        {then}
        import gevent, threading, time
        from importlib import import_module
        green = import_module(zmq.__name__ + ".green")
        context = green.Context()
        rep = context.socket(zmq.REP)
        port = rep.bind_to_random_port("tcp://127.0.0.1")
        def serve():
            for _ in range(30):
                rep.send(rep.recv())
        def ask():
            with context.socket(zmq.REQ) as req:
                req.connect(f"tcp://127.0.0.1:{{port}}")
                for number in range(10):
                    req.send(b"%d" % number)
                    assert req.recv() == b"%d" % number
                    time.sleep(0)
        gevent.joinall([gevent.spawn(f) for f in (serve, ask, ask, ask)], raise_error=True)
        rep.close()
        context.term()
        print("done")
        """,
        first=first,
    )
    assert finish_script(program)[0] == "done\n"


@pytest.mark.zeroxide_only
def test_errors_of_descriptors_in_a_patched_program(zmq):
    """gevent removes `select.epoll`."""
    program = start_script(
        zmq.__name__,
        """
        import os
        import zeroxide.green as green
        reader, writer = os.pipe()
        poller = green.Poller()
        poller.register(writer, green.POLLERR)
        assert poller.poll(0) == []
        os.close(reader)
        assert poller.poll(60_000) == [(writer, green.POLLERR)]
        print("done")
        """,
        first=PATCH,
    )
    assert finish_script(program)[0] == "done\n"


@pytest.mark.zeroxide_only
def test_waiting_for_peers_and_events(zmq, context):
    pub, sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
    events = pub.monitor_events(timeout=10_000)
    kinds = gevent.spawn(lambda: [event.kind for event in events])
    subscribed = gevent.spawn(pub.wait_subscribed, b"a")
    connected = gevent.spawn(pub.wait_connected)
    gevent.sleep(0)
    with pytest.raises(zmq.Again, match="0 of 1 peers are subscribed"):
        pub.wait_subscribed(b"a", timeout=1)
    with pytest.raises(zmq.Again):
        pub.monitor_events().recv(1)
    pub.bind("tcp://127.0.0.1:*")
    sub.connect(pub.last_endpoint.decode())
    assert connected.get() == 1
    sub.subscribe(b"a")
    assert subscribed.get() == 1
    pub.send(b"a")
    assert sub.recv() == b"a"
    pub.close()
    assert kinds.get()[:3] == [
        zmq.Event.LISTENING,
        zmq.Event.ACCEPTED,
        zmq.Event.HANDSHAKE_SUCCEEDED,
    ]


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("wait", [True, False])
def test_a_failed_last_part_ends_the_message(zmq, sockets, wait):
    push = sockets.bound(zmq.PUSH)
    pull = sockets.connected(zmq.PULL, push)
    push.send(b"head", zmq.SNDMORE)
    pull.close()
    while push.poll(0, zmq.POLLOUT):
        gevent.sleep(0.001)
    push.sndtimeo = 10
    with pytest.raises(zmq.Again):
        push.send_multipart([b"neck", b"body"], 0 if wait else zmq.DONTWAIT)
    assert push.stats()["dropped"]["unfinished"] == 1
    pull = sockets.connected(zmq.PULL, push)
    push.sndtimeo = -1
    push.send_multipart([b"head 2", b"body 2"])
    assert pull.recv_multipart() == [b"head 2", b"body 2"]


@pytest.mark.zeroxide_only
def test_a_last_part_that_waits_sends_the_whole_message(zmq, sockets):
    push = sockets.bound(zmq.PUSH)
    pull = sockets.connected(zmq.PULL, push)
    push.send(b"head", zmq.SNDMORE)
    pull.close()
    while push.poll(0, zmq.POLLOUT):
        gevent.sleep(0.001)
    waiting = gevent.spawn(push.send_multipart, [b"neck", b"body"])
    gevent.sleep(0)
    behind = gevent.spawn(push.send, b"behind")
    gevent.sleep(0)
    pull = sockets.connected(zmq.PULL, push)
    gevent.joinall([waiting, behind], raise_error=True)
    assert pull.recv_multipart() == [b"head", b"neck", b"body"]
    assert pull.recv_multipart() == [b"behind"]


@pytest.fixture
def wide(zmq, sockets):
    """A PULL and a PUSH socket without limits: messages arrive as soon as they are sent."""
    pull = sockets.bound(zmq.PULL, "inproc", rcvhwm=0)
    return pull, sockets.connected(zmq.PUSH, pull, sndhwm=0)


@pytest.mark.parametrize("timeout", [None, -1, 1000])
def test_a_poll_that_may_wait_lets_others_run(zmq, green, wide, timeout):
    pull, push = wide
    push.send(b"x")
    poller = green.Poller()
    poller.register(pull, zmq.POLLIN)
    polls = (
        lambda: pull.poll(timeout),
        lambda: push.poll(timeout, zmq.POLLOUT),
        lambda: poller.poll(timeout),
    )
    for poll in polls * 5:
        run = []
        gevent.spawn(run.append, True)
        assert poll()
        assert run


@pytest.mark.zeroxide_only
def test_calls_that_need_not_wait_let_others_run(zmq, wide):
    pull, push = wide
    calls = {
        "recv": lambda: (push.send(b"x", zmq.DONTWAIT), pull.recv()),
        "send": lambda: (push.send(b"x"), pull.recv(zmq.DONTWAIT)),
        "batch": lambda: (push.send_batch([b"x"]), pull.recv_batch(timeout=0)),
        "iterable": lambda: (push.send_batch(iter([b"x"])), pull.recv_batch(timeout=0)),
    }
    for call in calls.values():
        run = []
        gevent.spawn(run.append, True)
        end = time.monotonic() + 5
        while not run and time.monotonic() < end:
            call()
        assert run


@pytest.mark.zeroxide_only
def test_send_batch_takes_no_more_than_there_is_room_for(zmq, context):
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.rcvhwm = push.sndhwm = 5
    pull.bind("inproc://full")
    push.connect("inproc://full")
    taken = []

    def numbers():
        for number in itertools.count():
            taken.append(b"%d" % number)
            yield taken[-1]

    endless = numbers()
    assert push.send_batch(endless, zmq.DONTWAIT) == len(taken) == 10
    push.sndtimeo = 10
    with pytest.raises(zmq.Again):
        push.send_batch(endless)
    assert len(taken) == 10
    push.sndtimeo = -1
    sending = gevent.spawn(push.send_batch, endless)
    received = [pull.recv() for _ in range(1000)]
    gevent.idle()
    sending.kill()
    while len(received) < len(taken):
        received += pull.recv_batch()
    assert received == taken
    assert push.send_batch(b"x" for _ in range(5)) == 5


def test_calls_go_through_overridden_send_and_recv(zmq, green):
    class Reversing(green.Socket):
        def send(self, data, *args, **kwargs):
            return super().send(data[::-1], *args, **kwargs)

        def recv(self, *args, **kwargs):
            return super().recv(*args, **kwargs)[::-1]

    with (
        green.Context() as context,
        Reversing(context, zmq.PULL) as pull,
        Reversing(context, zmq.PUSH) as push,
    ):
        pull.bind("inproc://overridden")
        push.connect("inproc://overridden")
        waiting = gevent.spawn(pull.recv_multipart)
        push.send_multipart([b"ab", b"cd"])
        assert waiting.get() == [b"ab", b"cd"]
        push.send_multipart([b"ab", b"cd"])
        assert pull.recv() == b"ab"
        assert zmq.Socket.recv(pull) == b"dc"
