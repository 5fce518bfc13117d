"""Nodes of `zeroxide.discovery` and of the crate `zeroxide-discovery` find each other and talk."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import PATIENCE, free_udp_port

from zeroxide.discovery import Enter, Event, Exit, Join, Node, Shout, Whisper, follow

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")

ROOT = Path(__file__).parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
LONG = PATIENCE * 1000

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def chat() -> Path:
    """The example of the crate, which `make test` builds before, because other builds that run would block this one."""
    if built := os.environ.get("ZEROXIDE_CHAT"):
        return Path(built)
    build = ["cargo", "build", "--locked", "--quiet", "--profile", "quick"]
    build += ["-p", "zeroxide-discovery", "--example", "chat"]
    subprocess.run(build, cwd=ROOT, check=True)
    return TARGET / "quick" / "examples" / "chat"


@pytest.fixture
def start(chat: Path) -> Iterator[Start]:
    """Starts a node in Rust."""
    programs: list[subprocess.Popen[str]] = []

    def run(name: str, *options: str) -> "subprocess.Popen[str]":
        command = [str(chat), name, "--interface", "lo", *options]
        pipe = subprocess.PIPE
        programs.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        return programs[-1]

    yield run
    for program in programs:
        program.kill()
        program.wait(PATIENCE)
        for pipe in (program.stdin, program.stdout):
            assert pipe is not None
            pipe.close()


def find(node: Node, kind: type[Event]) -> Any:
    """Returns the next event of a kind; others are ignored."""
    while not isinstance(event := node.recv(LONG), kind):
        assert event is not None, kind
    return event


def reads(program: Any, line: str) -> None:
    """Waits until a program prints a line."""
    while (found := program.stdout.readline().rstrip("\n")) != line:
        assert found, f"no {line}"


def says(program: Any, line: str) -> None:
    program.stdin.write(f"{line}\n")
    program.stdin.flush()


def converse(rust: Any, node: Node) -> None:
    """Both sides enter, join, shout, whisper and leave."""
    node.join("chat")
    assert find(node, Enter).name == "rust"
    peer = find(node, Join).peer
    reads(rust, "* python is here")
    assert node.shout("chat", "to all ä".encode()) == 1
    reads(rust, "python: to all ä")
    assert node.whisper(peer, [b"to you"])
    reads(rust, "python, only to you: to you")
    says(rust, "hello all")
    assert find(node, Shout) == Shout(peer, "rust", "chat", [b"hello all"])
    says(rust, "@python hello you")
    assert find(node, Whisper) == Whisper(peer, "rust", [b"hello you"])


def test_by_beacons(start: Start) -> None:
    port = free_udp_port()
    with Node("python", interface="lo", port=port, interval=50) as node:
        rust = start("rust", "--port", str(port))
        converse(rust, node)
        rust.stdin.close()
        assert find(node, Exit).reason == "goodbye"
    assert rust.wait(PATIENCE) == 0


def test_a_node_in_rust_was_there_first_and_sees_the_other_one_leave(start: Start) -> None:
    port = free_udp_port()
    rust = start("rust", "--port", str(port))
    with Node("python", interface="lo", port=port, interval=50) as node:
        converse(rust, node)
    reads(rust, "* python has left: goodbye")


def test_by_gossip_of_a_node_in_python(start: Start) -> None:
    with Node("python", interface="lo", gossip_bind="tcp://127.0.0.1:*") as node:
        assert node.gossip_endpoint is not None
        converse(start("rust", "--gossip", node.gossip_endpoint), node)


def test_by_gossip_of_a_node_in_rust(start: Start) -> None:
    rust = start("rust", "--gossip-bind", "tcp://127.0.0.1:*")
    endpoint = rust.stdout.readline().split()[-1]
    with Node("python", interface="lo", gossip=endpoint) as node:
        converse(rust, node)


def test_a_killed_node_in_rust_is_evasive_and_gone(start: Start) -> None:
    port = free_udp_port()
    times = {"interval": 50, "evasive": 500, "expired": 1500}
    with Node("python", interface="lo", port=port, **times) as node:
        rust = start("rust", "--port", str(port))
        find(node, Enter)
        rust.kill()
        assert find(node, Exit).reason == "expired"


def test_a_socket_follows_a_service_in_rust(start: Start, context: Any, zmq: Any) -> None:
    port = free_udp_port()
    push = context.socket(zmq.PUSH)
    with (
        context.socket(zmq.PULL) as pull,
        Node("python", interface="lo", port=port, interval=50) as node,
    ):
        pull.bind("tcp://127.0.0.1:*")
        follower = follow(push, "work", node=node)
        start("rust", "--port", str(port), "--offer", f"work={pull.last_endpoint.decode()}")
        assert follower.wait(timeout=LONG)
        push.send(b"found")
        assert pull.recv() == b"found"
    push.close(linger=0)
