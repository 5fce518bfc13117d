"""Memory that was sent without copying is released, even if the program makes no further calls."""

import pytest
from support import run_script

pytestmark = pytest.mark.zeroxide_only

# A peer in another process, because calls in this process would release the memory.
SENDER = """
    import gc
    import subprocess
    import sys
    import threading
    import time
    import weakref

    RECEIVER = "import sys, zeroxide as zmq\\n" + (
        "pull = zmq.Context().socket(zmq.PULL)\\n"
        "pull.connect(sys.argv[1])\\n"
        "for _ in range(int(sys.argv[2])): pull.recv()\\n"
        "print('received', flush=True)\\n"
        "sys.stdin.read()\\n"
    )

    class Buffer(bytearray):
        pass

    push = zmq.Context().socket(zmq.PUSH)
    push.bind("tcp://127.0.0.1:*")

    def send(count, size):
        receiver = subprocess.Popen(
            [sys.executable, "-c", RECEIVER, push.last_endpoint.decode(), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        buffers = []
        for _ in range(count):
            buffer = Buffer(size)
            push.send(buffer, copy=False)
            buffers.append(weakref.ref(buffer))
        del buffer
        # From here on no calls.
        assert receiver.stdout.readline() == b"received\\n"
        return receiver, buffers

    def is_alive(buffers):
        return sum(buffer() is not None for buffer in buffers)

    def compute(buffers):
        deadline = time.monotonic() + 40
        while is_alive(buffers) and time.monotonic() < deadline:
            sum(range(10_000))

    def rest(buffers):
        deadline = time.monotonic() + 40
        while is_alive(buffers) and time.monotonic() < deadline:
            threading.Event().wait(0.05)
"""


@pytest.mark.parametrize("work", ["compute", "rest"])
def test_released_without_a_call(zmq, work):
    output, _ = run_script(
        zmq.__name__,
        SENDER
        + f"""
    for _ in range(2):
        receiver, buffers = send(20, 2_000_000)
        {work}(buffers)
        print(is_alive(buffers))
        receiver.communicate()
    """,
    )
    assert output == "0\n0\n"


def test_released_in_a_forked_child(zmq):
    output, _ = run_script(
        zmq.__name__,
        SENDER
        + """
    import os, warnings
    warnings.simplefilter("ignore")
    receiver, buffers = send(3, 2_000_000)
    compute(buffers)
    receiver.communicate()
    if os.fork() == 0:
        push = zmq.Context().socket(zmq.PUSH)
        push.bind("tcp://127.0.0.1:*")
        receiver, buffers = send(3, 2_000_000)
        compute(buffers)
        print(is_alive(buffers), flush=True)
        receiver.communicate()
        os._exit(0)
    os.wait()
    """,
    )
    assert output == "0\n"


def test_destructors_may_send(zmq):
    """They run in the thread that releases the objects."""
    output, _ = run_script(
        zmq.__name__,
        SENDER
        + """
    inside = [zmq.Context.instance().socket(zmq.PAIR) for _ in range(2)]
    inside[0].bind("inproc://said")
    inside[1].connect("inproc://said")

    class Buffer(bytearray):
        def __del__(self):
            inside[1].send(bytes(100_000), copy=False)

    receiver, buffers = send(3, 2_000_000)
    compute(buffers)
    receiver.communicate()
    print([len(inside[0].recv()) for _ in range(3)])
    """,
    )
    assert output == "[100000, 100000, 100000]\n"


@pytest.mark.parametrize("round", range(5))
def test_the_end_comes_between(zmq, round):
    """Threads still send, and their memory is still released, while the interpreter shuts down."""
    run_script(
        zmq.__name__,
        """
    import sys, threading, time

    sys.setswitchinterval(1e-5)
    context = zmq.Context()
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.bind("tcp://127.0.0.1:*")
    push.connect(pull.last_endpoint.decode())

    def forward():
        for _ in range(100):
            push.send(bytearray(100_000), copy=False)
        for _ in range(100):
            pull.recv()

    forward()
    for _ in range(20):
        push.send(bytearray(100_000), copy=False)
    """
        + f"    time.sleep({round} * 0.013)\n",
    )
