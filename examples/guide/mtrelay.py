"""Threads signal each other that they are ready. python examples/guide/mtrelay.py

A relay of three threads, without a lock, condition or event: each signal is a message over a pair of sockets.
"""

import threading

import zeroxide as zmq


def step1(context: zmq.Context) -> None:
    with context.socket(zmq.PAIR) as following:
        following.connect("inproc://step2")
        print("step 1 ready, telling step 2")
        following.send(b"READY")


def step2(context: zmq.Context) -> None:
    # Bound before the thread that connects starts, so that its signal has a receiver.
    with context.socket(zmq.PAIR) as previous, context.socket(zmq.PAIR) as following:
        previous.bind("inproc://step2")
        threading.Thread(target=step1, args=(context,)).start()
        previous.recv()
        following.connect("inproc://step3")
        print("step 2 ready, telling step 3")
        following.send(b"READY")


def main() -> None:
    with zmq.Context() as context, context.socket(zmq.PAIR) as previous:
        previous.bind("inproc://step3")
        threading.Thread(target=step2, args=(context,)).start()
        previous.recv()
        print("step 3: all ready")


if __name__ == "__main__":
    main()
