"""Runs one case once: starts the processes, lets them measure, ends them, and reports how quiet the
machine was."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from cases import Case
from roles import ROLES

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "python"))
from certificates import Authority

PROGRAM = Path(__file__).with_name("roles.py")
LIMIT_S = 60


class RunFailed(Exception):
    """A process ended, or ran out of time, without a result."""


class Part:
    """One measured process, which communicates in lines of JSON."""

    def __init__(self, module: str, part: str, parameters: dict[str, Any]) -> None:
        name, _, folder = module.partition("@")  # a build that is not the installed one
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), name, part, json.dumps(parameters)],
            env=os.environ | ({"PYTHONPATH": folder} if folder else {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.watchdog = threading.Timer(LIMIT_S, self.process.kill)
        self.watchdog.daemon = True
        self.watchdog.start()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RunFailed(f"a process ended without a result, exit code {self.process.wait()}")
        said: dict[str, Any] = json.loads(line)
        return said

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")

    def end(self) -> None:
        """Kills the peer, which sends forever; after the wait, its CPU time counts towards this process."""
        self.watchdog.cancel()
        self.process.kill()
        self.process.communicate()


def run(module: str, case: Case, parameters: dict[str, Any]) -> dict[str, float]:
    """Returns the case's figures, and `foreign`, the share of the machine that other processes took meanwhile."""
    before = (time.monotonic(), machine_cpu(), own_cpu())
    with tempfile.TemporaryDirectory(prefix="zeroxide-bench-") as folder:
        addresses = {
            "tcp": "tcp://127.0.0.1:*",
            "ipc": f"ipc://{folder}/socket",
            "inproc": "inproc://bench",
            "tls+tcp": "tls+tcp://127.0.0.1:*",
        }
        parameters = parameters | {"address": addresses[case.transport]}
        if case.transport == "tls+tcp":
            Authority(Path(folder)).issue("server", "IP:127.0.0.1")
            parameters["certificates"] = folder
        parts: list[Part] = []
        spinners = [spin() for _ in range(parameters.get("spinning", 0))]
        try:
            if case.in_one_process:
                parts.append(Part(module, "both", parameters))
                figures: dict[str, float] = parts[0].hear()["result"]
            else:
                figures = run_both(module, case, parameters, parts)
        except (OSError, KeyError) as why:
            raise RunFailed(f"no answer from a process: {why!r}") from why
        finally:
            for part in parts:
                part.end()
            for spinner in spinners:
                spinner.kill()
                spinner.wait()
    elapsed = time.monotonic() - before[0]
    foreign = (machine_cpu() - before[1]) - (own_cpu() - before[2])
    return figures | {"foreign": max(0.0, foreign / elapsed / (os.cpu_count() or 1))}


def spin() -> subprocess.Popen[bytes]:
    """Starts a process that uses all it gets of a core."""
    return subprocess.Popen([sys.executable, "-c", "while True: pass"])


def run_both(
    module: str, case: Case, parameters: dict[str, Any], parts: list[Part]
) -> dict[str, float]:
    """Starts the side that binds, then the other one with its endpoint; forwards their messages to
    each other."""
    sides = ["peer", "measure"] if ROLES[case.role].peer_binds else ["measure", "peer"]
    parts.append(Part(module, sides[0], parameters))
    connecting = parameters | {"endpoint": parts[0].hear()["endpoint"]}
    parts.append(Part(module, sides[1], connecting))
    measuring, peer = (parts[sides.index(side)] for side in ("measure", "peer"))
    measuring.tell(str(peer.process.pid))
    while True:
        said = measuring.hear()
        if "result" in said:
            result: dict[str, float] = said["result"]
            return result
        if "tell" in said:
            peer.tell(said["tell"])
        else:
            measuring.tell(json.dumps(peer.hear()))


def machine_cpu() -> float:
    """Seconds of CPU used by all processes, without interrupts, which belong to no process."""
    with open("/proc/stat") as stat:
        user, nice, system = map(int, stat.readline().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def own_cpu() -> float:
    """Seconds used by this process and by its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
