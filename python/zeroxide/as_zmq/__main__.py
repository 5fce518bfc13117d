"""The command line of `zeroxide.as_zmq`.

It starts a new interpreter in the same process, so that ``sys.argv``,
``__main__``, tracebacks, signals and exit codes are those of plain Python.
"""

import os
import shutil
import subprocess
import sys

from . import environment

USAGE = """\
usage: python -m zeroxide.as_zmq [--subprocesses] PROGRAM [ARGS...]
       python -m zeroxide.as_zmq [--subprocesses] -m MODULE [ARGS...]
       python -m zeroxide.as_zmq [--subprocesses] -c CODE [ARGS...]

Runs a Python program in which `import zmq` means zeroxide, whether or not pyzmq is
installed. PROGRAM is a file, or the name of an installed command written in Python.

  --subprocesses  also in the Python programs that it starts
  -h, --help      shows this

examples:
  python -m zeroxide.as_zmq server.py --port 5555
  python -m zeroxide.as_zmq --subprocesses -m pytest tests
  python -m zeroxide.as_zmq --subprocesses jupyter-lab
"""


def main(arguments: list[str]) -> int:
    """Runs the program in `arguments`; returns only if they contain a mistake."""
    everywhere = False
    while arguments and arguments[0] in ("--subprocesses", "-h", "--help"):
        if arguments[0] != "--subprocesses":
            print(USAGE, end="")
            return 0
        everywhere = True
        arguments = arguments[1:]
    if not arguments:
        print(USAGE, end="", file=sys.stderr)
        return 2
    if sys.flags.ignore_environment or sys.flags.no_site:
        print(
            "zeroxide.as_zmq: works through PYTHONPATH and sitecustomize, which the "
            "interpreter's flags -E, -I and -S switch off",
            file=sys.stderr,
        )
        return 2
    environment.extend(os.environ, once=not everywhere)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *interpreter_flags(), *_located(arguments)])


def interpreter_flags() -> list[str]:
    """The options of this interpreter before ``-m zeroxide.as_zmq``."""
    head = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    if head and head[-1] == "zeroxide.as_zmq":
        # The option before it may be combined: -um.
        return head[:-2] + [option for option in (head[-2][:-1],) if option != "-"]
    if head and head[-1].endswith("mzeroxide.as_zmq"):
        option = head[-1].removesuffix("mzeroxide.as_zmq")
        return head[:-1] + ([option] if option != "-" else [])
    # Started in another way, for example by a debugger.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags


def _located(arguments: list[str]) -> list[str]:
    """The arguments with an installed command replaced by its file."""
    program = arguments[0]
    if program.startswith("-") or os.path.exists(program):
        return arguments
    return [shutil.which(program) or program, *arguments[1:]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
