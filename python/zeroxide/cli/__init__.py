"""The command ``zeroxide``. Each subcommand is a module beside this one and a line here."""

import argparse
import sys
from collections.abc import Sequence

from ..error import ZMQBaseError
from . import collector, groups, keygen, proxy, version

__all__ = ["main"]

COMMANDS = (version, keygen, proxy, collector, groups)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a subcommand and returns its exit code; 2 is a mistake in the arguments."""
    parser = argparse.ArgumentParser(prog="zeroxide", description="Tools for ZeroMQ.")
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        help, _, details = (command.__doc__ or "").partition("\n\n")
        subparser = subcommands.add_parser(
            name,
            help=help,
            description=help,
            epilog=details.rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run, fail=subparser.error)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
    except (ZMQBaseError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return code
