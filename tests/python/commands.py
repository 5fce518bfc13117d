"""The command `zeroxide` as a process, with bytes in its pipes."""

import subprocess
import sys
from typing import Any

from support import PATIENCE


class Command:
    """A running command. Every end is checked: a test kills what it leaves behind."""

    def __init__(self, *arguments: object, **options: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "zeroxide", *map(str, arguments)],
            stdin=options.pop("stdin", subprocess.PIPE),
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            bufsize=0,
            **options,
        )

    def __enter__(self) -> "Command":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def write(self, data: bytes) -> None:
        """Writes to stdin, which stays open."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def read(self, size: int) -> bytes:
        """Waits for exactly this much on stdout."""
        assert self.process.stdout is not None
        data = b""
        while len(data) < size:
            piece = self.process.stdout.read(size - len(data))
            assert piece, f"stdout ends after {data!r}"
            data += piece
        return data

    def bound_to(self) -> str:
        """The endpoint that it announces on stderr."""
        assert self.process.stderr is not None
        line = self.process.stderr.readline().decode()
        assert line.startswith("bound to "), line
        return line.split()[-1]

    def finish(self, status: int = 0, *, data: bytes | None = None) -> tuple[bytes, str]:
        """Ends its input and waits for its end; returns stdout and stderr."""
        output, errors = self.process.communicate(data, timeout=PATIENCE)
        assert self.process.returncode == status, (self.process.returncode, output, errors)
        return output or b"", errors.decode()


def run(*arguments: object, data: bytes = b"", status: int = 0) -> tuple[bytes, str]:
    """Runs a command to its end; returns stdout and stderr."""
    with Command(*arguments) as command:
        return command.finish(status, data=data)
