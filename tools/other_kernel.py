"""Runs a command under user-mode Linux, whose kernel has SCTP, TIPC and vsock, which many kernels lack.

    python tools/other_kernel.py COMMAND [ARGUMENT ...]

The kernel is a program (Debian's package user-mode-linux), and the command sees the files of this machine. It needs no
privilege. The exit code is that of the command. A machine can also have a disk of its own, and its power can be cut.
Standard library only.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

KERNEL = "linux.uml"
MODULES = Path("/usr/lib/uml/modules")
WANTED = ("sctp", "tipc", "vsock_loopback")
MEMORY = "768M"
PATIENCE_S = 600

# SCTP signs its cookies with an algorithm that would be one more module.
COOKIES = Path("/proc/sys/net/sctp/cookie_hmac_alg")

# Where a command sees the disk.
DISK = Path("/mnt/disk")

# The name of a file in the folder that both sides see.
TASK, CODE, START = "task.json", "code", "init"

SYS_FINIT_MODULE = 313  # x86-64
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
POWER_OFF = 0x4321FEDC


def why_not() -> str | None:
    """Why no other kernel can run here; None if one can."""
    if shutil.which(KERNEL) is None or not any(MODULES.glob("*/modules.dep")):
        return "no user-mode-linux here"
    if os.uname().machine != "x86_64":
        return "user-mode-linux needs x86-64"
    return None


def why_not_with_disk() -> str | None:
    """Like `why_not`, for a machine that has a disk."""
    return why_not() or (None if shutil.which("mkfs.ext4") else "no mkfs.ext4 here")


class Machine:
    """A running kernel with one command. `disk` is the image of a disk with ext4, which the command sees in DISK."""

    def __init__(self, command: list[str], disk: Path | None = None, quiet: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="zx-kernel-")
        shared = self._folder.name
        task = {
            "command": command,
            "cwd": str(Path.cwd()),
            "environment": dict(os.environ),
            "disk": disk is not None,
        }
        Path(shared, TASK).write_text(json.dumps(task))
        start = Path(shared, START)
        inside = shlex.join([sys.executable, str(Path(__file__).resolve()), "--inside", shared])
        start.write_text(f"#!/bin/sh\nexec {inside}\n")
        start.chmod(0o755)
        options = [
            f"mem={MEMORY}",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "rw",
            "quiet",
        ]
        if disk is not None:
            options.append(f"ubda={disk}")
        console = ("con=null", "con0=null,fd:1", f"init={start}")
        self._kernel = subprocess.Popen(
            [KERNEL, *options, *console],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if quiet else None,
            stderr=subprocess.DEVNULL if quiet else None,
            env=os.environ | {"TMPDIR": shared},
            start_new_session=True,  # its processes are a group
        )

    def wait(self, patience_s: float) -> int:
        """Waits for the end of the command and returns its exit code; raises TimeoutError."""
        try:
            self._kernel.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.cut_power()
            raise TimeoutError(f"the kernel was still running after {patience_s} s") from None
        code = Path(self._folder.name, CODE)
        result = int(code.read_text()) if code.exists() else 1
        self._folder.cleanup()
        return result

    def is_running(self) -> bool:
        """Whether the kernel runs."""
        return self._kernel.poll() is None

    def cut_power(self) -> None:
        """Ends the machine at once. What its kernel has not written to the disk is lost."""
        os.killpg(self._kernel.pid, signal.SIGKILL)
        self._kernel.wait()
        self._folder.cleanup()


def main() -> int:
    """Runs one command and forwards what it prints."""
    try:
        return Machine(sys.argv[1:]).wait(PATIENCE_S)
    except TimeoutError as error:
        print(error, flush=True)
        return 1


def inside(shared: Path) -> None:
    """The first process of the other kernel."""
    libc = ctypes.CDLL(None, use_errno=True)
    for kind, at in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/dev/shm")):
        libc.mount(kind.encode(), at.encode(), kind.encode(), 0, None)
    task = json.loads((shared / TASK).read_text())
    try:
        if task["disk"]:
            libc.mount(b"tmpfs", b"/mnt", b"tmpfs", 0, None)
            DISK.mkdir()
            if libc.mount(b"/dev/ubda", str(DISK).encode(), b"ext4", 0, None) != 0:
                raise OSError(ctypes.get_errno(), "cannot mount the disk")
        raise_loopback()
        load_modules(libc)
        COOKIES.write_text("none")
        os.chdir(task["cwd"])
        code = subprocess.run(task["command"], env=task["environment"], check=False).returncode
    except OSError as error:
        print(error, flush=True)
        code = 1
    (shared / CODE).write_text(str(code))
    sys.stdout.flush()
    os.sync()
    libc.reboot(POWER_OFF)
    signal.pause()


def raise_loopback() -> None:
    """Makes 127.0.0.1 usable."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = bytearray(struct.pack("16sH14x", b"lo", 0))
        fcntl.ioctl(control, SIOCGIFFLAGS, request)
        flags = struct.unpack_from("H", request, 16)[0] | IFF_UP
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags))


def load_modules(libc: ctypes.CDLL) -> None:
    """Loads the wanted modules, and first those that they need."""
    index = MODULES / os.uname().release / "modules.dep"
    needs: dict[str, list[str]] = {}
    for line in index.read_text().splitlines():
        path, _, others = line.partition(":")
        needs[path] = others.split()
    for name in WANTED:
        path = next(path for path in needs if Path(path).name.removesuffix(".ko") == name)
        # The list begins with what needs the rest.
        for module in [*reversed(needs[path]), path]:
            file = os.open(index.parent / module, os.O_RDONLY)
            libc.syscall(SYS_FINIT_MODULE, file, b"", 0)
            os.close(file)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(Path(sys.argv[2]))
    else:
        sys.exit(main())
