"""The kinds of values that options for CURVE keys take."""

import argparse
import os
import re

from .._arguments import file

__all__ = ["public_key", "secret_key"]


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
