"""A network of two machines, whose wire loses and reorders packets.

The machines are namespaces of the kernel. The wire is a third one, in which a program of its own passes on the frames.
"""

import itertools
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import random, select, socket, sys

loss, reordering = (float(word) for word in sys.argv[1:])
dice = random.Random(7)
ends = []
for name in ("left", "right"):
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
    end.bind((name, 0))
    ends.append(end)
late = {}
print("up", flush=True)

def forward(end, frame):
    try:
        end.send(frame)
    except OSError:
        pass

while True:
    ready = select.select([*ends, sys.stdin], [], [], 0.02)[0]
    if sys.stdin in ready:
        break
    if not ready:
        for end, frame in late.items():
            forward(end, frame)
        late.clear()
    for end in ready:
        frame, address = end.recvfrom(70_000)
        if address[2] == socket.PACKET_OUTGOING:
            continue
        other = ends[1 - ends.index(end)]
        protocol = frame[23] if frame[12:14] == b"\\x08\\0" else 0
        if protocol == 17:
            # The kernel leaves the checksum to the network card. Zero means that there is none.
            at = 14 + (frame[14] & 15) * 4 + 6
            frame = frame[:at] + b"\\0\\0" + frame[at + 2 :]
        if protocol in (17, 113):
            if dice.random() < loss:
                continue
            if other not in late and dice.random() < reordering:
                late[other] = frame
                continue
        forward(other, frame)
        if protocol in (17, 113) and other in late:
            forward(other, late.pop(other))
"""


class Wire:
    """Two machines, "left" with the address 10.78.0.1 and "right" with 10.78.0.2; both call the interface `wire`."""

    numbers = itertools.count()

    def __init__(self, loss: float, reordering: float) -> None:
        number = next(self.numbers)
        self.names = {side: f"zw{os.getpid()}-{number}{side}" for side in ("left", "mid", "right")}
        self.programs: list[subprocess.Popen[str]] = []
        try:
            self._make(loss, reordering)
        except BaseException:
            self.end()
            raise

    def _make(self, loss: float, reordering: float) -> None:
        mid = self.names["mid"]
        for name in self.names.values():
            self.run("netns", "add", name)
        for side, address in (("left", "10.78.0.1"), ("right", "10.78.0.2")):
            machine = self.names[side]
            link = ("type", "veth", "peer", "name", "wire", "netns", machine)
            self.run("-n", mid, "link", "add", side, *link)
            self.run("-n", mid, "link", "set", side, "up")
            self.run("-n", machine, "link", "set", "lo", "up")
            self.run("-n", machine, "addr", "add", f"{address}/24", "dev", "wire")
            self.run("-n", machine, "link", "set", "wire", "up")
        program = self.start("mid", "-c", PROGRAM, str(loss), str(reordering))
        assert program.stdout and program.stdout.readline() == "up\n"

    @staticmethod
    def run(*arguments: str) -> None:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise OSError(done.stderr)

    def start(self, side: str, *arguments: str | Path) -> subprocess.Popen[str]:
        """Starts a Python program on a machine."""
        command = ["ip", "netns", "exec", self.names[side], sys.executable, *map(str, arguments)]
        pipe = subprocess.PIPE
        program = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.programs.append(program)
        return program

    def end(self) -> None:
        for program in self.programs:
            program.kill()
            with program:  # closes its pipes
                pass
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
