"""The servers that some of the systems need: whether they are available, their start for one
measurement, and their CPU time."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from systems import System

ROOT = Path(__file__).resolve().parents[2]
# The programs in benches/pipeline fetch Java brokers from Maven's registry.
JAVA_BROKERS = ROOT / "benches" / "pipeline"
PYTHON_WITH_SPARK = Path(os.environ.get("ZEROXIDE_VENV", ROOT / ".venv")) / "bin" / "python"
START_S = 120  # the first time, brokers are fetched


class Failed(Exception):
    """A process ended or timed out without its result."""


@dataclass(frozen=True)
class Server:
    """A running server: all processes of the session started for it."""

    address: str
    version: str
    session: int

    def cpu_ns(self) -> int:
        """User and system time of all its processes, with the kernel's resolution of a hundredth of
        a second."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                # The name, in parentheses, may contain any character. Counted after it, field 4 is
                # the session.
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.session:
                    ticks += int(fields[11]) + int(fields[12])
        return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def missing(system: System) -> str | None:
    """Returns the reason why a system cannot be measured here, if there is one."""
    if importlib.util.find_spec(system.module) is None:
        return f"no Python module {system.module} here"
    if is_java(system) and not PYTHON_WITH_SPARK.exists():
        return f"no {PYTHON_WITH_SPARK}, whose pyspark fetches it (`make bench-environment`)"
    if system.server and not is_java(system) and program(system.server) is None:
        return f"no {system.server} here ({system.origin})"
    return None


def is_java(system: System) -> bool:
    return system.server.endswith(".py")


def program(name: str) -> str | None:
    """Finds a program, also outside the path: next to this interpreter, or the one that Debian's RabbitMQ wraps to change the user."""
    places = [Path(sys.executable).parent, "/usr/lib/rabbitmq/bin", os.environ.get("PATH", "")]
    return shutil.which(name, path=":".join(map(str, [*places, "/usr/sbin", "/usr/local/sbin"])))


@contextlib.contextmanager
def served(name: str, system: System) -> Iterator[Server | None]:
    """A server started for this measurement; None for systems that need none."""
    if not system.server:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="zeroxide-bench-") as folder:
        port = free_port()
        env = os.environ | (rabbit_environment(folder, port) if name == "RabbitMQ" else {})
        with open(Path(folder) / "log", "w+") as log:
            process = subprocess.Popen(
                command(name, system, folder, port),
                env=env,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if is_java(system) else log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
            try:
                address, version = f"127.0.0.1:{port}", ""
                if is_java(system):
                    address, version = said(process, Path(folder) / "log")
                wait_for(address, process)
                yield Server(address, version or version_of(name, system, env), process.pid)
            finally:
                end(process)
                if name == "RabbitMQ" and (epmd := shutil.which("epmd")):
                    # Erlang's name server goes into a session of its own; its port is ours alone.
                    subprocess.run([epmd, "-kill"], env=env, stdout=subprocess.DEVNULL)


def command(name: str, system: System, folder: str, port: int) -> list[str]:
    if is_java(system):
        return [str(PYTHON_WITH_SPARK), str(JAVA_BROKERS / system.server), folder]
    path = program(system.server)
    assert path is not None
    options = {
        "NATS": ["-a", "127.0.0.1", "-p", str(port)],
        "Redis": [
            *("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder),
            # Without this, slow subscribers would be disconnected.
            *("--client-output-buffer-limit", "pubsub", "0", "0", "0"),
        ],
        "NSQ": [
            *(f"--tcp-address=127.0.0.1:{port}", f"--http-address=127.0.0.1:{free_port()}"),
            # An ephemeral channel discards messages beyond this size, which is 10,000 by default.
            *(f"--data-path={folder}", "--mem-queue-size=2000000"),
            # Allows as many large messages at once as small ones; a message does not wait for others.
            *("--max-body-size=67108864", "--min-output-buffer-timeout=1ms"),
        ],
        "RabbitMQ": [],
    }
    return [path, *options[name]]


def said(process: subprocess.Popen[str], log: Path) -> list[str]:
    """Address and version, as printed by the broker."""
    assert process.stdout is not None
    line = process.stdout.readline().split()
    if len(line) != 2:
        raise Failed((log.read_text().strip().splitlines() or ["it said nothing"])[-1])
    return line


def version_of(name: str, system: System, env: dict[str, str]) -> str:
    """The program's version. RabbitMQ reports it through another program."""
    path = program("rabbitmqctl" if name == "RabbitMQ" else system.server)
    words = ["version"] if name == "RabbitMQ" else ["--version"]
    told = subprocess.run(
        [path or "", *words], env=env, capture_output=True, text=True, timeout=START_S
    )
    found = re.search(r"\d+\.\d+\.\d+", told.stdout)
    return found[0] if found else "of an unknown version"


def end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 15)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def rabbit_environment(folder: str, port: int) -> dict[str, str]:
    return {
        "HOME": folder,  # for the cookie
        "RABBITMQ_NODENAME": "zeroxide-bench@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "ERL_EPMD_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
        "RABBITMQ_LOG_BASE": f"{folder}/logs",
        "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
        "RABBITMQ_PID_FILE": f"{folder}/pid",
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(address: str, server: subprocess.Popen[str]) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise Failed(f"the server ended with {server.returncode}")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
            return
        time.sleep(0.2)
    raise Failed(f"no answer within {START_S} s")
