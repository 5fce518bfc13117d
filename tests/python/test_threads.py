"""Threads: any thread may use any context and any socket."""

import itertools
import queue
import select
import threading

import pytest
from support import Background, eventually


def test_a_socket_moves_between_threads(zmq, sockets):
    """Sockets are created in one thread, and used in others, one after the other."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for number in range(10):
        Background(push.send, b"%d" % number).result()
        assert Background(pull.recv).result() == b"%d" % number


def test_workers(zmq, context):
    """The multithreaded server of the guide."""
    front, back = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    front.bind("inproc://clients")
    back.bind("inproc://workers")

    def work():
        with context.socket(zmq.REP) as socket:
            socket.connect("inproc://workers")
            while (request := socket.recv()) != b"stop":
                socket.send(request + b" done")
            socket.send(b"stopped")

    workers = [Background(work) for _ in range(4)]
    clients = []
    for _ in range(4):
        client = context.socket(zmq.REQ)
        client.connect("inproc://clients")
        clients.append(client)

    def serve(requests):
        """Does what `zmq.proxy` does, for the given number of requests."""
        for source, target in ((front, back), (back, front)):
            for _ in range(requests):
                target.send_multipart(source.recv_multipart())

    for number in range(20):
        for client in clients:
            client.send(b"%d" % number)
        serve(len(clients))
        for client in clients:
            assert client.recv() == b"%d done" % number
    for client in clients:
        client.send(b"stop")
    serve(len(clients))
    for client in clients:
        assert client.recv() == b"stopped"
        client.close()
    for worker in workers:
        worker.result()


def test_contexts_in_threads(zmq):
    def use():
        for _ in range(20):
            with zmq.Context() as context, context.socket(zmq.PAIR) as one:
                one.bind("inproc://own")
                with context.socket(zmq.PAIR) as other:
                    other.connect("inproc://own")
                    other.send(b"")
                    one.recv()

    for thread in [Background(use) for _ in range(8)]:
        thread.result()


def test_sockets_of_one_context(zmq, context):
    def use(name):
        for number in range(50):
            endpoint = f"inproc://{name}-{number}"
            with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
                pull.bind(endpoint)
                push.connect(endpoint)
                push.send(b"")
                pull.recv()

    for thread in [Background(use, name) for name in range(8)]:
        thread.result()


@pytest.mark.zeroxide_only
def test_one_socket_of_all(zmq, sockets, transport):
    """Eight threads share each end: no message is split, lost or duplicated."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    senders, each = 8, 500
    received = queue.SimpleQueue()

    def send(name):
        for number in range(each):
            body = b"%d.%d" % (name, number)
            if number % 2:
                push.send_multipart([body, body, body])
            else:
                push.send(body, zmq.SNDMORE)
                push.send(body, zmq.SNDMORE)
                push.send(body)

    def receive(name):
        for number in range(each):
            if number % 2:
                message = pull.recv_multipart()
            else:
                message = [pull.recv()]
                while pull.rcvmore:
                    message.append(pull.recv())
            assert len(message) == 3 and len(set(message)) == 1, message
            received.put(message[0])

    threads = [Background(call, name) for call in (send, receive) for name in range(senders)]
    for thread in threads:
        thread.result()
    bodies = {received.get() for _ in range(senders * each)}
    assert bodies == {b"%d.%d" % pair for pair in itertools.product(range(senders), range(each))}


@pytest.mark.zeroxide_only
def test_parts_belong_to_their_thread(zmq, sockets):
    """A message begun in one thread is neither continued by nor visible to another."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"mine", zmq.SNDMORE)
    Background(push.send, b"other").result()
    push.send(b"mine too")
    assert pull.recv() == b"other"
    assert pull.recv() == b"mine"
    assert pull.rcvmore
    assert not Background(pull.get, zmq.RCVMORE).result()
    push.send_multipart([b"a", b"b"])
    assert Background(pull.recv_multipart).result() == [b"a", b"b"]
    assert pull.recv() == b"mine too"


@pytest.mark.zeroxide_only
def test_the_parts_of_a_thread_end_with_it(zmq, sockets):
    """Neither an incomplete message nor a readable descriptor remains."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_multipart([b"1", b"2", b"3"])

    def begin():
        assert pull.recv() == b"1"
        push.send(b"never finished", zmq.SNDMORE)
        assert pull.get(zmq.EVENTS) & zmq.POLLIN

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()

    def is_readable():
        assert not pull.get(zmq.EVENTS) & zmq.POLLIN
        return select.select([pull.get(zmq.FD)], [], [], 0)[0] != []

    # Python joins a thread just before the system ends it.
    eventually(lambda: not is_readable())
    push.send(b"whole")
    assert pull.recv_multipart() == [b"whole"]


@pytest.mark.zeroxide_only
def test_requests_from_many_threads(zmq, sockets):
    """Many threads share one DEALER: each reply reaches one of them, complete."""
    router, dealer = sockets.pair(zmq.ROUTER, zmq.DEALER)

    def ask(name):
        for number in range(100):
            dealer.send_multipart([b"%d" % name, b"%d" % number])
            assert len(dealer.recv_multipart()) == 2

    threads = [Background(ask, name) for name in range(8)]
    for _ in range(800):
        router.send_multipart(router.recv_multipart())
    for thread in threads:
        thread.result()


@pytest.mark.zeroxide_only
def test_a_waiting_receiver_does_not_block_others(zmq, sockets):
    dealer = sockets.bound(zmq.DEALER)
    waiting = Background(dealer.recv)
    peer = sockets.connected(zmq.DEALER, dealer)
    for number in range(100):
        dealer.send(b"%d" % number)
        assert peer.recv() == b"%d" % number
    assert dealer.poll(0, zmq.POLLOUT) == zmq.POLLOUT
    peer.send(b"at last")
    assert waiting.result() == b"at last"


@pytest.mark.zeroxide_only
def test_everything_at_once(zmq, sockets):
    """Options, endpoints and polls from some threads while others send and receive."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    total, stop = 5000, threading.Event()

    def until_stopped(*calls):
        while not stop.is_set():
            for call in calls:
                call()

    def connect_and_disconnect():
        pull.bind("inproc://in-between")
        pull.unbind("inproc://in-between")

    busy = [
        Background(until_stopped, connect_and_disconnect),
        Background(until_stopped, lambda: push.set(zmq.LINGER, 5), lambda: pull.get(zmq.EVENTS)),
        Background(until_stopped, lambda: pull.poll(1), push.stats, pull.stats),
    ]
    sender = Background(lambda: [push.send(b"%d" % n) for n in range(total)])
    for number in range(total):
        assert pull.recv() == b"%d" % number
    stop.set()
    for thread in [sender, *busy]:
        thread.result()
