"""Makes a pair of CURVE keys.

examples:
  zeroxide keygen                             prints public and secret key, in Z85
  zeroxide keygen --json
  zeroxide keygen --secret KEY                prints the public key that belongs to one
  zeroxide keygen --name alice --directory keys
                                              writes keys/alice.key, which may be known to all,
                                              and keys/alice.key_secret, which must not
"""

import argparse
import json
import os

from .._native import curve_keypair, curve_public

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What follows ``zeroxide keygen``."""
    parser.add_argument("--json", action="store_true", help="prints a JSON object")
    parser.add_argument("--secret", metavar="KEY", help="a secret key that exists already")
    parser.add_argument("--name", help="writes two certificates under this name")
    parser.add_argument(
        "--directory", default=".", help="where to write them; made if it does not exist"
    )


def run(options: argparse.Namespace) -> int:
    """Makes the keys and shows or writes them."""
    if options.name:
        if options.secret:
            options.fail("--name makes new keys: it does not go together with --secret")
        return _write(options)
    if options.secret:
        secret = options.secret.encode()
        try:
            public = curve_public(secret)
        except ValueError as error:
            options.fail(f"--secret: {error}")
    else:
        public, secret = curve_keypair()
    keys = {"public": public.decode(), "secret": secret.decode()}
    if options.json:
        print(json.dumps(keys, indent=1))
    else:
        print(f"public key  {keys['public']}\nsecret key  {keys['secret']}")
    return 0


def _write(options: argparse.Namespace) -> int:
    from ..auth import create_certificates

    os.makedirs(options.directory, mode=0o700, exist_ok=True)
    for path in create_certificates(options.directory, options.name):
        print(path)
    return 0
