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

_ZSH_END = """\
if [[ $funcstack[1] == _zeroxide ]]; then
  # The file is a function of fpath, which zsh calls for each completion.
  _shtab_zeroxide "$@"
else
  # `source` or `eval`, perhaps in a shell whose completion system is not loaded yet.
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i; }
  compdef _shtab_zeroxide zeroxide
fi
"""

FOLDER = Path(__file__).resolve().parent.parent / "python/zeroxide/cli/completions"


def scripts() -> dict[Path, str]:
    """The completion script of each shell, by its file."""
    parser = make_parser()
    _complete_files(parser)
    texts = {shell: shtab.complete(parser, shell) for shell in SHELLS.values}
    texts["zsh"] = _sourceable(texts["zsh"])
    return {FOLDER / f"zeroxide.{shell}": text.rstrip() + "\n" for shell, text in texts.items()}


def _sourceable(script: str) -> str:
    """The script of zsh for every way to load it; shtab's expects fpath or `eval`."""
    head, found, _ = script.partition("if [[ $zsh_eval_context[-1] == eval ]]")
    if not found:
        raise SystemExit("shtab's script for zsh ends in another way than this tool expects")
    return f"{head}{_ZSH_END}"


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
