"""Writes the shell completions of the command `zeroxide` from its argument parser, with shtab.

The files are part of the package, so that completion needs nothing else to be installed.
`python tools/completions.py` writes them; `--check` only compares.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import shtab

from zeroxide._arguments import file, folder
from zeroxide.cli import make_parser
from zeroxide.cli.completion import SHELLS

FOLDER = Path(__file__).resolve().parent.parent / "python/zeroxide/cli/completions"


def scripts() -> dict[Path, str]:
    """The completion script of each shell, by its file."""
    parser = make_parser()
    _complete_files(parser)
    return {
        FOLDER / f"zeroxide.{shell}": shtab.complete(parser, shell).rstrip() + "\n"
        for shell in SHELLS.values
    }


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Tells shtab which arguments are names of files or folders."""
    action: Any
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                _complete_files(subparser)
        elif action.type is folder or action.metavar in ("DIR", "FOLDER"):
            action.complete = shtab.DIRECTORY
        elif action.type is file or action.metavar == "FILE":
            action.complete = shtab.FILE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    check = parser.parse_args().check
    stale = 0
    for path, text in scripts().items():
        if not path.exists() or path.read_text() != text:
            stale += 1
            print(f"{'stale' if check else 'written'}: {path.name}")
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
