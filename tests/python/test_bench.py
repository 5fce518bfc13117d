"""The command `zeroxide bench`: what it measures, and what it says. No test depends on a speed."""

import io
import itertools
import json
import re
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import Command
from support import eventually, finish_script, lasting_endpoint, start_script

pytestmark = pytest.mark.zeroxide_only

SHORT = ("--seconds", 0.01, "--repeats", 2)
SHORTEST = ("--count", 10, "--repeats", 1, "--sizes", 64)
PATTERNS = {
    "pushpull": "PUSH/PULL",
    "pubsub": "PUB/SUB",
    "reqrep": "REQ/REP",
    "dealerrouter": "DEALER/ROUTER",
}


@pytest.fixture
def bench():
    """Runs the command; returns stdout and stderr."""

    def run(*arguments, status=0):
        with Command("bench", *arguments) as command:
            out, errors = command.finish(status)
            return out.decode(), errors

    return run


@pytest.fixture
def refused(capsys):
    """Runs the command in this process; returns the line that it writes to stderr."""

    def run(*arguments, status):
        from zeroxide.cli import main

        try:
            code = main(["bench", *arguments])
        except SystemExit as ended:
            code = ended.code
        written = capsys.readouterr()
        assert code == status
        assert written.out == "" and written.err.count("\n") == 1
        return written.err

    return run


@pytest.fixture
def listener():
    """Starts the listening side; returns its endpoint."""
    started = []

    def start(endpoint="tcp://127.0.0.1:*", *arguments):
        command = Command("bench", "--listen", endpoint, *arguments)
        started.append(command)
        line = command.process.stderr.readline().decode()
        return re.match("bound to ([^;]+);", line)[1]

    yield start
    for command in started:
        command.__exit__()


def measured(out):
    """The results by transport, pattern and size."""
    results = json.loads(out)["results"]
    return {(one["transport"], one["pattern"], one["size"]): one for one in results}


def ordered(values):
    return 0 < values["least"] <= values["median"] <= values["most"]


# ---- on one machine -----------------------------------------------------------------


def test_all_patterns_over_all_transports(bench):
    out, errors = bench(*SHORT, "--json", "--sizes", "64,1KiB", "--patterns", ",".join(PATTERNS))
    results = measured(out)
    assert errors == ""
    expected = itertools.product(("tcp", "ipc", "inproc"), PATTERNS.values(), (64, 1024))
    assert set(results) == set(expected)
    for (_, pattern, size), result in results.items():
        assert ordered(result["messages_per_second"])
        assert result["count"] >= 10
        median = result["messages_per_second"]["median"]
        assert result["bytes_per_second"] == median * size
        assert ("round_trip_us" in result) is (pattern in ("REQ/REP", "DEALER/ROUTER"))
        if "round_trip_us" in result:
            trips = result["round_trip_us"]
            assert list(trips) == ["p50", "p99", "p99.9", "max"]
            assert all(map(ordered, trips.values()))
            medians = [value["median"] for value in trips.values()]
            assert medians == sorted(medians)


def test_chart_without_a_terminal(bench):
    out, errors = bench("tcp", *SHORT, "--sizes", 64)
    rates, _, _, trips, result = lines = out.splitlines()[0:3] + out.splitlines()[3:5]
    assert errors == "" and "\x1b" not in out
    assert re.fullmatch(r"PUSH/PULL +messages/s +range +bytes/s", rates)
    assert re.fullmatch(r"64 B  tcp +█+ .* +[\d.]+ [kM ]?.*B", lines[1])
    assert re.fullmatch(r"REQ/REP +p50 µs +range +p99 +p99.9 +max +trips/s", trips)
    assert re.fullmatch(r"64 B  tcp +[█▏▎▍▌▋▊▉░]+( +[\d.–]+){6}( k)?", result)


def test_count_is_exact(bench):
    results = measured(bench("inproc", "--count", 7, "--repeats", 1, "--json")[0])
    assert {result["count"] for result in results.values()} == {7}


def test_window_may_exceed_the_queues(bench):
    arguments = ("--patterns", "dealerrouter", "--window", 5000, "--sizes", "4K", "--count", 100)
    assert measured(bench("ipc", *arguments, "--json")[0])


def test_curve_with_new_keys(bench):
    results = measured(bench(*SHORT, "--curve", "--sizes", 64, "--json")[0])
    assert {transport for transport, _, _ in results} == {"tcp", "ipc"}


def test_new_keys_are_for_each_side(zmq, context):
    from zeroxide.cli.bench import _new_keys

    for configure, is_server in zip(_new_keys(), (True, False), strict=True):
        with context.socket(zmq.REQ) as socket:
            configure(socket)
            assert (socket.mechanism, socket.curve_server) == (zmq.CURVE, is_server)


def test_ctrl_c_ends_both_processes_quietly():
    with Command("bench", "tcp", "--seconds", 600, "--timeout", 600) as command:
        child = eventually(lambda: children(command.process.pid))[0]
        eventually(lambda: ticks(child) > 10)  # it measures
        command.process.send_signal(signal.SIGINT)
        assert command.finish(-signal.SIGINT) == (b"", "")
    eventually(lambda: not lives(child))


def test_other_process_ends_with_a_killed_one():
    with Command("bench", "tcp", "ipc", "--seconds", 600, "--timeout", 1) as command:
        both = eventually(lambda: len(found := children(command.process.pid)) == 2 and found)
        command.process.kill()
        eventually(lambda: not any(map(lives, both)))


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def ticks(pid):
    """The processor time of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# ---- between two sides --------------------------------------------------------------


def test_between_two_sides(bench, listener):
    endpoint = listener()
    for _ in range(2):
        out, _ = bench("--connect", endpoint, *SHORT, "--json", "--sizes", "10,20")
        expected = itertools.product(("tcp",), ("PUSH/PULL", "REQ/REP"), (10, 20))
        assert set(measured(out)) == set(expected)


BENCH = """
from zeroxide.cli import main

sys.stdout.reconfigure(line_buffering=True)
sys.stderr = sys.stdout
sys.exit(main(["bench", *sys.argv[1:]]))
"""


def test_between_two_machines(machines):
    machines.cable()
    machines.plug_in()
    place = "tcp://10.77.0.1:5555"
    listening = machines.start(machines.place, "zeroxide", BENCH, "--listen", place)
    line = f"bound to {place}; measured sockets at tcp://10.77.0.1:5556\n"
    assert listening.stdout.readline() == line
    arguments = map(str, ("--connect", place, *SHORTEST, "--json"))
    connecting = machines.start(machines.home, "zeroxide", BENCH, *arguments)
    results = measured(connecting.stdout.read())
    assert set(results) == {("tcp", "PUSH/PULL", 64), ("tcp", "REQ/REP", 64)}


def test_next_port_is_used(bench, directory):
    endpoint = lasting_endpoint()
    port = int(endpoint.rpartition(":")[2])
    with Command("bench", "--listen", endpoint) as command:
        line = command.process.stderr.readline().decode()
        assert line == f"bound to {endpoint}; measured sockets at tcp://127.0.0.1:{port + 1}\n"
        assert measured(bench("--connect", endpoint, *SHORTEST, "--json")[0])
    with Command("bench", "--listen", f"ipc://{directory}/x") as command:
        line = command.process.stderr.readline().decode()
        assert line.endswith(f"measured sockets at ipc://{directory}/x-data\n")
        assert measured(bench("--connect", f"ipc://{directory}/x", *SHORTEST, "--json")[0])


def test_keys(bench, directory):
    from zeroxide.auth import create_certificates

    for name in ("server", "alice"):
        create_certificates(directory, name)
    server = ("--key", directory / "server.key_secret", "--allow", "*")
    alice = ("--server-key", directory / "server.key", "--key", directory / "alice.key_secret")
    with Command("bench", "--listen", "tcp://127.0.0.1:*", *server) as command:
        endpoint = re.match("bound to ([^;]+);", command.process.stderr.readline().decode())[1]
        assert measured(bench("--connect", endpoint, *alice, *SHORTEST, "--json")[0])
        _, errors = bench("--connect", endpoint, "--timeout", 0.3, status=124)
    expected = f"zeroxide: no answer from {endpoint} within 0.3 s"
    assert errors.startswith(expected)


def test_no_other_side(bench):
    _, errors = bench("--connect", "tcp://127.0.0.1:9", "--timeout", 0.2, status=124)
    assert errors == (
        "zeroxide: no answer from tcp://127.0.0.1:9 within 0.2 s; expected zeroxide bench --listen"
        " there\n"
    )


def test_another_program_at_the_other_side(zmq, context, sockets):
    stranger = sockets.bound(zmq.REP)
    endpoint = stranger.last_endpoint.decode()
    for reply in (b"hello", b"[]", b'{"error": "too tired"}'):
        with Command("bench", "--connect", endpoint) as command:
            stranger.recv()
            stranger.send(reply)
            _, errors = command.finish(1)
        reason = "too tired" if b"error" in reply else "is no zeroxide bench --listen"
        assert endpoint in errors and reason in errors


class Client:
    """The requests of a client, one by one."""

    def __init__(self, sockets, zmq, endpoint, name):
        self.socket = sockets.context.socket(zmq.REQ)
        self.socket.connect(endpoint)
        self.name = name

    def __call__(self, do, **request):
        return self.say(json.dumps({"client": self.name, "do": do, **request}).encode())

    def say(self, request):
        self.socket.send(request)
        return json.loads(self.socket.recv())


def test_malformed_requests(zmq, sockets, listener):
    client = Client(sockets, zmq, listener("tcp://127.0.0.1:*", "--timeout", 0.2), "a")
    for request in (b"", b"\xff", b"3", b"[" * 100_000, b"{}"):
        assert "error" in client.say(request)
    client.socket.send_multipart([b"{}", b"{}"])
    assert json.loads(client.socket.recv()) == {"error": "the request has several parts"}
    numbers = {"size": 1, "warm_up": 1, "count": 1}
    assert client("measure", **numbers) == {"error": "no pattern is open"}
    assert client("open", pattern="pair") == {"error": "there is no pattern 'pair'"}
    assert client("dance") == {"error": "there is no request 'dance'"}
    for name, value in (("size", -1), ("count", 1.5), ("warm_up", None), ("size", 2**31)):
        client("open", pattern="pushpull")
        assert name in client("measure", **numbers | {name: value})["error"]
    client("open", pattern="pushpull")
    assert client("measure", **numbers) == {"error": "messages did not arrive"}
    assert "listening" in client("open", pattern="pushpull")


def test_size_of_messages_is_checked(zmq, context, sockets, listener):
    client = Client(sockets, zmq, listener(), "a")
    for sent, size in ((b"12", 2), (b"12", 3)):
        push = context.socket(zmq.PUSH)
        push.connect(client("open", pattern="pushpull")["listening"])
        for _ in range(3):
            push.send(sent)
        reply = client("measure", size=size, warm_up=1, count=2)
        push.close()
        if size == len(sent):
            assert reply["nanoseconds"] > 0
        else:
            assert reply == {"error": "a message of 2 bytes arrived instead of one of 3"}


def test_one_client_at_a_time(zmq, sockets, listener):
    endpoint = listener()
    one, other = (Client(sockets, zmq, endpoint, name) for name in ("one", "other"))
    one("open", pattern="reqrep")
    assert other("open", pattern="reqrep") == {"error": "it is measuring with another client"}
    assert one("close") == {}
    assert "listening" in other("open", pattern="reqrep")


def test_silent_client_is_given_up(zmq, sockets, listener):
    endpoint = listener("tcp://127.0.0.1:*", "--timeout", 0.05)
    one, other = (Client(sockets, zmq, endpoint, name) for name in ("one", "other"))
    one("open", pattern="reqrep")
    eventually(lambda: "listening" in other("open", pattern="reqrep"))


# ---- the guide's programs -----------------------------------------------------------

RATE = r"message size: 64 \[B\]\nmessage count: 1000\nmean throughput: \d+ \[msg/s\]\nmean throughput: [\d.]+ \[Mb/s\]\n"
LATENCY = r"message size: 64 \[B\]\nroundtrip count: 1000\naverage latency: [\d.]+ \[us\]\n"


@pytest.mark.parametrize(("name", "expected"), [("thr", (RATE, "")), ("lat", ("", LATENCY))])
def test_programs_of_the_guide(directory, name, expected):
    arguments = (f"ipc://{directory}/{name}", 64, 1000)
    with (
        Command("bench", f"local_{name}", *arguments) as local,
        Command("bench", f"remote_{name}", *arguments) as remote,
    ):
        for command, text in zip((local, remote), expected, strict=True):
            out, errors = command.finish()
            assert re.fullmatch(text, out.decode())
            assert errors == ""


# The calls of libzmq's programs.
LIBZMQ = """
    import sys
    kind, endpoint = sys.argv[1:]
    context = zmq.Context()
    socket = context.socket({"local_thr": zmq.PULL, "remote_thr": zmq.PUSH, "local_lat": zmq.REP}.get(kind, zmq.REQ))
    (socket.bind if kind.startswith("local") else socket.connect)(endpoint)
    for _ in range(1000):
        if kind.startswith("remote"):
            socket.send(bytes(64))
        if kind != "remote_thr":
            assert len(socket.recv()) == 64
        if kind == "local_lat":
            socket.send(bytes(64))
    socket.close()
    context.term()
"""


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("local_thr", "remote_thr", RATE),
        ("remote_thr", "local_thr", ""),
        ("local_lat", "remote_lat", ""),
        ("remote_lat", "local_lat", LATENCY),
    ],
)
def test_programs_of_libzmq(directory, ours, theirs, expected):
    pytest.importorskip("zmq")
    endpoint = f"ipc://{directory}/guide"
    with Command("bench", ours, endpoint, 64, 1000) as command:
        finish_script(start_script("zmq", LIBZMQ, theirs, endpoint))
        out, errors = command.finish()
    assert re.fullmatch(expected, out.decode())
    assert errors == ""


@pytest.mark.parametrize(("local", "remote"), [("local_thr", "PUSH"), ("local_lat", "REQ")])
def test_size_of_the_guide_is_checked(zmq, context, directory, local, remote):
    peer = context.socket(zmq.SocketType[remote])
    peer.connect(f"ipc://{directory}/guide")
    peer.send(b"12")
    with Command("bench", local, f"ipc://{directory}/guide", 64, 1) as command:
        _, errors = command.finish(1)
    assert errors == "zeroxide: a message of 2 bytes arrived instead of one of 64\n"


# ---- mistakes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["tpc"], "expected tcp, ipc, inproc or an endpoint, got 'tpc'"),
        (["--patterns", "pushpul"], "did you mean 'pushpull'"),
        (["--sizes", "64,big"], "expected a number of bytes, such as 1048576, 64K or 100G"),
        (["--repeats", "0"], "expected a whole number of repeats, 1 or more, got '0'"),
        (["--listen", "tcp://*:1", "tcp"], "so 'tcp' is not possible"),
        (["--listen", "tcp://*:1", "--connect", "tcp://a:1"], "one side takes --listen"),
        (["--connect", "tcp://a:1", "--curve"], "--curve is for one machine"),
        (["--allow", "*"], "on one machine, --curve makes them"),
        (["local_thr", "tcp://*:1", "64"], "local_thr takes an endpoint, a size and a count"),
        (["local_lat", "tcp://*:1", "x", "1"], "local_lat: expected a whole number of bytes"),
    ],
)
def test_mistakes(refused, arguments, text):
    assert text in refused(*arguments, status=2)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nowhere://x"], "no transport is called 'nowhere'"),
        (["ipc:///nonexistent/x"], "the directory of /nonexistent/x does not exist"),
        (["--listen", "tcp://127.0.0.1:65535"], "has no next port"),
    ],
)
def test_endpoints_that_cannot_be_used(bench, arguments, text):
    out, errors = bench(*arguments, status=1)
    assert out == "" and errors.count("\n") == 1
    assert text in errors


# ---- figures and charts -------------------------------------------------------------


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 500), (99, 990), (99.9, 999), (100, 1000), (0, 1)]
)
def test_percentiles(percent, expected):
    from zeroxide.cli.bench.figures import percentile

    assert percentile(range(1, 1001), percent) == expected
    assert percentile([7], percent) == 7


def test_round_trips_with_requests_ahead(monkeypatch):
    """Each reply is compared with the reply after which its request was sent."""
    from zeroxide.cli.bench import loops

    monkeypatch.setattr(loops, "perf_counter_ns", itertools.count().__next__)
    socket = SimpleNamespace(send=lambda body: None, recv=lambda: b"")
    trips, elapsed = loops.ask_ahead(socket, b"", 10, 3)
    assert trips == [3] * 7 + [4] * 3  # the last three also have the look at the clock for the end
    assert elapsed == 11


@pytest.mark.parametrize(
    ("given", "bound", "beside"),
    [
        ("tcp://*:5555", "tcp://0.0.0.0:5555", "tcp://0.0.0.0:5556"),
        ("tcp://[::1]:5555", "tcp://[::1]:5555", "tcp://[::1]:5556"),
        ("tcp://127.0.0.1:*", "tcp://127.0.0.1:4242", "tcp://127.0.0.1:*"),
        ("tcp://127.0.0.1:0", "tcp://127.0.0.1:4242", "tcp://127.0.0.1:*"),
        ("ipc:///tmp/x", "ipc:///tmp/x", "ipc:///tmp/x-data"),
    ],
)
def test_where_measured_sockets_listen(given, bound, beside):
    from zeroxide.cli.bench.patterns import listening_beside

    assert listening_beside(given, bound) == beside


@pytest.mark.parametrize(
    ("endpoint", "listening", "expected"),
    [
        ("tcp://server:5555", "tcp://0.0.0.0:5556", "tcp://server:5556"),
        ("ipc://run/x", "ipc:///home/run/x-data", "ipc://run/x-data"),
    ],
)
def test_where_measured_sockets_connect(endpoint, listening, expected):
    from zeroxide.cli.bench.patterns import beside

    assert beside(endpoint, listening) == expected


class Terminal(io.TextIOWrapper):
    def __init__(self, encoding="utf-8", is_terminal=True):
        super().__init__(io.BytesIO(), encoding=encoding)
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


def results():
    from zeroxide.cli.bench.figures import Measurement

    trips = [10_000] * 98 + [20_000, 40_000]
    return [
        Measurement("tcp", "PUSH/PULL", 64, 100, [(500_000.0, []), (1e6, []), (2e6, [])]),
        Measurement("ipc", "PUSH/PULL", 64, 100, [(2e6, [])]),
        Measurement("tcp", "PUSH/PULL", 1024, 100, [(999.6, [])]),
        Measurement("tcp", "REQ/REP", 64, 100, [(1234.5, trips)]),
    ]


@pytest.fixture
def drawn(monkeypatch):
    def draw(terminal, **variables):
        from zeroxide.cli.bench.chart import Style, chart

        for name in ("NO_COLOR", "TERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"COLUMNS": "70", **variables}.items():
            monkeypatch.setenv(name, value)
        return [line.rstrip() for line in chart(results(), Style(terminal))]

    return draw


def test_chart(drawn):
    plain = drawn(Terminal(is_terminal=False))
    assert plain == [
        "PUSH/PULL                           messages/s          range  bytes/s",
        " 64 B  tcp  ███████████                 1.00 M   500 k–2.00 M  64.0 MB",
        "       ipc  ██████████████████████      2.00 M  2.00 M–2.00 M   128 MB",
        "1 KiB  tcp  ██████████████████████      1.00 k  1.00 k–1.00 k  1.02 MB",
        "",
        "REQ/REP                  p50 µs      range   p99  p99.9   max  trips/s",
        "64 B  tcp  ██████░░░░░░    10.0  10.0–10.0  20.0   40.0  40.0   1.23 k",
    ]


def test_chart_in_a_terminal(drawn):
    plain = drawn(Terminal(is_terminal=False))
    coloured = drawn(Terminal())
    assert "\x1b[36m█" in coloured[1] and "\x1b[33m█" in coloured[2]
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in coloured] == plain
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert drawn(Terminal(), **variables) == plain


def test_chart_in_ascii(drawn):
    lines = drawn(Terminal("ascii"), NO_COLOR="1")
    assert all(line.isascii() for line in lines)
    assert "########" in lines[1] and "500 k-2.00 M" in lines[1] and "p50 us" in lines[5]


@pytest.mark.parametrize("width", ["1", "40", "110", "500"])
def test_chart_of_any_width(drawn, width):
    lines = drawn(Terminal(is_terminal=False), COLUMNS=width)
    assert max(map(len, lines)) <= max(min(int(width), 110), 70)
