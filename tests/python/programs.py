"""Runs examples as programs, each in a separate process."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

from support import PATIENCE

ROOT = Path(__file__).parents[2]

# Runs a program on another module than the one it imports.
ON_ANOTHER = """
import os, runpy, sys, {module}
sys.modules["zeroxide"] = {module}
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Programs:
    """Starts programs under `examples`, and finally kills those that still run."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._started: list[subprocess.Popen[str]] = []

    def start(self, name: str, *arguments: object) -> subprocess.Popen[str]:
        program = [str(ROOT / "examples" / name)]
        if self._module != "zeroxide":
            program = ["-c", ON_ANOTHER.format(module=self._module), *program]
        process = subprocess.Popen(
            [sys.executable, *program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def run(self, name: str, *arguments: object) -> str:
        return output(self.start(name, *arguments))

    def end(self) -> None:
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.communicate()


def output(
    process: subprocess.Popen[str], stdin: str | None = None, patience: float = PATIENCE
) -> str:
    """Waits for a successful exit and returns the output."""
    try:
        out, err = process.communicate(stdin, timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"{process.args} does not end\n{out}\n{err}") from None
    assert process.returncode == 0, f"{process.args}\n{out}\n{err}"
    return out


def line(process: subprocess.Popen[str]) -> str:
    """Returns the next line that the program writes; "" when there are no more."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def stop(process: subprocess.Popen[str]) -> str:
    """Ends a program with Ctrl-C that it handles, and returns the output that was not read."""
    process.send_signal(signal.SIGINT)
    return output(process)


def interrupt(process: subprocess.Popen[str]) -> str:
    """Ends a program that runs forever with Ctrl-C, which prints Python's traceback. Returns its other output."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert "KeyboardInterrupt" in err
    return out
