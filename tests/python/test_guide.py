"""The programs of examples/guide do what the guide describes, over ipc so that they need no port.

They also run on pyzmq, except for the marked ones.
"""

import re
import runpy
import signal
import sys
import threading
from types import SimpleNamespace

import pytest
from programs import PATIENCE, ROOT, interrupt, line, output
from support import Background


@pytest.fixture
def endpoint(directory):
    return lambda name: f"ipc://{directory}/{name}"


def connected(zmq, context, kind, endpoint):
    socket = context.socket(kind)
    socket.connect(endpoint)
    return socket


def bound(context, kind, endpoint):
    socket = context.socket(kind)
    socket.bind(endpoint)
    return socket


def test_each_program_is_documented_and_run() -> None:
    names = {path.stem for path in (ROOT / "examples" / "guide").glob("*.py")}
    table = (ROOT / "examples" / "guide" / "README.md").read_text()
    page = (ROOT / "docs" / "guide.md").read_text()
    assert names == set(re.findall(r"^    examples/guide/(\w+)\.py$", page, re.MULTILINE))
    for name in names:
        assert f"`{name}`" in table


def test_version(zmq, programs):
    said = programs.run("guide/version.py")
    assert said == f"ZeroMQ {zmq.zmq_version()}\n{zmq.__name__} {zmq.__version__}\n"


# ---- chapter 1 ----------------------------------------------------------------------


def test_hello(programs, endpoint):
    """Clients may start first, and may be restarted."""
    first = [programs.start("guide/hwclient.py", endpoint("hello")) for _ in range(2)]
    server = programs.start("guide/hwserver.py", endpoint("hello"), 0)
    replies = "".join(f"reply {number}: World\n" for number in range(1, 11))
    assert [output(client) for client in first] == [replies, replies]
    assert (
        programs.run("guide/hwclient.py", endpoint("hello"), 2)
        == replies[: len("reply 1: World\n") * 2]
    )
    received = interrupt(server)
    assert received == "received Hello\n" * 22


def test_hello_server_may_be_restarted(zmq, context, programs, endpoint):
    client = connected(zmq, context, zmq.REQ, endpoint("hello"))
    for _ in range(2):
        server = programs.start("guide/hwserver.py", endpoint("hello"), 0)
        client.send(b"Hello")
        assert client.recv() == b"World"
        interrupt(server)


def test_weather(programs, endpoint):
    server = programs.start("guide/wuserver.py", endpoint("weather"), 10000, 100)
    said = programs.run("guide/wuclient.py", endpoint("weather"))
    assert re.fullmatch(r"10001: -?\d+\.\d degrees on average of 100 updates\n", said), said
    interrupt(server)


def test_pipeline(programs, endpoint):
    tasks, results = endpoint("tasks"), endpoint("results")
    workers = [programs.start("guide/taskwork.py", tasks, results) for _ in range(3)]
    # The ventilator and the sink are restarted; the workers stay.
    for _ in range(2):
        sink = programs.start("guide/tasksink.py", results, 30)
        said = output(programs.start("guide/taskvent.py", tasks, results, 30, 3), stdin="\n")
        assert re.search(r"\d+ ms of work in 30 tasks", said), said
        assert re.fullmatch(r"30 results in \d+ ms\n", output(sink))
    dots = "".join(interrupt(worker) for worker in workers)
    assert dots == "." * 60


@pytest.mark.zeroxide_only  # wait_connected
def test_more_workers_have_less_to_do(programs, endpoint):
    """Each worker gets the same share; how much sooner all are done depends on the machine."""
    for count in (1, 4):
        tasks, results = endpoint(f"tasks-{count}"), endpoint(f"results-{count}")
        sink = programs.start("guide/tasksink.py", results, 32)
        workers = [programs.start("guide/taskwork.py", tasks, results) for _ in range(count)]
        said = programs.run("guide/taskvent.py", tasks, results, 32, 50, count)
        work = int(re.match(r"(\d+) ms of work", said)[1])
        took = int(re.match(r"32 results in (\d+) ms", output(sink))[1])
        # A sleep may take longer but not less, which gives a minimum from the first result to the last.
        assert took > work / count / 2
        assert {len(interrupt(worker)) for worker in workers} == {32 // count}


# ---- chapter 2: many sockets, and the end -------------------------------------------


@pytest.mark.parametrize("name", ["msreader", "mspoller"])
def test_two_sockets(zmq, context, programs, endpoint, name):
    tasks = bound(context, zmq.PUSH, endpoint("tasks"))
    weather = bound(context, zmq.PUB, endpoint("weather"))
    reader = programs.start(f"guide/{name}.py", endpoint("tasks"), endpoint("weather"))
    for number in range(3):
        tasks.send(b"%d" % number)
    assert [line(reader) for _ in range(3)] == ["task 0", "task 1", "task 2"]

    seen = threading.Event()

    def publish():
        while not seen.wait(0.01):
            weather.send(b"100010 1 1")
            weather.send(b"10001 20 60")

    publisher = Background(publish)
    assert [line(reader) for _ in range(3)] == ["update 10001 20 60"] * 3
    seen.set()
    publisher.result()
    tasks.send(b"4")
    assert "task 4" in iter(lambda: line(reader), "")
    interrupt(reader)


@pytest.mark.zeroxide_only  # wait_connected
def test_pipeline_with_kill(programs, endpoint):
    tasks, results, control = endpoint("tasks"), endpoint("results"), endpoint("control")
    sink = programs.start("guide/tasksink2.py", results, control, 30)
    workers = [programs.start("guide/taskwork2.py", tasks, results, control) for _ in range(3)]
    assert [line(worker) for worker in workers] == ["ready"] * 3
    output(programs.start("guide/taskvent.py", tasks, results, 30, 3), stdin="\n")
    assert re.fullmatch(r"30 results in \d+ ms\n", output(sink))
    said = [re.fullmatch(r"KILL after (\d+) tasks\n", output(worker)) for worker in workers]
    assert sum(int(kill[1]) for kill in said) == 30


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt(zmq, context, programs, endpoint, number):
    server = programs.start("guide/interrupt.py", endpoint("hello"))
    assert line(server) == "ready"
    client = connected(zmq, context, zmq.REQ, endpoint("hello"))
    client.send(b"echo")
    assert client.recv() == b"echo"
    server.send_signal(number)
    assert output(server) == f"{number.name}: closed the socket and went\n"


# ---- chapter 2: intermediaries ------------------------------------------------------


@pytest.mark.parametrize("name", ["rrbroker", "msgqueue"])
def test_broker(programs, endpoint, name):
    frontend, backend = endpoint("frontend"), endpoint("backend")
    clients = [programs.start("guide/rrclient.py", frontend) for _ in range(3)]
    workers = [programs.start("guide/rrworker.py", backend, 0) for _ in range(2)]
    broker = programs.start(f"guide/{name}.py", frontend, backend)
    replies = "".join(f"reply {number}: World\n" for number in range(1, 11))
    assert [output(client) for client in clients] == [replies] * 3
    done = [interrupt(worker).count("received Hello\n") for worker in workers]
    assert sum(done) == 30
    interrupt(broker)


@pytest.mark.parametrize("name", ["rrbroker", "msgqueue"])
def test_broker_keeps_parts_apart(zmq, context, programs, endpoint, name):
    programs.start(f"guide/{name}.py", endpoint("frontend"), endpoint("backend"))
    client = connected(zmq, context, zmq.REQ, endpoint("frontend"))
    worker = connected(zmq, context, zmq.REP, endpoint("backend"))
    client.send_multipart([b"one", b"", b"three"])
    assert worker.recv_multipart() == [b"one", b"", b"three"]
    worker.send_multipart([b"", b"four"])
    assert client.recv_multipart() == [b"", b"four"]


def test_weather_proxy(programs, endpoint):
    programs.start("guide/wuserver.py", endpoint("inside"), 10000, 100)
    proxy = programs.start("guide/wuproxy.py", endpoint("inside"), endpoint("outside"))
    clients = [
        programs.start("guide/wuclient.py", endpoint("outside"), code) for code in (10001, 10002)
    ]
    for client in clients:
        assert "on average of 100 updates" in output(client)
    interrupt(proxy)


# ---- chapter 2: threads -------------------------------------------------------------


def test_threads(programs, endpoint):
    server = programs.start("guide/mtserver.py", endpoint("hello"), 5, 10)
    clients = [programs.start("guide/hwclient.py", endpoint("hello"), 4) for _ in range(5)]
    replies = "".join(f"reply {number}: World\n" for number in range(1, 5))
    assert [output(client) for client in clients] == [replies] * 5
    received = interrupt(server).splitlines()
    assert len(received) == 20
    assert {said.partition(" received ")[0] for said in received} == {
        f"worker {number}" for number in range(1, 6)
    }


def test_relay(programs):
    assert programs.run("guide/mtrelay.py").splitlines() == [
        "step 1 ready, telling step 2",
        "step 2 ready, telling step 3",
        "step 3: all ready",
    ]


def test_lines_of_threads_stay_whole(zmq, context, monkeypatch):
    """A line is written in one call, because another thread may run between two writes."""
    written = []
    monkeypatch.setitem(sys.modules, "zeroxide", zmq)
    server = runpy.run_path(str(ROOT / "examples" / "guide" / "mtserver.py"))
    output = SimpleNamespace(write=written.append, flush=lambda: None)
    monkeypatch.setattr(sys, "stdout", output)
    with context.socket(zmq.DEALER) as clients:
        clients.bind(server["WORKERS"])
        worker = Background(server["work"], context, 0)
        for _ in range(2):
            clients.send_multipart([b"", b"Hello"])
            assert clients.recv_multipart() == [b"", b"World"]
    context.term()
    worker.result()
    assert list(filter(None, written)) == [f"{worker.name} received Hello\n"] * 2


# ---- chapter 2: publishers and subscribers ------------------------------------------


def publish_in_step(programs, endpoint, count, patience=PATIENCE):
    arguments = endpoint("updates"), endpoint("readiness")
    subscribers = [programs.start("guide/syncsub.py", *arguments) for _ in range(10)]
    publisher = programs.start("guide/syncpub.py", *arguments, 10, count)
    said = output(publisher, patience=patience)
    assert said == f"waiting for 10 subscribers\npublished {count} updates\n"
    received = [output(subscriber, patience=patience) for subscriber in subscribers]
    assert received == [f"received {count} updates\n"] * 10


@pytest.mark.zeroxide_only  # wait_subscribed
def test_none_lost(programs, endpoint):
    publish_in_step(programs, endpoint, 20_000)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.zeroxide_only
def test_none_of_a_million_lost(programs, endpoint):
    publish_in_step(programs, endpoint, 1_000_000, patience=280)


def test_hello_until_all_confirm(programs, endpoint):
    arguments = endpoint("updates"), endpoint("confirmations")
    publisher = programs.start("guide/hellopub.py", *arguments, 4, 500)
    subscribers = [programs.start("guide/hellosub.py", *arguments) for _ in range(4)]
    assert output(publisher) == "4 subscribers confirmed, 500 updates published\n"
    received = [output(subscriber) for subscriber in subscribers]
    assert received == ["received 500 updates\n"] * 4


def test_envelopes(programs, endpoint):
    publisher = programs.start("guide/psenvpub.py", endpoint("updates"), 5)
    subscriber = programs.start("guide/psenvsub.py", endpoint("updates"))
    assert [line(subscriber) for _ in range(4)] == ["[B] this one was asked for"] * 4
    for process in (subscriber, publisher):
        interrupt(process)


def test_envelopes_with_the_sender(programs, endpoint):
    publishers = [
        programs.start("guide/psenvpub3.py", endpoint(name), endpoint(f"to-{name}"), 50)
        for name in ("one", "two")
    ]
    subscriber = programs.start("guide/psenvsub3.py", endpoint("one"), endpoint("two"))
    # The lines are read until both publishers have appeared: one may start long after the other, and a
    # subscriber whose output is not read stops when the pipe is full.
    senders = set()
    while len(senders) < 2:
        said = re.fullmatch(r"\d+ from (.+)", line(subscriber))
        senders.add(said[1])
    assert senders == {endpoint("to-one"), endpoint("to-two")}
    for publisher in publishers:
        assert re.fullmatch(r"answer: thanks for \d+", line(publisher))


# ---- chapter 3: envelopes, and brokers that know which workers are ready -------------


def test_identity(programs):
    said = programs.run("guide/identity.py").splitlines()
    assert re.fullmatch(r"\['00[0-9a-f]{8}', '', 'the ROUTER names me'\]", said[0])
    assert said[1:] == ["['PEER2', '', 'I name myself']"]


@pytest.mark.parametrize("name", ["rtreq", "rtdealer"])
def test_workers_ask_for_work(programs, name):
    said = programs.run(f"guide/{name}.py", 3, 30).splitlines()
    done = [int(re.fullmatch(r"worker \d did (\d+) tasks", each)[1]) for each in said]
    assert (len(done), sum(done)) == (3, 30)


@pytest.mark.parametrize(
    "name",
    [
        "lbbroker",
        pytest.param("lbbroker2", marks=pytest.mark.zeroxide_only),
        pytest.param("lbbroker3", marks=pytest.mark.zeroxide_only),
    ],
)
def test_broker_knows_which_workers_are_ready(programs, name):
    said = programs.run(f"guide/{name}.py", 5, 2).splitlines()
    assert sorted(said) == [f"client {number}: OK" for number in range(1, 6)]


def test_replies_come_when_they_are_ready(programs):
    said = programs.run("guide/asyncsrv.py", 2, 3, 20).splitlines()
    assert len(said) == 2
    for each in said:
        assert re.fullmatch(r"client \d: 20 requests, \d+ replies", each)


def test_brokers_publish_their_state(programs, endpoint):
    endpoints = endpoint("one"), endpoint("two")
    brokers = [
        programs.start("guide/peering1.py", *order) for order in (endpoints, endpoints[::-1])
    ]
    for broker, peer in zip(brokers, endpoints[::-1], strict=True):
        assert re.fullmatch(rf"{peer} has \d free workers", line(broker))


def test_brokers_lend_each_other_their_workers(programs, endpoint):
    endpoints = endpoint("one"), endpoint("two")
    brokers = [
        programs.start("guide/peering2.py", 1, 1, *order) for order in (endpoints, endpoints[::-1])
    ]
    for broker in brokers:
        served = set()
        while len(served) < 2:
            served.add(re.fullmatch(r"client 1 served by (.+)", line(broker))[1])
        assert served == set(endpoints)


def test_brokers_lend_only_workers_that_are_free(programs, endpoint):
    """One broker has only clients, and the other one only workers: each reply comes over both."""
    endpoints = endpoint("one"), endpoint("two")
    asking = programs.start("guide/peering3.py", 3, 0, *endpoints)
    programs.start("guide/peering3.py", 0, 3, *endpoints[::-1])
    for _ in range(3):
        assert re.fullmatch("[0-9A-F]{4}", line(asking))


def test_broker_needs_no_peer(programs, endpoint):
    alone = programs.start("guide/peering3.py", 3, 3, endpoint("alone"))
    for _ in range(3):
        assert re.fullmatch("[0-9A-F]{4}", line(alone))


# ---- chapters 4 and 5: what survives; the patterns themselves have tests of their own ----


PASSIVE = b"4"  # the state of a server, as it publishes it
REPLIES = "".join(f"reply {number}\n" for number in range(1, 11))


@pytest.mark.zeroxide_only
def test_lazy_pirate(programs, endpoint):
    client = programs.start("guide/lpclient.py", endpoint("server"))
    programs.start("guide/lpserver.py", endpoint("server"))
    assert output(client) == REPLIES


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("name", ["sp", "pp"])
def test_pirate_queues(programs, endpoint, name):
    ends = endpoint("clients"), endpoint("workers")
    programs.start(f"guide/{name}queue.py", *ends)
    programs.start(f"guide/{name}worker.py", ends[1])
    assert programs.run("guide/lpclient.py", ends[0]) == REPLIES


@pytest.mark.zeroxide_only
def test_majordomo_and_titanic(programs, endpoint, directory):
    broker = endpoint("broker")
    programs.start("guide/mdbroker.py", broker)
    assert programs.run("guide/mmiecho.py", broker) == "echo: no workers\n"
    programs.start("guide/titanic.py", broker, directory / "spool")
    client = programs.start("guide/ticlient.py", broker)
    assert line(client) == "stored"
    programs.start("guide/mdworker.py", broker)
    assert output(client) == "reply Hello\n"
    for name in ("mdclient", "mdclient2"):
        assert programs.run(f"guide/{name}.py", broker, 50) == "50 replies\n"
    assert programs.run("guide/mmiecho.py", broker) == "echo: there are workers\n"


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("server", ["bstarsrv", "bstarsrv2"])
def test_binary_star(programs, endpoint, server):
    states = endpoint("state-of-primary"), endpoint("state-of-backup")
    fronts = endpoint("primary"), endpoint("backup")
    primary = programs.start(f"guide/{server}.py", "primary", fronts[0], *states)
    programs.start(f"guide/{server}.py", "backup", fronts[1], *states[::-1])
    assert line(primary) == "active"
    said = programs.run("guide/bstarcli.py", *fronts, 2)
    assert said == "reply 1 of the primary\nreply 2 of the primary\n"


@pytest.mark.zeroxide_only
def test_backup_takes_over(zmq, context, programs, endpoint):
    states = endpoint("state-of-primary"), endpoint("state-of-backup")
    fronts = endpoint("primary"), endpoint("backup")
    primary = programs.start("guide/bstarsrv2.py", "primary", fronts[0], *states)
    backup = programs.start("guide/bstarsrv2.py", "backup", fronts[1], *states[::-1])
    state = connected(zmq, context, zmq.SUB, states[1])
    state.subscribe("")
    while state.recv() != PASSIVE:
        pass
    primary.kill()
    said = programs.run("guide/bstarcli.py", *fronts, 2)
    assert said == "reply 1 of the backup\nreply 2 of the backup\n"
    assert line(backup) == "active"


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("model", [1, 2, 3])
def test_freelance(programs, endpoint, model):
    programs.start(f"guide/flserver{model}.py", endpoint("living"))
    ends = endpoint("dead"), endpoint("living")
    assert programs.run(f"guide/flclient{model}.py", *ends) == REPLIES


def test_round_trips_and_requests_all_at_once(programs):
    said = programs.run("guide/tripping.py", 100).splitlines()
    for each, how in zip(said, ("one after the other", "all at once"), strict=True):
        assert re.fullmatch(rf"{how}: \d+ requests/s", each)


def test_capture_of_a_proxy(programs):
    said = programs.run("guide/espresso.py", 10).splitlines()
    assert len(said) == 10
    assert {"subscription A", "subscription B"} < set(said)
    assert set(said) <= {f"{what} {name}" for what in ("subscription", "update") for name in "AB"}


def test_slow_subscriber_ends(programs):
    said = programs.run("guide/suisnail.py", 20)
    assert re.fullmatch(
        r"cannot keep up: an update after \d+ others is more than 20 ms old\n", said
    )


@pytest.mark.zeroxide_only
def test_last_value_cache(programs, endpoint):
    ends = endpoint("publishers"), endpoint("subscribers")
    programs.start("guide/lvcache.py", *ends)
    publisher = programs.start("guide/pathopub.py", ends[0], 1000)
    assert line(publisher) == "published on 1000 topics"
    assert programs.run("guide/pathosub.py", ends[1]) == "Save Roger\n"


@pytest.mark.zeroxide_only
def test_clone(programs, endpoint):
    states = endpoint("state-of-primary"), endpoint("state-of-backup")
    servers = endpoint("primary"), endpoint("backup")
    programs.start("guide/clonesrv6.py", "primary", *servers, *states)
    programs.start("guide/clonesrv6.py", "backup", *servers[::-1], *states[::-1])
    assert programs.run("guide/clonecli6.py", *servers, 3) == "3 values\n"
    assert programs.run("guide/clonecli6.py", *servers, 2) == "5 values\n"
