"""The command that answers requests: a request is its stdin, and its stdout the reply.

The modules that it needs are imported when there is a command: without one, `cat` starts sooner.
"""

import sys

from ...constants import PEER, ROUTER, SERVER, STREAM
from ..formats import Malformed, Message, make_decoder, make_encoder

__all__ = ["Handler", "envelope_and_body"]


class Handler:
    """Runs a command for each request."""

    def __init__(self, command: str, *, shell: bool, reads: str, writes: str) -> None:
        import shlex

        self._arguments: str | list[str] = command if shell else shlex.split(command)
        self._shell = shell
        self._reads = reads
        self._encode = make_encoder(writes)
        self.failures: int = 0

    def missing(self) -> str | None:
        """The name of the program, if there is none of this name."""
        import shutil

        if self._shell:
            return None
        name = self._arguments[0] if self._arguments else ""
        return None if name and shutil.which(name) else name

    def reply(self, request: list[bytes]) -> Message:
        """Returns the reply to a request. A command that fails replies, too: the peer waits for it."""
        import subprocess

        message: Message = request[0] if len(request) == 1 else request
        done = subprocess.run(
            self._arguments,
            shell=self._shell,
            input=self._encode([message]),
            stdout=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            how = f"code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
            self._report(f"ended with {how}")
        decoder = make_decoder(self._reads)
        replies = [*decoder.feed(done.stdout), *decoder.end()]
        try:
            decoder.check()
        except Malformed as error:
            self._report(f"gave no reply in the format {self._reads}: {error}")
        return replies[0] if replies else b""

    def _report(self, what: str) -> None:
        self.failures += 1
        print(f"zeroxide: the command of --exec {what}", file=sys.stderr, flush=True)


def envelope_and_body(kind: int, message: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Splits a message into the parts that address its reply, and the others."""
    if kind in (STREAM, SERVER, PEER):
        return message[:1], message[1:]
    if kind != ROUTER:
        return [], message
    end = message.index(b"", 1) + 1 if b"" in message[1:-1] else 1
    return message[:end], message[end:]
