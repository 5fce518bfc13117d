"""Checks that every crate in Cargo.lock has a licence that deny.toml allows, and counts the licences.

cargo-deny checks this, too, with advisories and sources, but it has to be installed first. Standard library only;
tools/stages.py runs it in `make lint` and `make test`.
"""

from __future__ import annotations

import collections
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    licences = dict(crates())
    for expression, count in collections.Counter(licences.values()).most_common():
        print(f"{count:4} {expression}")
    refused = [name for name, text in licences.items() if not is_allowed(text, allowed)]
    for name in refused:
        print(f"{name}: {licences[name]}: deny.toml does not allow this licence", file=sys.stderr)
    return 1 if refused else 0


def crates() -> list[tuple[str, str]]:
    """Every crate that is not ours, for every target and feature, with its licence."""
    command = ["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    packages = json.loads(result.stdout)["packages"]
    return [
        (f"{package['name']} {package['version']}", package["license"] or "none")
        for package in packages
        if package["source"]
    ]


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be met with the allowed licences.

    >>> is_allowed("MIT OR GPL-3.0", {"MIT"}), is_allowed("MIT AND GPL-3.0", {"MIT"})
    (True, False)
    >>> is_allowed("(Unlicense/MIT) AND Unicode-3.0", {"MIT", "Unicode-3.0"})
    True
    """
    while inner := re.search(r"\(([^()]*)\)", expression):
        known = "met" if is_allowed(inner[1], allowed) else "not met"
        expression = expression.replace(inner[0], known)
    choices = re.split(r" OR |/", expression)  # a slash is the old way to write OR
    return any(allowed.union({"met"}).issuperset(choice.split(" AND ")) for choice in choices)


if __name__ == "__main__":
    sys.exit(main())
