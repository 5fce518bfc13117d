"""A hook for mkdocs: fills in tables from the sources, so that they are not written twice.

`<!-- socket options -->` and similar marks become the rows of the core's tables (`rust/core/src/options`), and
`<!-- differences -->` the reasons of the tests that pass here and must fail on pyzmq (`tests/python/same`).
"""

import re
import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = ROOT / "rust" / "core" / "src" / "options"
MECHANISMS = ROOT / "rust" / "proto" / "src" / "mechanisms"
# The site does not need a built package: the module with the defaults imports nothing from it when it is loaded.
TEXTS = runpy.run_path(str(ROOT / "python" / "zeroxide" / "_constant_texts.py"))

TEXT = r'"((?:[^"\\]|\\.)*)"'
SOCKET_ROW = re.compile(
    rf"^ {{12}}(\d+) ([A-Z0-9_]+) \[[^\]]*\]: (\w+),\s*{TEXT}(.*?)(?=^ {{12}}\d+ [A-Z]|^ {{8}}}})",
    re.DOTALL | re.MULTILINE,
)
MECHANISM_ROW = re.compile(rf"^    (\d+) ([A-Z0-9_]+): (\w+)[^\"]*?{TEXT};", re.MULTILINE)
CONTEXT_ROW = re.compile(rf"^ {{12}}\d+ ([A-Z0-9_]+) \[[^\]]*\] (r|w|rw): {TEXT}", re.MULTILINE)

# The kinds of a mechanism's options, in the names of the other table.
MECHANISM_TYPES = {"Server": "Bool", "Text": "Str", "Key": "Bytes"}
TYPES = {
    "Bool": "0 or 1",
    "Int": "number",
    "Int64": "number",
    "Uint64": "number",
    "Str": "text",
    "Bytes": "bytes",
    "Fd": "descriptor",
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    if "<!-- socket options -->" in markdown:
        there, absent = socket_options()
        markdown = markdown.replace("<!-- socket options -->", there)
        markdown = markdown.replace("<!-- absent options -->", absent)
        markdown = markdown.replace("<!-- context options -->", context_options())
    return re.sub("<!-- differences -->", lambda _: differences(), markdown)


def socket_options() -> tuple[str, str]:
    """Returns the table of the options that exist, and the names of those that are known but refused."""
    source = (OPTIONS / "table.rs").read_text()
    found = SOCKET_ROW.findall(source[source.index("macro_rules! socket_options") :])
    for path in sorted(MECHANISMS.glob("**/*.rs")):
        for row in MECHANISM_ROW.findall(path.read_text()):
            number, name, kind, text = row
            found.append((number, name, MECHANISM_TYPES[kind], text, ""))
    if len(found) < 80:
        raise ValueError(f"{OPTIONS}/table.rs has another form now: {len(found)} rows understood")
    rows = ["| option | takes | default | for | meaning |", "| --- | --- | --- | --- | --- |"]
    absent = []
    for _, name, kind, text, settings in sorted(found, key=lambda row: row[1]):
        if ".refused(" in settings:
            absent.append(f"`{name}`")
            continue
        limited = re.search(r"\.of\(&\[(.*?)\]\)", settings)
        sockets = limited[1].upper() if limited else "all"
        aliases = re.search(r"\.aliases\(&\[(.*?)\]\)", settings)
        also = " Also " + aliases[1].replace('"', "`") + "." if aliases else ""
        rows.append(
            f"| `{name}` | {TYPES[kind]} | {TEXTS['default'](name)} | {sockets} | {text}{also} |"
        )
    return "\n".join(rows), ", ".join(absent)


def context_options() -> str:
    found = CONTEXT_ROW.findall((OPTIONS / "context.rs").read_text())
    if len(found) < 10:
        raise ValueError(f"{OPTIONS}/context.rs has another form now: {len(found)} rows understood")
    rows = ["| option | access | default | meaning |", "| --- | --- | --- | --- |"]
    ways = {"r": "read", "w": "set", "rw": "read, set"}
    rows += [
        f"| `{name}` | {ways[way]} | {TEXTS['context_default'](name)} | {text} |"
        for name, way, text in found
    ]
    return "\n".join(rows)


def differences() -> str:
    """The improvements over pyzmq that the tests name, once each."""
    reasons: dict[str, None] = {}
    for path in sorted((ROOT / "tests" / "python" / "same").glob("test_*.py")):
        reasons |= dict.fromkeys(re.findall(rf"\bdiffers\(\s*{TEXT}", path.read_text()))
    return "\n".join(f"* {reason}" for reason in reasons)
