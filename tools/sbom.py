"""Writes the list of what zeroxide is made of (SBOM, CycloneDX 1.5) from Cargo.lock, or checks that it is current.

It has the crates that are in the extension module on Linux, with their checksums, licences and dependencies. The
licence of each must be one that deny.toml allows. Every wheel has a list that maturin makes; a test compares them.
Standard library only; tools/stages.py runs it in `make lint` and `make test`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from licences import is_allowed

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "sbom.cdx.json"
MODULE = "zeroxide-python"
TARGET = "x86_64-unknown-linux-gnu"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    is_writing = parser.parse_args().write
    document = build()
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    wrong = [
        f"{component['purl']}: deny.toml does not allow its licence"
        for component in document["components"]
        if not is_allowed(component["licenses"][0]["expression"], allowed)
    ]
    text = json.dumps(document, indent=1) + "\n"
    if is_writing:
        FILE.write_text(text)
    elif not FILE.exists() or FILE.read_text() != text:
        wrong.append(f"{FILE.name} is not that of Cargo.lock; run python3 tools/sbom.py --write")
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        print(f"{FILE.name}: {len(document['components'])} crates, each with its licence")
    return 1 if wrong else 0


def build() -> dict[str, Any]:
    """The document. It has no date and no random number, so that it changes only with its contents."""
    metadata = cargo_metadata()
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(each["name"], each["version"]): each.get("checksum") for each in lock}
    [root] = [name for name, package in packages.items() if package["name"] == MODULE]
    found = reachable(root, nodes)
    refs = {name: purl(packages[name]) for name in found}
    components = []
    for name in sorted(found - {root}, key=refs.__getitem__):
        package = packages[name]
        component = {
            "type": "library",
            "bom-ref": refs[name],
            "name": package["name"],
            "version": package["version"],
            "licenses": [{"expression": (package["license"] or "NONE").replace("/", " OR ")}],
            "purl": refs[name],
        }
        if checksum := checksums[package["name"], package["version"]]:
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        components.append(component)
    dependencies = [
        {"ref": refs[name], "dependsOn": sorted(refs[other] for other in needed(nodes[name]))}
        for name in sorted(found, key=refs.__getitem__)
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": refs[root],
                "name": "zeroxide",
                "version": packages[root]["version"],
                "licenses": [{"expression": packages[root]["license"]}],
                "purl": f"pkg:pypi/zeroxide@{packages[root]['version']}",
            }
        },
        "components": components,
        "dependencies": dependencies,
    }


def cargo_metadata() -> dict[str, Any]:
    command = [
        "cargo",
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        TARGET,
    ]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def needed(node: dict[str, Any]) -> list[str]:
    """What a crate needs to run, without what only its tests and its build need."""
    return [
        dependency["pkg"]
        for dependency in node["deps"]
        if any(kind["kind"] is None for kind in dependency["dep_kinds"])
    ]


def reachable(root: str, nodes: dict[str, dict[str, Any]]) -> set[str]:
    found, left = {root}, [root]
    while left:
        for other in needed(nodes[left.pop()]):
            if other not in found:
                found.add(other)
                left.append(other)
    return found


def purl(package: dict[str, Any]) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


if __name__ == "__main__":
    sys.exit(main())
