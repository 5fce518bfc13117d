"""What the commands share: a parser with short errors, and the kinds of values that options take.

A kind turns text into a value or raises `ArgumentTypeError` with a sentence that says what
was expected. Values from the environment go through the same kinds as those of options.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from ._hints import did_you_mean
from ._sizes import parse_size

__all__ = [
    "Choice",
    "Parser",
    "above",
    "address",
    "file",
    "flag",
    "folder",
    "name",
    "size",
    "text",
]

Number = TypeVar("Number", int, float)

# Options that take a CURVE key in Z85, and its length.
KEY_OPTIONS = {"--secret"}
KEY_LENGTH = 40


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Asks for the width of the terminal as argparse does, without the modules that it loads for that.

    Every parser makes formatters, not only ``--help``, and a command in a loop should start soon.
    """

    def __init__(self, prog: str) -> None:
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdecimal() else 0
        if not width:
            try:
                width = os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
            except (AttributeError, ValueError, OSError):
                width = 0
        super().__init__(prog, width=(width or 80) - 2)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line that names the option.

    Options cannot be abbreviated: an abbreviation would break as soon as a longer option
    appeared beside it.
    """

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _Formatter)
        super().__init__(allow_abbrev=False, **settings)

    def read(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        """Parses a command line, or `sys.argv`; exits with code 2 after a mistake."""
        options, unknown = self.parse_known_args(
            _joined(sys.argv[1:] if arguments is None else arguments)
        )
        if unknown:
            # A subcommand's own parser knows which options there are.
            parser: Parser = getattr(options, "parser", self)
            parser._refuse(unknown[0])
        return options

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse ignores a stdout that fails.
        (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        """Prints one line and exits with code 2."""
        message = message.removeprefix("argument ")
        print(f"{self.prog}: {message} (help: {self.prog} --help)", file=sys.stderr)
        sys.exit(2)

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            self.error(f"unexpected argument {word!r}")
        name = word.partition("=")[0]
        known = re.findall(r"(?<![\w-])--?[a-z][\w-]*", self.format_help())
        self.error(f"there is no option {name}{did_you_mean(name, known)}")


def _joined(arguments: Sequence[str]) -> list[str]:
    """The arguments, with each key that begins with a dash joined to its option: argparse would take it for another."""
    joined: list[str] = []
    for word in arguments:
        if (
            joined
            and joined[-1] in KEY_OPTIONS
            and word.startswith("-")
            and len(word) == KEY_LENGTH
        ):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def size(text: str) -> int:
    """A number of bytes, with K, M, G or T for powers of 1024."""
    bytes_ = parse_size(text)
    if bytes_ is None or not 1 <= bytes_ < 2**63:
        raise _expected("a number of bytes, such as 1048576, 64K or 100G", text)
    return bytes_


def above(least: Number, unit: str) -> Callable[[str], Number]:
    """Numbers that are not below `least`, whole ones if `least` is; `unit` is for errors.

    They are below 2^63 or, if they need not be whole, below 1e9: clocks cannot wait for more seconds.
    """
    limit = 2**63 if isinstance(least, int) else 1e9

    def parse(text: str) -> Number:
        try:
            value = type(least)(text)
        except ValueError:
            value = None
        if value is None or not least <= value < limit:
            whole = "a whole number" if isinstance(least, int) else "a number"
            below = f" and below {limit:g}" if value is not None and value >= limit else ""
            raise _expected(f"{whole} of {unit}, {least:g} or more{below}", text)
        return value

    return parse


def address(text: str) -> tuple[str, int]:
    """HOST:PORT, with a host in brackets if it has colons; * lets the system choose a port."""
    host, colon, port = text.rpartition(":")
    number = 0 if port == "*" else int(port) if port.isdecimal() else -1
    if not colon or not 0 <= number < 2**16:
        raise _expected("HOST:PORT, such as 127.0.0.1:8080", text)
    return host.strip("[]") or "127.0.0.1", number


class Choice:
    """One of some words."""

    def __init__(self, *values: str) -> None:
        self.values = values

    def __call__(self, text: str) -> str:
        if text in self.values:
            return text
        *most, last = self.values
        raise argparse.ArgumentTypeError(
            f"expected {', '.join(most)} or {last}, got {text!r}{did_you_mean(text, self.values)}"
        )


def text(text: str) -> str:
    """Text that has a form in UTF-8. Other bytes of the command line arrive as surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _expected("text in UTF-8", text) from None
    return text


def name(words: str) -> str:
    """The name of a producer or of a group."""
    if not 1 <= len(text(words).encode()) <= 255:
        raise _expected("a name of 1 to 255 bytes", words)
    return words


def flag(text: str) -> bool:
    """Yes or no, as a variable of the environment has it."""
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off", ""):
        return False
    raise _expected("1 or 0 (also true, false, yes, no, on, off)", text)


def file(text: str) -> str:
    """The name of a file that exists."""
    if not os.path.exists(text):
        raise argparse.ArgumentTypeError(f"there is no file {text!r}")
    if os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"{text!r} is a folder; expected a file")
    return text


def folder(text: str) -> str:
    """The name of a folder that exists, or *."""
    if text != "*" and not os.path.isdir(text):
        wrong = "is not a folder" if os.path.exists(text) else "does not exist"
        raise argparse.ArgumentTypeError(
            f"{text!r} {wrong}; expected a folder, or * for every client"
        )
    return text


def _expected(what: str, text: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"expected {what}, got {text!r}")
