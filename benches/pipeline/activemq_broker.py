"""One ActiveMQ broker on this machine, for STOMP, with messages in memory: `python activemq_broker.py FOLDER`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from java_programs import fetch, free_port, java, serve, started

VERSION = "6.2.0"
JARS = Path("build/activemq/broker")
HEAP = ("-Xms1g", "-Xmx1g")


@dataclass
class ActiveMq:
    """A running broker."""

    address: str

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[ActiveMq]:
        # The broker with its dependencies, in one jar.
        fetch(JARS, "org.apache.activemq", "activemq-all", (VERSION,), "-notransitive")
        address = f"127.0.0.1:{(port := free_port())}"
        places = tuple(f"-Dactivemq.{what}={folder}" for what in ("home", "base", "data"))
        # The main class of the start script. There is no settings file, so the address holds all settings. Without the first one,
        # messages would wait 40 ms for the acknowledgement of earlier ones.
        stomp = f"stomp://{address}?transport.tcpNoDelay=true"
        uri = f"broker:({stomp})?persistent=false&useJmx=false&dataDirectory={folder}"
        command = ["org.apache.activemq.console.Main", "start", uri]
        broker = java(*command, path=JARS / "*", options=(*HEAP, *places))
        with started(broker, port, folder / "broker.log"):
            yield cls(address)


if __name__ == "__main__":
    serve(ActiveMq.running, VERSION)
