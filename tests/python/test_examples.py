"""The examples of examples/*.py do what they say, each in processes of their own, over ipc so that no port is taken."""

import contextlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 30

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def endpoint() -> Iterator[Callable[[str], str]]:
    """Makes ipc endpoints with short paths: pytest's own folders are too long for a socket's name."""
    folder = tempfile.mkdtemp(prefix="zx-")
    yield lambda name: f"ipc://{folder}/{name}"
    shutil.rmtree(folder)


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start_example(name: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / name), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start_example
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def output(process: subprocess.Popen[str], stdin: str | None = None) -> str:
    out, err = process.communicate(stdin, timeout=PATIENCE)
    assert process.returncode == 0, err
    return out


def interrupt(process: subprocess.Popen[str]) -> None:
    """Ctrl-C ends an example that runs for ever, soon and with Python's own traceback."""
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=5)
    assert "KeyboardInterrupt" in err


def test_readme() -> None:
    """The first thing that a newcomer copies."""
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert code is not None
    ran = subprocess.run(
        [sys.executable, "-c", code[1]], capture_output=True, text=True, timeout=PATIENCE
    )
    assert ran.stdout == "b'Hello'\n", ran.stderr


def test_hello(start: Start, endpoint: Callable[[str], str]) -> None:
    server = start("hello_server.py", endpoint("hello"))
    clients = [start("hello_client.py", endpoint("hello")) for _ in range(2)]
    assert [output(client) for client in clients] == ["World\n", "World\n"]
    assert server.stdout is not None
    assert [server.stdout.readline() for _ in clients] == ["Hello\n", "Hello\n"]
    interrupt(server)


def test_weather(start: Start, endpoint: Callable[[str], str]) -> None:
    publisher = start("weather_publisher.py", endpoint("weather"))
    subscriber = start("weather_subscriber.py", endpoint("weather"), "10042", "3")
    said = output(subscriber)
    assert re.fullmatch(r"10042: -?\d+\.\d degrees on average of 3 updates\n", said), said
    interrupt(publisher)


def test_pipeline(start: Start, endpoint: Callable[[str], str]) -> None:
    tasks, results = endpoint("tasks"), endpoint("results")
    sink = start("sink.py", results)
    workers = [start("worker.py", tasks, results) for _ in range(2)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    handed_out = output(start("ventilator.py", tasks, results, "50", "3"), stdin="\n")
    work = re.search(r"handed out 50 tasks, (\d+) ms of work", handed_out)
    assert work is not None, handed_out
    assert output(sink).startswith(f"50 results, {work[1]} ms of work in ")
    for worker in workers:
        interrupt(worker)
