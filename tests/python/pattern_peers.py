"""Peers of the patterns in processes of their own, for tests that kill and stop them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from support import PATIENCE

# Runs one class of `zeroxide.patterns`. A handler answers with its name and the request. If it is to hang, it reports
# the request and does not answer. A server of Clone reports when it has the map.
PEER = """
import asyncio, json, sys, threading, time
from zeroxide import patterns

kind, name, arguments, does_hang = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4] == "hang"
peer = getattr(patterns, kind)(**arguments)

def answer(request):
    parts = getattr(request, "parts", request)
    print("got", *(part.decode() for part in parts), flush=True)
    if does_hang:
        threading.Event().wait()
    return [name.encode(), *parts]

async def answer_async(request):
    if does_hang:
        print("got", flush=True)
        await asyncio.Event().wait()
    return answer(request)

def report():
    while not peer.has_map:
        time.sleep(0.005)
    print("has map", flush=True)

print("running", flush=True)
if hasattr(peer, "has_map"):
    threading.Thread(target=report, daemon=True).start()
is_async = kind.startswith("Async")
handler = [answer_async if is_async else answer] if name else []
if is_async:
    asyncio.run(peer.run(*handler))
else:
    peer.run(*handler)
"""


class Peer:
    """A process that runs one peer."""

    def __init__(self, kind: str, name: str, arguments: dict[str, Any], *, hangs: bool) -> None:
        how = "hang" if hangs else "answer"
        self._process = subprocess.Popen(
            [sys.executable, "-c", PEER, kind, name, json.dumps(arguments), how],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.line() == "running"

    def line(self) -> str:
        """Returns the next line that it prints."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def kill(self) -> None:
        """Kills it with SIGKILL, and waits until it is gone."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def stop(self) -> None:
        """Stops it with SIGSTOP: its connections stay, and it is silent."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def exit_code(self) -> int:
        """Waits until it ends by itself, and returns its exit code."""
        return self._process.wait(PATIENCE)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.communicate()


class Peers:
    """Starts peers, and finally kills those that still run."""

    def __init__(self) -> None:
        self._started: list[Peer] = []

    def start(self, kind: str, name: str = "", *, hangs: bool = False, **arguments: Any) -> Peer:
        peer = Peer(kind, name, arguments, hangs=hangs)
        self._started.append(peer)
        return peer

    def end(self) -> None:
        for peer in self._started:
            peer.end()


def commands(machine: Any) -> list[Any]:
    """Returns the commands of a machine: messages as (link, parts), a new socket as ("reopen", link), and others."""
    return list(_commands(machine))


def _commands(machine: Any) -> Iterator[Any]:
    while (command := machine.poll_command()) is not None:
        # The modules of zeroxide are not there when its tests run on pyzmq.
        match type(command).__name__:
            case "Send":
                yield command.link, command.parts
            case "Reopen":
                yield "reopen", command.link
            case _:
                yield command
