"""The command ``zeroxide``. Each subcommand is a module beside this one and a line here."""

import sys
from collections.abc import Sequence

from .. import _native
from .._arguments import Parser
from .._hints import did_you_mean
from ..error import ZMQBaseError
from . import collector, completion, groups, keygen, proxy, version

__all__ = ["main", "make_parser"]

COMMANDS = (version, keygen, proxy, collector, groups, completion)


def make_parser() -> Parser:
    """Returns the parser of the whole command line."""
    parser = Parser(
        prog="zeroxide",
        description="Tools for ZeroMQ.",
        epilog="zeroxide COMMAND --help shows the options and examples of a command.",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"zeroxide {_native.__version__}",
        help="print the version and exit",
    )
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        help, _, details = (command.__doc__ or "").partition("\n\n")
        subparser = subcommands.add_parser(
            _name(command), help=help, description=help, epilog=details.rstrip()
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run, fail=subparser.error, parser=subparser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a subcommand and returns its exit code; 2 stands for a mistake in the arguments."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    parser = make_parser()
    if not words:
        parser.print_help()
        return 0
    names = [_name(command) for command in COMMANDS]
    if not words[0].startswith("-") and words[0] not in names:
        parser.error(f"there is no command {words[0]!r}{did_you_mean(words[0], names)}")
    options = parser.read(words)
    try:
        code: int = options.run(options)
    except (ZMQBaseError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return code


def _name(command: object) -> str:
    """The interface of a subcommand's module."""
    return str(getattr(command, "__name__", "")).rpartition(".")[2]
