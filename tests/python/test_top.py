"""`zeroxide top` from outside: programs that are observed, and collectors."""

import json
import os
import signal
import socket
import sys

import pytest
from commands import Command, run
from support import PATIENCE, finish_script, start_script

pytestmark = pytest.mark.zeroxide_only

# A program that sends a message to itself for each line on its stdin, and answers with a line.
PROGRAM = """
import sys
context = zmq.Context()
pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
pull.bind("tcp://127.0.0.1:*")
push.routing_id = b"sender"
push.connect(pull.last_endpoint)
push.send(b"hello")
pull.recv()
print(zmq.observe().endpoint, flush=True)
for line in sys.stdin:
    push.send(line.encode())
    pull.recv()
    print(flush=True)
"""


@pytest.fixture(autouse=True)
def home(directory, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
    monkeypatch.setenv("COLUMNS", "160")
    return directory / "zeroxide"


@pytest.fixture
def start():
    """Starts observed programs."""
    started = []

    def start(script=PROGRAM):
        process = start_script("zeroxide", script)
        started.append(process)
        process.endpoint = process.stdout.readline().strip()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def report(*arguments, status=0):
    """The first object."""
    output, errors = run(
        "top", "--json", "--count", 1, "--interval", 0.1, *arguments, status=status
    )
    assert errors == ""
    return json.loads(output)


def socket_of(program, kind):
    [found] = [socket for socket in program["sockets"] if socket["type"] == kind]
    return found


def lines(*arguments):
    output, _ = run("top", "--count", 1, "--interval", 0.1, *arguments)
    return output.decode().splitlines()


def test_every_observable_program_is_found(start):
    one, other = start(), start()
    found = report()
    assert [program["pid"] for program in found["programs"]] == sorted([one.pid, other.pid])
    [program] = [program for program in found["programs"] if program["pid"] == one.pid]
    assert program["endpoint"] == one.endpoint
    assert program["command"].endswith("-c") or "-c" in program["command"]
    pull, push = socket_of(program, "PULL"), socket_of(program, "PUSH")
    assert (pull["received"], push["sent"], push["routing_id"]) == (1, 1, "sender")
    # They are None if a busy machine has kept the program from answering before.
    assert pull["rates"] is None or pull["rates"]["received"] == 0.0
    assert found["collectors"] == [] and found["problems"] == {}


def test_programs_are_named_by_pid_or_endpoint(start):
    one, other = start(), start()
    assert [program["pid"] for program in report(one.pid)["programs"]] == [one.pid]
    found = report(other.endpoint, one.pid)["programs"]
    assert [program["pid"] for program in found] == [other.pid, one.pid]


def test_rates_are_those_of_the_interval(start):
    program = start()
    with Command("top", program.pid, "--json", "--interval", 0.1) as top:
        before = None
        seen = 0
        while seen < 5:
            program.stdin.write("abc\n" * 5)
            program.stdin.flush()
            found = [(found["time"], socket_of(found, "PUSH")) for found in _next(top)["programs"]]
            # A program that a busy machine has kept from answering is left out, and has no rates after that.
            if found and before and (rates := found[0][1]["rates"]):
                (now, push), (then, push_before) = found[0], before[0]
                more = push["sent"] - push_before["sent"]
                # Rates times seconds are messages. Rates have one decimal.
                assert abs(rates["sent"] * (now - then) - more) <= 0.06 * (now - then)
                seen += more
            before = found


def test_the_socket_of_a_program_in_a_container_stays(home):
    home.mkdir(mode=0o700)
    # No process has this number here.
    path = home / "4200000.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        assert report()["problems"] == {"4200000": "it does not answer"}
        assert path.exists()
    assert report()["problems"] == {}
    assert not path.exists()


def _next(top):
    return json.loads(top.process.stdout.readline())


def test_programs_that_start_later_are_found_and_those_that_end_vanish(start):
    with Command("top", "--json", "--interval", 0.1) as top:
        assert _next(top)["programs"] == []
        program = start()
        while not (found := _next(top)["programs"]):
            pass
        # A program that was just found has no rates yet.
        assert [one["pid"] for one in found] == [program.pid]
        program.kill()
        while _next(top)["programs"]:
            pass


def test_a_killed_program_ends_the_command_that_names_it(start, home):
    program = start()
    with Command("top", program.pid, "--json", "--interval", 0.1) as top:
        assert _next(top)["programs"]
        program.send_signal(signal.SIGKILL)
        _, errors = top.finish(1)
    assert errors == "zeroxide: everything that was watched has ended\n"
    finish_script(program, -signal.SIGKILL)
    # Looking for programs removes what it has left.
    assert [file.name for file in home.iterdir()] == [f"{program.pid}.sock"]
    assert report()["programs"] == []
    assert list(home.iterdir()) == []


def test_a_stopped_program_is_reported_and_others_go_on(start):
    one, other = start(), start()
    with Command("top", one.pid, other.pid, "--json", "--interval", 0.1) as top:
        assert len(_next(top)["programs"]) == 2
        one.send_signal(signal.SIGSTOP)
        while not (found := _next(top))["problems"]:
            pass
        assert found["problems"] == {str(one.pid): "it does not answer"}
        # The other one continues to be asked.
        times = {program["time"] for program in found["programs"] if program["pid"] == other.pid}
        for _ in range(3):
            [time] = {one["time"] for one in _next(top)["programs"] if one["pid"] == other.pid}
            assert time not in times
            times.add(time)
        one.send_signal(signal.SIGCONT)
        while _next(top)["problems"]:
            pass


def test_a_program_that_is_not_observable_is_an_error():
    _, errors = run("top", os.getpid(), status=1)
    assert errors.startswith(f"zeroxide: there is no observable process {os.getpid()} (no answer")


def test_without_programs_it_says_how_to_start_one():
    assert lines() == ["no program is observable: start one with ZEROXIDE_OBSERVE=1"]


def test_the_folder_can_be_named(directory, monkeypatch):
    monkeypatch.setenv("ZEROXIDE_OBSERVE", str(directory / "other"))
    process = start_script("zeroxide", "context = zmq.Context(); print(flush=True); input()")
    process.stdout.readline()
    assert report()["programs"] == []
    [found] = report("--folder", directory / "other")["programs"]
    assert found["pid"] == process.pid
    [found] = report(process.pid, "--folder", directory / "other")["programs"]
    assert found["pid"] == process.pid
    finish_script_with_line(process)


def finish_script_with_line(process):
    process.stdin.write("\n")
    process.stdin.flush()
    process.communicate(timeout=PATIENCE)


def test_the_command_does_not_observe_itself(monkeypatch):
    monkeypatch.setenv("ZEROXIDE_OBSERVE", "1")
    with Command("top", "--json", "--interval", 0.1) as top:
        assert _next(top)["programs"] == []
        assert report()["programs"] == []


def test_tables(start):
    program = start()
    heading, columns, pull, push = lines(program.pid)
    assert heading.startswith(f"{program.pid}  ") and heading.endswith("(2 sockets)")
    assert columns.split()[:4] == ["socket", "type", "endpoint", "peers"]
    assert pull.split()[:2] == ["1.1", "PULL"] and push.split()[:2] == ["1.2", "PUSH"]


def test_text_of_peers_cannot_control_the_terminal(collector):
    collector.append([{"value": b"x", "topic": "\x1b[2Jevil\n"}])
    assert any(line.startswith("·[2Jevil·") for line in lines(collector.endpoint))


def test_several_peers_have_lines(start):
    program = start(PROGRAM.replace("push.send", 'push.connect("tcp://127.0.0.1:1"); push.send', 1))
    found = lines(program.pid)
    assert any("tcp://127.0.0.1:1 (not connected)" in line for line in found)
    hidden = lines(program.pid, "--peers", 0)
    assert not any("not connected" in line for line in hidden)
    assert any("and 2 more" in line for line in hidden)


@pytest.mark.parametrize("width", [20, 40, 80])
def test_tables_fit_into_narrow_terminals(start, monkeypatch, width):
    program = start()
    monkeypatch.setenv("COLUMNS", str(width))
    found = lines(program.pid)
    assert len(found) == 4 and max(map(len, found)) <= width
    assert "PULL" in found[2]


def test_sorting_and_filtering(start):
    program = start(
        """
        context = zmq.Context()
        dealer, push = context.socket(zmq.DEALER), context.socket(zmq.PUSH)
        for number, socket in enumerate((dealer, push), 1):
            socket.connect(f"tcp://127.0.0.1:{number}")
            for _ in range(number):
                socket.send(b"")
        print(zmq.observe().endpoint, flush=True)
        input()
        """
    )

    def kinds(*arguments):
        found = lines(program.pid, *arguments)[2:]
        return [line.split()[1] for line in found if line.split()[0].startswith("1.")]

    assert kinds() == kinds("--sort", "type") == ["DEALER", "PUSH"]
    assert kinds("--sort", "queued") == ["PUSH", "DEALER"]
    assert kinds("--filter", "push") == ["PUSH"]
    assert kinds("--filter", "127.0.0.1:1") == ["DEALER"]
    assert kinds("--filter", "no such thing") == []


def test_dropped_messages_and_marks_are_shown(start):
    program = start(
        """
        context = zmq.Context()
        router = context.socket(zmq.ROUTER)
        router.bind("inproc://router")
        for _ in range(3): router.send_multipart([b"nobody", b""])
        push = context.socket(zmq.PUSH)
        push.sndhwm = 2
        push.connect("tcp://127.0.0.1:1")
        for _ in range(2): push.send(b"")
        assert not push.poll(0, zmq.POLLOUT)
        print(zmq.observe().endpoint, flush=True)
        input()
        """
    )
    [found] = report(program.pid)["programs"]
    assert socket_of(found, "ROUTER")["dropped"] == {"unroutable": 3}
    assert socket_of(found, "PUSH")["full_out"] == 1
    assert any("3 unroutable" in line for line in lines(program.pid))


def test_many_sockets(start):
    program = start(
        """
        context = zmq.Context()
        context.max_sockets = 3000
        pub = context.socket(zmq.PUB)
        pub.bind("inproc://pub")
        subs = [context.socket(zmq.SUB) for _ in range(1500)]
        for sub in subs:
            sub.subscribe("")
            sub.connect("inproc://pub")
        print(zmq.observe().endpoint, flush=True)
        input()
        """
    )
    [found] = report(program.pid, "--peers", 5)["programs"]
    assert len(found["sockets"]) == 1501
    pub = socket_of(found, "PUB")
    assert (len(pub["peers"]), pub["peers_unlisted"], pub["peers_connected"]) == (5, 1495, 1500)
    assert len({socket["id"] for socket in found["sockets"]}) == 1501


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_quietly(start, number):
    program = start()
    with Command("top", program.pid, "--json", "--interval", 0.1) as top:
        _next(top)
        top.process.send_signal(number)
        _, errors = top.finish(-number)
        assert errors == ""


def test_the_end_of_the_reader_ends_it(start):
    program = start()
    with Command("top", program.pid, "--interval", 0.1) as top:
        top.process.stdout.readline()
        top.process.stdout.close()
        top.process.stdout = None
        assert top.process.wait(PATIENCE) == -signal.SIGPIPE


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "expected a PID or an endpoint"),
        (["--interval", "0"], "expected a number of seconds, 0.1 or more"),
        (["--count", "0"], "expected a whole number of tables, 1 or more"),
        (["--sort", "size"], "expected socket, rate, queued, dropped or type"),
        (["--prometheus", "9100"], "expected HOST:PORT"),
        (["tcp://127.0.0.1:1", "--key", __file__], "--key"),
    ],
)
def test_mistakes(arguments, words):
    _, errors = run("top", *arguments, status=2)
    assert words in errors and errors.count("\n") == 1


# ---- collectors ----------------------------------------------------------------------------------


@pytest.fixture
def collector(tmp_path):
    from zeroxide.pipeline import Client, Collector

    with Collector(tmp_path / "log") as collector, Client(collector.endpoint) as client:
        collector.append([{"value": b"x", "topic": "a"}] * 3)
        client.commit("etl", 1)
        yield collector


def test_collectors_show_topics_groups_and_the_disk(collector):
    [found] = report(collector.endpoint)["collectors"]
    assert (found["depth"], found["durable"], found["problem"]) == (3, 3, None)
    assert found["log_bytes"] > 0 and found["rates"] == {"rows": 0.0, "bytes": 0.0}
    [topic] = found["topics"]
    assert (topic["topic"], topic["rows"], topic["rates"]["rows"]) == ("a", 3, 0.0)
    assert found["groups"] == {
        "etl": {"offset": 1, "lag": 2, "missed": 0, "rates": {"offset": 0.0}}
    }
    text = "\n".join(lines(collector.endpoint))
    assert "depth 3" in text and "disk" in text
    assert text.splitlines()[-1].split() == ["etl", "1", "0", "2"]


def test_a_collector_that_ends_is_reported(collector):
    endpoint = collector.endpoint
    with Command("top", endpoint, "--json", "--interval", 0.1, "--timeout", 1) as top:
        assert _next(top)["collectors"][0]["problem"] is None
        collector.close()
        while not (problem := _next(top)["collectors"][0]["problem"]):
            pass
        assert endpoint in problem


def test_a_missing_collector_is_an_error():
    _, errors = run("top", "tcp://127.0.0.1:1", "--timeout", 0.1, status=1)
    assert errors.startswith("zeroxide: tcp://127.0.0.1:1 does not answer")


# ---- Prometheus ----------------------------------------------------------------------------------


def test_prometheus_gets_what_is_watched(start, collector):
    from urllib.request import urlopen

    program = start()
    with Command("top", program.pid, collector.endpoint, "--prometheus", "127.0.0.1:*") as top:
        line = top.process.stderr.readline().decode()
        assert line.startswith("metrics at http://127.0.0.1:")
        url = line.split()[-1]
        with urlopen(url, timeout=PATIENCE) as answer:
            text = answer.read().decode()
        assert f'zeroxide_sent_messages_total{{pid="{program.pid}",' in text
        assert (
            f'zeroxide_collector_group_lag_rows{{endpoint="{collector.endpoint}",group="etl"}} 2'
            in text
        )
        top.process.send_signal(signal.SIGTERM)
        top.finish(-signal.SIGTERM)


def test_prometheus_needs_targets_that_answer(start):
    program = start()
    program.send_signal(signal.SIGSTOP)
    arguments = ("--prometheus", "127.0.0.1:*", "--timeout", 0.2)
    _, errors = run("top", program.pid, *arguments, status=1)
    assert errors == f"zeroxide: process {program.pid}: it does not answer\n"


def test_importing_the_command_needs_no_optional_package():
    code = "import sys, zeroxide.cli.top; sys.exit('rich' in sys.modules)"
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0
