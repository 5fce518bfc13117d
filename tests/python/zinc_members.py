"""Members of the example `zinc` as processes, for tests that kill and stop them."""

import os
import signal
import subprocess
import sys
from functools import cached_property

from support import PATIENCE
from zinc_cluster import ROOT

# Seconds of silence after which a neighbour is dead.
SILENCE = "0.8"


class Member:
    """A process with one endpoint, and with its page."""

    def __init__(self, name: str, join: str = "", breadth: int = 2) -> None:
        command = [sys.executable, "-m", "examples.zinc.member", "--name", name, "--join", join]
        self._process = subprocess.Popen(
            [*command, "--breadth", str(breadth), "--patience", SILENCE],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def address(self) -> str:
        return self._places[0]

    @property
    def url(self) -> str:
        return self._places[1]

    @cached_property
    def _places(self) -> list[str]:
        """The words that it prints when it has started."""
        return self.line().split()

    def line(self) -> str:
        """Returns the next line that it prints."""
        return self._process.stdout.readline()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)

    def stop(self) -> None:
        """Stops it with SIGSTOP: its connections stay, and it is silent."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()
