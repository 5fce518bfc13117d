"""The process under test, as a row sees it."""

from __future__ import annotations

import ast
import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

from .row import Failed

AGENT = Path(__file__).with_name("agent.py")
# The longest wait for an answer, in seconds, on a machine that runs other programs.
ANSWER_S = 30
# The longest wait for the end, once the agent reads the end of its input.
END_S = 20


class CallFailed(Exception):
    """A call in the process raised this exception: its type, errno and text."""

    def __init__(self, kind: str, errno: int | None, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.errno, self.text = kind, errno, text


class Subject:
    """A process with a binding, which runs code and is looked at from outside.

    Args:
        module: The binding, `zmq` in the code.
        prefix: A command that starts the process, such as strace.
        limits: Resource limits of the process.
    """

    def __init__(
        self, module: str, prefix: list[str] | None = None, limits: dict[int, int] | None = None
    ) -> None:
        def limit() -> None:
            for what, most in (limits or {}).items():
                resource.setrlimit(what, (most, resource.getrlimit(what)[1]))

        self.module = module
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [*(prefix or []), sys.executable, str(AGENT), module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            preexec_fn=limit if limits else None,
        )
        self._read = b""
        # With a prefix, the process itself is a child of the command.
        self.pid = int(self.run("os.getpid()"))

    def run(self, code: str, seconds: float = ANSWER_S) -> Any:
        """Runs code, and returns the value of its last expression.

        Raises:
            CallFailed: If the code raised an exception.
            Failed: If the process died, or did not answer in time.
        """
        self.begin(code)
        return self.answer(seconds)

    def begin(self, code: str) -> None:
        """Sends code; `answer` returns its value."""
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(f"{textwrap.dedent(code)!r}\n".encode())
            self.process.stdin.flush()
        except OSError:
            raise Failed(self.end_of_life()) from None

    def answer(self, seconds: float = ANSWER_S) -> Any:
        deadline = time.monotonic() + seconds
        assert self.process.stdout is not None
        while b"\n" not in self._read:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failed(f"a call did not end within {seconds:g} s")
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise Failed(self.end_of_life())
            self._read += chunk
        line, self._read = self._read.split(b"\n", 1)
        outcome = ast.literal_eval(line.decode())
        if outcome[0] == "error":
            raise CallFailed(*outcome[1:])
        return outcome[1]

    def end(self) -> None:
        """Lets the process end, as a program does.

        Raises:
            Failed: If it does not end, or not with status 0.
        """
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"the process did not end within {END_S} s") from None
        if self.process.returncode != 0:
            raise Failed(self.end_of_life())

    def end_of_life(self) -> str:
        """Describes how the process ended."""
        try:
            status = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            return "the process closed its output and continued"
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        complaints = self.complaints().strip().splitlines()
        return f"the process ended with {how}" + (f": {complaints[-1]}" if complaints else "")

    def complaints(self) -> str:
        """What the process has written to stderr."""
        self._complaints.seek(0)
        return self._complaints.read().decode(errors="replace")

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.communicate()
        self._complaints.close()

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    # -- from outside

    def alive(self) -> bool:
        return self.process.poll() is None

    def memory(self) -> int:
        """Resident memory in bytes."""
        return self._pages(1)

    def forget_peak(self) -> None:
        """Lets `peak` start from the memory of now."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def peak(self) -> int:
        """The most resident memory in bytes since `forget_peak`."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) << 10

    def space(self) -> int:
        """Address space in bytes."""
        return self._pages(0)

    def descriptors(self) -> int:
        return len(self._list("fd"))

    def threads(self) -> int:
        return len(self._list("task"))

    def processor_time(self) -> float:
        """Seconds that its threads have run."""
        total = 0
        for thread in self._list("task"):
            # A thread may end meanwhile.
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{self.pid}/task/{thread}/schedstat").read_text()
                total += int(text.split()[0])
        return total / 1e9

    def _pages(self, column: int) -> int:
        try:
            text = Path(f"/proc/{self.pid}/statm").read_text()
        except OSError:
            raise Failed(self.end_of_life()) from None
        return int(text.split()[column]) * resource.getpagesize()

    def _list(self, what: str) -> list[str]:
        try:
            return os.listdir(f"/proc/{self.pid}/{what}")
        except OSError:
            raise Failed(self.end_of_life()) from None
