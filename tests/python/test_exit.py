"""The end of the interpreter: bounded, quiet, and no message is lost without a report."""

import signal
import textwrap

import pytest
from support import finish_script, run_script, start_script


def test_everything_left_open(zmq):
    """Without messages to send, the program prints nothing and does not wait."""
    output, errors = run_script(
        zmq.__name__,
        """
        context = zmq.Context()
        sockets = [context.socket(kind) for kind in (zmq.PUSH, zmq.PULL, zmq.REP, zmq.SUB)]
        for socket in sockets:
            socket.linger = 0
            socket.bind("tcp://127.0.0.1:*")
        print("done")
        """,
    )
    assert (output, errors) == ("done\n", "")


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("warned", ["default", "error"])
def test_sockets_that_are_left_open_are_named(zmq, warned):
    script = start_script(
        zmq.__name__,
        """
        context = zmq.Context()
        context.socket(zmq.PUB).close()
        first, second = context.socket(zmq.PUSH), context.socket(zmq.SUB)
        shadow = zmq.Socket.shadow(first)
        """,
        first=f"import warnings; warnings.simplefilter({warned!r}, ResourceWarning)",
    )
    _, errors = finish_script(script)
    kinds = ["PUSH", "SUB"] if warned == "default" else ["PUSH"]
    for kind in kinds:
        assert errors.count(f"ResourceWarning: Unclosed socket <zmq.Socket(zmq.{kind})") == 1
    assert errors.count("Unclosed ") == len(kinds)


def test_messages_are_still_sent(zmq, sockets):
    pull = sockets.bound(zmq.PULL)
    script = start_script(
        zmq.__name__,
        """
        import sys
        context = zmq.Context()
        socket = context.socket(zmq.PUSH)
        socket.connect(sys.argv[1])
        for number in range(500):
            socket.send(b"%d" % number + b"x" * 10_000)
        """
        + ("socket.close(); context.term()" if zmq.__name__ == "zmq" else ""),
        pull.last_endpoint.decode(),
    )
    for number in range(500):
        assert pull.recv() == b"%d" % number + b"x" * 10_000
    _, errors = finish_script(script)
    assert errors == ""


@pytest.mark.zeroxide_only
def test_undeliverable_messages_are_reported(zmq):
    _, errors = run_script(
        zmq.__name__,
        """
        context = zmq.Context()
        socket = context.socket(zmq.PUSH)
        socket.connect("tcp://127.0.0.1:1")
        for _ in range(3):
            socket.send(b"without a peer")
        """,
    )
    [line] = errors.splitlines()
    assert "3 to tcp://127.0.0.1:1" in line


@pytest.mark.zeroxide_only
def test_closed_but_not_terminated(zmq):
    """Closing hands the messages over; the end of the process still waits for them."""
    _, errors = run_script(
        zmq.__name__,
        """
        context = zmq.Context()
        socket = context.socket(zmq.PUSH)
        socket.connect("tcp://127.0.0.1:1")
        socket.send(b"without a peer")
        socket.close()
        """,
    )
    [line] = errors.splitlines()
    assert "1 to tcp://127.0.0.1:1" in line


@pytest.mark.zeroxide_only
def test_unclosed_context_does_not_hang(zmq):
    output, _ = run_script(
        zmq.__name__,
        """
        import gc
        def forget():
            context = zmq.Context()
            socket = context.socket(zmq.PUSH)
            socket.connect("tcp://127.0.0.1:1")
            socket.send(b"without a peer")
        forget()
        gc.collect()
        print("done")
        """,
    )
    assert output == "done\n"


@pytest.mark.zeroxide_only
def test_threads_that_wait(zmq):
    output, _ = run_script(
        zmq.__name__,
        """
        import threading
        context = zmq.Context()
        def wait(kind):
            socket = context.socket(kind)
            socket.bind("tcp://127.0.0.1:*")
            started.release()
            socket.recv()
        started = threading.Semaphore(0)
        for kind in (zmq.PULL, zmq.REP, zmq.ROUTER):
            threading.Thread(target=wait, args=(kind,), daemon=True).start()
            started.acquire()
        print("done")
        """,
    )
    assert output == "done\n"


@pytest.mark.parametrize("call", ["recv", "send", "poll", "proxy"])
def test_daemon_threads_end_without_a_word(zmq, call):
    """Neither a traceback nor a handler of the program: it has not closed the sockets."""
    output, errors = run_script(
        zmq.__name__,
        """
        import sys, threading
        context = zmq.Context()
        context.linger = 0
        def wait(call):
            one, other = context.socket(zmq.DEALER), context.socket(zmq.DEALER)
            one.bind("tcp://127.0.0.1:*")
            while True:
                started.release()
                try:
                    if call == "proxy":
                        zmq.proxy(one, other)
                    elif call == "send":
                        one.send(b"")
                    else:
                        getattr(one, call)()
                except Exception as error:
                    print("handled", error)
        started = threading.Semaphore(0)
        for _ in range(10):
            threading.Thread(target=wait, args=(sys.argv[1],), daemon=True).start()
            started.acquire()
        """,
        call,
    )
    assert (output, errors) == ("", "")


@pytest.mark.parametrize(
    ("how", "status"),
    [("os._exit(3)", 3), ("sys.exit(4)", 4), ("raise ValueError", 1)],
)
def test_ways_to_exit(zmq, how, status):
    script = start_script(
        zmq.__name__,
        f"""
        import os, sys
        context = zmq.Context()
        socket = context.socket(zmq.PULL)
        socket.bind("tcp://127.0.0.1:*")
        socket.linger = 0
        {how}
        """,
    )
    finish_script(script, status)


@pytest.mark.zeroxide_only
def test_several_contexts(zmq):
    _, errors = run_script(
        zmq.__name__,
        """
        contexts = [zmq.Context() for _ in range(3)]
        for port, context in enumerate(contexts, 1):
            socket = context.socket(zmq.PUSH)
            socket.connect(f"tcp://127.0.0.1:{port}")
            socket.send(b"")
            socket.close()
        """,
    )
    assert len(errors.splitlines()) == 3


@pytest.mark.zeroxide_only
def test_signals_do_not_make_it_longer(zmq):
    """Signals of a timer do not restart the time limit for messages that cannot be sent."""
    script = start_script(
        zmq.__name__,
        """
        import signal
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        context = zmq.Context()
        socket = context.socket(zmq.PUSH)
        socket.connect("tcp://127.0.0.1:1")
        socket.send(b"without a peer")
        """,
    )
    # Python restores its signals just before the end, so the next signal may end the process.
    _, errors = finish_script(script, 0, -signal.SIGALRM)
    assert "1 to tcp://127.0.0.1:1" in errors


# Sends this process signals once it is in its last wait.
KNOCK = """
    import os, signal, sys, threading, time
    import zeroxide
    zeroxide.context.IDLE_MS = 1_000_000
    main = threading.get_ident()

    def is_waiting():
        frame = sys._current_frames()[main]
        while frame is not None and frame.f_code.co_name != "_terminate_implicitly":
            frame = frame.f_back
        return frame is not None

    def knock(signals):
        while not is_waiting():
            time.sleep(0.01)
        for _ in range(signals):
            os.kill(os.getpid(), signal.SIGALRM)
            time.sleep(0.1)
    """


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.parametrize("what", ["KeyboardInterrupt", "SystemExit(4)"])
def test_a_signal_ends_the_wait_and_not_the_reports(zmq, what, signals):
    script = start_script(
        zmq.__name__,
        textwrap.dedent(KNOCK)
        + textwrap.dedent(f"""
        def handle(*_):
            raise {what}

        signal.signal(signal.SIGALRM, handle)
        contexts = [zmq.Context() for _ in range(3)]
        sockets = [context.socket(zmq.PUSH) for context in contexts]
        for port, socket in enumerate(sockets, 1):
            socket.connect(f"tcp://127.0.0.1:{{port}}")
            socket.send(b"without a peer")
        threading.Thread(target=knock, args=[{signals}], daemon=True).start()
        """),
    )
    # Python restores its signals just before the end, so the second one may end the process.
    _, errors = finish_script(script, 0, -signal.SIGALRM)
    reports = [line for line in errors.splitlines() if "messages lost" in line]
    assert [line[-1] for line in reports] == ["1", "2", "3"]
    assert signals > 1 or "Traceback" not in errors


@pytest.mark.zeroxide_only
def test_an_error_of_a_handler_at_the_end_is_shown(zmq):
    _, errors = run_script(
        zmq.__name__,
        textwrap.dedent(KNOCK)
        + textwrap.dedent("""
        def handle(*_):
            raise LookupError("in the handler")

        signal.signal(signal.SIGALRM, handle)
        socket = zmq.Context.instance().socket(zmq.PUSH)
        socket.connect("tcp://127.0.0.1:1")
        socket.send(b"without a peer")
        threading.Thread(target=knock, args=[1], daemon=True).start()
        """),
    )
    assert "1 to tcp://127.0.0.1:1" in errors
    assert "LookupError: in the handler" in errors


@pytest.mark.zeroxide_only
def test_borrowed_memory(zmq):
    """Objects that the core references when the interpreter ends."""
    output, _ = run_script(
        zmq.__name__,
        """
        context = zmq.Context()
        socket = context.socket(zmq.PUSH)
        socket.connect("tcp://127.0.0.1:1")
        socket.linger = 0
        kept = [socket.send(bytearray(100_000), copy=False, track=True) for _ in range(50)]
        frame = zmq.Frame(b"x" * 100_000, copy=False)
        socket.send(frame)
        print("done")
        """,
    )
    assert output == "done\n"


def test_import_leaves_no_threads(zmq):
    output, _ = run_script(
        zmq.__name__,
        """
        import os
        print(len(os.listdir("/proc/self/task")))
        """,
    )
    assert output == "1\n"
