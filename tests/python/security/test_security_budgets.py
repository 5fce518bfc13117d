"""The table of SECURITY.md says what strangers can cost: its numbers are those of the code, and its tests exist."""

import ast
import json
import re
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

import zeroxide as zmq

pytestmark = pytest.mark.zeroxide_only

ROOT = Path(__file__).resolve().parents[3]
NUMBER = r"([\d,]+)(?: (KiB|MiB|ms|s))? "
CONSTANT = re.compile(NUMBER + r"`([\w/]+\.(?:rs|py)):([A-Z_]+)`")
OPTION = re.compile(NUMBER + r"`([A-Z_]+)`")
TEST = re.compile(r"`([\w/.]+\.(?:rs|py)):([a-z_]\w+)`")
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "ms": 1, "s": 1000}


def rows():
    text = (ROOT / "SECURITY.md").read_text()
    table = text.split("## What a stranger can cost")[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[2:]]


def source(path):
    crate, _, rest = path.partition("/")
    if crate in ("core", "proto", "pipeline"):
        path = f"rust/{crate}/src/{rest}"
    elif crate not in ("rust", "tests"):
        path = f"python/zeroxide/{path}"
    return (ROOT / path).read_text()


@cache
def constant(path, name):
    """The value of a constant: bytes, or ms of times in Rust. Constants of the same file may be part of it."""
    pattern = (
        rf"\bconst {name}: [^=]+= ([^;]+);" if path.endswith(".rs") else rf"^{name} = ([^#\n]+)"
    )
    found = re.search(pattern, source(path), re.MULTILINE)
    assert found is not None, f"{path} has no {name}"
    text = re.sub(r"Duration::from_(milli)?s\w*\((\d+)\)", _milliseconds, found[1])
    text = text.replace("u8::MAX", "255").replace(" as usize", "")
    text = re.sub(r"\b[A-Z][A-Z_]+\b", lambda name: str(constant(path, name[0])), text)
    return _value(ast.parse(text.strip(), mode="eval").body)


def _milliseconds(found):
    return found[2] if found[1] else str(int(found[2]) * 1000)


def _value(node):
    if isinstance(node, ast.Constant):
        return node.value
    assert isinstance(node, ast.BinOp), ast.dump(node)
    left, right = _value(node.left), _value(node.right)
    calculate = {ast.Add: int.__add__, ast.Mult: int.__mul__, ast.LShift: int.__lshift__}
    return calculate[type(node.op)](left, right)


def stated(number, unit):
    return int(number.replace(",", "")) * UNITS[unit or ""]


def test_numbers_are_those_of_the_code():
    count = 0
    for row in rows():
        for number, unit, path, name in CONSTANT.findall(" ".join(row)):
            value = constant(path, name)
            if unit == "s" and path.endswith(".py"):
                value *= 1000
            assert stated(number, unit) == value, f"{path}: {name}"
            count += 1
    assert count > 40


def test_numbers_are_the_defaults_of_options():
    found = {
        name: stated(number, unit)
        for row in rows()
        for number, unit, name in OPTION.findall(row[1])
    }
    with zmq.Context() as context, context.socket(zmq.XPUB) as xpub, context.socket(zmq.REP) as rep:
        for name, value in found.items():
            socket = xpub if "SUBSCRIPTION" in name else rep
            assert socket.get(getattr(zmq, name)) == value, name
    assert len(found) == 8


def test_every_row_has_a_test_that_exists():
    for row in rows():
        assert len(row) == 4, row
        tests = TEST.findall(row[3])
        assert tests, row[0]
        for path, name in tests:
            keyword = "fn" if path.endswith(".rs") else "def"
            assert re.search(rf"\b{keyword} {name}\(", source(path)), f"{path}: {name}"


def test_the_wheel_lists_what_it_is_made_of():
    """The list in the repository has the crates of the module. maturin's has those of builds and tests, too."""
    files = metadata.files("zeroxide") or []
    lists = [file for file in files if "sboms" in file.parts]
    if not lists:
        pytest.skip("not installed from a wheel")
    ours, theirs = (
        {(each["name"], each["version"]) for each in json.loads(text)["components"]}
        for text in ((ROOT / "sbom.cdx.json").read_text(), lists[0].read_text())
    )
    assert ours and ours <= theirs
