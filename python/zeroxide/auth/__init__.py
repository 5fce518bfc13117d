"""Authentication of peers.

The simplest way, without a handler, is a method of the socket::

    allowed = server.secure_server(secret_key, allow=["Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"])
    client.secure_client(server_key, secret_key)

`AllowList` and `Passwords` define the peers that such a socket accepts; they may change at
any time. The other names are pyzmq's: an `Authenticator` answers ZAP requests (RFC 27) for
all sockets of its context, in a thread (`zeroxide.auth.thread`) or in an asyncio loop
(`zeroxide.auth.asyncio`).
"""

from typing import TYPE_CHECKING

from .._exports import exports_only, on_demand
from .._native import AllowList, Passwords
from .base import CURVE_ALLOW_ANY, Authenticator
from .certs import create_certificates, load_certificate, load_certificates

__all__ = [
    "CURVE_ALLOW_ANY",
    "AllowList",
    "Authenticator",
    "Passwords",
    "create_certificates",
    "load_certificate",
    "load_certificates",
]


_MODULES = ("asyncio", "base", "certs", "ioloop", "thread")


def __dir__() -> list[str]:
    return exports_only(globals(), *_MODULES)


if not TYPE_CHECKING:  # for type checkers, a missing name is a mistake
    __getattr__ = on_demand(__name__, *_MODULES)
