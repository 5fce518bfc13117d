"""One Spark session for all tests that need one, and peers for source and sink."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import zeroxide as zmq
from zeroxide.spark import JavaNotFound, ensure_java, session

WAIT_MS = 60_000

# Also for the sessions that tests start in separate processes: none lives long enough for
# optimised code to pay off.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def java() -> Path:
    try:
        return ensure_java()
    except JavaNotFound as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(java, tmp_path_factory):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tmp_path_factory.mktemp("spark")
    spark = session(
        "tests",
        "local[2]",
        {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        },
    )
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


@pytest.fixture
def context() -> Iterator[zmq.Context]:
    context = zmq.Context()
    yield context
    context.destroy(linger=0)


@pytest.fixture
def bound(context) -> Callable[[int], tuple[zmq.Socket, str]]:
    """Creates a socket on a free port; returns it with its endpoint."""

    def make(kind: int) -> tuple[zmq.Socket, str]:
        socket = context.socket(kind)
        socket.sndtimeo = socket.rcvtimeo = WAIT_MS
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        return socket, f"tcp://127.0.0.1:{port}"

    return make


@pytest.fixture
def background() -> Iterator[Callable[[Callable[[], object]], threading.Thread]]:
    """Runs a function in a thread, which must end before the test does."""
    threads = []

    def start(work: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        threads.append(thread)
        return thread

    yield start
    for thread in threads:
        thread.join(WAIT_MS / 1000)
        assert not thread.is_alive()


@pytest.fixture
def run_script(java, tmp_path):
    """Runs a Python program in a separate process and returns its output."""

    def run(source: str, *arguments: str, timeout: float = 110) -> str:
        script = tmp_path / "script.py"
        script.write_text(source)
        process = subprocess.Popen(
            [sys.executable, script, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable},
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, _ = process.communicate()
            pytest.fail(f"still running after {timeout} s:\n{output}")
        assert process.returncode == 0, output
        return output

    return run
