"""Checks the prose of the repository against the phrases of tools/prose.toml: `python3 tools/prose.py [PATH ...]`.

Prose is the text of Markdown and HTML pages, and in programs the comments, docstrings, strings and names of tests.
Code blocks, inline code and bytes literals are left out. `<!-- prose off -->` and `<!-- prose on -->` enclose text that
quotes a bad phrase on purpose. Standard library only, like every stage of `make lint` that needs no environment.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "tools" / "prose.toml"

# A run of consecutive lines: phrases that are wrapped from one line to the next are found.
Line = tuple[int, str]


@dataclass(frozen=True)
class Rule:
    find: re.Pattern[str]
    style: int  # the number of the rule in CONTRIBUTING.md
    write: str
    before: str
    after: str


@dataclass(frozen=True)
class Found:
    line: int
    phrase: str
    rule: Rule


@dataclass(frozen=True)
class Rules:
    phrases: tuple[Rule, ...]
    exclude: tuple[str, ...]

    @classmethod
    def read(cls, path: Path = RULES) -> Rules:
        """Reads the rule file; a space in a pattern stands for any white space, line ends included."""
        table = tomllib.loads(path.read_text())
        phrases = tuple(
            Rule(
                re.compile(row["find"].replace(" ", r"\s+"), re.IGNORECASE),
                row["style"],
                row["write"],
                row["before"],
                row["after"],
            )
            for row in table["phrase"]
        )
        return cls(phrases, tuple(row["path"] for row in table.get("exclude", ())))

    def excludes(self, path: str) -> bool:
        return any(fnmatch(path, pattern) for pattern in self.exclude)

    def check(self, name: str, text: str) -> list[Found]:
        """Finds the phrases in one file; `name` decides how prose is separated from code."""
        found = []
        for block in blocks(name, text):
            joined = "\n".join(words.strip() for _, words in block)
            for rule in self.phrases:
                for match in rule.find.finditer(joined):
                    line = block[joined.count("\n", 0, match.start())][0]
                    found.append(Found(line, " ".join(match[0].split()), rule))
        return sorted(found, key=lambda one: one.line)


def blocks(name: str, text: str) -> Iterator[list[Line]]:
    """Yields the runs of prose in a file, line by line, without the marks of comments."""
    if name.endswith((".py", ".pyi")):
        lines = python_prose(text)
    elif name.endswith(".rs"):
        lines = rust_prose(text)
    elif name.endswith((".md", ".html")):
        lines = page_prose(text)
    else:
        lines = comment_prose(text)
    yield from runs(lines)


def runs(lines: Iterable[Line]) -> Iterator[list[Line]]:
    run: list[Line] = []
    for number, words in lines:
        if run and (not words.strip() or number > run[-1][0] + 1):
            yield run
            run = []
        if words.strip():
            run.append((number, words))
    if run:
        yield run


def page_prose(text: str) -> Iterator[Line]:
    fence = ""
    quoting = False
    for number, line in enumerate(text.splitlines(), 1):
        if mark := re.match(r"\s*(```+|~~~+)", line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
            yield number, ""
        elif fence:
            comment = re.search(r"(?:^|\s)# (.*)", line)
            yield number, comment[1] if comment else ""
        else:
            if "<!-- prose off -->" in line:
                quoting = True
            if not quoting:
                yield number, without_code(line)
            if "<!-- prose on -->" in line:
                quoting = False


def python_prose(text: str) -> Iterator[Line]:
    previous = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        number = token.start[0]
        if token.type == tokenize.COMMENT:
            yield number, without_code(token.string.lstrip("#: "))
        elif token.type == tokenize.NAME and previous == "def" and token.string.startswith("test_"):
            yield number, token.string.replace("_", " ")
        elif token.type == tokenize.STRING or token.type == FSTRING:
            prefix = re.match(r"\w*", token.string)
            # A single word is a name or a value, not prose.
            if prefix and "b" not in prefix[0].lower() and " " in token.string:
                # An empty line first: a docstring does not continue the line above it.
                for offset, line in enumerate(token.string.splitlines()):
                    yield number + offset, without_code(without_names(line, prefix[0]))
        previous = token.string


FSTRING = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)  # a token of its own from 3.12 on

# Comments, strings, and what must not be mistaken for them: bytes, raw strings and characters.
RUST = re.compile(
    r'(//[^\n]*)|(?<!\w)b"(?:[^"\\]|\\.)*"|(?<!\w)b?r(?P<hashes>#*)".*?"(?P=hashes)|("(?:[^"\\]|\\.)*")'
    r"|'(?:[^'\\\n]|\\.)'",
    re.DOTALL,
)


RUST_TEST = re.compile(r"#\[test\]\s*(?:(?:#\[[^\n]*\]|//[^\n]*)\s*)*fn (\w+)")


def rust_prose(text: str) -> Iterator[Line]:
    lines: list[Line] = []
    for match in RUST.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        words = match[1] or match[3] or ""
        if match[3] and " " not in words:
            continue  # a name or a value, not prose
        for offset, line in enumerate(words.splitlines()):
            lines.append((number + offset, without_code(line.lstrip("/! "))))
    for match in RUST_TEST.finditer(text):
        number = text.count("\n", 0, match.start(1)) + 1
        lines.append((number, match[1].replace("_", " ")))
    yield from sorted(lines)


def comment_prose(text: str) -> Iterator[Line]:
    for number, line in enumerate(text.splitlines(), 1):
        yield number, without_code(line.lstrip("#/ "))


def without_code(line: str) -> str:
    """Inline code names things; their names are not ours to choose."""
    return re.sub(r"`[^`]*`", "`…`", line)


def without_names(line: str, prefix: str) -> str:
    """The same for the expressions in an f-string."""
    return re.sub(r"\{[^{}]*\}", "…", line) if "f" in prefix.lower() else line


def tracked(paths: list[Path]) -> list[Path]:
    """The files of the repository, or those of them below `paths`."""
    listing = ("git", "ls-files", "-z", "--", *map(str, paths))
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [ROOT / name for name in names.split("\0") if name]


TEXT = (".md", ".html", ".py", ".pyi", ".rs", ".toml", ".yml", ".yaml", ".in", ".service")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Checks prose against tools/prose.toml.")
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT], metavar="PATH")
    parser.add_argument("--all", action="store_true", help="check the excluded folders as well")
    chosen = parser.parse_args(arguments)
    rules = Rules.read()
    failures = checked = 0
    for path in tracked([path.resolve() for path in chosen.paths]):
        name = path.relative_to(ROOT).as_posix()
        if name == "tools/prose.toml" or not path.is_file():
            continue
        if not (name.endswith(TEXT) or path.name in ("Makefile", "Dockerfile")):
            continue
        if rules.excludes(name) and not chosen.all:
            continue
        checked += 1
        for found in rules.check(name, path.read_text()):
            failures += 1
            rule = found.rule
            print(f"{name}:{found.line}: “{found.phrase}” (S{rule.style}): {rule.write}")
    print(f"{failures} phrases to rewrite in {checked} files")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
