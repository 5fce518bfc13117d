"""Docstrings: one text for the module and its stub, and examples that run."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.zeroxide_only

STUB = Path(__file__).parents[2] / "python" / "zeroxide" / "_native.pyi"

# Pairs of sockets that examples use by these names.
PAIRS = [("push", "pull"), ("req", "rep"), ("dealer", "router"), ("pub", "sub")]


def stub_docstrings() -> dict[str, str]:
    """The docstrings of the stub, by name: `Socket`, `Socket.send`, `proxy`."""
    found = {}
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found |= own_docstring(node, node.name)
        if isinstance(node, ast.ClassDef):
            for member, after in zip(node.body, [*node.body[1:], None], strict=True):
                if isinstance(member, ast.FunctionDef):
                    found |= own_docstring(member, f"{node.name}.{member.name}")
                elif isinstance(member, ast.AnnAssign) and isinstance(after, ast.Expr):
                    assert isinstance(member.target, ast.Name)
                    text = ast.literal_eval(after.value)
                    found[f"{node.name}.{member.target.id}"] = inspect.cleandoc(text)
    return found


def own_docstring(node: ast.FunctionDef | ast.ClassDef, name: str) -> dict[str, str]:
    text = ast.get_docstring(node)
    return {} if text is None else {name: text}


def test_the_stub_has_the_text_of_the_module() -> None:
    native = importlib.import_module("zeroxide._native")
    stub = stub_docstrings()
    assert len(stub) > 100
    for name, text in stub.items():
        owner, _, member = name.rpartition(".")
        if not hasattr(native, owner or member):
            continue  # the shape of a dictionary, which only type checkers see
        if member.startswith("__"):
            continue  # Python has a text of its own for these
        where = getattr(native, owner) if owner else native
        found = inspect.getattr_static(where, member)
        assert found.__doc__ is not None, f"{name} has no docstring at run time"
        assert inspect.cleandoc(found.__doc__) == text, name


def test_functions_name_a_public_module_as_their_home():
    """`help()` shows the home, and pickle imports from there."""
    for module in public_modules():
        for name in getattr(module, "__all__", ()):
            function = getattr(module, name)
            if inspect.isroutine(function) and function.__module__.startswith("zeroxide"):
                assert "._" not in function.__module__, f"{module.__name__}.{name}"
                home = importlib.import_module(function.__module__)
                assert getattr(home, function.__name__) is function, f"{module.__name__}.{name}"


# The sections of the specifications that docstrings name, as in the repository zeromq/rfc.
SECTIONS = {
    "24/ZMTP-PLAIN": {"Implementation"},
    "25/ZMTP-CURVE": {"Implementation"},
    "26/CURVEZMQ": {"CurveZMQ Commands", "The INITIATE Command"},
    "27/ZAP": {"Message Format", "The PLAIN Mechanism", "The CURVE Mechanism"},
    "28/REQREP": {f"The {kind} Socket Type" for kind in ("REQ", "REP", "DEALER", "ROUTER")},
    "29/PUBSUB": {f"The {kind} Socket Type" for kind in ("PUB", "XPUB", "SUB", "XSUB")},
    "30/PIPELINE": {"The PUSH Socket Type", "The PULL Socket Type"},
    "31/EXPAIR": {"The PAIR Socket Type"},
    "32/Z85": {"Formal Specification"},
    "37/ZMTP": {
        *("Authentication and Confidentiality", "Commands", "Connection Heartbeating"),
        *("Connection Metadata", "Error Handling", "Messages", "The Identity Property"),
        "The NULL Security Mechanism",
    },
    # Named as a whole.
    **dict.fromkeys(
        ("41/CLISRV", "48/RADIO-DISH", "49/SCATTER-GATHER", "51/P2P", "52/CHANNEL"),
        frozenset[str](),
    ),
}


def test_sources_name_sections_that_exist() -> None:
    package = STUB.parent
    named = 0
    for path in [*package.rglob("*.py"), *package.rglob("*.pyi")]:
        for number, sections in re.findall(
            r'\b(\d{2}/[A-Z][A-Z0-9-]+)((?:, sections? "[^"{]+"(?: and "[^"]+")*)?)',
            path.read_text(),
        ):
            found = set(re.findall(r'"([^"]+)"', sections))
            assert found <= SECTIONS[number], f"{path.name}: {number} has no section {found}"
            named += len(found)
    assert named > 50


def public_modules() -> list[types.ModuleType]:
    package = importlib.import_module("zeroxide")
    modules = [package]
    for found in pkgutil.walk_packages(package.__path__, "zeroxide."):
        if any(part.startswith("_") for part in found.name.split(".")):
            continue
        try:
            modules.append(importlib.import_module(found.name))
        except ModuleNotFoundError as error:
            assert not (error.name or "").startswith("zeroxide"), error  # an optional package
    return modules


def documented() -> Iterator[tuple[str, str]]:
    """Names and docstrings of modules, functions, classes and their members."""
    for module in public_modules():
        yield module.__name__, module.__doc__ or ""
        for name in getattr(module, "__all__", ()):
            value: Any = getattr(module, name)
            if inspect.isclass(value):
                yield from members(f"{value.__module__}.{name}", value)
            elif inspect.isroutine(value):
                yield f"{module.__name__}.{name}", value.__doc__ or ""


def members(name: str, cls: type) -> Iterator[tuple[str, str]]:
    yield name, cls.__doc__ or ""
    for attribute in dir(cls):
        if not attribute.startswith("_"):
            text = getattr(inspect.getattr_static(cls, attribute), "__doc__", None)
            yield f"{name}.{attribute}", text or ""


def examples() -> dict[str, doctest.DocTest]:
    parser = doctest.DocTestParser()
    found: dict[str, doctest.DocTest] = {}
    for name, text in documented():
        if ">>>" in text and text not in found:
            found[text] = parser.get_doctest(inspect.cleandoc(text), {}, name, None, None)
    return {test.name: test for test in found.values()}


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, zmq, context, capsys) -> None:
    from zeroxide.auth import AllowList, Passwords

    names = {"zmq": zmq, "context": context, "AllowList": AllowList, "Passwords": Passwords}
    for first, second in PAIRS:
        names[first] = context.socket(getattr(zmq, first.upper()))
        names[second] = context.socket(getattr(zmq, second.upper()))
        names[second].bind(f"inproc://{first}")
        names[first].connect(f"inproc://{first}")
    test = EXAMPLES[name]
    test.globs = names
    outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)
    assert outcome.failed == 0, capsys.readouterr().out
