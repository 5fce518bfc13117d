"""Writes the stubs where editors find the sentence about each constant, and about each option that is an attribute.

The sentences have one home each: those about options in the core's table (`rust/core/src/options`), their units and
defaults in `python/zeroxide/_constant_texts.py`, the others in the docstrings of `python/zeroxide/_enums.py` and below the
plain numbers of `constants.py`. Needs the package, built from these sources: a test compares the files with what is installed.
"""

import ast
import enum
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from pathlib import Path

from zeroxide import _constant_texts, _option_names, constants

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "zeroxide"
SOURCES = [PACKAGE / "constants.py", PACKAGE / "_enums.py"]

HEAD = """# Written by tools/constants_stub.py. A docstring below a name is what editors show for it.

from enum import Enum, IntEnum, IntFlag
"""

ATTRIBUTES_HEAD = """# Written by tools/constants_stub.py. A docstring below a name is what editors show for it.

__all__ = [
    "CONTEXT_READ_ONLY",
    "READ_ONLY",
    "ContextOptions",
    "ReadOnlyOptions",
    "SocketOptions",
    "UpperCaseOptions",
]

READ_ONLY: tuple[str, ...]
CONTEXT_READ_ONLY: tuple[str, ...]
"""

OPTION_TYPES = """
class _OptType(Enum):
    int = "int"
    int64 = "int64"
    bytes = "bytes"
    fd = "fd"
"""

OPTION_TYPE = "    _opt_type: _OptType\n"

WIDTH = 100

# These numbers are the system's.
SYSTEM = "Errno"


def main() -> None:
    """Writes the files."""
    for path, text in stubs().items():
        path.write_text(text)


def stubs() -> dict[Path, str]:
    """The texts of the stubs."""
    return {
        PACKAGE / "constants.pyi": "".join([HEAD, *classes(), *names(), *exports()]),
        PACKAGE / "_option_names.pyi": "".join(
            [ATTRIBUTES_HEAD, *attributes(), *read_only(), *of_contexts()]
        ),
    }


def classes() -> Iterator[str]:
    yield OPTION_TYPES
    for kind in kinds():
        base = "IntFlag" if issubclass(kind, enum.IntFlag) else "IntEnum"
        yield f"\nclass {kind.__name__}({base}):\n{docstring(kind, '    ')}\n"
        if kind is constants.SocketOption:
            yield OPTION_TYPE
        for name, member in kind.__members__.items():
            if name != member.name:
                yield f"    {name} = {member.name}\n"
            else:
                yield f"    {name} = {'...' if kind.__name__ == SYSTEM else value_of(member)}\n"
            yield docstring(member, "    ", name)


def names() -> Iterator[str]:
    below = docstrings_below()
    yield "\n"
    for name, value in vars(constants).items():
        if name.startswith("_") or isinstance(value, type):
            continue
        if isinstance(value, enum.Enum):
            member = f"{type(value).__name__}.{value.name}"
            whole = f"{name} = {member}\n"
            yield whole if len(whole) <= WIDTH + 1 else f"{name} = (\n    {member}\n)\n"
            yield docstring(value, "", name)
        else:
            yield f"{name}: int\n"
            yield quoted(below[name], "")


def exports() -> Iterator[str]:
    yield "\n__all__ = [\n"
    for name in constants.__all__:
        yield f'    "{name}",\n'
    yield "]\n"


def attributes() -> Iterator[str]:
    for kind in (_option_names.SocketOptions, _option_names.UpperCaseOptions):
        yield class_of(kind)
        for name, value in kind.__annotations__.items():
            yield f"    {name}: {value.__name__}\n"
            yield docstring(constants.SocketOption[name.upper()], "    ", name.upper())


def read_only() -> Iterator[str]:
    yield class_of(_option_names.ReadOnlyOptions)
    for name in [*_option_names.READ_ONLY, *map(str.upper, _option_names.READ_ONLY)]:
        option = constants.SocketOption[name.upper()]
        result = "bytes" if option._opt_type.value == "bytes" else "int"
        yield getter(name, result, inspect.getdoc(option) or "")


def of_contexts() -> Iterator[str]:
    kind = _option_names.ContextOptions
    yield class_of(kind)
    for name, value in kind.__annotations__.items():
        yield f"    {name}: {value.__name__ if isinstance(value, type) else value}\n"
        yield quoted(_constant_texts.context_option_text(name.upper()) or "", "    ")
    for name in _option_names.CONTEXT_READ_ONLY:
        yield getter(name, "int", _constant_texts.context_option_text(name.upper()) or "")


def getter(name: str, result: str, text: str) -> str:
    return f"    @property\n    def {name}(self) -> {result}:\n" + quoted(text, "        ")


def class_of(kind: type) -> str:
    return f"\nclass {kind.__name__}:\n{docstring(kind, '    ')}\n"


def kinds() -> list[type[enum.Enum]]:
    return [
        kind
        for name, kind in vars(constants).items()
        if not name.startswith("_") and isinstance(kind, type) and issubclass(kind, enum.Enum)
    ]


def value_of(member: enum.Enum) -> str:
    value = int(member.value)
    return f"0x{value:X}" if isinstance(member, constants.Event) else str(value)


def docstrings_below() -> dict[str, str]:
    """The docstrings below plain numbers, by their names."""
    found = {}
    for source in SOURCES:
        body = ast.parse(source.read_text()).body
        for statement, after in itertools.pairwise(body):
            if isinstance(statement, ast.Assign) and isinstance(after, ast.Expr):
                (target,) = statement.targets
                assert isinstance(target, ast.Name)
                found[target.id] = str(ast.literal_eval(after.value))
    return found


def docstring(item: type | enum.Enum, indent: str, name: str = "") -> str:
    """The docstring of an enum, or that of a member under one of its names."""
    text = inspect.getdoc(item)
    if text is None:
        raise ValueError(f"{item!r} has no docstring")
    # The two names of the number 3 are explained in one text.
    if (
        isinstance(item, enum.Enum)
        and not isinstance(item, constants.ContextOption)
        and name != item.name
        and name in type(item).__members__
    ):
        text = f"Another name of `{item.name}`. {text}"
    return quoted(text, indent)


def quoted(text: str, indent: str) -> str:
    if "\n" not in text and len(f'{indent}"""{text}"""') <= WIDTH:
        return f'{indent}"""{text}"""\n'
    lines = []
    for line in text.split("\n"):
        # Sections are laid out already.
        fits = len(line) <= WIDTH - len(indent) - 3 or line.startswith(" ")
        lines += [line] if fits else textwrap.wrap(line, WIDTH - len(indent) - 3)
    body = "\n".join(indent + line if line else "" for line in lines)
    return f'{indent}"""{body.strip()}\n{indent}"""\n'


if __name__ == "__main__":
    main()
