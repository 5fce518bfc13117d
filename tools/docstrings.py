"""Checks the docstrings of everything public: the text that a user reads in `help()`, an editor, or
the API reference.

Ruff checks that there are docstrings and how they look. This checks what is in them, the stub's included: every parameter
of a public function is under `Args:`, a result under `Returns:` (or `Yields:`), and every exception that it raises itself
under `Raises:`. What ZeroMQ, libzmq or pyzmq specifies has a `Source:`. Griffe reads the package, without importing it, as it
does for the API reference.
"""

import ast
import inspect
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "zeroxide"

# Modules outside the API: programs, and parts of the package that only the package imports.
INTERNAL = (
    "zeroxide.as_zmq.distribution",
    "zeroxide.as_zmq.environment",
    "zeroxide.as_zmq.finder",
    "zeroxide.cli",
    "zeroxide.collector",  # old names of `zeroxide.pipeline`
    "zeroxide.curve_keygen",
    "zeroxide.devices.side",
    "zeroxide.green.core.patiently",
    "zeroxide.green.poll.patiently",
    "zeroxide.green.waiting",
    "zeroxide.port",
    "zeroxide.ssh.openssh",
    "zeroxide.ssh.server",
)

# The parts of the package that are not ZeroMQ's API: no other text specifies them.
WITHOUT_SOURCE = (
    "zeroxide.pipeline",
    "zeroxide.spark",
    "zeroxide.green._pipeline",
    "zeroxide.as_zmq",
)
NATIVE_WITHOUT_SOURCE = {
    f"zeroxide._native.{name}" for name in ("Client", "Collector", "Follow", "Producer")
}

# Enums each of whose members has a source: socket types, options, mechanisms, events of a monitor.
SPECIFIED = ("ContextOption", "Event", "SecurityMechanism", "SocketOption", "SocketType")

RESULT_SECTIONS = {griffe.DocstringSectionKind.returns, griffe.DocstringSectionKind.yields}
NO_RESULT = {"None", "NoReturn", "Self", ""}


def main() -> int:
    """Prints what is missing; the exit code is 1 if anything is."""
    package = load()
    missing = sorted(
        {line for item in public(package) for line in [*check(item), *check_source(item)]}
        | set(check_constants())
    )
    for line in missing:
        print(line)
    print(f"{len(missing)} sections missing" if missing else "every section is there")
    return 1 if missing else 0


def load() -> griffe.Module:
    """The package as griffe sees it, names resolved."""
    package = griffe.load(
        PACKAGE,
        search_paths=[ROOT / "python"],
        allow_inspection=False,
        docstring_parser=griffe.Parser.google,
        docstring_options={"warnings": False},
        resolve_aliases=True,
    )
    assert isinstance(package, griffe.Module)
    return package


def public(module: griffe.Module) -> Iterator[griffe.Object]:
    """Public modules, classes, functions and methods, wherever they are defined: internal modules, too."""
    if module.path.startswith(INTERNAL):
        return
    yield module
    names = module.exports
    for name in [name for name in module.members if is_public(name)] if names is None else names:
        member = module.members.get(str(name))
        if member is None:
            continue
        target = resolved(member)
        if target is None or isinstance(target, griffe.Module) or target.path in INTERNAL:
            continue
        yield target
        if isinstance(target, griffe.Class):
            for inner_name, inner in target.all_members.items():
                definition = resolved(inner) if is_public(inner_name) else None
                if definition is not None:
                    yield definition
    for name, member in module.members.items():
        if isinstance(member, griffe.Module) and is_public(name):
            yield from public(member)


def is_public(name: str) -> bool:
    return not name.startswith("_")


def resolved(member: griffe.Object | griffe.Alias) -> griffe.Object | None:
    """The object that a name stands for, if it belongs to this package."""
    try:
        target = member.final_target if isinstance(member, griffe.Alias) else member
    except griffe.AliasResolutionError:
        return None
    return target if target.path.split(".")[0] == PACKAGE else None


def check(item: griffe.Object) -> Iterator[str]:
    """The missing parts of an item's docstring, one line each."""
    where = f"{file_of(item).relative_to(ROOT)}:{item.lineno or 1}: {item.path}"
    if isinstance(item, griffe.Attribute) and not is_property(item):
        return
    docstring = inherited_docstring(item)
    if docstring is None:
        yield f"{where}: no docstring"
        return
    if docstring.parent is not item:
        return
    sections = docstring.parsed
    described = {
        parameter.name
        for section in sections
        if section.kind is griffe.DocstringSectionKind.parameters
        for parameter in section.value
    }
    if isinstance(item, griffe.Class):
        parameters = own_parameters(item)
    elif isinstance(item, griffe.Function):
        parameters = list(item.parameters)
    else:
        return
    for parameter in parameters:
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(
            parameter.kind.value if parameter.kind else "", ""
        )
        if parameter.name in ("self", "cls") or parameter.name.startswith("_"):
            continue
        if not described & {parameter.name, stars + parameter.name}:
            yield f"{where}: `{parameter.name}` is not under Args:"
    if isinstance(item, griffe.Function):
        kinds = {section.kind for section in sections}
        if str(item.returns or "") not in NO_RESULT and not kinds & RESULT_SECTIONS:
            yield f"{where}: no Returns:"
        told = {
            str(exception.annotation).strip("`").rpartition(".")[2]
            for section in sections
            if section.kind is griffe.DocstringSectionKind.raises
            for exception in section.value
        }
        for name in sorted(raised(item) - told):
            yield f"{where}: {name} is not under Raises:"


def check_source(item: griffe.Object) -> Iterator[str]:
    """Whether a class or a function outside of classes names its source; methods share that of their class."""
    is_method = isinstance(item.parent, griffe.Class)
    if not isinstance(item, (griffe.Class, griffe.Function)) or is_method:
        return
    if item.path.startswith(WITHOUT_SOURCE) or item.path in NATIVE_WITHOUT_SOURCE:
        return
    text = item.docstring.value if item.docstring else ""
    if not has_source(text):
        yield f"{file_of(item).relative_to(ROOT)}:{item.lineno or 1}: {item.path}: no Source:"


def check_constants() -> Iterator[str]:
    """The members of enums that do not name their source, in the stub that editors and the reference read."""
    stub = ROOT / "python" / PACKAGE / "constants.pyi"
    for node in ast.parse(stub.read_text()).body:
        if not isinstance(node, ast.ClassDef) or node.name not in SPECIFIED:
            continue
        for member, text in itertools.pairwise(node.body):
            if isinstance(member, ast.Assign) and isinstance(text, ast.Expr):
                name = f"{node.name}.{ast.unparse(member.targets[0])}"
                if not has_source(str(ast.literal_eval(text.value))):
                    yield f"{stub.relative_to(ROOT)}:{member.lineno}: {name}: no Source:"


def has_source(text: str) -> bool:
    return re.search(r"^Source:\s+\S", inspect.cleandoc(text), re.MULTILINE) is not None


def is_property(attribute: griffe.Attribute) -> bool:
    return "property" in attribute.labels


def inherited_docstring(item: griffe.Object) -> griffe.Docstring | None:
    """The docstring of an item or, as `help()` does, that of the method it overrides."""
    if item.docstring is not None or not isinstance(item.parent, griffe.Class):
        return item.docstring
    for base in item.parent.mro():
        # A stub's overloads are no members; the last one has the docstring.
        overridden = base.members.get(item.name) or next(
            reversed(base.overloads.get(item.name, [])), None
        )
        if overridden is not None and overridden.docstring is not None:
            return overridden.docstring
    return None


def own_parameters(cls: griffe.Class) -> list[griffe.Parameter]:
    """The constructor of the class; the fields of a dataclass have docstrings of their own."""
    init = cls.members.get("__init__") or cls.members.get("__new__")
    bases = " ".join(str(base) for base in cls.bases)
    if not isinstance(init, griffe.Function) or "dataclass" in cls.labels or "Enum" in bases:
        return []
    if {parameter.name for parameter in init.parameters} <= {"cls", "args", "kwargs"}:
        return []  # the native half of a class, which takes the arguments of the Python half
    return list(init.parameters)


def file_of(item: griffe.Object) -> Path:
    return item.filepath if isinstance(item.filepath, Path) else item.filepath[0]


def raised(function: griffe.Function) -> set[str]:
    """The names of the exceptions in the `raise` statements of a function."""
    tree = ast.parse(
        (
            function.filepath if isinstance(function.filepath, Path) else function.filepath[0]
        ).read_text()
    )
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and function.lineno is not None
        ):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if node.name == function.name and first <= function.lineno <= (node.end_lineno or 0):
                return {
                    name for statement in own_statements(node) if (name := exception_of(statement))
                }
    return set()


def own_statements(function: ast.AST) -> Iterator[ast.Raise]:
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.Raise):
            yield node
        elif not isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
        ):
            yield from own_statements(node)


def exception_of(statement: ast.Raise) -> str | None:
    value = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
    name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    return name if name[:1].isupper() else None


if __name__ == "__main__":
    sys.exit(main())
