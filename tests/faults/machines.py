"""Machines of a network: namespaces of the kernel, joined by a cable that can be moved and cut."""

import itertools
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any


def forget(process: int) -> None:
    """Removes the machines of a process that was killed."""
    for place in Path("/run/netns").glob(f"zx{process}-*"):
        subprocess.run(["ip", "netns", "del", place.name], capture_output=True)
        shutil.rmtree(Path("/etc/netns") / place.name, ignore_errors=True)


class Machines:
    """Namespaces; the newest one has the cable to the first, and the address 10.77.0.1."""

    numbers = itertools.count()

    def __init__(self) -> None:
        self.names: list[str] = []
        self.programs: list[subprocess.Popen[str]] = []
        self.home = self.make()
        self.place = ""

    def make(self) -> str:
        name = f"zx{os.getpid()}-{next(self.numbers)}"
        self.run("ip", "netns", "add", name)
        self.names.append(name)
        self.run("ip", "-n", name, "link", "set", "lo", "up")
        return name

    @staticmethod
    def run(*command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise OSError(done.stderr)

    def cable(self) -> None:
        """Moves the cable to a new machine, without a notice to the previous one."""
        before, self.place = self.place, self.make()
        if not before:
            link = ("type", "veth", "peer", "name", "far", "netns", self.place)
            self.run("ip", "-n", self.home, "link", "add", "near", *link)
            self.run("ip", "-n", self.home, "addr", "add", "10.77.0.2/24", "dev", "near")
            self.run("ip", "-n", self.home, "link", "set", "near", "up")
        else:
            self.run("ip", "-n", before, "link", "set", "far", "netns", self.place)
        self.run("ip", "-n", self.place, "addr", "add", "10.77.0.1/24", "dev", "far")

    def plug_in(self) -> None:
        self.run("ip", "-n", self.place, "link", "set", "far", "up")

    def cut(self) -> None:
        """Unplugs the cable; `plug_in` mends it."""
        self.run("ip", "-n", self.place, "link", "set", "far", "down")

    def start(self, machine: str, module: str, script: str, *arguments: str) -> Any:
        source = f"import sys\nimport {module} as zmq\n{textwrap.dedent(script)}"
        command = ["ip", "netns", "exec", machine, sys.executable, "-c", source, *arguments]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.programs.append(program)
        return program

    def end(self) -> None:
        for program in self.programs:
            program.kill()
            program.communicate()
        for name in self.names:
            self.run("ip", "netns", "del", name)
