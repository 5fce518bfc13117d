"""``python -m zeroxide.curve_keygen``: makes a CURVE key pair."""

import json
from collections.abc import Sequence

from . import curve_keypair, curve_public
from ._arguments import Parser

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a key pair, or a given secret key with its public key."""
    parser = Parser(
        # Shows the name under which the program was started.
        prog=f"python3 -m {__spec__.name}",
        description="Creates a CURVE key pair, in Z85.",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("--secret", help="print the public key of this secret key")
    arguments = parser.read(argv)
    if arguments.secret:
        try:
            secret = arguments.secret.encode("ascii")
            public = curve_public(secret)
        except ValueError as error:
            parser.error(f"--secret: {error}")
    else:
        public, secret = curve_keypair()
    if arguments.json:
        keys = {"public": public.decode("ascii"), "secret": secret.decode("ascii")}
        print(json.dumps(keys, indent=1))
    else:
        print(f"== CURVE PUBLIC KEY ==\n{public.decode('ascii')}\n")
        print(f"== CURVE SECRET KEY ==\n{secret.decode('ascii')}")


if __name__ == "__main__":
    main()
