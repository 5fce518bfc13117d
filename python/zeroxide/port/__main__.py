"""``python -m zeroxide.port``: lists the lines of programs that import pyzmq, and changes them."""

import difflib
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

from .._arguments import Parser
from . import port

DESCRIPTION = "Finds what has to change for a program to move from pyzmq to zeroxide."
EPILOG = """\
examples:
  python -m zeroxide.port program.py           lists the lines to change
  python -m zeroxide.port --diff src           shows the changes, of all *.py files in a folder
  python -m zeroxide.port --write src          makes them

Only import statements are changed. Strings that name pyzmq, and names that zeroxide does not have,
are listed for you to decide.

exit codes: 0 nothing is left to do, 1 something is, 2 a file could not be read
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks or changes files and returns the exit code."""
    parser = Parser(
        prog="python -m zeroxide.port",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument("paths", nargs="+", metavar="FILE", help="a file, or a folder of them")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--write", action="store_true", help="change the files")
    how.add_argument("--diff", action="store_true", help="show the changes as a patch")
    options = parser.read(arguments)
    code = 0
    for path in _files(options.paths):
        try:
            left = _port(path, write=options.write, diff=options.diff)
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            code = 2
        else:
            code = max(code, int(left))
    return code


def _files(paths: Sequence[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            yield from sorted(path.rglob("*.py"))
        else:
            yield path


def _port(path: Path, *, write: bool, diff: bool) -> bool:
    """Checks or changes one file; returns whether lines remain to be changed."""
    # Keeps the declared encoding and the line ends.
    with path.open("rb") as file:
        encoding, _ = tokenize.detect_encoding(file.readline)
    with path.open(encoding=encoding, newline="") as file:
        source = file.read()
    changed, findings = port(source)
    if diff:
        before, after = (text.splitlines(keepends=True) for text in (source, changed))
        sys.stdout.writelines(difflib.unified_diff(before, after, f"{path}", f"{path}"))
    if write and changed != source:
        with path.open("w", encoding=encoding, newline="") as file:
            file.write(changed)
    for finding in findings:
        if finding.after is None:
            print(f"{path}:{finding.line}: {finding.before}  # {finding.note}", file=sys.stderr)
        elif not diff:
            print(f"{path}:{finding.line}: {finding.before} -> {finding.after}")
    return any(finding.after is None or not write for finding in findings)


if __name__ == "__main__":
    sys.exit(main())
