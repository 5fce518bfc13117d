"""A socket's descriptor in another event loop."""

import os
import selectors
import socket as sockets_of_the_system
import threading

import pytest

MESSAGES = int(os.environ.get("ZEROXIDE_LOOP_MESSAGES", "1000000"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("at_a_time", [1, 100])
def test_one_loop_serves_all(zmq, at_a_time):
    """A tcp connection, a pipe and a zeroxide socket in one selector: no wake-up is missed.

    The loop takes only a few messages per wake-up, so the descriptor must stay readable until no message is left.
    With libzmq's edge-triggered descriptor, this loop stalls.
    """
    if zmq.__name__ == "zmq":
        pytest.skip("libzmq's descriptor is edge-triggered")
    ours, theirs = sockets_of_the_system.socketpair()
    read_end, write_end = os.pipe()
    with (
        zmq.Context() as context,
        context.socket(zmq.PULL) as pull,
        selectors.DefaultSelector() as selector,
    ):
        port = pull.bind_to_random_port("tcp://127.0.0.1")

        def produce():
            with context.socket(zmq.PUSH) as push:
                push.connect(f"tcp://127.0.0.1:{port}")
                for number in range(MESSAGES):
                    push.send(b"%d" % number)
                    if number % 1000 == 0:
                        theirs.sendall(b"t")
                        os.write(write_end, b"p")

        producer = threading.Thread(target=produce)
        producer.start()
        selector.register(pull, selectors.EVENT_READ)
        selector.register(ours, selectors.EVENT_READ)
        selector.register(read_end, selectors.EVENT_READ)
        received = ticks = notes = 0
        while received < MESSAGES or ticks < MESSAGES // 1000 or notes < MESSAGES // 1000:
            ready = selector.select(60)
            assert ready, f"stalled after {received} messages, {ticks} ticks, {notes} notes"
            for key, _ in ready:
                if key.fileobj is pull:
                    for _ in range(at_a_time):
                        try:
                            body = pull.recv(zmq.DONTWAIT)
                        except zmq.Again:
                            break
                        assert int(body) == received
                        received += 1
                elif key.fileobj is ours:
                    ticks += len(ours.recv(4096))
                else:
                    notes += len(os.read(read_end, 4096))
        producer.join()
        assert not selector.select(0), "nothing is left, so nothing may be readable"
    ours.close()
    theirs.close()
    os.close(read_end)
    os.close(write_end)


def test_blocking_calls_in_a_loop_never_block(zmq):
    """Readable means that a message has arrived, not that any event occurred, so recv() without a flag does not block."""
    if zmq.__name__ == "zmq":
        pytest.skip("libzmq's descriptor is edge-triggered")
    with (
        zmq.Context() as context,
        context.socket(zmq.PULL) as pull,
        selectors.DefaultSelector() as selector,
    ):
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        selector.register(pull, selectors.EVENT_READ)

        def produce():
            with context.socket(zmq.PUSH) as push:
                push.connect(f"tcp://127.0.0.1:{port}")
                for number in range(20_000):
                    push.send(b"%d" % number)

        producer = threading.Thread(target=produce)
        producer.start()
        for number in range(20_000):
            assert selector.select(60)
            assert int(pull.recv()) == number
        producer.join()
