"""Services in the DNS: the addresses of a name, as of a headless service of Kubernetes, and SRV records."""

import socket
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from .. import _checks
from .._optional import needed_by

__all__ = ["DNS", "SRV", "Resolve", "Unanswered", "addresses_of", "services_of"]

DNS = "dns://"
SRV = "srv://"

_PORTS = 1 << 16

# Errors of getaddrinfo that mean that the name has no address. The others mean that there is no answer.
_EMPTY = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


class Unanswered(Exception):
    """No server of the DNS answers, so it is not known which providers there are."""


Resolve: TypeAlias = Callable[[], Collection[str]]


def addresses_of(source: str, *, ipv6: bool) -> Resolve:
    """Returns a function that looks up the endpoints of ``dns://host:port``."""
    host, separator, port = source.removeprefix(DNS).rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < _PORTS:
        raise ValueError(f"service takes 'dns://host:port', not {_checks.shown(source)}")
    family = socket.AF_UNSPEC if ipv6 else socket.AF_INET

    def resolve() -> Collection[str]:
        try:
            found = socket.getaddrinfo(host, int(port), family, socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno in _EMPTY:
                return set()
            raise Unanswered(f"{host}: {error.strerror}") from None
        except (OSError, UnicodeError) as error:
            raise Unanswered(f"{host}: {error}") from None
        return {_endpoint(str(address[0]), port) for *_, address in found}

    return resolve


def services_of(source: str, resolver: Any) -> Resolve:
    """Returns a function that looks up the endpoints of ``srv://_service._tcp.domain``."""
    name = source.removeprefix(SRV)
    if not name:
        raise ValueError(f"service takes 'srv://_name._tcp.domain', not {_checks.shown(source)}")
    with needed_by("follow('srv://...')", extra="dns"):
        import dns.exception
        import dns.resolver
    asked = dns.resolver.Resolver() if resolver is None else resolver

    def resolve() -> Collection[str]:
        try:
            records = list(asked.resolve(name, "SRV", search=True))
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return set()
        except (dns.exception.DNSException, OSError) as error:
            raise Unanswered(f"{name}: {error}") from None
        first = min((record.priority for record in records), default=0)
        return {
            _endpoint(record.target.to_text(omit_final_dot=True), str(record.port))
            for record in records
            # RFC 2782: a target of "." offers nothing, and other priorities are for when the first ones are gone.
            if record.priority == first and record.port and record.target.to_text() != "."
        }

    return resolve


def _endpoint(host: str, port: str) -> str:
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
