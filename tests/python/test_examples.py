"""The examples do what their docstrings promise, over ipc where they need no port."""

import ast
import asyncio
import contextlib
import importlib.util
import io
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from programs import ROOT, interrupt, line, output
from support import PATIENCE, free_udp_port

EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(ROOT / "tests" / "browser"))
import headless  # noqa: E402


def test_hello(programs, directory) -> None:
    endpoint = f"ipc://{directory}/hello"
    server = programs.start("hello_server.py", endpoint)
    clients = [programs.start("hello_client.py", endpoint) for _ in range(2)]
    assert [output(client) for client in clients] == ["World\n", "World\n"]
    assert [line(server) for _ in clients] == ["Hello", "Hello"]
    interrupt(server)


def test_weather(programs, directory) -> None:
    endpoint = f"ipc://{directory}/weather"
    publisher = programs.start("weather_publisher.py", endpoint)
    said = programs.run("weather_subscriber.py", endpoint, "10042", 3)
    assert re.fullmatch(r"10042: -?\d+\.\d degrees on average of 3 updates\n", said), said
    interrupt(publisher)


@pytest.mark.zeroxide_only
def test_ticker(programs) -> None:
    endpoint = f"epgm://lo;239.254.1.1:{free_udp_port()}"
    publisher = programs.start("ticker.py", "publish", endpoint)
    said = programs.run("ticker.py", "follow", "ACME", 3, endpoint)
    assert re.fullmatch(r"(ACME \d+\.\d\d\n){3}0 packets lost\n", said), said
    interrupt(publisher)


@pytest.mark.zeroxide_only
def test_chat(programs) -> None:
    place = ("--interface", "lo", "--port", free_udp_port())
    ann, bob = (programs.start("chat.py", name, *place) for name in ("Ann", "Bob"))
    assert line(ann) == "* Bob is here"
    assert line(bob) == "* Ann is here"
    print("Hello", file=ann.stdin, flush=True)
    assert line(bob) == "Ann: Hello"
    output(ann)
    assert line(bob) == "* Ann has left: goodbye"


@pytest.mark.zeroxide_only
def test_a_producer_finds_its_collector(programs, directory) -> None:
    place = ("--interface", "lo", "--port", free_udp_port())
    producer = programs.start("find_collector.py", "producer", "thermometer", *place)
    assert line(producer) == "no collector yet"
    bind = ("--bind", "tcp://127.0.0.1:*")
    collector = programs.start("find_collector.py", "collector", directory / "log", *bind, *place)
    assert line(collector) == "collecting until Enter"
    assert output(producer).endswith("10 readings are on the collector's disk\n")
    output(collector, "\n")


def test_pipeline(programs, directory) -> None:
    tasks, results = f"ipc://{directory}/tasks", f"ipc://{directory}/results"
    sink = programs.start("sink.py", results)
    workers = [programs.start("worker.py", tasks, results) for _ in range(2)]
    assert [line(worker) for worker in workers] == ["ready", "ready"]
    handed_out = output(programs.start("ventilator.py", tasks, results, 50, 3), stdin="\n")
    work = re.search(r"handed out 50 tasks, (\d+) ms of work", handed_out)
    assert work is not None, handed_out
    assert output(sink).startswith(f"50 results, {work[1]} ms of work in ")
    for worker in workers:
        interrupt(worker)


@pytest.mark.zeroxide_only
def test_neighbours(programs) -> None:
    endpoint = f"udp://lo;239.255.77.8:{free_udp_port()}"
    names = ("ada", "grace")
    neighbours = [programs.start("neighbours.py", name, endpoint) for name in names]
    assert [line(neighbour) for neighbour in neighbours] == ["grace", "ada"]
    for neighbour in neighbours:
        interrupt(neighbour)


@pytest.mark.zeroxide_only
def test_asyncio(programs) -> None:
    said = programs.run("echo_asyncio.py", 5)
    assert sorted(said.splitlines()) == [f"REQUEST {number}" for number in range(5)]


@pytest.mark.zeroxide_only
def test_survey(programs) -> None:
    said = programs.run("survey.py", 3).splitlines()
    assert said == ["sensor 1: 21 degrees", "sensor 2: 22 degrees"]


@pytest.fixture
def clock(programs) -> str:
    """The address of the page of a clock that runs."""
    return line(programs.start("clock.py", 0, 0)).removeprefix("open ")


@pytest.mark.zeroxide_only
def test_clock(zmq, context, clock) -> None:
    with urllib.request.urlopen(clock, timeout=60) as reply:
        endpoint = re.search(r'WebSocket\("(.+?)"', reply.read().decode())[1]
    sub = context.socket(zmq.SUB)
    sub.subscribe("")
    sub.connect(endpoint)
    assert re.fullmatch(r"\d\d:\d\d:\d\d", sub.recv_string())


@pytest.mark.zeroxide_only
@pytest.mark.skipif(headless.missing() is not None, reason=headless.missing() or "")
def test_clock_in_a_browser(clock) -> None:
    browser = headless.Browser()
    try:
        browser.open(clock)
        shown = "return document.getElementById('time').textContent"
        browser.until(shown, re.compile(r"\d\d:\d\d:\d\d").fullmatch)
        assert browser.faults() == []
    finally:
        browser.close()


@pytest.mark.zeroxide_only
def test_jobs(programs) -> None:
    said = programs.run("jobs.py", 5).splitlines()
    assert sorted(said) == [f"job {number} is done" for number in range(5)]


@pytest.mark.zeroxide_only
def test_notes(programs, directory) -> None:
    endpoints = [f"ipc://{directory}/{number}" for number in range(3)]
    members = []
    for number, endpoint in enumerate(endpoints):
        members.append(programs.start("notes.py", endpoint, *endpoints[:number]))
        assert line(members[-1]) == f"connected to {number}"
    # The one that has started last is certainly connected to the others.
    print("Tea?", file=members[2].stdin, flush=True)
    assert [line(member) for member in members[:2]] == ["Tea?", "Tea?"]
    print("Yes", file=members[0].stdin, flush=True)
    assert line(members[2]) == "Yes"
    for member in members:
        output(member)


# What systemd does: it passes a listener as descriptor 3, and describes it in two variables.
PASS = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@pytest.mark.zeroxide_only
def test_activated(programs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        # The client connects before the program runs.
        client = programs.start("hello_client.py", endpoint)
        assert select.select([listener], [], [], PATIENCE)[0]
        descriptor = listener.fileno()
        words = [sys.executable, "-c", PASS, str(descriptor), EXAMPLES / "activated.py", endpoint]
        server = subprocess.Popen(words, pass_fds=[descriptor], stdout=subprocess.PIPE, text=True)
    with server:
        try:
            assert output(client) == "World\n"
            assert server.stdout.readline() == "Hello\n"
        finally:
            server.terminate()


@pytest.mark.zeroxide_only
def test_activated_without_systemd(programs, directory) -> None:
    endpoint = f"ipc://{directory}/activated"
    server = programs.start("activated.py", endpoint)
    assert programs.run("hello_client.py", endpoint) == "World\n"
    interrupt(server)


@pytest.mark.zeroxide_only
def test_spill(programs, directory) -> None:
    endpoint = f"ipc://{directory}/readings"
    for count in (3, 6):
        said = programs.run("spill.py", directory / "spill", endpoint)
        assert said == f"{count} readings wait for a collector\n"
    collector = programs.start("spill.py", "collect", endpoint)
    assert programs.run("spill.py", directory / "spill", endpoint, 1) == ""
    assert [line(collector) for _ in range(7)] == [f"reading {number}" for number in range(7)]
    output(collector)


@pytest.mark.zeroxide_only
def test_curve(programs) -> None:
    received, answered, turned_away = programs.run("curve.py").splitlines()
    assert received == "the server received the secret recipe"
    assert answered == "the client received thanks"
    assert re.fullmatch(r"the stranger was turned away: .+", turned_away), turned_away


@pytest.mark.zeroxide_only
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_tls(programs) -> None:
    received, answered, refused = programs.run("tls.py").splitlines()
    assert received == "the server received the secret recipe"
    assert answered == "the client received thanks"
    assert "is not from a CA that is trusted here" in refused


@pytest.fixture
def collector(directory):
    from zeroxide.pipeline import Collector

    with Collector(directory / "log", f"ipc://{directory}/collector") as collector:
        yield collector


@pytest.mark.zeroxide_only
def test_readings(programs, collector) -> None:
    # Without a count, the reader waits for rows that are not there yet.
    reader = programs.start("readings_reader.py", collector.endpoint)
    for _ in range(2):
        said = programs.run("readings_producer.py", collector.endpoint, 20)
        assert said == "20 readings are on the collector's disk\n"
    for offset in range(40):
        found = re.fullmatch(r"(\d+) temperature/(kitchen|cellar): \d+\.\d degrees", line(reader))
        assert found is not None and int(found[1]) == offset
    interrupt(reader)
    # The next reader begins where the first one ended; the last commit may have been in transit.
    programs.run("readings_producer.py", collector.endpoint, 5)
    rest = programs.run("readings_reader.py", collector.endpoint, 5).splitlines()
    assert int(rest[0].split()[0]) in (39, 40)


class Client:
    """Speaks ASGI to an application, as a server does."""

    def __init__(self, app) -> None:
        self.app = app
        self.to_app, self.from_app = asyncio.Queue(), asyncio.Queue()

    async def __aenter__(self):
        self.living = asyncio.create_task(
            self.app({"type": "lifespan"}, self.to_app.get, self.from_app.put)
        )
        await self.to_app.put({"type": "lifespan.startup"})
        assert (await self.from_app.get())["type"] == "lifespan.startup.complete"
        return self

    async def __aexit__(self, *_) -> None:
        await self.to_app.put({"type": "lifespan.shutdown"})
        assert (await self.from_app.get())["type"] == "lifespan.shutdown.complete"
        await self.living

    async def ask(self, method: str, path: str, *body: bytes) -> tuple[int, str]:
        parts = [
            {"type": "http.request", "body": part, "more_body": number < len(body)}
            for number, part in enumerate(body, 1)
        ]
        parts = iter(parts or [{"type": "http.request"}])

        async def receive():
            return next(parts)

        answer = []

        async def send(event) -> None:
            answer.append(event)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [],
        }
        await self.app(scope, receive, send)
        head, *rest = answer
        return head["status"], b"".join(part.get("body", b"") for part in rest).decode()


def loaded(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.zeroxide_only
@pytest.mark.parametrize(
    ("name", "first", "second"),
    [("web_asgi", "offset 0", "offset 1"), ("web_fastapi", '{"offset":0}', '{"offset":1}')],
)
def test_web(collector, monkeypatch, name, first, second) -> None:
    if name == "web_fastapi":
        pytest.importorskip("fastapi")
    monkeypatch.setenv("COLLECTOR", collector.endpoint)

    async def main() -> None:
        async with Client(loaded(name).app) as client:
            assert await client.ask("POST", "/temperature", b"21", b".5") == (200, first)
            assert await client.ask("POST", "/rain/cellar", b"0") == (200, second)
            assert (await client.ask("GET", "/temperature"))[0] == 405

    asyncio.run(main())
    topics = {one["topic"]: one["bytes"] for one in collector.stats()["topics"]}
    assert topics == {"temperature": 4, "rain/cellar": 1}


@pytest.mark.zeroxide_only
@pytest.mark.parametrize(
    ("name", "answer"), [("web_asgi", b"offset 0"), ("web_fastapi", b'{"offset":0}')]
)
def test_web_with_its_server(collector, name, answer) -> None:
    pytest.importorskip("uvicorn")
    if name == "web_fastapi":
        pytest.importorskip("fastapi")
    command = [sys.executable, "-m", "uvicorn", "--app-dir", EXAMPLES, "--port=0", f"{name}:app"]
    environment = os.environ | {"COLLECTOR": collector.endpoint}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        try:
            said = ""
            while (address := re.search(r"http://127\.0\.0\.1:\d+", said)) is None:
                line = server.stderr.readline()
                assert line, said
                said += line
            with urllib.request.urlopen(address[0] + "/temperature", b"21.5", timeout=60) as reply:
                assert reply.read() == answer
        finally:
            server.terminate()
        said += server.stderr.read()
    assert "Application shutdown complete" in said
    assert collector.stats()["next"] == 1


def run_cells(path: Path) -> list[str]:
    """What the cells of a notebook print; the value of a last expression is printed as Jupyter does it."""
    shared: dict[str, object] = {}
    printed = []
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()) as text:
            exec(compile(tree, path.name, "exec"), shared)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), path.name, "eval"), shared)
                if value is not None:
                    print(repr(value))
        printed.append(text.getvalue())
    return printed


@pytest.mark.zeroxide_only
def test_the_notebook() -> None:
    pytest.importorskip("pyarrow")
    notebook = json.loads((EXAMPLES / "readings.ipynb").read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    kept = []
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("code", "markdown") and re.fullmatch("[a-z0-9-]+", cell["id"])
        assert "".join(cell["source"]).strip()
        if cell["cell_type"] == "code":
            texts = [one.get("text") or one["data"]["text/plain"] for one in cell["outputs"]]
            kept.append("".join("".join(text).rstrip("\n") + "\n" for text in texts))
    assert run_cells(EXAMPLES / "readings.ipynb") == kept


@pytest.mark.zeroxide_only
def test_the_index_lists_every_example() -> None:
    index = (EXAMPLES / "README.md").read_text()
    linked = set(re.findall(r"\]\(([^)#]+)\)", index))
    for link in linked:
        assert (EXAMPLES / link).exists(), link
    tracked = subprocess.check_output(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=EXAMPLES,
        text=True,
    )
    named = {Path(link).parts[0] for link in linked if not link.startswith(("..", "deploy/"))}
    named |= {link for link in linked if link.startswith("deploy/")}
    for one in set(tracked.split()) - {"README.md"}:
        top = one if one.startswith("deploy/") else Path(one).parts[0]
        if one.endswith((".rs", ".dockerignore")):
            continue
        assert top in named, one
    for program in re.findall(r"`(?:python|uvicorn --app-dir|fastapi run) (examples\S*)`", index):
        assert (ROOT / program).is_file(), program
