"""The command ``zeroxide``. Each subcommand is a module beside this one and a line here."""

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from .. import _native
from .._arguments import Parser
from .._hints import did_you_mean
from ..error import ZMQBaseError
from .streams import Stopped, end_like, flush, hold_streams, stoppable

__all__ = ["main", "make_parser"]

COMMANDS = (
    "cat",
    "bench",
    "proxy",
    "collector",
    "top",
    "produce",
    "tail",
    "topics",
    "groups",
    "lag",
    "check",
    "verify",
    "keygen",
    "completion",
    "version",
)


def make_parser(commands: Sequence[str] = COMMANDS) -> Parser:
    """Returns the parser of the command line.

    Args:
        commands: The subcommands that it knows. A subcommand is imported only if it is one of
            these, because a command in a loop of a script should start without delay.
    """
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
    for name in commands:
        command = _module(name)
        help, _, details = (command.__doc__ or "").partition("\n\n")
        subparser = subcommands.add_parser(
            name, help=help, description=help, epilog=details.rstrip()
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run, fail=subparser.error, parser=subparser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a subcommand and returns its exit code; 2 stands for a mistake in the arguments.

    A signal, or the end of the reader of stdout, ends the process as if nothing had handled it.
    """
    hold_streams()
    words = sys.argv[1:] if arguments is None else list(arguments)
    is_command = bool(words) and words[0] in COMMANDS
    parser = make_parser([words[0]] if is_command else COMMANDS)
    if words and not is_command and not words[0].startswith("-"):
        parser.error(f"there is no command {words[0]!r}{did_you_mean(words[0], COMMANDS)}")
    try:
        with stoppable():
            try:
                options = parser.read(words or ["--help"])
            except SystemExit:
                # After the text of --help, which may not fit on the disk.
                flush()
                raise
            code: int = options.run(options)
            flush()
    except Stopped as stopped:
        end_like(stopped)
    except (ZMQBaseError, OSError) as error:
        print(f"{parser.prog}: {_reason(error)}", file=sys.stderr)
        return 1
    return code


def _reason(error: Exception) -> str:
    if isinstance(error, ZMQBaseError) or not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _module(command: str) -> ModuleType:
    return import_module(f".{command}", __name__)
