"""One library in a process of its own, because some inputs end libzmq."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


class Library:
    """A process that answers questions with one library. It is started again if a question ends it, or if there is no
    answer within the patience, in seconds."""

    def __init__(
        self, name: str, serve: Callable[[str, Connection], None], patience: float = 60
    ) -> None:
        self.name = name
        self._serve = serve
        self._patience = patience
        self._start()

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=self._serve, args=(self.name, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, question: Any) -> Any:
        """Returns the answer, or a sentence on how the process failed."""
        try:
            self._pipe.send(question)
            if self._pipe.poll(self._patience):
                return self._pipe.recv()
            failure = "hangs"
        except (EOFError, OSError):
            self._process.join()
            failure = f"ended with {self._process.exitcode}"
        self.close()
        self._start()
        return failure

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()
