"""Titanic: clients, which may go away between a request and its reply."""

from typing import Any

from .. import _checks
from ..context import Context
from ._driver import Configure
from ._machine import Body, as_parts
from ._majordomo_client import AsyncMajordomoClient, MajordomoClient
from ._mdp import Version

__all__ = ["AsyncTitanicClient", "TitanicClient", "TitanicError", "UnknownRequest"]


class TitanicError(RuntimeError):
    """The server cannot do what it was asked for now: its disk may be full. Try again later.

    Source:
        RFC 9, TSP: status 500
    """


class UnknownRequest(LookupError):
    """There is no such request: it was closed, or was never accepted.

    Source:
        RFC 9, TSP: status 400
    """


class TitanicClient:
    """Sends requests through a `TitanicServer`, and fetches the replies later.

    Args:
        endpoint: Where the broker is: ``"tcp://broker:5555"``.
        version: The version of the protocol: ``"0.1"`` or ``"0.2"``, as the server.
        timeout: How long to wait for the server in one attempt, in ms.
        attempts: How many times a call is sent at most; None for no limit.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Example:
        ```python
        with TitanicClient("tcp://127.0.0.1:5555") as client:
            name = client.submit("upper", b"Hello")  # now it is on the disk
            ...
            reply = client.fetch(name)  # None while the service has not executed it
            client.discard(name)
        ```

    Source:
        RFC 9, TSP
    """

    def __init__(
        self,
        endpoint: str,
        *,
        version: Version = "0.1",
        timeout: float = 2500,
        attempts: int | None = 3,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        self._client = MajordomoClient(
            endpoint,
            version=version,
            timeout=timeout,
            attempts=attempts,
            context=context,
            configure=configure,
        )

    def submit(self, service: str, body: Body) -> str:
        """Stores a request on the server's disk.

        If the confirmation is lost, the request is stored twice, and executed twice.

        Args:
            service: The name of the service that is to execute the request.
            body: The request: bytes, or a list of parts.

        Returns:
            The name of the request: 32 hexadecimal characters.

        Raises:
            NoReply: The server did not confirm in time.
            TitanicError: The server could not store the request.
        """
        return _submitted(self._client.request("titanic.request", _order(service, body)))

    def fetch(self, name: str) -> list[bytes] | None:
        """Returns the reply to a request. It stays on the server until `discard`.

        Args:
            name: The name of the request.

        Returns:
            The parts of the reply, or None if the request has not been executed yet.

        Raises:
            NoReply: The server did not answer in time.
            TitanicError: The server could not read the reply.
            UnknownRequest: There is no such request.
        """
        return _fetched(name, self._client.request("titanic.reply", _name(name)))

    def discard(self, name: str) -> None:
        """Removes a request and its reply from the server, if they exist.

        Args:
            name: The name of the request.

        Raises:
            NoReply: The server did not confirm in time.
            TitanicError: The server could not remove the request.
        """
        _confirmed(self._client.request("titanic.close", _name(name)))

    def close(self) -> None:
        """Closes the socket."""
        self._client.close()

    def __enter__(self) -> "TitanicClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncTitanicClient:
    """A `TitanicClient` for asyncio. Calls of several tasks wait for each other.

    Args:
        endpoint: Where the broker is: ``"tcp://broker:5555"``.
        version: The version of the protocol: ``"0.1"`` or ``"0.2"``, as the server.
        timeout: How long to wait for the server in one attempt, in ms.
        attempts: How many times a call is sent at most; None for no limit.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Source:
        RFC 9, TSP
    """

    def __init__(
        self,
        endpoint: str,
        *,
        version: Version = "0.1",
        timeout: float = 2500,
        attempts: int | None = 3,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        self._client = AsyncMajordomoClient(
            endpoint,
            version=version,
            timeout=timeout,
            attempts=attempts,
            context=context,
            configure=configure,
        )

    async def submit(self, service: str, body: Body) -> str:
        """Stores a request on the server's disk.

        If the confirmation is lost, the request is stored twice, and executed twice.

        Args:
            service: The name of the service that is to execute the request.
            body: The request: bytes, or a list of parts.

        Returns:
            The name of the request: 32 hexadecimal characters.

        Raises:
            NoReply: The server did not confirm in time.
            TitanicError: The server could not store the request.
        """
        return _submitted(await self._client.request("titanic.request", _order(service, body)))

    async def fetch(self, name: str) -> list[bytes] | None:
        """Returns the reply to a request. It stays on the server until `discard`.

        Args:
            name: The name of the request.

        Returns:
            The parts of the reply, or None if the request has not been executed yet.

        Raises:
            NoReply: The server did not answer in time.
            TitanicError: The server could not read the reply.
            UnknownRequest: There is no such request.
        """
        return _fetched(name, await self._client.request("titanic.reply", _name(name)))

    async def discard(self, name: str) -> None:
        """Removes a request and its reply from the server, if they exist.

        Args:
            name: The name of the request.

        Raises:
            NoReply: The server did not confirm in time.
            TitanicError: The server could not remove the request.
        """
        _confirmed(await self._client.request("titanic.close", _name(name)))

    def close(self) -> None:
        """Closes the socket."""
        self._client.close()

    async def __aenter__(self) -> "AsyncTitanicClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def _order(service: str, body: Body) -> list[bytes]:
    return [_checks.name("service", service).encode(), *as_parts(body)]


def _name(name: str) -> bytes:
    return _checks.name("name", name, "the name of a request").encode()


def _submitted(reply: list[bytes]) -> str:
    match _confirmed(reply):
        case [name]:
            return name.decode("ascii", "replace")
    raise TitanicError("the server stored a request and returned no name")


def _fetched(name: str, reply: list[bytes]) -> list[bytes] | None:
    if reply[0][:3] == b"300":
        return None
    if reply[0][:3] == b"400":
        raise UnknownRequest(f"the server has no request {name!r}")
    return _confirmed(reply)


def _confirmed(reply: list[bytes]) -> list[bytes]:
    """Returns what follows the status, of which only the number counts."""
    if reply[0][:3] != b"200":
        raise TitanicError(f"the server answered {reply[0].decode('utf-8', 'replace')!r}")
    return reply[1:]
