"""Tunnels made by the program ``ssh``."""

import contextlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from .server import Server

__all__ = ["Forward", "SSHException", "lets_in", "open_tunnel"]

# The time limit for a server's answer, in seconds.
_PATIENCE = 30

# The far shell prints this when the tunnel is ready.
_READY = b"zeroxide-tunnel-ready"

# Passes a password to ssh, which runs this program instead of asking at the terminal.
_ASKPASS = "#!/bin/sh\nprintf '%s\\n' \"$ZEROXIDE_SSH_PASSWORD\"\n"

# Tunnels of this process: forgotten ones would be reported as unclosed.
_tunnels: list[subprocess.Popen[bytes]] = []


class SSHException(Exception):
    """ssh failed; the text is its output.

    Source:
        pyzmq's ``zmq.ssh.tunnel.SSHException``
    """


@dataclass(frozen=True)
class Forward:
    """A tunnel from a port of this machine to one that the server can reach."""

    local_port: int
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"127.0.0.1:{self.local_port}:{host}:{self.port}"


def lets_in(server: Server, keyfile: str | None) -> bool:
    """Whether `server` needs no password; raises `TimeoutError` if it does not answer."""
    command = [*_ssh(keyfile), "-o", "BatchMode=yes", *server.arguments(), "exit"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{server.host} has not answered for {_PATIENCE} s") from None
    if done.returncode == 0:
        return True
    said = done.stderr.decode(errors="replace").strip()
    if "Permission denied" in said:
        return False
    raise SSHException(said or f"ssh ended with status {done.returncode}")


def open_tunnel(
    server: Server, forward: Forward, keyfile: str | None, password: str | None, timeout: int
) -> int:
    """Opens a tunnel that lasts while it is used, at least `timeout` seconds.

    Returns its process id when it is ready. Raises `SSHException`.
    """
    command = [
        *_ssh(keyfile),
        *("-o", "ExitOnForwardFailure=yes", "-L", str(forward)),
        *server.arguments(),
        # ssh ends after this, or later when the tunnel is no longer used.
        f"echo {_READY.decode()}; exec sleep {int(timeout)}",
    ]
    with _answering(password) as environment, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env=environment,
            # Ctrl-C is for this process, and the tunnel may outlive it.
            start_new_session=True,
        )
        if not _is_ready(process):
            process.kill()
            process.wait()
            said.seek(0)
            text = said.read().decode(errors="replace").strip()
            raise SSHException(text or f"no tunnel to {server.host} within {_PATIENCE} s")
    _tunnels[:] = [tunnel for tunnel in _tunnels if tunnel.poll() is None]
    _tunnels.append(process)
    return process.pid


def _ssh(keyfile: str | None) -> list[str]:
    # A separate connection, which no other process ends.
    key = ["-i", keyfile] if keyfile else []
    return ["ssh", "-S", "none", *key]


def _is_ready(process: subprocess.Popen[bytes]) -> bool:
    """Reads the output of the far shell; False if the tunnel failed or takes too long."""
    assert process.stdout is not None, "it was asked for"
    ready = threading.Event()
    over = threading.Event()

    def listen(output: IO[bytes]) -> None:
        # To the end, because a full pipe would stop the far shell.
        for line in output:
            if line.strip() == _READY:
                ready.set()
                over.set()
        over.set()
        output.close()

    threading.Thread(target=listen, args=[process.stdout], daemon=True).start()
    over.wait(_PATIENCE)
    return ready.is_set()


@contextlib.contextmanager
def _answering(password: str | None) -> Iterator[dict[str, str]]:
    """An environment in which ssh gets the password when it asks for one."""
    environment = dict(os.environ)
    environment.pop("SSH_ASKPASS", None)
    if password is None:
        yield environment
        return
    with tempfile.TemporaryDirectory(prefix="zeroxide-ssh-") as folder:
        program = os.path.join(folder, "askpass")
        descriptor = os.open(program, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        with os.fdopen(descriptor, "w") as file:
            file.write(_ASKPASS)
        yield environment | {
            "SSH_ASKPASS": program,
            "SSH_ASKPASS_REQUIRE": "force",
            "DISPLAY": environment.get("DISPLAY", ":0"),
            "ZEROXIDE_SSH_PASSWORD": password,
        }
