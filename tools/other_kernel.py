"""Runs a command under user-mode Linux, whose kernel has SCTP, TIPC and vsock, which many kernels lack.

    python tools/other_kernel.py COMMAND [ARGUMENT ...]

The kernel is a program (Debian's package user-mode-linux), and the command sees the files of this machine. It needs no
privilege. The exit code is that of the command. Standard library only.
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


def main() -> int:
    """Starts the kernel and forwards what it prints."""
    with tempfile.TemporaryDirectory(prefix="zx-kernel-") as folder:
        shared = Path(folder)
        task = {"command": sys.argv[1:], "cwd": str(Path.cwd()), "environment": dict(os.environ)}
        (shared / TASK).write_text(json.dumps(task))
        start = shared / START
        inside = shlex.join([sys.executable, str(Path(__file__).resolve()), "--inside", folder])
        start.write_text(f"#!/bin/sh\nexec {inside}\n")
        start.chmod(0o755)
        options = (f"mem={MEMORY}", "rootfstype=hostfs", "rootflags=/", "rw", "quiet")
        console = ("con=null", "con0=null,fd:1", f"init={start}")
        try:
            subprocess.run(
                [KERNEL, *options, *console],
                stdin=subprocess.DEVNULL,
                env=os.environ | {"TMPDIR": folder},
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print(f"the kernel was still running after {PATIENCE_S} s", flush=True)
            return 1
        code = shared / CODE
        if not code.exists():
            print("the kernel ended before the command did", flush=True)
            return 1
        return int(code.read_text())


def inside(shared: Path) -> None:
    """The first process of the other kernel."""
    libc = ctypes.CDLL(None, use_errno=True)
    for kind, at in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/dev/shm")):
        libc.mount(kind.encode(), at.encode(), kind.encode(), 0, None)
    task = json.loads((shared / TASK).read_text())
    try:
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
