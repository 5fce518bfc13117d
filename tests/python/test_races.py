"""Closing and terminating while other threads are inside the sockets."""

import os
import threading

import pytest

# A race that is seldom lost needs the many rounds.
MANY = int(os.environ.get("ZEROXIDE_RACE_ROUNDS", "1000"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("rounds", [100, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ending", ["close", "term"])
@pytest.mark.zeroxide_only
def test_closing_under_load(zmq, directory, ending, rounds):
    """Eight threads send, receive and poll while the sockets are closed or their context is terminated.

    Every call returns a message, or raises an error with the reason.
    """
    proper = {zmq.ENOTSOCK, zmq.ETERM, zmq.ENOTSUP, zmq.EAGAIN}
    wrong: list[object] = []

    def work(number, push, pull, started):
        started.wait()
        try:
            while True:
                if number % 4 == 0:
                    push.send(b"x" * 100)
                elif number % 4 == 1:
                    push.send_multipart([b"a", b"b", b"c"])
                elif number % 4 == 2:
                    pull.recv_multipart()
                else:
                    pull.poll(1000)
                    pull.get(zmq.EVENTS)
        except zmq.ZMQError as error:
            if error.errno not in proper:
                wrong.append(error)
        except BaseException as error:
            wrong.append(error)

    for round_ in range(rounds):
        context = zmq.Context()
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        push.linger = 0
        pull.bind("tcp://127.0.0.1:*" if round_ % 2 else f"ipc://{directory}/{round_}")
        push.connect(pull.last_endpoint.decode())
        started = threading.Event()
        threads = [
            threading.Thread(target=work, args=(number, push, pull, started), daemon=True)
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        started.set()
        if round_ % 3 == 0:
            # Sometimes in the middle of traffic instead of at its start.
            push.send(b"one more")
        if ending == "term":
            terminator = threading.Thread(target=context.term, daemon=True)
            terminator.start()
        push.close()
        pull.close()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive(), f"a call hangs in round {round_}"
        if ending == "term":
            terminator.join(30)
            assert not terminator.is_alive(), f"term() hangs in round {round_}"
        context.term()
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_everything_sent_arrives_after_close(sockets, zmq, transport):
    """With infinite linger, closing and terminating right after the last send loses no message."""
    for _ in range(5):
        with zmq.Context() as receiving, receiving.socket(zmq.PULL) as pull:
            pull.rcvtimeo = 20_000
            pull.bind(sockets.endpoint(transport))
            address = pull.last_endpoint.decode()

            def produce(address=address):
                context = zmq.Context()
                push = context.socket(zmq.PUSH)
                push.connect(address)
                for number in range(20_000):
                    push.send(b"%d" % number)
                push.close()
                context.term()

            producer = threading.Thread(target=produce)
            producer.start()
            for number in range(20_000):
                assert int(pull.recv()) == number
            producer.join()
