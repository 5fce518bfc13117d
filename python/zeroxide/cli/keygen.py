"""Creates a CURVE key pair.

examples:
  zeroxide keygen                 prints a public and a secret key in Z85
  zeroxide keygen --json
  zeroxide keygen --secret KEY    prints the public key of an existing secret key
  zeroxide keygen --name alice --directory keys
                                  writes keys/alice.key, which you may publish,
                                  and keys/alice.key_secret, which you must keep secret
"""

import argparse
import json
import os

from .._native import curve_keypair, curve_public

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide keygen``."""
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument(
        "--secret", metavar="KEY", help="use this secret key (in Z85) instead of a new one"
    )
    parser.add_argument("--name", help="write two certificates with this name")
    parser.add_argument(
        "--directory",
        default=".",
        metavar="FOLDER",
        help="folder for the certificates, created if missing (default: the current folder)",
    )


def run(options: argparse.Namespace) -> int:
    """Creates the keys and prints or writes them."""
    if options.name:
        if options.secret:
            options.fail("--name creates new keys and cannot be combined with --secret")
        if os.path.basename(options.name) != options.name:
            options.fail(
                f"--name takes a name without a folder, got {options.name!r};"
                " --directory takes the folder"
            )
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

    try:
        os.makedirs(options.directory, mode=0o700, exist_ok=True)
        files = create_certificates(options.directory, options.name)
    except OSError as error:
        options.fail(f"--directory: cannot write to {options.directory!r}: {error.strerror}")
    for file in files:
        print(file)
    return 0
