"""Machines of a network: namespaces of the kernel, joined by a cable that can be moved and cut, or that loses packets."""

import itertools
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

# Passes frames on between two interfaces, loses a share of those with TCP, and prints how many when it is asked.
LOSSY = """
import random, select, socket, sys

loss, dice = float(sys.argv[1]), random.Random(int(sys.argv[2]))
ends = []
for name in ("left", "right"):
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
    end.bind((name, 0))
    ends.append(end)
lost = 0
print("up", flush=True)
while True:
    ready = select.select([*ends, sys.stdin], [], [])[0]
    if sys.stdin in ready:
        sys.stdin.readline()
        print(lost, flush=True)
    for end in set(ready) & set(ends):
        frame, address = end.recvfrom(70_000)
        if address[2] == socket.PACKET_OUTGOING:
            continue
        if frame[12:14] == b"\\x08\\0" and frame[23] == socket.IPPROTO_TCP and dice.random() < loss:
            lost += 1
            continue
        ends[1 - ends.index(end)].send(frame)
"""

# The interface leaves no checksums and no splitting to a network card, because there is none behind it.
NO_CARD = """
import ctypes, fcntl, socket, struct, sys

SIOCETHTOOL, TSO, GSO, CHECKSUMS = 0x8946, 0x1F, 0x24, 0x17
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    for what in (TSO, GSO, CHECKSUMS):
        value = ctypes.create_string_buffer(struct.pack("II", what, 0))
        request = struct.pack("16sP", sys.argv[1].encode(), ctypes.addressof(value))
        fcntl.ioctl(any_socket, SIOCETHTOOL, request)
"""


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

    def lossy_cable(self, loss: float, seed: int) -> None:
        """Joins the first machine and a new one by a cable that loses this share of the packets of TCP."""
        self.place, between = self.make(), self.make()
        for machine, name, end, address in (
            (self.home, "near", "left", "10.77.0.2/24"),
            (self.place, "far", "right", "10.77.0.1/24"),
        ):
            link = ("type", "veth", "peer", "name", end, "netns", between)
            self.run("ip", "-n", machine, "link", "add", name, *link)
            self.run("ip", "-n", between, "link", "set", end, "up")
            self.run("ip", "-n", machine, "addr", "add", address, "dev", name)
            inside = ("ip", "netns", "exec", machine)
            self.run(*inside, sys.executable, "-c", NO_CARD, name)
            self.run("ip", "-n", machine, "link", "set", name, "up")
        command = [
            "ip",
            "netns",
            "exec",
            between,
            sys.executable,
            "-c",
            LOSSY,
            str(loss),
            str(seed),
        ]
        pipe = subprocess.PIPE
        self.lossy = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.programs.append(self.lossy)
        self._told()

    def lost(self) -> int:
        """The number of packets that the cable has lost."""
        assert self.lossy.stdin
        self.lossy.stdin.write("\n")
        self.lossy.stdin.flush()
        return int(self._told())

    def _told(self) -> str:
        assert self.lossy.stdout
        return self.lossy.stdout.readline()

    def plug_in(self) -> None:
        self.run("ip", "-n", self.place, "link", "set", "far", "up")

    def cut(self) -> None:
        """Unplugs the cable; `plug_in` mends it."""
        self.run("ip", "-n", self.place, "link", "set", "far", "down")

    def start(self, machine: str, module: str, script: str, *arguments: str) -> Any:
        source = f"import sys\nimport {module} as zmq\n{textwrap.dedent(script)}"
        command = ["ip", "netns", "exec", machine, sys.executable, "-c", source, *arguments]
        pipe = subprocess.PIPE
        program = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.programs.append(program)
        return program

    def end(self) -> None:
        for program in self.programs:
            program.kill()
            program.communicate()
        for name in self.names:
            self.run("ip", "netns", "del", name)
