"""A process lets programs of its own user, and no others, see what its sockets do."""

import errno
import os
import signal
import socket as unix
import stat
import subprocess
import sys

import pytest
from support import eventually, finish_script, run_script, start_script

pytestmark = pytest.mark.zeroxide_only

NOBODY = 65534
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")


@pytest.fixture(autouse=True)
def home(directory, monkeypatch):
    """The default folder is below an empty one."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
    return directory / "zeroxide"


@pytest.fixture
def observer(zmq):
    with zmq.Observer() as observer:
        yield observer


def path_of(endpoint):
    return endpoint.removeprefix("ipc://")


def ask(zmq, context, endpoint, *parts):
    """The answer to a request."""
    with context.socket(zmq.REQ) as req:
        req.connect(endpoint)
        req.send_multipart(parts or [b"zeroxide-observe/1"])
        return zmq.metrics.parse(req.recv())


def sockets_of(snapshot, kind):
    every = [socket for context in snapshot["contexts"] for socket in context["sockets"]]
    return [socket for socket in every if socket["type"] == kind]


def test_an_observer_answers_with_every_socket(zmq, context, sockets, observer):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"12345")
    pull.recv()
    snapshot = ask(zmq, context, observer.endpoint)
    assert snapshot["version"] == 1 and snapshot["pid"] == os.getpid()
    [pulled] = [
        found
        for found in sockets_of(snapshot, "PULL")
        if found["bound"] == [pull.last_endpoint.decode()]
    ]
    assert (pulled["received"], pulled["received_bytes"], pulled["connections"]) == (1, 5, 1)
    assert [peer["received"] for peer in pulled["peers"]] == [1]
    # The observer's own socket is no concern of the program.
    assert sockets_of(snapshot, "REP") == []


def test_the_fields_of_a_snapshot_are_those_of_its_type(zmq, sockets):
    sockets.pair(zmq.PULL, zmq.PUSH)
    snapshot = zmq.metrics.snapshot()
    metrics = zmq.metrics
    assert set(snapshot) == set(metrics.Snapshot.__annotations__)
    context = snapshot["contexts"][-1]
    assert set(context) == set(metrics.ContextSnapshot.__annotations__)
    for socket in context["sockets"]:
        assert set(socket) == set(metrics.SocketSnapshot.__annotations__)
        for peer in socket["peers"]:
            assert set(peer) == set(metrics.PeerSnapshot.__annotations__)


def test_sockets_of_producers_and_closed_contexts(zmq):
    """Contexts that Python does not see are observed, and those that have ended are not."""
    output, _ = run_script(
        "zeroxide",
        """
        from zeroxide.pipeline import Producer
        def count(): return [len(c["sockets"]) for c in zmq.metrics.snapshot()["contexts"]]
        with zmq.Context() as context:
            context.socket(zmq.PUSH).close()
            print(count())
        print(count())
        producer = Producer("tcp://127.0.0.1:1")
        [context] = zmq.metrics.snapshot()["contexts"]
        print([socket["type"] for socket in context["sockets"]])
        """,
    )
    first, second, third = output.splitlines()
    assert (first, second) == ("[0]", "[]")
    assert "DEALER" in third


def test_only_the_longest_queues_are_listed(zmq, context, sockets):
    push = context.socket(zmq.PUSH)
    for _ in range(3):
        push.connect("tcp://127.0.0.1:1")
    for _ in range(4):
        push.send(b"")
    [found] = sockets_of(zmq.metrics.snapshot(peers=1), "PUSH")
    assert [peer["queued_out"] for peer in found["peers"]] == [2]
    assert (found["peers_unlisted"], found["queued_out"], found["peers_connected"]) == (2, 4, 0)
    [found] = sockets_of(zmq.metrics.snapshot(peers=0), "PUSH")
    assert found["peers"] == [] and found["peers_unlisted"] == 3


def test_a_request_may_limit_the_peers(zmq, context, observer):
    push = context.socket(zmq.PUSH)
    push.connect("tcp://127.0.0.1:1")
    snapshot = ask(zmq, context, observer.endpoint, b"zeroxide-observe/1", b"0")
    [found] = sockets_of(snapshot, "PUSH")
    assert found["peers_unlisted"] == 1


@pytest.mark.parametrize(
    "parts", [[b""], [b"zeroxide-observe/2"], [b"zeroxide-observe/1", b"many"]]
)
def test_other_requests_are_refused_and_the_next_one_is_answered(zmq, context, observer, parts):
    with pytest.raises(ValueError, match=r"refused the request: .*part is not"):
        ask(zmq, context, observer.endpoint, *parts)
    assert ask(zmq, context, observer.endpoint)["pid"] == os.getpid()


@pytest.mark.parametrize("text", ["[]", '{"version": 2, "contexts": []}', "{}"])
def test_answers_of_other_versions_are_errors(zmq, text):
    with pytest.raises(ValueError, match="expected a snapshot of version 1"):
        zmq.metrics.parse(text)


# ---- who may look --------------------------------------------------------------------------------


def test_only_the_user_can_open_the_endpoint(observer, home):
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    mode = os.stat(path_of(observer.endpoint)).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
    assert os.path.dirname(path_of(observer.endpoint)) == str(home)


# Connects as another user; Python starts as this one, which can read its files.
CONNECT = f"""
import os, socket, sys
if sys.argv[2] == "other":
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
peer = socket.socket(socket.AF_UNIX)
try:
    peer.connect(sys.argv[1])
    # ZMTP begins with a greeting.
    print(peer.recv(1))
except OSError as error:
    print(type(error).__name__)
"""


def greeting(endpoint, user):
    """What another program gets that connects."""
    command = [sys.executable, "-c", CONNECT, path_of(endpoint), user]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@as_root
def test_other_users_cannot_connect(observer, directory):
    os.chmod(directory, 0o755)
    assert greeting(observer.endpoint, "other") == "PermissionError\n"
    assert greeting(observer.endpoint, "same") == "b'\\xff'\n"


@as_root
def test_other_users_get_no_answer_even_if_the_permissions_are_changed(observer, directory):
    path = path_of(observer.endpoint)
    for entry, mode in ((directory, 0o755), (os.path.dirname(path), 0o755), (path, 0o666)):
        os.chmod(entry, mode)
    assert greeting(observer.endpoint, "other") == "b''\n"
    assert greeting(observer.endpoint, "same") == "b'\\xff'\n"


@as_root
def test_a_folder_of_another_user_is_refused(zmq, directory):
    folder = directory / "theirs"
    folder.mkdir(mode=0o700)
    os.chown(folder, NOBODY, NOBODY)
    with pytest.raises(zmq.ZMQError, match="another user's") as failed:
        zmq.Observer(folder)
    assert failed.value.errno == errno.EACCES


def test_a_folder_that_others_may_open_is_refused(zmq, directory):
    folder = directory / "open"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(zmq.ZMQError, match="chmod 700"):
        zmq.Observer(folder)
    assert list(folder.iterdir()) == []


def test_a_link_is_refused(zmq, directory):
    (directory / "real").mkdir(mode=0o700)
    (directory / "link").symlink_to(directory / "real")
    with pytest.raises(zmq.ZMQError, match="this is none"):
        zmq.Observer(directory / "link")


def test_a_missing_parent_is_an_error_of_the_system(zmq, directory):
    with pytest.raises((OSError, zmq.ZMQError), match="No such file"):
        zmq.Observer(directory / "a" / "b")


# ---- opting in -----------------------------------------------------------------------------------

SHOW = """
import os
def files(): return sorted(os.listdir(os.environ["XDG_RUNTIME_DIR"] + "/zeroxide"))
"""


def test_observe_opens_once_and_the_end_of_the_program_removes_the_file(home):
    output, errors = run_script(
        "zeroxide",
        f"""{SHOW}
        observer = zmq.observe()
        assert zmq.observe() is observer and not observer.closed
        assert files() == [f"{{os.getpid()}}.sock"]
        observer.close()
        observer.close()
        assert files() == [] and observer.closed, observer
        with zmq.observe() as again:
            assert again is not observer
            assert files() == [f"{{os.getpid()}}.sock"]
        zmq.observe()
        print("done")
        """.replace("\n        ", "\n"),
    )
    assert (output, errors) == ("done\n", "")
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("value", ["1", "yes"])
def test_the_environment_opts_in_with_the_first_context(value, home, monkeypatch):
    monkeypatch.setenv("ZEROXIDE_OBSERVE", value)
    script = "import os; before = os.path.exists(os.environ['XDG_RUNTIME_DIR'] + '/zeroxide')\n"
    script += (
        f"{SHOW}\ncontext = zmq.Context()\nprint(before, files() == [f'{{os.getpid()}}.sock'])"
    )
    assert run_script("zeroxide", script) == ("False True\n", "")


def test_the_environment_may_name_a_folder(directory, home, monkeypatch):
    monkeypatch.setenv("ZEROXIDE_OBSERVE", str(directory / "mine"))
    script = "context = zmq.Context(); import os; print(os.listdir(os.environ['ZEROXIDE_OBSERVE']))"
    output, _ = run_script("zeroxide", script)
    assert output.endswith(".sock']\n") and not home.exists()


@pytest.mark.parametrize("value", ["", "0", "off"])
def test_the_environment_may_opt_out(value, home, monkeypatch):
    monkeypatch.setenv("ZEROXIDE_OBSERVE", value)
    run_script("zeroxide", "context = zmq.Context()")
    assert not home.exists()


def test_a_program_works_although_it_cannot_be_observed(home, monkeypatch):
    monkeypatch.setenv("ZEROXIDE_OBSERVE", "/does/not/exist")
    script = "zmq.Context(); zmq.Context(); print('works')"
    output, errors = run_script("zeroxide", script)
    assert output == "works\n" and errors.count("this process is not observed") == 1


# ---- forks and the end ---------------------------------------------------------------------------


def test_a_child_has_an_endpoint_of_its_own_and_leaves_that_of_its_parent(home):
    output, errors = run_script(
        "zeroxide",
        f"""{SHOW}
        import gc
        observer = zmq.observe()
        mine = f"{{os.getpid()}}.sock"
        pid = os.fork()
        if not pid:
            assert observer.closed and files() == [mine]
            observer.close()
            context = zmq.Context()
            assert files() == sorted([mine, f"{{os.getpid()}}.sock"]), files()
            [only] = zmq.metrics.snapshot()["contexts"]
            with context.socket(zmq.REQ) as req:
                req.connect(zmq.observe().endpoint)
                req.send(b"zeroxide-observe/1")
                assert zmq.metrics.parse(req.recv())["pid"] == os.getpid()
            zmq.observe().close()
            del observer
            gc.collect()
            assert files() == [mine]
            os._exit(0)
        print(os.waitpid(pid, 0)[1], files() == [mine], observer.closed)
        """.replace("\n        ", "\n"),
    )
    assert output == "0 True False\n", errors


def test_a_fork_beside_a_thread_that_begins_to_wait_does_not_stop_the_child(home):
    """The observer's thread waits for the first time in its process. A fork at that moment once stopped one child in 40."""
    source = f"""{SHOW}
        observer = zmq.observe()
        pid = os.fork()
        if not pid:
            with zmq.Context() as context, context.socket(zmq.REQ) as req:
                req.connect(zmq.observe().endpoint)
                req.send(b"zeroxide-observe/1")
                req.recv()
            os._exit(0)
        print(os.waitpid(pid, 0)[1])
        """.replace("\n        ", "\n")
    for _ in range(60):
        output, errors = run_script("zeroxide", source)
        assert output == "0\n", errors


def test_a_thread_that_holds_the_lists_lock_does_not_stop_a_child():
    """Children are forked while other threads make contexts. Each makes a context of its own."""
    output, errors = run_script(
        "zeroxide",
        """
        import os, threading
        over = threading.Event()
        def churn():
            while not over.is_set():
                zmq.Context().term()
        threads = [threading.Thread(target=churn) for _ in range(3)]
        for thread in threads: thread.start()
        statuses = []
        for _ in range(30):
            pid = os.fork()
            if not pid:
                context = zmq.Context()
                pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
                pull.bind("inproc://a")
                push.connect("inproc://a")
                push.send(b"1")
                os._exit(0 if pull.recv() == b"1" else 1)
            statuses.append(os.waitpid(pid, 0)[1])
        over.set()
        for thread in threads: thread.join()
        print(set(statuses))
        """,
    )
    assert output == "{0}\n", errors


def test_what_a_killed_program_leaves_is_removed(zmq, context, home):
    script = "print(zmq.observe().endpoint, flush=True); input()"
    process = start_script("zeroxide", script)
    endpoint = process.stdout.readline().strip()
    process.send_signal(signal.SIGKILL)
    finish_script(process, -signal.SIGKILL)
    left = home / os.path.basename(endpoint)
    other = home / f"{os.getpid()}.sock"
    os.link(left, other)
    # The next observer removes it, and replaces what has its name.
    with zmq.Observer() as observer:
        assert list(home.iterdir()) == [other]
        assert ask(zmq, context, observer.endpoint)["pid"] == os.getpid()


def test_sockets_may_close_while_they_are_looked_at():
    output, errors = run_script(
        "zeroxide",
        """
        import threading
        context = zmq.Context()
        over = threading.Event()
        def churn():
            while not over.is_set():
                with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
                    pull.bind(f"inproc://{id(pull)}")
                    push.connect(f"inproc://{id(pull)}")
                    push.send(b"x")
                    pull.recv()
        threads = [threading.Thread(target=churn) for _ in range(2)]
        for thread in threads: thread.start()
        for _ in range(300):
            for found in zmq.metrics.snapshot()["contexts"]:
                for socket in found["sockets"]:
                    assert socket["type"] in ("PULL", "PUSH") and "peers" in socket
        over.set()
        for thread in threads: thread.join()
        context.term()
        print("done")
        """,
    )
    assert output == "done\n", errors


def test_a_client_that_never_reads_does_not_stop_the_others(zmq, context, observer):
    rude = context.socket(zmq.DEALER)
    rude.rcvhwm = 1
    rude.connect(observer.endpoint)
    for _ in range(50):
        rude.send_multipart([b"", b"zeroxide-observe/1"])
    assert ask(zmq, context, observer.endpoint)["pid"] == os.getpid()


def test_nothing_wakes_up_while_no_program_looks(zmq, context, observer):
    """The threads of the observer sleep: they are not switched to."""
    ask(zmq, context, observer.endpoint)
    with context.socket(zmq.PAIR) as idle:
        idle.bind("inproc://idle")

        def rests():
            before = _switches("zeroxide/watch")
            assert not idle.poll(300)
            return before == _switches("zeroxide/watch")

        # It may still be busy with the end of its answer.
        eventually(rests)
    assert _switches("zeroxide/watch")


def _threads(name):
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/status") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
        if status["Name"] == name:
            yield status


def _switches(name):
    return [status["voluntary_ctxt_switches"] for status in _threads(name)]


def test_only_a_stale_socket_is_replaced(zmq, home):
    """Another file in the way is not removed."""
    home.mkdir(mode=0o700)
    path = home / f"{os.getpid()}.sock"
    path.write_text("precious")
    with pytest.raises(zmq.ZMQError) as failed:
        zmq.Observer()
    assert failed.value.errno == zmq.EADDRINUSE
    assert path.read_text() == "precious"
    path.unlink()
    with unix.socket(unix.AF_UNIX) as stale:
        stale.bind(str(path))
    zmq.Observer().close()
