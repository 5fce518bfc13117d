"""Services that nodes offer, as headers: ``X-SERVICE-name`` with an endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from .. import _checks
from ._events import Enter, Peer

__all__ = ["Provider", "provider", "service_headers"]

_PREFIX = "X-SERVICE-"
_TCP = "tcp://"
_ANYWHERE = ("*", "0.0.0.0", "[::]")


@dataclass(frozen=True, slots=True)
class Provider:
    """A node that offers a service.

    Source:
        zeroxide only; RFC 36 has the headers
    """

    peer: UUID
    """The node."""
    name: str
    """The name of the node."""
    endpoint: str
    """Where to connect."""


def service_headers(services: Any) -> dict[str, str]:
    """Returns the headers for services and their endpoints."""
    if not isinstance(services, Mapping):
        raise TypeError(f"services takes a mapping, not {_checks.shown(services)}")
    headers = {}
    for name, endpoint in services.items():
        text = _checks.address(endpoint.decode() if isinstance(endpoint, bytes) else endpoint)
        if not text.startswith(_TCP):
            raise ValueError(f"a service has a tcp endpoint, not {_checks.shown(endpoint)}")
        headers[_PREFIX + _checks.name("the name of a service", name)] = text
    return headers


def provider(peer: Peer | Enter, service: str) -> Provider | None:
    """Returns how a peer offers a service, if it does. Peers can name any endpoint, and only those of tcp count."""
    endpoint = peer.headers.get(_PREFIX + service, "")
    host, separator, port = endpoint.removeprefix(_TCP).rpartition(":")
    if not endpoint.startswith(_TCP) or not separator or not host:
        return None
    if host in _ANYWHERE:
        # The node is bound to all its addresses, of which this node knows one.
        if not peer.endpoint.startswith(_TCP):
            return None
        host = peer.endpoint.removeprefix(_TCP).rpartition(":")[0]
    node = peer.uuid if isinstance(peer, Peer) else peer.peer
    return Provider(node, peer.name, f"{_TCP}{host}:{port}")
