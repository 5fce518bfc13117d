"""Forking: the child creates its own sockets; it can neither use nor harm the inherited ones."""

import pytest
from support import run_script


def test_instance_in_the_child_is_new(zmq):
    output, _ = run_script(
        zmq.__name__,
        """
        import os
        context = zmq.Context.instance()
        pull = context.socket(zmq.PULL)
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        pid = os.fork()
        if not pid:
            mine = zmq.Context.instance()
            assert mine is not context and not mine.closed
            push = mine.socket(zmq.PUSH)
            push.connect(f"tcp://127.0.0.1:{port}")
            push.send(b"from the child")
            push.close()
            mine.term()
            os._exit(0)
        print(pull.recv().decode(), os.waitpid(pid, 0)[1])
        pull.close()
        context.term()
        """,
    )
    assert output == "from the child 0\n"


def test_the_end_of_the_child_does_not_affect_the_parent(zmq):
    """Closing, terminating and collecting in the child do not affect the parent."""
    output, _ = run_script(
        zmq.__name__,
        """
        import gc, os
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        push.connect(f"tcp://127.0.0.1:{port}")
        push.send(b"before")
        pull.recv()
        for leave in ("close", "collect", "exit"):
            pid = os.fork()
            if not pid:
                if leave == "close":
                    push.close(linger=0)
                    pull.close()
                    context.term()
                    context.destroy()
                elif leave == "collect":
                    del push, pull, context
                    gc.collect()
                if leave == "exit":
                    raise SystemExit(0)
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            push.send(b"after")
            print(leave, pull.recv().decode())
        push.close()
        pull.close()
        context.term()
        """,
    )
    assert output == "close after\ncollect after\nexit after\n"


def test_a_waiting_child_takes_no_wake_ups_from_its_parent(zmq):
    """Both wait for descriptors in the thread that forked, which had waited before."""
    output, _ = run_script(
        zmq.__name__,
        """
        import os, signal, threading, time
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.bind("inproc://wakes")
        push.connect("inproc://wakes")
        # On one core, either process may be the first to run after a wake-up.
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
        quiet, _ = os.pipe()
        wait = lambda socket, limit: zmq.zmq_poll([(socket, zmq.POLLIN), (quiet, zmq.POLLIN)], limit)
        wait(pull, 10)
        pid = os.fork()
        if not pid:
            mine = zmq.Context()
            waits = mine.socket(zmq.PULL)
            waits.bind("inproc://wakes")
            wait(waits, 60_000)
            os._exit(1)
        begun, late = threading.Semaphore(0), 0

        def send():
            for _ in range(500):
                begun.acquire()
                threading.Event().wait(0.001)  # by now the other thread waits, most of the times
                push.send(b"")

        sender = threading.Thread(target=send)
        sender.start()
        for _ in range(500):
            start = time.monotonic()
            begun.release()
            assert wait(pull, 20_000)
            # A call looks again now and then, even if it is not woken.
            late += time.monotonic() - start > 0.02
            pull.recv(zmq.DONTWAIT)
        sender.join()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        print(late < 100)
        push.close()
        pull.close()
        context.term()
        """,
    )
    assert output == "True\n"


@pytest.mark.zeroxide_only
def test_use_in_the_child_raises_with_the_reason(zmq):
    output, _ = run_script(
        zmq.__name__,
        """
        import os
        context = zmq.Context()
        socket = context.socket(zmq.DEALER)
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        poller = zmq.Poller()
        poller.register(socket)
        pid = os.fork()
        if not pid:
            calls = {
                "send": lambda: socket.send(b""),
                "recv": lambda: socket.recv(),
                "recv_multipart": lambda: socket.recv_multipart(zmq.DONTWAIT),
                "send_batch": lambda: socket.send_batch([b""]),
                "recv_batch": lambda: socket.recv_batch(),
                "poll": lambda: socket.poll(0),
                "poller": lambda: poller.poll(0),
                "bind": lambda: socket.bind("inproc://child"),
                "get": lambda: socket.get(zmq.LINGER),
                "set": lambda: socket.set(zmq.LINGER, 0),
                "fileno": lambda: socket.fileno(),
                "stats": lambda: socket.stats(),
                "flush": lambda: socket.flush(0),
                "socket": lambda: context.socket(zmq.PUSH),
                "direct": lambda: zmq.Socket(context, zmq.PUSH),
            }
            for name, call in calls.items():
                try:
                    call()
                except zmq.ZMQError as error:
                    text = str(error)
                    if not ("fork" in text and str(os.getppid()) in text):
                        print(name, error.errno, text)
                else:
                    print(name, "works")
            assert socket.closed and context.closed
            repr(socket), repr(context)
            print("child done", flush=True)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert not socket.closed
        socket.close()
        context.term()
        """,
    )
    assert output == "child done\n"


@pytest.mark.zeroxide_only
def test_fork_while_another_thread_waits(zmq):
    output, _ = run_script(
        zmq.__name__,
        """
        import os, threading
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        received = []
        thread = threading.Thread(target=lambda: received.append(pull.recv()))
        thread.start()
        children = []
        for _ in range(20):
            pid = os.fork()
            if not pid:
                own = zmq.Context()
                socket = own.socket(zmq.PUSH)
                socket.close()
                own.term()
                pull.close()
                os._exit(0)
            children.append(pid)
        print({os.waitpid(pid, 0)[1] for pid in children})
        push.connect(f"tcp://127.0.0.1:{port}")
        push.send(b"still there")
        thread.join()
        print(received)
        push.close()
        pull.close()
        context.term()
        """,
    )
    assert output == "{0}\n[b'still there']\n"


@pytest.mark.zeroxide_only
def test_fork_while_other_threads_wait_for_a_tracker(zmq):
    """Each wait takes a lock for a moment. In a child that is forked just then, no thread releases it."""
    output, _ = run_script(
        zmq.__name__,
        """
        import os, signal, threading
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.bind("inproc://x")
        push.connect("inproc://x")
        tracker = push.send(bytearray(100_000), copy=False, track=True)
        over = threading.Event()

        def expires():
            try:
                tracker.wait(0)
            except zmq.NotDone:
                return True

        def keep_waiting():
            while not over.is_set():
                expires()

        threads = [threading.Thread(target=keep_waiting) for _ in range(4)]
        for thread in threads:
            thread.start()
        ends = set()
        for _ in range(100):
            pid = os.fork()
            if not pid:
                signal.alarm(20)
                os._exit(0 if expires() else 1)
            ends.add(os.waitpid(pid, 0)[1])
        over.set()
        for thread in threads:
            thread.join()
        print(ends)
        context.destroy(linger=0)
        """,
    )
    assert output == "{0}\n"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(zmq, method, directory):
    program = directory / "program.py"
    program.write_text(
        f"""
import multiprocessing, sys
import {zmq.__name__} as zmq

def work(port):
    context = zmq.Context()
    socket = context.socket(zmq.REQ)
    socket.connect(f"tcp://127.0.0.1:{{port}}")
    socket.send(b"question")
    assert socket.recv() == b"answer"
    socket.close()
    context.term()

if __name__ == "__main__":
    start = multiprocessing.get_context(sys.argv[1])
    context = zmq.Context()
    rep = context.socket(zmq.REP)
    port = rep.bind_to_random_port("tcp://127.0.0.1")
    workers = [start.Process(target=work, args=(port,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        assert rep.recv() == b"question"
        rep.send(b"answer")
    for worker in workers:
        worker.join()
    print([worker.exitcode for worker in workers])
    rep.close()
    context.term()
"""
    )
    output, _ = run_script(
        zmq.__name__,
        f"""
        import runpy, sys
        sys.argv = ["program", {method!r}]
        runpy.run_path({str(program)!r}, run_name="__main__")
        """
        if method == "fork"
        else f"""
        import subprocess, sys
        print(subprocess.check_output(
            [sys.executable, {str(program)!r}, {method!r}], text=True), end="")
        """,
    )
    assert output == "[0, 0, 0]\n"


@pytest.mark.zeroxide_only
def test_a_client_that_a_child_drops_does_not_affect_the_threads_of_its_own(zmq, tmp_path):
    """They may have the numbers of the threads of the parent's client."""
    output, _ = run_script(
        zmq.__name__,
        f"""
        import gc, os
        from zeroxide.pipeline import Client, Collector
        with Collector("{tmp_path}/inherited") as collector, Client(collector.endpoint) as client:
            client.info()
        pid = os.fork()
        if not pid:
            with Collector("{tmp_path}/own"):
                del client
                gc.collect()
            os._exit(0)
        print(os.waitpid(pid, 0)[1])
        """,
    )
    assert output == "0\n"


@pytest.mark.zeroxide_only
def test_an_observer_that_a_child_closes_does_not_affect_the_threads_of_its_own(zmq, tmp_path):
    output, _ = run_script(
        zmq.__name__,
        f"""
        import os
        from zeroxide.pipeline import Collector
        tmp = "{tmp_path}"
        observer = zmq.Observer(tmp)
        pid = os.fork()
        if not pid:
            with Collector(tmp + "/own"):
                observer.close()
            os._exit(0)
        print(os.waitpid(pid, 0)[1])
        """,
    )
    assert output == "0\n"


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("transport", ["tcp", "ipc", "ws"])
def test_a_socket_ends_for_its_peers_although_a_child_lives(zmq, transport, directory):
    """A child has its parent's descriptors, with which the kernel keeps listeners and connections."""
    address = f"{directory}/socket" if transport == "ipc" else "127.0.0.1:*"
    output, _ = run_script(
        zmq.__name__,
        """
        import os, sys
        context, far = zmq.Context(), zmq.Context()
        pull, push = context.socket(zmq.PULL), far.socket(zmq.PUSH)
        pull.linger = push.linger = 0
        pull.bind(sys.argv[1])
        endpoint = pull.last_endpoint.decode()
        push.connect(endpoint)
        push.send(b"before")
        pull.recv()
        here, over = os.pipe()
        child = os.fork()
        if not child:
            os.close(over)
            os.read(here, 1)
            os._exit(0)
        with push.monitor_events(zmq.EVENT_DISCONNECTED) as events:
            pull.close()
            print(events.recv(20_000) is not None)
        with far.socket(zmq.PUSH) as late:
            late.reconnect_stop = zmq.RECONNECT_STOP_CONN_REFUSED
            with late.monitor_events(zmq.EVENT_CONNECTED | zmq.EVENT_CLOSED) as events:
                late.connect(endpoint)
                print(events.recv(20_000).kind.name)
        again = context.socket(zmq.PULL)
        again.linger = 0
        again.bind(endpoint)
        push.send(b"after")
        print(again.recv().decode())
        os.close(over)
        os.waitpid(child, 0)
        """,
        f"{transport}://{address}",
    )
    assert output == "True\nCLOSED\nafter\n"


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("transport", ["tcp", "ipc", "ws"])
def test_last_messages_arrive_although_a_child_lives(zmq, transport, directory):
    address = f"{directory}/socket" if transport == "ipc" else "127.0.0.1:*"
    output, _ = run_script(
        zmq.__name__,
        """
        import os, sys
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.bind(sys.argv[1])
        push.connect(pull.last_endpoint.decode())
        push.send(b"first")
        pull.recv()
        here, over = os.pipe()
        child = os.fork()
        if not child:
            os.close(over)
            os.read(here, 1)
            os._exit(0)
        with pull.monitor_events(zmq.EVENT_DISCONNECTED) as events:
            for _ in range(500):
                push.send(bytes(10_000))
            push.close()
            print(sum(len(pull.recv()) for _ in range(500)))
            print(events.recv(20_000) is not None)
        os.close(over)
        os.waitpid(child, 0)
        pull.close()
        context.term()
        """,
        f"{transport}://{address}",
    )
    assert output == "5000000\nTrue\n"


@pytest.mark.zeroxide_only
def test_a_result_that_a_child_drops_does_not_affect_the_parent(zmq):
    """The message of a call whose result no code has asked for returns to the socket, but only in its own process."""
    output, _ = run_script(
        zmq.__name__,
        """
        import asyncio, gc, os, select
        aio = __import__(f"{zmq.__name__}.asyncio").asyncio

        async def main():
            context = aio.Context()
            near, far = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
            near.bind("inproc://results")
            far.connect("inproc://results")
            descriptor = near.get(zmq.FD)
            for parts in [b"one"], [b"one", b"two"]:
                for begin in (near.recv, near.recv_multipart, near.recv_batch):
                    result = begin()
                    await far.send_multipart(parts)
                    while not result.done():
                        await asyncio.sleep(0)
                    near.get(zmq.EVENTS)
                    before = select.select([descriptor], [], [], 0)[0]
                    pid = os.fork()
                    if not pid:
                        del result
                        gc.collect()
                        os._exit(0)
                    assert os.waitpid(pid, 0)[1] == 0
                    assert select.select([descriptor], [], [], 0)[0] == before
                    print(result.result())
                    if near.get(zmq.RCVMORE):
                        print(await near.recv())
            near.close()
            far.close()
            context.term()

        asyncio.run(main())
        """,
    )
    assert output.splitlines() == [
        "b'one'",
        "[b'one']",
        "[b'one']",
        "b'one'",
        "b'two'",
        "[b'one', b'two']",
        "[[b'one', b'two']]",
    ]
