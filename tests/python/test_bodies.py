"""Copied bodies share blocks of memory, which must have no visible effect."""

import threading
from collections import deque

LENGTHS = [1, 69, 70, 255, 256, 1024, 1025, 4096, 12287, 12288]


def body(number):
    length = LENGTHS[number % len(LENGTHS)]
    return (b"%d," % number * length)[:length]


def test_bodies_of_all_lengths_arrive_however_far_the_receiver_lags(zmq, sockets):
    pull = sockets.bound(zmq.PULL, "tcp", rcvhwm=0)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=0)
    kept, waiting = deque(), deque()
    for number in range(6000):
        push.send(body(number))
        waiting.append(number)
        # The receiver lags, catches up, and lags again.
        while len(waiting) > number % 1000:
            kept.append((waiting.popleft(), pull.recv(copy=False)))
        # The receiver keeps some of the messages for a long time.
        while len(kept) > 200:
            old, frame = kept.popleft()
            assert frame.bytes == body(old)
            if old % 50 == 0 and number - old < 3000:
                kept.append((old, frame))
    while waiting:
        assert pull.recv() == body(waiting.popleft())
    assert all(frame.bytes == body(old) for old, frame in kept)


def test_bodies_outlive_the_threads_that_sent_them(zmq, sockets):
    pull = sockets.bound(zmq.PULL, "inproc", rcvhwm=0)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=0)
    for first in range(0, 400, 10):
        numbers = range(first, first + 10)
        thread = threading.Thread(target=lambda n=numbers: [push.send(body(i)) for i in n])
        thread.start()
        thread.join()
    assert [pull.recv() for _ in range(400)] == [body(number) for number in range(400)]
