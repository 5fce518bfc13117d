"""The Python on the pages of the documentation runs, and prints the output shown there.

All ```python blocks of a page run from top to bottom in one process, and share their names. A ```text block with
`title="prints"` directly after a block is its output. A block that cannot run on its own has a line above it with the
reason: `<!-- not run: needs a second machine -->`; it must still be valid Python. Programs that a page includes from a
file (`--8<-- "examples/..."`) have their own tests.
"""

import errno
import importlib
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.zeroxide_only

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PATIENCE = 60

BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^\n]+ -->\n+)?"
    r"^(?P<indent> *)```python[^\n]*\n(?P<code>.*?)^(?P=indent)```\n"
    r'(?:\n*(?P=indent)```text title="prints"\n(?P<prints>.*?)^(?P=indent)```\n)?',
    re.DOTALL | re.MULTILINE,
)

RUNNER = """
import contextlib, io, json, sys, traceback
names = {"__name__": "__main__"}
for number, (line, code, expected) in enumerate(json.load(sys.stdin)):
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile("\\n" * line + code, sys.argv[1], "exec"), names)
    except BaseException:
        traceback.print_exc()
        sys.exit(f"the block in line {line} of {sys.argv[1]} fails")
    if expected is not None and printed.getvalue() != expected:
        sys.exit(f"the block in line {line} of {sys.argv[1]} prints\\n{printed.getvalue()}and not\\n{expected}")
"""


def blocks(page: Path) -> list[tuple[bool, int, str, str | None]]:
    """For each block: whether to run it, the number of its first line, its code and its output."""
    found = []
    text = page.read_text()
    for block in BLOCK.finditer(text):
        indent = re.compile(f"^{block['indent']}", re.MULTILINE)
        code = indent.sub("", block["code"])
        if "--8<--" in code:
            continue
        prints = None if block["prints"] is None else indent.sub("", block["prints"])
        line = text.count("\n", 0, block.start("code"))
        found.append((block["skip"] is None, line, code, prints))
    return found


PAGES = [page for page in sorted(DOCS.rglob("*.md")) if blocks(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_page(page: Path) -> None:
    for _, line, code, _ in blocks(page):
        compile("\n" * line + code, str(page), "exec")
        if re.search(r"^import gevent$", code, re.MULTILINE):
            pytest.importorskip("gevent")  # free-threaded Python cannot have it
    run(page, [block[1:] for block in blocks(page) if block[0]])


def test_each_tab_of_the_landing_page_runs_alone() -> None:
    """A reader copies one of them."""
    page = DOCS / "index.md"
    tabs = [block[1:] for block in blocks(page) if block[0]]
    assert len(tabs) > 3
    for tab in tabs:
        run(page, [tab])


def run(page: Path, to_run: list[tuple[int, str, str | None]]) -> None:
    process = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", "-c", RUNNER, str(page)],
        input=json.dumps(to_run),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert process.returncode == 0, process.stdout + process.stderr


def test_every_python_block_is_looked_at() -> None:
    """A fence that the pattern above misses would be a snippet that never runs."""
    for page in DOCS.rglob("*.md"):
        fences = re.findall(r"^ *```(?:python|py\b|\{)", page.read_text(), re.MULTILINE)
        assert len(fences) == len(BLOCK.findall(page.read_text())), page


def test_every_reason_has_a_fix(zmq, context) -> None:
    """The page on messages that go missing has every counter, and no others."""
    with context.socket(zmq.PUB) as socket:
        stats = socket.stats()
    page = (DOCS / "missing.md").read_text()
    told = set(re.findall(r"^### `(\w+)`", page, re.MULTILINE))
    assert told == {*stats["dropped"], "no_subscriber"}


def test_every_socket_type_has_a_page(zmq) -> None:
    titles = [
        re.findall(r"[A-Z]{3,}", page.read_text().partition("\n")[0])
        for page in (DOCS / "sockets").glob("*.md")
        if page.stem != "index"
    ]
    named = [name for title in titles for name in title]
    assert sorted(named) == sorted(kind.name for kind in zmq.SocketType)


def test_errors_are_under_their_texts(zmq) -> None:
    page = (DOCS / "faq.md").read_text()
    for text, code in re.findall(r"^### (.+)\n\n(?:`[\w.]+`, )?`(E[A-Z]+)`", page, re.MULTILINE):
        assert zmq.strerror(getattr(zmq, code, None) or getattr(errno, code)).startswith(text), code


def test_commands_have_the_options_shown() -> None:
    """Each tool of this package has all the options that ```sh blocks show."""
    seen = set()
    for page in sorted(DOCS.rglob("*.md")):
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            for words in map(str.split, block.splitlines()):
                if words[:1] == ["zeroxide"]:
                    tool = ("-m", "zeroxide", words[1])
                elif words[:2] == ["python", "-m"] and words[2].startswith("zeroxide"):
                    tool = ("-m", words[2])
                else:
                    continue
                seen.add((tool, *[word for word in words if re.fullmatch(r"--[a-z-]+", word)]))
    assert seen
    for tool in {tool for tool, *_ in seen}:
        command = [sys.executable, *tool, "--help"]
        help = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert help.returncode == 0, help.stderr
        for _, *options in filter(lambda entry: entry[0] == tool, seen):
            assert all(option in help.stdout for option in options), (tool, options)


def test_defaults_of_options_are_those_of_new_sockets(zmq) -> None:
    """The column of docs/options.md: every option that can be read has its default there."""
    from zeroxide import _constant_texts as tables
    from zeroxide import _native

    state = {"EVENTS", "FD", "RCVMORE", "TYPE"}
    with zmq.Context() as context, context.socket(zmq.PUB) as socket:
        for name, number, _, readable, _ in _native.socket_options():
            if not readable or name in state:
                continue
            if name == "TOPICS_COUNT" or isinstance(socket.get(number), int):
                assert (name, socket.get(number)) == (name, tables.DEFAULTS[name][0])
            else:
                assert (name, socket.get(number)) == (name, b"") and name in tables.EMPTY
        known = {name for name, *_ in _native.socket_options()}
        assert {*tables.DEFAULTS, *tables.EMPTY} <= known
        for name, number, _, readable, _ in _native.context_options():
            if readable and name not in ("MEMORY_BUDGET", "THREAD_NAME_PREFIX"):
                assert (name, context.get(number)) == (name, tables.CONTEXT_DEFAULTS[name][0])


# Old names, and names that stand for others or are explained where they are used.
NOT_IN_REFERENCE = {
    "zeroxide": {
        *("COPY_THRESHOLD", "DRAFT_API", "IPC_PATH_MAX_LEN", "PYZMQ_DRAFT_API", "__revision__"),
        *("VERSION_EXTRA", "VERSION_MAJOR", "VERSION_MINOR", "VERSION_PATCH", "__version__"),
        *("get_includes", "get_library_dirs", "device", "Message", "Stopwatch"),
        *("SyncContext", "SyncSocket", "DraftFDWarning", "ProactorSelectorThreadWarning"),
        *("GssapiNameType", "NormMode", "RouterNotify"),  # of options that are not built in
    },
    "zeroxide.asyncio": {"ZMQEventLoop", "install"},
    "zeroxide.auth": {"CURVE_ALLOW_ANY"},
    "zeroxide.devices": {"DeviceType"},
    "zeroxide.log.handlers": {"TOPIC_DELIM"},
    "zeroxide.spark.pack": {"main"},
}
NOT_IN_REFERENCE["zeroxide.green"] = NOT_IN_REFERENCE["zeroxide"] - {"device"}
# The packages that these modules need.
OPTIONAL = {"zeroxide.green": "gevent", "zeroxide.spark.metrics": "pyspark"}
REFERENCED = [
    *("zeroxide", "zeroxide.asyncio", "zeroxide.auth", "zeroxide.decorators", "zeroxide.devices"),
    *("zeroxide.log.handlers", "zeroxide.pipeline", "zeroxide.spark", "zeroxide.ssh"),
    *("zeroxide.eventloop.zmqstream", "zeroxide.utils.z85", "zeroxide.green"),
    *("zeroxide.spark.metrics", "zeroxide.spark.pack"),
]


def references() -> set[str]:
    """The paths that the API reference shows."""
    found = set()
    for page in (DOCS / "api").glob("*.md"):
        for path, options in re.findall(
            r"^::: ([\w.]+)\n((?:    .*\n|\n(?=    ))*)", page.read_text(), re.MULTILINE
        ):
            members = re.search(r"members: \[(.*?)\]", options)
            # Without a list, the page shows the whole module or class.
            found |= (
                {f"{path}.{name.strip()}" for name in members[1].split(",")} if members else {path}
            )
    return found


@pytest.mark.parametrize("module", REFERENCED)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    shown = references()
    objects = {id(value) for path in shown if (value := looked_up(path)) is not None}
    if module in OPTIONAL:
        pytest.importorskip(OPTIONAL[module])
    home = importlib.import_module(module)
    missing = []
    for name in home.__all__:
        value = getattr(home, name)
        if name in NOT_IN_REFERENCE.get(module, ()) or module in shown:
            continue
        if (inspect.isclass(value) or inspect.isroutine(value)) and id(value) not in objects:
            missing.append(name)
    assert missing == []


def looked_up(path: str) -> object:
    """The object that a path of the reference names at run time."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            value = getattr(value, name, None)
        return value
    return None


@pytest.mark.parametrize("path", sorted(references()))
def test_what_the_reference_shows_is_there(path: str) -> None:
    """A misspelled path would end the build of the site; a name that is not a member is left out silently."""
    for module, needed in OPTIONAL.items():
        if path.startswith(f"{module}."):
            pytest.importorskip(needed)
    assert looked_up(path) is not None or path.startswith("zeroxide._native.")
