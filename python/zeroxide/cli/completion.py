"""Prints the completion script of a shell.

examples:
  zeroxide completion bash > ~/.local/share/bash-completion/completions/zeroxide
  zeroxide completion zsh > ~/.zfunc/_zeroxide      (with ~/.zfunc in fpath)
  source <(zeroxide completion zsh)                 (in ~/.zshrc; also for bash)
  zeroxide completion fish > ~/.config/fish/completions/zeroxide.fish
"""

import argparse
import sys
from importlib import resources

from .._arguments import Choice

__all__ = ["SHELLS", "add_arguments", "run"]

SHELLS = Choice("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide completion``."""
    parser.add_argument(
        "shell", metavar="SHELL", type=SHELLS, choices=SHELLS.values, help="bash, zsh or fish"
    )


def run(options: argparse.Namespace) -> int:
    """Prints the script, which was generated when the package was built."""
    script = resources.files(__package__).joinpath("completions", f"zeroxide.{options.shell}")
    sys.stdout.write(script.read_text(encoding="utf-8"))
    return 0
