"""Java programs from the registry: fetched by the Ivy among pyspark's jars, started, and
stopped."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import pyspark

from zeroxide.spark import ensure_java

SPARK_JARS = Path(pyspark.__file__).parent / "jars"
START_S = 60


class NotInstalled(Exception):
    """The program is not available; the text gives the reason."""


class Broker(Protocol):
    """A running program with an address."""

    @property
    def address(self) -> str: ...


def serve(running: Callable[[Path], AbstractContextManager[Broker]], version: str) -> None:
    """Runs a broker on its own: `python X_broker.py FOLDER` prints its address, and ends when its stdin is closed."""
    try:
        with running(Path(sys.argv[1])) as broker:
            print(broker.address, version, flush=True)
            sys.stdin.read()
    except NotInstalled as why:
        sys.exit(f"not installed: {why}")


def fetch(
    folder: Path, organisation: str, name: str, versions: tuple[str, ...], *options: str
) -> None:
    """Fetches the first of these versions that the registry has, with its dependencies."""
    if any(folder.glob(f"{name}-*.jar")):
        return
    (ivy,) = SPARK_JARS.glob("ivy-*.jar")
    into = folder / "[artifact]-[revision](-[classifier]).[ext]"
    where = ["-cache", folder.parent / "cache", "-types", "jar", "bundle", "-retrieve", into]
    for version in versions:
        what = ["-dependency", organisation, name, version, "-confs", "default", *options]
        command = java("org.apache.ivy.Main", *what, *where, path=ivy)
        if subprocess.run(command, capture_output=True).returncode == 0:
            return
    raise NotInstalled(f"{organisation}:{name}:{versions[0]} cannot be fetched from a registry")


@contextmanager
def started(command: list[str], port: int, said: Path) -> Iterator[None]:
    """A program that runs, writes to `said`, and answers at a port of this machine."""
    with said.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        await_port(port, process, said)
        yield
    finally:
        process.terminate()
        process.wait()


def java(*words: object, path: object, options: tuple[str, ...] = ()) -> list[str]:
    program = str(ensure_java() / "bin" / "java")
    return [program, *options, "-cp", str(path), *map(str, words)]


def await_port(port: int, process: subprocess.Popen[bytes], said: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotInstalled(
                    f"the broker does not start: {said.read_text()[-500:]}"
                ) from None
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
