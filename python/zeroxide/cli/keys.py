"""The options for CURVE keys: the kinds of values that they take, and what they do to a socket."""

import argparse
import os
import re
from typing import Any

from .._arguments import file, folder
from ..socket import Socket

__all__ = ["add_keys", "public_key", "secret_key", "secure"]


def add_keys(group: Any) -> None:
    """Adds the options for a socket that is a CURVE server or client."""
    group.add_argument(
        "--key", type=secret_key, metavar="FILE", help="your certificate with its secret key"
    )
    group.add_argument(
        "--allow",
        type=folder,
        metavar="FOLDER",
        help="be a CURVE server for the certificates in this folder, or * for any key",
    )
    group.add_argument(
        "--server-key",
        type=public_key,
        metavar="FILE",
        help="be a CURVE client of the server with this certificate, or public key in Z85",
    )


def secure(socket: Socket[Any], options: argparse.Namespace) -> None:
    """Gives a socket the keys of the options."""
    if options.allow and options.server_key:
        options.fail("--allow makes this a CURVE server and --server-key a client: choose one")
    if options.allow:
        if not options.key:
            options.fail("--allow requires --key, the server's certificate with its secret key")
        socket.secure_server(options.key, options.allow)
    elif options.server_key:
        socket.secure_client(options.server_key, options.key)
    elif options.key:
        options.fail("--key requires --allow for a server, or --server-key for a client")


def secret_key(path: str) -> bytes:
    """The secret key in a certificate."""
    secret = _certificate(path)[1]
    if secret is None:
        raise argparse.ArgumentTypeError(
            f"{path!r} holds no secret key; expected the file NAME.key_secret"
        )
    return secret


def public_key(text: str) -> bytes:
    """A public key in Z85, or that of a certificate."""
    if re.fullmatch(r"\S{40}", text) and not os.path.exists(text):
        return text.encode()
    return _certificate(text)[0]


def _certificate(path: str) -> tuple[bytes, bytes | None]:
    from ..auth import load_certificate

    try:
        return load_certificate(file(path))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
