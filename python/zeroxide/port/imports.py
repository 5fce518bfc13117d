"""Finds the lines of a program that import pyzmq, and their replacements."""

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Finding", "port"]

OLD, NEW = "zmq", "zeroxide"

# Calls whose first argument names a module, and calls whose dotted names mean other things.
_IMPORTING = {"import_module", "__import__", "importorskip", "find_spec", "run_module"}
_OTHER_NAMES = {"getLogger", "get_logger"}
_DOTTED = re.compile(r"zmq(\.[A-Za-z_]\w*)+")


@dataclass(frozen=True)
class Finding:
    """A line that must change.

    ``line`` counts from 1. ``before`` is the current text, and ``after`` its replacement.
    ``after`` is ``None`` if it must be changed by hand, for the reason in ``note``.
    """

    line: int
    before: str
    after: str | None
    note: str = ""


@dataclass(frozen=True)
class _Edit:
    """A range of bytes of the source, and its replacement."""

    start: int
    end: int
    text: bytes


def port(source: str) -> tuple[str, list[Finding]]:
    """Returns the source with its imports of pyzmq changed, and all findings in order.

    Only import statements are changed. A string that names pyzmq, or a name that
    zeroxide does not have, is reported but not changed.

    Raises `SyntaxError` if it is not Python.
    """
    tree = ast.parse(source)
    text = source.encode()
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    walk = _Walk(text, starts)
    walk.block(tree.body, bound=False)
    walk.strings(tree)
    walk.attributes(tree)
    for edit in sorted(walk.edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text.decode(), sorted(walk.findings, key=lambda finding: finding.line)


class _Walk:
    """A pass over the statements of a program."""

    def __init__(self, text: bytes, starts: list[int]) -> None:
        self.text = text
        self.starts = starts
        self.edits: list[_Edit] = []
        self.findings: list[Finding] = []
        # Names that mean the package, wherever they are bound.
        self.names: set[str] = set()

    def block(self, body: list[ast.stmt], bound: bool) -> None:
        """Visits the statements of one block; `bound`: whether ``zmq`` means zeroxide before them."""
        for statement in body:
            match statement:
                case ast.Import(names=names):
                    bound = self.imports(statement, names, bound)
                case ast.ImportFrom(level=0, module=str(module)) if _is_ours(module):
                    self.imports_from(statement, module)
                case _:
                    for inner in _blocks(statement):
                        self.block(inner, bound)

    def imports(self, statement: ast.Import, names: list[ast.alias], bound: bool) -> bool:
        """Changes ``import ...``; returns whether ``zmq`` means zeroxide from then on."""
        edits = []
        for alias in names:
            if alias.name == NEW and alias.asname == OLD:
                bound = True
            if not _is_ours(alias.name):
                continue
            new = _renamed(alias.name)
            if not self.exists(statement, new):
                continue
            if alias.asname is not None:
                after = f"{new} as {alias.asname}"
                if new == NEW:
                    self.names.add(alias.asname)
            elif new == NEW:
                after, bound = f"{NEW} as {OLD}", True
                self.names.add(OLD)
            elif bound:
                after = new
            else:
                # It binds the package's name, and loads the submodule.
                after, bound = f"{NEW} as {OLD}, {new}", True
                self.names.add(OLD)
            edits.append(_Edit(*self.span(alias), after.encode()))
        self.change(statement, edits)
        return bound

    def imports_from(self, statement: ast.ImportFrom, module: str) -> None:
        """Changes ``from zmq... import ...``."""
        new = _renamed(module)
        if not self.exists(statement, new):
            return
        start, end = self.span(statement)
        found = re.compile(rb"from[\s\\]+(zmq)").match(self.text, start, end)
        assert found is not None, "a statement that begins with from"
        self.change(statement, [_Edit(*found.span(1), NEW.encode())])
        package = importlib.import_module(new)
        for alias in statement.names:
            if alias.name != "*" and not _has(package, alias.name):
                self.tell(statement, f"{new} has no {alias.name}")

    def strings(self, tree: ast.Module) -> None:
        """Finds modules that are named in strings."""
        named: set[int] = set()
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=function, args=arguments):
                    name = getattr(function, "attr", getattr(function, "id", ""))
                    if name in _OTHER_NAMES:
                        named.update(map(id, arguments))
                    elif name in _IMPORTING:
                        for argument in arguments[:1]:
                            if isinstance(argument, ast.Constant) and argument.value == OLD:
                                self.tell(argument, "names the module in a string")
                case ast.Constant(value=str(value)) if _DOTTED.fullmatch(value):
                    if id(node) not in named and _is_module(value):
                        self.tell(node, "names the module in a string")

    def attributes(self, tree: ast.Module) -> None:
        """Finds names that zeroxide does not have."""
        package = importlib.import_module(NEW)
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in self.names:
                    if not _has(package, attribute):
                        self.tell(node, f"{NEW} has no {attribute}")

    def exists(self, statement: ast.stmt, module: str) -> bool:
        """Returns whether zeroxide has the module; reports it if not."""
        try:
            found = importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            self.tell(statement, f"there is no module {module}")
        return found

    def change(self, statement: ast.stmt, edits: list[_Edit]) -> None:
        """Records the edits of one statement."""
        if not edits:
            return
        start, end = self.span(statement)
        after = self.text[start:end]
        for edit in reversed(edits):
            after = after[: edit.start - start] + edit.text + after[edit.end - start :]
        self.edits += edits
        before = self.text[start:end].decode()
        self.findings.append(Finding(statement.lineno, before, after.decode()))

    def tell(self, node: ast.stmt | ast.expr, note: str) -> None:
        """Records a finding that is not changed."""
        start, end = self.span(node)
        self.findings.append(Finding(node.lineno, self.text[start:end].decode(), None, note))

    def span(self, node: ast.stmt | ast.expr | ast.alias) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks inside a statement."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
        yield part.body


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == OLD


def _renamed(module: str) -> str:
    return NEW + module.removeprefix(OLD)


def _is_module(name: str) -> bool:
    """Whether this may be the name of a module of pyzmq, or of a member of one."""
    first = name.split(".")[1]
    return _has(importlib.import_module(NEW), first)


def _has(package: object, name: str) -> bool:
    if hasattr(package, name):
        return True
    module = f"{getattr(package, '__name__', '')}.{name}"
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):
        return False
