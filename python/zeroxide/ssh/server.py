"""The address of an ssh server, and the user name there."""

from dataclasses import dataclass
from typing import Self

__all__ = ["Server"]


@dataclass(frozen=True)
class Server:
    """The parts of ``user@host:port``."""

    host: str
    user: str | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses ``host``, ``user@host``, ``host:port`` or ``user@host:port``."""
        user, _, address = text.rpartition("@")
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdecimal():
            host, port = address, ""
        # A name that begins with a dash would be an option of ssh.
        if not host or host.startswith("-") or user.startswith("-"):
            raise ValueError(f"not an ssh server: {text!r}")
        return cls(host, user or None, int(port) if port else None)

    def arguments(self) -> list[str]:
        """The arguments for ssh."""
        port = ["-p", str(self.port)] if self.port else []
        return [*port, f"{self.user}@{self.host}" if self.user else self.host]
